"""Edge arrays of the graph families in the gallery."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

Nodes = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]
Ends = tuple[Nodes, Nodes]


def path(n: int) -> Ends:
    """Join each node to the next."""
    return np.arange(n - 1), np.arange(1, n)


def grid(shape: tuple[int, ...]) -> Ends:
    """Join neighbours along each axis; nodes are numbered in row-major order."""
    ids = np.arange(np.prod(shape)).reshape(shape)
    ahead = [np.moveaxis(ids, axis, 0) for axis in range(len(shape))]
    return join([(rows[:-1].ravel(), rows[1:].ravel()) for rows in ahead])


def expander(n: int, degree: int, rng: np.random.Generator) -> Ends:
    """Return a union of random cycles: connected, and an expander with high probability."""
    cycles = [rng.permutation(n) for _ in range(degree // 2)]
    return unique(*join([(cycle, np.roll(cycle, 1)) for cycle in cycles]), n)


def preferential(n: int, k: int, rng: np.random.Generator) -> Ends:
    """Pick nodes by degree with the algorithm of Batagelj and Brandes (2005).

    A random end of a random earlier edge is a node with probability proportional to its degree.
    Edge e has ends 2e (the new node) and 2e + 1 (a copy of a random earlier end). Copies of copies
    are resolved for all edges at once, in O(log n) rounds.
    """
    new = np.repeat(np.arange(1, n), k)
    copied = (rng.random(new.size) * (2 * k * (new - 1))).astype(np.int64)
    copied[:k] = 0
    end = copied.copy()
    while (odd := np.flatnonzero((end & 1 == 1) & (end > 2 * k - 1))).size:
        end[odd] = copied[end[odd] >> 1]
    # Ends that are still odd belong to the k edges of node 1, whose other end is node 0.
    target = np.where(end & 1 == 1, 0, new[end >> 1])
    target[:k] = 0
    return unique(new, target, n)


def union_knn(points: Points, k: int) -> Ends:
    """Join i and j if either is among the k nearest neighbours of the other."""
    n = len(points)
    if n > 20_000:
        near = cKDTree(points).query(points, k + 1)[1]
        own = np.repeat(np.arange(n), k + 1)
        other = near.ravel()
        return unique(own[own != other], other[own != other], n)
    # A dense boolean matrix is smaller than the neighbour lists when k is in the thousands.
    joined = np.zeros((n, n), dtype=bool)
    for start in range(0, n, 256):
        rows = np.arange(start, min(start + 256, n))
        distance = np.zeros((len(rows), n))
        for axis in points.T:
            distance += (axis[rows, None] - axis) ** 2
        distance[rows - start, rows] = -1.0
        near = np.argpartition(distance, k, axis=1)[:, : k + 1]
        joined[rows[:, None], near] = True
    joined |= joined.T
    u, v = np.nonzero(np.triu(joined, 1))
    return u, v


def join(parts: Sequence[Ends]) -> Ends:
    """Concatenate the edges of the parts."""
    return np.concatenate([u for u, _ in parts]), np.concatenate([v for _, v in parts])


def unique(u: Nodes, v: Nodes, n: int) -> Ends:
    """Return each undirected pair once, without self-loops."""
    keys = np.sort((np.minimum(u, v) * n + np.maximum(u, v))[u != v])
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique hashes and is several times slower
    return keys // n, keys % n
