"""``ohmlearn label --features``: labels from columns about nodes and the edges together."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import label, succeed
from commands import read_rows as read
from pages import Page

from ohmlearn import GraphFeatureClassifier, HFSClassifier, read_edges, read_features
from ohmlearn.reading.label_table import read_labels

N = 120
ALL = ("edges.csv", "--labels", "labels.csv", "--features", "nodes.csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two groups of people who know more of their own; z1 has features but no labels around it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    group = np.arange(N) % 2
    chance = np.where(group[:, np.newaxis] == group, 0.12, 0.02)
    u, v = np.nonzero(np.triu(rng.random((N, N)) < chance, 1))
    days = rng.integers(1, 29, len(u))
    rows = [f"p{a},p{b},2024-01-{d:02}\n" for a, b, d in zip(u, v, days, strict=True)]
    rows += ["z1,z2,2024-01-05\n", "lone1,lone2,2024-01-05\n"]
    Path("edges.csv").write_text("src,dst,date\n" + "".join(rows))
    lines = []
    for i in range(N):
        age = "" if i % 9 == 0 else f"{40 + 12 * group[i] + 8 * rng.standard_normal():.1f}"
        city = ("Rome", "Bern")[group[i]] if rng.random() < 0.7 else "Oslo"
        lines += [] if i % 17 == 5 else [f"p{i},{age},{city},text {i},1,red\n"]
    lines += ["z1,39,Rome,a,1,red\n", "q1,40,Rome,b,1,red\n", "q2,55,Bern,c,1,red\n"]
    Path("nodes.csv").write_text("id,age,city,note,same,label\n" + "".join(lines))
    known = [f"p{i},{('red', 'blue')[group[i]]}\n" for i in rng.choice(N, 30, replace=False)]
    Path("labels.csv").write_text("node,label\n" + "".join(known))
    return tmp_path


def share_right(rows: dict[str, dict[str, str]]) -> float:
    people = [name for name in rows if name.startswith("p")]
    truth = [("red", "blue")[int(name[1:]) % 2] for name in people]
    return float(
        np.mean([rows[name]["label"] == true for name, true in zip(people, truth, strict=True)])
    )


def test_labels_and_what_is_said_about_them(folder: Path):
    result = succeed("label", *ALL, "-o", "out.csv")
    said = result.stderr
    assert "nodes.csv: 116 nodes with 5 features, ids = 'id'\n" in said
    assert "  age: numbers; 13 missing, replaced by the mean " in said
    assert "  note: left out: text with 116 different values in 116 rows\n" in said
    assert "  label: left out: labels are no features; name the column to use it\n" in said
    assert "Warning: 10 of 126 nodes have no features, such as 'p" in said
    assert "; 2 ids are only in nodes.csv, such as 'q1'\n" in said
    assert "none: 2, which are not connected to a label and have no features" in said
    assert "Graph     helps: the loss for left-out labels is " in said

    rows = read()
    assert share_right(rows) > 0.9
    names = ["node", "label", "probability_blue", "probability_red", "reached", "prior_label"]
    assert list(rows["p0"]) == names
    for name in ("z1", "q1"):  # no label reaches them, but their features are like those of red
        assert (rows[name]["label"], rows[name]["reached"]) == ("red", "false")
    assert rows["q2"]["label"] == "blue"
    lone = rows["lone1"]
    assert (lone["label"], lone["probability_red"], lone["reached"]) == ("", "", "false")
    assert lone["prior_label"] in ("red", "blue", "")


@pytest.mark.filterwarnings("ignore:10 of 126 nodes")
def test_labels_equal_those_of_python(folder: Path):
    succeed("label", *ALL, "-o", "out.csv", "--seed", 3)
    labels, edges = read_labels("labels.csv"), read_edges("edges.csv")
    model = GraphFeatureClassifier(random_state=3)
    model.fit_edges(edges, read_features("nodes.csv"), labels)
    assert model.nodes_ is not None
    rows = read()
    assert list(rows) == model.nodes_.ids().tolist()
    answers = model.label_distributions_[:, 1].tolist()
    for row, label_of, share, known in zip(
        rows.values(), model.transduction_, answers, model.answered_, strict=True
    ):
        if known:
            assert row["label"] == label_of
            assert float(row["probability_red"]) == pytest.approx(share, rel=1e-9)
        else:
            assert row["node"] in ("lone1", "lone2")


def test_the_summary_as_json(folder: Path):
    result = label(*ALL, "-o", "out.csv", "--json")
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert any("2 ids are only in nodes.csv" in line.get("warning", "") for line in lines)
    summary = lines[-1]
    assert (summary["n_nodes"], summary["n_unreached"], summary["n_without_answer"]) == (126, 6, 2)
    features = summary["features"]
    assert features["model"] == "logistic"
    assert (features["n_columns"], features["n_rows"]) == (5, 116)
    assert (features["n_nodes_without"], features["n_ids_without_edges"]) == (10, 2)
    assert features["columns"]["city"] == "3 categories"
    assert sum(features["weights"].values()) == pytest.approx(1.0)
    assert features["graph_helps"] is True
    assert features["loss_with_graph"] < features["loss_without_graph"]
    assert features["homophily"]["labels"] > 0.1
    assert summary["accuracy_estimate"]["n_labels"] == 30
    assert label(*ALL, "-o", "out.csv", "-q").output == ""


@pytest.mark.slow
def test_columns_and_models(folder: Path):
    named = ("--read-features", "columns=age, city", "--read-features", "node=id")
    result = label(*ALL, "-o", "out.csv", *named)
    assert "nodes.csv: 116 nodes with 5 features, ids = 'id'\n" in result.stderr
    assert "note" not in result.stderr
    trees = ("--method", "hist-gradient-boosting", "--read-features", "columns=age")
    succeed("label", *ALL, "-o", "out.csv", *trees)
    assert share_right(read()) > 0.85


@pytest.mark.slow
def test_trees_take_columns_that_are_mostly_zero(folder: Path):
    rng = np.random.default_rng(1)
    words = [f"p{i},w{rng.integers(40)},v{rng.integers(40)},{i % 2}\n" for i in range(N)]
    Path("nodes.csv").write_text("id,word,other,side\n" + "".join(words))
    succeed("label", *ALL, "-o", "out.csv", "--method", "hist-gradient-boosting")
    assert share_right(read()) == 1.0


@pytest.mark.slow
def test_old_edges_can_be_forgotten(folder: Path):
    for option, time in (("--half-life", "3d"), ("--horizon", "10d"), ("--since", "2024-01-15")):
        result = succeed("label", *ALL, "-o", "out.csv", option, time)
        assert share_right(read()) > 0.75
        assert "Time      " in result.stderr
    assert "Time      edges since 2024-01-15" in result.stderr
    assert "; the latest is of 2024-01-28" in result.stderr
    assert "; 5 ids have no edge that counts" in result.stderr  # z1, q1, q2 and two more
    assert "; 10 are not connected to a label" in result.stderr
    result = label(*ALL, "-o", "out.csv", "--since", "2025-01-01")
    assert (
        "Error: no edge counts since 2025-01-01T00:00:00; the latest is of 2024-01-28"
        in result.stderr
    )
    assert "Warning" not in result.stderr


def test_answers_that_are_not_sure_enough(folder: Path):
    succeed("label", *ALL, "-o", "out.csv", "--min-probability", 0.9, "--top", 1)
    rows = read()
    for row in rows.values():
        is_sure = row["probability"] != "" and float(row["probability"]) >= 0.9
        assert (row["abstained"] == "true") == (row["label"] == "") == (not is_sure)


@pytest.mark.slow
def test_edges_from_a_pipe_and_a_log(folder: Path):
    arguments = ["label", "-", *ALL[1:], "-o", "pipe.csv"]
    succeed(*arguments, input=Path("edges.csv").read_bytes())
    succeed("label", *ALL, "-o", "out.csv")
    assert Path("pipe.csv").read_bytes() == Path("out.csv").read_bytes()
    succeed("log append days.log edges.csv")
    succeed("label days.log", *ALL[1:], "-o", "log.csv")
    assert share_right(read("log.csv")) > 0.9


@pytest.mark.slow
def test_the_page_has_a_part_about_features(folder: Path):
    succeed("label", *ALL, "-o", "out.csv", "--report", "page.html")
    page = Page(Path("page.html"))
    assert page.faults == []
    assert "Features and graph" in page.text
    assert "The graph helps: the loss for left-out labels is" in page.text
    assert "features smoothed along the edges" in page.text
    assert "10 nodes have no features, and 2 ids have no edge." in page.text
    assert "left out: text with 116 different values in 116 rows" in page.text
    assert "30 labels were predicted" in page.text
    assert "Not computed with features" in page.text  # nodes to label next
    lines = page.text.replace("\\\n", " ").splitlines()
    command = next(line for line in lines if "ohmlearn label edges.csv" in line)
    options = command.partition("ohmlearn label ")[2].split()
    succeed("label", *options, "-o", "again.csv", "--report", "again.html")
    assert read("again.csv") == read()


def test_the_column_of_nodes_may_be_called_as_in_the_labels(folder: Path):
    for path in ("nodes.csv", "labels.csv"):
        text = Path(path).read_text()
        Path(path).write_text(text.replace("id,", "account,", 1).replace("node,", "account,", 1))
    arguments = (*ALL, "-o", "out.csv", "--read-labels", "node=account")
    succeed("label", *arguments, said="nodes.csv: 116 nodes with 5 features, ids = 'account'")
    Path("nodes.csv").write_text(Path("nodes.csv").read_text().replace("account", "who", 1))
    assert "name the one with the ids in --read-features node=..." in label(*arguments).stderr


def test_ids_of_several_kinds(folder: Path):
    pairs = [f"{i},{i % 2 if i % 5 else 1 - i % 2}\n" for i in range(60)]
    Path("edges.csv").write_text("user_id,item_id\n" + "".join(pairs))
    Path("labels.csv").write_text("user_id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(12)))
    ages = "".join(f"{i},{20 + 10 * (i % 2)}\n" for i in range(60))
    Path("nodes.csv").write_text("user_id,age\n" + ages)
    text = "2 of 62 nodes have no features, such as 'item:"
    succeed("label", *ALL, "-o", "out.csv", "--bipartite", "columns", said=text)
    rows = read()
    assert [rows[f"user:{i}"]["label"] for i in range(60)] == [str(i % 2) for i in range(60)]


@pytest.mark.parametrize("labels", ["frauds.csv", "nodes.csv"])
def test_column_with_the_name_of_the_labels(folder: Path, labels: str):
    """The labels are in a file of their own, or in that of the features."""
    known = {row["node"]: row["label"] for row in read("labels.csv").values()}
    heading, *rows = Path("nodes.csv").read_text().splitlines()
    lines = [f"{row},{known.get(row.partition(',')[0], '')}" for row in rows]
    Path("nodes.csv").write_text("\n".join([f"{heading},Fraud", *lines]))
    Path("frauds.csv").write_text(Path("labels.csv").read_text().replace("label", "fraud"))
    names = (
        ("--read-labels", "node=id", "--read-labels", "label=Fraud")
        if labels == "nodes.csv"
        else ()
    )
    command = ("edges.csv", "--labels", labels, *names, "--features", "nodes.csv", "-o", "out.csv")
    result = succeed("label", *command)
    assert "the column 'Fraud' of the features is left out" in result.stderr
    assert "  Fraud: left out: the labels have this name\n" in result.stderr
    assert "nodes.csv: 5 columns of numbers" in result.stderr
    text = "unlabelled ones, which have the same, in the column 'Fraud_missing'"
    succeed("label", *command, "--read-features", "columns=age,Fraud", said=text)


@pytest.fixture
def parts(folder: Path) -> list[str]:
    """The edges in two files; some nodes are in the second one only."""
    heading, *rows = Path("edges.csv").read_text().splitlines()
    late = {f"p{i}" for i in range(0, N, 10)}
    known = [line.split(",")[0] for line in Path("labels.csv").read_text().splitlines()]
    late -= set(known)
    is_late = [bool(late & set(row.split(","))) for row in rows]
    for name, wanted in (("one.csv", False), ("two.csv", True)):
        chosen = [row for row, is_so in zip(rows, is_late, strict=True) if is_so == wanted]
        Path(name).write_text("\n".join([heading, *chosen]) + "\n")
    return ["one.csv", "two.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        ("--seed", "3"),
        ("--max-edges", "300"),
        ("--half-life", "9d"),
        ("--since", "2024-01-09"),
        ("--gamma", "4", "--class-prior", "red=0.4,blue=0.6", "--option", "calibration=none"),
        ("--method", "hist-gradient-boosting", "--seed", "4"),
    ],
    ids=" ".join,
)
def test_parts_in_a_state_are_the_whole(folder: Path, parts: list[str], more: tuple[str, ...]):
    about = ("--features", "nodes.csv", *more, "-o", "out.csv", "--json")

    def run(*args: str) -> tuple[bytes, dict[str, Any]]:
        result = succeed("label", *args, *about)
        return Path("out.csv").read_bytes(), json.loads(result.stderr.splitlines()[-1])

    labels = ("--labels", "labels.csv")
    whole, summary = run(*parts, *labels, "--state", "whole.ohm")
    assert summary["state"]["n_edges_before"] == 0
    run(parts[0], *labels, "--state", "s.ohm")
    answers, _ = run(parts[1], "--state", "s.ohm")
    assert answers == whole
    before = Path("s.ohm").read_bytes()
    for again in ((*parts, *labels), (parts[1],), ()):  # known edges, and none
        answers, last = run(*again, "--state", "s.ohm")
        assert answers == whole
        assert last["n_edges_seen"] == summary["n_edges_seen"]
        assert last["features"] == summary["features"]
        assert Path("s.ohm").read_bytes() == before


def test_a_state_is_the_same_with_and_without_features(folder: Path, parts: list[str]):
    labels, more = ("--labels", "labels.csv"), ("--features", "nodes.csv", "--gamma", "4")
    succeed("label", parts[0], *labels, "--state", "plain.ohm")
    result = succeed("label", parts[0], *labels, "--state", "s.ohm", *more, "-o", "out.csv")
    assert "State     s.ohm" in result.stderr
    assert "Graph     helps" in result.stderr
    assert "q1" in read()
    assert Path("s.ohm").read_bytes() == Path("plain.ohm").read_bytes()
    for state, out in (("plain.ohm", "plain.csv"), ("s.ohm", "out.csv")):
        succeed("label", parts[1], "--state", state, "-o", out)
    assert Path("out.csv").read_bytes() == Path("plain.csv").read_bytes()
    assert "q1" not in read()
    model = HFSClassifier.load("s.ohm")
    assert model.gamma == "auto"
    assert model.nodes_ is not None
    assert model.nodes_.ids().tolist() == list(read())


@pytest.mark.slow
def test_answers_of_a_state_equal_those_without_one(folder: Path):
    """No edge is dropped, so the degrees in the state are exact."""
    succeed("label", *ALL, "-o", "plain.csv", "--seed", 3)
    succeed("label", *ALL, "-o", "out.csv", "--seed", 3, "--state", "s.ohm", "--report", "p.html")
    rows, plain = read(), read("plain.csv")
    assert list(rows) == list(plain)
    for name, row in rows.items():
        assert row["label"] == plain[name]["label"]
        if row["probability_red"]:
            assert float(row["probability_red"]) == pytest.approx(
                float(plain[name]["probability_red"]), abs=1e-5
            )
    assert "only the new edges can be read" in Path("p.html").read_text()


@pytest.mark.slow
def test_a_state_remembers_the_columns_of_its_labels(folder: Path, parts: list[str]):
    """A column made from the labels is no feature, also if a run does not name their file."""
    text = Path("labels.csv").read_text().partition("\n")[2]
    Path("labels.csv").write_text(f"person,colour\n{text}")
    known = dict(line.split(",") for line in text.splitlines())
    rows = [f"p{i},{i % 2 + i % 3},{known.get(f'p{i}', '')}\n" for i in range(N)]
    Path("nodes.csv").write_text("person,size,colour\n" + "".join(rows))
    labels, more = ("--labels", "labels.csv"), ("--features", "nodes.csv", "-o")
    succeed("label", *parts, *labels, "--state", "whole.ohm", *more, "whole.csv")
    succeed("label", parts[0], *labels, "--state", "s.ohm", *more, "out.csv")
    result = label(parts[1], "--state", "s.ohm", *more, "out.csv")
    assert "  colour: left out: the labels have this name\n" in result.stderr
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()
