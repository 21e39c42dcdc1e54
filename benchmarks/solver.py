"""Compare Laplacian solvers: ``python -m benchmarks.solver`` prints one JSON line per figure.

Each pair (graph, solver) runs in its own child on one thread; see README.md for the fields.
``--ready`` measures real graphs from a ready-made scipy matrix to the answer, beside scipy's
conjugate gradients with the diagonal, set-up and conversion included, best of many runs in turn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import graphs, solvers, table
from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

TARGET = 1e-8
SLACK = 1.02  # the true residual may be slightly above the recursive one
COLUMNS = 16
OURS = "ohmlearn"
REPEAT_BELOW_S = 5.0
COLUMNS_S = 10.0  # if all columns would take longer, three are solved and the rest is projected
THREADED = ("apxchol", "pyamgcl")  # peers that use several threads
LARGE_NODES = 100_000  # graphs on which they are also measured with two threads
MEMORY_GIB = 12.0
READY = (
    "power_grid", "road_minnesota", "fem_airfoil1", "fem_4elt", "email_eu_core",
    "snap_ego_facebook", "snap_wiki_vote", "hepth_weighted", "facebook_pages", "snap_ca_condmat",
    "internet_as2006", "condmat2005_weighted", "snap_email_enron", "road_luxembourg_osm",
    "fem_wave",
)  # fmt: skip
READY_S = 2.0  # CPU seconds for each side, at least three runs


def main() -> None:
    """Run the chosen pairs one at a time, or print a table of earlier figures."""
    options = _options()
    if options.table:
        table.show(options.table)
    elif options.child == "ready":
        _measure_ready(graphs.load(options.path))
    elif options.child:
        _child(options)
    else:
        names = list(graphs.QUICK) if options.quick else [*graphs.MADE, *graphs.REAL]
        names = list(READY) if options.ready else names
        with tempfile.TemporaryDirectory(prefix="ohmlearn-bench-") as made:
            folder = options.cache or Path(made)
            folder.mkdir(parents=True, exist_ok=True)
            for graph in options.graphs or names:
                (_ready if options.ready else _graph)(graph, folder, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+")
    parser.add_argument("--peers", nargs="*", default=list(solvers.PEERS))
    parser.add_argument("--no-ours", action="store_true", help="peers only")
    parser.add_argument("--quick", action="store_true", help="four graphs of 10,000 nodes")
    parser.add_argument("--ready", action="store_true", help="beside scipy, matrix ready-made")
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds for each child")
    parser.add_argument("--cache", type=Path, help="keep the graphs here instead of a new folder")
    parser.add_argument("--table", type=Path, help="print the figures of this file and stop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--rhs", nargs="+", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _graph(graph: str, folder: Path, options: argparse.Namespace) -> None:
    path = graphs.store(graph, folder)
    if path is None:
        emit({"bench": "solver", "graph": graph, "status": "no data"})
        return
    laplacian = graphs.load(path)
    facts = {"bench": "solver", "graph": graph, "n": laplacian.shape[0], "nnz": laplacian.nnz}
    runs = [(name, 1) for name in options.peers]
    if not options.no_ours:
        runs += [(OURS, 1), (OURS, 2)]
    if options.quick or facts["n"] > LARGE_NODES:
        runs += [(name, 2) for name in THREADED if name in options.peers]
    reached = set()
    for name, threads in runs:
        if name != OURS and threads > 1 and name not in reached:
            continue
        print(f"{graph}: {name}, {threads} thread(s)", file=sys.stderr, flush=True)
        head = {**facts, "solver": name, "version": solvers.version(name), "threads": threads}
        if head["version"] is None:
            emit({**head, "status": "missing"})
            continue
        wanted = [1] if threads > 1 and name != OURS else [1, COLUMNS]
        for figure in run_pair(name, path, options.limit * threads, threads, wanted):
            if figure["status"] == "ok":
                reached.add(name)
            emit({**head, **figure})


def _ready(graph: str, folder: Path, options: argparse.Namespace) -> None:
    if not (graphs.DATA / f"{graph}_edges.parquet").exists():
        emit({"bench": "solver_ready", "graph": graph, "status": "no data"})
        return
    path = graphs.store(graph, folder)
    for figure in run_child("benchmarks.solver", ["--child", "ready", "--path", str(path)], 120.0):
        if "end" not in figure:
            emit({"bench": "solver_ready", "graph": graph, **figure})


def _measure_ready(laplacian: sp.csr_matrix) -> None:
    from ohmlearn import LaplacianSolver

    b = np.random.default_rng(1).standard_normal(laplacian.shape[0])
    b -= b.mean()
    runs = {
        "ours": lambda: LaplacianSolver.from_sddm(laplacian, random_state=0).solve(b, rtol=TARGET),
        "scipy": lambda: solvers.scipy_cg(laplacian)(b, TARGET)[0],
    }
    figure: Figure = {"n": laplacian.shape[0], "nnz": laplacian.nnz}
    spent = 0.0
    count = 0
    while count < 3 or spent < 2 * READY_S:
        for name, run in runs.items():
            x, cpu, _ = timed(run)
            spent += cpu
            figure[f"{name}_cpu_s"] = min(cpu, figure.get(f"{name}_cpu_s", cpu))
            figure[f"{name}_residual"] = _residual(laplacian, x, b)
        count += 1
    emit({**figure, "ratio": figure["ours_cpu_s"] / figure["scipy_cpu_s"], "runs": count})


def run_pair(
    name: str, path: Path, limit: float, threads: int, wanted: list[int]
) -> Iterator[Figure]:
    """Yield figures of a solver in its own child, for each wanted number of right-hand sides."""
    arguments = ["--child", name, "--path", str(path.resolve()), "--limit", str(limit)]
    arguments += ["--threads", str(threads), "--rhs", *(str(rhs) for rhs in wanted)]
    seen = set()
    for figure in run_child("benchmarks.solver", arguments, limit, threads, MEMORY_GIB):
        if "end" not in figure:
            seen.add(figure["rhs"])
            yield figure
        elif figure["end"] != "ok":
            for rhs in sorted(set(wanted) - seen):
                yield {"rhs": rhs, "status": figure["end"], "note": figure["note"]}


def _child(options: argparse.Namespace) -> None:
    laplacian = graphs.load(options.path)
    b = np.random.default_rng(1).standard_normal((laplacian.shape[0], COLUMNS))
    b -= b.mean(axis=0)
    if options.child == OURS:
        _measure_ours(laplacian, b, options)
    else:
        _measure_peer(laplacian, np.asfortranarray(b), options)


def _measure_peer(laplacian: sp.csr_matrix, b: np.ndarray, options: argparse.Namespace) -> None:
    """Measure a peer; peers have no block solve, so 16 right-hand sides take 16 solves."""
    name, deadline = options.child, 0.9 * options.limit
    baseline = reset_peak()
    solve, setup, setup_wall = timed(lambda: solvers.PEERS[name](laplacian))
    tol = TARGET
    while True:  # a peer may use another criterion, so lower its tolerance to meet the target
        (x, steps), cpu, wall = timed(partial(solve, b[:, 0], tol))
        residual = _residual(laplacian, x, b[:, 0])
        if residual <= SLACK * TARGET or tol < TARGET / 1e3 or steps >= solvers.MAX_ITERATIONS:
            break
        tol /= 4
    memory = {"rss_baseline_mib": baseline, "rss_peak_mib": peak_mib()}
    again = 0
    while again < 2 and setup + cpu < REPEAT_BELOW_S:
        del solve  # two factors at a time would spoil the peak of memory
        solve, *other = timed(lambda: solvers.PEERS[name](laplacian))
        setup, setup_wall = min(setup, other[0]), min(setup_wall, other[1])
        _, *other = timed(partial(solve, b[:, 0], tol))
        cpu, wall = min(cpu, other[0]), min(wall, other[1])
        again += 1
    shared = {"setup_cpu_s": setup, "tol_asked": tol, "runs": again + 1}
    first = {**shared, "rhs": 1, "iterations": steps, **_ending(residual), **memory}
    emit({**first, "solve_cpu_s": cpu, "setup_wall_s": setup_wall, "solve_wall_s": wall})
    if COLUMNS not in options.rhs:
        return
    total, worst, most, done = cpu, residual, steps, 1
    solutions = np.empty(b.shape, order="F")  # ours also returns all of them
    solutions[:, 0] = x
    while done < COLUMNS:
        # After three columns the time for all can be predicted.
        needed = (COLUMNS - done if done >= 3 else 1) * total / done
        too_long = done >= 3 and COLUMNS * total / done > COLUMNS_S
        if too_long or time.process_time() + needed > deadline:
            break
        column = b[:, done]
        (x, steps), cpu, _ = timed(partial(solve, column, tol))
        total, done = total + cpu, done + 1
        solutions[:, done - 1] = x
        most, worst = max(most, steps), max(worst, _residual(laplacian, x, column))
    memory["rss_peak_mib"] = peak_mib()
    figure = {**shared, "rhs": COLUMNS, "iterations": most, **_ending(worst), **memory}
    if done < COLUMNS:
        figure |= {"status": "projected", "note": f"from {done} columns"}
    emit({**figure, "solve_cpu_s": total * COLUMNS / done})


def _measure_ours(laplacian: sp.csr_matrix, b: np.ndarray, options: argparse.Namespace) -> None:
    """Measure ours; each number of right-hand sides has a new solver.

    This is needed because a solver may build a factor while solving.
    """
    from ohmlearn import Graph, LaplacianSolver

    adjacency = sp.diags(laplacian.diagonal()).tocsr() - laplacian
    adjacency.eliminate_zeros()
    graph, graph_cpu, _ = timed(partial(Graph.from_scipy, adjacency))
    del laplacian, adjacency
    first = b[:, 0].copy()
    baseline = reset_peak()
    for rhs in options.rhs:
        right = first if rhs == 1 else b
        best: Figure = {}
        runs = 0
        while runs == 0 or (
            runs < 3 and best["setup_cpu_s"] + best["solve_cpu_s"] < REPEAT_BELOW_S
        ):
            solver = x = None  # two factors at a time would spoil the peak of memory
            make = partial(LaplacianSolver, graph, random_state=0, n_jobs=options.threads)
            solver, setup, setup_wall = timed(make)
            x, solve, solve_wall = timed(partial(solver.solve, right, tol=TARGET))
            peak = peak_mib() if runs == 0 else best["rss_peak_mib"]
            runs += 1
            figure = {
                "setup_cpu_s": setup,
                "solve_cpu_s": solve,
                "setup_wall_s": setup_wall,
                "solve_wall_s": solve_wall,
                "rss_peak_mib": peak,
            }
            best = {key: min(value, best.get(key, value)) for key, value in figure.items()}
        extra = {
            "method": solver.report_.method,
            "iterations": int(np.max(solver.report_.iterations)),
            "factor_entries": solver.report_.factor_entries,
            "graph_cpu_s": graph_cpu,
            "rss_baseline_mib": baseline,
            "tol_asked": TARGET,
            "runs": runs,
        }
        # Load the matrix only now, so that it is not part of the memory measured above.
        emit(
            {"rhs": rhs, **best, **extra, **_ending(_residual(graphs.load(options.path), x, right))}
        )


def _residual(laplacian: sp.csr_matrix, x: np.ndarray, b: np.ndarray) -> float:
    """Return the largest ||b - Lx|| / ||b|| over the columns."""
    left = np.linalg.norm(b - laplacian @ x, axis=0) / np.linalg.norm(b, axis=0)
    return float(np.max(left))


def _ending(residual: float) -> Figure:
    reached = bool(residual <= SLACK * TARGET)
    return {"residual": residual, "status": "ok" if reached else "target missed"}


if __name__ == "__main__":
    main()
