"""What the threads of a service have in common."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress

__all__ = ["Worker"]

MANY_FAILURES = 3  # in a row
logger = logging.getLogger(__name__)


class Worker:
    """Something that works in a thread until it is stopped.

    Attributes
    ----------
    niceness : int
        How much the thread stands back, if there are more threads than cores. Requests are answered
        and batches are written with 0.
    problem : str or None
        What does not work at present, in words.
    n_failures : int
        How often in a row the work has failed.

    Examples
    --------
    >>> class Counter(Worker):
    ...     count = 0
    ...     def _run(self):
    ...         while not self._pause(0.001):
    ...             self.count += 1
    >>> counter = Counter("counter")
    >>> counter.start()
    >>> counter.stop()
    """

    niceness = 0

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._work, name=f"ohmlearn-{name}", daemon=True)
        self._stopping = threading.Event()
        self.has_failed = False  # and will not go on
        self.problem: str | None = None
        self.n_failures = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the thread has ended, or its work fails again and again."""
        return self.has_failed or self.n_failures >= MANY_FAILURES

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, and wait for it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        if self.niceness and sys.platform == "linux":  # where threads have their own
            with suppress(OSError):
                own = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + self.niceness)
        try:
            self._run()
        except BaseException:  # there is nobody else to tell
            logger.exception("a thread has failed", extra={"thread_of": self._thread.name})
            self.problem = f"{self._thread.name} has failed; start the server again"
            self.has_failed = True

    def _run(self) -> None:
        """Work until `_stopping` is set."""
        raise NotImplementedError

    def _pause(self, seconds: float) -> bool:
        """Wait; return whether the thread is to end."""
        return self._stopping.wait(seconds)
