"""Which numbering of nodes edges use, so that two numberings are not mixed by mistake."""

from __future__ import annotations

import numpy as np

from ohmlearn.nodes.node_table import NodeTable

__all__ = ["are_reordered", "join_tables"]


def join_tables(a: NodeTable | None, b: NodeTable | None) -> NodeTable | None:
    """Return the longer of two tables that number the same ids alike.

    Raises
    ------
    ValueError
        If some number means two different ids.

    Examples
    --------
    >>> a, b = NodeTable(), NodeTable()
    >>> _ = a.add(["x"]), b.add(["x", "y"])
    >>> join_tables(a, b) is b
    True
    """
    if a is None or b is None or a is b:
        return b if a is None else a
    if a.agrees_with(b):
        return max(a, b, key=len)
    pairs = enumerate(zip(a.ids().tolist(), b.ids().tolist(), strict=False))
    number, (one, other) = next(item for item in pairs if item[1][0] != item[1][1])
    raise ValueError(
        f"the nodes are numbered in two ways: node {number} is {one!r} in one numbering and "
        f"{other!r} in the other; read both with the same table, as in "
        f"read_edges(..., nodes=first.nodes)"
    )


def are_reordered(nodes: NodeTable | None) -> bool:
    """Whether the ids are 0, 1, ... in another order, so that rows are easily taken for nodes.

    Examples
    --------
    >>> table = NodeTable()
    >>> _ = table.add([1, 0])
    >>> are_reordered(table), are_reordered(None)
    (True, False)
    """
    if nodes is None or nodes.kind != "int64":
        return False
    order = np.asarray(nodes.ids())
    usual = np.arange(len(order))
    return bool(np.array_equal(np.sort(order), usual) and not np.array_equal(order, usual))
