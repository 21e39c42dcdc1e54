"""Progress on stderr: for a job in steps, and while reading edges."""

import json
import sys
import time
from contextlib import ExitStack
from typing import Any, Self

from ohmlearn.report.process import peak_memory

__all__ = ["EdgeProgress", "PartitionProgress", "Progress"]


class Progress:
    """Counts steps up to `total`, and prints a message for each step.

    On a terminal, and if rich is installed, it shows a progress bar; otherwise plain lines.

    Examples
    --------
    >>> with Progress(2, "counting") as progress:
    ...     progress.step("one")
    ...     progress.step("two")
    >>> progress.done
    2
    """

    def __init__(self, total: int, title: str) -> None:
        self.total, self.title, self.done = total, title, 0
        self._stack = ExitStack()
        self._bar: Any = None
        self._start = time.perf_counter()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            self._bar = self._stack.enter_context(Bar(console=Console(stderr=True)))
            self._task = self._bar.add_task(self.title, total=self.total)
        return self

    def step(self, message: str) -> None:
        """Count one more step and print its message."""
        self.done += 1
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
            self._bar.advance(self._task)
            return
        seconds = time.perf_counter() - self._start
        print(f"[{self.done}/{self.total}, {seconds:.0f} s] {message}", file=sys.stderr, flush=True)

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


class StatusLine:
    """One line that is updated on a terminal; without a terminal nothing is printed.

    Parameters
    ----------
    as_json : bool
        Print one JSON object per second instead, also without a terminal.
    quiet : bool
        Print nothing.
    """

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._json = as_json and not quiet
        self._line = not quiet and not as_json and sys.stderr.isatty()
        self._start = self._told = time.perf_counter()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def _is_due(self) -> bool:
        now = time.perf_counter()
        if not (self._json or self._line) or now - self._told < (1.0 if self._json else 0.2):
            return False
        self._told = now
        return True

    def _draw(self, facts: dict[str, Any], parts: list[str]) -> None:
        if self._json:
            print(json.dumps(facts), file=sys.stderr, flush=True)
            return
        print("\r\x1b[K" + ", ".join(parts), end="", file=sys.stderr, flush=True)
        self._drawn = True

    def __exit__(self, *error: object) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class EdgeProgress(StatusLine):
    """A status line while edges are read; see `StatusLine`.

    Examples
    --------
    >>> with EdgeProgress(as_json=False, quiet=True) as progress:
    ...     progress.show(1000, 0.5, None)
    """

    def show(self, n_edges: int, fraction: float | None, sparsifier: Any) -> None:
        """Show the number of edges read; `fraction` is their share of all edges, if known."""
        if not self._is_due():
            return
        seconds = time.perf_counter() - self._start
        facts: dict[str, Any] = {
            "edges": n_edges,
            "edges_per_second": round(n_edges / seconds),
            "seconds_left": None if not fraction else round(seconds * (1.0 / fraction - 1.0)),
            "memory": peak_memory(),
        }
        parts = [f"{n_edges:,} edges", f"{facts['edges_per_second'] / 1e6:.1f} M/s"]
        if sparsifier is not None:
            facts |= {"rows": sparsifier.n_rows_, "resamples": sparsifier.n_resamples_}
            parts += [f"{facts['rows']:,} rows", f"{facts['resamples']} resamples"]
        parts.append(f"{facts['memory'] / 2**20:.0f} MiB")
        if facts["seconds_left"] is not None:
            parts.append(f"{facts['seconds_left']} s left")
        self._draw(facts, parts)


class PartitionProgress(StatusLine):
    """A status line while partitions are processed; see `StatusLine`.

    Examples
    --------
    >>> with PartitionProgress(as_json=False, quiet=True) as progress:
    ...     progress.show("sparsify", 3, 8)
    """

    def show(self, stage: str, done: int, total: int) -> None:
        """Show the number of finished partitions."""
        if done == 1:
            self._start = time.perf_counter()
        if not self._is_due():
            return
        seconds = round(time.perf_counter() - self._start, 1)
        facts = {"stage": stage, "partitions_done": done, "partitions": total, "seconds": seconds}
        self._draw(facts, [f"{stage}: {done} of {total} partitions", f"{seconds:.0f} s"])
