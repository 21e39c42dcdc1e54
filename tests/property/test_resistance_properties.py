"""Invariances of effective resistances."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

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
def test_leverages_sum_to_nodes_minus_components(edges):
    u, v, w, n = edges
    graph = Graph.from_edges(u, v, w, n_nodes=n)
    leverage = graph.edges()[2] * effective_resistance(graph)
    assert np.all(leverage <= 1 + 1e-9)
    np.testing.assert_allclose(leverage.sum(), n - graph.components()[0], rtol=1e-9, atol=1e-9)


@given(graphs(), st.floats(1e-6, 1e6))
def test_scaling_weights_scales_resistances_inversely(edges, c):
    u, v, w, n = edges
    before = effective_resistance(Graph.from_edges(u, v, w, n_nodes=n))
    after = effective_resistance(Graph.from_edges(u, v, c * w, n_nodes=n))
    np.testing.assert_allclose(c * after, before, rtol=1e-9)


@given(graphs(), st.randoms(use_true_random=False))
def test_relabelling_permutes(edges, random):
    u, v, w, n = edges
    order = list(range(n))
    random.shuffle(order)
    names = np.array(order)
    pairs = np.column_stack([u, v])
    before = effective_resistance(Graph.from_edges(u, v, w, n_nodes=n), pairs)
    after = effective_resistance(Graph.from_edges(names[u], names[v], w, n_nodes=n), names[pairs])
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


@given(graphs())
@settings(max_examples=30)
def test_a_metric(edges):
    u, v, w, n = edges
    graph = Graph.from_edges(u, v, w, n_nodes=n)
    a, b = np.divmod(np.arange(n * n), n)
    distance = effective_resistance(graph, np.column_stack([a, b])).reshape(n, n)
    via = np.min(distance[:, :, None] + distance[None, :, :], axis=1)
    assert np.all(distance <= via * (1 + 1e-9) + 1e-12)
    assert np.array_equal(np.isinf(distance), np.isinf(distance.T))
