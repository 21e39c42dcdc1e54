"""Edges in Spark DataFrames, sparsified and multiplied where they are; labels in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame as SparkFrame
from pyspark.sql import SparkSession

from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import is_from
from ohmlearn.cluster.cluster_calls import ClusterCalls, Labelled
from ohmlearn.cluster.merge_tree import Work
from ohmlearn.cluster.partitioned_edges import PartitionedEdges
from ohmlearn.cluster.partitions import (
    Partition,
    choose_frame_columns,
    divide_files,
    number_partitions,
)
from ohmlearn.cluster.spark_jobs import Batches, explained, hold, map_in_arrow, run_job
from ohmlearn.reading.column_choice import ColumnSample
from ohmlearn.reading.read_options import ReadOptions

INTEGERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
SQL_TYPES = {pa.int64(): "bigint", pa.float64(): "double", pa.bool_(): "boolean"}
SLICE = 1 << 17  # nodes in a row of bytes
# Operators after which the rows of a partition come in the order in which other tasks finish.
SHUFFLES = {
    "Aggregate": "a groupBy", "Distinct": "a distinct or dropDuplicates",
    "Deduplicate": "a distinct or dropDuplicates", "Join": "a join",
    "Repartition": "a repartition", "RepartitionByExpression": "a repartition",
    "RebalancePartitions": "a rebalance", "Intersect": "an intersect", "Except": "a subtract",
    "Window": "a window", "Sort": "a sort",
}  # fmt: skip


class SparkEdges(PartitionedEdges):
    """Edges in a Spark DataFrame, or in files that executors read.

    `refine` and `certify` accept them like other edges, once they have been sparsified: executors
    multiply by the edges of their partitions, and the products are added up in a tree.

    Every pass is a Spark job that computes the DataFrame again, unless it is cached. The same seed
    gives the same bytes only if it has the same partitions, with rows in the same order, each time.
    That holds for DataFrames read from files and for cached ones, but not after a shuffle: a
    warning says so.

    Parameters
    ----------
    edges : pyspark.sql.DataFrame, path, or list of paths
        Of a DataFrame only the columns that are needed are read. A path is a file, a pattern or a
        folder in any format that `read_edges` knows and that all executors can read.
    spark : SparkSession, optional
        For paths; by default the active session, or a new one.
    split_every : int
        Number of sparsifiers that one task merges; 4 by default.
    partition_edges : int
        Approximate number of edges in a partition of files; 50 million by default. A DataFrame has
        its own partitions.
    progress : callable, optional
        Called with the name of a stage, the number of finished partitions and that of all.
    **options
        How to read: `source_col`, `target_col`, `weight_col`, `time`, `id_type`, `on_bad`, `where`
        and the other fields of `ReadOptions`, as for `read_edges`.

    Attributes
    ----------
    frame : DataFrame
        The columns that are read.
    nodes, columns, sources, n_bad, first_bad, has_times, time_unit, traffic
        See `ohmlearn.dask.ClusterEdges`.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from ohmlearn import certify
    >>> from ohmlearn.spark import SparkEdges
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.range(0, 20_000, 1, 4).selectExpr("id % 99 as src", "id % 100 as dst")
    >>> edges = SparkEdges(df)
    >>> h = edges.sparsify(epsilon=0.9, random_state=0)
    >>> h.n_edges_seen_, edges.n_partitions, len(edges.nodes)
    (19703, 4, 100)
    >>> certify(edges, h, random_state=0).epsilon < 0.9
    True
    """

    def __init__(self, edges: object, *, spark: SparkSession | None = None, **options: Any) -> None:
        self.integer_type = "bigint"  # of ids in the answers
        self.frame: SparkFrame | None = None
        self.spark: Any = spark  # or found with the edges
        super().__init__(edges, **options)
        if self.spark is None:
            self.spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()

    def _find(self, edges: object, partition_edges: int) -> tuple[list[Partition], str | None]:
        if not is_from("pyspark", edges):
            wanted = "a Spark DataFrame, or paths of files"
            return divide_files(edges, partition_edges, self.options, wanted)
        given: SparkFrame = edges
        self.spark = given.sparkSession
        frame, columns, self.integer_type = choose_edges(given, self.options)
        warn_of_order(frame)
        with explained("counting partitions"):
            count = count_partitions(frame)
        if count == 0:  # Spark would run no task
            return number_partitions([[]]), columns
        self.frame = frame
        return number_partitions([None] * count), columns

    def _run(self, work: Work, shared: Sequence[object] = ()) -> Any:
        places, frame = None, self.frame
        if frame is None:
            places = [(part.name, part.content) for part in self.partitions]
            frame = self.spark.range(0, self.n_partitions, 1, self.n_partitions)
        how = (self.n_partitions, self.split_every, places, shared, self.progress)
        return run_job(self.spark, frame, work, *how)

    def _hold(self, value: object) -> object:
        return hold(value, self.spark)

    def _let_go(self, held: Any) -> None:
        if hasattr(held, "destroy"):
            held.destroy()

    def _collect_labels(self, y: Any) -> Any:
        """Return labels by node, if they are in a DataFrame; others as they are."""
        if not hasattr(y, "mapInArrow"):
            return y
        names = list(y.columns)
        if len(names) < 2:
            raise ValueError(f"labels need the columns node and label, got {', '.join(names)}")
        node, label = ("node", "label") if {"node", "label"} <= set(names) else names[:2]
        labels: dict[Any, Any] = {}
        for row in y.select(f"`{node}`", f"`{label}`").collect():
            if labels.setdefault(row[0], row[1]) != row[1]:
                both = f"{labels[row[0]]!r} and {row[1]!r}"
                raise ValueError(f"node {row[0]!r} has the labels {both}; give it one")
        return labels


@dataclass(frozen=True, repr=False)
class LabelledFrame(Labelled):
    """What `ohmlearn.spark.label` returns, with one row for each node.

    Attributes
    ----------
    frame : DataFrame
        The columns node, label, probability (of the label) and reached.
    ids, labels, probabilities, reached, model, certificate, edges
        The same as arrays in this process, and more; see `ohmlearn.cluster.Labelled`.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from ohmlearn.spark import label
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.createDataFrame([("a", "b"), ("b", "c")], "src string, dst string")
    >>> found = label(df.coalesce(1), {"a": "x", "c": "y"}, calibration=None, random_state=0)
    >>> found.frame.select("node", "label", "reached").first()
    Row(node='a', label='x', reached=True)
    """

    @cached_property
    def frame(self) -> SparkFrame:
        """The DataFrame of nodes and labels."""
        assert isinstance(self.edges, SparkEdges)
        return _make_frame(self.edges.spark, self, self.edges.integer_type)


_calls = ClusterCalls(SparkEdges, LabelledFrame)
sparsify, label = _calls.sparsify, _calls.label


def choose_edges(frame: SparkFrame, options: ReadOptions) -> tuple[SparkFrame, str, str]:
    """Return the columns of a DataFrame that are read, what they are, and the type of the ids."""
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    values = ColumnSample(
        times={at for at, kind in enumerate(types) if kind.startswith(("date", "timestamp"))},
        floats={at for at, kind in enumerate(types) if kind.startswith(("float", "double", "dec"))},
    )
    used, columns = choose_frame_columns(frame.columns, values, options)
    kinds = {types[at] for at in used[:2]} if len(used) < len(types) else set(types)
    id_type = kinds.pop() if len(kinds) == 1 else "bigint"
    quoted = ("`" + frame.columns[at].replace("`", "``") + "`" for at in used)
    return frame.select(*quoted), columns, id_type


def count_partitions(frame: SparkFrame) -> int:
    """Return the number of partitions of a DataFrame."""
    if hasattr(frame, "_jdf"):
        return int(frame.rdd.getNumPartitions())

    def count(batches: Batches) -> Batches:  # Spark Connect
        for _ in batches:
            pass
        yield pa.record_batch([pa.array([1], pa.int32())], names=["one"])

    return len(map_in_arrow(frame, count, "one int").collect())


def warn_of_order(frame: SparkFrame) -> None:
    """Warn if the rows of a DataFrame may come in another order when they are computed again."""
    try:
        plan = frame._jdf.queryExecution().withCachedData()
        found = _find_shuffle(plan)
        if found is None and not plan.deterministic():
            found = "a function whose values are not always the same, such as rand()"
    except Exception:  # Spark Connect has no plan here, and plans are no public interface
        return
    if found is not None:
        warn(
            f"the DataFrame has {found}, so its rows have no fixed order, and the same seed may "
            f"give another sparsifier; cache it, or write it to files and read those"
        )


def _find_shuffle(plan: Any) -> str | None:
    """Return the first operator of a plan that shuffles; below a cached DataFrame, none counts."""
    name = plan.nodeName()
    in_place = (name == "Repartition" and not plan.shuffle()) or (
        name == "Sort" and not getattr(plan, "global")()
    )
    if name in SHUFFLES and not in_place:
        return SHUFFLES[name]
    children = plan.children()
    found = (_find_shuffle(children.apply(at)) for at in range(children.size()))
    return next((shuffle for shuffle in found if shuffle is not None), None)


def _make_frame(spark: SparkSession, found: Labelled, id_type: str) -> SparkFrame:
    """Return a DataFrame of labels.

    The columns travel as Arrow data in a few rows of bytes, since not every supported Spark makes
    a DataFrame of an Arrow table.
    """
    ids = _as_arrow(found.ids)
    if pa.types.is_integer(ids.type):
        kind = id_type if id_type in INTEGERS else "bigint"
        ids = ids.cast(INTEGERS[kind])
    else:
        kind = "string"
    labels = _as_arrow(found.labels)
    probability = found.probabilities.max(axis=1, initial=0.0)
    columns = [ids, labels, pa.array(probability), pa.array(found.reached)]
    table = pa.table(columns, names=["node", "label", "probability", "reached"])
    slices = []
    for at in range(0, max(1, table.num_rows), SLICE):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(at, SLICE))
        slices.append((bytearray(sink.getvalue()),))
    label_type = SQL_TYPES.get(labels.type, "string")
    schema = f"node {kind}, label {label_type}, probability double, reached boolean"
    return map_in_arrow(spark.createDataFrame(slices, "content binary"), _unpack, schema)


def _unpack(batches: Batches) -> Batches:
    for batch in batches:
        for content in batch.column(0):
            yield from pa.ipc.open_stream(content.as_buffer())


def _as_arrow(values: NDArray[Any]) -> pa.Array:
    """Return ids or labels as integers, fractions, truth values, or else texts."""
    if values.dtype.kind in "iu":
        return pa.array(values.astype(np.int64))
    if values.dtype.kind in "fb":
        return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values], pa.string())
