"""Smoothing of features along the edges, beside what scipy offers for it.

``python -m benchmarks.smoothing`` prints one JSON line per graph and method: CPU and wall seconds,
the memory that smoothing adds to the graph and the columns, and the largest relative error of some
columns. Each method runs in its own child. With ``--large``, ohmlearn alone also smooths on a
million nodes, for several numbers of edges and of columns. With ``--table FOLDER``, stored
figures are printed as a table.

The nodes lie on a circle. In the graph "random" an edge joins any two of them, and in "local" two
that are at most 50 places apart. A column (float32) is a wave along the circle plus noise: in
"local" it is alike at neighbours, as features are in most graphs.

The methods solve ((1 + gamma) I - gamma Â) y = x, where Â = D^(-1/2) A D^(-1/2):

- ohmlearn: `smooth` on a Graph, to a relative error of 1e-6;
- scipy cg: `scipy.sparse.linalg.cg` for one column after the other, in float64, rtol 1e-6;
- APPNP, 10 steps: y = (x + gamma Â y) / (1 + gamma), in float32, as in graph neural networks;
- APPNP to 1e-6: the same in float64, until gamma times the change of y is below 1e-6 of x.

Peers start from a scipy CSR matrix A. Errors are relative to scipy's cg with rtol 1e-12.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from benchmarks.measure import Figure, emit, peak_mib, reset_peak, run_child, timed

GAMMA, TOL = 9.0, 1e-6
CHECKED = 2  # columns whose error is measured
MOST_STEPS = 1000
GRAPHS = ("random", "local")
REACH = 50  # places between the ends of a local edge
LARGE = (1e7, 50)  # edges and columns
LARGE_NODES = 1_000_000

Columns = NDArray[Any]


def make_edges(graph: str, nodes: int, edges: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ends of random edges."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, nodes, (2, edges), dtype=np.int32)
    if graph == "local":
        v = (u + 1 + v % REACH) % nodes
    return u, v


def make_columns(nodes: int, columns: int) -> Columns:
    """Return features; the first ones do not depend on how many there are."""
    X = np.empty((nodes, columns), dtype=np.float32)
    place = np.linspace(0.0, 2.0 * np.pi, nodes, endpoint=False)
    for j in range(columns):
        X[:, j] = np.random.default_rng(j).standard_normal(nodes, dtype=np.float32)
        X[:, j] += np.sin((j + 1) * place)
    return X


def normalize(A: Any, dtype: Any) -> tuple[Any, NDArray[Any]]:
    """Return D^(-1/2) A D^(-1/2), and which nodes have no edges."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = scipy.sparse.diags_array(1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    return (roots @ A @ roots).tocsr().astype(dtype), degrees == 0


def smooth_ours(graph: Any, X: Columns, threads: int) -> Columns:
    """Smooth with ohmlearn."""
    from ohmlearn.features import smooth

    return smooth(graph, X, GAMMA, tol=TOL, random_state=0, n_jobs=threads)


def smooth_by_cg(A: Any, X: Columns, rtol: float = TOL) -> Columns:
    """Smooth one column after the other with scipy's conjugate gradients."""
    from scipy.sparse.linalg import cg

    normal, alone = normalize(A, np.float64)
    matrix = (scipy.sparse.diags_array(np.full(len(X), 1.0 + GAMMA)) - GAMMA * normal).tocsr()
    y = np.empty_like(X)
    for j in range(X.shape[1]):
        y[:, j] = cg(matrix, X[:, j].astype(np.float64), rtol=rtol)[0]
    y[alone] = X[alone]
    return y


def smooth_by_steps(A: Any, X: Columns, n_steps: int | None) -> Columns:
    """Smooth with the iteration of APPNP, so many steps, or until the error is below TOL."""
    dtype = np.float64 if n_steps is None else np.float32
    normal, alone = normalize(A, dtype)
    x = X.astype(dtype) / (1.0 + GAMMA)
    lengths = np.linalg.norm(X, axis=0)
    y = X.astype(dtype)
    for _ in range(MOST_STEPS if n_steps is None else n_steps):
        last, y = y, normal @ y
        y *= GAMMA / (1.0 + GAMMA)
        y += x
        if n_steps is None and (GAMMA * np.linalg.norm(y - last, axis=0) <= TOL * lengths).all():
            break
    y[alone] = X[alone]
    return y.astype(X.dtype)


PEERS: dict[str, Callable[[Any, Columns], Columns]] = {
    "scipy cg": smooth_by_cg,
    "APPNP, 10 steps": partial(smooth_by_steps, n_steps=10),
    "APPNP to 1e-6": partial(smooth_by_steps, n_steps=None),
}


def measure(
    method: str, name: str, sizes: tuple[int, int, int], threads: int, reference: Path | None
) -> None:
    """Print the figure of one child."""
    from ohmlearn import Graph

    nodes, edges, columns = sizes
    graph = Graph.from_edges(*make_edges(name, nodes, edges), n_nodes=nodes)
    if method == "reference":
        X = make_columns(nodes, CHECKED).astype(np.float64)
        assert reference is not None
        np.save(reference, smooth_by_cg(graph.to_scipy(), X, 1e-12))
        return
    X = make_columns(nodes, columns)
    small = Graph.from_edges([0], [1], n_nodes=2)
    work: Callable[[], Columns]
    if method == "ohmlearn":
        smooth_ours(small, X[:2], threads)  # imports
        work = partial(smooth_ours, graph, X, threads)
    else:
        A: Any = graph.to_scipy()
        del graph
        PEERS[method](small.to_scipy(), X[:2])
        work = partial(PEERS[method], A, X)
    before = reset_peak()
    y, cpu, wall = timed(work)
    peak = peak_mib()
    figure = {
        "cpu_s": round(cpu, 2),
        "wall_s": round(wall, 2),
        "rss_growth_mib": round(peak - before),
        "rss_peak_mib": round(peak),
        "columns_mib": round(X.nbytes / 2**20),
    }
    if reference is not None:
        exact, checked = np.load(reference), X[:, :CHECKED].astype(np.float64)
        difference = np.linalg.norm(y[:, :CHECKED] - exact, axis=0)
        figure["error"] = float((difference / np.linalg.norm(checked, axis=0)).max())
    emit(figure)


def run_case(
    method: str,
    graph: str,
    sizes: tuple[int, int, int],
    threads: int,
    limit: float,
    reference: Path | None = None,
) -> None:
    """Measure a method in a child and print its figure."""
    nodes, edges, columns = sizes
    case = [method, graph, *map(str, sizes), str(threads), str(reference or "")]
    found = list(run_child("benchmarks.smoothing", ["--child", *case], limit, threads))
    end = found.pop()
    if method == "reference":
        if end["end"] != "ok":
            sys.exit(f"the reference could not be computed: {end['note']}")
        return
    figure: Figure = {
        "bench": "smoothing", "method": method, "graph": graph, "nodes": nodes, "edges": edges,
        "columns": columns, "gamma": GAMMA, "threads": threads,
    }  # fmt: skip
    status = {"status": end["end"], "note": end["note"]}
    emit(figure | (found[0] if found else {}) | status)


def main() -> None:
    """Measure all methods, or one in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=float, default=2e5)
    parser.add_argument("--edges", type=float, default=2e6)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--large", action="store_true", help="also a million nodes, ours alone")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds of a child")
    parser.add_argument("--table", type=Path, help="folder of figures to show as a table")
    parser.add_argument("--child", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        method, graph, *numbers, path = options.child
        nodes, edges, columns, threads = map(int, numbers)
        measure(method, graph, (nodes, edges, columns), threads, Path(path) if path else None)
        return
    if options.table:
        from benchmarks.results import Results
        from benchmarks.stream_tables import smoothing_table

        print(smoothing_table(Results(options.table)))
        return
    sizes = (int(options.nodes), int(options.edges), options.columns)
    with tempfile.TemporaryDirectory() as folder:
        for graph in GRAPHS:
            reference = Path(folder) / f"{graph}.npy"
            run_case("reference", graph, sizes, 1, options.limit, reference)
            for threads in (1, 2):
                run_case("ohmlearn", graph, sizes, threads, options.limit, reference)
            for method in PEERS:
                run_case(method, graph, sizes, 1, options.limit, reference)
    for threads in (2, 1) if options.large else ():
        case = (LARGE_NODES, int(LARGE[0]), int(LARGE[1]))
        run_case("ohmlearn", "random", case, threads, options.limit)


if __name__ == "__main__":
    main()
