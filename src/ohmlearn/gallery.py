"""Test graphs: meshes, point clouds, networks, random composites, and the paper's own experiment.

Every function returns a `Graph`, except `paper_points`. The same `random_state` gives the same
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import check_seed
from ohmlearn.graph import Graph
from ohmlearn.points import knn_edges

__all__ = [
    "barbell", "chimera", "complete", "dense_clusters", "disjoint_union", "grid2d", "grid3d",
    "knn_points", "log_uniform_weights", "paper_knn", "paper_points", "path",
    "preferential_attachment", "star", "stochastic_blocks",
]  # fmt: skip

Nodes = NDArray[np.int64]
Points = NDArray[np.float64]
Ends = tuple[Nodes, Nodes]


def path(n_nodes: int) -> Graph:
    """Path of nodes, in which the effective resistance between two nodes is their distance.

    Examples
    --------
    >>> path(4).laplacian().toarray()[0].tolist()
    [1.0, -1.0, 0.0, 0.0]
    """
    return Graph.from_edges(*_grid((n_nodes,)), n_nodes=n_nodes)


def star(n_nodes: int) -> Graph:
    """Star: node 0 is joined to all other nodes.

    Examples
    --------
    >>> star(5).n_edges
    4
    """
    leaves = np.arange(1, n_nodes)
    return Graph.from_edges(np.zeros_like(leaves), leaves, n_nodes=n_nodes)


def complete(n_nodes: int) -> Graph:
    """Complete graph, in which every effective resistance is 2 / n_nodes.

    Examples
    --------
    >>> complete(6).n_edges
    15
    """
    return Graph.from_edges(*np.triu_indices(n_nodes, 1), n_nodes=n_nodes)


def barbell(clique: int, *, bridge: int = 1) -> Graph:
    """Two complete graphs of ``clique`` nodes joined by a path of ``bridge`` edges.

    Examples
    --------
    >>> barbell(5, bridge=3).n_nodes, barbell(5, bridge=3).n_edges
    (12, 23)
    """
    n_nodes = 2 * clique + bridge - 1
    a, b = np.triu_indices(clique, 1)
    chain = np.arange(clique - 1, clique + bridge)
    far = n_nodes - clique
    u = np.concatenate([a, a + far, chain[:-1]])
    v = np.concatenate([b, b + far, chain[1:]])
    return Graph.from_edges(u, v, n_nodes=n_nodes)


def grid2d(rows: int, cols: int) -> Graph:
    """Return the rectangular grid; node ``r * cols + c`` is in row r, column c.

    Examples
    --------
    >>> grid2d(3, 4).n_edges
    17
    """
    return Graph.from_edges(*_grid((rows, cols)), n_nodes=rows * cols)


def grid3d(a: int, b: int, c: int) -> Graph:
    """Box grid with 6 neighbours; node ``(i * b + j) * c + k`` is at (i, j, k).

    Examples
    --------
    >>> grid3d(2, 2, 2).n_edges
    12
    """
    return Graph.from_edges(*_grid((a, b, c)), n_nodes=a * b * c)


def knn_points(
    n_points: int, n_neighbors: int, *, dim: int = 2, random_state: object = None
) -> Graph:
    """Union kNN graph of uniform points in the unit cube of ``dim`` dimensions, in random order.

    Examples
    --------
    >>> knn_points(100, 5).n_nodes
    100
    """
    points = np.random.default_rng(check_seed(random_state)).random((n_points, dim))
    return Graph.from_batches(knn_edges(points, n_neighbors=n_neighbors, weights="uniform"))


def preferential_attachment(n_nodes: int, k: int, *, random_state: object = None) -> Graph:
    """Barabasi-Albert graph: each node is joined to ``k`` earlier ones, picked by degree.

    A node that is picked more than once gives one edge of weight 1.

    Examples
    --------
    >>> preferential_attachment(1000, 1).n_edges   # a tree
    999
    """
    rng = np.random.default_rng(check_seed(random_state))
    return Graph.from_edges(*_preferential(n_nodes, k, rng), n_nodes=n_nodes)


def stochastic_blocks(
    sizes: Sequence[int], p: float, *, bridges: int = 1, random_state: object = None
) -> Graph:
    """Blocks of nodes of the given sizes; each pair in a block is joined with probability ``p``.

    ``bridges`` random edges join each block to the next.

    Examples
    --------
    >>> stochastic_blocks([10, 10, 10], p=1.0, bridges=2).n_edges
    139
    """
    rng = np.random.default_rng(check_seed(random_state))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts: list[Ends] = []
    for start, size in zip(starts, sizes, strict=False):
        a, b = np.triu_indices(size, 1)
        kept = np.flatnonzero(rng.random(a.size) < p)
        parts.append((start + a[kept], start + b[kept]))
    for first in range(len(sizes) - 1):
        codes = rng.choice(sizes[first] * sizes[first + 1], bridges, replace=False)
        a, b = np.divmod(codes, sizes[first + 1])
        parts.append((starts[first] + a, starts[first + 1] + b))
    return Graph.from_edges(*_join(parts), n_nodes=int(starts[-1]))


def disjoint_union(*graphs: Graph) -> Graph:
    """Disjoint union of graphs; nodes are numbered in the order of the graphs.

    Examples
    --------
    >>> disjoint_union(path(3), complete(4)).components()[0]
    2
    """
    parts = [graph.edges() for graph in graphs]
    starts = np.cumsum([0, *(graph.n_nodes for graph in graphs)])
    u, v = _join([(start + u, start + v) for start, (u, v, _) in zip(starts, parts, strict=False)])
    return Graph.from_edges(u, v, np.concatenate([w for _, _, w in parts]), n_nodes=int(starts[-1]))


def paper_points(n_points: int = 12_100) -> Points:
    """Return the points of the Sparse-HFS experiment: four clusters in the plane.

    The clusters lie one below the other. The two outer ones are far from the two inner ones. Their
    sizes are scaled to ``n_points`` in total.

    Examples
    --------
    >>> paper_points()[0].round(8).tolist()
    [0.13696169, -0.73021329]
    """
    rng = np.random.default_rng(0)
    clusters = []
    top = 0.0
    for size, gap in zip(paper_sizes(n_points), [2.5, 0.2, 2.5, 0.0], strict=True):
        cluster = rng.random((size, 2))
        cluster[:, 0] -= 0.5
        cluster[:, 1] += top - 1
        top -= 1 + gap
        clusters.append(cluster)
    return np.concatenate(clusters)


def paper_knn(n_neighbors: int, *, n_points: int = 12_100) -> Graph:
    """Union kNN graph of `paper_points`.

    Examples
    --------
    >>> paper_knn(12, n_points=1210).n_nodes
    1210
    """
    points = paper_points(n_points)
    return Graph.from_batches(knn_edges(points, n_neighbors=n_neighbors, weights="uniform"))


def dense_clusters(
    n_points: int = 12_100, *, n_neighbors: int | None = None, bridges: int = 3
) -> Graph:
    """`paper_knn` made connected, by default with 9.5% of the points as neighbours.

    The kNN graph is not connected, so ``bridges`` edges join each cluster to the next. The defaults
    give 16.2 million Laplacian entries for 12,100 nodes.

    Examples
    --------
    >>> dense_clusters(1210).n_nodes
    1210
    """
    k = round(n_points * 0.0954) if n_neighbors is None else n_neighbors
    u, v, _ = paper_knn(k, n_points=n_points).edges()
    ends = np.cumsum(paper_sizes(n_points))[:-1]
    first, second = np.repeat(ends, bridges) - 1, (ends[:, None] + np.arange(bridges)).ravel()
    edges = _unique(np.concatenate([u, first]), np.concatenate([v, second]), n_points)
    return Graph.from_edges(*edges, n_nodes=n_points)


def chimera(n_nodes: int, *, random_state: object = None, decades: float = 6) -> Graph:
    """Random composite of grids, trees, paths and expanders, in random order.

    A few random edges join each piece to earlier ones; weights are log-uniform over ``decades``
    powers of ten. Modelled on the chimeras of Laplacians.jl.

    Examples
    --------
    >>> chimera(500, random_state=3).n_nodes
    500
    """
    rng = np.random.default_rng(check_seed(random_state))

    def path(size: int) -> Ends:
        return _grid((size,))

    def expander(size: int) -> Ends:
        """Return a union of random cycles, which is an expander with high probability."""
        cycles = [rng.permutation(size) for _ in range(4)]
        return _unique(*_join([(cycle, np.roll(cycle, 1)) for cycle in cycles]), size)

    makers: list[Callable[[int], Ends]] = [
        lambda size: _grid((round(size**0.5), -(-size // round(size**0.5)))),
        lambda size: _grid((round(size ** (1 / 3)),) * 2 + (2 + round(size ** (1 / 3)),)),
        lambda size: _preferential(size, 1, rng),
        lambda size: _preferential(size, 4, rng),
        path,
        expander,
    ]
    parts: list[Ends] = []
    start = 0
    while start < n_nodes:
        size = min(n_nodes - start, max(2, round(n_nodes * 10 ** rng.uniform(-2, -0.7))))
        make = makers[rng.integers(len(makers))]
        if make is path:  # rounding on longer paths with such weights exceeds 1e-8
            size = min(size, 1000)
        u, v = make(size)
        inside = (u < size) & (v < size)  # cut grids to the requested size
        parts.append((start + u[inside], start + v[inside]))
        if start:
            links = max(1, round(size**0.5 * rng.random()))
            parts.append((rng.integers(start, size=links), start + rng.integers(size, size=links)))
        start += size
    u, v = _join(parts)
    order = rng.permutation(n_nodes)
    u, v = _unique(order[u], order[v], n_nodes)
    return Graph.from_edges(u, v, _log_uniform(u.size, decades, rng), n_nodes=n_nodes)


def log_uniform_weights(graph: Graph, decades: float, *, random_state: object = None) -> Graph:
    """Return the same edges with weights that are log-uniform over ``decades`` powers of ten.

    The powers are centred at 1.

    Examples
    --------
    >>> log_uniform_weights(path(10), decades=6).n_edges
    9
    """
    u, v, _ = graph.edges()
    rng = np.random.default_rng(check_seed(random_state))
    return Graph.from_edges(u, v, _log_uniform(u.size, decades, rng), n_nodes=graph.n_nodes)


def _log_uniform(size: int, decades: float, rng: np.random.Generator) -> Points:
    return 10.0 ** rng.uniform(-decades / 2, decades / 2, size)


def paper_sizes(n: int) -> list[int]:
    """Return the sizes of the clusters of `paper_points`, from top to bottom."""
    outer = round(n * 4050 / 12_100)
    inner = n // 2 - outer
    return [outer, inner, n - 2 * outer - inner, outer]


def _grid(shape: tuple[int, ...]) -> Ends:
    """Join neighbours along each axis; nodes are numbered in row-major order."""
    ids = np.arange(np.prod(shape)).reshape(shape)
    ahead = [np.moveaxis(ids, axis, 0) for axis in range(len(shape))]
    return _join([(rows[:-1].ravel(), rows[1:].ravel()) for rows in ahead])


def _preferential(n: int, k: int, rng: np.random.Generator) -> Ends:
    """Pick nodes by degree with the algorithm of Batagelj and Brandes (2005).

    A random end of a random earlier edge is a node with probability proportional to its degree.
    Edge e has ends 2e (the new node) and 2e + 1 (a copy of a random earlier end). Copies of copies
    are resolved for all edges at once, in O(log n) rounds.
    """
    new = np.repeat(np.arange(1, n), k)
    copied = (rng.random(new.size) * (2 * k * (new - 1))).astype(np.int64)
    copied[:k] = 0
    end = copied.copy()
    while (odd := np.flatnonzero((end & 1 == 1) & (end > 2 * k - 1))).size:
        end[odd] = copied[end[odd] >> 1]
    # Ends that are still odd belong to the k edges of node 1, whose other end is node 0.
    target = np.where(end & 1 == 1, 0, new[end >> 1])
    target[:k] = 0
    return _unique(new, target, n)


def _join(parts: Sequence[Ends]) -> Ends:
    """Concatenate the edges of the parts."""
    return np.concatenate([u for u, _ in parts]), np.concatenate([v for _, v in parts])


def _unique(u: Nodes, v: Nodes, n: int) -> Ends:
    """Return each undirected pair once, without self-loops."""
    keys = np.sort((np.minimum(u, v) * n + np.maximum(u, v))[u != v])
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique hashes and is several times slower
    return keys // n, keys % n
