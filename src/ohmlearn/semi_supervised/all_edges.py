"""All edges in memory, for estimators that do not sparsify."""

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._storage import check_arrays
from ohmlearn.graph import Graph
from ohmlearn.graph.batches import batches_of, graph_of
from ohmlearn.graph.time_view import TimeView
from ohmlearn.sparsifier.options import SparsifierOptions
from ohmlearn.sparsifier.when import check_arrivals, check_unit, choose_view
from ohmlearn.validation.edges import MAX_NODES, EdgeNames, check_timed_batch, raise_edge_fault

__all__ = ["FAR", "ISOLATED", "AllEdges"]

FAR = 1_000_000  # largest allowed gap between a labelled node and twice the number of nodes
ISOLATED = 50_000_000  # the same for nodes without edges in a file
TIMED = (np.int32, np.int32, np.float64, np.float64)  # types of u, v, w, t


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
        if self._graph is None or self._graph.view != view:
            self._graph = self._make_graph(view)
        return self._graph

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the edges."""
        return self._least_nodes if self._graph is None else self._graph.n_nodes

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return all edges as arrays with names."""
        if self._options.has_times:
            u, v, w, t = self._timed or (np.empty(0, dtype) for dtype in TIMED)
            columns: tuple[Any, ...] = (u.astype(np.int32), v.astype(np.int32), w, t)
            counts = [self._least_nodes, 0, 0]
        elif self._graph is None:
            columns, counts = tuple(np.empty(0, dtype) for dtype in TIMED[:3]), [0, 0, 0]
        else:
            graph, columns = self._graph, self._graph.edges()
            counts = [graph.n_nodes, graph.n_self_loops_dropped, graph.n_zero_weights_dropped]
        named = {f"edges_{name}": column for name, column in zip("uvwt", columns, strict=False)}
        return {**named, "edges_counts": np.array(counts, dtype=np.int64)}

    def set_state(self, n_nodes: int | None, state: Mapping[str, Any]) -> None:
        """Continue from a state; one that is impossible raises ValueError."""
        check_arrays(state, {f"edges_{end}": np.int32 for end in "uv"} | {"edges_counts": np.int64})
        weights = np.float32 if np.asarray(state["edges_w"]).dtype == np.float32 else np.float64
        check_arrays(state, {"edges_w": weights})
        u, v, w, counts = (state[f"edges_{name}"] for name in ("u", "v", "w", "counts"))
        last = int(max(u.max(initial=-1), v.max(initial=-1)))
        if counts.shape != (3,) or counts.min() < 0 or counts[0] > 2 * (last + 1) + ISOLATED:
            raise ValueError(f"it cannot have {counts.tolist()[:1]} nodes")
        graph = Graph.from_edges(u, v, w, n_nodes=max(int(counts[0]), last + 1))
        self._n_nodes = n_nodes
        if self._options.has_times:
            check_arrays(state, {"edges_t": np.float64})
            t = state["edges_t"]
            if t.shape != u.shape or not np.isfinite(t).all():
                raise ValueError("its times are wrong")
            self._timed, self._latest = (u, v, w, t), float(t.max(initial=-math.inf))
            self._least_nodes = graph.n_nodes
            return
        if graph.n_edges != len(u):
            raise ValueError("its edges are not all different")
        graph.n_self_loops_dropped, graph.n_zero_weights_dropped = counts[1:].tolist()
        self._graph = graph

    def _add_timed(self, edges: Any) -> None:
        parts = [] if self._timed is None else [self._timed]
        latest = self._latest
        for number, batch in enumerate(batches_of(edges)):
            if number == 0:  # only now a pipe knows the unit of its times
                check_unit(edges, self._options)
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
