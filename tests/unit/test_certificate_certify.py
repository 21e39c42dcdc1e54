"""Certificates against dense generalised eigenvalues."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.csgraph
from certificate_cases import energy_ratios
from stream_cases import Batches

from ohmlearn import (
    Graph,
    LaplacianSolver,
    StreamingSparsifier,
    certify,
    gallery,
    read_edges,
    refine,
)
from ohmlearn.certificate.search_space import SpanningForest

ROUNDING = 1e-7


def sample(g, seed, share=0.5):
    """Keep a spanning forest and a share of the other edges; expected weights are those of g."""
    u, v, w = g.edges()
    one_way = scipy.sparse.csr_array((w, (u, v)), shape=(g.n_nodes, g.n_nodes))
    tree = scipy.sparse.csgraph.minimum_spanning_tree(one_way).tocoo()
    in_tree = {(min(a, b), max(a, b)) for a, b in zip(tree.row, tree.col, strict=True)}
    p = np.array([1.0 if e in in_tree else share for e in zip(u, v, strict=True)])
    kept = np.random.default_rng(seed).random(len(u)) < p
    return Graph.from_edges(u[kept], v[kept], (w / p)[kept], n_nodes=g.n_nodes)


BLOCKS = gallery.stochastic_blocks([40, 40, 40], 0.4, bridges=3, random_state=0)
GRAPHS = {
    "complete": gallery.complete(60),
    "blocks": BLOCKS,
    "grid": gallery.grid2d(14, 12),
    "weighted": gallery.log_uniform_weights(BLOCKS, 4, random_state=1),
    "disconnected": gallery.disjoint_union(
        gallery.complete(30), gallery.grid2d(8, 9), gallery.path(1), gallery.path(1)
    ),
    "small": gallery.complete(4),
}


def assert_contains(certificate, lower, upper):
    """The estimates lie inside the true range of ratios, the bounds outside."""
    slack = ROUNDING * upper
    assert lower - slack <= certificate.lower <= certificate.upper <= upper + slack
    assert certificate.lower_bound <= lower + slack
    assert certificate.upper_bound >= upper - slack
    truth = max(1 - lower, upper - 1)
    assert certificate.epsilon <= truth + slack
    assert certificate.epsilon_bound >= truth - slack


@pytest.mark.parametrize("name", GRAPHS)
def test_bounds_contain_the_truth(name):
    # Each seed fails with probability at most 0.001 by the theory, all of the 60 with 0.06; seeds
    # are fixed. A bound that is wrong for one seed in 12 is found with probability 0.99; rarer
    # faults are for test_bounds_hold_as_often_as_they_say and test_certificate_attacks.py.
    g = GRAPHS[name]
    for seed in range(10):
        h = sample(g, seed)
        certificate = certify(g, h, eta=0.1, random_state=seed)
        assert_contains(certificate, *energy_ratios(h, g))
        assert certificate.epsilon_bound < math.inf


@pytest.mark.parametrize("n_starts", [1, 2, 5])
@pytest.mark.parametrize("max_passes", [2, 4, 8, None])
def test_fewer_passes_widen_the_bounds(n_starts, max_passes):
    g = GRAPHS["blocks"]
    h = sample(g, 1)
    found = certify(g, h, max_passes=max_passes, n_starts=n_starts, random_state=3)
    assert_contains(found, *energy_ratios(h, g))
    assert found.passes <= (max_passes or 100)
    assert found.edges_read == found.passes * g.n_edges
    longer = certify(g, h, max_passes=found.passes + 4, n_starts=n_starts, random_state=3)
    assert longer.epsilon >= found.epsilon - ROUNDING
    assert longer.epsilon_bound <= found.epsilon_bound + ROUNDING


@pytest.mark.parametrize("eta", [0.3, 0.1, pytest.param(0.01, marks=pytest.mark.slow)])
def test_stops_when_bounds_are_as_close_as_asked(eta):
    g = gallery.grid2d(20, 20)
    h = sample(g, 0)
    found = certify(g, h, eta=eta, random_state=0)
    assert not found.exact
    assert found.lower_bound >= (1 - eta) * found.lower * (1 - ROUNDING)
    assert found.upper_bound <= found.upper / (1 - eta) * (1 + 100 * ROUNDING)
    before = certify(g, h, eta=eta, max_passes=found.passes - 1, random_state=0)
    assert before.lower_bound < (1 - eta) * before.lower or before.upper_bound > before.upper / (
        1 - eta
    )


@pytest.mark.slow
def test_bounds_hold_as_often_as_they_say():
    # The confidence is low, so that failures occur: each of the 250 runs may fail with probability
    # 0.3, and more than 104 failures are 4 standard deviations above the mean.
    g = GRAPHS["grid"]
    h = sample(g, 0)
    lower, upper = energy_ratios(h, g)
    failures = 0
    for seed in range(250):
        found = certify(g, h, confidence=0.7, n_starts=1, max_passes=5, random_state=seed)
        failures += found.lower_bound > lower or found.upper_bound < upper
    assert failures <= 104


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0, 1e-9, 1e9])
def test_multiples_of_a_graph(name, scale):
    g = GRAPHS[name]
    u, v, w = g.edges()
    certificate = certify(g, Graph.from_edges(u, v, scale * w, n_nodes=g.n_nodes), random_state=0)
    assert certificate.exact
    assert certificate.passes == 1
    found = [certificate.lower, certificate.upper, certificate.lower_bound, certificate.upper_bound]
    np.testing.assert_allclose(found, scale, rtol=1e-6)
    assert certificate.epsilon == pytest.approx(abs(scale - 1), rel=1e-6, abs=1e-6)


def test_exhausted_space_is_exact():
    h, g = sample(GRAPHS["small"], 0), GRAPHS["small"]
    certificate = certify(g, h, n_starts=1, random_state=0)
    assert certificate.exact
    np.testing.assert_allclose(
        [certificate.lower, certificate.upper], energy_ratios(h, g), rtol=1e-6
    )
    assert certificate.epsilon_bound == pytest.approx(certificate.epsilon, abs=1e-5)
    assert "exact up to rounding" in str(certificate)


@pytest.mark.parametrize("seed", range(8))
def test_weights_over_six_decades(seed):
    g = gallery.chimera(150, random_state=seed)
    h = sample(g, seed, share=0.7)
    certificate = certify(g, h, random_state=seed)
    lower, upper = energy_ratios(h, g)
    assert_contains(certificate, lower, upper)
    assert certificate.epsilon == pytest.approx(max(1 - lower, upper - 1), rel=0.06)


def test_bad_solves_guarantee_nothing(monkeypatch):
    solve = LaplacianSolver.solve_block

    def halve(self, b, tol):
        return solve(self, b, tol) / 2

    monkeypatch.setattr(LaplacianSolver, "solve_block", halve)
    g = gallery.grid2d(40, 40)
    certificate = certify(g, sample(g, 0), random_state=0)
    assert certificate.passes == 1
    assert not certificate.exact
    assert (certificate.lower_bound, certificate.upper_bound) == (0, math.inf)


@pytest.mark.parametrize("tol", [0.3, 1e-2])
def test_inexact_solves_are_corrected_without_a_warning(monkeypatch, tol):
    # Warnings are errors here: the bounds allow for inexact solves, so the solver must not warn.
    solve = LaplacianSolver.solve_block
    monkeypatch.setattr(
        LaplacianSolver, "solve_block", lambda self, b, _: solve(self, b, tol, max_iter=15)
    )
    g = gallery.grid2d(25, 25)  # too large for the direct method
    h = sample(g, 0)
    certificate = certify(g, h, random_state=0, max_passes=30)
    assert_contains(certificate, *energy_ratios(h, g))


def test_unsolvable_systems_are_not_warned_about():
    # 40 decades: neither H nor its inner product can be handled in double precision.
    g = gallery.log_uniform_weights(gallery.grid2d(25, 25), decades=40, random_state=0)
    u, v, w = g.edges()
    h = Graph.from_edges(u, v, 1 / w, n_nodes=g.n_nodes)
    certificate = certify(g, h, random_state=0)
    assert (certificate.lower_bound, certificate.upper_bound) == (0, math.inf)
    assert not certificate.exact
    assert "the weights of H are too far apart for double precision" in str(certificate)


def pendant_pair(n, *factors):
    """A complete graph with pendant edges that H scales; the ratios are these factors and 1."""
    u, v = np.triu_indices(n, 1)
    count = len(factors)
    u, v = np.r_[u, np.arange(count)], np.r_[v, np.arange(n, n + count)]
    w = np.r_[np.ones(len(u) - count), factors]
    return Graph.from_edges(u, v), Graph.from_edges(u, v, w)


@pytest.mark.parametrize("n", [60, 600])
def test_a_tiny_ratio_does_not_hide_a_large_one(n):
    # Directions seven decades below the largest eigenvalue were once mistaken for rounding errors.
    g, h = pendant_pair(n, 2e-7, 20.0)
    for seed in range(10 if n == 60 else 4):
        found = certify(g, h, random_state=seed)
        assert found.lower_bound <= 2e-7 * (1 + 1e-9)
        assert 2e-7 * (1 - 1e-9) <= found.lower <= 2.1e-7
        assert 19 <= found.upper <= 20 * (1 + 1e-9)
        assert 20 * (1 - 1e-9) <= found.upper_bound <= 21


@pytest.mark.parametrize("span", [1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e15])
def test_exact_only_if_rounding_is_negligible(span):
    g, h = pendant_pair(40, span**-0.5, span**0.5)
    found = certify(g, h, random_state=0)
    assert found.lower_bound <= span**-0.5 * (1 + 1e-9)
    assert found.upper_bound >= span**0.5 * (1 - 1e-9)
    if found.exact:
        assert found.upper_bound <= found.upper * (1 + 2e-6)
    assert found.exact == (span <= 1e4)
    assert math.isinf(found.upper_bound) == (span > 1e12)


def test_all_kinds_of_edges_give_the_same():
    g = GRAPHS["weighted"]
    h = sample(g, 5)
    expected = certify(g, h, random_state=2)
    assert certify(g, h, random_state=2) == expected
    batched = [certify(Batches(g, size), h, random_state=2) for size in (7, 100, 10**6)]
    assert batched[0] == batched[1] == batched[2]  # to the last bit
    for other in [*batched, certify(g.edges(), h, random_state=2)]:
        assert (other.passes, other.edges_read) == (expected.passes, expected.edges_read)
        assert other.epsilon == pytest.approx(expected.epsilon, rel=1e-6)
        assert other.epsilon_bound == pytest.approx(expected.epsilon_bound, rel=1e-6)


def test_edges_without_weights_loops_and_parallel_edges():
    h = gallery.path(3)
    for edges in [
        ([0, 1], [1, 2]),
        [([0], [1]), ([1], [2])],
        [([0, 1, 9], [1, 1, 9]), ([2, 2, 0, 7], [1, 1, 2, 1], [0.25, 0.75, 0.0, 0.0])],
    ]:
        assert certify(edges, h, random_state=0).epsilon == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("as_batches", [False, True])
def test_lost_bridge(as_batches):
    g = gallery.barbell(5)
    u, v, w = g.edges()
    kept = ~((u == 4) & (v == 5))
    assert not kept.all()
    h = Graph.from_edges(u[kept], v[kept], w[kept], n_nodes=g.n_nodes)
    certificate = certify(Batches(g, 3) if as_batches else g, h, random_state=0)
    assert certificate.lost_edge == (4, 5)
    assert (certificate.lower, certificate.lower_bound) == (0, 0)
    assert (certificate.epsilon, certificate.epsilon_bound) == (1, math.inf)
    assert certificate.passes == 1
    assert "edge (4, 5) of G joins nodes that H does not connect" in str(certificate)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_node_unknown_to_the_sparsifier(n):
    h = gallery.path(n) if n > 1 else Graph.from_edges([], [], n_nodes=n)
    edges = gallery.path(5).edges()
    for source in [edges, [edges], gallery.path(5)]:
        lost = certify(source, h, random_state=0).lost_edge
        assert lost == (max(n - 1, 0), max(n, 1))


def test_edge_that_only_the_sparsifier_has():
    g = Graph.from_edges([0, 2], [1, 3], n_nodes=5)
    with pytest.warns(UserWarning, match="the sparsifier has 3 edges, more than the 2 of the"):
        certificate = certify(g, gallery.path(4), random_state=0)
    assert certificate.extra_edge == (1, 2)
    assert certificate.upper == certificate.epsilon == certificate.epsilon_bound == math.inf
    assert "edge (1, 2) of H joins nodes that G does not connect" in str(certificate)
    with pytest.warns(UserWarning, match=r"in the right order, certify\(edges, h\)\?"):
        assert certify([], gallery.path(4), random_state=0).extra_edge == (0, 1)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_no_edges_at_all(n):
    empty = Graph.from_edges([], [], n_nodes=n)
    for edges in [empty, [], ([], [])]:
        certificate = certify(edges, empty, random_state=0)
        assert (certificate.epsilon, certificate.exact, certificate.passes) == (0, True, 1)


class RunsDry:
    """Yield the batches in the first pass and nothing in later ones."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        while self.batches:
            yield self.batches.pop()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((b for b in [([0], [1])]), "certify reads the edges several times, but a generator"),
        (iter([([0], [1])]), "a list_iterator can be read only once; .* give a Graph, arrays"),
        (RunsDry([BLOCKS.edges()]), r"pass 1 had \d+ edges of total weight .* pass 2 had 0 of 0"),
        ([np.arange(3)], "but batch 0 is ndarray of length 3"),
        ([([0], [1]), ([0.5], [1])], r"batch 1: node ids must be integers, but u\[0\] = 0.5"),
        ([([0, 1], [1])], r"batch 0: one entry per edge .* len\(u\) = 2, len\(v\) = 1"),
        ([([0], [1]), ([-1], [1])], "but u of edge 1 = -1"),
        ([([0], [1]), ([0], [1], [-2.0])], "but w of edge 1 = -2"),
    ],
)
def test_bad_edges_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        certify(edges, sample(BLOCKS, 0), random_state=0)


def test_other_types_and_options_are_refused():
    for options in ({"eta": 1.5}, {"confidence": 1}, {"max_passes": 0}, {"n_starts": 2.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            certify(gallery.path(3), gallery.path(3), **options)
    with pytest.raises(TypeError, match="edges are needed, got int; give its"):
        certify(7, gallery.path(3))
    with pytest.raises(TypeError, match=r"must be a Graph or have a method snapshot.* got str$"):
        certify(gallery.path(3), "H")


def test_swapped_arguments_are_named():
    whole, part = BLOCKS, sample(BLOCKS, 0)
    sparsifier = StreamingSparsifier().update(*part.edges())
    with pytest.raises(TypeError, match=r"certify\(edges, h\), but the first .* swap the two"):
        certify(sparsifier, whole)
    for edges in (whole.edges(), [whole.edges()], Batches(whole, 100)):
        with pytest.raises(TypeError, match=r"it comes after the edges, .* swap the two"):
            certify(part, edges)
    with pytest.warns(UserWarning, match="are the arguments in the right order"):
        certify(part, whole, max_passes=1, random_state=0)
    with pytest.warns(UserWarning, match="are the arguments in the right order"):
        certify(Batches(part, 100), whole, max_passes=1, random_state=0)


def test_ids_of_nodes_must_agree(tmp_path):
    whole, part = tmp_path / "g.csv", tmp_path / "h.csv"
    whole.write_text("u,v\na,b\nb,c\nc,a\n")
    part.write_text("u,v\na,c\nc,b\n")
    kept = read_edges(part)
    h = Graph.from_batches(kept)
    assert h.nodes is kept.nodes
    message = "node 1 is 'b' in one numbering and 'c' in the other; read both with the same table"
    unread = read_edges(whole)  # its table is empty until the first pass
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            certify(unread, h)
    with pytest.raises(ValueError, match=message):
        certify(Graph.from_batches(unread), h)
    with pytest.raises(ValueError, match=message):
        refine(read_edges(whole), h, [0, 1], [1.0, -1.0])
    found = certify(read_edges(whole, nodes=kept.nodes), h, random_state=0)
    assert found.exact
    assert found.nodes is kept.nodes
    more = Graph.from_batches(read_edges(whole, nodes=kept.nodes))
    assert certify(more, h, random_state=0) == found


def test_edges_are_named_by_their_ids(tmp_path):
    file = tmp_path / "g.csv"
    file.write_text("u,v\n10,20\n20,30\n")
    edges = read_edges(file)
    list(edges)
    h = Graph.from_edges([0], [1], n_nodes=3)
    found = certify(edges, h, random_state=0)
    assert (found.lost_edge, found.ids(found.lost_edge)) == ((1, 2), (20, 30))
    assert "edge (20, 30) of G joins" in str(found)


# Bounds of energies from a spanning forest, against dense pseudo-inverses.
TWO_BLOCKS = gallery.stochastic_blocks([20, 15], 0.4, bridges=0, random_state=0)
FORESTS = {
    "complete": gallery.complete(30),
    "grid": gallery.grid2d(9, 8),
    "weighted": gallery.log_uniform_weights(gallery.grid2d(9, 8), 4, random_state=0),
    "apart": Graph.from_edges(*TWO_BLOCKS.edges(), n_nodes=37),  # with two nodes without edges
    "tree": gallery.log_uniform_weights(gallery.path(40), 3, random_state=1),
}


def balanced_columns(graph, seed):
    """Random columns that sum to zero over each component."""
    r = np.random.default_rng(seed).standard_normal((graph.n_nodes, 5))
    component = graph.components()[1]
    sums = np.zeros((component.max() + 1, 5))
    np.add.at(sums, component, r)
    return r - (sums / np.bincount(component)[:, np.newaxis])[component]


@pytest.mark.parametrize("name", FORESTS)
def test_norms_are_bounds(name):
    graph = FORESTS[name]
    forest = SpanningForest(graph, graph.components()[1])
    inverse = np.linalg.pinv(graph.laplacian().toarray(), hermitian=True)
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
