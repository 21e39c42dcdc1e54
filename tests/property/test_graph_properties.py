"""What holds for every graph: agreement with scipy, invariances, round trips."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.sparse.csgraph import laplacian as scipy_laplacian

from ohmlearn import Graph

# Sums of a few such weights are exact, so that the order of addition does not matter.
exact_weights = st.integers(0, 2**20).map(lambda k: k / 2**10)
rough_weights = st.floats(0, 1e6)


@st.composite
def edge_lists(draw, weights=exact_weights):
    n_nodes = draw(st.integers(1, 12))
    node = st.integers(0, n_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, weights), max_size=40))
    u, v, w = zip(*edges, strict=True) if edges else ((), (), ())
    index = draw(st.sampled_from([np.int32, np.int64]))
    return np.array(u, dtype=index), np.array(v, dtype=index), np.array(w, dtype=float), n_nodes


def by_scipy(u, v, w, n_nodes):
    adjacency = sp.coo_array((w, (u, v)), shape=(n_nodes, n_nodes)).tocsr()
    adjacency = sp.csr_array(adjacency + adjacency.T)
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.sort_indices()
    return adjacency


@given(edge_lists())
def test_same_rows_as_scipy(edges):
    u, v, w, _ = edges
    graph, expected = Graph.from_edges(*edges[:3], n_nodes=edges[3]), by_scipy(*edges)
    np.testing.assert_array_equal(graph.indptr, expected.indptr)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.weights, expected.data)
    assert graph.n_self_loops_dropped == np.sum(u == v)
    assert graph.n_zero_weights_dropped == np.sum((u != v) & (w == 0))


@given(edge_lists())
def test_same_laplacian_and_components_as_scipy(edges):
    graph, adjacency = Graph.from_edges(*edges[:3], n_nodes=edges[3]), by_scipy(*edges)
    expected = scipy_laplacian(adjacency).toarray()
    np.testing.assert_array_equal(graph.laplacian().toarray(), expected)
    np.testing.assert_array_equal(graph.degrees, expected.diagonal())
    count, labels = graph.components()
    expected_count, expected_labels = connected_components(adjacency, directed=False)
    assert count == expected_count
    # Same partition, and numbered by first node.
    _, first = np.unique(expected_labels, return_index=True)
    order = np.argsort(np.argsort(first))
    np.testing.assert_array_equal(labels, order[expected_labels])


@given(edge_lists(rough_weights))
def test_direction_of_edges_does_not_even_round(edges):
    u, v, w, n_nodes = edges
    assert Graph.from_edges(u, v, w, n_nodes=n_nodes) == Graph.from_edges(v, u, w, n_nodes=n_nodes)


@given(edge_lists(rough_weights))
def test_round_trips(edges):
    graph = Graph.from_edges(*edges[:3], n_nodes=edges[3])
    u, v, w = graph.edges()
    assert Graph.from_edges(u, v, w, n_nodes=graph.n_nodes) == graph
    assert Graph.from_scipy(graph.to_scipy()) == graph
    assert Graph.from_scipy(graph.to_scipy().toarray()) == graph
    assert Graph.from_laplacian(graph.laplacian()) == graph
    assert Graph.from_networkx(nx.from_scipy_sparse_array(graph.to_scipy())) == graph
    both = np.stack([np.concatenate([u, v]), np.concatenate([v, u])])
    assert Graph.from_edge_index(both, np.concatenate([w, w]), n_nodes=graph.n_nodes) == graph


@given(edge_lists(rough_weights))
def test_round_trip_through_igraph(edges):
    igraph = pytest.importorskip("igraph")
    graph = Graph.from_edges(*edges[:3], n_nodes=edges[3])
    u, v, w = graph.edges()
    by_igraph = igraph.Graph(graph.n_nodes, list(zip(u.tolist(), v.tolist(), strict=True)))
    by_igraph.es["weight"] = w.tolist()
    assert Graph.from_igraph(by_igraph) == graph
