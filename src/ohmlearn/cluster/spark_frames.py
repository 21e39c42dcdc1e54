"""DataFrames in and out: the columns of edges, whether their order is fixed, and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.cluster.labelled_nodes import Labelled
from ohmlearn.cluster.partitions import choose_frame_columns
from ohmlearn.cluster.spark_jobs import map_in_arrow
from ohmlearn.reading.column_choice import ColumnSample
from ohmlearn.reading.read_options import ReadOptions

__all__ = ["LabelledFrame", "choose_edges", "count_partitions", "take_labels", "warn_of_order"]

INTEGERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
SQL_TYPES = {pa.int64(): "bigint", pa.float64(): "double", pa.bool_(): "boolean"}
SLICE = 1 << 17  # nodes in a row of bytes
# Operators after which the rows of a partition come in the order in which other tasks finish.
SHUFFLES = {
    "Aggregate": "a groupBy",
    "Distinct": "a distinct or dropDuplicates",
    "Deduplicate": "a distinct or dropDuplicates",
    "Join": "a join",
    "Repartition": "a repartition",
    "RepartitionByExpression": "a repartition",
    "RebalancePartitions": "a rebalance",
    "Intersect": "an intersect",
    "Except": "a subtract",
    "Window": "a window",
    "Sort": "a sort",
}


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
    def frame(self) -> Any:
        """The DataFrame of nodes and labels."""
        spark = self.edges.spark  # type: ignore[attr-defined]
        id_type = self.edges.integer_type  # type: ignore[attr-defined]
        return _make_frame(spark, self, id_type)


def choose_edges(frame: Any, options: ReadOptions) -> tuple[Any, str, str]:
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


def count_partitions(frame: Any) -> int:
    """Return the number of partitions of a DataFrame."""
    if hasattr(frame, "_jdf"):
        return int(frame.rdd.getNumPartitions())

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # Spark Connect
        for _ in batches:
            pass
        yield pa.record_batch([pa.array([1], pa.int32())], names=["one"])

    return len(map_in_arrow(frame, count, "one int").collect())


def warn_of_order(frame: Any) -> None:
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


def take_labels(y: Any) -> Any:
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
            raise ValueError(
                f"node {row[0]!r} has the labels {labels[row[0]]!r} and {row[1]!r}; give it one"
            )
    return labels


def _make_frame(spark: Any, found: Labelled, id_type: str) -> Any:
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


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
