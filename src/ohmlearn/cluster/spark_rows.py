"""What executors do: read a partition, or merge results. Both take and give rows of a DataFrame.

A result is one or more rows, because neither Spark nor Arrow has values of more than 2 GB. A row
says which result it is part of, so that a merge finds its parts in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext

from ohmlearn.cluster.cluster_errors import PartitionError, in_partition
from ohmlearn.cluster.partition_work import Work

__all__ = ["ROW", "Tree", "join_rows", "merge_rows", "read_rows"]

ROW = "number int, part int, n_parts int, key int, content binary"
SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("number", "part", "n_parts", "key")),
        ("content", pa.binary()),
    ]
)
PART = 1 << 24  # bytes of a row
GATHER = 1 << 18  # rows of edges that are handed on at a time; Spark sends 10,000


class Tree(NamedTuple):
    """The tree of merges, for the tasks of a job.

    Attributes
    ----------
    work : Work
    split_every : int
    sizes : list of int
        Results on each level, see `level_sizes`.
    keys : list of list of int
        For each level the keys of its groups, by which Spark distributes rows among tasks.
    """

    work: Work
    split_every: int
    sizes: list[int]
    keys: list[list[int]]


class DataFrame:
    """A partition of a DataFrame, for the reader of edges. Messages show the name of this class."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self._reader = pa.RecordBatchReader.from_batches(schema, batches)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch; this method marks an object that can be read once."""
        return self._reader.read_next_batch()


def read_rows(
    batches: Iterator[pa.RecordBatch],
    tree: Tree,
    places: Sequence[tuple[str, Any]] | None,
    shared: Sequence[Any],
) -> Iterator[pa.RecordBatch]:
    """Read the partition of this task and return its result.

    `places` are names and contents of the partitions, if they are not those of a DataFrame.
    """
    number = TaskContext.get().partitionId()
    if number >= tree.sizes[0]:
        raise PartitionError(
            f"partition {number}: the DataFrame had {tree.sizes[0]} partitions when they were "
            f"counted; cache it, or write it to files and read those"
        )
    name, content = f"partition {number}", None
    if places is not None:
        name, content = places[number]
        for _ in batches:  # else Spark would start a new Python for the next task
            pass
    with in_partition(name):
        values = [None if held is None else held.value for held in shared]
        content = _as_content(batches) if content is None else content
        result = tree.work.read(content, number, name, *values)
        packed = result.to_bytes()
    del result, values
    yield from _split(packed, number, tree, 0)


def merge_rows(
    batches: Iterator[pa.RecordBatch], tree: Tree, level: int
) -> Iterator[pa.RecordBatch]:
    """Merge the results that this task gets, in order of their partitions."""
    work, below = tree.work, tree.sizes[level - 1]
    found: dict[int, dict[int, Any]] = {}
    n_parts: dict[int, int] = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["number"], {})[row["part"]] = row["content"]
            n_parts[row["number"]] = row["n_parts"]
    for index in sorted({number // tree.split_every for number in found}):
        first = index * tree.split_every
        group = range(first, min(first + tree.split_every, below))
        missing = [at for at in group if len(found.get(at, ())) != n_parts.get(at)]
        if missing:
            raise PartitionError(
                f"level {level} of the merges lacks result {missing[0]}; the partitions of the "
                f"DataFrame have changed meanwhile; cache it, or write it to files and read those"
            )
        parts = [_join(found.pop(at)) for at in group]
        if len(parts) > 1:
            results = [work.result.from_bytes(part) for part in parts]
            del parts
            with in_partition(f"merging partitions ({work.stage}, level {level}, number {index})"):
                parts = [work.merge(results, level, index).to_bytes()]
            del results
        yield from _split(parts[0], index, tree, level)


def join_rows(rows: Iterable[Any]) -> bytes:
    """Return the only result that rows hold."""
    return _join({row["part"]: bytes(row["content"]) for row in rows})


def _join(parts: dict[int, bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts[at] for at in sorted(parts))


def _split(packed: bytes, number: int, tree: Tree, level: int) -> Iterator[pa.RecordBatch]:
    """Return the rows of a result."""
    n_parts = max(1, -(-len(packed) // PART))
    key = 0 if level + 1 == len(tree.sizes) else tree.keys[level][number // tree.split_every]
    for part in range(n_parts):
        content = memoryview(packed)[part * PART : (part + 1) * PART]
        columns = [pa.array([value], pa.int32()) for value in (number, part, n_parts, key)]
        yield pa.RecordBatch.from_arrays(
            [*columns, pa.array([content], pa.binary())], schema=SCHEMA
        )


def _as_content(batches: Iterator[pa.RecordBatch]) -> Any:
    """Return the edges of a partition of a DataFrame."""
    first = next(batches, None)
    if first is None:
        return iter(())
    return DataFrame(first.schema, _gather(chain([first], batches)))


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put small batches together."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        if n_rows >= GATHER:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, n_rows = [], 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
