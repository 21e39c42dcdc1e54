"""A bound of r'L^+ r, the energy of an error with residual r, that needs no solve.

By Thomson's principle, every flow that satisfies the demand r has energy at least r'L^+ r. So the
energy of the flow on a spanning forest is an upper bound. There is only one such flow: the edge
above a node carries the sum of r over that node and the nodes below it.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.sparse.linalg import splu

from ohmlearn import _core
from ohmlearn.edges import Batch
from ohmlearn.edges.passes import read_pass
from ohmlearn.graph import Graph

Floats = NDArray[np.float64]
HEAVY = 4  # edges per node that are looked at first


class SpanningForest:
    """The spanning forest of largest weight of a graph, rooted at a node of each component.

    The graph has at least one node; `component` is that of each.

    Attributes
    ----------
    contrast : float
        Largest product of the degree of a node and its resistance to the root.
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

    def norms(self, r: Floats) -> Floats:
        """Return a bound of sqrt(r'L^+ r) per column; each must sum to zero over each component."""
        padded = np.vstack([r, np.zeros((1, r.shape[1]))])[self._order]
        currents = self._below.solve(padded)
        norms: Floats = np.sqrt((self._resistance * currents**2).sum(axis=0))
        return norms


def _leave_out(
    n: int, u: NDArray[Any], v: NDArray[Any], w: Floats
) -> tuple[NDArray[Any], NDArray[Any], Floats]:
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
