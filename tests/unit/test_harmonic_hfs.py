"""HFS and stable-HFS against exact rational elimination, closed forms and invariances."""

from fractions import Fraction

import numpy as np
import pytest
from exact_hfs import solve_exactly
from refuses import refuses
from sklearn.exceptions import ConvergenceWarning

from ohmlearn import Graph, gallery
from ohmlearn.harmonic import solve_hfs
from ohmlearn.sparsifier import sparsify


def spread(f):
    return np.ptp(f, axis=0).max()


def spread_weights(graph, low, high, seed):
    """Weights of a graph drawn over the decades from low to high."""
    u, v, _ = graph.edges()
    w = 10.0 ** np.random.default_rng(seed).uniform(low, high, len(u))
    return Graph.from_edges(u, v, w, n_nodes=graph.n_nodes)


TWO = gallery.disjoint_union(gallery.complete(5), gallery.complete(5))
FAR_APART = {
    "path": gallery.path(9),
    "two": TWO,
    "grid from 1": spread_weights(gallery.grid2d(3, 3), 0, 12, 0),
    "grid to 1": spread_weights(gallery.grid2d(3, 3), -12, 0, 1),
    "complete": spread_weights(gallery.complete(7), -6, 6, 2),
    "two far apart": spread_weights(TWO, -6, 6, 3),
}


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("gamma", [1e-12, 1e-9, 1e-4, 1.0, 1e5, 1e9, 1e12])
@pytest.mark.parametrize("name", FAR_APART)
def test_any_gamma_and_weights_over_twelve_decades(name, gamma, stable):
    # Constants that nearly cancel once amplified rounding errors by gamma times the weights.
    graph = FAR_APART[name]
    for labelled, y in [([0, 5, 6], [1.0, -1.0, 0.5]), ([0, 1, 5, 6], [1.0, 0.0, 1.0, 0.0])]:
        expected, _ = solve_exactly(graph, labelled, y, gamma, stable)
        found = solve_hfs(
            graph, labelled, y, gamma=gamma, normalization="stable" if stable else None
        )
        assert found.converged.all()
        assert np.abs(found.f - expected).max() <= 1e-11 * np.abs(expected).max()


def test_components_whose_constants_cancel():
    # The number of nodes and the sum of labels differ, but 1 of 10 and 2 of 20 nodes have value 1.
    graph = gallery.disjoint_union(gallery.path(10), gallery.path(20))
    labelled, y = [0, 4, 9, 10, 15, 20, 25, 29], [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    expected, _ = solve_exactly(graph, labelled, y, 1e12, True)
    found = solve_hfs(graph, labelled, y, gamma=1e12)
    assert np.abs(found.f - expected).max() <= 1e-11 * np.abs(expected).max()


def exact_residual(graph, labelled, y, gamma, found):
    """Relative residual of the stored f, in fractions; all components have labels."""
    left = [-Fraction(float(found.mu[0]))] * graph.n_nodes
    for node, value in zip(labelled, y, strict=True):
        left[node] += Fraction(value)
    size = sum(entry**2 for entry in left)
    f = [Fraction(float(value)) for value in found.f]
    for u, v, w in zip(*graph.edges(), strict=True):
        current = Fraction(gamma) * len(labelled) * Fraction(float(w)) * (f[u] - f[v])
        left[u] -= current
        left[v] += current
    for node in labelled:
        left[node] -= f[node]
    return float(sum(entry**2 for entry in left) / size) ** 0.5


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("gamma", [1e-9, 1.0, 1e9, 1e12])
@pytest.mark.parametrize("name", ["path", "grid from 1", "complete"])
def test_residuals_are_those_of_the_stored_scores(name, gamma, stable):
    # With a large gamma the scores are nearly constant; rounding removes most of the differences.
    graph, labelled, y = FAR_APART[name], [0, 5, 6], [1.0, -1.0, 0.5]
    found = solve_hfs(graph, labelled, y, gamma=gamma, normalization="stable" if stable else None)
    expected = exact_residual(graph, labelled, y, gamma, found)
    assert found.residual[0] == pytest.approx(expected, rel=1e-3, abs=1e-15)


def test_precision_that_is_lost_is_reported():
    # gamma times the weights is up to 1e36, so the scores have errors of some percent.
    graph, labelled, y = spread_weights(gallery.grid2d(3, 4), 0, 12, 1), [0, 5, 6], [1.0, -1.0, 0.5]
    with pytest.warns(ConvergenceWarning, match=r"above tol = 1e-08; float64 .* reduce gamma"):
        found = solve_hfs(graph, labelled, y, gamma=1e24)
    assert not found.converged.all()
    expected = exact_residual(graph, labelled, y, 1e24, found)
    assert found.residual[0] == pytest.approx(expected, rel=1e-3)
    assert expected > 1e-2


@pytest.mark.parametrize("seed", [3, 7])
def test_combined_scores_reach_the_tolerance_of_their_parts(seed):
    # At first the solutions for the values and for the multiplier are within tol, but f is not.
    graph = gallery.stochastic_blocks([300, 300, 300], 0.05, bridges=2, random_state=seed)
    found = solve_hfs(graph, [0, 300, 599], np.eye(3), tol=1e-3)
    assert found.converged.all()
    assert found.residual.max() <= 1e-3


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("is_weighted", [True, False])
@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e6])
def test_large_graphs_solved_iteratively_satisfy_the_equation(gamma, is_weighted, stable):
    graph = gallery.knn_points(1200, 6, random_state=0)
    count, component = graph.components()
    labelled = np.concatenate([np.flatnonzero(component == i)[:4] for i in range(count)])
    rng = np.random.default_rng(0)
    Y, s = rng.normal(size=(len(labelled), 3)), rng.uniform(0.1, 5.0, len(labelled))
    s = s if is_weighted else np.ones(len(labelled))
    A = gamma * s.sum() * graph.laplacian().toarray()
    A[labelled, labelled] += s
    b = np.zeros((1200, 3))
    b[labelled] = s[:, np.newaxis] * Y
    how = {"gamma": gamma, "normalization": "stable" if stable else None}
    found = solve_hfs(graph, labelled, Y, sample_weight=s if is_weighted else None, **how)
    residual = np.linalg.norm(b - found.mu - A @ found.f, axis=0)
    assert np.all(residual <= 1e-7 * np.linalg.norm(b - found.mu, axis=0))
    if stable:
        assert np.abs(found.f.sum(axis=0)).max() <= 1e-8 * np.abs(found.f).sum()
    if gamma <= 1:
        expected, ones = np.linalg.solve(A, b), np.linalg.solve(A, np.ones(1200))
        if stable:
            expected -= np.outer(ones, expected.sum(axis=0) / ones.sum())
        assert np.abs(found.f - expected).max() <= 1e-6 * spread(expected)


@pytest.mark.slow
def test_threads_do_not_change_a_bit():
    graph = gallery.knn_points(9000, 9, random_state=0)
    Y = np.eye(4)
    results = [
        solve_hfs(graph, [0, 10, 20, 30], Y, n_jobs=jobs, random_state=3).f for jobs in (1, 2, 3)
    ]
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_start_from_an_earlier_answer():
    # With far fewer nodes, a warm start may end with the diagonal, in more but cheaper iterations.
    graph = gallery.knn_points(20_000, 10, random_state=0)
    labelled, y = [0, 1000, 2000], [1.0, -1.0, 1.0]
    sparse = sparsify(graph, max_edges=60_000, random_state=0)
    first = solve_hfs(sparse, labelled, y, random_state=0)
    cold = solve_hfs(graph, labelled, y, random_state=0)
    again = solve_hfs(graph, labelled, y, x0=cold.columns, random_state=0)
    warm = solve_hfs(graph, labelled, y, x0=first.columns, random_state=0)
    assert again.iterations.tolist() == [0]
    assert again.iterations < warm.iterations <= cold.iterations
    np.testing.assert_allclose(warm.f, cold.f, atol=1e-6 * spread(cold.f))
    with pytest.raises(ValueError, match="x0 must have 4 columns and at most 20000 rows, got"):
        solve_hfs(graph, labelled, np.eye(3), x0=cold.columns)
    with pytest.raises(TypeError, match=r"got HFSResult; pass x0=result.columns"):
        solve_hfs(graph, labelled, y, x0=cold)


def test_class_mass_normalization_leaves_the_scores_of_hfs():
    path = gallery.path(5)
    plain = solve_hfs(path, [0, 4], np.eye(2), normalization=None, random_state=0)
    cmn = solve_hfs(path, [0, 4], np.eye(2), normalization="cmn", random_state=0)
    np.testing.assert_array_equal(cmn.f, plain.f)


def test_paper_experiment_at_small_k():
    # With k = 30 the inner clusters have no label and count one half.
    graph = gallery.paper_knn(30, n_points=3630)
    for seed in range(3):
        assert accuracy_on_paper_graph(graph, seed) == pytest.approx(3030 / 3630)


def accuracy_on_paper_graph(graph, seed):
    truth = np.repeat([1.0, 1.0, -1.0, -1.0], [1215, 600, 600, 1215])
    rng = np.random.default_rng(seed)
    labelled = np.r_[rng.choice(1215, 2, False), 2415 + rng.choice(1215, 2, False)]
    found = solve_hfs(graph, labelled, truth[labelled])
    return np.where(found.reached, np.sign(found.f) == truth, 0.5).mean()


@pytest.mark.parametrize(
    ("labelled", "y", "message"),
    [
        ([], [], "no node is labelled; at least one label is needed"),
        ([0, 9], [1, 2], r"n_nodes = 5, but labelled\[1\] = 9"),
        ([0, -1], [1, 2], r"but labelled\[1\] = -1"),
        ([2, 0, 2], [1, 2, 3], r"node 2 is labelled twice, by labelled\[0\] and labelled\[2\]"),
        ([0, 1], [1], r"Y must have shape \(2,\) .* one row per labelled node"),
        ([0, 1], [1, np.nan], r"Y must be finite, but Y\[1\] = nan"),
        ([0, 1], [1e-300, -1e-300], "the largest is 1e-300; change their unit"),
    ],
)
def test_errors(labelled, y, message):
    with pytest.raises(ValueError, match=message):
        solve_hfs(gallery.path(5), labelled, y)


def test_a_normalization_that_is_not_there():
    with refuses(parameter="normalization"):
        solve_hfs(gallery.path(5), [0], [1], normalization="none")


@pytest.mark.parametrize(
    ("weight", "gamma", "message"),
    [
        (1e100, 1e100, r"gamma = 1e\+100 is too large for float64: with 1 .* and 5e\+49"),
        (1e-100, 1e-100, r"gamma = 1e-100 is too small for float64: .* between 1e-50 and"),
    ],
)
def test_gamma_times_the_weights_must_be_a_float(weight, gamma, message):
    with pytest.raises(ValueError, match=message):
        solve_hfs(Graph.from_edges([0, 1], [1, 2], [weight, weight]), [0], [1], gamma=gamma)
