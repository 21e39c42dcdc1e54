"""The result of `solve_hfs` and `refine`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._display import Shown
from ohmlearn.harmonic.leave_one_out import LeftOut

Floats = NDArray[np.float64]


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
