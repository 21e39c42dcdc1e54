"""What is known of the error of a sparsifier H when the edges of G are gone.

Let p be the probability with which an edge of H was kept. Its weight w was divided by
p, so (1 - p) w^2 is an unbiased estimate of the variance of the weight. ``_core.draw_errors`` draws
errors with these variances, whose signs are balanced at each node as the sampler balances its
choices. With E the Laplacian of the drawn errors, the largest |x'E x| / x'L_H x estimates epsilon.
It is computed by Lanczos, in memory.

The estimate is a draw of what another sample could have got; the true epsilon is another draw. H
stands for G in the denominator, which raises the ratio; that errors are drawn only for edges that
were kept lowers it. docs/calibration.md has measured ratios of estimated and true epsilon.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.parameters import Constraints, Interval, check_parameters
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

# The fraction of the variance that comes from independent coins. In the scheme "online" it is that
# of the coins at arrival, half; resamples add balanced errors only. 0.2 is measured.
LOOSE = {"resample": 0.2, "online": 0.5, "paper": 1.0}
STEPS = 16  # of Lanczos: about 2% below the limit if the spectrum is a semicircle
SOLVE_TOL = 1e-3  # a smaller one changes no digit of the estimates in docs/calibration.md
NEGLIGIBLE = 1e-12  # the square of the length of a vector that is only rounding
CONSTRAINTS: Constraints = {
    "number": (Interval(Integral, 0, 2**63 - 1),),
    "amplitude": (Interval(Real, 0, 1, "right"),),
}


@dataclass(frozen=True)
class Sample:
    """A snapshot of a sparsifier, with the probabilities of its edges."""

    graph: Graph  # H
    probability: NDArray[np.float32]  # with which each of ``graph.edges()`` was kept
    loose: float  # fraction of the errors that are independent of each other, see LOOSE
    seed: int
    threads: int
    is_whole: bool = False  # no edge that counts was dropped; parallel ones may be added up

    def errors(self, number: int) -> NDArray[np.float32]:
        """Draw an error for the weight of each of ``graph.edges()``; at most the weight."""
        u, v, w = self.graph.edges()
        weights = w.astype(np.float32)
        how = (self.probability, self.loose, self.seed, number)
        return _core.draw_errors(self.graph.n_nodes, u, v, weights, *how)

    def replicate(self, number: int, amplitude: float) -> Graph:
        """Return H with `amplitude` times drawn errors added to its weights."""
        values = {"number": number, "amplitude": amplitude}
        check_parameters("replicate", CONSTRAINTS, values)
        u, v, w = self.graph.edges()
        weights = np.maximum(w + amplitude * self.errors(number), 0.0)
        replicate = Graph.from_edges(u, v, weights, n_nodes=self.graph.n_nodes)
        replicate.nodes, replicate.view = self.graph.nodes, self.graph.view
        return replicate

    @cached_property
    def epsilon(self) -> float:
        """Estimate of epsilon."""
        if np.all(self.probability >= 1.0):
            return 0.0
        u, v, _ = self.graph.edges()
        return largest_ratio(self.graph, (u, v, self.errors(0)), self.seed, self.threads)


def largest_ratio(h: Graph, edges: tuple[NDArray[Any], ...], seed: int, threads: int) -> float:
    """Return about the largest |x'E x| / x'L_H x, where E is the Laplacian of some edges.

    The edges (u, v, w) are between nodes that H connects; weights may be negative.

    Lanczos for E x = t L_H x. The vectors x_k are orthonormal in the inner product x'L_H y, and
    y_k = L_H x_k. A step is a product with E and a solve with L_H:

        r = E x_k - a_k y_k - b_k y_(k-1),    b_(k+1)^2 = r'L_H^+ r,    y_(k+1) = r / b_(k+1).
    """
    u, v, w = h.edges()
    # All directions are equally likely for the start L_H^+ r, in the inner product x'L_H y.
    w = np.sqrt(w) * np.random.default_rng(seed).standard_normal(len(w))
    r = np.asarray(np.bincount(u, w, h.n_nodes) - np.bincount(v, w, h.n_nodes), np.float64)
    del w  # the solver needs the memory
    solver = LaplacianSolver(h, random_state=seed, n_jobs=threads)
    y = np.zeros_like(r)
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(STEPS):
        x = solver.solve_block(r, SOLVE_TOL)
        square = float((r * x).sum())  # not a product of BLAS, whose bits depend on its threads
        if not square > (NEGLIGIBLE if diagonal else 0.0):
            break
        length = math.sqrt(square)
        beside.append(length)
        before, y, x = y, r / length, x / length
        image = np.zeros((h.n_nodes, 1))
        product = _core.EdgePass(x[:, np.newaxis], image, threads)
        product.add(*edges)
        product.finish()
        r = image.ravel()
        diagonal.append(float((x * r).sum()))
        r = r - diagonal[-1] * y - length * before  # `before` is 0 in the first step
    if not diagonal:  # weights differ so much that rounding left nothing of the solution
        return math.nan
    ritz = scipy.linalg.eigvalsh_tridiagonal(diagonal, beside[1:])
    return float(np.abs(ritz).max(initial=0.0))
