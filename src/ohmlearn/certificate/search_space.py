"""Bases of the Krylov spaces of M = L_H^+ L_G, with bounds of rounding and solver errors.

The basis V is orthonormal in the inner product x'L_H y. T = V'L_G V is M in this basis, block
tridiagonal, and S holds the coordinates of the random starts:

    M V = V T + F    except for the last block of V,        starts = V S + D.

F and D would be zero in exact arithmetic. Their norms can be bounded without a solve, for any V, T
and S, because the residuals

    L_H F = L_G V - L_H V T    and    L_H D = currents of the starts - L_H V S

can be computed, and a spanning forest of H bounds the norms that belong to them. The rounding
errors of the residuals are estimated: the error of a sum is about the machine epsilon times the sum
of the absolute values of its terms. The degree of a node in G is at most lambda_max times that in
H, so these errors are proportional to lambda_max. They grow with the contrast of the weights of H,
because a vector of norm 1 may have entries as large as the square root of a resistance between two
nodes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.sparse.linalg import splu

from ohmlearn import _core
from ohmlearn._blas import one_blas_thread
from ohmlearn.checks.parameters import check_n_jobs
from ohmlearn.edges import Batch
from ohmlearn.edges.passes import multiply_laplacian, read_pass
from ohmlearn.graph import Graph
from ohmlearn.solver import LaplacianSolver

Columns = NDArray[np.float64]
SOLVE_TOL, CORRECTION_TOL = 1e-10, 1e-4
MAX_CORRECTIONS = 4
HEAVY = 4  # edges per node that are looked at first for the forest
EPS = 8.0 * float(np.finfo(np.float64).eps)  # error of a sum of terms of size 1, with a margin


@dataclass
class Errors:
    """Bounds of the errors of a basis."""

    start: float = math.inf  # norm of a column of D, relative to that start
    image: float = 0.0  # measured norm of F
    projection: float = 0.0  # of V'L_G V - T
    gram: float = 0.0  # of V'L_H V - 1
    # Rounding error of `image` and `projection` (relative to lambda_max), of `gram` (absolute).
    rounding: float = 0.0


class LaplacianSpace:
    """The vectors without a constant part on any component of H, with inner product x'L_H y.

    H has at least one edge. The seed is that of the starts and of the solver. `block` has the last
    vectors of V, and `project` needs L_G times them. `projected` is T, whose diagonal block that
    belongs to `block` is zero until then. `starts` is S, one column per start; rows after the first
    block are zero and not stored.
    """

    def __init__(self, h: Graph, component: NDArray[Any], seed: int, n_jobs: int | None) -> None:
        self.h, self.component = h, component
        self.block = np.empty((h.n_nodes, 0))
        self.projected = self.starts = np.empty((0, 0))
        self.errors = Errors()
        self._solver = LaplacianSolver(h, random_state=seed, n_jobs=n_jobs)
        self._forest = SpanningForest(h, component)
        self._threads = check_n_jobs(n_jobs)
        self._rng = np.random.default_rng(seed)
        self._blocks: list[Columns] = []
        self._image = self.block  # L_G times the last block
        self._spread = 0.0  # sum of the squared entries of V times degrees
        totals = np.bincount(component, h.degrees)
        fractions = h.degrees / np.where(totals > 0.0, totals, 1.0)[component]
        members = (component, np.arange(h.n_nodes))
        self._average = scipy.sparse.csr_array((fractions, members), (len(totals), h.n_nodes))

    @one_blas_thread()
    def draw(self, n_starts: int, goal: float) -> None:
        """Start with the span of random vectors, with relative errors below `goal`."""
        n = self.h.n_nodes
        u, v, w = self.h.edges()
        currents = np.empty((n, n_starts))
        for column in currents.T:
            flow = np.sqrt(w) * self._rng.standard_normal(len(w))
            column[:] = np.bincount(u, flow, n) - np.bincount(v, flow, n)
        x, error = self._solve(currents, goal * math.sqrt(n))
        self._append(x, error)
        self.projected = np.zeros((self.block.shape[1], self.block.shape[1]))
        self.starts = self.block.T @ self._multiply(x)
        missing = self._forest.norms(currents - self._multiply(self.block @ self.starts))
        sizes = np.linalg.norm(self.starts, axis=0)
        self.errors.start = float(np.max(missing / sizes)) if sizes.all() else math.inf

    def project(self, image: Columns) -> None:
        """Complete T, given L_G times the last block."""
        width = self.block.shape[1]
        found = np.vstack([v.T @ image for v in self._blocks])
        corner = (found[-width:] + found[-width:].T) / 2
        self.projected[-width:, -width:] = corner
        off = math.sqrt(2.0) * float(np.linalg.norm(found - self.projected[:, -width:]))
        self.errors.projection = math.hypot(self.errors.projection, off)
        self._image = image

    def extend(self, goal: float) -> None:
        """Find the next block; it has no columns if the space is exhausted.

        `goal` is the target for the error of M V; `errors.image` bounds the error reached.
        """
        last = self.block.shape[1]
        x, error = self._solve(self._image, goal)
        self._append(x, max(error, goal))
        coupling = self.block.T @ self._image
        size, width = len(self.projected), self.block.shape[1]
        larger = np.zeros((size + width, size + width))
        larger[:size, :size] = self.projected
        larger[size:, size - last : size] = coupling
        larger[size - last : size, size:] = coupling.T
        self.projected = larger
        foreseen = larger[:, size - last : size]
        ends = np.cumsum([v.shape[1] for v in self._blocks])
        parts = zip(self._blocks, np.split(foreseen, ends[:-1]), strict=True)
        combined = sum((v @ part for v, part in parts if part.any()), np.zeros_like(self._image))
        missing = self._forest.norms(self._image - self._multiply(combined))
        self.errors.image = math.hypot(self.errors.image, *missing)

    def _multiply(self, x: Columns) -> Columns:
        return multiply_laplacian(self.h, x, self._threads)

    def _centre(self, x: Columns) -> Columns:
        """Subtract the mean over each component, weighted by degrees.

        Constants have no energy, but rounding errors have, and they grow with the entries.
        """
        return np.asarray(x - (self._average @ x)[self.component])

    def _solve(self, b: Columns, goal: float) -> tuple[Columns, float]:
        """Return L_H^+ b and a bound of its error; correct it until the bound is below `goal`."""
        x = self._centre(self._solver.solve_block(b, SOLVE_TOL))
        rest = b - self._multiply(x)
        error = float(self._forest.norms(rest).max())
        for _ in range(MAX_CORRECTIONS):
            if error <= goal:
                break
            better = x + self._centre(self._solver.solve_block(rest, CORRECTION_TOL))
            rest = b - self._multiply(better)
            left = float(self._forest.norms(rest).max())
            if not left < error / 2:
                break
            x, error = better, left
        return x, error

    def _append(self, x: Columns, error: float) -> None:
        """Make the columns of x orthonormal, to each other and to V, and append them to V.

        Directions that are shorter than `error` are left out.
        """
        # Orthogonalise twice. A column that is short the second time was rounding error.
        for least in (error, 0.5):
            products = self._multiply(x)
            x = x - sum((v @ (v.T @ products) for v in self._blocks), np.zeros_like(x))
            x = self._orthonormalise(self._centre(x), least)
        self.block = x
        self._blocks.append(x)
        products = self._multiply(x)
        off = np.vstack([v.T @ products for v in self._blocks])
        off[len(off) - x.shape[1] :] -= np.eye(x.shape[1])
        errors = self.errors
        errors.gram = math.hypot(errors.gram, math.sqrt(2.0) * float(np.linalg.norm(off)))
        self._spread += 2.0 * float(self.h.degrees @ (x**2).sum(axis=1))
        dimension = sum(v.shape[1] for v in self._blocks)
        largest = math.sqrt(2.0 * self._forest.contrast) + math.sqrt(dimension * self._spread)
        errors.rounding = EPS * largest

    def _orthonormalise(self, x: Columns, least: float) -> Columns:
        """Run Gram-Schmidt, longest column first, to limit cancellation in short columns."""
        chosen: list[Columns] = []
        while x.shape[1] > 0:
            products = self._multiply(x)
            squares = np.einsum("ij,ij->j", x, products)
            longest = int(np.argmax(squares))
            if not squares[longest] > least**2:
                break
            unit = x[:, longest] / math.sqrt(squares[longest])
            coefficients = unit @ products
            x = np.delete(x - np.outer(unit, coefficients), longest, axis=1)
            chosen.append(unit)
        return np.column_stack(chosen) if chosen else np.empty((len(x), 0))


class SpanningForest:
    """The spanning forest of largest weight of a graph, rooted at a node of each component.

    The graph has at least one node; `component` is that of each. `contrast` is the largest product
    of the degree of a node and its resistance to the root.
    """

    def __init__(self, graph: Graph, component: NDArray[np.int32]) -> None:
        n, degrees = graph.n_nodes, graph.degrees
        u, v, w = _leave_out(n, *graph.edges())
        by_weight = np.argsort(-w, kind="stable")
        ranks = np.empty(len(w))
        ranks[by_weight] = np.arange(1, len(w) + 1)
        tree = minimum_spanning_tree(scipy.sparse.csr_array((ranks, (u, v)), shape=(n, n))).tocoo()
        weights = w[by_weight[tree.data.astype(np.int64) - 1]]

        # The node of largest degree in each component becomes a child of a common extra node n.
        heaviest = np.lexsort((degrees, component))
        roots = heaviest[np.append(component[heaviest][1:] != component[heaviest][:-1], True)]
        ends = np.append(tree.row, roots), np.append(tree.col, np.full(len(roots), n))
        whole = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=(n + 1, n + 1))
        order, above = breadth_first_order(whole, n, directed=False)
        place = np.empty(n + 1, dtype=np.int64)
        place[order] = np.arange(n + 1)
        child = np.where(above[tree.row] == tree.col, tree.row, tree.col)
        resistance = np.zeros(n + 1)  # of the edge above a node; none above a root
        resistance[child] = 1.0 / weights
        nodes = np.arange(n)
        entries = np.append(np.ones(n + 1), np.full(n, -1.0))
        rows = np.append(np.arange(n + 1), place[above[nodes]])
        columns = np.append(np.arange(n + 1), place[nodes])
        # The matrix is upper triangular and its factor has no fill. Its inverse sums over the
        # nodes below each node.
        self._below = splu(
            scipy.sparse.csc_array((entries, (rows, columns)), shape=(n + 1, n + 1)),
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
        )
        self._order = order
        self._resistance = resistance[order][:, np.newaxis]
        to_root = self._below.solve(resistance[order], trans="T")[place[:n]]
        self.contrast = float(np.nan_to_num(degrees * to_root, nan=np.inf).max(initial=0.0))

    def norms(self, r: Columns) -> Columns:
        """Return a bound of sqrt(r'L^+ r) per column; each must sum to zero over each component."""
        padded = np.vstack([r, np.zeros((1, r.shape[1]))])[self._order]
        currents = self._below.solve(padded)
        return np.asarray(np.sqrt((self._resistance * currents**2).sum(axis=0)))


def _leave_out(
    n: int, u: NDArray[Any], v: NDArray[Any], w: Columns
) -> tuple[NDArray[Any], NDArray[Any], Columns]:
    """Return the edges without most of those that are not in the forest of largest weight.

    An edge is not in it if heavier edges connect its ends. Sorting takes longest, and few edges
    are left to sort.
    """
    first = len(w) - HEAVY * n
    if first < HEAVY * n:
        return u, v, w
    heavy = w >= np.partition(w, first)[first]
    roots = np.arange(n, dtype=np.int32)
    joining = [Batch(u[heavy], v[heavy])]
    read_pass(joining, np.empty((n, 0)), np.zeros(n, dtype=np.int32), roots)
    _core.find_roots(roots)
    kept = heavy | (roots[u] != roots[v])
    return u[kept], v[kept], w[kept]
