"""The two functions that most people need: a sparsifier, or labels, of edges in a DataFrame."""

from __future__ import annotations

from typing import Any, Literal

from ohmlearn.cluster.labelled_nodes import label_partitions
from ohmlearn.cluster.spark_edges import SparkEdges
from ohmlearn.cluster.spark_frames import LabelledFrame, take_labels
from ohmlearn.graph import Graph

__all__ = ["label", "sparsify"]


def sparsify(
    edges: object,
    *,
    epsilon: float = 0.5,
    max_edges: int | None = None,
    constants: Literal["practical", "theory"] = "practical",
    half_life: Any = None,
    horizon: Any = None,
    random_state: Any = None,
    **options: Any,
) -> Graph:
    """Sparsify the edges of a Spark DataFrame: each partition on an executor, then merge.

    The same seed gives the same sparsifier for any number of executors, in whatever order tasks
    finish and even if executors die, as long as the DataFrame has the same partitions with rows in
    the same order; see `SparkEdges`. It depends on the partitions and on `split_every`.

    Parameters
    ----------
    edges : pyspark.sql.DataFrame, SparkEdges, or whatever it accepts
        If you also need the edges for `certify`, make a `SparkEdges` first and pass it here.
    epsilon, max_edges, constants, half_life, horizon, random_state
        See `StreamingSparsifier`.
    **options
        `split_every`, `progress` and how to read, such as `source_col`: see `SparkEdges`.

    Returns
    -------
    Graph
        The sparsifier; its attribute `nodes` holds the ids of the nodes.

    Raises
    ------
    PartitionError
        If a partition cannot be read; the message names it.
    WorkerError
        If executors died repeatedly at a task.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from ohmlearn.spark import sparsify
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.range(0, 100_000, 1, 4).selectExpr("id % 499 as src", "id % 500 as dst")
    >>> h = sparsify(df, epsilon=0.9, random_state=0)
    >>> h.n_nodes, h.n_edges < 15_000
    (500, True)
    """
    found = _in_spark(edges, options).sparsify(
        epsilon=epsilon,
        max_edges=max_edges,
        constants=constants,
        half_life=half_life,
        horizon=horizon,
        random_state=random_state,
    )
    return found.snapshot()


def label(
    edges: object,
    labels: Any,
    *,
    sample_weight: Any = None,
    epsilon: float = 0.8,
    max_edges: int | None = None,
    passes: int = 3,
    gamma: float | Literal["auto"] = "auto",
    normalization: Literal["stable", "cmn"] | None = "stable",
    method: Literal["harmonic", "restart", "auto"] = "harmonic",
    class_prior: Any = None,
    calibration: Literal["loo"] | None = "loo",
    half_life: Any = None,
    horizon: Any = None,
    at: Any = None,
    since: Any = None,
    certify: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
    **options: Any,
) -> LabelledFrame:
    """Label every node of the edges in a Spark DataFrame from a few labelled ones.

    The first pass sparsifies; the others bring the answer close to that of the full graph. The
    edges stay where they are. In a pass, each executor gets a block with one column for each class
    and returns its product with the edges of its partitions.

    Parameters
    ----------
    edges : pyspark.sql.DataFrame, SparkEdges, or whatever it accepts
    labels : DataFrame, dict or Series {node id: label}, or path
        -1, None and NaN mean unlabelled. Of a DataFrame the columns node and label are used, or
        else the first two. A file is read as by ``ohmlearn label``.
    sample_weight : dict or Series {node id: weight}, optional
        How much each label counts; by default, what the file of labels says.
    epsilon, max_edges, passes, gamma, normalization, method, class_prior, calibration, \
half_life, horizon, random_state
        See `HFSClassifier`.
    at, since : number or date, optional
        See `HFSClassifier.fit_edges`.
    certify : bool
        Whether to measure the sparsifier, in up to 20 more passes.
    n_jobs : int, optional
        Number of threads of this process, which solves the systems with the sparsifier.
    **options
        `split_every`, `progress` and how to read, such as `source_col`: see `SparkEdges`.

    Returns
    -------
    LabelledFrame
        Its attribute `frame` is a DataFrame with the columns node, label, probability and reached.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from ohmlearn.spark import label
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.createDataFrame(
    ...     [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")], "src string, dst string"
    ... )
    >>> found = label(df, {"a": "left", "e": "right"}, calibration=None, random_state=0)
    >>> found.frame.where("node = 'b'").first()["label"]
    'left'
    """
    found = label_partitions(
        _in_spark(edges, options),
        take_labels(labels),
        sample_weight=sample_weight,
        at=at,
        since=since,
        certify=certify,
        gamma=gamma,
        epsilon=epsilon,
        max_edges=max_edges,
        passes=passes,
        normalization=normalization,
        method=method,
        class_prior=class_prior,
        calibration=calibration,
        half_life=half_life,
        horizon=horizon,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return LabelledFrame(**found)


def _in_spark(edges: object, options: dict[str, Any]) -> SparkEdges:
    if not isinstance(edges, SparkEdges):
        return SparkEdges(edges, **options)
    if options:
        raise TypeError(f"the edges are a SparkEdges already; give it {', '.join(options)}")
    return edges
