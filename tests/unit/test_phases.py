"""Phases of jobs: who sees them, and how passes are numbered."""

import io
import json
import sys
import threading
import time

import numpy as np
import pytest

from ohmlearn import HFSClassifier, certify, gallery, refine, sparsify
from ohmlearn._phases import Phase, passes_before, phase, watch
from ohmlearn.report import progress
from ohmlearn.report.progress import StatusLine

LABELS = {node: "even" if node % 2 == 0 else "odd" for node in range(20)}


class Seen(list[str]):
    """Collects the phases of a job."""

    def begin(self, phase: Phase) -> None:
        self.append(str(phase))

    def end(self) -> None:
        self.append("end")


def phases_of(seen: Seen) -> list[str]:
    assert seen[1::2] == ["end"] * (len(seen) // 2)  # each phase ends before the next begins
    return seen[::2]


def test_a_labelling_goes_through_its_phases():
    graph, seen = gallery.complete(300), Seen()
    batches = [graph.edges()]
    model = HFSClassifier(passes=3, epsilon=0.9, random_state=0)
    with watch(seen):
        model.fit_edges(batches, LABELS)
    assert phases_of(seen) == [
        "reading edges, pass 1 of 3",
        "solving on the edges kept",
        "solving on the edges kept",
        "refining, pass 2 of 3",
        "refining, pass 3 of 3",
    ]
    more = Seen()
    with watch(more):
        model.refine(batches, passes=2)
    assert "refining, pass 4 of 5" in phases_of(more)


def test_a_certificate_numbers_its_passes():
    graph, seen = gallery.complete(100), Seen()
    h = sparsify(graph, epsilon=0.9, random_state=0)
    with watch(seen):
        found = certify([graph.edges()], h, max_passes=7, random_state=0)
    passes = [f"certificate, pass {k} of at most 7" for k in range(1, found.passes + 1)]
    assert phases_of(seen) == ["preparing the certificate", *passes]


def test_verbose_prints_the_same_phases_as_lines(capsys: pytest.CaptureFixture[str]):
    graph = gallery.complete(300)
    HFSClassifier(passes=2, epsilon=0.9, random_state=0, verbose=1).fit_edges(
        [graph.edges()], LABELS
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["reading edges, pass 1 of 2", "solving on the edges kept"]
    assert lines[2].startswith("refining, pass 2 of 2: residual ")
    HFSClassifier(passes=2, epsilon=0.9, random_state=0).fit_edges([graph.edges()], LABELS)
    assert capsys.readouterr().err == ""


def test_a_phase_ends_after_an_error_and_other_threads_are_not_seen():
    seen = Seen()
    with watch(seen):
        with pytest.raises(KeyError), phase("failing"):
            raise KeyError
        thread = threading.Thread(target=lambda: phase("elsewhere").__enter__())
        thread.start()
        thread.join()
        with phase("again"):
            pass
    with phase("later"):
        pass
    assert seen == ["failing", "end", "again", "end"]


def test_passes_are_counted_after_earlier_ones_only_inside():
    graph, seen = gallery.complete(60), Seen()
    h = sparsify(graph, epsilon=0.9, random_state=0)
    with watch(seen):
        with passes_before(4):
            refine(graph, h, [0, 1], [1.0, -1.0], passes=1)
        refine(graph, h, [0, 1], [1.0, -1.0], passes=1)
    numbers = [text for text in phases_of(seen) if "refining" in text]
    assert numbers == ["refining, pass 5 of 5", "refining"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make the time one that the test sets, and stop the thread that draws."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(progress, "INTERVAL", 3600.0)
    monkeypatch.setattr(progress, "JSON_INTERVAL", 3600.0)
    return now


def test_the_time_left_counts_all_passes(clock: list[float], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    line = StatusLine(as_json=False, quiet=False)
    line.begin(Phase("reading edges", 1, 3))
    clock[0] += 5
    line.read(1_000_000, 0.25, None)
    line._draw()  # 15 s of this pass, 40 s for two more
    words = sys.stderr.getvalue()
    # On a narrow terminal the end is cut off, and what matters most comes first.
    expected = "reading edges, pass 1 of 3, 25%, 55 s left, 1,000,000 edges, 0.2 M/s, "
    assert words.removeprefix("\r\x1b[K") == expected[:59]
    clock[0] += 15
    line.end()
    line.begin(Phase("refining", 3, 3))
    clock[0] += 2
    line._draw()
    assert "\x1b[Krefining, pass 3 of 3, 18 s left, 2 s, " in sys.stderr.getvalue()
    line.end()
    line.begin(Phase("solving"))
    line._draw()
    assert sys.stderr.getvalue().rsplit("\r\x1b[K", 1)[1].startswith("solving, 0 s, ")


def test_json_names_the_phase(clock: list[float], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = StatusLine(as_json=True, quiet=False)
    line._draw()  # nothing is going on
    line.begin(Phase("reading edges", 1, 2))
    clock[0] += 4
    line.read(8_000, 0.5, None)
    line._draw()
    line.end()
    line.begin(Phase("solving"))
    clock[0] += 1.5
    line._draw()
    first, second = map(json.loads, sys.stderr.getvalue().splitlines())
    assert {**first, "memory": 0} == {
        "phase": "reading edges", "pass": 1, "passes": 2, "edges": 8000, "seconds": 4.0,
        "edges_per_second": 2000, "fraction": 0.5, "memory": 0, "seconds_left": 12,
    }  # fmt: skip
    assert {**second, "memory": 0} == {"phase": "solving", "seconds": 1.5, "memory": 0}


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_drawn_if_quiet_or_without_a_terminal(
    quiet: bool, monkeypatch: pytest.MonkeyPatch
):
    out = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    n_threads = threading.active_count()
    with StatusLine(as_json=False, quiet=quiet) as line, watch(line), phase("solving"):
        assert threading.active_count() == n_threads
    assert out.getvalue() == ""


def test_the_line_lives_during_a_long_call_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    with StatusLine(as_json=False, quiet=False) as line, watch(line), phase("solving"):
        while "solving" not in sys.stderr.getvalue():
            np.sort(np.arange(1000))
        with line.aside():
            time.sleep(0.01)  # the thread waits
            assert sys.stderr.getvalue().endswith("\r\x1b[K")
    assert sys.stderr.getvalue().endswith("\r\x1b[K")


def test_blocks_have_a_time_of_their_own(clock: list[float], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = StatusLine(as_json=True, quiet=False)
    for each, seconds in ((Phase("reading edges", 1, 1), 50), (block(1), 4), (block(2), 1)):
        line.begin(each)
        line._draw()
        clock[0] += seconds
        line._draw()
        line.end()
    facts = [json.loads(text) for text in sys.stderr.getvalue().splitlines()]
    assert [fact.get("block") for fact in facts] == [None, None, 1, 1, 2, 2]
    # The first block says nothing of the time left; the second is taken to be as long as the first.
    assert [fact["seconds_left"] for fact in facts[2:]] == [None, None, 8, 7]
    assert facts[-1]["blocks"] == 3
    assert "pass" not in facts[-1]


def block(number: int) -> Phase:
    return Phase("smoothing", number, 3, part="block")
