"""How much each label and each edge counts at single nodes, from one solve for each node.

Scores are linear in the labels: f = R (s y)_S, with R symmetric and the notation of `hfs_system`.
For stable-HFS, R = K - z z' / T with K = A^-1, z = K 1 and T = 1'z, both over the nodes that a
label reaches; this contains mu. For plain HFS and random walks with restart, R = K. Row v of R
says what a label of weight 1 and value 1 at any node adds to the score of node v:

    f_v = sum over labels j of R_vj s_j y_j.

The solver needs right-hand sides that sum to zero over each component C. For stable-HFS we solve
for e_v - 1_C / |C| and add K 1_C / |C| = z_C / |C|. For plain HFS we use
K e_v = K (e_v - s_S / l_C) + 1_C / l_C, because K s_S = 1. For stable-HFS on several components,
labels are decided by the score of v minus the mean score of C (`comparable_scores`), whose row is
`centred`: R (e_v - 1_C / |C|).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edges.passes import Passes
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.hfs_system import Floats, HFSSolver, HFSSystem, RestartSystem

PRECONDITIONER_TOL = 1e-6


class Influence(NamedTuple):
    """Rows of the matrix that maps labels to scores, one column for each explained node."""

    rows: Floats  # R_vj: what a label of weight and value 1 at node j adds to the score of node v
    centred: Floats  # and to the difference of this score from the mean of its component
    # K e_v. If a current of 1 enters at v and leaves through the labels, these are the potentials:
    # the edge (p, q) carries c w (x_p - x_q), and label j takes s_j x_j of it.
    potentials: Floats


def find_influence(
    solvers: Sequence[HFSSolver], nodes: NDArray[np.int64], tol: float = 1e-8
) -> list[Influence]:
    """Return the rows of some nodes, which a label reaches, for each system on its graph."""
    found = []
    for one in solvers:
        x = one.solve(_right_hand_sides(one.system, nodes), tol)
        found.append(_combine(one.system, nodes, x, one.of_ones if one.system.stable else None))
    return found


def refine_influence(
    solver: HFSSolver,
    nodes: NDArray[np.int64],
    source: Passes,
    passes: int,
    is_enough: Callable[[Influence], bool],
) -> Influence:
    """Return the rows of some nodes on all edges, by conjugate gradients as in `refine`.

    There are at least two passes and at most `passes`; they end when `is_enough`.
    """
    system = solver.system

    def multiply(x: Floats) -> Floats:
        nonlocal system
        product = source.multiply(x)
        if source.passes == 1 and source.degrees is not None:
            system = system.with_degrees(source.degrees)
        return system.multiply(x, product)

    def combine() -> Influence:
        x, k = system.centre(state.x.copy()), len(nodes)
        return _combine(system, nodes, x[:, :k], x[:, -1] if system.stable else None)

    b = _right_hand_sides(system, nodes)
    if system.stable:
        b = np.hstack([b, system.right_hand_sides[:, -1:]])
    state = BlockCG(b, lambda r: solver.solve(r, PRECONDITIONER_TOL))
    while state.step(multiply) and source.passes < passes:
        if source.passes > 1 and is_enough(combine()):
            break
    return combine()


def _right_hand_sides(system: HFSSystem, nodes: NDArray[np.int64]) -> Floats:
    """One column for each node."""
    b = np.zeros((system.n_nodes, len(nodes)))
    b[nodes, np.arange(len(nodes))] = 1.0
    if isinstance(system, RestartSystem):
        return b
    for column, component in enumerate(system.component[nodes]):
        if system.stable:
            inside = system.component == component
            b[inside, column] -= 1.0 / np.count_nonzero(inside)
        else:
            there = system.at == component
            weights = system.weights[there]
            b[system.labelled[there], column] -= weights / weights.sum()
    return b


def _combine(
    system: HFSSystem, nodes: NDArray[np.int64], rows: Floats, of_ones: Floats | None
) -> Influence:
    """Return the rows from solutions for `_right_hand_sides`, and that of `HFSSolver.of_ones`."""
    if isinstance(system, RestartSystem):
        return Influence(rows, rows, rows)
    inside = system.component[:, np.newaxis] == system.component[nodes]
    if of_ones is None:
        there = np.bincount(system.at, weights=system.weights)[system.component[nodes]]
        rows = rows + inside / there
        return Influence(rows, rows, rows)
    z = of_ones + system.size_per_label[system.component]  # K 1
    z[~system.reached] = 0.0
    potentials = rows + inside * z[:, np.newaxis] / inside.sum(axis=0)
    total = z.sum()
    return Influence(
        potentials - np.outer(z, z[nodes] / total),
        rows - np.outer(z, rows.sum(axis=0) / total),
        potentials,
    )
