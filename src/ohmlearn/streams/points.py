"""Edges between points: what their streams have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._validation import check_count

__all__ = ["Points", "fill_scales", "pack_points", "row_blocks"]

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
