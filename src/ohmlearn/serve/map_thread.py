"""The thread that looks at the graph: which nodes to label next, and a map of its communities."""

from __future__ import annotations

import logging
import time
from typing import Any

from ohmlearn.estimators.suggest_labels import suggest_labels
from ohmlearn.nodes import NodeTable
from ohmlearn.serve.answer_store import find_numbers
from ohmlearn.serve.graph_map import GraphMap
from ohmlearn.serve.label_thread import Labeller, Solved, describe
from ohmlearn.serve.worker_thread import Worker

__all__ = ["Surveyor"]

N_SUGGESTED = 20
REST = 3.0  # times as long as the work takes, so that it takes a quarter of a core at most
logger = logging.getLogger(__name__)


class Surveyor(Worker):
    """Suggests nodes and draws the map, as often as there is time.

    Parameters
    ----------
    labeller : Labeller
        Has the model of the last answers.
    nodes : NodeTable
    seed : int

    Attributes
    ----------
    suggestions, map : dict
        As the service returns them.
    """

    niceness = 10

    def __init__(self, labeller: Labeller, nodes: NodeTable, seed: int) -> None:
        super().__init__("surveyor")
        self._labeller, self._nodes = labeller, nodes
        self._layouts = GraphMap(seed=seed)
        self.suggestions: dict[str, Any] = {"suggestions": [], "of_version": 0}
        self.map: dict[str, Any] = {"version": 0, "nodes": [], "links": []}

    def _run(self) -> None:
        rest = 0.2
        while not self._pause(rest):
            rest = 0.2
            solved = self._labeller.solved
            if solved is None or solved.answers.version == self.map["version"]:
                continue
            if solved.answers.edges == 0:
                continue
            start = time.perf_counter()
            try:
                self._look(solved)
                self.problem = None
            except Exception as error:
                logger.exception("suggestions failed")
                self.problem = f"suggestions failed: {describe(error)}"
            rest = max(rest, REST * (time.perf_counter() - start))

    def _look(self, solved: Solved) -> None:
        answers, n_jobs = solved.answers, self._labeller.n_jobs
        found = suggest_labels(solved.kept, solved.answer, N_SUGGESTED, n_jobs=n_jobs)
        self.suggestions = {
            "suggestions": [
                {"node": one.node, "reason": one.reason, "kind": one.kind} for one in found
            ],
            "of_version": answers.version,
        }
        suggested = find_numbers(self._nodes, [one.node for one in found])
        layout = self._layouts.update(solved.graph, given=answers.given, suggested=suggested)
        rows = answers.lookup(layout.nodes, self._nodes.ids(layout.nodes).tolist())
        columns = [
            [row[name] for row in rows] for name in ("node", "label", "probability", "given")
        ]
        self.map = layout.describe(answers.version, *columns)
