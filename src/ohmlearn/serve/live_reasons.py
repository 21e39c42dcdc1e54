"""Reasons for the last answers, for single nodes and for changes, computed when they are asked for.

They come from the edges kept, whose solves take a fraction of a second; all edges of the log are
read only if a client wants that, for one request at a time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ohmlearn.estimators.answer import ClassAnswer
from ohmlearn.estimators.explanation import explain_nodes
from ohmlearn.estimators.reasons import Explanation
from ohmlearn.estimators.review import review_answer
from ohmlearn.nodes import NodeTable
from ohmlearn.serve.answer_store import find_numbers
from ohmlearn.serve.label_thread import Labeller, Solved
from ohmlearn.serve.serve_errors import Refused

MOST_KEPT = 256  # replies of the last answer, for clients that ask again
STABILITY_SECONDS = 60.0  # between measurements of how stable the sparsifier is: they take 4 solves
REMEDY = "all_edges=true computes reasons from all edges"
NO_LABELS = "there are no labels, or no edges, so there are no reasons"
MOST_CHANGES = 20  # with reasons, in one request
MOST_NAMED, MOST_LABELS = 3, 5
NOT_LAST = "Reasons are known for the changes of the last answer only."
NOT_KEPT = "The answer before the last one is not kept, so its reasons are not known."
NO_PASSES = "/v1/labels/{id}/why computes reasons of the present label from all edges"
WITH_FEATURES = "With features, reasons are known for the present label only."
NO_PICTURE: dict[str, Any] = {"labels": [], "paths": [], "neighbors": [], "edges": [], "note": ""}
UNREACHED = "no label reaches it, so it has none"
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
        how: dict[str, Any] = {"against": against, "n_labels": n_labels, "n_edges": n_edges}

        def find() -> dict[str, Any]:
            if solved.pool is not None and solved.answers.has(number):
                from ohmlearn.features.feature_reasons import explain_pool

                (whole,) = explain_pool(solved.pool, [number], **how)
                text = whole.text(changes=changes)
                pooled = {**NO_PICTURE, **whole.to_dict(changes=changes)}
                return {**pooled, "node": node, "text": text}
            one = self._explain(solved, number, all_edges, how)
            found = replace(one, node=node).to_dict(changes=changes)
            if one.label is None:
                found["text"] = f"{node}: {one.note}."
            return found

        key = (solved.answers.version, number, against, n_labels, n_edges, changes, all_edges)
        return solved, self._find_once(key, find)

    def review(self, n: int) -> tuple[Solved, dict[str, Any]]:
        """Return what to look at as data, with `n` nodes of each kind, and the answer it is of."""
        solved = self._solved()
        answer = solved.pool or solved.answer
        if answer is None:
            return solved, {"classes": []}
        key = (solved.answers.version, n)
        return solved, self._find_once(key, lambda: review_answer(answer, n).to_dict())

    def _find_once(
        self, key: tuple[Any, ...], find: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return a reply that is kept until the next answer; a key starts with the version."""
        with self._guard:
            found = self._replies.get(key)
        if found is None:
            found = find()
            with self._guard:
                if self._replies and next(iter(self._replies))[0] != key[0]:
                    self._replies.clear()
                self._replies[key] = found
                while len(self._replies) > MOST_KEPT:
                    self._replies.popitem(last=False)
        return found

    def _solved(self) -> Solved:
        solved = self._labeller.solved
        if solved is None:
            raise Refused(503, "the first answer is being computed; try again in a moment")
        return solved

    def _explain(
        self, solved: Solved, number: int, all_edges: bool, how: dict[str, Any]
    ) -> Explanation:
        answer = solved.answer
        is_new = number >= solved.answers.n_nodes
        if answer is None or not solved.answers.has(number):
            why = NO_LABELS if answer is None else TOO_NEW if is_new else UNREACHED
            return Explanation(number, None, None, float("nan"), float("nan"), [], note=why)
        if not all_edges or answer.problem.holds_all_edges:
            self._know_stability(answer)
            return explain_nodes(answer, [number], remedy=REMEDY, **how)[0]
        if not self._passes.acquire(blocking=False):
            why = "reasons from all edges are being computed for another request"
            raise Refused(429, why, retry_after=2.0)
        try:
            (found,) = explain_nodes(answer, [number], edges=solved.moment.live, **how)
        finally:
            self._passes.release()
        shown = solved.answers.label_of(number)
        if shown is not None and found.label != shown:  # None: it is not probable enough
            differs = f"the answer that is served is {shown!r}, from the edges kept alone"
            found = replace(found, note="; ".join(part for part in (found.note, differs) if part))
        return found

    def measure(self, answer: ClassAnswer) -> None:
        """Measure how stable the sparsifier is, if that is long ago; not while a client waits."""
        known, is_sample = self._stability, not answer.problem.holds_all_edges
        if is_sample and (known is None or time.monotonic() - known[0] > STABILITY_SECONDS):
            self._stability = time.monotonic(), answer.fraction_unstable

    def _know_stability(self, answer: ClassAnswer) -> None:
        """Let an answer have the stability that was measured last."""
        if self._stability is None:
            self.measure(answer)
        if self._stability is not None and not answer.problem.holds_all_edges:
            answer.fraction_unstable = self._stability[1]

    # Changes.

    def explain_changes(self, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return changes with their reasons: differences of reasons before and after.

        They are known for the changes of the last answer, if the one before it is kept.
        """
        before, solved = self._labeller.previous, self._labeller.solved
        numbers = find_numbers(self._nodes, [one["node"] for one in changes]).tolist()
        found: list[dict[str, Any]] = [{**one, "reason": None} for one in changes]
        groups: dict[tuple[Any, Any], list[int]] = {}
        for at, one in enumerate(changes[:MOST_CHANGES]):
            if solved is None or one["version"] != solved.answers.version:
                found[at]["reason"] = {"text": NOT_LAST, "labels": []}
            elif solved.pool is not None:
                found[at]["reason"] = {"text": WITH_FEATURES, "labels": []}
            elif before is None or before.answers.version != solved.answers.version - 1:
                found[at]["reason"] = {"text": NOT_KEPT, "labels": []}
            else:
                groups.setdefault((one["before"], one["after"]), []).append(at)
        for (old, new), places in groups.items():
            assert solved is not None
            assert before is not None
            nodes = [numbers[at] for at in places]
            pairs = zip(
                self._contributions(solved, nodes, new, old),
                self._contributions(before, nodes, old, new), strict=True,
            )  # fmt: skip
            for at, (now, then) in zip(places, pairs, strict=True):
                found[at]["reason"] = compare_reasons(changes[at], now, then)
        return found

    def _contributions(
        self, solved: Solved, nodes: list[int], label: str | None, against: str | None
    ) -> list[Explanation | None]:
        """Return all contributions to a label in an answer; None if the node has no label there."""
        answer = solved.answer
        if answer is None or label is None:
            return [None] * len(nodes)
        self._know_stability(answer)
        if against not in solved.answers.classes:
            against = None
        how: dict[str, Any] = {"n_labels": None, "n_edges": 0, "remedy": NO_PASSES}
        return list(explain_nodes(answer, nodes, against=against, **how))


def compare_reasons(
    change: dict[str, Any], now: Explanation | None, then: Explanation | None
) -> dict[str, Any]:
    """Return which contributions have changed most between two answers for a node."""
    head = f'{change["node"]} changed from "{change["before"]}" to "{change["after"]}"'
    if now is None:
        return {"text": f"{change['node']} has no label any more: none reaches it.", "labels": []}
    doubt = now.note if not now.labels else "" if then is None or then.labels else then.note
    if doubt:
        return {"text": f"{head}. {doubt[0].upper()}{doubt[1:]}.", "labels": []}
    # Contributions to the former label, against the present one, count with the other sign.
    old = {} if then is None else {one.node: one for one in then.labels}
    new = {one.node: one for one in now.labels}
    total = now.margin + (0.0 if then is None else then.margin)
    rows: list[dict[str, Any]] = []
    for node in old | new:
        a, b = old.get(node), new.get(node)
        was, is_now = -a.contribution if a else 0.0, b.contribution if b else 0.0
        if a is None or b is None:
            since = "given" if a is None else "taken away"
        else:
            since = "" if a.label == b.label else "changed"
        label = b.label if b else a.label if a else None
        row = {"node": node, "label": label, "before": was, "after": is_now, "since": since}
        rows.append({**row, "fraction": (is_now - was) / total if total else None})
    rows.sort(key=lambda row: -abs(row["after"] - row["before"]))
    count = sum(row["since"] != "" for row in rows)
    said = (
        f"{count} label{' was' if count == 1 else 's were'} given, changed or taken away since"
        if count
        else "no label was given or taken away since, so it is due to edges that came or went"
    )
    named = ", ".join(
        f"{row['node']} ({row['label']}{', ' + row['since'] if row['since'] else ''}, "
        f"{100 * (row['fraction'] or 0.0):+.0f}%)"
        for row in rows[:MOST_NAMED]
        if abs(row["after"] - row["before"]) > 0.1 * abs(rows[0]["after"] - rows[0]["before"])
    )
    if change["before"] is None:
        head = f'{change["node"]} became "{change["after"]}", and had no label before'
    text = f"{head}: {said}" + (f"; the labels that count differently are {named}" if named else "")
    return {"text": text + ".", "labels": rows[:MOST_LABELS], "basis": now.basis}
