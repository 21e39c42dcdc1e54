"""Suggested labels against random ones on the digits of scikit-learn."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ohmlearn import HFSClassifier
from ohmlearn.estimators.suggest_labels import suggest_nodes


@pytest.mark.slow
def test_twenty_suggested_labels_beat_random_ones():
    """Five at a time from no label at all; the mean of random draws is exceeded by far.

    Measured: about 0.93 against 0.79, with a standard deviation of 0.05 for random labels.
    """
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a single class, and of nodes without a label
        model = HFSClassifier(epsilon=None, random_state=0).fit(X, np.where(y == 0, y, -1))

        def accuracy(labelled):
            model.relabel({int(i): int(y[i]) for i in labelled})
            rest = np.setdiff1d(np.arange(len(y)), labelled)
            return np.mean(model.transduction_[rest] == y[rest])

        draws = [np.random.default_rng(s).choice(len(y), 20, replace=False) for s in range(10)]
        random = np.mean([accuracy(draw) for draw in draws])
        labelled, probabilities = [], None
        while len(labelled) < 20:
            picks = suggest_nodes(
                model.graph_, labelled, 5, probabilities=probabilities, random_state=0
            )
            labelled += [pick.node for pick in picks]
            reached = accuracy(labelled)
            probabilities = model.label_distributions_
    assert reached > random + 0.06
