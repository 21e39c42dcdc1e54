"""What the estimators for features and graph refuse, warn of, and do not depend on."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ohmlearn import (
    Graph,
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    NodeFeatures,
    StreamingSparsifier,
    gallery,
)
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.features.expert_tasks import Classes
from ohmlearn.features.experts import ScaledFeatures
from ohmlearn.features.feature_columns import warn_of_leaks

N = 60
TRUTH = np.repeat([0, 1], N // 2)
X = np.random.default_rng(0).standard_normal((N, 3)) + 2.0 * TRUTH[:, np.newaxis]
GRAPH = gallery.stochastic_blocks([N // 2, N // 2], p=0.3, bridges=5, random_state=0)
Y = np.where(np.arange(N) % 3 == 0, TRUTH, -1)
NAMES = ["age", "city=Bern", "city=Rome"]


def classifier(estimator=None, **options):
    return GraphFeatureClassifier(estimator, random_state=0, **options)


@pytest.fixture(autouse=True)
def _ignore_verdict():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the graph does not help")
        yield


# Neighbours.


@pytest.mark.parametrize("name", [lambda i: i, lambda i: 100 + 7 * i, lambda i: f"n{i}"])
def test_neighbours_are_joined_whatever_the_ids(name):
    plain = classifier().fit(NodeFeatures(X), Y)
    ids = [name(int(i)) for i in np.random.default_rng(1).permutation(N)]
    by_id = classifier().fit(NodeFeatures(X, ids=ids), Y)
    assert np.array_equal(by_id.nodes_.ids(), ids)
    assert np.array_equal(by_id.label_distributions_, plain.label_distributions_)
    rows = NodeFeatures(X[::-1], ids=ids[::-1])
    assert np.array_equal(by_id.predict(rows), plain.transduction_[::-1])
    labels = {ids[i]: int(Y[i]) for i in np.flatnonzero(Y >= 0)}
    by_dict = classifier().fit(NodeFeatures(X, ids=ids), labels)
    assert np.array_equal(by_dict.label_distributions_, plain.label_distributions_)


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_neighbours_do_not_depend_on_scales(convert):
    rows = np.where(np.random.default_rng(2).random(X.shape) < 0.2, 0.0, X)
    rows *= [1.0, 256.0, 1.0 / 64.0]
    units = np.array([1.0, 4.0, 1.0 / 16.0])
    small, large = classifier().fit(convert(rows), Y), classifier().fit(convert(rows * units), Y)
    assert small.graph_.n_edges == large.graph_.n_edges
    assert np.allclose(small.label_distributions_, large.label_distributions_)
    new = rows[:9] * 1.1
    assert np.allclose(small.predict_proba(convert(new)), large.predict_proba(convert(new * units)))


def test_new_rows_may_be_sparse_or_dense():
    sparse = scipy.sparse.csr_array(X)
    for fitted in (X, sparse):
        scaled = ScaledFeatures(fitted)
        first, second = scaled.scale_rows(X[:5]), scaled.scale_rows(sparse[:5])
        assert scipy.sparse.issparse(first) == scipy.sparse.issparse(second) == scaled.is_sparse
        both = [each.toarray() if scaled.is_sparse else each for each in (first, second)]
        assert np.array_equal(*both)
        model = classifier().fit(fitted, Y)
        assert np.allclose(model.predict_proba(X[:5]), model.predict_proba(sparse[:5]))


# Columns.


def test_columns_of_tables_are_checked():
    model = classifier(graph=GRAPH).fit(NodeFeatures(X, names=NAMES), Y)
    new = range(N, 2 * N)
    other = NodeFeatures(X, ids=new, names=["age", "city=Paris", "city=Rome"])
    turned = NodeFeatures(X, ids=new, names=NAMES[::-1])
    for call in (model.predict, model.predict_proba, lambda x: model.score(x, TRUTH)):
        with pytest.raises(ValueError, match="'city=Bern' is missing and 'city=Paris' is new; enc"):
            call(other)
        with pytest.raises(ValueError, match="another order"):
            call(turned)
        with pytest.raises(ValueError, match="X has 1 features, but the fit had 3"):
            call(NodeFeatures(X[:, :1]))
    edges = ([0], [1])
    with pytest.raises(ValueError, match="'city=Bern' is missing"):
        model.update(edges, NodeFeatures(X, names=["age", "city=Paris", "city=Rome"]))
    with pytest.raises(ValueError, match="X has 1 features"):
        model.update(edges, NodeFeatures(X[:, :1]))
    assert np.array_equal(model.predict(NodeFeatures(X)), model.transduction_)


# Sparsifiers.


def test_sparsifiers_that_would_not_be_used_are_refused():
    empty = StreamingSparsifier(random_state=0)
    for edges in (GRAPH, GRAPH.to_scipy(), StreamingSparsifier(random_state=0)):
        with pytest.raises(ValueError, match=r"is used as it is .* leave out sparsifier"):
            classifier().fit_edges(edges, X, Y, sparsifier=empty)
    full = StreamingSparsifier(random_state=0).update([0], [1])
    with pytest.raises(ValueError, match="sparsifier must be empty, but has 1 edges"):
        classifier().fit_edges(GRAPH.edges(), X, Y, sparsifier=full)


# Copies.


@pytest.mark.slow
@pytest.mark.parametrize("convert", [np.array, np.asfortranarray, scipy.sparse.csr_array])
def test_changing_features_after_fit_changes_nothing(convert):
    more = ([0, 1], [2, 3])
    given = convert(X.copy())
    model = classifier().fit_edges(GRAPH.edges(), given, Y).update(more)
    given *= 0.0
    kept = classifier().fit_edges(GRAPH.edges(), convert(X.copy()), Y).update(more)
    assert np.array_equal(model.label_distributions_, kept.label_distributions_)
    given = convert(X.copy())
    model = model.update(more, given)
    given *= 0.0
    assert np.array_equal(model.transduction_, kept.update(more, convert(X)).transduction_)


# Warnings.


@pytest.mark.slow
def test_warnings_name_the_line_of_the_caller():
    n, rng = 160, np.random.default_rng(0)
    truth = np.repeat([0, 1], n // 2)
    rows = rng.standard_normal((n, 4)) + 1.5 * truth[:, np.newaxis]
    u, v = rng.integers(0, n // 2, (2, 600))
    noise = Graph.from_edges(u, v + n // 2, n_nodes=n)  # joins different classes
    y = {i: int(truth[i]) for i in range(0, n, 2)}
    some = NodeFeatures(rows[:-1], ids=range(n - 1))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = classifier(graph=noise).fit(rows, y)
        model.relabel({0: "a", 1: "a"})
        model.relabel(y)
        model = classifier().fit_edges(noise.edges(), some, y)
        model.update(([0], [1]), some)
        assert len(model.transduction_) == n
        model.relabel(np.where(np.arange(n - 1) % 2, "", "a").tolist())
    said = " ".join(str(each.message) for each in found)
    for part in ("does not help", "all labels are", "no features", "an empty string"):
        assert part in said
    assert len(found) >= 6
    assert {each.filename for each in found} == {__file__}


@pytest.mark.parametrize("form", ["weights", "shares", "numbers"])
def test_estimators_without_weights_are_named_once(form):
    if form == "numbers":
        model = GraphFeatureRegressor(make_pipeline(Ridge()), graph=GRAPH, random_state=0)
    else:
        model = classifier(make_pipeline(StandardScaler(), LogisticRegression()), graph=GRAPH)
    y = {i: int(TRUTH[i]) for i in range(0, N, 3)}
    weights = {i: 1.0 + i % 2 for i in range(0, N, 3)}
    if form == "shares":
        y[0], weights = {0: 0.7, 1: 0.3}, None
    with pytest.warns(UserWarning, match="Pipeline takes no sample_weight") as found:
        model.fit(X, y, sample_weight=weights)
    assert sum("sample_weight" in str(each.message) for each in found) == 1
    assert found[0].filename == __file__


# Estimators.


def test_estimators_see_the_classes():
    estimator = LogisticRegression(class_weight={"b": 1.0, "a": 100.0})
    names = np.array(["b", "a"])
    y = {i: str(names[TRUTH[i]]) for i in range(0, N, 3)}
    model = classifier(estimator, graph=GRAPH).fit(X, y)
    assert np.mean(model.transduction_ == names[TRUTH]) > 0.9


@pytest.mark.parametrize("names", [[2.5, 1.5], ["b", "a"], [7, 3], [True, False]])
def test_answers_have_the_columns_of_the_classes(names):
    labels = NodeLabels(np.arange(4), np.eye(2)[[0, 0, 1, 1]], np.ones(4))
    rows = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    plain = Classes(2).fit(LogisticRegression(), rows, labels)(rows)
    for classes in (np.array(names), np.array(names, dtype=object)):
        found = Classes(classes).fit(LogisticRegression(), rows, labels)(rows)
        assert np.allclose(found, plain, atol=1e-4)


def test_failing_estimators_are_explained():
    model = classifier(KNeighborsClassifier(19), graph=GRAPH)
    with pytest.raises(ValueError, match="KNeighborsClassifier failed with 16 labels") as found:
        model.fit(X, Y)
    assert "n_neighbors" in str(found.value.__cause__)


# Probabilities.


def test_nodes_that_the_estimator_answers_have_one_distribution():
    graph = Graph.from_edges(*GRAPH.edges()[:2], n_nodes=N + 20)
    rows = np.vstack([X, X[:20]])
    y = np.concatenate([Y, np.full(20, -1)])
    for calibration in ("cv", None):
        model = classifier(graph=graph, calibration=calibration).fit(NodeFeatures(rows), y)
        assert not model.reached_.all()
        shares = model.label_distributions_
        assert np.array_equal(model.predict_proba(NodeFeatures(rows)), shares)
        assert np.array_equal(model.predict_proba(NodeFeatures(rows)[5:75:7]), shares[5:75:7])


# Columns that may have been made from the labels.


def found_leaks(X, y, missing=None):
    """Return the warnings about columns c0, c1, ...; y has classes, or NaN and numbers."""
    at = np.flatnonzero(y == y) if y.dtype.kind == "f" else np.flatnonzero(y >= 0)
    values = y[at, np.newaxis] if y.dtype.kind == "f" else np.eye(y.max() + 1)[y[at]]
    labels = NodeLabels(at, values, np.ones(len(at)))
    missing = np.zeros(len(y), dtype=bool) if missing is None else missing
    names = [f"c{column}" for column in range(X.shape[1])]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_leaks(X, labels, missing, names)
    return [str(warning.message).partition(";")[0] for warning in found]


MARK = (
    "labelled nodes have other values than all unlabelled ones, which have the same, in the column"
)
COPY = "all labels of a class, or nearly all, have the same value in the column"


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_columns_made_from_labels(form):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 1000)
    y = np.where(np.arange(1000) % 10 == 0, truth, -1)
    noise = rng.standard_normal(1000)
    wrong = np.where(np.arange(1000) == 500, 1 - truth, truth)  # of one label
    columns = [noise, y >= 0, y, np.where(y >= 0, noise, 0), truth, wrong, noise > 0, truth + noise]
    said = found_leaks(form(np.column_stack(columns).astype(float)), y)
    assert said == [f"{MARK}s 'c1', 'c2', 'c3'", f"{COPY}s 'c4', 'c5'"]
    numbers = np.where(y >= 0, noise + 1, np.nan)
    columns = [3 - 2 * noise, noise**3, np.where(y >= 0, noise, 7), rng.standard_normal(1000)]
    said = found_leaks(form(np.column_stack(columns)), numbers)
    linear = "the labels are a linear function of values in the column 'c0'"
    assert said == [f"{MARK} 'c2'", linear]


def test_columns_that_are_so_by_accident():
    """Few labels agree with some of many columns; all of few nodes have another value than one."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(400) < 10, np.arange(400) % 2, -1)
    X = rng.integers(0, 2, (400, 3000)).astype(float)
    assert (X[:10] == y[:10, np.newaxis]).all(axis=0).any()
    assert found_leaks(X, y) == []
    assert found_leaks(rng.standard_normal((11, 50)), y[:11]) == []
    assert found_leaks(np.ones((400, 2)), y) == []
    some = np.full(400, -1)
    some[:20] = np.arange(20)  # one label of each class
    assert found_leaks(rng.standard_normal((400, 5)), some) == []
    assert found_leaks(rng.integers(0, 3, (400, 5)).astype(float), some) == []
    # A table with rows of labelled nodes only marks nothing.
    missing = y < 0
    assert found_leaks(np.where(missing, 0.5, rng.random(400))[:, np.newaxis], y, missing) == []
