"""Labels of edges in partitions, whichever engine works on them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._display import Shown
from ohmlearn.certificate import Certificate
from ohmlearn.certificate import certify as certify_edges
from ohmlearn.cluster.partitioned_edges import PartitionedEdges
from ohmlearn.estimators import HFSClassifier
from ohmlearn.reading.label_table import read_labels

__all__ = ["Labelled", "label_partitions"]


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


def label_partitions(
    source: PartitionedEdges,
    y: Any,
    *,
    sample_weight: Any,
    at: Any,
    since: Any,
    certify: bool,
    **parameters: Any,
) -> dict[str, Any]:
    """Fit an `HFSClassifier` with these parameters and return the fields of `Labelled`.

    A path `y` is read as a file of labels.
    """
    if isinstance(y, str | os.PathLike):
        y = read_labels(os.fspath(y))
        sample_weight = y.weights if sample_weight is None else sample_weight
    model = HFSClassifier(**parameters).fit_edges(
        source, y, sample_weight=sample_weight, at=at, since=since
    )
    certificate = None
    if certify:
        how = {"random_state": model.random_state, "n_jobs": model.n_jobs}
        certificate = certify_edges(source, model.graph_, eta=0.2, max_passes=20, **how)
    return {
        "ids": source.nodes.ids(),
        "labels": model.transduction_,
        "probabilities": model.label_distributions_,
        "reached": model.reached_,
        "model": model,
        "certificate": certificate,
        "edges": source,
    }
