"""Graphs, orders of their edges, and the exact epsilon, for all studies of quality.

Tests use the same graphs. The graphs are small, so that epsilon can be computed from a dense
matrix. FAMILIES are graphs whose weights are similar or spread evenly. CONTRASTS are streams in
which some edges are many times as heavy as the others, as with payments, near-duplicates or kernels
of tight groups.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ohmlearn import Graph, gallery

Nodes = npt.NDArray[np.int64]
Stream = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]

# "rows" is the order of the upper triangle of the matrix. The last three orders are adversarial:
# the edges of one cluster come first; the edges between clusters come first, or last. Within such
# a group the order is random.
ORDERS = ("random", "rows", "cluster first", "bridges first", "bridges last")


@dataclass(frozen=True)
class Family:
    """A graph whose nodes belong to clusters; the stream has ``parts`` equal copies of each edge.

    Each copy has the weight of the edge divided by ``parts``.
    """

    graph: Graph
    cluster: Nodes
    parts: int = 1

    orders = ORDERS

    @property
    def n_edges(self) -> int:
        """Edges of the stream."""
        return self.graph.n_edges * self.parts

    @property
    def bridges(self) -> npt.NDArray[np.bool_]:
        """Whether each of ``graph.edges()`` connects two clusters."""
        u, v, _ = self.graph.edges()
        return self.cluster[u] != self.cluster[v]

    def stream(self, order: str, seed: int) -> Stream:
        """Return all edges in one of ORDERS."""
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
    """Split a graph without clusters into two halves by node number."""
    return Family(graph, (np.arange(graph.n_nodes) >= graph.n_nodes // 2).astype(np.int64), parts)


def _blocks() -> Family:
    sizes = [130, 130, 130]
    graph = gallery.stochastic_blocks(sizes, 0.9, bridges=3, random_state=0)
    return Family(graph, np.repeat(np.arange(3), sizes))


def _paper() -> Family:
    points = gallery.paper_points(400)
    depth = np.searchsorted([2.25, 4.6, 5.95], -points[:, 1])  # the gaps between the clusters
    return Family(gallery.paper_knn(149, n_points=400), depth)


def _union() -> Family:
    pieces = [
        gallery.complete(180),
        gallery.stochastic_blocks([90, 90], 0.9, random_state=0),
        gallery.path(30),
    ]
    graph = gallery.disjoint_union(*pieces, gallery.path(1))
    return Family(graph, np.repeat(np.arange(5), [180, 90, 90, 30, 1]))


def _long_range() -> Family:
    """All pairs of nodes on a line; weights fall with the third power of the distance."""
    u, v, _ = gallery.complete(400).edges()
    return _halves(Graph.from_edges(u, v, (v - u) ** -3.0))


# A sparse graph is kept whole if each edge comes once. Split into parts, it has edges to drop.
FAMILIES: dict[str, Callable[[], Family]] = {
    "paper": _paper,
    "blocks": _blocks,
    "barbell": lambda: _halves(gallery.barbell(200, bridge=3)),
    "attachment": lambda: _halves(gallery.preferential_attachment(400, 120, random_state=0)),
    "6 decades": lambda: _halves(
        gallery.log_uniform_weights(gallery.complete(400), decades=6, random_state=0)
    ),
    "complete": lambda: _halves(gallery.complete(400)),
    "union": _union,
    "long range": _long_range,
    "grid": lambda: _halves(gallery.grid2d(20, 20)),
    "star": lambda: _halves(gallery.star(400)),
    "path": lambda: _halves(gallery.path(400)),
    "grid in 60 parts": lambda: _halves(gallery.grid2d(20, 20), 60),
    "star in 80 parts": lambda: _halves(gallery.star(400), 80),
    "path in 80 parts": lambda: _halves(gallery.path(400), 80),
}


# Where in the stream the heavy edges come.
HEAVY_ORDERS = ("heavy first", "heavy middle", "heavy anywhere")
CONTRAST_NODES = 400


@dataclass(frozen=True)
class Contrast:
    """A stream of light and heavy edges, including parallel ones."""

    light: Stream
    heavy: Stream
    orders = HEAVY_ORDERS

    @functools.cached_property
    def graph(self) -> Graph:
        """All edges."""
        u, v, w = (np.concatenate(pair) for pair in zip(self.light, self.heavy, strict=True))
        return Graph.from_edges(u, v, w, n_nodes=CONTRAST_NODES)

    @property
    def n_edges(self) -> int:
        """Edges of the stream."""
        return len(self.light[0]) + len(self.heavy[0])

    def stream(self, order: str, seed: int) -> Stream:
        """Return all edges in one of HEAVY_ORDERS."""
        rng = np.random.default_rng(seed)
        light, heavy = len(self.light[0]), len(self.heavy[0])
        at = {
            "heavy first": np.zeros(heavy),
            "heavy middle": np.full(heavy, 0.5),
            "heavy anywhere": rng.random(heavy),
        }[order]
        # Ties between heavy edges are broken at random.
        edge = np.lexsort((rng.random(light + heavy), np.append(rng.random(light), at)))
        u, v, w = (np.append(*pair)[edge] for pair in zip(self.light, self.heavy, strict=True))
        return u, v, w


def _pairs() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    u, v = np.triu_indices(CONTRAST_NODES, 1)
    return u.astype(np.int32), v.astype(np.int32)


def _group(size: int) -> npt.NDArray[np.bool_]:
    """Whether each of `_pairs` lies within a group of `size` nodes."""
    u, v = _pairs()
    inside: npt.NDArray[np.bool_] = u // size == v // size
    return inside


def _repeat(edges: Stream, times: int) -> Stream:
    u, v, w = (np.tile(part, times) for part in edges)
    return u, v, w


def _complete(times: int) -> Stream:
    u, v = _pairs()
    return _repeat((u, v, np.ones(len(u))), times)


def _linked(first: npt.ArrayLike, second: npt.ArrayLike, weight: float) -> Stream:
    u, v = np.asarray(first, np.int32), np.asarray(second, np.int32)
    return u, v, np.full(len(u), weight)


def _split(weight: npt.NDArray[np.float64], heavy: npt.NDArray[np.bool_], times: int) -> Contrast:
    """Return all pairs with these weights, split into light and heavy ones."""
    u, v = _pairs()
    return Contrast(
        _repeat((u[~heavy], v[~heavy], weight[~heavy]), times),
        _repeat((u[heavy], v[heavy], weight[heavy]), times),
    )


def _matching(contrast: float) -> Contrast:
    even = np.arange(0, CONTRAST_NODES, 2)
    return Contrast(_complete(2), _linked(even, even + 1, contrast))


def _repeated_pairs(contrast: float) -> Contrast:
    """A quarter of the nodes in pairs, each joined by 20 parallel edges."""
    even = np.arange(0, CONTRAST_NODES // 2, 2)
    return Contrast(_complete(2), _repeat(_linked(even, even + 1, contrast / 20), 20))


def _duplicates(contrast: float) -> Contrast:
    kept = np.random.default_rng(1).random(len(_pairs()[0])) < 0.35
    u, v = (ends[kept] for ends in _pairs())
    return Contrast((u, v, np.ones(len(u))), _matching(contrast).heavy)


def _cliques(size: int, contrast: float) -> Contrast:
    inside = _group(size)
    return _split(np.where(inside, 1.0, 1.0 / contrast), inside, 2)


def _payments(contrast: float) -> Contrast:
    rng = np.random.default_rng(2)
    u, v = _pairs()
    usual, large = rng.integers(0, len(u), 120_000), rng.integers(0, len(u), 100)
    return Contrast((u[usual], v[usual], np.ones(120_000)), _linked(u[large], v[large], contrast))


def _star_of_cliques(contrast: float) -> Contrast:
    """Connect each of 19 cliques to a central one by links of a weight specific to the clique."""
    inside = _group(20)
    u, v = _pairs()
    arm = (u < 20) & ~inside
    link = contrast ** -np.random.default_rng(3).random(20)
    light = _repeat((u[arm], v[arm], link[v[arm] // 20]), 3)
    return Contrast(light, _repeat((u[inside], v[inside], np.ones(inside.sum())), 3))


def _blobs(contrast: float) -> Contrast:
    """Return a Gaussian kernel on 40 tight groups of points."""
    rng = np.random.default_rng(4)
    points = np.repeat(rng.random((40, 2)), 10, axis=0)
    points += 0.01 * rng.standard_normal(points.shape)
    u, v = _pairs()
    square = np.sum((points[u] - points[v]) ** 2, axis=1)
    return _split(contrast ** (-square / square.max()), _group(10), 1)


def _nested(contrast: float) -> Contrast:
    """Nest groups within groups; each outer level is lighter by the same factor."""
    weight = np.ones(len(_pairs()[0]))
    for level, size in enumerate((2, 4, 12, 36, 100)):
        weight[_group(size)] = np.maximum(weight[_group(size)], contrast ** (1 - level / 5))
    return _split(weight, weight > 1.0, 2)


def _paths(contrast: float) -> Contrast:
    node = np.arange(CONTRAST_NODES - 1)
    node = node[(node + 1) % 20 != 0]
    return Contrast(_complete(2), _linked(node, node + 1, contrast))


def _hubs(contrast: float) -> Contrast:
    node = np.arange(CONTRAST_NODES)
    node = node[node % 50 != 0]
    return Contrast(_complete(2), _linked(node // 50 * 50, node, contrast))


def _chain_of_blocks(contrast: float) -> Contrast:
    """Put heavy blocks in a row and join neighbouring ones by 400 light edges."""
    rng = np.random.default_rng(5)
    block = np.repeat(np.arange(9), 400)
    near, far = (40 * (block + k) + rng.integers(0, 40, len(block)) for k in (0, 1))
    inside = _group(40)
    u, v = (ends[inside] for ends in _pairs())
    return Contrast(_linked(near, far, 1.0), _repeat((u, v, np.full(len(u), contrast)), 4))


def _heavy_tail(contrast: float) -> Contrast:
    """Return events whose weights follow a power law, cut off at the contrast."""
    rng = np.random.default_rng(6)
    u, v = _pairs()
    event = rng.integers(0, len(u), 120_000)
    weight = np.minimum(rng.random(len(event)) ** -1.5, contrast)
    heavy = weight > 30.0
    light = u[event[~heavy]], v[event[~heavy]], weight[~heavy]
    return Contrast(light, (u[event[heavy]], v[event[heavy]], weight[heavy]))


CONTRASTS: dict[str, Callable[[float], Contrast]] = {
    "heavy matching": _matching,
    "repeated pairs": _repeated_pairs,
    "near-duplicates": _duplicates,
    "cliques of 5": functools.partial(_cliques, 5),
    "cliques of 20": functools.partial(_cliques, 20),
    "payments": _payments,
    "star of cliques": _star_of_cliques,
    "tight blobs": _blobs,
    "nested groups": _nested,
    "heavy paths": _paths,
    "heavy hubs": _hubs,
    "chain of blocks": _chain_of_blocks,
    "heavy tail": _heavy_tail,
}

LEVELS = (1e3, 1e4, 1e6, 1e9, 1e12)


def names() -> list[str]:
    """Return the names that `make` accepts: FAMILIES, and CONTRASTS at each of LEVELS."""
    return [*FAMILIES, *(f"{name} 1:{level:g}" for name in CONTRASTS for level in LEVELS)]


def make(name: str) -> Family | Contrast:
    """Return the family with this name."""
    if name in FAMILIES:
        return FAMILIES[name]()
    kind, _, level = name.rpartition(" 1:")
    return CONTRASTS[kind](float(level))


class Ruler:
    """Measures sparsifiers of one graph by dense eigenvalues.

    The result is accurate for weights that span at least 12 decades, because energies are computed
    as sums over edges without cancellation, and the basis is made orthonormal with these energies.

    Examples
    --------
    >>> triangle = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> path = Graph.from_edges([0, 1], [1, 2], [1.5, 1.5])
    >>> round(Ruler(triangle).epsilon(path), 12)
    0.5
    """

    def __init__(self, graph: Graph) -> None:
        root = np.sqrt(np.maximum(graph.degrees, 1e-300))
        normalised = graph.laplacian().toarray() / np.outer(root, root)
        values, vectors = scipy.linalg.eigh(normalised)
        rank = graph.n_nodes - graph.components()[0]
        kept = slice(graph.n_nodes - rank, None)
        # The columns x satisfy x'L_G x = 1 and are orthogonal in that inner product, up to
        # rounding. The second step repeats this with the accurate energies, after which only the
        # last bits are uncertain.
        self.basis = vectors[:, kept] / np.sqrt(values[kept]) / root[:, np.newaxis]
        values, vectors = scipy.linalg.eigh(self._energies(graph))
        self.basis = self.basis @ (vectors / np.sqrt(values))

    def _energies(self, graph: Graph) -> npt.NDArray[np.float64]:
        u, v, w = graph.edges()
        flow = (self.basis[u] - self.basis[v]) * np.sqrt(w)[:, np.newaxis]
        energies: npt.NDArray[np.float64] = flow.T @ flow
        return energies

    def ratios(self, sparsifier: Graph) -> npt.NDArray[np.float64]:
        """Return all stationary ratios x'L_H x / x'L_G x in ascending order."""
        values: npt.NDArray[np.float64] = scipy.linalg.eigvalsh(
            self._energies(sparsifier), check_finite=False
        )
        return values

    def epsilon(self, sparsifier: Graph) -> float:
        """Return the largest distance of a ratio from 1; at least 1 if H has more components."""
        ratios = self.ratios(sparsifier)
        return float(max(1 - ratios[0], ratios[-1] - 1))
