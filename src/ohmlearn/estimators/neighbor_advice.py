"""Choose the number of neighbours of a kNN graph from the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from ohmlearn._display import Shown
from ohmlearn.checks.parameters import check_count, check_seed
from ohmlearn.estimators.answer import classes_there, comparable_scores
from ohmlearn.estimators.label_input import find_single_classes
from ohmlearn.estimators.problem import automatic_gamma
from ohmlearn.graph import Graph
from ohmlearn.harmonic import solve_hfs
from ohmlearn.points.affinity import Affinity
from ohmlearn.points.point_arrays import refuse_inexact

CANDIDATES = (5, 10, 20, 50, 100)
MAX_SPLITS = 10_000
ABOUT = 0.01  # tolerated loss in the fraction of reached points


@dataclass(frozen=True, repr=False)
class NeighborAdvice(Shown):
    """What `suggest_neighbors` found; ``print`` shows it in words.

    Attributes
    ----------
    n_neighbors : int
        The suggested number: the smallest one whose accuracy is within a standard error of the
        best.
    candidates : tuple of int
    accuracy, error : tuple of float
        Fraction of left-out labels that were predicted correctly, and its standard error; NaN if no
        class has two labels.
    reached : tuple of float
        Fraction of the points that are connected to a labelled one.
    n_components : tuple of int
    n_labels, n_points : int
        Number of labels, and of points in the compared graphs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ohmlearn import suggest_neighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> advice = suggest_neighbors(X, {i: y[i] for i in range(0, 150, 10)}, candidates=(5, 100))
    >>> advice.n_neighbors, advice.n_labels, advice.n_points
    (5, 15, 150)
    """

    n_neighbors: int
    candidates: tuple[int, ...]
    accuracy: tuple[float, ...]
    error: tuple[float, ...]
    reached: tuple[float, ...]
    n_components: tuple[int, ...]
    n_labels: int
    n_points: int

    def _facts(self) -> dict[str, Any]:
        accuracy = dict(zip(self.candidates, self.accuracy, strict=True))
        return {
            "suggested": f"n_neighbors={self.n_neighbors}",
            **{f"right with k = {k}": f"{fraction:.1%}" for k, fraction in accuracy.items()},
            "points": self.n_points,
            "labels": self.n_labels,
        }

    def __str__(self) -> str:
        lines = [f"{self.n_points:,} points, {self.n_labels} labels"]
        for i, k in enumerate(self.candidates):
            right = f"{self.accuracy[i]:.1%} ± {self.error[i]:.1%} of left-out labels right"
            if np.isnan(self.accuracy[i]):
                right = "too few labels to leave any out"
            parts = f"{self.n_components[i]} component{'s' * (self.n_components[i] != 1)}"
            mark = "  <- suggested" if k == self.n_neighbors else ""
            lines.append(f"k = {k}: {right}; {self.reached[i]:.1%} reached, {parts}{mark}")
        return "\n".join([*lines, self._verdict()])

    def _verdict(self) -> str:
        last, chosen = len(self.candidates) - 1, self.candidates.index(self.n_neighbors)
        if np.isnan(self.accuracy[chosen]):
            return "no labels could be left out; suggested is the sparsest graph that reaches most"
        gap = self.accuracy[chosen] - self.accuracy[last]
        noise = float(np.hypot(self.error[chosen], self.error[last]))
        if chosen < last and gap > 2 * noise:
            return (
                f"a sparser graph does better here: {100 * gap:.1f} points more right with "
                f"k = {self.n_neighbors} than with k = {self.candidates[last]}"
            )
        if chosen < last:
            return "denser graphs are no better here, and cost more"
        return "denser graphs do better here; try larger k as well"


def suggest_neighbors(
    X: ArrayLike,
    y: object,
    candidates: Sequence[int] = CANDIDATES,
    *,
    weights: Literal["uniform", "gaussian"] = "gaussian",
    n_splits: int = 8,
    max_points: int = 5000,
    random_state: object = None,
    n_jobs: int | None = None,
) -> NeighborAdvice:
    """Compare numbers of neighbours for a kNN graph by leaving out labels.

    Repeatedly leaves out half of the labels of each class, rounded down, and predicts them with
    stable-HFS. If no class has two labels, only the connectivity of the graphs is compared.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
    y : array-like of shape (n_points,), or dict {point: label}
        Classes; -1, None and NaN mean unlabelled.
    candidates : sequence of int
        Numbers to compare; those not below the number of points are ignored.
    weights : {"uniform", "gaussian"}
        Weights of the edges, as in `knn_edges`.
    n_splits : int
        How often labels are left out.
    max_points : int
        If X has more points, all labelled ones and a random sample of the others are used. The
        sample is less dense than X; the candidates are not adjusted for this.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

    Returns
    -------
    NeighborAdvice

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from ohmlearn import suggest_neighbors
    >>> X, truth = make_moons(400, noise=0.08, random_state=0)
    >>> y = np.where(np.arange(400) < 30, truth, -1)
    >>> advice = suggest_neighbors(X, y, candidates=(10, 300))
    >>> advice.n_neighbors
    10
    """
    refuse_inexact(X)
    points = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=3)
    nodes, labels, *_ = find_single_classes(y, len(points))
    classes, codes = np.unique(labels, return_inverse=True)
    rng = np.random.default_rng(check_seed(random_state))
    points, nodes = _sample(points, nodes, check_count("max_points", max_points), rng)
    splits = _splits(codes, check_count("n_splits", n_splits, MAX_SPLITS), rng)
    sizes = sorted({check_count("candidates", k) for k in candidates if k < len(points)})
    if not sizes:
        raise ValueError(
            f"at least one of the candidates must be below the number of points, {len(points)}, "
            f"got {list(candidates)}"
        )
    found = []
    for k in sizes:
        graph = Affinity("knn", k, weights, n_jobs=n_jobs).edges(points).to_graph(len(points))
        right = [_accuracy_of(graph, nodes, codes, len(classes), kept, n_jobs) for kept in splits]
        mean = float(np.mean(right)) if right else np.nan
        error = float(np.std(right) / np.sqrt(len(right))) if right else np.nan
        count, component = graph.components()
        found.append((mean, error, float(np.isin(component, component[nodes]).mean()), count))
    accuracy, errors, reached, components = zip(*found, strict=True)
    chosen = _choose(sizes, accuracy, errors, reached)
    measured = tuple(sizes), accuracy, errors, reached, components
    return NeighborAdvice(chosen, *measured, len(nodes), len(points))


def _sample(
    points: NDArray[Any], nodes: NDArray[np.int64], limit: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labelled points followed by some others, and the indices of the labelled."""
    if len(points) <= limit:
        return points, nodes
    others = np.setdiff1d(np.arange(len(points)), nodes)
    count = min(len(others), max(limit - len(nodes), 0))
    kept = np.concatenate([nodes, rng.choice(others, count, replace=False)])
    return points[kept], np.arange(len(nodes))


def _splits(
    codes: NDArray[Any], n_splits: int, rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """Return masks of the labels to keep: at least half of each class, and at least one."""
    if np.bincount(codes).max() < 2:
        return []
    masks = []
    for _ in range(n_splits):
        kept = np.ones(len(codes), dtype=bool)
        for c in np.unique(codes):
            members = np.flatnonzero(codes == c)
            kept[rng.choice(members, len(members) // 2, replace=False)] = False
        masks.append(kept)
    return masks


def _accuracy_of(
    graph: Graph,
    nodes: NDArray[np.int64],
    codes: NDArray[Any],
    n_classes: int,
    kept: NDArray[np.bool_],
    n_jobs: int | None,
) -> float:
    """Return the accuracy on the left-out labels. Unreached nodes count as errors."""
    degree = float(graph.degrees.mean())
    gamma = automatic_gamma(int(np.count_nonzero(kept)), n_classes, degree)
    Y = np.eye(n_classes)[codes[kept]]
    result = solve_hfs(graph, nodes[kept], Y, gamma=gamma, tol=1e-6, random_state=0, n_jobs=n_jobs)
    there = classes_there(result, nodes[kept], Y)
    scores = np.where(there, comparable_scores(result, Y.sum(axis=0)), -np.inf)
    found = scores[nodes[~kept]].argmax(axis=1) == codes[~kept]
    return float(np.mean(found & result.reached[nodes[~kept]]))


def _choose(
    sizes: list[int],
    accuracy: tuple[float, ...],
    error: tuple[float, ...],
    reached: tuple[float, ...],
) -> int:
    """Return the smallest number with about the best accuracy that reaches about as many points."""
    if np.isnan(accuracy[0]):
        return next(k for k, found in zip(sizes, reached, strict=True) if found == max(reached))
    best = int(np.argmax(accuracy))
    enough = accuracy[best] - error[best]
    good = [at for at, right in enumerate(accuracy) if right >= enough]
    most = max(reached[at] for at in good)
    return next(sizes[at] for at in good if reached[at] >= most - ABOUT)
