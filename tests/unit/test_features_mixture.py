"""Weights of experts: what is the same counts once."""

import numpy as np
import pytest

from ohmlearn import Graph, GraphFeatureClassifier
from ohmlearn.features import GraphUse, Homophily


def test_unsmoothed_expert_counts_as_features():
    """With gamma = 0 and no further steps, "both" is the estimator on the features alone."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 100)
    X = truth[:, np.newaxis] + 0.5 * rng.standard_normal((200, 3))
    meaningless = Graph.from_edges(*rng.integers(200, size=(2, 800)), n_nodes=200)
    y = np.where(np.arange(200) % 4 == 0, truth, -1)
    model = GraphFeatureClassifier(
        graph=meaningless, gamma=0.0, correct=False, spread=False, random_state=0
    )
    with pytest.warns(UserWarning, match="the graph does not help"):
        model.fit(X, y)
    assert model.weights_ == {"features": 1.0, "both": 0, "graph": 0}


@pytest.mark.parametrize(
    ("loss_with", "verdict"),
    [(0.5, "The graph helps:"), (0.98, "The graph makes little difference:")],
)
def test_verdict_depends_on_the_losses(loss_with, verdict):
    assert str(GraphUse(True, loss_with, 1.0, Homophily(0.1, 0.1))).startswith(verdict)
