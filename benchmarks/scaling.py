"""Measure how costs grow: labelling over nodes and over edges, the solver over nodes.

``python -m benchmarks.scaling`` prints one JSON line per figure. Each runs in its own child.

- ``nodes``: streams of 100 edges per node (mean degree 200) with five groups. Nine tenths of the
  edges are inside groups, and each group has ten labels. Ours reads a Parquet file, and the time to
  read it is counted. Peers get the stored graph in the form they take; the time to build it is not
  counted.
- ``edges``: the same on 30,000 nodes, with growing numbers of edges.
- ``solver``: one right-hand side on square grids.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import graphs, solver, solvers
from benchmarks.label_methods import METHODS, Edges, warm_up
from benchmarks.machine import version
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

GROUPS, INSIDE, LABELS = 5, 0.9, 10
PER_NODE = 100
FIXED_NODES = 30_000
NODES = (1_000, 10_000, 100_000)
EDGES = (300_000, 3_000_000, 30_000_000, 100_000_000)
SIDES = (100, 316, 1000)
PEERS = ("LabelSpreading", "Poisson", "Diffusion", "harmonic_function")
STORED_EDGES = 30_000_000  # limit for peers
PYTHON_EDGES = 1_000_000  # limit for networkx, which would take minutes for more
BATCH = 1 << 20
MEMORY_GIB = 8.0


def random_batches(n: int, m: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield ends of edges; the group of a node is its number modulo the number of groups."""
    rng = np.random.default_rng(0)
    for first in range(0, m, BATCH):
        size = min(BATCH, m - first)
        u = rng.integers(0, n, size, dtype=np.int32)
        v = rng.integers(0, n // GROUPS, size, dtype=np.int32) * GROUPS
        v += np.where(rng.random(size) < INSIDE, u, rng.integers(0, GROUPS, size)) % GROUPS
        apart = u != v
        yield u[apart], v[apart].astype(np.int32)


def given_labels(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups of all nodes, and labels for ten nodes of each group, -1 elsewhere."""
    truth = np.arange(n) % GROUPS
    y = np.full(n, -1)
    y[: GROUPS * LABELS] = truth[: GROUPS * LABELS]
    return truth, y


def write_edges(n: int, m: int, path: Path) -> None:
    """Write the stream to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"src": pa.int32(), "dst": pa.int32()})
    with pq.ParquetWriter(path, schema) as writer:
        for u, v in random_batches(n, m):
            writer.write_table(pa.table({"src": u, "dst": v}, schema))


def measure_ours(n: int, path: Path, passes: int, threads: int) -> Figure:
    """Measure ours from the file to the labels."""
    import pyarrow as pa

    from ohmlearn import HFSClassifier, read_edges
    from ohmlearn.nodes import NodeTable

    pa.set_cpu_count(threads)
    warm_up("3 passes")
    truth, y = given_labels(n)
    nodes = NodeTable()
    nodes.add(np.arange(n))  # otherwise nodes are numbered in the order they appear
    model = HFSClassifier(passes=passes, random_state=0, n_jobs=threads)
    baseline = reset_peak()
    _, cpu, wall = timed(lambda: model.fit_edges(read_edges(path, nodes=nodes), y))
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "memory_mib": peak_mib() - baseline,
        "kept": model.sparsifier_.snapshot().n_edges,
        "accuracy": float(np.mean((model.transduction_ == truth)[y < 0])),
    }


def measure_peer(n: int, path: Path, name: str) -> Figure:
    """Measure a peer from the stored graph, whose memory is counted, to the labels."""
    import pyarrow.parquet as pq

    truth, y = given_labels(n)
    warm_up(name)
    baseline = reset_peak()
    table = pq.read_table(path)
    u, v = (table[key].to_numpy() for key in ("src", "dst"))
    method = METHODS[name]
    graph = method.prepare(Edges(u, v, np.ones(len(u)), n))
    del table, u, v
    reset_peak()
    found, cpu, wall = timed(lambda: method.label(graph, y, 0))
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "memory_mib": peak_mib() - baseline,
        "accuracy": float(np.mean((found == truth)[y < 0])),
    }


def main() -> None:
    """Run the chosen curves, or one measurement in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    curves = ("nodes", "edges", "solver")
    parser.add_argument("--curves", nargs="+", choices=curves, default=curves)
    parser.add_argument("--nodes", nargs="+", type=int, default=NODES)
    parser.add_argument("--edges", nargs="+", type=int, default=EDGES)
    parser.add_argument("--sides", nargs="+", type=int, default=SIDES)
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds for each child")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options)
        return
    with tempfile.TemporaryDirectory(prefix="ohmlearn-scaling-") as name:
        folder = Path(name)
        if "nodes" in options.curves:
            for n in options.nodes:
                _labels("nodes", n, PER_NODE * n, folder, options.limit)
        if "edges" in options.curves:
            for m in options.edges:
                _labels("edges", FIXED_NODES, m, folder, options.limit)
        if "solver" in options.curves:
            for side in options.sides:
                _solver(side, folder, options.limit)


def _child(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # some peers do not converge
    n = options.nodes[0]
    if options.child in PEERS:
        emit(measure_peer(n, options.path, options.child))
    else:
        emit(measure_ours(n, options.path, int(options.child), options.threads))


def _labels(curve: str, n: int, m: int, folder: Path, limit: float) -> None:
    path = folder / "edges.parquet"
    write_edges(n, m, path)
    # Argument of the child, name of the method, number of threads.
    ours = [("1", "1 pass", 1), ("1", "1 pass", 2), ("3", "3 passes", 1)]
    for child, method, threads in [*ours, *((name, name, 1) for name in PEERS)]:
        package = METHODS[method].package
        head: Figure = {"bench": "scaling", "curve": curve, "n_nodes": n, "n_edges": m}
        head |= {"method": method, "threads": threads, "version": version(package)}
        if head["version"] is None:
            emit({**head, "status": "missing"})
            continue
        if m > (PYTHON_EDGES if package == "networkx" else STORED_EDGES) and package != "ohmlearn":
            emit({**head, "status": "not run", "note": "the stored graph is too large"})
            continue
        print(f"{curve}: {n:,} nodes, {m:,} edges: {method}, {threads} thread(s)", file=sys.stderr)
        arguments = ["--child", child, "--nodes", str(n), "--path", str(path)]
        arguments += ["--threads", str(threads)]
        for figure in run_child(
            "benchmarks.scaling", arguments, limit, threads, memory_gib=MEMORY_GIB
        ):
            if "end" not in figure:
                emit({**head, "status": "ok", **figure})
            elif figure["end"] != "ok":
                emit({**head, "status": figure["end"], "note": figure["note"]})


def _solver(side: int, folder: Path, limit: float) -> None:
    path = graphs.store(f"grid_{side}x{side}", folder)
    runs = [*((name, 1) for name in solvers.PEERS), (solver.OURS, 1), (solver.OURS, 2)]
    for name, threads in runs:
        print(f"grid {side} x {side}: {name}, {threads} thread(s)", file=sys.stderr)
        head: Figure = {"bench": "scaling", "curve": "solver", "n_nodes": side * side}
        head |= {"solver": name, "threads": threads, "version": solvers.version(name)}
        if head["version"] is None:
            emit({**head, "status": "missing"})
            continue
        for figure in solver.run_pair(name, path, limit, threads, [1]):
            emit({**head, **figure})


if __name__ == "__main__":
    main()
