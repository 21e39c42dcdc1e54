"""Summary of a stream of edges in one pass: counts, degrees, weights and components."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

CHUNK = 1 << 18  # least number of edges to collect before the components are updated in O(n)


class EdgeSummary:
    """Collects statistics of edges; each parallel edge is counted."""

    def __init__(self) -> None:
        self._degree = np.zeros(0, dtype=np.int64)
        self._label = np.zeros(0, dtype=np.int64)
        self._waiting: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._n_waiting = 0
        self._n_edges = self._n_loops = self._n_zero = 0
        self._weight = 0.0
        self._lightest, self._heaviest = math.inf, 0.0
        self._weighted = False
        self._earliest, self._latest = math.inf, -math.inf

    def update(
        self,
        u: NDArray[Any],
        v: NDArray[Any],
        w: NDArray[Any] | None = None,
        t: NDArray[np.float64] | None = None,
    ) -> None:
        """Add a batch of edges."""
        if len(u) == 0:
            return
        keep = u != v
        self._n_loops += len(u) - int(np.count_nonzero(keep))
        if w is not None:
            self._weighted = True
            zero = keep & (w < 2.0**-126)  # as the sampler counts them
            self._n_zero += int(np.count_nonzero(zero))
            keep &= ~zero
        u, v = u[keep], v[keep]
        if len(u) == 0:
            return
        if t is not None:
            self._earliest = min(self._earliest, float(t[keep].min()))
            self._latest = max(self._latest, float(t[keep].max()))
        weights = np.ones(1) if w is None else w[keep]
        self._weight += float(weights.sum(dtype=np.float64)) if w is not None else len(u)
        self._lightest = min(self._lightest, float(weights.min()))
        self._heaviest = max(self._heaviest, float(weights.max()))
        self._n_edges += len(u)
        self._make_room(int(max(u.max(), v.max())) + 1)
        for side in (u, v):
            found = np.bincount(side)
            self._degree[: len(found)] += found
        self._waiting.append((u, v))
        self._n_waiting += len(u)
        if self._n_waiting >= max(CHUNK, 2 * len(self._label)):
            self._join()

    def figures(self, n_nodes: int) -> dict[str, Any]:
        """Return all figures; nodes without an edge count as isolated."""
        self._make_room(n_nodes)
        self._join()
        degree, n = self._degree[:n_nodes], n_nodes
        low, middle, high = np.quantile(degree, [0.25, 0.5, 0.75]) if n else (0, 0, 0)
        labels, sizes = np.unique(self._label[:n_nodes], return_counts=True)
        return {
            "n_nodes": n,
            "n_edges_seen": self._n_edges,
            "n_self_loops_dropped": self._n_loops,
            "n_zero_weights_dropped": self._n_zero,
            "n_components": len(labels),
            "largest_component": int(sizes.max()) if n else 0,
            "n_isolated_nodes": int(np.count_nonzero(degree == 0)),
            "degree_mean": 2 * self._n_edges / n if n else 0.0,
            "degree_quartiles": [float(low), float(middle), float(high)],
            "degree_max": int(degree.max()) if n else 0,
            "weighted": self._weighted,
            "weight_seen": self._weight,
            "weight_min": self._lightest if self._n_edges else None,
            "weight_max": self._heaviest if self._n_edges else None,
            "time_min": self._earliest if self._earliest <= self._latest else None,
            "time_max": self._latest if self._earliest <= self._latest else None,
        }

    def _make_room(self, n_nodes: int) -> None:
        known = len(self._label)
        if n_nodes > known:
            room = max(n_nodes, 2 * known)
            self._degree = np.concatenate([self._degree, np.zeros(room - known, dtype=np.int64)])
            self._label = np.concatenate([self._label, np.arange(known, room)])

    def _join(self) -> None:
        """Merge the components that the waiting edges join."""
        if not self._waiting:
            return
        u, v = (np.concatenate(side) for side in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        a, b = self._label[u], self._label[v]
        new = a != b
        if new.any():
            n = len(self._label)
            links = (np.ones(np.count_nonzero(new), dtype=np.int8), (a[new], b[new]))
            labels = connected_components(scipy.sparse.coo_array(links, shape=(n, n)))[1]
            # Each label is an index into `labels`, which maps it to the label of the merged
            # component.
            self._label = labels[self._label].astype(np.int64)
