"""Measure the figures behind the advice of docs/defaults.md and docs/choosing.md.

``python -m benchmarks.advice`` prints one JSON line per figure: the error after several passes, and
the accuracy for different gammas, for different weights of a kNN graph, with wrong labels, and with
labels drawn at random, which gives classes unequal numbers of labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.graphs import DATA
from benchmarks.label_cost import POINTS, blob_data, paper_data
from benchmarks.label_sets import LabelledGraph, load_all, read_points
from benchmarks.labels import label_draws
from benchmarks.measure import Figure, emit
from ohmlearn import Graph, HFSClassifier, knn_edges

PASSES = (1, 2, 3, 4, 6, 10)
EXACT = 40  # passes
PLAIN: dict[str, Any] = {"method": "harmonic", "calibration": None}  # stable-HFS as in the paper
HARMONIC: dict[str, Any] = {**PLAIN, "epsilon": None}
STIFFNESS = (0.01, 0.1, 1, 10, 100, 1000, 100_000)  # gamma times labels times mean degree
WRONG = (0.0, 0.1, 0.2, 0.3, 0.4)  # shares of the labels
FACTORS = (1, 10, 100)  # of the automatic gamma
POWERS = {"nothing": 0.0, "root": 0.5, "number": 1.0}
UNEQUAL = ("satimage", "shuttle", "magic_gamma", "ssl_text", "cora", "email_eu_core")
WEIGHTED = ("digits", "fashion_mnist_test", "letter", "satimage", "ssl_digit1", "ssl_coil",
            "ssl_text", "isolet_1560")  # fmt: skip


def after_passes(n: int) -> Iterator[Figure]:
    """Compare scores on the paper's graph after several passes with the exact scores."""
    X, truth, y = paper_data(n)

    def fit(passes: int) -> HFSClassifier:
        return HFSClassifier(
            weights="uniform", n_neighbors=4500 * n // POINTS, passes=passes, gamma=1.0, tol=1e-10,
            random_state=0, **PLAIN,
        ).fit(X, y)  # fmt: skip

    exact = fit(EXACT).scores_
    for passes in PASSES:
        model = fit(passes)
        error = np.linalg.norm(model.scores_ - exact) / np.linalg.norm(exact)
        right = float(np.mean(model.transduction_ == truth))
        yield {"case": "passes", "points": n, "passes": passes, "error": error, "right": right}


def alike_after_passes(n: int) -> Iterator[Figure]:
    """Accuracy after several passes, for five clusters in a complete graph with a wide kernel."""
    X, truth, y = blob_data(n, 10)
    for passes in PASSES:
        model = HFSClassifier(affinity="rbf", passes=passes, random_state=0, **PLAIN).fit(X, y)
        right = float(np.mean(model.transduction_ == truth))
        yield {"case": "RBF passes", "points": n, "passes": passes, "right": right}


def accuracy(graph: Graph, truth: np.ndarray, chosen: np.ndarray, **parameters: object) -> float:
    """Share of the unlabelled nodes that exact stable-HFS labels correctly."""
    y = np.full(len(truth), -1)
    y[chosen] = truth[chosen]
    model = HFSClassifier(**HARMONIC, random_state=0, **parameters).fit_edges(graph, y)
    return float(np.mean((model.transduction_ == truth)[(truth >= 0) & (y < 0)]))


def by_gamma(data: LabelledGraph, draws: int) -> Iterator[Figure]:
    """Accuracy for each value of gamma times labels times mean degree."""
    degree = 2 * float(data.graph.edges()[2].sum()) / data.graph.n_nodes
    for per_class, chosen in label_draws(data.y, {}, draws, [1, 2, 5, 10]):
        means = {
            f"{stiffness:g}": _mean(
                [accuracy(data.graph, data.y, c, gamma=stiffness / (len(c) * degree))
                 for c in chosen]
            )
            for stiffness in STIFFNESS
        }  # fmt: skip
        yield {"case": "gamma", "set": data.name, "labels": per_class, "draws": draws, **means}


def by_weights(folder: Path, name: str, limit: int, draws: int) -> Iterator[Figure]:
    """Accuracy with ten neighbours, for each kind of weights."""
    X, truth = read_points(folder, name, limit)[:2]
    graphs = {
        weights: Graph.from_batches(knn_edges(X, n_neighbors=10, weights=weights))
        for weights in ("gaussian", "uniform")
    }
    for per_class, chosen in label_draws(truth, {}, draws, [1, 10]):
        means = {w: _mean([accuracy(g, truth, c) for c in chosen]) for w, g in graphs.items()}
        yield {"case": "weights", "set": name, "labels": per_class, "draws": draws, **means}


def wrong_labels(draws: int) -> Iterator[Figure]:
    """Accuracy on digits with ten labels per class, some wrong, for each factor of gamma."""
    X, truth = load_digits(return_X_y=True)
    graph = HFSClassifier(epsilon=None, n_neighbors=10).fit(X, truth).graph_
    for share in WRONG:
        found: dict[int, list[float]] = {factor: [] for factor in FACTORS}
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            chosen = np.concatenate(
                [rng.choice(np.flatnonzero(truth == c), 10, replace=False) for c in range(10)]
            )
            given = truth[chosen].copy()
            wrong = rng.choice(100, round(100 * share), replace=False)
            given[wrong] = (given[wrong] + rng.integers(1, 10, len(wrong))) % 10
            labels = dict(zip(chosen.tolist(), given.tolist(), strict=True))
            gamma = HFSClassifier(**HARMONIC).fit_edges(graph, labels).gamma_
            for factor in FACTORS:
                model = HFSClassifier(**HARMONIC, gamma=factor * gamma).fit_edges(graph, labels)
                rest = np.setdiff1d(np.arange(len(truth)), chosen)
                found[factor].append(float(np.mean(model.transduction_[rest] == truth[rest])))
        means = {f"gamma times {factor}": _mean(found[factor]) for factor in FACTORS}
        yield {"case": "wrong labels", "share": share, "draws": draws, **means}


def unequal_digits(draws: int) -> Figure:
    """Accuracy on digits with one label per class and twenty random ones, with and without CMN."""
    X, truth = load_digits(return_X_y=True)
    ways = {
        "stable": HFSClassifier(**HARMONIC, random_state=0),
        "cmn, uniform": HFSClassifier(
            **HARMONIC, normalization="cmn", class_prior=np.full(10, 0.1), random_state=0
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        first = [rng.choice(np.flatnonzero(truth == c)) for c in range(10)]
        others = np.setdiff1d(np.arange(len(truth)), first)
        chosen = np.concatenate([first, rng.choice(others, 20, replace=False)])
        y = np.full(len(truth), -1)
        y[chosen] = truth[chosen]
        for name, model in ways.items():
            found[name].append(float(np.mean((model.fit(X, y).transduction_ == truth)[y < 0])))
    means = {name: _mean(values) for name, values in found.items()}
    return {"case": "unequal digits", "labels": 30, "draws": draws, **means}


def unequal(data: LabelledGraph, n_labels: int, draws: int) -> Figure:
    """Accuracy, and its mean over classes, for each divisor of the scores of a class."""
    known = np.flatnonzero(data.y >= 0)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in POWERS}
    for draw in range(draws):
        chosen = np.random.default_rng(draw).choice(known, n_labels, replace=False)
        labels = {int(node): int(data.y[node]) for node in chosen}
        model = HFSClassifier(**HARMONIC, random_state=0).fit_edges(data.graph, labels)
        counts = np.bincount(np.searchsorted(model.classes_, data.y[chosen]))
        rest = np.setdiff1d(known, chosen)
        truth = data.y[rest]
        for name, power in POWERS.items():
            right = model.classes_[np.argmax(model.scores_[rest] / counts**power, axis=1)] == truth
            per_class = [right[truth == label].mean() for label in np.unique(truth)]
            found[name].append((float(right.mean()), float(np.mean(per_class))))
    means = {name: np.mean(values, axis=0).round(4).tolist() for name, values in found.items()}
    return {"case": "unequal", "set": data.name, "labels": n_labels, "draws": draws, **means}


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4)


def studies(options: argparse.Namespace) -> Iterator[Figure]:
    """Yield all figures."""
    yield from after_passes(options.points)
    yield from alike_after_passes(10_000 * options.points // POINTS)
    yield from wrong_labels(options.draws)
    yield unequal_digits(options.draws)
    for name in WEIGHTED:
        if name == "digits" or options.data.is_dir():
            yield from by_weights(options.data, name, options.limit, options.draws)
        else:
            yield {"case": "weights", "set": name, "status": "no data"}
    for data in load_all(options.data, [10], options.limit, options.sets):
        if isinstance(data, str):
            yield {"case": "gamma", "set": data, "status": "no data"}
            continue
        yield from by_gamma(data, min(3, options.draws))
        if data.name.split()[0] in UNEQUAL:
            for per_class in (3, 10):
                yield unequal(data, per_class * (int(data.y.max()) + 1), options.draws)


def main() -> None:
    """Run all studies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--limit", type=int, default=2000, help="largest number of points per set")
    parser.add_argument("--points", type=int, default=POINTS, help="of the paper's experiment")
    parser.add_argument("--sets", nargs="+", help="only sets whose name starts with one of these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # classes and components without a label are intended
    for figure in studies(options):
        emit({"bench": "advice", **figure})


if __name__ == "__main__":
    main()
