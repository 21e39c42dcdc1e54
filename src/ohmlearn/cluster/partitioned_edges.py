"""Edges in partitions: what all engines share, and the engine that needs only this process."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._defaults import EPSILON
from ohmlearn._display import Shown
from ohmlearn.checks.parameters import check_count, check_n_jobs, check_seed
from ohmlearn.cluster.merge_tree import Progress, Work, merge_tree
from ohmlearn.cluster.partition_product import Multiplying, Searching
from ohmlearn.cluster.partition_sparsifier import Sparsifying
from ohmlearn.cluster.partitions import (
    Partition,
    divide_files,
    make_options,
    number_partitions,
    open_partition,
    pieces_of,
)
from ohmlearn.edge_log import EdgeLog
from ohmlearn.edges import Batch, Edges
from ohmlearn.edges.passes import Passes, PassTotals
from ohmlearn.edges.strongest_pairs import PairSearch, PairsFound
from ohmlearn.errors import InputError, Param, Setting, bad_value
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import TimeView
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier import StreamingSparsifier

PARTITION_EDGES = 50_000_000
PATHS = str, os.PathLike, EdgeLog


class PartitionedEdges(Edges, Shown):
    """Edges in partitions. An engine adds what the partitions are, and how a `Work` is run on them.

    `refine`, `certify` and the estimators accept them like other edges. `refine` and `certify` need
    the ids of the nodes, so `sparsify` comes first. For the parameters see `ClusterEdges`.
    """

    is_local = False
    knows_unit = True
    nodes: NodeTable

    def __init__(
        self,
        edges: object,
        *,
        split_every: int = 4,
        partition_edges: int = PARTITION_EDGES,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.split_every = check_count("split_every", split_every)
        if self.split_every < 2:
            raise bad_value("split_every", "be at least 2", split_every)
        self.options = make_options(options)
        check_count("partition_edges", partition_edges)
        self.partitions, self.columns = self._find(edges, partition_edges)
        first = pieces_of(self.partitions[0].content)
        if first and self.options.bipartite in (None, True):
            # The first file decides, because others may have no names of columns.
            kinds = open_partition(first[:1], self.options).kinds
            if len(kinds) == 2:
                self.options = replace(self.options, bipartite=kinds)
        self.progress = progress
        self.nodes = NodeTable()
        self.sources = [part.name for part in self.partitions]
        self.traffic: tuple[int, ...] = ()
        self.has_times = self.options.time is not None
        self._time_unit: str | None = "unknown"
        self._held_nodes: object = None

    @abstractmethod
    def _find(self, edges: object, partition_edges: int) -> tuple[list[Partition], str | None]:
        """Return the partitions, and the columns that are read, if they are known."""

    @abstractmethod
    def _run(self, work: Work, shared: Sequence[object] = ()) -> Any:
        """Run work on all partitions and merge the results in the tree.

        `shared` are values that `_hold` has returned, or None.
        """

    def _hold(self, value: object) -> object:
        """Return a value as something that tasks can share."""
        return value

    def _let_go(self, held: object) -> None:
        """Free what `_hold` has returned."""

    def _collect_labels(self, y: Any) -> Any:
        """Return labels that this process can read."""
        return y

    def _facts(self) -> dict[str, Any]:
        facts = {"source": self.sources[0], "partitions": self.n_partitions}
        more = {"nodes": len(self.nodes) or None, "bad rows left out": self.n_bad or None}
        return {**facts, "columns": self.columns, **more}

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self.partitions)

    @property
    def time_unit(self) -> str | None:
        """What the times are; read from the first partition, if it consists of files."""
        first = pieces_of(self.partitions[0].content)
        if self._time_unit == "unknown" and self.has_times and first:
            self._time_unit = open_partition(first, self.options).time_unit
        return None if self._time_unit == "unknown" else self._time_unit

    def sparsify(
        self,
        *,
        epsilon: float = EPSILON,
        max_edges: int | None = None,
        constants: str = "practical",
        half_life: object = None,
        horizon: object = None,
        random_state: object = None,
    ) -> StreamingSparsifier:
        """Return a `StreamingSparsifier` of all edges; its nodes are numbered as in `nodes`."""
        parameters: dict[str, Any] = {
            "epsilon": epsilon, "max_edges": max_edges, "constants": constants,
            "half_life": half_life, "horizon": horizon,
        }  # fmt: skip
        seed = check_seed(random_state)
        StreamingSparsifier(**parameters, random_state=seed)  # refuses bad parameters
        found = self._run(Sparsifying(self.options, parameters, seed))
        if self._held_nodes is not None:
            self._let_go(self._held_nodes)
        self.nodes, self._held_nodes = found.nodes(), None
        self.n_bad, self.first_bad, self.traffic = found.n_bad, found.first_bad, found.traffic
        self._time_unit = found.time_unit
        sparsifier: StreamingSparsifier = found.sparsifier(parameters, seed)
        sparsifier.nodes = self.nodes
        return sparsifier

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Refuse: the edges are read where they are."""
        raise TypeError(
            f"the edges of a {type(self).__name__} are not read in this process; use its method "
            f"sparsify, or give them to certify, refine or fit_edges"
        )

    def feed(self, sparsifier: StreamingSparsifier) -> StreamingSparsifier:
        """Sparsify the edges where they are; merge the result if there are other edges."""
        options = sparsifier.options
        if options.scheme != "resample":
            wanted = Setting("scheme", "resample")
            raise InputError(f"edges on a cluster need {wanted}, got {options.scheme!r}")
        names = ("epsilon", "constants", "half_life", "horizon")
        same = {name: getattr(options, name) for name in names}
        seed, most = sparsifier.seed, options.budget or None
        return self.sparsify(max_edges=most, random_state=seed, **same).feed(sparsifier)

    def to_graph(self, n_nodes: int | None = None) -> Graph:
        """Refuse: the edges may not fit in memory."""
        raise InputError(
            f"{Param('epsilon', None)} keeps every edge in this process, but these edges are on a "
            f"cluster; give {Param('epsilon')} between 0 and 1"
        )

    def since(self, time: float) -> Edges:
        """Refuse: edges are chosen by their times in the sparsifier only."""
        raise InputError(
            f"{Param('since')} needs {Param('horizon')} for edges on a cluster; give "
            f"{Setting('horizon', math.inf)}"
        )

    def open_passes(
        self,
        component: NDArray[np.int32],
        reader: str,
        n_jobs: int | None = None,
        view: TimeView | None = None,
    ) -> Passes:
        """Return passes that multiply by the Laplacian of these edges; call `sparsify` before."""
        self._hold_nodes(reader)
        return PartitionedPasses(self, component, reader, view)

    def find_pairs(self, search: PairSearch) -> PairsFound:
        """Look at the partitions where they are."""
        self._hold_nodes("explain")
        held = self._hold(search)
        work = Searching(self.options, search.n_nodes)
        found: PairsFound = self._run(work, (self._held_nodes, held))
        self._let_go(held)
        return found

    def _hold_nodes(self, reader: str) -> None:
        """Hold the table of nodes for tasks; call `sparsify` before."""
        if len(self.nodes) == 0:
            raise InputError(
                f"{reader} needs the ids of the nodes, which are not known yet; call the method "
                f"sparsify of these edges first"
            )
        if self._held_nodes is None:
            self._held_nodes = self._hold(self.nodes)


class PartitionedPasses(Passes):
    """Passes over edges in partitions, for `refine` and `certify`."""

    def __init__(
        self,
        edges: PartitionedEdges,
        component: NDArray[np.int32],
        reader: str,
        view: TimeView | None,
    ) -> None:
        super().__init__(component, reader)
        self._edges = edges
        self._nodes = edges._held_nodes
        weigh = None if view is None else partial(view.weigh, component=component)
        self._weigh = None if weigh is None else edges._hold(weigh)

    def _read(self, x: NDArray[np.float64]) -> PassTotals:
        edges, first = self._edges, self.passes == 0
        block = edges._hold((x, self.component if first else None, self.watched))
        found = edges._run(Multiplying(edges.options), (self._nodes, block, self._weigh))
        edges._let_go(block)
        if first:
            self._roots = found.roots
        totals: PassTotals = found.totals
        return totals


class LocalEdges(PartitionedEdges):
    """Edges in partitions that this process reads, with the bytes that a cluster would give.

    Parameters
    ----------
    edges : path, list of paths, or list of partitions
        A partition is something that `read_edges` accepts: arrays (u, v), (u, v, w) or
        (u, v, w, t), a table, a list of batches, or a function that returns an iterator of them.
    n_jobs : int, optional
        Number of threads, each of which reads a partition at a time.
    split_every, partition_edges, progress, **options
        See `ohmlearn.dask.ClusterEdges`.

    Attributes
    ----------
    nodes, columns, sources, n_bad, first_bad, has_times, time_unit, traffic
        See `ohmlearn.dask.ClusterEdges`.

    Examples
    --------
    >>> from ohmlearn.cluster import LocalEdges
    >>> edges = LocalEdges([(["a"], ["b"]), (["b"], ["c"])])
    >>> edges.sparsify(random_state=0).snapshot().edges()
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
    >>> edges.nodes.ids()
    array(['a', 'b', 'c'], dtype=object)
    """

    def __init__(self, edges: object, *, n_jobs: int | None = None, **options: Any) -> None:
        self.n_jobs = check_n_jobs(n_jobs)
        super().__init__(edges, **options)

    def _find(self, edges: object, partition_edges: int) -> tuple[list[Partition], str | None]:
        if isinstance(edges, list) and edges and not any(isinstance(x, PATHS) for x in edges):
            return number_partitions(edges), None
        wanted = "paths of files, or a list of batches"
        return divide_files(edges, partition_edges, self.options, wanted)

    def _run(self, work: Work, shared: Sequence[object] = ()) -> Any:
        results = self._results(work, shared)
        return merge_tree(results, self.n_partitions, self.split_every, work.merge)

    def _results(self, work: Work, shared: Sequence[object]) -> Iterator[Any]:
        """Yield the results of partitions in order; few wait for their turn."""
        pending: deque[Future[Any]] = deque()
        todo = iter(self.partitions)
        with ThreadPoolExecutor(self.n_jobs) as threads:
            try:
                for done in range(self.n_partitions):
                    while len(pending) < 2 * self.n_jobs and (part := next(todo, None)) is not None:
                        task = (part.content, part.number, part.name, *shared)
                        pending.append(threads.submit(work.read, *task))
                    result = pending.popleft().result()
                    if self.progress is not None:
                        self.progress(work.stage, done + 1, self.n_partitions)
                    yield result
                    del result
            finally:
                for future in pending:
                    future.cancel()
