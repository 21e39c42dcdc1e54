"""From what the user gives to partitions: files, a Dask DataFrame, or Delayed objects."""

from __future__ import annotations

from typing import Any

from dask.delayed import Delayed

from ohmlearn.checks.edge_arrays import is_from
from ohmlearn.checks.parameters import check_count
from ohmlearn.cluster.partitions import (
    Partition,
    choose_frame_columns,
    divide_files,
    number_partitions,
)
from ohmlearn.reading.array_reader import look_at_types
from ohmlearn.reading.read_options import ReadOptions

__all__ = ["find_partitions"]

WANTED = "a Dask DataFrame, paths of files, or a list of dask.delayed batches"


def find_partitions(
    edges: object, partition_edges: int, options: ReadOptions
) -> tuple[list[Partition], str | None]:
    """Return the partitions of a Dask DataFrame, a list of Delayed, or files; and the columns.

    Examples
    --------
    >>> import dask
    >>> batches = [dask.delayed(([0], [1])), dask.delayed(([1], [2]))]
    >>> parts, _ = find_partitions(batches, 100, ReadOptions())
    >>> [part.name for part in parts]
    ['partition 0', 'partition 1']
    """
    check_count("partition_edges", partition_edges)
    if is_from("dask", edges) and not isinstance(edges, Delayed):
        frame: Any = edges
        names = [str(name) for name in frame.columns]
        used, columns = choose_frame_columns(names, look_at_types(frame.dtypes), options)
        frame = frame[[frame.columns[at] for at in used]]
        return number_partitions(frame.to_delayed()), columns
    if isinstance(edges, list | tuple) and edges and all(isinstance(e, Delayed) for e in edges):
        return number_partitions(edges), None
    return divide_files(edges, partition_edges, options, WANTED)
