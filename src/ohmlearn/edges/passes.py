"""Reading the edges of a graph several times, multiplying by its Laplacian in each pass."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import MAX_NODES, EdgeNames, raise_edge_fault
from ohmlearn.checks.parameters import check_n_jobs
from ohmlearn.edges.protocol import Batch, Edges, one_pass
from ohmlearn.errors import InputError
from ohmlearn.graph.graph import Graph
from ohmlearn.graph.time_view import TimeView
from ohmlearn.nodes.node_table import join_tables

# A column of x for each of some nodes, and these nodes.
ColumnsOfNodes = tuple[NDArray[np.float32], NDArray[np.int64]]


class PassTotals(NamedTuple):
    """Results of a pass over all edges, or over some of them."""

    product: NDArray[np.float64]  # L x
    n_edges: int
    weight: float  # sum over the edges; 0 for a Graph, which cannot change between passes
    lost_edge: tuple[int, int] | None = None
    # In the first pass, if something is watched.
    degrees: NDArray[np.float64] | None = None
    sums: NDArray[np.float64] | None = None


class Passes(ABC):
    """Repeated passes over the edges of G, local or remote, restricted to the nodes of H.

    `component` is that of each node in H, and `reader` names the function that reads, for messages.
    """

    def __init__(self, component: NDArray[np.int32], reader: str) -> None:
        self.component, self.n_nodes = component, len(component)
        self.passes = self.edges_read = 0  # in all passes together
        # The first edge found between components of H, or to a node that H does not have.
        self.lost_edge: tuple[int, int] | None = None
        # If set before the first pass, it also finds, for each node, the sum of w over its edges,
        # and for each of the watched nodes, each once, the sum of w times its column.
        self.watched: ColumnsOfNodes | None = None
        self.degrees: NDArray[np.float64] | None = None
        self.sums: NDArray[np.float64] | None = None
        self._reader = reader
        self._roots = np.arange(self.n_nodes, dtype=np.int32)  # a node of the same component of G
        self._first: tuple[int, float] | None = None  # edges and weight of the first pass

    @abstractmethod
    def _read(self, x: NDArray[np.float64]) -> PassTotals:
        """Read all edges; in the first pass, join the ends of edges in `_roots`."""

    def multiply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return L_G x for an (n_nodes, n_columns) array, in one pass over the edges."""
        found = self._read(np.ascontiguousarray(x))
        if self._first is None:
            self._first = found.n_edges, found.weight
            self.lost_edge = found.lost_edge
            self.degrees, self.sums, self.watched = found.degrees, found.sums, None
            _core.find_roots(self._roots)
        elif self._first[0] != found.n_edges or not math.isclose(
            self._first[1], found.weight, rel_tol=1e-9
        ):
            raise InputError(
                f"{self._reader} needs the same edges in every pass, but pass 1 had "
                f"{self._first[0]} edges of total weight {self._first[1]:g} and pass "
                f"{self.passes + 1} had {found.n_edges} of {found.weight:g}; pass an iterable "
                f"that starts from the beginning each time"
            )
        self.passes += 1
        self.edges_read += found.n_edges
        return found.product

    def find_extra(self, h: Graph) -> tuple[int, int] | None:
        """Return an edge of H between two components of G, after the first pass."""
        u, v, _ = h.edges()
        extra = np.flatnonzero(self._roots[u] != self._roots[v])
        return (int(u[extra[0]]), int(v[extra[0]])) if len(extra) > 0 else None


class BatchPasses(Passes):
    """Passes over edges that this process reads.

    The first pass also compares components. To the last bit, a product does not depend on the
    batches of the edges or on the number of threads. A pass takes 8 bytes per node and column of x;
    if that is more than 4 MiB, or with many threads, edges are sorted about a million at a time,
    which takes up to 48 MiB more. With a `view`, edges need times.
    """

    def __init__(
        self,
        edges: Edges,
        component: NDArray[np.int32],
        reader: str,
        n_jobs: int | None = None,
        view: TimeView | None = None,
    ) -> None:
        super().__init__(component, reader)
        self._edges, self._threads = edges, check_n_jobs(n_jobs)
        self._weigh = None if view is None else partial(view.weigh, component=component)

    def _read(self, x: NDArray[np.float64]) -> PassTotals:
        component = self.component if self.passes == 0 else None
        how = (self._threads, self.watched, self._weigh)
        with one_pass(self._edges, self._threads) as batches:
            return read_pass(batches, x, component, self._roots, *how)


class GraphPasses(Passes):
    """Products with the Laplacian of a graph in memory."""

    def __init__(
        self, graph: Graph, component: NDArray[np.int32], reader: str, n_jobs: int | None
    ) -> None:
        super().__init__(component, reader)
        self._graph, self._threads = graph, check_n_jobs(n_jobs)

    def _read(self, x: NDArray[np.float64]) -> PassTotals:
        product = multiply_laplacian(self._graph, x, self._threads)
        if self.passes > 0:
            return PassTotals(product, self._graph.n_edges, 0.0)
        # All but the product comes from a pass without columns.
        none, batches = np.empty((self.n_nodes, 0)), [Batch(*self._graph.edges())]
        how = (self._roots, self._threads, self.watched)
        totals = read_pass(batches, none, self.component, *how)
        return totals._replace(product=product, weight=0.0)


def check_first_pass(edges: Edges, h: Graph, source: Passes, call: str) -> None:
    """Check what is known only after the first pass: ids of nodes and the number of edges.

    A stream may number its nodes as it is read. A sparsifier does not have more edges than its
    graph; if it does, the arguments are probably swapped.
    """
    join_tables(edges.nodes, h.nodes)
    if h.n_edges > source.edges_read:
        warnings.warn(
            f"the sparsifier has {h.n_edges} edges, more than the {source.edges_read} of the "
            f"graph; are the arguments in the right order, {call}?",
            UserWarning,
            stacklevel=3,
        )


def read_pass(
    batches: Iterable[Batch],
    x: NDArray[np.float64],
    component: NDArray[np.int32] | None,
    roots: NDArray[np.int32],
    threads: int = 1,
    watched: ColumnsOfNodes | None = None,
    weigh: Callable[..., tuple[Any, ...]] | None = None,
) -> PassTotals:
    """Read batches once, multiply, and count; with `component`, join the ends of edges in `roots`.

    For `watched` see `Passes`. `weigh` makes batches (u, v, w) of batches with times, see
    `TimeView.weigh`.
    """
    result, read, count, weight = np.zeros_like(x), 0, 0, 0.0
    edges, degrees, sums = _core.EdgePass(x, result, threads), None, None
    if watched is not None:
        columns, nodes = np.ascontiguousarray(watched[0]), watched[1]
        column_of = np.full(len(columns), -1, dtype=np.int32)
        column_of[nodes] = np.arange(len(nodes), dtype=np.int32)
        degrees, sums = np.zeros(len(columns)), np.zeros(len(nodes))
        edges.watch(column_of, columns, degrees, sums)
    if component is not None:
        edges.join(component, roots)
    for number, (u, v, w, t) in enumerate(batches):
        fault = _core.find_fault(MAX_NODES, threads, u, v, w)
        if fault is not None:
            raise_edge_fault(fault, MAX_NODES, EdgeNames(*(partial(_name, x, read) for x in "uvw")))
        read += len(u)
        if weigh is not None:
            u, v, w = weigh(u, v, w, Batch(u, v, w, t).need_times(number))
        edges.add(u, v, w)
        count += len(u)
        weight += len(u) if w is None else float(w.sum(dtype=np.float64))
    return PassTotals(result, count, weight, edges.finish(), degrees, sums)


def multiply_laplacian(
    graph: Graph, x: NDArray[np.float64], threads: int = 1
) -> NDArray[np.float64]:
    """Return L x for an (n_nodes, n_columns) array; the error is relative to differences of x."""
    product = np.empty_like(x, order="C")
    x = np.ascontiguousarray(x)
    _core.laplacian_product(graph.indptr, graph.indices, graph.weights, x, product, threads)
    return product


def _name(end: str, start: int, at: int) -> str:
    return f"{end} of edge {start + at}"  # counted from the beginning of the stream
