"""LaplacianSolver against dense pseudo-inverses, at all scales."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from sklearn.exceptions import ConvergenceWarning
from solver_cases import (
    METHODS,
    dense_matrix,
    grid,
    hub_and_ring,
    relative_residual,
)

from ohmlearn import Graph, LaplacianSolver
from ohmlearn.gallery import path


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_regularised_systems_of_label_propagation(factor, method):
    """factor * L + I_S, the system of (stable) harmonic functions."""
    graph = grid(9)
    u, v, w = graph.edges()
    ground = np.zeros(81)
    ground[[3, 40, 77]] = 1.0
    scaled = Graph.from_edges(u, v, factor * w)
    b = np.zeros((81, 2))
    b[3, 0] = b[40, 1] = 1.0
    # Where the ground is large, currents are a millionth of b, so the residual must be that small.
    tol = 1e-8 if factor > 1 else 1e-14
    x = LaplacianSolver(scaled, ground=ground, random_state=0, method=method).solve(b, tol=tol)
    expected = np.linalg.solve(dense_matrix(scaled, ground), b)
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("method", METHODS)
def test_karate_club_against_sparse_lu(method):
    """One ampere between the two leaders, whose mean voltage is 0; then both are labelled."""
    graph = Graph.from_networkx(nx.karate_club_graph())
    laplacian, b = graph.laplacian().tocsc(), np.zeros(34)
    b[[0, 33]] = 1.0, -1.0
    expected = np.append(0.0, splu(laplacian[1:, 1:]).solve(b[1:]))
    x = LaplacianSolver(graph, random_state=0, method=method).solve(b, tol=1e-13)
    np.testing.assert_allclose(x, expected - expected.mean(), atol=1e-11)
    solver = LaplacianSolver(graph, ground=abs(b), random_state=0, method=method)
    expected = splu(laplacian + sp.diags_array(abs(b), format="csc")).solve(b)
    np.testing.assert_allclose(solver.solve(b, tol=1e-13), expected, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_no_nodes(method):
    solver = LaplacianSolver(Graph.from_edges([], [], n_nodes=0), method=method)
    assert solver.solve(np.zeros(0)).shape == (0,)
    assert solver.solve(np.zeros((0, 3))).shape == (0, 3)
    assert solver.report_.converged.tolist() == [True] * 3
    assert solver.preconditioner().matvec(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("method", METHODS)
def test_no_columns(method):
    solver = LaplacianSolver(path(600), method=method, random_state=0)
    assert solver.solve(np.zeros((600, 0))).shape == (600, 0)
    assert solver.report_.residual.tolist() == []
    b = np.arange(600.0)
    currents = np.cumsum(299.5 - b)[:-1]  # an edge carries the sum of the inputs before it
    np.testing.assert_allclose(np.diff(solver.solve(b, tol=1e-10)), currents, rtol=0, atol=1e-3)


@pytest.mark.parametrize("method", ["auto", "cholesky"])
def test_hub_and_ring_beyond_the_direct_limit(method):
    """Closed form: with equal currents from the hub to the rim, all voltage is on the spokes."""
    n = 3000
    b = np.full(n, -1.0)
    b[0] = n - 1
    x = LaplacianSolver(hub_and_ring(n), method=method, random_state=0).solve(b, tol=1e-12)
    np.testing.assert_allclose(x[0] - x[1:], 1.0, rtol=1e-9)


@pytest.mark.parametrize("method", ["auto", "cholesky"])
def test_weights_over_twelve_decades_never_fail(method):
    for seed in range(20):
        graph = grid(60, decades=12, seed=seed)
        b = np.random.default_rng(seed).standard_normal(3600)
        solver = LaplacianSolver(graph, random_state=seed, method=method)
        x = solver.solve(b, tol=1e-8)  # a ConvergenceWarning would be an error here
        assert relative_residual(graph, None, b, x) <= 1.2e-8


def longdouble_grounded_solve(graph, ground, b):
    """Eliminate in extended precision without pivoting or cancellation (GTH algorithm)."""
    n = graph.n_nodes
    weights = graph.to_scipy().toarray().astype(np.longdouble)
    ground = ground.astype(np.longdouble)
    b = b.astype(np.longdouble)
    pivots = np.empty(n, dtype=np.longdouble)
    for k in range(n - 1, -1, -1):
        row = weights[k, :k].copy()
        pivots[k] = row.sum() + ground[k]
        share = row / pivots[k]
        weights[:k, :k] += np.outer(row, share)
        ground[:k] += share * ground[k]
        b[:k] += share * b[k]
        weights[k, :k] = share
    x = np.zeros(n, dtype=np.longdouble)
    for k in range(n):
        x[k] = b[k] / pivots[k] + weights[k, :k] @ x[:k]
    return x.astype(float)


@pytest.mark.parametrize("method", METHODS)
def test_twelve_decades_against_extended_precision(method):
    graph = grid(14, decades=12, seed=3)
    ground = np.zeros(196)
    ground[100] = 1e-3
    b = np.random.default_rng(0).uniform(0, 1, 196)  # positive, so no cancellation in the reference
    expected = longdouble_grounded_solve(graph, ground, b)
    solver = LaplacianSolver(graph, ground=ground, method=method, random_state=0)
    if method == "diagonal":  # needs more iterations than there are decades
        x = solver.solve(b, tol=1e-6, max_iter=50_000)
        np.testing.assert_allclose(x, expected, rtol=1e-2)
    else:
        x = solver.solve(b, tol=2e-8)
        np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_any_scale_of_weights(scale, method):
    graph = grid(23)
    u, v, w = graph.edges()
    b = np.random.default_rng(0).standard_normal(529)
    solver = LaplacianSolver(Graph.from_edges(u, v, scale * w), method=method, random_state=0)
    expected = LaplacianSolver(graph, method="direct").solve(b)
    np.testing.assert_allclose(solver.solve(b, tol=1e-11) * scale, expected, rtol=0, atol=1e-8)
    assert solver.report_.converged.all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-150, 1e150, 1e160, 1e300])
def test_any_scale_of_right_hand_sides(scale, method):
    graph = grid(23)
    b = np.random.default_rng(0).standard_normal(529)
    solver = LaplacianSolver(graph, method=method, random_state=0)
    expected = LaplacianSolver(graph, method="direct").solve(b)
    x = solver.solve(np.stack([b, scale * b], axis=1), tol=1e-11)
    np.testing.assert_allclose(x[:, 1] / scale, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(x[:, 0], expected, rtol=0, atol=1e-8)
    projected = abs(b.mean()) * np.sqrt(529) / np.linalg.norm(b)
    np.testing.assert_allclose(solver.report_.projected_out, projected, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("decades", [20, 46, 200])
def test_hopeless_weights_give_numbers_and_a_warning(decades, method):
    """Results beyond the range of float32 and even of float64 are never NaN."""
    graph = grid(23, decades=decades)
    b = np.random.default_rng(0).standard_normal(529)
    solver = LaplacianSolver(graph, method=method, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not reach"):
        x = solver.solve(b, tol=1e-12, max_iter=300)
    assert np.isfinite(x).all()
    assert not solver.report_.converged.any()


def test_limit_of_rounding_is_recognised():
    """A ground of 1e-10 makes x so large that its last bit changes currents by 1e-7."""
    ground = np.zeros(900)
    ground[5] = 1e-10
    b = np.random.default_rng(0).uniform(0, 1, 900)
    for method in ("cholesky", "auto", "direct"):
        solver = LaplacianSolver(grid(30), ground=ground, random_state=0, method=method)
        with pytest.warns(ConvergenceWarning, match=r"float64 cannot store a better answer: raise"):
            x = solver.solve(b, tol=1e-10)
        assert solver.report_.rounding.all()
        assert solver.report_.iterations[0] < 1000
        np.testing.assert_allclose(x, b.sum() / 1e-10, rtol=1e-6)
        # The reported residual is that of the returned x, up to the rounding of this computation.
        found = relative_residual(grid(30), ground, b, x)
        assert found / 3 <= solver.report_.residual[0] <= found * 3


@pytest.mark.parametrize(("weight", "b"), [(1e100, 1e-250), (1e250, 1e-30), (1e-150, 1e100)])
def test_answers_near_the_ends_of_the_range(weight, b):
    n = 600  # too large for the direct method
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n), np.full(n - 1, weight))
    right = np.zeros(n)
    right[0], right[-1] = b, -b
    x = LaplacianSolver(graph, random_state=0).solve(right)
    np.testing.assert_allclose(x[:-1] - x[1:], b / weight, rtol=1e-5)  # 0 if it is stored as 0


def test_a_weight_too_small_to_divide_by():
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 1e-310])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        x = LaplacianSolver(graph, method="direct").solve([1.0, -1.0, 0.0])
    np.testing.assert_allclose(x[0] - x[1], 1.0)
