"""The two functions most people need: from edges on a cluster to a sparsifier, and to labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from ohmlearn.certificate import Certificate
from ohmlearn.certificate import certify as certify_edges
from ohmlearn.dask.edges import PARTITION_EDGES, ClusterEdges
from ohmlearn.dask.tree import Progress
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.semi_supervised import SparseHFSClassifier
from ohmlearn.semi_supervised.targets import is_unlabelled
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.streams.labels import find_labelled, read_labels
from ohmlearn.validation.parameters import check_count, check_seed

__all__ = ["Labelled", "Sparsified", "label", "sparsify"]


@dataclass(frozen=True)
class Sparsified:
    """What `sparsify` returns.

    Attributes
    ----------
    sparsifier : StreamingSparsifier
    nodes : NodeTable
        The ids; node i of the sparsifier is the i-th of them.
    edges : ClusterEdges
        The edges, for `certify` and `refine`.

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import sparsify
    >>> found = sparsify([dask.delayed((["a"], ["b"])), dask.delayed((["b"], ["c"]))])
    >>> found.nodes.ids().tolist(), found.snapshot()
    (['a', 'b', 'c'], Graph(n_nodes=3, n_edges=2))
    """

    sparsifier: StreamingSparsifier
    nodes: NodeTable
    edges: ClusterEdges

    def snapshot(self) -> Graph:
        """Return the sparsifier as a graph."""
        return self.sparsifier.snapshot()


def sparsify(
    edges: Any,
    client: Client | None = None,
    epsilon: float = 0.5,
    max_edges: int | None = None,
    split_every: int = 8,
    random_state: Any = None,
    *,
    constants: Literal["practical", "theory"] = "practical",
    partition_edges: int = PARTITION_EDGES,
    progress: Progress | None = None,
    **options: Any,
) -> Sparsified:
    """Sparsify edges where they are: each partition on a worker, then sparsifiers merged in a tree.

    The same seed gives the same sparsifier for any number of workers, whatever the order in which
    tasks finish and whether workers die meanwhile. It depends on the partitions and `split_every`.

    Parameters
    ----------
    edges, client, split_every, partition_edges, progress, **options
        See `ClusterEdges`.
    epsilon, max_edges, constants, random_state
        See `StreamingSparsifier`.

    Returns
    -------
    Sparsified

    Raises
    ------
    PartitionError
        A partition that cannot be read, by name.
    WorkerError
        The partition at which workers died again and again.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from ohmlearn import certify
    >>> from ohmlearn.dask import sparsify
    >>> u, v = np.triu_indices(500, 1)
    >>> parts = [dask.delayed((u[i::4], v[i::4])) for i in range(4)]
    >>> found = sparsify(parts, epsilon=0.9, random_state=0)
    >>> found.sparsifier.n_edges_seen_
    124750
    >>> found.snapshot().n_edges < 15_000
    True
    >>> certify(found, found.edges, random_state=0).epsilon < 0.9
    True
    """
    source = ClusterEdges(edges, client, split_every, partition_edges, progress, **options)
    found = source.sparsify(epsilon, max_edges, constants, random_state)
    return Sparsified(found, source.nodes, source)


@dataclass(frozen=True)
class Labelled:
    """What `label` returns: a row for each node.

    Attributes
    ----------
    ids : ndarray
        Ids of the nodes.
    labels : ndarray
    probabilities : ndarray of shape (n_nodes, n_classes)
    reached : ndarray of bool
        Whether a node is connected with any label; where not, the label is a guess.
    model : SparseHFSClassifier
        Fitted, with all its attributes; nodes by number.
    certificate : Certificate or None
    edges : ClusterEdges

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import label
    >>> found = label([dask.delayed((["a"], ["b"]))], {"a": "x", "b": "y"}, random_state=0)
    >>> found.ids.tolist(), found.labels.tolist(), found.reached.tolist()
    (['a', 'b'], ['x', 'y'], [True, True])
    """

    ids: NDArray[Any]
    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    reached: NDArray[np.bool_]
    model: SparseHFSClassifier
    certificate: Certificate | None
    edges: ClusterEdges


def label(
    edges: Any,
    labels: Any,
    client: Client | None = None,
    epsilon: float = 0.8,
    max_edges: int | None = None,
    passes: int = 3,
    split_every: int = 8,
    random_state: Any = None,
    *,
    gamma: float | Literal["auto"] = "auto",
    normalization: Literal["stable", "cmn"] | None = "stable",
    certify: bool = False,
    n_jobs: int | None = None,
    partition_edges: int = PARTITION_EDGES,
    progress: Progress | None = None,
    **options: Any,
) -> Labelled:
    """Label every node of edges on a cluster from a few labelled ones.

    The first pass sparsifies; the others bring the answer of the full graph. The edges stay where
    they are: in a pass, workers get a block of columns, one for each class, and return the product.

    Parameters
    ----------
    edges, client, split_every, partition_edges, progress, **options
        See `ClusterEdges`.
    labels : dict or Series {node id: label}, or path
        -1, None and NaN mean unlabelled. A file is read as by ``ohmlearn label``.
    epsilon, max_edges, passes, gamma, normalization, random_state
        See `SparseHFSClassifier`.
    certify : bool
        Whether to measure the sparsifier, in up to 20 more passes.
    n_jobs : int, optional
        Threads of this process, for systems with the sparsifier, which are solved here.

    Returns
    -------
    Labelled

    Examples
    --------
    >>> import dask
    >>> from ohmlearn.dask import label
    >>> parts = [dask.delayed((["a", "b"], ["b", "c"])), dask.delayed((["c", "d"], ["d", "e"]))]
    >>> found = label(parts, {"a": "left", "e": "right"}, random_state=0)
    >>> dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True))["b"]
    'left'
    """
    check_count("passes", passes)
    where = "labels"
    if isinstance(labels, str | os.PathLike):
        where = os.fspath(labels)
        pairs = read_labels(where)
    else:
        pairs = [(node, value) for node, value in labels.items() if not is_unlabelled(value)]
        if not pairs:
            raise ValueError(
                f"labels has {len(labels)} entries, none of them a label (-1, None and NaN mean "
                f"unlabelled); give at least one"
            )
    seed = check_seed(random_state)
    source = ClusterEdges(edges, client, split_every, partition_edges, progress, **options)
    model = SparseHFSClassifier(
        gamma=gamma,
        epsilon=epsilon,
        max_edges=max_edges,
        normalization=normalization,
        random_state=seed % 2**32,  # scikit-learn takes no larger ones
        n_jobs=n_jobs,
    ).update([])
    model.sparsifier_ = source.sparsify(epsilon, max_edges, random_state=seed)
    model.relabel(find_labelled(where, pairs, source.nodes))
    h = model.sparsifier_.snapshot()
    if passes > 1 and h.n_edges < model.sparsifier_.n_edges_seen_:
        model.refine(source, passes - 1)
    certificate = None
    if certify:
        certificate = certify_edges(h, source, 0.2, max_passes=20, random_state=seed, n_jobs=n_jobs)
    return Labelled(
        source.nodes.ids(),
        model.transduction_,
        model.label_distributions_,
        model.reached_,
        model,
        certificate,
        source,
    )
