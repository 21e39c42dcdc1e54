"""Bounds of energies from a spanning forest, against dense pseudo-inverses."""

import numpy as np
import pytest

from ohmlearn import Graph, gallery
from ohmlearn.certificate.spanning_forest import SpanningForest

BLOCKS = gallery.stochastic_blocks([20, 15], 0.4, bridges=0, random_state=0)
GRAPHS = {
    "complete": gallery.complete(30),
    "grid": gallery.grid2d(9, 8),
    "weighted": gallery.log_uniform_weights(gallery.grid2d(9, 8), 4, random_state=0),
    "apart": Graph.from_edges(*BLOCKS.edges(), n_nodes=37),  # with two nodes without edges
    "tree": gallery.log_uniform_weights(gallery.path(40), 3, random_state=1),
}


def balanced_columns(graph, seed):
    """Random columns that sum to zero over each component."""
    r = np.random.default_rng(seed).standard_normal((graph.n_nodes, 5))
    component = graph.components()[1]
    sums = np.zeros((component.max() + 1, 5))
    np.add.at(sums, component, r)
    return r - (sums / np.bincount(component)[:, np.newaxis])[component]


@pytest.mark.parametrize("name", GRAPHS)
def test_norms_are_bounds(name):
    graph = GRAPHS[name]
    forest = SpanningForest(graph, graph.components()[1])
    inverse = np.linalg.pinv(graph.laplacian().toarray())
    for seed in range(5):
        r = balanced_columns(graph, seed)
        true = np.sqrt(np.einsum("ij,ij->j", r, inverse @ r))
        found = forest.norms(r)
        assert np.all(found >= true * (1 - 1e-9))
        if name == "tree":
            np.testing.assert_allclose(found, true, rtol=1e-9)


def test_heavy_edges_are_chosen():
    # In a triangle, the current between the ends of the light edge takes the two heavy edges.
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], [100.0, 100.0, 1.0])
    forest = SpanningForest(graph, graph.components()[1])
    assert forest.norms(np.array([[1.0], [0.0], [-1.0]]))[0] == pytest.approx(0.02**0.5)


def test_contrast_of_a_weak_bridge():
    # With two heavy edges and a bridge of weight 1e-6, one node has degree 1 and a resistance of a
    # million ohms to the root. A weak pendant edge alone gives no contrast.
    bridge = Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1e-6, 1.0])
    assert SpanningForest(bridge, bridge.components()[1]).contrast == pytest.approx(1e6, rel=1e-5)
    leaf = Graph.from_edges([0, 0, 0], [1, 2, 3], [1.0, 1.0, 1e-6])
    assert SpanningForest(leaf, leaf.components()[1]).contrast == pytest.approx(1.0)
