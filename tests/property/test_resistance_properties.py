"""Effective resistances of random graphs against the pseudo-inverse."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import pinvh

from ohmlearn import Graph, effective_resistance


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 30))
    nodes = st.integers(0, n - 1)
    weight = st.floats(1e-3, 1e3)
    edges = draw(st.lists(st.tuples(nodes, nodes, weight), min_size=1, max_size=80))
    u, v, w = zip(*edges, strict=True)
    return np.array(u), np.array(v), np.array(w), n


@given(graphs())
def test_resistances_are_those_of_the_pseudo_inverse(edges):
    """So they are a metric, weights times resistances count nodes, and names do not matter."""
    u, v, w, n = edges
    graph = Graph.from_edges(u, v, w, n_nodes=n)
    a, b = np.divmod(np.arange(n * n), n)
    inverse = pinvh(graph.laplacian().toarray())
    expected = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
    component = graph.components()[1]
    expected[component[a] != component[b]] = np.inf
    found = effective_resistance(graph, np.column_stack([a, b]))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * abs(inverse).max())
    leverage = graph.edges()[2] * effective_resistance(graph)
    assert np.all(leverage <= 1 + 1e-9)
    np.testing.assert_allclose(leverage.sum(), n - graph.components()[0], rtol=1e-9, atol=1e-9)
