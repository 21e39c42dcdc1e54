"""What ``ohmlearn bench`` does: a minute's figures on this machine, beside scipy and scikit-learn.

The full benchmarks, beside packages made for the same purpose, are in the folder ``benchmarks`` of
the repository.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ohmlearn import gallery
from ohmlearn._paper_job import draw_labelled, make_classes
from ohmlearn.semi_supervised import SparseHFSClassifier
from ohmlearn.solver import LaplacianSolver
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["Comparison", "run"]


@dataclass(frozen=True)
class Comparison:
    """CPU seconds of ours and of a peer for the same job, and how good the results are."""

    job: str
    peer: str
    our_seconds: float
    peer_seconds: float
    our_result: str
    peer_result: str

    @property
    def ratio(self) -> float:
        """Ours over the peer's."""
        return self.our_seconds / self.peer_seconds


def run(size: int = 100) -> Iterator[Comparison]:
    """Yield comparisons; `size` is a percentage of the usual one.

    Examples
    --------
    >>> from ohmlearn import bench
    >>> [comparison.peer for comparison in bench.run(size=5)]
    ['scipy cg', 'scipy tocsr', 'LabelSpreading']
    """
    yield compare_solvers(max(10, 5 * size))
    n_points = max(605, 121 * size // 2)
    n_neighbors = 45 * n_points // 121  # as dense as where the paper's graph is labelled right
    yield compare_sparsifiers(n_points, n_neighbors)
    yield compare_labels(n_points, n_neighbors)


def compare_solvers(side: int) -> Comparison:
    """Solve on a grid, ours from set-up on, scipy's CG with the diagonal."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    graph = gallery.grid2d(side, side)
    laplacian = graph.laplacian()
    b = np.random.default_rng(0).standard_normal(graph.n_nodes)
    b -= b.mean()
    inverse = diags_array(1.0 / graph.degrees)
    x, ours = _timed(lambda: LaplacianSolver(graph, random_state=0).solve(b, tol=1e-8))
    (y, _), theirs = _timed(lambda: cg(laplacian, b, rtol=1e-8, M=inverse))

    def residual(answer: Any) -> str:
        return f"residual {np.linalg.norm(b - laplacian @ answer) / np.linalg.norm(b):.1e}"

    job = f"solve on a grid of {graph.n_nodes:,} nodes"
    return Comparison(job, "scipy cg", ours, theirs, residual(x), residual(y))


def compare_sparsifiers(n_points: int, n_neighbors: int) -> Comparison:
    """Take in all edges of a dense graph in random order; scipy stores them."""
    from scipy.sparse import coo_array

    graph = gallery.paper_knn(n_neighbors, n_points)
    n, (u, v, w) = graph.n_nodes, graph.edges()
    order = np.random.default_rng(0).permutation(len(u))
    u, v = u[order], v[order]

    def store() -> Any:
        half = coo_array((w, (u, v)), shape=(n, n)).tocsr()
        return half + half.T

    kept, ours = _timed(lambda: StreamingSparsifier(n, 0.8, random_state=0).update(u, v))
    stored, theirs = _timed(store)
    job = f"take in {len(u):,} edges"
    rows = f"{kept.snapshot().n_edges:,} edges held"
    return Comparison(job, "scipy tocsr", ours, theirs, rows, f"{stored.nnz // 2:,} edges held")


def compare_labels(n_points: int, n_neighbors: int) -> Comparison:
    """Label the paper's points from four; LabelSpreading from the same points."""
    from sklearn.semi_supervised import LabelSpreading

    points, truth = gallery.paper_points(n_points), make_classes(n_points)
    labelled = draw_labelled(n_points, 1, 0)[0]
    y = np.full(n_points, -1)
    y[labelled] = truth[labelled] > 0

    def label(model: Any) -> Any:
        return model.fit(points, y).transduction_

    ours_model = SparseHFSClassifier(
        n_neighbors=n_neighbors, weights="uniform", gamma=1.0, random_state=0
    )
    found, ours = _timed(lambda: label(ours_model))
    peer = LabelSpreading(kernel="knn", n_neighbors=n_neighbors, max_iter=100, tol=1e-3)
    spread, theirs = _timed(lambda: label(peer))

    def right(labels: Any) -> str:
        return f"{100 * np.mean(labels == (truth > 0)):.1f}% right"

    job = f"label {n_points:,} points, {n_neighbors:,} neighbours"
    return Comparison(job, "LabelSpreading", ours, theirs, right(found), right(spread))


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start
