"""Leave-one-out scores against refitting, in memory and in passes; random walks with restart."""

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import Graph, gallery, refine, solve_hfs, sparsify


def random_problem(seed, *, classes=3):
    """Return a weighted graph, often with several components, labels and weights."""
    random = np.random.default_rng(seed)
    n = int(random.integers(8, 60))
    m = int(random.integers(n // 2, 3 * n))
    u, v = random.integers(0, n, (2, m))
    graph = Graph.from_edges(u, v, 10.0 ** random.uniform(-2, 2, m), n_nodes=n)
    labelled = random.choice(n, int(random.integers(3, n // 2 + 2)), replace=False)
    Y = np.eye(classes)[random.integers(0, classes, len(labelled))]
    return graph, labelled, Y, random.uniform(0.5, 3.0, len(labelled)), random


@pytest.mark.parametrize("seed", range(50))
def test_scores_without_a_label_are_those_of_a_fit_without_it(seed):
    graph, labelled, Y, weights, random = random_problem(seed)
    component = graph.components()[1]
    gamma = 10.0 ** random.uniform(-3, 2)
    for method, normalization in [("harmonic", "stable"), ("harmonic", None), ("restart", None)]:
        options = {"method": method, "normalization": normalization, "random_state": 0}
        found = solve_hfs(
            graph, labelled, Y, gamma=gamma, sample_weight=weights, tol=1e-11,
            leave_out=np.arange(len(labelled)), **options,
        )  # fmt: skip
        for i in range(len(labelled)):
            others = np.arange(len(labelled)) != i
            if component[labelled[i]] not in component[labelled[others]]:
                assert np.all(found.left_out.f[i] == 0.0)  # no label reaches it
                continue
            # The weight of the energy, gamma times the number of labels, stays as it is.
            same = gamma * weights.sum() / weights[others].sum() if method == "harmonic" else gamma
            again = solve_hfs(
                graph, labelled[others], Y[others], gamma=same, sample_weight=weights[others],
                tol=1e-11, **options,
            )  # fmt: skip
            np.testing.assert_allclose(found.left_out.f[i], again.f[labelled[i]], atol=1e-9)
            if method == "harmonic":
                here = component == component[labelled[i]]
                without = here & ~np.isin(np.arange(len(here)), labelled)
                here = without if without.any() else here
                mean = again.f[here].mean(axis=0)
                np.testing.assert_allclose(found.left_out.means[i], mean, atol=1e-9)


@pytest.mark.parametrize("gamma", [1e-9, 1e-4, 1.0, 1e6])
def test_any_gamma(gamma):
    graph = gallery.knn_points(60, 5, random_state=0)
    labelled, Y = np.array([0, 7, 20, 33, 51]), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    found = solve_hfs(graph, labelled, Y, gamma=gamma, leave_out=[3, 0], tol=1e-12)
    assert found.left_out.labels.tolist() == [3, 0]
    for at, i in enumerate([3, 0]):
        rest = np.arange(5) != i
        again = solve_hfs(graph, labelled[rest], Y[rest], gamma=gamma * 5 / 4, tol=1e-12)
        expected = again.f[labelled[i]]
        assert found.left_out.f[at, 0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["harmonic", "restart"])
def test_passes_give_the_scores_of_the_full_graph(method):
    graph = gallery.complete(400)
    random = np.random.default_rng(0)
    u, v, _ = graph.edges()
    side = np.arange(400) % 2
    edges = (u, v, np.where(side[u] == side[v], 1.0, 0.4) * random.uniform(0.5, 1.5, len(u)))
    full = Graph.from_edges(*edges)
    labelled = random.choice(400, 12, replace=False)
    Y = np.eye(2)[side[labelled]]
    h = sparsify(edges, epsilon=0.7, random_state=0)
    assert h.n_edges < full.n_edges / 4
    options = {"gamma": 1e-3 if method == "harmonic" else 30.0, "method": method, "random_state": 0}
    labels = np.arange(12)
    expected = solve_hfs(full, labelled, Y, leave_out=labels, **options).left_out.f
    spread = np.std(expected - expected.mean(axis=1, keepdims=True))
    found = refine([edges], h, labelled, Y, passes=8, leave_out=labels, **options).left_out.f
    assert np.std(found - expected) < 0.05 * spread
    # The sparsifier alone is far from that: a label returns to its node over few, heavy edges.
    alone = solve_hfs(h, labelled, Y, leave_out=labels, **options).left_out.f
    assert np.std(alone - expected) > 0.1 * spread
    # The scores themselves, and no bit depends on batches.
    halves = [tuple(side[i::2] for side in edges) for i in (0, 1)]
    joined = [tuple(np.concatenate(pair) for pair in zip(*halves, strict=True))]
    a, b = (refine(e, h, labelled, Y, passes=3, leave_out=[1], **options) for e in (halves, joined))
    assert np.array_equal(a.f, b.f)
    assert np.array_equal(a.left_out.f, b.left_out.f)


def test_restart_solves_its_equations():
    graph, labelled, Y, weights, _ = random_problem(3)
    found = solve_hfs(
        graph, labelled, Y, gamma=9.0, sample_weight=weights, method="restart", tol=1e-12
    )
    degrees = np.where(graph.degrees > 0, graph.degrees, 1.0)
    A = np.diag(degrees) + 9.0 * graph.laplacian().toarray()
    b = np.zeros((graph.n_nodes, 3))
    b[labelled] = weights[:, np.newaxis] * Y
    np.testing.assert_allclose(found.f, np.linalg.solve(A, b), atol=1e-10)
    assert found.converged.all()
    # Each label is a distribution over the nodes, divided by their degrees.
    np.testing.assert_allclose(degrees @ found.f, weights @ Y)


def test_restart_in_passes_has_the_degrees_of_the_full_graph():
    graph = gallery.complete(300)
    h = sparsify(graph, epsilon=0.9, random_state=0)
    labelled, Y = [0, 1, 2], np.eye(3)
    found = refine(graph.edges(), h, labelled, Y, passes=20, gamma=30.0, method="restart")
    assert found.converged.all()
    expected = solve_hfs(graph, labelled, Y, gamma=30.0, method="restart").f
    np.testing.assert_allclose(found.f, expected, rtol=1e-4)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"0, ..., 1, but leave_out\[1\] = 2"):
        solve_hfs(gallery.path(3), [0, 2], [1.0, -1.0], leave_out=[0, 2])
    with refuses(parameter="method"):
        solve_hfs(gallery.path(3), [0, 2], [1.0, -1.0], method="pagerank")


@pytest.mark.parametrize("method", ["harmonic", "restart"])
def test_the_last_step_uses_the_neighbours_on_the_full_graph(method):
    # In a dense graph the sparsifier has few of the neighbours. A Jacobi step has all of them.
    random = np.random.default_rng(0)
    u, v = np.triu_indices(500, 1)
    side = np.arange(500) % 2
    w = np.where(side[u] == side[v], 1.2, 1.0) * random.uniform(0.5, 1.5, len(u))
    graph = Graph.from_edges(u, v, w)
    labelled = random.choice(500, 20, replace=False)
    Y = np.eye(2)[side[labelled]]
    options = {"gamma": 1e-3 if method == "harmonic" else 30.0, "method": method, "random_state": 0}
    exact = solve_hfs(graph, labelled, Y, **options).f
    h = sparsify(graph, epsilon=0.8, random_state=0)
    others = np.setdiff1d(np.arange(500), labelled)

    def error(step_ahead):
        found = refine(graph, h, labelled, Y, passes=2, step_ahead=step_ahead, **options)
        assert found.stepped_ahead == step_ahead
        return np.linalg.norm((found.f - exact)[others])

    assert error(True) < {"harmonic": 0.1, "restart": 0.4}[method] * error(False)


def test_the_last_step_keeps_what_varies_slowly():
    # Of a sparse graph, hardly an edge is dropped. A Jacobi step alone would lose nearly all.
    graph = gallery.knn_points(600, 12, random_state=0)
    h = sparsify(graph, max_edges=2500, random_state=0)
    assert h.n_edges < 0.8 * graph.n_edges
    labelled, Y = [0, 100, 200], [1.0, -1.0, 1.0]
    exact = solve_hfs(graph, labelled, Y, gamma=1.0).f
    before, after = (
        refine(graph, h, labelled, Y, gamma=1.0, passes=2, step_ahead=step, random_state=0).f
        for step in (False, True)
    )
    assert np.linalg.norm(after - exact) < 0.5 * np.linalg.norm(before - exact)


def test_scores_of_a_fully_labelled_graph_are_compared_without_the_constraint():
    # The one score that is free would otherwise be minus the sum of all labels.
    graph, y = gallery.path(6), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    how = {"gamma": 1e-9, "leave_out": np.arange(6)}
    found = solve_hfs(graph, np.arange(6), y, **how).left_out
    plain = solve_hfs(graph, np.arange(6), y, normalization=None, **how).left_out
    level = found.f - found.means - plain.f
    assert np.ptp(level) == pytest.approx(0.0, abs=1e-6)
    assert plain.f.ravel() == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.0, 0.0], abs=1e-6)
