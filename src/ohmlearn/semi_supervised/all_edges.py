"""All edges in memory, for estimators that do not sparsify."""

import math
from itertools import chain
from typing import Any

import numpy as np

from ohmlearn import _core
from ohmlearn.graph import Graph
from ohmlearn.graph.batches import batches_of, graph_of
from ohmlearn.graph.time_view import TimeView
from ohmlearn.sparsifier.options import SparsifierOptions
from ohmlearn.sparsifier.when import check_arrivals, check_unit, choose_view
from ohmlearn.validation.edges import MAX_NODES, EdgeNames, check_timed_batch, raise_edge_fault

__all__ = ["AllEdges"]


class AllEdges:
    """Keeps all edges; with a half-life or a horizon, also their times.

    Examples
    --------
    >>> edges = AllEdges(None, SparsifierOptions(half_life=10))
    >>> edges.add([([0, 1], [1, 2], None, [0.0, 20.0])])
    >>> edges.snapshot().edges()[2]
    array([0.25, 1.  ])
    """

    def __init__(self, n_nodes: int | None, options: SparsifierOptions) -> None:
        self._n_nodes, self._options = n_nodes, options
        self._graph: Graph | None = None
        self._timed: tuple[Any, ...] | None = None  # u, v, w, t
        self._latest = -math.inf
        self._least_nodes = 0  # one more than the largest node seen

    def add(self, edges: Any) -> None:
        """Take in edges; with times, drop those that are forgotten."""
        if self._options.has_times:
            self._add_timed(edges)
            return
        if self._graph is not None:
            edges = chain([self._graph.edges()], batches_of(edges))
        self._graph = graph_of(edges, self._n_nodes)

    def snapshot(self, *, at: Any = None, since: Any = None) -> Graph:
        """Return the graph, as `StreamingSparsifier.snapshot`."""
        view = choose_view(
            self._options, None if self._latest == -math.inf else self._latest, at, since
        )
        has_times = (
            self._options.has_times
        )  # else the graph has all edges, also if it is a snapshot
        if self._graph is None or (has_times and self._graph.view != view):
            self._graph = self._make_graph(view)
        return self._graph

    def _add_timed(self, edges: Any) -> None:
        check_unit(edges, self._options)
        parts = [] if self._timed is None else [self._timed]
        latest = self._latest
        for number, batch in enumerate(batches_of(edges)):
            u, v, w, t = check_timed_batch(batch, number)
            fault = _core.find_fault(MAX_NODES, 1, u, v, w)
            if fault is not None:
                raise_edge_fault(fault, MAX_NODES, EdgeNames())
            check_arrivals(t, latest, self._options)
            if len(t) > 0:
                latest = max(latest, float(t.max()))
                parts.append((u, v, np.ones(len(u), np.float32) if w is None else w, t))
        if not parts:
            return
        self._latest, self._graph = latest, None
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        last = max(columns[0].max(initial=-1), columns[1].max(initial=-1))
        self._least_nodes = max(self._least_nodes, int(last) + 1)
        view = choose_view(self._options, latest, None, None)
        assert view is not None
        keep = columns[3] >= view.earliest
        self._timed = tuple(column[keep] for column in columns)

    def _make_graph(self, view: TimeView | None) -> Graph:
        n_nodes = max(self._n_nodes or 0, self._least_nodes)
        if view is None or self._timed is None:
            graph = Graph.from_edges([], [], n_nodes=n_nodes)
        else:
            graph = Graph.from_batches(view.of([self._timed]), n_nodes=n_nodes)
        graph.view = view
        return graph
