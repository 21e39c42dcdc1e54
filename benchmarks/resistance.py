"""Compare effective resistances of the edges of a grid with NetworKit's and with exact values.

``python -m benchmarks.resistance`` prints one JSON line per figure.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks import solvers
from benchmarks.measure import emit, peak_mib, reset_peak, run_child, timed

# Parameters, position of each estimate in `grid_edges`, estimates, CPU seconds, memory.
Run = tuple[dict[str, float], np.ndarray, np.ndarray, float, dict[str, float]]


def grid_edges(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the edges: those between rows first, then those between columns."""
    ids = np.arange(side * side).reshape(side, side)
    u = np.concatenate([ids[:-1].ravel(), ids[:, :-1].ravel()])
    v = np.concatenate([ids[1:].ravel(), ids[:, 1:].ravel()])
    return u, v


def exact_grid_resistances(side: int) -> np.ndarray:
    """Return the resistances of `grid_edges` from the cosine eigenbasis of the square grid.

    The path has eigenvalues 2 - 2cos(pi k / side) and eigenvectors cos(pi k (i + 1/2) / side). For
    an edge from row i to i + 1 in column j, R = sum_kl d_ik^2 c_jl^2 / (s_k + s_l), where d are the
    differences of the eigenvectors. This takes two matrix products.

    Examples
    --------
    >>> u, v = grid_edges(5)
    >>> incidence = np.eye(25)[u] - np.eye(25)[v]
    >>> dense = np.diag(incidence @ np.linalg.pinv(incidence.T @ incidence) @ incidence.T)
    >>> bool(np.allclose(exact_grid_resistances(5), dense))
    True
    """
    k = np.arange(side)
    vectors = np.cos(np.pi * np.outer(k + 0.5, k) / side) * np.sqrt(2 / side)
    vectors[:, 0] = np.sqrt(1 / side)
    values = 2 - 2 * np.cos(np.pi * k / side)
    total = values[:, None] + values[None, :]
    total[0, 0] = np.inf  # drops the constant vector, which carries no current
    down = np.diff(vectors, axis=0) ** 2 @ (1 / total) @ (vectors**2).T
    return np.concatenate([down.ravel(), down.T.ravel()])


def main() -> None:
    """Measure each tool on each grid, one at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--tools", nargs="+", default=["networkit", "ohmlearn"])
    parser.add_argument("--networkit-side", type=int, default=300, help="largest grid for it")
    parser.add_argument("--epsilon", type=float, default=0.2, help="for ours")
    parser.add_argument(
        "--tol",
        nargs="+",
        type=float,
        default=[0.9, 0.5],
        help="for NetworKit; its default, 0.1, takes 25 times as long as 0.5",
    )
    parser.add_argument("--limit", type=float, default=240.0, help="CPU seconds for each child")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options.child, options.sides[0], options.epsilon, options.tol[0])
        return
    for side in options.sides:
        for tool in options.tools:
            if tool != "networkit":
                _run(tool, side, ["--epsilon", str(options.epsilon)], options.limit)
            elif side <= options.networkit_side:
                for tol in options.tol:
                    _run(tool, side, ["--tol", str(tol)], options.limit)


def _run(tool: str, side: int, asked: list[str], limit: float) -> None:
    print(f"{side} x {side}: {tool} {' '.join(asked)}", file=sys.stderr, flush=True)
    head = {"bench": "resistance", "graph": f"grid_{side}x{side}", "solver": tool}
    head |= {"asked": " ".join(asked), "version": solvers.version(tool)}
    if head["version"] is None:
        emit({**head, "status": "missing"})
        return
    arguments = ["--child", tool, "--sides", str(side), *asked]
    for figure in run_child("benchmarks.resistance", arguments, limit):
        if "end" not in figure:
            emit({**head, "status": "ok", **figure})
        elif figure["end"] != "ok":
            emit({**head, "status": figure["end"], "note": figure["note"]})


def _child(tool: str, side: int, epsilon: float, tol: float) -> None:
    u, v = grid_edges(side)
    if tool == "networkit":
        asked, order, estimate, cpu, memory = _networkit(side, u, v, tol)
    else:
        asked, order, estimate, cpu, memory = _ours(side, u, v, epsilon)
    exact = exact_grid_resistances(side)[order]
    error = np.abs(estimate - exact) / exact
    emit(
        {
            **asked,
            "cpu_s": cpu,
            "error_mean": float(error.mean()),
            "error_q95": float(np.quantile(error, 0.95)),
            "error_max": float(error.max()),
            "bias": float((estimate / exact).mean() - 1),
            **memory,
        }
    )


def _networkit(side: int, u: np.ndarray, v: np.ndarray, tol: float) -> Run:
    import networkit as nk

    nk.setNumberOfThreads(1)
    nk.setSeed(1, False)
    graph = nk.Graph(side * side)
    for a, b in zip(u.tolist(), v.tolist(), strict=True):
        graph.addEdge(a, b)
    graph.indexEdges()
    ids = np.array([graph.edgeId(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)])
    baseline = reset_peak()

    def work() -> np.ndarray:
        run = nk.centrality.SpanningEdgeCentrality(graph, tol)
        run.runApproximation()
        return np.array(run.scores())

    scores, cpu, _ = timed(work)
    memory = {"rss_baseline_mib": baseline, "rss_peak_mib": peak_mib()}
    return {"tol": tol}, np.arange(len(u)), scores[ids], cpu, memory


def _ours(side: int, u: np.ndarray, v: np.ndarray, epsilon: float) -> Run:
    from ohmlearn import Graph, effective_resistance

    graph = Graph.from_edges(u, v, n_nodes=side * side)
    rows, cols, _ = graph.edges()
    # Position of each edge of the graph in `grid_edges`.
    code = np.minimum(u, v) * side**2 + np.maximum(u, v)
    wanted = np.minimum(rows, cols).astype(np.int64) * side**2 + np.maximum(rows, cols)
    by_code = np.argsort(code)
    order = by_code[np.searchsorted(code, wanted, sorter=by_code)]
    baseline = reset_peak()
    estimate, cpu, _ = timed(lambda: effective_resistance(graph, rtol=epsilon, random_state=0))
    memory = {"rss_baseline_mib": baseline, "rss_peak_mib": peak_mib()}
    return {"epsilon": epsilon}, order, estimate, cpu, memory


if __name__ == "__main__":
    main()
