"""``ohmlearn.spark.sparsify`` gives the bytes of one process and of Dask, even if workers die."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pyarrow as pa
import pytest
from spark_partitions import content, take_partitions

from ohmlearn import Graph, certify
from ohmlearn.cluster import LocalEdges
from ohmlearn.cluster.spark_jobs import map_in_arrow
from ohmlearn.dask import ClusterEdges
from ohmlearn.spark import SparkEdges
from ohmlearn.spark import sparsify as sparsify_in_spark

HOW: dict[str, Any] = {"epsilon": 0.9, "random_state": 3}


@pytest.fixture(scope="module")
def alone(files: list[Path]) -> bytes:
    found = LocalEdges(files, partition_edges=10_000, split_every=3).sparsify(**HOW)
    assert found.n_rows_ < found.n_edges_seen_ / 5
    return content(found)


def test_files_have_the_same_bytes_here_on_dask_and_in_spark(
    spark: Any, files: list[Path], alone: bytes
):
    options: dict[str, Any] = {"partition_edges": 10_000, "split_every": 3}
    stages = []
    edges = SparkEdges(files, progress=lambda *stage: stages.append(stage), **options)
    assert edges.n_partitions == 10
    assert content(edges.sparsify(**HOW)) == alone
    assert stages[-1] == ("sparsify", 10, 10)
    with dask.config.set(scheduler="threads"):
        on_dask = ClusterEdges(files, **options)
        assert content(on_dask.sparsify(**HOW)) == alone
    assert edges.traffic == on_dask.traffic
    assert edges.sources == on_dask.sources


@pytest.mark.parametrize("way", ["files", "cached"])
def test_a_dataframe_has_the_bytes_of_its_partitions(spark: Any, files: list[Path], way: str):
    frame = spark.read.parquet(str(files[0].parent))
    if way == "cached":
        frame = frame.repartition(7).cache()
    parts = take_partitions(frame)
    assert len(parts) == (7 if way == "cached" else 2)
    edges = SparkEdges(frame, split_every=3)
    assert edges.columns == "u = 'src', v = 'dst', weights = 'weight' (guessed)"
    found = edges.sparsify(**HOW)
    local = LocalEdges(parts, split_every=3)
    alone = local.sparsify(**HOW)
    assert content(found) == content(alone)
    assert content(edges.sparsify(**HOW)) == content(found)
    found = edges.sparsify(**HOW)
    here, there = (certify(*pair, random_state=0) for pair in ((local, alone), (edges, found)))
    assert (there.epsilon, there.edges_read) == (here.epsilon, here.edges_read)
    frame.unpersist()


def test_python_workers_killed_at_random_moments_change_nothing(
    spark: Any, files: list[Path], alone: bytes
):
    moments = random.Random(0)
    for _ in range(2):
        killed: list[int] = []

        def kill(killed: list[int] = killed) -> None:
            for process in psutil.Process().children(recursive=True):
                parent = process.parent()
                if parent is not None and "pyspark.daemon" in " ".join(parent.cmdline()):
                    killed.append(process.pid)
                    process.kill()
                    return

        killer = threading.Timer(moments.uniform(0.0, 1.0), kill)
        killer.start()
        edges = SparkEdges(files, partition_edges=10_000, split_every=3)
        assert content(edges.sparsify(**HOW)) == alone
        killer.join()
        assert killed


def test_a_worker_that_dies_within_a_partition_changes_nothing(spark: Any):
    def read(batches: Iterator[Any], deadly: bool) -> Iterator[Any]:
        from pyspark import TaskContext

        task, generator = TaskContext.get(), np.random.default_rng(0)
        for _ in batches:
            pass
        for at in range(3):
            if deadly and at == 2 and task.partitionId() == 2 and task.attemptNumber() < 2:
                os.kill(os.getpid(), signal.SIGKILL)
            u, v = generator.integers(0, 50 * (task.partitionId() + 1), (2, 5_000))
            yield pa.record_batch({"u": u, "v": v})

    results = [
        SparkEdges(
            map_in_arrow(
                spark.range(0, 4, 1, 4),
                lambda batches, deadly=deadly: read(batches, deadly),
                "u long, v long",
            )
        ).sparsify(**HOW)
        for deadly in (False, True)
    ]
    assert content(results[0]) == content(results[1])


def test_a_killed_executor_changes_nothing():
    script = Path(__file__).parents[1] / "support" / "spark_executors.py"
    unset = ("PYSPARK_SUBMIT_ARGS", "SPARK_LOCAL_IP")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=240, env=environment
    )
    assert "same bytes: True" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_where_nothing_is_dropped_it_is_the_graph_itself(spark: Any, kind: str):
    # Empty partitions, huge ids, letters of other alphabets, parallel edges, loops, weights of 0.
    rows = [
        (5, 2**62, 1.0),
        (2**62, -3, 2.0),
        (5, 5, 9.0),
        (-3, 5, 0.5),
        (7, 8, 0.0),
        (2**62, 5, 0.25),
        (-(2**63), 7, 4.0),
    ]
    ids: dict[int, Any] = {i: i for row in rows for i in row[:2]}
    if kind == "strings":
        ids = {i: f"Ωノード {i}" for i in ids}
    data = [(ids[a], ids[b], w) for a, b, w in rows]
    schema = "from {0}, to {0}, weight double".format("long" if kind == "integers" else "string")
    frame = spark.createDataFrame(spark.sparkContext.parallelize(data, 12), schema)
    edges = SparkEdges(frame)
    assert edges.n_partitions == 12
    h = edges.sparsify(random_state=0).snapshot()
    names = edges.nodes.ids()
    found = {frozenset((names[a], names[b])): w for a, b, w in zip(*h.edges(), strict=True)}
    assert found == {
        frozenset((ids[5], ids[2**62])): 1.25,
        frozenset((ids[2**62], ids[-3])): 2.0,
        frozenset((ids[-3], ids[5])): 0.5,
        frozenset((ids[-(2**63)], ids[7])): 4.0,
    }
    assert set(names) == set(ids.values())


@pytest.mark.parametrize("n_parts", [0, 1, 3])
def test_an_empty_dataframe_is_an_empty_graph(spark: Any, n_parts: int):
    frame = spark.range(0, 0, 1, max(1, n_parts)).selectExpr("id as u", "id as v")
    if n_parts == 0:
        frame = spark.createDataFrame(spark.sparkContext.emptyRDD(), "u long, v long")
    h = sparsify_in_spark(frame)
    assert isinstance(h, Graph)
    assert (h.n_nodes, h.n_edges) == (0, 0)


def test_results_larger_than_a_row(
    spark: Any, files: list[Path], alone: bytes, monkeypatch: pytest.MonkeyPatch
):
    from ohmlearn.cluster import spark_jobs

    tree = spark_jobs.Tree(None, 2, [3, 2, 1], [[7, 8], [0]])  # type: ignore[arg-type]
    monkeypatch.setattr(spark_jobs, "PART", 10)
    batches = list(spark_jobs._split(bytes(range(35)), 2, tree, 0))
    assert [batch.to_pylist()[0]["part"] for batch in batches] == [0, 1, 2, 3]
    assert all(batch.to_pylist()[0]["key"] == 8 for batch in batches)
    found = [row for batch in reversed(batches) for row in batch.to_pylist()]
    parts = {row["part"]: row["content"] for row in found}
    assert spark_jobs._join(parts) == bytes(range(35))
