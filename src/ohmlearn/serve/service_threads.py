"""The threads of a service: what they have in common, and the one that samples."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import suppress

from ohmlearn.edge_log import LogFollower
from ohmlearn.errors import query_style, render, text_of
from ohmlearn.reading.source_errors import SourceError
from ohmlearn.serve.settings import Settings

MANY_FAILURES = 3  # in a row
logger = logging.getLogger(__name__)


class Worker:
    """Something that works in a thread until it is stopped: takes steps, with rests in between."""

    # How much the thread stands back, if there are more threads than cores. Requests are answered
    # and batches are written with 0.
    niceness = 0
    task = ""  # what it does, for messages: "the certificate" failed
    poll_seconds = 1.0  # the longest wait for `wake`
    retry_seconds = 0.0  # the rest after a failure

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._work, name=f"ohmlearn-{name}", daemon=True)
        self._stopping, self._wakened = threading.Event(), threading.Event()
        self.has_failed = False  # and will not continue
        self.problem: str | None = None  # what does not work at present, in words
        self.n_failures = 0  # how often in a row a step has failed

    @property
    def is_stuck(self) -> bool:
        """Whether the thread has ended, or its work fails again and again."""
        return self.has_failed or self.n_failures >= MANY_FAILURES

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Say that there may be work."""
        self._wakened.set()

    def stop(self) -> None:
        """Ask the thread to end after the present step, and wait for it."""
        self._stopping.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        if self.niceness and sys.platform == "linux":  # where threads have their own
            with suppress(OSError):
                own = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + self.niceness)
        try:
            self._run()
        except BaseException:  # nobody else would report it
            logger.exception("a thread has failed", extra={"thread_of": self._thread.name})
            self.problem = f"{self._thread.name} has failed; start the server again"
            self.has_failed = True

    def _run(self) -> None:
        """Work until `_stopping` is set."""
        while True:
            self._wakened.wait(self.poll_seconds)
            self._wakened.clear()
            if self._stopping.is_set():
                return
            try:
                rest = self._step()
                self.n_failures = 0
            except Exception as error:
                logger.exception("%s failed; it is tried again", self.task)
                self.problem = f"{self.task} failed: {describe(error)}; it is tried again"
                self.n_failures += 1
                rest = self.retry_seconds
            self._stopping.wait(rest)

    def _step(self) -> float:
        """Do what there is to do, and say how long to rest."""
        raise NotImplementedError


class Sampler(Worker):
    """Samples the edges of a log after they have become durable: keeps the sparsifier in step."""

    niceness = 10
    task = "sampling"
    retry_seconds = 5.0

    def __init__(self, follower: LogFollower, settings: Settings) -> None:
        super().__init__("sampler")
        self._follower, self._settings = follower, settings
        self._saved = time.monotonic()
        self.seconds = 0.0  # of work

    def _run(self) -> None:
        super()._run()
        try:  # the log saves the sparsifier when it is closed
            self._follower.catch_up()
        except Exception:  # what is not sampled is read again at the next start
            logger.exception("sampling failed")

    def _step(self) -> float:
        start = time.perf_counter()
        self._follower.catch_up()
        self.seconds += time.perf_counter() - start
        self.problem = None
        if time.monotonic() - self._saved >= self._settings.checkpoint_seconds:
            self._saved = time.monotonic()
            try:
                self._follower.save()
            except OSError as error:  # the one that was saved before is still there
                logger.error("the sparsifier was not saved: %s", error)
                self.problem = "the sparsifier is not saved, because the disk is full or has failed"
        return 0.0


def describe(error: Exception) -> str:
    """Return a short message about an error; those of files would name their paths."""
    is_safe = isinstance(error, ValueError) and not isinstance(error, SourceError)
    return render(text_of(error), query_style)[:300] if is_safe else type(error).__name__
