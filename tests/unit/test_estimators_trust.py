"""Probabilities, estimated accuracy, prediction sets, abstaining, shares of classes, methods."""

import tracemalloc
import warnings

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import Graph, HFSClassifier, gallery
from ohmlearn.estimators.calibration import (
    DEFAULT,
    Calibration,
    check_proportions,
    conformal_threshold,
    estimate_accuracy,
    fit_calibration,
    match_proportions,
    scale_scores,
    spread_of,
)
from ohmlearn.harmonic.hfs_system import HFSSolver, HFSSystem
from ohmlearn.harmonic.leave_one_out import respond


def blocks(n, *, classes=3, inside=0.5, seed=0):
    """Return edges among nodes of some classes, and the classes."""
    random = np.random.default_rng(seed)
    truth = np.arange(n) % classes
    u = random.integers(0, n, 8 * n)
    same = random.random(8 * n) < inside
    v = np.where(
        same,
        truth[u] + classes * random.integers(0, n // classes, 8 * n),
        random.integers(0, n, 8 * n),
    )
    return (u, v), truth


def some_labels(truth, per_class, seed=0):
    random = np.random.default_rng(seed)
    chosen = [random.choice(np.flatnonzero(truth == c), per_class, False) for c in np.unique(truth)]
    return {int(node): int(truth[node]) for node in np.concatenate(chosen)}


def calibration_error(p, truth, bins=15):
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    bin_of = np.minimum((sure * bins).astype(int), bins - 1)
    parts = [bin_of == b for b in range(bins) if np.any(bin_of == b)]
    return sum(part.mean() * abs(sure[part].mean() - right[part].mean()) for part in parts)


@pytest.mark.parametrize("inside", [0.1, 0.3, 0.6])
def test_probabilities_are_calibrated_whether_the_graph_helps_or_not(inside):
    edges, truth = blocks(1500, inside=inside)
    after, before = [], []
    for seed in range(4):
        labels = some_labels(truth, 20, seed)
        model = HFSClassifier(random_state=0).fit_edges(edges, labels, n_nodes=1500)
        after.append(calibration_error(model.label_distributions_, truth))
        plain, same = (
            HFSClassifier(random_state=0, **how).fit_edges(edges, labels)
            for how in ({"calibration": None}, {"method": "harmonic"})
        )
        before.append(calibration_error(plain.label_distributions_, truth))
        assert np.array_equal(plain.transduction_, same.transduction_)
    assert np.mean(after) < 0.08
    assert np.mean(after) < np.mean(before)


@pytest.mark.parametrize("passes", [1, 3])
def test_dense_graphs_of_which_edges_were_dropped(passes):
    # Half of the weight of an edge is noise, so that one pass labels worse than three.
    random = np.random.default_rng(0)
    truth = np.arange(600) % 2
    u, v = np.triu_indices(600, 1)
    w = np.where(truth[u] == truth[v], 1.15, 1.0) * random.uniform(0.5, 1.5, len(u))
    labels = some_labels(truth, 60)
    model = HFSClassifier(passes=passes, random_state=0).fit_edges((u, v, w), labels)
    others = np.setdiff1d(np.arange(600), list(labels))
    accuracy = np.mean((model.transduction_ == truth)[others])
    estimate = model.accuracy_estimate_
    assert estimate.low <= accuracy <= estimate.high
    assert (accuracy > 0.9) == (passes == 3)
    assert abs(model.label_distributions_[others].max(axis=1).mean() - accuracy) < 0.1


def test_sets_and_the_interval_hold_what_they_promise():
    edges, truth = blocks(1500, inside=0.3)
    covered, held = [], []
    for seed in range(12):
        model = HFSClassifier(random_state=0).fit_edges(edges, some_labels(truth, 10, seed))
        sets = model.prediction_sets(alpha=0.2)
        covered.append(sets[np.arange(1500), truth].mean())
        estimate = model.accuracy_estimate_
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        held.append(estimate.low <= np.mean(model.transduction_ == truth) <= estimate.high)
    assert 0.75 < np.mean(covered) < 0.9
    assert np.mean(held) > 0.8


def test_a_threshold_is_that_of_exchangeable_numbers():
    random = np.random.default_rng(0)
    numbers = random.random((4000, 20))
    below = [row[0] < conformal_threshold(row[1:], 0.25) for row in numbers]
    assert np.mean(below) == pytest.approx(0.25, abs=0.03)
    assert conformal_threshold(np.array([0.3] * 5), 0.1) == 0.0


def test_few_labels():
    graph = gallery.path(30)
    model = HFSClassifier(random_state=0).fit_edges(graph, {0: "a", 29: "b"})
    with pytest.warns(UserWarning, match="2 labels are few for 2 classes"):
        shares = model.label_distributions_
    assert model.calibration_ == DEFAULT  # no label can be left out
    assert np.array_equal(shares.argmax(axis=1), (np.arange(30) >= 15).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = model.label_distributions_  # told once
    with pytest.warns(UserWarning, match="at least 9 labels .*; with 2 all sets hold all"):
        assert model.prediction_sets(0.1).all()
    with pytest.warns(UserWarning, match="all sets hold all"):
        assert model.prediction_sets(1e-320).all()
    with pytest.raises(ValueError, match="alpha"):
        model.prediction_sets(1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* nodes are in components")
def test_the_accuracy_is_that_of_nodes_that_get_a_label():
    # Most labels are alone in a pair of nodes; without its label, a node there would get none.
    (u, v), truth = blocks(900, inside=0.9)
    pairs = np.arange(900, 2700, 2)
    graph = Graph.from_edges(np.append(u, pairs), np.append(v, pairs + 1))
    random = np.random.default_rng(1)
    truth = np.append(truth, np.repeat(random.integers(0, 3, 900), 2))
    inside = 0
    for _ in range(10):
        labels = {int(node): int(truth[node]) for node in random.choice(2700, 240, False)}
        model = HFSClassifier(random_state=0, epsilon=None).fit_edges(graph, labels)
        others = model.reached_.copy()
        others[list(labels)] = False
        low, high = model.accuracy_estimate_.low, model.accuracy_estimate_.high
        inside += low <= np.mean(model.transduction_[others] == truth[others]) <= high
    assert inside >= 7  # a 95% interval: 6 or fewer of 10 with probability 0.001


def test_no_accuracy_is_estimated_if_no_label_is_connected_to_another():
    graph = gallery.disjoint_union(*[gallery.path(3)] * 4)
    labels = {0: "a", 3: "b", 6: "a", 9: "b"}
    with pytest.warns(UserWarning, match="few for 2 classes"):
        estimate = HFSClassifier(random_state=0).fit_edges(graph, labels).accuracy_estimate_
    assert np.isnan(estimate.value)
    assert estimate[1:] == (0.0, 1.0, 0)


def test_components_and_single_labels():
    # The second component has one label: without it, nothing is known there.
    graph = gallery.disjoint_union(gallery.complete(10), gallery.complete(5), gallery.path(3))
    labels = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 10: "a"}
    with pytest.warns(UserWarning, match="3 of 18 nodes are in components without a label"):
        model = HFSClassifier(random_state=0).fit_edges(graph, labels)
    shares = model.label_distributions_
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[15:], np.tile([4 / 7, 3 / 7], (3, 1)))
    assert model.prediction_sets(0.4)[15:].all()
    assert model.accuracy_estimate_.n_labels == 6  # the seventh is the only label of its component


def test_wrong_labels_make_probabilities_modest():
    edges, truth = blocks(900, inside=0.8)
    labels = some_labels(truth, 20)
    sure = HFSClassifier(random_state=0).fit_edges(edges, labels)
    random = np.random.default_rng(0)
    noisy = {
        node: c if random.random() < 0.6 else int(random.integers(3)) for node, c in labels.items()
    }
    unsure = HFSClassifier(random_state=0).fit_edges(edges, noisy)
    assert sure.label_distributions_.max(axis=1).mean() > 0.9
    assert unsure.label_distributions_.max(axis=1).mean() < 0.85
    assert unsure.accuracy_estimate_.value < sure.accuracy_estimate_.value - 0.15


def test_abstaining():
    graph = gallery.path(40)
    labels = {node: node >= 20 for node in range(0, 40, 4)}
    model = HFSClassifier(random_state=0).fit_edges(graph, labels)
    shares = model.label_distributions_
    answers = model.predict(abstain=0.8)
    unsure = shares.max(axis=1) < 0.8
    assert unsure.any()
    assert not unsure.all()
    assert [a is None for a in answers] == unsure.tolist()
    assert np.array_equal(answers[~unsure], model.transduction_[~unsure])
    assert np.array_equal(model.predict(), model.transduction_)
    numbers = model.relabel({node: int(c) for node, c in labels.items()}).predict(abstain=0.8)
    assert numbers.dtype.kind == "i"
    assert np.array_equal(numbers == -1, unsure)
    points = np.linspace(0, 1, 40)[:, np.newaxis]
    y = np.full(40, -1)
    y[::2] = np.arange(0, 40, 2) >= 20
    new = HFSClassifier(n_neighbors=3, random_state=0).fit(points, y)
    found = new.predict(points, abstain=0.8)
    assert np.array_equal(found == -1, new.predict_proba(points).max(axis=1) < 0.8)


def test_given_shares_are_met_and_help():
    edges, _ = blocks(10, seed=1)
    random = np.random.default_rng(1)
    truth = random.choice(3, 3000, p=[0.8, 0.1, 0.1])
    members = [np.flatnonzero(truth == c) for c in range(3)]
    u = random.integers(0, 3000, 24_000)
    same = random.random(24_000) < 0.45
    inside = np.array([random.choice(members[truth[a]]) for a in u])
    edges = u, np.where(same, inside, random.integers(0, 3000, 24_000))
    labels = some_labels(truth, 10)
    plain = HFSClassifier(random_state=0).fit_edges(edges, labels)
    given = HFSClassifier(random_state=0, class_prior=[0.8, 0.1, 0.1]).fit_edges(edges, labels)
    counts = np.bincount(given.transduction_) / 3000
    np.testing.assert_allclose(counts, [0.8, 0.1, 0.1], atol=0.01)
    before, after = (np.mean(m.transduction_ == truth) for m in (plain, given))
    assert after > before + 0.02
    assert given.accuracy_estimate_.low <= after <= given.accuracy_estimate_.high
    from_labels = HFSClassifier(random_state=0, class_prior="labels").fit_edges(edges, labels)
    counts = np.bincount(from_labels.transduction_) / 3000
    plain_counts = np.bincount(plain.transduction_) / 3000
    assert np.all(np.abs(counts - 1 / 3) <= np.abs(plain_counts - 1 / 3) + 0.01)  # roughly
    rough = HFSClassifier(random_state=0, class_prior=[0.8, 0.1, 0.1], prior_strength="rough")
    rough = np.bincount(rough.fit_edges(edges, labels).transduction_) / 3000
    assert plain_counts[0] + 0.05 < rough[0] < 0.75


def test_methods():
    edges, truth = blocks(900, inside=0.5)
    labels = some_labels(truth, 10)
    harmonic, restart, auto = (
        HFSClassifier(method=method, random_state=0).fit_edges(edges, labels)
        for method in ("harmonic", "restart", "auto")
    )
    assert restart.gamma_ == 30.0
    assert np.mean(restart.transduction_ == truth) > 0.7
    assert (auto.method_, restart.method_) == ("harmonic", "restart")
    assert np.array_equal(auto.scores_, harmonic.scores_)
    assert not np.any(harmonic.bias_)
    assert harmonic.restart_ == 0.0
    # The combination as the docstring of ClassAnswer has it: linear in both scores.
    answer, walks = auto.answer_, restart.scores_ / 10
    s, g = (x - x.mean(axis=1, keepdims=True) for x in (answer.scores, walks))
    x, w = (np.sqrt(np.mean(a**2, axis=1, keepdims=True)) for a in (s, g))
    z = s / np.sqrt(answer.spread * x) + auto.restart_ * g / w + auto.bias_
    np.testing.assert_allclose(answer.exponents, z, rtol=1e-6, atol=1e-6)
    assert np.array_equal(auto.transduction_, z.argmax(axis=1))
    others = {node: label for node, label in labels.items() if node % 3 or label}
    assert not np.array_equal(auto.relabel(others).bias_, harmonic.bias_)


def test_restart_prefers_no_hub():
    # A hub joins two cliques; each clique has a label, and one of them also the hub's neighbour.
    u, v = np.triu_indices(8, 1)
    edges = [(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    edges += [(a + 8, b + 8) for a, b in edges] + [(16, node) for node in range(16)]
    graph = Graph.from_edges(*np.array(edges).T)
    model = HFSClassifier(method="restart", calibration=None).fit_edges(graph, {0: "a", 8: "b"})
    assert model.transduction_[:16].tolist() == ["a"] * 8 + ["b"] * 8
    np.testing.assert_allclose(model.label_distributions_[16], 0.5, atol=1e-4)


def test_exponents_ignore_classes_without_labels_and_shifts():
    random = np.random.default_rng(0)
    scores, there = random.standard_normal((50, 4)), random.random((50, 4)) < 0.7
    there[0] = False
    spread = spread_of(scores, there)
    exponents = scale_scores(scores, there, spread)
    assert np.all(np.isneginf(exponents[1:][~there[1:]]))
    assert np.all(exponents[0] == 0.0)
    moved = scale_scores(scores + random.standard_normal((50, 1)), there, spread)
    np.testing.assert_allclose(moved, exponents, atol=1e-12)
    rows = there.any(axis=1)
    largest = np.where(there, scores, -np.inf)[rows].argmax(axis=1)
    assert np.array_equal(exponents[rows].argmax(axis=1), largest)


def test_calibration_finds_the_temperature_of_many_labels():
    random = np.random.default_rng(0)
    x = random.standard_normal((4000, 3)) * 2
    truth = Calibration(temperature=0.7, smoothing=0.2)
    p = truth.apply(x)
    y = np.array([random.choice(3, p=row) for row in p])
    found = fit_calibration(x, np.eye(3)[y], x[:500])
    assert np.abs(found.apply(x) - p).max() < 0.06


def test_an_accuracy_estimate_of_weights():
    right = np.array([1.0, 1.0, 0.0, 1.0])
    assert estimate_accuracy(right, np.array([1.0, 1.0, 3.0, 1.0])).value == 0.5
    one, two = estimate_accuracy(right), estimate_accuracy(np.tile(right, 2))
    assert one.value == two.value
    assert one.high - one.low > two.high - two.low


def test_shares_that_cannot_be_met_are_met_as_well_as_possible():
    log_p = np.zeros((10, 2))
    log_p[:, 0] = np.repeat([1.0, 2.0], 5)  # two groups of equal nodes
    codes = np.argmax(log_p + match_proportions(log_p, np.array([0.45, 0.55])), axis=1)
    assert np.bincount(codes).tolist() == [5, 5]


@pytest.mark.slow
def test_stability_of_one_pass_answers():
    random = np.random.default_rng(0)
    truth = np.arange(900) % 3
    u, v = np.triu_indices(900, 1)
    w = np.where(truth[u] == truth[v], 1.25, 1.0) * random.uniform(0.5, 1.5, len(u))
    labels = some_labels(truth, 15)
    found = [
        HFSClassifier(passes=1, random_state=seed).fit_edges((u, v, w), labels)
        for seed in range(11)
    ]
    chance = found[0].stability_
    assert np.all(chance[list(labels)] == 0.0)
    others = np.array([model.transduction_ != found[0].transduction_ for model in found[1:]])
    assert others.mean() > 0.1  # one pass is not enough here
    assert chance.mean() == pytest.approx(others.mean(), abs=0.06)
    assert np.corrcoef(chance, others.mean(axis=0))[0, 1] > 0.5
    shares = HFSClassifier(passes=1, random_state=0, class_prior=[0.4, 0.3, 0.3])
    assert 0 < shares.fit_edges((u, v, w), labels).stability_.mean() < 1
    refined = HFSClassifier(passes=4, random_state=0).fit_edges((u, v, w), labels)
    assert not refined.stability_.any()
    sparse = gallery.knn_points(900, 5, random_state=0)
    whole = HFSClassifier(passes=1, random_state=0).fit_edges(sparse, labels)
    assert not whole.stability_.any()  # no edge was dropped
    assert 0.3 < found[0].sparsifier_.epsilon_estimate_ < 0.8


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
            check_proportions(given, names)
    assert check_proportions([1e308, 1e308], names).tolist() == [0.5, 0.5]


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
