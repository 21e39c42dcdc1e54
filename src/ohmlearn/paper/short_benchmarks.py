"""The command ``ohmlearn bench``: compare with numpy, scipy and scikit-learn in about a minute.

Each side of a comparison runs in its own process,
``python -m ohmlearn.paper.short_benchmarks JOB SIDE SIZE``.
The full benchmarks, which compare with packages made for the same purpose, are in the folder
``benchmarks`` of the repository.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn import gallery
from ohmlearn.estimators import HFSClassifier
from ohmlearn.paper.experiment_job import draw_labelled, make_classes
from ohmlearn.reading import read_edges
from ohmlearn.report.process_cost import peak_memory
from ohmlearn.solver import LaplacianSolver
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["SideBySide", "run"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
OURS = "ohmlearn"


@dataclass(frozen=True)
class SideBySide:
    """Ours and a peer on the same job: CPU seconds, peak bytes of the process, and results."""

    job: str
    peer: str
    our_seconds: float
    peer_seconds: float
    our_bytes: int
    peer_bytes: int
    our_result: str
    peer_result: str

    @property
    def ratio(self) -> float:
        """Our seconds divided by the peer's."""
        return self.our_seconds / self.peer_seconds


@dataclass(frozen=True)
class Outcome:
    """The outcome of one side: name of the job, CPU seconds, and a description of the result."""

    job: str
    seconds: float
    result: str


def run(size: int = 100) -> Iterator[SideBySide]:
    """Yield comparisons; `size` is a percentage of the default size.

    Examples
    --------
    >>> from ohmlearn.paper import short_benchmarks
    >>> found = next(short_benchmarks.run(size=5))
    >>> found.job, found.peer
    ('solve on Graph(n_nodes=625, n_edges=1200)', 'scipy cg')
    """
    for name, (peer, _) in JOBS.items():
        ours, theirs = (_run_side(name, side, size) for side in (OURS, peer))
        yield SideBySide(
            job=ours["job"],
            peer=peer,
            our_seconds=ours["seconds"],
            peer_seconds=theirs["seconds"],
            our_bytes=ours["bytes"],
            peer_bytes=theirs["bytes"],
            our_result=ours["result"],
            peer_result=theirs["result"],
        )


def _run_side(name: str, side: str, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "ohmlearn.paper.short_benchmarks", name, side, str(size)]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def solve(ours: bool, size: int) -> Outcome:
    """Solve on a grid: ours including set-up, scipy's CG with a diagonal preconditioner."""
    graph = gallery.grid2d(max(10, 5 * size), max(10, 5 * size))
    laplacian = graph.laplacian()
    b = np.random.default_rng(0).standard_normal(graph.n_nodes)
    b -= b.mean()
    if ours:
        x, seconds = _timed(lambda: LaplacianSolver(graph, random_state=0).solve(b, tol=1e-8))
    else:
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import cg

        inverse = diags_array(1.0 / graph.degrees)
        (x, _), seconds = _timed(lambda: cg(laplacian, b, rtol=1e-8, M=inverse))
    residual = np.linalg.norm(b - laplacian @ x) / np.linalg.norm(b)
    return Outcome(f"solve on {graph}", seconds, f"residual {residual:.1e}")


def read(ours: bool, size: int) -> Outcome:
    """Read a CSV file of random edges; ours also numbers the nodes."""
    n_edges = 20_000 * size
    ends = np.random.default_rng(0).integers(0, 100_000, (n_edges, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        with path.open("w") as file:
            file.write("src,dst\n")
            for part in np.array_split(ends, max(1, n_edges // 100_000)):
                file.write("".join(f"{u},{v}\n" for u, v in part.tolist()))
        del ends

        def count() -> int:
            if ours:
                return sum(len(batch.u) for batch in read_edges(path))
            return len(np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1))

        found, seconds = _timed(count)
    return Outcome(f"read {n_edges:,} edges of a CSV file", seconds, f"{found:,} edges")


def sparsify(ours: bool, size: int) -> Outcome:
    """Sparsify all edges of a dense graph in random order; scipy stores them."""
    graph = gallery.paper_knn(_neighbors(size), n_points=_points(size))
    n, (u, v, w) = graph.n_nodes, graph.edges()
    del graph
    order = np.random.default_rng(0).permutation(len(u))
    u, v = u[order], v[order]

    def store() -> Any:
        from scipy.sparse import coo_array

        half = coo_array((w, (u, v)), shape=(n, n)).tocsr()
        return half + half.T

    if ours:
        held, seconds = _timed(
            lambda: StreamingSparsifier(n_nodes=n, epsilon=0.8, random_state=0).update(u, v)
        )
        rows = held.snapshot().n_edges
    else:
        stored, seconds = _timed(store)
        rows = stored.nnz // 2
    return Outcome(f"take in {len(u):,} edges", seconds, f"{rows:,} edges held")


def label(ours: bool, size: int) -> Outcome:
    """Label the paper's points from four labels; LabelSpreading gets the same points."""
    n_points, n_neighbors = _points(size), _neighbors(size)
    points, truth = gallery.paper_points(n_points), make_classes(n_points)
    labelled = draw_labelled(n_points, 1, 0)[0]
    y = np.full(n_points, -1)
    y[labelled] = truth[labelled] > 0
    if ours:
        model: Any = HFSClassifier(
            n_neighbors=n_neighbors, weights="uniform", gamma=1.0, random_state=0
        )
    else:
        from sklearn.semi_supervised import LabelSpreading

        model = LabelSpreading(kernel="knn", n_neighbors=n_neighbors, max_iter=100, tol=1e-3)
    _, seconds = _timed(lambda: model.fit(points, y))
    right = np.mean(model.transduction_ == (truth > 0))
    job = f"label {n_points:,} points, {n_neighbors:,} neighbours"
    return Outcome(job, seconds, f"{100 * right:.1f}% correct")


# The peer and the function of each job, by name.
JOBS: dict[str, tuple[str, Callable[[bool, int], Outcome]]] = {
    "solve": ("scipy cg", solve),
    "read": ("numpy loadtxt", read),
    "sparsify": ("scipy tocsr", sparsify),
    "label": ("LabelSpreading", label),
}


def _points(size: int) -> int:
    return max(605, 121 * size // 2)


def _neighbors(size: int) -> int:
    return 45 * _points(size) // 121  # k = 4500 of 12,100 points, where all labels are correct


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def _main(name: str, side: str, size: str) -> None:
    outcome = JOBS[name][1](side == OURS, int(size))
    found = {"job": outcome.job, "seconds": outcome.seconds, "result": outcome.result}
    print(json.dumps(found | {"bytes": peak_memory()}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
