"""The graph of a set of points as a stream of edges, and the edges of new points to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread
from ohmlearn.edges import Batch, Edges
from ohmlearn.edges.in_memory import GraphEdges
from ohmlearn.graph import Graph
from ohmlearn.points.exact_neighbors import NeighborIndex
from ohmlearn.points.kernel_pairs import default_gamma, kernel_edges
from ohmlearn.points.neighbor_edges import knn_edges

__all__ = ["AFFINITIES", "Affinity", "CallableEdges"]

AFFINITIES = ("knn", "rbf", "precomputed")
PAIRS = 1 << 22  # number of weights in memory at the same time
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Affinity:
    """How points are joined by edges: the parameters of an estimator that control this.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> affinity = Affinity("knn", n_neighbors=1)
    >>> [(u.tolist(), v.tolist()) for u, v, *_ in affinity.edges(points)]
    [([0, 1], [1, 2])]
    >>> affinity.extend(np.array([[0.4]]), points, np.array([[1.0], [2.0], [4.0]]))
    array([[1.]])
    """

    kind: str | Callable[..., Any] = "knn"
    n_neighbors: int = 10
    weights: Literal["uniform", "gaussian"] = "uniform"
    kernel_gamma: float | None = None
    n_jobs: int | None = None
    metric: Literal["euclidean", "cosine"] = "euclidean"
    neighbors: Literal["auto", "exact", "faiss"] = "exact"

    def edges(self, X: Any) -> Edges:
        """Return a stream of edges that can be read again."""
        if self.kind == "precomputed":
            return GraphEdges(X if isinstance(X, Graph) else Graph.from_scipy(X))
        if self.kind == "knn":
            return knn_edges(
                X,
                n_neighbors=min(self.n_neighbors, X.shape[0] - 1),  # all pairs of fewer points
                weights=self.weights,
                metric=self.metric,
                method=self.neighbors,
                n_jobs=self.n_jobs,
            )
        if self.kind == "rbf":
            return kernel_edges(X, gamma=self.kernel_gamma, n_jobs=self.n_jobs)
        assert callable(self.kind)
        return CallableEdges(X, self.kind)

    @one_blas_thread()
    def extend(self, new: Any, X: Any, values: Floats) -> Floats:
        """Return, for each new point, the sum of weight times value over its neighbours in X.

        The weights of each new point have an arbitrary scale.
        """
        total = np.zeros((new.shape[0], values.shape[1]))
        rows = max(1, PAIRS // max(1, len(values)))
        join = self._joiner(X)
        for begin in range(0, len(total), rows):
            part = slice(begin, begin + rows)
            total[part] = join(new[part]) @ values
        return total

    def _joiner(self, X: Any) -> Callable[[Any], Any]:
        """Return a function that computes the weights between new points and X."""
        if self.kind == "precomputed":
            return lambda new: scipy.sparse.csr_array(new)
        if callable(self.kind):
            kind = self.kind
            return lambda new: kind(new, X)
        if self.kind == "rbf":
            return self._join_all(X)
        return self._join_nearest(X)

    def _join_all(self, X: Any) -> Callable[[Any], Any]:
        from sklearn.metrics import pairwise_distances

        gamma = default_gamma(X, "rbf") if self.kernel_gamma is None else self.kernel_gamma

        def join(new: Any) -> Any:
            squares = pairwise_distances(new, X, metric="sqeuclidean", n_jobs=self.n_jobs)
            return np.exp(-gamma * (squares - squares.min(axis=1, keepdims=True)))

        return join

    def _join_nearest(self, X: Any) -> Callable[[Any], Any]:
        k = min(self.n_neighbors, X.shape[0])
        index = NeighborIndex(X, self.metric, self.n_jobs)

        def join(new: Any) -> Any:
            neighbors, squares = index.find(new, k)
            distances = np.sqrt(squares)
            weights = np.ones_like(distances)
            if self.weights == "gaussian":
                scale = distances[:, -1:]
                weights = np.exp(-((distances / np.where(scale > 0, scale, 1.0)) ** 2))
            ends = np.arange(0, neighbors.size + 1, k)
            entries = (weights.ravel(), neighbors.ravel(), ends)
            return scipy.sparse.csr_array(entries, shape=(new.shape[0], X.shape[0]))

        return join


class CallableEdges(Edges):
    """Stream of edges whose weights ``affinity(A, B)`` computes, for blocks A of the points.

    Examples
    --------
    >>> stream = CallableEdges(np.array([[1.0], [2.0], [3.0]]), lambda A, B: A @ B.T)
    >>> [(u.tolist(), v.tolist(), w.tolist()) for u, v, w, _ in stream]
    [([0, 0, 1], [1, 2, 2], [2.0, 3.0, 6.0])]
    """

    n_nodes: int

    def __init__(self, X: Any, affinity: Callable[..., Any]) -> None:
        self._X, self._affinity = X, affinity
        self.n_nodes = X.shape[0]

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Compute the weights of all pairs, block by block."""
        begin = 0
        while begin < self.n_nodes:
            end = min(self.n_nodes, begin + max(1, PAIRS // (self.n_nodes - begin)))
            block = self._affinity(self._X[begin:end], self._X[begin:])
            if np.shape(block) != (end - begin, self.n_nodes - begin):
                raise ValueError(
                    f"affinity(A, B) must return a matrix of shape (len(A), len(B)) = "
                    f"{(end - begin, self.n_nodes - begin)}, got {np.shape(block)}"
                )
            upper = scipy.sparse.triu(scipy.sparse.coo_array(block), k=1, format="coo")
            u, v = upper.coords
            weights = upper.data.astype(np.float64)
            yield Batch(u.astype(np.int64) + begin, v.astype(np.int64) + begin, weights)
            begin = end
