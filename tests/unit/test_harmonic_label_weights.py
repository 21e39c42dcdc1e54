"""Scores with and without weights of labels against exact elimination, and their ratios."""

import numpy as np
import pytest
from exact_hfs import solve_exactly

from ohmlearn import gallery, refine, solve_hfs, sparsify

GRAPHS = {
    "path": gallery.path(9),
    "star": gallery.star(8),
    "barbell": gallery.barbell(4, bridge=2),
    "weighted": gallery.log_uniform_weights(gallery.grid2d(3, 4), decades=3, random_state=0),
    "two": gallery.disjoint_union(gallery.complete(5), gallery.path(4)),
}
WEIGHTS = {
    "none": None,
    "close": [2.0, 0.5, 1.25],
    "far apart": [1e-8, 1.0, 1e4],
    "small": [2e-9, 1e-9, 1e-9],
}


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("gamma", [1e-9, 1e-2, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_exact_elimination(name, weights, gamma, stable):
    graph, s = GRAPHS[name], WEIGHTS[weights]
    labelled, y = [0, 3, 7], [1.0, -1.0, 0.5]
    expected, mu = solve_exactly(graph, labelled, y, gamma, stable, s)
    how = {"gamma": gamma, "normalization": "stable" if stable else None}
    found = solve_hfs(graph, labelled, y, sample_weight=s, **how)
    assert np.abs(found.f - expected).max() <= 1e-8 * np.abs(expected).max()
    assert found.converged.all()
    if s is None and gamma <= 1e6:
        # Relative to the differences within f, which are 1e-6 of its size for a large gamma.
        assert np.abs(found.f - expected).max() <= 1e-8 * np.ptp(expected)
        assert found.residual.max() <= 1e-8
    assert found.mu[0] == pytest.approx(mu if stable else 0.0, rel=1e-8, abs=1e-12 * sum(s or [1]))


@pytest.mark.parametrize("normalization", ["stable", None])
def test_only_ratios_of_weights_matter_and_ones_change_no_bit(normalization):
    graph = gallery.knn_points(700, 8, random_state=0)
    labelled, Y = [3, 50, 400], np.random.default_rng(0).normal(size=(3, 2))
    how = {"normalization": normalization, "random_state": 0}
    plain = solve_hfs(graph, labelled, Y, **how)
    ones = solve_hfs(graph, labelled, Y, sample_weight=[1, 1, 1], **how)
    np.testing.assert_array_equal(ones.f, plain.f)
    np.testing.assert_array_equal(ones.columns, plain.columns)
    some = solve_hfs(graph, labelled, Y, sample_weight=[1.0, 2.0, 3.0], **how)
    same = solve_hfs(graph, labelled, Y, sample_weight=[16.0, 32.0, 48.0], **how)
    np.testing.assert_allclose(same.f, some.f, atol=1e-8 * np.ptp(some.f))
    assert np.abs(some.f - plain.f).max() > 1e-3 * np.ptp(plain.f)


@pytest.mark.parametrize("normalization", ["stable", None])
def test_refine_reaches_the_answer_of_the_full_graph(normalization):
    graph = gallery.complete(300)
    h = sparsify(graph, epsilon=0.9, random_state=0)
    labelled, y, s = [0, 1, 2], [1.0, -1.0, 1.0], [0.2, 5.0, 1.0]
    how = {"gamma": 0.01, "normalization": normalization, "sample_weight": s}
    found = refine(graph, h, labelled, y, passes=30, tol=1e-8, random_state=0, **how)
    expected = solve_hfs(graph, labelled, y, **how).f
    assert found.converged.all()
    np.testing.assert_allclose(found.f, expected, atol=1e-6 * np.abs(expected).max())
    early = refine(
        graph, h, labelled, y, passes=2, tol=1e-8, random_state=0, step_ahead=False, **how
    )
    A = 0.01 * sum(s) * graph.laplacian().toarray()
    A[labelled, labelled] += s
    b = np.zeros(300)
    b[labelled] = np.multiply(s, y)
    b -= early.mu[0]
    residual = np.linalg.norm(b - A @ early.f) / np.linalg.norm(b)
    assert early.residual[0] == pytest.approx(residual, rel=1e-5)
    rest = early.f - expected
    error = np.sqrt(rest @ A @ rest / (expected @ A @ expected))
    assert error <= 1.01 * early.error[0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 0.0], r"between 1e-50 and 1e\+50, but sample_weight\[1\] = 0.0; leave out"),
        ([-1.0, 1.0], r"but sample_weight\[0\] = -1.0"),
        ([1.0, np.nan], r"sample_weight must be finite, but sample_weight\[1\] = nan"),
        ([1.0], r"sample_weight must have shape \(2,\)"),
        ([[1.0], [1.0]], r"one number per labelled node, shape \(2,\), got shape \(2, 1\)"),
        (["a", "b"], "sample_weight must be real numbers"),
    ],
)
def test_weights_that_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        solve_hfs(gallery.path(4), [0, 3], [1.0, 2.0], sample_weight=weights)
