"""Find live edges of a log: those of some pairs, of some nodes, or before some time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edge_log.journal import Rows
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.records import EdgeColumns

__all__ = ["Pairs", "RowsFound", "find_edges", "find_nodes"]

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: the high bits are well mixed
LEAST_BITS = 16  # of the filter


class RowsFound(NamedTuple):
    """Live edges of one record that match."""

    segment: int
    rows: Rows
    columns: EdgeColumns


class Pairs:
    """Pairs of nodes, each perhaps with a weight and a time, that edges are compared with.

    Parameters
    ----------
    u, v : ndarray of int
        Numbers of nodes; -1 for ids that the log does not have.
    w, t : ndarray or None

    Attributes
    ----------
    is_found : ndarray of bool
        Which pairs have matched an edge so far.
    """

    def __init__(
        self,
        u: NDArray[np.integer],
        v: NDArray[np.integer],
        w: NDArray[np.floating] | None = None,
        t: NDArray[np.float64] | None = None,
    ) -> None:
        keys = _key(u, v)
        known = np.flatnonzero((u >= 0) & (v >= 0))
        self._order = known[np.argsort(keys[known], kind="stable")]
        self._keys = keys[self._order]
        self._w = None if w is None else w[self._order]
        self._t = None if t is None else t[self._order]
        self.is_found = np.zeros(len(u), bool)
        # Most edges are not in this filter, so that few need the binary search.
        bits = max(LEAST_BITS, 4 + int(max(1, len(self._keys))).bit_length())
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, bool)
        self._filter[self._hash(self._keys)] = True

    def match(self, columns: EdgeColumns) -> NDArray[np.intp]:
        """Return the rows that match a pair."""
        keys = _key(columns.u, columns.v)
        rows = np.flatnonzero(self._filter[self._hash(keys)])
        keys = keys[rows]
        low = np.searchsorted(self._keys, keys, "left")
        count = np.searchsorted(self._keys, keys, "right") - low
        # One entry for each row and each pair with the same key.
        rows = np.repeat(rows, count)
        starts = np.repeat(low - np.cumsum(count) + count, count)
        pairs = starts + np.arange(len(rows))
        is_match = np.ones(len(rows), bool)
        if self._w is not None:
            w = np.ones(len(rows)) if columns.w is None else columns.w[rows]
            is_match &= self._w[pairs].astype(w.dtype) == w
        if self._t is not None and columns.t is not None:
            is_match &= self._t[pairs] == columns.t[rows]
        self.is_found[self._order[pairs[is_match]]] = True
        return np.unique(rows[is_match])

    def _hash(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        hashed: NDArray[np.uint64] = (keys * MULTIPLIER) >> self._shift
        return hashed


def find_edges(
    live: LiveEdges, match: Callable[[EdgeColumns], NDArray[np.intp]], first: int = 0
) -> Iterator[RowsFound]:
    """Yield the live edges for which `match` returns their rows."""
    for part in live.parts(first):
        chosen = match(part.columns)
        if len(chosen) == 0:
            continue
        segment, first_row = live.place(part.record)
        rows = chosen if part.is_live is None else np.flatnonzero(part.is_live)[chosen]
        yield RowsFound(segment, (first_row + rows).astype(np.uint32), part.columns.take(chosen))


def find_nodes(
    live: LiveEdges, nodes: NDArray[np.integer], is_found: NDArray[np.bool_]
) -> Iterator[RowsFound]:
    """Yield the live edges of some nodes, and mark the nodes that have one."""
    position = np.full(live.n_nodes, -1, np.int64)
    known = nodes >= 0
    position[nodes[known]] = np.flatnonzero(known)
    is_chosen = position >= 0

    def match(columns: EdgeColumns) -> NDArray[np.intp]:
        rows = np.flatnonzero(is_chosen[columns.u] | is_chosen[columns.v])
        ends = np.concatenate([columns.u[rows], columns.v[rows]])
        is_found[position[ends[is_chosen[ends]]]] = True
        return rows

    yield from find_edges(live, match)
    is_found[known] = is_found[position[nodes[known]]]  # ids may be repeated


def _key(u: NDArray[np.integer], v: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return one number for each pair, the same in both directions."""
    low, high = np.minimum(u, v).astype(np.uint64), np.maximum(u, v).astype(np.uint64)
    key: NDArray[np.uint64] = (low << np.uint64(32)) | high
    return key
