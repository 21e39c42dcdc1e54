"""A product with the Laplacian of edges in partitions: what a task does, and how parts add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn._arrays_file import check_arrays, pack_arrays, unpack_arrays
from ohmlearn.cluster.cluster_errors import in_partition
from ohmlearn.cluster.partitions import open_partition
from ohmlearn.edges import Batch
from ohmlearn.edges.passes import PassTotals, read_pass
from ohmlearn.edges.strongest_pairs import PairsFound, merge_pairs
from ohmlearn.nodes.node_table import NodeTable, Numbers
from ohmlearn.reading.read_options import ReadOptions


class PartialProduct(NamedTuple):
    """What some partitions add to a pass.

    Examples
    --------
    >>> nodes = NodeTable()
    >>> _ = nodes.add([0, 1, 2])
    >>> x = np.array([[1.0], [0.0], [0.0]])
    >>> parts = [
    ...     multiply_partition(([a], [b]), nodes, x, None, None, None, "", ReadOptions())
    ...     for a, b in ((0, 1), (0, 2))
    ... ]
    >>> PartialProduct.from_bytes(add_products(parts).to_bytes()).totals.product.ravel()
    array([ 2., -1., -1.])
    """

    totals: PassTotals
    roots: NDArray[np.int32]  # in the first pass a node of the component in these partitions

    def to_bytes(self) -> bytes:
        """Return it as bytes with a checksum."""
        totals = self.totals
        arrays = {
            "product": totals.product,
            "n_edges": np.array(totals.n_edges, np.int64),
            "weight": np.array(totals.weight, np.float64),
            "lost_edge": np.array(totals.lost_edge or (), np.int64),
            "roots": self.roots,
        }
        for name in ("degrees", "sums"):
            if (array := getattr(totals, name)) is not None:
                arrays[name] = array
        return pack_arrays(arrays)

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the product of a partition") -> PartialProduct:
        """Return what `to_bytes` was called on; any other bytes raise ValueError."""
        arrays = unpack_arrays(content, name)
        degrees, sums = arrays.get("degrees"), arrays.get("sums")
        try:
            check_arrays(arrays, {"product": np.float64}, ndim=2)
            check_arrays(arrays, {"n_edges": np.int64, "weight": np.float64}, ndim=0)
            check_arrays(arrays, {"lost_edge": np.int64, "roots": np.int32})
            for key in arrays.keys() & {"degrees", "sums"}:
                check_arrays(arrays, {key: np.float64})
            size, roots, lost = len(arrays["product"]), arrays["roots"], arrays["lost_edge"]
            if len(roots) not in (0, size) or (degrees is not None and len(degrees) != size):
                raise ValueError("its arrays are not equally long")
            if roots.min(initial=0) < 0 or roots.max(initial=-1) >= size or len(lost) not in (0, 2):
                raise ValueError("it names nodes that are not there")
        except ValueError as error:
            raise ValueError(f"{name} cannot be read: {error}; make it again") from error
        edge = (int(lost[0]), int(lost[1])) if len(lost) else None
        counts = int(arrays["n_edges"]), float(arrays["weight"])
        return cls(PassTotals(arrays["product"], *counts, edge, degrees, sums), roots)


class KnownNodes(NodeTable):
    """A table that finds nodes but adds none; unknown nodes get numbers after the last node.

    Those numbers differ within a batch, so that an edge between two such nodes is no self-loop.
    The table that is given must not be changed meanwhile, because it is read without its lock.
    """

    def __init__(self, table: NodeTable) -> None:
        super().__init__()  # not the lock of `table`: readers need not wait for one another
        self._kernel, self._kinds = table.kernel, table.kinds

    def add_edges(
        self, u: ArrayLike | Any, v: ArrayLike | Any, *, kinds: Sequence[str] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return the numbers of both ends of edges."""
        a, b = self._columns(u, v, kinds)
        first, second = (self.find(ids, missing="mask").filled(-1) for ids in (a, b))
        if min(first.min(initial=0), second.min(initial=0)) < 0:
            batch = NodeTable().add_edges(a, b)
            for numbers, others in zip((first, second), batch, strict=True):
                unknown = numbers < 0
                numbers[unknown] = len(self) + others[unknown]
        return first, second


def multiply_partition(
    content: object,
    nodes: NodeTable,
    x: NDArray[np.float64],
    component: NDArray[np.int32] | None,
    watched: tuple[NDArray[np.float32], NDArray[np.int64]] | None,
    weigh: Callable[..., tuple[Any, ...]] | None,
    name: str,
    options: ReadOptions,
) -> PartialProduct:
    """Read a partition, batch after batch, and multiply with its Laplacian.

    Parameters
    ----------
    content : anything that `read_edges` accepts
    nodes : NodeTable
        The numbers of all nodes.
    x : ndarray of shape (n_nodes, n_columns)
    component : ndarray of int, optional
        Components of the sparsifier, in the first pass.
    watched : (ndarray, ndarray), optional
        Columns, and for each the node of which the sum of w times its column is found.
    weigh : callable, optional
        That of ``read_pass``, for edges with times.
    name : str
        Of the partition, for errors.
    options : ReadOptions

    Examples
    --------
    >>> from ohmlearn.cluster import multiply_partition
    >>> nodes = NodeTable()
    >>> _ = nodes.add([10, 20])
    >>> x, edges = np.array([[1.0], [0.0]]), ([10], [20])
    >>> part = multiply_partition(edges, nodes, x, None, None, None, "", ReadOptions())
    >>> part.totals.product.ravel()
    array([ 1., -1.])
    """
    roots = np.arange(0 if component is None else len(component), dtype=np.int32)
    with in_partition(name):
        stream = open_partition(content, options, KnownNodes(nodes))
        totals = read_pass(stream, x, component, roots, watched=watched, weigh=weigh)
        return PartialProduct(totals, roots)


def add_products(parts: list[PartialProduct]) -> PartialProduct:
    """Add up what partitions have found, in their order.

    Examples
    --------
    >>> from ohmlearn.cluster import PartialProduct, add_products
    >>> part = PartialProduct(PassTotals(np.ones((2, 1)), 1, 1.0), np.empty(0, np.int32))
    >>> add_products([part, part]).totals.n_edges
    2
    """
    (product, count, weight, lost, degrees, sums), roots = parts[0]
    product, roots = product.copy(), roots.copy()
    nodes = np.arange(len(roots), dtype=np.int32)
    anywhere = np.zeros(len(roots), dtype=np.int32)
    for totals, others in parts[1:]:
        if totals.product.shape != product.shape or len(others) != len(roots):
            raise ValueError("products of different blocks cannot be added")
        product += totals.product
        count += totals.n_edges
        weight += totals.weight
        lost = lost or totals.lost_edge
        if degrees is not None and totals.degrees is not None:
            degrees = degrees + totals.degrees
        if sums is not None and totals.sums is not None:
            sums = sums + totals.sums
        read_pass([Batch(nodes, others)], np.empty((len(roots), 0)), anywhere, roots)
    return PartialProduct(PassTotals(product, count, weight, lost, degrees, sums), roots)


@dataclass(frozen=True)
class Multiplying:
    """Multiply with the Laplacians of partitions, and add up the products."""

    options: ReadOptions
    stage: ClassVar[str] = "multiply"
    result: ClassVar[type] = PartialProduct

    def read(self, content: object, number: int, name: str, *shared: Any) -> PartialProduct:
        """Return the product with a partition; `multiply_partition` says what is shared."""
        nodes, (x, component, watched), weigh = shared
        return multiply_partition(content, nodes, x, component, watched, weigh, name, self.options)

    def merge(self, parts: list[PartialProduct], level: int, index: int) -> PartialProduct:
        """Return the sum."""
        return add_products(parts)


@dataclass(frozen=True)
class Searching:
    """Find the strongest pairs of nodes in partitions."""

    options: ReadOptions
    n_nodes: int
    stage: ClassVar[str] = "explain"
    result: ClassVar[type] = PairsFound

    def read(self, content: object, number: int, name: str, *shared: Any) -> PairsFound:
        """Return what is found in a partition; shared are the nodes, and the search."""
        nodes, search = shared
        with in_partition(name):
            stream = open_partition(content, self.options, KnownNodes(nodes))
            found: PairsFound = search.read(stream)
            return found

    def merge(self, parts: list[PairsFound], level: int, index: int) -> PairsFound:
        """Return what is found in all of them."""
        return merge_pairs(parts, self.n_nodes)
