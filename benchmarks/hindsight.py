"""Compare one pass with sampling that knows the whole graph, at equal numbers of rows.

``python -m benchmarks.hindsight`` prints a JSON line per family and order, with the mean epsilon of

- ``stream``: a StreamingSparsifier with a budget,
- ``exact``: one-shot sampling with the exact resistances of the whole graph,
- ``merged``: eight sparsifiers, each of an eighth of the stream, merged pairwise,
- ``uniform``: sampling every edge with the same probability.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.families import FAMILIES, ORDERS, Family, Ruler
from benchmarks.measure import Figure, emit
from ohmlearn import Graph, StreamingSparsifier

DENSE = ("paper", "blocks", "barbell", "attachment", "6 decades", "complete", "union")
WAYS = ("stream", "exact", "merged", "uniform")
LEAVES = 8
REFERENCES = 5  # one-shot samples per stream, so that the mean of the reference varies less
BAR = 1.15
RATIOS = ("stream_over_exact", "merged_over_stream")


def main() -> None:
    """Measure each family and order, or print a table of earlier figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(DENSE))
    parser.add_argument("--orders", nargs="+", default=list(ORDERS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", nargs="+", type=float, default=[20.0], help="budget per node")
    parser.add_argument("--table", type=Path, help="print the figures of this file and stop")
    options = parser.parse_args()
    if options.table:
        show([json.loads(line) for line in options.table.read_text().splitlines()])
        return
    threadpool_limits(1)  # with several threads, matrices of this size take ten times as long
    for name in options.families:
        family = FAMILIES[name]()
        ruler = Ruler(family.graph)
        for rows_per_node in options.rows:
            budget = round(rows_per_node * family.graph.n_nodes)
            for order in options.orders:
                print(f"{name}, {order}, {rows_per_node:g} rows per node", file=sys.stderr)
                figure = compare(family, ruler, order, budget, options.seeds)
                emit({"bench": "hindsight", "family": name, "order": order, **figure})


def compare(family: Family, ruler: Ruler, order: str, budget: int, seeds: int) -> Figure:
    """Mean epsilon of the four ways; one-shot samples have as many rows as the stream kept."""
    n = family.graph.n_nodes
    ways: dict[str, list[Graph]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        u, v, w = family.stream(order, seed)
        one = StreamingSparsifier(n_nodes=n, max_edges=budget, random_state=seed).update(u, v, w)
        ways["stream"].append(one.snapshot())
        leaves = [
            StreamingSparsifier(
                n_nodes=n, max_edges=budget, random_state=seed + 1000 * (leaf + 1)
            ).update(u[part], v[part], w[part])
            for leaf, part in enumerate(np.array_split(np.arange(len(u)), LEAVES))
        ]
        while len(leaves) > 1:
            leaves = [a.merge(b) for a, b in zip(leaves[::2], leaves[1::2], strict=True)]
        ways["merged"].append(leaves[0].snapshot())
    rows = float(np.mean([h.n_edges for h in ways["stream"]]))
    u, v, w = family.graph.edges()
    leverage = w * np.sum((ruler.basis[u] - ruler.basis[v]) ** 2, axis=1)
    for seed in range(REFERENCES * seeds):
        ways["exact"].append(sample(family.graph, leverage, rows, seed))
    for seed in range(seeds):
        ways["uniform"].append(sample(family.graph, np.ones(len(u)), rows, seed))
    found = {way: [ruler.epsilon(h) for h in graphs] for way, graphs in ways.items()}
    mean = {way: float(np.mean(values)) for way, values in found.items()}
    parts = family.graph.components()[0]
    return {
        "budget": budget,
        "seeds": seeds,
        "n_nodes": n,
        "n_edges": family.graph.n_edges,
        **{f"epsilon_{way}": value for way, value in mean.items()},
        **{
            f"rows_{way}": float(np.mean([h.n_edges for h in graphs]))
            for way, graphs in ways.items()
        },
        "stream_over_exact": mean["stream"] / mean["exact"],
        "merged_over_stream": mean["merged"] / mean["stream"],
        # Standard error of the first ratio, from the spread over the seeds.
        "error": mean["stream"] / mean["exact"] * math.hypot(
            *(np.std(found[way]) / mean[way] / math.sqrt(len(found[way]))
              for way in ("stream", "exact"))
        ),
        "disconnected": {
            way: sum(h.components()[0] > parts for h in graphs) for way, graphs in ways.items()
        },
    }  # fmt: skip


def sample(graph: Graph, weight: npt.NDArray[np.float64], rows: float, seed: int) -> Graph:
    """Toss independent coins with p = min(1, beta weight); beta gives ``rows`` on average."""
    low, high = 0.0, rows / weight[weight > 0].min()
    for _ in range(100):
        beta = 0.5 * (low + high)
        low, high = (low, beta) if np.minimum(1, beta * weight).sum() > rows else (beta, high)
    p = np.minimum(1, high * weight)
    kept = np.random.default_rng(seed).random(len(p)) < p
    u, v, w = graph.edges()
    return Graph.from_edges(u[kept], v[kept], w[kept] / p[kept], n_nodes=graph.n_nodes)


def show(figures: list[Figure]) -> None:
    """Print a Markdown table, with the number of runs in which H has more components than G."""
    print(
        "| family | order | rows per node | stream ε | exact ε | merged ε | uniform ε "
        "| stream / exact | merged / stream | uniform disconnected |"
    )
    print("|---" * 10 + "|")
    for f in figures:
        ways = " | ".join(f"{f['epsilon_' + way]:.3f}" for way in WAYS)
        marks = ["" if f[ratio] <= BAR else " (!)" for ratio in RATIOS]
        print(
            f"| {f['family']} | {f['order']} | {f['rows_stream'] / f['n_nodes']:.1f} | {ways} "
            f"| {f['stream_over_exact']:.2f} ± {f['error']:.2f}{marks[0]} "
            f"| {f['merged_over_stream']:.2f}{marks[1]} "
            f"| {f['disconnected']['uniform']} of {f['seeds']} |"
        )


if __name__ == "__main__":
    main()
