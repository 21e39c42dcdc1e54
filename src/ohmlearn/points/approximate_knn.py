"""Neighbours found by faiss: fast for many points, but some may be missed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra

EXACT_BELOW = 20_000  # points: a search of all of them is fast enough
PROBED = 32  # cells of 4 sqrt(n) that are searched
ROWS = 4096  # points whose distances are computed at the same time


def find_with_faiss(
    x: NDArray[Any], k: int, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (n, k) indices of neighbours, without the points themselves, and squared distances.

    Cells may hold fewer than k points; then a row ends with -1, and distances of 0.
    """
    # Centred because faiss computes in float32 only.
    centred = np.ascontiguousarray(x - x.mean(axis=0, dtype=np.float64), dtype=np.float32)
    index = _search(centred, k, threads).astype(np.int32)
    squares = np.zeros(index.shape)
    for begin in range(0, len(x), ROWS):
        near = index[begin : begin + ROWS]
        own = centred[begin : begin + ROWS, np.newaxis]
        for column in range(k):
            difference = own[:, 0] - centred[near[:, column]]
            squares[begin : begin + ROWS, column] = np.einsum(
                "ij,ij->i", difference, difference, dtype=np.float64
            )
    squares[index < 0] = 0.0
    return index, squares


def _search(x: NDArray[np.float32], k: int, threads: int) -> NDArray[np.int64]:
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
