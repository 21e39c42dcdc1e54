"""Adapters of the solvers that are compared.

An adapter sets up a solver on a Laplacian and returns a function ``solve(b, tol)``, which returns
(x, iterations). Each solver uses its documented default set-up, conjugate gradients as the outer
iteration, and a tolerance relative to ||b||.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from benchmarks import machine

Solve = Callable[[np.ndarray, float], tuple[np.ndarray, int]]
MAX_ITERATIONS = 10_000


def scipy_cg(laplacian: sp.csr_matrix) -> Solve:
    """Conjugate gradients with the diagonal as the preconditioner."""
    inverse = 1.0 / laplacian.diagonal()
    return _preconditioned(laplacian, lambda r: inverse * r)


def apxchol(laplacian: sp.csr_matrix) -> Solve:
    import apxchol as library

    factor = library.factorize(laplacian, keep_factor=False)

    def solve(b: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
        result = factor.solve(b, rtol=tol, maxiter=MAX_ITERATIONS)
        return result.x, result.iters

    return solve


def approx_chol(laplacian: sp.csr_matrix) -> Solve:
    """Use the factor, which is all the package provides, in scipy's conjugate gradients."""
    import approx_chol as library

    factor = library.factorize(laplacian, library.Config(seed=0))
    return _preconditioned(laplacian, factor.solve)


def pyamg(laplacian: sp.csr_matrix) -> Solve:
    """Ground node 0, because pyamg's CG stops early on the singular matrix ("indefinite")."""
    import pyamg as library

    hierarchy = library.smoothed_aggregation_solver(laplacian[1:, 1:])

    def solve(b: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
        residuals: list[float] = []
        x = hierarchy.solve(b[1:], tol=tol, accel="cg", maxiter=MAX_ITERATIONS, residuals=residuals)
        x = np.concatenate([[0.0], x])
        return x - x.mean(), len(residuals) - 1

    return solve


def pyamgcl(laplacian: sp.csr_matrix) -> Solve:
    """Ground node 0, because AMGCL factors the coarsest level, which must not be singular."""
    import pyamgcl as library

    grounded = laplacian[1:, 1:]
    hierarchy = library.amg(
        grounded, {"coarsening.type": "smoothed_aggregation", "relax.type": "spai0"}
    )

    def solve(b: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
        run = library.solver(hierarchy, {"type": "cg", "tol": tol, "maxiter": MAX_ITERATIONS})
        x = np.concatenate([[0.0], run(b[1:])])
        return x - x.mean(), run.iters

    return solve


PEERS: dict[str, Callable[[sp.csr_matrix], Solve]] = {
    "apxchol": apxchol,
    "approx-chol": approx_chol,
    "pyamg": pyamg,
    "pyamgcl": pyamgcl,
    "scipy-cg": scipy_cg,
}
PACKAGE = {"scipy-cg": "scipy"}


def version(name: str) -> str | None:
    """Return the installed version of a solver's package, or None if it is missing."""
    return machine.version(PACKAGE.get(name, name))


def _preconditioned(laplacian: sp.csr_matrix, apply: Callable[[np.ndarray], np.ndarray]) -> Solve:
    operator = LinearOperator(laplacian.shape, matvec=apply, dtype=np.float64)

    def solve(b: np.ndarray, tol: float) -> tuple[np.ndarray, int]:
        steps = 0

        def count(_: np.ndarray) -> None:
            nonlocal steps
            steps += 1

        x, _ = cg(
            laplacian, b, rtol=tol, atol=0.0, maxiter=MAX_ITERATIONS, M=operator, callback=count
        )
        return x, steps

    return solve
