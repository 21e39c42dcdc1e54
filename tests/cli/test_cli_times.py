"""Columns of times, edges that fade with time, and windows, on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, read_rows, refuse, succeed

from ohmlearn import HFSClassifier, read_edges


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    path = tmp_path / "dated.csv"
    path.write_text("src,dst,when\n1,2,2026-03-31\n2,3,9999-12-31\n3,1,2026-03-30 12:00\n")
    return path


@pytest.fixture
def fading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ring of old edges, and a path of new ones that leaves out nodes 8 and 9."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(i, (i + 1) % 10, "2026-01-01") for i in range(10)]
    rows += [(i, i + 1, f"2026-03-{day:02}") for day in range(1, 21) for i in range(7)]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    Path("edges.csv").write_text("src,dst,ts\n" + "".join(f"{u},{v},{t}\n" for u, v, t in rows))
    Path("labels.csv").write_text("node,label\n0,a\n7,b\n")
    return "label edges.csv --labels labels.csv -o out.csv"


def test_times_are_not_read_unless_a_column_is_named(dated: Path):
    shown = succeed("info", dated)
    assert "u = 'src', v = 'dst', no weights (guessed)" in shown.stderr
    assert "Edges        3" in shown.stdout


def test_bad_times_are_refused_or_left_out(dated: Path):
    shown = refuse("info", dated, "--time", "when")
    assert "row 3: the time, 'when', is '9999-12-31', later than tomorrow" in shown.stderr
    for column in ("when", "2"):
        shown = succeed("info", dated, "--time", column, "--on-bad", "skip")
        assert "no weights, times = 'when' (ends guessed)" in shown.stderr
        assert "1 bad row left out; " in shown.stderr
        assert "Edges        2" in shown.stdout
        assert "Times        2026-03-30T12:00:00 to 2026-03-31T00:00:00\n" in shown.stdout


def test_latest(dated: Path):
    options = ["--json", "--time", "when", "--on-bad", "skip", "--read"]
    for latest, count in {"2026-03-30T12:00Z": 1, "1774915200": 2, "9999-12-31": 3}.items():
        figures = json.loads(invoke("info", dated, *options, f"latest={latest}").stdout)
        assert figures["n_edges_seen"] == count
        assert (figures["time_min"], figures["time_unit"]) == (1774872000.0, "date")
    shown = invoke("info", dated, "--time", "when", "--read", "latest=soon")
    assert shown.exit_code != 0
    assert "--read latest=... must be a time" in shown.stderr


@pytest.mark.parametrize("options", ["--half-life 1d", "--horizon 30d", "--since 2026-02-15"])
def test_label_forgets_old_edges(fading: str, options: str):
    shown = succeed(*fading.split(), *options.split())
    assert "times = 'ts' (guessed)" in shown.stderr
    answers = read_rows()
    for node, row in answers.items():
        assert row["reached"].lower() == str(node not in ("8", "9")).lower()
    if options.startswith("--half-life"):
        stream = read_edges("edges.csv", time="ts")
        model = HFSClassifier(half_life="1d", random_state=0)
        with pytest.warns(UserWarning, match="components without a label"):
            model.fit_edges(stream, {0: "a", 7: "b"})
        for node, name in zip(stream.nodes.ids().tolist(), model.transduction_, strict=True):
            assert answers[str(node)]["label"] == ("" if node in (8, 9) else name)


def test_sparsify_and_certify_agree_about_the_faded_graph(fading: str):
    half_life = ("--half-life", "5d")
    shown = succeed("sparsify edges.csv -o h.csv", *half_life, "--time", "ts", "--json")
    assert json.loads(shown.stderr.splitlines()[-1])["n_faded_on_arrival"] == 0
    shown = succeed("certify edges.csv h.csv", *half_life, "--json")
    assert json.loads(shown.stdout)["epsilon"] == pytest.approx(0.0, abs=1e-6)
    shown = invoke("certify edges.csv h.csv --json")
    assert json.loads(shown.stdout)["epsilon"] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--since 2026", "is a number, but the times are dates"),
        ("--since 2026-04-01", "no edge is at or after"),
        ("--half-life 1d --time src --from ts --to dst", "needs times in seconds"),
    ],
)
def test_a_window_that_cannot_be_meant_is_refused(fading: str, options: str, message: str):
    refuse(*fading.split(), *options.split(), said=message)
    assert not Path("out.csv").exists()
