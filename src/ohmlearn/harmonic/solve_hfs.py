"""Harmonic functions from a few labels: HFS and stable-HFS, on a graph in memory or on a stream.

`refine` runs conjugate gradients on the graph G of a stream, preconditioned by a sparsifier H. Each
step takes one pass over the edges of G. About as many passes are needed as for `certify`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn._display import Shown
from ohmlearn._phases import number_pass, phase
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import check_columns, check_node_ids
from ohmlearn.checks.parameters import (
    Constraints,
    Options,
    check_count,
    check_fraction,
    check_parameters,
    check_seed,
)
from ohmlearn.edges.passes import Passes, check_first_pass
from ohmlearn.errors import InputError, InputTypeError, Param
from ohmlearn.graph import Graph
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.hfs_system import Floats, HFSSolver, HFSSystem, Normalization, RestartSystem
from ohmlearn.harmonic.leave_one_out import (
    LeftOut,
    average_around,
    average_in,
    leave_out_labels,
    respond,
)
from ohmlearn.reading.as_edges import as_edges_and_sparsifier, as_graph

__all__ = ["HFSResult", "Method", "refine", "solve_hfs"]

Method = Literal["harmonic", "restart"]
CONSTRAINTS: Constraints = {"method": (Options(("harmonic", "restart")),)}

CALL = "refine(edges, h, labelled, Y)"
PRECONDITIONER_TOL = 1e-6
RESPONSE_TOL = 1e-4  # H is less accurate than that
# Least ratio of energies on H and on all edges, or the other way round. With less, leave-one-out
# scores were far too low on a social network, and those of H alone were about right.
CLOSE = 0.6
# Noise of a mean over the neighbours in H, relative to that of independent errors. Measured: the
# errors of neighbours in H are correlated, because the same edges caused them.
CORRELATED = 2.0
# If the residual is above TOO_MUCH * tol, more iterations do not help.
MOST_SOLVES, TOO_MUCH = 3, 1e4
PRECISION = (
    "float64 cannot reach this tolerance, because gamma times the weights is too large or the "
    "weights differ too much; reduce gamma (large values only rescale the scores) or increase tol"
)


@dataclass(frozen=True, repr=False)
class HFSResult(Shown):
    """What `solve_hfs` and `refine` return.

    Attributes
    ----------
    f : ndarray of shape (n_nodes,) or (n_nodes, n_columns)
        The scores, with as many dimensions as Y; 0 where `reached` is False.
    mu : ndarray of shape (n_columns,)
        The multiplier of the constraint that f sums to zero; 0 without it.
    reached : ndarray of bool, one per node
        Whether the node's component has a label.
    component : ndarray of int32
        Component of each node.
    residual : ndarray of shape (n_columns,)
        Relative residual norm(b - A f) / norm(b), with b = (s y)_S - mu on reached nodes and
        A = gamma l L + diag(s)_S, where s are the weights of the labels (1 by default) and l is
        their sum. `solve_hfs` computes it from the stored f.
        With HFS and a large gamma, f is so close to a constant that the rounding of f alone makes
        it large. `refine` computes it from the passes, without the rounding of f; if
        `stepped_ahead`, it is the residual before the last step.
    converged : ndarray of bool, shape (n_columns,)
        From `solve_hfs`: whether the solver and `residual` reached the tolerance, or the limit of
        float64. From `refine`: whether `residual` and `error`, which is an estimate, are below
        the tolerance.
    iterations : ndarray of int, shape (n_columns,)
        Iterations of the solver; for `refine`, steps on the full graph.
    passes : int
        Passes over the edges of the full graph; 0 for `solve_hfs`.
    error : ndarray of shape (n_columns,) or None
        From `refine`: estimate of the relative error of f in the norm x'A x. For a small gamma,
        the labelled nodes dominate this norm. The estimate uses the energy ratios of H and G
        observed during the iteration. It is too small only if some unobserved direction has a more
        extreme ratio: this was never seen with H of a sparsifier, but with H in which some edges
        are far too heavy. No pass can exclude it, a certificate can: if all energies in H are at
        most r times those in G, the error is at most ``error * sqrt(max(1, r))``; r is
        ``certify(edges, h).upper_bound``. If `stepped_ahead`, it is the error before the last step.
    stepped_ahead : bool
        Whether `refine` ended with a step that reads no edge.
    columns : ndarray of shape (n_nodes, n_columns) or (n_nodes, n_columns + 1)
        Solutions of the linear systems that f is made of; the last one, with
        ``normalization="stable"``, belongs to `mu`. Pass them as `x0` to start another solve here.
    left_out : LeftOut or None
        Leave-one-out scores, if `leave_out` was given: a tuple of the positions `labels`, the
        scores `f`, and the means `means` over the unlabelled nodes of the component. If
        `stepped_ahead`, they are those before the last step. None if no pass was needed.

    Examples
    --------
    >>> from ohmlearn import gallery, solve_hfs
    >>> two = gallery.disjoint_union(gallery.path(2), gallery.path(2))
    >>> result = solve_hfs(two, [0], [1.0], normalization=None)
    >>> result.f.round(6).tolist(), result.reached.tolist()
    ([1.0, 1.0, 0.0, 0.0], [True, True, False, False])
    >>> result.converged
    array([ True])
    """

    f: Floats
    mu: Floats
    reached: NDArray[np.bool_]
    component: NDArray[np.int32]
    residual: Floats
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    passes: int = 0
    error: Floats | None = None
    stepped_ahead: bool = False
    columns: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    left_out: LeftOut | None = field(default=None, repr=False)

    def with_nodes(self, n_nodes: int) -> HFSResult:
        """Return the result with nodes added that no edge has, up to `n_nodes`."""
        n_new = n_nodes - len(self.reached)
        if n_new <= 0:
            return self
        first = int(self.component.max(initial=-1)) + 1
        alone = np.arange(first, first + n_new, dtype=self.component.dtype)
        return replace(
            self,
            f=_add_rows(self.f, n_new),
            columns=_add_rows(self.columns, n_new),
            reached=_add_rows(self.reached, n_new),
            component=np.concatenate([self.component, alone]),
        )

    def _facts(self) -> dict[str, Any]:
        n_left = int(np.count_nonzero(~self.reached))
        return {
            "nodes": len(self.reached),
            "columns": len(self.mu),
            "nodes not reached": n_left or None,
            "passes": self.passes or None,
            "residual": float(self.residual.max(initial=0.0)),
            "error": None if self.error is None else float(self.error.max(initial=0.0)),
            "converged": bool(self.converged.all()),
        }


def _add_rows(array: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the array with rows of zeros added."""
    return np.concatenate([array, np.zeros((count, *array.shape[1:]), array.dtype)])


def solve_hfs(
    graph: object,
    labelled: ArrayLike,
    Y: ArrayLike,
    *,
    gamma: float = 1.0,
    normalization: Normalization = "stable",
    sample_weight: ArrayLike | None = None,
    method: Method = "harmonic",
    leave_out: ArrayLike | None = None,
    tol: float = 1e-8,
    x0: ArrayLike | None = None,
    random_state: object = None,
    n_jobs: int | None = None,
) -> HFSResult:
    """Scores of all nodes from values at a few, by HFS or stable-HFS.

    Minimises ``gamma f'Lf + mean((f[labelled] - Y)**2)``, L the Laplacian; with
    ``normalization="stable"`` among the f that sum to zero, over all nodes whose component has a
    label. The others get 0 and are marked in `reached`. With `sample_weight`, the mean is weighted.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
    labelled : array-like of int, shape (n_labelled,)
        Nodes whose value is known, each once.
    Y : array-like of shape (n_labelled,) or (n_labelled, n_columns)
        Their values. Solving for many columns at once is faster than one by one.
    gamma : float
        Weight of the energy against the fit. For gamma towards 0, the f of HFS has the given values
        and is harmonic elsewhere; towards infinity, stable-HFS becomes Poisson learning, up to a
        factor.
    normalization : {"stable", "cmn", None}
        "stable" for stable-HFS. The others are HFS: class mass normalization ("cmn") changes the
        probabilities that the classifiers compute from the scores, not the scores.
    sample_weight : array-like of shape (n_labelled,), optional
        How much each label counts, above 0; 1 by default. A label of weight 2 equals the same
        label given twice. Only the ratios of the weights matter.
    method : {"harmonic", "restart"}
        "restart" solves ``(D + gamma L) f = Y`` instead, D the degrees: random walks that start at
        the labels and stop with probability 1 / (1 + gamma) before each step, divided by the
        degree. It suits graphs with hubs. `normalization` has no effect then.
    leave_out : array-like of int, optional
        Positions of labels in `labelled`. For each of them the result has the scores that its node
        would get without its own label, in `left_out`. Takes one more column to solve for each.
    tol : float
        Relative residual for the solver.
    x0 : array-like, optional
        Starting point: the `columns` of an earlier result with as many columns, on a graph of at
        most as many nodes. Rows that are missing start at 0.
    random_state : int, Generator, RandomState or None
        Seeds the solver's factor.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

    Returns
    -------
    HFSResult

    Warns
    -----
    ConvergenceWarning
        If the solver did not reach `tol` although float64 could have stored such an answer, or if
        `gamma` times the weights is too large for float64.

    Notes
    -----
    Let S be the labelled nodes, y their values, s the weights of their labels with the sum l, and
    A = gamma l L + diag(s)_S. HFS [1]_ is f = A⁻¹ (s y)_S; L f = 0 at all other nodes. Stable-HFS
    [2]_ has a multiplier mu of the constraint that f sums to zero:

        f = A⁻¹ ((s y)_S - mu 1),    mu = 1'A⁻¹ (s y)_S / 1'A⁻¹ 1.

    For gamma towards infinity, on a connected graph, gamma l f tends to the g with the sum zero and
    L g = (s y)_S - (s'y / n) 1. If s'y = 0 this is Poisson learning [3]_.

    Without the label i, everything else unchanged, its node has the leave-one-out score
    F = (f_i - K_ii y_i) / (1 - K_ii), where column i of K, with f = K y, is how scores respond to
    y_i. It is computed from the mean a of f over the neighbours of i, the mean kappa of K_i over
    them, the degree d, and the multiplier mu_i of K_i, because 1 - K_ii may be mostly rounding:

        gamma l d (F - a - kappa (F - y_i)) = -mu - mu_i (F - y_i).

    References
    ----------
    .. [1] X. Zhu, Z. Ghahramani and J. Lafferty, "Semi-supervised learning using Gaussian fields
       and harmonic functions", ICML 2003.
    .. [2] M. Belkin, I. Matveeva and P. Niyogi, "Regularization and semi-supervised learning on
       large graphs", COLT 2004.
    .. [3] J. Calder, B. Cook, M. Thorpe and D. Slepcev, "Poisson learning: graph based
       semi-supervised learning at very low label rates", ICML 2020.

    Examples
    --------
    >>> from ohmlearn import gallery, solve_hfs
    >>> solve_hfs(gallery.path(5), [0, 4], [1.0, -1.0], gamma=1.0).f.round(3) + 0.0
    array([ 0.5 ,  0.25,  0.  , -0.25, -0.5 ])

    A label that is trusted less is met less closely:

    >>> plain = solve_hfs(gallery.path(3), [0, 2], [1.0, -1.0], normalization=None)
    >>> plain.f.round(3) + 0.0
    array([ 0.333,  0.   , -0.333])
    >>> weighted = solve_hfs(
    ...     gallery.path(3), [0, 2], [1.0, -1.0], normalization=None, sample_weight=[3.0, 1.0]
    ... )
    >>> weighted.f.round(3) + 0.0
    array([0.636, 0.364, 0.091])
    """
    h: Graph = as_graph(graph)
    check_fraction("tol", tol)
    system = make_system(
        method, h, labelled, Y, gamma=gamma, normalization=normalization,
        sample_weight=sample_weight, caller="solve_hfs",
    )  # fmt: skip
    labels = _check_left_out(leave_out, system)
    solver = HFSSolver(h, system, random_state=check_seed(random_state), n_jobs=n_jobs)
    b = system.right_hand_sides
    start = _check_start(x0, b.shape)
    tighter, iterations = tol, np.zeros(b.shape[1], dtype=np.int64)
    for _ in range(MOST_SOLVES):
        start = x = solver.solve(b, tighter, start)
        report = solver.report
        iterations += report.iterations
        f, mu = system.combine(x)
        residual = system.relative_residuals(f, mu, solver.laplacian_of(f))
        excess = residual / np.maximum(tol, system.rounding_residuals(f, mu, h.degrees))
        if not 1.0 < excess.max() < TOO_MUCH or not report.converged.all():
            break
        # f may miss tol although both solutions meet it; solve more accurately.
        tighter /= 2.0 * float(excess.max())
    # The answer of a column combines the solution for it and, if stable, the last solution.
    q = len(mu)
    solved = (report.residual <= tol) | report.rounding
    if not solved.all():
        warn_unconverged(float(report.residual.max()), tol, f"raise {Param('tol')}")
    elif not excess.max() <= 1.0:
        warn_unconverged(float(residual.max()), tol, PRECISION)
    left_out = None
    if leave_out is not None:
        average = average_in(h, system.labelled[labels], f)
        responses = respond(solver, labels, tol)
        left_out = leave_out_labels(system, f, mu, average, h.degrees, responses)
    return _result(
        system,
        f,
        mu,
        residual=residual,
        converged=solved[:q] & solved[q:].all() & (excess <= 1.0),
        iterations=np.maximum(iterations[:q], iterations[q:].max(initial=0)),
        columns=x,
        left_out=left_out,
    )


def refine(
    edges: object,
    h: object,
    labelled: ArrayLike,
    Y: ArrayLike,
    *,
    at: object = None,
    since: object = None,
    passes: int = 10,
    tol: float = 1e-6,
    gamma: float = 1.0,
    normalization: Normalization = "stable",
    sample_weight: ArrayLike | None = None,
    method: Method = "harmonic",
    leave_out: ArrayLike | None = None,
    random_state: object = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    step_ahead: bool = True,
    x0: ArrayLike | None = None,
) -> HFSResult:
    """Scores on the full graph of a stream, in a few passes over its edges.

    The same as `solve_hfs` on the graph of all edges, which need not be stored: block conjugate
    gradients, preconditioned by the sparsifier. At epsilon 0.5 the error falls to about a quarter
    with each pass.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
        All edges. An iterable is read in every pass; it must be one that can be read more than
        once, for example a list.
    h : Graph, or an object whose ``snapshot()`` returns one
        A sparsifier of these edges. If it has a half-life or a horizon, the edges need times, and
        count as they do in H.
    at, since : number or date, optional
        Which H, if times matter; see `StreamingSparsifier.snapshot`.
    labelled, Y, gamma, normalization, sample_weight, method
        As for `solve_hfs`.
    leave_out : array-like of int, optional
        As for `solve_hfs`. The scores are those of the full graph; how they respond to single
        labels is computed on the sparsifier, and kept for all nodes, 4 bytes for each label. There
        are none if energies on the sparsifier turn out to be far from those on all edges.
    passes : int
        Largest number of passes over the edges.
    tol : float
        The passes end when relative residuals and estimated errors are both below this. A poor
        sparsifier takes more passes. Errors are measured in the norm of the equations; in other
        norms, and at single nodes, they may be larger. ``HFSResult.error`` says what is certain.
    random_state : int, Generator, RandomState or None
        Seeds the solver's factor.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.
    verbose : int
        If positive, print a line for each pass to stderr.
    step_ahead : bool
        Whether to take one more step, which needs no pass, if the passes end before `tol` is
        reached. It reads no edge and improves f about as much as a pass. Residuals and errors are
        not known afterwards; those reported are from before it.
    x0 : array-like, optional
        Starting point: the `columns` of an earlier result with as many columns. The first pass
        computes its residual.

    Returns
    -------
    HFSResult
        Its `error` estimates the relative error of f in the norm of the equations.

    Raises
    ------
    ValueError
        If `h` cannot be a sparsifier of `edges`: other components, or other ids of nodes.

    Notes
    -----
    Sparse-HFS [1]_ is the answer on H alone, `solve_hfs` on the snapshot. Here it is the
    preconditioner: with A of G and M of H, as in the notes of `solve_hfs`, conjugate gradients [2]_
    solve M⁻¹ A f = M⁻¹ b, and all columns share their search directions. If energies in H are
    within 1 ± epsilon of those in G, k passes reduce the error, the root of e'A e, to at most 2 q^k
    of what it was, q = (sqrt(c) - 1) / (sqrt(c) + 1), c = (1 + epsilon) / (1 - epsilon).

    References
    ----------
    .. [1] D. Calandriello, A. Lazaric and M. Valko, "Large-scale semi-supervised learning with
       online spectral graph sparsification", 2015.
    .. [2] D. P. O'Leary, "The block conjugate gradient algorithm and related methods", Linear
       Algebra and its Applications 29, 1980.

    Examples
    --------
    >>> from ohmlearn import gallery, refine, solve_hfs, sparsify
    >>> graph = gallery.complete(300)
    >>> h = sparsify(graph, epsilon=0.9, random_state=0)
    >>> found = refine(graph, h, [0, 1, 2], [1.0, -1.0, 1.0], passes=20)
    >>> found.passes < 20
    True
    >>> bool(abs(found.f - solve_hfs(graph, [0, 1, 2], [1.0, -1.0, 1.0]).f).max() < 1e-5)
    True
    """
    edges, h = as_edges_and_sparsifier(edges, h, CALL, at, since)
    limit = check_count("passes", passes)
    check_fraction("tol", tol)
    component = h.components()[1]
    system = make_system(
        method, h, labelled, Y, gamma=gamma, normalization=normalization,
        sample_weight=sample_weight, caller="refine",
    )  # fmt: skip
    labels = _check_left_out(leave_out, system)
    source = edges.open_passes(component, "refine", n_jobs, h.view)
    with phase("solving on the edges kept", verbose):
        solver = HFSSolver(h, system, random_state=check_seed(random_state), n_jobs=n_jobs)
        responses = respond(solver, labels, RESPONSE_TOL, keep=True)
    source.watched = responses.x, system.labelled[labels]  # without any, the degrees are wanted

    # Least quotient of two energies seen, of the full graph over the sparsifier or the reverse.
    closeness = 1.0

    def multiply(x: Floats) -> Floats:
        nonlocal closeness, system
        product = source.multiply(x)
        if source.passes == 1:
            check_first_pass(edges, h, source, CALL)
            _check_components(source, h)
            if source.degrees is not None:
                system = system.with_degrees(source.degrees)
        energies = (np.einsum("ij,ij->j", x, y) for y in (product, solver.apply_laplacian(x)))
        lower, upper = np.sort(list(energies), axis=0)
        closeness = min([closeness, *(lower / np.where(upper > 0.0, upper, 1.0))[lower > 0.0]])
        return system.multiply(x, product)

    b = system.right_hand_sides
    start = _check_start(x0, b.shape)
    this_pass = number_pass("refining", 1, limit)
    if start is None:
        left = b
    else:
        with phase(this_pass):
            left = b - multiply(start)
    with phase("solving on the edges kept"):
        cg = BlockCG(left, lambda r: solver.solve(r, PRECONDITIONER_TOL), start)
    going = True
    while True:
        if source.passes > 0 or not going:
            gram = cg.gram / min(closeness, cg.smallest_quotient())
            f, mu, residual, error, energy = system.assess(cg.x, cg.residual, gram)
            if verbose > 0:
                found = f"residual {residual.max():.2g}, error about {error.max():.2g}"
                print(f"{this_pass}: {found}", file=sys.stderr)
            converged = np.maximum(residual, error) <= tol
            if converged.all() or not going or source.passes == limit:
                break
        this_pass = number_pass("refining", source.passes + 1, limit)
        with phase(this_pass):
            going = cg.step(multiply)
    left_out = None
    # If h is not close to all edges, responses on it tell little about those on all edges.
    wants_left_out = leave_out is not None and closeness >= CLOSE
    if wants_left_out and source.degrees is not None and source.sums is not None:
        # From the neighbours before the last step; that step itself, if it is a Jacobi step, takes
        # the mean over them as well.
        nodes, degrees = system.labelled[responses.labels], source.degrees
        average = average_around(nodes, f, energy, degrees)
        kappa = source.sums / np.where(degrees[nodes] > 0, degrees[nodes], 1.0)
        left_out = leave_out_labels(
            system, f, mu, average, degrees, responses._replace(average=kappa)
        )
    columns, ahead = cg.x, step_ahead and going and not converged.all()
    if ahead:
        columns = system.centre(cg.x + _last_step(cg, solver, system, source))
        f, mu = system.combine(columns)
    return _result(
        system,
        f,
        mu,
        residual=residual,
        converged=converged,
        iterations=np.full(len(mu), source.passes),
        passes=source.passes,
        error=error,
        stepped_ahead=ahead,
        columns=columns,
        left_out=left_out,
    )


def _last_step(cg: BlockCG, solver: HFSSolver, system: HFSSystem, source: Passes) -> Floats:
    """Return a step that needs no product with the full graph.

    The error e of the scores obeys e = r / diag(A) + mean of e over the neighbours, up to factors,
    where r is the residual. The first term, a Jacobi step, is known. The solution of this equation
    on the sparsifier H estimates the second. But H has few of the neighbours, so the estimate is
    noisy, and in dense graphs it is nothing but noise. So it is shrunk, for each column, by the
    fraction of its mean square that noise explains: what a mean over the neighbours in H would have
    if errors were independent, times the fraction of edges that were dropped, times `CORRELATED`.
    """
    look = cg.look_ahead() - cg.x
    h, at = solver.graph, system.reached.copy()
    at[system.labelled] = False
    if source.degrees is None or not at.any():
        return look
    jacobi: Floats = cg.residual / system.diagonal(source.degrees)[:, np.newaxis]
    of_neighbours = look - jacobi
    squares = np.add.reduceat(np.append(h.weights**2, 0.0), h.indptr[:-1])[at]  # sums over edges
    few = float(np.mean(squares / h.degrees[at] ** 2))  # 1 / number of neighbours
    dropped = max(0.0, 1.0 - h.n_edges * source.passes / source.edges_read)
    noise = CORRELATED * dropped * few * np.mean(look[at] ** 2, axis=0)
    size = np.mean(of_neighbours[at] ** 2, axis=0)
    kept = np.clip(1.0 - noise / np.where(size > 0.0, size, 1.0), 0.0, 1.0)
    return np.asarray(jacobi + kept * of_neighbours)


def make_system(
    method: Method, h: Graph, labelled: ArrayLike, Y: ArrayLike, *, caller: str,
    normalization: Normalization, **options: Any,
) -> HFSSystem:  # fmt: skip
    """Return the equations of a method, for the labels on a graph."""
    check_parameters(caller, CONSTRAINTS, {"method": method})
    component = h.components()[1]
    if method == "restart":
        return RestartSystem(h.degrees, component, labelled, Y, caller=caller, **options)
    return HFSSystem(component, labelled, Y, normalization=normalization, caller=caller, **options)


def _check_left_out(leave_out: ArrayLike | None, system: HFSSystem) -> NDArray[np.int64]:
    """Return positions of labels, none by default."""
    if leave_out is None:
        return np.empty(0, np.int64)
    labels = check_node_ids(leave_out, "leave_out").astype(np.int64)
    bad = np.flatnonzero((labels < 0) | (labels >= len(system.labelled)))
    if len(bad) > 0:
        raise InputError(
            f"{Param('leave_out')} has positions of labels, 0, ..., {len(system.labelled) - 1}, "
            f"but leave_out[{bad[0]}] = {labels[bad[0]]}"
        )
    return labels


def _result(system: HFSSystem, f: Floats, mu: Floats, **more: Any) -> HFSResult:
    f = f[:, 0] if system.one_column else f
    return HFSResult(f=f, mu=mu, reached=system.reached, component=system.component, **more)


def _check_components(source: Passes, h: Graph) -> None:
    """Raise ValueError unless the sparsifier can be one of these edges."""
    if source.lost_edge is not None:
        raise ValueError(
            f"edge {source.lost_edge} joins nodes that h does not connect or does not have: the "
            f"sparsifier has not seen all edges; update it with them first"
        )
    extra = source.find_extra(h)
    if extra is not None:
        raise ValueError(
            f"edge {extra} of h joins nodes that these edges do not connect: h is not a sparsifier "
            f"of this graph; pass all the edges that it has seen"
        )


def _check_start(x0: ArrayLike | None, shape: tuple[int, ...]) -> Floats | None:
    """Return the starting point, with zeros for nodes that are new."""
    if x0 is None:
        return None
    if isinstance(x0, HFSResult):
        raise InputTypeError(
            f"{Param('x0')} must be an array, got HFSResult; pass x0=result.columns"
        )
    given = np.asarray(x0)
    if given.ndim != 2 or given.shape[1] != shape[1] or given.shape[0] > shape[0]:
        raise InputError(
            f"{Param('x0')} must have {shape[1]} columns and at most {shape[0]} rows, got shape "
            f"{given.shape}; pass the columns of a result with the same Y columns and "
            f"normalization"
        )
    start = np.zeros(shape)
    start[: len(given)] = check_columns(given, "x0", len(given))
    return start


def warn_unconverged(residual: float, tol: float, remedy: str, what: str = "residual") -> None:
    """Warn that the residual of an answer, or something else, is larger than was asked for."""
    from ohmlearn._convergence import UnconvergedWarning  # late: it imports scikit-learn

    warn(
        f"the relative {what} is {residual:.2g}, above {Param('tol', tol)}; {remedy}",
        UnconvergedWarning,
    )
