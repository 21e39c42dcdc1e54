"""How Spark runs work: a job whose first stage reads partitions; the others merge, one per level.

Tasks are pure functions of a partition or of the results below, so that a task that Spark repeats
after an executor was lost gives the same bytes.
"""

from __future__ import annotations

import re
import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ohmlearn.cluster.cluster_errors import PartitionError, WorkerError
from ohmlearn.cluster.merge_tree import level_sizes
from ohmlearn.cluster.partition_work import Work
from ohmlearn.cluster.partitioned_edges import Progress
from ohmlearn.cluster.spark_rows import ROW, Tree, join_rows, merge_rows, read_rows
from ohmlearn.errors import Param

__all__ = ["Plain", "explained", "hold", "map_in_arrow", "run_job"]

POLL = 0.5  # seconds between two looks at a job
MORE_KEYS = 16  # candidates for each key
_known_keys: dict[int, list[int]] = {}  # by the number of tasks
JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
DEATHS = r"Python worker exited unexpectedly|ExecutorLostFailure|Python worker .*crashed"


class Plain:
    """A value that travels with the code of each task, where Spark has no broadcasts."""

    def __init__(self, value: Any) -> None:
        self.value = value


def hold(value: Any, spark: Any) -> Any:
    """Return the value as something that each executor gets once."""
    context = getattr(spark, "sparkContext", None) if _is_classic(spark) else None
    return Plain(value) if context is None else context.broadcast(value)


def _is_classic(spark: Any) -> bool:
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def run_job(
    spark: Any,
    frame: Any,
    work: Work,
    n_partitions: int,
    split_every: int,
    places: Sequence[tuple[str, Any]] | None = None,
    shared: Sequence[Any] = (),
    progress: Progress | None = None,
) -> Any:
    """Run work on the partitions of a DataFrame and merge the results, `split_every` at a time.

    Parameters
    ----------
    spark : SparkSession
    frame : DataFrame
        Its partitions are the edges, or are only counted if `places` holds names and contents.
    shared : list
        What `hold` has returned, or None.
    """
    sizes = level_sizes(n_partitions, split_every)
    with explained(work.stage):
        tree = Tree(work, split_every, sizes, [_find_keys(spark, size) for size in sizes[1:]])

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        return read_rows(batches, tree, places, shared)

    rows = map_in_arrow(frame, read, ROW)
    for level, size in enumerate(sizes[1:], 1):

        def merge(batches: Iterator[Any], level: int = level) -> Iterator[Any]:
            return merge_rows(batches, tree, level)

        rows = map_in_arrow(rows.repartition(size, "key"), merge, ROW)
    watched = _watch(spark, work.stage, n_partitions, progress)
    with explained(work.stage), _without_measuring(spark), watched:
        found = rows.collect()
    return work.result.from_bytes(join_rows(found))


def map_in_arrow(frame: Any, function: Any, schema: str) -> Any:
    """Return what a function makes of the batches of a DataFrame."""
    with warnings.catch_warnings():
        # Spark warns of versions of pandas, which has no part in this.
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, schema)


def _find_keys(spark: Any, size: int) -> list[int]:
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
def _without_measuring(spark: Any) -> Iterator[None]:
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
def _watch(spark: Any, stage: str, total: int, progress: Progress | None) -> Iterator[None]:
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


def _count_done(tracker: Any, group: str) -> int:
    """Return the number of finished tasks of the first stage, which reads partitions."""
    stages = []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        stages += [] if info is None else list(info.stageIds)
    info = tracker.getStageInfo(min(stages)) if stages else None
    return 0 if info is None else int(info.numCompletedTasks)
