"""The equations of HFS and stable-HFS, made such that their answers are accurate for any gamma.

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

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn._passes import multiply_laplacian
from ohmlearn._validation import (
    check_label_values,
    check_labelled,
    check_n_jobs,
    check_option,
    check_positive,
)
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver, SolveReport

__all__ = ["HFSSolver", "HFSSystem"]

CONSTRAINTS = ("stable",)
Floats = NDArray[np.float64]


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

    def relative_errors(self, gram: Floats, f: Floats, mu: Floats) -> Floats:
        """Errors of f in the norm x'A x, relative to f, given estimates of those of the solutions.

        `gram` holds the inner products of the errors. As f sums to zero, or mu is 0,
        f'A f = f'(y_S - mu 1) = f_S'y.
        """
        q = len(mu)
        squares = np.diag(gram)[:q].copy()
        if self.stable:
            squares += mu * (mu * gram[-1, -1] - 2.0 * gram[:q, -1])
        energy = np.einsum("ij,ij->j", f[self.labelled], self.values)
        ratios: Floats = np.sqrt(np.maximum(squares, 0.0) / np.where(energy > 0, energy, 1.0))
        return ratios


class HFSSolver:
    """Solves A x = b, b summing to zero over each component, on a graph in memory.

    Parameters
    ----------
    graph : Graph
    system : HFSSystem
    random_state, n_jobs
        As for `LaplacianSolver`.

    Examples
    --------
    >>> from ohmlearn import gallery
    >>> path = gallery.path(3)
    >>> system = HFSSystem(path.components()[1], [0, 2], [1.0, -1.0], constraint=None)
    >>> HFSSolver(path, system).solve(system.right_hand_sides, 1e-8).round(8).ravel() + 0.0
    array([ 0.33333333,  0.        , -0.33333333])
    """

    def __init__(
        self, graph: Graph, system: HFSSystem, random_state: int = 0, n_jobs: int | None = None
    ) -> None:
        self.graph, self.system = graph, system
        self._solver = LaplacianSolver(graph, system.ground, random_state, n_jobs)
        self._threads = check_n_jobs(n_jobs)

    @property
    def report(self) -> SolveReport:
        """What the last solve did."""
        return self._solver.report_

    def multiply(self, x: Floats) -> Floats:
        """Return A x."""
        return self.system.multiply(x, multiply_laplacian(self.graph, x, self._threads))

    def solve(self, b: Floats, tol: float, x0: Floats | None = None) -> Floats:
        """Return the solution; `tol` is for what a first guess leaves over."""
        guess = self.system.start(b, self.graph.degrees)
        rest = (b - self.multiply(guess)) / self.system.scale
        before = None if x0 is None else x0 - guess
        return self.system.centre(guess + self._solver._solve_quietly(rest, tol, x0=before))
