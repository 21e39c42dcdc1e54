"""Weighted, soft and several labels against dense solutions and against each other."""

import warnings

import networkx
import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from ohmlearn import Graph, gallery, read_edges, suggest_neighbors
from ohmlearn.estimators import HFSClassifier, HFSRegressor

KARATE = Graph.from_networkx(networkx.karate_club_graph())


def uncalibrated(**parameters):
    return HFSClassifier(calibration=None, **parameters)


def dense_scores(graph, labelled, Y, s, gamma, stable):
    A = gamma * s.sum() * graph.laplacian().toarray()
    A[labelled, labelled] += s
    K = np.linalg.inv(A)
    b = np.zeros((graph.n_nodes, Y.shape[1]))
    b[labelled] = s[:, np.newaxis] * Y
    if stable:
        b = b - (K @ b).sum(axis=0) / K.sum()
    return K @ b


def assert_same_answers(model, other):
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.class_prior_, other.class_prior_, rtol=1e-14)
    assert model.gamma_ == pytest.approx(other.gamma_, rel=1e-14)
    np.testing.assert_allclose(model.scores_, other.scores_, atol=1e-9)
    np.testing.assert_allclose(model.label_distributions_, other.label_distributions_, atol=1e-7)


@pytest.mark.parametrize("normalization", ["stable", "cmn", None])
def test_scores_are_the_dense_ones(normalization):
    y = {0: "x", 33: {"x": 1, "y": 3}, 5: ["y", "y", "y"], 16: "z"}
    model = uncalibrated(epsilon=None, gamma=0.3, normalization=normalization)
    model.fit_edges(KARATE, y, sample_weight={33: 2.0, 5: 0.5, 16: 0.25})
    Y = np.array([[1, 0, 0], [0.25, 0.75, 0], [0, 1, 0], [0, 0, 1.0]])
    s = np.array([1.0, 2.0, 1.5, 0.25])
    expected = dense_scores(KARATE, [0, 33, 5, 16], Y, s, 0.3, normalization == "stable")
    np.testing.assert_allclose(model.scores_, expected, atol=1e-7)
    masses = s @ Y
    np.testing.assert_allclose(model.class_prior_, masses / masses.sum())
    assert model.labelled_.tolist() == [0, 33, 5, 16]
    assert model.classes_.tolist() == ["x", "y", "z"]
    if normalization == "stable":  # the graph is connected
        centred = (expected - expected.mean(axis=0)) / np.sqrt(masses)
        centred /= np.sqrt(np.mean((centred - centred.mean(axis=1, keepdims=True)) ** 2))
        shares = np.exp(centred)
    elif normalization == "cmn":
        shares = expected * masses / expected.sum(axis=0)
    else:
        shares = expected
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_, shares, atol=1e-6)
    best = (expected / np.sqrt(masses) if normalization == "stable" else shares).argmax(axis=1)
    assert model.transduction_.tolist() == model.classes_[best].tolist()


@pytest.mark.parametrize("epsilon", [None, 0.8])
@pytest.mark.parametrize("gamma", ["auto", 0.2])
def test_a_weight_is_a_number_of_labels(gamma, epsilon):
    def fit(y, sample_weight=None):
        model = uncalibrated(gamma=gamma, epsilon=epsilon, random_state=0)
        return model.fit_edges(KARATE, y, sample_weight=sample_weight)

    twice = fit({0: ["a", "a"], 33: "b", 9: ("b", "b", "b")})
    assert_same_answers(twice, fit({0: "a", 33: "b", 9: "b"}, {0: 2.0, 9: 3.0}))
    y = np.full(34, None)
    weights = np.full(34, 7.0)  # those of unlabelled nodes do not matter
    y[[0, 33, 9, 20]], weights[[0, 33, 9, 20]] = ["a", "b", "b", "a"], [2.0, 1.0, 3.0, 0.0]
    assert_same_answers(twice, fit(y, weights))
    assert_same_answers(twice, fit({0: "a", 33: "b", 9: "b"}).relabel(y, sample_weight=weights))
    # Shares are numbers of labels, too.
    with pytest.warns(UserWarning, match="contradicting"):
        several = fit({0: ["a", "b", "b"], 33: {"b"}})
    assert_same_answers(several, fit({0: {"a": 1, "b": 2}, 33: "b"}, {0: 3.0}))


def test_a_matrix_has_a_distribution_for_each_node():
    rows = {0: [2.0, 0.0, 0.0], 33: [0.0, 0.5, 0.5], 9: [0.0, 0.0, 1e-9]}
    matrix = np.zeros((34, 3))
    matrix[3] = np.nan
    for node, row in rows.items():
        matrix[node] = row
    model = uncalibrated(epsilon=None, gamma=0.2)
    by_number = model.fit_edges(KARATE, matrix).label_distributions_
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.labelled_.tolist() == [0, 9, 33]
    entries = {node: dict(enumerate(row)) for node, row in rows.items()}
    by_dict = uncalibrated(epsilon=None, gamma=0.2).fit_edges(KARATE, entries)
    np.testing.assert_allclose(by_dict.label_distributions_, by_number, atol=1e-9)
    hard = {0: 0, 33: 1, 9: 2}
    one_hot = np.zeros((34, 3))
    one_hot[list(hard), list(hard.values())] = 1
    as_array = np.full(34, -1)
    as_array[list(hard)] = list(hard.values())
    np.testing.assert_array_equal(  # bit by bit
        model.fit_edges(KARATE, one_hot).scores_, model.fit_edges(KARATE, as_array).scores_
    )


def test_columns_of_a_table_are_the_classes(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"spam": [1.0, 0.0, 0.2], "ham": [0.0, 1.0, 0.8], "no": [0.0] * 3})
    model = uncalibrated(epsilon=None).fit_edges(gallery.path(3), table)
    assert model.classes_.tolist() == ["spam", "ham", "no"]
    assert model.label_distributions_[:, 2].tolist() == [0.0] * 3  # nobody says so
    assert model.transduction_.tolist() == ["spam", "ham", "ham"]
    # With ids, the index has the nodes; the same holds for weights.
    (tmp_path / "e.csv").write_text("u,v\nann,bob\nbob,cy\ncy,dan\n")
    table.index = ["ann", "dan", "cy"]
    named = uncalibrated(epsilon=None).fit_edges(
        read_edges(tmp_path / "e.csv"), table, sample_weight=pandas.Series({"dan": 2.0})
    )
    assert named.labelled_.tolist() == [0, 2, 3]
    assert named.problem_.labels.weights.tolist() == [1.0, 1.0, 2.0]
    # A table with one column has labels, and an index may have a node several times.
    column = pandas.DataFrame({"label": ["spam", "ham"]}, index=["ann", "dan"])
    with pytest.warns(DataConversionWarning):
        named.relabel(column)
    assert named.classes_.tolist() == ["ham", "spam"]
    index = ["ann", "dan", "ann"]
    named.relabel(
        pandas.Series(["spam", "ham", "spam"], index=index),
        sample_weight=pandas.Series([1.0, 2.0, 0.5], index=index),
    )
    assert named.labelled_.tolist() == [0, 3]
    assert named.problem_.labels.weights.tolist() == [1.5, 2.0]


def test_contradictions_are_reported(tmp_path):
    (tmp_path / "e.csv").write_text("u,v\nann,bob\nbob,cy\ncy,dan\n")
    y = {"dan": ["spam", "ham"], "bob": ["ham", "ham", "spam"], "ann": ["ham", "ham"]}
    text = "^2 nodes have contradicting labels, such as 'bob': ham 2, spam 1; each counts by its"
    with pytest.warns(UserWarning, match=text) as caught:
        model = uncalibrated(epsilon=None).fit_edges(read_edges(tmp_path / "e.csv"), y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.contradicting_.tolist() == [1, 3]
    np.testing.assert_allclose(model.problem_.columns, [[1, 0], [2 / 3, 1 / 3], [0.5, 0.5]])
    assert model.problem_.labels.weights.tolist() == [2.0, 3.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.relabel({"dan": ["spam", "spam"], "bob": {"ham": 0.5, "spam": 0.5}})
        assert model.contradicting_.tolist() == []
        # A label of weight 0 contradicts nothing.
        weights = {"dan": [1.0, 0.0]}
        model.relabel({"dan": ["spam", "ham"], "bob": "ham"}, sample_weight=weights)
    assert model.contradicting_.tolist() == []
    with pytest.warns(UserWarning, match="1 node has contradicting labels, such as 0: a 1, b 2;"):
        uncalibrated(epsilon=None).fit(np.eye(5), {0: ["b", "a", "b"], 3: "a"})


def test_numbers_of_a_node_are_averaged():
    def fit(y, sample_weight=None):
        return HFSRegressor(epsilon=None).fit_edges(KARATE, y, sample_weight=sample_weight)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        several = fit({0: [1.0, 2.0, None, 6.0], 33: 5.0})
    weighted = fit({0: 3.0, 33: 5.0}, {0: 3.0})
    assert several.mean_ == pytest.approx(3.5)
    assert several.gamma_ == weighted.gamma_
    np.testing.assert_allclose(several.transduction_, weighted.transduction_, atol=1e-9)
    s = np.array([3.0, 1.0])
    Y = np.array([[-0.5], [1.5]])
    expected = 3.5 + dense_scores(KARATE, [0, 33], Y, s, several.gamma_, False)
    np.testing.assert_allclose(several.transduction_, expected[:, 0], atol=1e-7)
    y = np.array([3.0, *[np.nan] * 32, 5.0])
    weights = np.where(np.arange(34) == 0, 3.0, 1.0)
    np.testing.assert_array_equal(fit(y, weights).transduction_, weighted.transduction_)


def test_passes_over_the_edges_and_updates_keep_the_weights():
    graph = gallery.complete(200)
    y, weights = {0: "a", 1: ["b", "b"], 2: "a"}, {0: 3.0}
    model = uncalibrated(epsilon=0.9, passes=25, tol=1e-8, random_state=0)
    model.fit_edges(graph, y, sample_weight=weights)
    assert model.n_iter_ > 2
    exact = uncalibrated(epsilon=None).fit_edges(graph, y, sample_weight=weights)
    np.testing.assert_allclose(model.scores_, exact.scores_, atol=1e-6 * np.ptp(exact.scores_))
    exact.update(([0, 5], [1, 6]))
    s, Y = np.array([3.0, 2.0, 1.0]), np.array([[1, 0], [0, 1], [1, 0.0]])
    expected = dense_scores(exact.graph_, [0, 1, 2], Y, s, exact.gamma_, True)
    np.testing.assert_allclose(exact.scores_, expected, atol=1e-7)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([0, 1, -1], [1, -2, 1], r"but sample_weight\[1\] = -2.0; the weight 0 means"),
        ([0, 1, -1], [1, np.nan, 1], r"but sample_weight\[1\] = nan"),
        ([0, 1, -1], [1, 1], r"one entry for each of the 3 entries of y, got shape \(2,\)"),
        ([0, 1, -1], [[1], [1], [1]], r"got shape \(3, 1\)"),
        ([0, 1, -1], ["a", "b", "c"], "sample_weight must be numbers"),
        ([0, 1, -1], {0: 2.0}, "y is an array, so sample_weight must be an array with one weight"),
        ({0: 0, 1: 1}, [1, 2], r"y is given by node, so sample_weight must be a dict {node"),
        ({0: 0, 1: 1}, {1: [1, 2]}, r"sample_weight\[1\] must be one number, or a list with one"),
        ({0: [0, 0], 1: 1}, {0: [1, 2, 3]}, r"for each label of the node, got \[1, 2, 3\]"),
        ({0: {0: 0.5, 1: 0.5}}, {0: [1, 2]}, r"sample_weight\[0\] must be one number"),
        ({0: 0, 1: 1}, {"0": 1}, r"sample_weight has no node of y; it has '0', and y has \[0\]"),
        ({0: 0, 1: 1}, {0: 0, 1: 0}, "y has no label: .* zero weight"),
        ({0: {"a": -1, "b": 2}}, None, "must be finite and not negative, but a proportion is -1.0"),
        ({0: {"a": "x"}, 1: "b"}, None, "must have numbers as class proportions"),
        ({0: [], 1: {}}, None, "y has no label"),
        ([[1, 0], [0, -1], [0, 0]], None, "the proportion in row 1, column 1, is -1.0; unlabelled"),
        ([[1, 0], [0, np.nan], [0, 0]], None, "the proportion in row 1, column 1, is nan"),
        (
            [["a", "b", "c"], ["a", "b", "c"], ["a", "c", "b"]],
            None,
            "must have numbers as class proportions",
        ),
        ([[0, 0], [0, 0], [np.nan, np.nan]], None, "y has no label"),
    ],
)
def test_what_is_refused(y, weights, message):
    model = uncalibrated(epsilon=None)
    with pytest.raises(ValueError, match=message):
        model.fit_edges(gallery.path(3), y, sample_weight=weights, n_nodes=3)


def test_what_regressors_and_advice_refuse():
    for y, why in (
        ({0: {1: 0.5, 2: 0.5}}, "a value must be a number or a list of numbers"),
        (np.eye(3), "y should be a 1d array"),
        ([None, np.nan, None], "y has no value"),
        (["a", "b", "c"], "y must be numbers, None or NaN"),
    ):
        with pytest.raises(ValueError, match=why):
            HFSRegressor(epsilon=None).fit_edges(gallery.path(3), y)
    with pytest.raises(ValueError, match="y must have at most one label for each node here"):
        suggest_neighbors(np.eye(4), np.eye(4))
