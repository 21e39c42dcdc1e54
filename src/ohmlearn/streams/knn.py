"""Edges of nearest-neighbour graphs, computed while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.streams.approximate_knn import FaissKnnEdges
from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.points import NeighborEdges, fill_scales, pack_points, row_blocks
from ohmlearn.validation.parameters import check_option

__all__ = ["KnnEdges", "knn_edges"]


class KnnEdges(NeighborEdges):
    """Stream of the edges of a nearest-neighbour graph; see `knn_edges`.

    Attributes
    ----------
    n_nodes, n_neighbors : int
        Number of points, and of neighbours of each.
    nodes : None
        The nodes are the rows of X.
    rereadable : bool
        True: every ``iter()`` starts from the beginning.

    Examples
    --------
    >>> from ohmlearn import knn_edges
    >>> stream = knn_edges([[0.0], [1.0], [3.0]], n_neighbors=1)
    >>> stream.n_nodes, sum(len(batch.u) for batch in stream)
    (3, 2)
    """

    def _prepare(self, x: NDArray[Any]) -> None:
        self._points: Any = pack_points(x)
        # Squared distance and index of each point's last neighbour, and scales; found when needed.
        self._reach: tuple[NDArray[Any], NDArray[np.int32], NDArray[Any] | None] | None = None

    def __iter__(self) -> Iterator[EdgeBatch]:
        if self._reach is None:
            self._reach = self._find_reach()
        for begin, end in row_blocks(self.n_nodes, self._block, triangle=True):
            yield EdgeBatch(*self._points.knn_edges(*self._reach, begin, end, self._threads))

    def _find_reach(self) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[Any] | None]:
        parts = [
            self._points.find_reach(self.n_neighbors, begin, end, self._threads)
            for begin, end in row_blocks(self.n_nodes, self._block, triangle=False)
        ]
        distance, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return distance, index, fill_scales(np.sqrt(distance)) if self._weighted else None


def knn_edges(
    X: ArrayLike,
    *,
    n_neighbors: int,
    weights: Literal["uniform", "gaussian"] = "uniform",
    method: Literal["exact", "faiss"] = "exact",
    n_jobs: int | None = None,
    block: int | None = None,
) -> KnnEdges | FaissKnnEdges:
    """Join each point to its nearest neighbours, without storing the graph.

    Points i and j are joined if either is among the nearest neighbours of the other. Each edge
    comes once, with the smaller node first. A point is not its own neighbour, even if it has exact
    copies.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Distances are computed as float32 if it is that, else as float64.
    n_neighbors : int
        From 1 to n_points - 1.
    weights : {"uniform", "gaussian"}
        All 1, or exp(-d² / (s_i s_j)), where s_i is the distance from i to its last neighbour
        (Zelnik-Manor and Perona 2004); if that is 0, it is the mean of the others.
    method : {"exact", "faiss"}
        "exact" finds the exact neighbours for any `n_neighbors`; of equally distant points, those
        with smaller index are nearer. It takes time proportional to n_points² and computes all
        distances again in every pass; only X and one distance per point are stored. "faiss" is for
        few neighbours of many points. It computes in float32 and stores the neighbours that it
        finds. With 20,000 points or more it searches only some cells, and may miss a neighbour.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the edges are the same for any number.
    block : int, optional
        Number of points whose edges form a batch; chosen for speed by default.

    Returns
    -------
    KnnEdges or FaissKnnEdges
        A stream of `EdgeBatch` that can be read any number of times.

    Examples
    --------
    >>> from ohmlearn import knn_edges
    >>> stream = knn_edges([[0.0], [1.0], [3.0], [7.0]], n_neighbors=1)
    >>> stream.n_nodes
    4
    >>> for u, v, w in stream:
    ...     print(u, v)
    [0 1 2] [1 2 3]
    """
    check_option("method", method, ("exact", "faiss"))
    chosen = KnnEdges if method == "exact" else FaissKnnEdges
    return chosen(X, n_neighbors=n_neighbors, weights=weights, n_jobs=n_jobs, block=block)
