"""What holds for every solver: the pseudo-inverse, linearity, scaling, relabelling, determinism."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import pinvh
from sklearn.exceptions import ConvergenceWarning
from solver_cases import METHODS, dense_matrix

from ohmlearn import Graph, LaplacianSolver


@st.composite
def systems(draw, decades=2, least=1, most=30):
    """A graph, connected or not, and a ground on some of its nodes or none."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_edges = draw(st.integers(0, 3 * n))
    u, v = rng.integers(0, n, (2, n_edges))
    graph = Graph.from_edges(u, v, 10.0 ** rng.uniform(-decades, 0, n_edges), n_nodes=n)
    share = draw(st.sampled_from([0.0, 0.1, 1.0]))
    ground = np.where(rng.random(n) < share, 10.0 ** rng.uniform(-decades, 0, n), 0.0)
    return graph, ground, rng


methods = st.sampled_from(METHODS)
columns = st.integers(1, 20)


@given(systems(), methods, columns)
def test_pseudo_inverse(system, method, n_columns):
    graph, ground, rng = system
    b = rng.standard_normal((graph.n_nodes, n_columns))
    x = LaplacianSolver(graph, ground=ground, random_state=0, method=method).solve(b, tol=1e-11)
    inverse = pinvh(dense_matrix(graph, ground), rtol=1e-12)
    scale = np.linalg.norm(inverse, 2) * np.linalg.norm(b, axis=0)
    assert (np.linalg.norm(x - inverse @ b, axis=0) <= 1e-9 * scale + 1e-300).all()


@given(systems(), methods, st.integers(-300, 300))
def test_powers_of_two_scale_exactly(system, method, exponent):
    """Scaling L + D or b by c scales x by 1 / c or c; exactly if c is a power of two."""
    graph, ground, rng = system
    factor = 2.0**exponent
    b = rng.standard_normal(graph.n_nodes)
    u, v, w = graph.edges()
    scaled = Graph.from_edges(u, v, factor * w, n_nodes=graph.n_nodes)
    x = LaplacianSolver(graph, ground=ground, random_state=0, method=method).solve(b)
    y = LaplacianSolver(scaled, ground=factor * ground, random_state=0, method=method).solve(b)
    z = LaplacianSolver(graph, ground=ground, random_state=0, method=method).solve(factor * b)
    np.testing.assert_array_equal(y * factor, x)
    np.testing.assert_array_equal(z / factor, x)


@given(systems(decades=8, least=501, most=900), st.sampled_from(METHODS[:3]), columns)
@settings(max_examples=25, deadline=None)
def test_honest_and_repeatable_on_hard_systems(system, method, n_columns):
    """Converged or not, x is finite and sums to about zero, with a true report, for any threads."""
    graph, ground, rng = system
    b = rng.standard_normal((graph.n_nodes, n_columns))
    answers = []
    for n_jobs in (1, 2):
        solver = LaplacianSolver(graph, ground=ground, random_state=1, n_jobs=n_jobs, method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answers.append(solver.solve(b, tol=1e-8, max_iter=300))
    x, report = answers[0], solver.report_
    assert x.tobytes() == answers[1].tobytes()
    assert np.isfinite(x).all()
    assert (report.iterations <= 300).all()
    n_components, labels = graph.components()
    singular = np.bincount(labels, weights=ground, minlength=n_components) == 0
    member = np.zeros((n_components, graph.n_nodes))
    member[labels, np.arange(graph.n_nodes)] = 1.0
    means = member @ b / member.sum(axis=1, keepdims=True)
    means[~singular] = 0.0
    b = b - means[labels]
    u, v, w = graph.edges()
    product = ground[:, None] * x
    current = w[:, None] * (x[u] - x[v])
    np.add.at(product, u, current)
    np.add.at(product, v, -current)
    norms = np.linalg.norm(b, axis=0)
    norms[norms <= 1e-14] = np.inf  # all of b was in the null space: nothing is left to solve
    found = np.linalg.norm(b - product, axis=0) / norms
    # Computing the residual here also rounds, by a few last bits of the largest currents.
    slack = 1e-15 * np.linalg.norm((graph.degrees + ground)[:, None] * x, axis=0) / norms
    assert (abs(found - report.residual) <= 1e-9 * found + slack + 1e-14).all()
    assert (report.converged == (report.residual <= 1e-8)).all()
    totals = member[singular] @ x
    # A column that has not converged may have drifted far from zero before its mean was removed.
    rounding = np.where(report.converged, 1e-13, 1e-3)
    assert (abs(totals) <= rounding * (member[singular] @ abs(x)) + 1e-300).all()


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=10)
def test_any_seed_serves(method, seed):
    ring = Graph.from_edges(np.arange(12), np.arange(1, 13) % 12)
    b = np.zeros(12)
    b[0], b[6] = 1.0, -1.0
    x = LaplacianSolver(ring, random_state=seed, method=method).solve(b, tol=1e-12)
    np.testing.assert_allclose(x[0] - x[6], 3.0, rtol=1e-10)  # six ohms and six in parallel
