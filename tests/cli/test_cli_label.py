"""``ohmlearn label``: the same as Python, whatever happens on the way."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, label
from python_labels import write_python_labels

from ohmlearn import HFSClassifier, gallery, read_edges


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Three blocks of people who know one another; two of each are labelled."""
    graph = gallery.stochastic_blocks([120, 120, 120], 0.9, bridges=3, random_state=0)
    u, v, _ = graph.edges()
    order = np.random.default_rng(0).permutation(len(u))
    edges = tmp_path / "edges.csv"
    rows = zip(u[order], v[order], strict=True)
    edges.write_text("src,dst\n" + "".join(f"p{a},p{b}\n" for a, b in rows))
    labels = tmp_path / "labels.csv"
    labels.write_text("node,label\np0,red\np1,red\np130,green\np140,green\np250,blue\np260,-1\n")
    return edges, labels


def test_labels_are_right_and_equal_those_of_python(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    result = label(edges, "--labels", labels, "-o", tmp_path / "out.csv", "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "u = 'src', v = 'dst', no weights (guessed)" in result.output
    assert "360, 5 of them with a label given" in result.output
    assert "blue: 120, green: 120, red: 120" in result.output
    assert "Caution" not in result.output
    printed = label(edges, "--labels", labels, "-q", "--seed", 3).output
    assert printed == (tmp_path / "out.csv").read_text()

    write_python_labels(tmp_path / "python.csv", edges, labels, random_state=3)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "python.csv").read_bytes()

    truth = {f"p{i}": ("red", "green", "blue")[i // 120] for i in range(360)}
    rows = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert {row[0]: row[1] for row in rows} == truth


def test_labels_of_minus_one_are_counted(files: tuple[Path, Path]):
    edges, labels = files
    warning = f"{labels}: 1 row with the label -1 counts as unlabelled"
    assert f"Warning: {warning}\n" in label(edges, "--labels", labels).stderr
    assert json.dumps({"warning": warning}) in label(edges, "--labels", labels, "--json").stderr
    assert "unlabelled" not in label(edges, "--labels", labels, "-q").stderr
    labels.write_text("node,label\np0,1\np1,-1\np130,-1\np140,2\n")
    for command in ("label", "suggest"):
        result = invoke(command, edges, "--labels", labels)
        assert "2 rows with the label -1 count as unlabelled" in result.stderr
    labels.write_text("node,label\np0,1\np1,-1\n")
    result = label(edges, "--labels", labels)
    assert "labels.csv: the labels are only 1 and -1, but -1 means unlabelled" in result.stderr
    assert result.exit_code == 2


def test_threads_do_not_matter_and_pipes_work(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    one = label(edges, "--labels", labels, "--passes", 1, "-q").output
    assert label(edges, "--labels", labels, "--passes", 1, "-q", "--threads", 2).output == one
    piped = label("-", "--labels", labels, input=edges.read_bytes())
    assert piped.stdout == one
    assert "standard input: u = 'src'" in piped.stderr


@pytest.fixture
def two_pieces(tmp_path: Path) -> tuple[Path, Path]:
    """Two components, one of them without a label; integer labels, and blanks."""
    edges, labels = tmp_path / "pieces.csv", tmp_path / "numbers.csv"
    edges.write_text("time,a,b\n5,x,y\n6,y,z\n7,p,q\n")
    labels.write_text("node,label\n x ,1\nz, 20\n")
    return edges, labels


def test_a_warning_is_printed_once(two_pieces: tuple[Path, Path]):
    edges, labels = two_pieces
    edges.write_text(edges.read_text().replace("time,a,b", "time,shop,tag"))
    printed = label(edges, "--labels", labels).stderr
    assert printed.count("y is in both columns, 'shop' and 'tag'") == 1


def test_warnings_by_the_way_of_output(two_pieces: tuple[Path, Path]):
    edges, labels = two_pieces
    args = [edges, "--labels", labels, "--from", "a", "--to", "b"]
    unreached = "2 of 5 nodes are in components without a label"
    assert label(*args).stderr.count(unreached) == 1
    assert label(*args, "-q").stderr == ""
    lines = [json.loads(line) for line in label(*args, "--json").stderr.splitlines()]
    assert lines[0]["warning"].startswith(unreached)


def test_labels_with_weights_that_contradict_each_other(files: tuple[Path, Path], tmp_path: Path):
    edges, labels = files
    labels.write_text(
        "node,label,confidence\np0,red,2\np0,blue,0.5\np1,red,\np130,green,1\np250,blue,0\n"
        "p260,blue,1\n"
    )
    out = tmp_path / "out.csv"
    result = label(edges, "--labels", labels, "-o", out, "--seed", 3)
    assert result.exit_code == 0
    used = f"{labels}: nodes = 'node', labels = 'label', weights = 'confidence' (guessed)"
    assert used in result.stderr.splitlines()
    warning = "1 node has contradicting labels, such as 'p0': blue 1, red 1; each counts by its"
    assert result.stderr.count(warning) == 1
    assert "360, 4 of them with a label given" in result.stderr
    quiet = label(edges, "--labels", labels, "--json").stderr
    assert used not in quiet
    assert json.loads(quiet.splitlines()[-1])["n_contradicting"] == 1
    y = {"p0": {"red": 0.8, "blue": 0.2}, "p1": "red", "p130": "green", "p260": "blue"}
    model = HFSClassifier(random_state=3).fit_edges(read_edges(edges), y, sample_weight={"p0": 2.5})
    with out.open() as file:
        found = list(csv.DictReader(file))
    assert [row["label"] for row in found] == model.transduction_.tolist()
    # The same columns by name; a column that holds the labels is not guessed to hold weights.
    labels.write_text(labels.read_text().replace("confidence", "votes").replace("label", "trust"))
    args = [
        part
        for key in ("node=node", "label=trust", "weight=votes")
        for part in ("--read-labels", key)
    ]
    named = label(edges, "--labels", labels, "-o", tmp_path / "named.csv", "--seed", 3, *args)
    assert "labels = 'trust', weights = 'votes'\n" in named.stderr
    assert (tmp_path / "named.csv").read_bytes() == out.read_bytes()


def test_labels_of_nodes_that_no_edge_has(files: tuple[Path, Path]):
    edges, labels = files
    labels.write_text("node,label\np0,red\np130,green\nnobody,blue\n")
    result = label(edges, "--labels", labels)
    assert "Warning: 1 of the 3 labelled nodes are in no edge, such as 'nobody'" in result.output
    text = "3 of them with a label given, 1 without an edge (kept, but counts for nothing else)"
    assert text in result.stderr
    assert "nobody,blue," in result.stdout
    labels.write_text("node,label\nnobody,blue\np0,red\np130,green\n")  # the first, and no heading
    assert label(edges, "--labels", labels).exit_code == 0


def test_report_is_one_self_contained_page(files: tuple[Path, Path], tmp_path: Path):
    pytest.importorskip("matplotlib")
    from pages import Page

    edges, labels = files
    page = tmp_path / "page.html"
    result = label(
        edges, "--labels", labels, "-o", tmp_path / "out.csv", "--report", page, "--certify"
    )
    assert result.exit_code == 0, result.output
    found = Page(page)
    assert found.faults == []
    assert found.n_figures == 4
    assert "energies in H are " in found.text
    command = " ".join(found.text.replace("\\\n", "").split())  # it may be several lines
    assert f"ohmlearn label {edges} --labels {labels} --certify" in command
    assert ["Edges seen", "19,335"] in found.tables[1]


def test_report_of_many_classes_with_odd_names(files: tuple[Path, Path], tmp_path: Path):
    pytest.importorskip("matplotlib")
    from pages import Page

    edges, labels = files
    rows = "".join(f"p{i},$\\frac{{{i}$\n" for i in range(0, 360, 18))
    labels.write_text("node,label\n" + rows)
    page = tmp_path / "page.html"
    result = label(edges, "--labels", labels, "-o", tmp_path / "out.csv", "--report", page)
    assert result.exit_code == 0, result.output
    assert Page(page).faults == []
    assert "others" in Page(page).text
