"""Numbers of the ends of edges of which most, or all, are in a table already.

Looking ids up does not change the table, so several threads can do it for different batches. What
is left, the edges with a new id, is numbered later, batch by batch. As known ids keep their
numbers, the result is that of `NodeTable.add_edges`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.node_ids import CodedIds, Ids, decode_codes, take, with_kind
from ohmlearn.nodes.node_table import NodeTable

Column = Ids | CodedIds
Numbers = NDArray[np.int32]


class KnownEnds(NamedTuple):
    """Numbers of the ends of edges, and what is needed to number the new ids among them."""

    u: Numbers
    v: Numbers
    rows: NDArray[np.intp] | None = None  # edges with a new id
    new: tuple[Ids, Ids] | None = None  # both ends of those edges
    coded: tuple[CodedIds | None, CodedIds | None] = (None, None)


def look_up(
    nodes: NodeTable,
    u: Column,
    v: Column,
    kinds: Sequence[str] | None = None,
    to: tuple[Numbers, Numbers] | None = None,
) -> KnownEnds | None:
    """Return what a table knows about the ends of edges; None if that does not help.

    Threads can call it at the same time. Numbers are written to the arrays `to`, if given.
    """
    if kinds is None and nodes.kinds:
        return None  # `add_edges` checks that the ids have kinds
    first, second = kinds or (None, None)
    to_u, to_v = to or (None, None)
    a, b = _find(nodes, u, first, to_u), _find(nodes, v, second, to_v)
    if a is None or b is None:
        return None
    if a.size == 0 or min(a.min(), b.min()) >= 0:
        return KnownEnds(a, b)
    rows = np.union1d(_find_new(u, a), _find_new(v, b))
    if 2 * len(rows) > len(a):
        return None
    new = decode_codes(take(u, rows)), decode_codes(take(v, rows))
    coded = u if isinstance(u, CodedIds) else None, v if isinstance(v, CodedIds) else None
    return KnownEnds(a, b, rows, new, coded)


def _find(
    nodes: NodeTable, column: Column, kind: str | None, to: Numbers | None = None
) -> Numbers | None:
    """Return the numbers of ids, -1 for new ones."""
    if not isinstance(column, CodedIds):
        return nodes.peek(column if kind is None else with_kind(column, kind), to)
    ids = column.values
    numbers = nodes.peek(ids if kind is None else with_kind(ids, kind))
    if numbers is None:
        return None
    found = np.empty(column.size, np.int32) if to is None else to
    _core.decode_numbers(numbers, column.codes.astype(np.int32, copy=False), found)
    return found


def _find_new(column: Column, numbers: Numbers) -> NDArray[np.intp]:
    """Return the rows with a new id; if ids are coded, only the first row of each new id."""
    rows = np.flatnonzero(numbers < 0)
    if not isinstance(column, CodedIds):
        return rows
    first = np.full(column.values.size, -1)
    first[column.codes[rows[::-1]]] = rows[::-1]  # the last assignment counts
    return first[first >= 0]


def number_ends(
    nodes: NodeTable, known: KnownEnds, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges after `look_up`; new ids get the next numbers."""
    u, v, rows, new, coded = known
    if kinds is not None and len(u) > 0:
        nodes.add_kinds(kinds)
    if rows is None or new is None:
        return u, v
    found = []
    added = nodes.add_edges(*new, kinds=kinds)
    for column, numbers, some, kind in zip(
        coded, (u, v), added, kinds or (None, None), strict=True
    ):
        every = None if column is None else _find(nodes, column, kind)
        if every is None:
            every = numbers.copy()
            every[rows] = some
        found.append(every)
    return found[0], found[1]


def add_ends(
    nodes: NodeTable, u: Column, v: Column, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges, as `add_edges`; they may be coded."""
    known = (
        look_up(nodes, u, v, kinds) if isinstance(u, CodedIds) or isinstance(v, CodedIds) else None
    )
    if known is not None:
        return number_ends(nodes, known, kinds)
    return nodes.add_edges(decode_codes(u), decode_codes(v), kinds=kinds)
