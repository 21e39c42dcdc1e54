"""scikit-learn's own checks of estimators with features and a graph."""

import pickle

import numpy as np
import pytest
from refuses import refuses
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from ohmlearn import GraphSmoother, gallery

ROWS = dict.fromkeys(
    (
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ),
    "rows are the nodes of the graph that fit has seen, all of them and in their order",
)


@pytest.mark.filterwarnings("default")
def test_estimator_checks():
    results = check_estimator(GraphSmoother(), expected_failed_checks=ROWS)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(ROWS)


@pytest.fixture(scope="module")
def blocks():
    graph = gallery.stochastic_blocks([60, 60], p=0.2, bridges=20, random_state=0)
    truth = np.repeat([0, 1], 60)
    X = np.random.default_rng(0).normal(size=(120, 5)) + truth[:, np.newaxis]
    return graph, X, truth


def test_clone_shares_the_graph(blocks):
    graph, X, _ = blocks
    model = make_pipeline(StandardScaler(), GraphSmoother(graph, random_state=0))
    model.set_output(transform="default")
    copy = clone(model)
    assert copy[-1] is not model[-1]
    assert copy[-1].graph is graph
    smoothed = model.fit_transform(X)
    np.testing.assert_array_equal(copy.fit_transform(X), smoothed)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.transform(X), smoothed)
    stream = iter([([0], [1])])  # cannot be copied
    assert clone(GraphSmoother(stream)).graph is stream
    assert not hasattr(clone(model[-1]), "graph_")


def test_search_over_gamma_and_graphs(blocks):
    graph, X, truth = blocks
    parts = make_pipeline(GraphSmoother(random_state=0), LogisticRegression())
    # Rows are nodes, so that the smoother sees all of them, and the search those of one fold.
    everything = [(np.arange(120), np.arange(120))]
    grid = {"graphsmoother__graph": [None, graph], "graphsmoother__gamma": [0.0, 9.0]}
    search = GridSearchCV(parts, grid, cv=everything).fit(X, truth)
    assert search.best_params_["graphsmoother__graph"] is graph
    assert search.best_params_["graphsmoother__gamma"] == 9.0
    assert search.best_score_ > 0.98


def test_names_of_columns(blocks):
    pandas = pytest.importorskip("pandas")
    graph, X, _ = blocks
    frame = pandas.DataFrame(X[:, :2], columns=["age", "income"])
    smoother = GraphSmoother(graph, gamma=[0.5, 9]).set_output(transform="pandas")
    found = smoother.fit_transform(frame)
    names = ["age_gamma0.5", "income_gamma0.5", "age_gamma9", "income_gamma9"]
    assert found.columns.tolist() == names
    assert clone(smoother).fit_transform(frame).columns.tolist() == names
    frame.loc[3, "income"] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 1 \(income\) is NaN; fill in missing"):
        smoother.transform(frame)


def test_nothing_is_checked_before_fit(blocks):
    graph, X, _ = blocks
    for wrong in (-1, [], [1.0, np.inf], "9", True):
        with pytest.raises(ValueError, match=r"^gamma of GraphSmoother must be"):
            GraphSmoother(graph, gamma=wrong).fit(X)
    with refuses(parameter="epsilon"):
        GraphSmoother(graph, epsilon=2.0).fit(X)
