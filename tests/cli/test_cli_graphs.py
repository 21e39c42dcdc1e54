"""Commands about edges: the same answers as from Python, one line for bad input."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, refuse, succeed

from ohmlearn import Graph, LaplacianSolver, effective_resistance, gallery
from ohmlearn.reading import read_edges
from ohmlearn.sparsifier import sparsify

pytest.importorskip("pyarrow")


def write_csv(path: Path, header: str, *columns) -> Path:
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def edges(tmp_path) -> tuple[Path, Graph, list[str]]:
    """A graph with names for nodes: the file, the same in Python, and the names in its order."""
    u, v, w = gallery.chimera(300, random_state=3, decades=1).edges()
    names = np.array([f"node {i}" for i in range(300)])
    path = write_csv(tmp_path / "edges.csv", "src,dst,weight", names[u], names[v], w)
    stream = read_edges(path)
    (batch,) = list(stream)
    return path, Graph.from_edges(*batch[:3]), stream.nodes.ids().tolist()


def test_info(edges):
    path, graph, _ = edges
    figures = json.loads(invoke("info", path, "--json").stdout)
    degree = np.bincount(np.concatenate(graph.edges()[:2]), minlength=graph.n_nodes)
    assert figures["n_nodes"] == graph.n_nodes
    assert figures["n_edges_seen"] == graph.n_edges
    assert figures["n_components"] == graph.components()[0]
    assert figures["degree_max"] == degree.max()
    assert figures["degree_quartiles"] == np.quantile(degree, [0.25, 0.5, 0.75]).tolist()
    assert figures["weight_seen"] == pytest.approx(graph.edges()[2].sum())
    shown = invoke("info", path)
    assert f"Nodes        {graph.n_nodes}, 0 isolated" in shown.stdout
    assert "u = 'src', v = 'dst', weights = 'weight' (guessed)" in shown.stderr


def test_info_counts_components_over_batches(tmp_path):
    path = tmp_path / "edges.txt"
    n = 200_000
    chain = np.random.default_rng(0).permutation(n)
    lines = [f"{a} {b}" for a, b in pairwise(chain) if (a + b) % 1000]
    path.write_text("\n".join([*lines, "5 5", f"{n} {n}"]))
    figures = json.loads(invoke("info", path, "--json").stdout)
    assert figures["n_self_loops_dropped"] == 2
    assert figures["n_isolated_nodes"] >= 1
    assert figures["n_components"] == figures["n_nodes"] - len(lines)


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "arrow"])
def test_sparsify_writes_what_python_gives(edges, tmp_path, ending):
    path, graph, ids = edges
    output = tmp_path / "new folder" / f"h.{ending}"
    output.parent.mkdir()
    result = succeed("sparsify", path, "-o", output, "--max-edges", "900", "--seed", "3", "--json")
    expected = sparsify(read_edges(path), max_edges=900, random_state=3)
    stream = read_edges(output)
    (batch,) = list(stream)
    names = stream.nodes.ids()
    u, v, w = expected.edges()
    assert names[batch.u].tolist() == [ids[i] for i in u]
    assert names[batch.v].tolist() == [ids[i] for i in v]
    np.testing.assert_array_equal(batch.w, w)
    figures = json.loads(result.stderr)
    assert figures["n_edges_kept"] == expected.n_edges
    assert figures["n_edges_seen"] == graph.n_edges
    assert os.listdir(output.parent) == [output.name]


def test_sparsify_prints_csv_and_json_lines(edges, tmp_path):
    path, _, _ = edges
    printed = invoke("sparsify", path, "-o", "-", "-q")
    assert printed.stderr == ""
    lines = printed.stdout.splitlines()
    assert lines[0] == "u,v,w"
    output = tmp_path / "h.jsonl"
    invoke("sparsify", path, "-o", output)
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [f"{r['u']},{r['v']},{r['w']}" for r in records] == lines[1:]


def test_certify(edges, tmp_path):
    path, _, _ = edges
    output = tmp_path / "h.parquet"
    invoke("sparsify", path, "-o", output, "--epsilon", "0.9")
    figures = json.loads(invoke("certify", path, output, "--json").stdout)
    assert 0 <= figures["epsilon"] <= figures["epsilon_bound"] < 1
    same = invoke("certify", path, path)
    assert same.stdout.startswith("energies in H are 1 to 1 times those in G")


def test_certify_names_edges_by_the_ids_of_the_user(tmp_path):
    whole = write_csv(tmp_path / "g.csv", "src,dst", ["ann", "bob", "cy"], ["bob", "cy", "dee"])
    part = write_csv(tmp_path / "h.csv", "src,dst", ["ann", "cy"], ["bob", "dee"])
    lost = invoke("certify", whole, part)
    assert "edge ('bob', 'cy') of G joins nodes that H does not connect" in lost.stdout
    assert (
        "edge ('bob', 'cy') of H joins nodes that G does not connect"
        in invoke("certify", part, whole).stdout
    )
    numbers = write_csv(tmp_path / "i.csv", "u,v", [10, 20, 30], [20, 30, 40])
    fewer = write_csv(tmp_path / "j.csv", "u,v", [10, 30], [20, 40])
    assert "edge (20, 30) of G joins" in invoke("certify", numbers, fewer).stdout
    found = json.loads(invoke("certify", fewer, numbers, "--json").stdout)
    assert found["extra_edge"] == [20, 30]
    new = write_csv(tmp_path / "n.csv", "src,dst", ["ann", "cy", "bob"], ["bob", "dee", "eve"])
    assert json.loads(invoke("certify", new, part, "--json").stdout)["lost_edge"] == ["bob", "eve"]


def test_resistance(edges, tmp_path):
    path, graph, ids = edges
    output = tmp_path / "r.csv"
    succeed("resistance", path, "-o", output)
    expected = effective_resistance(graph, exact=True)
    found = np.loadtxt(output, delimiter=",", skiprows=1, usecols=3)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    pairs = write_csv(tmp_path / "pairs.csv", "u,v", [ids[5], ids[0]], [ids[9], ids[0]])
    succeed("resistance", path, "-o", output, "--pairs", pairs)
    found = np.loadtxt(output, delimiter=",", skiprows=1, usecols=2)
    np.testing.assert_allclose(found, effective_resistance(graph, [[5, 9], [0, 0]]), rtol=1e-6)
    before = output.read_text()
    pairs.write_text(f"u,v,w\n{ids[5]},{ids[9]},-1\n{ids[0]},{ids[0]},\n")  # pairs have no weights
    succeed("resistance", path, "-o", output, "--pairs", pairs)
    assert output.read_text() == before
    write_csv(pairs, "u,v", ["who"], [ids[0]])
    problem = "pair 1: node 'who' is not in the graph"
    refuse("resistance", path, "-o", output, "--pairs", pairs, said=problem)
    b = write_csv(tmp_path / "b.csv", "node,b", ["who"], [1])
    refuse("solve", path, b, said="row 2: node 'who' is not in the graph")


def test_solve(edges, tmp_path):
    path, graph, ids = edges
    b = write_csv(tmp_path / "b.csv", "node,first,second", [ids[3], ids[8]], [1, -1], [2, -2.0])
    output = tmp_path / "x.parquet"
    succeed("solve", path, b, "-o", output)
    from pyarrow import parquet

    table = parquet.read_table(output)
    assert table["node"].to_pylist() == ids
    right = np.zeros((graph.n_nodes, 2))
    right[3], right[8] = (1, 2), (-1, -2)
    x = LaplacianSolver(graph).solve(right)
    np.testing.assert_allclose(table["first"].to_numpy(), x[:, 0], atol=1e-7)
    np.testing.assert_allclose(table["second"].to_numpy(), x[:, 1], atol=1e-7)


def test_solve_with_integer_ids(tmp_path):
    path = write_csv(tmp_path / "e.csv", "u,v", [10, 20], [20, -30])
    b = write_csv(tmp_path / "b.csv", "node,b", [10, -30], [1, -1])
    output = tmp_path / "x.csv"
    succeed("solve", path, b, "-o", output)
    lines = output.read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["node", "10", "20", "-30"]
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], [1, 0, -1])
    from pyarrow import csv, feather, parquet

    parquet.write_table(csv.read_csv(b), tmp_path / "b.parquet")
    feather.write_feather(csv.read_csv(b), str(tmp_path / "b.arrow"))
    (tmp_path / "b.jsonl").write_text('{"node": 10, "b": 1}\n{"node": -30, "b": -1}\n')
    for name in ("b.parquet", "b.arrow", "b.jsonl"):
        succeed("solve", path, tmp_path / name, "-o", tmp_path / "y.csv")
        assert (tmp_path / "y.csv").read_text().splitlines() == lines
    (tmp_path / "b.jsonl").write_text('{"node": 10, "b": "x"}\n')
    refused = invoke("solve", path, tmp_path / "b.jsonl")
    assert "b.jsonl, row 1: 'b' is not a number: 'x'" in refused.stderr
    assert "its mean there was subtracted" not in invoke("solve", path, b).stderr
    b.write_text("node,b\n10,2\n-30,-1\n")
    assert "b does not sum to 0 over each component" in invoke("solve", path, b).stderr


def test_the_same_thing_has_the_same_name_in_all_json(tmp_path):
    graph = gallery.complete(60)
    u, v, w = graph.edges()
    rows = [f"{a},{b},{c}" for a, b, c in zip(u, v, w, strict=True)]
    path = tmp_path / "edges.csv"
    path.write_text("\n".join(["u,v,w", *rows, "3,3,1", "4,5,0", "5,6,heavy"]) + "\n")
    labels = write_csv(tmp_path / "labels.csv", "node,label", [0, 1], ["a", "b"])
    b = write_csv(tmp_path / "b.csv", "node,b,c", [0, 1], [1, -1], [2, -2])
    h = tmp_path / "h.csv"
    read = [path, "--on-bad", "skip", "--json"]
    commands = {
        "info": ["info", *read],
        "sparsify": ["sparsify", *read, "--epsilon", "0.8", "-o", h],
        "certify": ["certify", *read, h],
        "solve": ["solve", *read, b, "-o", tmp_path / "x.csv"],
        "label": ["label", *read, "--labels", labels, "-o", tmp_path / "y.csv"],
    }
    found = {}
    for name, args in commands.items():
        result = succeed(*args)
        found[name] = json.loads(result.output.splitlines()[-1])
    same = {
        "n_nodes": 60,
        "n_edges_seen": graph.n_edges,
        "n_self_loops_dropped": 1,
        "n_zero_weights_dropped": 1,
        "n_bad_rows": 1,
    }
    for name in ("info", "sparsify", "label"):
        assert {key: found[name][key] for key in same} == same
    assert found["certify"]["n_nodes"] == found["solve"]["n_nodes"] == 60
    assert found["label"]["n_edges_kept"] == found["sparsify"]["n_edges_kept"]
    assert found["info"]["weight_seen"] == found["sparsify"]["weight_seen"]
    names = {key for figures in found.values() for key in figures}
    counts = {key.removeprefix("n_") for key in names if key.startswith("n_")}
    assert not names & (counts | {"bad_rows_dropped", "edges", "residuals", "weight_sum"})
