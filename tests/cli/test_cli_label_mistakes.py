"""What goes wrong at first: a wrong number of nodes, files in the wrong order, missing units."""

import json
from pathlib import Path

import pytest
from commands import label, refuse, succeed


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two rings of 30 nodes with a bridge, four labels, and a label of a node without an edge."""
    monkeypatch.chdir(tmp_path)
    pairs = [(s * 30 + i, s * 30 + (i + k) % 30) for s in (0, 1) for i in range(30) for k in (1, 2)]
    rows = "".join(f"{u},{v}\n" for u, v in [*pairs, (0, 30)])
    Path("edges.csv").write_text("src,dst\n" + rows)
    Path("labels.csv").write_text("node,label\n5,a\n6,a\n35,b\n36,b\n99,b\n")
    return tmp_path


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "ohmlearn.cli.open_edges.open_edges"
    monkeypatch.setattr(place, lambda *_, **__: pytest.fail("was read"))


def test_the_number_of_nodes_is_only_for_the_memory(files: Path):
    answers = []
    for n_nodes in ("", "60", "5000"):
        options = ["--n-nodes", n_nodes] if n_nodes else []
        shown = succeed("label edges.csv --labels labels.csv -o o.csv --json", *options)
        summary = json.loads(shown.stderr.splitlines()[-1])
        assert summary["n_nodes"] == 61
        assert summary["n_unreached"] == 0
        answers.append(Path("o.csv").read_bytes())
    assert answers[0] == answers[1] == answers[2]
    # A budget is larger than these few edges, so that all are kept.
    budget = ("--memory", "900MB", "--n-nodes")
    for n_nodes in ("60", "5000"):
        succeed("label edges.csv --labels labels.csv -o o.csv", *budget, n_nodes)
        assert Path("o.csv").read_bytes() == answers[0]


@pytest.mark.parametrize("more", [[], ["--state", "s.ohm"]])
def test_more_nodes_than_said_are_refused(files: Path, more: list[str]):
    command = ("edges.csv", "--labels", "labels.csv", "-o", "o.csv", *more, "--n-nodes")
    refuse("label", *command, "59", said="the edges have more than 59 nodes; raise --n-nodes")
    assert not Path("o.csv").exists()
    succeed("label", *command, "60")


def test_a_state_takes_another_number_of_nodes(files: Path):
    succeed("label edges.csv --labels labels.csv --state s.ohm --n-nodes 60")
    Path("more.csv").write_text("src,dst\n60,61\n61,0\n")
    shown = succeed("label more.csv --state s.ohm --n-nodes 5000 --json -o o.csv")
    assert json.loads(shown.stderr.splitlines()[-1])["n_nodes"] == 63


def test_a_folder_that_cannot_be_written_is_found_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch
):
    forbid_reading(monkeypatch)
    for option in ("-o", "--report", "--state"):
        path = "/proc/x.csv"
        problem = f"{option} {path}: cannot write in the folder /proc"
        refuse("label edges.csv --labels labels.csv", option, path, said=problem)
    assert sorted(path.name for path in files.iterdir()) == ["edges.csv", "labels.csv"]


@pytest.mark.parametrize("heading", ["src,dst", "u,v", None])
def test_swapped_files_are_named_before_edges_are_read(
    files: Path, heading: str | None, monkeypatch: pytest.MonkeyPatch
):
    forbid_reading(monkeypatch)
    rows = [f"{i},{i * 3 % 2030}" for i in range(2030)]
    Path("e.csv").write_text("\n".join([heading, *rows] if heading else rows) + "\n")
    shown = refuse("label labels.csv --labels e.csv")
    if heading:
        ends = " and ".join(f"'{name}'" for name in heading.split(","))
        assert f"e.csv: the columns {ends} seem to be the ends of edges" in shown.stderr
        assert "are the two files swapped?" in shown.stderr
    else:
        assert "e.csv: there are 2,030 classes" in shown.stderr
        assert "the two files are swapped" in shown.stderr


def test_few_swapped_rows_and_named_columns(files: Path):
    rows = "".join(f"{i},{i + 1}\n" for i in range(59))
    Path("e.csv").write_text(rows)
    shown = label("edges.csv", "--labels", "e.csv", "-o", "o.csv")
    assert "e.csv: 59 nodes have 59 different labels; if this is the file of edges" in shown.stderr
    Path("e.csv").write_text("source,target\n5,a\n6,a\n35,b\n36,b\n")
    named = ("--read-labels", "node=source", "--read-labels", "label=target")
    succeed("label edges.csv --labels e.csv -o o.csv", *named)


def test_labels_that_come_back_as_others_are_counted(files: Path):
    Path("labels.csv").write_text("node,label\n5,a\n6,a\n4,a\n7,b\n35,b\n36,b\n37,b\n")
    command = ("edges.csv", "--labels", "labels.csv", "-o", "o.csv")
    shown = succeed("label", *command)
    answers = dict(row.split(",")[:2] for row in Path("o.csv").read_text().splitlines()[1:])
    given = dict(row.split(",") for row in Path("labels.csv").read_text().splitlines()[1:])
    n_others = sum(answers[node] != name for node, name in given.items())
    assert n_others == 1
    assert "7 of them with a label given; 1 of these gets another label" in shown.stderr
    shown = label(*command, "--json")
    assert json.loads(shown.stderr.splitlines()[-1])["n_relabelled"] == 1


@pytest.fixture
def timed(files: Path) -> list[str]:
    """Days of January, later ones with another pair of nodes."""
    rows = [f"{i},{i + 1},2026-01-{i + 1:02}" for i in range(20)]
    Path("dates.csv").write_text("\n".join(["src,dst,ts", *rows]) + "\n")
    rows = [f"{i},{i + 1},{1767225600 + 86400 * i}" for i in range(20)]
    Path("unix.csv").write_text("\n".join(["src,dst,ts", *rows]) + "\n")
    Path("labels.csv").write_text("node,label\n1,a\n2,a\n19,b\n20,b\n")
    return ["--labels", "labels.csv", "-o", "o.csv"]


@pytest.mark.parametrize("option", ["--half-life", "--horizon"])
def test_a_duration_without_a_unit(timed: list[str], option: str):
    shown = refuse("label dates.csv", *timed, option, "30")
    problem = f"{option} 30 has no unit, but the times are dates; give 30d for days, or 30s"
    assert problem in shown.stderr
    shown = succeed("label unix.csv", *timed, option, "86401")
    assert f"{option} 86401 means 86401 seconds, because the times are Unix" in shown.stderr
    assert "for days give 86401d" in shown.stderr
    refuse("sparsify dates.csv -o h.csv --half-life 30", said="--half-life 30 has no unit")


def test_a_half_life_has_its_unit_in_the_summary(timed: list[str]):
    succeed("label dates.csv", *timed, "--half-life", "30d", said="half-life 30d, at")
    succeed("label unix.csv", *timed, "--half-life", "864000", said="half-life 864000 s, at")


def test_edges_that_do_not_count_are_edges(timed: list[str]):
    text = "2 of the 4 labelled nodes have no edge that counts, such as 1"
    succeed("label dates.csv", *timed, "--horizon", "3d", said=text)


@pytest.mark.parametrize(
    ("options", "guessed"),
    [
        ("", "(guessed)"),
        ("--from src", "(v guessed)"),
        ("--from src --to dst", None),
        ("--time ts", "(ends guessed)"),
        ("--half-life 3d --from src --to dst", "(times guessed)"),
        ("--half-life 3d --from src --to dst --time ts", None),
    ],
)
def test_what_was_guessed(timed: list[str], options: str, guessed: str | None):
    shown = succeed("label dates.csv", *timed, *options.split())
    first = shown.stderr.splitlines()[0]
    assert first.startswith("dates.csv: u = 'src', v = 'dst'")
    assert first.endswith(guessed) if guessed else "guessed" not in first
