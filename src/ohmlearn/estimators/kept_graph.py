"""What is kept of the edges: a sparsifier, or all of them for estimators that do not sparsify."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn._arrays_file import check_arrays
from ohmlearn.checks.edge_arrays import MAX_NODES, EdgeNames, raise_edge_fault
from ohmlearn.checks.parameters import check_seed
from ohmlearn.edges.in_memory import IterableEdges
from ohmlearn.edges.protocol import Edges, one_pass
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import join_tables
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sampling_error import Sample
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions
from ohmlearn.sparsifier.sparsifier_times import check_arrivals, check_moments, choose_view

if TYPE_CHECKING:
    from ohmlearn.edge_log.log_sparsifier import KeptSparsifier
    from ohmlearn.estimators.problem import HFSParameters

FAR = 1_000_000  # largest allowed gap between a labelled node and twice the number of nodes
ISOLATED = 50_000_000  # the same for nodes without edges in a file
COUNTS = ("n_nodes", "n_self_loops_dropped", "n_zero_weights_dropped")


class KeptGraph:
    """The edges in memory, from which answers are computed. More edges may be taken in."""

    def __init__(
        self, store: StreamingSparsifier | AllEdges, seed: int, n_nodes: int | None = None
    ) -> None:
        self.store = store  # all edges if epsilon=None
        self.seed = seed  # of all random choices
        self.n_nodes = n_nodes  # at least so many, as the user has said
        self.moment: dict[str, Any] = {}  # what answers are for: `at` and `since`, if given
        self.cut: float | None = None  # edges before this time are left out as they are read
        # How far removals have taken the sparsifier of a log from its edges, and the weight of
        # removed edges that it has seen.
        self.staleness, self.removed_weight = 0.0, 0.0
        # Of a state file: where its edges come from, the last events, if they have ids, and the
        # headings of nodes and labels in the file with the labels; and the classes that the last
        # run wrote, with the position of that of each node, or -1.
        self.sources: list[dict[str, Any]] = []
        self.events: _core.RecentIds | None = None
        self.headings: tuple[str | None, str | None] = (None, None)
        self.written: tuple[NDArray[Any], NDArray[np.int32]] | None = None

    @classmethod
    def start(
        cls,
        p: HFSParameters,
        n_nodes: int | None = None,
        sparsifier: StreamingSparsifier | None = None,
        seed: int | None = None,
    ) -> KeptGraph:
        """Return a graph without edges, or with those of a sparsifier."""
        seed = check_seed(p.random_state if seed is None else seed)
        if sparsifier is not None:
            return cls(sparsifier, seed, n_nodes)
        if p.epsilon is None:
            return cls(AllEdges(n_nodes, p.forgetting), seed, n_nodes)
        sparsifier = StreamingSparsifier(
            n_nodes=n_nodes,
            epsilon=p.epsilon,
            max_edges=p.max_edges,
            random_state=seed,
            n_jobs=p.n_jobs,
            verbose=p.verbose,
            half_life=p.half_life,
            horizon=p.horizon,
        )
        return cls(sparsifier, seed, n_nodes)

    @classmethod
    def of_log(
        cls, edges: Edges, p: HFSParameters, n_nodes: int | None, at: object, since: object
    ) -> KeptGraph | None:
        """Return the sparsifier that a log keeps of these edges, if the parameters allow it."""
        found = None if p.epsilon is None else edges.kept_sparsifier(p.n_jobs)
        if found is None:
            return None
        own, asked = found.sparsifier.options, p.forgetting
        if (own.decay, own.reach) != (asked.decay, asked.reach):
            return None
        kept = cls.start(p, n_nodes, found.sparsifier)
        kept.follow(found, at, since)
        return kept

    def follow(self, found: KeptSparsifier, at: object = None, since: object = None) -> None:
        """Continue with a later state of the sparsifier of a log."""
        self.store, self.moment = found.sparsifier, _given(at, since)
        self.staleness, self.removed_weight = found.staleness, found.removed_weight

    def use_threads(self, n_jobs: int | None) -> None:
        """Change the number of threads of the sparsifier; the answers stay the same."""
        kept = self.sparsifier
        if kept is not None and kept.options.n_jobs != n_jobs:
            self.store = kept.copy(n_jobs=n_jobs)

    def take(self, edges: Edges, at: object = None, since: object = None) -> None:
        """Take in edges; answers are for the given time from now on."""
        check_moments(edges.time_unit, at, since)
        if isinstance(self.store, AllEdges):
            self.store.add(edges)
        else:
            self.store = edges.feed(self.store)
        self.moment = _given(at, since)

    @property
    def sparsifier(self) -> StreamingSparsifier | None:
        """The sparsifier; None if all edges are kept."""
        return None if isinstance(self.store, AllEdges) else self.store

    @property
    def nodes(self) -> NodeTable | None:
        """The ids of the nodes, if the edges have ids."""
        return self.store.nodes

    @property
    def is_empty(self) -> bool:
        """Whether there are no edges yet."""
        store = self.store
        return store.n_nodes == 0 if isinstance(store, AllEdges) else store.n_edges_seen_ == 0

    @property
    def n_edges_seen(self) -> int:
        """Number of edges taken in; for all edges, of those kept."""
        return self.store.n_edges_seen_

    def sample(self) -> Sample:
        """Return the graph of this moment and how it was sampled; it does not change later."""
        return self.store.sample(**self.moment)

    @property
    def graph(self) -> Graph:
        """The graph of this moment, with all nodes that are known from edges or the user."""
        return with_nodes(self.sample().graph, self.n_nodes or 0)

    @property
    def holds_all_edges(self) -> bool:
        """Whether no edge was dropped; parallel ones may have been added up."""
        return self.holds_all(self.sample())

    def holds_all(self, sample: Sample) -> bool:
        """Whether a sample of these edges has all of them."""
        return self.removed_weight == 0.0 and sample.is_whole

    def mean_degree(self, graph: Graph) -> float:
        """Return the mean degree of all edges; nodes without an edge in the graph do not count."""
        sparsifier = self.sparsifier
        total = float(graph.weights.sum())
        if graph.view is None and sparsifier is not None:
            total = 2.0 * (sparsifier.weight_seen_ - self.removed_weight)
        return total / max(1, int(np.count_nonzero(np.diff(graph.indptr))))


def _given(at: object, since: object) -> dict[str, Any]:
    given = {"at": at, "since": since}
    return {name: value for name, value in given.items() if value is not None}


class AllEdges:
    """Keeps all edges; with a half-life or a horizon, also their times."""

    def __init__(self, n_nodes: int | None, options: SparsifierOptions) -> None:
        self._n_nodes, self._options = n_nodes, options
        self._graph: Graph | None = None
        self._timed: tuple[Any, ...] | None = None  # u, v, w, t
        self._latest = -math.inf
        self._least_nodes = 0  # one more than the largest node seen
        self.nodes: NodeTable | None = None

    def add(self, edges: Edges) -> None:
        """Take in edges; with times, drop those that are forgotten."""
        if edges.is_sample:
            raise InputError(
                f"{Param('epsilon', None)} keeps every edge, but a sparsifier may have dropped "
                f"some; give {Param('epsilon')} between 0 and 1, or the edges of "
                f"sparsifier.snapshot()"
            )
        join_tables(self.nodes, edges.nodes)  # refuses another numbering
        graph = timed = None
        if self._options.has_times:
            timed = self._read_timed(edges)
        elif self._graph is None:
            graph = edges.to_graph(self._n_nodes)
        else:
            with one_pass(edges) as batches:
                every = chain([self._graph.edges()], batches)
                graph = Graph.from_batches(every, n_nodes=self._n_nodes)
            graph.nodes = edges.nodes or self.nodes
        # A stream numbers as it is read, so nothing changes before its numbers are known to agree.
        self.nodes = join_tables(self.nodes, edges.nodes)
        self._graph = graph
        if timed is not None:
            self._keep_timed(*timed)

    def sample(self, *, at: object = None, since: object = None) -> Sample:
        """Return the graph as a sample that has everything."""
        certain = np.ones(0, np.float32)
        return Sample(self.snapshot(at=at, since=since), certain, 0.0, 0, 1, is_whole=True)

    def snapshot(self, *, at: object = None, since: object = None) -> Graph:
        """Return the graph, as `StreamingSparsifier.snapshot`."""
        view = choose_view(
            self._options, None if self._latest == -math.inf else self._latest, at, since
        )
        # Without times the graph has all edges, also if it is a snapshot with a view.
        if self._graph is None or (self._options.has_times and self._graph.view != view):
            n_nodes = max(self._n_nodes or 0, self._least_nodes)
            columns = None if view is None or self._timed is None else view.weigh(*self._timed)
            self._graph = Graph.from_edges(*(columns or ([], [])), n_nodes=n_nodes)
            self._graph.nodes, self._graph.view = self.nodes, view
        return self._graph

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the edges."""
        return self._least_nodes if self._graph is None else self._graph.n_nodes

    @property
    def n_edges_seen_(self) -> int:
        """Number of edges kept."""
        if self._timed is not None:
            return len(self._timed[0])
        return 0 if self._graph is None else self._graph.n_edges

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
            graph = Graph.from_edges(u, v, w, n_nodes=n_nodes)
            if graph.n_edges != len(u):
                raise ValueError("edges are not all different")
            graph.n_self_loops_dropped, graph.n_zero_weights_dropped = n_loops, n_zeros
            self._graph = graph
            return
        check_arrays(state, {"edges_t": np.float64})
        check_arrays(state, {"edges_latest": np.float64}, ndim=0)
        latest = float(state["edges_latest"])
        if len(u) == 0 and latest == -math.inf:
            return
        edges = IterableEdges([(u, v, w, t)] if len(u) > 0 else [])
        self._keep_timed(*self._read_timed(edges))
        if not (self._latest <= latest < math.inf and self._least_nodes <= n_nodes):
            raise ValueError(f"the latest time is {latest}, and there are {n_nodes} nodes")
        self._latest, self._least_nodes = latest, n_nodes

    def _read_timed(self, edges: Edges) -> tuple[list[tuple[Any, ...]], float]:
        """Return the columns of all edges, with those so far, and the latest time."""
        parts = [] if self._timed is None else [self._timed]
        latest = self._latest
        with one_pass(edges) as batches:
            for number, batch in enumerate(batches):
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
        return parts, latest

    def _keep_timed(self, parts: list[tuple[Any, ...]], latest: float) -> None:
        """Keep the edges that are not forgotten yet."""
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
