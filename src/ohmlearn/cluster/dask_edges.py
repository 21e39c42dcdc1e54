"""Edges in partitions on a Dask cluster: sparsified and multiplied where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dask.delayed import Delayed
from distributed import Client

from ohmlearn.checks.edge_arrays import is_from
from ohmlearn.cluster.cluster_calls import ClusterCalls, Labelled
from ohmlearn.cluster.dask_tree import find_client, hold, run_tree
from ohmlearn.cluster.merge_tree import Work
from ohmlearn.cluster.partitioned_edges import PartitionedEdges
from ohmlearn.cluster.partitions import (
    Partition,
    choose_frame_columns,
    divide_files,
    number_partitions,
)
from ohmlearn.reading.array_reader import look_at_types


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
        Number of sparsifiers that one task merges; 4 by default.
    partition_edges : int
        Approximate number of edges in a partition of files; 50 million by default. Small files are
        put together, large Parquet files are divided between row groups.
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

    def __init__(self, edges: object, *, client: Client | None = None, **options: Any) -> None:
        self.client = find_client(client)
        super().__init__(edges, **options)

    def _find(self, edges: object, partition_edges: int) -> tuple[list[Partition], str | None]:
        if is_from("dask", edges) and not isinstance(edges, Delayed):
            frame: Any = edges
            names = [str(name) for name in frame.columns]
            types = look_at_types(frame.dtypes)
            used, columns = choose_frame_columns(names, types, self.options)
            frame = frame[[frame.columns[at] for at in used]]
            return number_partitions(frame.to_delayed()), columns
        if isinstance(edges, list | tuple) and edges and all(isinstance(e, Delayed) for e in edges):
            return number_partitions(edges), None
        wanted = "a Dask DataFrame, paths of files, or a list of dask.delayed batches"
        return divide_files(edges, partition_edges, self.options, wanted)

    def _run(self, work: Work, shared: Sequence[object] = ()) -> Any:
        how = (self.split_every, self.client, self.progress)
        return run_tree(work, self.partitions, *how, shared)

    def _hold(self, value: object) -> object:
        return hold(value, self.client)


_calls = ClusterCalls(ClusterEdges, Labelled)
sparsify, label = _calls.sparsify, _calls.label
