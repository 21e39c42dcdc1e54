"""Scores on random graphs with any components, against dense elimination."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ohmlearn import Graph, refine, solve_hfs
from ohmlearn.estimators import HFSClassifier


@st.composite
def labelled_graphs(draw):
    n = draw(st.integers(1, 14))
    m = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = 10.0 ** rng.uniform(-2, 2, m)
    graph = Graph.from_edges(rng.integers(n, size=m), rng.integers(n, size=m), weights, n_nodes=n)
    labelled = rng.permutation(n)[: draw(st.integers(1, n))]
    return graph, labelled, rng.normal(size=(len(labelled), 2))


def dense_scores(graph, labelled, Y, gamma, stable):
    """Solve for f and mu on the nodes that are reached."""
    component = graph.components()[1]
    reached = np.isin(component, component[labelled])
    n = graph.n_nodes
    A = gamma * len(labelled) * graph.laplacian().toarray()
    A[labelled, labelled] += 1
    b = np.zeros((n + 1, Y.shape[1]))
    b[labelled] = Y
    border = reached.astype(float) if stable else np.zeros(n)
    system = np.block([[A, border[:, None]], [border[None, :], np.array([[float(not stable)]])]])
    system[~np.append(reached, True)] = np.eye(n + 1)[~np.append(reached, True)]
    return np.linalg.solve(system, b)[:n], reached


@settings(deadline=None, max_examples=100)
@given(labelled_graphs(), st.sampled_from([0.01, 1.0, 100.0]), st.booleans())
def test_scores_solve_the_dense_system(problem, gamma, stable):
    graph, labelled, Y = problem
    expected, reached = dense_scores(graph, labelled, Y, gamma, stable)
    found = solve_hfs(graph, labelled, Y, gamma=gamma, normalization="stable" if stable else None)
    np.testing.assert_allclose(found.f, expected, atol=1e-7 * max(1.0, np.abs(expected).max()))
    assert np.array_equal(found.reached, reached)
    assert not found.f[~reached].any()
    u, v, w = graph.edges()
    halves = [(u, v, w / 2), (v, u, w / 2)]
    again = refine(
        halves,
        graph,
        labelled,
        Y,
        passes=5,
        tol=1e-6,
        gamma=gamma,
        normalization="stable" if stable else None,
    )
    np.testing.assert_allclose(again.f, found.f, atol=1e-5 * max(1.0, np.abs(expected).max()))


@settings(deadline=None, max_examples=100)
@given(labelled_graphs(), st.sampled_from(["stable", "cmn", None]), st.data())
def test_probabilities_are_probabilities_and_names_do_not_matter(problem, normalization, data):
    graph, labelled, _ = problem
    classes = data.draw(st.lists(st.integers(0, 3), min_size=len(labelled), max_size=len(labelled)))
    model = HFSClassifier(epsilon=None, normalization=normalization, random_state=0)
    by_number = dict(zip(labelled.tolist(), classes, strict=True))
    by_name = {node: f"class {c}" for node, c in by_number.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warnings of nodes without evidence
        shares = model.fit_edges(
            graph, by_number, n_nodes=graph.n_nodes
        ).label_distributions_.copy()
        numbers = model.transduction_
        names = model.fit_edges(graph, by_name, n_nodes=graph.n_nodes).transduction_
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.min() >= 0
    assert [f"class {c}" for c in numbers] == names.tolist()
