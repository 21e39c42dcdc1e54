"""Graphs, orders of their edges, and the exact measure of epsilon, for all studies of quality.

Tests use the same ones. Graphs are small, so that epsilon comes from a dense matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ohmlearn import Graph, gallery

Nodes = npt.NDArray[np.int64]
Stream = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]

# "rows": as in the upper triangle of the matrix. The last three are adversarial: the edges of one
# cluster before all others; those between clusters at the beginning, or at the end. Within such a
# group the order is random.
ORDERS = ("random", "rows", "cluster first", "bridges first", "bridges last")


@dataclass(frozen=True)
class Family:
    """A graph whose nodes belong to clusters; each edge comes as ``parts`` equal parallel ones."""

    graph: Graph
    cluster: Nodes
    parts: int = 1

    @property
    def bridges(self) -> npt.NDArray[np.bool_]:
        """Which of ``graph.edges()`` run between clusters."""
        u, v, _ = self.graph.edges()
        return self.cluster[u] != self.cluster[v]

    def stream(self, order: str, seed: int) -> Stream:
        """All edges in one of ORDERS."""
        u, v, w = self.graph.edges()
        edge = np.repeat(np.arange(len(u)), self.parts)
        if order != "rows":
            edge = np.random.default_rng(seed).permutation(edge)
        bridge = self.bridges[edge]
        group = {
            "random": np.zeros(len(edge)),
            "rows": np.zeros(len(edge)),
            "cluster first": bridge | (self.cluster[u[edge]] != 0),
            "bridges first": ~bridge,
            "bridges last": bridge,
        }[order]
        edge = edge[np.argsort(group, kind="stable")]
        return u[edge], v[edge], w[edge] / self.parts


def _halves(graph: Graph, parts: int = 1) -> Family:
    """Two clusters for a graph that has none, by node number."""
    return Family(graph, (np.arange(graph.n_nodes) >= graph.n_nodes // 2).astype(np.int64), parts)


def _blocks() -> Family:
    sizes = [130, 130, 130]
    graph = gallery.stochastic_blocks(sizes, 0.9, bridges=3)
    return Family(graph, np.repeat(np.arange(3), sizes))


def _paper() -> Family:
    points = gallery.paper_points(400)
    depth = np.searchsorted([2.25, 4.6, 5.95], -points[:, 1])  # the gaps between the clusters
    return Family(gallery.paper_knn(149, n_points=400), depth)


def _union() -> Family:
    pieces = [gallery.complete(180), gallery.stochastic_blocks([90, 90], 0.9), gallery.path(30)]
    graph = gallery.disjoint_union(*pieces, gallery.path(1))
    return Family(graph, np.repeat(np.arange(5), [180, 90, 90, 30, 1]))


# Sparse graphs are kept whole when each edge comes once; in parts there is something to drop.
FAMILIES: dict[str, Callable[[], Family]] = {
    "paper": _paper,
    "blocks": _blocks,
    "barbell": lambda: _halves(gallery.barbell(200, bridge=3)),
    "attachment": lambda: _halves(gallery.preferential_attachment(400, 120)),
    "6 decades": lambda: _halves(gallery.log_uniform_weights(gallery.complete(400), decades=6)),
    "complete": lambda: _halves(gallery.complete(400)),
    "union": _union,
    "grid": lambda: _halves(gallery.grid2d(20, 20)),
    "star": lambda: _halves(gallery.star(400)),
    "path": lambda: _halves(gallery.path(400)),
    "grid in 60 parts": lambda: _halves(gallery.grid2d(20, 20), 60),
    "star in 80 parts": lambda: _halves(gallery.star(400), 80),
    "path in 80 parts": lambda: _halves(gallery.path(400), 80),
}


class Ruler:
    """Measures sparsifiers against one graph, by dense eigenvalues.

    Examples
    --------
    >>> triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> path = Graph.from_edges([0, 1], [1, 2], [1.5, 1.5])
    >>> round(Ruler(triangle).epsilon(path), 12)
    0.5
    """

    def __init__(self, graph: Graph) -> None:
        values, vectors = scipy.linalg.eigh(graph.laplacian().toarray())
        rank = graph.n_nodes - graph.components()[0]
        kept = slice(graph.n_nodes - rank, None)
        # The columns x have x'L_G x = 1 and are orthogonal in that sense.
        self.basis = vectors[:, kept] / np.sqrt(values[kept])

    def ratios(self, sparsifier: Graph) -> npt.NDArray[np.float64]:
        """All stationary ratios x'L_H x / x'L_G x, ascending."""
        energies = self.basis.T @ (sparsifier.laplacian() @ self.basis)
        values: npt.NDArray[np.float64] = scipy.linalg.eigvalsh(energies, check_finite=False)
        return values

    def epsilon(self, sparsifier: Graph) -> float:
        """Largest distance of a ratio from 1; exactly 1 at least where H is less connected."""
        ratios = self.ratios(sparsifier)
        return float(max(1 - ratios[0], ratios[-1] - 1))
