"""Conjugate gradients for several right-hand sides that share their search directions.

A step costs one product with A for any number of columns, for example a pass over a stream of
edges, while the preconditioner M is cheap. So every column uses all directions (O'Leary 1980).
Directions are made orthonormal with respect to M before the product, which drops dependent ones,
and to A after it.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread

Floats = NDArray[np.float64]
Operator = Callable[[Floats], Floats]
# Smallest energies that are not rounding: of a column relative to its start, of a direction
# relative to the largest.
DONE, DEPENDENT = 1e-28, 1e-12


class BlockCG:
    """The state of the iteration on A x = b, A and M symmetric and positive.

    It starts at `x`, by default 0, with the `residual` b - A x, which is later computed from the
    products taken. `precondition` multiplies by M^-1. `gram` is residual' M^-1 residual: the energy
    of the errors, residual' A^-1 residual, is at most this over the smallest eigenvalue of M^-1 A
    (`smallest_quotient`).
    """

    def __init__(self, residual: Floats, precondition: Operator, x: Floats | None = None) -> None:
        self.x = np.zeros_like(residual) if x is None else x.copy()
        self.residual = residual.copy()
        self._precondition = precondition
        # The last ones, and A times them.
        self._directions = self._images = np.empty((len(residual), 0))
        self._quotients = (np.inf, -np.inf)  # least and largest x'A x / x'M x seen
        # M^-1 A in an orthonormal basis of all directions so far, block tridiagonal: blocks on the
        # diagonal, and those above them.
        self._diagonal: list[Floats] = []
        self._above: list[Floats] = []
        self._root = np.empty((0, 0))  # Cholesky factor of the last directions' energies
        self._prepare()
        self._begin = np.diag(self.gram).copy()

    @one_blas_thread()
    def _prepare(self) -> None:
        self._next = self._precondition(self.residual)
        gram = self._next.T @ self.residual
        self.gram: Floats = (gram + gram.T) / 2

    def step(self, multiply: Operator) -> bool:
        """Take one step; return False and do nothing if no direction is left."""
        p = self.propose()
        if p is not None:
            self.accept(p, multiply(p))
        return p is not None

    def look_ahead(self) -> Floats:
        """Return x after one preconditioned Richardson step, which needs no product with A.

        The step length is 2 / (a + b), where [a, b] is the range of the Rayleigh quotients
        x'A x / x'M x seen so far. If all quotients lie in it, the error in the norm of A is
        multiplied by at most (b - a) / (b + a). The residual after the step is not known.
        """
        low, high = self._quotients
        return self.x + (2.0 / (low + high) if low <= high else 1.0) * self._next

    @one_blas_thread()
    def smallest_quotient(self) -> float:
        """Return the least x'A x / x'M x over the span of all directions so far; 1 without any.

        This Ritz value is at least the smallest eigenvalue of M^-1 A. As long as it is larger,
        the iteration has not yet resolved that eigenvector, and an estimate of the error from it
        may be too small. Safety factors, extrapolated Ritz values and random columns beside b made
        this less frequent for poor M, and never excluded it.
        """
        if not self._diagonal:
            return 1.0
        sizes = [len(block) for block in self._diagonal]
        ends = np.cumsum(sizes)
        bands = np.zeros((2 * max(sizes), ends[-1]))  # bands[i, j] is entry (i + j, j)
        for end, block in zip(ends, self._diagonal, strict=True):
            for j, column in enumerate(block.T):
                bands[: len(block) - j, end - len(block) + j] = column[j:]
        for end, block in zip(ends, self._above, strict=False):
            for i, row in enumerate(block):
                at = len(block) - i
                bands[at : at + len(row), end - at] = row
        least = scipy.linalg.eigvals_banded(bands, True, select="i", select_range=(0, 0))[0]
        return max(float(least), 1e-16 * self._quotients[1])  # what rounding leaves of it

    @one_blas_thread()
    def propose(self) -> Floats | None:
        """Return the next directions, of which `accept` needs the products with A."""
        energy = np.diag(self.gram)
        scale = np.where(energy > DONE * self._begin, 1.0 / np.sqrt(np.maximum(energy, 1e-300)), 0)
        values, vectors = np.linalg.eigh(self.gram * np.outer(scale, scale))
        kept = values > DEPENDENT * max(1.0, float(values[-1]))
        if not kept.any():
            return None
        mix = scale[:, np.newaxis] * vectors[:, kept] / np.sqrt(values[kept])
        p: Floats = self._next @ mix
        # Against the last directions explicitly: M^-1 may be inexact and different in each step.
        self._coefficients = self._images.T @ p
        p -= self._directions @ self._coefficients
        return p

    @one_blas_thread()
    def accept(self, p: Floats, image: Floats) -> None:
        """Minimise along the directions p, given A p."""
        inner = p.T @ image
        inner = (inner + inner.T) / 2
        # Before the last directions were taken out, p was orthonormal with respect to M.
        self._diagonal.append(inner + self._coefficients.T @ self._coefficients)
        quotients = np.linalg.eigvalsh(self._diagonal[-1])
        self._quotients = (
            min(self._quotients[0], float(quotients[0])),
            max(self._quotients[1], float(quotients[-1])),
        )
        if len(self._diagonal) > 1:
            self._above.append(self._root @ self._coefficients)
        self._root = root = scipy.linalg.cholesky(inner, lower=True)
        self._directions = scipy.linalg.solve_triangular(root, p.T, lower=True).T
        self._images = scipy.linalg.solve_triangular(root, image.T, lower=True).T
        coefficients = self._directions.T @ self.residual
        self.x += self._directions @ coefficients
        self.residual -= self._images @ coefficients
        self._prepare()
