"""What goes wrong in Spark is one error that names the partition, without the words of Java."""

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ohmlearn.cluster.spark_jobs import map_in_arrow
from ohmlearn.spark import PartitionError, SparkEdges, WorkerError, label, sparsify


def frame_of(spark: Any, rows: list[tuple[Any, ...]], schema: str, n_parts: int = 3) -> Any:
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, n_parts), schema)


def test_a_bad_row_is_named(spark: Any):
    rows = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, -1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 6, None)]
    frame = frame_of(spark, rows, "u long, v long, w double")
    message = r"^partition 1: the DataFrame, row 0: weights must not be negative.*got -1.0"
    with pytest.raises(PartitionError, match=message) as caught:
        sparsify(frame.where("w is not null"))
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    edges = SparkEdges(frame, on_bad="skip")
    assert edges.sparsify().n_edges_seen_ == 4
    assert edges.n_bad == 2
    assert "row 0: weights must" in str(edges.first_bad)


@pytest.mark.parametrize(
    ("schema", "rows", "message"),
    [
        ("u string, v string", [("a", None)], "partition 0: .*row 0"),
        ("u double, v double", [(0.5, 1.0)], "partition 0: "),
        ("u date, v date, n long", [(None, None, 1)], "the DataFrame"),
    ],
)
def test_ids_that_are_none(spark: Any, schema: str, rows: list[Any], message: str):
    with pytest.raises(ValueError, match=message):
        sparsify(frame_of(spark, rows, schema, 1))


def test_a_damaged_file_is_named(spark: Any, tmp_path: Path):
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text("u,v,w\na,b,1\nb,c,2\n")
    edges = SparkEdges(tmp_path, partition_edges=1)
    (tmp_path / "1.csv").write_text("u,v,w\na,b,1\nb,c,many\n")
    with pytest.raises(PartitionError, match=r"partition \d .*1\.csv.*row 3"):
        edges.sparsify()


def test_workers_that_always_die(spark: Any):
    def die(batches: Iterator[Any]) -> Iterator[Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    frame = map_in_arrow(spark.range(3).selectExpr("id as u", "id as v"), die, "u long, v long")
    with pytest.raises(WorkerError, match=r"^sparsify: task \d died 4 times, probably out of mem"):
        sparsify(frame)


def test_errors_of_spark_itself_stay(spark: Any):
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    frame = spark.range(3).selectExpr("id as u", "cast(raise_error('no') as long) as v")
    with pytest.raises((PySparkException, Py4JJavaError), match="no"):
        sparsify(frame)


@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("repartition", "a repartition"),
        ("distinct", "a distinct or dropDuplicates"),
        ("join", "a join"),
        ("sort", "a sort"),
        ("rand", r"a function .* such as rand\(\)"),
    ],
)
def test_rows_without_a_fixed_order(spark: Any, way: str, what: str):
    frame = spark.range(0, 30, 1, 2).selectExpr("id as u", "id + 1 as v")
    ways = {
        "repartition": lambda: frame.repartition(3),
        "distinct": lambda: frame.distinct(),
        "join": lambda: frame.join(spark.range(20).withColumnRenamed("id", "u"), "u"),
        "sort": lambda: frame.sort("v"),
        "rand": lambda: frame.where("rand() < 2"),
    }
    shuffled = ways[way]()
    with pytest.warns(UserWarning, match=f"the DataFrame has ({what}), so its rows have no fixed"):
        SparkEdges(shuffled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparkEdges(shuffled.cache())
        SparkEdges(frame.coalesce(1).sortWithinPartitions("v"))
    shuffled.unpersist()


def test_what_cannot_be_right_is_refused(spark: Any):
    frame = spark.range(3).selectExpr("id as a", "id as b", "id as c")
    for call, message in (
        (lambda: sparsify(7), "edges in partitions are a Spark DataFrame, or paths of files, got"),
        (lambda: sparsify(frame), "the DataFrame"),
        (lambda: sparsify(frame.select("a", "b"), where="d > 1"), "has no column 'd' for where"),
        (
            lambda: label(SparkEdges(frame.select("a", "b")), {}, time="c"),
            "are a SparkEdges already; give it time",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_settings_and_jobs_of_the_session_stay(spark: Any):
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    spark.conf.set(key, "123456")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "mine")
    frame = spark.range(3).selectExpr("id as u", "id + 1 as v")
    sparsify(frame, progress=lambda *stage: None)
    assert spark.conf.get(key) == "123456"
    spark.conf.unset(key)
    sparsify(frame)
    assert spark.conf.get(key, None) is None
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
