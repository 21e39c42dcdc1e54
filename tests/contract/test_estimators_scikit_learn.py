"""scikit-learn's own checks, and the tools that estimators are used with."""

import inspect
import pickle
import re

import numpy as np
import pytest
from refuses import refuses
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.utils.estimator_checks import check_estimator

import ohmlearn
from ohmlearn.estimators import HFSClassifier, HFSRegressor

WEIGHTS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "points of weight 0 stay in the graph, and points given twice are two nodes; "
    "test_estimators_label_weights has what holds instead",
)
# scikit-learn exempts its own semi-supervised classifiers from this by their names.
CLASSES = {"check_classifiers_classes": "-1 means unlabelled, and the check uses it as a class"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:all labels are")  # one of the checks does this on purpose
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("estimator", [HFSClassifier, HFSRegressor])
def test_estimator_checks(estimator):
    expected = WEIGHTS | CLASSES if estimator is HFSClassifier else WEIGHTS
    results = check_estimator(estimator(), expected_failed_checks=expected)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected)


@pytest.fixture(scope="module")
def moons():
    X, truth = make_moons(300, noise=0.06, random_state=0)
    y = np.full(300, -1)
    y[:10] = truth[:10]
    return X, truth, y


def test_pipeline_search_clone_and_pickle(moons):
    X, truth, y = moons
    model = make_pipeline(StandardScaler(), HFSClassifier(random_state=0))
    assert np.mean(model.fit(X, y).predict(X) == truth) > 0.98
    search = GridSearchCV(
        HFSClassifier(random_state=0), {"n_neighbors": [5, 40], "gamma": [0.1, 1.0]}, cv=3
    ).fit(X, truth)
    assert search.best_score_ > 0.98
    fitted = HFSClassifier(random_state=0).fit(X, y)
    again = clone(fitted).fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    for other in (again, loaded):
        assert np.array_equal(other.label_distributions_, fitted.label_distributions_)
        assert np.array_equal(other.predict_proba(X), fitted.predict_proba(X))
    more = (np.arange(299), np.arange(1, 300))  # an unpickled stream continues
    assert np.array_equal(loaded.update(more).scores_, fitted.update(more).scores_)


@pytest.mark.parametrize("estimator", [HFSClassifier, HFSRegressor])
def test_weights_pass_through_a_pipeline(estimator, moons):
    X, _, y = moons
    y = np.where(y < 0, np.nan, y)
    weights = np.where(np.arange(300) < 3, 0.0, 2.0)
    model = make_pipeline(StandardScaler(), estimator(random_state=0))
    name = model.steps[-1][0]
    model.fit(X, y, **{f"{name}__sample_weight": weights})
    y[:3] = np.nan
    once = make_pipeline(StandardScaler(), estimator(random_state=0, gamma=model[-1].gamma_))
    once.fit(X, y)  # the weights that are left are equal, and gamma is the same
    np.testing.assert_allclose(model.predict(X), once.predict(X), atol=1e-6)


def test_search_over_precomputed_graphs(moons):
    X, truth, _ = moons
    distances = np.linalg.norm(X[:, np.newaxis] - X, axis=2)
    weights = np.exp(-20 * distances**2)
    np.fill_diagonal(weights, 0)
    search = GridSearchCV(
        HFSClassifier(epsilon=None, affinity="precomputed"), {"gamma": [1e-3, 1.0]}, cv=3
    ).fit(weights, truth)
    assert search.best_score_ > 0.95


def test_nothing_is_checked_before_fit():
    model = HFSClassifier(affinity="nonsense", n_neighbors=-3)
    assert model.get_params()["n_neighbors"] == -3
    with refuses(parameter="affinity"):
        model.fit(np.eye(4), [0, 1, -1, -1])
    with pytest.raises(NotFittedError):
        _ = HFSClassifier().transduction_


def test_digits_from_ten_labels_a_class():
    X, truth = load_digits(return_X_y=True)
    y = np.full(len(truth), -1)
    rng = np.random.default_rng(0)
    for c in range(10):
        y[rng.choice(np.flatnonzero(truth == c), 10, replace=False)] = c
    model = HFSClassifier(epsilon=None).fit(X, y)
    peer = LabelSpreading(kernel="knn", n_neighbors=10).fit(X, y)
    right, by_peer = (np.mean(m.transduction_ == truth) for m in (model, peer))
    assert right > max(0.95, by_peer - 0.005)
    sparse = HFSClassifier(random_state=0, max_edges=6000).fit(X, y)
    assert sparse.sparsifier_.snapshot().n_edges < model.graph_.n_edges
    assert np.mean(sparse.transduction_ == model.transduction_) > 0.97


def test_new_points_have_the_mean_of_their_neighbours():
    X, truth = make_blobs(200, centers=3, cluster_std=0.8, random_state=3)
    y = np.where(np.arange(200) < 12, truth, -1)
    new, expected = make_blobs(50, centers=3, cluster_std=0.8, random_state=3)
    for affinity in ("knn", "rbf", lambda A, B: np.exp(-((A[:, np.newaxis] - B) ** 2).sum(axis=2))):
        model = HFSClassifier(epsilon=None, affinity=affinity, kernel_gamma=1.0).fit(X, y)
        shares = model.predict_proba(new)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert np.mean(model.predict(new) == expected) > 0.9
    rows = np.zeros((2, 200))
    rows[0, [3, 5]] = [1.0, 3.0]
    rows[1, 7] = 2.0
    graph = HFSClassifier(epsilon=None).fit(X, y).graph_
    model = HFSRegressor(epsilon=None, affinity="precomputed").fit(
        graph, np.where(y < 0, np.nan, y)
    )
    values = model.transduction_
    expected_values = [(values[3] + 3 * values[5]) / 4, values[7]]
    np.testing.assert_allclose(model.predict(rows), expected_values)


def test_odds_and_answers_of_fit(moons):
    X, truth, _ = moons
    y = np.where(np.arange(len(X)) < 20, truth, -1)
    for labels in (y, np.where(np.arange(len(X)) % 40 == 3, 2, y)):  # two and three classes
        model = HFSClassifier(random_state=0)
        answers = model.fit_predict(X, labels)
        assert np.array_equal(answers, model.transduction_)
        p, odds = model.predict_proba(X), model.decision_function(X)
        if odds.ndim == 1:
            p, odds = p[:, 1], odds[:, np.newaxis]
        np.testing.assert_allclose(1.0 / (1.0 + np.exp(-odds)).squeeze(), p, atol=1e-12)


@pytest.mark.parametrize("name", ["kernel", "alpha", "max_iter"])
def test_parameters_of_label_spreading_are_explained(name):
    for kind in (HFSClassifier, HFSRegressor):
        with pytest.raises(TypeError, match=f"has no parameter {name}; give "):
            kind(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'kernl'"):
        HFSClassifier(kernl="rbf")


def test_self_training_and_one_sample(moons):
    X, truth, _ = moons
    y = np.where(np.arange(len(X)) < 20, truth, -1)
    model = SelfTrainingClassifier(HFSClassifier(random_state=0)).fit(X, y)
    assert np.mean(model.predict(X) == truth) > 0.9
    with pytest.raises(ValueError, match="minimum of 2 is required by HFSClassifier"):
        HFSClassifier().fit(X[:1], [0])
    assert HFSClassifier(random_state=0).fit(X[:2], [1, 0]).transduction_.tolist() == [1, 0]


def test_signatures_name_types():
    """No internals of numpy are printed, which take five lines."""
    for name in ohmlearn.__all__:
        function = getattr(ohmlearn, name)
        if callable(function):
            assert not re.search(r"_SupportsArray|ndarray\[tuple", str(inspect.signature(function)))
