"""What a long job is doing: its phases, for a command or an estimator that shows them.

Code that may take long runs inside ``with phase("solving"):``. Whoever shows phases runs the job
inside ``with watch(watcher):``, in the same thread. By default nobody watches, and a phase does
nothing. Of phases inside each other, a watcher sees the outermost only.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol


class Phase(NamedTuple):
    """What a job is doing."""

    name: str
    number: int | None = None  # of the pass over the edges, or of another part, from 1 on
    total: int | None = None  # number of passes, or of parts
    at_most: bool = False  # whether there may be fewer
    part: Literal["pass", "block", "fold"] = "pass"

    def __str__(self) -> str:
        if self.number is None or self.total == 1:
            return self.name
        total = f"at most {self.total}" if self.at_most else self.total
        return f"{self.name}, {self.part} {self.number}" + (
            "" if self.total is None else f" of {total}"
        )


class Watcher(Protocol):
    """Is called when a phase begins and when it ends."""

    def begin(self, phase: Phase) -> None:
        """Show a phase."""

    def end(self) -> None:
        """Take note that the phase has ended."""


class _OfThread(threading.local):
    """What holds in one thread; free-threaded Python hands context variables on to new threads."""

    watcher: Watcher | None = None
    n_before = 0


_here = _OfThread()


@contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Show the phases of what runs inside."""
    before, _here.watcher = _here.watcher, watcher
    try:
        yield
    finally:
        _here.watcher = before


@contextmanager
def phase(what: Phase | str, verbose: int = 0) -> Iterator[None]:
    """Say what the code inside does, and hide the phases inside of it.

    If `verbose` is positive, also print it to stderr.
    """
    if verbose > 0:
        print(what, file=sys.stderr, flush=True)
    watcher = _here.watcher
    if watcher is None:
        yield
        return
    _here.watcher = None
    try:
        watcher.begin(Phase(what) if isinstance(what, str) else what)
        yield
    finally:
        watcher.end()
        _here.watcher = watcher


@contextmanager
def passes_before(n_before: int) -> Iterator[None]:
    """Count passes inside from `n_before` on; see `number_pass`."""
    before, _here.n_before = _here.n_before, n_before
    try:
        yield
    finally:
        _here.n_before = before


def number_pass(name: str, number: int, total: int, *, at_most: bool = False) -> Phase:
    """Return the phase of a pass, which counts passes that the caller has made before."""
    before = _here.n_before
    return Phase(name, before + number, before + total, at_most)
