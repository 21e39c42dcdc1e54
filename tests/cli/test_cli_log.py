"""The commands of a log, and other commands on its folder."""

import json
from pathlib import Path

import pytest
from commands import invoke, refuse, succeed

from ohmlearn import EdgeLog, HFSClassifier

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A log of two triangles with a bridge, appended from a file."""
    edges = ["a,b,1", "b,c,2", "c,a,1", "c,d,1", "d,e,3", "e,f,1", "f,d,2"]
    (tmp_path / "edges.csv").write_text("\n".join(["src,dst,weight", *edges]) + "\n")
    problem = "7 edges appended, without times, 0 bad rows left out; the log has 7"
    succeed(
        "log append", tmp_path / "log", tmp_path / "edges.csv", "--epsilon", "0.4", said=problem
    )
    return tmp_path / "log"


def test_times_are_guessed_if_the_log_has_them(tmp_path):
    (tmp_path / "one.csv").write_text("src,dst,ts\na,b,2024-03-01\n")
    (tmp_path / "two.csv").write_text("src,dst\na,b\n")
    log = tmp_path / "log"
    done = invoke("log append", log, tmp_path / "one.csv", "--time", "ts")
    assert "1 edges appended, with times" in done.stderr
    done = invoke("log append", log, tmp_path / "one.csv")
    assert "times = 'ts' (guessed)" in done.stderr
    assert "1 edges appended, with times" in done.stderr
    done = refuse("log append", log, tmp_path / "two.csv")
    assert "no column has a usual name of times" in done.stderr
    assert "the edges seem to have no times" in done.stderr
    assert EdgeLog(log).n_edges == 2


def test_ids_of_events_are_not_kept_and_a_warning_says_so(tmp_path):
    (tmp_path / "one.csv").write_text("u,v,id\na,b,1\nb,c,2\na,b,1\n")
    for n_edges in (2, 4):
        said = "a log does not keep the ids of events: those of earlier commands count again"
        succeed("log append", tmp_path / "l", tmp_path / "one.csv", "--event-id", "id", said=said)
        assert EdgeLog(tmp_path / "l").n_edges == n_edges


def test_remove(folder, tmp_path):
    (tmp_path / "pairs.csv").write_text("src,dst,weight\nd,c,1\na,b,5\n")
    done = invoke("log remove", folder, tmp_path / "pairs.csv", "--by-weight")
    assert "Warning: 1 of 2 edges between pairs match no live edge" in done.stderr
    assert "1 edges removed, 1 requests that match no edge; the log has 6 edges" in done.stderr
    problem = "nothing was removed"
    refuse("log remove", folder, tmp_path / "pairs.csv", "--missing", "raise", said=problem)
    done = invoke("log remove-nodes", folder, "a", "zoe", "--missing", "ignore", "--json")
    assert json.loads(done.stderr) == {"n_removed": 2, "n_missing": 1, "n_edges": 4, "n_nodes": 6}
    (tmp_path / "ids.txt").write_text("f\ne\n")
    done = invoke("log remove-nodes", folder, "--nodes-file", tmp_path / "ids.txt", "-q")
    assert (done.exit_code, done.stderr) == (0, "")
    assert EdgeLog(folder).n_edges == 1
    assert "give ids of nodes" in invoke("log remove-nodes", folder).stderr


def test_compact_and_info(folder):
    invoke("log remove-nodes", folder, "a")
    figures = json.loads(invoke("log info", folder, "--json", "--staleness").stdout)
    assert (figures["n_edges"], figures["n_dead"], figures["n_nodes"]) == (5, 2, 6)
    assert figures["sparsifier"] == {"epsilon": 0.4, "random_state": 0}
    assert figures["staleness"] == 0.0  # it was built after the removal
    done = invoke("log compact", folder)
    assert "bytes freed; the log has 5 edges and 6 nodes" in done.stderr
    shown = invoke("log info", folder).stdout
    assert "Edges      5 live, without times" in shown
    assert "0 removed" in shown


def test_expire(tmp_path):
    with EdgeLog(tmp_path / "log") as log:
        log.append([1, 2, 3], [2, 3, 4], t=[0.0, 86400.0, 2 * 86400.0])
    assert "1 edges removed" in invoke("log expire", tmp_path / "log", "1970-01-02").stderr
    assert "1 edges removed" in invoke("log expire", tmp_path / "log", "90000").stderr
    refuse("log expire", tmp_path / "log", "soon", said="before must be a time")


def test_labels_of_a_log(folder, tmp_path):
    """Other commands take the folder; label uses the sparsifier of the log and says how stale."""
    (tmp_path / "labels.csv").write_text("node,label\na,x\nf,y\n")
    assert json.loads(invoke("info", folder, "--json").stdout)["n_edges_seen"] == 7
    with EdgeLog(folder) as log:
        log.snapshot()
        log.append(list("aab") * 5, list("bcc") * 5)
        log.remove(["b"], ["c"], [2.0])
        stale = log.staleness()
        exact = HFSClassifier(epsilon=None).fit_edges(log, {"a": "x", "f": "y"})
    assert 0.0 < stale < 0.3
    options = ("--labels", tmp_path / "labels.csv", "--passes", "30", "--json")
    done = invoke("label", folder, *options)
    assert json.loads(done.stderr.splitlines()[-1])["staleness"] == pytest.approx(stale, rel=1e-6)
    assert f"Staleness {stale:.2g}" in invoke("label", folder, *options[:-1]).stderr
    rows = [line.split(",")[:2] for line in done.stdout.splitlines()[1:]]
    assert rows == [list(x) for x in zip("abcdef", exact.transduction_, strict=True)]


def test_what_is_not_a_log(tmp_path):
    refuse("log info", tmp_path / "none", said="is not a log; make one with: ohmlearn log append")
