"""`suggest_neighbors`: advice that follows the labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ohmlearn import gallery
from ohmlearn.estimators import suggest_neighbors

POINTS = gallery.paper_points(1210)


def test_suggested_neighbours_follow_the_labels():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900], truth[:900]
    y = np.where(np.arange(900) < 100, truth, -1)
    advice = suggest_neighbors(X, y, candidates=(7, 400))
    assert advice.n_neighbors == 7
    assert advice.accuracy[0] > advice.accuracy[1] + 0.05
    assert "a sparser graph does better here" in str(advice)
    assert "<- suggested" in str(advice).splitlines()[1]
    # The same from a sample of the points, and without the others.
    assert suggest_neighbors(X, y, candidates=(7, 400), max_points=600).n_points == 600


def test_suggested_neighbours_where_density_helps():
    # Two rings, each in many parts if points see two neighbours only.
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    radius = np.where(np.arange(300) % 2, 1.0, 3.0)
    X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    y = np.where(np.arange(300) < 20, np.arange(300) % 2, -1)
    advice = suggest_neighbors(X, y, candidates=(1, 12))
    assert advice.n_neighbors == 12
    assert advice.reached[0] < 0.5
    assert advice.n_components[1] == 2
    assert "try larger k as well" in str(advice)


def test_suggested_neighbours_from_one_label_a_class():
    advice = suggest_neighbors(POINTS, {3: 0, 1100: 1}, candidates=(5, 400, 600, 10**6))
    assert advice.candidates == (5, 400, 600)
    assert advice.n_neighbors == next(
        k for k, share in zip(advice.candidates, advice.reached, strict=True) if share == 1
    )
    assert "too few labels to leave any out" in str(advice)
    with pytest.raises(ValueError, match="candidates must be below the number of points, 1210"):
        suggest_neighbors(POINTS, {3: 0, 1100: 1}, candidates=(5000,))
