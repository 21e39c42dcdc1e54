"""Everything except the answers of LaplacianSolver: report, bits, threads, operators, errors."""

import copy
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import pinvh
from scipy.sparse.linalg import cg, spsolve
from sklearn.exceptions import ConvergenceWarning
from solver_cases import (
    ITERATIVE,
    METHODS,
    dense_matrix,
    grid,
    hub_and_ring,
    many_components,
    relative_residual,
)

from ohmlearn import Graph, LaplacianSolver
from ohmlearn.gallery import path

# ---- the report ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_report_is_true(method):
    graph = grid(30, decades=2)
    ground = np.where(np.arange(900) == 7, 0.1, 0.0)
    b = np.random.default_rng(0).standard_normal((900, 3))
    solver = LaplacianSolver(graph, ground=ground, random_state=0, method=method)
    x = solver.solve(b, tol=1e-6)
    report = solver.report_
    found = [relative_residual(graph, ground, b[:, c], x[:, c]) for c in range(3)]
    np.testing.assert_allclose(report.residual, found, rtol=1e-5, atol=1e-13)
    assert report.converged.tolist() == [True] * 3
    assert report.rounding.tolist() == [False] * 3
    assert (report.iterations > 0).all() == (method != "direct")
    assert report.projected_out.tolist() == [0.0] * 3
    assert report.method == (method if method != "auto" else report.method)
    if method != "auto":
        assert report.reason == "asked for"
    expected = {"direct": 900 * 900, "diagonal": 0}.get(report.method)
    assert report.factor_entries == expected if expected is not None else report.factor_entries > 0


@pytest.mark.parametrize("method", METHODS)
def test_null_space_part_is_left_out_and_reported(method):
    graph = many_components(600)
    _, labels = graph.components()
    ground = np.where(labels == 0, 1.0, 0.0)
    b = np.random.default_rng(0).standard_normal(600) + 2.0
    mean = np.bincount(labels, weights=b) / np.bincount(labels)
    mean[0] = 0.0
    solver = LaplacianSolver(graph, ground=ground, random_state=0, method=method)
    x = solver.solve(b, tol=1e-10)
    share = np.linalg.norm(mean[labels]) / np.linalg.norm(b)
    np.testing.assert_allclose(solver.report_.projected_out, share, rtol=1e-12)
    np.testing.assert_allclose(x, solver.solve(b - mean[labels], tol=1e-10), rtol=0, atol=1e-6)
    assert solver.report_.projected_out[0] < 1e-14  # not the root of a rounding error
    sums = np.bincount(labels, weights=x)[1:]
    np.testing.assert_allclose(sums, 0.0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_but_null_space_gives_exact_zero(method):
    solver = LaplacianSolver(grid(23, decades=10), random_state=0, method=method)
    b = np.zeros((529, 2))
    b[:, 0] = 0.1  # whose sum rounds
    x = solver.solve(b, x0=np.ones((529, 2)))
    assert not x.any()
    np.testing.assert_allclose(solver.report_.projected_out, [1.0, 0.0], rtol=1e-12)
    assert solver.report_.residual.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("method", ITERATIVE)
@pytest.mark.parametrize("max_iter", [0, 1, 7, 30])
def test_max_iter_is_kept_and_warned_about(method, max_iter):
    b = np.random.default_rng(0).standard_normal((2500, 3))
    solver = LaplacianSolver(path(2500), random_state=0, method=method)
    if method == "cholesky" and max_iter >= 7:  # exact on a path
        solver.solve(b, max_iter=max_iter)
        return
    text = (
        rf"^3 of 3 right-hand sides did not reach the relative residual 1e-12; the worst is "
        rf"column \d with .* after {max_iter} iterations \(.*\); raise max_iter or tol$"
    )
    if method == "auto" and max_iter == 30:  # the factor, made after 20, is exact on a path
        text = "did not reach"
    with pytest.warns(ConvergenceWarning, match=text):
        x = solver.solve(b, tol=1e-12, max_iter=max_iter)
    assert (solver.report_.iterations <= max_iter).all()
    if max_iter == 0:
        assert not x.any()
        np.testing.assert_allclose(solver.report_.residual, 1.0)


def easy_and_hard():
    """Two components without large diameter: one of unit weights, one over eight decades."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 2000, (2, 20_000))
    s, t = rng.integers(2000, 4000, (2, 8000))
    w = np.concatenate([np.ones(20_000), 10.0 ** rng.uniform(-8, 0, 8000)])
    graph = Graph.from_edges(np.concatenate([u, s]), np.concatenate([v, t]), w, n_nodes=4000)
    b = rng.standard_normal(4000)
    first = np.arange(4000) < 2000
    return graph, np.where(first, b, 0.0), np.where(first, 0.0, b)


def test_auto_chooses_for_each_solve_alone():
    """Bits depend on the graph, b and the options, but not on earlier solves."""
    graph, easy, hard = easy_and_hard()
    solver = LaplacianSolver(graph, random_state=0)
    many = np.concatenate([np.zeros((4000, 20)), hard[:, None]], axis=1)
    cases = [(easy, "diagonal"), (hard, "cholesky"), (np.zeros(4000), "diagonal")]
    cases += [(many, "cholesky")]
    answers = []
    for b, method in cases:
        answers.append(LaplacianSolver(graph, random_state=0).solve(b).tobytes())
        assert solver.solve(b).tobytes() == answers[-1]
        assert solver.report_.method == method
        beginning = {"diagonal": "the diagonal converged in ", "cholesky": "the diagonal would"}
        assert solver.report_.reason.startswith(beginning[method])
        assert (solver.report_.factor_entries > 0) == (method == "cholesky")
    solver.preconditioner() @ easy
    for (b, _), answer in zip(cases, answers, strict=True):
        assert solver.solve(b).tobytes() == answer
    assert relative_residual(graph, None, hard, solver.solve(hard)) <= 1.1e-8


def test_a_column_does_not_use_up_the_iterations_of_others():
    """Columns end at different iterations in float; each continues in double from there."""
    graph = grid(23, decades=5)
    b = np.random.default_rng(0).standard_normal((529, 4))
    solver = LaplacianSolver(graph, random_state=0, method="diagonal")
    residuals = []
    for max_iter in (1000, 2000, 3000, 4000, 5000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver.solve(b, tol=1e-11, max_iter=max_iter)
        residuals.append(np.maximum(solver.report_.residual, 1e-11))
        assert (solver.report_.iterations <= max_iter).all()
    assert (residuals[-1] <= 2 * np.min(residuals, axis=0)).all()


# ---- starting points ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ITERATIVE)
def test_exact_start_takes_no_iterations(method):
    graph = grid(30)
    b = np.random.default_rng(0).standard_normal((900, 2))
    exact = LaplacianSolver(graph, method="direct").solve(b)
    solver = LaplacianSolver(graph, random_state=0, method=method)
    x = solver.solve(b, x0=exact + 5.0)  # a constant changes nothing
    assert solver.report_.iterations.tolist() == [0, 0]
    np.testing.assert_allclose(x, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1.0, 1e6, 1e19, 1e25, 1e100, 1e200, 1e300])
def test_bad_start_does_no_harm(method, size):
    graph = grid(23)
    rng = np.random.default_rng(0)
    b = rng.standard_normal(529)
    start = size * rng.standard_normal(529)
    solver = LaplacianSolver(graph, random_state=0, method=method)
    x = solver.solve(b, x0=start)
    expected = LaplacianSolver(graph, method="direct").solve(b)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(solver.solve(b, x0=np.full(529, size)), expected, rtol=0, atol=1e-5)


# ---- the same bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ITERATIVE)
@pytest.mark.parametrize("columns", [1, 5, 17, 33])
def test_threads_do_not_change_a_bit(method, columns):
    graph = hub_and_ring(20_000)  # several chunks of rows
    b = np.random.default_rng(0).standard_normal((20_000, columns))
    answers = set()
    for n_jobs in (1, 2, 4):
        solver = LaplacianSolver(graph, ground=0.01, random_state=3, n_jobs=n_jobs, method=method)
        answers.add(solver.solve(b, tol=1e-6).tobytes())
        answers.add(b"residual" + solver.report_.residual.tobytes())
    assert len(answers) == 2


@pytest.mark.parametrize("method", METHODS)
def test_random_state_and_copies_repeat_every_bit(method):
    graph = grid(40, decades=3)
    b = np.random.default_rng(0).standard_normal((1600, 2))
    solver = LaplacianSolver(graph, random_state=5, method=method)
    fresh = pickle.loads(pickle.dumps(solver))
    first = solver.solve(b)
    again = LaplacianSolver(graph, random_state=5, method=method).solve(b)
    assert first.tobytes() == again.tobytes() == fresh.solve(b).tobytes()
    # The same after a solve; copies keep its report.
    for other in (pickle.loads(pickle.dumps(solver)), copy.copy(solver), copy.deepcopy(solver)):
        assert other.report_.reason == solver.report_.reason
        assert other.solve(b).tobytes() == first.tobytes()
        assert other.report_.method == solver.report_.method
    assert solver.solve(b).tobytes() == first.tobytes()


def test_another_random_state_gives_another_factor():
    b = np.random.default_rng(0).standard_normal(1600)
    one, two = (LaplacianSolver(grid(40), random_state=s, method="cholesky") for s in (1, 2))
    x, y = one.solve(b), two.solve(b)
    assert x.tobytes() != y.tobytes()
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [2, 4, 5, 8, 9, 16, 17])
def test_columns_together_agree_with_columns_alone(method, columns):
    graph = grid(25, decades=2)
    b = np.random.default_rng(0).standard_normal((625, columns))
    solver = LaplacianSolver(graph, random_state=0, method=method)
    together = solver.solve(b, tol=1e-11)
    alone = np.stack([solver.solve(column, tol=1e-11) for column in b.T], axis=1)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-7 * abs(alone).max())


# ---- processes and threads ----------------------------------------------------------------------


# Python warns if a process with threads forks; our threads have ended when a solve returns.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_solve_in_a_forked_child_after_threads():
    graph = hub_and_ring(20_000)
    b = np.random.default_rng(0).standard_normal((20_000, 20))
    solver = LaplacianSolver(graph, random_state=0, n_jobs=4, method="cholesky")
    expected = solver.solve(b)
    child = os.fork()
    if child == 0:
        os._exit(solver.solve(b).tobytes() != expected.tobytes())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_python_threads_on_solvers_of_their_own_and_on_one():
    graph = grid(40, decades=4)
    b = np.random.default_rng(0).standard_normal((1600, 4))
    expected = LaplacianSolver(graph, random_state=0, n_jobs=2).solve(b)
    with ThreadPoolExecutor(4) as pool:
        solvers = [LaplacianSolver(graph, random_state=0, n_jobs=2) for _ in range(8)]
        for x in pool.map(lambda solver: solver.solve(b), solvers):
            assert x.tobytes() == expected.tobytes()
        shared = LaplacianSolver(graph, random_state=0)
        for x in pool.map(lambda _: shared.solve(b), range(8)):
            assert x.tobytes() == expected.tobytes()


# ---- operators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_linear_operator(method):
    graph = many_components(100)
    ground = np.where(np.arange(100) % 4 == 0, 1.0, 0.0)
    solver = LaplacianSolver(graph, ground=ground, random_state=0, method=method)
    inverse = solver.as_linear_operator(tol=1e-12)
    expected = pinvh(dense_matrix(graph, ground))
    assert inverse.dtype == np.float64
    b = np.random.default_rng(0).standard_normal((100, 3))
    np.testing.assert_allclose(inverse @ b, expected @ b, atol=1e-9)
    np.testing.assert_allclose(inverse.T @ b, expected @ b, atol=1e-9)
    np.testing.assert_allclose(inverse.rmatvec(b[:, 0]), expected @ b[:, 0], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grounded", [False, True])
def test_preconditioner_is_symmetric_and_semi_definite(method, grounded):
    graph = many_components(90)
    ground = np.where(np.arange(90) % 5 == 0, 0.2, 0.0) if grounded else None
    matrix = LaplacianSolver(graph, ground=ground, random_state=0, method=method).preconditioner()
    dense = matrix @ np.eye(90)
    np.testing.assert_allclose(dense, dense.T, atol=1e-6 * abs(dense).max())
    values = np.linalg.eigvalsh((dense + dense.T) / 2)
    assert values[0] > -1e-6 * values[-1]
    rank = np.linalg.matrix_rank(dense_matrix(graph, ground))
    assert np.sum(values > 1e-6 * values[-1]) == rank
    np.testing.assert_allclose(matrix.T @ np.eye(90), dense)


def test_preconditioner_serves_scipy():
    graph = grid(50, decades=3)
    matrix = graph.laplacian()
    b = np.random.default_rng(0).standard_normal(2500)
    b -= b.mean()
    solver = LaplacianSolver(graph, random_state=0)
    steps = []
    x, info = cg(matrix, b, M=solver.preconditioner(), rtol=1e-8, callback=steps.append)
    assert info == 0
    assert len(steps) < 60
    expected = solver.solve(b)
    assert expected.tobytes() == LaplacianSolver(graph, random_state=0).solve(b).tobytes()
    np.testing.assert_allclose(x - x.mean(), expected, rtol=0, atol=1e-4 * abs(expected).max())


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sddm_matrix_against_sparse_lu(kind):
    graph = grid(40, decades=2)
    ground = np.where(np.arange(1600) % 97 == 5, 0.3, 0.0)
    A = (graph.laplacian() + sp.diags_array(ground)).tocsc()
    b = np.random.default_rng(0).standard_normal((1600, 2))
    solver = LaplacianSolver.from_sddm(kind(A), random_state=0)
    assert solver.graph == graph
    np.testing.assert_allclose(solver.ground, ground, atol=1e-12)
    expected = spsolve(A, b)
    np.testing.assert_allclose(solver.solve(b, rtol=1e-11), expected, rtol=1e-7, atol=1e-9)
    assert solver.report_.residual.max() <= 1e-11
    np.testing.assert_array_equal(solver @ b, solver.solve(b))
    np.testing.assert_array_equal(solver.T @ b[:, 0], solver.matvec(b[:, 0]))
    near = A + sp.diags_array(np.full(1600, 1e-3))
    steps = []
    x, info = cg(near, b[:, 0], M=solver, rtol=1e-8, callback=steps.append)
    assert info == 0
    assert len(steps) < 40
    np.testing.assert_allclose(x, spsolve(near.tocsc(), b[:, 0]), rtol=1e-5, atol=1e-6)


def test_laplacian_matrix_and_bad_sddm():
    graph = many_components(300)
    solver = LaplacianSolver.from_sddm(graph.laplacian(), random_state=0)
    assert solver.ground is None
    b = np.random.default_rng(0).standard_normal(300)
    same = LaplacianSolver(graph, random_state=0).solve(b)
    np.testing.assert_array_equal(solver.solve(b), same)
    for matrix, text in [
        ([[1.0, -2.0], [-2.0, 2.0]], "row 0 of L sums to -1"),
        ([[1.0, 1.0], [1.0, 1.0]], "off-diagonal entries of a Laplacian"),
        ([[3.0, -2.0], [-1.0, 2.0]], "both directions"),
        ([[3.0, -2.0]], "square"),
    ]:
        with pytest.raises(ValueError, match=text):
            LaplacianSolver.from_sddm(np.array(matrix))
    with pytest.raises(ValueError, match="rtol"):
        solver.solve(b, rtol=-1.0)


def test_preconditioner_is_exact_on_a_tree():
    rng = np.random.default_rng(0)
    parent = (rng.random(599) * np.arange(1, 600)).astype(int)
    graph = Graph.from_edges(np.arange(1, 600), parent, rng.uniform(0.1, 10, 599))
    b = rng.standard_normal(600)
    x = LaplacianSolver(graph, random_state=0, method="cholesky").preconditioner() @ b
    expected = LaplacianSolver(graph, method="direct").solve(b)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5 * abs(expected).max())


# ---- input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_right_hand_sides_of_any_layout_and_type(method):
    graph = grid(23)
    solver = LaplacianSolver(graph, random_state=0, method=method)
    b = np.random.default_rng(0).integers(-5, 6, (529, 4))
    solver.solve(b)  # "auto" chooses its method here, so that later answers are equal bit for bit
    expected = solver.solve(b.astype(float))
    wide = np.zeros((1058, 8))
    wide[::2, ::2] = b
    variants = {
        "Fortran": np.asfortranarray(b, dtype=float),
        "strided": wide[::2, ::2],
        "float32": b.astype(np.float32),
        "int8": b.astype(np.int8),
        "list": b.tolist(),
        "read-only": np.broadcast_to(b, b.shape),
        "float16": b.astype(np.float16),
        "big-endian": b.astype(">f8"),
    }
    for name, variant in variants.items():
        assert solver.solve(variant).tobytes() == expected.tobytes(), name
    single = solver.solve(b[:, 1].astype(float))
    assert single.shape == (529,)
    assert solver.solve(b[:, 1]).tobytes() == single.tobytes()
    boolean = solver.solve(b > 0)
    assert boolean.tobytes() == solver.solve((b > 0).astype(float)).tobytes()


def test_right_hand_side_and_start_are_not_changed():
    b, start = np.random.default_rng(0).standard_normal((2, 600, 3))
    kept = b.copy(), start.copy()
    LaplacianSolver(path(600), random_state=0).solve(b, x0=start)
    np.testing.assert_array_equal((b, start), kept)


def test_ground_is_copied_and_may_be_a_number():
    ground = np.ones(30)
    solver = LaplacianSolver(path(30), ground=ground)
    ground[:] = -1.0
    b = np.arange(30.0)
    expected = np.linalg.solve(dense_matrix(path(30), np.ones(30)), b)
    np.testing.assert_allclose(solver.solve(b), expected, rtol=1e-12)
    np.testing.assert_allclose(LaplacianSolver(path(30), ground=1).solve(b), expected, rtol=1e-12)
    assert LaplacianSolver(path(30), ground=0.0).ground is None
    assert LaplacianSolver(path(30), ground=np.zeros(30)).ground is None


def test_adjacency_matrices_are_graphs():
    adjacency = grid(5).to_scipy()
    b = np.arange(25.0)
    expected = LaplacianSolver(grid(5)).solve(b)
    for matrix in (adjacency, adjacency.toarray(), sp.csc_matrix(adjacency)):
        np.testing.assert_array_equal(LaplacianSolver(matrix).solve(b), expected)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"method": "lu"}, "method of LaplacianSolver .*, got 'lu'$"),
        ({"ground": "earth"}, "ground must be real numbers, got dtype <U5$"),
        ({"ground": [0, 1, -2, 0]}, r"ground must .* ground\[2\] = -2\.0$"),
        ({"ground": np.nan}, r"ground must .* ground\[0\] = nan$"),
    ],
)
def test_bad_arguments(arguments, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        LaplacianSolver(**({"graph": path(4)} | arguments))
    with pytest.raises(TypeError, match="a list of lists may be a matrix or edges"):
        LaplacianSolver([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"b": np.zeros(3)}, r"b must have shape .*, got shape \(3,\)$"),
        ({"b": np.zeros((2, 4, 1))}, r"b must have shape .*, got shape \(2, 4, 1\)$"),
        ({"b": np.zeros(4, dtype=complex)}, "b must be real numbers, got dtype complex128$"),
        ({"b": list("abcd")}, "b must be real numbers, got dtype <U1$"),
        ({"b": [[0, 1], [1, 0], [0, 0], [0, np.nan]]}, r"b must be finite, but b\[3, 1\] = nan$"),
        ({"x0": [0, np.nan, 0, 0]}, r"x0 must be finite, but x0\[1\] = nan$"),
        ({"x0": np.zeros((4, 2))}, r"x0 must have the shape of b, \(4,\), got \(4, 2\)$"),
        *(({"tol": tol}, f"tol must .* got {tol!r}$") for tol in (0, 1.0, np.nan, "1e-8")),
        *(({"max_iter": most}, f"max_iter must .* got {most}$") for most in (-1, 2.5, True)),
    ],
)
def test_bad_solve_arguments(arguments, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        LaplacianSolver(path(4)).solve(**({"b": np.zeros(4)} | arguments))


def test_a_refused_solve_leaves_the_solver_as_it_was():
    solver = LaplacianSolver(path(4))
    with pytest.raises(ValueError, match="b must be finite"):
        solver.solve([0, 1, np.inf, 0])
    assert not hasattr(solver, "report_")
    np.testing.assert_allclose(solver.solve([1.0, 0, 0, -1.0]), [1.5, 0.5, -0.5, -1.5])
