"""`sparsify` and `label` for edges on a cluster, once for every engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ohmlearn._defaults import EPSILON, LABEL_EPSILON
from ohmlearn._display import Shown
from ohmlearn.certificate import Certificate
from ohmlearn.certificate import certify as certify_edges
from ohmlearn.cluster.partitioned_edges import PartitionedEdges
from ohmlearn.estimators import HFSClassifier
from ohmlearn.graph import Graph
from ohmlearn.reading.label_table import read_labels


@dataclass(frozen=True, repr=False)
class Labelled(Shown):
    """What `label` returns, with one row for each node.

    Attributes
    ----------
    ids : ndarray
        Ids of the nodes.
    labels : ndarray
    probabilities : ndarray of shape (n_nodes, n_classes)
    reached : ndarray of bool
        Whether a node is connected to any label. If not, its label is a guess.
    model : HFSClassifier
        The fitted classifier; its nodes are numbered.
    certificate : Certificate or None
    edges : ClusterEdges or SparkEdges

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import label
    >>> edges = [dask.delayed((["a"], ["b"]))]
    >>> found = label(edges, {"a": "x", "b": "y"}, calibration=None, random_state=0)
    >>> found.ids.tolist(), found.labels.tolist(), found.reached.tolist()
    (['a', 'b'], ['x', 'y'], [True, True])
    """

    ids: NDArray[Any]
    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    reached: NDArray[np.bool_]
    model: HFSClassifier
    certificate: Certificate | None
    edges: PartitionedEdges

    def _facts(self) -> dict[str, Any]:
        return {
            "nodes": len(self.ids),
            "classes": self.probabilities.shape[1],
            "nodes not reached": int(np.count_nonzero(~self.reached)) or None,
            "certificate": self.certificate,
        }


Answer = TypeVar("Answer", bound=Labelled)


class ClusterCalls(Generic[Answer]):
    """The functions of one engine: `ohmlearn.dask` and `ohmlearn.spark` export its methods."""

    def __init__(self, engine: type[PartitionedEdges], answer: type[Answer]) -> None:
        self._engine, self._answer = engine, answer

    def sparsify(
        self,
        edges: object,
        *,
        epsilon: float = EPSILON,
        max_edges: int | None = None,
        constants: Literal["practical", "theory"] = "practical",
        half_life: object = None,
        horizon: object = None,
        random_state: object = None,
        **options: object,
    ) -> Graph:
        """Sparsify edges on a cluster: each partition on a worker, then merge the sparsifiers.

        The same seed gives the same sparsifier for any number of workers, in whatever order tasks
        finish and even if workers die. It depends on the partitions and on `split_every`. A Spark
        DataFrame must have the same partitions with rows in the same order; see `SparkEdges`.

        Parameters
        ----------
        edges : ClusterEdges or SparkEdges, or whatever these accept
            If you also need the edges for `certify`, make `ClusterEdges` or `SparkEdges` first and
            pass them here.
        epsilon, max_edges, constants, half_life, horizon, random_state
            See `StreamingSparsifier`.
        **options
            `client`, `split_every`, `partition_edges`, `progress` and how to read, such as
            `source_col`: see `ClusterEdges` and `SparkEdges`.

        Returns
        -------
        Graph
            The sparsifier; its attribute `nodes` holds the ids of the nodes.

        Raises
        ------
        PartitionError
            If a partition cannot be read; the message names it.
        WorkerError
            If workers died repeatedly at a partition or a task; the message names it.

        Examples
        --------
        >>> import dask
        >>> import numpy as np
        >>> from ohmlearn import certify
        >>> from ohmlearn.dask import ClusterEdges, sparsify
        >>> u, v = np.triu_indices(500, 1)
        >>> edges = ClusterEdges([dask.delayed((u[i::4], v[i::4])) for i in range(4)])
        >>> h = sparsify(edges, epsilon=0.9, random_state=0)
        >>> h.n_edges < 15_000
        True
        >>> certify(edges, h, random_state=0).epsilon < 0.9
        True

        In Spark, ``sparsify(spark.read.parquet("events"), epsilon=0.9)`` does the same.
        """
        found = self._on_cluster(edges, options).sparsify(
            epsilon=epsilon, max_edges=max_edges, constants=constants, half_life=half_life,
            horizon=horizon, random_state=random_state,
        )  # fmt: skip
        return found.snapshot()

    def label(
        self,
        edges: object,
        y: Any,
        *,
        sample_weight: Any = None,
        epsilon: float = LABEL_EPSILON,
        max_edges: int | None = None,
        passes: int = 3,
        gamma: float | Literal["auto"] = "auto",
        normalization: Literal["stable", "cmn"] | None = "stable",
        method: Literal["auto", "harmonic", "restart"] = "auto",
        class_prior: Any = None,
        prior_strength: Literal["exact", "rough"] = "exact",
        calibration: Literal["loo"] | None = "loo",
        half_life: object = None,
        horizon: object = None,
        at: object = None,
        since: object = None,
        certify: bool = False,
        random_state: object = None,
        n_jobs: int | None = None,
        **options: object,
    ) -> Answer:
        """Label every node of edges on a cluster from a few labelled ones.

        The first pass sparsifies; the others bring the answer close to that of the full graph. The
        edges stay where they are. In a pass, each worker gets a block with one column for each
        class and returns its product with the edges of its partitions.

        Parameters
        ----------
        edges : ClusterEdges or SparkEdges, or whatever these accept
        y : dict or Series {node id: label}, path, or Spark DataFrame
            -1, None and NaN mean unlabelled. A file is read as by ``ohmlearn label``. Of a
            DataFrame the columns node and label are used, or else the first two.
        sample_weight : dict or Series {node id: weight}, optional
            How much each label counts; by default, what the file of labels says.
        epsilon, max_edges, passes, gamma, normalization, method, class_prior, prior_strength, \
calibration, half_life, horizon, random_state
            See `HFSClassifier`.
        at, since : number or date, optional
            See `HFSClassifier.fit_edges`.
        certify : bool
            Whether to measure the sparsifier, in up to 20 more passes.
        n_jobs : int, optional
            Number of threads of this process, which solves the systems with the sparsifier.
        **options
            `client`, `split_every`, `partition_edges`, `progress` and how to read, such as
            `source_col`: see `ClusterEdges` and `SparkEdges`.

        Returns
        -------
        Labelled
            In Spark a LabelledFrame, whose attribute `frame` is a DataFrame with the columns node,
            label, probability and reached.

        Examples
        --------
        >>> import dask
        >>> from ohmlearn.dask import label
        >>> parts = [dask.delayed((["a", "b"], ["b", "c"])), dask.delayed((["c", "d"], ["d", "e"]))]
        >>> found = label(parts, {"a": "left", "e": "right"}, calibration=None, random_state=0)
        >>> dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True))["b"]
        'left'

        In Spark, ``label(spark.read.parquet("events"), {"a": "left", "e": "right"}).frame`` is a
        DataFrame of the same answers.
        """
        source = self._on_cluster(edges, options)
        y = source._collect_labels(y)
        if isinstance(y, str | os.PathLike):
            y = read_labels(os.fspath(y))
            sample_weight = y.weights if sample_weight is None else sample_weight
        model = HFSClassifier(
            gamma=gamma, epsilon=epsilon, max_edges=max_edges, passes=passes,
            normalization=normalization, method=method, class_prior=class_prior,
            prior_strength=prior_strength, calibration=calibration, half_life=half_life,
            horizon=horizon, random_state=random_state, n_jobs=n_jobs,
        ).fit_edges(source, y, sample_weight=sample_weight, at=at, since=since)  # fmt: skip
        certificate = None
        if certify:
            how: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
            certificate = certify_edges(source, model.graph_, eta=0.2, max_passes=20, **how)
        answers = model.transduction_, model.label_distributions_, model.reached_
        return self._answer(source.nodes.ids(), *answers, model, certificate, source)

    def _on_cluster(self, edges: object, options: dict[str, Any]) -> PartitionedEdges:
        if not isinstance(edges, self._engine):
            return self._engine(edges, **options)
        if options:
            name = self._engine.__name__
            raise TypeError(f"the edges are a {name} already; give it {', '.join(options)}")
        return edges
