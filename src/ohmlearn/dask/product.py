"""A product with the Laplacian of edges on a cluster: what a worker does, and how parts add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn.dask.partitions import in_partition, open_partition
from ohmlearn.graph.passes import PassTotals, read_pass
from ohmlearn.nodes.table import NodeTable, Numbers
from ohmlearn.streams.options import ReadOptions

__all__ = ["PartialProduct", "add_products", "multiply_partition"]


class PartialProduct(NamedTuple):
    """What some partitions add to a pass."""

    totals: PassTotals
    roots: NDArray[np.int32]  # in the first pass a node of the component in these partitions


class KnownNodes(NodeTable):
    """A table that finds nodes but adds none; unknown nodes get numbers after the last node.

    Those numbers differ within a batch, so that an edge between two such nodes is no self-loop.
    The table that is given must not be changed meanwhile, because it is read without its lock.

    Examples
    --------
    >>> table = NodeTable()
    >>> _ = table.add([10, 20])
    >>> KnownNodes(table).add_edges([10, 30, 30], [20, 40, 30])
    (array([0, 4, 4], dtype=int32), array([1, 5, 4], dtype=int32))
    """

    def __init__(self, table: NodeTable) -> None:
        super().__init__()  # not the lock of `table`: readers need not wait for one another
        self._kernel, self._kinds = table._table, table.kinds

    def add_edges(
        self, u: ArrayLike | Any, v: ArrayLike | Any, *, kinds: Sequence[str] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return the numbers of both ends of edges."""
        a, b = self._columns(u, v, kinds)
        first, second = self._find(a), self._find(b)
        if min(first.min(initial=0), second.min(initial=0)) < 0:
            batch = NodeTable().add_edges(a, b)
            for numbers, others in zip((first, second), batch, strict=True):
                unknown = numbers < 0
                numbers[unknown] = len(self) + others[unknown]
        return first, second


def multiply_partition(
    content: Any,
    nodes: NodeTable,
    x: NDArray[np.float64],
    component: NDArray[np.int32] | None,
    watched: tuple[NDArray[np.float32], NDArray[np.int64]] | None,
    weigh: Callable[..., tuple[Any, ...]] | None,
    name: str,
    options: ReadOptions,
) -> PartialProduct:
    """Read a partition, batch after batch, and multiply with its Laplacian.

    `watched` are the arguments of `Surroundings`, if those are wanted; `weigh` is that of
    `read_pass`.
    """
    roots = np.arange(0 if component is None else len(component), dtype=np.int32)
    with in_partition(name):
        stream = open_partition(content, options, KnownNodes(nodes))
        totals = read_pass(stream, x, component, roots, watched=watched, weigh=weigh)
        return PartialProduct(totals, roots)


def add_products(parts: list[PartialProduct]) -> PartialProduct:
    """Add up what partitions have found, in their order."""
    (product, count, weight, lost, degrees, sums), roots = parts[0]
    product, roots = product.copy(), roots.copy()
    nodes = np.arange(len(roots), dtype=np.int32)
    anywhere = np.zeros(len(roots), dtype=np.int32)
    for totals, others in parts[1:]:
        product += totals.product
        count += totals.n_edges
        weight += totals.weight
        lost = lost or totals.lost_edge
        if degrees is not None and totals.degrees is not None:
            degrees = degrees + totals.degrees
        if sums is not None and totals.sums is not None:
            sums = sums + totals.sums
        _core.join_ends(anywhere, roots, nodes, others)
    return PartialProduct(PassTotals(product, count, weight, lost, degrees, sums), roots)
