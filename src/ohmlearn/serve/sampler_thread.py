"""The thread that samples: it keeps the sparsifier in step with the edges of the log."""

from __future__ import annotations

import logging
import threading
import time

from ohmlearn.edge_log import LogFollower
from ohmlearn.serve.settings import Settings
from ohmlearn.serve.worker_thread import Worker

__all__ = ["Sampler"]

RETRY_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Sampler(Worker):
    """Samples the edges of a log after they have become durable.

    Parameters
    ----------
    follower : LogFollower
    settings : Settings
    """

    niceness = 10

    def __init__(self, follower: LogFollower, settings: Settings) -> None:
        super().__init__("sampler")
        self._follower, self._settings = follower, settings
        self._wakened = threading.Event()
        self.seconds = 0.0  # of work

    def wake(self) -> None:
        """Say that edges have become durable."""
        self._wakened.set()

    def stop(self) -> None:
        """Catch up with the log, and end; the log saves the sparsifier when it is closed."""
        self._stopping.set()
        self.wake()
        super().stop()

    def _run(self) -> None:
        saved = time.monotonic()
        while not self._stopping.is_set():
            self._wakened.wait(1.0)
            self._wakened.clear()
            try:
                start = time.perf_counter()
                self._follower.catch_up()
                self.seconds += time.perf_counter() - start
                self.problem, self.n_failures = None, 0
                if time.monotonic() - saved >= self._settings.checkpoint_seconds:
                    saved = time.monotonic()
                    self._save()
            except Exception as error:
                logger.exception("sampling failed; it is tried again")
                self.problem = f"sampling failed ({type(error).__name__}), and is tried again"
                self.n_failures += 1
                self._pause(RETRY_SECONDS)
        try:
            self._follower.catch_up()
        except Exception:  # what is not sampled is read again at the next start
            logger.exception("sampling failed")

    def _save(self) -> None:
        try:
            self._follower.save()
        except OSError as error:  # the one that was saved before is still there
            logger.error("the sparsifier was not saved: %s", error)
            self.problem = "the sparsifier is not saved, because the disk is full or has failed"
