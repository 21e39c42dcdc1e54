"""Smoothed features against the dense formula, in any form and of any size."""

import numpy as np
import pytest
import scipy.sparse
from refuses import refuses
from sklearn.exceptions import ConvergenceWarning

from ohmlearn import Graph, LaplacianSolver, _phases, gallery
from ohmlearn.features import smooth, smoothing


def random_graph(n, n_edges, contrast=1.0, seed=0, n_nodes=None):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, n_edges))
    return Graph.from_edges(u, v, contrast ** rng.random(n_edges), n_nodes=n_nodes or n)


def smooth_densely(graph, X, gamma, degrees=None):
    """The formula itself; rows of nodes without edges stay."""
    known = graph.degrees if degrees is None else degrees
    alone = np.diff(graph.indptr) == 0
    d = np.where(alone, 1.0, known)
    matrix = np.diag(d) + gamma * graph.laplacian().toarray()
    roots = np.sqrt(d)[:, np.newaxis]
    found = roots * np.linalg.solve(matrix, roots * X)
    found[alone] = X[alone]
    return found


def relative_errors(found, expected, X):
    lengths = np.linalg.norm(X, axis=0)
    return np.linalg.norm(found - expected, axis=0) / np.where(lengths > 0, lengths, 1.0)


def columns_of_all_kinds(graph, rng):
    n = graph.n_nodes
    X = rng.normal(size=(n, 9))
    X[:, 1] = 1.0
    X[:, 2] = 0.0
    X[:, 3] = np.eye(n)[0]
    X[:, 4] = np.sqrt(graph.degrees)
    X[:, 5] = rng.random(n) < 0.05
    X[:, 6] = 1e6 + rng.random(n)
    return X


@pytest.mark.parametrize("n", [40, 700])  # eliminated exactly, and by conjugate gradients
@pytest.mark.parametrize("contrast", [1.0, 1e6])
def test_the_dense_formula(n, contrast):
    rng = np.random.default_rng(n)
    graph = random_graph(n - 5, 2 * n, contrast, seed=n, n_nodes=n)
    X = columns_of_all_kinds(graph, rng)
    for gamma in (1e-6, 1e-2, 1.0, 9.0, 1e3, 1e6):
        found = smooth(graph, X, gamma, random_state=0)
        assert relative_errors(found, smooth_densely(graph, X, gamma), X).max() < 1e-6
    for tol in (1e-3, 1e-10):
        found = smooth(graph, X, 9.0, tol=tol, random_state=0)
        assert relative_errors(found, smooth_densely(graph, X, 9.0), X).max() < tol


def test_nodes_without_edges_and_components():
    graph = gallery.disjoint_union(gallery.complete(4), gallery.path(3))
    graph = Graph.from_edges(*graph.edges(), n_nodes=10)
    X = np.random.default_rng(0).normal(size=(10, 3)) / 3.0
    found = smooth(graph, X, 1e9)
    np.testing.assert_array_equal(found[7:], X[7:])  # bit for bit
    # Far away, a column is in each component a multiple of the roots of the degrees.
    for part in (slice(0, 4), slice(4, 7)):
        roots = np.sqrt(graph.degrees[part])
        expected = np.outer(roots, roots @ X[part]) / (roots @ roots)
        np.testing.assert_allclose(found[part], expected, atol=1e-6)
    np.testing.assert_array_equal(smooth(graph, X, 0.0), X)
    alone = Graph.from_edges([], [], n_nodes=10)
    np.testing.assert_array_equal(smooth(alone, X.astype(np.float32)), X.astype(np.float32))


def test_forms_of_features():
    graph = random_graph(600, 3000)
    rng = np.random.default_rng(0)
    whole = rng.integers(-3, 4, (600, 20)) * (rng.random((600, 20)) < 0.2)
    expected = smooth(graph, whole.astype(float), random_state=0)
    assert expected.dtype == np.float64
    forms = [whole, whole.astype(np.int8), np.asfortranarray(whole, float), whole.astype(object)]
    for kind in ("csr_array", "csc_matrix", "coo_array", "lil_array"):
        forms.append(getattr(scipy.sparse, kind)(whole))
    for form in forms:
        np.testing.assert_array_equal(smooth(graph, form, random_state=0), expected)
    for form in (whole.astype(np.float32), scipy.sparse.csr_array(whole.astype(np.float32))):
        found = smooth(graph, form, random_state=0)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected.astype(np.float32))
    logical = smooth(graph, scipy.sparse.csr_array(whole != 0), random_state=0)
    np.testing.assert_array_equal(logical, smooth(graph, whole != 0, random_state=0))
    assert smooth(graph, np.empty((600, 0))).shape == (600, 0)
    assert smooth(Graph.from_edges([], []), np.empty((0, 2))).shape == (0, 2)


def test_threads_blocks_and_rows_do_not_change_bits(monkeypatch):
    graph = random_graph(9000, 60_000, 100.0)
    X = np.random.default_rng(0).normal(size=(9000, 21))
    expected = smooth(graph, X, random_state=0)
    np.testing.assert_array_equal(smooth(graph, X, random_state=0, n_jobs=3), expected)
    rows = [5, 8999, 5, 0]
    np.testing.assert_array_equal(smooth(graph, X, random_state=0, rows=rows), expected[rows])
    assert smoothing._block_width(9000) > 21
    for size in (1, 16 * 8 * 9000):
        monkeypatch.setattr(smoothing, "BLOCK_BYTES", size)
        assert smoothing._block_width(9000) == (8 if size == 1 else 16)
        np.testing.assert_array_equal(smooth(graph, X, random_state=0), expected)


def test_very_large_and_very_small_numbers():
    graph = random_graph(600, 2000)
    X = np.random.default_rng(0).normal(size=(600, 1))
    expected = smooth(graph, X, random_state=0)
    for size in (1e-300, 1e-150, 1e150, 1e300):
        found = smooth(graph, np.hstack([X * size, X]), random_state=0)
        np.testing.assert_allclose(found[:, :1] / size, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[:, 1:], expected, rtol=1e-4, atol=1e-6)
    star = Graph.from_edges(np.zeros(999, int), np.arange(1, 1000))
    for dtype in (np.float32, np.float64):
        X = np.full((1000, 1), np.finfo(dtype).max / 2, dtype)
        with pytest.raises(ValueError, match=f"pass the largest {np.dtype(dtype)}; scale X down"):
            smooth(star, X, 100.0)


def test_degrees_that_are_given():
    graph = random_graph(50, 200)
    X = np.random.default_rng(0).normal(size=(50, 3))
    given = graph.degrees * np.random.default_rng(1).uniform(0.5, 2.0, 50)
    found = smooth(graph, X, 4.0, degrees=given)
    np.testing.assert_allclose(found, smooth_densely(graph, X, 4.0, given), atol=1e-5)
    # A node that the sparsifier has no edge of keeps its features, whatever its degree.
    path = Graph.from_edges([0], [1], n_nodes=3)
    found = smooth(path, X[:3], degrees=[1.0, 1.0, 5.0])
    np.testing.assert_array_equal(found[2], X[2])
    with pytest.raises(ValueError, match=r"^node 1 has edges in the graph, but its degree is 0"):
        smooth(path, X[:3], degrees=[1, 0, 0])
    with pytest.raises(ValueError, match=r"not negative, but degrees\[2\] = -1\.0"):
        smooth(path, X[:3], degrees=[1, 1, -1])
    with pytest.raises(ValueError, match=r"one number per node, shape \(3,\), got"):
        smooth(path, X[:3], degrees=[1, 1])


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_values_that_are_refused(make):
    path = gallery.path(3)
    for value, words in (
        (np.nan, "NaN; fill in missing"),
        (np.inf, "inf; correct"),
        (-np.inf, "-"),
    ):
        X = np.array([[1.0, 2.0], [0.0, 3.0], [5.0, value]])
        with pytest.raises(ValueError, match=f"^X must be finite, but row 2, column 1 is {words}"):
            smooth(path, make(X))
    with pytest.raises(ValueError, match=r"one row for each of the 3 nodes of the graph, got 4"):
        smooth(path, make(np.ones((4, 2))))
    with pytest.raises(ValueError, match=r"got dtype complex128$"):
        smooth(path, make(np.ones((3, 2), complex)))


def test_arguments_that_are_refused():
    path, X = gallery.path(3), np.ones((3, 1))
    for wrong, why in (
        ([[1.0, 2.0], [1.0, "red"], [1.0, 2.0]], "row 1, column 1 is 'red'; encode such columns"),
        (np.array([["1"], ["2"], ["3"]]), "row 0, column 0 is '1'; encode"),
        (np.array([[1.0], [2.0], [None]], dtype=object), "row 2, column 0 is NaN"),
        (np.ones(3), r"use X\.reshape\(-1, 1\) for a single feature"),
    ):
        with pytest.raises(ValueError, match=why):
            smooth(path, wrong)
    for gamma in (-1.0, 1e10, np.nan, "9", None):
        with refuses(parameter="gamma"):
            smooth(path, X, gamma)
    with pytest.raises(ValueError, match=r"but rows\[0\] = 3"):
        smooth(path, X, rows=[3])
    with pytest.raises(TypeError, match="are needed, got int"):
        smooth(3, X)
    with pytest.raises(MemoryError, match=r"dense, also if X is sparse; reduce the number of col"):
        smoothing.make_room(2**31, 2**31, np.dtype(np.float64))


def test_a_tolerance_out_of_reach(monkeypatch):
    graph = random_graph(700, 2000, 1e6)
    X = np.random.default_rng(0).normal(size=(700, 3))
    with pytest.warns(ConvergenceWarning, match=r"3 of 3 columns may have a relative error above"):
        smooth(graph, X, 1e9, tol=1e-14, random_state=0)
    # Columns whose bound is missed are solved again.
    calls = []
    solve = LaplacianSolver.solve_block

    def solve_badly(self, b, tol, *more, **options):
        calls.append((b.shape[1], tol))
        return solve(self, b, 1e-2 if len(calls) == 1 else tol, *more, **options)

    monkeypatch.setattr(LaplacianSolver, "solve_block", solve_badly)
    found = smooth(graph, X, 9.0, random_state=0)
    assert calls == [(3, 1e-6), (3, 1e-6 / 16)]
    assert relative_errors(found, smooth_densely(graph, X, 9.0), X).max() < 1e-6


def test_blocks_are_phases(monkeypatch, capsys):
    class Names(list):
        def begin(self, phase):
            self.append(str(phase))

        def end(self):
            pass

    names = Names()
    monkeypatch.setattr(smoothing, "BLOCK_BYTES", 1)
    with _phases.watch(names):
        smooth(gallery.path(3), np.ones((3, 20)), 0.5, verbose=1)
    expected = [f"smoothing with gamma 0.5, block {number} of 3" for number in (1, 2, 3)]
    assert names == expected
    assert capsys.readouterr().err.splitlines() == expected
