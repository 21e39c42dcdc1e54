"""Commands whose edges fade with time."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ohmlearn import HFSClassifier, read_edges
from ohmlearn.cli import main


def invoke(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def edges(tmp_path) -> Path:
    """A ring of old edges, and a path of new ones that leaves out nodes 8 and 9."""
    rng = np.random.default_rng(0)
    rows = [(i, (i + 1) % 10, "2026-01-01") for i in range(10)]
    rows += [(i, i + 1, f"2026-03-{day:02}") for day in range(1, 21) for i in range(7)]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,ts\n" + "".join(f"{u},{v},{t}\n" for u, v, t in rows))
    (tmp_path / "labels.csv").write_text("node,label\n0,a\n7,b\n")
    return path


def read(path: Path) -> dict[str, dict[str, str]]:
    with path.open() as file:
        return {row["node"]: row for row in csv.DictReader(file)}


def test_label_forgets_old_edges(edges, tmp_path):
    how = ("--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    shown = invoke("label", edges, *how, "--half-life", "1d")
    assert shown.exit_code == 0, shown.stderr
    assert "times = 'ts' (guessed)" in shown.stderr
    answers = read(tmp_path / "out.csv")
    stream = read_edges(edges, time="ts")
    model = HFSClassifier(half_life="1d", random_state=0)
    with pytest.warns(UserWarning, match="components without a label"):
        model.fit_edges(stream, {0: "a", 7: "b"})
    for node, label in zip(stream.nodes.ids().tolist(), model.transduction_, strict=True):
        assert answers[str(node)]["label"] == ("" if node in (8, 9) else label)
        assert answers[str(node)]["reached"].lower() == str(node not in (8, 9)).lower()


def test_sparsify_and_certify_agree_about_the_faded_graph(edges, tmp_path):
    h = tmp_path / "h.csv"
    shown = invoke("sparsify", edges, "-o", h, "--half-life", "5d", "--time", "ts", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stderr.splitlines()[-1])["n_faded_on_arrival"] == 0
    shown = invoke("certify", edges, h, "--half-life", "5d", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stdout)["epsilon"] == pytest.approx(0.0, abs=1e-6)
    shown = invoke("certify", edges, h, "--json")
    assert json.loads(shown.stdout)["epsilon"] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--half-life", "soon"), "--half-life must be a positive number"),
        (("--half-life", "1d", "--horizon", "3d"), "--half-life and --horizon are different ways"),
        (
            ("--half-life", "1d", "--time", "src", "--from", "ts", "--to", "dst"),
            "needs times in seconds",
        ),
    ],
)
def test_refused(edges, tmp_path, options, message):
    how = ("--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    shown = invoke("label", edges, *how, *options)
    assert shown.exit_code == 2
    assert message in shown.stderr


@pytest.mark.parametrize("options", [("--horizon", "30d"), ("--since", "2026-02-15")])
def test_label_counts_only_a_window(edges, tmp_path, options):
    how = ("--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    shown = invoke("label", edges, *how, *options)
    assert shown.exit_code == 0, shown.stderr
    answers = read(tmp_path / "out.csv")
    for node, row in answers.items():
        assert row["reached"].lower() == str(node not in ("8", "9")).lower()


@pytest.mark.parametrize(
    ("since", "message"),
    [
        ("2026", "is a number, but the times are dates"),
        ("2026-04-01", "no edge is at or after"),
    ],
)
def test_a_window_that_cannot_be_meant_is_refused(edges, tmp_path, since, message):
    how = ("--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    shown = invoke("label", edges, *how, "--since", since)
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_state_keeps_its_half_life(edges, tmp_path):
    header, *rows = edges.read_text().splitlines(keepends=True)
    rows.sort(key=lambda row: row.split(",")[2])
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("".join([header, *rows[:60]]))
    new.write_text("".join([header, *rows[60:]]))
    labels = ("--labels", tmp_path / "labels.csv")
    how = ("-o", tmp_path / "out.csv", "--state", tmp_path / "s.ohm")
    shown = invoke("label", old, *labels, *how, "--half-life", "1d")
    assert shown.exit_code == 0, shown.stderr
    shown = invoke("label", new, *how, "--half-life", "2d")
    assert shown.exit_code == 2
    assert "was started with --half-life 1d" in shown.stderr
    shown = invoke("label", new, *how)  # times are read, because the state needs them
    assert shown.exit_code == 0, shown.stderr
    first = read(tmp_path / "out.csv")
    whole = ("-o", tmp_path / "all.csv", "--passes", "1", "--half-life", "1d")
    shown = invoke("label", edges, *labels, *whole)
    assert shown.exit_code == 0, shown.stderr
    for node, row in read(tmp_path / "all.csv").items():
        assert (row["label"], row["reached"]) == (first[node]["label"], first[node]["reached"])


def test_a_state_answers_for_several_windows(edges, tmp_path):
    how = ("-o", tmp_path / "out.csv", "--state", tmp_path / "s.ohm")
    shown = invoke("sparsify", edges, "-o", tmp_path / "s.ohm", "--since", "2025-01-01")
    assert shown.exit_code == 0, shown.stderr
    for since, is_reached in (("2025-01-01", True), ("2026-02-15", False)):
        labels = ("--labels", tmp_path / "labels.csv")
        shown = invoke("label", *labels, *how, "--since", since)
        assert shown.exit_code == 0, shown.stderr
        assert read(tmp_path / "out.csv")["8"]["reached"].lower() == str(is_reached).lower()
