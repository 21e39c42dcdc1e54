"""The posterior against dense inverses, for small and large gamma, in several components."""

import numpy as np
import pytest

from ohmlearn import Graph, gallery
from ohmlearn.harmonic import posterior, solve_hfs
from ohmlearn.harmonic.posterior import BLOCK, Posterior, posterior_std

LABELLED, WEIGHTS = [0, 5, 41], np.array([1.0, 2.0, 0.5])


def two_components():
    """Random weighted components of 40 and 20 nodes, a pair and an isolated node."""
    rng = np.random.default_rng(0)
    more = [rng.integers(0, 40, (2, 60)), rng.integers(40, 60, (2, 30))]
    u, v = np.concatenate([*more, [[60], [61]]], axis=1)
    u = np.concatenate([u, np.arange(39), np.arange(40, 59)])
    v = np.concatenate([v, np.arange(1, 40), np.arange(41, 60)])
    apart = u != v
    return Graph.from_edges(u[apart], v[apart], rng.random(apart.sum()) + 0.01, n_nodes=63)


def dense_covariance(graph, scale, n_reached=60):
    """Invert Q; for a large scale the constants are split off, as they would be all rounding."""
    precision = scale * graph.laplacian().toarray()
    precision[LABELLED, LABELLED] += WEIGHTS
    return np.linalg.inv(precision[:n_reached, :n_reached])


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1.0, 1e4])
def test_columns_are_those_of_the_inverse(scale):
    graph = two_components()
    field = Posterior(graph, LABELLED, scale=scale, sample_weight=WEIGHTS, random_state=0)
    expected = dense_covariance(graph, scale)
    found = field.columns(np.arange(63))
    size = np.sqrt(np.diag(expected))
    assert np.abs((found[:60, :60] - expected) / np.outer(size, size)).max() < 1e-9
    assert not found[60:].any()
    assert not found[:, 60:].any()


def test_columns_at_a_large_scale():
    """Q^-1 is 1/sum(D) on each component, plus a covariance of differences of order 1/scale."""
    graph, scale = two_components(), 1e12
    columns = Posterior(graph, LABELLED, scale=scale, sample_weight=WEIGHTS).columns(np.arange(60))
    assert columns[:40, :40] == pytest.approx(1 / 3, rel=1e-9)
    assert columns[40:60, 40:] == pytest.approx(2.0, rel=1e-9)
    assert np.abs(columns[:40, 40:]).max() < 1e-12


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12, 1e60])
def test_samples_have_the_variances(scale):
    """3200 samples have a relative standard error of at most sqrt(2/3200) = 2.5%; 5 of them."""
    field = Posterior(
        two_components(), LABELLED, scale=scale, sample_weight=WEIGHTS, random_state=1
    )
    exact, sampled = field.exact_variances(), field.variances(3200)
    assert np.abs(sampled[:60] / exact[:60] - 1).max() < 0.125
    assert np.isinf(exact[60:]).all()
    assert np.isinf(sampled[60:]).all()


def test_samples_have_the_covariances():
    graph = two_components()
    field = Posterior(graph, LABELLED, scale=1.0, sample_weight=WEIGHTS, random_state=2)
    x = np.concatenate([field.sample(number)[0] for number in range(300)], axis=1)[:60]
    expected = dense_covariance(graph, 1.0)
    size = np.sqrt(np.diag(expected))
    error = (x @ x.T / (300 * BLOCK) - expected) / np.outer(size, size)
    assert np.abs(error).max() < 5 * np.sqrt(2 / (300 * BLOCK))  # 5 standard errors


def test_probes_give_norms_of_columns():
    graph = two_components()
    field = Posterior(graph, LABELLED, scale=1.0, sample_weight=WEIGHTS, random_state=3)
    squares = np.mean([(field.probe(number) ** 2).mean(axis=1) for number in range(200)], axis=0)
    expected = (dense_covariance(graph, 1.0) ** 2).sum(axis=1)
    assert np.abs(squares[:60] / expected - 1).max() < 5 * np.sqrt(2 / 3200)


def test_labelled_nodes_are_exact_for_a_small_gamma():
    """Sixteen samples would be wrong by 35%; the known part of the variance makes them exact."""
    field = Posterior(gallery.grid2d(10, 10), [0, 55], scale=1e-9, random_state=0)
    assert field.variances(16)[[0, 55]] == pytest.approx([1.0, 1.0], abs=1e-6)


def test_std_of_a_path_is_exact_and_sampled(monkeypatch):
    """One label at the end: variances are 1 + distance / (gamma l)."""
    path, expected = gallery.path(50), np.sqrt(1 + np.arange(50) / 0.5)
    assert posterior_std(path, [0], gamma=0.5) == pytest.approx(expected)
    monkeypatch.setattr(posterior, "EXACT_UP_TO", 0)
    sampled = posterior_std(path, [0], gamma=0.5, n_samples=2000, random_state=0)
    assert sampled == pytest.approx(expected, rel=0.08)  # 5 standard errors
    again = posterior_std(path, [0], gamma=0.5, n_samples=2000, random_state=0, n_jobs=2)
    assert np.array_equal(sampled, again)


def test_the_mean_of_the_field_is_the_scores():
    path, labelled, weights, gamma = gallery.path(6), [0, 3], np.array([2.0, 5.0]), 0.3
    ground = np.zeros(6)
    ground[labelled] = weights
    precision = gamma * weights.sum() * path.laplacian().toarray() + np.diag(ground)
    scores = solve_hfs(
        path, labelled, [1.0, -1.0], gamma=gamma, normalization=None, sample_weight=weights
    ).f
    assert precision @ scores == pytest.approx([2.0, 0.0, 0.0, -5.0, 0.0, 0.0], abs=1e-9)
    variances = posterior_std(path, labelled, gamma=gamma, sample_weight=weights) ** 2
    assert variances == pytest.approx(np.diag(np.linalg.inv(precision)))
