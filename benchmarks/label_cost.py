"""Memory and CPU time of labelling dense graphs: ours from a stream of edges, peers from a graph.

``python -m benchmarks.label_cost`` prints one JSON line per case, with the peak memory of the whole
process, the CPU seconds of the fit, and the accuracy. Each case runs in its own child process.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.label_methods import METHODS, Edges, warm_up
from benchmarks.machine import version
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

Case = Callable[[int], Figure]
POINTS = 12_100
MEMORY_GIB = 8.0


def paper_data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of the paper's experiment, true classes, and the labels of the first draw."""
    from ohmlearn import gallery

    quarter = 4050 * n // POINTS
    truth = (np.arange(n) < n // 2).astype(int)
    rng = np.random.default_rng(1)
    labelled = np.r_[rng.choice(quarter, 2, False), n - quarter + rng.choice(quarter, 2, False)]
    y = np.full(n, -1)
    y[labelled] = truth[labelled]
    return gallery.paper_points(n), truth, y


def blob_data(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return five Gaussian clusters with ten labels each."""
    rng = np.random.default_rng(0)
    truth = rng.integers(5, size=n)
    X = (rng.normal(size=(5, d)) * 2)[truth] + rng.normal(size=(n, d))
    y = np.full(n, -1)
    for c in range(5):
        y[np.flatnonzero(truth == c)[:10]] = c
    return X.astype(np.float32), truth, y


def fit(data: tuple[np.ndarray, np.ndarray, np.ndarray], **parameters: Any) -> Figure:
    """Fit an HFSClassifier and return its cost and accuracy."""
    from ohmlearn.estimators import HFSClassifier

    X, truth, y = data
    model = HFSClassifier(random_state=0, **parameters)
    _, cpu, wall = timed(lambda: model.fit(X, y))
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "edges_seen": model.sparsifier_.n_edges_seen_,
        "edges_kept": model.sparsifier_.snapshot().n_edges,
        "passes": model.n_iter_,
        "accuracy": float(np.mean(model.transduction_ == truth)),
    }


def paper(k: int, passes: int, n: int, **parameters: Any) -> Figure:
    """Run ours on the paper's points; ``k`` is scaled down if there are fewer than 12,100."""
    settings = {"weights": "uniform", "n_neighbors": k * n // POINTS, "passes": passes}
    return fit(paper_data(n), **settings, **parameters)


def spread_points(n: int) -> Figure:
    """Run LabelSpreading on points.

    It builds a directed kNN graph, in which each point is one of its own neighbours.
    """
    from sklearn.semi_supervised import LabelSpreading

    X, truth, y = paper_data(n)
    model = LabelSpreading(kernel="knn", n_neighbors=4500 * n // POINTS)
    _, cpu, wall = timed(lambda: model.fit(X, y))
    return {"cpu_s": cpu, "wall_s": wall, "accuracy": float(np.mean(model.transduction_ == truth))}


def stored(name: str, n: int) -> Figure:
    """Label with a peer; the time to build the graph in the form it takes is not counted."""
    from ohmlearn import knn_edges

    X, truth, y = paper_data(n)
    batches = list(knn_edges(X, n_neighbors=4500 * n // POINTS, weights="uniform"))
    u, v = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    del batches
    edges, method = Edges(u, v, np.ones(len(u)), n), METHODS[name]
    graph = method.prepare(edges)
    del u, v, edges
    reset_peak()
    found, cpu, wall = timed(lambda: method.label(graph, y, 0))
    return {"cpu_s": cpu, "wall_s": wall, "accuracy": float(np.mean(found == truth))}


PEERS = ("LabelSpreading", "Poisson", "Diffusion", "harmonic_function")
CASES: dict[str, Case] = {
    "paper k=4500, 1 pass": partial(paper, 4500, 1),
    "paper k=4500, 4 passes": partial(paper, 4500, 4, gamma=1.0),
    "paper k=12000, 1 pass": partial(paper, 12_000, 1),
    "LabelSpreading k=4500, points": spread_points,
    **{f"{name} k=4500, stored": partial(stored, name) for name in PEERS},
}
LARGE: dict[str, Case] = {
    "RBF n=10000 d=10, 1 pass": lambda _: fit(blob_data(10_000, 10), affinity="rbf", passes=1),
    "RBF n=50000 d=10, 1 pass": lambda _: fit(blob_data(50_000, 10), affinity="rbf", passes=1),
    "kNN k=1000 n=50000 d=20, 1 pass": lambda _: fit(
        blob_data(50_000, 20), weights="uniform", n_neighbors=1000, passes=1
    ),
}


def method_of(case: str) -> str:
    """Return the name of the method that a case measures."""
    name = case.split(" k=")[0]
    return name if name in METHODS else "3 passes"


def main() -> None:
    """Run all cases, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = {**CASES, **LARGE}
    parser.add_argument("--cases", nargs="+", choices=every, default=list(every))
    parser.add_argument("--points", type=int, default=POINTS, help="of the paper's experiment")
    parser.add_argument("--limit", type=float, default=1000.0, help="CPU seconds of a child")
    parser.add_argument("--child", choices=every, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")  # some peers do not converge
        warm_up(method_of(options.child))
        emit({**every[options.child](options.points), "rss_peak_mib": peak_mib()})
        return
    for name in options.cases:
        print(name, file=sys.stderr, flush=True)
        figure: Figure = {
            "bench": "label_cost",
            "case": name,
            "package": METHODS[method_of(name)].package,
        }
        figure |= {"version": version(figure["package"]), "points": options.points}
        if figure["version"] is None:
            emit({**figure, "status": "missing"})
            continue
        arguments = ["--child", name, "--points", str(options.points)]
        limit = options.limit if figure["package"] == "ohmlearn" else min(300.0, options.limit)
        for part in run_child("benchmarks.label_cost", arguments, limit, memory_gib=MEMORY_GIB):
            figure |= part
        figure["status"] = figure.pop("end")
        emit(figure)


if __name__ == "__main__":
    main()
