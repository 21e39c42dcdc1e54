"""Sparsifiers of the edges since any time, from one state: accuracy, rows, time and memory.

``python -m benchmarks.windows`` prints one JSON line per figure:

- the true epsilon of windows of several lengths, from dense eigenvalues, for streams of several
  families, and the rows of the state over those of one sparsifier of the whole stream;
- edges per second of CPU time, beside those of one sparsifier, on random edges;
- peak memory of streams of several lengths with a horizon, in child processes.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import numpy.typing as npt

from benchmarks import families
from benchmarks.families import Ruler
from benchmarks.measure import emit, peak_mib, reset_peak, run_child
from ohmlearn import Graph, StreamingSparsifier

Stream = tuple[int, npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]

DENSE = ("paper", "blocks", "barbell", "attachment", "6 decades", "complete")
MADE = ("drift", "oldest bridge", "newest bridge", "bursts", "then a ring", "then a ladder")
SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the stream
SIZES = ((10_000, 20_000_000), (100_000, 40_000_000))  # nodes, edges
LENGTHS = (10_000_000, 100_000_000, 1_000_000_000)
HORIZON = 5_000_000  # edges
BATCH = 1 << 22


def make_stream(name: str, seed: int) -> Stream:
    """Return the edges of a family in random order, or one of the streams made for windows."""
    if name not in MADE:
        family = families.make(name)
        return family.graph.n_nodes, *family.stream(family.orders[0], seed)
    random = np.random.default_rng(seed)
    make = {"drift": _drift, "bursts": _bursts, "then a ring": _ring, "then a ladder": _ladder}
    u, v = make.get(name, _two_halves)(random)
    if name.endswith("bridge"):  # three edges between the halves, within a tenth of the stream
        at = random.integers(0, len(u) // 10, 3)
        at = at if name == "oldest bridge" else len(u) - at
        u, v = np.insert(u, at, [0, 1, 2]), np.insert(v, at, [200, 201, 202])
    return 400, u.astype(np.int32), v.astype(np.int32), np.ones(len(u))


def _two_halves(random: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    u, v = np.triu_indices(200, 1)
    order = random.permutation(2 * len(u))
    return np.append(u, u + 200)[order], np.append(v, v + 200)[order]


def _drift(random: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    """Four groups; now and then some nodes change their group."""
    group, parts = np.arange(400) // 100, []
    for _ in range(40):
        group[random.integers(0, 400, 10)] = random.integers(0, 4, 10)
        u, v = random.integers(0, 400, (2, 10_000))
        inside = (u != v) & ((group[u] == group[v]) | (random.random(10_000) < 0.01))
        parts.append((u[inside], v[inside]))
    u, v = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return u, v


def _bursts(random: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    """Four groups, which are active one after the other, with a few edges to all nodes."""
    parts = []
    for group in range(4):
        u, v = np.triu_indices(100, 1)
        order = random.permutation(len(u))
        start = random.integers(0, 400, 30)
        parts.append((u[order] + 100 * group, v[order] + 100 * group))
        parts.append((start, (start + 1 + random.integers(0, 399, 30)) % 400))
    u, v = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return u, v


def _ring(
    random: np.random.Generator, steps: tuple[int, ...] = (1, 2, 3)
) -> tuple[npt.NDArray[np.int64], ...]:
    """Random pairs; in the last fifth, near neighbours on a ring, and 20 long edges at first."""
    u = random.integers(0, 400, 150_000)
    far, near = random.integers(1, 400, len(u)), random.choice(steps, len(u))
    near[random.integers(120_000, 123_000, 20)] = random.integers(1, 400, 20)
    return u, (u + np.where(np.arange(len(u)) < 120_000, far, near)) % 400


def _ladder(random: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    """Like _ring; opposite nodes are neighbours, so it is a strip of two rows, twisted once."""
    return _ring(random, (1, 200))


def measure_epsilon(name: str, epsilon: float, seeds: int) -> None:
    """Print how far the windows of one family are from their graphs."""
    found, rows, plain = [], [], []
    for seed in range(seeds):
        n, u, v, w = make_stream(name, seed)
        kept = StreamingSparsifier(
            n_nodes=n, epsilon=epsilon, horizon=math.inf, random_state=seed
        ).update(u, v, w, np.arange(len(u)))
        since = [round((1 - share) * len(u)) for share in SHARES]
        windows = [kept.snapshot(since=start) for start in since]
        graphs = [Graph.from_edges(u[a:], v[a:], w[a:], n_nodes=n) for a in since]
        found.append([Ruler(g).epsilon(h) for g, h in zip(graphs, windows, strict=True)])
        rows.append(windows[-1].n_edges)
        single = StreamingSparsifier(n_nodes=n, epsilon=epsilon, random_state=seed)
        plain.append(single.update(u, v, w).snapshot().n_edges)
    emit(
        {
            "bench": "windows", "case": "epsilon", "family": name, "epsilon": epsilon,
            "runs": seeds, "edges": len(u), "nodes": n,
            "met": np.mean(np.array(found) <= epsilon, axis=0).round(3).tolist(),
            "mean": np.mean(found, axis=0).round(3).tolist(),
            "most": np.max(found, axis=0).round(3).tolist(),
            "rows_per_node": round(float(np.mean(rows)) / n, 1),
            "rows_ratio": round(float(np.sum(rows) / np.sum(plain)), 2),
        }
    )  # fmt: skip


def feed(
    kept: StreamingSparsifier, n: int, n_edges: int, seed: int, *, timed: bool = True
) -> float:
    """Give random edges to a sparsifier; return the CPU seconds it has taken."""
    random, seconds = np.random.default_rng(seed), 0.0
    for first in range(0, n_edges, BATCH):
        size = min(BATCH, n_edges - first)
        u, v = random.integers(0, n, (2, size), dtype=np.int32)
        t = np.arange(first, first + size, dtype=float)
        start = time.process_time()
        kept.update(u, v, None, t if timed else None)
        seconds += time.process_time() - start
    return seconds


def measure_speed(n: int, n_edges: int) -> None:
    """Print edges per second with times and without."""
    windows = StreamingSparsifier(n_nodes=n, epsilon=0.8, horizon=math.inf, random_state=0)
    plain = StreamingSparsifier(n_nodes=n, epsilon=0.8, random_state=0)
    seconds = feed(windows, n, n_edges, 0)
    start = time.process_time()
    h = windows.snapshot()
    snapshot = time.process_time() - start
    plain_seconds = feed(plain, n, n_edges, 0, timed=False)
    emit(
        {
            "bench": "windows", "case": "speed", "nodes": n, "edges": n_edges,
            "edges_per_s": round(n_edges / seconds), "plain_per_s": round(n_edges / plain_seconds),
            "snapshot_s": round(snapshot, 2), "resamples": windows.n_resamples_,
            "rows_per_node": round(h.n_edges / n, 1),
            "plain_rows_per_node": round(plain.snapshot().n_edges / n, 1),
        }
    )  # fmt: skip


def measure_memory(n_edges: int) -> None:
    """Print the peak memory of a stream with a horizon."""
    n = 10_000
    feed(StreamingSparsifier(n_nodes=n), n, 1000, 0, timed=False)
    baseline = reset_peak()
    kept = StreamingSparsifier(n_nodes=n, epsilon=0.8, horizon=float(HORIZON), random_state=0)
    seconds = feed(kept, n, n_edges, 0)
    rows = kept.snapshot().n_edges
    emit(
        {
            "bench": "windows", "case": "memory", "nodes": n, "edges": n_edges,
            "horizon_edges": HORIZON, "cpu_s": round(seconds, 1), "rows_per_node": rows / n,
            "memory_mib": round(peak_mib() - baseline, 1),
        }
    )  # fmt: skip


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.8])
    parser.add_argument("--families", nargs="*", default=[*DENSE, *MADE])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        measure_memory(options.child)
        return
    for name in options.families:
        for epsilon in options.epsilon:
            measure_epsilon(name, epsilon, options.seeds)
    for size in () if options.no_speed else SIZES:
        measure_speed(*size)
    for length in options.lengths:
        for figure in run_child("benchmarks.windows", ["--child", str(length)], 3600.0):
            if "end" not in figure:
                emit(figure)


if __name__ == "__main__":
    main()
