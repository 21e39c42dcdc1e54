"""Whether nodes that are joined are alike: in their labels, and in their features."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import check_n_jobs
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.features.experts import Experts
from ohmlearn.features.mixture import split_labels, splits
from ohmlearn.graph import Graph

__all__ = ["Homophily", "measure_homophily"]

Floats = NDArray[np.float64]
ENOUGH = 50  # edges between labelled nodes
REACH = 4.0  # gamma of the neighbourhood in which labels are compared if there are fewer
MOST_COLUMNS = 64  # of the features, drawn at random


class Homophily(NamedTuple):
    """How much alike joined nodes are: 1 if equal, 0 as by chance, negative if they are opposites.

    Attributes
    ----------
    labels : float
        Of labels: how much more often than by chance two joined nodes have the same one, or for
        numbers, their correlation. If fewer than 50 edges join labelled nodes, labels that are
        nearby are compared instead. NaN if there are too few labels, or all are the same.
    features : float
        Of features: correlation of the features at both ends of edges. NaN if there is no edge, or
        no column that varies.

    Examples
    --------
    >>> print(Homophily(labels=0.71, features=0.3))
    labels of joined nodes are much alike (0.71), features somewhat (0.30)
    """

    labels: float
    features: float

    def __str__(self) -> str:
        return (
            f"labels of joined nodes are {_in_words(self.labels)} ({self.labels:.2f}), features "
            f"{_in_words(self.features).removesuffix(' alike')} ({self.features:.2f})"
        )


def _in_words(value: float) -> str:
    if np.isnan(value):
        return "not known"
    steps = ((0.5, "much alike"), (0.2, "somewhat alike"), (0.05, "little alike"))
    other = "not alike" if value > -0.3 else "opposites"
    return next((words for least, words in steps if value >= least), other)


def measure_homophily(experts: Experts, labels: NodeLabels, n_folds: int) -> Homophily:
    """Measure homophily of labels, some of which are left out in turn, and of features."""
    found = _along_edges(experts.graph, labels)
    if found is None:
        found = _nearby(experts, labels, n_folds)
    return Homophily(found, _of_features(experts))


def _along_edges(graph: Graph, labels: NodeLabels) -> float | None:
    """Return how alike the labels at both ends of edges are, relative to chance; None if few."""
    place = np.full(graph.n_nodes, -1)
    place[labels.nodes] = np.arange(len(labels.nodes))
    u, v, w = graph.edges()
    between = (place[u] >= 0) & (place[v] >= 0)
    if np.count_nonzero(between) < ENOUGH:
        return None
    first, second = (labels.values[place[end[between]]] for end in (u, v))
    w = w[between]
    if labels.values.shape[1] == 1:
        a, b = np.concatenate([first, second])[:, 0], np.concatenate([second, first])[:, 0]
        return _correlation(a, b, np.concatenate([w, w]))
    same = float(np.average(np.sum(first * second, axis=1), weights=w))
    shares = np.average((first + second) / 2.0, axis=0, weights=w)
    expected = float(np.sum(shares**2))
    return (same - expected) / (1.0 - expected) if expected < 1.0 else float("nan")


def _nearby(experts: Experts, labels: NodeLabels, n_folds: int) -> float:
    """Return how alike labels nearby are, relative to chance, if some are left out in turn.

    For classes, the share of the own class among nearby labels; for numbers, the correlation with
    their mean.
    """
    values = labels.values
    is_number = values.shape[1] == 1
    folds = split_labels(experts.task.groups(labels), n_folds, experts.seed)
    if len(np.unique(folds)) < 2:
        return float("nan")
    smoothing = experts.smoothing(REACH)
    found = np.zeros_like(values)
    seen = np.zeros(len(values), dtype=bool)
    chance = np.zeros_like(values)
    for train, test in splits(folds):
        near = np.zeros((experts.graph.n_nodes, values.shape[1] + 1))
        near[labels.nodes[train], :-1] = labels.weights[train, np.newaxis] * values[train]
        near[labels.nodes[train], -1] = labels.weights[train]
        around = smoothing.apply_quietly(near)[labels.nodes[test]]
        mass = around[:, -1]
        seen[test] = mass > 1e-9 * labels.weights[train].sum() / experts.graph.n_nodes
        found[test] = around[:, :-1] / np.where(seen[test], mass, 1.0)[:, np.newaxis]
        chance[test] = np.average(values[train], axis=0, weights=labels.weights[train])
    weights = labels.weights[seen]
    if not seen.any():
        return float("nan")
    if is_number:
        return _correlation(found[seen, 0], values[seen, 0], weights)
    own = np.average(np.sum(found[seen] * values[seen], axis=1), weights=weights)
    expected = np.average(np.sum(chance[seen] * values[seen], axis=1), weights=weights)
    return float((own - expected) / (1.0 - expected)) if expected < 1.0 else float("nan")


def _correlation(a: Floats, b: Floats, weights: Floats) -> float:
    a, b = a - np.average(a, weights=weights), b - np.average(b, weights=weights)
    size = float(np.sqrt(float(weights @ a**2) * float(weights @ b**2)))
    return float(weights @ (a * b)) / size if size > 0 else float("nan")


def _of_features(experts: Experts) -> float:
    """Return 1 - (mean squared difference along edges) / (the same for random ends of edges)."""
    n_columns = experts.features.shape[1]
    degrees = experts.graph.degrees
    chosen = np.arange(n_columns)
    if n_columns > MOST_COLUMNS:
        generator = np.random.default_rng(experts.seed)
        chosen = np.sort(generator.choice(n_columns, MOST_COLUMNS, replace=False))
    total = degrees.sum()
    if total == 0.0:
        return float("nan")
    along, spread = 0.0, 0.0
    width = 8
    threads = check_n_jobs(experts.n_jobs)
    for start in range(0, len(chosen), width):
        parts = [
            experts.features.columns(slice(at, at + 1)) for at in chosen[start : start + width]
        ]
        block = np.hstack(parts)
        block -= (degrees @ block) / total
        along += float(np.sum(block * multiply_laplacian(experts.graph, block, threads)))
        spread += float(np.sum(degrees[:, np.newaxis] * block**2))
    return 1.0 - along / spread if spread > 0.0 else float("nan")
