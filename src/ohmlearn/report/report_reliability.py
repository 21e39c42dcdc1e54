"""Reliability diagram: are labels of probability p right in a share p of cases?"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.estimators.calibration import estimate_accuracy
from ohmlearn.report.html_page import COLOURS, INK, new_figure, style_axes

__all__ = ["Group", "draw_reliability", "group_by_probability"]

Floats = NDArray[np.float64]
N_GROUPS = 10


class Group(NamedTuple):
    """Labels of about the same probability."""

    probability: float
    right: float  # share
    low: float
    high: float
    n_labels: int


def group_by_probability(probability: Floats, right: Floats, weights: Floats) -> list[Group]:
    """Return groups of labels whose probabilities are between two tenths.

    Examples
    --------
    >>> groups = group_by_probability(np.repeat([0.55, 0.9], 10), np.ones(20), np.ones(20))
    >>> [(round(group.probability, 2), group.right, group.n_labels) for group in groups]
    [(0.55, 1.0, 10), (0.9, 1.0, 10)]
    """
    numbers = np.minimum((probability * N_GROUPS).astype(np.intp), N_GROUPS - 1)
    groups = []
    for number in np.unique(numbers):
        part = numbers == number
        share = estimate_accuracy(right[part], weights[part])
        mean = float(np.average(probability[part], weights=weights[part]))
        groups.append(Group(mean, *share))
    return groups


def draw_reliability(groups: list[Group]) -> Any:
    """Return a figure with the share of right labels in each group, and the diagonal."""
    figure = new_figure(7.0, 3.4)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.5, linewidth=1, linestyle="--")
    p, right, low, high, n_labels = (np.array(values) for values in zip(*groups, strict=True))
    axes.vlines(p, low, high, color=COLOURS[0], alpha=0.5, linewidth=2)
    axes.scatter(p, right, s=20 + 230 * n_labels / n_labels.sum(), color=COLOURS[0], zorder=3)
    style_axes(axes, xlabel="probability of the label", ylabel="share of right labels")
    axes.set(xlim=(0, 1), ylim=(-0.03, 1.05))
    return figure
