"""Estimators and points: a graph of the points they are fitted to, and answers for new ones."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ohmlearn.checks.edge_arrays import maker_of
from ohmlearn.checks.parameters import (
    CALLABLE,
    LARGEST,
    SMALLEST,
    Constraints,
    Interval,
    Options,
)
from ohmlearn.edges import Edges
from ohmlearn.estimators.labels_by_node import by_node, pair_by_node
from ohmlearn.graph import Graph
from ohmlearn.points.affinity import AFFINITIES, Affinity
from ohmlearn.points.exact_neighbors import METRICS
from ohmlearn.points.neighbor_edges import METHODS
from ohmlearn.points.point_arrays import refuse_inexact

__all__ = ["FromPoints"]

Floats = NDArray[np.float64]


class FromPoints(BaseEstimator, metaclass=ABCMeta):
    """Turns points into edges for the labelling job, and extends its answers to new points."""

    _constraints: ClassVar[Constraints] = {
        "affinity": (Options(tuple(AFFINITIES)), CALLABLE),
        "n_neighbors": (Interval(Integral, 1),),
        "weights": (Options(("uniform", "gaussian")),),
        "metric": (Options(METRICS),),
        "neighbors": (Options(METHODS),),
        "kernel_gamma": (None, Interval(Real, SMALLEST, LARGEST)),
    }
    affinity: str | Callable[..., Any]
    n_neighbors: int
    weights: Literal["uniform", "gaussian"]
    metric: Literal["euclidean", "cosine"]
    neighbors: Literal["auto", "exact", "faiss"]
    kernel_gamma: float | None
    n_jobs: int | None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    @abstractmethod
    def _label(self, edges: Edges, y: Any, sample_weight: Any, n_nodes: int | None) -> None:
        """Label the nodes of edges."""

    @property
    @abstractmethod
    def reached_(self) -> NDArray[np.bool_]:
        """Whether a node is connected to any label."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to points, or to a graph if ``affinity="precomputed"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_features)
            Points; or a symmetric matrix of weights, or a Graph.
        y : array-like of shape (n_nodes,), or dict {node: label}
            Labels. None and NaN, and for classes -1, mean unlabelled. A node may have several
            labels, ``{3: ["a", "b"]}``, and for classes a distribution, ``{3: {"a": 0.7, "b":
            0.3}}`` or a row of a matrix of shape (n_nodes, n_classes); see `HFSClassifier`. If X
            is a Graph whose nodes have ids, the keys of a dict and the index of a Series are ids.
        sample_weight : array-like of shape (n_nodes,), or dict {node: weight}, optional
            How much each label counts; an array if y is one, else a dict, in which the weight of
            missing nodes is 1. A label of weight 2 equals the same label given twice. The weight 0
            means unlabelled.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        _refuse_edges(X, y)
        points = self._check_points(X, reset=True)
        edges = self._affinity().edges(points)
        has_ids = edges.nodes is not None
        y, sample_weight = pair_by_node(y, sample_weight, by_index=has_ids)
        self._label(edges, y, sample_weight, edges.n_nodes)
        self.__dict__.pop("X_", None)
        if self.affinity != "precomputed":
            self.X_ = points
        return self

    def _affinity(self) -> Affinity:
        return Affinity(
            self.affinity,
            self.n_neighbors,
            self.weights,
            self.kernel_gamma,
            self.n_jobs,
            self.metric,
            self.neighbors,
        )

    def _check_points(self, X: Any, *, reset: bool) -> Any:
        precomputed = self.affinity == "precomputed"
        if precomputed and isinstance(X, Graph):
            if reset:
                self.n_features_in_ = X.n_nodes
            return X
        maker = "" if isinstance(X, Graph) else maker_of(X)
        if maker is not None and not scipy.sparse.issparse(X):
            raise TypeError(
                f"fit needs points or a matrix, got {type(X).__module__}.{type(X).__name__}; for a "
                f"graph call fit_edges({maker + '(G)' if maker else 'graph'}, y)"
            )
        if not precomputed:
            refuse_inexact(X)
        is_knn = self.affinity == "knn"
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=["csr", "csc", "coo"] if precomputed else "csr",
            dtype=[np.float64, np.float32, *([np.uint8] if is_knn else [])],
            ensure_min_samples=2 if reset else 1,
        )

    def _check_extendable(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise ValueError(
                "predict needs points, but this estimator was fitted to edges; transduction_ has "
                "the answers for the nodes of the graph"
            )

    def _extend(self, X: Any, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return weighted means of values over the neighbours of new points.

        Neighbours that are not reached are ignored. The mask is False if no neighbour is reached.
        """
        self._check_extendable()
        new = self._check_points(X, reset=False)
        reached = self.reached_.astype(np.float64)[:, np.newaxis]
        columns = np.hstack([values * reached, reached])
        total = self._affinity().extend(new, getattr(self, "X_", None), columns)
        known = total[:, -1] > 0
        return total[:, :-1] / np.where(known, total[:, -1], 1.0)[:, np.newaxis], known

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        return tags


def _refuse_edges(X: Any, y: Any) -> None:
    """Refuse a frame that cannot be points, but may be a table of edges."""
    if type(X).__name__ != "DataFrame" or X.shape[1] not in (2, 3):
        return
    labels = by_node(y, by_index=False)
    by_position = labels is not None and not isinstance(labels, Mapping) and np.ndim(labels) > 0
    if by_position and len(labels) != len(X):
        what = f"y must have one entry for each of the {len(X)} rows of X, got {len(labels)}"
    elif isinstance(value := _first_name(X), str):
        what = f"X must have numbers, got {value!r}"
    else:
        return
    raise ValueError(f"{what}; if the rows of X are edges, use fit_edges(read_edges(X), ...)")


def _first_name(X: Any) -> Any:
    """Return the first string in the first row of a frame, if it has any."""
    row = np.asarray(X[:1], dtype=object).ravel().tolist()
    return next((value for value in row if isinstance(value, str) and not _is_number(value)), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
