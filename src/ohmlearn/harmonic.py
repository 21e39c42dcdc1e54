"""Harmonic functions from a few labels: HFS and stable-HFS.

With S the l labelled nodes, y their values, L the Laplacian and c = gamma l, A = c L + I_S. HFS is
the f with A f = y_S, the minimiser of gamma f'L f + |f_S - y|^2 / l. Stable-HFS minimises the same
among the f that sum to zero: A f = y_S - mu 1, with mu such that they do.

Where labels are few, f is nearly constant, and what tells the classes apart is far smaller than the
constant. So constants are split off before anything is solved: as A 1 = 1_S,

    A^-1 y_S = mean(y) 1 + A^-1 (y - mean(y))_S,
    A^-1 1   = (n / l) 1 + A^-1 (1 - (n / l) 1_S),

and what is left to solve has right-hand sides that sum to zero, whose solutions sum to zero over S.
All this holds for each component by itself, with its own mean, nodes and labels; only mu is one for
all. Components without a label are left out: f is 0 there, and the rest sums to zero.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._validation import (
    check_fraction,
    check_graph,
    check_label_values,
    check_labelled,
    check_n_jobs,
    check_option,
    check_positive,
)
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

__all__ = ["HFSResult", "HFSSystem", "solve_hfs"]

CONSTRAINTS = ("stable",)
Floats = NDArray[np.float64]


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
    residuals : ndarray of shape (n_columns,)
        True relative residuals norm(b - A f) / norm(b) with b = y_S - mu on reached nodes.
    converged : bool
        Whether the solver reached its tolerance, or what float64 can store.
    iterations : int
        Most iterations of the solver for a column; for `refine`, iterations on the full graph.
    passes : int
        Passes over the edges of the full graph; 0 for `solve_hfs`.
    """

    f: Floats
    mu: Floats
    reached: NDArray[np.bool_]
    residuals: Floats
    converged: bool
    iterations: int
    passes: int = 0
    columns: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)


class HFSSystem:
    """The labels' side of a problem: right-hand sides, and the answer from their solutions.

    Parameters
    ----------
    component : ndarray of int32
        Component of each node.
    labelled : array-like of int
        The labelled nodes, each once.
    Y : array-like of shape (n_labelled,) or (n_labelled, n_columns)
        Their values.
    gamma : float
        Weight of the energy against the fit to the labels.
    constraint : {"stable", None}
        "stable" makes f sum to zero.

    Examples
    --------
    >>> import numpy as np
    >>> system = HFSSystem(np.zeros(3, dtype=np.int32), [0, 2], [1.0, -1.0])
    >>> system.right_hand_sides.T
    array([[ 1. ,  0. , -1. ],
           [-0.5,  1. , -0.5]])
    """

    def __init__(
        self,
        component: NDArray[np.int32],
        labelled: ArrayLike,
        Y: ArrayLike,
        gamma: float = 1.0,
        constraint: Literal["stable"] | None = "stable",
    ) -> None:
        self.n_nodes = len(component)
        self.labelled = check_labelled(labelled, self.n_nodes)
        self.values = check_label_values(Y, len(self.labelled))
        self.one_column = np.ndim(Y) == 1
        if constraint is not None:
            check_option("constraint", constraint, CONSTRAINTS)
        self.stable = constraint is not None
        self.scale = check_positive("gamma", gamma) * len(self.labelled)  # c
        n_components = int(component.max()) + 1
        self.component = component
        self.at = component[self.labelled]
        self.n_labels = np.bincount(self.at, minlength=n_components)
        self.reached: NDArray[np.bool_] = (self.n_labels > 0)[component]
        # Per component: mean of the values, nodes per label.
        self.means = self._label_means(self.values)
        sizes = np.bincount(component, minlength=n_components)
        self.share = np.where(self.n_labels > 0, sizes / np.maximum(self.n_labels, 1), 0.0)

    def _label_means(self, values: Floats) -> Floats:
        """Mean over the labelled nodes of each component."""
        sums = np.zeros((len(self.n_labels), values.shape[1]))
        np.add.at(sums, self.at, values)
        means: Floats = sums / np.maximum(self.n_labels, 1)[:, np.newaxis]
        return means

    @property
    def ground(self) -> Floats:
        """I_S / c: A / c = L + I_S / c."""
        ground = np.zeros(self.n_nodes)
        ground[self.labelled] = 1.0 / self.scale
        return ground

    @property
    def right_hand_sides(self) -> Floats:
        """One column for each of the values, and one for mu if the answer is to sum to zero."""
        b = np.zeros((self.n_nodes, self.values.shape[1] + self.stable))
        b[self.labelled, : self.values.shape[1]] = self.values - self.means[self.at]
        if self.stable:
            b[self.reached, -1] = 1.0
            b[self.labelled, -1] -= self.share[self.at]
        return b

    def multiply(self, x: Floats, energy: Floats) -> Floats:
        """Return A x, given L x."""
        product: Floats = self.scale * energy
        product[self.labelled] += x[self.labelled]
        return product

    def start(self, b: Floats, degrees: Floats) -> Floats:
        """Return a first guess, which makes relative residuals meaningful for any gamma.

        With a small one the labelled rows of A outweigh all others, and so do those of b: a
        residual small against b would say nothing about the rest. A step of Jacobi evens that out.
        """
        diagonal = self.scale * degrees
        diagonal[self.labelled] += 1.0
        return self.centre(b / np.where(diagonal > 0, diagonal, 1.0)[:, np.newaxis])

    def centre(self, x: Floats) -> Floats:
        """Make solutions sum to zero over the labels of each component, as exact ones do.

        An error along a constant costs next to no residual but would swamp the rest.
        """
        shifted: Floats = x - self._label_means(x[self.labelled])[self.component]
        shifted[~self.reached] = 0.0
        return shifted

    def combine(self, x: Floats) -> tuple[Floats, Floats]:
        """Return f and mu from solutions x of A x = right_hand_sides."""
        q = self.values.shape[1]
        f = x[:, :q] + self.means[self.component]
        mu = np.zeros(q)
        if self.stable:
            # Sums over the nodes of A^-1 y_S and of A^-1 1.
            ones = x[:, -1] + self.share[self.component]
            mu = f[self.reached].sum(axis=0) / ones[self.reached].sum()
            f -= ones[:, np.newaxis] * mu
        f[~self.reached] = 0.0
        return f, mu

    def relative_residuals(self, residual: Floats, mu: Floats) -> Floats:
        """Relative residuals of f, from those of the solutions."""
        q = len(mu)
        b = np.zeros((self.n_nodes, q))
        b[self.labelled] = self.values
        b[self.reached] -= mu
        r = residual[:, :q] - residual[:, -1:] * mu if self.stable else residual
        norms = np.linalg.norm(b, axis=0)
        ratios: Floats = np.linalg.norm(r, axis=0) / np.where(norms > 0, norms, 1.0)
        return ratios


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
        If the solver did not reach `tol` though float64 could have stored such an answer.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> from ohmlearn.harmonic import solve_hfs
    >>> solve_hfs(gallery.path(5), [0, 4], [1.0, -1.0], gamma=1.0).f.round(3) + 0.0
    array([ 0.5 ,  0.25,  0.  , -0.25, -0.5 ])
    """
    h: Graph = check_graph(graph, Graph)
    check_fraction("tol", tol)
    system = HFSSystem(h.components()[1], labelled, Y, gamma, constraint)
    solver = LaplacianSolver(h, system.ground, random_state=random_state, n_jobs=n_jobs)
    b = system.right_hand_sides
    threads = check_n_jobs(n_jobs)
    guess = system.start(b, h.degrees)
    rest = b - system.multiply(guess, multiply_laplacian(h, guess, threads))
    before = None if x0 is None else _warm_start(x0, b.shape) - guess
    step = solver._solve_quietly(rest / system.scale, tol, x0=before)
    report = solver.report_
    x = system.centre(guess + step)
    residual = b - system.multiply(x, multiply_laplacian(h, x, threads))
    f, mu = system.combine(x)
    converged = bool(np.all(report.converged | report.rounding))
    if not converged:
        warn_unconverged(float(report.residual.max()), tol, f"{int(report.iterations.max())} steps")
    return HFSResult(
        f=f[:, 0] if system.one_column else f,
        mu=mu,
        reached=system.reached,
        residuals=system.relative_residuals(residual, mu),
        converged=converged,
        iterations=int(report.iterations.max()),
        columns=x,
    )


def multiply_laplacian(graph: Graph, x: Floats, threads: int = 1) -> Floats:
    """Return L x for an (n_nodes, n_columns) array, accurate relative to differences of x.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> multiply_laplacian(gallery.path(3), np.array([[1.0], [0.0], [2.0]])).ravel()
    array([ 1., -3.,  2.])
    """
    product = np.empty_like(x)
    _core.laplacian_product(
        graph.indptr, graph.indices, graph.weights, np.ascontiguousarray(x), product, threads
    )
    return product


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


def warn_unconverged(residual: float, tol: float, effort: str) -> None:
    """Warn that an answer is not as accurate as asked for."""
    from sklearn.exceptions import ConvergenceWarning  # late: takes a second to import

    warnings.warn(
        f"the harmonic solution has the relative residual {residual:.2g} after {effort}, above "
        f"tol = {tol:g}; raise tol",
        ConvergenceWarning,
        stacklevel=3,
    )
