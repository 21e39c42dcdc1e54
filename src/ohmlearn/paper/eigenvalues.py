"""Eigenvalues of a Laplacian that the bounds need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread
from ohmlearn.checks.edge_arrays import check_graph
from ohmlearn.checks.parameters import check_seed
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

__all__ = ["SpectralExtremes", "spectral_extremes"]

DENSE_LIMIT = 500  # nodes up to which all eigenvalues are computed
EIGEN_TOL = 1e-8  # relative accuracy of eigenvalues beyond that
SOLVE_TOL = 1e-8
NOISE = 1e-6  # of a vector that is nearly constant, relative to its length


@dataclass(frozen=True)
class SpectralExtremes:
    """Eigenvalues of a Laplacian that the bounds need.

    Attributes
    ----------
    lambda_1 : float
        Second smallest eigenvalue; 0 if the graph is not connected, and then no bound holds.
    lambda_n : float
        Largest eigenvalue.
    n_components : int

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.paper import spectral_extremes
    >>> found = spectral_extremes(gallery.disjoint_union(gallery.path(2), gallery.path(2)))
    >>> found.lambda_1, found.n_components
    (0.0, 2)
    """

    lambda_1: float
    lambda_n: float
    n_components: int


@one_blas_thread()
def spectral_extremes(
    graph: Any, *, random_state: object = None, n_jobs: int | None = None
) -> SpectralExtremes:
    """Compute the second smallest and the largest eigenvalue of the Laplacian.

    For up to 500 nodes all eigenvalues are computed. For larger graphs, Lanczos finds the largest
    eigenvalues of L and, with `LaplacianSolver`, of its pseudo-inverse, to about eight digits.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
    random_state : int, Generator, RandomState or None
        Seeds the starting vector of Lanczos and the solver.
    n_jobs : int, optional
        Number of threads of the solver, as in scikit-learn.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.paper import spectral_extremes
    >>> found = spectral_extremes(gallery.star(10))
    >>> round(found.lambda_1, 9), round(found.lambda_n, 9)
    (1.0, 10.0)
    """
    g = check_graph(graph, Graph)
    if g.n_nodes < 2:
        raise ValueError(
            f"the graph must have at least two nodes to have a second eigenvalue, got {g.n_nodes}"
        )
    n_components, _ = g.components()
    seed = check_seed(random_state)
    if g.n_edges == 0:
        return SpectralExtremes(0.0, 0.0, n_components)
    if g.n_nodes <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(g.laplacian().toarray())
        lambda_1, lambda_n = float(values[1]), float(values[-1])
    else:
        lambda_n = _largest(g.laplacian(), g.n_nodes, seed)
        lambda_1 = 0.0
        if n_components == 1:
            solver = LaplacianSolver(g, random_state=seed, n_jobs=n_jobs)
            lambda_1 = 1.0 / _largest(_make_inverse(solver, g.n_nodes), g.n_nodes, seed)
    return SpectralExtremes(0.0 if n_components > 1 else lambda_1, lambda_n, n_components)


def _make_inverse(solver: LaplacianSolver, n: int) -> Any:
    """Return the pseudo-inverse as an operator; vectors that are constant up to rounding give 0.

    Lanczos comes across them when it has found all that its start leads to. What is left of them
    without their mean is noise, which no solver can solve for to a relative tolerance.
    """
    from scipy.sparse.linalg import LinearOperator

    inverse = solver.as_linear_operator(tol=SOLVE_TOL)

    def multiply(x: NDArray[np.float64]) -> Any:
        centred = x - x.mean()
        is_noise = np.linalg.norm(centred) <= NOISE * np.linalg.norm(x)
        return np.zeros_like(x) if is_noise else inverse @ centred

    return LinearOperator((n, n), multiply, dtype=np.float64)


def _largest(operator: Any, n: int, seed: int) -> float:
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(seed).standard_normal(n)
    start -= start.mean()  # orthogonal to the null space
    found = eigsh(operator, k=1, which="LA", v0=start, tol=EIGEN_TOL, return_eigenvectors=False)
    return float(found[0])
