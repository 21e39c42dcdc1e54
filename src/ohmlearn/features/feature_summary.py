"""What features and graph contribute to labels, for summaries and pages."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["WORDS", "FeatureAnswer", "describe_weights", "measure_features"]

Floats = NDArray[np.float64]
WORDS = {
    "features": "the features of a node alone",
    "both": "features smoothed along the edges",
    "graph": "the edges and labels alone",
}


class FeatureAnswer:
    """The answer of a fitted GraphFeatureClassifier, with the names of `ClassAnswer`."""

    has_features = True
    wanted_shares = None

    def __init__(self, model: Any) -> None:
        self.model, used = model, model._used
        self.problem = SimpleNamespace(
            labels=model._labels, used=used, classes=model.classes_, full_graph=model.graph_
        )
        self.reached, self.probabilities = model.reached_, model.label_distributions_
        self.counts = self.class_prior = used.values.sum(axis=0)
        self.answered = model.answered_.copy()
        self._codes: NDArray[np.intp] = np.searchsorted(model.classes_, model.transduction_)
        # Nodes of which nothing else is known keep a given label.
        labels = model._labels
        alone = np.flatnonzero(~self.answered[labels.nodes])
        self._codes[labels.nodes[alone]] = labels.values[alone].argmax(axis=1)
        self.answered[labels.nodes] = True

    def codes(self, default: int) -> NDArray[np.intp]:
        """Return the most likely class of every node."""
        return self._codes

    def accuracy(self) -> Any:
        """Return the estimated accuracy."""
        return self.model.accuracy_estimate_

    def left_out_labels(self) -> tuple[Floats, Floats, Floats]:
        """Return probabilities of labels that were left out in folds, see `report_reliability`."""
        answers, given = self.model._left_out()
        p = self.model._calibrate(answers)
        right = given.values[np.arange(len(p)), np.argmax(p, axis=1)]
        return p.max(axis=1), right, given.weights / given.weights.mean()


def measure_features(model: Any) -> dict[str, Any]:
    """Return what features and graph contribute, of a fitted GraphFeatureClassifier.

    Examples
    --------
    >>> from ohmlearn import GraphFeatureClassifier, NodeFeatures, gallery
    >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 2)}
    >>> features = NodeFeatures([[float(node)] for node in range(40)], ids=range(40))
    >>> model = GraphFeatureClassifier(random_state=0).fit_edges(gallery.path(40), features, labels)
    >>> figures = measure_features(model)
    >>> figures["n_columns"], figures["n_nodes_without"], figures["n_ids_without_edges"]
    (1, 0, 0)
    """
    use, matched, table = model.graph_use_, model._matched, model._table
    alone = np.diff(model.graph_.indptr) == 0
    return {
        "path": table.source,
        "n_rows": table.X.shape[0],
        "n_columns": table.X.shape[1],
        "columns": table.treatment,
        "n_nodes_without": matched.n_missing,
        "n_ids_without_edges": int(np.count_nonzero(alone & ~model._missing)),
        "weights": {name: float(weight) for name, weight in model.weights_.items()},
        "gamma": float(model.gamma),
        "graph_helps": use.helps,
        "loss_with_graph": _known(use.loss_with),
        "loss_without_graph": _known(use.loss_without),
        "homophily": {name: _known(value) for name, value in use.homophily._asdict().items()},
        "verdict": str(use),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def describe_weights(weights: dict[str, float]) -> str:
    """Return in words how much features and graph count.

    Examples
    --------
    >>> describe_weights({"features": 0.05, "both": 0.6, "graph": 0.35})
    '5% the features of a node alone, 60% features smoothed along the edges, 35% the edges and
    labels alone'
    """
    return ", ".join(f"{100 * weights[name]:.0f}% {what}" for name, what in WORDS.items())
