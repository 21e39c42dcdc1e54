"""Reading the edges of a graph several times, multiplying by its Laplacian in each pass."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._validation import (
    MAX_NODES,
    EdgeNames,
    check_batch,
    check_n_jobs,
    check_rereadable,
    raise_edge_fault,
)
from ohmlearn.graph import Graph

__all__ = ["EdgePasses", "multiply_laplacian"]


class EdgePasses:
    """The edges of a graph G, seen from a graph H on the nodes 0, ..., n_nodes - 1.

    The first pass also compares components. A product does not depend on the batches the edges come
    in or on the number of threads, to the last bit.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
    component : ndarray of int32
        Component of H for each node.
    reader : str
        Who reads, for messages.
    n_jobs : int, optional
        Threads, read as scikit-learn does.

    Attributes
    ----------
    passes, edges_read : int
        Passes done, and edges read in all of them together.
    lost_edge : (int, int) or None
        The first edge found between components of H or to a node that H does not have.

    Examples
    --------
    >>> import numpy as np
    >>> source = EdgePasses([([0], [1]), ([1], [2])], np.array([0, 0, 1], dtype=np.int32), "this")
    >>> source.multiply(np.array([[1.0], [0.0], [0.0]])).ravel()
    array([ 1., -1.,  0.])
    >>> source.lost_edge, source.passes, source.edges_read
    ((1, 2), 1, 2)
    """

    def __init__(
        self, edges: Any, component: NDArray[np.int32], reader: str, n_jobs: int | None = None
    ) -> None:
        self.component = component
        self.n_nodes = len(component)
        self.passes = 0
        self.edges_read = 0
        self.lost_edge: tuple[int, int] | None = None
        self._reader = reader
        self._threads = check_n_jobs(n_jobs)
        self._roots = np.arange(self.n_nodes, dtype=np.int32)  # a node of the component in G
        self._first: tuple[int, float] | None = None  # edges and weight of the first pass
        self._graph: Graph | None = None
        if isinstance(edges, Graph) and edges.n_nodes == self.n_nodes:
            self._graph = edges
        elif isinstance(edges, Graph):
            self._batches: Any = [edges.edges()]
        elif isinstance(edges, tuple):
            self._batches = [edges]
        else:
            self._batches = check_rereadable(edges, reader)

    def multiply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return L_G x for an (n_nodes, n_columns) array, in one pass over the edges."""
        x = np.ascontiguousarray(x)
        if self._graph is not None:
            if self.passes == 0:
                self._compare(*self._graph.edges())
                _core.find_roots(self._roots)
            self.passes += 1
            self.edges_read += self._graph.n_edges
            return multiply_laplacian(self._graph, x, self._threads)
        result, count, weight = np.zeros_like(x), 0, 0.0
        for number, batch in enumerate(self._batches):
            arrays = check_batch(batch, number)
            fault = _core.find_fault(MAX_NODES, self._threads, *arrays)
            if fault is not None:
                raise_edge_fault(fault, MAX_NODES, _name_edges(count))
            if self.passes == 0:
                self._compare(*arrays)
            _core.add_edge_products(x, result, self._threads, *arrays)
            n_edges = len(arrays[0])
            count += n_edges
            weight += float(arrays[2].sum(dtype=np.float64)) if len(arrays) == 3 else n_edges
        if self._first is None:
            self._first = count, weight
            _core.find_roots(self._roots)
        elif self._first[0] != count or not math.isclose(self._first[1], weight, rel_tol=1e-9):
            raise ValueError(
                f"{self._reader} needs the same edges in every pass, but pass 1 had "
                f"{self._first[0]} edges of total weight {self._first[1]:g} and pass "
                f"{self.passes + 1} had {count} of {weight:g}; pass an iterable that begins anew "
                f"each time"
            )
        self.passes += 1
        self.edges_read += count
        return result

    def find_extra(self, h: Graph) -> tuple[int, int] | None:
        """Return an edge of H between two components of G, after the first pass."""
        u, v, _ = h.edges()
        return _first_where(self._roots[u] != self._roots[v], u, v)

    def _compare(self, *edges: NDArray[Any]) -> None:
        at = _core.join_ends(self.component, self._roots, *edges)
        if at >= 0 and self.lost_edge is None:
            self.lost_edge = int(edges[0][at]), int(edges[1][at])


def multiply_laplacian(
    graph: Graph, x: NDArray[np.float64], threads: int = 1
) -> NDArray[np.float64]:
    """Return L x for an (n_nodes, n_columns) array, accurate relative to differences of x.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> multiply_laplacian(gallery.path(3), np.array([[1.0], [0.0], [2.0]])).ravel()
    array([ 1., -3.,  2.])
    """
    product = np.empty_like(x, order="C")
    x = np.ascontiguousarray(x)
    _core.laplacian_product(graph.indptr, graph.indices, graph.weights, x, product, threads)
    return product


def _name_edges(start: int) -> EdgeNames:
    """Names of the edges of a batch, counted from the beginning of the stream."""
    return EdgeNames(
        lambda at: f"u of edge {start + at}",
        lambda at: f"v of edge {start + at}",
        lambda at: f"w of edge {start + at}",
    )


def _first_where(
    mask: NDArray[np.bool_], u: NDArray[Any], v: NDArray[Any]
) -> tuple[int, int] | None:
    if not mask.any():
        return None
    at = int(np.argmax(mask))
    return int(u[at]), int(v[at])
