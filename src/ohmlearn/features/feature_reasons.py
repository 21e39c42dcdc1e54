"""Why a node has its label, if features and edges decide together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ohmlearn.estimators.explanation import choose_other, explain_nodes
from ohmlearn.estimators.reasons import Explanation, as_json_object, quote

REMEDY = "keep more edges, with a lower epsilon"
WORDS = {  # the experts
    "features": "its own features",
    "both": "features smoothed along the edges",
    "graph": "edges and labels alone",
}


@dataclass(frozen=True, repr=False)
class PooledExplanation:
    """What each expert adds to the answer of a node; see `GraphFeatureClassifier.explain`.

    Attributes
    ----------
    node, label, against
        As those of `Explanation`; `against` is None for numbers.
    probability : float
    margin : float
        Difference of the pooled probabilities of the two classes, before the calibration; for
        numbers, the pooled value.
    experts : dict
        What "features", "both" and "graph" add to the margin: their weights times the same
        difference. They sum to the margin, up to the rounding to float32 and, at a labelled node,
        its own label.
    graph : Explanation
        The reasons of the edges and labels alone, which may have another answer.
    """

    node: object
    label: object
    against: object
    probability: float
    margin: float
    experts: dict[str, float]
    graph: Explanation

    @property
    def basis(self) -> str:
        """Which edges the reasons of `graph` are from."""
        return self.graph.basis

    def text(self, *, changes: bool = True) -> str:
        """Return the reasons as a person would say them; `changes` as in `Explanation.text`."""
        parts = sorted(self.experts.items(), key=lambda one: -abs(one[1]))
        shown = ", ".join(f"{WORDS[name]} {value:+.2f}" for name, value in parts)
        head = f"{self.node} has the value {self.label}"
        if self.against is not None:
            head = f"{self.node} is {quote(self.label)} ({100 * self.probability:.0f}%)"
            head += f", not {quote(self.against)}"
        return f"{head}: {shown}. By edges and labels alone, {self.graph.text(changes=changes)}"

    def __str__(self) -> str:
        return self.text(changes=False)

    def __repr__(self) -> str:
        return f"<PooledExplanation: {self}>"

    def to_dict(self, *, changes: bool = False) -> dict[str, Any]:
        """Return the reasons as values that JSON has."""
        graph = self.graph.to_dict(changes=changes)
        return as_json_object({**vars(self), "graph": graph})

    def to_json(self, *, changes: bool = False) -> str:
        """Return `to_dict` as a line of JSON."""
        return json.dumps(self.to_dict(changes=changes), ensure_ascii=False, allow_nan=False)


def explain_pool(
    answer: Any,
    nodes: Sequence[int],
    *,
    against: object = None,
    n_labels: int | None = 5,
    n_edges: int = 20,
) -> list[PooledExplanation]:
    """Return the reasons for the answers of some nodes, given by number."""
    problem = answer.problem  # of a FeatureClassAnswer, or of a FeatureAnswer of numbers
    graph = answer.experts.graph_answer(problem.classes)
    how: dict[str, Any] = {"n_labels": n_labels, "n_edges": n_edges, "remedy": REMEDY}
    reasons = explain_nodes(graph, nodes, **how)
    found = []
    for node, why in zip(nodes, reasons, strict=True):
        values, parts = answer.values[node], answer.parts[:, node].astype(np.float64)
        label, other, probability = float(values[0]), None, float("nan")
        if problem.classes is not None:
            code = int(np.argmax(values))
            rival = choose_other(problem.classes, values, code, against)
            label, other = (problem.classes[one].item() for one in (code, rival))
            probability = float(answer.probabilities[node, code])
            values, parts = values[code] - values[rival], parts[:, code] - parts[:, rival]
        experts = dict(zip(WORDS, np.ravel(parts).tolist(), strict=True))
        answered = why.node, label, other, probability, float(np.ravel(values)[0])
        found.append(PooledExplanation(*answered, experts, why))
    return found
