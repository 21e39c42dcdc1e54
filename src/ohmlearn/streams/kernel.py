"""Edges of kernel graphs: all pairs of points, made as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.points import check_points, pack_points, row_blocks
from ohmlearn.validation.parameters import check_n_jobs, check_option, check_positive

__all__ = ["KernelEdges", "kernel_edges"]

FED = 512  # rows between two looks at the keyboard
KERNELS = {
    "rbf": _core.Kernel.rbf,
    "laplacian": _core.Kernel.laplacian,
    "cosine": _core.Kernel.cosine,
}


class KernelEdges:
    """Stream of all pairs of points, weighted by a kernel; see `kernel_edges`.

    Attributes
    ----------
    n_nodes : int
        Number of points.
    n_edges : int
        Number of pairs.
    gamma : float
    rereadable : bool
        True: every ``iter()`` begins anew.

    Examples
    --------
    >>> from ohmlearn import kernel_edges
    >>> stream = kernel_edges([[0.0], [1.0], [3.0]])
    >>> stream.n_nodes, stream.n_edges
    (3, 3)
    """

    rereadable = True

    def __init__(
        self,
        X: ArrayLike,
        kernel: str = "rbf",
        gamma: float | None = None,
        *,
        n_jobs: int | None = None,
        block: int | None = None,
    ) -> None:
        x = check_points(X)
        self._kernel = KERNELS[check_option("kernel", kernel, KERNELS)]
        self.n_nodes = len(x)
        self.n_edges = len(x) * (len(x) - 1) // 2
        self.gamma = default_gamma(x, kernel) if gamma is None else check_positive("gamma", gamma)
        self._threads = check_n_jobs(n_jobs)
        self._block = block
        if kernel == "cosine":
            length = np.linalg.norm(x, axis=1, keepdims=True)
            x = x / np.where(length > 0, length, 1)
        self._points: Any = pack_points(x)

    def __iter__(self) -> Iterator[EdgeBatch]:
        for begin, end in row_blocks(self.n_nodes, self._block, triangle=True):
            yield EdgeBatch(
                *self._points.kernel_edges(self._kernel, self.gamma, begin, end, self._threads)
            )

    def feed(self, sparsifier: Any) -> None:
        """Give all pairs to a StreamingSparsifier.

        The same as ``update`` with every batch, to the last bit, without making arrays of them.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import StreamingSparsifier, kernel_edges
        >>> sparsifier = StreamingSparsifier(n_nodes=500, epsilon=0.9, random_state=0)
        >>> kernel_edges(np.random.default_rng(0).normal(size=(500, 3))).feed(sparsifier)
        >>> sparsifier.n_edges_seen_
        124750
        """
        sampler = sparsifier._sampler()
        known = sparsifier.n_nodes
        if isinstance(sampler, _core.Sampler) and (known is None or known >= self.n_nodes):
            for begin, end in row_blocks(self.n_nodes, FED, triangle=True):
                with sparsifier._lock:
                    self._points.feed_kernel(
                        sampler, self._kernel, self.gamma, begin, end, self._threads
                    )
        else:  # the scheme "paper", which is in Python; or nodes to be refused
            for batch in self:
                sparsifier.update(*batch)


def default_gamma(x: NDArray[Any], kernel: str) -> float:
    """Return a gamma that follows the units of the points."""
    spread = float(np.var(x, dtype=np.float64)) if kernel == "rbf" else float(np.std(x))
    return 1.0 / (x.shape[1] * spread) if spread > 0 else 1.0


def kernel_edges(
    X: ArrayLike,
    kernel: Literal["rbf", "laplacian", "cosine"] = "rbf",
    gamma: float | None = None,
    *,
    n_jobs: int | None = None,
    block: int | None = None,
) -> KernelEdges:
    """Join all points, weighted by a kernel, without storing the graph.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Distances are computed as float32 if it is that, else as float64; weights are float32.
    kernel : {"rbf", "laplacian", "cosine"}
        ``exp(-gamma |x - y|²)``, ``exp(-gamma |x - y|₁)``, or the cosine of the angle between x and
        y, 0 if it is negative. Weights below 1e-38 are 0.
    gamma : float, optional
        By default 1 / (n_features * variance of X) for "rbf" and 1 / (n_features * its root) for
        "laplacian". "cosine" has none.
    n_jobs : int, optional
        Threads, read as scikit-learn does; the edges are the same for any number.
    block : int, optional
        Points whose edges make a batch; chosen for speed by default.

    Returns
    -------
    KernelEdges
        A stream of `EdgeBatch` that can be read again and again.

    Examples
    --------
    >>> from ohmlearn import kernel_edges
    >>> for u, v, w in kernel_edges([[0.0], [1.0], [2.0]], gamma=1.0):
    ...     print(u, v, w.round(4))
    [0 0 1] [1 2 2] [0.3679 0.0183 0.3679]
    """
    return KernelEdges(X, kernel, gamma, n_jobs=n_jobs, block=block)
