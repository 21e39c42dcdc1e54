"""The two functions that most people need: a sparsifier, or labels, of edges on a cluster."""

from __future__ import annotations

from typing import Any, Literal

from ohmlearn.cluster.dask_edges import ClusterEdges
from ohmlearn.cluster.labelled_nodes import Labelled, label_partitions
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
    """Sparsify edges on a cluster: each partition on a worker, then merge the sparsifiers.

    The same seed gives the same sparsifier for any number of workers, in whatever order tasks
    finish and even if workers die. It depends on the partitions and on `split_every`.

    Parameters
    ----------
    edges : ClusterEdges, or whatever it accepts
        If you also need the edges for `certify`, make a `ClusterEdges` first and pass it here.
    epsilon, max_edges, constants, half_life, horizon, random_state
        See `StreamingSparsifier`.
    **options
        `client`, `split_every`, `partition_edges`, `progress` and how to read: see `ClusterEdges`.

    Returns
    -------
    Graph
        The sparsifier; its attribute `nodes` holds the ids of the nodes.

    Raises
    ------
    PartitionError
        If a partition cannot be read; the message names it.
    WorkerError
        If workers died repeatedly at a partition; the message names it.

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
    """
    source = _on_cluster(edges, options)
    found = source.sparsify(
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
    y: Any,
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
) -> Labelled:
    """Label every node of edges on a cluster from a few labelled ones.

    The first pass sparsifies; the others bring the answer close to that of the full graph. The
    edges stay where they are. In a pass, each worker gets a block with one column for each class
    and returns its product with the edges of its partitions.

    Parameters
    ----------
    edges : ClusterEdges, or whatever it accepts
    y : dict or Series {node id: label}, or path
        -1, None and NaN mean unlabelled. A file is read as by ``ohmlearn label``.
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
        `client`, `split_every`, `partition_edges`, `progress` and how to read: see `ClusterEdges`.

    Returns
    -------
    Labelled

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import label
    >>> parts = [dask.delayed((["a", "b"], ["b", "c"])), dask.delayed((["c", "d"], ["d", "e"]))]
    >>> found = label(parts, {"a": "left", "e": "right"}, calibration=None, random_state=0)
    >>> dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True))["b"]
    'left'
    """
    found = label_partitions(
        _on_cluster(edges, options),
        y,
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
    return Labelled(**found)


def _on_cluster(edges: object, options: dict[str, Any]) -> ClusterEdges:
    if not isinstance(edges, ClusterEdges):
        return ClusterEdges(edges, **options)
    if options:
        raise TypeError(f"the edges are a ClusterEdges already; give it {', '.join(options)}")
    return edges
