"""What is said of a sparsifier without a second pass, against the truth.

``python -m benchmarks.estimates`` prints one JSON line per figure:

- `epsilon_estimate_` over the true epsilon, from dense eigenvalues, for each of the families of
  `benchmarks.families` and several seeds and orders;
- `stability_` of answers of one pass, against the labels of ten other seeds, on real graphs: the
  mean over the nodes, and the correlation of the chance of a node with how often its label differs;
- time and memory of the estimate beside those of the pass, in child processes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks import families
from benchmarks.families import FAMILIES, Ruler
from benchmarks.graphs import DATA
from benchmarks.label_sets import LabelledGraph, load_graph, load_points
from benchmarks.measure import emit, peak_mib, reset_peak, run_child, timed

EPSILONS = (0.4, 0.8)
SETS = {  # kept edges per node, so few that labels change
    "school_primary": 8, "email_eu_core": 8, "dblp_temporal": 3, "facebook_pages": 5,
    "digits": 12, "satimage": 12, "fashion_mnist_test": 12,
}  # fmt: skip
NEIGHBORS = 200
PER_CLASS, OTHERS = 20, 10
LARGE_NODES, LARGE_EDGES = 100_000, 10_000_000


def measure_epsilon(name: str, seeds: int) -> None:
    """Print the ratios of one family."""
    from ohmlearn import StreamingSparsifier

    family = families.make(name)
    ruler = Ruler(family.graph)
    for epsilon in EPSILONS:
        ratios = []
        for order in family.orders:
            for seed in range(seeds):
                kept = StreamingSparsifier(
                    n_nodes=family.graph.n_nodes, epsilon=epsilon, random_state=seed
                ).update(*family.stream(order, seed))
                true = ruler.epsilon(kept.snapshot())
                if kept.epsilon_estimate_ > 0 and true > 1e-6:
                    ratios.append(kept.epsilon_estimate_ / true)
        figure = {"bench": "estimates", "case": "epsilon", "family": name, "epsilon": epsilon}
        if ratios:
            close = float(np.mean(np.abs(np.array(ratios) - 1) <= 0.15))
            figure |= {"ratio": round(float(np.mean(ratios)), 3), "within": round(close, 3)}
            figure |= {"spread": round(float(np.std(ratios)), 3)}
        emit(figure | {"runs": len(ratios)})


def measure_stability(data: LabelledGraph, per_node: int) -> None:
    """Print how the chances of one graph compare with other seeds."""
    from ohmlearn import HFSClassifier

    random = np.random.default_rng(0)
    members = [np.flatnonzero(data.y == c) for c in np.unique(data.y[data.y >= 0])]
    drawn = [random.choice(m, min(PER_CLASS, len(m) // 2), replace=False) for m in members]
    labels = {int(node): int(data.y[node]) for node in np.concatenate(drawn)}
    n = data.graph.n_nodes
    found = [
        HFSClassifier(passes=1, max_edges=per_node * n, random_state=seed).fit_edges(
            data.graph, labels
        )
        for seed in range(OTHERS + 1)
    ]
    chance, at = found[0].stability_, found[0].reached_
    others = [model.transduction_ != found[0].transduction_ for model in found[1:]]
    share = np.mean(others, axis=0)
    emit(
        {
            "bench": "estimates", "case": "stability", "set": data.name, "nodes": n,
            "kept": round(found[0].graph_.n_edges / data.graph.n_edges, 3),
            "changed": round(float(share[at].mean()), 4),
            "expected": round(float(chance[at].mean()), 4),
            "correlation": round(float(np.corrcoef(chance[at], share[at])[0, 1]), 3),
        }
    )  # fmt: skip


def measure_cost(with_estimate: bool) -> None:
    """Print time and memory of one pass, with or without the estimate."""
    from ohmlearn import StreamingSparsifier

    random = np.random.default_rng(0)
    ends = random.integers(0, LARGE_NODES, (2, LARGE_EDGES), dtype=np.int32)
    baseline = reset_peak()

    def run() -> None:
        kept = StreamingSparsifier(n_nodes=LARGE_NODES, epsilon=0.8, random_state=0)
        kept.update(*ends).snapshot()
        if with_estimate:
            _ = kept.epsilon_estimate_

    _, cpu, _ = timed(run)
    case = {"bench": "estimates", "case": "cost", "estimate": with_estimate}
    emit(case | {"cpu_s": round(cpu, 2), "memory_mib": round(peak_mib() - baseline, 1)})


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--child", choices=["pass", "estimate"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        measure_cost(options.child == "estimate")
        return
    warnings.simplefilter("ignore")
    for name in options.families:
        measure_epsilon(name, options.seeds)
    for name in options.sets:
        if name in ("digits", "satimage", "fashion_mnist_test"):
            data = load_points(options.data, name, NEIGHBORS, 2500)
        else:
            data = load_graph(options.data, name)
        measure_stability(data, SETS[name])
    for child in ("pass", "estimate"):
        for figure in run_child("benchmarks.estimates", ["--child", child], 600.0):
            if "end" not in figure:
                emit(figure)


if __name__ == "__main__":
    main()
