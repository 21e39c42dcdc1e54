"""Reasons for the last answers, for single nodes and for changes, computed when they are asked for.

They come from the edges kept, whose solves take a fraction of a second; all edges of the log are
read only if a client wants that, for one request at a time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from ohmlearn.estimators.answer import ClassAnswer
from ohmlearn.estimators.explanation import explain_nodes
from ohmlearn.estimators.reasons import Explanation
from ohmlearn.nodes import NodeTable
from ohmlearn.serve.answer_store import find_numbers
from ohmlearn.serve.label_thread import Labeller, Solved
from ohmlearn.serve.serve_errors import Refused

MOST_KEPT = 256  # replies of the last answer, for clients that ask again
STABILITY_SECONDS = 60.0  # between measurements of how stable the sparsifier is: they take 4 solves
REMEDY = "all_edges=true computes reasons from all edges"
NO_LABELS = "there are no labels, or no edges, so there are no reasons"
TOO_NEW = "it came after the last answer, so there are no reasons yet"


class Explainer:
    """Explains the last answers; may be called by several threads."""

    def __init__(self, labeller: Labeller, nodes: NodeTable) -> None:
        self._labeller, self._nodes = labeller, nodes
        self._guard, self._passes = threading.Lock(), threading.Lock()
        self._replies: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._stability: tuple[float, float] | None = None  # when it was measured, and what it was

    def why(
        self,
        node: int | str,
        *,
        against: str | None = None,
        n_labels: int = 5,
        n_edges: int = 20,
        changes: bool = False,
        all_edges: bool = False,
    ) -> tuple[Solved, dict[str, Any]]:
        """Return the reasons for the label of a node as data, and the answer that they are of."""
        (number,) = find_numbers(self._nodes, [node]).tolist()
        if number < 0:
            raise Refused(404, f"node {node!r} is not known; no edge has it")
        solved = self._solved()
        key = (solved.answers.version, number, against, n_labels, n_edges, changes, all_edges)
        with self._guard:
            found = self._replies.get(key)
        if found is None:
            one = self._explain(solved, number, against, n_labels, n_edges, all_edges)
            found = replace(one, node=node).to_dict(changes=changes)
            with self._guard:
                if self._replies and next(iter(self._replies))[0] != key[0]:
                    self._replies.clear()
                self._replies[key] = found
                while len(self._replies) > MOST_KEPT:
                    self._replies.popitem(last=False)
        return solved, found

    def _solved(self) -> Solved:
        solved = self._labeller.solved
        if solved is None:
            raise Refused(503, "the first answer is being computed; try again in a moment")
        return solved

    def _explain(
        self,
        solved: Solved,
        number: int,
        against: str | None,
        n_labels: int,
        n_edges: int,
        all_edges: bool,
    ) -> Explanation:
        answer = solved.answer
        if answer is None or number >= solved.answers.n_nodes:
            why = NO_LABELS if answer is None else TOO_NEW
            return Explanation(number, None, None, float("nan"), float("nan"), [], note=why)
        how: dict[str, Any] = {"against": against, "n_labels": n_labels, "n_edges": n_edges}
        if not all_edges or answer.problem.holds_all_edges:
            self._know_stability(answer)
            return explain_nodes(answer, [number], remedy=REMEDY, **how)[0]
        if not self._passes.acquire(blocking=False):
            raise Refused(
                429, "reasons from all edges are being computed for another request",
                retry_after=2.0,
            )  # fmt: skip
        try:
            (found,) = explain_nodes(answer, [number], edges=solved.moment.live, **how)
        finally:
            self._passes.release()
        shown = solved.answers.label_of(number)
        if found.label != shown:
            differs = f"the answer that is served is {shown!r}, from the edges kept alone"
            found = replace(found, note="; ".join(part for part in (found.note, differs) if part))
        return found

    def _know_stability(self, answer: ClassAnswer) -> None:
        """Take the stability of an earlier answer, if it was measured a moment ago."""
        if answer.problem.holds_all_edges or answer.result.passes > 0:
            return
        now, known = time.monotonic(), self._stability
        if known is not None and now - known[0] < STABILITY_SECONDS:
            answer.fraction_unstable = known[1]
        else:
            self._stability = now, answer.fraction_unstable
