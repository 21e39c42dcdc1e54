"""Effective resistances against closed forms, pseudo-inverses and identities."""

import numpy as np
import pytest

from ohmlearn import Graph, effective_resistance, gallery


def pseudo_inverse(graph):
    """Invert L + 11'/n; with the constant vector added, L of a connected graph is invertible."""
    return np.linalg.inv(graph.laplacian().toarray() + 1 / graph.n_nodes)


def resistances(inverse, u, v):
    return inverse[u, u] + inverse[v, v] - 2 * inverse[u, v]


@pytest.mark.parametrize("exact", [True, None])
def test_path_is_distance(exact):
    path = Graph.from_edges(np.arange(9), np.arange(1, 10), np.full(9, 0.5))
    pairs = [[0, 9], [3, 3], [7, 2]]
    assert effective_resistance(path, pairs, exact=exact) == pytest.approx([18.0, 0.0, 10.0])


def test_closed_forms_beyond_the_direct_limit():
    u, v, _ = gallery.complete(800).edges()
    some = np.column_stack([u, v])[:50]
    found = effective_resistance(Graph.from_edges(u, v), some, exact=True)
    assert found == pytest.approx(np.full(50, 2 / 800), rel=1e-8)
    cycle = Graph.from_edges(np.arange(1000), (np.arange(1000) + 1) % 1000)
    found = effective_resistance(cycle, [[0, 250], [0, 500]], exact=True)
    assert found == pytest.approx([250 * 750 / 1000, 250.0], rel=1e-8)


def test_exact_edges_match_the_pseudo_inverse():
    """Iterative, with a solve per node; test_resistance_properties.py has small graphs."""
    u, v, _ = gallery.grid2d(30, 30).edges()
    w = np.random.default_rng(0).lognormal(size=len(u))
    graph = Graph.from_edges(u, v, w)
    u, v, _ = graph.edges()
    found = effective_resistance(graph, exact=True)
    assert found == pytest.approx(resistances(pseudo_inverse(graph), u, v), rel=1e-7)


@pytest.mark.parametrize("exact", [True, False])
def test_weights_times_resistances_count_nodes_minus_components(exact):
    u, v, _ = gallery.grid2d(30, 30).edges()
    u, v = np.r_[u, u + 900, 1800], np.r_[v, v + 900, 1801]  # two grids, a lone edge, a lone node
    w = np.random.default_rng(1).lognormal(size=len(u))
    graph = Graph.from_edges(u, v, w, n_nodes=1803)
    leverage = graph.edges()[2] * effective_resistance(graph, exact=exact, random_state=0)
    # The sketched sum has a relative standard error below epsilon / sqrt(edges).
    assert leverage.sum() == pytest.approx(1803 - 4, rel=1e-7 if exact else 0.02)


def test_sketch_keeps_its_stated_error():
    u, v, _ = gallery.grid2d(40, 40).edges()
    graph = Graph.from_edges(u, v, np.random.default_rng(2).lognormal(size=len(u)))
    u, v, _ = graph.edges()
    inverse = pseudo_inverse(graph)
    truth = resistances(inverse, u, v)
    for epsilon in (0.3, 0.1):
        edges = effective_resistance(graph, rtol=epsilon, exact=False, random_state=0)
        pairs = np.random.default_rng(3).integers(0, 1600, (2000, 2))
        between = effective_resistance(graph, pairs, rtol=epsilon, exact=False, random_state=0)
        true_between = resistances(inverse, *pairs.T)
        apart = true_between > 0
        off_edges = np.abs(edges / truth - 1)
        off_pairs = np.abs(between[apart] / true_between[apart] - 1)
        # At most 5% of the estimates are expected beyond epsilon. It varies, as they share columns.
        assert np.mean(off_edges > epsilon) < 0.05
        assert np.mean(off_pairs > epsilon) < 0.08
        assert off_edges.std() < epsilon / 2


def test_sketch_is_exact_on_bridges():
    rng = np.random.default_rng(4)
    parent = np.array([rng.integers(0, i) for i in range(1, 2000)])
    w = 10 ** rng.uniform(-3, 3, 1999)
    tree = Graph.from_edges(np.arange(1, 2000), parent, w)
    found = effective_resistance(tree, exact=False, rtol=0.5, random_state=0)
    assert found == pytest.approx(1 / tree.edges()[2], rel=1e-6)


def test_sketch_sees_weak_links_between_dense_clusters():
    # The mode of three links between two cliques of 300 is 1e-5 of a random right-hand side.
    u, v, _ = gallery.complete(300).edges()
    links = np.array([0, 1, 2])
    graph = Graph.from_edges(
        np.r_[u, u + 300, links],
        np.r_[v, v + 300, links + 300],
        np.r_[np.ones(2 * len(u)), [1e-3] * 3],
    )
    u, v, w = graph.edges()
    found = effective_resistance(graph, exact=False, random_state=0)[w < 1]
    assert found == pytest.approx([1000 / 3] * 3, rel=0.2)


def test_across_components_is_infinite():
    graph = Graph.from_edges([0, 2], [1, 3], n_nodes=5)
    found = effective_resistance(graph, [[0, 1], [1, 2], [0, 4], [4, 4]])
    assert found.tolist() == [1.0, np.inf, np.inf, 0.0]


def test_same_bits_for_any_number_of_threads():
    u, v, _ = gallery.grid2d(60, 60).edges()
    graph = Graph.from_edges(u, v)
    one = effective_resistance(graph, rtol=0.4, random_state=5, n_jobs=1)
    for n_jobs in (2, 4):
        assert np.array_equal(
            one, effective_resistance(graph, rtol=0.4, random_state=5, n_jobs=n_jobs)
        )
    assert not np.array_equal(one, effective_resistance(graph, rtol=0.4, random_state=6))


def test_nothing_to_do():
    assert effective_resistance(Graph.from_edges([], [])).size == 0
    assert effective_resistance(Graph.from_edges([], [], n_nodes=3)).size == 0
    assert effective_resistance(Graph.from_edges([0], [1]), []).size == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [[0, 1], [-1, 0]]}, r"pairs\[:, 0\]\[1\] = -1"),
        ({"pairs": [0, 1]}, r"shape \(n_pairs, 2\), got shape \(2,\)"),
        ({"pairs": [[0.5, 1.0]]}, r"integers, but pairs\[:, 0\]\[0\] = 0.5 \(float64\)"),
        ({"rtol": 0}, "rtol must be a number above 0 and below 1, got 0"),
        ({"rtol": "small"}, "got 'small'"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        effective_resistance(Graph.from_edges([0, 1], [1, 2]), **arguments)
