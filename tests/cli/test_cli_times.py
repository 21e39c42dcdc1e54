"""Columns of times on the command line."""

import json
from pathlib import Path

import pytest
from commands import invoke


@pytest.fixture
def edges(tmp_path) -> Path:
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,when\n1,2,2026-03-31\n2,3,9999-12-31\n3,1,2026-03-30 12:00\n")
    return path


def test_times_are_not_read_unless_a_column_is_named(edges):
    shown = invoke("info", edges)
    assert shown.exit_code == 0
    assert "u = 'src', v = 'dst', no weights (guessed)" in shown.stderr
    assert "Edges        3" in shown.stdout


def test_bad_times_are_refused_or_left_out(edges):
    shown = invoke("info", edges, "--time", "when")
    assert shown.exit_code == 2
    assert (
        "edges.csv, row 3: the time, 'when', is '9999-12-31', later than tomorrow" in shown.stderr
    )
    for column in ("when", "2"):
        shown = invoke("info", edges, "--time", column, "--on-bad", "skip")
        assert shown.exit_code == 0
        assert "no weights, times = 'when' (ends guessed)" in shown.stderr
        assert "1 bad row left out; " in shown.stderr
        assert "Edges        2" in shown.stdout
        assert "Times        2026-03-30T12:00:00 to 2026-03-31T00:00:00\n" in shown.stdout


def test_latest(edges):
    options = ["--json", "--time", "when", "--on-bad", "skip", "--read"]
    for latest, count in {"2026-03-30T12:00Z": 1, "1774915200": 2, "9999-12-31": 3}.items():
        figures = json.loads(invoke("info", edges, *options, f"latest={latest}").stdout)
        assert figures["n_edges_seen"] == count
        assert (figures["time_min"], figures["time_unit"]) == (1774872000.0, "date")
    shown = invoke("info", edges, "--time", "when", "--read", "latest=soon")
    assert shown.exit_code != 0
    assert "--read latest=... must be a time" in shown.stderr
    shown = invoke("info", edges, "--read", "latest=5")
    assert "--read latest=5 needs times" in shown.stderr
