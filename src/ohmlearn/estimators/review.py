"""What a person with limited time should look at: the surest nodes, and those above a threshold.

Labels that are left out, one at a time, say how many answers above a threshold are right. Of the
left-out labels whose probability of a class is at least t, the fraction that have this class
estimates the precision, and of the labels of the class, the fraction with such a probability
estimates the recall. A review also says which labels differ from those of an earlier answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ohmlearn._display import Tabular
from ohmlearn.errors import InputError, InputTypeError, Param
from ohmlearn.estimators.answer import ClassAnswer, by_blocks
from ohmlearn.estimators.calibration import AccuracyEstimate, estimate_accuracy
from ohmlearn.estimators.reasons import as_json_object, quote
from ohmlearn.nodes import NodeTable

if TYPE_CHECKING:
    from ohmlearn.features.feature_classifier import FeatureClassAnswer

Answer: TypeAlias = "ClassAnswer | FeatureClassAnswer"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LISTED = 20  # nodes of each kind
SHOWN = 5  # kinds of changes in a sentence
FEW = 5  # labels; fewer say nothing about a precision or a recall


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

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as values that JSON has."""
        counts = [{"before": a, "after": b, "n_nodes": n} for (a, b), n in self.counts.items()]
        return as_json_object({**vars(self), "counts": counts, "text": str(self)})

    def __str__(self) -> str:
        found = f"{sum(self.counts.values()):,} of {self.n_compared:,} nodes have another label"
        kinds = [
            f"{number:,} from {_say(before)} to {_say(after)}"
            for (before, after), number in list(self.counts.items())[:SHOWN]
        ]
        return f"{found}: {', '.join(kinds)}" if kinds else found


def compare_labels(
    now: Answer, past: NDArray[np.object_], there: NodeTable | None, n: int
) -> ChangedLabels:
    """Return what changed since there were other labels, with the `n` surest changes.

    `past` are the labels of nodes that have their numbers in the table `there`.
    """
    here = now.problem.nodes
    if here is there:  # tables only grow
        nodes = places = np.arange(min(now.problem.n_nodes, len(past)))
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
        both = places < len(past)
        nodes, places = nodes[both], places[both]
    after, before = known_labels(now)[nodes], past[places]
    changed = np.flatnonzero(after != before)
    p = now.probabilities[nodes[changed]].max(axis=1)
    counts = Counter(zip(before[changed].tolist(), after[changed].tolist(), strict=True))
    order = np.argsort(-p, kind="stable")[:n]
    at = changed[order]
    columns = name_nodes(now, nodes[at]), before[at].tolist(), after[at].tolist(), p[order].tolist()
    surest = [NodeChange(*row) for row in zip(*columns, strict=True)]
    return ChangedLabels(len(nodes), dict(counts.most_common()), surest)


def name_nodes(answer: Answer, nodes: NDArray[np.int64]) -> list[Any]:
    """Return the ids of nodes, or their numbers if there are no ids."""
    table = answer.problem.nodes
    found: list[Any] = (nodes if table is None else table.ids(nodes)).tolist()
    return found


def known_labels(answer: Answer) -> NDArray[np.object_]:
    """Return the labels of all nodes; None where there is no evidence."""
    classes = np.append(np.asarray(answer.problem.classes, object), np.array([None]))
    return classes[np.where(answer.answered, answer.codes(0), -1)]


def _say(label: object) -> str:
    return "no label" if label is None else quote(label)


class ReviewedNode(NamedTuple):
    """An unlabelled node, the probability of its class, and the second most likely class."""

    node: object
    probability: float
    against: object


class Threshold(NamedTuple):
    """Number of unlabelled nodes whose probability of a class is at least `threshold`.

    `precision` estimates the fraction of them that have the class, and `recall` the fraction of
    the nodes of the class that are among them, with 95% intervals; None if fewer than five labels
    say anything.
    """

    label: object
    threshold: float
    n_nodes: int
    precision: AccuracyEstimate | None
    recall: AccuracyEstimate | None

    def __str__(self) -> str:
        nodes = "node is" if self.n_nodes == 1 else "nodes are"
        found = f'p >= {self.threshold:g}: {self.n_nodes:,} {nodes} "{self.label}", '
        if self.precision is None:
            return found + "but too few labels say how many of them are right"
        found += f"about {_percent(self.precision, 'of them right')}"
        if self.recall is None:
            return found
        of_all = f'of all "{self.label}"'
        return f"{found}; this is about {_percent(self.recall, of_all)}"


@dataclass(frozen=True, repr=False)
class Review(Tabular):
    """What to look at; see `HFSClassifier.review`.

    Attributes
    ----------
    surest, borderline : dict {class: list of ReviewedNode}
        Unlabelled nodes with this label: the surest ones, and those whose second class is nearly
        as probable.
    thresholds : list of Threshold
        For each class and threshold, number of nodes and estimated precision and recall.

    Examples
    --------
    >>> from ohmlearn import HFSClassifier, gallery
    >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 2)}
    >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), labels)
    >>> [one.node for one in model.review(n=2).surest["left"]]
    [7, 5]
    """

    surest: dict[Any, list[ReviewedNode]]
    borderline: dict[Any, list[ReviewedNode]]
    thresholds: list[Threshold]
    answer: Answer = field(compare=False)

    def __str__(self) -> str:
        return "\n".join(str(row) for row in self.thresholds if row.n_nodes > 0)

    def __repr__(self) -> str:
        return f"<Review of {len(self.surest)} classes>\n{self}"

    def to_dict(self) -> dict[str, Any]:
        """Return the review as values that JSON has: a dict for each class."""
        by_class = [
            {
                "label": label, "surest": self.surest[label], "borderline": self.borderline[label],
                "thresholds": [
                    {**row._asdict(), "text": str(row)}
                    for row in self.thresholds if row.label == label
                ],
            }
            for label in self.surest
        ]  # fmt: skip
        return as_json_object({"classes": by_class})

    def _columns(self) -> dict[str, Any]:
        """Return columns with a row for each class and threshold."""
        nothing = (np.nan, np.nan, np.nan, 0)
        rows = [(*row[:3], *(row.precision or nothing), *(row.recall or nothing))
                for row in self.thresholds]  # fmt: skip
        ends = [f"{what}{end}" for what in ("precision", "recall")
                for end in ("", "_low", "_high", "_labels")]  # fmt: skip
        names = ("label", "threshold", "n_nodes", *ends)
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def changed_since(self, other: object, *, n: int = LISTED) -> ChangedLabels:
        """Return how labels differ from those of another review or model of the same nodes.

        Parameters
        ----------
        other : Review or HFSClassifier
            The earlier one. If the edges have ids, nodes are matched by id; new nodes do not count.
        n : int
            Number of nodes to list, those with the largest probability of the new label.
        """
        earlier = other.answer if isinstance(other, Review) else getattr(other, "answer_", None)
        if not isinstance(earlier, type(self.answer)):
            what = f"must be a Review or a fitted model, got {type(other).__name__}"
            raise InputTypeError(f"{Param('other')} {what}")
        return compare_labels(self.answer, known_labels(earlier), earlier.problem.nodes, n)


def review_answer(
    answer: Answer, n: int = LISTED, thresholds: Sequence[float] = THRESHOLDS
) -> Review:
    """Return the review of an answer."""
    classes, p = np.asarray(answer.problem.classes).tolist(), answer.probabilities
    nodes, codes, own, others, lead = _rank_nodes(answer)
    left_out, given, weights = answer.left_out_values()

    def listed(order: NDArray[np.float64], these: NDArray[np.intp]) -> list[ReviewedNode]:
        chosen = these[np.argsort(order[these], kind="stable")[:n]]
        ids = name_nodes(answer, nodes[chosen])
        rivals = [classes[k] if len(classes) > 1 else None for k in others[chosen].astype(int)]
        return [ReviewedNode(*row) for row in zip(ids, own[chosen].tolist(), rivals, strict=True)]

    surest, borderline, found = {}, {}, []
    for code, name in enumerate(classes):
        these = np.flatnonzero(codes == code)
        surest[name], borderline[name] = listed(-own, these), listed(lead, these)
        for t in thresholds:
            above, y = left_out[:, code] >= t, given[:, code]
            precision = _estimate(y[above], weights[above])
            recall = _estimate(above[y > 0], (weights * y)[y > 0])
            count = int(np.count_nonzero(p[nodes, code] >= t))
            found.append(Threshold(name, float(t), count, precision, recall))
    return Review(surest, borderline, found, answer)


def choose_nodes(answer: Answer, which: str, count: int) -> list[int]:
    """Return the nodes without a label that are the surest of each class, or the closest calls."""
    nodes, codes, own, _, lead = _rank_nodes(answer)
    if which == "borderline":
        chosen = np.argsort(lead, kind="stable")[:count]
    else:
        order = np.lexsort((-own, codes))
        starts = np.searchsorted(codes[order], codes[order])
        chosen = order[np.arange(len(order)) - starts < count]
    found: list[int] = nodes[chosen].tolist()
    return found


def _rank_nodes(answer: Answer) -> tuple[NDArray[Any], ...]:
    """Return the unlabelled nodes, their classes, and of each what `_compare_classes` returns."""
    unlabelled = answer.answered.copy()
    unlabelled[answer.problem.labels.nodes] = False
    nodes, codes = np.flatnonzero(unlabelled), answer.codes(0)
    return nodes, codes[nodes], *by_blocks(_compare_classes, answer.probabilities, codes)[nodes].T


def _compare_classes(p: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the probability of a class, the best other class, and how far this one is behind."""
    rest, at = p.copy(), np.arange(len(p))
    own = p[at, codes]
    rest[at, codes] = -1.0
    others = rest.argmax(axis=1)
    return np.column_stack([own, others, own - np.maximum(rest[at, others], 0.0)])


def _estimate(right: NDArray[Any], weights: NDArray[np.float64]) -> AccuracyEstimate | None:
    return estimate_accuracy(right.astype(np.float64), weights) if len(right) >= FEW else None


def _percent(one: AccuracyEstimate, what: str) -> str:
    return f"{100 * one.value:.0f}% {what} ({100 * one.low:.0f}-{100 * one.high:.0f}%)"
