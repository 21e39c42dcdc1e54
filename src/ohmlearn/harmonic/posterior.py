"""How sure scores are: the posterior of the Gaussian field behind HFS.

HFS is the mean of a Gaussian field with precision Q = c L + D, where L is the Laplacian, c is gamma
times the sum of the weights of the labels, and D is zero except for these weights. Its covariance
is Q^-1, which does not depend on the values of the labels.

A sample of the field needs no square root of Q. With B'W^(1/2) the incidence matrix times the roots
of the weights, random signs s and a standard normal e,

    b = sqrt(c) B'W^(1/2) s + D^(1/2) e

has the covariance c L + D = Q, so x = Q^-1 b has the covariance Q^-1. The mean of x_i^2 over
samples estimates the variance of node i. A better estimate is (Siden et al. 2018)

    1 / Q_ii + mean of (x_i - b_i / Q_ii)^2,

the variance of x_i given its neighbours, plus that of its mean given them. The first part is exact.
It is the larger one at a labelled node if gamma is small, and at a node whose edges are weak.

As in `hfs_system`, constants are split off before anything is solved, because they would dominate
the error if gamma is large: Q 1 = D 1, so on each component Q^-1 b = k 1 + Q^-1 (b - k D 1), and
the right-hand side sums to zero with k = sum(b) / sum(D).
"""

import numpy as np
from numpy.typing import ArrayLike

from ohmlearn import _core
from ohmlearn.checks.parameters import check_count, check_n_jobs, check_positive, check_seed
from ohmlearn.graph import Graph
from ohmlearn.harmonic.hfs_system import Floats, HFSSolver, HFSSystem, check_label_weights
from ohmlearn.reading.as_edges import as_graph

BLOCK = _core.SKETCH_COLUMNS  # columns that are solved together
EXACT_UP_TO = 500  # nodes; up to this size exact variances take milliseconds
SOLVE_TOL = 1e-8  # tight for the reason given in resistance.py
MORE_PROBES = 1 << 40  # numbers of blocks of probes, apart from those of samples


class Posterior:
    """The Gaussian field with precision Q = scale L + diag(weights of labels).

    Nodes in components without a label are not reached: their variance is infinite, and samples and
    solutions are 0 there. The number of threads does not change the samples.
    """

    def __init__(
        self,
        graph: Graph,
        labelled: ArrayLike,
        *,
        scale: float,
        sample_weight: ArrayLike | None = None,
        tol: float = SOLVE_TOL,
        random_state: object = None,
        n_jobs: int | None = None,
    ) -> None:
        self.graph, self.tol, self.scale = graph, tol, check_positive("scale", scale)
        self._seed, self._threads = check_seed(random_state), check_n_jobs(n_jobs)
        self._component = graph.components()[1]
        total = check_label_weights(sample_weight, np.size(labelled)).sum()
        system = HFSSystem(
            self._component, labelled, np.zeros(np.size(labelled)), gamma=self.scale / total,
            normalization=None, sample_weight=sample_weight,
        )  # fmt: skip
        self.reached = system.reached
        self.ground = np.zeros(graph.n_nodes)  # the diagonal of D
        self.ground[system.labelled] = system.weights
        self.diagonal = system.diagonal(graph.degrees)  # of Q
        self._mass = np.bincount(self._component, weights=self.ground)
        self._solver = HFSSolver(graph, system, random_state=self._seed, n_jobs=n_jobs)

    def solve(self, b: Floats, summing_like: Floats | None = None) -> Floats:
        """Return Q^-1 b for an array with columns; 0 where nodes are not reached.

        `summing_like` has the same sums over components as b, up to rounding, and smaller entries.
        """
        b = np.where(self.reached[:, np.newaxis], b, 0.0)
        given = b if summing_like is None else summing_like
        mass = np.where(self._mass > 0, self._mass, np.inf)
        sums = [np.bincount(self._component, weights=column) / mass for column in given.T]
        constant: Floats = np.column_stack(sums)[self._component]
        b -= constant * self.ground[:, np.newaxis]
        x = self._solver.solve(b, self.tol)
        x += constant
        return x

    def columns(self, nodes: ArrayLike) -> Floats:
        """Return columns of the covariance Q^-1."""
        at = np.asarray(nodes)
        b = np.zeros((self.graph.n_nodes, len(at)))
        b[at, np.arange(len(at))] = 1.0
        return self.solve(b)

    def sample(self, number: int) -> tuple[Floats, Floats]:
        """Return a block of samples x, and the right-hand sides b with Q x = b.

        The block depends only on its number and the seed.
        """
        labelled = np.flatnonzero(self.ground)
        noise = np.random.default_rng([self._seed, number]).standard_normal((len(labelled), BLOCK))
        of_labels = np.zeros((self.graph.n_nodes, BLOCK))
        of_labels[labelled] = np.sqrt(self.ground[labelled])[:, np.newaxis] * noise
        b: Floats = np.sqrt(self.scale) * self._signs(number) + of_labels
        return self.solve(b, summing_like=of_labels), b

    def probe(self, number: int) -> Floats:
        """Return a block of Q^-1 z for random signs z.

        The mean of its squares over columns estimates the squared norm of each column of Q^-1.
        """
        rng = np.random.default_rng([self._seed, MORE_PROBES + number])
        signs: Floats = rng.integers(0, 2, size=(self.graph.n_nodes, BLOCK)).astype(np.float64)
        signs *= 2.0
        signs -= 1.0
        return self.solve(signs)

    def _signs(self, number: int) -> Floats:
        """Return B'W^(1/2) s for a block of random signs s, one for each edge."""
        y = np.empty((self.graph.n_nodes, BLOCK))
        graph = self.graph
        _core.sketch_right_hand_sides(
            graph.indptr, graph.indices, graph.weights, self._seed, number, self._threads, y
        )
        return y

    def variances(self, n_samples: int) -> Floats:
        """Return the variance of each node, estimated from samples; infinite if not reached."""
        rounds = -(-n_samples // BLOCK)
        squares = np.zeros(self.graph.n_nodes)
        with np.errstate(divide="ignore"):
            own = np.where(self.reached, 1.0 / self.diagonal, 0.0)
        for number in range(rounds):
            x, b = self.sample(number)
            x -= b * own[:, np.newaxis]
            squares += np.einsum("ij,ij->i", x, x)
        return np.where(self.reached, own + squares / (rounds * BLOCK), np.inf)

    def exact_variances(self) -> Floats:
        """Return the variance of each node, from one solve per node; infinite if not reached."""
        n = self.graph.n_nodes
        found = np.full(n, np.inf)
        for start in range(0, n, BLOCK):
            nodes = np.arange(start, min(start + BLOCK, n))
            found[nodes] = self.columns(nodes)[nodes, nodes - start]
        return np.where(self.reached, found, np.inf)


def posterior_std(
    graph: Graph,
    labelled: ArrayLike,
    *,
    gamma: float = 1.0,
    sample_weight: ArrayLike | None = None,
    n_samples: int = 64,
    random_state: object = None,
    n_jobs: int | None = None,
) -> Floats:
    """Posterior standard deviation of the score of every node; infinite if not reached.

    The scores are those of HFS with the same gamma, and labels have a standard deviation of 1 (of
    ``1 / sqrt(weight)``, if weights are given). So only comparisons between nodes mean something:
    scores of a node far from all labels are less sure than those of a node next to one. Exact up to
    500 nodes; else the relative standard error is at most ``1 / sqrt(2 * n_samples)``.
    """
    graph = as_graph(graph)
    total = float(check_label_weights(sample_weight, np.size(labelled)).sum())
    field = Posterior(
        graph,
        labelled,
        scale=check_positive("gamma", gamma) * total,
        sample_weight=sample_weight,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    wanted = check_count("n_samples", n_samples)
    exact = graph.n_nodes <= EXACT_UP_TO
    return np.sqrt(field.exact_variances() if exact else field.variances(wanted))
