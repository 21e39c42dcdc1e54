"""How far a sparsifier H is from its graph G, measured in a few passes over the edges of G.

With x'L_H x / x'L_G x the ratio of the energies of H and G, H is an epsilon-sparsifier if all
ratios lie in [1 - epsilon, 1 + epsilon]. Their inverses are the eigenvalues of M = L_H^+ L_G,
symmetric in the inner product x'L_H y: the smallest ratio is 1 / lambda_max, the largest is
1 / lambda_min. A step of Lanczos on M is a pass over G and a solve with H.

The s starts L_H^+ B_H' W_H^(1/2) z, z Gaussian, have no preferred direction in that inner product
and share each pass. Rayleigh-Ritz on the sum of their k-step Krylov spaces (block Lanczos) gives
xi_min and xi_max within [lambda_min, lambda_max]: epsilon from these is a bound from below. For the
other side, Kuczynski and Wozniakowski (SIAM J. Matrix Anal. Appl. 13, 1992): if A of order r is
positive semi-definite, xi_max(A) < (1 - eta) lambda_max(A) from one start has probability at most
p = 1.648 sqrt(r) exp(-sqrt(eta) (2k - 1)), hence p^s from all. A shift of A leaves Krylov spaces as
they are. With the shifts M - lambda_min and lambda_max - M, not random, and
spread = lambda_max - lambda_min,

    lambda_max - xi_max <= eta * spread    and    xi_min - lambda_min <= eta * spread,

each but for p^s. Their sum gives spread <= (xi_max - xi_min) / (1 - 2 eta), so lambda_max is at
most U = xi_max + eta (xi_max - xi_min) / (1 - 2 eta). The unshifted U = xi_max / (1 - eta) follows
from the same events and is smaller only where nothing is left for lambda_min. The second inequality
with lambda_max <= U says lambda_min >= (xi_min - eta U) / (1 - eta) = U - (U - xi_min) / (1 - eta).
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn._passes import EdgePasses
from ohmlearn._validation import check_count, check_fraction, check_graph, check_seed
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

__all__ = ["Certificate", "certify"]

Columns = NDArray[np.float64]
SOLVE_TOL = 1e-10
EXHAUSTED = 1e-7  # relative norm below which a direction is rounding: Gram matrices see no less


@dataclass(frozen=True)
class Certificate:
    """What `certify` found; ``print`` shows it in words.

    Attributes
    ----------
    lower, upper : float
        Smallest and largest ratio x'L_H x / x'L_G x of energies seen; the extremes over all x lie
        at or beyond them. NaN if not measured, because components differ.
    lower_bound, upper_bound : float
        All ratios lie between these, with probability `confidence`.
    passes, edges_read : int
        Passes over the edges of G, and edges read in all of them together.
    n_nodes : int
        Nodes of H.
    exact : bool
        Whether estimates and bounds agree up to rounding: the Krylov space was exhausted.
    lost_edge : (int, int) or None
        An edge of G between components of H, or to a node that H does not have: `lower` is 0.
    extra_edge : (int, int) or None
        An edge of H between two components of G: `upper` is infinite.
    """

    lower: float
    upper: float
    lower_bound: float
    upper_bound: float
    confidence: float
    passes: int
    edges_read: int
    n_nodes: int
    exact: bool = False
    lost_edge: tuple[int, int] | None = None
    extra_edge: tuple[int, int] | None = None

    @property
    def epsilon(self) -> float:
        """Estimate of epsilon, never above the true one."""
        return float(np.fmax(1.0 - self.lower, self.upper - 1.0))  # fmax passes over NaN

    @property
    def epsilon_bound(self) -> float:
        """What epsilon does not exceed, with probability `confidence`."""
        return max(1.0 - self.lower_bound, self.upper_bound - 1.0)

    def __str__(self) -> str:
        passes = f"{self.passes} pass{'es' * (self.passes != 1)}"
        cost = f"{passes}, {self.edges_read:,} edges read, {self.n_nodes:,} nodes"
        if self.lost_edge is not None:
            fault = f"edge {self.lost_edge} of G joins what H leaves apart (lowest ratio 0)"
            return f"H does not approximate G: {fault}\n{cost}"
        if self.extra_edge is not None:
            fault = f"edge {self.extra_edge} of H joins what G leaves apart (ratio infinite)"
            return f"H does not approximate G: {fault}\n{cost}"
        found = f"H is within 1 ± {self.epsilon:.3g} of G"
        ratios = f"(ratios of energies {self.lower:.3g} to {self.upper:.3g})"
        bound = f"guaranteed <= {self.epsilon_bound:.3g} with confidence {self.confidence:g}"
        bounds = f"(ratios {self.lower_bound:.3g} to {self.upper_bound:.3g})"
        if self.exact:
            bound, bounds = "exact", "up to rounding"
        return f"{found} {ratios}\n{bound} {bounds}\n{cost}"


def certify(
    sparsifier: Any,
    edges: Any,
    eta: float = 0.05,
    confidence: float = 0.999,
    max_passes: int | None = None,
    n_starts: int = 4,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate:
    """Measure how well a sparsifier H keeps the energies x'Lx of a graph G.

    Batches are not kept: memory is about ``8 * n_starts * passes`` bytes a node.

    Parameters
    ----------
    sparsifier : Graph, or an object whose ``snapshot()`` returns one
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
        The edges of G. An iterable, a list or what else can start over, is read in every pass.
    eta : float
        Slack of the bounds, as a share of the range of 1 / ratio. Passes grow as 1 / sqrt(eta).
    confidence : float
        Probability with which the bounds hold.
    max_passes : int, optional
        With fewer passes than `eta` takes, the bounds are wider but hold just as surely.
    n_starts : int
        Random starts that share each pass. More of them take fewer passes and more memory.
    random_state : int, Generator, RandomState or None
        Seeds the starts.
    n_jobs : int, optional
        Threads of the solver, read as scikit-learn does.
    verbose : int
        If positive, print a line for each pass to stderr.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from ohmlearn import Graph, certify
    >>> triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> path = Graph.from_edges([0, 1], [1, 2], [1.5, 1.5])
    >>> print(certify(path, triangle, random_state=0))
    H is within 1 ± 0.5 of G (ratios of energies 0.5 to 1.5)
    exact up to rounding
    1 pass, 3 edges read, 3 nodes
    """
    h = check_graph(sparsifier.snapshot() if hasattr(sparsifier, "snapshot") else sparsifier, Graph)
    eta, delta = check_fraction("eta", eta), 1.0 - check_fraction("confidence", confidence)
    n_starts, seed = check_count("n_starts", n_starts), check_seed(random_state)
    n_components, component = h.components()
    rank = h.n_nodes - n_components
    # p^s <= delta / 2 for each end, solved for sqrt(eta) * (2 k - 1):
    needed = math.log(1.648 * math.sqrt(max(rank, 1))) + math.log(2.0 / delta) / n_starts
    steps = math.ceil((needed / math.sqrt(eta) + 1.0) / 2.0)
    if max_passes is not None:
        steps = min(steps, check_count("max_passes", max_passes))

    space, source = _Space(h, component, seed, n_jobs), EdgePasses(edges, component, "certify")
    basis: list[Columns] = []
    projected = np.empty((0, 0))  # V'L_G V, V the basis
    block = space.starts(n_starts, seed)
    low = high = 1.0
    exact = rank == 0
    while True:
        image = source.multiply(block)
        cost = (confidence, source.passes, source.edges_read, h.n_nodes)
        if source.passes == 1:
            lost, extra = source.lost_edge, source.find_extra(h)
            if lost is not None or extra is not None:
                lower = math.nan if lost is None else 0.0
                upper = math.nan if extra is None else math.inf
                return Certificate(lower, upper, 0.0, math.inf, *cost, False, lost, extra)
        if exact:
            break
        basis.append(block)
        coupling = np.vstack([v.T @ image for v in basis])
        size = len(projected)
        projected = np.block([[projected, coupling[:size]], [coupling[:size].T, coupling[size:]]])
        ritz = np.linalg.eigvalsh(projected)
        low, high = float(ritz[0]), float(ritz[-1])
        if verbose > 0:
            seen = f"pass {source.passes} of {steps}: ratios {1 / high:.4g} to {1 / low:.4g}"
            print(seen, file=sys.stderr)
        exact = len(projected) >= rank
        if exact or source.passes >= steps:
            break
        block = space.extend(basis, space.solve(image), EXHAUSTED * high)
        if exact := block.shape[1] == 0:
            break
    if exact:
        least, most = low - EXHAUSTED * high, high * (1.0 + EXHAUSTED)
    else:
        share = (needed / (2 * len(basis) - 1)) ** 2 if space.solved else 1.0
        least, most = _bound_eigenvalues(low, high, share)
    upper_bound = 1.0 / least if least > 0.0 else math.inf
    return Certificate(1.0 / high, 1.0 / low, 1.0 / most, upper_bound, *cost, exact=exact)


def _bound_eigenvalues(low: float, high: float, eta: float) -> tuple[float, float]:
    """Bounds of lambda_min and lambda_max from the extreme Ritz values; see above."""
    if eta >= 1.0:
        return 0.0, math.inf
    most = high / (1.0 - eta)
    if eta < 0.5:
        most = min(most, high + eta * (high - low) / (1.0 - 2.0 * eta))
    return max(0.0, (low - eta * most) / (1.0 - eta)), most


class _Space:
    """The vectors without a constant part on any component of H, with inner product x'L_H y."""

    def __init__(self, h: Graph, component: NDArray[Any], seed: int, n_jobs: int | None) -> None:
        self.h, self.component = h, component
        self.laplacian = h.laplacian()
        self.solver = LaplacianSolver(h, random_state=seed, n_jobs=n_jobs)
        self.solved = True  # whether all solves converged, as far as float64 allows
        members = (np.ones(h.n_nodes), (component, np.arange(h.n_nodes)))
        self.sum_up = scipy.sparse.csr_array(
            members, shape=(int(component.max(initial=-1)) + 1, h.n_nodes)
        )
        self.sizes = np.bincount(component)[:, np.newaxis]

    def starts(self, n_starts: int, seed: int) -> Columns:
        """Orthonormal basis of the span of random starts L_H^+ B_H' W_H^(1/2) z."""
        n, rng = self.h.n_nodes, np.random.default_rng(seed)
        u, v, w = self.h.edges()
        currents = np.empty((n, n_starts))
        for column in currents.T:
            flow = np.sqrt(w) * rng.standard_normal(len(w))
            column[:] = np.bincount(u, flow, n) - np.bincount(v, flow, n)
        # More starts than dimensions leave rounding, to be dropped.
        return self.extend([], self.solve(currents), EXHAUSTED * math.sqrt(n))

    def solve(self, b: Columns) -> Columns:
        x = self.solver.solve(b, tol=SOLVE_TOL)
        report = self.solver.report_
        self.solved &= bool((report.converged | report.rounding).all())
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
