"""Graphs and measures shared by the tests of the solver."""

import numpy as np

from ohmlearn import Graph

METHODS = ["auto", "diagonal", "cholesky", "direct"]
ITERATIVE = ["auto", "diagonal", "cholesky"]


def grid(side, decades=0.0, seed=0):
    node = np.arange(side * side).reshape(side, side)
    u = np.concatenate([node[1:].ravel(), node[:, 1:].ravel()])
    v = np.concatenate([node[:-1].ravel(), node[:, :-1].ravel()])
    w = 10.0 ** (-decades * np.random.default_rng(seed).random(len(u)))
    return Graph.from_edges(u, v, w, n_nodes=side * side)


def hub_and_ring(n):
    rim = np.arange(1, n)
    u = np.concatenate([np.zeros(n - 1, dtype=int), rim])
    return Graph.from_edges(u, np.concatenate([rim, np.roll(rim, 1)]))


def many_components(n, seed=0):
    """Random edges, few enough that dozens of components and isolated nodes remain."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, n // 2))
    return Graph.from_edges(u, v, rng.uniform(0.1, 10, len(u)), n_nodes=n)


def dense_matrix(graph, ground=None):
    matrix = graph.laplacian().toarray()
    return matrix if ground is None else matrix + np.diag(ground)


def relative_residual(graph, ground, b, x):
    """Residual for b without its null-space part, computed from differences over edges."""
    n_components, labels = graph.components()
    singular = np.ones(n_components, dtype=bool)
    if ground is not None:
        singular[labels[ground > 0]] = False
    mean = np.bincount(labels, weights=b) / np.bincount(labels)
    b = b - np.where(singular, mean, 0.0)[labels]
    u, v, w = graph.edges()
    current = w * (x[u] - x[v])
    product = np.bincount(u, weights=current, minlength=len(x)) - np.bincount(
        v, weights=current, minlength=len(x)
    )
    if ground is not None:
        product += ground * x
    return np.linalg.norm(b - product) / np.linalg.norm(b)
