"""The thread that compares the sparsifier with all edges now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ohmlearn.certificate import certify
from ohmlearn.edges import Batch
from ohmlearn.edges.wrapped import Watched
from ohmlearn.serve.database import Database
from ohmlearn.serve.label_thread import Labeller, describe
from ohmlearn.serve.settings import Settings
from ohmlearn.serve.worker_thread import Worker

__all__ = ["Certifier"]

SOON = 10.0  # seconds until the first certificate, or until there is something to certify
logger = logging.getLogger(__name__)


class Certifier(Worker):
    """Computes certificates, each in 10 to 20 passes over the log.

    Parameters
    ----------
    database : Database
    labeller : Labeller
        Has the sparsifier of the last answers.
    settings : Settings

    Attributes
    ----------
    last : dict or None
        The last certificate.
    """

    niceness = 10

    def __init__(self, database: Database, labeller: Labeller, settings: Settings) -> None:
        super().__init__("certifier")
        self._database, self._labeller, self._settings = database, labeller, settings
        last = database.certificates(1)
        self.last: dict[str, Any] | None = last[0] if last else None

    def start(self) -> None:
        """Start the thread, if certificates are wanted."""
        if self._settings.certify_seconds is not None:
            super().start()

    def _run(self) -> None:
        every = self._settings.certify_seconds
        assert every is not None
        wait = min(every, SOON)
        while not self._pause(wait):
            try:
                wait = every if self._certify() else min(every, SOON)
                self.problem = None
            except _Stopped:
                return
            except Exception as error:
                logger.exception("the certificate failed")
                self.problem = f"the certificate failed: {describe(error)}"
                wait = every

    def _certify(self) -> bool:
        """Compute a certificate; return whether there was something to certify."""
        solved = self._labeller.solved
        if solved is None or solved.answers.edges == 0:
            return False
        live = solved.moment.live
        found = certify(
            Watched(live, self._until_stopped),
            solved.graph,
            random_state=solved.moment.operation,
            n_jobs=self._settings.n_jobs,
        )
        self.last = {
            "at": time.time(),
            "epsilon": _finite(found.epsilon),
            "bound": _finite(found.epsilon_bound),
            "confidence": found.confidence,
            "edges": live.n_edges,
        }
        self._database.add_certificate(self.last)
        return True

    def _until_stopped(self, batches: Iterator[Batch], _: int) -> Iterator[Batch]:
        for batch in batches:
            if self._stopping.is_set():
                raise _Stopped
            yield batch


class _Stopped(Exception):
    """The service is stopping."""


def _finite(value: float) -> float | None:
    """Return a number that JSON has; None for infinity and NaN."""
    return float(value) if np.isfinite(value) else None
