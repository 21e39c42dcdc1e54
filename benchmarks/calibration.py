"""Find how large the practical constant of `StreamingSparsifier` must be.

``python -m benchmarks.calibration`` runs every family, order and epsilon for several constants c,
with beta = c ln(n) / epsilon^2. It appends one JSON line per combination to a file and skips
combinations that are already in it. The stored results come from

    python -m benchmarks.calibration --seeds 100 --constants 1.2 --epsilons 0.8
    python -m benchmarks.calibration --seeds 30 --constants 1.2 --epsilons 0.5
    python -m benchmarks.calibration --seeds 20 --constants 0.8 1.0 1.2 1.6 --no-contrasts

``--table`` prints such a file and ``--figure`` draws it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks import families
from benchmarks.families import FAMILIES, Ruler
from benchmarks.measure import THREAD_VARIABLES, Figure

CONSTANTS = (0.8, 1.0, 1.2, 1.6)
EPSILONS = (0.5, 0.8)
SHARE = 0.95  # share of the runs that must meet the requested epsilon
KEY = ("family", "order", "epsilon", "constant", "seeds")


def main() -> None:
    """Run the missing combinations, or show the stored ones."""
    options = _options()
    if options.table:
        show(_read(options.output))
        return
    if options.figure:
        draw(_read(options.output), options.figure)
        return
    done = {tuple(f[key] for key in KEY) for f in _read(options.output)}
    tasks = [
        (family, order, epsilon, constants, options.seeds)
        for epsilon in options.epsilons
        for family in options.families
        for order in families.make(family).orders
        if (constants := [c for c in options.constants
                          if (family, order, epsilon, c, options.seeds) not in done])
    ]  # fmt: skip
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # before the children load numpy
    with (
        multiprocessing.get_context("spawn").Pool(options.jobs) as pool,
        options.output.open("a") as file,
    ):
        for number, figures in enumerate(pool.imap_unordered(_study, tasks)):
            for figure in figures:
                print(json.dumps(figure, separators=(",", ":")), file=file, flush=True)
            first = figures[0]
            print(
                f"{number + 1}/{len(tasks)}: {first['family']}, {first['order']}, "
                f"{first['epsilon']}: met {[f['met'] for f in figures]}",
                file=sys.stderr,
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default="benchmarks/results/calibration.jsonl")
    parser.add_argument("--families", nargs="+", default=families.names())
    parser.add_argument("--no-contrasts", dest="families", action="store_const", const=FAMILIES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--constants", nargs="+", type=float, default=list(CONSTANTS))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--table", action="store_true", help="print the figures of the file")
    parser.add_argument("--figure", type=Path, help="write a picture of the figures to this path")
    return parser.parse_args()


def _read(path: Path) -> list[Figure]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _study(task: tuple[str, str, float, list[float], int]) -> list[Figure]:
    """Run all seeds of one family, order and epsilon; return one figure per constant."""
    from ohmlearn.sparsifier import StreamingSparsifier
    from ohmlearn.sparsifier.sparsifier_options import CONSTANTS

    name, order, epsilon, constants, seeds = task
    family = families.make(name)
    ruler = Ruler(family.graph)
    found: dict[float, list[float]] = {c: [] for c in constants}
    rows: dict[float, list[int]] = {c: [] for c in constants}
    resamples: dict[float, list[int]] = {c: [] for c in constants}
    for seed in range(seeds):
        stream = family.stream(order, seed)
        for c in constants:
            CONSTANTS[f"study {c}"] = (c, 0.0)
            kept = StreamingSparsifier(
                n_nodes=family.graph.n_nodes,
                epsilon=epsilon,
                constants=f"study {c}",
                random_state=seed,
            ).update(*stream)
            h = kept.snapshot()
            found[c].append(ruler.epsilon(h))
            rows[c].append(h.n_edges)
            resamples[c].append(kept.n_resamples_)
    return [
        {
            "bench": "calibration",
            "family": name,
            "order": order,
            "epsilon": epsilon,
            "constant": c,
            "seeds": seeds,
            "met": int(np.sum(np.array(found[c]) <= epsilon)),
            "measured": [round(value, 3) for value in found[c]],
            "rows_mean": float(np.mean(rows[c])),
            "rows_share": float(np.mean(rows[c])) / family.n_edges,
            "resamples_mean": float(np.mean(resamples[c])),
            "n_nodes": family.graph.n_nodes,
            "n_edges": family.n_edges,
        }
        for c in constants
    ]


class Runs:
    """All runs of a family with one epsilon and one constant, over all orders."""

    def __init__(self, figures: list[Figure]) -> None:
        self.measured = np.concatenate([f["measured"] for f in figures])
        self.met = float(np.mean(self.measured <= figures[0]["epsilon"]))
        self.worst_order = min(f["met"] / f["seeds"] for f in figures)
        self.q95 = float(np.quantile(self.measured, SHARE, method="inverted_cdf"))
        self.rows_share = float(np.mean([f["rows_share"] for f in figures]))


def group(figures: list[Figure]) -> dict[tuple[str, float], dict[float, Runs]]:
    """Group runs by family and epsilon, then by constant."""
    # For each combination use the figure with most seeds, because it includes the others.
    last = {tuple(f[k] for k in KEY[:-1]): f for f in sorted(figures, key=lambda f: f["seeds"])}
    parts: dict[tuple[str, float, float], list[Figure]] = defaultdict(list)
    for f in last.values():
        parts[f["family"], f["epsilon"], f["constant"]].append(f)
    result: dict[tuple[str, float], dict[float, Runs]] = defaultdict(dict)
    for (family, epsilon, constant), part in sorted(parts.items()):
        result[family, epsilon][constant] = Runs(part)
    return result


def show(figures: list[Figure]) -> None:
    """Print the share of runs that met epsilon, and of the rows kept, for each constant."""
    constants = sorted({f["constant"] for f in figures})
    print("| family | epsilon | " + " | ".join(f"c = {c:g}" for c in constants) + " | enough |")
    print("|---|---|" + "---|" * (len(constants) + 1))
    for (family, epsilon), runs in group(figures).items():
        cells = [
            f"{100 * runs[c].met:.1f}% of {len(runs[c].measured)}, worst order "
            f"{100 * runs[c].worst_order:.0f}%; {100 * runs[c].rows_share:.1f}% rows"
            if c in runs
            else ""
            for c in constants
        ]
        print(f"| {family} | {epsilon:g} | {' | '.join(cells)} | {smallest(runs)} |")


def smallest(runs: dict[float, Runs]) -> float | None:
    """Return the smallest constant c such that every constant >= c suffices in every order."""
    enough = None
    for c in sorted(runs, reverse=True):
        if runs[c].worst_order < SHARE:
            break
        enough = c
    return enough


def draw(figures: list[Figure], path: Path) -> None:
    """Draw the 95% quantile of measured over requested epsilon against the constant."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from ohmlearn.sparsifier.sparsifier_options import CONSTANTS as NAMED

    runs = group(figures)
    # Leave out families of which no edge was dropped: their error is zero.
    shown = [f for f in FAMILIES if max(r.q95 for r in runs[f, EPSILONS[-1]].values()) > 1e-3]
    figure, axes = plt.subplots(
        1, len(EPSILONS), figsize=(10.4, 4.2), sharey=True, layout="constrained"
    )
    colours = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        for at, family in enumerate(shown):
            x = list(runs[family, epsilon])
            y = [runs[family, epsilon][c].q95 / epsilon for c in x]
            axis.plot(x, y, "o-" if at < 10 else "o--", ms=3.5, lw=1.3, color=colours[at % 10],
                      label=family)  # fmt: skip
        axis.axhline(1.0, color="0.2", lw=1)
        axis.axvline(NAMED["practical"][0], color="0.2", lw=1, ls=":")
        axis.set_title(f"requested ε = {epsilon:g}")
        axis.set_xlabel("constant c")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("measured / requested ε, 95% quantile")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
