"""The table of ``label``: nodes without evidence, the likeliest classes, many classes."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import invoke, label, read_rows, refuse, succeed, summary_of

# Two paths that share the ends "a" and "d", and a pair that no label reaches.
EDGES = "src,dst\na,b\nb,c\nc,d\nd,e\nx,y\n"
LABELS = "node,label\na,red\nb,red\ne,blue\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(EDGES)
    Path("labels.csv").write_text(LABELS)
    return tmp_path


def read(path: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by node, with None for null."""
    if path.endswith(".csv"):
        rows = [{k: v or None for k, v in row.items()} for row in read_rows(path).values()]
        for row in rows:
            row["reached"] = row["reached"] == "true"
    elif path.endswith(".jsonl"):
        rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    elif path.endswith(".parquet"):
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    else:
        rows = pytest.importorskip("pyarrow.feather").read_table(path).to_pylist()
    return {row["node"]: row for row in rows}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_node_without_evidence_has_no_label_and_the_prior_in_its_own_column(folder, ending):
    result = succeed("label edges.csv --labels labels.csv -o", f"out.{ending}")
    rows = read(f"out.{ending}")
    names = ["node", "label", "probability_blue", "probability_red", "reached", "prior_label"]
    assert list(rows["a"]) == names
    for node in "xy":
        assert list(rows[node].values()) == [node, None, None, None, False, "red"]
    for node in "abcde":
        assert rows[node]["reached"] is True
        assert rows[node]["prior_label"] is None
        assert rows[node]["label"] == ("blue" if node in "de" else "red")
        assert rows[node]["probability_blue"] is not None
    assert "Classes   red: 3, blue: 2; none: 2, which are not connected to a label" in result.stderr
    assert "their label is left empty" in result.stderr
    assert "reached_" not in result.stderr


def test_prior_of_equally_common_classes_is_empty_too(folder: Path):
    Path("labels.csv").write_text("node,label\na,red\ne,blue\n")
    succeed("label edges.csv --labels labels.csv -o out.csv")
    assert [read("out.csv")[node]["prior_label"] for node in "xy"] == [None, None]
    more = ("--class-prior", "red=0.3,blue=0.7")
    succeed("label edges.csv --labels labels.csv -o out.csv", *more)
    assert [read("out.csv")[node]["prior_label"] for node in "xy"] == ["blue", "blue"]


def test_summary_counts_labels_not_nodes(folder: Path):
    summary = summary_of(invoke("label edges.csv --labels labels.csv -o out.csv --json"))
    assert summary["classes"] == {"blue": 2, "red": 3}
    assert summary["n_unreached"] == 2
    assert summary["class_prior"] == {"blue": 1 / 3, "red": 2 / 3}


def test_state_leaves_labels_empty_until_an_edge_connects_them(folder: Path):
    common = ("--state", "s.ohm", "-o", "out.csv")
    succeed("label edges.csv --labels labels.csv", *common)
    assert read("out.csv")["x"]["label"] is None
    Path("more.csv").write_text("src,dst\np,q\n")
    text = "4 of 9 nodes are in components without a label: their label is left"
    succeed("label more.csv", *common, said=text)
    assert [read("out.csv")[node]["label"] for node in "xyp"] == [None, None, None]
    Path("last.csv").write_text("src,dst\nx,a\n")
    succeed("label last.csv", *common)
    assert [read("out.csv")[node]["label"] for node in "xyp"] == ["red", "red", None]


def test_integer_classes_stay_integers_beside_nulls(folder: Path):
    Path("labels.csv").write_text("node,label\n a ,1\nb, 1\ne,2\n")
    parquet = pytest.importorskip("pyarrow.parquet")
    succeed("label edges.csv --labels labels.csv -o o.parquet")
    schema = parquet.read_schema("o.parquet")
    assert [str(schema.field(name).type) for name in ("label", "prior_label")] == ["int64"] * 2
    assert read("o.parquet")["x"]["prior_label"] == 1


def test_top_names_the_likeliest_classes(folder: Path):
    pairs = [(i, j) for i in range(30) for j in (i + 1, i + 2) if j < 30]
    lines = "".join(f"{i},{j}\n" for i, j in pairs)
    Path("edges.csv").write_text(f"src,dst\n{lines}98,99\n")
    Path("labels.csv").write_text("node,label\n0,red\n1,red\n14,blue\n16,blue\n28,lime\n29,lime\n")
    succeed("label edges.csv --labels labels.csv -o wide.csv")
    succeed("label edges.csv --labels labels.csv -o top.csv --top 2")
    rows, answers = read("top.csv"), read("wide.csv")
    names = ["node", "label", "probability", "label_2", "probability_2", "reached", "prior_label"]
    for node, row in rows.items():
        assert list(row) == names
        given = answers[node]
        assert [row[name] for name in ("label", "reached", "prior_label")] == [
            given[name] for name in ("label", "reached", "prior_label")
        ]
        if not row["reached"]:
            assert [row[name] for name in names[1:5]] == [None] * 4
            continue
        shares = {name: float(given[f"probability_{name}"]) for name in ("red", "blue", "lime")}
        best = sorted(shares, key=lambda name: -shares[name])[:2]
        assert [row["label"], row["label_2"]] == best
        found = [float(row["probability"]), float(row["probability_2"])]
        assert found == [shares[name] for name in best]


def test_top_may_exceed_the_number_of_classes_and_skips_impossible_ones(folder: Path):
    # The component of x and y has a label of one class only.
    Path("labels.csv").write_text("node,label\na,red\nb,red\ne,blue\nx,blue\n")
    options = ("-o", "out.jsonl", "--top", 3, "--option", "calibration=none")
    succeed("label edges.csv --labels labels.csv", *options)
    rows = read("out.jsonl")
    assert (rows["a"]["label"], rows["a"]["label_2"], rows["a"]["label_3"]) == ("red", "blue", None)
    assert rows["a"]["probability_3"] is None
    assert (rows["y"]["label"], rows["y"]["label_2"], rows["y"]["probability_2"]) == (
        "blue", None, None,
    )  # fmt: skip


def test_nodes_that_abstain_have_no_label_of_any_rank(folder: Path):
    options = ("-o", "out.jsonl", "--top", 2, "--min-probability", 0.999)
    succeed("label edges.csv --labels labels.csv", *options)
    for row in read("out.jsonl").values():
        assert row["abstained"] is True
        assert (row["label"], row["label_2"]) == (None, None)
        assert (row["probability"] is None) == (not row["reached"])


def test_classes_may_have_the_names_of_columns_or_any_other(folder: Path):
    names = ["reached", "label", "2", "prior_label", "ÅÄ,\n", '"']
    with open("labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["node", "label"], *zip("abcdex", names, strict=True)])
    succeed("label edges.csv --labels labels.csv -o out.csv")
    rows = read("out.csv")
    assert sorted(name for name in rows["a"] if name.startswith("probability_")) == sorted(
        f"probability_{name}" for name in names
    )
    assert [rows[node]["label"] for node in "abcdex"] == names
    succeed("label edges.csv --labels labels.csv -o t.csv --top 2")
    assert [read("t.csv")[node]["label"] for node in "abcdex"] == names


def test_table_of_one_class_is_written(folder: Path):
    Path("labels.csv").write_text("node,label\na,red\n")
    result = succeed("label edges.csv --labels labels.csv -o out.csv --top 1")
    assert {row["label"] for row in read("out.csv").values()} == {"red", None}
    assert read("out.csv")["x"]["prior_label"] == "red"
    assert "Caution" not in result.stderr


def test_thousands_of_classes_need_top(folder: Path):
    nodes = np.arange(1100)
    np.savetxt("ring.csv", np.column_stack([nodes, (nodes + 1) % 1100]), "%d", ",")
    uncalibrated = ("--option", "calibration=none")
    args = ("ring.csv", "--labels", "labels.csv", "-o", "out.csv", *uncalibrated)
    names = "".join(f"{node},c{node}\n" for node in nodes)
    Path("labels.csv").write_text(f"node,label\n{names}")
    problem = "there are 1,100 classes, and the output would have a column for each; give --top 3"
    refuse("label", *args, said=problem)
    assert not Path("out.csv").exists()
    few = "".join(f"{node},c{at % 30}\n" for at, node in enumerate(nodes[::20]))
    Path("labels.csv").write_text(f"node,label\n{few}")
    succeed("label", *args, said="--top 3 writes the likeliest three")
    result = succeed("label", *args, "--top", 3, "--passes", 1)
    assert "writes the likeliest" not in result.stderr
    assert len(next(iter(read("out.csv").values()))) == 9


def test_few_labels_that_decide_most_nodes_raise_an_alarm(folder: Path):
    pytest.importorskip("matplotlib")
    # A clique of 60 nodes with one label, and nine pairs with one label each, far from it.
    u, v = np.triu_indices(60, 1)
    tail = [(f"t{i}", f"s{i}") for i in range(9)] + [(f"t{i}", "n0") for i in range(9)]
    lines = [f"n{a},n{b}" for a, b in zip(u, v, strict=True)] + [f"{a},{b},0.01" for a, b in tail]
    lines = [line if line.count(",") == 2 else f"{line},1" for line in lines]
    Path("edges.csv").write_text("src,dst,weight\n" + "\n".join(lines) + "\n")
    names = "".join(f"s{i},other{i}\n" for i in range(9))
    Path("labels.csv").write_text(f"node,label\nn3,big\n{names}")
    args = ("edges.csv", "--labels", "labels.csv", "-o", "out.csv")
    result = succeed("label", *args, "--report", "page.html")
    told = re.search(
        r"Caution +(big has 1 of 10 labels \(10%\), but is \d\d% of the answers)", result.stderr
    )
    assert told
    assert told[1] in Path("page.html").read_text()
    shares = ",".join(["big=0.55", *(f"other{i}=0.05" for i in range(9))])
    assert "Caution" not in label(*args, "--class-prior", shares).stderr


def test_files_of_measurements_and_ids_are_noticed_before_edges_are_read(folder: Path):
    Path("edges.csv").write_bytes(b"\0 no table")  # whoever reads it fails with another message
    numbers = np.random.default_rng(0).random(30)
    rows = "".join(f"n{at},{number}\n" for at, number in enumerate(numbers))
    Path("labels.csv").write_text(f"node,score\n{rows}")
    result = refuse("label edges.csv --labels labels.csv --read-labels label=score")
    assert "the labels ('score') are 30 different numbers, such as 0." in result.stderr
    assert "--read-labels label=..." in result.stderr
    Path("edges.csv").write_text("src,dst\n" + "".join(f"n{i},n{i + 1}\n" for i in range(30)))
    rows = "".join(f"n{at},user{at}\n" for at in range(30))
    Path("labels.csv").write_text(f"node,label\n{rows}")
    text = "Warning: labels.csv: 30 labels have 30 different classes, such as user0"
    succeed("label edges.csv --labels labels.csv --option calibration=none -o o.csv", said=text)
