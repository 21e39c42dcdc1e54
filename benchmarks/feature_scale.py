"""Time and memory of `GraphFeatureClassifier` at a million nodes.

``python -m benchmarks.feature_scale`` makes a random graph of five groups and noisy features, and
labels 100 nodes of each group. One JSON line per case has the seconds of a fit with the defaults
and the peak memory of the whole process. The cases vary the number of columns and the number of
edges, one at a time, so that the growth with each can be read off. Each case runs in its own child
process, which loads the graph and the features from files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.features import draw, read
from benchmarks.measure import Figure, emit, peak_mib, run_child, timed
from benchmarks.results import count, memory, seconds, table

GROUPS, PER_CLASS, NOISE = 5, 100, 4.0
WITHIN = 0.6  # share of the edges that stay within a group
LIMIT = 3600.0


def make_data(folder: Path, n_nodes: int, n_edges: int, n_columns: int) -> None:
    """Write edges, features in float32 and classes; features are means of groups plus noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, GROUPS, n_nodes)
    np.save(folder / "y.npy", y)
    members = [np.flatnonzero(y == group) for group in range(GROUPS)]
    u = rng.integers(0, n_nodes, n_edges, dtype=np.int32)
    v = rng.integers(0, n_nodes, n_edges, dtype=np.int32)
    within = rng.random(n_edges) < WITHIN
    for group, nodes in enumerate(members):
        chosen = np.flatnonzero(within & (y[u] == group))
        v[chosen] = nodes[rng.integers(0, len(nodes), len(chosen))]
    different = u != v
    np.save(folder / "u.npy", u[different])
    np.save(folder / "v.npy", v[different])
    X = np.lib.format.open_memmap(
        folder / "X.npy", mode="w+", dtype=np.float32, shape=(n_nodes, n_columns)
    )
    for column in range(n_columns):
        means = rng.standard_normal(GROUPS)
        X[:, column] = means[y] + NOISE * rng.standard_normal(n_nodes)
    X.flush()


def measure(options: argparse.Namespace) -> None:
    """Print the figures of one case."""
    from ohmlearn import Graph, GraphFeatureClassifier

    warnings.simplefilter("ignore")
    y, X = (np.load(options.path / f"{name}.npy") for name in ("y", "X"))

    def build() -> Graph:  # the arrays of edges are freed when it returns
        u, v = (np.load(options.path / f"{name}.npy") for name in ("u", "v"))
        return Graph.from_edges(u, v, n_nodes=len(y))

    graph, _, graph_s = timed(build)
    given = draw(y, PER_CLASS, 0)
    start = peak_mib()
    model = GraphFeatureClassifier(graph=graph, random_state=0, n_jobs=options.threads)
    found, cpu, wall = timed(lambda: model.fit(X, given).transduction_)
    test = given < 0
    emit(
        {
            "different_edges": graph.n_edges,
            "graph_s": round(graph_s, 2),
            "cpu_s": round(cpu, 2),
            "wall_s": round(wall, 2),
            "accuracy": round(float(np.mean(found[test] == y[test])), 4),
            "peak_before_mib": round(start, 1),
            "process_mib": round(peak_mib(), 1),
        }
    )


def growth(sizes: list[float], values: list[float]) -> float:
    """Return the slope of log(value) over log(size): 1 is linear.

    Examples
    --------
    >>> round(growth([1, 2, 4], [3, 6, 12]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def show(path: Path) -> None:
    """Print a table of the cases, and the growth with columns and with edges."""
    figures = [f for f in read(path) if f.get("status") == "ok"]
    rows = [
        [count(f["edges"]), str(f["columns"]), seconds(f["wall_s"]), seconds(f["cpu_s"]),
         memory(f["process_mib"]), f"{f['accuracy']:.3f}"]
        for f in figures
    ]  # fmt: skip
    header = ["edges", "columns", "by the clock", "CPU time", "peak memory", "accuracy"]
    print(table(header, rows))
    for varied, fixed in (("columns", "edges"), ("edges", "columns")):
        part = [f for f in figures if f[fixed] == max(g[fixed] for g in figures)]
        if len({f[varied] for f in part}) > 1:
            slope = growth([f[varied] for f in part], [f["cpu_s"] for f in part])
            print(f"CPU time grows as {varied}^{slope:.2f}")


def main() -> None:
    """Run all cases, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=float, default=1e6)
    parser.add_argument("--edges", type=float, nargs="+", default=[2.5e6, 5e6, 1e7])
    parser.add_argument("--columns", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--done", type=Path, help="earlier output whose cases are left out")
    parser.add_argument("--table", type=Path, help="show figures from this file instead")
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    if options.path:
        return measure(options)
    done = read(options.done) if options.done and options.done.exists() else []
    cases = [(max(options.edges), c) for c in options.columns]
    cases += [(m, max(options.columns)) for m in options.edges if m < max(options.edges)]
    for n_edges, n_columns in cases:
        _run(int(n_edges), n_columns, done, options)
    return None


def _run(n_edges: int, n_columns: int, done: list[Figure], options: argparse.Namespace) -> None:
    case: Figure = {"bench": "feature_scale", "nodes": int(options.nodes), "edges": n_edges}
    case |= {"columns": n_columns, "threads": options.threads}
    if any({**case, "status": "ok"}.items() <= f.items() for f in done):
        return
    print(f"{n_edges} edges, {n_columns} columns", file=sys.stderr, flush=True)
    figure: Figure = {}
    with tempfile.TemporaryDirectory() as name:
        make_data(Path(name), int(options.nodes), n_edges, n_columns)
        arguments = ["--path", name, "--threads", str(options.threads)]
        for part in run_child("benchmarks.feature_scale", arguments, LIMIT, options.threads):
            figure |= part
    emit({**case, "status": figure.pop("end"), **figure, "load": round(os.getloadavg()[0], 2)})


if __name__ == "__main__":
    main()
