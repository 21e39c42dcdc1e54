"""Answers of the defaults beside those of version 0.2 and of peers, and their probabilities.

``python -m benchmarks.default_answers`` prints one JSON line for each set, number of labels, way to
draw them, and draw: accuracy, and for ours calibration and Brier score. Ours are the default; the
same with probabilities that do not depend on degrees ("flat"); and 0.2 (harmonic functions alone,
kernel 1). Peers get the same neighbours, with weights 1 and with those of the default, and the
table, ``--table FILE``, has the better mean of the two.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.label_methods import label_spreading
from benchmarks.label_sets import (
    GRAPHS,
    POINTS,
    STREAMS,
    largest_component,
    read_graph,
    read_points,
)
from ohmlearn import Graph, HFSClassifier, knn_edges
from ohmlearn.estimators.answer import ClassAnswer

COUNTS = (2, 5, 10, 30, 100)
LARGE = 15_000
PEERS = ("Poisson", "Laplace", "LabelSpreading", "PageRank")
WHAT = {"class": "by predicted class", "hub": "hubs", "leaf": "leaves", "brier": "Brier"}


def social(n: int = 10_000) -> tuple[Graph, np.ndarray]:
    """Return a made social graph: hubs, classes of 26% and 74%, weak homophily."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.26).astype(int)
    active = np.minimum((1 - rng.random(n)) ** (-1 / 1.6), 300) * np.where(y == 1, 0.7, 1.0)
    u = rng.choice(n, 6 * n, p=active / active.sum())
    v, same = np.empty(6 * n, int), rng.random(6 * n) < 0.3
    for c in (0, 1):
        at, pool = np.flatnonzero(same & (y[u] == c)), np.flatnonzero(y == c)
        v[at] = rng.choice(pool, len(at), p=active[pool] / active[pool].sum())
    at = np.flatnonzero(~same)
    v[at] = rng.choice(n, len(at), p=active / active.sum())
    return Graph.from_edges(u[u != v], v[u != v], n_nodes=n), y


def load(folder: Path, name: str, limit: int) -> tuple[dict[int, Graph], np.ndarray]:
    """Return graphs by their weights (kernels 1, 4 and 8), in the largest component, and classes."""
    if name == "social":
        graph, y = social()
    elif name in GRAPHS + STREAMS:
        graph, y, _ = read_graph(folder, name)
    else:
        X, y, _ = read_points(folder, name, limit)
        kinds = [(key, knn_edges(X, n_neighbors=10, gamma=key)) for key in (1, 4, 8)]
        made = [(key, Graph.from_batches(edges, n_nodes=len(y))) for key, edges in kinds]
        parts = {key: largest_component(name, each, y, {}) for key, each in made}
        return {key: part.graph for key, part in parts.items()}, parts[8].y
    part = largest_component(name, graph, y, {})
    return dict.fromkeys((1, 4, 8), part.graph), part.y


def draw(y: np.ndarray, kind: str, count: int, seed: int) -> np.ndarray | None:
    """Draw labels; None if they would be more than half of all, or too few for most classes."""
    rng = np.random.default_rng(1000 * count + seed)
    known, n_classes = np.flatnonzero(y >= 0), int(y.max()) + 1
    wanted = count * n_classes
    if kind == "random":
        while 2 * wanted <= len(known):
            chosen = rng.choice(known, wanted, replace=False)
            if len(np.unique(y[chosen])) > 1:
                return chosen
        return None
    nodes = [np.flatnonzero(y == c) for c in range(n_classes)]
    parts = [rng.choice(at, min(count, max(1, len(at) // 2)), replace=False) for at in nodes]
    chosen = np.concatenate(parts)
    return chosen if 0.7 * wanted < len(chosen) <= len(known) / 2 else None


def peers(graphs: dict[int, Graph], given: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the labels of each peer with weights 1 and, for points, with weights."""
    import graphlearning
    from sknetwork.classification import PageRankClassifier

    at = np.flatnonzero(given >= 0)
    classes, codes = np.unique(given[at], return_inverse=True)
    y = np.full(len(given), -1)
    y[at] = codes
    ways: dict[str, tuple[int, Any]] = {
        "Poisson": (4, lambda w: graphlearning.ssl.poisson(w, tol=1e-5).fit_predict(at, codes)),
        "Laplace": (8, lambda w: graphlearning.ssl.laplace(w).fit_predict(at, codes)),
        "LabelSpreading": (8, lambda w: label_spreading(w, y, 0)),
        "PageRank": (8, lambda w: PageRankClassifier().fit_predict(w, labels=y)),
    }
    for name, (kernel, label) in ways.items():
        matrix = sp.csr_matrix(graphs[kernel].to_scipy())
        ones = sp.csr_matrix((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
        for kind, weights in (("", ones), ("weighted ", matrix)):
            if not kind or graphs[1] is not graphs[8]:
                yield kind + name, classes[np.asarray(label(weights), dtype=int)]


def quality(p: np.ndarray, truth: np.ndarray, degrees: np.ndarray) -> dict[str, float]:
    """Return the Brier score, and gaps between confidence and accuracy: by class, hubs, leaves."""
    sure, code = p.max(axis=1), p.argmax(axis=1)
    gap, goal = sure - (code == truth), truth[:, np.newaxis] == np.arange(p.shape[1])
    low, high = np.quantile(degrees, [0.1, 0.9])
    by_class = np.bincount(code, gap, minlength=p.shape[1])
    return {
        "brier": float(np.square(p - goal).sum(axis=1).mean()),
        "class": float(np.abs(by_class).sum() / len(p)),
        "hub": float(gap[degrees >= high].mean()),
        "leaf": float(gap[degrees <= low].mean()),
    }


def ours(graphs: dict[int, Graph], y: np.ndarray, given: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield the figures of our answers."""
    test = (y >= 0) & (given < 0)
    labels = {int(node): int(y[node]) for node in np.flatnonzero(given >= 0)}
    for key, kernel, how in (("before", 1, {"method": "harmonic"}), ("after", 8, {})):
        start = time.process_time()
        model = HFSClassifier(epsilon=None, random_state=0, n_jobs=1, **how)
        model.fit_edges(graphs[kernel], labels)
        p = {key: model.label_distributions_}
        seconds = time.process_time() - start
        if key == "after":
            flat = ClassAnswer(model.problem_, model.answer_.result)
            flat.degrees = None
            p["flat"] = flat.probabilities
        column = np.full(int(y.max()) + 1, -1)
        column[model.classes_] = np.arange(len(model.classes_))
        found = {"accuracy": accuracy(model.transduction_, y, test), "cpu_s": seconds}
        found |= {"power": model.calibration_.power}
        for name, values in p.items():
            degrees = graphs[kernel].degrees[test]
            yield name, found | quality(values[test], column[y[test]], degrees)


def accuracy(found: np.ndarray, y: np.ndarray, test: np.ndarray) -> float:
    """Return the percentage of right labels."""
    return 100 * float(np.mean((found == y)[test]))


def main() -> None:
    """Run the benchmark, or show its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=default, help="folder with the data sets")
    parser.add_argument("--points", type=int, default=1600, help="largest number of points")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--who", choices=("ours", "peers", "all"), default="all")
    parser.add_argument(
        "--sets", nargs="+", default=["social", "digits", *POINTS, *GRAPHS, *STREAMS]
    )
    parser.add_argument(
        "--table", type=Path, nargs="+", help="show figures from these files instead"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.table:
        lines = [line for path in options.table for line in path.read_text().splitlines()]
        return show([json.loads(line) for line in lines if line.startswith("{")])
    sets = {name: load(options.data, name, options.points) for name in options.sets}
    for seed in range(options.first, options.draws):
        for name, (graphs, y) in sets.items():
            large = len(y) > LARGE
            for count in (2, 10, 100) if large else COUNTS:
                for kind in ("stratified", "random"):
                    chosen = draw(y, kind, count, seed)
                    if chosen is None or (large and seed > 1):
                        continue
                    head: dict[str, Any] = {"set": name, "count": count, "kind": kind, "seed": seed}
                    given = np.full(len(y), -1)
                    given[chosen] = y[chosen]
                    if options.who != "peers":
                        head |= dict(ours(graphs, y, given))
                    for peer, labels in peers(graphs, given) if options.who != "ours" else ():
                        head[peer] = {"accuracy": accuracy(labels, y, (y >= 0) & (given < 0))}
                    print(json.dumps(head), flush=True)
    return None


def show(rows: list[dict[str, Any]]) -> None:
    """Print Markdown tables; each cell of a set is the mean over its draws."""
    cells: dict[Any, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for who, figures in row.items():
            for what, value in figures.items() if isinstance(figures, dict) else ():
                cells[row["kind"], row["count"], row["set"]][who, what].append(value)
    print("| labels drawn | 0.2 | default | won, lost, worst | " + " | ".join(PEERS), end=" |\n")
    print("|---" * (4 + len(PEERS)) + "|")
    for kind, count in dict.fromkeys(key[:2] for key in cells):
        here = {key[2]: cell for key, cell in cells.items() if key[:2] == (kind, count)}
        means = {
            who: np.array(
                [np.mean(cell.get((who, "accuracy"), [np.nan])) for cell in here.values()]
            )
            for who in ("before", "after", *PEERS, *(f"weighted {name}" for name in PEERS))
        }
        gain = means["after"] - means["before"]
        worst = int(np.argmin(gain))
        best = []
        for name in PEERS:  # sets without weights have one figure
            weighted = means[f"weighted {name}"]
            weighted = np.where(np.isnan(weighted), means[name], weighted)
            best.append(max(float(np.mean(means[name])), float(np.mean(weighted))))
        ends = (
            f"{np.sum(gain > 0.3)}, {np.sum(gain < -0.3)}, {list(here)[worst]} {gain[worst]:+.1f}"
        )
        shown = [f"{np.mean(means[who]):.1f}" for who in ("before", "after")]
        shown += [ends, *(f"{value:.1f}" for value in best)]
        print(f"| {count}, {kind} ({len(here)} sets) | " + " | ".join(shown) + " |")
    print("\n| labels | " + " | ".join(WHAT.values()) + " |" + "\n" + "|---" * 5 + "|")
    for count in dict.fromkeys(key[1] for key in cells):
        here = {key: cell for key, cell in cells.items() if key[1] == count}
        shown = [
            ", ".join(
                f"{np.mean([abs(np.mean(cell[who, what])) for cell in here.values()]):.3f}"
                for who in ("before", "flat", "after")
            )
            for what in WHAT
        ]
        print(f"| {count} | " + " | ".join(shown) + " |")
    for key, cell in cells.items():
        change = {
            w: np.mean(cell["after", "brier"]) - np.mean(cell[w, "brier"])
            for w in ("before", "flat")
        }
        if max(change.values()) > 0.01:
            print(key, {name: f"{value:+.3f}" for name, value in change.items()})


if __name__ == "__main__":
    main()
