"""The graph of a set of points as a stream of edges, and the edges of new points to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread
from ohmlearn._core import SMALLEST_WEIGHT
from ohmlearn._defaults import KERNEL_GAMMA, NEIGHBORS, WEIGHTS
from ohmlearn.edges import Batch, Edges
from ohmlearn.edges.in_memory import GraphEdges
from ohmlearn.errors import InputError, Param, Setting
from ohmlearn.graph import Graph
from ohmlearn.points.exact_neighbors import NeighborIndex
from ohmlearn.points.kernel_pairs import default_gamma, kernel_edges
from ohmlearn.points.neighbor_edges import knn_edges
from ohmlearn.points.point_arrays import Matrix

AFFINITIES = ("knn", "rbf", "precomputed")
PAIRS = 1 << 22  # number of weights in memory at the same time
ROUNDING = 1e-3  # by which the two directions of an edge may differ
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Affinity:
    """How points are joined by edges: the parameters of an estimator that control this."""

    kind: str | Callable[..., Matrix] = "knn"
    n_neighbors: int = NEIGHBORS
    weights: Literal["uniform", "gaussian"] = WEIGHTS
    kernel_gamma: float | None = None
    n_jobs: int | None = None
    metric: Literal["euclidean", "cosine"] = "euclidean"
    neighbors: Literal["exact", "faiss"] = "exact"

    def edges(self, X: Matrix) -> Edges:
        """Return a stream of edges that can be read again."""
        if self.kind == "precomputed":
            return GraphEdges(X if isinstance(X, Graph) else Graph.from_scipy(X))
        if self.kind == "knn":
            return knn_edges(
                X,
                n_neighbors=min(self.n_neighbors, X.shape[0] - 1),  # all pairs of fewer points
                weights=self.weights,
                gamma=KERNEL_GAMMA if self.kernel_gamma is None else self.kernel_gamma,
                metric=self.metric,
                method=self.neighbors,
                n_jobs=self.n_jobs,
            )
        if self.kind == "rbf":
            if scipy.sparse.issparse(X):
                from sklearn.metrics.pairwise import rbf_kernel

                return CallableEdges(X, partial(rbf_kernel, gamma=self._gamma(X)))
            return kernel_edges(X, gamma=self.kernel_gamma, n_jobs=self.n_jobs)
        assert callable(self.kind)
        return CallableEdges(X, self.kind)

    @one_blas_thread()
    def extend(self, new: Matrix, X: Matrix, values: Floats) -> Floats:
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

    def _joiner(self, X: Matrix) -> Callable[[Matrix], Matrix]:
        """Return a function that computes the weights between new points and X."""
        if self.kind == "precomputed":
            return lambda new: scipy.sparse.csr_array(new)
        if callable(self.kind):
            kind = self.kind
            return lambda new: call_affinity(kind, X, new).T  # the order of scikit-learn
        if self.kind == "rbf":
            return self._join_all(X)
        return self._join_nearest(X)

    def _join_all(self, X: Matrix) -> Callable[[Matrix], Matrix]:
        from sklearn.metrics import euclidean_distances, pairwise_distances

        gamma = self._gamma(X)

        def join(new: Matrix) -> Matrix:
            if scipy.sparse.issparse(X):
                squares = euclidean_distances(new, X, squared=True)
            else:
                squares = pairwise_distances(new, X, metric="sqeuclidean", n_jobs=self.n_jobs)
            return np.exp(-gamma * (squares - squares.min(axis=1, keepdims=True)))

        return join

    def _gamma(self, X: Matrix) -> float:
        return default_gamma(X, "rbf") if self.kernel_gamma is None else self.kernel_gamma

    def _join_nearest(self, X: Matrix) -> Callable[[Matrix], Matrix]:
        k = min(self.n_neighbors, X.shape[0])
        index = NeighborIndex(X, self.metric, self.n_jobs)

        def join(new: Matrix) -> Matrix:
            neighbors, squares = index.find(new, k)
            distances = np.sqrt(squares)
            weights = np.ones_like(distances)
            if self.weights == "gaussian":
                scale = distances[:, -1:]
                gamma = KERNEL_GAMMA if self.kernel_gamma is None else self.kernel_gamma
                weights = np.exp(-gamma * (distances / np.where(scale > 0, scale, 1.0)) ** 2)
            ends = np.arange(0, neighbors.size + 1, k)
            entries = (weights.ravel(), neighbors.ravel(), ends)
            return scipy.sparse.csr_array(entries, shape=(new.shape[0], X.shape[0]))

        return join


class CallableEdges(Edges):
    """Stream of edges whose weights ``affinity(X, B)`` computes, for blocks B of the points."""

    n_nodes: int

    def __init__(self, X: Matrix, affinity: Callable[..., Matrix]) -> None:
        self._X, self._affinity = X, affinity
        self.n_nodes = X.shape[0]

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Compute the weights of all pairs, block by block."""
        n = self.n_nodes
        size = max(1, PAIRS // n)
        there, back = np.zeros(n), np.zeros(n)  # sums of rows and of columns
        for begin in range(0, n, size):
            part = slice(begin, begin + size)
            others = self._X if size >= n else self._X[part]
            block = scipy.sparse.csr_array(call_affinity(self._affinity, self._X, others))
            there += block.sum(axis=1)
            back[part] = block.sum(axis=0)
            _check_symmetric(block[part], block[part].T)
            upper = scipy.sparse.triu(block, k=1 - begin, format="coo")
            u, v = upper.coords
            w = upper.data.astype(np.float64)
            tiny = (w > 0) & (w < SMALLEST_WEIGHT)
            self.loses_weights |= bool(tiny.any())
            yield Batch(u.astype(np.int64), v.astype(np.int64) + begin, np.where(tiny, 0.0, w))
        _check_symmetric(there, back)


def call_affinity(affinity: Callable[..., Matrix], A: Matrix, B: Matrix) -> Matrix:
    """Return ``affinity(A, B)``, after a check of its shape."""
    block, shape = affinity(A, B), (A.shape[0], B.shape[0])
    if np.shape(block) != shape:
        raise ValueError(
            f"affinity(A, B) must return a matrix of shape (len(A), len(B)) = {shape}, got "
            f"{np.shape(block)}"
        )
    return block


def _check_symmetric(there: Matrix, back: Matrix) -> None:
    """Refuse weights whose two directions differ by more than rounding, or sums of these."""
    if (abs(there - back) - ROUNDING * (abs(there) + abs(back))).max() > 0:
        raise InputError(
            f"affinity(A, B) must be symmetric, but the weight between two points depends on "
            f"their order; for example, give W + W.T with {Setting('affinity', 'precomputed')}"
        )


def refuse_lost_points(edges: Edges, graph: Graph, labelled: NDArray[np.int64]) -> None:
    """Refuse points that no label reaches because their weights are too small to be stored."""
    if not edges.loses_weights:
        return
    component = graph.components()[1]
    lost = np.flatnonzero(~np.isin(component, component[labelled]))
    if len(lost) > 0:
        raise InputError(
            f"{len(lost)} of {graph.n_nodes} points are joined to no label, such as point "
            f"{lost[0]}: all their weights that would do so are below {SMALLEST_WEIGHT:.2g}, "
            f"which count as 0; give a smaller gamma of the kernel ({Param('kernel_gamma')}), or "
            f"{Setting('affinity', 'knn')}"
        )
