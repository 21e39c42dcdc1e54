"""The step after the last pass of `refine`, which reads no edge."""

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edges.passes import Passes
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.hfs_system import HFSSolver, HFSSystem

__all__ = ["last_step"]

Floats = NDArray[np.float64]
# Noise of a mean over the neighbours in H, relative to that of independent errors. Measured: the
# errors of neighbours in H are correlated, because the same edges caused them.
CORRELATED = 2.0


def last_step(cg: BlockCG, solver: HFSSolver, system: HFSSystem, source: Passes) -> Floats:
    """Return a step that needs no product with the full graph.

    The error e of the scores obeys e = r / diag(A) + mean of e over the neighbours, up to factors,
    where r is the residual. The first term, a Jacobi step, is known. The solution of this equation
    on the sparsifier H estimates the second. But H has few of the neighbours, so the estimate is
    noisy, and in dense graphs it is nothing but noise. So it is shrunk, for each column, by the
    share of its mean square that noise explains: what a mean over the neighbours in H would have
    if errors were independent, times the share of edges that were dropped, times `CORRELATED`.
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
    step: Floats = jacobi + kept * of_neighbours
    return step
