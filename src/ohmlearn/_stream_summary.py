"""What one pass over a stream of edges tells about its graph."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

__all__ = ["StreamSummary"]


class StreamSummary:
    """Counts nodes, edges and components, and sums up degrees and weights.

    Examples
    --------
    >>> import numpy as np
    >>> summary = StreamSummary()
    >>> summary.update(np.array([0, 1, 3, 4]), np.array([1, 2, 3, 5]), None)
    >>> found = summary.describe(6)
    >>> found["edges"], found["self_loops"], found["components"], found["largest_component"]
    (3, 1, 3, 3)
    """

    def __init__(self) -> None:
        self._degree = np.zeros(0, dtype=np.int64)
        self._strength = np.zeros(0)
        self._component = np.zeros(0, dtype=np.int64)
        self._rows = self._loops = self._zeros = 0
        self._least, self._most, self._total = np.inf, 0.0, 0.0

    def update(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None) -> None:
        """Take in a batch."""
        self._rows += len(u)
        weight = np.ones(len(u)) if w is None else w.astype(np.float64)
        loops = u == v
        zeros = ~loops & (weight == 0)
        self._loops += int(loops.sum())
        self._zeros += int(zeros.sum())
        counted = ~loops & ~zeros
        u, v, weight = u[counted], v[counted], weight[counted]
        if len(u) == 0:
            return
        self._grow(int(max(u.max(), v.max())) + 1)
        n = len(self._degree)
        self._least = min(self._least, float(weight.min()))
        self._most = max(self._most, float(weight.max()))
        self._total += float(weight.sum())
        for end in (u, v):
            self._degree += np.bincount(end, minlength=n)
            self._strength += np.bincount(end, weights=weight, minlength=n)
        a, b = self._component[u], self._component[v]
        new = a != b
        if new.any():
            links = (np.ones(int(new.sum()), dtype=np.int8), (a[new], b[new]))
            labels = connected_components(scipy.sparse.coo_array(links, shape=(n, n)))[1]
            # Numbered by a member, so that numbers stay below n.
            first = np.full(int(labels.max()) + 1, n, dtype=np.int64)
            np.minimum.at(first, labels, np.arange(n))
            self._component = first[labels[self._component]]

    def _grow(self, n: int) -> None:
        missing = n - len(self._degree)
        if missing > 0:
            start = len(self._degree)
            self._degree = np.concatenate([self._degree, np.zeros(missing, dtype=np.int64)])
            self._strength = np.concatenate([self._strength, np.zeros(missing)])
            self._component = np.concatenate([self._component, np.arange(start, n)])

    def describe(self, n_nodes: int) -> dict[str, Any]:
        """Return the figures for a graph of `n_nodes` nodes."""
        self._grow(n_nodes)
        sizes = np.bincount(self._component, minlength=1)
        sizes = sizes[sizes > 0]
        degree = self._degree if n_nodes else np.zeros(1, dtype=np.int64)
        edges = self._rows - self._loops - self._zeros
        return {
            "nodes": n_nodes,
            "edges": edges,
            "self_loops": self._loops,
            "zero_weights": self._zeros,
            "components": len(sizes),
            "largest_component": int(sizes.max()) if len(sizes) else 0,
            "isolated_nodes": int((self._degree == 0).sum()),
            "degree_mean": float(degree.mean()),
            "degree_median": float(np.median(degree)),
            "degree_max": int(degree.max()),
            "weighted_degree_max": float(self._strength.max()) if n_nodes else 0.0,
            "weight_min": float(self._least) if edges else 0.0,
            "weight_mean": self._total / edges if edges else 0.0,
            "weight_max": self._most,
        }
