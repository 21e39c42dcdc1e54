"""Effective resistances: distances between nodes that take all paths into account."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import check_nodes_of
from ohmlearn.checks.parameters import check_fraction, check_n_jobs, check_seed
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.reading.as_edges import as_graph
from ohmlearn.solver import LaplacianSolver

Floats = NDArray[np.float64]

__all__ = ["effective_resistance"]

EXACT_UP_TO = 500  # nodes; up to this size an exact answer takes milliseconds
EXACT_TOL = 1e-10
EXACT_BATCH = 64  # right-hand sides solved together
# The tolerance is tight although the sketch is rough: a weak link between clusters is one slow mode
# among n and only a tiny part of a random right-hand side. If the solver does not resolve that
# mode, the resistance of the link is lost.
SKETCH_TOL = 1e-8


def effective_resistance(
    graph: object,
    pairs: ArrayLike | None = None,
    *,
    rtol: float = 0.2,
    exact: bool | None = None,
    random_state: object = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Effective resistance of every edge, or between given pairs of nodes.

    This is the voltage between two nodes when one ampere flows from one to the other, if each edge
    is a conductor whose conductance is its weight. For an edge, weight times resistance lies
    between 0 and 1 and is the probability that a random spanning tree contains the edge; these
    products sum to the number of nodes minus the number of components.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
    pairs : array-like of int of shape (n_pairs, 2), optional
        By default all edges, in the order of ``graph.edges()``.
    rtol : float
        About 95% of the estimates have at most this relative error, because their standard error
        is ``rtol / 2``. Estimates for edges are better; those for bridges are exact. Time grows
        as ``1 / rtol**2``.
    exact : bool, optional
        Whether to solve for each answer, to a relative accuracy of about 1e-9, instead of
        estimating it; by default True for at most 500 nodes. This takes one solve per pair, or one
        per node if there are more pairs than nodes.
    random_state : int, Generator, RandomState or None
        Seeds the estimates.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

    Returns
    -------
    ndarray of float
        Infinite for pairs in different components, zero for a node and itself.

    Notes
    -----
    R(u, v) = b'L^+ b with b = 1_u - 1_v. The estimates are squared distances in a random projection
    of the nodes, Z = L^+ B' W^(1/2) Q with random columns Q, one solve for each [1]_.

    References
    ----------
    .. [1] D. A. Spielman and N. Srivastava, "Graph sparsification by effective resistances",
       SIAM Journal on Computing 40, 2011.

    Examples
    --------
    >>> from ohmlearn import Graph, effective_resistance
    >>> triangle_with_tail = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3])
    >>> effective_resistance(triangle_with_tail).round(4)
    array([0.6667, 0.6667, 0.6667, 1.    ])
    >>> effective_resistance(triangle_with_tail, [[0, 3], [1, 1]]).round(4)
    array([1.6667, 0.    ])
    """
    g: Graph = as_graph(graph)
    rtol = check_fraction("rtol", rtol)
    w: NDArray[np.float64] | None = None
    if pairs is None:
        u, v, w = g.edges()
    else:
        array = np.empty((0, 2), np.int32) if np.size(pairs) == 0 else np.asarray(pairs)
        if array.ndim != 2 or array.shape[1] != 2:
            must = "have shape (n_pairs, 2)"
            raise InputError(f"{Param('pairs')} must {must}, got shape {array.shape}")
        columns = (check_nodes_of(g.n_nodes, array[:, i], f"pairs[:, {i}]") for i in (0, 1))
        u, v = (np.ascontiguousarray(column, np.int32) for column in columns)
    if exact is None:
        exact = g.n_nodes <= EXACT_UP_TO
    seed, threads = check_seed(random_state), check_n_jobs(n_jobs)
    result = np.zeros(len(u))
    _, component = g.components()
    result[component[u] != component[v]] = np.inf
    todo = np.flatnonzero((u != v) & np.isfinite(result))
    if len(todo) == 0:
        return result
    if len(todo) < len(u):
        u, v = u[todo], v[todo]
    solver = LaplacianSolver(g, random_state=seed, n_jobs=threads)
    if exact:
        result[todo] = _solve(solver, u, v)
        return result
    # An estimate from q columns has relative variance at most 2 / q.
    rounds = math.ceil(8.0 / rtol**2 / _core.SKETCH_COLUMNS)
    y = np.empty((g.n_nodes, _core.SKETCH_COLUMNS))
    squares, products = np.zeros(len(u)), np.zeros(len(u))
    for number in range(rounds):
        _core.sketch_right_hand_sides(g.indptr, g.indices, g.weights, seed, number, threads, y)
        z = solver.solve(y, tol=SKETCH_TOL)  # warns if it does not converge
        _core.add_estimates(z, u, v, w, seed, number, threads, squares, products)
    q = rounds * _core.SKETCH_COLUMNS
    result[todo] = _combine(squares / q, products / q, g.degrees[u], g.degrees[v], w)
    return result


def _combine(
    squares: Floats, products: Floats, of_u: Floats, of_v: Floats, w: Floats | None
) -> Floats:
    """Combine the two estimates of embedding.hpp; the second one exists for edges, of weight w.

    R is at least the resistance if all other nodes are shorted, and at most 1 / w.
    """
    if w is None:
        return np.asarray(np.maximum(squares, 1.0 / (of_u * of_v / (of_u + of_v))))
    # With variances 2 (1 - t^2), (1 - t) / t and covariance 2 (1 - t), all over q, the best weight
    # of the first estimate is (1 - 2 t) / (2 t^2 - 2 t + 1), none beyond t = 1/2.
    t = np.clip(0.5 * w * (squares + products), 0.0, 1.0)
    first = np.where(t < 0.5, (1.0 - 2.0 * t) / (2.0 * t * t - 2.0 * t + 1.0), 0.0)
    combined = first * squares + (1.0 - first) * products
    rest_u, rest_v = of_u - w, of_v - w
    have_others = (rest_u > 0) & (rest_v > 0)
    around = np.zeros(len(w))
    np.divide(rest_u * rest_v, rest_u + rest_v, out=around, where=have_others)
    return np.asarray(np.minimum(np.maximum(combined, 1.0 / (w + around)), 1.0 / w))


def _solve(
    solver: LaplacianSolver, u: NDArray[np.int32], v: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Solve once per pair or, if there are more pairs than nodes, once per node."""
    n = solver.graph.n_nodes
    result = np.empty(len(u))
    if len(u) <= n:
        for start in range(0, len(u), EXACT_BATCH):
            part = slice(start, start + EXACT_BATCH)
            columns = np.arange(len(u[part]))
            b = np.zeros((n, len(columns)))
            b[u[part], columns] = 1.0
            b[v[part], columns] = -1.0
            x = solver.solve(b, tol=EXACT_TOL)
            result[part] = x[u[part], columns] - x[v[part], columns]
        return result
    by_first = np.argsort(u, kind="stable")
    bounds = np.searchsorted(u[by_first], np.arange(0, n + EXACT_BATCH, EXACT_BATCH))
    diagonal = np.empty(n)
    for k, start in enumerate(range(0, n, EXACT_BATCH)):
        nodes = np.arange(start, min(start + EXACT_BATCH, n))
        b = np.zeros((n, len(nodes)))
        b[nodes, nodes - start] = 1.0
        x = solver.solve(b, tol=EXACT_TOL)
        diagonal[nodes] = x[nodes, nodes - start]
        here = by_first[bounds[k] : bounds[k + 1]]
        result[here] = -2.0 * x[v[here], u[here] - start]
    return result + diagonal[u] + diagonal[v]
