"""The thread that compares the sparsifier with all edges now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ohmlearn.certificate import certify
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
            _UntilStopped(live, self._stopping),
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


class _Stopped(Exception):
    """The service is stopping."""


class _UntilStopped:
    """Edges whose reading ends with an error when the service is stopped."""

    rereadable = True

    def __init__(self, edges: Any, stopping: threading.Event) -> None:
        self._edges, self._stopping = edges, stopping
        self.nodes, self.n_nodes = edges.nodes, edges.n_nodes
        self.has_times, self.sources = edges.has_times, ["the log"]

    def __iter__(self) -> Iterator[Any]:
        for batch in self._edges:
            if self._stopping.is_set():
                raise _Stopped
            yield batch


def _finite(value: float) -> float | None:
    """Return a number that JSON has; None for infinity and NaN."""
    return float(value) if np.isfinite(value) else None
