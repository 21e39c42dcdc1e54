"""The stack of experts for features and graph: scales, weights, and honest estimates."""

import numpy as np
import pytest
import scipy.sparse
from refuses import refuses
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
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
from ohmlearn.features.expert_tasks import PRIOR, Classes, Numbers
from ohmlearn.features.experts import Experts, ScaledFeatures
from ohmlearn.features.feature_problem import FeatureProblem, KnownGraph
from ohmlearn.features.stacking import (
    fit_stack,
    measure_homophily,
    split_labels,
)

N = 160
TRUTH = np.repeat([0, 1], N // 2)
BLOCKS = gallery.stochastic_blocks([N // 2, N // 2], p=0.1, bridges=40, random_state=0)


def random_graph(n, n_edges, seed=0, n_nodes=None):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, n_edges))
    return Graph.from_edges(u, v, rng.random(n_edges) + 0.1, n_nodes=n_nodes or n)


def noise(seed=0, n=N, n_columns=4):
    return np.random.default_rng(seed).standard_normal((n, n_columns))


def some_labels(truth=TRUTH, share=0.4, seed=1):
    chosen = np.random.default_rng(seed).random(len(truth)) < share
    return np.where(chosen, truth, -1)


def as_labels(y):
    nodes = np.flatnonzero(y >= 0)
    return NodeLabels(nodes, np.eye(2)[y[nodes]], np.ones(len(nodes)))


def fit(X, y, graph=BLOCKS):
    return GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)


def make_experts(graph, X, labels, task=None):
    known = KnownGraph(graph, graph.degrees, None, None)
    problem = FeatureProblem(known, X, np.zeros(len(X), dtype=bool), labels=labels)
    task = Classes(2) if task is None else task
    return Experts(task, problem, estimator=None, gamma=9.0, seed=0)


# Scales and types of features, and of the weights of edges.


def test_dense_columns_are_standardised():
    X = noise() * [1.0, 1e-9, 1e6, 3.0] + [0.0, 1.0, -5e6, 2.0]
    scaled = ScaledFeatures(X)
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(scaled.rows(slice(None)), expected, atol=1e-6)
    np.testing.assert_allclose(scaled.columns(slice(1, 3)), expected[:, 1:3], atol=1e-6)
    assert scaled.size == pytest.approx(2.0)
    assert ScaledFeatures(X.astype(np.float32)).rows([0]).dtype == np.float32


def test_columns_of_extreme_numbers():
    X = noise()
    expected = ScaledFeatures(X).rows(slice(None))
    for power in (-990, -600, 600, 990):  # squares overflow or vanish
        found = ScaledFeatures(np.ldexp(X, power))
        np.testing.assert_allclose(found.rows(slice(None)), expected)
        assert found.size == pytest.approx(2.0)


@pytest.mark.slow
def test_constant_columns_have_no_influence():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    constant = np.column_stack([X, np.full(N, 0.1), np.zeros(N), np.full(N, 1e200)])
    found = [fit(features, y).label_distributions_ for features in (X, constant)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    alone = fit(np.ones((N, 2)), y)
    assert np.mean(alone.transduction_ == TRUTH) > 0.95  # the graph is left


def test_rare_columns_keep_their_scales_to_each_other():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [2.0 * (rng.random(400) < share) for share in (0.3, 0.1, 0.01)]
        + [200.0 * (rng.random(400) < 0.2)]
    )
    scaled = ScaledFeatures(X)
    np.testing.assert_allclose(scaled.scale, [2.0, 2.0, 2.0, 200.0])
    sparse = ScaledFeatures(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.scale, scaled.scale)
    np.testing.assert_allclose(sparse.columns(slice(0, 4)), scaled.columns(slice(0, 4)))
    # Rows for an estimator are not centred if they are sparse.
    shift = scaled.rows([0]) - sparse.rows([0]).toarray()
    np.testing.assert_allclose(shift[0], -X.mean(axis=0) / scaled.scale)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_types_of_features(dtype):
    y = some_labels()
    X = np.round(4 * (noise() + TRUTH[:, np.newaxis]))
    X = X > 0 if dtype is bool else X.astype(dtype)
    found, expected = fit(X, y), fit(X.astype(np.float64), y)
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=0.02)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)


def test_sparse_features_are_as_good_as_dense_ones():
    y = some_labels()
    words = 1.0 * (np.random.default_rng(0).random((N, 30)) < 0.05 + 0.15 * TRUTH[:, np.newaxis])
    dense, sparse = fit(words, y), fit(scipy.sparse.csr_array(words), y)
    # Smoothed features are the same; only the estimator on own features sees other rows.
    np.testing.assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=0.1)
    assert np.mean(sparse.transduction_ == TRUTH) > 0.95


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_scale_of_edge_weights_does_not_matter(scale):
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    u, v, w = BLOCKS.edges()
    graphs = BLOCKS, Graph.from_edges(u, v, scale * w, n_nodes=N)
    found = [fit(X, y, graph).label_distributions_ for graph in graphs]
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


def test_contrast_of_edge_weights():
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    graph = gallery.log_uniform_weights(BLOCKS, 12, random_state=0)
    model = fit(X, y, graph)
    assert np.isfinite(model.label_distributions_).all()
    assert np.mean(model.transduction_ == TRUTH) > 0.85
    tiny = Graph.from_edges(*BLOCKS.edges()[:2], np.full(BLOCKS.n_edges, 1e-300))
    with refuses(parameter="gamma"):
        fit(X, y, tiny)


# Weights.


def test_weight_goes_to_the_graph_if_features_are_noise():
    model = fit(noise(), some_labels())
    assert model.weights_["features"] < 0.05
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
    y, X = some_labels(share=0.6), noise() + 2.5 * TRUTH[:, np.newaxis]
    graph = random_graph(N, 600)
    with pytest.warns(UserWarning, match="the graph does not help"):
        model = fit(X, y, graph)
    assert model.weights_ == {"features": 1.0, "both": 0, "graph": 0}
    assert not model.graph_use_.helps
    assert "The graph does not help" in str(model.graph_use_)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = LogisticRegression(C=25 / 4).fit(scaled[y >= 0], y[y >= 0])  # rows of length 2
    np.testing.assert_array_equal(model.transduction_[y < 0], alone.predict(scaled)[y < 0])
    np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])  # given labels are kept
    values = np.where(y < 0, np.nan, X[:, 0] + X[:, 1] + noise(5)[:, 0])
    with pytest.warns(UserWarning, match="the graph does not help"):
        numbers = GraphFeatureRegressor(graph=graph, random_state=0).fit(X, values)
    ridge = Ridge().fit(scaled[y >= 0], values[y >= 0])
    np.testing.assert_allclose(numbers.transduction_, ridge.predict(scaled), atol=1e-9)


@pytest.mark.parametrize("estimator", [GraphFeatureClassifier, GraphFeatureRegressor])
def test_graph_without_edges(estimator):
    y, X = some_labels(), noise() + TRUTH[:, np.newaxis]
    y = y if estimator is GraphFeatureClassifier else np.where(y < 0, np.nan, y)
    graph = Graph.from_edges([], [], n_nodes=N)
    model = estimator(graph=graph, random_state=0).fit(X, y)
    other = np.isnan(y) | (y == -1)  # labelled nodes keep their labels
    np.testing.assert_allclose(model.transduction_[other], model.predict(X)[other])


def test_better_than_each_part():
    """Features and graph together know more than each of them."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 60)
    graph = gallery.stochastic_blocks([60] * 4, p=0.06, bridges=120, random_state=0)
    X = np.eye(4)[truth] + 0.8 * rng.standard_normal((240, 4))
    y = some_labels(truth, 0.15)
    both = fit(X, y, graph)
    by_graph = HFSClassifier(epsilon=None, random_state=0).fit_edges(graph, y).transduction_
    unknown = y < 0
    right, graph_right, alone_right = (
        np.mean(found[unknown] == truth[unknown])
        for found in (both.transduction_, by_graph, both.predict(X))
    )
    assert right > max(graph_right, alone_right)


def draw_answers(n=60, n_classes=3):
    rng = np.random.default_rng(0)
    labels = NodeLabels(
        np.arange(n), np.eye(n_classes)[rng.integers(0, n_classes, n)], rng.random(n) + 0.5
    )
    answers = rng.dirichlet(np.ones(n_classes), (3, n))
    answers[1] = 0.7 * answers[1] + 0.3 * labels.values  # this one knows something
    return answers, labels


def test_weights_of_classes_maximise_the_likelihood():
    answers, labels = draw_answers()
    found = Classes(3).find_weights(answers, labels)
    likelihood = np.einsum("eic,ic->ei", answers, labels.values)

    def loss(logits):
        w = np.exp(logits) / np.exp(logits).sum()
        return -labels.weights @ np.log(w @ likelihood) - PRIOR @ np.log(w + 1e-300)

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000}).x
    np.testing.assert_allclose(found, np.exp(best) / np.exp(best).sum(), atol=0.02)
    # A label says nothing of an expert that does not apply to it.
    answers[0] = np.nan
    without = Classes(3).find_weights(answers, labels)
    assert without[1] / without[2] == pytest.approx(found[1] / found[2], rel=0.5)
    assert without[0] < found[0] + 0.4


def test_weights_of_numbers_minimise_the_squared_error():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(200)
    answers = truth + rng.standard_normal((3, 200)) * [[0.5], [1.0], [4.0]]
    labels = NodeLabels(np.arange(200), truth[:, np.newaxis], np.ones(200))
    found = Numbers().find_weights(answers[:, :, np.newaxis], labels)
    errors = answers - truth
    inverse = np.linalg.solve(errors @ errors.T, np.ones(3))
    np.testing.assert_allclose(found, inverse / inverse.sum(), atol=0.02)
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    exact = np.stack([truth, truth + 1, truth])[:, :, np.newaxis]
    same = Numbers().find_weights(exact, labels)
    np.testing.assert_allclose(same, [0.5, 0.0, 0.5])


def test_exponent_finds_how_sure_answers_should_be():
    rng = np.random.default_rng(0)
    logits = rng.uniform(-2, 2, (2000, 1)) * [[1.0, -1.0]]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (rng.random(2000) < p[:, 1]).astype(int)
    labels = NodeLabels(np.arange(2000), np.eye(2)[codes], np.ones(2000))
    task = Classes(2)
    assert task.find_exponent(p, labels)[1] == pytest.approx(1.0, abs=0.15)
    too_unsure = p ** (1 / 3) / (p ** (1 / 3)).sum(axis=1, keepdims=True)
    assert task.find_exponent(too_unsure, labels)[1] == pytest.approx(3.0, abs=0.6)
    np.testing.assert_allclose(task.sharpen(too_unsure, 3.0), 0.99 * p + 0.005, atol=1e-6)


# Experts.


def test_graph_alone_is_hfs():
    y = some_labels(share=0.1)
    found = make_experts(BLOCKS, noise(), as_labels(y)).everywhere(None, 2, np.array([0, 0, 1]) > 0)
    hfs = HFSClassifier(epsilon=None, calibration=None, random_state=0).fit_edges(BLOCKS, y)
    np.testing.assert_array_equal(found[2].argmax(axis=1), hfs.transduction_)


@pytest.mark.parametrize("n_columns", [4, 40])
def test_smoothed_features(n_columns):
    """Weighted means of few columns; rows of the same length from 30 columns on."""
    graph = random_graph(60, 200, n_nodes=62)
    labels = as_labels(np.where(np.arange(62) < 50, np.arange(62) % 2, -1))
    experts = make_experts(graph, noise(n=62, n_columns=n_columns), labels)
    found = experts._smoothed
    own = experts.features.rows(slice(None))
    matrix = np.diag(np.where(graph.degrees > 0, graph.degrees, 1.0))
    matrix += 9.0 * graph.laplacian().toarray()
    expected = np.linalg.solve(matrix, own)
    if n_columns < 30:
        expected /= np.linalg.solve(matrix, np.ones((62, 1)))
        expected *= experts.features.size / np.sqrt(np.mean(np.sum(expected**2, axis=1)))
    else:
        expected *= experts.features.size / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_fewer_labels_than_columns_give_the_same_model():
    """The coordinates in the space of labelled rows are those of the model itself."""
    y, X = some_labels(share=0.1), noise(n_columns=50) + 0.4 * TRUTH[:, np.newaxis]
    labels = as_labels(y)
    experts = make_experts(BLOCKS, X, labels)
    assert experts._bases[0].shape == (50, len(labels.nodes))
    predict = experts.fit(0, np.ones(len(labels.nodes), dtype=bool))
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    rows *= np.sqrt(50) / np.linalg.norm(rows, axis=1, keepdims=True)
    whole = LogisticRegression(C=2.0, tol=1e-6).fit(rows[y >= 0], y[y >= 0])
    np.testing.assert_allclose(predict(experts.own_rows(X)), whole.predict_proba(rows), atol=0.01)


@pytest.mark.parametrize(("is_sharp", "chosen"), [(True, 0), (False, 1)])
def test_penalty_is_weak_for_a_sharp_boundary_and_strong_for_noise(is_sharp, chosen):
    """The penalty is the one with the lesser loss for labels that are left out."""
    X = noise(n_columns=4)
    y = np.where(some_labels(share=0.5) < 0, -1, X[:, 0] > 0) if is_sharp else some_labels()
    assert fit_stack(make_experts(BLOCKS, X, as_labels(y)), 5).chosen[0] == chosen


def test_folds():
    groups = np.repeat([0, 1, 2], [20, 10, 5])
    folds = split_labels(groups, 5, seed=0)
    for group, size in enumerate((4, 2, 1)):
        np.testing.assert_array_equal(np.bincount(folds[groups == group], minlength=5), size)
    assert np.bincount(split_labels(np.zeros(3, dtype=int), 5, seed=0)).tolist() == [1, 1, 1]


def test_class_that_a_fold_does_not_have():
    labels = NodeLabels(np.arange(4), np.eye(3)[[0, 0, 2, 2]], np.ones(4))
    predict = Classes(3).fit(LogisticRegression(), np.array([[0.0], [0.1], [1.0], [1.1]]), labels)
    answers = predict(np.array([[0.0], [1.0]]))
    assert answers.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_array_equal(answers[:, 1], 0.0)


# Whether the graph helps.


def homophily(graph, X, values, task=None):
    values = np.eye(2)[values] if task is None else values[:, np.newaxis]
    labels = NodeLabels(np.arange(len(values)), values, np.ones(len(values)))
    experts = make_experts(graph, X, labels, task)
    return measure_homophily(experts, fit_stack(experts, 5))


def test_homophily():
    cliques = gallery.disjoint_union(gallery.complete(20), gallery.complete(20))
    truth = np.repeat([0, 1], 20)
    X = np.column_stack([truth, np.ones(40)]).astype(float)  # a constant column has no influence
    perfect = homophily(cliques, X, truth)
    assert perfect == pytest.approx((1.0, 1.0))
    half = gallery.disjoint_union(gallery.path(2), gallery.path(2))
    ends = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert homophily(half, ends, np.array([0, 1, 0, 1])).features == pytest.approx(-1.0)
    chance = homophily(random_graph(N, 1000), noise(), np.random.default_rng(4).permutation(TRUTH))
    assert abs(chance.labels) < 0.25
    assert abs(chance.features) < 0.1
    nothing = homophily(Graph.from_edges([], [], n_nodes=N), noise(), TRUTH)
    assert np.isnan(nothing).all()
    path, X = gallery.path(100), noise(n=100)
    assert homophily(path, X, np.linspace(0, 1, 100), Numbers()).labels > 0.95
    assert abs(homophily(path, X, noise(n=100)[:, 0], Numbers()).labels) < 0.25


# Nodes that labels do not reach.


def test_unreached_nodes():
    y, X = some_labels(), noise() + 1.2 * TRUTH[:, np.newaxis]
    graph = gallery.disjoint_union(BLOCKS, BLOCKS)
    n = graph.n_nodes
    graph = Graph.from_edges(*graph.edges(), n_nodes=n + 20)
    alone = np.arange(n, n + 20)
    truth = np.concatenate([TRUTH, TRUTH, np.repeat([0, 1], 10)])
    X = np.vstack([X, X, noise(7, 20) + 1.2 * truth[alone, np.newaxis]])
    labels = np.concatenate([y, np.full(N + 20, -1)])
    model = fit(X, labels, graph)
    assert model.reached_.tolist() == [True] * N + [False] * (N + 20)
    np.testing.assert_allclose(model.label_distributions_[alone], model.predict_proba(X[alone]))
    assert np.mean(model.transduction_[N:n] == TRUTH) > 0.95  # from smoothed features
    only = np.full(n + 20, -1)
    only[alone] = truth[alone]  # labels on isolated nodes only
    found = fit(X, only, graph)
    assert np.mean(found.transduction_ == truth) > 0.8


# Estimates from labels that are left out.


@pytest.mark.parametrize("has_classes", [True, False])
def test_estimates_do_not_see_the_labels_they_are_about(monkeypatch, has_classes):
    """Other labels in a fold change the stack, but no answer for the labels of that fold."""
    folds = np.arange(30) % 5
    monkeypatch.setattr("ohmlearn.features.stacking.split_labels", lambda *_: folds)
    rng = np.random.default_rng(1)
    task = Classes(2) if has_classes else Numbers()
    graph, X = random_graph(120, 400), noise(n=120)

    def fit_to(values):
        labels = NodeLabels(np.arange(30), values, np.ones(30))
        return fit_stack(make_experts(graph, X, labels, task), 5)

    values = np.eye(2)[rng.permutation(30) % 2] if has_classes else rng.standard_normal((30, 1))
    before = fit_to(values.copy())
    values[folds == 2] = 1.0 - values[folds == 2]
    after = fit_to(values)
    assert (before.weights != after.weights).any()
    np.testing.assert_array_equal(before.left_out[folds == 2], after.left_out[folds == 2])
    assert (before.left_out[folds != 2] != after.left_out[folds != 2]).any(axis=1).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the graph does not help")
def test_estimates_are_honest_if_nothing_can_be_learned():
    """Useless columns and edges, 5 labels a class: the mean of 30 estimates is near one half.

    Each estimate has a standard deviation of about 0.16, so the mean is outside of 0.5 +- 0.12 with
    probability below 0.001.
    """
    values = []
    for seed in range(30):
        y = np.full(N, -1)
        y[:10] = np.random.default_rng(seed).permutation(np.repeat([0, 1], 5))
        model = GraphFeatureClassifier(graph=random_graph(N, 500, seed), random_state=seed)
        values.append(model.fit(noise(seed), y).accuracy_estimate_.value)
    assert abs(np.mean(values) - 0.5) < 0.12


def test_estimator_that_needs_more_labels_than_estimates_have():
    """It can be fitted to eight of ten labels, but not to six."""
    y = np.full(N, -1)
    y[[0, 1, 2, 3, 4, -5, -4, -3, -2, -1]] = np.repeat([0, 1], 5)
    X = noise() + 4 * TRUTH[:, np.newaxis]
    model = GraphFeatureClassifier(KNeighborsClassifier(7), BLOCKS, random_state=0)
    with pytest.warns(UserWarning, match=r"too high: KNeighborsClassifier failed with 6 labels"):
        model.fit(X, y)
    assert model.accuracy_estimate_.n_labels == 10


# Files.


@pytest.mark.filterwarnings("ignore:1 of 161 nodes has no features")
@pytest.mark.parametrize("epsilon", [None, 0.8])
@pytest.mark.parametrize("estimator", [GraphFeatureClassifier, GraphFeatureRegressor])
def test_saved_models_continue(tmp_path, estimator, epsilon):
    y = {int(node): int(TRUTH[node]) for node in np.flatnonzero(some_labels() >= 0)}
    model = estimator(epsilon=epsilon, random_state=0)
    model.fit_edges(BLOCKS.edges(), NodeFeatures(noise(), ids=np.arange(N)), y)
    model.save(tmp_path / "model.ohm")
    loaded = estimator.load(tmp_path / "model.ohm")
    for edges in (None, ([0, 3], [N, 5])):  # a new node
        if edges is not None:
            model.update(edges)
            loaded.update(edges)
        np.testing.assert_array_equal(loaded.answered_, np.ones(len(loaded.degrees_), dtype=bool))
        assert loaded.graph_use_ == model.graph_use_
        np.testing.assert_array_equal(loaded.transduction_, model.transduction_)
        np.testing.assert_array_equal(loaded.weights_, model.weights_)
        np.testing.assert_array_equal(loaded.predict(noise(3)), model.predict(noise(3)))
    other = {GraphFeatureClassifier, GraphFeatureRegressor}.difference({estimator}).pop()
    with pytest.raises(ValueError, match=f"holds a {estimator.__name__}; load it with that class"):
        other.load(tmp_path / "model.ohm")


def test_estimators_are_not_in_files(tmp_path):
    own = LogisticRegression(C=3.0)
    model = GraphFeatureClassifier(own, BLOCKS, random_state=0).fit(noise(), some_labels())
    model.save(tmp_path / "model.ohm")
    with pytest.raises(ValueError, match=r"saved with the estimator LogisticRegression\(C=3.0\)"):
        GraphFeatureClassifier.load(tmp_path / "model.ohm")
    loaded = GraphFeatureClassifier.load(tmp_path / "model.ohm", own)
    np.testing.assert_array_equal(loaded.label_distributions_, model.label_distributions_)
    HFSClassifier().fit_edges(BLOCKS, {0: 0, N - 1: 1}).save(tmp_path / "other.ohm")
    with pytest.raises(ValueError, match="holds no GraphFeatureClassifier"):
        GraphFeatureClassifier.load(tmp_path / "other.ohm")


def test_reasons_are_what_experts_add():
    graph = gallery.stochastic_blocks([30, 30], 0.3, bridges=5, random_state=0)
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1.0]], 30, axis=0) + rng.normal(0, 0.6, (60, 1))
    y = {node: "ab"[node // 30] for node in (0, 5, 9, 30, 38, 50)}
    model = GraphFeatureClassifier(random_state=0).fit_edges(graph, X, y)
    for why in model.explain([3, 20, 40, 55]):
        values = dict(zip(model.classes_, model.answer_.values[why.node], strict=True))
        assert why.margin == pytest.approx(values[why.label] - values[why.against])
        assert sum(why.experts.values()) == pytest.approx(why.margin, abs=1e-6)
        assert why.label == model.transduction_[why.node]
        assert why.graph.labels
        assert str(why).startswith(f'{why.node} is "{why.label}"')
    with pytest.raises(ValueError, match="must be a class other than the answer"):
        model.explain(3, against="c")
    numbers = GraphFeatureRegressor(random_state=0)
    numbers.fit_edges(graph, X, {node: float(node) for node in y})
    why = numbers.explain(20)
    assert sum(why.experts.values()) == pytest.approx(numbers.transduction_[20], rel=1e-6)


def test_folds_may_be_those_of_a_splitter(tmp_path):
    graph = gallery.stochastic_blocks([20, 20], 0.4, bridges=10, random_state=0)
    X = np.random.default_rng(0).standard_normal((40, 3)) + np.repeat([0, 2], 20)[:, np.newaxis]
    y = dict(enumerate(np.repeat(["a", "b"], 20).tolist()[::2]))
    y = {2 * node: label for node, label in y.items()}
    splitter = KFold(4, shuffle=True, random_state=1)
    models = [
        GraphFeatureClassifier(graph=graph, cv=cv, random_state=0).fit(X, y)
        for cv in (splitter, list(splitter.split(np.arange(20))))
    ]
    assert models[0].weights_ == models[1].weights_
    assert len(models[0].labelled_) == 20
    with pytest.raises(ValueError, match="cannot be saved"):
        models[0].save(tmp_path / "model.ohm")
    with refuses(parameter="cv"):
        GraphFeatureClassifier(graph=graph, cv=ShuffleSplit(1)).fit(X, y)
    with refuses(parameter="cv", value="1"):
        GraphFeatureClassifier(graph=graph, cv=1).fit(X, y)
