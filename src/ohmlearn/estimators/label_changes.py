"""Which labels differ between two answers for the same nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.answer import ClassAnswer

SHOWN = 5  # kinds of changes in a sentence


class NodeChange(NamedTuple):
    """A node whose label changed; a label is None where there is no evidence."""

    node: Any
    before: Any
    after: Any
    probability: float


@dataclass(frozen=True)
class ChangedLabels:
    """What changed since another answer.

    Attributes
    ----------
    n_compared : int
        Number of nodes that both answers have.
    counts : dict {(before, after): int}
        Number of nodes for each change, the largest first.
    surest : list of NodeChange
        The changes with the largest probability of the new label.

    Examples
    --------
    >>> print(ChangedLabels(2000, {("fine", "fraud"): 40, (None, "fine"): 2}, []))
    42 of 2,000 nodes have another label: 40 from "fine" to "fraud", 2 from no label to "fine"
    """

    n_compared: int
    counts: dict[tuple[Any, Any], int]
    surest: list[NodeChange]

    def __str__(self) -> str:
        found = f"{sum(self.counts.values()):,} of {self.n_compared:,} nodes have another label"
        kinds = [
            f"{number:,} from {_quote(before)} to {_quote(after)}"
            for (before, after), number in list(self.counts.items())[:SHOWN]
        ]
        return f"{found}: {', '.join(kinds)}" if kinds else found


def compare_labels(now: ClassAnswer, past: ClassAnswer, n: int) -> ChangedLabels:
    """Return what changed since another answer, with the `n` surest changes."""
    here, there = now.problem.nodes, past.problem.nodes
    if here is None and there is None:
        nodes = places = np.arange(min(now.problem.n_nodes, past.problem.n_nodes))
    elif here is None or there is None:
        raise InputError(
            f"{Param('other')}: nodes have {'ids' if here is None else 'numbers'} there and "
            f"{'numbers' if here is None else 'ids'} here, so they cannot be matched; fit both "
            f"models to edges with ids"
        )
    else:
        found = there.find(here.ids(np.arange(now.problem.n_nodes)), missing="mask")
        nodes = np.flatnonzero(~np.ma.getmaskarray(found))
        places = found.compressed().astype(np.int64)
        both = places < past.problem.n_nodes
        nodes, places = nodes[both], places[both]
    after, before = _labels(now)[nodes], _labels(past)[places]
    changed = np.flatnonzero(after != before)
    p = now.probabilities[nodes[changed]].max(axis=1)
    counts = Counter(zip(before[changed].tolist(), after[changed].tolist(), strict=True))
    order = np.argsort(-p, kind="stable")[:n]
    at = changed[order]
    columns = name_nodes(now, nodes[at]), before[at].tolist(), after[at].tolist(), p[order].tolist()
    surest = [NodeChange(*row) for row in zip(*columns, strict=True)]
    return ChangedLabels(len(nodes), dict(counts.most_common()), surest)


def name_nodes(answer: ClassAnswer, nodes: NDArray[np.int64]) -> list[Any]:
    """Return the ids of nodes, or their numbers if there are no ids."""
    table = answer.problem.nodes
    found: list[Any] = (nodes if table is None else table.ids(nodes)).tolist()
    return found


def _labels(answer: ClassAnswer) -> NDArray[np.object_]:
    """Return the labels of all nodes; None where there is no evidence."""
    labels = answer.labels.astype(object)
    labels[~answer.reached] = None
    return labels


def _quote(label: Any) -> str:
    return "no label" if label is None else f'"{label}"'
