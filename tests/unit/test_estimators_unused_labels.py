"""Labels of nodes without an edge: these nodes keep them, and nothing else depends on them."""

import numpy as np
import pytest

from ohmlearn import GraphFeatureClassifier, GraphFeatureRegressor, HFSClassifier, HFSRegressor
from ohmlearn.cluster import LocalEdges

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*labelled nodes (are|have) |.* nodes are in components|20 ids are only in"
)
N, N_ALONE = 300, 60
TRUTH = np.arange(N) % 3


def make_edges():
    random = np.random.default_rng(5)
    u, v = random.integers(0, N, (2, 20_000))
    kept = (u != v) & ((TRUTH[u] == TRUTH[v]) | (random.random(len(u)) < 0.3))
    return u[kept], v[kept]


U, V = make_edges()
NODES = np.random.default_rng(6).choice(N, 30, replace=False).tolist()
GIVEN = {node: "abc"[TRUTH[node]] for node in NODES}
ALONE = {N + i: "aab"[i % 3] for i in range(N_ALONE)}  # in other proportions than the others


def same_classes(one, other, n=N):
    """Whether two classifiers say the same about the first nodes, bit for bit."""
    for name in ("label_distributions_", "transduction_", "scores_", "uncertainty_", "stability_"):
        np.testing.assert_array_equal(getattr(one, name)[:n], getattr(other, name)[:n], name)
    np.testing.assert_array_equal(one.prediction_sets(0.2)[:n], other.prediction_sets(0.2)[:n])
    np.testing.assert_array_equal(one.class_prior_, other.class_prior_)
    for name in ("accuracy_estimate_", "calibration_", "gamma_", "method_"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("n_nodes", [None, N + 2 * N_ALONE])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"passes": 1},
        {"epsilon": None},
        {"method": "restart"},
        {"method": "auto"},
        {"class_prior": "labels"},
        {"class_prior": {"a": 0.2, "b": 0.3, "c": 0.5}},
        {"normalization": "cmn"},
        {"normalization": None, "calibration": None},
    ],
    ids=str,
)
def test_other_nodes_are_as_without_them(options, n_nodes):
    found = []
    for labels in (GIVEN, GIVEN | ALONE):
        model = HFSClassifier(**{"epsilon": 0.9, "random_state": 0} | options)
        found.append(model.fit_edges((U, V), labels, n_nodes=n_nodes))
    without, model = found
    assert model.kept_.holds_all_edges == (model.epsilon is None)  # else edges were dropped
    same_classes(without, model)
    assert model.transduction_[N : N + N_ALONE].tolist() == list(ALONE.values())
    assert np.all(model.label_distributions_[N : N + N_ALONE].max(axis=1) == 1.0)
    assert model.reached_[: N + N_ALONE].all()
    assert not model.reached_[N + N_ALONE :].any()
    assert model.labelled_.tolist() == [*GIVEN, *ALONE]


@pytest.mark.parametrize("options", [{}, {"passes": 1}, {"normalization": "stable"}], ids=str)
def test_numbers_of_other_nodes_are_as_without_them(options):
    given = {node: float(TRUTH[node]) for node in GIVEN}
    alone = dict.fromkeys(ALONE, 50.0)
    without, model = (
        HFSRegressor(random_state=0, **options).fit_edges((U, V), labels)
        for labels in (given, given | alone)
    )
    np.testing.assert_array_equal(without.transduction_, model.transduction_[:N])
    assert (without.mean_, without.gamma_) == (model.mean_, model.gamma_)
    assert np.all(model.transduction_[N:] == 50.0)


@pytest.mark.parametrize("options", [{"horizon": 10}, {"half_life": 1}], ids=str)
def test_labels_whose_edges_are_forgotten(options):
    # The nodes 300, ... have old edges only, which are gone at the end.
    old = np.arange(N, N + N_ALONE)
    ends = np.concatenate([old, U]), np.concatenate([np.roll(old, 1), V])
    times = np.concatenate([np.zeros(N_ALONE), np.full(len(U), 100.0)])
    batches = [(*ends, None, times)]
    without, model = (
        HFSClassifier(epsilon=0.9, random_state=0, **options).fit_edges(batches, labels)
        for labels in (GIVEN, GIVEN | ALONE)
    )
    same_classes(without, model)
    assert model.transduction_[N:].tolist() == list(ALONE.values())


def test_updates_other_labels_and_files(tmp_path):
    half = len(U) // 2
    found = []
    for labels in (GIVEN, GIVEN | ALONE):
        model = HFSClassifier(epsilon=0.9, random_state=0)
        model.update((U[:half], V[:half])).relabel(labels)
        model.update((U[half:], V[half:]))
        assert model.transduction_[:N].shape == (N,)
        model.save(tmp_path / "model.ohm")
        found += [model, HFSClassifier.load(tmp_path / "model.ohm")]
    for other in found[1:]:
        same_classes(found[0], other)
    # A node gets its first edge, and its label counts.
    changed = found[2].update(([N], [0]))
    assert len(changed.problem_.used.nodes) == len(GIVEN) + 1
    assert changed.accuracy_estimate_.n_labels == len(GIVEN) + 1
    assert len(found[3].relabel(GIVEN).transduction_) == N


def test_partitions_of_a_cluster():
    parts = [(U[start::3].astype(str), V[start::3].astype(str)) for start in range(3)]
    named = {str(node): name for node, name in GIVEN.items()}
    alone = {f"nobody {node}": name for node, name in ALONE.items()}
    found = []
    for labels in (named, named | alone):
        edges = LocalEdges(parts)
        found.append(HFSClassifier(epsilon=0.9, random_state=0).fit_edges(edges, labels))
    same_classes(*found)
    assert sorted(found[1].transduction_[N:]) == sorted(ALONE.values())


def test_a_class_whose_labels_are_all_without_an_edge():
    without = HFSClassifier(random_state=0, class_prior="labels").fit_edges((U, V), GIVEN)
    labels = GIVEN | {N: "other", N + 1: "other"}
    model = HFSClassifier(random_state=0, class_prior="labels").fit_edges((U, V), labels)
    assert model.classes_.tolist() == ["a", "b", "c", "other"]
    assert model.class_prior_[3] == 0.0
    assert model.gamma_ == without.gamma_
    assert np.mean(model.transduction_[:N] == without.transduction_) > 0.98
    assert model.transduction_[N:].tolist() == ["other"] * 2


@pytest.mark.parametrize("model", [HFSClassifier(), HFSRegressor()], ids=str)
def test_if_no_labelled_node_has_an_edge_they_keep_their_labels(model):
    with pytest.warns(UserWarning, match="2 of the 2 labelled nodes are in no edge, such as 4"):
        model.fit_edges(([0, 1], [1, 2]), {4: 1, 5: 3})
    assert model.transduction_[4:].tolist() == [1, 3]
    assert model.reached_.tolist() == [False] * 4 + [True] * 2


@pytest.mark.slow
def test_with_features_labels_of_nodes_that_have_neither_these_nor_an_edge():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(3)
    table = pandas.DataFrame({"x": np.arange(N + 20) % 3 + random.normal(size=N + 20)})
    table.insert(0, "node", [f"n{node}" for node in range(N + 20)])
    edges = pandas.DataFrame({"u": [f"n{node}" for node in U], "v": [f"n{node}" for node in V]})
    # The last nodes have features, but no edge, so their labels count.
    given = {f"n{node}": "abc"[node % 3] for node in [*GIVEN, *range(N, N + 20)]}
    typos = {f"typo {i}": "a" for i in range(40)}
    without = GraphFeatureClassifier(random_state=0).fit_edges(edges, table, given)
    with pytest.warns(UserWarning, match="40 of the 90 .* in no edge and have no features, such"):
        model = GraphFeatureClassifier(random_state=0).fit_edges(edges, table, given | typos)
    found, expected = model.accuracy_estimate_, without.accuracy_estimate_
    assert found.n_labels == expected.n_labels == len(given)
    assert found.value == pytest.approx(expected.value, abs=0.05)
    shares = model.label_distributions_
    np.testing.assert_allclose(shares[: N + 20], without.label_distributions_, atol=0.05)
    assert model.transduction_[N + 20 :].tolist() == ["a"] * 40
    values = {node: float(ord(name)) for node, name in (given | typos).items()}
    with pytest.warns(UserWarning, match="have no features"):
        numbers = GraphFeatureRegressor(random_state=0).fit_edges(edges, table, values)
    assert numbers.transduction_[N + 20 :].tolist() == [97.0] * 40


def test_blanks_around_ids_are_named():
    y = {" ann": "x", "cy": "y", "bob": "x"}
    with pytest.warns(
        UserWarning, match=r"in no edge \(blanks around ids count, .*, such as ' ann'"
    ):
        HFSClassifier(random_state=0).fit_edges([("ann", "bob"), ("bob", "cy")], y)
