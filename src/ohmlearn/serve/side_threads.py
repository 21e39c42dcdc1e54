"""The threads that look at the last answers: which nodes to label next, a map, and certificates."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from ohmlearn.certificate import certify
from ohmlearn.edges import Batch
from ohmlearn.edges.wrapped import Watched
from ohmlearn.estimators.suggest_labels import suggest_labels
from ohmlearn.nodes import NodeTable
from ohmlearn.serve.answer_store import find_numbers
from ohmlearn.serve.database import Database
from ohmlearn.serve.graph_map import GraphMap
from ohmlearn.serve.label_thread import Labeller
from ohmlearn.serve.live_reasons import Explainer
from ohmlearn.serve.service_threads import Worker
from ohmlearn.serve.settings import Settings

N_SUGGESTED = 20
REST = 3.0  # times as long as the work takes, so that it takes a quarter of a core at most
SOON = 10.0  # seconds until the first certificate, or until there is something to certify


class Surveyor(Worker):
    """Suggests nodes and draws the map of the last answers, as often as there is time.

    `suggestions` and `map` are as the service returns them.
    """

    niceness = 10
    task = "looking for suggestions"
    poll_seconds = 0.2

    def __init__(
        self, labeller: Labeller, nodes: NodeTable, explainer: Explainer, seed: int, n_jobs: int
    ) -> None:
        super().__init__("surveyor")
        self._explainer, self._n_jobs = explainer, n_jobs
        self._labeller, self._nodes = labeller, nodes
        self._layouts = GraphMap(seed=seed)
        self.suggestions: dict[str, Any] = {"suggestions": [], "of_version": 0}
        self.map: dict[str, Any] = {"version": 0, "nodes": [], "links": []}

    def _step(self) -> float:
        solved = self._labeller.solved
        if solved is None or solved.answers.edges == 0:
            return 0.0
        answers = solved.answers
        if answers.version == self.map["version"]:
            return 0.0
        start = time.perf_counter()
        found = suggest_labels(solved.kept, solved.answer, N_SUGGESTED, n_jobs=self._n_jobs)
        rows = [{"node": one.node, "reason": one.reason, "kind": one.kind} for one in found]
        self.suggestions = {"suggestions": rows, "of_version": answers.version}
        suggested = find_numbers(self._nodes, [one.node for one in found])
        layout = self._layouts.update(solved.graph, given=answers.given, suggested=suggested)
        rows = answers.lookup(layout.nodes, self._nodes.ids(layout.nodes).tolist())
        self.map = layout.describe(answers.version, rows)
        if solved.answer is not None:
            self._explainer.measure(solved.answer)
        self.problem = None
        return REST * (time.perf_counter() - start)


class Certifier(Worker):
    """Compares the sparsifier with all edges now and then, each time in 10 to 20 passes."""

    niceness = 10
    task = "the certificate"

    def __init__(self, database: Database, labeller: Labeller, settings: Settings) -> None:
        super().__init__("certifier")
        self._database, self._labeller, self._settings = database, labeller, settings
        self._every = settings.certify_seconds or math.inf
        self.poll_seconds = min(self._every, SOON)
        self.retry_seconds = self._every - self.poll_seconds
        last = database.certificates(1)
        self.last: dict[str, Any] | None = last[0] if last else None

    def start(self) -> None:
        """Start the thread, if certificates are wanted."""
        if self._settings.certify_seconds is not None:
            super().start()

    def _step(self) -> float:
        self.problem = None
        solved = self._labeller.solved
        if solved is None or solved.answers.edges == 0:
            return 0.0
        live = solved.moment.live
        try:
            found = certify(
                Watched(live, self._until_stopped),
                solved.graph,
                random_state=solved.moment.operation,
                n_jobs=self._settings.n_jobs,
            )
        except _Stopped:
            return 0.0
        numbers = {"epsilon": found.epsilon, "bound": found.epsilon_bound}
        self.last = {
            "at": time.time(),
            # JSON has neither infinity nor NaN.
            **{name: float(x) if math.isfinite(x) else None for name, x in numbers.items()},
            "confidence": found.confidence,
            "edges": live.n_edges,
        }
        self._database.add_certificate(self.last)
        return self._every - self.poll_seconds

    def _until_stopped(self, batches: Iterator[Batch], _: int) -> Iterator[Batch]:
        for batch in batches:
            if self._stopping.is_set():
                raise _Stopped
            yield batch


class _Stopped(Exception):
    """The service is stopping."""
