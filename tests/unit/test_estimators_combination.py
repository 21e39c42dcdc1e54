"""The model of left-out labels: its optimum, its invariances, and estimates that stay honest."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

from ohmlearn import HFSClassifier
from ohmlearn.estimators.calibration import DEFAULT as START
from ohmlearn.estimators.class_proportions import find_imbalance
from ohmlearn.estimators.combination import (
    FOLDS,
    Combination,
    fit_combination,
    folds_of,
    scale_walks,
)


def sample(n=60, n_classes=3, seed=0):
    """Return exponents that are too low for the first class, walks that help, labels, weights."""
    random = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), random.choice(n_classes, n - n_classes)])
    targets = np.eye(n_classes)[codes]
    x = targets + random.normal(size=(n, n_classes)) - 1.5 * np.eye(n_classes)[0]
    w = scale_walks(targets + random.normal(size=(n, n_classes)), np.ones_like(x, bool), 1.0)
    return x, w, targets, random.uniform(0.5, 1.5, n)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_fit_is_the_optimum_of_the_formula(n_classes):
    x, w, targets, weights = sample(n_classes=n_classes)

    def loss(at):
        t, s, r, beta = START.temperature * np.exp(at[0]), expit(at[1]), at[2], at[3:]
        p = (1 - s) * np.exp(log_softmax((x + r * w) / t + beta, axis=1)) + s / n_classes
        prior = beta @ beta / 0.5**2 + r**2 / 0.2**2 + at[0] ** 2
        prior += (at[1] - logit(START.smoothing)) ** 2
        return -float(weights @ (targets * np.log(p)).sum(axis=1)) + prior / 2

    first = np.array([0.0, logit(START.smoothing), 0.3, *np.zeros(n_classes)])
    how = {"method": "Nelder-Mead", "options": {"maxiter": 40_000, "maxfev": 40_000}}
    best = minimize(loss, minimize(loss, first).x, **how, tol=1e-10).x
    found = fit_combination(x, w, targets, weights)
    assert found.restart == pytest.approx(best[2], abs=2e-3)
    assert found.restart > 0.05
    beta = best[3:] - best[3:].mean()
    np.testing.assert_allclose(found.bias, START.temperature * np.exp(best[0]) * beta, atol=2e-3)
    assert found.bias.sum() == pytest.approx(0.0, abs=1e-12)
    assert found.bias.argmax() == 0


def test_the_fit_does_not_depend_on_orders_and_constants():
    x, w, targets, weights = sample()
    found = fit_combination(x, w, targets, weights)
    order, rows = np.array([2, 0, 1]), np.random.default_rng(0).permutation(len(x))
    shift = np.random.default_rng(1).normal(size=(len(x), 1))
    other = fit_combination(
        (x + shift)[rows][:, order], w[rows][:, order], targets[rows][:, order], weights[rows]
    )
    np.testing.assert_allclose(other.bias, found.bias[order], atol=1e-4)
    assert other.restart == pytest.approx(found.restart, abs=1e-4)
    # A label of weight 2 counts like two.
    twice = [np.concatenate([each, each[:20]]) for each in (x, w, targets, np.ones(60))]
    double = np.where(np.arange(60) < 20, 2.0, 1.0)
    one, two = fit_combination(*twice), fit_combination(x, w, targets, double)
    np.testing.assert_allclose(one.bias, two.bias, atol=1e-4)


def test_a_class_with_one_label_has_no_bias_of_its_own():
    x, w, targets, weights = sample(n_classes=4)
    codes = targets.argmax(axis=1)
    kept = np.flatnonzero((codes != 3) | (np.cumsum(codes == 3) == 1))
    bias = fit_combination(x[kept], w[kept], targets[kept], weights[kept]).bias
    x[:, 3] = -np.inf  # nor one that is not in the component
    other = fit_combination(x[kept], w[kept], targets[kept], weights[kept]).bias
    for found in (bias, other):
        assert found[3] == pytest.approx(-(found[:3] - found[3]).sum() / 4)
    walks = scale_walks(np.array([[1.0, 3.0, 9.0], [1e-12, 0.0, 0.0]]), np.ones((2, 3), bool), 1.0)
    assert np.sqrt(np.mean(walks[0] ** 2)) == pytest.approx(1.0)
    assert np.abs(walks[1]).max() < 1e-4  # an error of the solver


def test_folds_have_equal_parts_of_each_class():
    codes = np.repeat([0, 1, 2], [40, 25, 3])
    counts = np.array([np.bincount(folds_of(codes)[codes == c], minlength=FOLDS) for c in range(3)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert counts[:2].min() >= 5


def social(seed, n=3000, same=0.3):
    """Return edges between members of two classes of 26 and 74%, with hubs, and the classes."""
    random = np.random.default_rng(seed)
    truth = np.where(random.random(n) < 0.26, "fraud", "fair")
    activity = np.minimum((1 - random.random(n)) ** -0.6, 100.0) * np.where(
        truth == "fraud", 0.7, 1
    )
    activity /= activity.sum()
    u, v = (random.choice(n, 6 * n, p=activity) for _ in range(2))
    u[:n] = np.arange(n)  # each has an edge
    inside = random.random(6 * n) < same
    for name in ("fraud", "fair"):
        own, pool = np.flatnonzero(inside & (truth[u] == name)), np.flatnonzero(truth == name)
        v[own] = random.choice(pool, len(own), p=activity[pool] / activity[pool].sum())
    return (u, v), truth


def test_unequal_classes_with_hubs():
    edges, truth = social(0)
    drawn = np.random.default_rng(0).choice(3000, 200, replace=False)
    labels = {int(node): str(truth[node]) for node in drawn}
    others = np.setdiff1d(np.arange(3000), drawn)
    right, gaps = [], []
    for method in ("harmonic", "auto"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = HFSClassifier(method=method, random_state=0).fit_edges(
                edges, labels, n_nodes=3000
            )
        hit = (model.transduction_ == truth)[others]
        right.append(hit.mean())
        p, codes = model.label_distributions_[others], model.answer_.codes(0)[others]
        sure = p.max(axis=1)
        gaps.append(max(abs(sure[codes == c].mean() - hit[codes == c].mean()) for c in range(2)))
        if method == "harmonic":
            assert "of 200 labels" in str(caught[-1].message)
            assert "class_prior" in str(caught[-1].message)
    assert right[1] > right[0] + 0.1
    assert right[1] > 0.72
    assert gaps[1] < gaps[0]
    assert abs(model.accuracy_estimate_.value - right[1]) < 0.08
    assert model.bias_[0] > 0.2 > model.restart_
    assert model.classes_[0] == "fair"


def test_the_estimate_is_honest_for_useless_labels():
    edges, _ = social(1)
    random, estimates, right = np.random.default_rng(2), [], []
    for _ in range(12):
        truth = np.where(random.random(3000) < 0.5, "a", "b")
        drawn = random.choice(3000, 30, replace=False)
        with warnings.catch_warnings(action="ignore"):  # of a class that gets few nodes
            model = HFSClassifier(random_state=0).fit_edges(
                edges, {int(node): truth[node] for node in drawn}, n_nodes=3000
            )
        estimates.append(model.accuracy_estimate_.value)
        right.append(np.mean(model.transduction_ == truth))
    # The standard deviation of the mean is 0.5 / sqrt(12 * 30), up to correlation within a draw.
    assert abs(np.mean(estimates) - np.mean(right)) < 0.1
    assert np.mean(right) == pytest.approx(0.5, abs=0.02)


def test_same_bits_for_any_number_of_threads():
    edges, truth = social(3, n=1000)
    labels = {node: str(truth[node]) for node in range(60)}
    one, two = (
        HFSClassifier(n_jobs=n_jobs, random_state=0, class_prior="labels").fit_edges(edges, labels)
        for n_jobs in (1, 3)
    )
    assert one.bias_.tobytes() == two.bias_.tobytes()
    assert one.restart_ == two.restart_
    assert one.label_distributions_.tobytes() == two.label_distributions_.tobytes()


@pytest.mark.parametrize(
    ("given", "answers", "name"),
    [
        ((148, 52), (570, 430), "b"),
        ((148, 52), (700, 300), None),
        ((52, 52), (570, 430), None),  # chosen
        ((148, 4), (9_999, 1), "a"),  # nothing left of a class
        ((1, 9), (800, 200), "a"),  # spread by one label
        ((4, 3), (30, 70), None),  # too few to say
        ((50, 0), (100, 0), None),
        ((90, 60, 50), (450, 450, 100), "c"),
    ],
)
def test_imbalance(given, answers, name):
    found = find_imbalance(list("abc")[: len(given)], np.array(given, float), np.array(answers))
    assert (found and found.name) == name


def test_walks_are_weighted_and_biases_added():
    added = Combination(0.5, np.array([-0.25, 0.25]))
    found = added.apply(np.array([[1.0, -np.inf]]), np.array([[2.0, 0.0]]))
    np.testing.assert_array_equal(found, [[1.75, -np.inf]])
