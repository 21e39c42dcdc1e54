"""``ohmlearn.spark.label``: labels of a DataFrame are those of Dask and of one process."""

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from spark_partitions import take_partitions

from ohmlearn import HFSClassifier, certify
from ohmlearn.cluster import LocalEdges
from ohmlearn.dask import label as label_on_dask
from ohmlearn.spark import SparkEdges, label

RNG = np.random.default_rng(0)
U, V = RNG.integers(40, size=(2, 4000))
V = V - V % 2 + U % 2
V[0] = 1 - U[0] % 2  # one edge between the two groups


def test_labels_of_files_are_those_of_dask(spark: Any, files: list[Path]):
    known = {f"person {i}": "ab"[i % 2] for i in range(8)}
    how: dict[str, Any] = {"random_state": 0, "partition_edges": 30_000, "certify": True}
    found = label(files, known, **how)
    with dask.config.set(scheduler="threads"):
        expected = label_on_dask(files, known, **how)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.labels.tolist() == expected.labels.tolist()
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    assert found.certificate == expected.certificate
    rows = {row["node"]: row for row in found.frame.collect()}
    assert [rows[node]["label"] for node in found.ids] == found.labels.tolist()
    assert rows["person 3"]["probability"] == found.probabilities[
        found.ids.tolist().index("person 3")
    ].max()  # fmt: skip


@pytest.mark.parametrize("kind", ["int", "bigint", "string"])
def test_the_frame_has_the_types_of_the_edges(spark: Any, kind: str):
    rows = [(int(a), int(b)) for a, b in zip(U, V, strict=True)]
    frame = spark.createDataFrame([*rows, (90, 91)], "a long, b long").coalesce(3)
    frame = frame.selectExpr("'x' as note", f"cast(a as {kind}) as a", f"cast(b as {kind}) as b")
    labels = frame.selectExpr("a as node", "cast(a % 2 as int) as label").where("a < 8").distinct()
    with pytest.warns(UserWarning, match="2 of 42 nodes are in components without a label"):
        found = label(frame, labels, source_col="a", target_col="b", random_state=0)
    types = [(field.name, field.dataType.simpleString()) for field in found.frame.schema.fields]
    assert types == [
        ("node", kind),
        ("label", "bigint"),
        ("probability", "double"),
        ("reached", "boolean"),
    ]
    for row in found.frame.collect():
        assert row["reached"] == (int(row["node"]) < 90)
        if row["reached"]:
            assert row["label"] == int(row["node"]) % 2
    assert found.frame.count() == 42
    assert isinstance(found.model, HFSClassifier)
    assert "42 nodes" in repr(found)


def test_fading_edges(spark: Any):
    t = 1.6e9 + np.arange(len(U), dtype=np.float64)
    data = [(int(a), int(b), float(s)) for a, b, s in zip(U, V, t, strict=True)]
    frame = spark.createDataFrame(data, "u long, v long, seconds double").selectExpr(
        "u", "v", "timestamp_seconds(seconds) as ts"
    )
    edges = SparkEdges(frame, time="ts")
    assert edges.time_unit is None
    kept = edges.sparsify(epsilon=0.9, half_life="500s", random_state=0)
    assert edges.time_unit == "date"
    assert kept.latest_ == t[-1]
    local = LocalEdges(take_partitions(frame), time="ts")
    same = local.sparsify(epsilon=0.9, half_life="500s", random_state=0)
    assert same.snapshot() == kept.snapshot()
    here, there = certify(local, same, random_state=0), certify(edges, kept, random_state=0)
    assert here.epsilon == there.epsilon
    assert 0.0 < here.epsilon < 0.9


def test_labels_that_contradict_are_refused(spark: Any):
    frame = spark.createDataFrame([(0, 1)], "u long, v long")
    labels = spark.createDataFrame([(0, "a"), (0, "b")], "id long, what string")
    with pytest.raises(ValueError, match="node 0 has the labels 'a' and 'b'; give it one"):
        label(frame, labels)
    with pytest.raises(ValueError, match="labels need the columns node and label, got id"):
        label(frame, labels.select("id"))
