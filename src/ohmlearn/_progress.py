"""Progress of a job in steps, on stderr: a bar on a terminal that has rich, else plain lines."""

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]


class Progress:
    """Counts steps up to `total`; what each step has to say is printed.

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
        """Say that one more step is done."""
        self.done += 1
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
            self._bar.advance(self._task)
            return
        seconds = time.perf_counter() - self._start
        print(f"[{self.done}/{self.total}, {seconds:.0f} s] {message}", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
