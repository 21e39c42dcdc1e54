"""Accuracy per label: nodes that are chosen for labelling, against random ones and peers' choices.

``python -m benchmarks.active`` prints one JSON line per figure. All methods start from the same
five random labels and get five more at a time; ours is also run without any label at the start.
Every choice is judged by the same classifier, ours, on the nodes without a label; `own_accuracy` is
that of the peer's classifier. `cpu_s` is the time of all choices up to the largest budget, with all
that they need: fits, eigenvectors, solves. The last lines are means over the sets, and 20
suggestions on a random graph with a million nodes and ten million edges.

The peers are the acquisition functions of graphlearning with the settings of its documentation: 50
eigenvectors, Laplace learning. They choose one node at a time within a batch, and their covariance
is updated after each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.label_methods import Edges, to_graph, to_matrix
from benchmarks.label_sets import GRAPHS, LabelledGraph, load_graph, load_points
from benchmarks.labels import store
from benchmarks.machine import version
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

SETS = (
    "digits", "cora", "pubmed", "facebook_pages", "school_primary", "satimage", "letter",
    "isolet_1560", "fashion_mnist_test",
)  # fmt: skip
START = 5  # random labels
BATCH = 5
BUDGETS = (10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
LARGE = 15_000  # larger sets, by number of nodes, have two draws instead of all


class Chooser(Protocol):
    """Chooses nodes, given those that have labels, and the labels."""

    def choose(self, labelled: np.ndarray, codes: np.ndarray) -> list[int]:
        """Return the next batch of nodes."""


class Ours:
    """Suggestions of ohmlearn, with the probabilities of its classifier."""

    def __init__(self, edges: Edges, seed: int) -> None:
        self.judge, self.seed = Judge(edges), seed

    def choose(self, labelled: np.ndarray, codes: np.ndarray) -> list[int]:
        """Return the next batch of nodes."""
        from ohmlearn.estimators.suggest_labels import suggest_nodes

        shares = None
        if len(labelled) > 0:
            shares = self.judge.fit(labelled, codes).label_distributions_
        graph, seed = self.judge.graph, self.seed + len(labelled)
        found = suggest_nodes(graph, labelled, BATCH, probabilities=shares, random_state=seed)
        return [one.node for one in found]


class Random:
    """A random order of all nodes."""

    def __init__(self, edges: Edges, seed: int) -> None:
        self.order = np.random.default_rng(1000 + seed).permutation(edges.n_nodes)

    def choose(self, labelled: np.ndarray, codes: np.ndarray) -> list[int]:
        """Return the next batch of nodes."""
        return self.order[~np.isin(self.order, labelled)][:BATCH].tolist()


class Peer:
    """An acquisition function of graphlearning."""

    def __init__(self, edges: Edges, function: str) -> None:
        import graphlearning

        self.model = graphlearning.ssl.laplace(to_matrix(edges))
        values, vectors = self.model.graph.eigen_decomp(normalization="normalized", k=50)
        kind = getattr(graphlearning.active_learning, function)
        self.function = kind(C=np.diag(1.0 / (values + 1e-11)), V=vectors)
        self.n_nodes, self.known = edges.n_nodes, 0
        self.predicted: np.ndarray | None = None  # classes of all nodes

    def choose(self, labelled: np.ndarray, codes: np.ndarray) -> list[int]:
        """Return the next batch of nodes."""
        if self.known == 0:
            self.function.update(labelled, codes)
            self.known = len(labelled)
        classes, local = np.unique(codes, return_inverse=True)  # it needs 0, 1, ...
        scores = self.model.fit(labelled, local)
        self.predicted = classes[np.argmax(scores, axis=1)]
        chosen: list[int] = []
        for _ in range(BATCH):
            free = np.setdiff1d(np.arange(self.n_nodes), [*labelled, *chosen])
            best = int(free[np.argmax(self.function.compute(scores, free))])
            self.function.update([best], None)
            chosen.append(best)
        return chosen


class Judge:
    """Our classifier with all edges in memory."""

    def __init__(self, edges: Edges) -> None:
        from ohmlearn import HFSClassifier

        self.graph = to_graph(edges)
        self.model = HFSClassifier(epsilon=None, random_state=0).update(self.graph)

    def fit(self, labelled: np.ndarray, codes: np.ndarray) -> Any:
        """Return the classifier with these labels."""
        return self.model.relabel(dict(zip(labelled.tolist(), codes.tolist(), strict=True)))


METHODS: dict[str, tuple[str, Callable[[Edges, int], Chooser]]] = {
    "random": ("ohmlearn", Random),
    "suggested": ("ohmlearn", Ours),
    "suggested, no start": ("ohmlearn", Ours),
    "V-opt": ("graphlearning", lambda edges, seed: Peer(edges, "var_opt")),
    "Sigma-opt": ("graphlearning", lambda edges, seed: Peer(edges, "sigma_opt")),
    "model change": ("graphlearning", lambda edges, seed: Peer(edges, "model_change")),
    "model change V-opt": (
        "graphlearning",
        lambda edges, seed: Peer(edges, "model_change_var_opt"),
    ),
}


def first_labels(y: np.ndarray, seed: int) -> np.ndarray:
    """Return random nodes that have at least two classes, as some peers need them."""
    rng = np.random.default_rng(seed)
    while True:
        nodes = rng.choice(len(y), START, replace=False)
        if len(np.unique(y[nodes])) > 1:
            return nodes


def measure(options: argparse.Namespace) -> None:
    """Print the figures of one method on one set."""
    warnings.simplefilter("ignore")  # single classes, solves of peers
    with np.load(options.path) as file:
        y = file["y"]
        edges = Edges(file["u"], file["v"], file["w"], len(y))
    judge = Judge(edges)
    METHODS[options.child][1](edges, 0)  # imports, and the first use of libraries
    baseline = reset_peak()
    accuracy, own = defaultdict(list), defaultdict(list)
    seconds = []
    for draw in range(options.draws):
        chooser, cpu, _ = timed(lambda seed=draw: METHODS[options.child][1](edges, seed))
        labelled = first_labels(y, draw)[: 0 if "no start" in options.child else START]
        while True:
            rest = np.setdiff1d(np.arange(len(y)), labelled)
            if len(labelled) in BUDGETS:
                found = judge.fit(labelled, y[labelled]).transduction_
                accuracy[len(labelled)].append(np.mean(found[rest] == y[rest]))
            if len(labelled) >= max(BUDGETS):
                break
            more, used, _ = timed(lambda at=labelled, by=chooser: by.choose(at, y[at]))
            predicted = getattr(chooser, "predicted", None)
            if predicted is not None and len(labelled) in BUDGETS:
                own[len(labelled)].append(np.mean(predicted[rest] == y[rest]))
            labelled = np.concatenate([labelled, more]).astype(np.int64)
            cpu += used
        seconds.append(cpu)
    costs = {"cpu_s": round(float(np.mean(seconds)), 2)}
    costs["memory_mib"] = round(peak_mib() - baseline, 1)
    for budget, values in accuracy.items():
        figure = {"labels": budget, "accuracy": round(100 * float(np.mean(values)), 2)}
        figure |= {"spread": round(100 * float(np.std(values)), 2), "draws": len(values)}
        if own[budget]:
            figure["own_accuracy"] = round(100 * float(np.mean(own[budget])), 2)
        emit({**figure, **costs})


def measure_large(options: argparse.Namespace) -> None:
    """Print time and memory of 20 suggestions on a large random graph."""
    from ohmlearn import Graph
    from ohmlearn.estimators.suggest_labels import suggest_nodes

    n, m = options.large, 10 * options.large
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, n, (2, m), dtype=np.int32)
    near = rng.random(m) < 0.5  # half of the edges are short
    v[near] = (u[near] + rng.integers(1, 50, int(near.sum()), dtype=np.int32)) % n
    apart = u != v
    graph = Graph.from_edges(u[apart], v[apart], n_nodes=n)
    del u, v, near, apart
    shares = rng.dirichlet(np.ones(10), n)
    labelled = rng.choice(n, 100, replace=False)
    reset_peak()  # what made the graph is not counted; the graph is

    def work() -> Any:
        return suggest_nodes(graph, labelled, 20, probabilities=shares, random_state=0, n_jobs=2)

    found, cpu, wall = timed(work)
    emit({"nodes": n, "edges": graph.n_edges, "suggestions": len(found), "threads": 2,
          "cpu_s": round(cpu, 1), "wall_s": round(wall, 1),
          "rss_peak_mib": round(peak_mib(), 1)})  # fmt: skip


def labels_needed(curve: dict[int, float], target: float) -> float:
    """Return the number of labels at which the accuracy first reaches the target, interpolated.

    Examples
    --------
    >>> labels_needed({10: 50.0, 20: 60.0}, 55.0), labels_needed({10: 50.0}, 55.0)
    (15.0, inf)
    """
    before: tuple[int, float] | None = None
    for budget, value in sorted(curve.items()):
        if value >= target:
            if before is None:
                return float(budget)
            part = (target - before[1]) / (value - before[1])
            return before[0] + part * (budget - before[0])
        before = budget, value
    return float("inf")


def summarise(figures: list[Figure]) -> None:
    """Print means over the sets that all methods have finished."""
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    costs: dict[str, dict[str, Figure]] = defaultdict(dict)
    for f in figures:
        curves[f["set"]][f["method"]][f["labels"]] = f["accuracy"]
        costs[f["set"]][f["method"]] = f
    methods = list(dict.fromkeys(f["method"] for f in figures))
    sets = [name for name, by in curves.items() if all(m in by for m in methods)]
    for method in methods if sets else []:
        line: Figure = {"bench": "active", "set": f"mean of {len(sets)}", "method": method}
        line["accuracy"] = {
            b: round(float(np.mean([curves[s][method][b] for s in sets])), 2) for b in BUDGETS
        }
        if "random" in methods:
            needed = [labels_needed(curves[s][method], curves[s]["random"][100]) for s in sets]
            line["labels_needed"] = round(float(np.mean(np.minimum(needed, 100))), 1)
            line["labels_needed_by_set"] = {
                s: round(min(100.0, one)) for s, one in zip(sets, needed, strict=True)
            }
        for key in ("cpu_s", "memory_mib"):
            line[key] = round(float(np.mean([costs[s][method][key] for s in sets])), 1)
        emit(line)


def load(options: argparse.Namespace) -> list[LabelledGraph]:
    """Return the sets, graphs of points with the weights that the estimators use."""
    found = []
    for name in options.sets:
        own_edges = name in GRAPHS or name == "school_primary"
        file = options.data / (f"{name}_labels.parquet" if own_edges else f"{name}.npz")
        if name != "digits" and not file.exists():
            emit({"bench": "active", "set": name, "status": "no data"})
        elif own_edges:
            found.append(load_graph(options.data, name))
        else:
            found.append(load_points(options.data, name, 10, options.points, "gaussian"))
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=default, help="folder with the data sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--points", type=int, default=2500, help="largest number of points")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds for each child")
    parser.add_argument("--large", type=int, default=1_000_000,
                        help="nodes of the random graph; 0: none")  # fmt: skip
    parser.add_argument("--child", choices=[*METHODS, "large"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return measure_large(options) if options.child == "large" else measure(options)
    missing = [m for m in options.methods if version(METHODS[m][0]) is None]
    for name in missing:
        emit({"bench": "active", "method": name, "status": "missing"})
    figures: list[Figure] = []
    for data in load(options):
        print(f"{data.name}: {data.graph}", file=sys.stderr, flush=True)
        for name in [m for m in options.methods if m not in missing]:
            figures += _run(data, name, options)
    summarise(figures)
    if options.large > 0:
        arguments = ["--child", "large", "--large", str(options.large)]
        for figure in run_child("benchmarks.active", arguments, 3600.0, threads=2):
            if "end" not in figure or figure["end"] != "ok":
                emit({"bench": "active", "set": "large", "method": "suggested", **figure})
    return None


def _run(data: LabelledGraph, method: str, options: argparse.Namespace) -> list[Figure]:
    """Print and return the figures of a method on a set."""
    draws = min(options.draws, 2) if len(data.y) > LARGE else options.draws
    head = {"bench": "active", "set": data.name, "nodes": len(data.y), "method": method,
            "version": version(METHODS[method][0])}  # fmt: skip
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        store(data, path)
        arguments = ["--child", method, "--path", str(path), "--draws", str(draws)]
        for figure in run_child("benchmarks.active", arguments, options.limit):
            if "end" not in figure:
                figures.append({**head, "status": "ok", **figure})
                emit(figures[-1])
            elif figure["end"] != "ok":
                emit({**head, "status": figure["end"], "note": figure["note"]})
    return figures


if __name__ == "__main__":
    main()
