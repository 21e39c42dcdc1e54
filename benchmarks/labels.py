"""Accuracy on real data: ours after one pass and three, the exact answer, and peers.

``python -m benchmarks.labels --data DIR`` prints one JSON line per figure: mean and spread of the
accuracy on the unlabelled nodes, over random draws of labels or published ones. All methods get the
same graph and the same labels.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_sets import LabelledGraph, load_all
from benchmarks.measure import emit
from ohmlearn.semi_supervised import SparseHFSClassifier, StableHFSClassifier

Method = Callable[[LabelledGraph, np.ndarray, int], np.ndarray]
PER_CLASS = (1, 5, 10)
LARGE = 50_000  # nodes; beyond, three draws instead of all


def ours_in(passes: int) -> Method:
    """Sparse-HFS with so many passes."""

    def label(data: LabelledGraph, y: np.ndarray, seed: int) -> np.ndarray:
        model = SparseHFSClassifier(passes=passes, random_state=seed)
        return model.fit_edges(data.graph, y).transduction_

    return label


def exact(data: LabelledGraph, y: np.ndarray, seed: int) -> np.ndarray:
    """Stable-HFS on the whole graph."""
    return StableHFSClassifier(random_state=seed).fit_edges(data.graph, y).transduction_


def exact_unit_gamma(data: LabelledGraph, y: np.ndarray, seed: int) -> np.ndarray:
    """Stable-HFS with gamma = 1."""
    model = StableHFSClassifier(gamma=1.0, random_state=seed)
    return model.fit_edges(data.graph, y).transduction_


def poisson(data: LabelledGraph, y: np.ndarray, seed: int) -> np.ndarray:
    """Poisson learning of graphlearning, with its defaults."""
    import graphlearning
    import scipy.sparse

    labelled = np.flatnonzero(y >= 0)
    model = graphlearning.ssl.poisson(scipy.sparse.csr_matrix(data.graph.to_scipy()))
    return np.asarray(model.fit_predict(labelled, y[labelled]))


def label_spreading(data: LabelledGraph, y: np.ndarray, seed: int) -> np.ndarray:
    """LabelSpreading of scikit-learn, with its defaults."""
    from sklearn.semi_supervised import LabelSpreading

    weights = data.graph.to_scipy()
    model = LabelSpreading(kernel=lambda a, b: weights)
    return model.fit(np.zeros((len(y), 1)), y).transduction_


METHODS: dict[str, Method] = {
    "1 pass": ours_in(1),
    "3 passes": ours_in(3),
    "exact": exact,
    "exact, gamma 1": exact_unit_gamma,
    "Poisson": poisson,
    "LabelSpreading": label_spreading,
}


def label_draws(data: LabelledGraph, n_draws: int) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Sets of labelled nodes: random ones for each number a class, and published ones."""
    n_draws = min(n_draws, 3) if len(data.y) > LARGE else n_draws
    classes = [np.flatnonzero(data.y == c) for c in range(data.y.max() + 1)]
    for per_class in PER_CLASS:
        draws = []
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            draws.append(
                np.concatenate(
                    [rng.choice(c, min(per_class, len(c)), replace=False) for c in classes]
                )
            )
        yield str(per_class), draws
    for name, sets in data.splits.items():
        all_there = [s for s in sets if len(np.unique(data.y[s])) == len(classes)]
        if all_there:  # some peers fail if a class has no label
            yield name, all_there


def measure(data: LabelledGraph, n_draws: int, methods: list[str]) -> None:
    """Print the figures of one set."""
    for labels, draws in label_draws(data, n_draws):
        for name in methods:
            accuracies, cpu = [], time.process_time()
            for seed, labelled in enumerate(draws):
                y = np.full(len(data.y), -1)
                y[labelled] = data.y[labelled]
                test = (data.y >= 0) & (y < 0)
                if not test.any():
                    continue
                found = METHODS[name](data, y, seed)
                accuracies.append(100 * float(np.mean(found[test] == data.y[test])))
            if accuracies:
                emit(
                    {
                        "bench": "labels",
                        "set": data.name,
                        "nodes": len(data.y),
                        "edges": data.graph.n_edges,
                        "labels": labels,
                        "method": name,
                        "accuracy": round(float(np.mean(accuracies)), 2),
                        "spread": round(float(np.std(accuracies)), 2),
                        "draws": len(accuracies),
                        "cpu_s": round((time.process_time() - cpu) / len(accuracies), 3),
                    }
                )


def show(path: Path) -> None:
    """Print Markdown tables: accuracies with their spread, and averages over the sets."""
    figures = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    cells: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for f in figures:
        cells[f["set"], f["labels"]][f["method"]] = f
    methods = [m for m in METHODS if any(m in row for row in cells.values())]
    print("| set | labels | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 2) + "|")
    for (name, labels), row in cells.items():
        shown = [f"{row[m]['accuracy']:.1f} ± {row[m]['spread']:.1f}" for m in methods]
        print(f"| {name} | {labels} | " + " | ".join(shown) + " |")
    settings = list(dict.fromkeys(labels for _, labels in cells))
    for labels in [*settings, "all"]:
        rows = [row for (_, used), row in cells.items() if labels in ("all", used)]
        means = [np.mean([row[m]["accuracy"] for row in rows]) for m in methods]
        shown = [f"**{mean:.2f}**" for mean in means]
        print(f"| mean of {len(rows)} | {labels} | " + " | ".join(shown) + " |")
    gaps = [row["3 passes"]["accuracy"] - row["exact"]["accuracy"] for row in cells.values()]
    print(
        f"\n3 passes minus exact: {min(gaps):+.2f} to {max(gaps):+.2f}, mean {np.mean(gaps):+.2f}"
    )


def main() -> None:
    """Run the benchmark, or show its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--neighbors", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--limit", type=int, default=10_000, help="most points of a set")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sets", nargs="+", help="only sets whose name begins with one of these")
    parser.add_argument("--table", type=Path, help="show figures from this file instead")
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    warnings.simplefilter("ignore")  # peers that do not converge
    for data in load_all(options.data, options.neighbors, options.limit, options.sets):
        print(f"{data.name}: {data.graph}", file=sys.stderr, flush=True)
        measure(data, options.draws, options.methods)
    return None


if __name__ == "__main__":
    main()
