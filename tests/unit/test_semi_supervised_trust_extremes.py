"""Inputs that once broke probabilities and what is said about them."""

import tracemalloc

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import Graph, HFSClassifier, gallery
from ohmlearn.estimators.calibration import check_shares, estimate_accuracy
from ohmlearn.harmonic.hfs_system import HFSSolver, HFSSystem
from ohmlearn.harmonic.leave_one_out import respond


def two_blocks():
    graph = gallery.stochastic_blocks([50, 50], 0.3, bridges=60, random_state=0)
    return graph, {node: "left" if node < 50 else "right" for node in range(0, 100, 5)}


def test_a_label_of_a_node_far_away_needs_no_memory():
    graph, labels = two_blocks()
    model = HFSClassifier(random_state=0).fit_edges(graph, labels)
    for call in (model.relabel, lambda y: HFSClassifier().fit_edges(graph, y)):
        with pytest.raises(ValueError, match="the edges have 100 nodes, and memory is needed"):
            call({**labels, 10**9: "left"})
    assert len(model.transduction_) == 100


def test_leaving_out_some_of_many_labels_needs_little_memory():
    path, n = gallery.path(5000), 5000
    system = HFSSystem(np.zeros(n, np.int32), np.arange(n), np.ones(n), normalization=None)
    solver = HFSSolver(path, system, random_state=0)
    tracemalloc.start()
    respond(solver, np.arange(4), 1e-4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n  # an identity matrix of all labels has 8 n^2 bytes


@pytest.mark.filterwarnings("ignore:all labels are")
@pytest.mark.filterwarnings("ignore:3 labels of 1 classes")
@pytest.mark.parametrize("normalization", ["stable", "cmn", None])
def test_one_class_and_dropped_edges(normalization):
    model = HFSClassifier(epsilon=0.9, normalization=normalization, random_state=0)
    model.fit_edges(gallery.complete(300), {0: "a", 1: "a", 5: "a"})
    assert model.graph_.n_edges < gallery.complete(300).n_edges
    assert np.array_equal(model.label_distributions_, np.ones((300, 1)))
    assert model.accuracy_estimate_.value == 1.0


def test_shares_are_met_if_the_order_of_nodes_has_a_period():
    n, classes = 60_000, 3  # more than 20,000: shares are met on a part of the nodes
    random = np.random.default_rng(0)
    u = random.integers(0, n, 5 * n)
    same = (u + classes * random.integers(1, n // classes, len(u))) % n
    v = np.where(random.random(len(u)) < 0.8, same, random.integers(0, n, len(u)))
    truth = np.arange(n) % classes
    labels = {int(node): int(truth[node]) for node in random.choice(n, 60, replace=False)}
    model = HFSClassifier(epsilon=None, class_prior=[1 / 3, 1 / 3, 1 / 3], random_state=0)
    model.fit_edges((np.append(u, np.arange(n - 1)), np.append(v, np.arange(1, n))), labels)
    assert np.bincount(model.transduction_) / n == pytest.approx(np.full(3, 1 / 3), abs=0.02)


@pytest.mark.filterwarnings("ignore:the relative residual")  # float64 has 16 digits
def test_a_label_that_counts_much_hides_no_other():
    graph, labels = two_blocks()
    model = HFSClassifier(random_state=0).fit_edges(graph, labels, sample_weight={0: 1e10})
    assert model.calibration_.n_labels == len(labels)
    assert np.count_nonzero(model.prediction_sets(0.2).all(axis=1)) == 0


def test_labels_in_no_edge_are_no_evidence_for_sets():
    graph, _ = two_blocks()
    apart = gallery.disjoint_union(graph, Graph.from_edges([], [], n_nodes=30))
    labels = {0: "a", 1: "a", 60: "b", 61: "b", **dict.fromkeys(range(100, 130), "a")}
    with pytest.warns(UserWarning, match="30 of the 34 labelled nodes are in no edge"):
        model = HFSClassifier(random_state=0).fit_edges(apart, labels)
    with pytest.warns(UserWarning, match="connected to others; with 4 all sets hold all classes"):
        assert model.prediction_sets(0.1).all()


def test_sets_of_the_least_alpha():
    model = HFSClassifier(random_state=0).fit_edges(*two_blocks())
    with pytest.warns(UserWarning, match="all sets hold all classes"):
        assert model.prediction_sets(1e-320).all()


def test_abstaining_keeps_classes_that_are_too_large_for_signed_integers():
    graph, labels = two_blocks()
    names = {"left": np.uint64(1), "right": np.uint64(2**64 - 1)}
    model = HFSClassifier(random_state=0)
    model.fit_edges(graph, {node: names[name] for node, name in labels.items()})
    assert set(model.predict(abstain=0.5).tolist()) == {1, 2**64 - 1}


def test_shares_that_are_no_shares():
    graph, labels = two_blocks()
    with pytest.raises(ValueError, match="must be None or 'labels' or an array, got 'label'"):
        HFSClassifier(class_prior="label").fit_edges(graph, labels)
    names = np.array(["a", "b"])
    for given in ({"a": "x", "b": 1}, ["labels"], {"a", "b"}):
        with refuses(parameter="class_prior"):
            check_shares(given, names)
    assert check_shares([1e308, 1e308], names).tolist() == [0.5, 0.5]


def test_an_interval_holds_its_value():
    for n in range(1, 60):
        for right in (np.ones(n), np.zeros(n)):
            estimate = estimate_accuracy(right)
            assert estimate.low <= estimate.value <= estimate.high


def test_equally_many_labels_do_not_give_away_the_one_left_out():
    """A dense graph says little. Then the class with one label less must not stand out."""
    random = np.random.default_rng(0)
    n, classes = 300, 5
    truth = np.arange(n) % classes
    u, v = np.triu_indices(n, 1)
    weights = 1.0 + 0.1 * random.random(len(u))  # which tell nothing of the classes
    labels = {node: int(truth[node]) for node in range(50)}
    model = HFSClassifier(epsilon=None, random_state=0).fit_edges((u, v, weights), labels)
    assert np.mean(model.transduction_[50:] == truth[50:]) < 0.35
    assert model.accuracy_estimate_.value < 0.4  # once 1.0
    assert np.median(model.label_distributions_[50:].max(axis=1)) < 0.4


def test_ties_are_half_right():
    """In a complete graph all nodes without a label are alike; rounding once made it 100%."""
    labels = {node: "ab"[node % 2] for node in range(40)}
    model = HFSClassifier(epsilon=None, random_state=0).fit_edges(gallery.complete(100), labels)
    assert model.accuracy_estimate_.value == pytest.approx(0.5)
