"""Edges of nearest-neighbour graphs found by faiss: fast for many points, and stored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.points import NeighborEdges, fill_scales
from ohmlearn.validation.parameters import require_extra

__all__ = ["FaissKnnEdges"]

EXACT_BELOW = 20_000  # points: a search of all of them is fast enough
PROBED = 32  # cells of 4 sqrt(n) that are searched
BATCH = 1 << 18


class FaissKnnEdges(NeighborEdges):
    """Stream of a nearest-neighbour graph found by faiss; see ``method`` of `knn_edges`.

    Attributes
    ----------
    n_nodes, n_neighbors, n_edges : int
        Number of points, of neighbours of each, and of edges.
    nodes : None
        The nodes are the rows of X.
    rereadable : bool
        True: every ``iter()`` starts from the beginning.
    """

    def _prepare(self, x: NDArray[Any]) -> None:
        self._batch = BATCH if self._block is None else self._block * self.n_neighbors
        # Centred because faiss computes in float32 only.
        self._x = np.ascontiguousarray(x - x.mean(axis=0), dtype=np.float32)
        near = find_neighbours(self._x, self.n_neighbors, self._threads)
        found = near >= 0
        own = np.arange(len(x))
        u, v = np.repeat(own, found.sum(axis=1)), near[found]
        self._keys = np.unique(np.minimum(u, v) * len(x) + np.maximum(u, v))
        self.n_edges = len(self._keys)
        if self._weighted:
            last = near[own, np.maximum(found.sum(axis=1) - 1, 0)]
            self._scale = fill_scales(np.sqrt(self._squared(own, np.where(last >= 0, last, own))))

    def __iter__(self) -> Iterator[EdgeBatch]:
        for start in range(0, self.n_edges, self._batch):
            keys = self._keys[start : start + self._batch]
            u, v = (keys // self.n_nodes).astype(np.int32), (keys % self.n_nodes).astype(np.int32)
            w = None
            if self._weighted:
                ratio = self._squared(u, v) / self._scale[u] / self._scale[v]
                w = np.exp(-ratio).astype(np.float32)
            yield EdgeBatch(u, v, w)

    def _squared(self, u: NDArray[Any], v: NDArray[Any]) -> NDArray[np.float64]:
        difference = self._x[u] - self._x[v]
        squares: NDArray[np.float64] = np.einsum(
            "ij,ij->i", difference, difference, dtype=np.float64
        )
        return squares


def find_neighbours(x: NDArray[np.float32], k: int, threads: int) -> NDArray[np.int64]:
    """Return (n, k) indices of neighbours, nearest first, without the points themselves.

    Cells may hold fewer than k points; then a row ends with -1.
    """
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
    near: NDArray[np.int64] = found[~is_self].reshape(n, k)
    return near
