"""Edges that are objects of Python: arrays, iterables of batches, and graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.edge_arrays import check_batch, split_batch
from ohmlearn.edges.passes import GraphPasses, Passes
from ohmlearn.edges.protocol import Batch, Edges
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import TimeView
from ohmlearn.nodes import NodeTable

if TYPE_CHECKING:
    from ohmlearn.sparsifier import StreamingSparsifier


class ArrayEdges(Edges):
    """Arrays (u, v), (u, v, w) or (u, v, w, t) of numbers."""

    sources = ("the arrays",)

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        self._batch = Batch(*check_batch(arrays, 0))
        self.n_edges = len(self._batch.u)
        self.has_times = self._batch.t is not None

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the arrays."""
        self.n_read = len(self._batch.u)
        yield self._batch


class IterableEdges(Edges):
    """Batches (u, v), (u, v, w) or (u, v, w, t): an iterable of them, or a function that makes one.

    An iterator can be read once; lists, and functions, any number of times.
    """

    def __init__(self, given: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.given = given
        self._was_read = False
        self.rereadable = not isinstance(given, Iterator)
        self.sources = (f"a {type(given).__name__}",)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the batches after a check of their form."""
        if self._was_read:
            self.again("a second pass")
        self._was_read, self.n_read = True, 0
        given = self.given() if callable(self.given) else self.given
        for number, each in enumerate(given):
            batch = self._check(each, number)
            if number == 0:
                self.has_times = batch.t is not None
            elif self.has_times != (batch.t is not None):
                has = "no times, but earlier batches have"
                has = has if self.has_times else "times, but earlier batches have none"
                raise ValueError(f"batch {number} has {has}; give times for all edges, or for none")
            self.n_read += len(batch.u)
            yield batch

    def _check(self, given: Any, number: int) -> Batch:
        return Batch(*check_batch(given, number))


class NamedEdges(IterableEdges):
    """Batches whose ends are ids of any type, which are numbered as they are read."""

    nodes: NodeTable

    def __init__(self, given: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        super().__init__(given)
        self.nodes = NodeTable()

    def _check(self, given: Any, number: int) -> Batch:
        u, v, w, t = split_batch(given, f"batch {number}")
        return Batch(*check_batch((*self.nodes.add_edges(u, v), w, t), number))


class GraphEdges(Edges):
    """The edges of a graph in memory, each once."""

    nodes_are_final = True
    sources = ("the graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        self.n_nodes, self.n_edges = graph.n_nodes, graph.n_edges

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield all edges at once."""
        self.n_read = self.graph.n_edges
        yield Batch(*self.graph.edges())

    def feed(self, sparsifier: StreamingSparsifier) -> StreamingSparsifier:
        """Give all edges to a sparsifier, but weights too small for it if components stay equal."""
        graph, smallest = self.graph, sparsifier.options.smallest_weight
        if graph.weights.min(initial=1.0) >= smallest:
            return super().feed(sparsifier)
        u, v, w = graph.edges()
        large = w >= smallest
        smaller = Graph.from_edges(u[large], v[large], w[large], n_nodes=graph.n_nodes)
        if smaller.components()[0] == graph.components()[0]:
            smaller.nodes, graph = graph.nodes, smaller
        return Edges.feed(GraphEdges(graph), sparsifier)

    def to_graph(self, n_nodes: int | None = None) -> Graph:
        """Return the graph itself."""
        return self.graph

    def open_passes(
        self,
        component: NDArray[np.int32],
        reader: str,
        n_jobs: int | None = None,
        view: TimeView | None = None,
    ) -> Passes:
        """Return products with the matrix; its weights are those of its own view."""
        if len(component) != self.graph.n_nodes:
            return super().open_passes(component, reader, n_jobs, None)
        return GraphPasses(self.graph, component, reader, n_jobs)
