"""Accuracy on real data: ours after one and three passes, the exact answer, and peers.

``python -m benchmarks.labels`` prints one JSON line per figure: the mean and spread of the accuracy
on the unlabelled nodes, over random draws of labels or published ones, and CPU time and memory. All
methods get the same graph and the same labels. Each pair of set and method runs in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_methods import METHODS, Edges, warm_up
from benchmarks.label_sets import FULL_SETS, LabelledGraph, load_all, load_full
from benchmarks.machine import version
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

PER_CLASS = (1, 5, 10)
LARGE = 15_000  # larger sets, by number of nodes, have two draws instead of all
HUGE = 100_000  # larger sets only have the largest number of labels
MEMORY_GIB = 8.0


def label_draws(y: np.ndarray, splits: dict[str, list[np.ndarray]], n_draws: int, wanted: list[int]
                ) -> Iterator[tuple[str, list[np.ndarray]]]:  # fmt: skip
    """Yield sets of labelled nodes: random ones per number of labels per class, and published."""
    n_draws = min(n_draws, 2) if len(y) > LARGE else n_draws
    classes = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    for per_class in wanted:
        draws = []
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            draws.append(
                np.concatenate(
                    [rng.choice(c, min(per_class, len(c)), replace=False) for c in classes]
                )
            )
        yield str(per_class), draws
    for name, sets in splits.items():
        all_there = [s for s in sets if len(np.unique(y[s])) == len(classes)]
        if all_there:  # some peers fail if a class has no label
            yield name, all_there


def store(data: LabelledGraph, path: Path) -> None:
    """Write the arrays that a child needs."""
    u, v, w = data.graph.edges()
    splits = {
        f"split {key} {at}": s for key, sets in data.splits.items() for at, s in enumerate(sets)
    }
    np.savez(path, u=u, v=v, w=w, y=data.y, **splits)


def measure(options: argparse.Namespace) -> None:
    """Print the figures of one method on one set."""
    warnings.simplefilter("ignore")  # some peers do not converge
    method = METHODS[options.child]
    warm_up(options.child)
    with np.load(options.path) as file:
        arrays = {key: file[key] for key in file.files}
    y = arrays.pop("y")
    splits = defaultdict(list)
    for key in [key for key in arrays if key.startswith("split ")]:
        splits[key.split(" ")[1]].append(arrays.pop(key))
    baseline = reset_peak()  # includes the edges, which every method holds
    graph = method.prepare(Edges(arrays["u"], arrays["v"], arrays["w"], len(y)))
    reset_peak()
    for labels, draws in label_draws(y, splits, options.draws, options.per_class):
        found = [_one(method, graph, y, labelled, at) for at, labelled in enumerate(draws)]
        found = [one for one in found if one is not None]
        if not found:
            continue
        accuracies, seconds = zip(*found, strict=True)
        emit(
            {
                "labels": labels,
                "accuracy": round(float(np.mean(accuracies)), 2),
                "spread": round(float(np.std(accuracies)), 2),
                "draws": len(found),
                "cpu_s": round(float(np.mean(seconds)), 3),
                "memory_mib": round(peak_mib() - baseline, 1),
            }
        )


def _one(
    method: Any, graph: Any, y: np.ndarray, labelled: np.ndarray, seed: int
) -> tuple[float, float] | None:
    given = np.full(len(y), -1)
    given[labelled] = y[labelled]
    test = (y >= 0) & (given < 0)
    if not test.any():
        return None
    found, cpu, _ = timed(lambda: method.label(graph, given, seed))
    return 100 * float(np.mean(found[test] == y[test])), cpu


def show(path: Path) -> None:
    """Print a Markdown table of accuracies with their spread, and averages over the sets."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    print("\n".join(accuracy_table([f for f in lines if "accuracy" in f])))


def accuracy_table(figures: list[Figure]) -> list[str]:
    """Return the lines of a Markdown table, with averages over the rows that have all methods."""
    cells: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for f in figures:
        cells[f["set"], f["labels"]][f["method"]] = f
    methods = [m for m in METHODS if any(m in row for row in cells.values())]
    lines = ["| set | labels | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for (name, labels), row in cells.items():
        shown = [
            f"{row[m]['accuracy']:.1f} ± {row[m]['spread']:.1f}" if m in row else "–"
            for m in methods
        ]
        lines.append(f"| {name} | {labels} | " + " | ".join(shown) + " |")
    for labels in [*dict.fromkeys(labels for _, labels in cells), "all"]:
        rows = [
            row
            for (_, used), row in cells.items()
            if labels in ("all", used) and all(m in row for m in methods)
        ]
        if rows:
            means = [np.mean([row[m]["accuracy"] for row in rows]) for m in methods]
            shown = [f"**{mean:.2f}**" for mean in means]
            lines.append(f"| mean of {len(rows)} | {labels} | " + " | ".join(shown) + " |")
    gaps = [
        row["3 passes"]["accuracy"] - row["exact"]["accuracy"]
        for row in cells.values()
        if {"3 passes", "exact"} <= row.keys()
    ]
    if gaps:
        span = f"{min(gaps):+.2f} to {max(gaps):+.2f}, mean {np.mean(gaps):+.2f}"
        lines += ["", f"3 passes minus exact: {span}"]
    return lines


def main() -> None:
    """Run the benchmark, or show its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("OHMLEARN_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=default, help="folder with the data sets")
    parser.add_argument("--neighbors", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--points", type=int, default=4000, help="largest number of points")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--per-class", type=int, nargs="+", default=list(PER_CLASS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sets", nargs="+", help="only sets whose name starts with one of these")
    parser.add_argument("--full", nargs="*", choices=FULL_SETS, default=list(FULL_SETS),
                        help="sets that are also run with all their points")  # fmt: skip
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds for each child")
    parser.add_argument("--table", type=Path, help="show figures from this file instead")
    parser.add_argument("--child", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    if options.child:
        return measure(options)
    missing = [m for m in options.methods if version(METHODS[m].package) is None]
    for name in missing:
        emit({"bench": "labels", "method": name, "status": "missing"})
    options.methods = [m for m in options.methods if m not in missing]
    for data in load_all(options.data, options.neighbors, options.points, options.sets):
        _run(data, options)
    options.per_class = [max(options.per_class)]
    for name in options.full:
        _run(load_full(options.data, name), options)
    return None


def _run(data: LabelledGraph | str, options: argparse.Namespace) -> None:
    if isinstance(data, str):
        emit({"bench": "labels", "set": data, "status": "no data"})
        return
    print(f"{data.name}: {data.graph}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        store(data, path)
        for name in options.methods:
            package = METHODS[name].package
            head = {"bench": "labels", "set": data.name, "nodes": len(data.y)}
            head |= {"edges": data.graph.n_edges, "method": name, "version": version(package)}
            arguments = ["--child", name, "--path", str(path), "--draws", str(options.draws)]
            counts = [max(options.per_class)] if len(data.y) > HUGE else options.per_class
            arguments += ["--per-class", *(str(count) for count in counts)]
            for figure in run_child(
                "benchmarks.labels", arguments, options.limit, memory_gib=MEMORY_GIB
            ):
                if "end" not in figure:
                    emit({**head, "status": "ok", **figure})
                elif figure["end"] != "ok":
                    emit({**head, "status": figure["end"], "note": figure["note"]})


if __name__ == "__main__":
    main()
