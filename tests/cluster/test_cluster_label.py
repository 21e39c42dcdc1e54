"""``ohmlearn.dask.label`` and ``ohmlearn label --cluster``: passes over edges that stay put."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from click.testing import CliRunner, Result
from distributed import Client
from refuses import refuses
from worker_deaths import disturbed_runs

from ohmlearn import Graph, HFSClassifier, certify, gallery, refine, solve_hfs
from ohmlearn.cli import main
from ohmlearn.dask import ClusterEdges, Labelled, label
from ohmlearn.dask import sparsify as sparsify_on_cluster
from ohmlearn.reading import read_edges

OHMLEARN = [sys.executable, "-c", "from ohmlearn.cli import main; main()"]
KNOWN = {f"person {i}": ("even", "odd")[i % 2] for i in range(20)}


def run(client: Client | None, files: list[Path], **options: Any) -> Labelled:
    return label(
        files,
        KNOWN,
        client=client,
        epsilon=0.9,
        random_state=3,
        partition_edges=40_000,
        split_every=2,
        **options,
    )


def content(found: Labelled) -> bytes:
    scores = found.model.scores_, found.probabilities, found.reached
    return b"".join(a.tobytes() for a in scores) + " ".join([*found.ids, *found.labels]).encode()


@pytest.fixture(scope="module")
def undisturbed(files: list[Path]) -> bytes:
    with dask.config.set(scheduler="threads"):
        found = run(None, files)
    assert found.model.n_iter_ == 3
    return content(found)


def test_any_number_of_workers_gives_the_same_labels(
    two: Client, four: Client, files: list[Path], undisturbed: bytes
):
    assert content(run(two, files)) == undisturbed
    assert content(run(four, files)) == undisturbed


def test_reasons_are_those_of_edges_read_here(two: Client, files: list[Path]):
    def explain(edges: Any) -> Any:
        model = HFSClassifier(epsilon=0.9, random_state=3).fit_edges(edges, KNOWN)
        return model.explain(["person 33"], edges=edges, n_labels=None, n_edges=10)[0]

    there = explain(ClusterEdges(files, client=two, partition_edges=40_000))
    with dask.config.set(scheduler="threads"):
        assert there == explain(ClusterEdges(files, partition_edges=40_000))
    here = explain(read_edges(files))
    assert {(*sorted((one.source, one.target)), one.weight) for one in there.edges[:5]} <= {
        (*sorted((one.source, one.target)), one.weight) for one in here.edges
    }


@pytest.mark.slow
def test_workers_killed_at_random_moments_change_no_label(
    two: Client, files: list[Path], undisturbed: bytes
):
    for found in disturbed_runs(two, lambda: run(two, files), seed=6):
        assert content(found) == undisturbed


def test_many_passes_give_the_answer_of_the_full_graph(files: list[Path]):
    with dask.config.set(scheduler="threads"):
        found = run(None, files, passes=40, gamma=0.5)
    assert found.model.n_iter_ < 40
    graph = read_edges(files, nodes=found.edges.nodes).to_graph()  # the same numbers
    labelled = found.model.labelled_
    codes = [int(KNOWN[node] == "odd") for node in found.ids[labelled]]
    exact = solve_hfs(graph, labelled, np.eye(2)[codes], gamma=0.5).f
    assert abs(found.model.scores_ - exact).max() < 1e-4 * abs(exact).max()
    labels = dict(zip(found.ids, found.labels, strict=True))
    assert labels == {
        node: ("even", "odd")[k] for node, k in zip(found.ids, exact.argmax(axis=1), strict=True)
    }


@pytest.mark.parametrize("method", ["harmonic", "restart"])
def test_leave_one_out_is_that_of_edges_in_this_process(
    two: Client, files: list[Path], method: Any
):
    edges = ClusterEdges(files, client=two, partition_edges=40_000)
    h = sparsify_on_cluster(edges, epsilon=0.9, random_state=0)
    batches = list(read_edges(files, nodes=h.nodes))
    assert h.n_edges < sum(len(batch[0]) for batch in batches)
    problem: Any = ([0, 3, 4, 9], np.eye(2)[[0, 1, 1, 0]])
    here, there = (
        refine(source, h, *problem, method=method, leave_out=range(4), random_state=1)
        for source in (batches, edges)
    )
    np.testing.assert_allclose(there.f, here.f, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(there.left_out.f, here.left_out.f, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.* labels are few for")
def test_weights_of_a_file_count(tmp_path: Path):
    path = tmp_path / "known.csv"
    path.write_text("node,label,weight\na,x,3\nd,y,1\nd,y,0.5\n")
    parts = [dask.delayed((["a", "b"], ["b", "c"])), dask.delayed((["c"], ["d"]))]
    found = label(parts, path, random_state=0)
    given = label(parts, {"a": "x", "d": "y"}, sample_weight={"a": 3.0, "d": 1.5}, random_state=0)
    np.testing.assert_array_equal(found.probabilities, given.probabilities)


def test_all_edges_of_a_cluster_are_not_kept_here():
    with (
        dask.config.set(scheduler="threads"),
        refuses(parameter="epsilon", value="None"),
    ):
        label([dask.delayed((["a"], ["b"]))], {"a": "x", "b": "y"}, epsilon=None)


def test_components_are_compared_across_partitions(two: Client):
    # No partition alone joins the two ends; together they do.
    path = gallery.path(30)
    u, v, w = path.edges()
    parts = [dask.delayed((u[i::4], v[i::4], w[i::4])) for i in range(4)]
    edges = ClusterEdges(parts, client=two, split_every=2)
    found = edges.sparsify(random_state=0)
    scores = refine(edges, found, [0, 1], [1.0, -1.0]).f
    kept = found.snapshot()
    np.testing.assert_allclose(scores, solve_hfs(kept, [0, 1], [1.0, -1.0]).f, atol=1e-6)
    assert certify(edges, kept, random_state=0).extra_edge is None
    torn = Graph.from_edges(*(part[1:] for part in kept.edges()), n_nodes=kept.n_nodes)
    assert certify(edges, torn, random_state=0).lost_edge is not None
    joined = Graph.from_edges([*kept.edges()[0], 0], [*kept.edges()[1], 30], n_nodes=31)
    with pytest.warns(UserWarning, match="30 edges, more than the 29 of the graph"):
        more = certify(edges, joined, random_state=0)
    assert more.extra_edge == (0, 30)


def test_edges_that_came_later_are_found_out(two: Client, tmp_path: Path):
    path = tmp_path / "edges.csv"
    path.write_text("u,v\na,b\nb,c\nc,a\n")
    edges = ClusterEdges(path, client=two)
    sparsifier = edges.sparsify(random_state=0)
    for row, ids in (("c,newcomer", "('c', None)"), ("one newcomer,another", "(None, None)")):
        path.write_text(f"u,v\na,b\nb,c\nc,a\n{row}\n")
        with pytest.raises(ValueError, match="the sparsifier has not seen all edges"):
            refine(edges, sparsifier, [0, 1], [1.0, -1.0])
        found = certify(edges, sparsifier, random_state=0)
        assert f"edge {ids} of G joins nodes that H does not connect" in str(found)
    assert len(edges.nodes) == 3
    path.write_text("u,v\na,b\nb,c\nc,a\nnewcomer,newcomer\n")  # self-loops never count
    refine(edges, sparsifier, [0, 1], [1.0, -1.0])


def on_cluster(client: Client, files: list[Path], known: Path, *args: object) -> Result:
    address = client.scheduler.address
    common = ["label", *files, "--labels", known, "--cluster", address, *args]
    return CliRunner().invoke(main, [str(arg) for arg in common])


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.csv"
    path.write_text("node,label\n" + "".join(f"{node},{value}\n" for node, value in KNOWN.items()))
    return path


def test_the_command_writes_what_python_returns(
    two: Client, files: list[Path], known: Path, tmp_path: Path
):
    pytest.importorskip("matplotlib")
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    options = "--seed", 3, "--passes", 2, "--report", page, "--option", "certify=yes"
    result = on_cluster(two, files, known, "-o", out, *options)
    assert result.exit_code == 0, result.output
    assert "Dashboard http://127.0.0.1:" in result.output
    assert "u = 'src', v = 'dst', weights = 'weight' (guessed)" in result.output
    assert "energies in H are " in page.read_text()
    found = label(files, str(known), client=two, random_state=3, passes=2)
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert ",".join(rows[0]) == "node,label,probability_even,probability_odd,reached,prior_label"
    expected = [list(row) for row in zip(found.ids, found.labels, strict=True)]
    assert [row[:2] for row in rows[1:]] == expected
    scores = np.array([[float(x) for x in row[2:4]] for row in rows[1:]])
    np.testing.assert_array_equal(scores, found.probabilities)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--memory", "1GB", "--n-nodes", "300"], 2, "--memory has no use with --cluster"),
        (["--weight", "amount"], 2, "has no column 'amount', only 'src'"),
        (["--cluster", "local:many"], 2, "from 1 to 1024, got 'local:many'"),
        (["--max-edges", "100"], 2, "is fewer than two edges for each of"),
    ],
)
def test_bad_use_of_the_command_is_one_line(
    two: Client, files: list[Path], known: Path, args: list[str], code: int, message: str
):
    result = on_cluster(two, files, known, *args)
    assert message in result.output
    assert result.exit_code == code
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_interrupted_it_ends_with_one_line(known: Path, tmp_path: Path):
    # A partition that takes its time: a pipe that nobody writes to.
    folder = tmp_path / "edges"  # pipes that are named are refused
    folder.mkdir()
    os.mkfifo(folder / "second.csv")
    (folder / "first.csv").write_text("u,v\nperson 0,person 1\n")
    args = [*OHMLEARN, "label", str(folder), "--labels", str(known)]
    process = subprocess.Popen(
        [*args, "--read", "format=csv", "--cluster", "local:2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    line = ""
    while "guessed" not in line:
        line = process.stderr.readline()
    time.sleep(4.0)  # for the workers to start, also on a busy machine
    # Python drops an interrupt during a callback of the garbage collector and prints a message.
    for _ in range(5):
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does for Ctrl-C
        try:
            out, err = process.communicate(timeout=20)
            break
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "Interrupted"
    assert err == "Interrupted\n" or "gc_callback" in err
