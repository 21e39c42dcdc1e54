"""Bounds from a fitted classifier agree with bounds from explicit numbers, and hold."""

import math

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import certify, gallery
from ohmlearn.estimators import HFSClassifier, HFSRegressor
from ohmlearn.paper import certified_bound, generalization_bound

TRUTH = np.arange(600) % 3


def labels(seed=0, n_labelled=300):
    y = np.full(600, -1)
    drawn = np.random.default_rng(seed).choice(600, n_labelled, replace=False)
    y[drawn] = TRUTH[drawn]
    return y


def errors(model, y):
    """Mean squared errors of each class on labelled and on other nodes."""
    squares = (model.scores_ - np.eye(3)[TRUTH]) ** 2
    return squares[y >= 0].mean(axis=0), squares[y < 0].mean(axis=0)


def test_exact_classifier_on_a_complete_graph_has_the_closed_form():
    y = labels()
    model = HFSClassifier(epsilon=None, gamma=0.01).fit_edges(gallery.complete(600), y)
    found = certified_bound(model, delta=0.06)
    assert found.lambda_1 == pytest.approx(600, rel=1e-7)
    seen, _ = errors(model, y)
    for label, bound in found.bounds.items():
        expected = generalization_bound(
            seen[label], 300, 300, gamma=0.01, lambda_1=600.0, lambda_n=600.0, delta=0.02
        )
        assert bound.repaired.value == pytest.approx(expected.repaired.value, rel=1e-6)
    assert found.confidence == pytest.approx(0.94)
    assert not found.vacuous


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_one_pass_hold_and_need_no_certificate(seed):
    y = labels(seed)
    model = HFSClassifier(gamma=0.01, passes=1, random_state=seed)
    model.fit_edges(gallery.complete(600), y)
    assert model.sparsifier_.snapshot().n_edges < 30_000  # edges were dropped
    found = certified_bound(model)
    _, others = errors(model, y)
    assert [bound.repaired.value >= others[c] for c, bound in found.bounds.items()] == [True] * 3
    assert all(bound.repaired.sparsification == 0.0 for bound in found.bounds.values())


def test_refined_answers_need_a_certificate_which_lowers_the_eigenvalue():
    y, graph = labels(), gallery.complete(600)
    model = HFSClassifier(gamma=0.01, passes=4, random_state=0).fit_edges(graph, y)
    assert model.n_iter_ > 1
    with pytest.raises(ValueError, match=r"made \d passes.*pass certificate=certify"):
        certified_bound(model)
    certificate = certify(graph, model.sparsifier_, random_state=0)
    with pytest.raises(ValueError, match="after 4 passes is not yet that of the full graph"):
        certified_bound(model, certificate)
    found = certified_bound(model.refine(graph, passes=30), certificate)
    assert 0 < found.lambda_1 <= 600  # a lower bound for the full graph
    assert found.confidence == pytest.approx(0.95 - (1 - certificate.confidence))


def test_disconnected_graphs_have_no_bound():
    y = labels()
    graph = gallery.stochastic_blocks([300, 300], p=0.2, bridges=0, random_state=0)
    found = certified_bound(HFSClassifier(epsilon=None).fit_edges(graph, y))
    assert found.lambda_1 == 0.0
    assert found.vacuous
    assert all(math.isinf(bound.repaired.value) for bound in found.bounds.values())
    assert "bounds are all vacuous" in str(found)


def test_what_the_bounds_are_not_about_is_refused():
    graph, y = gallery.complete(600), labels()
    with pytest.raises(TypeError, match="Classifier is needed, got HFSRegressor"):
        certified_bound(HFSRegressor(random_state=0).fit_edges(graph, {0: 1.0, 1: 2.0}))
    plain = HFSClassifier(epsilon=None, normalization=None).fit_edges(graph, y)
    with refuses(parameter="normalization", value=None):
        certified_bound(plain)
    with pytest.raises(ValueError, match="all nodes are labelled"):
        certified_bound(HFSClassifier(epsilon=None).fit_edges(graph, TRUTH))
