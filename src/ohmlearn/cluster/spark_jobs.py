"""How Spark runs work: a job whose first stage reads partitions; the others merge, one per level.

Tasks are pure functions of a partition or of the results below, so that a task that Spark repeats
after an executor was lost gives the same bytes. Their functions come last: they take and give rows
of a DataFrame. A result is one or more rows, because neither Spark nor Arrow has values of more
than 2 GB. A row says which result it is part of, so that a merge finds its parts in whatever order
they arrive.
"""

from __future__ import annotations

import re
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext

from ohmlearn.cluster.cluster_errors import PartitionError, WorkerError, in_partition
from ohmlearn.cluster.merge_tree import Progress, Work, level_sizes
from ohmlearn.errors import Param

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession

Batches = Iterator[pa.RecordBatch]
POLL = 0.5  # seconds between two looks at a job
MORE_KEYS = 16  # candidates for each key
_known_keys: dict[int, list[int]] = {}  # by the number of tasks
JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
DEATHS = r"Python worker exited unexpectedly|ExecutorLostFailure|Python worker .*crashed"
ROW = "number int, part int, n_parts int, key int, content binary"
NUMBERS = [(name, pa.int32()) for name in ("number", "part", "n_parts", "key")]
SCHEMA = pa.schema([*NUMBERS, ("content", pa.binary())])
PART = 1 << 24  # bytes of a row
GATHER = 1 << 18  # rows of edges that are handed on at a time; Spark sends 10,000


def hold(value: object, spark: SparkSession) -> object:
    """Return the value as something that each executor gets once.

    Without broadcasts it travels with the code of each task.
    """
    context = getattr(spark, "sparkContext", None) if _is_classic(spark) else None
    return SimpleNamespace(value=value) if context is None else context.broadcast(value)


def _is_classic(spark: SparkSession) -> bool:
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def run_job(
    spark: SparkSession,
    frame: SparkFrame,
    work: Work,
    n_partitions: int,
    split_every: int,
    places: Sequence[tuple[str, object]] | None,
    shared: Sequence[Any],
    progress: Progress | None,
) -> Any:
    """Run work on the partitions of a DataFrame and merge the results, `split_every` at a time.

    The partitions are the edges, or are only counted if `places` holds names and contents.
    """
    sizes = level_sizes(n_partitions, split_every)
    with explained(work.stage):
        tree = Tree(work, split_every, sizes, [_find_keys(spark, size) for size in sizes[1:]])

    def read(batches: Batches) -> Batches:
        return read_rows(batches, tree, places, shared)

    rows = map_in_arrow(frame, read, ROW)
    for level, size in enumerate(sizes[1:], 1):

        def merge(batches: Batches, level: int = level) -> Batches:
            return merge_rows(batches, tree, level)

        rows = map_in_arrow(rows.repartition(size, "key"), merge, ROW)
    watched = _watch(spark, work.stage, n_partitions, progress)
    with explained(work.stage), _without_measuring(spark), watched:
        found = rows.collect()
    packed = _join({row["part"]: bytes(row["content"]) for row in found})  # the only result
    return work.result.from_bytes(packed)


def map_in_arrow(
    frame: SparkFrame, function: Callable[[Batches], Batches], schema: str
) -> SparkFrame:
    """Return what a function makes of the batches of a DataFrame."""
    with warnings.catch_warnings():
        # Spark warns of versions of pandas, which has no part in this.
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, schema)


def _find_keys(spark: SparkSession, size: int) -> list[int]:
    """Return keys that Spark sends to different tasks.

    It distributes rows by a hash. With the numbers 0, 1, ... as keys some tasks would get several
    groups and others none.
    """
    if size == 1:
        return [0]
    if size in _known_keys:
        return _known_keys[size]
    query = f"pmod(hash(cast(id as int)), {size}) as task"
    candidates = spark.range(0, MORE_KEYS * size, 1, 1).selectExpr("cast(id as int) as id", query)
    keys: dict[int, int] = {}
    for row in candidates.collect():
        keys.setdefault(row["task"], row["id"])
    found = [keys.get(task, MORE_KEYS * size + task) for task in range(size)]
    _known_keys[size] = found
    return found


@contextmanager
def _without_measuring(spark: SparkSession) -> Iterator[None]:
    """Let Spark limit batches by their rows only.

    By default Spark 4 measures a batch again after each row, which takes half of the time in which
    a DataFrame is sent to Python.
    """
    before = spark.conf.get(BATCH_BYTES, None)  # None if the user has not set it
    spark.conf.set(BATCH_BYTES, str(2**31 - 1))  # a name without meaning for Spark 3.5
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(BATCH_BYTES)
        else:
            spark.conf.set(BATCH_BYTES, before)


@contextmanager
def explained(stage: str) -> Iterator[None]:
    """Turn errors of executors into errors of ohmlearn, without the stack traces of Java."""
    from pyspark.errors import PySparkException

    try:
        yield
    except Exception as error:
        # py4j reports what Spark does not translate.
        if not isinstance(error, PySparkException) and "py4j" not in type(error).__module__:
            raise
        known = _explain(str(error), stage)
        if known is None:
            raise
        raise known from None


def _explain(text: str, stage: str) -> Exception | None:
    """Return what an error of Spark means; None if that is not known.

    Spark hands over an error of an executor as the text of its traceback, and nothing else.
    """
    if found := re.search(r"\bPartitionError: (.*)", text):
        return PartitionError(found[1].strip())
    if re.search(r"No module named '?ohmlearn", text):
        return ImportError(
            "the Python of the executors has no ohmlearn; install it there, and let PYSPARK_PYTHON "
            "be that Python"
        )
    if "spark.driver.maxResultSize" in text:
        return WorkerError(
            f"the result is larger than spark.driver.maxResultSize; set that to a larger value, "
            f"increase {Param('epsilon')}, or set {Param('max_edges')}"
        )
    if re.search(DEATHS, text):
        task = re.search(r"Task (\d+) in stage [\d.]+ failed (\d+) times", text)
        which = f"task {task[1]} died {task[2]} times" if task else "a task died repeatedly"
        return WorkerError(
            f"{stage}: {which}, probably out of memory; increase spark.executor.memoryOverhead, "
            f"use more partitions, increase {Param('epsilon')}, or set {Param('max_edges')}"
        )
    return None


@contextmanager
def _watch(
    spark: SparkSession, stage: str, total: int, progress: Progress | None
) -> Iterator[None]:
    """Report the partitions that have been read while a job runs."""
    if progress is None or not _is_classic(spark):
        yield
        return
    context, group = spark.sparkContext, f"ohmlearn-{uuid.uuid4().hex}"
    before = {key: context.getLocalProperty(key) for key in JOB_PROPERTIES}
    context.setJobGroup(group, f"ohmlearn: {stage}")
    over, last = threading.Event(), 0

    def look() -> None:
        nonlocal last
        while not over.wait(POLL):
            done = min(total, _count_done(context.statusTracker(), group))
            if done > last:
                last = done
                progress(stage, done, total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for key, value in before.items():
            context.setLocalProperty(key, value)
    if last < total:
        progress(stage, total, total)


def _count_done(tracker: StatusTracker, group: str) -> int:
    """Return the number of finished tasks of the first stage, which reads partitions."""
    stages = []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        stages += [] if info is None else list(info.stageIds)
    info = tracker.getStageInfo(min(stages)) if stages else None
    return 0 if info is None else int(info.numCompletedTasks)


class Tree(NamedTuple):
    """The tree of merges, for the tasks of a job."""

    work: Work
    split_every: int
    sizes: list[int]  # results on each level, see `level_sizes`
    keys: list[list[int]]  # of the groups of each level, by which Spark distributes rows


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
    batches: Batches, tree: Tree, places: Sequence[tuple[str, Any]] | None, shared: Sequence[Any]
) -> Batches:
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


def merge_rows(batches: Batches, tree: Tree, level: int) -> Batches:
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


def _join(parts: dict[int, bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts[at] for at in sorted(parts))


def _split(packed: bytes, number: int, tree: Tree, level: int) -> Batches:
    """Return the rows of a result."""
    n_parts = max(1, -(-len(packed) // PART))
    key = 0 if level + 1 == len(tree.sizes) else tree.keys[level][number // tree.split_every]
    for part in range(n_parts):
        content = memoryview(packed)[part * PART : (part + 1) * PART]
        columns = [pa.array([value], pa.int32()) for value in (number, part, n_parts, key)]
        columns.append(pa.array([content], pa.binary()))
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _as_content(batches: Batches) -> DataFrame | Iterator[Any]:
    """Return the edges of a partition of a DataFrame."""
    first = next(batches, None)
    if first is None:
        return iter(())
    return DataFrame(first.schema, _gather(chain([first], batches)))


def _gather(batches: Iterable[pa.RecordBatch]) -> Batches:
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
