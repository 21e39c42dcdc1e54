"""Edges between so many neighbours that these cannot be kept, computed in each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edges import Batch
from ohmlearn.points.point_arrays import fill_scales, pack_points, row_blocks

__all__ = ["Sweeps"]


class Sweeps:
    """The edges of a nearest-neighbour graph, in sweeps over all distances.

    The first sweep finds the distance of the last neighbour of each point, and is done once. The
    second one finds the edges, and is done in each pass. Distances are float32 if the points are,
    unless their squares are too large.

    Examples
    --------
    >>> sweeps = Sweeps(np.array([[0.0], [1.0], [3.0]]), k=1, weighted=False, threads=1)
    >>> [(u.tolist(), v.tolist()) for u, v, *_ in sweeps.edges()]
    [([0, 1], [1, 2])]
    """

    def __init__(
        self, x: NDArray[Any], k: int, *, weighted: bool, threads: int, block: int | None = None
    ) -> None:
        largest = float(np.finfo(np.float32).max)
        fits = x.dtype == np.float32 and float(np.ptp(x)) ** 2 * 2 * x.shape[1] <= largest
        self._points: Any = pack_points(x if fits else x.astype(np.float64))
        self._n, self._k, self._weighted = len(x), k, weighted
        self._threads, self._block = threads, block
        # Squared distance and index of each point's last neighbour, and scales.
        self._reach: tuple[NDArray[Any], NDArray[np.int32], NDArray[Any] | None] | None = None

    def find_reach(self, report: Callable[[float], None] = lambda fraction: None) -> None:
        """Find the distances of the last neighbours, unless they are known."""
        if self._reach is not None:
            return
        parts = []
        for begin, end in row_blocks(self._n, self._block, triangle=False):
            parts.append(self._points.find_reach(self._k, begin, end, self._threads))
            report(end / self._n)
        distance, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        self._reach = distance, index, fill_scales(np.sqrt(distance)) if self._weighted else None

    def edges(self) -> Iterator[Batch]:
        """Yield all edges."""
        self.find_reach()
        assert self._reach is not None
        for begin, end in row_blocks(self._n, self._block, triangle=True):
            yield Batch(*self._points.knn_edges(*self._reach, begin, end, self._threads))
