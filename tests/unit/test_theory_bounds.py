"""On small graphs the repaired Theorem 1 holds for every draw of labels; the printed one fails.

Everything is compared with dense answers for all sets of labelled nodes, not for a sample of them.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
from certificate_cases import energy_ratios
from refuses import refuses

from ohmlearn import Graph, HFSClassifier, HFSRegressor, certify, gallery
from ohmlearn.paper import (
    certified_bound,
    generalization_bound,
    spectral_extremes,
    stability_beta,
)


def stable_hfs(laplacian, labelled, y, gamma):
    """The minimiser over vectors that sum to zero, in an orthonormal basis of them."""
    n = len(y)
    basis = scipy.linalg.null_space(np.ones((1, n)))
    indicator = np.zeros(n)
    indicator[list(labelled)] = 1.0
    matrix = basis.T @ (gamma * len(labelled) * laplacian + np.diag(indicator)) @ basis
    return basis @ np.linalg.solve(matrix, basis.T @ (indicator * y))


def random_graph(n, rng, density=0.6):
    """A connected graph with weights over two decades."""
    while True:
        upper = np.triu(rng.random((n, n)) < density, 1) * 10.0 ** rng.uniform(-1, 1, (n, n))
        graph = Graph.from_scipy(upper + upper.T)
        if graph.n_nodes == n and graph.components()[0] == 1:
            return graph


def random_sparsifier(graph, rng):
    """Drop some edges and change other weights; return the exact ratios of energies as well."""
    u, v, w = graph.edges()
    while True:
        keep = rng.random(len(u)) < 0.8
        factors = rng.uniform(0.6, 1.7, keep.sum())
        h = Graph.from_edges(u[keep], v[keep], w[keep] * factors, n_nodes=graph.n_nodes)
        if h.components()[0] == 1:
            break
    return h, *energy_ratios(h, graph)


CASES = [
    (seed, n, l_, gamma, k)
    for seed, (n, l_, gamma, k) in enumerate(
        [(5, 2, 1.0, 1.0), (6, 3, 0.1, 1.0), (7, 3, 2.0, 3.0), (7, 2, 0.02, 0.5), (8, 4, 0.3, 1.0)]
    )
]


@pytest.fixture(params=CASES, ids=str)
def draws(request):
    """A graph, a sparsifier, labels, and the answers on both for every set of labelled nodes."""
    seed, n, l_, gamma, k = request.param
    rng = np.random.default_rng(seed)
    graph = random_graph(n, rng)
    h, lower, upper = random_sparsifier(graph, rng)
    y = k * rng.choice([-1.0, 1.0], n)
    g_matrix, h_matrix = graph.laplacian().toarray(), h.laplacian().toarray()
    sets = list(itertools.combinations(range(n), l_))
    exact = {s: stable_hfs(g_matrix, s, y, gamma) for s in sets}
    sparse = {s: stable_hfs(h_matrix, s, y, gamma) for s in sets}
    extremes = spectral_extremes(graph)
    arguments = {
        "n_labelled": l_,
        "gamma": gamma,
        "lambda_1": extremes.lambda_1,
        "epsilon": max(1.0 - lower, upper - 1.0),
        "lower": lower,
        "label_bound": k,
    }
    return y, exact, sparse, arguments, extremes.lambda_n


def mean_squares(f, y, labelled):
    """Mean squared error on the labelled and on the other nodes."""
    inside = np.isin(np.arange(len(y)), labelled)
    errors = (f - y) ** 2
    return errors[inside].mean(), errors[~inside].mean()


def test_answers_stay_within_the_deviation_bound(draws):
    y, _, sparse, arguments, _ = draws
    largest = max(np.abs(f - y).max() for f in sparse.values())
    assert largest <= stability_beta(**arguments).deviation_bound


def test_repaired_beta_bounds_every_swap_of_a_labelled_node(draws):
    y, _, sparse, arguments, _ = draws
    largest = max(
        np.abs((sparse[s] - y) ** 2 - (sparse[t] - y) ** 2).max()
        for s, t in itertools.combinations(sparse, 2)
        if len(set(s) & set(t)) == len(s) - 1
    )
    assert largest <= stability_beta(**arguments).repaired


def test_repaired_beta_is_no_looser_than_twice_on_a_complete_graph():
    n, l_, gamma = 8, 3, 4.0
    laplacian = gallery.complete(n).laplacian().toarray()
    largest = largest_swap(laplacian, np.ones(n), l_, gamma)
    bound = stability_beta(l_, gamma=gamma, lambda_1=n).repaired
    assert 0.5 * bound < largest <= bound


def largest_swap(laplacian, y, l_, gamma):
    n = len(y)
    answers = {s: stable_hfs(laplacian, s, y, gamma) for s in itertools.combinations(range(n), l_)}
    return max(
        np.abs((answers[s] - y) ** 2 - (answers[t] - y) ** 2).max()
        for s, t in itertools.combinations(answers, 2)
        if len(set(s) & set(t)) == l_ - 1
    )


@pytest.mark.parametrize("k", [1.0, 10.0])
def test_printed_beta_is_exceeded(k):
    """It bounds |f - f'| instead of the change of the loss, because the factor 2c is missing."""
    n, l_, gamma = 8, 3, 4.0
    labels = k * np.where(np.arange(n) < n // 2, 1.0, -1.0)
    largest = largest_swap(gallery.complete(n).laplacian().toarray(), labels, l_, gamma)
    assert largest > stability_beta(l_, gamma=gamma, lambda_1=n, label_bound=k).printed


def test_printed_step_3_has_a_counterexample():
    """One edge of weight 1, one label 1, gamma = 1: f = (t, -t) with t = 1 / (1 + 4 w).

    The sparsifier weighs 1.01. The squared error at the labelled node grows by about epsilon, but
    the printed term is of order epsilon squared: the cross term was dropped.
    """
    epsilon = 0.01
    errors = [(4 * w / (1 + 4 * w)) ** 2 for w in (1.0, 1.0 + epsilon)]
    for w, error in zip((1.0, 1.0 + epsilon), errors, strict=True):
        f = stable_hfs(np.array([[w, -w], [-w, w]]), [0], np.array([1.0, 1.0]), 1.0)
        np.testing.assert_allclose((f[0] - 1.0) ** 2, error, rtol=1e-12)
    bound = generalization_bound(
        errors[0], 1, 1, gamma=1.0, lambda_1=2.0, lambda_n=2.0, epsilon=epsilon
    )
    assert bound.margin > 1.0  # the printed condition is met
    assert errors[1] > bound.printed.empirical + 5 * bound.printed.sparsification
    assert errors[1] <= bound.repaired.empirical + bound.repaired.sparsification


def test_repaired_step_3_holds_for_every_draw(draws):
    y, exact, sparse, arguments, lambda_n = draws
    for s in exact:
        error, _ = mean_squares(exact[s], y, s)
        found, _ = mean_squares(sparse[s], y, s)
        terms = generalization_bound(
            error, n_unlabelled=len(y) - len(s), lambda_n=lambda_n, **arguments
        ).repaired
        assert found <= (terms.empirical + terms.sparsification) * (1 + 1e-12)


def test_change_on_labelled_nodes_is_within_its_bound_where_it_is_nearly_attained():
    """Two nodes, one label: Delta is 0.25 of its bound at the worst weight, and never above it."""
    shares = []
    for w in np.geomspace(0.01, 100.0, 81):
        for epsilon in (0.01, 0.3):
            for factor in (1 - epsilon, 1 + epsilon):
                t, t_sparse = 1 / (1 + 4 * w), 1 / (1 + 4 * w * factor)
                bound = generalization_bound(
                    0.0, 1, 1, gamma=1.0, lambda_1=2 * w, lambda_n=2 * w, epsilon=epsilon
                )
                shares.append((t - t_sparse) ** 2 / bound.repaired.sparsification)
    assert 0.2 < max(shares) <= 1.0


@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05, 0.01])
def test_repaired_bound_holds_over_all_draws(draws, delta):
    y, exact, sparse, arguments, lambda_n = draws
    broken = 0
    for s in exact:
        error, _ = mean_squares(exact[s], y, s)
        bound = generalization_bound(
            error, n_unlabelled=len(y) - len(s), lambda_n=lambda_n, delta=delta, **arguments
        )
        broken += mean_squares(sparse[s], y, s)[1] > bound.repaired.value
    assert broken <= delta * len(exact)


@pytest.mark.parametrize(("n", "l_"), [(10, 2), (10, 5), (12, 4), (14, 7)])
@pytest.mark.parametrize("delta", [0.5, 0.3, 0.1, 0.02])
def test_deviation_of_a_fixed_answer_over_all_draws(n, l_, delta):
    """With beta = 0 the share of draws beyond the deviation is at most delta, and can be close.

    An answer that does not depend on the draw, with losses c^2 on half of the nodes and 0 on the
    others, is the worst case of the concentration inequality; here c = k.
    """
    losses = np.repeat([0.0, 1.0], n // 2)
    huge = 1e12  # lambda_1 so large that beta vanishes and c is k
    deviation = generalization_bound(
        0.0, l_, n - l_, gamma=1.0, lambda_1=huge, lambda_n=huge, delta=delta
    ).repaired
    np.testing.assert_allclose(deviation.stability, 0.0, atol=1e-11)
    gaps = []
    for s in itertools.combinations(range(n), l_):
        inside = np.isin(np.arange(n), s)
        gaps.append(losses[~inside].mean() - losses[inside].mean())
    assert np.mean(np.array(gaps) > deviation.deviation) <= delta
    assert max(gaps) > 0.5 * deviation.deviation


def test_bounds_say_whether_they_are_informative():
    how = {"gamma": 1.0, "lambda_n": 40.0}
    tight = generalization_bound(0.1, 5000, 5000, lambda_1=5.0, epsilon=0.1, **how)
    assert not tight.vacuous
    assert "vacuous" not in str(tight)
    assert tight.repaired.value < 0.2
    loose = generalization_bound(1.0, 2, 98, lambda_1=1e-3, epsilon=0.8, **how)
    assert loose.vacuous
    assert math.isinf(loose.printed.value)
    assert str(loose).count("vacuous") == 2
    disconnected = generalization_bound(1.0, 2, 98, lambda_1=0.0, **how)
    assert disconnected.vacuous
    assert math.isinf(disconnected.repaired.value)
    bound = generalization_bound(0.99, 10**6, 50, gamma=1e-3, lambda_1=1.0, lambda_n=9.0)
    assert bound.label_bound**2 <= bound.repaired.value < bound.repaired.trivial


def test_exact_algorithm_adds_nothing_and_terms_add_up():
    bound = generalization_bound(0.3, 20, 80, gamma=1.0, lambda_1=5.0, lambda_n=20.0)
    assert bound.repaired.sparsification == bound.printed.sparsification == 0.0
    terms = bound.repaired
    assert terms.value == pytest.approx(0.3 + terms.stability + terms.deviation)
    pi = 20 * 80 / 99.5 / (1 - 1 / 160)
    c = 1 + math.sqrt(20) / 100
    beta = 2 * math.sqrt(2) * c**2 / 100
    spread = math.sqrt(pi * math.log(20) / 2)
    assert terms.deviation == pytest.approx((2 * beta + c**2 * 100 / 1600) * spread)


def test_printed_form_is_the_papers():
    bound = generalization_bound(
        0.25, 10, 90, gamma=2.0, lambda_1=3.0, lambda_n=7.0, epsilon=0.4, label_bound=1.5, delta=0.1
    ).printed
    a = 10 * 2.0 * 0.6 * 3.0 - 1
    beta = 1.5 * 1.5 * math.sqrt(10) / a**2 + math.sqrt(2) * 1.5 / a
    assert bound.stability == pytest.approx(beta)
    assert bound.sparsification == pytest.approx(10**2 * 2**2 * 7**2 * 1.5**2 * 0.4**2 / a**4)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (gallery.path(9), (2 - 2 * math.cos(math.pi / 9), 2 + 2 * math.cos(math.pi / 9), 1)),
        (gallery.complete(7), (7, 7, 1)),
        (gallery.star(20), (1, 20, 1)),
        (gallery.path(600), (2 - 2 * math.cos(math.pi / 600), 2 + 2 * math.cos(math.pi / 600), 1)),
        (gallery.grid2d(30, 31), (2 - 2 * math.cos(math.pi / 31), None, 1)),
        (gallery.complete(600), (600, 600, 1)),
        (gallery.star(700), (1, 700, 1)),
        (Graph.from_edges([0, 2], [1, 3], [1.0, 5.0]), (0, 10, 2)),
        (Graph.from_edges([0, 598], [1, 599], [1.0, 5.0], n_nodes=600), (0, 10, 598)),
        (Graph.from_edges([], [], n_nodes=3), (0, 0, 3)),
    ],
    ids=str,
)
def test_spectral_extremes_have_their_closed_forms(graph, expected):
    found = spectral_extremes(graph)
    lambda_1, lambda_n, n_components = expected
    np.testing.assert_allclose(found.lambda_1, lambda_1, rtol=1e-7, atol=1e-12)
    if lambda_n is not None:
        np.testing.assert_allclose(found.lambda_n, lambda_n, rtol=1e-6)
    assert found.n_components == n_components
    if n_components > 1:
        assert found.lambda_1 == 0.0


def test_wrong_arguments_are_named():
    good = {"n_labelled": 1, "gamma": 1.0, "lambda_1": 1.0}
    for bad in ({"n_labelled": 0}, {"gamma": 0.0}, {"lambda_1": math.nan}, {"epsilon": 1.2}):
        with refuses(parameter=next(iter(bad))):
            stability_beta(**good | bad)
    with refuses(parameter="lambda_n", value=1.0):
        generalization_bound(0.1, 1, 1, gamma=1.0, lambda_1=2.0, lambda_n=1.0)
    with pytest.raises(ValueError, match="at least two nodes"):
        spectral_extremes(Graph.from_edges([], [], n_nodes=1))


# Bounds from a fitted classifier agree with bounds from explicit numbers, and hold.
TRUTH = np.arange(600) % 3


def draw_labels(seed=0, n_labelled=300):
    y = np.full(600, -1)
    drawn = np.random.default_rng(seed).choice(600, n_labelled, replace=False)
    y[drawn] = TRUTH[drawn]
    return y


def errors(model, y):
    """Mean squared errors of each class on labelled and on other nodes."""
    squares = (model.scores_ - np.eye(3)[TRUTH]) ** 2
    return squares[y >= 0].mean(axis=0), squares[y < 0].mean(axis=0)


def test_exact_classifier_on_a_complete_graph_has_the_closed_form():
    y = draw_labels()
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


@pytest.mark.filterwarnings("ignore:. has .* labels:UserWarning")  # which are drawn at random here
@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_one_pass_hold_and_need_no_certificate(seed):
    y = draw_labels(seed)
    model = HFSClassifier(gamma=0.01, passes=1, random_state=seed)
    model.fit_edges(gallery.complete(600), y)
    assert model.sparsifier_.snapshot().n_edges < 30_000  # edges were dropped
    found = certified_bound(model)
    _, others = errors(model, y)
    assert [bound.repaired.value >= others[c] for c, bound in found.bounds.items()] == [True] * 3
    assert all(bound.repaired.sparsification == 0.0 for bound in found.bounds.values())


def test_refined_answers_need_a_certificate_which_lowers_the_eigenvalue():
    y, graph = draw_labels(), gallery.complete(600)
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
    y = draw_labels()
    graph = gallery.stochastic_blocks([300, 300], p=0.2, bridges=0, random_state=0)
    found = certified_bound(HFSClassifier(epsilon=None).fit_edges(graph, y))
    assert found.lambda_1 == 0.0
    assert found.vacuous
    assert all(math.isinf(bound.repaired.value) for bound in found.bounds.values())
    assert "bounds are all vacuous" in str(found)


def test_what_the_bounds_are_not_about_is_refused():
    graph, y = gallery.complete(600), draw_labels()
    with pytest.raises(TypeError, match="Classifier is needed, got HFSRegressor"):
        certified_bound(HFSRegressor(random_state=0).fit_edges(graph, {0: 1.0, 1: 2.0}))
    plain = HFSClassifier(epsilon=None, normalization=None).fit_edges(graph, y)
    with refuses(parameter="normalization", value=None):
        certified_bound(plain)
    with pytest.raises(ValueError, match="all nodes are labelled"):
        certified_bound(HFSClassifier(epsilon=None).fit_edges(graph, TRUTH))
