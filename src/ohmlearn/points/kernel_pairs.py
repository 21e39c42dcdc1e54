"""Edges of kernel graphs: all pairs of points, computed while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ohmlearn import _core
from ohmlearn.checks.parameters import check_option, check_positive
from ohmlearn.edges import Batch
from ohmlearn.points.point_arrays import PointEdges, check_points, pack_points, row_blocks

if TYPE_CHECKING:
    from ohmlearn.sparsifier import StreamingSparsifier

FED = 512  # rows in a native call; Ctrl-C is noticed between calls
KERNELS = {name: getattr(_core.Kernel, name) for name in ("rbf", "laplacian", "cosine")}


class KernelEdges(PointEdges):
    """Stream of all pairs of points, weighted by a kernel; see `kernel_edges`.

    Attributes
    ----------
    n_nodes, n_edges : int
        Number of points, and of pairs.
    gamma : float
        The parameter of the kernel.
    nodes : None
        The nodes are the rows of X.
    loses_weights : bool
        Whether weights that are too small count as 0: not if `kernel` is "cosine".
    rereadable : bool
        True: every ``iter()`` starts from the beginning.

    Examples
    --------
    >>> from ohmlearn import kernel_edges
    >>> stream = kernel_edges([[0.0], [1.0], [3.0]])
    >>> stream.n_nodes, stream.n_edges
    (3, 3)
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        n_jobs: int | None = None,
        block: int | None = None,
    ) -> None:
        if scipy.sparse.issparse(X):
            raise TypeError("kernel_edges needs a dense X, got a sparse one; give X.toarray()")
        x = check_points(X)
        super().__init__(len(x), n_jobs, block)
        self._kernel = KERNELS[check_option("kernel", kernel, KERNELS)]
        self.loses_weights = kernel != "cosine"
        self.n_edges = len(x) * (len(x) - 1) // 2
        self.gamma = default_gamma(x, kernel) if gamma is None else check_positive("gamma", gamma)
        if kernel == "cosine":
            length = np.linalg.norm(x, axis=1, keepdims=True)
            x = x / np.where(length > 0, length, 1)
        self._points: Any = pack_points(x)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Compute all pairs, block by block."""
        for begin, end in row_blocks(self.n_nodes, self._block, triangle=True):
            how = (self._kernel, self.gamma, begin, end, self._threads)
            yield Batch(*self._points.kernel_edges(*how))

    def feed(self, sparsifier: StreamingSparsifier) -> StreamingSparsifier:
        """Let the sampler compute the pairs itself, so that no arrays of them are made.

        It ends in the same state as after taking in every batch.
        """
        taken = sparsifier.add_points(self.n_nodes, self._feed_sampler)
        return sparsifier if taken else super().feed(sparsifier)

    def _feed_sampler(self, sampler: _core.Sampler) -> None:
        for begin, end in row_blocks(self.n_nodes, FED, triangle=True):
            self._points.feed_kernel(sampler, self._kernel, self.gamma, begin, end, self._threads)


def default_gamma(x: Any, kernel: str) -> float:
    """Return a gamma that scales with the units of the points; sparse ones only for "rbf"."""
    if scipy.sparse.issparse(x):
        x = x.astype(np.float64)
        spread = float(x.power(2).mean() - x.mean() ** 2)
    else:
        spread = float(np.var(x, dtype=np.float64)) if kernel == "rbf" else float(np.std(x))
    return 1.0 / (x.shape[1] * spread) if spread > 0 else 1.0


def kernel_edges(
    X: ArrayLike,
    *,
    kernel: Literal["rbf", "laplacian", "cosine"] = "rbf",
    gamma: float | None = None,
    n_jobs: int | None = None,
    block: int | None = None,
) -> KernelEdges:
    """Join all pairs of points, weighted by a kernel, without storing the graph.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Distances are computed in float32 if X is float32, else in float64; weights are float32.
    kernel : {"rbf", "laplacian", "cosine"}
        ``exp(-gamma |x - y|²)``, ``exp(-gamma |x - y|₁)``, or the cosine of the angle between x and
        y, 0 if it is negative. Weights below 1.2e-38 are 0; if points lose all weights to a label
        by that, the estimators raise an error, so choose a smaller `gamma`.
    gamma : float, optional
        By default 1 / (n_features * variance of X) for "rbf", and the same with the standard
        deviation for "laplacian". "cosine" does not use it.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the edges are the same for any number.
    block : int, optional
        Number of points whose edges form a batch; chosen for speed by default.

    Returns
    -------
    KernelEdges
        A stream that can be read any number of times.

    Examples
    --------
    >>> from ohmlearn import kernel_edges
    >>> for u, v, w, _ in kernel_edges([[0.0], [1.0], [2.0]], gamma=1.0):
    ...     print(u, v, w.round(4))
    [0 0 1] [1 2 2] [0.3679 0.0183 0.3679]
    """
    return KernelEdges(X, kernel=kernel, gamma=gamma, n_jobs=n_jobs, block=block)
