"""Time and memory of graph and features together at a million nodes.

``python -m benchmarks.feature_scale`` makes a random graph of five groups and noisy features, and
labels 100 nodes of each group. One JSON line per case has the seconds of each step and the peak
memory of the whole process. The cases vary the number of columns and the number of edges, one at a
time, so that the growth with each can be read off. Each case runs in its own child process, which
loads the graph and the features from files.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.feature_methods import linear_model
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


def fit_prototype(graph: Any, X: np.ndarray, given: np.ndarray, threads: int) -> Figure:
    """Smooth the features, fit logistic regression, smooth its probabilities."""
    from ohmlearn.features import smooth

    known = given >= 0
    options: Figure = {"random_state": 0, "n_jobs": threads}

    def shares_of_classes() -> tuple[np.ndarray, float]:
        smoothed, _, wall = timed(lambda: smooth(graph, X, 9.0, **options))
        base = linear_model(smoothed, sparse=False).fit(smoothed[known], given[known])
        return base.predict_proba(smoothed), wall

    (shares, smooth_s), cpu, wall = timed(shares_of_classes)
    shares[known] = np.eye(shares.shape[1])[given[known]]
    last, last_cpu, last_wall = timed(lambda: smooth(graph, shares, 4.0, **options))
    return {
        "found": last.argmax(axis=1),
        "smooth_s": smooth_s,
        "base_s": wall - smooth_s,
        "last_s": last_wall,
        "cpu_s": cpu + last_cpu,
        "wall_s": wall + last_wall,
    }


def fit_ours(graph: Any, X: np.ndarray, given: np.ndarray, threads: int) -> Figure:
    """Fit the whole estimator."""
    from ohmlearn import GraphFeatureClassifier

    model = GraphFeatureClassifier(
        linear_model(X, sparse=False), graph=graph, random_state=0, n_jobs=threads
    )
    _, cpu, wall = timed(lambda: model.fit(X, given))
    return {"found": np.asarray(model.transduction_), "cpu_s": cpu, "wall_s": wall}


FITS = {"prototype": fit_prototype, "GraphFeatureClassifier": fit_ours}


def measure(options: argparse.Namespace) -> None:
    """Print the figures of one case."""
    from ohmlearn import Graph

    warnings.simplefilter("ignore")
    y, X = (np.load(options.path / f"{name}.npy") for name in ("y", "X"))

    def build() -> Graph:  # the arrays of edges are freed when it returns
        u, v = (np.load(options.path / f"{name}.npy") for name in ("u", "v"))
        return Graph.from_edges(u, v, n_nodes=len(y))

    graph, _, graph_s = timed(build)
    given = draw(y, PER_CLASS, 0)
    start = peak_mib()
    figure = FITS[options.method](graph, X, given, options.threads)
    found = figure.pop("found")
    test = given < 0
    emit(
        {
            "different_edges": graph.n_edges,
            "graph_s": round(graph_s, 2),
            **{key: round(value, 2) for key, value in figure.items()},
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
        [f["method"], count(f["edges"]), str(f["columns"]), seconds(f["wall_s"]),
         memory(f["process_mib"]), f"{f['accuracy']:.3f}"]
        for f in figures
    ]  # fmt: skip
    print(table(["method", "edges", "columns", "wall time", "peak memory", "accuracy"], rows))
    for method in dict.fromkeys(f["method"] for f in figures):
        own = [f for f in figures if f["method"] == method]
        for varied, fixed in (("columns", "edges"), ("edges", "columns")):
            part = [f for f in own if f[fixed] == max(g[fixed] for g in own)]
            if len({f[varied] for f in part}) > 1:
                slope = growth([f[varied] for f in part], [f["wall_s"] for f in part])
                print(f"{method}: time grows as {varied}^{slope:.2f}")


def main() -> None:
    """Run all cases, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=float, default=1e6)
    parser.add_argument("--edges", type=float, nargs="+", default=[2.5e6, 5e6, 1e7])
    parser.add_argument("--columns", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--methods", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--done", type=Path, help="earlier output whose cases are left out")
    parser.add_argument("--table", type=Path, help="show figures from this file instead")
    parser.add_argument("--method", choices=FITS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        return show(options.table)
    if options.method:
        return measure(options)
    done = read(options.done) if options.done and options.done.exists() else []
    cases = [(max(options.edges), c) for c in options.columns]
    cases += [(m, max(options.columns)) for m in options.edges if m < max(options.edges)]
    for n_edges, n_columns in cases:
        _run(int(n_edges), n_columns, done, options)
    return None


def _run(n_edges: int, n_columns: int, done: list[Figure], options: argparse.Namespace) -> None:
    import ohmlearn

    head = {"bench": "feature_scale", "nodes": int(options.nodes), "edges": n_edges}
    head |= {"columns": n_columns, "threads": options.threads}
    cases = [{**head, "method": method} for method in options.methods]
    ended = [f for f in done if f.get("status") == "ok"]
    cases = [case for case in cases if not any(case.items() <= f.items() for f in ended)]
    if not cases:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder, int(options.nodes), n_edges, n_columns)
        for case in cases:
            if case["method"] not in ("prototype", *dir(ohmlearn)):
                emit({**case, "status": "missing"})
                continue
            print(f"{n_edges} edges, {n_columns} columns", file=sys.stderr, flush=True)
            figure: Figure = {"wall_s": math.inf}
            arguments = ["--method", str(case["method"]), "--path", name]
            arguments += ["--threads", str(options.threads)]
            for part in run_child(
                "benchmarks.feature_scale", arguments, LIMIT, threads=options.threads
            ):
                figure |= part
            emit({**case, "status": figure.pop("end"), **figure})


if __name__ == "__main__":
    main()
