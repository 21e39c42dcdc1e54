"""Edges in partitions on a Dask cluster: sparsified and multiplied where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributed import Client

from ohmlearn.cluster.dask_partitions import find_partitions
from ohmlearn.cluster.dask_tree import find_client, hold, run_tree
from ohmlearn.cluster.partition_work import Work
from ohmlearn.cluster.partitioned_edges import PARTITION_EDGES, PartitionedEdges, Progress

__all__ = ["ClusterEdges"]


class ClusterEdges(PartitionedEdges):
    """Edges in partitions on a Dask cluster.

    `refine` and `certify` accept them like other edges, once they have been sparsified: each worker
    multiplies by the edges of its partitions, and the products are added up in a tree.

    Parameters
    ----------
    edges : dask.dataframe.DataFrame, path, list of paths, or list of dask.delayed.Delayed
        A Delayed must return something that `read_edges` accepts: arrays (u, v), (u, v, w) or
        (u, v, w, t), a table, or a list of batches. A path is a file, a pattern or a folder that
        all workers can read.
    client : dask.distributed.Client, optional
        The current client by default. Without one, threads of this process do the work.
    split_every : int
        Number of sparsifiers that one task merges.
    partition_edges : int
        Approximate number of edges in a partition of files. Small files are put together, large
        Parquet files are divided between row groups.
    progress : callable, optional
        Called with the name of a stage, the number of finished partitions and that of all.
    **options
        How to read: the fields of `ReadOptions`, as for `read_edges`.

    Attributes
    ----------
    nodes : NodeTable
        The ids of the nodes, after `sparsify`.
    columns : str or None
        The columns that are read.
    sources : list of str
        Names of the partitions.
    n_bad, first_bad : int, str or None
        Number of rows that `sparsify` skipped with ``on_bad="skip"``, and what was wrong with the
        first of them.
    has_times : bool
        Whether times are read, with the option `time`.
    time_unit : str or None
        What the times are, see `EdgeStream`; for edges that are not in files only after `sparsify`.
    traffic : tuple of int
        Bytes of the merged sparsifiers for each level of the tree, partitions first.

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import ClusterEdges
    >>> edges = ClusterEdges([dask.delayed((["a"], ["b"])), dask.delayed((["b"], ["c"]))])
    >>> edges.sparsify(random_state=0).snapshot().edges()
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 1.]))
    >>> edges.nodes.ids()
    array(['a', 'b', 'c'], dtype=object)
    """

    def __init__(
        self,
        edges: object,
        *,
        client: Client | None = None,
        split_every: int = 4,
        partition_edges: int = PARTITION_EDGES,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.client = find_client(client)
        super().__init__(
            lambda how: find_partitions(edges, partition_edges, how), split_every, progress, options
        )

    def _run(self, work: Work, shared: Sequence[Any] = ()) -> Any:
        how = (self.split_every, self.client, self.progress)
        return run_tree(work, self.partitions, *how, shared)

    def _hold(self, value: Any) -> Any:
        return hold(value, self.client)
