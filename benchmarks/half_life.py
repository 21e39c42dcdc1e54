"""Measure sparsifiers of streams whose edges fade: quality at equal rows, and cost of an edge.

``python -m benchmarks.half_life`` prints a JSON line per family and half-life. Each stream has 20
copies of the graph, each in a random order; an edge arrives in each unit of time. Means over seeds:

- ``epsilon``: of the sparsifier at the end of the stream, compared with the faded graph;
- ``epsilon_plain``: of one without half-life that gets the faded weights, in a random order;
- ``epsilon_whole``: of one without half-life, compared with the graph that has not faded.

All have the same budget of rows. ``--cost`` measures CPU time per edge instead, on random graphs.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.families import FAMILIES, Family, Ruler
from benchmarks.measure import Figure, emit
from ohmlearn import Graph, StreamingSparsifier

DENSE = ("paper", "blocks", "barbell", "attachment", "6 decades", "complete")
SHARES = (math.inf, 1 / 3, 1 / 10, 1 / 33)  # half-lives, as shares of the stream
COPIES = 20
BATCH = 1 << 20


def main() -> None:
    """Measure each family and half-life, or the cost of an edge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(DENSE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rows", type=float, default=20.0, help="budget per node")
    parser.add_argument("--cost", action="store_true", help="measure the cost of an edge")
    parser.add_argument("--nodes", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--edges", type=int, default=20_000_000)
    options = parser.parse_args()
    threadpool_limits(1)
    if options.cost:
        for n in options.nodes:
            for weighted in (False, True):
                for share in (None, 1e3, 1 / 3, 1 / 10):
                    emit({"bench": "half_life_cost", **cost(n, options.edges, weighted, share)})
        return
    for name in options.families:
        family = FAMILIES[name]()
        budget = round(options.rows * family.graph.n_nodes)
        whole = math.nan
        for share in SHARES:
            print(f"{name}, half-life {share:.3g} of the stream", file=sys.stderr)
            figure = compare(family, share, budget, options.seeds)
            if math.isinf(share):
                whole = figure["epsilon"]
            figure["epsilon_whole"] = whole
            known = None if math.isinf(share) else share  # JSON has no infinity
            emit({"bench": "half_life", "family": name, "share": known, **figure})


def compare(family: Family, share: float, budget: int, seeds: int) -> Figure:
    """Mean epsilon of the sparsifier of a stream, with and without a half-life."""
    n, found, plain, rows = family.graph.n_nodes, [], [], []
    for seed in range(seeds):
        u, v, w = repeat(family, seed)
        t = np.arange(len(u), dtype=np.float64)
        make = partial(StreamingSparsifier, n_nodes=n, max_edges=budget, random_state=seed)
        weights = w * np.exp2((t - t[-1]) / (share * len(u)))
        ruler = Ruler(Graph.from_edges(u, v, weights, n_nodes=n))
        fading = make(half_life=share * len(u)) if share < math.inf else make()
        h = fading.update(u, v, w, t).snapshot()
        found.append(ruler.epsilon(h))
        rows.append(h.n_edges)
        order = np.random.default_rng(seed).permutation(len(u))
        kept = make().update(u[order], v[order], weights[order])
        plain.append(ruler.epsilon(kept.snapshot()))
    ratio = float(np.mean(found) / np.mean(plain))
    spread = math.hypot(*(np.std(x) / np.mean(x) / math.sqrt(seeds) for x in (found, plain)))
    return {
        "seeds": seeds,
        "budget": budget,
        "rows": float(np.mean(rows)),
        "epsilon": float(np.mean(found)),
        "epsilon_plain": float(np.mean(plain)),
        "ratio": ratio,
        "error": ratio * spread,
    }


def repeat(family: Family, seed: int) -> tuple[Any, Any, Any]:
    """Return the edges of a family again and again, each time in another order."""
    parts = [family.stream("random", COPIES * seed + copy) for copy in range(COPIES)]
    u, v, w = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return u, v, w


def cost(n: int, n_edges: int, weighted: bool, share: float | None, repeats: int = 3) -> Figure:
    """CPU time per edge of a random graph, the best of several runs; None: no half-life."""
    rng = np.random.default_rng(1)
    u, v = (rng.integers(0, n, n_edges).astype(np.int32) for _ in range(2))
    w = rng.uniform(0.5, 2.0, n_edges).astype(np.float32) if weighted else None
    t = np.arange(n_edges, dtype=np.float64)
    best = math.inf
    for _ in range(repeats):
        half_life = None if share is None else share * n_edges
        kept = StreamingSparsifier(n_nodes=n, random_state=0, half_life=half_life)
        start = time.process_time()
        for first in range(0, n_edges, BATCH):
            part = slice(first, first + BATCH)
            kept.update(u[part], v[part], None if w is None else w[part], t[part])
        best = min(best, time.process_time() - start)
    return {
        "n_nodes": n,
        "n_edges": n_edges,
        "weighted": weighted,
        "share": share,
        "ns_per_edge": 1e9 * best / n_edges,
        "resamples": kept.n_resamples_,
        "rows": kept.n_rows_,
    }


if __name__ == "__main__":
    main()
