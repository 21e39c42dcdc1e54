"""Edges between points: what their streams have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.validation.edges import MAX_NODES
from ohmlearn.validation.parameters import check_count

__all__ = [
    "Points",
    "check_n_neighbors",
    "check_points",
    "fill_scales",
    "pack_points",
    "row_blocks",
]

PAIRS = 1 << 18  # in a block, about: small enough for the cache, large beside the cost of a call
TILE = 16  # rows that are met with all points together: a block has a multiple of it

Points = _core.Points32 | _core.Points64


def pack_points(x: NDArray[Any]) -> Points:
    """Copy points into the order that the kernels read."""
    return _core.Points32(x) if x.dtype == np.float32 else _core.Points64(x)


def row_blocks(n_nodes: int, block: int | None, *, triangle: bool) -> Iterator[tuple[int, int]]:
    """Cut 0, ..., n_nodes - 1 into ranges that have about as many pairs each.

    Row i meets all points, or, in a triangle, those after it.

    Examples
    --------
    >>> list(row_blocks(10, 4, triangle=True))
    [(0, 4), (4, 8), (8, 10)]
    """
    if block is not None:
        block = check_count("block", block)
    begin = 0
    while begin < n_nodes:
        partners = n_nodes - begin if triangle else n_nodes
        rows = max(TILE, PAIRS // partners // TILE * TILE) if block is None else block
        end = min(n_nodes, begin + rows)
        yield begin, end
        begin = end


def fill_scales(scale: NDArray[Any]) -> NDArray[Any]:
    """Give points whose last neighbour is an exact copy the mean scale of the others, in place.

    Where all are such, so are all distances 0, and any scale will do.

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
    """Return a number of neighbours that each of the points has."""
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool):
        raise ValueError(f"n_neighbors must be an integer, got {n_neighbors!r}")
    if not 1 <= int(n_neighbors) < n_points:
        raise ValueError(
            f"n_neighbors must lie between 1 and n_points - 1 = {n_points - 1}, got {n_neighbors}"
        )
    return int(n_neighbors)
