"""scikit-learn's checks of the estimators with features and graph, and tools they are used with."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from refuses import refuses
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import has_fit_parameter

from ohmlearn import (
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    GraphSmoother,
    NodeFeatures,
    gallery,
)

WEIGHTS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "points of weight 0 stay in the graph, and points given twice are two nodes; "
    "test_features_labels has what holds instead",
)
ROWS = dict.fromkeys(
    (
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ),
    "rows are the nodes of the graph that fit has seen, all of them and in their order",
)
CLASSES = {"check_classifiers_classes": "-1 means unlabelled, and the check uses it as a class"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # random labels: the graph does not help
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (GraphFeatureClassifier(cv=2), WEIGHTS | CLASSES),
        (GraphFeatureRegressor(cv=2), WEIGHTS),
        (GraphSmoother(), ROWS),
    ],
    ids=lambda each: type(each).__name__,
)
def test_estimator_checks(estimator, expected):
    results = check_estimator(estimator, expected_failed_checks=expected)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected)


@pytest.fixture(scope="module")
def blocks():
    """Three blocks of a graph; features that name the block, with much noise."""
    graph = gallery.stochastic_blocks([50, 50, 50], p=0.1, bridges=40, random_state=0)
    truth = np.repeat([0, 1, 2], 50)
    rng = np.random.default_rng(1)
    X = np.eye(3)[truth] + rng.standard_normal((150, 3))
    y = np.where(rng.random(150) < 0.3, truth, -1)
    return graph, X, truth, y


@pytest.mark.slow
def test_pipeline_clone_and_pickle(blocks):
    graph, X, truth, y = blocks
    model = make_pipeline(StandardScaler(), GraphFeatureClassifier(graph=graph, random_state=0))
    copy = clone(model)
    assert copy[-1].graph is graph
    model.fit(X, y)
    assert np.mean(model[-1].transduction_ == truth) > 0.95
    loaded = pickle.loads(pickle.dumps(model))
    for other in (copy.fit(X, y), loaded):
        np.testing.assert_array_equal(
            other[-1].label_distributions_, model[-1].label_distributions_
        )
        np.testing.assert_array_equal(other.predict_proba(X[:5]), model.predict_proba(X[:5]))
    more = ([0, 1], [2, 3])
    again = loaded[-1].update(more).label_distributions_
    np.testing.assert_array_equal(again, model[-1].update(more).label_distributions_)


@pytest.mark.slow
def test_search_over_parameters_of_the_estimator(blocks):
    graph, X, _, y = blocks
    model = GraphFeatureClassifier(LogisticRegression(), graph, gamma=9.0, random_state=0)
    assert model.set_params(estimator__C=0.5).get_params()["estimator__C"] == 0.5
    search = GridSearchCV(model, {"gamma": [1e-6, 9.0], "estimator__C": [1.0]}, cv=3)
    search.fit(NodeFeatures(X), y)
    assert search.best_estimator_.graph is graph
    assert search.best_score_ > 0.8


class Seen(StratifiedKFold):
    """Folds that are remembered."""

    def split(self, X, y, groups=None):
        self.tests = []
        for train, test in super().split(X, y, groups):
            self.tests.append(test)
            yield train, test


@pytest.mark.slow
def test_folds_see_all_features_and_no_test_label(blocks):
    graph, X, truth, y = blocks
    folds = Seen(3, shuffle=True, random_state=0)
    model = GraphFeatureClassifier(graph=graph, gamma=9.0, random_state=0)
    scores = cross_val_score(model, NodeFeatures(X), y, cv=folds, error_score="raise")
    for test, score in zip(folds.tests, scores, strict=True):
        train = y.copy()
        train[test] = -1
        fitted = clone(model).fit(X, train)
        known = test[y[test] >= 0]
        assert np.mean(fitted.transduction_[known] == truth[known]) == score
    # Answers for a fold cannot know labels that have nothing to do with features or graph.
    chance = np.random.default_rng(2).integers(0, 2, 150)
    assert abs(cross_val_score(model, NodeFeatures(X), chance, cv=5).mean() - 0.5) < 0.15


def test_folds_of_arrays_are_refused(blocks):
    graph, X, truth, _ = blocks
    model = GraphFeatureClassifier(graph=graph)
    with pytest.raises(ValueError, match=r"in scikit-learn's cross-validation .* NodeFeatures\(X"):
        cross_val_score(model, X, truth, cv=3, error_score="raise")


def test_cross_validation_of_numbers(blocks):
    graph, X, truth, y = blocks
    values = np.where(y < 0, np.nan, truth)
    model = GraphFeatureRegressor(graph=graph, random_state=0)
    scores = cross_val_score(
        model, NodeFeatures(X), values, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert scores.min() > 0.6
    fitted = model.fit(X, values)
    assert fitted.score(NodeFeatures(X), values) > 0.9
    np.testing.assert_array_equal(fitted.predict(NodeFeatures(X)), fitted.transduction_)


def test_new_points_are_answered_by_the_estimator(blocks):
    graph, X, _, y = blocks
    model = GraphFeatureClassifier(graph=graph, calibration=None, random_state=0).fit(X, y)
    # Rows have the root mean square length of sqrt(3).
    alone = LogisticRegression(C=100 / 3, tol=1e-3, max_iter=1000)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    alone.fit(scaled[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(model.predict(X), alone.predict(scaled))
    edges = graph.edges()
    streamed = GraphFeatureClassifier(calibration=None, random_state=0).fit_edges(edges, X, y)
    np.testing.assert_array_equal(streamed.predict_proba(X), model.predict_proba(X))


def test_new_points_near_nodes():
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    X = rng.standard_normal((200, 2)) + 4 * truth[:, np.newaxis]
    y = np.where(np.arange(200) < 20, truth, -1)
    model = GraphFeatureClassifier(random_state=0).fit(X, y)
    new = rng.standard_normal((50, 2)) + 4 * truth[:50, np.newaxis]
    assert np.mean(model.predict(new) == truth[:50]) > 0.95
    far = model.predict_proba(new + 1e6)
    np.testing.assert_allclose(far.sum(axis=1), 1.0)
    assert np.isfinite(far).all()


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5, random_state=0),
        GaussianNB(),
        LinearSVC(),  # scores instead of probabilities
        KNeighborsClassifier(3),  # no weights
        make_pipeline(StandardScaler(), LogisticRegression()),  # no weights
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_estimators(blocks, estimator):
    graph, X, truth, y = blocks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = GraphFeatureClassifier(estimator, graph, random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.93
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)
    weights = np.linspace(0.5, 2.0, 150)
    weighted = GraphFeatureClassifier(estimator, graph, gamma=9.0, random_state=0)
    with warnings.catch_warnings():
        if not has_fit_parameter(estimator, "sample_weight"):
            warnings.filterwarnings("ignore", ".* takes no sample_weight")
        weighted.fit(X, y, sample_weight=weights)
    assert np.mean(weighted.transduction_ == truth) > 0.93


def test_nothing_is_checked_before_fit(blocks):
    graph, X, _, y = blocks
    for name, wrong in {"gamma": -1, "cv": 1, "epsilon": 2.0}.items():
        model = GraphFeatureClassifier(graph=graph, **{name: wrong})
        with refuses(parameter=name):
            model.fit(X, y)
    for wrong in ("logistic", LogisticRegression, Ridge()):
        with pytest.raises(ValueError, match=r"^estimator of .* must be"):
            GraphFeatureClassifier(wrong, graph).fit(X, y)
    with pytest.raises(ValueError, match=r"^estimator of .* must be"):
        GraphFeatureRegressor(LogisticRegression(), graph).fit(X, X[:, 0])
    for call in ("update", "relabel"):
        with pytest.raises(NotFittedError):
            getattr(GraphFeatureClassifier(), call)(X)
    for wrong in (-1, [], [1.0, np.inf], "9", True):
        with pytest.raises(ValueError, match=r"^gamma of GraphSmoother must be"):
            GraphSmoother(graph, gamma=wrong).fit(X)
    with refuses(parameter="epsilon"):
        GraphSmoother(graph, epsilon=2.0).fit(X)


def test_sparse_features_in_a_search():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    words = (rng.random((120, 40)) < 0.1) * 1.0
    words[:, 0] = truth * (rng.random(120) < 0.8)
    graph = gallery.stochastic_blocks([60, 60], p=0.1, bridges=30, random_state=0)
    features = NodeFeatures(scipy.sparse.csr_array(words))
    model = GraphFeatureClassifier(graph=graph, gamma=9.0, random_state=0)
    assert cross_val_score(model, features, truth, cv=3).mean() > 0.95


# Smoothing.


@pytest.fixture(scope="module")
def pair():
    """Two blocks of a graph, and their features."""
    graph = gallery.stochastic_blocks([60, 60], p=0.2, bridges=20, random_state=0)
    truth = np.repeat([0, 1], 60)
    X = np.random.default_rng(0).normal(size=(120, 5)) + truth[:, np.newaxis]
    return graph, X, truth


def test_clone_shares_the_graph(pair):
    graph, X, _ = pair
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


def test_search_over_gamma_and_graphs(pair):
    graph, X, truth = pair
    parts = make_pipeline(GraphSmoother(random_state=0), LogisticRegression())
    # Rows are nodes, so that the smoother sees all of them, and the search those of one fold.
    everything = [(np.arange(120), np.arange(120))]
    grid = {"graphsmoother__graph": [None, graph], "graphsmoother__gamma": [0.0, 9.0]}
    search = GridSearchCV(parts, grid, cv=everything).fit(X, truth)
    assert search.best_params_["graphsmoother__graph"] is graph
    assert search.best_params_["graphsmoother__gamma"] == 9.0
    assert search.best_score_ > 0.98


def test_names_of_columns(pair):
    pandas = pytest.importorskip("pandas")
    graph, X, _ = pair
    frame = pandas.DataFrame(X[:, :2], columns=["age", "income"])
    smoother = GraphSmoother(graph, gamma=[0.5, 9]).set_output(transform="pandas")
    found = smoother.fit_transform(frame)
    names = ["age_gamma0.5", "income_gamma0.5", "age_gamma9", "income_gamma9"]
    assert found.columns.tolist() == names
    assert clone(smoother).fit_transform(frame).columns.tolist() == names
    frame.loc[3, "income"] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 1 \(income\) is NaN; fill in missing"):
        smoother.transform(frame)
