"""The picture of the communities: which nodes it has, where they are, what is linked."""

import json

import numpy as np
import pytest

from ohmlearn import Graph
from ohmlearn.serve.answer_store import Answers
from ohmlearn.serve.graph_map import GraphMap


def make_blocks(sizes, mixing, *, degree=12, seed=0, n_isolated=0):
    """Return a graph with planted blocks and the block of each node; -1 for isolated nodes."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum([0, *sizes])[block]
    n_nodes = block.size
    u = rng.integers(0, n_nodes, n_nodes * degree // 2)
    v = first[u] + rng.integers(0, np.asarray(sizes)[block[u]])
    mixed = rng.random(u.size) < mixing
    v[mixed] = rng.integers(0, n_nodes, mixed.sum())
    graph = Graph.from_edges(u, v, n_nodes=n_nodes + n_isolated)
    return graph, np.append(block, np.full(n_isolated, -1))


def crossing(layout, block):
    """Return the share of links between two blocks."""
    ends = block[layout.nodes][layout.links]
    return np.mean(ends[:, 0] != ends[:, 1])


@pytest.mark.parametrize(
    ("sizes", "mixing", "most"),
    [
        ([150] * 4, 0.1, 0.0),
        ([300, 200, 80, 40], 0.1, 0.0),
        ([100] * 9, 0.1, 0.0),
        ([150] * 4, 0.3, 0.05),
        ([2000] * 5, 0.15, 0.05),
    ],
)
def test_links_stay_in_planted_blocks(sizes, mixing, most):
    # Links between random pairs of nodes would cross in 1 - sum(share^2) >= 0.6 of the cases.
    graph, block = make_blocks(sizes, mixing, n_isolated=20)
    layout = GraphMap().update(graph)
    assert layout.nodes.size == 400
    assert layout.links.shape[0] >= 600  # three of each node, at most all of them mutual
    assert crossing(layout, block) <= most


def test_small_blocks_of_a_sparse_graph_are_not_lost():
    """Pairs of nodes, paths and isolated nodes are smoother cuts than blocks, but not shown as."""
    graph, block = make_blocks([200, 200], 0.1)
    u, v, w = graph.edges()
    pairs = 400 + np.arange(60)
    path = 460 + np.arange(30)
    u, v = np.r_[u, pairs[::2], path[:-1]], np.r_[v, pairs[1::2], path[1:]]
    full = Graph.from_edges(u, v, np.r_[w, np.ones(59)], n_nodes=500)
    block = np.r_[block, np.repeat(np.arange(10, 40), 2), np.full(30, 50), np.full(10, -1)]
    layout = GraphMap().update(full)
    assert crossing(layout, block) <= 0.01


@pytest.mark.parametrize("n_blocks", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_places_tell_blocks_apart(n_blocks, seed):
    graph, block = make_blocks([150] * n_blocks, 0.1, seed=seed)
    layout = GraphMap().update(graph)
    kind = block[layout.nodes]
    centres = np.array([layout.xy[kind == k].mean(axis=0) for k in range(n_blocks)])
    nearest = np.argmin(((layout.xy[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert np.mean(nearest == kind) >= 0.97
    assert np.hypot(*layout.xy.T).max() <= 1


def test_same_updates_give_the_same_bytes():
    def run():
        graph_map = GraphMap(seed=3)
        written = []
        for seed in (1, 2):
            graph, _ = make_blocks([150, 150], 0.1, seed=seed)
            layout = graph_map.update(graph, given=[5, 7], suggested=[9])
            rows = Answers.empty(seed, 300).lookup(layout.nodes, layout.nodes.tolist())
            written.append(json.dumps(layout.describe(seed, rows)))
        return written

    assert run() == run()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_no_bit(n_jobs):
    graph, _ = make_blocks([300] * 3, 0.1)
    one = GraphMap(n_jobs=n_jobs).update(graph)
    other = GraphMap(n_jobs=3).update(graph)
    assert np.array_equal(one.xy, other.xy)
    assert np.array_equal(one.links, other.links)


def test_small_change_moves_little():
    graph, _ = make_blocks([150] * 4, 0.1)
    graph_map = GraphMap()
    before = graph_map.update(graph)
    u, v, w = graph.edges()
    newcomers = 600 + np.arange(5)
    changed = Graph.from_edges(
        np.r_[u[8:], newcomers], np.r_[v[8:], np.arange(5)], np.r_[w[8:], np.ones(5)]
    )
    after = graph_map.update(changed)
    both, here, there = np.intersect1d(before.nodes, after.nodes, return_indices=True)
    assert both.size >= 395
    moved = np.hypot(*(before.xy[here] - after.xy[there]).T)
    assert np.median(moved) <= 0.02
    assert np.quantile(moved, 0.95) <= 0.1


def test_node_that_changes_block_moves_to_it():
    graph, block = make_blocks([100, 100], 0.05)
    graph_map = GraphMap()
    u, v, w = graph.edges()
    graph_map.update(graph)
    stays = (u != 0) & (v != 0)
    moved = Graph.from_edges(
        np.r_[u[stays], np.zeros(12, int)],
        np.r_[v[stays], np.arange(150, 162)],
        np.r_[w[stays], np.ones(12)],
    )
    for _ in range(2):
        layout = graph_map.update(moved)
    links = layout.links[(layout.nodes[layout.links] == 0).any(axis=1)]
    friends = layout.nodes[links].sum(axis=1)  # of two ends, one is 0
    assert friends.size >= 3
    assert (block[friends] == 1).all()


def test_given_and_suggested_come_first():
    graph, _ = make_blocks([3000, 3000], 0.1)
    given, suggested = np.arange(0, 400, 2), np.arange(5000, 5030)
    layout = GraphMap().update(graph, given=given, suggested=suggested)
    assert np.isin(given, layout.nodes).all()
    assert np.isin(suggested, layout.nodes).all()
    layout = GraphMap().update(graph, given=np.arange(6000), suggested=[])
    assert layout.nodes.size == 400
    # Labels that do not exist in this graph are no error: the answer may be older than the label.
    assert GraphMap().update(graph, given=[6000, 10**9], suggested=[-1]).nodes.max() < 6000


def test_sample_grows_with_the_graph_and_prefers_nodes_with_edges():
    graph, block = make_blocks([1000, 1000], 0.1, n_isolated=2000)
    graph_map = GraphMap()
    first = graph_map.update(graph)
    assert np.mean(block[first.nodes] < 0) <= 0.02  # one half of all nodes is isolated
    larger, _ = make_blocks([1000, 1000], 0.1, n_isolated=2400)
    second = graph_map.update(larger)
    assert np.isin(first.nodes, second.nodes).mean() >= 0.98


@pytest.mark.parametrize(
    ("u", "v", "links"),
    [
        ([0], [1], [[0, 1]]),
        ([0, 1], [1, 2], [[0, 1], [0, 2], [1, 2]]),
        ([0, 2], [1, 3], [[0, 1], [2, 3]]),  # never between components
        ([], [], np.empty((0, 2)).tolist()),
    ],
)
def test_tiny_graphs(u, v, links):
    graph = Graph.from_edges(u, v, n_nodes=max(v, default=4) + 3)  # and two isolated nodes
    graph_map = GraphMap()
    for _ in range(3):
        layout = graph_map.update(graph)
        assert layout.links.tolist() == links
        assert np.isfinite(layout.xy).all()


def test_units_of_weights_do_not_matter():
    graph, _ = make_blocks([100, 100], 0.1)
    u, v, w = graph.edges()
    layout = GraphMap().update(graph)
    for unit in (2.0**-60, 2.0**60):
        other = GraphMap().update(Graph.from_edges(u, v, w * unit))
        assert np.allclose(layout.xy, other.xy, atol=1e-6)


def test_smaller_graph_starts_again():
    graph_map = GraphMap()
    graph_map.update(make_blocks([100, 100], 0.1)[0])
    smaller = make_blocks([60, 60], 0.1)[0]
    assert np.array_equal(graph_map.update(smaller).xy, GraphMap().update(smaller).xy)


def test_graph_that_grows_from_two_nodes_shows_its_blocks():
    graph_map = GraphMap()
    graph, block = make_blocks([150] * 4, 0.1)
    u, v, w = graph.edges()
    order = np.random.default_rng(0).permutation(u.size)
    graph_map.update(Graph.from_edges([0], [1]))
    for share in (0.02, 0.2, 0.5, 0.8, 1.0, 1.0, 1.0):
        some = order[: int(share * u.size)]
        layout = graph_map.update(Graph.from_edges(u[some], v[some], w[some], n_nodes=600))
    assert crossing(layout, block) == 0
