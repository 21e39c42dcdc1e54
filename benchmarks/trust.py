"""Measure how far probabilities, sets and estimates of accuracy can be trusted on real data.

``python -m benchmarks.trust`` prints one JSON line per set, number of labels and way to draw them:
the calibration error before and after calibration, the coverage of prediction sets, how often the
interval of `accuracy_estimate_` holds the accuracy, and the accuracy with class shares, with each
method and with the defaults of version 0.1. The other lines have the reliability over all sets, and
complete graphs whose edges are mostly dropped. Labels are as many from each class ("stratified"),
or drawn at random ("uniform").
All figures are means over draws and are measured on the unlabelled nodes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graphs import DATA
from benchmarks.label_sets import LabelledGraph, load_whole, read_points
from benchmarks.measure import Figure, emit
from ohmlearn import HFSClassifier

PER_CLASS = (5, 20)
METHODS_AT = (5, 20)  # labels of each class for which the methods are compared
DRAWS = ("stratified", "uniform")
LARGE, HUGE = 15_000, 100_000  # larger sets, by number of nodes, have two draws, or are left out
ALPHA = 0.1
FIRST: dict[str, Any] = {"method": "harmonic", "calibration": None}  # the defaults of 0.1
BINS = 15
DENSE = ("digits", "satimage")
Bins = np.ndarray  # rows: number of nodes, sum of probabilities, number of right labels


def draw_labels(y: np.ndarray, per_class: int, how: str, seed: int) -> np.ndarray:
    """Return nodes to label: so many of each class, at most half of it, or as many at random.

    Examples
    --------
    >>> y = np.repeat([0, 1, -1], [90, 10, 5])
    >>> np.bincount(y[draw_labels(y, 20, "stratified", 0)])
    array([20,  5])
    >>> len(draw_labels(y, 20, "uniform", 0))
    25
    """
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    counts = [min(per_class, len(c) // 2) for c in classes]
    if how == "uniform":
        return rng.choice(np.flatnonzero(y >= 0), sum(counts), replace=False)
    drawn = [rng.choice(c, n, replace=False) for c, n in zip(classes, counts, strict=True)]
    return np.concatenate(drawn)


def reliability(p: np.ndarray, right: np.ndarray) -> Bins:
    """Return number, sum of probabilities and number of right ones for each bin of probability."""
    at = np.minimum((p * BINS).astype(int), BINS - 1)
    return np.array([np.bincount(at, w, BINS) for w in (np.ones(len(p)), p, right)])


def calibration_error(bins: Bins) -> float:
    """Return the expected calibration error.

    Examples
    --------
    >>> p = np.full(10, 0.75)
    >>> calibration_error(reliability(p, np.arange(10) < 6)).round(2)
    np.float64(0.15)
    """
    number, confidence, right = bins
    error: float = np.abs(confidence - right).sum() / number.sum()
    return error


class Draw:
    """What the models say about the unlabelled nodes for one draw of labels."""

    def __init__(self, y: np.ndarray, chosen: np.ndarray) -> None:
        self.truth, self.chosen = y, chosen
        self.given = np.full(len(y), -1)
        self.given[chosen] = y[chosen]
        self.rest = (y >= 0) & (self.given < 0)

    def right(self, model: HFSClassifier) -> np.ndarray:
        """Return whether each unlabelled node gets its class."""
        found: np.ndarray = (model.transduction_ == self.truth)[self.rest]
        return found

    def bins(self, model: HFSClassifier) -> Bins:
        """Return the reliability of the probabilities."""
        p = model.label_distributions_[self.rest].max(axis=1)
        return reliability(p, self.right(model))

    def coverage(self, model: HFSClassifier) -> tuple[float, float]:
        """Return how often sets hold the class, and their mean size."""
        sets = model.prediction_sets(alpha=ALPHA)[self.rest]
        column = np.searchsorted(model.classes_, self.truth[self.rest])
        known = np.isin(self.truth[self.rest], model.classes_)  # others are in no set
        column[~known] = 0
        held = sets[np.arange(len(sets)), column] & known
        return float(held.mean()), float(sets.sum(axis=1).mean())

    def shares(self) -> dict[int, float]:
        """Return the shares that the classes with labels have among all nodes."""
        counts = np.bincount(self.truth[self.truth >= 0])
        return {int(c): float(counts[c]) for c in np.unique(self.truth[self.chosen])}


def trust(draw: Draw, before: HFSClassifier, model: HFSClassifier) -> tuple[Figure, Bins, Bins]:
    """Return the figures of one draw, and the reliability before and after calibration."""
    bins = draw.bins(before), draw.bins(model)
    accuracy = float(draw.right(model).mean())
    of_reached = float(draw.right(model)[model.reached_[draw.rest]].mean())
    estimate = model.accuracy_estimate_
    coverage, size = draw.coverage(model)
    figure = {
        "labels_drawn": len(draw.chosen),
        "error_before": calibration_error(bins[0]),
        "error": calibration_error(bins[1]),
        "coverage": coverage,
        "set_size": size,
        "accuracy": accuracy,
        "estimate": estimate.value,
        "held": float(estimate.low <= of_reached <= estimate.high),
        "width": estimate.high - estimate.low,
    }
    return figure, *bins


def on_graph(data: LabelledGraph, per_class: int, how: str, draws: int) -> tuple[Figure, Any]:
    """Return the figures of one set, and its reliability before and after calibration."""

    def fit(**parameters: Any) -> HFSClassifier:
        model = HFSClassifier(epsilon=None, random_state=0, **parameters)
        return model.fit_edges(data.graph, draw.given)

    figures, pooled = [], np.zeros((2, 3, BINS))
    for seed in range(draws):
        draw = Draw(data.y, draw_labels(data.y, per_class, how, seed))
        figure, *bins = trust(draw, fit(calibration=None), fit())
        pooled += bins
        shared = fit(class_prior=draw.shares())
        figure["error_true_shares"] = calibration_error(draw.bins(shared))
        figure["true_shares"] = float(draw.right(shared).mean())
        figure["labels_shares"] = float(draw.right(fit(class_prior="labels")).mean())
        old = HFSClassifier(epsilon=None, random_state=0, **FIRST)
        old.fit_edges(data.before or data.graph, draw.given)
        figure["first"] = float(draw.right(old).mean())
        figure["error_first"] = calibration_error(draw.bins(old))
        compared = per_class in METHODS_AT and how == "stratified"
        for method in ("harmonic", "restart") if compared else ():
            figure[method] = float(draw.right(fit(method=method)).mean())
        figures.append(figure)
    return mean_figure(figures), pooled / pooled[0, 0].sum()


def on_complete_graph(folder: Path, name: str, n: int, per_class: int, draws: int) -> Figure:
    """Return the figures of a complete graph of points, of whose edges few are kept."""
    X, y, _ = read_points(folder, name, n)
    figures = []
    for seed in range(draws):
        draw = Draw(y, draw_labels(y, per_class, "uniform", seed))
        before, model = (
            HFSClassifier(affinity="rbf", epsilon=0.8, calibration=way, random_state=seed)
            for way in (None, "loo")
        )
        figure, *_ = trust(draw, before.fit(X, draw.given), model.fit(X, draw.given))
        figure["kept"] = model.graph_.n_edges / (len(y) * (len(y) - 1) / 2)
        figures.append(figure)
    return mean_figure(figures)


def mean_figure(figures: list[Figure]) -> Figure:
    """Return the mean of each figure, and the number of draws."""
    means = {key: round(float(np.mean([f[key] for f in figures])), 4) for key in figures[0]}
    return {"draws": len(figures), **means}


def studies(options: argparse.Namespace) -> Iterator[Figure]:
    """Yield all figures."""
    pooled: dict[tuple[int, str], list[np.ndarray]] = {}
    for data in load_whole(options.data, options.points, options.sets):
        if isinstance(data, str):
            yield {"case": "sets", "set": data, "status": "no data"}
            continue
        print(f"{data.name}: {data.graph}", file=sys.stderr, flush=True)
        n = data.graph.n_nodes
        if n > HUGE:
            continue
        draws = min(options.draws, 2 if n > LARGE else options.draws)
        head = {"case": "sets", "set": data.name, "nodes": n, "classes": int(data.y.max()) + 1}
        for per_class in options.per_class:
            for how in DRAWS:
                figure, bins = on_graph(data, per_class, how, draws)
                pooled.setdefault((per_class, how), []).append(bins)
                yield {**head, "labels": per_class, "drawn": how, **figure}
    for (per_class, how), found in pooled.items():  # every set counts the same
        mean = np.mean(found, axis=0).round(5).tolist()
        head = {"case": "reliability", "labels": per_class, "drawn": how, "sets": len(found)}
        yield {**head, "before": mean[0], "after": mean[1]}
    for name in DENSE:
        if name != "digits" and not (options.data / f"{name}.npz").exists():
            yield {"case": "complete", "set": name, "status": "no data"}
            continue
        for per_class in options.per_class:
            figure = on_complete_graph(
                options.data, name, options.dense, per_class, min(3, options.draws)
            )
            yield {"case": "complete", "set": name, "labels": per_class, **figure}


def show(folder: Path) -> None:
    """Print the tables of the figures in a folder."""
    from benchmarks import trust_tables
    from benchmarks.results import Results

    results = Results(folder)
    for block in trust_tables.BLOCKS.values():
        print(block(results), end="\n\n")


def main() -> None:
    """Run the benchmark, or show its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the data sets")
    parser.add_argument("--points", type=int, default=5000, help="largest number of points")
    parser.add_argument("--dense", type=int, default=1500, help="points of complete graphs")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--per-class", type=int, nargs="+", default=list(PER_CLASS))
    parser.add_argument("--sets", nargs="+", help="only sets whose name starts with one of these")
    parser.add_argument("--table", type=Path, help="show the tables of this folder instead")
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    warnings.simplefilter("ignore")  # classes and components without a label are intended
    for figure in studies(options):
        emit({"bench": "trust", **figure})
    return None


if __name__ == "__main__":
    main()
