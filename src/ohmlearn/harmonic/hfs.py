"""Harmonic functions from a few labels: HFS and stable-HFS, on a graph in memory or on a stream.

With H, a sparsifier of the graph G of a stream, conjugate gradients on G preconditioned by H need
one pass over the edges of G for each step, and about as many as a certificate of H.
"""

import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.graph import Graph
from ohmlearn.graph.passes import Passes, open_passes
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.system import Floats, HFSSolver, HFSSystem
from ohmlearn.validation.edges import check_graph
from ohmlearn.validation.parameters import check_count, check_fraction, check_seed

__all__ = ["HFSResult", "refine", "solve_hfs"]

PRECONDITIONER_TOL = 1e-6
MOST_SOLVES, TOO_MUCH = 3, 1e4  # a residual further above tol is not for want of iterations
PRECISION = (
    "rounding to float64 prevents a smaller one, because gamma times the weights is too large or "
    "the weights are too far apart; lower gamma, which only multiplies the scores once it is "
    "large, or raise tol"
)


@dataclass(frozen=True)
class HFSResult:
    """What `solve_hfs` and `refine` return.

    Attributes
    ----------
    f : ndarray of shape (n_nodes,) or (n_nodes, n_columns)
        The scores; of one dimension if the values were. 0 where `reached` is False.
    mu : ndarray of shape (n_columns,)
        The multiplier of the constraint that f sums to zero; 0 without it.
    reached : ndarray of bool, one a node
        Whether the node's component has a label.
    component : ndarray of int32
        Component of each node.
    residuals : ndarray of shape (n_columns,)
        Relative residuals norm(b - A f) / norm(b) of f, with b = y_S - mu on reached nodes and
        A = gamma l L + I_S, where l nodes are labelled. From `solve_hfs` they are those of f as it
        is stored. HFS with a large gamma has an f so close to a constant that rounding f alone
        makes them large. From `refine` they follow from the products of the passes, without the
        rounding of f; if `stepped_ahead`, they are those of the f before the last step, because
        another pass would be needed for those of f.
    converged : bool
        From `solve_hfs`: whether the solver and `residuals` reached the tolerance, or what float64
        can store. From `refine`: whether `residuals` and `errors` are below the tolerance.
    iterations : int
        Most iterations of the solver for a column; for `refine`, iterations on the full graph.
    passes : int
        Passes over the edges of the full graph; 0 for `solve_hfs`.
    errors : ndarray of shape (n_columns,) or None
        From `refine`: estimates of the relative error of f in the norm x'A x, which for a small
        gamma is mostly about the labelled nodes. They allow for how far the energies of the
        sparsifier and of the full graph are apart along the directions of the iteration: the true
        errors are larger only if they are further apart along others. Like `residuals`, they are
        those before the last step if `stepped_ahead`.
    stepped_ahead : bool
        Whether `refine` ended with a step that reads no edge.
    columns : ndarray
        Solutions that f was made of, for a later start.

    Examples
    --------
    >>> from ohmlearn import gallery, solve_hfs
    >>> two = gallery.disjoint_union(gallery.path(2), gallery.path(2))
    >>> result = solve_hfs(two, [0], [1.0], constraint=None)
    >>> result.f.round(6).tolist(), result.reached.tolist()
    ([1.0, 1.0, 0.0, 0.0], [True, True, False, False])
    >>> result.converged
    True
    """

    f: Floats
    mu: Floats
    reached: NDArray[np.bool_]
    component: NDArray[np.int32]
    residuals: Floats
    converged: bool
    iterations: int
    passes: int = 0
    errors: Floats | None = None
    stepped_ahead: bool = False
    columns: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)


def solve_hfs(
    graph: Graph | Any,
    labelled: ArrayLike,
    Y: ArrayLike,
    gamma: float = 1.0,
    constraint: Literal["stable"] | None = "stable",
    tol: float = 1e-8,
    x0: HFSResult | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> HFSResult:
    """Scores of all nodes from values at a few, by HFS or stable-HFS.

    Minimises ``gamma f'Lf + mean((f[labelled] - Y)**2)``, L the Laplacian; with
    ``constraint="stable"`` among the f that sum to zero, over all nodes whose component has a
    label. The others get 0 and are marked in `reached`.

    Parameters
    ----------
    graph : Graph, or what `Graph.from_scipy` takes
    labelled : array-like of int, shape (n_labelled,)
        Nodes whose value is known, each once.
    Y : array-like of shape (n_labelled,) or (n_labelled, n_columns)
        Their values. Many columns cost less than one by one.
    gamma : float
        Weight of the energy against the fit. Towards 0 the f of HFS takes the values and is
        harmonic elsewhere; towards infinity stable-HFS becomes Poisson learning, up to a factor.
    constraint : {"stable", None}
        "stable" for stable-HFS, None for HFS.
    tol : float
        Relative residual for the solver.
    x0 : HFSResult, optional
        Where to start: an earlier answer with as many columns, on a graph of at most as many nodes.
    random_state : int, Generator, RandomState or None
        Seeds the solver's factor.
    n_jobs : int, optional
        Threads, read as scikit-learn does.

    Returns
    -------
    HFSResult

    Warns
    -----
    ConvergenceWarning
        If the solver did not reach `tol` though float64 could have stored such an answer, or if
        `gamma` times the weights is too large for float64.

    Examples
    --------
    >>> from ohmlearn import gallery, solve_hfs
    >>> solve_hfs(gallery.path(5), [0, 4], [1.0, -1.0], gamma=1.0).f.round(3) + 0.0
    array([ 0.5 ,  0.25,  0.  , -0.25, -0.5 ])
    """
    h: Graph = check_graph(graph, Graph)
    check_fraction("tol", tol)
    system = HFSSystem(h.components()[1], labelled, Y, gamma, constraint)
    solver = HFSSolver(h, system, check_seed(random_state), n_jobs)
    b = system.right_hand_sides
    start = None if x0 is None else _warm_start(x0, b.shape)
    iterations, tighter = 0, tol
    for _ in range(MOST_SOLVES):
        start = x = solver.solve(b, tighter, start)
        report = solver.report
        iterations += int(report.iterations.max())
        f, mu = system.combine(x)
        residuals = system.relative_residuals(f, mu, solver.apply_laplacian(f))
        enough = np.maximum(tol, system.rounding_residuals(f, mu, h.degrees))
        excess = float(np.max(residuals / enough))
        if not 1.0 < excess < TOO_MUCH or not report.converged.all():
            break
        tighter /= 2.0 * excess  # solutions within tol may combine to an f that is not
    solved = bool(np.all((report.residual <= tol) | report.rounding))
    if not solved:
        _warn_unconverged(float(report.residual.max()), tol, "raise tol")
    elif not excess <= 1.0:
        _warn_unconverged(float(residuals.max()), tol, PRECISION)
    return HFSResult(
        f=f[:, 0] if system.one_column else f,
        mu=mu,
        reached=system.reached,
        component=system.component,
        residuals=residuals,
        converged=solved and excess <= 1.0,
        iterations=iterations,
        columns=x,
    )


def refine(
    edges: Any,
    sparsifier: Any,
    labelled: ArrayLike,
    Y: ArrayLike,
    passes: int = 10,
    tol: float = 1e-6,
    gamma: float = 1.0,
    constraint: Literal["stable"] | None = "stable",
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    step_ahead: bool = True,
    x0: HFSResult | None = None,
) -> HFSResult:
    """Scores on the full graph of a stream, in a few passes over its edges.

    The same as `solve_hfs` on the graph of all edges, which need not be stored: block conjugate
    gradients, preconditioned by the sparsifier. At epsilon 0.5 the error falls to about a quarter
    with each pass.

    Parameters
    ----------
    edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
        All edges. An iterable, a list or what else can start over, is read in every pass.
    sparsifier : Graph, or an object whose ``snapshot()`` returns one
        A sparsifier of these edges.
    labelled, Y, gamma, constraint
        As for `solve_hfs`.
    passes : int
        Most passes over the edges.
    tol : float
        Done when relative residuals and estimated errors are both below this, also with a poor
        sparsifier, which takes more passes.
    random_state : int, Generator, RandomState or None
        Seeds the solver's factor.
    n_jobs : int, optional
        Threads, read as scikit-learn does.
    verbose : int
        If positive, print a line for each pass to stderr.
    step_ahead : bool
        Whether to take one more step, with the sparsifier alone, if the passes end before `tol` is
        reached. It reads no edge and brings about as much as a pass. Residuals and errors are not
        known afterwards; those reported are from before it.
    x0 : HFSResult, optional
        Where to start: an earlier answer, of the same columns. Its first pass finds the residual.

    Returns
    -------
    HFSResult
        Its `errors` estimate the relative error of f.

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
    h = check_graph(sparsifier.snapshot() if hasattr(sparsifier, "snapshot") else sparsifier, Graph)
    limit = check_count("passes", passes)
    check_fraction("tol", tol)
    component = h.components()[1]
    system = HFSSystem(component, labelled, Y, gamma, constraint)
    solver = HFSSolver(h, system, check_seed(random_state), n_jobs)
    source = open_passes(edges, component, "refine", n_jobs)

    # Least quotient of two energies seen, of the full graph over the sparsifier or the reverse.
    closeness = 1.0

    def multiply(x: Floats) -> Floats:
        nonlocal closeness
        product = source.multiply(x)
        if source.passes == 1:
            _check_components(source, h)
        energies = (np.einsum("ij,ij->j", x, y) for y in (product, solver.apply_laplacian(x)))
        lower, upper = np.sort(list(energies), axis=0)
        closeness = min([closeness, *(lower / np.where(upper > 0.0, upper, 1.0))[lower > 0.0]])
        return system.multiply(x, product)

    b = system.right_hand_sides
    start = None if x0 is None else _warm_start(x0, b.shape)
    residual = b if start is None else b - multiply(start)
    cg = BlockCG(residual, lambda r: solver.solve(r, PRECONDITIONER_TOL), start)
    going = True
    while True:
        if source.passes > 0 or not going:
            gram = cg.gram / min(closeness, cg.smallest_quotient())
            f, mu, residuals, errors = system.assess(cg.x, cg.residual, gram)
            if verbose > 0:
                found = f"residual {residuals.max():.2g}, error about {errors.max():.2g}"
                print(f"pass {source.passes}: {found}", file=sys.stderr)
            converged = bool(max(residuals.max(), errors.max()) <= tol)
            if converged or not going or source.passes == limit:
                break
        going = cg.step(multiply)
    columns, ahead = cg.x, step_ahead and going and not converged
    if ahead:
        columns = system.centre(cg.look_ahead())
        f, mu = system.combine(columns)
    return HFSResult(
        f=f[:, 0] if system.one_column else f,
        mu=mu,
        reached=system.reached,
        component=system.component,
        residuals=residuals,
        converged=converged,
        iterations=source.passes,
        passes=source.passes,
        errors=errors,
        stepped_ahead=ahead,
        columns=columns,
    )


def _check_components(source: Passes, h: Graph) -> None:
    """Raise ValueError unless the sparsifier can be one of these edges."""
    if source.lost_edge is not None:
        raise ValueError(
            f"edge {source.lost_edge} joins nodes that the sparsifier leaves apart or does not "
            f"have: it has not seen all edges; update it with them first"
        )
    extra = source.find_extra(h)
    if extra is not None:
        raise ValueError(
            f"edge {extra} of the sparsifier joins nodes that these edges leave apart: it is not "
            f"one of this graph; pass all the edges that it has seen"
        )


def _warm_start(x0: HFSResult, shape: tuple[int, ...]) -> Floats:
    """Return earlier solutions, with zeros for nodes that were not there."""
    rows, columns = x0.columns.shape
    if columns != shape[1] or rows > shape[0]:
        raise ValueError(
            f"x0 must come from a solve with the same columns and constraint on at most as many "
            f"nodes, {shape[0]} nodes and {shape[1]} columns, got {rows} and {columns}"
        )
    start = np.zeros(shape)
    start[:rows] = x0.columns
    return start


def _warn_unconverged(residual: float, tol: float, remedy: str) -> None:
    from sklearn.exceptions import ConvergenceWarning  # late: takes a second to import

    warnings.warn(
        f"the relative residual is {residual:.2g}, above tol = {tol:g}; {remedy}",
        ConvergenceWarning,
        stacklevel=3,
    )
