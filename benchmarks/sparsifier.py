"""Measure speed and memory of `StreamingSparsifier`.

``python -m benchmarks.sparsifier`` prints JSON lines. Each case runs in its own child:

- ``paper``: the whole pass over the paper's graph, with its edges in memory, compared with scipy's
  conversion of the same arrays to a symmetric CSR matrix; then coins alone, and a certificate;
- ``million``: random edges on a million nodes, made in batches, compared with reading them from
  Parquet;
- ``flat``: peak memory and cost per edge for longer and longer streams.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

if TYPE_CHECKING:
    from ohmlearn import StreamingSparsifier

Ends = npt.NDArray[np.int32]
BATCH = 1 << 22
CASES = ("paper", "million", "flat")
EPSILON = 0.8
ROWS_PER_NODE = 16
REPEATS = 3
LIMIT = 3600.0


def main() -> None:
    """Run the chosen cases one at a time, or print a table of earlier figures."""
    options = _options()
    if options.table:
        show([json.loads(line) for line in options.table.read_text().splitlines()])
    elif options.child:
        _child(options.child, options)
    else:
        for case in options.cases:
            sizes = {
                "paper": [options.neighbours],
                "million": [options.million],
                "flat": options.flat,
            }[case]
            for size in sizes:
                _run(case, int(size), options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--neighbours", type=int, default=4500, help="of the paper's graph")
    parser.add_argument("--million", type=float, default=2e8, help="edges on a million nodes")
    parser.add_argument("--parquet", type=float, default=5e7, help="rows of the file; scaled")
    parser.add_argument("--flat", nargs="+", type=float, default=[1e7, 1e8, 1e9])
    parser.add_argument("--table", type=Path, help="print the figures of this file and stop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(case: str, size: int, options: argparse.Namespace) -> None:
    print(f"{case}: {size:,}", file=sys.stderr, flush=True)
    arguments = ["--child", case, "--size", str(size), "--parquet", str(options.parquet)]
    for figure in run_child("benchmarks.sparsifier", arguments, LIMIT):
        if "end" not in figure:
            emit({"bench": "sparsifier", "case": case, **figure, "load": os.getloadavg()[0]})
        elif figure["end"] != "ok":
            emit({"bench": "sparsifier", "case": case, "status": figure["end"], **figure})


def _child(case: str, options: argparse.Namespace) -> None:
    if case == "paper":
        _paper(options.size)
    elif case == "million":
        emit({"way": "stream", **_pass(1_000_000, options.size)})
        emit({"way": "parquet", **_read_parquet(1_000_000, options.size, int(options.parquet))})
    else:
        emit(_pass(100_000, options.size))


def _paper(neighbours: int) -> None:
    from ohmlearn import StreamingSparsifier, certify, gallery

    graph = gallery.paper_knn(neighbours)
    n, (u, v, w) = graph.n_nodes, graph.edges()
    del graph
    edges = {"n_nodes": n, "n_edges": len(u)}

    order = np.random.default_rng(0).permutation(len(u))
    shuffled = u[order], v[order]
    del order

    def sparsify(u: Ends = u, v: Ends = v) -> StreamingSparsifier:
        return StreamingSparsifier(n_nodes=n, epsilon=EPSILON, random_state=0, n_jobs=1).update(
            u, v
        )

    def symmetric_csr(weights: npt.NDArray[np.floating], u: Ends = u, v: Ends = v) -> sp.csr_array:
        half = sp.coo_array((weights, (u, v)), shape=(n, n)).tocsr()
        return half + half.T

    # Run in turns, so that a change in the speed of the machine affects all.
    narrow = w.astype(np.float32)
    ways = {
        "stream": sparsify,
        "scipy float64": partial(symmetric_csr, w),
        "scipy float32": partial(symmetric_csr, narrow),
        "stream, shuffled": partial(sparsify, *shuffled),
        "scipy float64, shuffled": partial(symmetric_csr, w, *shuffled),
    }
    best: dict[str, Figure] = {}
    for _ in range(REPEATS):
        for way, work in ways.items():
            start = os.times()
            work()
            end = os.times()
            # A large part of scipy's time is system time, for fresh pages.
            spent = {"user_s": end.user - start.user, "system_s": end.system - start.system}
            figure = {"way": way, **edges, "cpu_s": sum(spent.values()), **spent}
            best[way] = min(best.get(way, figure), figure, key=lambda f: f["cpu_s"])
    for figure in best.values():
        emit(figure)
    sparsifier = sparsify()
    h, snapshot_cpu, _ = timed(sparsifier.snapshot)
    kept = {"rows": h.n_edges, "rows_share": h.n_edges / len(u)}
    emit({"way": "snapshot", **edges, "cpu_s": snapshot_cpu, **kept,
          "resamples": sparsifier.n_resamples_})  # fmt: skip
    for threads in (1, 2):
        emit({"way": "coins", **edges, "threads": threads, **_coins(sparsifier, u, v, threads)})
    batches = [(u[at : at + BATCH], v[at : at + BATCH]) for at in range(0, len(u), BATCH)]
    seen, cpu, _ = timed(lambda: certify(batches, h, random_state=0))
    emit({"way": "certificate", **edges, "cpu_s": cpu, "passes": seen.passes, **kept,
          "lower": seen.lower, "upper": seen.upper, "epsilon": seen.epsilon,
          "epsilon_bound": seen.epsilon_bound})  # fmt: skip


def _coins(warm: StreamingSparsifier, u: Ends, v: Ends, threads: int) -> Figure:
    """Measure edges per second of a sampler while its rows do not reach the capacity."""
    from ohmlearn import StreamingSparsifier

    nothing = StreamingSparsifier(n_nodes=warm.options.n_nodes, random_state=1)
    fresh = warm.copy(n_jobs=threads).merge(nothing)  # a merge resamples, so that there is room
    size, best, runs = len(u), math.inf, 0
    while runs < REPEATS:
        sparsifier = copy.deepcopy(fresh)
        resamples = sparsifier.n_resamples_
        _, _, wall = timed(partial(sparsifier.update, u[:size], v[:size]))
        if sparsifier.n_resamples_ > resamples:
            size //= 2
        else:
            best, runs = min(best, wall), runs + 1
    return {"edges": size, "wall_s": best, "edges_per_s": size / best}


def _random_edges(n: int, size: int) -> Iterator[tuple[Ends, Ends]]:
    rng = np.random.default_rng(0)
    for first in range(0, size, BATCH):
        u, v = rng.integers(0, n, (2, min(BATCH, size - first)), dtype=np.int32)
        yield u, v


def _pass(n: int, size: int) -> Figure:
    """Measure a pass over random edges with a budget; the time to make them is not counted."""
    from ohmlearn import StreamingSparsifier

    sparsifier = StreamingSparsifier(
        n_nodes=n, max_edges=ROWS_PER_NODE * n, random_state=0, n_jobs=1
    )
    cpu_s = 0.0
    baseline = reset_peak()
    for u, v in _random_edges(n, size):
        cpu_s += timed(partial(sparsifier.update, u, v))[1]
    pass_peak = peak_mib()
    h, snapshot_cpu, _ = timed(sparsifier.snapshot)
    return {
        "n_nodes": n,
        "n_edges": size,
        "cpu_s": cpu_s,
        "ns_per_edge": 1e9 * cpu_s / size,
        "snapshot_cpu_s": snapshot_cpu,
        "rows": h.n_edges,
        "resamples": sparsifier.n_resamples_,
        "epsilon_nominal": sparsifier.epsilon_nominal_,
        "rss_baseline_mib": baseline,
        "rss_pass_mib": pass_peak,
        "rss_peak_mib": peak_mib(),  # with the snapshot
    }


def _read_parquet(n: int, size: int, rows: int) -> Figure:
    """Measure reading the edges from Parquet in batches, on ``rows`` of them, and scale."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = min(rows, size)
    schema = pa.schema({"u": pa.int32(), "v": pa.int32()})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        with pq.ParquetWriter(path, schema) as writer:
            for u, v in _random_edges(n, rows):
                writer.write_table(pa.table({"u": u, "v": v}, schema), row_group_size=1 << 20)
        total = 0

        def read() -> None:
            nonlocal total
            total = 0
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=1 << 20, use_threads=False):
                    u, v = (batch.column(name).to_numpy() for name in "uv")
                    total += len(u) + len(v)

        cpu_s = min(timed(read)[1] for _ in range(REPEATS))
        assert total == 2 * rows
        return {
            "n_nodes": n,
            "n_edges": size,
            "cpu_s": cpu_s * size / rows,
            "ns_per_edge": 1e9 * cpu_s / rows,
            "rows_read": rows,
            "file_mib": path.stat().st_size / 2**20,
            "pyarrow": pa.__version__,
        }


def _split(figure: Figure) -> str:
    return f"{figure['cpu_s']:.2f} ({figure['user_s']:.2f} + {figure['system_s']:.2f})"


def show(figures: list[Figure]) -> None:
    """Print the figures with their targets."""
    ways = {(f["case"], f.get("way"), f.get("threads")): f for f in figures}
    print("| what | figure | target |\n|---|---|---|")

    def row(what: str, figure: str, bar: str = "") -> None:
        print(f"| {what} | {figure} | {bar} |")

    if ("paper", "stream", None) in ways:
        ours = ways["paper", "stream", None]
        row("paper's graph, edges", f"{ours['n_edges']:,}")
        row("whole pass, CPU s (user + system)", _split(ours))
        for kind in ("scipy float64", "scipy float32"):
            peer = ways["paper", kind, None]
            row(f"{kind}: CSR, symmetric, CPU s", _split(peer))
            row("ours / that", f"{ours['cpu_s'] / peer['cpu_s']:.2f}", "<= 0.3")
        mixed, peer = (
            ways["paper", f"{way}, shuffled", None] for way in ("stream", "scipy float64")
        )
        row("edges in random order: whole pass, CPU s", _split(mixed))
        row("scipy float64 on these", _split(peer))
        row("ours / that", f"{mixed['cpu_s'] / peer['cpu_s']:.2f}", "<= 0.3")
        one, two = (ways["paper", "coins", t]["edges_per_s"] for t in (1, 2))
        row("coins alone, M edges/s, one thread", f"{one / 1e6:.0f}", ">= 100")
        row("two threads / one", f"{two / one:.2f}", ">= 1.5")
        seen = ways["paper", "certificate", None]
        row("rows kept", f"{seen['rows']:,} ({100 * seen['rows_share']:.2f}%)", "<= 1.0%")
        row("measured epsilon", f"{seen['epsilon']:.3f} (at most {seen['epsilon_bound']:.3f})",
            f"<= {EPSILON}")  # fmt: skip
    if ("million", "stream", None) in ways:
        ours, peer = (ways["million", way, None] for way in ("stream", "parquet"))
        row(f"{ours['n_edges']:,} edges, 10^6 nodes: CPU s", f"{ours['cpu_s']:.1f}")
        row("peak RSS of the pass, MiB", f"{ours['rss_pass_mib']:.0f}", "<= 2048")
        row("and with a snapshot", f"{ours['rss_peak_mib']:.0f}", "<= 2048")
        row("the snapshot's CPU s", f"{ours['snapshot_cpu_s']:.1f}")
        scaled = f"reading Parquet, CPU s (from {peer['rows_read']:,} rows)"
        row(scaled, f"{peer['cpu_s']:.1f}")
        row("ours / that", f"{ours['cpu_s'] / peer['cpu_s']:.1f}", "<= 5")
    flat = [f for f in figures if f["case"] == "flat" and "rss_peak_mib" in f]
    for f in flat:
        row(f"10^5 nodes, {f['n_edges']:,} edges: peak MiB, ns per edge",
            f"{f['rss_peak_mib']:.0f}, {f['ns_per_edge']:.1f}", "flat, falling")  # fmt: skip


if __name__ == "__main__":
    main()
