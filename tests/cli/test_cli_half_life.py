"""Commands whose edges fade with time."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from commands import read_rows as read

from ohmlearn import HFSClassifier, read_edges


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
