"""Sparsify on two executors; the one that gets partition 1 is killed at its first attempt.

``python tests/support/spark_executors.py`` prints whether the bytes are those of one process.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def make_edges(number: int) -> dict[str, Any]:
    u, v = np.random.default_rng(number).integers(0, 100, (2, 10_000))
    return {"u": u, "v": v}


def read_or_die(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    task = TaskContext.get()
    if task.partitionId() == 1 and task.attemptNumber() == 0:
        os.kill(parent_of(parent_of(os.getpid())), signal.SIGKILL)  # worker, daemon, executor
    yield pa.record_batch(make_edges(task.partitionId()))


def main() -> None:
    from spark_partitions import content

    from ohmlearn.cluster import LocalEdges
    from ohmlearn.cluster.spark_jobs import map_in_arrow
    from ohmlearn.spark import SparkEdges

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[2,1,512]")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.path.dirname(__file__))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    frame = map_in_arrow(spark.range(0, 6, 1, 6), read_or_die, "u long, v long")
    found = SparkEdges(frame, split_every=2).sparsify(epsilon=0.9, random_state=0)
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    executors = len(tracker.getExecutorInfos()) - 1  # the driver is one of them
    tables = [pa.table(make_edges(number)) for number in range(6)]
    alone = LocalEdges(tables, split_every=2).sparsify(epsilon=0.9, random_state=0)
    print(f"same bytes: {content(found) == content(alone)}, executors: {executors}")
    spark.stop()


if __name__ == "__main__":
    main()
