"""Scales and types of features, and of the weights of edges."""

import numpy as np
import pytest
import scipy.sparse
from refuses import refuses

from ohmlearn import Graph, GraphFeatureClassifier, gallery
from ohmlearn.features.experts import ScaledFeatures

N = 160
TRUTH = np.repeat([0, 1], N // 2)
BLOCKS = gallery.stochastic_blocks([N // 2, N // 2], p=0.1, bridges=40, random_state=0)


def noise():
    return np.random.default_rng(0).standard_normal((N, 4))


def some_labels():
    return np.where(np.random.default_rng(1).random(N) < 0.4, TRUTH, -1)


def test_dense_columns_are_standardised():
    X = noise() * [1.0, 1e-9, 1e6, 3.0] + [0.0, 1.0, -5e6, 2.0]
    scaled = ScaledFeatures(X)
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(scaled.rows(slice(None)), expected, atol=1e-6)
    np.testing.assert_allclose(scaled.columns(slice(1, 3)), expected[:, 1:3], atol=1e-6)
    assert scaled.size == pytest.approx(2.0)
    assert ScaledFeatures(X.astype(np.float32)).rows([0]).dtype == np.float32


def test_columns_of_extreme_numbers():
    X = noise()
    expected = ScaledFeatures(X).rows(slice(None))
    for power in (-990, -600, 600, 990):  # squares overflow or vanish
        found = ScaledFeatures(np.ldexp(X, power))
        np.testing.assert_allclose(found.rows(slice(None)), expected)
        assert found.size == pytest.approx(2.0)


@pytest.mark.slow
def test_constant_columns_have_no_influence():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    constant = np.column_stack([X, np.full(N, 0.1), np.zeros(N), np.full(N, 1e200)])
    models = [
        GraphFeatureClassifier(graph=BLOCKS, gamma=9.0, random_state=0).fit(features, y)
        for features in (X, constant)
    ]
    found = [model.label_distributions_ for model in models]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    alone = GraphFeatureClassifier(graph=BLOCKS, random_state=0).fit(np.ones((N, 2)), y)
    assert np.mean(alone.transduction_ == TRUTH) > 0.95  # the graph is left


def test_rare_columns_keep_their_scales_to_each_other():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [2.0 * (rng.random(400) < share) for share in (0.3, 0.1, 0.01)]
        + [200.0 * (rng.random(400) < 0.2)]
    )
    scaled = ScaledFeatures(X)
    np.testing.assert_allclose(scaled.scale, [2.0, 2.0, 2.0, 200.0])
    sparse = ScaledFeatures(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.scale, scaled.scale)
    np.testing.assert_allclose(sparse.columns(slice(0, 4)), scaled.columns(slice(0, 4)))
    # Rows for an estimator are not centred if they are sparse.
    shift = scaled.rows([0]) - sparse.rows([0]).toarray()
    np.testing.assert_allclose(shift[0], -X.mean(axis=0) / scaled.scale)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_types_of_features(dtype):
    y = some_labels()
    X = np.round(4 * (noise() + TRUTH[:, np.newaxis]))
    X = X > 0 if dtype is bool else X.astype(dtype)
    options = {"graph": BLOCKS, "gamma": 9.0, "random_state": 0}
    found = GraphFeatureClassifier(**options).fit(X, y)
    expected = GraphFeatureClassifier(**options).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=0.02)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)


def test_sparse_features_are_as_good_as_dense_ones():
    y = some_labels()
    words = 1.0 * (np.random.default_rng(0).random((N, 30)) < 0.05 + 0.15 * TRUTH[:, np.newaxis])
    options = {"graph": BLOCKS, "gamma": 9.0, "random_state": 0}
    dense = GraphFeatureClassifier(**options).fit(words, y)
    sparse = GraphFeatureClassifier(**options).fit(scipy.sparse.csr_array(words), y)
    # Smoothed features are the same; only the estimator on own features sees other rows.
    np.testing.assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=0.1)
    assert np.mean(sparse.transduction_ == TRUTH) > 0.95


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_scale_of_edge_weights_does_not_matter(scale):
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    u, v, w = BLOCKS.edges()
    graphs = BLOCKS, Graph.from_edges(u, v, scale * w, n_nodes=N)
    options = {"gamma": 9.0, "random_state": 0}
    found = [
        GraphFeatureClassifier(graph=graph, **options).fit(X, y).label_distributions_
        for graph in graphs
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


def test_contrast_of_edge_weights():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    graph = gallery.log_uniform_weights(BLOCKS, 12, random_state=0)
    model = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
    assert np.isfinite(model.label_distributions_).all()
    assert np.mean(model.transduction_ == TRUTH) > 0.85
    tiny = Graph.from_edges(*BLOCKS.edges()[:2], np.full(BLOCKS.n_edges, 1e-300))
    with refuses(parameter="gamma"):
        GraphFeatureClassifier(graph=tiny, random_state=0).fit(X, y)
