"""Progress on stderr, for a job in phases that reads edges, and the memory of this process."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ohmlearn._phases import Phase

INTERVAL, JSON_INTERVAL = 0.2, 1.0  # seconds between updates of a line, and between objects
SURE = 0.05  # fraction of a pass after which its own speed is known better than that of the last


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    # Avoid ru_maxrss on Linux, where a child process starts with the value of its parent.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _peak_on_windows()
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _peak_on_windows() -> int:
    """Ask for PROCESS_MEMORY_COUNTERS, of which PeakWorkingSetSize is the first size_t."""
    import ctypes

    counters = (ctypes.c_size_t * 10)()
    kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009 (unknown to mypy on Linux)
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    if not kernel.K32GetProcessMemoryInfo(process, counters, ctypes.sizeof(counters)):
        return 0
    return int(counters[1])  # after two numbers of 32 bits


class StatusLine:
    """Shows the phases of a job and the edges it has read; a watcher, see `ohmlearn._phases`.

    On a terminal it is one line that is updated five times a second; without one, nothing is
    printed. A thread does this, so that the time is updated during a long solve. With `as_json` it
    is one JSON object per second, also without a terminal; with `quiet` nothing is printed.
    """

    _n_edges: int | None
    _fraction: float | None
    _kept: dict[str, int]
    _parts: dict[str, Any]

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._seconds: dict[str, float] = {}  # that the latest pass, block or fold took
        self._json = as_json and not quiet
        self._line = not quiet and not as_json and sys.stderr.isatty()
        self._drawn = False
        self._read_at = 0.0
        self._clear_facts(None)
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw_often, daemon=True)

    def __enter__(self) -> Self:
        if self._json or self._line:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():
            self._done.set()
            self._thread.join()
        self._erase()

    # What the job says.

    def begin(self, phase: Phase) -> None:
        """Show a phase, from the next update on."""
        with self._lock:
            if phase.number == 1 and phase.part != "pass":  # passes read the same edges
                self._seconds.pop(phase.part, None)
            self._clear_facts(phase)

    def end(self) -> None:
        """Take note that the phase has ended."""
        with self._lock:
            if self._phase is not None and self._phase.number is not None:
                self._seconds[self._phase.part] = time.perf_counter() - self._start
            self._clear_facts(None)
            self._erase()

    def read(self, n_edges: int, fraction: float | None, sparsifier: Any) -> None:
        """Take note of the edges read so far; `fraction` is that of all edges, if known."""
        self._n_edges, self._fraction = n_edges, fraction
        now = time.perf_counter()
        if sparsifier is not None and now - self._read_at > INTERVAL:
            self._read_at = now
            self._kept = {"rows": sparsifier.n_rows_, "resamples": sparsifier.n_resamples_}

    def write(self, n_written: int, n_rows: int) -> None:
        """Take note of the rows of a table written so far."""
        self._written = (n_written, n_rows)

    def show(self, stage: str, done: int, total: int) -> None:
        """Take note of the partitions that the workers of a cluster have finished."""
        self._parts = {"stage": stage, "partitions_done": done, "partitions": total}

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while something else is printed."""
        with self._lock:
            self._erase()
            yield

    # The thread that draws.

    def _clear_facts(self, phase: Phase | None) -> None:
        self._phase, self._start = phase, time.perf_counter()
        self._n_edges, self._fraction, self._kept, self._parts = None, None, {}, {}
        self._written = (0, 0)

    def _draw_often(self) -> None:
        while not self._done.wait(JSON_INTERVAL if self._json else INTERVAL):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        facts = self._facts()
        if facts is None:
            return
        if self._json:
            print(json.dumps(facts), file=sys.stderr, flush=True)
            return
        width = shutil.get_terminal_size().columns - 1  # a longer line could not be removed
        print("\r\x1b[K" + self._words(facts)[:width], end="", file=sys.stderr, flush=True)
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._drawn = False

    def _facts(self) -> dict[str, Any] | None:
        if self._phase is None:
            return None
        seconds = time.perf_counter() - self._start
        facts: dict[str, Any] = {"phase": self._phase.name, "seconds": round(seconds, 1)}
        if self._phase.number is not None:
            part = self._phase.part
            plural = "passes" if part == "pass" else f"{part}s"
            facts |= {part: self._phase.number, plural: self._phase.total}
        if self._n_edges is not None:
            facts["edges"] = self._n_edges
            facts["edges_per_second"] = round(self._n_edges / max(seconds, 1e-9))
            facts["fraction"] = None if self._fraction is None else round(self._fraction, 4)
        n_written, n_rows = self._written
        if n_written > 0:
            facts |= {"rows_written": n_written, "fraction": round(n_written / n_rows, 4)}
            facts["seconds_left"] = round(seconds * (n_rows - n_written) / n_written)
        facts |= self._kept | self._parts
        facts["memory"] = peak_memory()
        if self._phase.number is not None:
            left = self._seconds_left(seconds)
            facts["seconds_left"] = None if left is None else round(left)
        return facts

    def _seconds_left(self, seconds: float) -> float | None:
        """Return the time that all further passes take, if they take as long as this one."""
        assert self._phase is not None
        whole, fraction = self._seconds.get(self._phase.part), self._fraction
        if fraction is not None and (fraction >= SURE or (whole is None and fraction > 0.0)):
            whole = seconds / fraction
        if whole is None or self._phase.number is None:
            return None
        total = self._phase.total or self._phase.number
        return max(0.0, whole - seconds) + whole * (total - self._phase.number)

    def _words(self, facts: dict[str, Any]) -> str:
        words = [str(self._phase)]
        if facts.get("fraction"):
            words.append(f"{facts['fraction']:.0%}")
        if facts.get("seconds_left") is not None:
            up_to = "at most " if self._phase and self._phase.at_most else ""
            words.append(f"{up_to}{describe_seconds(facts['seconds_left'])} left")
        if "partitions" in facts:
            words.append(f"{facts['partitions_done']} of {facts['partitions']} partitions")
        if "edges" in facts:
            words.append(f"{facts['edges']:,} edges")
            words.append(f"{facts['edges_per_second'] / 1e6:.1f} M/s")
        else:
            words.append(describe_seconds(facts["seconds"]))
        if "rows" in facts:
            words += [f"{facts['rows']:,} rows", f"{facts['resamples']} resamples"]
        words.append(f"{facts['memory'] / 2**20:.0f} MiB")
        return ", ".join(words)


def describe_seconds(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> describe_seconds(0.2), describe_seconds(75), describe_seconds(7300)
    ('0 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
