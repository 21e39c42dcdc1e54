"""Extreme eigenvalues of M = L_H^+ L_G by Lanczos, with bounds that hold with high probability.

M is symmetric in the inner product x'L_H y. In it the starts L_H^+ B_H' W_H^(1/2) z, z Gaussian,
have no preferred direction among the r = n - components dimensions. So the share that a given
eigenvector has of the squared norm of a start follows Beta(1/2, (r - 1)/2), and there is a c, made
of r, delta and the number of starts only, such that at least one gives it more than c^2, but for
probability delta / 2. With that for both ends nothing below is random: in particular, when to
stop may depend on what was found.

Let mu be the spectral measure of such a start, with mass m >= c^2 at lambda_max. k steps of Lanczos
give its Jacobi matrix J and orthonormal polynomials, e(t) = (p_0(t), ..., p_(k-1)(t)). The measure
t d mu(t) is positive and has the Gram matrix J, so at t no more mass than 1 / (e(t)' J^-1 e(t)),
its Christoffel function. Hence lambda_max is at most the U where

    U e(U)' J^-1 e(U) = 1 / c^2;    the left side increases beyond the Ritz values.

(U - t) d mu(t), with Gram matrix U - J, bounds lambda_min from below in the same way. Van
Dorsselaer, Hochstenbach and van der Vorst (SIAM J. Matrix Anal. Appl. 22, 2000) use one
Lanczos polynomial; the kernels use all p_j and the last diagonal entry of J. Which start has the
mass is not known, so the worst bound of all starts counts.

Why not Kuczynski and Wozniakowski (SIAM J. Matrix Anal. Appl. 13, 1992)? They say that from one
start lambda_max - xi_max > eta (lambda_max - lambda_min) has probability at most
1.648 sqrt(r) exp(-sqrt(eta) (2k - 1)), and likewise at the other end. The bounds of this,
U = xi_max / (1 - eta) and lambda_min >= U - (U - xi_min) / (1 - eta), hold, but the second is void
as soon as eta lambda_max > lambda_min. The kernels see how far Lanczos really
got, and were never looser in experiments.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import betaincinv

from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

__all__ = ["EXHAUSTED", "LaplacianSpace", "bound_eigenvalues"]

Columns = NDArray[np.float64]
SOLVE_TOL = 1e-10
HUGE = 1e60  # no start has so little of an eigenvector
EXHAUSTED = 1e-7  # relative norm below which a direction is rounding: Gram matrices see no less


def bound_eigenvalues(
    projected: Columns, starts: Columns, steps: int, rank: int, delta: float
) -> tuple[float, float]:
    """Bounds of lambda_min and lambda_max that hold but for probability `delta`.

    Parameters
    ----------
    projected : ndarray
        M in an orthonormal basis of the Krylov spaces of all starts.
    starts : ndarray
        Coordinates of the starts, a column each, in the first vectors of that basis.
    steps : int
        Dimension of the Krylov space of each start.
    rank : int
        Order r of M, at least 2.
    """
    share = betaincinv(0.5, (rank - 1) / 2.0, (delta / 2.0) ** (1.0 / starts.shape[1]))
    limit = 1.0 / float(share)
    ritz = np.linalg.eigvalsh(projected)
    least, most = float(ritz[0]), float(ritz[-1])
    jacobi = [_tridiagonalise(projected, start, steps) for start in starts.T]
    for j in jacobi:
        excess = _Excess(j, np.linalg.inv(j), 0.0, limit)
        beyond = 2.0 * most
        while not excess(beyond):
            beyond *= 2.0
        most = _bisect(excess, most, beyond)
    end = 1.01 * most  # any number above lambda_max will do, and U - J may be singular
    for j in jacobi:
        excess = _Excess(j, np.linalg.inv(end * np.eye(len(j)) - j), end, limit)
        least = _bisect(excess, least, 0.0) if excess(0.0) else 0.0
    return least, most


class _Excess:
    """Whether an eigenvalue t would need less mass in the spectral measure than it has."""

    def __init__(self, jacobi: Columns, inverse: NDArray[Any], end: float, limit: float) -> None:
        self.diagonal = np.diag(jacobi).tolist()
        self.beside = np.diag(jacobi, 1).tolist()
        self.inverse, self.end, self.limit = inverse, end, limit

    def __call__(self, t: float) -> bool:
        e, before = [1.0], 0.0  # by the three-term recurrence
        for alpha, beta in zip(self.diagonal, self.beside, strict=False):
            following = ((t - alpha) * e[-1] - before) / beta
            before = beta * e[-1]
            e.append(following)
            if abs(following) > HUGE:
                return True
        values = np.array(e)
        return bool(abs(t - self.end) * (values @ self.inverse @ values) >= self.limit)


def _tridiagonalise(matrix: Columns, start: Columns, steps: int) -> Columns:
    """Jacobi matrix of `steps` Lanczos steps, fewer if there is nothing more."""
    q = np.zeros((len(matrix), steps))
    q[: len(start), 0] = start / np.linalg.norm(start)
    size = 1
    scale = EXHAUSTED * np.linalg.norm(matrix, 2)
    for k in range(1, steps):
        x = matrix @ q[:, k - 1]
        for _ in range(2):
            x -= q[:, :k] @ (q[:, :k].T @ x)
        if np.linalg.norm(x) <= scale:
            break
        q[:, k] = x / np.linalg.norm(x)
        size = k + 1
    jacobi: Columns = q[:, :size].T @ matrix @ q[:, :size]
    return jacobi


def _bisect(holds: _Excess, inside: float, outside: float) -> float:
    """Where `holds`, false inside and true outside, changes; on its outer side."""
    if holds(inside):
        return inside
    for _ in range(40):
        middle = (inside + outside) / 2.0
        inside, outside = (inside, middle) if holds(middle) else (middle, outside)
    return outside


class LaplacianSpace:
    """The vectors without a constant part on any component of H, with inner product x'L_H y."""

    def __init__(self, h: Graph, component: NDArray[Any], seed: int, n_jobs: int | None) -> None:
        self.h, self.component = h, component
        self.laplacian = h.laplacian()
        self.solver = LaplacianSolver(h, random_state=seed, n_jobs=n_jobs)
        self.solved = True  # whether all solves were good enough for a guarantee
        members = (np.ones(h.n_nodes), (component, np.arange(h.n_nodes)))
        self.sum_up = scipy.sparse.csr_array(
            members, shape=(int(component.max(initial=-1)) + 1, h.n_nodes)
        )
        self.sizes = np.bincount(component)[:, np.newaxis]

    def draw(self, n_starts: int, seed: int) -> tuple[Columns, Columns]:
        """Return an orthonormal basis of random starts, and the coordinates of each start in it."""
        n, rng = self.h.n_nodes, np.random.default_rng(seed)
        u, v, w = self.h.edges()
        currents = np.empty((n, n_starts))
        for column in currents.T:
            flow = np.sqrt(w) * rng.standard_normal(len(w))
            column[:] = np.bincount(u, flow, n) - np.bincount(v, flow, n)
        x = self.solve(currents)
        block = self.extend([], x, EXHAUSTED * math.sqrt(n))  # without what is only rounding
        return block, block.T @ (self.laplacian @ x)

    def solve(self, b: Columns) -> Columns:
        x = self.solver.solve(b, tol=SOLVE_TOL)
        self.solved &= bool((self.solver.report_.residual <= EXHAUSTED).all())
        return x

    def extend(self, basis: list[Columns], x: Columns, least: float) -> Columns:
        """Orthonormalise the columns of x against the basis, without directions below `least`."""
        for smallest in (least, 0.5):  # once more: what is then not of norm 1 was rounding
            products = self.laplacian @ x
            x = x - sum((v @ (v.T @ products) for v in basis), np.zeros_like(x))
            x -= (self.sum_up @ x / self.sizes)[self.component]
            squares, turn = np.linalg.eigh(x.T @ (self.laplacian @ x))
            kept = squares > smallest**2
            x = x @ (turn[:, kept] / np.sqrt(squares[kept]))
        return x
