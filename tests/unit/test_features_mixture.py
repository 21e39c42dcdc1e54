"""The experts for features and graph, their weights, and what they are computed from."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from ohmlearn import (
    Graph,
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    HFSClassifier,
    NodeFeatures,
    gallery,
)
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.features.expert_tasks import MOST_RATIO, SHRINKAGE, Classes, Values
from ohmlearn.features.experts import (
    CORRECT_GAMMA,
    FEATURES,
    GRAPH,
    LABEL_WEIGHT,
    Experts,
    Variant,
)
from ohmlearn.features.feature_answers import GraphUse
from ohmlearn.features.homophily import Homophily, measure_homophily
from ohmlearn.features.mixture import fit_mixture, split_labels
from ohmlearn.features.scaled_features import ScaledFeatures

N = 160
TRUTH = np.repeat([0, 1], N // 2)
BLOCKS = gallery.stochastic_blocks([N // 2, N // 2], p=0.1, bridges=40, random_state=0)


def random_graph(n, n_edges, seed=0, n_nodes=None):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, n_edges))
    return Graph.from_edges(u, v, rng.random(n_edges) + 0.1, n_nodes=n_nodes or n)


def opposites(n, n_edges, seed=0):
    """A graph whose edges join nodes of different halves."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n // 2, (2, n_edges))
    return Graph.from_edges(u, v + n // 2)


def noise(seed=0, n=N, n_columns=4):
    return np.random.default_rng(seed).standard_normal((n, n_columns))


def some_labels(truth=TRUTH, share=0.4, seed=1):
    chosen = np.random.default_rng(seed).random(len(truth)) < share
    return np.where(chosen, truth, -1)


def make_experts(graph, X, task=None, estimator=None):
    task = Classes(2) if task is None else task
    estimator = LogisticRegression() if estimator is None else estimator
    return Experts(graph, graph.degrees, ScaledFeatures(X), task, (estimator,), seed=0)


def as_labels(y):
    nodes = np.flatnonzero(y >= 0)
    return NodeLabels(nodes, np.eye(2)[y[nodes]], np.ones(len(nodes)))


# Weights.


def test_weight_goes_to_the_graph_if_features_are_noise():
    y = some_labels()
    model = GraphFeatureClassifier(graph=BLOCKS, random_state=0).fit(noise(), y)
    assert model.weights_["features"] < 0.01
    assert model.weights_["graph"] > 0.25
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert np.mean(model.transduction_ == TRUTH) > 0.97
    use = model.graph_use_
    assert use.helps
    assert use.loss_with < 0.3 < 0.6 < use.loss_without
    assert use.homophily.labels > 0.4
    assert abs(use.homophily.features) < 0.1
    assert "The graph helps" in str(use)


def test_graph_that_does_not_help_is_left_out():
    y = some_labels()
    X = noise() + 1.5 * TRUTH[:, np.newaxis]
    graph = random_graph(N, 600)
    with pytest.warns(UserWarning, match="the graph does not help"):
        model = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
    assert model.weights_ == {"features": 1.0, "both": 0, "graph": 0}
    assert not model.graph_use_.helps
    assert "The graph does not help" in str(model.graph_use_)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = LogisticRegression(C=0.3, max_iter=1000).fit(scaled[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(model.transduction_[y < 0], alone.predict(scaled)[y < 0])
    np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])  # given labels are kept
    values = np.where(y < 0, np.nan, X[:, 0] + X[:, 1] + noise(5)[:, 0])
    with pytest.warns(UserWarning, match="the graph does not help"):
        numbers = GraphFeatureRegressor(graph=graph, random_state=0).fit(X, values)
    ridge = Ridge().fit(scaled[y >= 0], values[y >= 0])
    np.testing.assert_allclose(numbers.transduction_, ridge.predict(scaled), atol=1e-9)


@pytest.mark.parametrize("estimator", [GraphFeatureClassifier, GraphFeatureRegressor])
def test_graph_without_edges(estimator):
    y = some_labels()
    y = y if estimator is GraphFeatureClassifier else np.where(y < 0, np.nan, y)
    X = noise() + TRUTH[:, np.newaxis]
    graph = Graph.from_edges([], [], n_nodes=N)
    with pytest.warns(UserWarning, match="the graph does not help"):
        model = estimator(graph=graph, random_state=0).fit(X, y)
    assert model.weights_["features"] == 1.0
    other = np.isnan(y) | (y == -1)  # labelled nodes keep their labels
    np.testing.assert_allclose(model.transduction_[other], model.predict(X)[other])


def test_graph_of_opposites():
    y = some_labels()
    X = noise() + 1.5 * TRUTH[:, np.newaxis]
    graph = opposites(N, 600)
    with pytest.warns(UserWarning, match="the graph does not help"):
        model = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
    assert model.graph_use_.homophily.labels < -0.1
    assert np.mean(model.transduction_ == TRUTH) > 0.9


def test_better_than_each_part():
    """Features and graph together know more than each of them."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 60)
    graph = gallery.stochastic_blocks([60] * 4, p=0.06, bridges=120, random_state=0)
    X = np.eye(4)[truth] + 0.8 * rng.standard_normal((240, 4))
    y = some_labels(truth, 0.15)
    both = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
    by_graph = HFSClassifier(epsilon=None, random_state=0).fit_edges(graph, y).transduction_
    alone = both.predict(X)
    unknown = y < 0
    right, graph_right, alone_right = (
        np.mean(found[unknown] == truth[unknown]) for found in (both.transduction_, by_graph, alone)
    )
    assert right > max(graph_right, alone_right)


def test_graph_alone_is_hfs():
    y = some_labels(share=0.1)
    experts = make_experts(BLOCKS, noise())
    found = experts.by_graph(as_labels(y))
    hfs = HFSClassifier(epsilon=None, calibration=None, random_state=0).fit_edges(BLOCKS, y)
    np.testing.assert_array_equal(found.argmax(axis=1), hfs.transduction_)


def test_parameters_choose_the_variants():
    labels, experts = as_labels(some_labels()), make_experts(BLOCKS, noise())

    def variants(**steps):
        options = {"gamma": 9.0, "correct": None, "spread": None, "mix": True, "n_folds": 2}
        options["homophily"] = 0.5
        return set(fit_mixture(experts, labels, **options | steps)[0].losses)

    plain = Variant("both")
    assert variants(correct=False, spread=False) == {plain, FEATURES, GRAPH}
    assert variants(correct=False, spread=False, mix=False) == {plain}
    assert variants(correct=True, spread=False, mix=False) == {Variant("both", True)}
    assert all(v.spread > 0 and v.kind == "both" for v in variants(spread=True, mix=False))
    assert len(variants(mix=False)) == 6


def test_steps_switched_off_is_the_estimator_on_smoothed_features():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    options = {"correct": False, "spread": False, "mix": False, "random_state": 0}
    model = GraphFeatureClassifier(graph=BLOCKS, gamma=4.0, **options).fit(X, y)
    smoothed = make_experts(BLOCKS, X).smooth_features(4.0)
    alone = LogisticRegression(C=0.3, max_iter=1000).fit(smoothed[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(model.transduction_[y < 0], alone.predict(smoothed)[y < 0])
    assert model.weights_ == {"features": 0, "both": 1.0, "graph": 0}
    assert model.gamma_ == 4.0
    use = GraphFeatureClassifier(graph=BLOCKS, random_state=0).fit(X, y).graph_use_
    assert model.graph_use_.loss_without == pytest.approx(use.loss_without)
    plain = GraphFeatureClassifier(graph=BLOCKS, gamma=0, **options).fit(X, y)
    np.testing.assert_array_equal(plain.transduction_[y < 0], plain.predict(X)[y < 0])


def test_seed_and_threads():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    first = GraphFeatureClassifier(graph=BLOCKS, random_state=3, n_jobs=1).fit(X, y)
    second = GraphFeatureClassifier(graph=BLOCKS, random_state=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)


# Steps of the expert for both.


def test_spread_solves_its_quadratic_problem():
    graph = random_graph(40, 120, n_nodes=42)  # two nodes without edges
    rng = np.random.default_rng(2)
    experts = make_experts(graph, noise(n=42), Values(), Ridge())
    nodes = np.array([3, 8, 30, 41])
    labels = NodeLabels(nodes, rng.standard_normal((4, 1)), np.array([1.0, 2.0, 0.5, 0.5]))
    answers = rng.standard_normal((42, 1))
    for gamma in (4.0, 250.0):
        # Zero is the gradient of d (f - a)^2 + LABEL_WEIGHT gamma d (f - y)^2 + gamma f' L f.
        sizes = np.where(graph.degrees > 0, graph.degrees, 1.0)
        pull = np.zeros(42)
        pull[nodes] = LABEL_WEIGHT * gamma * labels.weights * sizes[nodes]
        given = np.zeros((42, 1))
        given[nodes] = labels.values
        matrix = np.diag(sizes + pull) + gamma * graph.laplacian().toarray()
        right = sizes[:, np.newaxis] * answers + pull[:, np.newaxis] * given
        expected = np.linalg.solve(matrix, right)
        found = experts.spread([answers, 2.0 * answers], labels, gamma)
        np.testing.assert_allclose(found[0], expected, atol=1e-4)
        assert np.abs(found[1] - found[0]).max() > 0.01


def spread_errors(graph, nodes, given):
    """Return smoothed columns with the given rows at some nodes, by the dense formula."""
    roots = np.sqrt(graph.degrees)[:, np.newaxis]
    columns = np.zeros((graph.n_nodes, given.shape[1]))
    columns[nodes] = given
    matrix = np.diag(graph.degrees) + CORRECT_GAMMA * graph.laplacian().toarray()
    return roots * np.linalg.solve(matrix, roots * columns)


def test_corrected_numbers_get_the_mean_error_nearby():
    graph = random_graph(40, 200)
    experts = make_experts(graph, noise(n=40), Values(), Ridge())
    nodes, errors = np.array([0, 7, 20]), np.array([[1.0], [-2.0], [0.5]])
    labels = NodeLabels(nodes, errors, np.ones(3))
    answers = noise(3, 40, 1)
    found = experts.correct(answers.copy(), labels, errors) - answers
    spread = spread_errors(graph, nodes, np.hstack([errors, np.ones((3, 1))]))
    near = spread[:, 1:] + SHRINKAGE * spread[nodes, 1].mean()
    np.testing.assert_allclose(found, spread[:, :1] / near, atol=1e-3)
    nothing = experts.correct(answers.copy(), labels, np.zeros((3, 1)))
    np.testing.assert_allclose(nothing, answers)


def test_corrected_probabilities_keep_the_direction_and_the_mean_size_of_errors():
    task = Classes(2)
    labels = NodeLabels(np.array([0, 1]), np.eye(2), np.ones(2))
    errors = np.array([[0.3, -0.3], [-0.1, 0.1]])
    spread = np.array([[0.02, -0.02], [-0.4, 0.4], [1e-9, -1e-9]])
    found = task.scale_errors(spread, np.ones((3, 1)), errors, labels)
    np.testing.assert_allclose(found[:2], [[0.2, -0.2], [-0.2, 0.2]])
    np.testing.assert_allclose(found[2], spread[2])  # far from all labels
    assert MOST_RATIO * 2e-9 < 0.4


def test_rows_of_many_smoothed_features_have_the_same_length():
    graph = random_graph(60, 100, n_nodes=63)
    X = noise(n=63, n_columns=40)
    experts = make_experts(graph, X)
    smoothed = experts.smooth_features(9.0)
    lengths = np.linalg.norm(smoothed, axis=1)
    np.testing.assert_allclose(lengths, experts.features.size)
    some = np.array([61, 5, 17])  # fewer rows than columns are solved for in another way
    np.testing.assert_allclose(experts.smooth_features(9.0, some), smoothed[some], atol=1e-3)
    own = experts.features.rows(slice(None))
    alone = np.flatnonzero(graph.degrees == 0)  # these keep their directions
    cosines = np.einsum("ij,ij->i", own[alone], smoothed[alone])
    np.testing.assert_allclose(cosines, np.linalg.norm(own[alone], axis=1) * lengths[alone])


def test_few_smoothed_features_are_weighted_means():
    graph = random_graph(60, 200)
    experts = make_experts(graph, noise(n=60))
    found = experts.smooth_features(9.0)
    own = experts.features.rows(slice(None))
    matrix = np.diag(graph.degrees) + 9.0 * graph.laplacian().toarray()
    weights = np.linalg.inv(matrix)  # of nodes, each with the root of its degree and one over it
    means = weights @ own / weights.sum(axis=1, keepdims=True)
    means *= experts.features.size / np.sqrt(np.sum(means.var(axis=0)))
    np.testing.assert_allclose(found, means, atol=2e-3)
    np.testing.assert_allclose(np.sum(found.var(axis=0)), experts.features.size**2, rtol=1e-6)


def test_folds():
    groups = np.repeat([0, 1, 2], [20, 10, 5])
    folds = split_labels(groups, 5, seed=0)
    for group, size in enumerate((4, 2, 1)):
        np.testing.assert_array_equal(np.bincount(folds[groups == group], minlength=5), size)
    assert np.bincount(split_labels(np.zeros(3, dtype=int), 5, seed=0)).tolist() == [1, 1, 1]


# Tasks.


def test_temperature_finds_how_sure_answers_should_be():
    rng = np.random.default_rng(0)
    logits = rng.uniform(-2, 2, (2000, 1)) * [[1.0, -1.0]]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (rng.random(2000) < shares[:, 1]).astype(int)
    labels = NodeLabels(np.arange(2000), np.eye(2)[codes], np.ones(2000))
    task = Classes(2)
    assert task.find_temperature(shares, labels) == pytest.approx(1.0, abs=0.15)
    too_sure = shares**3 / (shares**3).sum(axis=1, keepdims=True)
    assert task.find_temperature(too_sure, labels) == pytest.approx(3.0, abs=0.45)
    mended = task.apply_temperature(too_sure, 3.0)
    np.testing.assert_allclose(mended, 0.99 * shares + 0.005, atol=1e-6)


def test_class_that_a_fold_does_not_have():
    labels = NodeLabels(np.arange(4), np.eye(3)[[0, 0, 2, 2]], np.ones(4))
    predict = Classes(3).fit(LogisticRegression(), np.array([[0.0], [0.1], [1.0], [1.1]]), labels)
    answers = predict(np.array([[0.0], [1.0]]))
    assert answers.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_array_equal(answers[:, 1], 0.0)


# Homophily.


def homophily(graph, X, y):
    return measure_homophily(make_experts(graph, X), as_labels(y), 5)


def test_homophily():
    cliques = gallery.disjoint_union(gallery.complete(20), gallery.complete(20))
    truth = np.repeat([0, 1], 20)
    X = np.column_stack([truth, np.ones(40)]).astype(float)  # a constant column has no influence
    perfect = homophily(cliques, X, truth)
    assert perfect.labels == pytest.approx(1.0)
    assert perfect.features == pytest.approx(1.0)
    chance = homophily(random_graph(N, 1000), noise(), np.random.default_rng(4).permutation(TRUTH))
    assert abs(chance.labels) < 0.1
    assert abs(chance.features) < 0.1
    half = gallery.disjoint_union(gallery.path(2), gallery.path(2))
    ends = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert homophily(half, ends, np.array([0, 1, 0, 1])).features == pytest.approx(-1.0)
    assert homophily(opposites(N, 600), noise(), TRUTH).labels < -0.1
    nothing = homophily(Graph.from_edges([], [], n_nodes=N), noise(), TRUTH)
    assert np.isnan(nothing.features)
    assert "not known" in str(nothing)


def test_homophily_of_numbers():
    graph, X = gallery.path(100), noise(n=100)
    experts = make_experts(graph, X, Values(), Ridge())

    def of(values):
        labels = NodeLabels(np.arange(100), values[:, np.newaxis], np.ones(100))
        return measure_homophily(experts, labels, 5).labels

    assert of(np.linspace(0, 1, 100)) > 0.95
    assert abs(of(noise(n=100, n_columns=1)[:, 0])) < 0.25
    assert np.isnan(of(np.ones(100)))


# Nodes that labels do not reach.


def test_unreached_nodes():
    y, X = some_labels(), noise() + 2.0 * TRUTH[:, np.newaxis]
    graph = gallery.disjoint_union(BLOCKS, BLOCKS)
    n = graph.n_nodes
    graph = Graph.from_edges(*graph.edges(), n_nodes=n + 20)
    alone = np.arange(n, n + 20)
    truth = np.concatenate([TRUTH, TRUTH, np.repeat([0, 1], 10)])
    X = np.vstack([X, X, noise(7, 20) + 2.0 * truth[alone, np.newaxis]])
    labels = np.concatenate([y, np.full(N + 20, -1)])
    model = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, labels)
    assert model.reached_.tolist() == [True] * N + [False] * (N + 20)
    np.testing.assert_allclose(model.label_distributions_[alone], model.predict_proba(X[alone]))
    assert np.mean(model.transduction_[N:n] == TRUTH) > 0.95  # from smoothed features
    only = np.full(n + 20, -1)
    only[alone] = truth[alone]  # labels on isolated nodes only
    found = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, only)
    assert np.mean(found.transduction_ == truth) > 0.9


def test_probabilities_of_nodes_are_those_of_their_rows():
    y, X = some_labels(), noise()
    graph = Graph.from_edges(*BLOCKS.edges(), n_nodes=N + 5)
    X = np.vstack([X, noise(8, 5)])
    model = GraphFeatureClassifier(graph=graph, random_state=0)
    model.fit(X, np.append(y, np.full(5, -1)))
    found = model.predict_proba(NodeFeatures(X))
    np.testing.assert_array_equal(found, model.label_distributions_)
    np.testing.assert_allclose(found[N:], model.predict_proba(X[N:]))  # the estimator alone
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


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
    [
        (0.5, "The graph helps:"),
        (0.98, "It is not clear whether the graph helps:"),
        (1.1, "The graph does not help:"),
    ],
)
def test_verdict_depends_on_the_losses(loss_with, verdict):
    use = GraphUse(loss_with < 0.9, loss_with, 1.0, 0.05, Homophily(0.1, 0.1))
    assert str(use).startswith(verdict)


# Estimates from labels that are left out.


@pytest.mark.parametrize("has_classes", [True, False])
def test_estimates_do_not_see_the_labels_they_are_about(monkeypatch, has_classes):
    """Other labels in a fold change the mixture, but no answer for the labels of that fold."""
    folds = np.arange(30) % 5
    monkeypatch.setattr("ohmlearn.features.mixture.split_labels", lambda *_: folds)
    rng = np.random.default_rng(1)
    task, estimator = (Classes(2), LogisticRegression()) if has_classes else (Values(), Ridge())
    experts = make_experts(random_graph(120, 400), noise(n=120), task, estimator)
    options = {"gamma": 9.0, "correct": None, "spread": None, "mix": True, "n_folds": 5}
    options["homophily"] = 0.5

    def fit(values):
        labels = NodeLabels(np.arange(30), values, np.ones(30))
        return fit_mixture(experts, labels, **options)[0]

    values = np.eye(2)[rng.permutation(30) % 2] if has_classes else rng.standard_normal((30, 1))
    before = fit(values)
    values[folds == 2] = 1.0 - values[folds == 2]
    after = fit(values)
    assert before.weights != after.weights
    np.testing.assert_array_equal(before.left_out[folds == 2], after.left_out[folds == 2])
    assert (before.left_out[folds != 2] != after.left_out[folds != 2]).any(axis=1).all()


def test_estimator_that_needs_more_labels_than_estimates_have():
    """It can be fitted to eight of ten labels, but not to six."""
    y = np.full(N, -1)
    y[[0, 1, 2, 3, 4, -5, -4, -3, -2, -1]] = np.repeat([0, 1], 5)
    X = noise() + 4 * TRUTH[:, np.newaxis]
    model = GraphFeatureClassifier(KNeighborsClassifier(7), BLOCKS, random_state=0)
    with pytest.warns(UserWarning, match=r"too high: KNeighborsClassifier failed with 6 labels"):
        model.fit(X, y)
    assert model.accuracy_estimate_.n_labels == 10
