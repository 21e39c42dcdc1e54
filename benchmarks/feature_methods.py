"""The methods that label nodes by a graph and features, each with its documented settings.

A method first converts the graph and the features into the form it takes. Then it labels all nodes,
once for each set of labels. Graph neural networks get no validation nodes, because the other
methods have only the labels: they train for all their epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.machine import version

Labels = np.ndarray
HIDDEN, DROPOUT, EPOCHS, RATE, DECAY = 64, 0.5, 200, 0.01, 5e-4


@dataclass
class NodeData:
    """A graph and one row of features per node, as a sparse or dense matrix."""

    graph: Any
    X: Any
    n_classes: int


@dataclass(frozen=True)
class Method:
    """A package, its conversion of the data, and its labelling; -1 in ``y`` means unlabelled."""

    package: str
    prepare: Callable[[NodeData], Any]
    label: Callable[[Any, Labels, int], Labels]


def as_is(data: NodeData) -> NodeData:
    """Return the data themselves."""
    return data


def hfs(data: NodeData, y: Labels, seed: int) -> Labels:
    """Label by the graph alone, from all edges."""
    from ohmlearn import HFSClassifier

    model = HFSClassifier(epsilon=None, random_state=seed)
    return np.asarray(model.fit_edges(data.graph, y).transduction_)


def linear_model(X: Any, sparse: bool) -> Any:
    """Return the logistic regression that all methods share.

    Sparse features are words: their rows are scaled to length 1. Dense ones are standardised.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    scale, strength = (Normalizer(), 10.0) if sparse else (StandardScaler(), 1.0)
    return make_pipeline(scale, LogisticRegression(C=strength, max_iter=1000))


def logistic(data: NodeData, y: Labels, seed: int) -> Labels:
    """Label by the features alone: logistic regression."""
    known = y >= 0
    model = linear_model(data.X, sp.issparse(data.X)).fit(data.X[known], y[known])
    return np.asarray(model.predict(data.X))


def boosting(data: NodeData, y: Labels, seed: int) -> Labels:
    """Label by the features alone: gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    known = y >= 0
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    model = HistGradientBoostingClassifier(random_state=seed).fit(X[known], y[known])
    return np.asarray(model.predict(X))


def ours(data: NodeData, y: Labels, seed: int) -> Labels:
    """Label by `GraphFeatureClassifier` with its defaults."""
    from ohmlearn import GraphFeatureClassifier

    model = GraphFeatureClassifier(graph=data.graph, random_state=seed)
    return np.asarray(model.fit(data.X, y).transduction_)


def scaled_rows(data: NodeData) -> Any:
    """Return the input of graph neural networks.

    Words are divided by their number in a row, as in the benchmarks of PyTorch Geometric; other
    features are standardised.
    """
    if sp.issparse(data.X):
        sums = np.asarray(abs(data.X).sum(axis=1)).ravel()
        return sp.csr_array(data.X.multiply(1.0 / np.maximum(sums, 1e-12)[:, None]))
    return (data.X - data.X.mean(axis=0)) / np.maximum(data.X.std(axis=0), 1e-12)


def to_network(data: NodeData) -> NodeData:
    """Convert to the old scipy matrices that scikit-network requires."""
    X = scaled_rows(data)
    X = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=float)
    return NodeData(sp.csr_matrix(data.graph.to_scipy()), X, data.n_classes)


def network_gnn(data: NodeData, y: Labels, seed: int) -> Labels:
    """Train scikit-network's graph convolutional network; it has no dropout."""
    from sknetwork.gnn import GNNClassifier

    model = GNNClassifier(dims=[HIDDEN, data.n_classes], early_stopping=False)
    found = model.fit_predict(data.graph, data.X, y, n_epochs=EPOCHS, random_state=seed)
    return np.asarray(found)


def _torch(name: str) -> Callable[[Any, Labels, int], Labels]:
    """Return a method of `benchmarks.feature_torch`, which imports torch only when it runs."""

    def label(data: Any, y: Labels, seed: int) -> Labels:
        from benchmarks import feature_torch

        return np.asarray(getattr(feature_torch, name)(data, y, seed))

    return label


def to_tensors(data: NodeData) -> Any:
    """Convert to tensors."""
    from benchmarks import feature_torch

    return feature_torch.to_tensors(data)


METHODS: dict[str, Method] = {
    "HFSClassifier": Method("ohmlearn", as_is, hfs),
    "logistic regression": Method("scikit-learn", as_is, logistic),
    "gradient boosting": Method("scikit-learn", as_is, boosting),
    "GraphFeatureClassifier": Method("ohmlearn", as_is, ours),
    "C&S, linear": Method("torch-geometric", to_tensors, _torch("correct_linear")),
    "C&S, MLP": Method("torch-geometric", to_tensors, _torch("correct_mlp")),
    "scikit-network GNN": Method("scikit-network", to_network, network_gnn),
    "APPNP": Method("torch-geometric", to_tensors, _torch("appnp")),
    "GCN": Method("torch-geometric", to_tensors, _torch("gcn")),
}


def is_there(name: str) -> bool:
    """Return whether the package of a method is installed.

    Examples
    --------
    >>> is_there("logistic regression")
    True
    """
    return version(METHODS[name].package) is not None


def warm_up(name: str) -> None:
    """Run a method once, so that the time and memory of its imports are not measured.

    Examples
    --------
    >>> warm_up("HFSClassifier")
    """
    from ohmlearn import Graph

    ends = np.arange(60)
    ring = Graph.from_edges(ends, (ends + 1) % 60)
    y = np.full(60, -1)
    y[[0, 1, 30, 31]] = 0, 0, 1, 1
    data = NodeData(ring, np.random.default_rng(0).random((60, 5)), 2)
    METHODS[name].label(METHODS[name].prepare(data), y, 0)
