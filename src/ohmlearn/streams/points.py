"""Streams of edges between points: their base classes, and checks of points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn.nodes import NodeTable
from ohmlearn.validation.edges import MAX_NODES
from ohmlearn.validation.parameters import check_count, check_n_jobs, check_option

__all__ = [
    "NeighborEdges",
    "PointEdges",
    "Points",
    "check_n_neighbors",
    "check_points",
    "fill_scales",
    "pack_points",
    "row_blocks",
]

PAIRS = 1 << 18  # per block: few enough for the cache, many enough to hide the call overhead
TILE = 16  # rows that the kernel compares with all points at once; blocks are multiples of it

Points = _core.Points32 | _core.Points64


class PointEdges(Shown):
    """A stream of edges whose nodes are points, numbered by their rows.

    Attributes
    ----------
    n_nodes : int
        Number of points.
    nodes : None
        The nodes are numbers already, so that there is no NodeTable.
    rereadable : bool
        True: every ``iter()`` starts from the beginning.
    """

    rereadable = True
    nodes: NodeTable | None = None

    def __init__(self, n_nodes: int, n_jobs: int | None, block: int | None) -> None:
        self.n_nodes = n_nodes
        self._threads = check_n_jobs(n_jobs)
        self._block = None if block is None else check_count("block", block)

    def _facts(self) -> dict[str, Any]:
        known = vars(self)  # without properties, which may compute
        neighbors, edges = known.get("n_neighbors"), known.get("n_edges")
        return {"points": self.n_nodes, "neighbours of a point": neighbors, "edges": edges}


class NeighborEdges(PointEdges, ABC):
    """A stream of the edges of a nearest-neighbour graph."""

    def __init__(
        self,
        X: ArrayLike,
        *,
        n_neighbors: int,
        weights: str = "uniform",
        n_jobs: int | None = None,
        block: int | None = None,
    ) -> None:
        x = check_points(X)
        super().__init__(len(x), n_jobs, block)
        self.n_neighbors = check_n_neighbors(n_neighbors, len(x))
        self._weighted = check_option("weights", weights, ("uniform", "gaussian")) == "gaussian"
        self._prepare(x)

    @abstractmethod
    def _prepare(self, x: NDArray[Any]) -> None:
        """Store what the edges are computed from."""


def pack_points(x: NDArray[Any]) -> Points:
    """Copy points into the order that the kernels read."""
    return _core.Points32(x) if x.dtype == np.float32 else _core.Points64(x)


def row_blocks(n_nodes: int, block: int | None, *, triangle: bool) -> Iterator[tuple[int, int]]:
    """Cut 0, ..., n_nodes - 1 into ranges with about the same number of pairs each.

    Row i is paired with all points, or, in a triangle, with those after it.

    Examples
    --------
    >>> list(row_blocks(10, 4, triangle=True))
    [(0, 4), (4, 8), (8, 10)]
    """
    begin = 0
    while begin < n_nodes:
        partners = n_nodes - begin if triangle else n_nodes
        rows = max(TILE, PAIRS // partners // TILE * TILE) if block is None else block
        end = min(n_nodes, begin + rows)
        yield begin, end
        begin = end


def fill_scales(scale: NDArray[Any]) -> NDArray[Any]:
    """Set the scale of points whose last neighbour is an exact copy to the mean of the others.

    The array is changed in place. If all scales are 0, all distances are, and any scale will do.

    Examples
    --------
    >>> fill_scales(np.array([1.0, 0.0, 3.0]))
    array([1., 2., 3.])
    """
    positive = scale > 0
    scale[~positive] = scale[positive].mean() if positive.any() else 1
    return scale


def check_points(values: Any) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return points as a contiguous (n_points, n_features) float array whose distances are finite.

    Examples
    --------
    >>> check_points([[0, 1], [2, 3]])
    array([[0., 1.],
           [2., 3.]])
    """
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"X must have shape (n_points, n_features), both at least 1, got {array.shape}"
            + ("; use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else "")
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X must be real numbers, got dtype {array.dtype}")
    if len(array) > MAX_NODES:
        raise ValueError(f"X has {len(array)} points, but at most {MAX_NODES} nodes are possible")
    x: NDArray[np.float32] | NDArray[np.float64]
    if array.dtype == np.float32:
        x = np.ascontiguousarray(array, dtype=np.float32)
    else:
        x = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(x)
    if not finite.all():
        i, j = (int(at) for at in np.argwhere(~finite)[0])
        raise ValueError(f"X must be finite, but X[{i}, {j}] = {x[i, j]}; drop or fill such points")
    widest = float(x.max()) - float(x.min())
    if not widest <= math.sqrt(float(np.finfo(x.dtype).max) / 2 / x.shape[1]):
        raise ValueError(
            f"X spans {widest:g}: squared distances pass the largest {x.dtype}; scale X down"
        )
    return x


def check_n_neighbors(n_neighbors: Any, n_points: int) -> int:
    """Return `n_neighbors` if each point has that many others."""
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool):
        raise ValueError(f"n_neighbors must be an integer, got {n_neighbors!r}")
    if not 1 <= int(n_neighbors) < n_points:
        raise ValueError(
            f"n_neighbors must lie between 1 and n_points - 1 = {n_points - 1}, got {n_neighbors}"
        )
    return int(n_neighbors)
