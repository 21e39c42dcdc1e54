"""``ohmlearn explain`` and ``label --explain``: the reasons that Python gives."""

import json
from pathlib import Path

import pytest
from commands import read_rows, refuse, succeed

from ohmlearn import GraphFeatureClassifier, HFSClassifier, gallery, read_edges, read_features
from ohmlearn.reading.label_table import read_labels


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks with labels, and a third one that nothing connects to a label."""
    monkeypatch.chdir(tmp_path)
    blocks = gallery.stochastic_blocks([60, 60], 0.4, bridges=40, random_state=0)
    graph = gallery.disjoint_union(blocks, gallery.complete(20))
    u, v, _ = graph.edges()
    rows = zip(u.tolist(), v.tolist(), strict=True)
    Path("edges.csv").write_text("from,to\n" + "".join(f"p{a},p{b}\n" for a, b in rows))
    given = [f"p{i},{'red' if i < 60 else 'blue'}\n" for i in (0, 5, 9, 60, 66, 80, 90)]
    Path("labels.csv").write_text("node,label\n" + "".join(given))


EXPLAIN = "explain edges.csv --labels labels.csv"


def test_reasons_are_those_of_python() -> None:
    Path("nodes.txt").write_text("p130\n")
    command = f"{EXPLAIN} p17 p100 --from-file nodes.txt -o why.jsonl"
    succeed(command)
    found = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    stream, labels = read_edges("edges.csv"), dict(read_labels("labels.csv"))
    with pytest.warns(UserWarning, match="20 of 140 nodes are in components without a label"):
        model = HFSClassifier(random_state=0).fit_edges(stream, labels)
    expected = model.explain(["p17", "p100", "p130"], edges=stream)
    assert found == [json.loads(one.to_json(changes=True)) for one in expected]
    assert found[2]["note"].startswith("no label reaches it")
    said = succeed(f"{EXPLAIN} p17 --against blue --no-changes")
    assert said.stdout == f"{expected[0].text(changes=False)}\n"


def test_a_state_is_explained_from_its_edges_or_from_all() -> None:
    succeed("label edges.csv --labels labels.csv --state s.ohm -o out.csv")
    kept = succeed("explain --state s.ohm p17")
    again = succeed("explain --state s.ohm --edges edges.csv p17")
    assert kept.stdout.startswith('p17 is "red"')
    assert again.stdout.startswith('p17 is "red"')


def test_label_adds_a_column_and_a_part_of_the_page() -> None:
    pytest.importorskip("matplotlib")
    command = "label edges.csv --labels labels.csv --explain top:2 --report p.html -o out.csv"
    succeed(command)
    reasons = {node: row["reason"] for node, row in read_rows().items() if row["reason"]}
    assert len(reasons) == 4
    assert all(text.startswith(f"{node} is ") for node, text in reasons.items())
    page = Path("p.html").read_text()
    assert "<h2>Why</h2>" in page
    succeed("label edges.csv --labels labels.csv --explain borderline:3 -o out.csv")
    assert sum(bool(row["reason"]) for row in read_rows().values()) == 3
    succeed(f"{EXPLAIN} p17 p100 --report why.html")
    assert "p17 is &quot;red&quot;" in Path("why.html").read_text()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{EXPLAIN} p17 q9", "1 of the nodes to explain is in no edge: 'q9'"),
        (EXPLAIN, "name a node to explain, or give --from-file"),
        ("explain edges.csv p17", "Missing option '--labels'"),
        (f"{EXPLAIN} p17 --against green", "must be a class other than the answer, 'red': 'blue'"),
        (
            "label edges.csv --labels labels.csv --explain 9",
            "'9' is neither top:N nor borderline:N",
        ),
    ],
)
def test_refused(command: str, said: str) -> None:
    refuse(command, said=said)


def test_review_is_that_of_python() -> None:
    said = succeed("label edges.csv --labels labels.csv --review --json -o out.csv").stderr
    found = json.loads(said.splitlines()[-1])["review"]
    with pytest.warns(UserWarning, match="components without a label"):
        model = HFSClassifier(random_state=0).fit_edges(
            read_edges("edges.csv"), dict(read_labels("labels.csv"))
        )
    assert found == model.review().to_dict()["classes"]
    text = succeed("label edges.csv --labels labels.csv --review -o out.csv").stderr
    assert all(row["text"] in text for one in found for row in one["thresholds"] if row["n_nodes"])


def test_a_run_with_a_state_says_what_changed() -> None:
    pytest.importorskip("matplotlib")
    command = "label edges.csv --labels labels.csv --state s.ohm -o out.csv"
    assert "since the last run" not in succeed(command).stderr
    before = {node: row["label"] for node, row in read_rows().items()}
    Path("more.csv").write_text("from,to\np17,p130\n" + "p17,p61\n" * 200)
    said = succeed("label more.csv --state s.ohm -o out.csv --report p.html --json").stderr
    found = json.loads(said.splitlines()[-1])["state"]["changes"]
    now = {node: row["label"] for node, row in read_rows().items()}
    changed = {node for node, label in before.items() if now[node] != label}
    assert sum(one["n_nodes"] for one in found["counts"]) == len(changed) >= 21
    assert {one["node"] for one in found["surest"]} <= changed
    assert f"{len(changed)} of 140 nodes have another label" in Path("p.html").read_text()
    again = succeed("label --state s.ohm -o out.csv --json").stderr
    assert "changes" not in json.loads(again.splitlines()[-1])["state"]


def test_features_and_edges_share_the_reasons() -> None:
    pytest.importorskip("matplotlib")
    rows = [f"p{i},{(i % 7) + 9 * (i >= 60)},{i % 5}\n" for i in range(140)]
    Path("f.csv").write_text("node,age,size\n" + "".join(rows))
    command = "label edges.csv --labels labels.csv --features f.csv --explain top:1"
    succeed(f"{command} -o out.csv --report p.html")
    reasons = {node: row["reason"] for node, row in read_rows().items() if row["reason"]}
    features = read_features("f.csv")
    model = GraphFeatureClassifier(random_state=0).fit_edges(
        read_edges("edges.csv"), features, dict(read_labels("labels.csv"))
    )
    assert reasons == {node: str(model.explain(node)) for node in reasons}
    assert len(reasons) == 2
    assert "its own features" in Path("p.html").read_text()
