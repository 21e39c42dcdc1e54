"""Degrees of the nodes of a stream, counted while something else reads it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import MAX_NODES, EdgeNames, check_batch, raise_edge_fault
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_identity import nodes_of
from ohmlearn.reading.as_edges import as_edges, batches_of

__all__ = ["CountedEdges"]

# What readers ask a stream for. A method such as `feed` is not among them, because the edges would
# pass by without being counted.
PASSED_ON = frozenset(
    ("n_nodes", "n_edges", "time_unit", "has_times", "kinds", "n_read", "fraction", "columns")
)


class CountedEdges:
    """A stream of edges that adds up the degrees of the nodes when it is read.

    A sparsifier keeps some edges and changes their weights, so its degrees are only close to those
    of the stream. The exact ones take 8 bytes per node and no further pass. Self-loops do not
    count, and parallel edges add up, as in `Graph.degrees`. A batch is counted when the next one is
    asked for: one that the reader refuses is not. To the last bit, degrees do not depend on how
    edges are divided into batches.

    Every reading starts to count from zero, so that edges that are read several times count once.

    Parameters
    ----------
    edges : stream, Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
        Times of edges are passed on, but they do not change the degrees.

    Attributes
    ----------
    nodes, rereadable, sources
        As those of `edges`. So are n_nodes, time_unit and others if `edges` has them.

    Examples
    --------
    >>> from ohmlearn import StreamingSparsifier, gallery
    >>> edges = CountedEdges(gallery.complete(300))
    >>> h = StreamingSparsifier(epsilon=0.9, random_state=0).update(edges).snapshot()
    >>> edges.degrees[:3], bool((h.degrees == edges.degrees).all())
    (array([299., 299., 299.]), False)
    """

    def __init__(self, edges: Any) -> None:
        self.edges = as_edges(edges)
        self.nodes: NodeTable | None = nodes_of(self.edges)
        self.rereadable: bool = getattr(self.edges, "rereadable", True)
        self.sources: list[str] = getattr(self.edges, "sources", [type(self.edges).__name__])
        self._sums = np.zeros(0)
        self._n_nodes = 0  # one more than the largest node counted

    def __getattr__(self, name: str) -> Any:
        if name in PASSED_ON:
            return getattr(self.edges, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def degrees(self) -> NDArray[np.float64]:
        """Sum of the weights of the edges at each node, up to the last node that has any."""
        return self._sums[: self._n_nodes].copy()

    def degrees_of(self, n_nodes: int) -> NDArray[np.float64]:
        """Return the degrees of the nodes 0, ..., n_nodes - 1; those without edges have degree 0.

        Examples
        --------
        >>> edges = CountedEdges([([0], [1], [2.0]), ([1, 3], [2, 3])])
        >>> for batch in edges:
        ...     pass
        >>> edges.degrees_of(5)
        array([2., 3., 1., 0., 0.])
        """
        degrees = np.zeros(n_nodes)
        n_known = min(n_nodes, self._n_nodes)
        degrees[:n_known] = self._sums[:n_known]
        return degrees

    def __iter__(self) -> Iterator[Any]:
        return self.read_ahead(1)

    def read_ahead(self, n_jobs: int) -> Iterator[Any]:
        """Yield the batches; threads may read the next ones, see `EdgeStream.read_ahead`."""
        self._sums, self._n_nodes = np.zeros(0), 0
        for number, batch in enumerate(batches_of(self.edges, n_jobs)):
            yield batch
            self._count(*check_batch(batch, number))

    def _count(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None = None) -> None:
        fault = _core.find_fault(MAX_NODES, 1, u, v, w)
        if fault is not None:
            raise_edge_fault(fault, MAX_NODES, EdgeNames())
        if len(u) == 0:
            return
        self._make_room(int(max(u.max(), v.max())) + 1)
        # In the order of the stream, so that batches do not change a bit.
        _core.add_degrees(self._sums, u, v, w)

    def _make_room(self, n_nodes: int) -> None:
        if n_nodes > len(self._sums):
            sums = np.zeros(max(n_nodes, len(self._sums) * 3 // 2))
            sums[: len(self._sums)] = self._sums
            self._sums = sums
        self._n_nodes = max(self._n_nodes, n_nodes)
