"""Reading the edges of a graph several times, multiplying by its Laplacian in each pass."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from ohmlearn._validation import EdgeNames, check_batch, check_rereadable
from ohmlearn.graph import Graph

__all__ = ["EdgePasses"]

CHUNK = 2**18  # edges multiplied at once, at least: a product costs O(n), however few they are
Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


class EdgePasses:
    """The edges of a graph G, seen from a graph H on the nodes 0, ..., n_nodes - 1.

    The first pass also compares components. Edges are taken in chunks whose ends do not depend on
    the batches they come in, and neither does a product, to the last bit.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
    component : ndarray of int32
        Component of H for each node.
    reader : str
        Who reads, for messages.

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

    def __init__(self, edges: Any, component: NDArray[np.int32], reader: str) -> None:
        self.component = component
        self.n_nodes = len(component)
        self.passes = 0
        self.edges_read = 0
        self.lost_edge: tuple[int, int] | None = None
        self._reader = reader
        self._joined = np.arange(self.n_nodes)  # component of G for each node, after a pass
        self._first: tuple[int, float] | None = None  # edges and weight of the first pass
        self._kept: tuple[Graph, Any] | None = None  # graph and Laplacian, if it is in memory
        self._size = max(CHUNK, 2 * self.n_nodes)
        if isinstance(edges, Graph | tuple):
            if isinstance(edges, Graph) and edges.n_nodes == self.n_nodes:
                graph, self._count = edges, edges.n_edges
            else:
                arrays = check_batch(edges.edges() if isinstance(edges, Graph) else edges, 0)
                graph, self._count = self._build(*arrays, 0), len(arrays[0])
            self._kept = graph, graph.laplacian()
        else:
            self._batches = check_rereadable(edges, reader)

    def multiply(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return L_G x for an (n_nodes, n_columns) array, in one pass over the edges."""
        if self._kept is not None:
            if self.passes == 0:
                self._compare(self._kept[0])
            self.passes += 1
            self.edges_read += self._count
            product: NDArray[np.float64] = self._kept[1] @ x
            return product
        result, count, weight = np.zeros_like(x), 0, 0.0
        for u, v, w in self._chunks():
            graph = self._build(u, v, w, count)
            if self.passes == 0:
                self._compare(graph)
            result += graph.laplacian() @ x
            count += len(u)
            weight += float(w.sum())
        if self._first is None:
            self._first = count, weight
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
        return _first_where(self._joined[u] != self._joined[v], u, v)

    def _chunks(self) -> Iterator[Arrays]:
        """Batches, joined and cut to equal sizes."""
        waiting: list[Arrays] = []
        n_waiting = 0
        for number, batch in enumerate(self._batches):
            waiting.append(check_batch(batch, number))
            n_waiting += len(waiting[-1][0])
            if n_waiting < self._size:
                continue
            u, v, w = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
            whole = n_waiting - n_waiting % self._size
            for start in range(0, whole, self._size):
                part = slice(start, start + self._size)
                yield u[part], v[part], w[part]
            waiting, n_waiting = [(u[whole:], v[whole:], w[whole:])], n_waiting - whole
        if n_waiting > 0:
            u, v, w = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
            yield u, v, w

    def _build(self, u: Any, v: Any, w: Any, start: int) -> Graph:
        """Make a graph on the nodes of H of the edges from position `start` on."""
        n = self.n_nodes
        outside = (u >= n) | (v >= n)
        if outside.any():
            counts = np.isfinite(w) & (w >= 0)  # other weights are left to be refused
            if self.lost_edge is None:
                self.lost_edge = _first_where(outside & counts & (u != v) & (w > 0), u, v)
            w = np.where(outside & counts, 0.0, w)
            u, v = np.where(u >= n, 0, u), np.where(v >= n, 0, v)
            if n == 0:  # no node to put an edge of weight 0 on
                u, v, w = u[:0], v[:0], w[:0]
        names = EdgeNames(
            lambda at: f"u of edge {start + at}",
            lambda at: f"v of edge {start + at}",
            lambda at: f"w of edge {start + at}",
        )
        return Graph._build(u, v, w, n, names)

    def _compare(self, graph: Graph) -> None:
        u, v, _ = graph.edges()
        if self.lost_edge is None:
            self.lost_edge = _first_where(self.component[u] != self.component[v], u, v)
        a, b = self._joined[u], self._joined[v]
        new = a != b
        if new.any():
            links = (np.ones(np.count_nonzero(new)), (a[new], b[new]))
            shape = (self.n_nodes, self.n_nodes)
            labels = connected_components(scipy.sparse.coo_array(links, shape=shape))[1]
            self._joined = labels[self._joined]


def _first_where(
    mask: NDArray[np.bool_], u: NDArray[Any], v: NDArray[Any]
) -> tuple[int, int] | None:
    if not mask.any():
        return None
    at = int(np.argmax(mask))
    return int(u[at]), int(v[at])
