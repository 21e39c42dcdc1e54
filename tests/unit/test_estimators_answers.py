"""Estimators against exact answers, scikit-learn's propagation and invariances."""

import networkx
import numpy as np
import pytest
import scipy.sparse
from sklearn.semi_supervised import LabelPropagation

from ohmlearn import Graph, gallery
from ohmlearn.estimators import HFSClassifier, HFSRegressor
from ohmlearn.estimators.label_input import find_classes
from ohmlearn.points import knn_edges

KARATE = Graph.from_networkx(networkx.karate_club_graph())
SIDES = {0: "Mr. Hi", 33: "Officer"}
POINTS = gallery.paper_points(1210)
LABELS = {3: 1, 200: 1, 500: 1, 900: -7, 1100: -7}


def test_karate_club_splits_as_it_did():
    club = networkx.get_node_attributes(networkx.karate_club_graph(), "club")
    model = HFSClassifier(random_state=0).fit_edges(KARATE, SIDES)
    right = [a == b for a, b in zip(model.transduction_, club.values(), strict=True)]
    assert sum(right) >= 32


def test_small_gamma_is_label_propagation():
    # scikit-learn's propagation converges to this: labels are fixed, other scores are harmonic.
    graph = gallery.knn_points(120, 8, random_state=1)
    weights = graph.to_scipy().toarray()
    y = np.full(120, -1)
    y[[0, 1, 2, 3, 4, 5]] = [0, 1, 2, 0, 1, 2]
    peer = LabelPropagation(kernel=lambda A, B: weights, max_iter=20_000, tol=1e-12)
    peer.fit(np.zeros((120, 1)), y)
    model = HFSClassifier(
        epsilon=None, affinity="precomputed", gamma=1e-9, normalization=None, calibration=None
    )
    model.fit(graph, y)
    np.testing.assert_allclose(model.label_distributions_, peer.label_distributions_, atol=1e-5)


def test_labels_of_another_component_do_not_decide():
    paths = ([0, 1, 2, 5, 6, 7], [1, 2, 3, 6, 7, 8])  # 0-1-2-3, 4 by itself, 5-6-7-8
    with pytest.warns(UserWarning, match="1 of the 4 labelled nodes are in no edge, such as 4"):
        model = HFSClassifier(epsilon=None).fit_edges(
            paths, {0: "a", 3: "b", 4: "b", 5: "b"}, n_nodes=9
        )
    assert "".join(model.transduction_) == "aabbbbbbb"


@pytest.mark.parametrize(
    ("y", "nodes", "labels"),
    [
        ([0, -1, 3], [0, 2], [0, 3]),
        ([0.0, np.nan, 1.0, -1.0], [0, 2], [0.0, 1.0]),
        (["a", None, "b"], [0, 2], ["a", "b"]),
        (("a", -1, np.nan, -1.0, "b"), [0, 4], ["a", "b"]),
        (np.array(["a", -1, np.nan, -1.0, "b"], dtype=object), [0, 4], ["a", "b"]),
        (np.array(["a", float("nan"), "-1"], dtype=object), [0, 2], ["a", "-1"]),
        ([True, None, False, -1], [0, 2], [True, False]),
        (np.array([True, False]), [0, 1], [True, False]),
        (np.array(["x", "y"]), [0, 1], ["x", "y"]),
        ({4: "b", 1: None, 0: "a"}, [4, 0], ["b", "a"]),
        (np.array([3, -1, 0], dtype=np.int8), [0, 2], [3, 0]),
    ],
)
def test_labels_of_all_kinds(y, nodes, labels):
    found_nodes, found, *_ = find_classes(y)
    assert found_nodes.tolist() == nodes
    assert found.tolist() == labels
    assert type(found.tolist()[0]) is type(labels[0])


def test_nodes_without_evidence_are_told_apart():
    graph = Graph.from_edges([0, 1, 3, 4, 6], [1, 2, 4, 5, 7], n_nodes=8)
    y = [3, -1, -1, -1, -1, -1, 8, -1]
    with pytest.warns(UserWarning, match="3 of 8 nodes are in components without a label"):
        model = HFSClassifier(epsilon=None, calibration=None).fit_edges(graph, y)
    assert model.reached_.tolist() == [True] * 3 + [False] * 3 + [True] * 2
    np.testing.assert_allclose(model.label_distributions_[3:6], 0.5)
    assert np.isfinite(model.label_distributions_).all()
    guesses = set()
    for seed in range(8):  # a random one of two equal classes; all the same with probability 2^-7
        with pytest.warns(UserWarning, match="label some of them"):
            guess = (
                HFSClassifier(epsilon=None, random_state=seed)
                .fit_edges(graph, y)
                .transduction_[3:6]
            )
        guesses |= set(guess.tolist())
    assert guesses == {3, 8}
    with pytest.warns(UserWarning, match="they get the mean of the given values"):
        numbers = HFSRegressor(epsilon=None).fit_edges(graph, [1.0, *[None] * 5, 4.0, None])
    np.testing.assert_allclose(numbers.transduction_[3:6], 2.5)


def test_class_prior():
    graph, y = gallery.path(20), {0: 0, 19: 1}
    for normalization in ("stable", "cmn", None):
        model = HFSClassifier(
            epsilon=None, class_prior=[0.25, 0.75], normalization=normalization, calibration=None
        ).fit_edges(graph, y)
        assert np.bincount(model.transduction_).tolist() == [5, 15]
        np.testing.assert_allclose(model.class_prior_, [0.25, 0.75])
        named = HFSClassifier(
            epsilon=None,
            class_prior={1: 0.75, 0: 0.25},
            normalization=normalization,
            calibration=None,
        ).fit_edges(graph, y)
        assert np.array_equal(named.label_distributions_, model.label_distributions_)
        # Within each class the order of the probabilities is that without a prior.
        assert np.all(np.diff(model.label_distributions_[:, 1]) > -1e-12)
    for prior, message in (({0: 1}, "for the class 1"), ({0: 1, 1: 1, "x": 1}, ": 'x' is")):
        with pytest.raises(ValueError, match=message):
            HFSClassifier(class_prior=prior).fit_edges(graph, y)
    for prior in ([1.0], [0.0, 1.0], [1, 1, 1]):
        with pytest.raises(ValueError, match=r"one positive entry for each of the classes \[0"):
            HFSClassifier(epsilon=None, class_prior=prior).fit_edges(graph, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the relative error")
def test_passes_lead_to_the_exact_answer():
    exact = HFSClassifier(epsilon=None, n_neighbors=450, weights="uniform").fit(POINTS, LABELS)
    errors = []
    for passes in (1, 3, 6, 12):
        model = HFSClassifier(
            n_neighbors=450, weights="uniform", passes=passes, epsilon=0.8, random_state=0, tol=1e-9
        ).fit(POINTS, LABELS)
        assert model.n_iter_ == passes
        errors.append(np.linalg.norm(model.scores_ - exact.scores_))
    errors = np.array(errors) / np.linalg.norm(exact.scores_)
    assert np.all(np.diff(errors) < 0)
    assert errors[-1] < 1e-5
    assert model.residual_.max() < 1e-5
    assert model.sparsifier_.snapshot().n_edges < 0.1 * exact.graph_.n_edges
    assert np.array_equal(model.transduction_, exact.transduction_)


def test_automatic_gamma():
    graph = gallery.complete(50)  # of degree 49
    for y, stiffness in [
        ({0: 0, 1: 1}, 100.0),
        ({0: 0, 1: 1, 2: 1, 3: 0}, 12.5),
        ({i: i % 3 for i in range(45)}, 1.0),
    ]:
        exact = HFSClassifier(epsilon=None).fit_edges(graph, y)
        assert exact.gamma_ * len(y) * 49 == pytest.approx(stiffness)
        given = HFSClassifier(epsilon=None, gamma=exact.gamma_).fit_edges(graph, y)
        assert np.array_equal(given.scores_, exact.scores_)
        sparse = HFSClassifier(max_edges=300, random_state=0).fit_edges(graph, y)
        assert sparse.gamma_ == pytest.approx(exact.gamma_)
    numbers = HFSRegressor(epsilon=None).fit_edges(graph, {0: 1.0, 1: 2.0})
    assert numbers.gamma_ * 2 * 49 == pytest.approx(0.1)


@pytest.mark.slow
def test_batches_threads_and_kinds_of_edges_make_no_difference():
    stream = knn_edges(POINTS, n_neighbors=300, weights="uniform")
    u, v = (np.concatenate([batch[i] for batch in stream]) for i in (0, 1))
    expected = HFSClassifier(random_state=5).fit_edges(stream, LABELS).scores_
    cuts = np.array_split(np.arange(len(u)), 7)
    for edges, jobs in [
        ((u, v), None),
        ([(u[cut], v[cut]) for cut in cuts], 2),
        ([(u[cut], v[cut], np.ones(len(cut))) for cut in cuts], None),
    ]:
        model = HFSClassifier(random_state=5, n_jobs=jobs).fit_edges(edges, LABELS, n_nodes=1210)
        assert np.array_equal(model.scores_, expected)
    from_points = HFSClassifier(random_state=5, n_neighbors=300, weights="uniform")
    from_points.fit(POINTS, LABELS)
    assert np.array_equal(from_points.scores_, expected)


def test_matrices_points_and_graphs_agree():
    exact = HFSClassifier(epsilon=None, n_neighbors=20).fit(POINTS, LABELS)
    matrix = exact.graph_.to_scipy()
    for X in (matrix, scipy.sparse.csc_matrix(matrix), matrix.toarray(), exact.graph_):
        model = HFSClassifier(epsilon=None, affinity="precomputed").fit(X, LABELS)
        np.testing.assert_allclose(model.scores_, exact.scores_, atol=1e-9)


def test_regressors_interpolate_and_average():
    X = np.linspace(0, 1, 200)[:, np.newaxis]
    y = np.full(200, np.nan)
    y[::20] = np.sin(3 * X[::20, 0])
    exact = HFSRegressor(epsilon=None, n_neighbors=4, gamma=1e-6).fit(X, y)
    assert np.abs(exact.transduction_[:181] - np.sin(3 * X[:181, 0])).max() < 0.05
    sparse = HFSRegressor(n_neighbors=4, gamma=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(sparse.transduction_, exact.transduction_, atol=1e-4)
    smooth = HFSRegressor(epsilon=None, n_neighbors=4, gamma=1e9).fit(X, y)
    np.testing.assert_allclose(smooth.transduction_, np.nanmean(y), atol=1e-4)
    held = HFSRegressor(epsilon=None, n_neighbors=4, normalization="stable").fit(X, y)
    assert held.transduction_.mean() == pytest.approx(np.nanmean(y))


def test_a_class_without_label_in_a_component_is_not_chosen_there():
    # The two larger of three cliques have only class 0. Its scores must sum to zero, so they are
    # negative in the largest clique.
    sizes = [150, 12, 3]
    starts = np.cumsum([0, *sizes])
    pairs = [np.triu_indices(size, 1) for size in sizes]
    u, v = (np.concatenate([p[i] + s for p, s in zip(pairs, starts, strict=False)]) for i in (0, 1))
    y = {0: 0, 150: 0, 162: 1}
    model = HFSClassifier(epsilon=None, gamma=1.0, calibration=None).fit_edges((u, v), y)
    assert model.scores_[1, 0] < model.scores_[1, 1]
    assert model.transduction_.tolist() == [0] * 162 + [1] * 3
    expected = np.eye(2)[model.transduction_]
    np.testing.assert_allclose(model.label_distributions_, expected)


def test_what_numpy_makes_of_unlabelled_among_strings_is_told():
    with pytest.warns(UserWarning, match="y has the class '-1', because an array of strings"):
        HFSClassifier(epsilon=None).fit_edges(gallery.path(3), np.array(["left", -1, "right"]))
