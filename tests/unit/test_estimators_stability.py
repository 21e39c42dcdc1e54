"""How likely another sample gives another label: closed forms and draws."""

import numpy as np
import pytest
from scipy.stats import norm

from ohmlearn import gallery
from ohmlearn.estimators.calibration import _probability_of_another, flip_probabilities


def test_two_classes_are_the_normal_distribution_of_the_gap():
    gap, deviation = np.array([0.0, 0.5, 2.0, -1.0]), np.array([1.0, 0.3, 1.5, 0.7])
    mean = np.column_stack([gap, np.zeros(4)])
    found = _probability_of_another(mean, deviation, np.zeros(4, dtype=np.int64))
    np.testing.assert_allclose(found, norm.cdf(-gap / (np.sqrt(2.0) * deviation)), atol=1e-4)


def test_many_classes_agree_with_draws():
    """The standard error of 40000 draws is at most 0.0025."""
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((6, 4))
    label = mean.argmax(axis=1)
    deviation = np.linspace(0.2, 2.0, 6)
    draws = mean + deviation[:, np.newaxis] * rng.standard_normal((40_000, 6, 4))
    share = (draws.argmax(axis=2) != label).mean(axis=0)
    np.testing.assert_allclose(_probability_of_another(mean, deviation, label), share, atol=0.01)


def test_no_noise_and_agreeing_neighbours_give_zero():
    graph = gallery.complete(6)
    scores = np.tile([1.0, 0.2], (6, 1))
    everywhere = np.ones(6, dtype=bool)
    flips = flip_probabilities(graph, scores, [scores, scores], 0.5, everywhere)
    np.testing.assert_array_equal(flips, np.zeros(6))


def test_labelled_nodes_and_a_single_class_give_zero():
    graph, noise = gallery.path(4), np.arange(8.0).reshape(4, 2)
    scores = np.ones((4, 2))
    unlabelled = np.array([False, True, True, False])
    flips = flip_probabilities(graph, scores, [scores + noise], 0.5, unlabelled)
    assert flips[0] == flips[3] == 0.0
    assert flips[1] > 0.0
    one = flip_probabilities(graph, scores[:, :1], [scores[:, :1]], 0.5, unlabelled)
    assert not one.any()


@pytest.mark.filterwarnings("error")
def test_equal_scores_without_noise():
    """Without any information both classes are equally likely."""
    scores = np.zeros((3, 2))
    everywhere = np.ones(3, dtype=bool)
    flips = flip_probabilities(gallery.path(3), scores, [scores], 0.5, everywhere)
    np.testing.assert_allclose(flips, 0.5)
