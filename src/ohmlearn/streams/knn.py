"""Edges of nearest-neighbour graphs, made as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.streams.approximate_knn import FaissKnnEdges
from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.points import (
    check_n_neighbors,
    check_points,
    fill_scales,
    pack_points,
    row_blocks,
)
from ohmlearn.validation.parameters import check_n_jobs, check_option

__all__ = ["KnnEdges", "knn_edges"]


class KnnEdges:
    """Stream of the edges of a nearest-neighbour graph; see `knn_edges`.

    Attributes
    ----------
    n_nodes : int
        Number of points.
    n_neighbors : int
    rereadable : bool
        True: every ``iter()`` begins anew.

    Examples
    --------
    >>> from ohmlearn import knn_edges
    >>> stream = knn_edges([[0.0], [1.0], [3.0]], n_neighbors=1)
    >>> stream.n_nodes, sum(len(batch.u) for batch in stream)
    (3, 2)
    """

    rereadable = True

    def __init__(
        self,
        X: ArrayLike,
        n_neighbors: int,
        *,
        weights: str = "uniform",
        n_jobs: int | None = None,
        block: int | None = None,
    ) -> None:
        x = check_points(X)
        self.n_nodes = len(x)
        self.n_neighbors = check_n_neighbors(n_neighbors, len(x))
        self._weighted = check_option("weights", weights, ("uniform", "gaussian")) == "gaussian"
        self._threads = check_n_jobs(n_jobs)
        self._block = block
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
    n_neighbors: int,
    *,
    weights: Literal["uniform", "gaussian"] = "uniform",
    method: Literal["exact", "faiss"] = "exact",
    n_jobs: int | None = None,
    block: int | None = None,
) -> KnnEdges | FaissKnnEdges:
    """Join each point to its nearest others, without storing the graph.

    i and j are joined when either is among the nearest of the other; each edge comes once, the
    smaller node first. Neighbours are exact for any `n_neighbors`. A point is not its own
    neighbour, even among exact copies; of equally distant points those with smaller index are
    nearer. Every reading computes all distances anew; stored are X and one distance a point.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Distances are computed as float32 if it is that, else as float64.
    n_neighbors : int
        From 1 to n_points - 1.
    weights : {"uniform", "gaussian"}
        All 1, or exp(-d² / (s_i s_j)), where s_i is the distance of i to the last of its neighbours
        (Zelnik-Manor and Perona 2004), or, where that is 0, the mean of the others.
    method : {"exact", "faiss"}
        "exact" needs time in proportion to n_points². "faiss" is for few neighbours of many points:
        it searches some cells only where there are more than 20,000 points, may miss a neighbour,
        computes in float32, and stores the neighbours found.
    n_jobs : int, optional
        Threads, read as scikit-learn does; the edges are the same for any number.
    block : int, optional
        Points whose edges make a batch; chosen for speed by default.

    Returns
    -------
    KnnEdges or FaissKnnEdges
        A stream of `EdgeBatch` that can be read again and again.

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
    return chosen(X, n_neighbors, weights=weights, n_jobs=n_jobs, block=block)
