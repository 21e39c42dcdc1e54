"""The thread that samples: it keeps the sparsifier in step with the edges of the log."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from typing import NamedTuple

from ohmlearn.edge_log import EdgeLog
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_sparsifier import MAX_STALENESS, KeptSparsifier, SparsifierInStep
from ohmlearn.serve.settings import Settings
from ohmlearn.serve.worker_thread import Worker

__all__ = ["Follower", "Moment"]

RETRY_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Moment(NamedTuple):
    """The sparsifier after an operation of the log, and the edges that it stands for."""

    kept: KeptSparsifier  # a copy
    live: LiveEdges
    operation: int
    latest: float  # time of an edge; -inf if there was none
    version: int  # of the sparsifier, which is also built again without a new operation


class Follower(Worker):
    """Samples the edges of a log after they have become durable.

    The log is locked only while the thread looks up what is new. So edges can be appended while it
    samples, and the sparsifier has never seen an edge that could still be lost.

    Parameters
    ----------
    log : EdgeLog
        Nobody else may ask for its sparsifier.
    settings : Settings
    """

    niceness = 10

    def __init__(self, log: EdgeLog, settings: Settings) -> None:
        super().__init__("sampler")
        self._log, self._settings = log, settings
        log._follows_later = True
        self._wakened = threading.Event()
        self._is_stale = False  # and has not been built again yet
        self.seconds = 0.0  # of work
        self.n_updates = 0  # of the log that the sparsifier has taken in
        # Noted here, because the sparsifier is locked for as long as it samples.
        self.n_rows = self.n_resamples = 0
        self.operation = 0  # the last one of the log that it has seen
        self.version = 0  # counts its changes
        self.latest = float("-inf")

    def load(self) -> None:
        """Load the sparsifier, and read the edges that have come since it was saved."""
        with self._log._lock:
            kept = self._log._in_step = SparsifierInStep(self._log._store, self._settings.n_jobs)
            self._is_stale = True  # perhaps: edges may have been removed since it was saved
            self._note(kept, 0)

    def wake(self) -> None:
        """Say that edges have become durable."""
        self._wakened.set()

    def stop(self) -> None:
        """Catch up with the log, and end; the log saves the sparsifier when it is closed."""
        self._stopping.set()
        self.wake()
        super().stop()

    @property
    def lag(self) -> int:
        """Number of durable edges and removals of edges that are not sampled yet."""
        return max(0, self._log._store.n_updates - self.n_updates)

    def moment(self) -> Moment | None:
        """Return a copy of the sparsifier as it is now; None if there is none at present."""
        kept = self._log._in_step
        if kept is None:
            return None
        with kept.lock:
            if not kept.is_whole:
                return None
            copy = kept.sparsifier.copy(n_jobs=self._settings.n_jobs)
            state = KeptSparsifier(copy, kept.staleness(), kept.removed_weight())
            return Moment(state, kept.live, kept.n_operations, self.latest, self.version)

    def _run(self) -> None:
        saved = time.monotonic()
        while not self._stopping.is_set():
            self._wakened.wait(1.0)
            self._wakened.clear()
            try:
                start = time.perf_counter()
                self._follow()
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
            self._follow()
        except Exception:  # what is not sampled is read again at the next start
            logger.exception("sampling failed")

    def _follow(self) -> None:
        """Take in what is new; build the sparsifier again if removals have made it too stale.

        Compaction may have made the sparsifier take in operations, too.
        """
        with ExitStack() as held:
            with self._log._lock:
                kept = self._usable()
                held.enter_context(kept.lock)
                has_new = bool(self._log._store.operations)
                if not has_new and not self._is_stale and kept.n_operations == self.operation:
                    return
                first = kept._n_records if has_new else 0
                step = kept.take() if has_new else None
            if step is not None:
                kept.apply(step)
            self._is_stale = kept.staleness() > MAX_STALENESS
            self._note(kept, first)
        if self._is_stale:
            self._rebuild(kept)
            self._is_stale = False

    def _usable(self) -> SparsifierInStep:
        """Return the sparsifier of the log; it is loaded again if an error has spoilt it."""
        self._log._drop_unusable()
        if self._log._in_step is None:
            self.load()
        kept = self._log._in_step
        assert kept is not None
        return kept

    def _rebuild(self, kept: SparsifierInStep) -> None:
        with ExitStack() as held:
            with self._log._lock:
                held.enter_context(kept.lock)
                step = kept.prepare_rebuild()
            kept.build(step)
            self._note(kept, 0)

    def _note(self, kept: SparsifierInStep, first: int) -> None:
        self.operation, self.n_updates = kept.n_operations, kept.live.n_updates
        self.version += 1
        self.latest = max(self.latest, kept.live.latest(first))
        self.n_rows, self.n_resamples = kept.sparsifier.n_rows_, kept.sparsifier.n_resamples_

    def _save(self) -> None:
        kept = self._log._in_step
        if kept is None:
            return
        try:
            with kept.lock:
                kept.save()
        except OSError as error:  # the one that was saved before is still there
            logger.error("the sparsifier was not saved: %s", error)
            self.problem = "the sparsifier is not saved, because the disk is full or has failed"
