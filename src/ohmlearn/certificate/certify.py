"""How far a sparsifier H is from its graph G, measured in a few passes over the edges of G.

`certify` is the loop; lanczos.py derives the bounds, search_space.py has the basis and its rounding
errors, where a spanning forest bounds the error of a solve.
"""

import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ohmlearn._display import Shown
from ohmlearn._phases import number_pass, phase
from ohmlearn.certificate.lanczos import Lanczos
from ohmlearn.checks.parameters import check_count, check_fraction, check_seed
from ohmlearn.edges.passes import check_first_pass
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.as_edges import as_edges_and_sparsifier

CALL = "certify(edges, h)"
MAX_PASSES = 100  # a sparsifier worth having takes about ten
AGREES = 1e-6  # relative difference of estimates and bounds that counts as rounding
MAX_STARTS = 1000  # each keeps one vector in memory for every pass


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """What `certify` found; ``print`` shows it in words.

    Attributes
    ----------
    lower, upper : float
        Smallest and largest observed ratio x'L_H x / x'L_G x of energies, corrected for rounding.
        The true extremes are at least as far out. NaN if not measured, because components differ or
        the weights of H are too far apart for double precision.
    lower_bound, upper_bound : float
        All ratios lie between these, with probability `confidence`. They allow for rounding and
        inexact solves. If rounding errors dominate, as they do if ratios differ by a factor of
        about 1e9 or more, a bound is 0 or inf.
    confidence : float
        As passed to `certify`.
    passes, edges_read : int
        Passes over the edges of G, and edges read in all of them together.
    n_nodes : int
        Nodes of H.
    exact : bool
        Whether estimates and bounds agree to a millionth, as they do once the Krylov space is
        exhausted and rounding is negligible.
    lost_edge : (int, int) or None
        An edge of G between components of H, or to a node that H does not have: `lower` is 0.
    extra_edge : (int, int) or None
        An edge of H between two components of G: `upper` is infinite.
    nodes : NodeTable or None
        The ids of the nodes, if the edges or the sparsifier have them.

    Examples
    --------
    >>> from ohmlearn import Graph, certify
    >>> triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> path = Graph.from_edges([0, 1], [1, 2], [1.5, 1.5])
    >>> certificate = certify(triangle, path, random_state=0)
    >>> round(certificate.epsilon, 9), certificate.exact
    (0.5, True)
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
    nodes: NodeTable | None = field(default=None, repr=False, compare=False)

    @property
    def epsilon(self) -> float:
        """Estimate of epsilon, never above the true one."""
        return float(np.fmax(1.0 - self.lower, self.upper - 1.0))  # fmax ignores NaN

    @property
    def epsilon_bound(self) -> float:
        """Upper bound of epsilon that holds with probability `confidence`."""
        return max(1.0 - self.lower_bound, self.upper_bound - 1.0)

    def ids(self, edge: tuple[int, int] | None) -> tuple[Any, ...] | None:
        """Return the ids of the ends of an edge, or their numbers if there is no table of ids.

        The id is None for a node that is not in the table, for example one added on a cluster
        after sparsification.
        """
        nodes = self.nodes
        if edge is None or nodes is None:
            return edge
        known = [end for end in edge if end < len(nodes)]
        names = dict(zip(known, nodes.ids(known).tolist(), strict=True))
        return tuple(names.get(end) for end in edge)

    def __repr__(self) -> str:
        return f"<Certificate: {'; '.join(str(self).splitlines())}>"

    def _facts(self) -> dict[str, Any]:
        bounds = f"{self.lower_bound:.3g} to {self.upper_bound:.3g}"
        return {
            "energies in H, times those in G": f"{self.lower:.3g} to {self.upper:.3g}",
            f"bounds (confidence {self.confidence:g})": bounds,
            "epsilon": self.epsilon,
            "epsilon, bound": self.epsilon_bound,
            "exact": self.exact,
            "edge that H does not connect": self.ids(self.lost_edge),
            "edge of H that G does not connect": self.ids(self.extra_edge),
            "passes": self.passes,
            "edges read": self.edges_read,
            "nodes": self.n_nodes,
        }

    def __str__(self) -> str:
        passes = f"{self.passes} pass{'es' * (self.passes != 1)}"
        cost = f"{passes}, {self.edges_read:,} edges read, {self.n_nodes:,} nodes"
        if self.lost_edge is not None:
            edge = self.ids(self.lost_edge)
            fault = f"edge {edge} of G joins nodes that H does not connect (lowest ratio 0)"
            return f"H does not approximate G: {fault}\n{cost}"
        if self.extra_edge is not None:
            edge = self.ids(self.extra_edge)
            fault = f"edge {edge} of H joins nodes that G does not connect (ratio infinite)"
            return f"H does not approximate G: {fault}\n{cost}"
        if math.isnan(self.epsilon):
            fault = "the weights of H are too far apart for double precision"
            return f"nothing is known about H and G: {fault}\n{cost}"
        found = f"energies in H are {self.lower:.3g} to {self.upper:.3g} times those in G"
        found += f" (epsilon {self.epsilon:.3g})"
        if self.exact:
            return f"{found}\nexact up to rounding\n{cost}"
        bound = f"bound: {self.lower_bound:.3g} to {self.upper_bound:.3g} times"
        sure = f"epsilon {self.epsilon_bound:.3g} (confidence {self.confidence:g})"
        return f"measured: {found}\n{bound}, {sure}\n{cost}"


def certify(
    edges: object,
    h: Any,
    *,
    at: object = None,
    since: object = None,
    eta: float = 0.05,
    confidence: float = 0.999,
    max_passes: int | None = None,
    n_starts: int = 4,
    random_state: object = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate:
    """Measure how well a sparsifier H keeps the energies x'Lx of a graph G.

    Batches are not kept: memory is about ``8 * n_starts * passes`` bytes per node.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
        The edges of G. An iterable is read in every pass; it must be one that can be read more than
        once, for example a list.
    h : Graph, or an object whose ``snapshot()`` returns one
        The sparsifier. If it has a half-life or a horizon, the edges need times, and H is compared
        with the graph of the edges as they count in H.
    at, since : number or date, optional
        Which H, if times matter; see `StreamingSparsifier.snapshot`.
    eta : float
        The passes end when the bounds of the ratios are within a factor 1 - eta of the estimates.
    confidence : float
        Probability with which the bounds hold, for any number of passes.
    max_passes : int, optional
        Largest number of passes; 100 by default. If they end before `eta` is reached, the bounds
        are wider but hold with the same probability.
    n_starts : int
        Random starts that share each pass. More of them take fewer passes and more memory.
    random_state : int, Generator, RandomState or None
        Seeds the starts.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.
    verbose : int
        If positive, print a line for each pass to stderr.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If `edges` and `h` have different ids for the same node number.

    Warns
    -----
    UserWarning
        If `h` has more edges than the graph, because the arguments may be swapped.

    Notes
    -----
    H is an epsilon-sparsifier if all ratios x'L_H x / x'L_G x lie in [1 - epsilon, 1 + epsilon].
    Their inverses are the eigenvalues of M = L_H^+ L_G, which is symmetric in the inner product
    x'L_H y. A step of Lanczos on M is a pass over G and a solve with H. Ritz values lie within
    [lambda_min, lambda_max], so they give a lower bound of epsilon.

    The upper bound comes from the random starts: in one of them, an eigenvector has a fraction
    above c² of the squared norm, with probability 1 - delta / 2. With J the Jacobi matrix of that
    start and e(t) = (p_0(t), ..., p_(k-1)(t)) its orthonormal polynomials, lambda_max is at most
    the U where

        U e(U)' J^-1 e(U) = 1 / c²,

    and lambda_min is bounded from below in the same way with U - J [1]_. The number of passes may
    depend on the results. The bounds of [2]_ need no Jacobi matrix, but were always looser.

    References
    ----------
    .. [1] J. L. M. van Dorsselaer, M. E. Hochstenbach and H. A. van der Vorst, "Computing
       probabilistic bounds for extreme eigenvalues of symmetric matrices with the Lanczos method",
       SIAM Journal on Matrix Analysis and Applications 22, 2000.
    .. [2] J. Kuczynski and H. Wozniakowski, "Estimating the largest eigenvalue by the power and
       Lanczos algorithms with a random start", SIAM Journal on Matrix Analysis and Applications
       13, 1992.

    Examples
    --------
    >>> from ohmlearn import Graph, certify
    >>> triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> path = Graph.from_edges([0, 1], [1, 2], [1.5, 1.5])
    >>> print(certify(triangle, path, random_state=0))
    energies in H are 0.5 to 1.5 times those in G (epsilon 0.5)
    exact up to rounding
    1 pass, 3 edges read, 3 nodes
    """
    edges, h = as_edges_and_sparsifier(edges, h, CALL, at, since)
    eta, delta = check_fraction("eta", eta), 1.0 - check_fraction("confidence", confidence)
    n_starts, seed = check_count("n_starts", n_starts, MAX_STARTS), check_seed(random_state)
    component = h.components()[1]
    limit = MAX_PASSES if max_passes is None else check_count("max_passes", max_passes)

    source = edges.open_passes(component, "certify", n_jobs, h.view)
    with phase("preparing the certificate"):
        lanczos = Lanczos(h, component, eta, delta, n_starts, seed, n_jobs)
    while True:
        with phase(number_pass("certificate", source.passes + 1, limit, at_most=True)):
            image = source.multiply(lanczos.block)
            cost = (confidence, source.passes, source.edges_read, h.n_nodes)
            if source.passes == 1:
                check_first_pass(edges, h, source, CALL)
                nodes = edges.nodes or h.nodes
                lost, extra = source.lost_edge, source.find_extra(h)
                if lost is not None or extra is not None:
                    lower = math.nan if lost is None else 0.0
                    upper = math.nan if extra is None else math.inf
                    return Certificate(
                        lower, upper, 0.0, math.inf, *cost, False, lost, extra, nodes
                    )
            lanczos.project(image)
            if verbose > 0:
                seen = f"{_invert(lanczos.high):.4g} to {_invert(lanczos.low):.4g}"
                sure = f"surely above {_invert(lanczos.most):.4g}"
                print(f"pass {source.passes}: ratios {seen}, {sure}", file=sys.stderr)
            if lanczos.is_done() or source.passes >= limit:
                break
            lanczos.extend()
            if lanczos.is_done():
                break
    low, high, least, most = lanczos.low, lanczos.high, lanczos.least, lanczos.most
    exact = least >= (1.0 - AGREES) * low and most <= (1.0 + AGREES) * high
    lower, upper, lower_bound, upper_bound = map(_invert, (high, low, most, least))
    return Certificate(lower, upper, lower_bound, upper_bound, *cost, exact=exact, nodes=nodes)


def _invert(eigenvalue: float) -> float:
    """Return the ratio of energies that belongs to an eigenvalue."""
    return math.inf if eigenvalue <= 0.0 else 1.0 / eigenvalue
