"""One job of the paper's experiment, run in its own process so that its memory can be measured.

``python -m ohmlearn.paper.experiment_job JOB`` takes a job and prints its result, both as JSON.
"""

import json
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import gallery
from ohmlearn.edges import Edges
from ohmlearn.graph import Graph
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.hfs_system import HFSSolver, HFSSystem
from ohmlearn.harmonic.solve_hfs import PRECONDITIONER_TOL, refine, solve_hfs
from ohmlearn.points import knn_edges
from ohmlearn.report.progress import peak_memory
from ohmlearn.sparsifier import StreamingSparsifier

GAMMA = 1.0
REFINED_PASSES = 4  # in total: one builds the sparsifier, the others refine
EXACT_TOL, EXACT_PASSES = 1e-9, 40
TIE = 1e-9  # scores below this part of the largest are zero: the accuracy of the exact answer
# Peak memory in bytes per edge when solving with all edges in memory, and the limit in GiB.
STORED_BYTES, STORED_LIMIT = 80, 4.0
Floats = NDArray[np.float64]


def make_classes(n_points: int) -> Floats:
    """Return +1 for the two upper clusters and -1 for the two lower ones."""
    return np.where(np.arange(n_points) < n_points // 2, 1.0, -1.0)


def draw_labelled(n_points: int, n_draws: int, seed: int) -> list[NDArray[np.int64]]:
    """Draw two nodes of the uppermost and two of the lowermost cluster, `n_draws` times."""
    rng = np.random.default_rng(seed + 1)
    outer, *_ = gallery.paper_sizes(n_points)
    draws = []
    for _ in range(n_draws):
        top = rng.choice(outer, 2, replace=False)
        bottom = rng.choice(outer, 2, replace=False) + n_points - outer
        draws.append(np.concatenate([top, bottom]))
    return draws


def score(f: Floats, y: Floats, labelled: NDArray[np.int64]) -> float:
    """Return the fraction of unlabelled nodes with the correct sign; zero counts one half."""
    side = np.sign(np.where(np.abs(f) <= TIE * np.abs(f).max(), 0.0, f))
    right = 0.5 * (1.0 + side * y)
    return float(np.delete(right, labelled).mean())


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job of kind "stream", "stored" or "paper"."""
    runs = {"stream": _run_stream, "stored": _run_stored, "paper": _run_paper_scheme}
    n = job["n_points"]
    edges = knn_edges(gallery.paper_points(n), n_neighbors=job["k"], weights="uniform")
    draws = draw_labelled(n, job["draws"], job["seed"])
    result = runs[job["kind"]](job, edges, draws, make_classes(n))
    return {"kind": job["kind"], "k": job["k"], **result, "job_cost": _cost()}


def _cost() -> dict[str, float]:
    """Return processor time and peak memory of the process since its start."""
    return {"cpu_seconds": round(time.process_time(), 3), "peak_bytes": peak_memory()}


def _score_draws(h: Graph, draws: list[NDArray[np.int64]], y: Floats) -> list[float]:
    """Return the fractions of correct labels of stable-HFS on a graph."""
    answers = (solve_hfs(h, draw, y[draw], gamma=GAMMA, random_state=0).f for draw in draws)
    return [score(f, y, draw) for f, draw in zip(answers, draws, strict=True)]


def _sparsify(
    job: dict[str, Any], edges: Edges, scheme: Any = "resample"
) -> tuple[Graph, dict[str, Any]]:
    start = time.perf_counter()
    sparsifier = StreamingSparsifier(
        n_nodes=edges.n_nodes, epsilon=job["epsilon"], scheme=scheme, random_state=job["seed"]
    )
    h = sparsifier.update(edges).snapshot()
    seen = sparsifier.n_edges_seen_
    result = {"n_edges": seen, "n_kept": h.n_edges, "kept_share": h.n_edges / seen}
    seconds = round(time.perf_counter() - start, 3)
    return h, result | {"n_components": h.components()[0], "sparsify_seconds": seconds}


def _run_stream(
    job: dict[str, Any], edges: Edges, draws: list[NDArray[np.int64]], y: Floats
) -> dict[str, Any]:
    """Run Sparse-HFS with one pass, with a few passes, and with enough for the exact answer.

    The cost of one draw of labels is recorded first, because the peak memory and the processor time
    of the process include everything done before.
    """
    h, result = _sparsify(job, edges)
    first = draws[0]
    how: dict[str, Any] = {"gamma": GAMMA, "random_state": 0}
    solve_hfs(h, first, y[first], **how)
    result["sparse_cost"] = _cost()
    refine(edges, h, first, y[first], passes=REFINED_PASSES - 1, tol=EXACT_TOL, **how)
    result["refined_cost"] = _cost()

    result["sparse"] = _score_draws(h, draws, y)
    answers, error = _refine_all(edges, h, draws, y)
    by_pass = [[score(f, y, s) for f, s in zip(fs, draws, strict=True)] for fs in answers]
    last = min(REFINED_PASSES - 1, len(answers)) - 1
    refined, exact = answers[last], answers[-1]
    result["refined"], result["exact"] = by_pass[last], by_pass[-1]
    result["relative_errors"] = [
        float(np.linalg.norm(f - g) / np.linalg.norm(g))
        for f, g in zip(refined, exact, strict=True)
    ]
    # Means over the draws after each pass; the first pass built the sparsifier.
    result["by_pass"] = [float(np.mean(scores)) for scores in [result["sparse"], *by_pass]]
    return result | {"exact_passes": 1 + len(answers), "exact_error": error}


def _refine_all(
    edges: Edges, h: Graph, draws: list[NDArray[np.int64]], y: Floats
) -> tuple[list[list[Floats]], float]:
    """Refine the answers for all draws until they are exact, with shared passes over the edges.

    Returns the answers after each pass, and the largest estimated error at the end.
    """
    component = h.components()[1]
    systems = [HFSSystem(component, draw, y[draw], gamma=GAMMA) for draw in draws]
    solvers = [partial(HFSSolver(h, s).solve, tol=PRECONDITIONER_TOL) for s in systems]
    runs = [BlockCG(s.right_hand_sides, solve) for s, solve in zip(systems, solvers, strict=True)]
    source = edges.open_passes(component, "the experiment")
    answers: list[list[Floats]] = []
    errors = np.full(len(draws), np.inf)
    while errors.max() > EXACT_TOL and source.passes < EXACT_PASSES:
        blocks = [run.propose() for run in runs]
        directions = [np.empty((len(y), 0)) if p is None else p for p in blocks]
        ends = np.cumsum([p.shape[1] for p in directions])
        images = np.split(source.multiply(np.hstack(directions)), ends[:-1], axis=1)
        found = []
        for i, (system, run) in enumerate(zip(systems, runs, strict=True)):
            if directions[i].shape[1] > 0:
                run.accept(directions[i], system.multiply(directions[i], images[i]))
            gram = run.gram / run.smallest_quotient()
            f, _, residuals, estimates, _ = system.assess(run.x, run.residual, gram)
            errors[i] = max(residuals.max(), estimates.max())
            if errors[i] > EXACT_TOL:  # as `refine` does after its last pass
                f, _ = system.combine(system.centre(run.look_ahead()))
            found.append(f[:, 0])
        answers.append(found)
        if ends[-1] == 0:
            break
    return answers, float(errors.max())


def _run_stored(
    job: dict[str, Any], edges: Edges, draws: list[NDArray[np.int64]], y: Floats
) -> dict[str, Any]:
    """Run stable-HFS on the graph in memory for one draw, to compare the streams with it."""
    n_edges = sum(len(batch.u) for batch in edges)
    needed = STORED_BYTES * n_edges / 2**30
    if needed > STORED_LIMIT:
        return {"n_edges": n_edges, "skipped": f"would take about {needed:.1f} GiB of memory"}
    u, v = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32)
    start = 0
    for batch in edges:
        here = slice(start, start := start + len(batch.u))
        u[here], v[here] = batch.u, batch.v
    graph = Graph.from_edges(u, v, n_nodes=edges.n_nodes)
    del u, v
    exact = _score_draws(graph, draws[:1], y)
    return {"n_edges": graph.n_edges, "cost": _cost(), "exact": exact}


def _run_paper_scheme(
    job: dict[str, Any], edges: Edges, draws: list[NDArray[np.int64]], y: Floats
) -> dict[str, Any]:
    """Run Sparse-HFS in one pass with the paper's way of sampling."""
    h, result = _sparsify(job, edges, "paper")
    return {**result, "sparse": _score_draws(h, draws, y), "cost": _cost()}


if __name__ == "__main__":
    print(json.dumps(run_job(json.loads(sys.argv[1]))))
