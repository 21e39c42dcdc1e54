"""``ohmlearn suggest``: the same nodes as in Python, in tables."""

import csv
import json
import math
from pathlib import Path

import pytest
from click.testing import Result
from commands import invoke, succeed

from ohmlearn import HFSClassifier, gallery, read_edges
from ohmlearn.reading.label_table import read_labels


def suggest(*args: object, **more: object) -> Result:
    return invoke("suggest", *args, **more)


def rows_of(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(result.stdout.splitlines()))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two blocks with labels, and a third one that nothing connects to a label."""
    blocks = gallery.stochastic_blocks([60, 60], 0.4, bridges=40, random_state=0)
    graph = gallery.disjoint_union(blocks, gallery.complete(20))
    u, v, _ = graph.edges()
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    rows = zip(u.tolist(), v.tolist(), strict=True)
    edges.write_text("from,to\n" + "".join(f"p{a},p{b}\n" for a, b in rows))
    given = [f"p{i},{'red' if i < 60 else 'blue'}\n" for i in (0, 5, 9, 60, 66, 80, 90)]
    labels.write_text("node,label\n" + "".join(given))
    return edges, labels


def test_suggestions_are_those_of_python(files: tuple[Path, Path]):
    edges, labels = files
    result = suggest(edges, "--labels", labels, "-k", 8)
    rows = rows_of(result)
    stream, given = read_edges(edges), dict(read_labels(str(labels)))
    with pytest.warns(UserWarning, match="20 of 140 nodes are in components without a label"):
        model = HFSClassifier(passes=1, random_state=0).fit_edges(stream, given)
    expected = model.suggest_labels(8)
    assert [(row["node"], row["kind"], int(row["n_settled"]), row["reason"]) for row in rows] == [
        (found.node, found.kind, found.n_settled, found.reason) for found in expected
    ]
    # The block without a label comes first. There nodes have no present label.
    assert rows[0]["reason"] == "covers a component of 20 nodes without a label"
    numbers = stream.nodes.find([row["node"] for row in rows])
    for row, number in zip(rows, numbers, strict=True):
        label, probability = "", ""
        if model.reached_[number]:
            label = model.transduction_[number]
            probability = str(model.label_distributions_[number].max())
        assert (row["label"], row["probability"]) == (label, probability)
    assert "8 of 140 nodes suggested: 1 in components without a label, " in result.stderr


def test_present_labels_follow_the_class_prior_as_those_of_label_do(files: tuple[Path, Path]):
    edges, labels = files
    prior = ["--labels", labels, "--passes", 1, "--class-prior", "red=0.9,blue=0.1"]
    args = ["label", str(edges), *map(str, prior)]
    known = {row["node"]: row["label"] for row in rows_of(invoke(*args))}
    rows = rows_of(suggest(edges, *prior, "-k", 20))
    assert [row["label"] for row in rows] == [known[row["node"]] for row in rows]
    without = {row["node"]: row["label"] for row in rows_of(suggest(edges, *prior[:4], "-k", 40))}
    assert any(without.get(row["node"], row["label"]) != row["label"] for row in rows)


def test_without_labels(files: tuple[Path, Path]):
    edges, _ = files
    rows = rows_of(suggest(edges, "-k", 3))
    assert list(rows[0]) == ["node", "kind", "n_settled", "reason"]
    assert [(row["kind"], row["n_settled"]) for row in rows[:2]] == [
        ("component", "120"),
        ("component", "20"),
    ]
    model = HFSClassifier(random_state=0).update(read_edges(edges))
    assert [row["node"] for row in rows] == [found.node for found in model.suggest_labels(3)]


def test_excluded_nodes_are_not_suggested(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    first = [row["node"] for row in rows_of(suggest(edges, "--labels", labels, "-k", 4))]
    exclude = tmp_path / "exclude.txt"
    exclude.write_text("\n".join([*first[:3], "", "nobody"]) + "\n")
    result = suggest(edges, "--labels", labels, "-k", 4, "--exclude", exclude)
    assert not {row["node"] for row in rows_of(result)} & set(first[:3])
    assert f"1 of the 4 nodes in {exclude} are in no edge, such as 'nobody'" in result.stderr


def test_pipes_and_threads_do_not_matter(files: tuple[Path, Path]):
    edges, labels = files
    once = suggest(edges, "--labels", labels, "-q")
    assert once.stderr == ""
    piped = suggest("-", "--labels", labels, "-q", "--threads", 2, input=edges.read_bytes())
    assert piped.stdout == once.stdout


def test_null_where_there_is_no_evidence(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    out = tmp_path / "out.jsonl"
    result = succeed("suggest", edges, "--labels", labels, "-k", 3, "-o", out, "--json")
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert (found[0]["label"], found[0]["probability"]) == (None, None)
    assert found[2]["label"] in ("red", "blue")
    assert 0.5 < found[2]["probability"] < 1.0
    summary = json.loads(result.stderr.splitlines()[-1])
    assert (summary["n_nodes"], summary["n_suggested"]) == (140, 3)
    assert summary["kinds"]["component"] == 1


def test_fewer_nodes_than_asked_for(tmp_path: Path):
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    edges.write_text("u,v\na,b\nb,c\n")
    labels.write_text("node,label\na,x\nb,x\nc,y\n")
    result = suggest(edges, "--labels", labels)
    assert rows_of(result) == []
    assert "0 of 3 nodes suggested, as there are no others to choose from" in result.stderr
    rest = suggest(edges, "-k", 9)
    assert {row["node"] for row in rows_of(rest)} == {"a", "b", "c"}


@pytest.mark.slow
def test_on_a_cluster(files: tuple[Path, Path]):
    pytest.importorskip("distributed")
    edges, labels = files
    here = rows_of(suggest(edges, "--labels", labels, "-k", 5))
    there = rows_of(suggest(edges, "--labels", labels, "-k", 5, "--cluster", "local:1"))
    assert there == here  # there is one partition


@pytest.fixture
def timed(tmp_path: Path) -> tuple[Path, Path]:
    """Two blocks; an edge is the newer, the larger the numbers of its nodes."""
    blocks = gallery.stochastic_blocks([40, 40], 0.4, bridges=20, random_state=0)
    u, v, _ = blocks.edges()
    rows = [(a, b, a + b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    edges, labels = tmp_path / "timed.csv", tmp_path / "given.csv"
    rows.sort(key=lambda row: row[2])
    edges.write_text("from,to,time\n" + "".join(f"p{a},p{b},{t}\n" for a, b, t in rows))
    given = [f"p{i},{'red' if i < 40 else 'blue'}\n" for i in (0, 5, 9, 40, 46, 70)]
    labels.write_text("node,label\n" + "".join(given))
    return edges, labels


@pytest.mark.filterwarnings(
    "ignore:.* nodes are in components|.* labelled nodes have no edge that counts"
)
@pytest.mark.parametrize(
    ("options", "parameters", "moment"),
    [
        (["--half-life", 10], {"half_life": 10.0}, {}),
        (["--horizon", 60], {"horizon": 60.0}, {}),
        (["--since", 50], {"horizon": math.inf}, {"since": 50}),
    ],
)
def test_old_edges_can_be_forgotten(
    timed: tuple[Path, Path], options: list[object], parameters: dict, moment: dict
):
    edges, labels = timed
    plain = [row["node"] for row in rows_of(suggest(edges, "--labels", labels, "-k", 5))]
    rows = rows_of(suggest(edges, "--labels", labels, "-k", 5, *options))
    model = HFSClassifier(passes=1, random_state=0, **parameters)
    model.fit_edges(read_edges(edges, time="time"), dict(read_labels(str(labels))), **moment)
    found = [row["node"] for row in rows]
    assert found == [pick.node for pick in model.suggest_labels(5)]
    assert found != plain
    without = rows_of(suggest(edges, "-k", 5, *options))
    model = HFSClassifier(random_state=0, **parameters)
    model.update(read_edges(edges, time="time"), **moment)
    assert [row["node"] for row in without] == [pick.node for pick in model.suggest_labels(5)]


def test_a_state_has_edges_and_labels(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    state, out = str(tmp_path / "state.ohm"), str(tmp_path / "out.csv")
    args = ["label", edges, "--labels", labels, "--state", state, "-o", out]
    succeed(*args)
    before = Path(state).read_bytes()
    rows = rows_of(suggest("--state", state, "-k", 8))
    assert rows == rows_of(suggest(edges, "--labels", labels, "-k", 8))
    assert rows[1]["label"] in ("red", "blue")
    assert Path(state).read_bytes() == before
    sparsifier = str(tmp_path / "h.ohm")
    succeed("sparsify", edges, "-o", sparsifier)
    found = rows_of(suggest("--state", sparsifier, "-k", 3))
    assert list(found[0]) == ["node", "kind", "n_settled", "reason"]
    assert found[0]["kind"] == "component"
