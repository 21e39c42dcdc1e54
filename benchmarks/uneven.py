"""Labels drawn at random, so that classes have unequal numbers: what to divide their scores by.

``python -m benchmarks.uneven`` prints one JSON line per set and number of labels: accuracy, and its
mean over classes, on the nodes without a label, with the scores of a class divided by nothing, by
the root of its number of labels (what `StableHFSClassifier` does) and by that number.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.graphs import DATA
from benchmarks.label_sets import GRAPHS, LabelledGraph, load_graph, load_points
from benchmarks.measure import Figure, emit
from ohmlearn import StableHFSClassifier

POWERS = {"nothing": 0.0, "root": 0.5, "number": 1.0}
SETS = ("satimage", "shuttle", "magic_gamma", "ssl_text", "cora", "email_eu_core")


def main() -> None:
    """Run all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--limit", type=int, default=3000, help="points of a set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # classes and components without a label are meant
    for name in SETS:
        if name in GRAPHS:
            data = load_graph(options.data, name)
        else:
            data = load_points(options.data, name, 10, options.limit)
        for per_class in (3, 10):
            emit(study(data, per_class * (int(data.y.max()) + 1), options.draws))


def study(data: LabelledGraph, n_labels: int, draws: int) -> Figure:
    """Mean figures over the draws."""
    known = np.flatnonzero(data.y >= 0)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in POWERS}
    for draw in range(draws):
        chosen = np.random.default_rng(draw).choice(known, n_labels, replace=False)
        labels = {int(node): int(data.y[node]) for node in chosen}
        model = StableHFSClassifier(random_state=0).fit_edges(data.graph, labels)
        counts = np.bincount(np.searchsorted(model.classes_, data.y[chosen]))
        rest = np.setdiff1d(known, chosen)
        truth = data.y[rest]
        for name, power in POWERS.items():
            right = model.classes_[np.argmax(model.scores_[rest] / counts**power, axis=1)] == truth
            per_class = [right[truth == label].mean() for label in np.unique(truth)]
            found[name].append((float(right.mean()), float(np.mean(per_class))))
    means = {name: np.mean(values, axis=0).round(4).tolist() for name, values in found.items()}
    return {"bench": "uneven", "set": data.name, "labels": n_labels, "draws": draws, **means}


if __name__ == "__main__":
    main()
