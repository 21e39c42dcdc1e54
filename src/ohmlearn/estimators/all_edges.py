"""All edges in memory, for estimators that do not sparsify."""

import math
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._arrays_file import check_arrays
from ohmlearn.checks.edge_arrays import MAX_NODES, EdgeNames, raise_edge_fault
from ohmlearn.edges import Edges
from ohmlearn.edges.in_memory import IterableEdges
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import TimeView
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions
from ohmlearn.sparsifier.sparsifier_times import check_arrivals, choose_view

__all__ = ["FAR", "ISOLATED", "AllEdges", "with_nodes"]

FAR = 1_000_000  # largest allowed gap between a labelled node and twice the number of nodes
ISOLATED = 50_000_000  # the same for nodes without edges in a file
COUNTS = ("n_nodes", "n_self_loops_dropped", "n_zero_weights_dropped")


class AllEdges:
    """Keeps all edges; with a half-life or a horizon, also their times.

    Examples
    --------
    >>> edges = AllEdges(None, SparsifierOptions(half_life=10))
    >>> edges.add(IterableEdges([([0, 1], [1, 2], None, [0.0, 20.0])]))
    >>> edges.snapshot().edges()[2]
    array([0.25, 1.  ])
    """

    def __init__(self, n_nodes: int | None, options: SparsifierOptions) -> None:
        self._n_nodes, self._options = n_nodes, options
        self._graph: Graph | None = None
        self._timed: tuple[Any, ...] | None = None  # u, v, w, t
        self._latest = -math.inf
        self._least_nodes = 0  # one more than the largest node seen

    def add(self, edges: Edges) -> None:
        """Take in edges; with times, drop those that are forgotten."""
        if edges.is_sample:
            raise ValueError(
                "epsilon = None keeps every edge, but a sparsifier may have dropped some; give an "
                "epsilon between 0 and 1, or the edges of sparsifier.snapshot()"
            )
        if self._options.has_times:
            self._add_timed(edges)
        elif self._graph is None:
            self._graph = edges.to_graph(self._n_nodes)
        else:
            batches = chain([self._graph.edges()], edges.batches())
            self._graph = Graph.from_batches(batches, n_nodes=self._n_nodes)

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

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the edges."""
        return self._least_nodes if self._graph is None else self._graph.n_nodes

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return all edges as named arrays, for a file."""
        if self._options.has_times:
            empty = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0)
            u, v, w, t = empty if self._timed is None else self._timed
            counts, more = [self._least_nodes, 0, 0], {"edges_t": t, "edges_latest": self._latest}
        else:
            graph = self._graph or Graph.from_batches([], n_nodes=self._n_nodes)
            u, v, w = graph.edges()
            counts, more = [getattr(graph, name) for name in COUNTS], {}
        columns = {"edges_u": u.astype(np.int32), "edges_v": v.astype(np.int32), "edges_w": w}
        return columns | {"edges_counts": np.array(counts, np.int64)} | more

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from the arrays of `get_state`; other arrays raise a ValueError."""
        check_arrays(state, {"edges_u": np.int32, "edges_v": np.int32, "edges_counts": np.int64})
        u, v = state["edges_u"], state["edges_v"]
        w, t = state.get("edges_w"), state.get("edges_t")
        counts = state["edges_counts"].tolist()
        if len(counts) != len(COUNTS) or min(counts) < 0:
            raise ValueError(f"counts of edges are {counts}")
        n_nodes, n_loops, n_zeros = counts
        if n_nodes > 2 * (1 + int(max(u.max(initial=-1), v.max(initial=-1)))) + ISOLATED:
            raise ValueError(f"{n_nodes} nodes are too many for the edges")
        if not self._options.has_times:
            edges = Graph.from_edges(u, v, w, n_nodes=n_nodes)
            if edges.n_edges != len(u):
                raise ValueError("edges are not all different")
            edges.n_self_loops_dropped, edges.n_zero_weights_dropped = n_loops, n_zeros
            self._graph = edges
            return
        check_arrays(state, {"edges_t": np.float64})
        check_arrays(state, {"edges_latest": np.float64}, ndim=0)
        latest = float(state["edges_latest"])
        if len(u) == 0 and latest == -math.inf:
            return
        self._add_timed(IterableEdges([(u, v, w, t)] if len(u) > 0 else []))
        if not (self._latest <= latest < math.inf and self._least_nodes <= n_nodes):
            raise ValueError(f"the latest time is {latest}, and there are {n_nodes} nodes")
        self._latest, self._least_nodes = latest, n_nodes

    def _add_timed(self, edges: Edges) -> None:
        parts = [] if self._timed is None else [self._timed]
        latest = self._latest
        for number, batch in enumerate(edges.batches()):
            if number == 0 and edges.knows_unit:  # a pipe knows the unit of its times only now
                self._options.check_unit(edges.time_unit)
            (u, v, w, _), t = batch, batch.need_times(number)
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
            graph = Graph.from_edges(*view.weigh(*self._timed), n_nodes=n_nodes)
        graph.view = view
        return graph


def with_nodes(graph: Graph, n_nodes: int) -> Graph:
    """Return the graph with isolated nodes added, up to `n_nodes`."""
    missing = n_nodes - graph.n_nodes
    if missing <= 0:
        return graph
    indptr = np.concatenate([graph.indptr, np.full(missing, graph.indptr[-1])])
    indptr.flags.writeable = False
    larger = Graph._from_csr(indptr, graph.indices, graph.weights)
    larger.nodes, larger.view = graph.nodes, graph.view
    return larger
