"""``ohmlearn label``: the same as Python, whatever happens on the way."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, refuse, succeed
from pages import Page
from python_labels import write_python_labels

from ohmlearn import HFSClassifier, gallery, read_edges

EDGES, LABELS = Path("edges.csv"), Path("labels.csv")
LABEL = f"label {EDGES} --labels {LABELS}"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three blocks of people who know one another; two of each are labelled."""
    monkeypatch.chdir(tmp_path)
    graph = gallery.stochastic_blocks([120, 120, 120], 0.9, bridges=3, random_state=0)
    u, v, _ = graph.edges()
    order = np.random.default_rng(0).permutation(len(u))
    rows = zip(u[order], v[order], strict=True)
    EDGES.write_text("src,dst\n" + "".join(f"p{a},p{b}\n" for a, b in rows))
    LABELS.write_text("node,label\np0,red\np1,red\np130,green\np140,green\np250,blue\np260,-1\n")


def test_labels_are_right_and_equal_those_of_python(files: None):
    result = succeed(f"{LABEL} -o out.csv --seed 3")
    assert "u = 'src', v = 'dst', no weights (guessed)" in result.output
    assert "360, 5 of them with a label given" in result.output
    assert "blue: 120, green: 120, red: 120" in result.output
    assert "Caution" not in result.output
    printed = invoke(f"{LABEL} -q --seed 3").output
    assert printed == Path("out.csv").read_text()

    write_python_labels(Path("python.csv"), EDGES, LABELS, random_state=3)
    assert Path("out.csv").read_bytes() == Path("python.csv").read_bytes()

    truth = {f"p{i}": ("red", "green", "blue")[i // 120] for i in range(360)}
    rows = [line.split(",") for line in Path("out.csv").read_text().splitlines()[1:]]
    assert {row[0]: row[1] for row in rows} == truth


def test_labels_of_minus_one_are_counted(files: None):
    warning = f"{LABELS}: 1 row with the label -1 counts as unlabelled"
    assert f"Warning: {warning}\n" in invoke(LABEL).stderr
    assert json.dumps({"warning": warning}) in invoke(f"{LABEL} --json").stderr
    assert "unlabelled" not in invoke(f"{LABEL} -q").stderr
    LABELS.write_text("node,label\np0,1\np1,-1\np130,-1\np140,2\n")
    for command in ("label", "suggest"):
        result = invoke(LABEL.replace("label", command, 1))
        assert "2 rows with the label -1 count as unlabelled" in result.stderr
    LABELS.write_text("node,label\np0,1\np1,-1\n")
    refuse(LABEL, said="labels.csv: the labels are only 1 and -1, but -1 means unlabelled")


def test_threads_do_not_matter_and_pipes_work(files: None):
    one = invoke(f"{LABEL} --passes 1 -q").output
    assert invoke(f"{LABEL} --passes 1 -q --threads 2").output == one
    piped = invoke("label - --labels labels.csv", input=EDGES.read_bytes())
    assert piped.stdout == one
    assert "standard input: u = 'src'" in piped.stderr


@pytest.fixture
def two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two components, one of them without a label; integer labels, and blanks."""
    monkeypatch.chdir(tmp_path)
    EDGES.write_text("time,a,b\n5,x,y\n6,y,z\n7,p,q\n")
    LABELS.write_text("node,label\n x ,1\nz, 20\n")


def test_a_warning_is_printed_once(two_pieces: None):
    EDGES.write_text(EDGES.read_text().replace("time,a,b", "time,shop,tag"))
    printed = invoke(LABEL).stderr
    assert printed.count("y is in both columns, 'shop' and 'tag'") == 1


def test_warnings_by_the_way_of_output(two_pieces: None):
    command = f"{LABEL} --from a --to b"
    unreached = "2 of 5 nodes are in components without a label"
    assert invoke(command).stderr.count(unreached) == 1
    assert invoke(f"{command} -q").stderr == ""
    lines = [json.loads(line) for line in invoke(f"{command} --json").stderr.splitlines()]
    assert lines[0]["warning"].startswith(unreached)


def test_labels_with_weights_that_contradict_each_other(files: None):
    LABELS.write_text(
        "node,label,confidence\np0,red,2\np0,blue,0.5\np1,red,\np130,green,1\np250,blue,0\n"
        "p260,blue,1\n"
    )
    result = succeed(f"{LABEL} -o out.csv --seed 3")
    used = f"{LABELS}: nodes = 'node', labels = 'label', weights = 'confidence' (guessed)"
    assert used in result.stderr.splitlines()
    warning = "1 node has contradicting labels, such as 'p0': blue 1, red 1; each counts by its"
    assert result.stderr.count(warning) == 1
    assert "360, 4 of them with a label given" in result.stderr
    quiet = invoke(f"{LABEL} --json").stderr
    assert used not in quiet
    assert json.loads(quiet.splitlines()[-1])["n_contradicting"] == 1
    y = {"p0": {"red": 0.8, "blue": 0.2}, "p1": "red", "p130": "green", "p260": "blue"}
    model = HFSClassifier(random_state=3).fit_edges(read_edges(EDGES), y, sample_weight={"p0": 2.5})
    with open("out.csv") as file:
        found = list(csv.DictReader(file))
    assert [row["label"] for row in found] == model.transduction_.tolist()
    # The same columns by name; a column that holds the labels is not guessed to hold weights.
    LABELS.write_text(LABELS.read_text().replace("confidence", "votes").replace("label", "trust"))
    keys = " --read-labels ".join(["", "node=node", "label=trust", "weight=votes"])
    named = invoke(f"{LABEL} -o named.csv --seed 3{keys}")
    assert "labels = 'trust', weights = 'votes'\n" in named.stderr
    assert Path("named.csv").read_bytes() == Path("out.csv").read_bytes()


def test_labels_of_nodes_that_no_edge_has(files: None):
    LABELS.write_text("node,label\np0,red\np130,green\nnobody,blue\n")
    result = invoke(LABEL)
    assert "Warning: 1 of the 3 labelled nodes are in no edge, such as 'nobody'" in result.output
    text = "3 of them with a label given, 1 without an edge (kept, but counts for nothing else)"
    assert text in result.stderr
    assert "nobody,blue," in result.stdout
    LABELS.write_text("node,label\nnobody,blue\np0,red\np130,green\n")  # the first, and no heading
    succeed(LABEL)


def test_report_is_one_self_contained_page(files: None):
    pytest.importorskip("matplotlib")
    succeed(f"{LABEL} -o out.csv --report page.html --option certify=yes")
    found = Page(Path("page.html"))
    assert found.faults == []
    assert found.n_figures == 4
    assert "energies in H are " in found.text
    command = " ".join(found.text.replace("\\\n", "").split())  # it may be several lines
    assert f"ohmlearn label {EDGES} --labels {LABELS} --option certify=yes" in command
    assert any(["Edges seen", "19,335"] in table for table in found.tables)


def test_report_of_many_classes_with_odd_names(files: None):
    pytest.importorskip("matplotlib")
    rows = "".join(f"p{i},$\\frac{{{i}$\n" for i in range(0, 360, 18))
    LABELS.write_text("node,label\n" + rows)
    succeed(f"{LABEL} -o out.csv --report page.html")
    assert Page(Path("page.html")).faults == []
    assert "others" in Page(Path("page.html")).text
