"""Extreme eigenvalues of M = L_H^+ L_G by Lanczos, with bounds that hold with high probability.

M is symmetric in the inner product x'L_H y. In it the starts L_H^+ B_H' W_H^(1/2) z, z Gaussian,
have no preferred direction among the r = n - components dimensions. So the fraction of a given
eigenvector in the squared norm of a start follows Beta(1/2, (r - 1)/2). There is a constant c,
which depends only on r, delta and the number of starts. With probability at least 1 - delta / 2,
this fraction is above c^2 in some start. If this holds for both ends of the spectrum, nothing below
is random; in particular, the decision to stop may depend on the results so far.

Let x be an eigenvector of norm 1 for an eigenvalue t, and q_1, ..., q_k the Lanczos vectors of a
start in which x has a fraction above c^2. The products g_i of x and q_i follow the three-term
recurrence of the Jacobi matrix J, with diagonal a_i and off-diagonal entries b_i,

    b_(i+1) g_(i+1) = (t - a_i) g_i - b_i g_(i-1),    |g_1| >= c.

So g = g_1 e(t), where e(t) = (p_0(t), ..., p_(k-1)(t)) are the orthonormal polynomials, which grow
beyond the Ritz values. But g cannot be long: t x x' is at most M, so t g g' is at most J. Hence
lambda_max is at most the U where

    U e(U)' J^-1 e(U) = 1 / c^2;    the left side increases beyond the Ritz values.

In the same way (U - t) g g' is at most U - J, which bounds lambda_min from below. Where the Krylov
space is exhausted, b_(k+1) is nearly 0, g_(k+1) would be enormous, and the sum of all g_i^2, which
is at most 1, gives the bound. Van Dorsselaer, Hochstenbach and van der Vorst (SIAM J. Matrix Anal.
Appl. 22, 2000) use one Lanczos polynomial; the sums use all p_j and the last diagonal entry of J.
It is not known which start has the fraction above c^2, so the worst bound over all starts is used.

Rounding and inexact solves make each step of the recurrence wrong by at most some eta (see
`space`). Beyond the Ritz values the recurrence with eta added has a positive solution h, as the
recurrence without eta does, and so

    |g_i| >= c p_(i-1)(t) - h_i,    b_(i+1) h_(i+1) = (t - a_i) h_i - b_i h_(i-1) + eta,    h_1 = 0.

The error of J is a matrix of known norm; that norm times the identity is added to J. So the bounds
hold for any eta; if eta is too large for a finite bound, they are 0 or infinite.

Why not Kuczynski and Wozniakowski (SIAM J. Matrix Anal. Appl. 13, 1992)? They show that for one
start lambda_max - xi_max > eta (lambda_max - lambda_min) has probability at most
1.648 sqrt(r) exp(-sqrt(eta) (2k - 1)), and the same for the other end. The resulting bounds,
U = xi_max / (1 - eta) and lambda_min >= U - (U - xi_min) / (1 - eta), hold, but the second is
useless as soon as eta lambda_max > lambda_min. The sums above depend on how far Lanczos has really
converged, and were never looser in experiments.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ohmlearn._blas import one_blas_thread
from ohmlearn.certificate.search_space import Errors, LaplacianSpace
from ohmlearn.graph import Graph

Floats = NDArray[np.float64]
# Relative errors of solves that are small enough not to change a bound noticeably.
START_GOAL, IMAGE_GOAL = 1e-3, 1e-7
ROUNDED = 1e-6  # if the relative rounding is below this, both estimates are taken as equal


class Lanczos:
    """The range of the eigenvalues of M, improved by each product with L_G.

    The goal are bounds within a factor 1 - eta of the estimates, which may fail with probability
    delta. `block` has the vectors to multiply by L_G next. The estimates `low` and `high` lie
    within the range of the eigenvalues, and are NaN if rounding is too large; `least` and `most`
    are bounds. Weights may be so far apart that squares overflow: then these are 0 and infinite.
    """

    @np.errstate(over="ignore", invalid="ignore")
    def __init__(
        self,
        h: Graph,
        component: NDArray[Any],
        eta: float,
        delta: float,
        n_starts: int,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.rank = h.n_nodes - int(component.max(initial=-1)) - 1
        self.block = np.empty((h.n_nodes, 0))
        self.low = self.high = self.least = self.most = 1.0
        if self.rank > 0:
            self._eta, self._steps = eta, 0
            # With probability 1 - delta / 2, an eigenvector has a part above its square in a start.
            tail = (delta / 2.0) ** (1.0 / n_starts)
            above = betaincinv(0.5, (self.rank - 1) / 2.0, tail) if self.rank > 1 else 1.0
            self._cosine = math.sqrt(float(above))
            self._space = LaplacianSpace(h, component, seed, n_jobs)
            self._space.draw(n_starts, START_GOAL * self._cosine)
            self.block = self._space.block
            self.low = self.high = math.nan
            self.least, self.most = 0.0, math.inf

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def project(self, image: Floats) -> None:
        """Update estimates and bounds, given L_G times the block."""
        if self.block.shape[1] == 0:
            return
        space, errors = self._space, self._space.errors
        space.project(image)
        if not np.isfinite(space.projected).all():
            self.block = self.block[:, :0]
            return
        self._steps += 1
        ritz = np.linalg.eigvalsh(space.projected)
        low, high = float(ritz[0]), float(ritz[-1])
        tilt = errors.gram + errors.rounding
        if len(ritz) == self.rank and tilt + errors.rounding < 1.0:  # V spans the whole space
            self.block = self.block[:, :0]
            self.most = (high + errors.projection) / (1.0 - tilt - errors.rounding)
            off = errors.projection + errors.rounding * self.most
            self.least = max(low - off, 0.0) / (1.0 + tilt)
        else:
            self._bound(low, high, self._steps - 1)
        # Quotients x'L_G x / x'L_H x of the Ritz vectors, reduced by possible rounding errors.
        off = errors.projection + errors.rounding * self._largest(high)
        if low + off <= high - off and tilt < 1.0:
            self.low, self.high = (low + off) / (1.0 - tilt), (high - off) / (1.0 + tilt)
        elif off + tilt * high <= ROUNDED * high:
            self.low = self.high = (low + high) / 2.0

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def extend(self) -> None:
        """Find the next block; without one, all of T is known and gives the final bounds."""
        space = self._space
        space.extend(IMAGE_GOAL * self._cosine * self.low)
        self.block = space.block
        if self.block.shape[1] == 0:
            ritz = np.linalg.eigvalsh(space.projected)
            self._bound(float(ritz[0]), float(ritz[-1]), len(ritz))

    def _bound(self, low: float, high: float, rows: int) -> None:
        """Bound the eigenvalues, given the extreme Ritz values and the rows of T to use."""
        space, errors = self._space, self._space.errors
        cosine = self._cosine * (1.0 - errors.gram) - errors.start - errors.rounding
        if not (cosine > 0.0 and high > 0.0):
            self.block = self.block[:, :0]
            return
        floor = errors.image + errors.rounding * high
        chains = [_run_lanczos(space.projected, s, rows, floor) for s in space.starts.T]
        most = high
        for chain in chains:
            test = _Test(chain, cosine, 0.0, errors)
            most = _bisect(test, most, _double(test, most))
        end = 1.01 * most  # any number above lambda_max works, but U - J could be singular
        least = max(low, 0.0) if most < math.inf else 0.0
        for chain in chains if least > 0.0 else []:
            test = _Test(chain, cosine, end, errors)
            least = _bisect(test, least, 0.0) if test(0.0) else 0.0
        self.least, self.most = least, most

    def _largest(self, high: float) -> float:
        """Return the factor that the rounding error of products with L_G is proportional to.

        It is the square root of the largest quotient seen times lambda_max. Every edge of G
        contributes to the rounding error, even if the basis vectors hardly differ across it.
        """
        most = self.most if self.most < math.inf else high / self._cosine**2
        return math.sqrt(high * most) if high > 0.0 else math.inf

    def is_done(self) -> bool:
        """Whether the bounds are close enough, or nothing more can be known."""
        if self.block.shape[1] == 0:
            return True
        errors = self._space.errors
        error = errors.image + errors.rounding * self._largest(self.high)
        highest = self.most <= self.high / (1.0 - self._eta) or not error < self._eta * self.high
        lowest = self.least >= (1.0 - self._eta) * self.low or not error < self._eta * self.low
        return highest and lowest


@dataclass
class _Chain:
    """Rows of a Jacobi matrix: each diagonal entry and the off-diagonal entry after it.

    If one more diagonal entry is known, `whole` are the eigenvalues and eigenvectors of the matrix
    that includes it.
    """

    diagonal: list[float]
    beside: list[float]
    whole: tuple[Floats, Floats] | None = None


def _run_lanczos(matrix: Floats, start: Floats, rows: int, floor: float) -> _Chain:
    """Return `rows` rows, or fewer if an off-diagonal entry falls to `floor`."""
    q = np.zeros((len(matrix), 1))
    q[: len(start), 0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(rows):
        x = matrix @ q[:, -1]
        diagonal.append(float(q[:, -1] @ x))
        for _ in range(2):
            x -= q @ (q.T @ x)
        beside.append(max(float(np.linalg.norm(x)), floor))
        if beside[-1] <= floor:
            return _Chain(diagonal, beside)
        q = np.column_stack([q, x / beside[-1]])
    values, vectors = np.linalg.eigh(q.T @ matrix @ q)
    return _Chain(diagonal, beside, (values, vectors))


@dataclass
class _Test:
    """Test whether t, beyond the Ritz values, is too far out to be an eigenvalue.

    `end` is 0 in the test for the largest eigenvalue, and a number above the largest eigenvalue in
    the test for the smallest.
    """

    chain: _Chain
    cosine: float
    end: float
    errors: Errors

    def __call__(self, t: float) -> bool:
        chain, errors, largest = self.chain, self.errors, max(t, self.end)
        sign = 1.0 if self.end == 0.0 else -1.0
        # Double the error, so that the difference of two large numbers below is not just rounding.
        eta = 2.0 * (errors.image + errors.rounding * largest)
        longest = 1.0 + errors.gram + errors.rounding
        p, h = [1.0], [0.0]
        before_p = before_h = beta = total = 0.0
        for alpha, following in zip(chain.diagonal, chain.beside, strict=True):
            step = sign * (t - alpha)
            next_p = (step * p[-1] - beta * before_p) / following
            next_h = (step * h[-1] - beta * before_h + eta) / following
            before_p, before_h, beta = p[-1], h[-1], following
            p.append(next_p)
            h.append(next_h)
            total += max(self.cosine * next_p - next_h, 0.0) ** 2
            if total >= longest:
                return True
            if next_h >= self.cosine * next_p:  # this stays so, and later steps give no bound
                return False
        if chain.whole is None:
            return False
        values, vectors = chain.whole
        shift = errors.projection + errors.rounding * largest
        shift += (errors.gram + errors.rounding) * self.end
        weights = sign * (values - self.end) + shift
        if not weights.min() > 0.0:
            return False
        signs = sign ** np.arange(len(p))
        size = np.sqrt(np.sum((vectors.T @ (signs * p)) ** 2 / weights))
        off = np.linalg.norm(h) / math.sqrt(weights.min())
        return bool(math.sqrt(abs(t - self.end)) * (self.cosine * size - off) >= 1.0)


def _double(test: _Test, t: float) -> float:
    """Double t until the test holds; return infinity if it does not after 100 times."""
    for _ in range(100):
        t *= 2.0
        if test(t):
            return t
    return math.inf


def _bisect(test: _Test, inside: float, outside: float) -> float:
    """Return a point just outside the one where the test, false inside, becomes true."""
    if test(inside) or outside == math.inf:
        return inside if outside < math.inf else math.inf
    for _ in range(40):
        middle = (inside + outside) / 2.0
        inside, outside = (inside, middle) if test(middle) else (middle, outside)
    return outside
