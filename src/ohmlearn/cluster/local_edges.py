"""Edges in partitions in this process: what every other engine is compared with."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ohmlearn.checks.parameters import check_count, check_n_jobs
from ohmlearn.cluster.merge_tree import merge_in_turn
from ohmlearn.cluster.partition_work import Work
from ohmlearn.cluster.partitioned_edges import PARTITION_EDGES, PartitionedEdges, Progress
from ohmlearn.cluster.partitions import Partition, divide_files, number_partitions
from ohmlearn.edge_log import EdgeLog
from ohmlearn.reading.read_options import ReadOptions

__all__ = ["LocalEdges"]


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

    def __init__(
        self,
        edges: object,
        *,
        n_jobs: int | None = None,
        split_every: int = 4,
        partition_edges: int = PARTITION_EDGES,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.n_jobs = check_n_jobs(n_jobs)
        check_count("partition_edges", partition_edges)

        def find(how: ReadOptions) -> tuple[list[Partition], str | None]:
            if isinstance(edges, list) and edges and not _has_paths(edges):
                return number_partitions(edges), None
            return divide_files(edges, partition_edges, how, "paths of files, or a list of batches")

        super().__init__(find, split_every, progress, options)

    def _run(self, work: Work, shared: Sequence[Any] = ()) -> Any:
        return merge_in_turn(self._results(work, shared), self.split_every, work.merge)

    def _results(self, work: Work, shared: Sequence[Any]) -> Iterator[Any]:
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


def _has_paths(edges: list[Any]) -> bool:
    return any(isinstance(part, str | os.PathLike | EdgeLog) for part in edges)
