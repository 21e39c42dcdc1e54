"""Streams of edges between points: their base classes, and checks of points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn.checks.edge_arrays import MAX_NODES
from ohmlearn.checks.parameters import check_count, check_n_jobs
from ohmlearn.edges import Edges
from ohmlearn.errors import InputError, Param, bad_value

PAIRS = 1 << 18  # per block: few enough for the cache, many enough to hide the call overhead
TILE = 16  # rows that the kernel compares with all points at once; blocks are multiples of it

Points = _core.Points32 | _core.Points64
Neighbors = tuple[NDArray[np.int32], NDArray[np.float64]]  # indices, squared distances; (n, k)
# Points that were checked: a dense array or a CSR matrix of scipy, which has no types.
Matrix: TypeAlias = Any


class PointEdges(Edges, Shown):
    """A stream of edges whose nodes are points, numbered by their rows; so it has no NodeTable."""

    n_nodes: int

    def __init__(self, n_nodes: int, n_jobs: int | None, block: int | None) -> None:
        self.n_nodes = n_nodes
        self._threads = check_n_jobs(n_jobs)
        self._block = None if block is None else check_count("block", block)

    def _facts(self) -> dict[str, Any]:
        known = vars(self)  # without properties, which may compute
        neighbors, edges = known.get("n_neighbors"), known.get("n_edges")
        return {"points": self.n_nodes, "neighbours of a point": neighbors, "edges": edges}


def pack_points(x: NDArray[Any]) -> Points:
    """Copy points into the order that the kernels read."""
    return _core.Points32(x) if x.dtype == np.float32 else _core.Points64(x)


def row_blocks(n_nodes: int, block: int | None, *, triangle: bool) -> Iterator[tuple[int, int]]:
    """Cut 0, ..., n_nodes - 1 into ranges with about the same number of pairs each.

    Row i is paired with all points, or, in a triangle, with those after it.
    """
    begin = 0
    while begin < n_nodes:
        partners = n_nodes - begin if triangle else n_nodes
        rows = max(TILE, PAIRS // partners // TILE * TILE) if block is None else block
        end = min(n_nodes, begin + rows)
        yield begin, end
        begin = end


def find_scales(squares: NDArray[Any], gamma: float = 1.0) -> NDArray[Any]:
    """Return scales t with weights exp(-d² / (t_i t_j)), from squared distances of last neighbours.

    A point whose last neighbour is an exact copy has the mean scale of the others. If all are 0,
    all distances are, and any scale will do.

    Examples
    --------
    >>> find_scales(np.array([1.0, 0.0, 9.0]))
    array([1., 2., 3.])
    """
    scale: NDArray[Any] = np.sqrt(squares)
    positive = scale > 0
    scale[~positive] = scale[positive].mean() if positive.any() else 1
    scale /= np.sqrt(gamma).astype(scale.dtype)
    return scale


def check_points(
    values: Any, *, keep: tuple[Any, ...] = (np.float32,), squares: Any = None
) -> NDArray[Any]:
    """Return points as a contiguous (n_points, n_features) array whose distances are finite.

    Its dtype is that of the values if it is one of `keep`, else float64. `squares` is the dtype of
    squared distances, by default that of the points.
    """
    refuse_inexact(values)
    array = np.asarray(values)
    check_shape(array.shape)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{Param('X')} must be real numbers, got dtype {array.dtype}")
    dtype = array.dtype if array.dtype in keep else np.float64
    x: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
    low, high = float(x.min()), float(x.max())  # NaN if any value is
    if not (math.isfinite(low) and math.isfinite(high)):
        i, j = (int(at) for at in np.argwhere(~np.isfinite(x))[0])
        raise InputError(
            f"{Param('X')} must be finite, but X[{i}, {j}] = {x[i, j]}; drop or fill such points"
        )
    check_span(high - low, x.shape[1], x.dtype if squares is None else np.dtype(squares))
    return x


def refuse_inexact(values: Any) -> None:
    """Refuse integers that float64 cannot hold: distances between them would be wrong."""
    if scipy.sparse.issparse(values):
        columns = [values.tocsr().data]
    elif type(values).__name__ == "DataFrame":  # its columns may have different types
        pairs = getattr(values, "items", None)
        columns = values.get_columns() if pairs is None else [column for _, column in pairs()]
    else:
        columns = [values]
    for array in map(np.asarray, columns):
        if array.dtype.kind in "iu" and array.itemsize == 8 and array.size > 0:
            largest = max(int(array.max()), int(array.min()), key=abs)
            if abs(largest) > 2**53:
                raise InputError(
                    f"{Param('X')} has the integer {largest}, but float64 holds integers up to "
                    f"2**53 exactly, so distances would be wrong; subtract a constant from each "
                    f"column first, for example X - X.min(axis=0), or leave out columns of ids"
                )


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse shapes that are not (n_points, n_features)."""
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"{Param('X')} must have shape (n_points, n_features), both at least 1, got {shape}"
            + ("; use X.reshape(-1, 1) for a single feature" if len(shape) == 1 else "")
        )
    if shape[0] > MAX_NODES:
        raise InputError(
            f"{Param('X')} has {shape[0]} points, but at most {MAX_NODES} nodes are possible"
        )


def check_span(widest: float, n_features: int, squares: np.dtype[Any]) -> None:
    """Refuse points whose squared distances a dtype cannot hold."""
    about = np.finfo(squares)
    too_small = 0.0 < widest < math.sqrt(float(about.tiny / about.eps))
    if too_small or not widest <= math.sqrt(float(about.max) / 2 / n_features):
        what, way = ("fall below the least", "up") if too_small else ("pass the largest", "down")
        raise InputError(
            f"{Param('X')} spans {widest:g}: squared distances {what} {squares}; scale X {way}"
        )


def check_n_neighbors(n_neighbors: object, n_points: int) -> int:
    """Return `n_neighbors` if each point has that many others."""
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool):
        raise bad_value("n_neighbors", "be an integer", n_neighbors)
    if not 1 <= int(n_neighbors) < n_points:
        most = f"n_points - 1 = {n_points - 1}"
        raise bad_value("n_neighbors", f"lie between 1 and {most}", n_neighbors)
    return int(n_neighbors)
