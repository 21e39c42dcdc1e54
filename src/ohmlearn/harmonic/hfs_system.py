"""The equations of HFS and stable-HFS, in a form that is accurate for any gamma.

With S the labelled nodes, y their values, s > 0 their weights, l = sum(s), L the Laplacian and
c = gamma l, A = c L + diag(s)_S. HFS is the f with A f = (s y)_S, the minimiser of
gamma f'L f + sum(s (f_S - y)^2) / l. Stable-HFS minimises the same among the f that sum to zero:
A f = (s y)_S - mu 1, with mu such that they do. A label of weight 2 is the same as that label given
twice. Without weights, all s are 1, l is the number of labels and diag(s)_S is I_S.

With few labels, f is nearly constant, and the differences between classes are far smaller than the
constant. So constants are split off before anything is solved. Because A 1 = s_S,

    A^-1 (s y)_S = mean(y) 1 + A^-1 (s (y - mean(y)))_S,
    A^-1 1       = (n / l) 1 + A^-1 (1 - (n / l) s_S),

with the weighted mean sum(s y) / l. The remaining systems have right-hand sides that sum to zero
and solutions x with sum(s x_S) = 0. This holds for each component separately, with its mean, nodes
and labels; only mu is shared. Components without a label are left out: f is 0 there, and the rest
sums to zero.

So on component i, with n_i nodes, l_i the sum of s over its labels and S_i that of s y, stable-HFS
is

    f = A^-1 (s (y - S_i / l_i))_S - mu A^-1 (1 - (n_i / l_i) s_S) + (S_i - mu n_i) / l_i.

For a large gamma the first two terms are of the size 1 / gamma, and in a connected graph so is the
third, although S_i and mu n_i are not small. Their difference would be all rounding. So let s and t
be the sums over all nodes of the two solutions A^-1 (...), and let nu be the limit of mu:

    nu = sum(n_i S_i / l_i) / sum(n_i^2 / l_i),    mu = nu + (s - nu t) / (sum(n_i^2 / l_i) + t).

We compute S_i - nu n_i so that it is exactly 0 if all S_i / n_i are equal. The remaining part of
the third term is small. For a small gamma nu and mu - nu nearly cancel, and S_i - mu n_i is the
accurate form.
"""

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.checks.edge_arrays import check_columns, check_nodes_of
from ohmlearn.checks.parameters import (
    HEAVIEST,
    LIGHTEST,
    Constraints,
    Options,
    check_n_jobs,
    check_parameters,
    check_positive,
)
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.errors import InputError, Param
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver, SolveReport

Normalization = Literal["stable", "cmn"] | None
CONSTRAINTS: Constraints = {"normalization": (Options(("stable", "cmn")), None)}
Floats = NDArray[np.float64]
LARGEST_SCALE = 1e150  # its square does not overflow
EPS = 4.0 * float(np.finfo(np.float64).eps)  # of a difference of two rounded numbers
ONES_TOL = 1e-10
ROWS, COLUMNS = 1 << 16, 8  # of an array with one row per node, that are processed at a time


class HFSSystem:
    """The part of a problem that depends on the labels: right-hand sides, and f from solutions.

    The arguments are those of `solve_hfs`, with the component of each node; messages name `caller`.
    """

    def __init__(
        self,
        component: NDArray[np.int32],
        labelled: ArrayLike,
        Y: ArrayLike,
        *,
        gamma: float = 1.0,
        normalization: Normalization = "stable",
        sample_weight: ArrayLike | None = None,
        caller: str = "solve_hfs",
    ) -> None:
        check_parameters(caller, CONSTRAINTS, {"normalization": normalization})
        self.n_nodes = len(component)
        self.labelled = check_labelled(labelled, self.n_nodes)
        self.weights = check_label_weights(sample_weight, len(self.labelled))
        self.stable = normalization == "stable"
        self.gamma = check_positive("gamma", gamma)
        self.total_weight = float(self.weights.sum())  # l
        self.scale = self.gamma * self.total_weight  # c
        n_components = int(component.max()) + 1
        self.component = component
        self.at = component[self.labelled]
        # Per component: l_i, or 1 if it has no label; mean of the values; n_i / l_i.
        weights = np.bincount(self.at, weights=self.weights, minlength=n_components)
        self.reached: NDArray[np.bool_] = (weights > 0)[component]
        self._weights_there: Floats = np.where(weights > 0, weights, 1.0)
        self._sizes = np.bincount(component, minlength=n_components) * (weights > 0)
        self.size_per_label = self._sizes / self._weights_there
        self._total = float((self._sizes * self.size_per_label).sum())  # sum of n_i^2 / l_i
        self._set_values(Y)

    def _set_values(self, Y: ArrayLike) -> None:
        self.values = check_columns(Y, "Y", len(self.labelled), "labelled node")
        largest = float(np.abs(self.values).max(initial=0.0))
        if largest > 0.0 and not 1e-100 <= largest <= 1e100:  # squares must not underflow
            what = "must lie between 1e-100 and 1e+100 in size, or all be 0"
            raise InputError(f"values {what}, but the largest is {largest:g}; change their unit")
        self.one_column = np.ndim(Y) == 1
        self.means = self._label_means(self.values)
        # nu, and S_i / l_i - nu n_i / l_i, both relative to the component of the first label.
        sums, first, sizes = self._label_sums(self.values), self.at[0], self._sizes
        off = sums * sizes[first] - sizes[:, np.newaxis] * sums[first]
        off /= (sizes[first] * self._weights_there)[:, np.newaxis]
        shift = (sizes[:, np.newaxis] * off).sum(axis=0) / self._total
        self._limit = sums[first] / sizes[first] + shift
        self._constants = off - self.size_per_label[:, np.newaxis] * shift

    def _label_sums(self, values: Floats) -> Floats:
        """Sum over the labelled nodes of each component, by weight."""
        sums = np.zeros((len(self._weights_there), values.shape[1]))
        np.add.at(sums, self.at, self._weigh(values))
        return sums

    def _label_means(self, values: Floats) -> Floats:
        """Mean over the labelled nodes of each component, by weight."""
        return self._label_sums(values) / self._weights_there[:, np.newaxis]

    def _weigh(self, values: Floats) -> Floats:
        """Return s times values at the labelled nodes."""
        return self.weights[:, np.newaxis] * values

    @property
    def ground(self) -> Floats:
        """The diagonal of diag(s)_S / c: A / c = L + diag(s)_S / c."""
        ground = np.zeros(self.n_nodes)
        ground[self.labelled] = self.weights / self.scale
        return ground

    @property
    def right_hand_sides(self) -> Floats:
        """One column for each of the values, and one for mu if the answer is to sum to zero."""
        b = np.zeros((self.n_nodes, self.values.shape[1] + self.stable))
        b[self.labelled, : self.values.shape[1]] = self._weigh(self.values - self.means[self.at])
        if self.stable:
            b[self.reached, -1] = 1.0
            b[self.labelled, -1] -= self.weights * self.size_per_label[self.at]
        return b

    def with_values(self, Y: ArrayLike) -> Self:
        """Return the same system with other values."""
        other = copy(self)
        other._set_values(Y)
        return other

    def with_degrees(self, degrees: Floats) -> Self:
        """Return the system of a graph with these degrees, on which this one does not depend."""
        return self

    def multiply(self, x: Floats, energy: Floats) -> Floats:
        """Return A x, given L x."""
        product: Floats = self.scale * energy
        self._add_ground(product, x)
        return product

    def _add_ground(self, product: Floats, x: Floats, factor: float = 1.0) -> None:
        """Add (A - c L) x to a product."""
        product[self.labelled] += factor * self._weigh(x[self.labelled])

    def start(self, b: Floats, degrees: Floats) -> Floats:
        """Return a first guess that makes relative residuals meaningful for any gamma.

        For a small gamma the residual is dominated by the labelled rows. One Jacobi step balances
        the rows.
        """
        return self.centre(b / self.diagonal(degrees)[:, np.newaxis])

    def diagonal(self, degrees: Floats) -> Floats:
        """Return the diagonal of A, for a graph with these degrees; 1 where it is 0."""
        diagonal = self.scale * degrees
        diagonal[self.labelled] += self.weights
        return np.where(diagonal > 0, diagonal, 1.0)

    def centre(self, x: Floats) -> Floats:
        """Make the weighted sum over the labels of each component zero, as for exact solutions.

        Changes x and returns it. An error along a constant hardly changes the residual but would
        dominate f.
        """
        self._add_constants(x, -self._label_means(x[self.labelled]))
        x[~self.reached] = 0.0
        return x

    def _add_constants(self, x: Floats, constants: Floats) -> None:
        """Add to each row of x the row of constants of its component."""
        for first in range(0, self.n_nodes, ROWS):  # in parts, to save memory
            part = slice(first, first + ROWS)
            x[part] += constants[self.component[part]]

    def combine(self, x: Floats) -> tuple[Floats, Floats]:
        """Return f and mu from solutions x of A x = right_hand_sides."""
        q = self.values.shape[1]
        if not self.stable:
            f = x.copy()
            self._add_constants(f, self.means)
            f[~self.reached] = 0.0
            return f, np.zeros(q)
        ratio = self.size_per_label[:, np.newaxis]
        sums = self._of_reached(x).sum(axis=0)
        of_ones = self._total + sums[-1]
        mu = (sums[:q] + self._total * self._limit) / of_ones
        beyond = (sums[:q] - self._limit * sums[-1]) / of_ones  # mu - nu
        near = np.abs(self._constants) + np.abs(beyond) * ratio
        far = np.abs(self.means) + np.abs(mu) * ratio
        constants = np.where(near < far, self._constants - beyond * ratio, self.means - mu * ratio)
        f = x[:, -1:] * mu
        np.subtract(x[:, :q], f, out=f)
        self._add_constants(f, constants)
        f -= self._of_reached(f).mean(axis=0)
        f[~self.reached] = 0.0
        return f, mu

    def _of_reached(self, x: Floats) -> Floats:
        """Return the rows of nodes in components with a label."""
        return x if self.reached.all() else x[self.reached]

    def _right_hand_side(self, mu: Floats, columns: slice = slice(None)) -> Floats:
        """Return columns of b = (s y)_S - mu on reached nodes."""
        b = np.zeros((self.n_nodes, len(mu[columns])))
        b[self.labelled] = self._weigh(self.values[:, columns])
        b[self.reached] -= mu[columns]
        return b

    def _norms(self, mu: Floats) -> Floats:
        """Return the norm of each column of b, or 1 if that is zero."""
        others = np.count_nonzero(self.reached) - len(self.labelled)
        labels = self._weigh(self.values) - mu
        norms = np.sqrt(np.einsum("ij,ij->j", labels, labels) + others * mu**2)
        return np.where(norms > 0.0, norms, 1.0)

    def relative_residuals(
        self, f: Floats, mu: Floats, laplacian: Callable[[slice], Floats]
    ) -> Floats:
        """Return norm(b - A f) / norm(b) with b = (s y)_S - mu on reached nodes.

        `laplacian` returns some columns of L f.
        """
        norms = np.empty(len(mu))
        for first in range(0, len(mu), COLUMNS):  # in parts, to save memory
            part = slice(first, first + COLUMNS)
            rest = self._right_hand_side(mu, part)
            rest -= self.multiply(f[:, part], laplacian(part))
            norms[part] = np.sqrt(np.einsum("ij,ij->j", rest, rest))
        return norms / self._norms(mu)

    def rounding_residuals(self, f: Floats, mu: Floats, degrees: Floats) -> Floats:
        """Return relative residuals of the size that the rounding of f to float64 causes.

        The terms of f are as large as its largest entry.
        """
        weight = math.sqrt(float((degrees[self.reached] ** 2).sum()))
        rounded = EPS * self.scale * weight * np.abs(f).max(axis=0)
        return np.asarray(rounded / self._norms(mu))

    def assess(self, x: Floats, residual: Floats, gram: Floats) -> tuple[Floats, ...]:
        """Return f, mu, relative residuals, relative errors in the norm x'A x, and L f.

        From solutions x, their residuals ``right_hand_sides - A x``, and bounds `gram` of the inner
        products of their errors in that norm.
        """
        f, mu = self.combine(x)
        q = len(mu)
        scaled = self.right_hand_sides
        scaled -= residual  # A x, and from it c L x
        self._add_ground(scaled, x, -1.0)
        squares = np.diag(gram)[:q].copy()
        if self.stable:
            scaled = scaled[:, :q] - scaled[:, -1:] * mu
            squares += mu * (mu * gram[-1, -1] - 2.0 * gram[:q, -1])
        # As f sums to zero, or mu is 0, f'A f = f'((s y)_S - mu 1) = f_S'(s y).
        size = np.einsum("ij,ij->j", f[self.labelled], self._weigh(self.values))
        errors = np.sqrt(np.maximum(squares, 0.0) / np.where(size > 0, size, 1.0))
        energy = scaled / self.scale
        residuals = self.relative_residuals(f, mu, lambda part: energy[:, part])
        return f, mu, residuals, errors, energy

    def score_without_label(
        self,
        rest: Floats,
        degrees: Floats,
        mu: Floats,
        values: Floats,
        kappa: Floats,
        own_mu: Floats,
        /,
    ) -> Floats:
        """Return scores of labelled nodes without their labels; see `leave_one_out`.

        `rest` is a - kappa y_i there.
        """
        stiffness = self.scale * degrees
        return (stiffness * rest - mu + own_mu * values) / (stiffness * (1.0 - kappa) + own_mu)


class RestartSystem(HFSSystem):
    """The equations of random walks with restart, a model for graphs with hubs.

    The scores are f = (D + gamma L)^-1 (s y)_S, with D the degrees. D (D + gamma L)^-1 e_j is the
    distribution of a random walk that starts at j and, before each step, stops with probability
    1 / (1 + gamma) (Tong et al. 2006). So f is, for each label, how likely its walk stops at a
    node, divided by the degree of that node: a hub is not chosen only because many walks pass
    through it.
    """

    def __init__(
        self,
        degrees: Floats,
        component: NDArray[np.int32],
        labelled: ArrayLike,
        Y: ArrayLike,
        *,
        gamma: float = 1.0,
        sample_weight: ArrayLike | None = None,
        caller: str = "solve_hfs",
    ) -> None:
        super().__init__(
            component, labelled, Y, gamma=gamma, normalization=None, sample_weight=sample_weight,
            caller=caller,
        )  # fmt: skip
        self.total_weight, self.scale = 1.0, self.gamma
        self.degrees = np.where(degrees > 0.0, degrees, 1.0)  # isolated nodes keep their label

    def with_degrees(self, degrees: Floats) -> Self:
        """Return the same system with the degrees of another graph; isolated nodes keep a label."""
        other = copy(self)
        other.degrees = np.where(degrees > 0.0, degrees, 1.0)
        return other

    @property
    def ground(self) -> Floats:
        """D / gamma: A / gamma = L + D / gamma."""
        return self.degrees / self.gamma

    @property
    def right_hand_sides(self) -> Floats:
        """One column for each of the values."""
        return self._right_hand_side(np.zeros(self.values.shape[1]))

    def _add_ground(self, product: Floats, x: Floats, factor: float = 1.0) -> None:
        product += factor * self.degrees[:, np.newaxis] * x

    def diagonal(self, degrees: Floats) -> Floats:
        """Return the diagonal of A."""
        return (1.0 + self.gamma) * self.degrees

    def centre(self, x: Floats) -> Floats:
        """Set nodes that no label reaches to zero, as they are in exact solutions."""
        x[~self.reached] = 0.0
        return x

    def combine(self, x: Floats) -> tuple[Floats, Floats]:
        """Return f, which is x, and mu, which is 0."""
        return x, np.zeros(x.shape[1])

    def score_without_label(self, rest: Floats, /, *others: Floats) -> Floats:
        return self.gamma / (1.0 + self.gamma) * rest


def _check_scale(gamma: float, n_labels: float, degrees: Floats) -> None:
    """Raise ValueError if gamma times labels and degrees, or its square, is no float64."""
    weights = degrees[degrees > 0.0]
    least = 1.0 / LARGEST_SCALE / (n_labels * float(weights.min(initial=1.0)))
    most = LARGEST_SCALE / (n_labels * float(weights.max(initial=1.0)))
    if not least <= gamma <= most:
        raise InputError(
            f"{Param('gamma', float(gamma))} is too {'large' if gamma > most else 'small'} for "
            f"float64: with {n_labels:g} labels, counted by weight, and degrees from "
            f"{weights.min(initial=1.0):g} to {weights.max(initial=1.0):g} it must be between "
            f"{least:.1g} and {most:.1g}"
        )


class HFSSolver:
    """Solves A x = b, b summing to zero over each component, on a graph in memory."""

    def __init__(
        self,
        graph: Graph,
        system: HFSSystem,
        *,
        random_state: object = None,
        n_jobs: int | None = None,
    ) -> None:
        _check_scale(system.gamma, system.total_weight, graph.degrees)
        self.graph, self.system = graph, system
        self._solver = LaplacianSolver(
            graph, ground=system.ground, random_state=random_state, n_jobs=n_jobs
        )
        self._threads = check_n_jobs(n_jobs)

    @cached_property
    def of_ones(self) -> Floats:
        """Solution for the last right-hand side of a stable system, which no value changes."""
        return self.solve(self.system.right_hand_sides[:, -1:], ONES_TOL)[:, 0]

    @property
    def report(self) -> SolveReport:
        """What the last solve did."""
        return self._solver.report_

    def apply_laplacian(self, x: Floats) -> Floats:
        """Return L x."""
        return multiply_laplacian(self.graph, np.ascontiguousarray(x), self._threads)

    def laplacian_of(self, x: Floats) -> Callable[[slice], Floats]:
        """Return a function that returns some columns of L x."""
        return lambda part: self.apply_laplacian(x[:, part])

    def multiply(self, x: Floats) -> Floats:
        """Return A x."""
        return self.system.multiply(x, self.apply_laplacian(x))

    def solve(self, b: Floats, tol: float, x0: Floats | None = None) -> Floats:
        """Return the solution; `tol` is relative to the residual of a first guess."""
        guess = self.system.start(b, self.graph.degrees)
        rest = self.multiply(guess)
        np.subtract(b, rest, out=rest)
        rest /= self.system.scale
        before = None if x0 is None else x0 - guess
        x = self._solver.solve_block(rest, tol, x0=before, overwrite=True)
        x += guess
        return self.system.centre(x)


def check_labelled(labelled: ArrayLike, n_nodes: int) -> NDArray[np.int64]:
    """Return the labelled nodes, at least one and each once."""
    nodes = check_nodes_of(n_nodes, labelled, "labelled")
    if nodes.size == 0:
        raise ValueError("no node is labelled; at least one label is needed")
    order = np.argsort(nodes, kind="stable")
    again = np.flatnonzero(nodes[order][1:] == nodes[order][:-1])
    if again.size > 0:
        first, second = order[again[0]], order[again[0] + 1]
        raise InputError(
            f"node {nodes[first]} is labelled twice, by labelled[{first}] and labelled[{second}]; "
            f"give each node once, with the mean of its values and their number as "
            f"{Param('sample_weight')}"
        )
    return nodes


def check_label_weights(sample_weight: ArrayLike | None, n_labelled: int) -> Floats:
    """Return the weights of the labelled nodes, all 1 by default."""
    if sample_weight is None:
        return np.ones(n_labelled)
    weights = check_columns(sample_weight, "sample_weight", n_labelled, "labelled node")
    if np.ndim(sample_weight) != 1:
        raise InputError(
            f"{Param('sample_weight')} must have one number per labelled node, shape "
            f"({n_labelled},), got shape {np.shape(sample_weight)}"
        )
    weights = weights[:, 0]
    bad = ~((weights >= LIGHTEST) & (weights <= HEAVIEST))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{Param('sample_weight')} must lie between {LIGHTEST:g} and {HEAVIEST:g}, but "
            f"sample_weight[{at}] = {weights[at]}; leave out labels that should not count"
        )
    return weights
