"""Features and graph together are about as good as the better of the two, or better.

Seeds are fixed. Differences are means over several draws.
"""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ohmlearn import (
    Graph,
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    HFSClassifier,
    HFSRegressor,
    gallery,
)

N_DRAWS = 3
SIDE = 20  # of a grid
ROWS, COLUMNS = np.divmod(np.arange(SIDE**2), SIDE)


def random_graph(rng):
    u, v = rng.integers(0, SIDE**2, (2, 1200))
    return Graph.from_edges(u, v, n_nodes=SIDE**2)


def draw(family, rng):
    """Return a graph, features, and numbers for all nodes."""
    X = rng.standard_normal((SIDE**2, 5))
    smooth = np.sin(ROWS / 5 + rng.uniform(0, 6)) + np.cos(COLUMNS / 4)
    grid = gallery.grid2d(SIDE, SIDE)
    if family == "graph only":
        return grid, X, smooth
    if family == "features only":
        return random_graph(rng), X, X @ [1.0, 2.0, 0.0, 0.0, 1.0]
    if family == "sum":
        return grid, X, smooth + X[:, 0]
    return grid, 2 * X + smooth[:, np.newaxis], smooth + 0.1 * rng.standard_normal(SIDE**2)


FAMILIES = ["graph only", "features only", "sum", "noisy features"]


def three_answers(both, by_graph, alone, graph, X, y, known):
    """Return what is found with features and graph, with the graph, and with the features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graph does not help, some nodes have no edges
        found = both(graph=graph, random_state=0).fit(X, y).transduction_
        other = by_graph(epsilon=None, random_state=0).fit_edges(graph, y).transduction_
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return found, other, alone.fit(Z[known], y[known]).predict(Z)


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers(family):
    errors = []
    for seed in range(N_DRAWS):
        rng = np.random.default_rng(seed)
        graph, X, values = draw(family, rng)
        known = np.sort(rng.choice(len(values), 40, replace=False))
        y = np.full(len(values), np.nan)
        y[known] = values[known]
        answers = three_answers(GraphFeatureRegressor, HFSRegressor, Ridge(), graph, X, y, known)
        squares = [np.mean((found - values)[np.isnan(y)] ** 2) for found in answers]
        errors.append(squares / values.var())
    both, by_graph, alone = np.sqrt(np.mean(errors, axis=0))
    assert both < 1.05 * min(by_graph, alone) + 0.005
    if family == "sum":
        assert both < 0.95 * min(by_graph, alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_classes(family):
    shares = []
    for seed in range(N_DRAWS):
        rng = np.random.default_rng(seed)
        graph, X, values = draw(family, rng)
        truth = np.searchsorted(np.quantile(values, [1 / 3, 2 / 3]), values)
        y = np.where(rng.random(len(truth)) < 0.12, truth, -1)
        alone = LogisticRegression(C=0.3, max_iter=1000)
        answers = three_answers(
            GraphFeatureClassifier, HFSClassifier, alone, graph, X, y, known=y >= 0
        )
        shares.append([np.mean((found == truth)[y < 0]) for found in answers])
    both, by_graph, alone = np.mean(shares, axis=0)
    assert both > max(by_graph, alone) - 0.005
