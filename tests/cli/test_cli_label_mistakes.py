"""What goes wrong at first: a wrong number of nodes, files in the wrong order, missing units."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ohmlearn.cli import main


def label(*args: object) -> Result:
    return CliRunner().invoke(main, ["label", *map(str, args)])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two rings of 30 nodes with a bridge, four labels, and a label of a node without an edge."""
    monkeypatch.chdir(tmp_path)
    pairs = [(s * 30 + i, s * 30 + (i + k) % 30) for s in (0, 1) for i in range(30) for k in (1, 2)]
    rows = "".join(f"{u},{v}\n" for u, v in [*pairs, (0, 30)])
    Path("edges.csv").write_text("src,dst\n" + rows)
    Path("labels.csv").write_text("node,label\n5,a\n6,a\n35,b\n36,b\n99,b\n")
    return tmp_path


def test_the_number_of_nodes_is_only_for_the_memory(files: Path):
    answers = []
    for n_nodes in ("", "60", "5000"):
        options = ["--n-nodes", n_nodes] if n_nodes else []
        shown = label("edges.csv", "--labels", "labels.csv", "-o", "o.csv", "--json", *options)
        assert shown.exit_code == 0, shown.stderr
        summary = json.loads(shown.stderr.splitlines()[-1])
        assert summary["n_nodes"] == 61
        assert summary["n_unreached"] == 0
        answers.append(Path("o.csv").read_bytes())
    assert answers[0] == answers[1] == answers[2]
    # A budget is larger than these few edges, so that all are kept.
    budget = ("--memory", "900MB", "--n-nodes")
    for n_nodes in ("60", "5000"):
        shown = label("edges.csv", "--labels", "labels.csv", "-o", "o.csv", *budget, n_nodes)
        assert shown.exit_code == 0, shown.stderr
        assert Path("o.csv").read_bytes() == answers[0]


@pytest.mark.parametrize("more", [[], ["--checkpoint", "c.ohm"], ["--state", "s.ohm"]])
def test_more_nodes_than_said_are_refused(files: Path, more: list[str]):
    command = ("edges.csv", "--labels", "labels.csv", "-o", "o.csv", *more, "--n-nodes")
    shown = label(*command, "59")
    assert shown.exit_code == 2
    assert "the edges have more than 59 nodes; raise --n-nodes" in shown.stderr
    assert not Path("o.csv").exists()
    shown = label(*command, "60")
    assert shown.exit_code == 0, shown.stderr


def test_a_state_takes_another_number_of_nodes(files: Path):
    shown = label("edges.csv", "--labels", "labels.csv", "--state", "s.ohm", "--n-nodes", "60")
    assert shown.exit_code == 0, shown.stderr
    Path("more.csv").write_text("src,dst\n60,61\n61,0\n")
    shown = label("more.csv", "--state", "s.ohm", "--n-nodes", "5000", "--json", "-o", "o.csv")
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stderr.splitlines()[-1])["n_nodes"] == 63


def test_usual_ends_are_one_kind(files: Path):
    text = Path("edges.csv").read_text()
    Path("paid.csv").write_text(text.replace("src,dst", "payer,payee"))
    shown = label("paid.csv", "--labels", "labels.csv", "-o", "o.csv")
    assert shown.exit_code == 0, shown.stderr
    assert "kind" not in shown.stderr


@pytest.mark.parametrize(
    ("heading", "suggested"), [("u,v", None), ("u,v,kind", "kind"), ("kind,u,v", "kind")]
)
def test_an_end_is_not_suggested_for_the_times(files: Path, heading: str, suggested: str | None):
    cells = ",".join("1" for _ in heading.split(","))
    Path("e.csv").write_text(f"{heading}\n{cells}\n")
    shown = label("e.csv", "--labels", "labels.csv", "--half-life", "7d")
    assert shown.exit_code == 2
    if suggested is None:
        assert "--time-col" not in shown.stderr
        assert "the edges seem to have no times" in shown.stderr
    else:
        assert f"--time-col {suggested}" in shown.stderr


def test_a_state_that_is_none(files: Path):
    Path("s.ohm").write_text("no state\n")
    shown = label("edges.csv", "--labels", "labels.csv", "--state", "s.ohm")
    assert shown.exit_code == 2
    assert "s.ohm was not saved by ohmlearn; give an .ohm file of --state, or of" in shown.stderr


def test_a_folder_that_cannot_be_written_is_found_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ohmlearn.cli.label.open_edges", lambda *_, **__: pytest.fail("was read"))
    for option in ("-o", "--report", "--checkpoint"):
        path = "/proc/x.csv"
        shown = label("edges.csv", "--labels", "labels.csv", option, path)
        assert shown.exit_code == 2
        assert f"{option} {path}: cannot write in the folder /proc" in shown.stderr
    assert sorted(path.name for path in files.iterdir()) == ["edges.csv", "labels.csv"]
