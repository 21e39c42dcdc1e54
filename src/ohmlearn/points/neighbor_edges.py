"""Edges of nearest-neighbour graphs: neighbours are found once, or edges computed in each pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._defaults import KERNEL_GAMMA, WEIGHTS
from ohmlearn._phases import phase
from ohmlearn._sharing import Shared
from ohmlearn.checks.parameters import check_option, check_positive, require_extra
from ohmlearn.edges import Batch
from ohmlearn.points.exact_neighbors import check_neighbor_points, find_neighbors
from ohmlearn.points.point_arrays import (
    PAIRS,
    Matrix,
    Neighbors,
    PointEdges,
    check_n_neighbors,
    find_scales,
    pack_points,
    refuse_inexact,
    row_blocks,
)

METHODS = ("exact", "faiss")
KEPT = 256 << 20  # bytes of neighbours that are kept, 12 each
# A point far from a dense cluster, or from copies of a point, is joined to it by weights that would
# underflow. This keeps it joined in float64 solves. Larger values join what should be separate: on
# shuttle, 1e-6 costs 25 points of accuracy, and 1e-9 up to 20.
LEAST_WEIGHT = 1e-12
MOST = 500  # neighbours of a point that are kept; sweeps find more of them faster
EXACT_BELOW = 20_000  # points; faiss compares all pairs of fewer, which is fast enough
PROBED = 32  # cells of 4 sqrt(n) that faiss searches
FAISS_ROWS = 4096  # points whose distances are computed at the same time
Method = Literal["exact", "faiss"]
Edges = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]


class KnnEdges(PointEdges, Shared):
    """Stream of the edges of a graph of exact nearest neighbours; see `knn_edges`.

    Attributes
    ----------
    n_nodes, n_neighbors : int
        Number of points, and of neighbours of each.
    nodes : None
        The nodes are the rows of X.
    rereadable : bool
        True: every ``iter()`` starts from the beginning.
    fraction : float
        Fraction of the search for neighbours that is done.

    Examples
    --------
    >>> from ohmlearn import knn_edges
    >>> stream = knn_edges([[0.0], [1.0], [3.0]], n_neighbors=1)
    >>> stream.n_nodes, sum(len(batch.u) for batch in stream)
    (3, 2)
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        n_neighbors: int,
        weights: str = WEIGHTS,
        gamma: float = KERNEL_GAMMA,
        metric: str = "euclidean",
        n_jobs: int | None = None,
        block: int | None = None,
    ) -> None:
        self._make_lock()
        x = check_neighbor_points(X, metric)
        super().__init__(x.shape[0], n_jobs, block)
        self.n_neighbors = check_n_neighbors(n_neighbors, x.shape[0])
        check_option("weights", weights, ("uniform", "gaussian"))
        self._gamma = check_positive("gamma", gamma) if weights == "gaussian" else None
        self._x: Matrix = x  # None after the search
        self._edges: Edges | None = None
        self._sweeps: Sweeps | None = None
        self.fraction = 0.0
        self._prepare()

    def _prepare(self) -> None:
        """Choose how the edges are made."""
        few = self.n_neighbors <= MOST and 12 * self.n_nodes * self.n_neighbors <= KEPT
        if not (few or scipy.sparse.issparse(self._x)):
            how = (self.n_neighbors, self._gamma, self._threads, self._block)
            self._sweeps, self._x = Sweeps(self._x, *how), None

    def _find(self) -> Neighbors:
        """Return indices of neighbours, -1 for none, and squared distances."""
        return find_neighbors(self._x, self.n_neighbors, self._threads, self._report)

    def _report(self, fraction: float) -> None:
        self.fraction = fraction

    def find_neighbors(self) -> None:
        """Find the neighbours, unless they are known; or only how far they are, if too many.

        Reading the edges does this, too.
        """
        with self._lock:
            if self._sweeps is not None:
                self._sweeps.find_reach(self._report)
            elif self._edges is None:
                index, squares = self._find()
                scale = find_scales(squares.max(axis=1), self._gamma) if self._gamma else None
                indptr, v, w = _core.join_neighbours(
                    index.ravel(), squares.ravel(), scale, self.n_neighbors
                )
                self._edges = indptr, v, _raise_least(w)
                self._x, self.fraction, self.n_edges = None, 1.0, len(self._edges[1])

    def prepare(self, verbose: int = 0) -> None:
        """Find the neighbours, as a phase of its own."""
        with phase("finding neighbours", verbose):
            self.find_neighbors()

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the edges; they are computed again in each pass if there are too many to keep."""
        self.find_neighbors()
        if self._edges is None:
            assert self._sweeps is not None
            yield from self._sweeps.edges()
            return
        indptr, v, w = self._edges
        rows = self._block or max(1, PAIRS * self.n_nodes // max(1, len(v)))
        for begin in range(0, self.n_nodes, rows):
            end = min(self.n_nodes, begin + rows)
            part = slice(int(indptr[begin]), int(indptr[end]))
            own = np.arange(begin, end, dtype=np.int32)
            u = np.repeat(own, np.diff(indptr[begin : end + 1]))
            yield Batch(u, v[part], None if w is None else w[part])


class FaissKnnEdges(KnnEdges):
    """Stream of a nearest-neighbour graph found by faiss; see ``method`` of `knn_edges`.

    Its attributes are those of `KnnEdges`.
    """

    def _prepare(self) -> None:
        require_extra("faiss", "knn")
        if scipy.sparse.issparse(self._x):
            raise ValueError(
                "faiss needs a dense X, got a sparse one; find exact neighbours, or give "
                "X.toarray()"
            )

    def _find(self) -> Neighbors:
        """Return neighbours; if a cell has too few, a row ends with -1, and distances of 0."""
        # Centred because faiss computes in float32 only.
        x, k = self._x - self._x.mean(axis=0, dtype=np.float64), self.n_neighbors
        centred = np.ascontiguousarray(x, dtype=np.float32)
        index = _search_with_faiss(centred, k, self._threads).astype(np.int32)
        squares = np.zeros(index.shape)
        for begin in range(0, len(x), FAISS_ROWS):
            part = slice(begin, begin + FAISS_ROWS)
            for column in range(k):
                gap = centred[part] - centred[index[part, column]]
                squares[part, column] = np.einsum("ij,ij->i", gap, gap, dtype=np.float64)
        squares[index < 0] = 0.0
        return index, squares


def _search_with_faiss(x: NDArray[np.float32], k: int, threads: int) -> NDArray[np.int64]:
    faiss = require_extra("faiss", "knn")
    n, dims = x.shape
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # training in several threads gives different cells each time
    try:
        if n < EXACT_BELOW:
            index = faiss.IndexFlatL2(dims)
        else:
            cells = int(4 * math.sqrt(n))
            index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dims), dims, cells)
            index.train(x)
            index.nprobe = PROBED
        index.add(x)
        faiss.omp_set_num_threads(threads)
        found = index.search(x, k + 1)[1]
    finally:
        faiss.omp_set_num_threads(before)
    own = np.arange(n)[:, None]
    is_self = found == own
    is_self[~is_self.any(axis=1), -1] = True  # hidden among its copies: drop the farthest
    return np.asarray(found[~is_self].reshape(n, k), np.int64)


class Sweeps:
    """The edges of a nearest-neighbour graph, in sweeps over all distances.

    The first sweep finds the distance of the last neighbour of each point, and is done once. The
    second one finds the edges, and is done in each pass. Distances are float32 if the points are,
    unless their squares are too large.
    """

    def __init__(
        self, x: NDArray[Any], k: int, gamma: float | None, threads: int, block: int | None
    ) -> None:
        largest = float(np.finfo(np.float32).max)
        fits = x.dtype == np.float32 and float(np.ptp(x)) ** 2 * 2 * x.shape[1] <= largest
        self._points: Any = pack_points(x if fits else x.astype(np.float64))
        self._n, self._k, self._gamma = len(x), k, gamma
        self._threads, self._block = threads, block
        # Squared distance and index of each point's last neighbour, and scales.
        self._reach: tuple[NDArray[Any], NDArray[np.int32], NDArray[Any] | None] | None = None

    def find_reach(self, report: Callable[[float], None]) -> None:
        """Find the distances of the last neighbours, unless they are known."""
        if self._reach is not None:
            return
        parts = []
        for begin, end in row_blocks(self._n, self._block, triangle=False):
            parts.append(self._points.find_reach(self._k, begin, end, self._threads))
            report(end / self._n)
        distance, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        scale = find_scales(distance, self._gamma) if self._gamma else None
        self._reach = distance, index, scale

    def edges(self) -> Iterator[Batch]:
        """Yield all edges."""
        assert self._reach is not None
        for begin, end in row_blocks(self._n, self._block, triangle=True):
            u, v, w = self._points.knn_edges(*self._reach, begin, end, self._threads)
            yield Batch(u, v, _raise_least(w))


def _raise_least(w: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Return weights of at least `LEAST_WEIGHT`."""
    return None if w is None else np.maximum(w, np.float32(LEAST_WEIGHT))


def knn_edges(
    X: ArrayLike,
    *,
    n_neighbors: int,
    weights: Literal["uniform", "gaussian"] = WEIGHTS,
    gamma: float = KERNEL_GAMMA,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    method: Method = "exact",
    n_jobs: int | None = None,
    block: int | None = None,
) -> KnnEdges:
    """Join each point to its nearest neighbours.

    Points i and j are joined if either is among the nearest neighbours of the other. Each edge
    comes once, with the smaller node first. A point is not its own neighbour, even if it has exact
    copies.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_points, n_features)
        Distances are those of the values in float64, which must hold them: integers above 2**53
        are refused.
    n_neighbors : int
        From 1 to n_points - 1. Estimators of scikit-learn count the point itself, so that 7 there
        are 6 here.
    weights : {"uniform", "gaussian"}
        All 1, or exp(-gamma d² / (s_i s_j)), where s_i is the distance from i to its last neighbour
        (Zelnik-Manor and Perona 2004); if that is 0, it is the mean of the others.
        At least 1e-12, so that no point is lost.
    gamma : float
        How fast Gaussian weights fall with the distance. 8 gave more accurate labels than 1 on most
        real data, and about as accurate ones as the best value of each set (docs/defaults.md).
    metric : {"euclidean", "cosine"}
        With "cosine", rows are scaled to length 1, in float64; d² is then 2 - 2 cos. Rows of zeros
        are at cosine 0 from all others, and equal to each other.
    method : {"exact", "faiss"}
        "exact" finds the exact neighbours; of equally distant points, those with smaller index are
        nearer. It takes time proportional to n_points² n_features: 30,000 points with 784 features
        take about ten seconds of one processor. "faiss" (extra ``knn``) computes in float32; with
        20,000 points or more it searches only some cells, and may miss a neighbour.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the edges are the same for any number.
    block : int, optional
        Number of points whose edges form a batch; chosen for speed by default.

    Returns
    -------
    KnnEdges
        A stream that can be read any number of times. The neighbours are found when
        it is first read, and kept. `FaissKnnEdges`, which is one, if `method` is "faiss".

    Notes
    -----
    The search for exact neighbours needs 4 bytes per value of X, and 8 (n_neighbors + 8) per point.
    If `n_neighbors` is above 500, or the neighbours would take more than 256 MiB, at 12 bytes each,
    those of a dense X are not kept. Then every pass computes all distances again, in float32 if X
    is float32, and stores one distance per point.

    Examples
    --------
    >>> from ohmlearn import knn_edges
    >>> stream = knn_edges([[0.0], [1.0], [3.0], [7.0]], n_neighbors=1, gamma=1.0)
    >>> stream.n_nodes
    4
    >>> for u, v, w, _ in stream:
    ...     print(u, v, w.round(2))
    [0 1 2] [1 2 3] [0.37 0.14 0.14]
    """
    refuse_inexact(X)
    chosen = KnnEdges if check_option("method", method, METHODS) == "exact" else FaissKnnEdges
    return chosen(
        X, n_neighbors=n_neighbors, weights=weights, gamma=gamma, metric=metric, n_jobs=n_jobs,
        block=block,
    )  # fmt: skip
