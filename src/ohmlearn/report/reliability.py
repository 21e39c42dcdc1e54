"""Reliability diagram: are labels of probability p right in a share p of cases?"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.report.page import COLOURS, INK, new_figure, style_axes
from ohmlearn.semi_supervised.calibration import estimate_accuracy

__all__ = ["Group", "draw_reliability", "group_by_probability", "left_out_labels"]

Floats = NDArray[np.float64]
MOST_GROUPS = 10
GROUP_SIZE = 10  # labels; with fewer, the share that is right is hardly known


class Group(NamedTuple):
    """Labels of about the same probability."""

    probability: float
    right: float  # share
    low: float
    high: float
    n_labels: int


def left_out_labels(model: Any) -> tuple[Floats, Floats, Floats]:
    """Return probabilities of labels that were left out, whether they are right, and weights.

    A label is left out only if its class has other labels: otherwise the answer must be wrong.
    """
    known = model._known
    labels, _, usable = known.left_out
    p = known.left_out_probabilities[usable]
    codes = np.argmax(p, axis=1)
    right = known.labels.values[labels[usable], codes]
    return p.max(axis=1), right, known.label_weights[usable]


def group_by_probability(probability: Floats, right: Floats, weights: Floats) -> list[Group]:
    """Return groups of about equal size, at most ten of at least ten labels, and at least one.

    Examples
    --------
    >>> groups = group_by_probability(np.repeat([0.5, 0.9], 10), np.ones(20), np.ones(20))
    >>> [(group.probability, group.right, group.n_labels) for group in groups]
    [(0.5, 1.0, 10), (0.9, 1.0, 10)]
    """
    n_groups = int(np.clip(len(probability) // GROUP_SIZE, 1, MOST_GROUPS))
    groups = []
    for part in np.array_split(np.argsort(probability, kind="stable"), n_groups):
        share = estimate_accuracy(right[part], weights[part])
        mean = float(np.average(probability[part], weights=weights[part]))
        groups.append(Group(mean, share.value, share.low, share.high, len(part)))
    return groups


def draw_reliability(groups: list[Group]) -> Any:
    """Return a figure with the share of right labels in each group, and the diagonal."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.4, linewidth=1, linestyle="--")
    p, right, low, high, _ = (np.array(values) for values in zip(*groups, strict=True))
    axes.errorbar(
        p, right, [np.maximum(right - low, 0.0), np.maximum(high - right, 0.0)],
        fmt="o-", color=COLOURS[0], linewidth=1.5, markersize=6, elinewidth=1, capsize=3,
    )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), aspect="equal")
    style_axes(axes, xlabel="probability of the label", ylabel="share of right labels")
    return figure
