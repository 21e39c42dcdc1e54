"""Probabilities of the classifier with features and graph mean what they say.

Seeds are fixed. The bounds are about twice what was measured over several seeds.
"""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons

from ohmlearn import GraphFeatureClassifier, gallery

N_DRAWS = 3


def planted(noise, p, bridges):
    """Four blocks of a graph, and features that name the block, with noise."""
    truth = np.repeat(np.arange(4), 100)

    def draw(seed):
        graph = gallery.stochastic_blocks([100] * 4, p=p, bridges=bridges, random_state=seed)
        X = np.eye(4)[truth] + noise * np.random.default_rng(seed).standard_normal((400, 4))
        return graph, X, truth

    return draw


def moons(noise):
    """Two moons, whose points are joined to their nearest neighbours."""

    def draw(seed):
        X, truth = make_moons(400, noise=noise, random_state=seed)
        return None, X, truth

    return draw


FAMILIES = {
    "clear features": planted(0.4, 0.03, 150),
    "noisy features": planted(0.8, 0.03, 150),
    "nearly only noise": planted(1.5, 0.03, 150),
    "weak graph": planted(0.6, 0.015, 250),
    "moons": moons(0.2),
}


def choose_labels(truth, per_class, seed):
    rng = np.random.default_rng(100 + seed)
    y = np.full(len(truth), -1)
    for code in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == code), per_class, replace=False)] = code
    return y


def calibration_error(confidence, right, n_bins=10):
    """Mean difference between confidence and accuracy, over bins of equal size."""
    order = np.argsort(confidence)
    gaps = [
        abs(confidence[part].mean() - right[part].mean()) * len(part)
        for part in np.array_split(order, n_bins)
    ]
    return sum(gaps) / len(order)


@pytest.mark.parametrize(
    ("family", "per_class"), [*((family, 10) for family in FAMILIES), ("noisy features", 20)]
)
def test_calibration_and_coverage(family, per_class):
    confidence, right, covered, estimates, inside = [], [], [], [], []
    for seed in range(N_DRAWS):
        graph, X, truth = FAMILIES[family](seed)
        y = choose_labels(truth, per_class, seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the graph does not help")
            model = GraphFeatureClassifier(graph=graph, gamma=9.0, random_state=0).fit(X, y)
        unknown = np.flatnonzero(y < 0)
        shares = model.label_distributions_[unknown]
        confidence.append(shares.max(axis=1))
        right.append(shares.argmax(axis=1) == truth[unknown])
        covered.append(model.prediction_sets(0.1)[unknown, truth[unknown]])
        estimate = model.accuracy_estimate_
        estimates.append(estimate.value - right[-1].mean())
        inside.append(estimate.low - 0.02 <= right[-1].mean() <= estimate.high + 0.02)
    confidence, right = np.concatenate(confidence), np.concatenate(right)
    assert abs(confidence.mean() - right.mean()) < 0.08
    assert calibration_error(confidence, right) < 0.1
    assert 0.85 <= np.mean(covered) <= 0.98  # the means of 40 draws are .89 to .93
    assert -0.12 < np.mean(estimates) < 0.06
    assert sum(inside) >= N_DRAWS - 1
