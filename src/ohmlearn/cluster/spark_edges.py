"""Edges in the partitions of a Spark DataFrame: sparsified and multiplied where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ohmlearn.checks.edge_arrays import is_from
from ohmlearn.checks.parameters import check_count
from ohmlearn.cluster.partition_work import Work
from ohmlearn.cluster.partitioned_edges import PARTITION_EDGES, PartitionedEdges, Progress
from ohmlearn.cluster.partitions import Partition, divide_files, number_partitions
from ohmlearn.cluster.spark_frames import choose_edges, count_partitions, warn_of_order
from ohmlearn.cluster.spark_jobs import explained, hold, run_job
from ohmlearn.reading.read_options import ReadOptions

__all__ = ["SparkEdges"]


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
        Number of sparsifiers that one task merges.
    partition_edges : int
        Approximate number of edges in a partition of files. A DataFrame has its own partitions.
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

    def __init__(
        self,
        edges: object,
        *,
        spark: Any = None,
        split_every: int = 4,
        partition_edges: int = PARTITION_EDGES,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        check_count("partition_edges", partition_edges)
        self.integer_type = "bigint"  # of ids in the answers
        self.frame: Any = None
        is_frame = is_from("pyspark", edges)
        if is_frame:
            frame: Any = edges
            spark = frame.sparkSession

        def find(how: ReadOptions) -> tuple[list[Partition], str | None]:
            if not is_frame:
                wanted = "a Spark DataFrame, or paths of files"
                return divide_files(edges, partition_edges, how, wanted)
            self.frame, columns, self.integer_type = choose_edges(edges, how)
            warn_of_order(self.frame)
            with explained("counting partitions"):
                count = count_partitions(self.frame)
            if count == 0:  # Spark would run no task
                self.frame = None
                return number_partitions([[]]), columns
            return number_partitions([None] * count), columns

        super().__init__(find, split_every, progress, options)
        self.spark = _find_session() if spark is None else spark

    def _run(self, work: Work, shared: Sequence[Any] = ()) -> Any:
        places, frame = None, self.frame
        if frame is None:
            places = [(part.name, part.content) for part in self.partitions]
            frame = self.spark.range(0, self.n_partitions, 1, self.n_partitions)
        how = (self.n_partitions, self.split_every, places, shared, self.progress)
        return run_job(self.spark, frame, work, *how)

    def _hold(self, value: Any) -> Any:
        return hold(value, self.spark)

    def _let_go(self, held: Any) -> None:
        if hasattr(held, "destroy"):
            held.destroy()


def _find_session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
