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

from ohmlearn.nodes.ids import Coded, Ids, decode_codes, take
from ohmlearn.nodes.kinds import with_kind
from ohmlearn.nodes.table import NodeTable

__all__ = ["KnownEnds", "add_ends", "look_up", "number_ends"]

Column = Ids | Coded
Numbers = NDArray[np.int32]


class KnownEnds(NamedTuple):
    """Numbers of the ends of edges, and the ids of those edges that have a new one."""

    u: Numbers
    v: Numbers
    rows: NDArray[np.intp] | None = None  # edges with a new id
    new: tuple[Ids, Ids] | None = None  # both ends of those edges


def look_up(
    nodes: NodeTable, u: Column, v: Column, kinds: Sequence[str] | None = None
) -> KnownEnds | None:
    """Return what a table knows about the ends of edges; None if that does not help.

    Threads can call it at the same time.

    Examples
    --------
    >>> nodes = NodeTable()
    >>> _ = nodes.add([7, 8, 9])
    >>> known = look_up(nodes, np.array([7, 9, 8]), np.array([9, 1, 9]))
    >>> known.rows
    array([1])
    >>> number_ends(nodes, known)
    (array([0, 2, 1], dtype=int32), array([2, 3, 2], dtype=int32))
    """
    if kinds is None and nodes.kinds:
        return None  # `add_edges` checks that the ids have kinds
    a = _find(nodes, u, None if kinds is None else kinds[0])
    b = _find(nodes, v, None if kinds is None else kinds[1])
    if a is None or b is None:
        return None
    if a.size == 0 or min(a.min(), b.min()) >= 0:
        return KnownEnds(a, b)
    rows = np.flatnonzero((a < 0) | (b < 0))
    if 2 * len(rows) > len(a) and not isinstance(u, Coded):
        return None
    return KnownEnds(a, b, rows, (_choose(u, rows), _choose(v, rows)))


def _find(nodes: NodeTable, column: Column, kind: str | None) -> Numbers | None:
    ids = column.values if isinstance(column, Coded) else column
    numbers = nodes.peek(ids if kind is None else with_kind(ids, kind))
    if numbers is None or not isinstance(column, Coded):
        return numbers
    found: Numbers = numbers.take(column.codes)
    return found


def _choose(column: Column, rows: NDArray[np.intp]) -> Ids:
    if isinstance(column, Coded):
        return take(column.values, column.codes[rows])
    return take(column, rows)


def number_ends(
    nodes: NodeTable, known: KnownEnds, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges after `look_up`; new ids get the next numbers."""
    u, v, rows, new = known
    if kinds is not None and len(u) > 0:
        nodes.add_kinds(kinds)
    if rows is None or new is None:
        return u, v
    u, v = (numbers if numbers.flags.writeable else numbers.copy() for numbers in (u, v))
    u[rows], v[rows] = nodes.add_edges(*new, kinds=kinds)
    return u, v


def add_ends(
    nodes: NodeTable, u: Column, v: Column, kinds: Sequence[str] | None = None
) -> tuple[Numbers, Numbers]:
    """Return the numbers of both ends of edges, as `NodeTable.add_edges`, also if they are coded.

    Examples
    --------
    >>> from ohmlearn.nodes.ids import encode_strings
    >>> ends = Coded(encode_strings(["ann", "bob"]), np.array([1, 0, 1]))
    >>> add_ends(NodeTable(), ends, ends)
    (array([0, 1, 0], dtype=int32), array([0, 1, 0], dtype=int32))
    """
    if isinstance(u, Coded) or isinstance(v, Coded):
        known = look_up(nodes, u, v, kinds)
        if known is not None:
            return number_ends(nodes, known, kinds)
    return nodes.add_edges(decode_codes(u), decode_codes(v), kinds=kinds)
