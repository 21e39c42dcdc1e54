"""What the threads of a service have in common."""

from __future__ import annotations

import threading

__all__ = ["Worker"]


class Worker:
    """Something that works in a thread until it is stopped.

    Attributes
    ----------
    problem : str or None
        What does not work at present, in words.

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

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=f"ohmlearn-{name}", daemon=True)
        self._stopping = threading.Event()
        self.problem: str | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, and wait for it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """Work until `_stopping` is set."""
        raise NotImplementedError

    def _pause(self, seconds: float) -> bool:
        """Wait; return whether the thread is to end."""
        return self._stopping.wait(seconds)
