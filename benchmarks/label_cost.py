"""Memory and CPU time of labelling dense graphs whose edges are made from points and not stored.

``python -m benchmarks.label_cost`` prints one JSON line per case, each from a child process of its
own: peak memory of the whole process, CPU seconds of the fit, and accuracy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Figure, emit, peak_mib, run_child, timed

Case = Callable[[], Figure]


def paper_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of the paper's experiment, true classes, and the labels of the first draw."""
    from ohmlearn import gallery

    truth = np.repeat([1, 1, 0, 0], [4050, 2000, 2000, 4050])
    rng = np.random.default_rng(1)
    labelled = np.r_[rng.choice(4050, 2, False), 8050 + rng.choice(4050, 2, False)]
    y = np.full(len(truth), -1)
    y[labelled] = truth[labelled]
    return gallery.paper_points(), truth, y


def blob_data(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five Gaussian clusters, ten labels in each."""
    rng = np.random.default_rng(0)
    truth = rng.integers(5, size=n)
    X = (rng.normal(size=(5, d)) * 2)[truth] + rng.normal(size=(n, d))
    y = np.full(n, -1)
    for c in range(5):
        y[np.flatnonzero(truth == c)[:10]] = c
    return X.astype(np.float32), truth, y


def fit(data: tuple[np.ndarray, np.ndarray, np.ndarray], **parameters: Any) -> Figure:
    """Fit a SparseHFSClassifier and describe it."""
    from ohmlearn.semi_supervised import SparseHFSClassifier

    X, truth, y = data
    model = SparseHFSClassifier(random_state=0, **parameters)
    _, cpu, wall = timed(lambda: model.fit(X, y))
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "edges_seen": model.sparsifier_.n_edges_seen_,
        "edges_kept": model.sparsifier_.snapshot().n_edges,
        "passes": model.n_iter_,
        "accuracy": float(np.mean(model.transduction_ == truth)),
    }


def spread(from_points: bool) -> Figure:
    """Fit scikit-learn's LabelSpreading to the same graph, given as a matrix or as points."""
    from sklearn.semi_supervised import LabelSpreading

    from ohmlearn import Graph, knn_edges

    X, truth, y = paper_data()
    if from_points:  # its own kNN graph: directed, and a point is its own neighbour
        model = LabelSpreading(kernel="knn", n_neighbors=4500)
        _, cpu, wall = timed(lambda: model.fit(X, y))
    else:
        batches = list(knn_edges(X, 4500))
        u, v = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
        matrix = Graph.from_edges(u, v).to_scipy()
        model = LabelSpreading(kernel=lambda a, b: matrix)
        _, cpu, wall = timed(lambda: model.fit(X, y))
    accuracy = float(np.mean(model.transduction_ == truth))
    return {"cpu_s": cpu, "wall_s": wall, "accuracy": accuracy}


CASES: dict[str, Case] = {
    "paper k=4500, 1 pass": lambda: fit(
        paper_data(), weights="uniform", n_neighbors=4500, passes=1
    ),
    "paper k=4500, 4 passes": lambda: fit(
        paper_data(), weights="uniform", n_neighbors=4500, passes=4, gamma=1.0
    ),
    "paper k=12000, 1 pass": lambda: fit(
        paper_data(), weights="uniform", n_neighbors=12_000, passes=1
    ),
    "LabelSpreading k=4500, matrix given": lambda: spread(from_points=False),
    "LabelSpreading k=4500, points": lambda: spread(from_points=True),
    "RBF n=10000 d=10, 1 pass": lambda: fit(blob_data(10_000, 10), affinity="rbf", passes=1),
    "RBF n=50000 d=10, 1 pass": lambda: fit(blob_data(50_000, 10), affinity="rbf", passes=1),
    "kNN k=1000 n=50000 d=20, 1 pass": lambda: fit(
        blob_data(50_000, 20), weights="uniform", n_neighbors=1000, passes=1
    ),
    "kNN k=1000 n=200000 d=20, 1 pass": lambda: fit(
        blob_data(200_000, 20), weights="uniform", n_neighbors=1000, passes=1
    ),
}


def main() -> None:
    """Run all cases, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--limit", type=float, default=3000.0, help="CPU seconds of a child")
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        emit({**CASES[options.child](), "rss_peak_mib": peak_mib()})
        return
    for name in options.cases:
        figure: Figure = {"bench": "label_cost", "case": name}
        for part in run_child("benchmarks.label_cost", ["--child", name], options.limit):
            figure |= part
        emit(figure)


if __name__ == "__main__":
    main()
