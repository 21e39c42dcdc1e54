"""Scores refined in passes over the edges, against the solution on the graph in memory."""

import numpy as np
import pytest

from ohmlearn import Graph, StreamingSparsifier, gallery, refine, solve_hfs, sparsify
from ohmlearn._block_cg import BlockCG


class Batches:
    """Begins anew at each pass."""

    def __init__(self, graph, size):
        self.edges, self.size = graph.edges(), size

    def __iter__(self):
        for start in range(0, len(self.edges[0]), self.size):
            yield tuple(part[start : start + self.size] for part in self.edges)


def relative_error(found, expected):
    return np.linalg.norm(found.f - expected.f) / np.linalg.norm(expected.f)


PAPER = gallery.paper_knn(450, n_points=1210)
OUTER = [3, 200, 900, 1100]
SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


@pytest.fixture(scope="module")
def paper_sparsifier():
    return StreamingSparsifier(1210, epsilon=0.8, random_state=0).update(PAPER)


def test_paper_graph_in_four_and_ten_passes(paper_sparsifier):
    # The first pass is the sparsifier's.
    exact = solve_hfs(PAPER, OUTER, SIGNS)
    four = refine(Batches(PAPER, 10_000), paper_sparsifier, OUTER, SIGNS, passes=3, tol=1e-9)
    ten = refine(Batches(PAPER, 10_000), paper_sparsifier, OUTER, SIGNS, passes=9, tol=1e-9)
    assert relative_error(four, exact) <= 1e-2
    assert np.array_equal(np.sign(four.f), np.sign(exact.f))
    assert relative_error(ten, exact) <= 1e-5
    assert (four.passes, ten.passes) == (3, 9)
    assert not four.converged


@pytest.mark.parametrize("constraint", ["stable", None])
@pytest.mark.parametrize("gamma", [1e-5, 1.0, 1e5])
def test_reported_residuals_and_errors(paper_sparsifier, gamma, constraint):
    Y = np.eye(4)[:, :3]
    A = gamma * 4 * PAPER.laplacian().toarray()
    A[OUTER, OUTER] += 1
    b = np.zeros((1210, 3))
    b[OUTER] = Y
    exact = solve_hfs(PAPER, OUTER, Y, gamma, constraint, tol=1e-12).f

    def measure(passes, tol):
        found = refine(PAPER, paper_sparsifier, OUTER, Y, passes, tol, gamma, constraint)
        current = b - found.mu
        residual = np.linalg.norm(current - A @ found.f, axis=0) / np.linalg.norm(current, axis=0)
        off = found.f - exact
        squares = np.einsum("ij,ij->j", off, A @ off) / np.einsum("ij,ij->j", exact, A @ exact)
        return found, residual, np.sqrt(squares)

    found, residual, error = measure(40, 1e-5)
    assert found.converged
    np.testing.assert_allclose(found.residuals, residual, rtol=0.1)
    # The sparsifier's energies are within a factor 3 of the graph's.
    assert np.all(found.errors <= 3 * error + 1e-9)
    assert np.all(error <= 3 * found.errors + 1e-9)
    # Passes that end early are followed by a step whose gain is not measured.
    found, residual, error = measure(3, 1e-9)
    assert not found.converged
    assert np.all(residual < found.residuals)
    assert np.all(error < found.errors)


@pytest.mark.parametrize("constraint", ["stable", None])
@pytest.mark.parametrize("gamma", [1e-5, 1.0, 1e5])
def test_without_the_step_ahead_reports_are_exact(paper_sparsifier, gamma, constraint):
    Y = np.eye(4)[:, :3]
    options = {"passes": 4, "tol": 1e-9, "gamma": gamma, "constraint": constraint}
    found = refine(PAPER, paper_sparsifier, OUTER, Y, **options, step_ahead=False)
    A = gamma * 4 * PAPER.laplacian().toarray()
    A[OUTER, OUTER] += 1
    b = np.zeros((1210, 3))
    b[OUTER] = Y
    b -= found.mu
    residual = b - A @ found.f
    ratios = np.linalg.norm(residual, axis=0) / np.linalg.norm(b, axis=0)
    np.testing.assert_allclose(found.residuals, ratios, rtol=1e-3, atol=1e-9)
    exact = solve_hfs(PAPER, OUTER, Y, gamma, constraint, tol=1e-12).f
    off = found.f - exact
    energy = np.einsum("ij,ij->j", off, A @ off) / np.einsum("ij,ij->j", exact, A @ exact)
    # The sparsifier's energies are within a factor 3 of the graph's.
    assert np.all(found.errors <= 3 * np.sqrt(energy) + 1e-9)
    assert np.all(np.sqrt(energy) <= 3 * found.errors + 1e-9)


@pytest.mark.parametrize("gamma", [1e-5, 1.0, 1e5])
def test_stops_at_the_tolerance(paper_sparsifier, gamma):
    exact = solve_hfs(PAPER, OUTER, SIGNS, gamma, tol=1e-11)
    loose = refine(PAPER, paper_sparsifier, OUTER, SIGNS, 40, 1e-2, gamma)
    tight = refine(PAPER, paper_sparsifier, OUTER, SIGNS, 40, 1e-8, gamma)
    assert loose.converged
    assert tight.converged
    assert loose.passes < tight.passes < 25
    assert tight.residuals.max() <= 1e-8
    assert relative_error(tight, exact) <= 1e-6


def test_the_graph_itself_as_sparsifier_takes_one_pass():
    graph = gallery.knn_points(600, 8)
    found = refine(graph, graph, [0, 5], [1.0, 0.0], passes=5, tol=1e-4)
    assert found.passes == 1
    assert relative_error(found, solve_hfs(graph, [0, 5], [1.0, 0.0])) <= 1e-5


def test_batches_and_threads_do_not_change_a_bit(paper_sparsifier):
    expected = refine(Batches(PAPER, 7_001), paper_sparsifier, OUTER, SIGNS, passes=3).f
    for size, jobs in [(100, 1), (10**7, 1), (150_000, 2), (10**7, 3)]:
        source = Batches(PAPER, size)
        found = refine(source, paper_sparsifier, OUTER, SIGNS, passes=3, n_jobs=jobs)
        assert np.array_equal(found.f, expected)


def test_components_and_parallel_edges():
    graph = gallery.stochastic_blocks([60, 50, 40], p=0.5, bridges=0)
    u, v, w = graph.edges()
    doubled = (np.r_[u, u], np.r_[v, v], np.r_[w / 4, 3 * w / 4])
    labelled, Y = [0, 10, 70, 80], np.array([[1, 0], [1, 0], [1, 0], [0, 1.0]])
    h = sparsify(graph, epsilon=0.5, random_state=1)
    found = refine(doubled, h, labelled, Y, passes=30, tol=1e-8)
    expected = solve_hfs(graph, labelled, Y)
    np.testing.assert_allclose(found.f, expected.f, atol=1e-6)
    assert np.array_equal(found.reached, np.arange(150) < 110)
    assert found.passes < 20


def test_sparsifier_of_other_edges_is_refused():
    graph = gallery.barbell(8)
    u, v, w = graph.edges()
    inside = (u < 8) == (v < 8)
    without = Graph.from_edges(u[inside], v[inside], w[inside], graph.n_nodes)
    with pytest.raises(ValueError, match=r"edge \(7, 8\) joins nodes that the sparsifier leaves"):
        refine(graph, without, [0], [1.0])
    with pytest.raises(ValueError, match=r"edge \(7, 8\) of the sparsifier joins nodes that these"):
        refine(without, graph, [0], [1.0])
    with pytest.raises(ValueError, match="refine reads the edges several times"):
        refine(iter([(u, v, w)]), graph, [0], [1.0])
    with pytest.raises(ValueError, match="passes must be an integer >= 1, got 0"):
        refine(graph, graph, [0], [1.0], passes=0)


def test_progress_is_printed(capsys, paper_sparsifier):
    refine(PAPER, paper_sparsifier, OUTER, SIGNS, passes=2, verbose=1)
    assert capsys.readouterr().err.startswith("pass 1: residual ")


def test_block_cg_uses_every_direction_for_all_columns():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(40, 40))
    A = factor @ factor.T + np.eye(40)
    b = rng.normal(size=(40, 5))
    b = np.c_[b, b[:, :2].sum(axis=1), np.zeros(40)]  # dependent columns are harmless
    cg = BlockCG(b, lambda r: r / np.diag(A)[:, np.newaxis])
    steps = 0
    while cg.step(lambda p: A @ p) and steps < 50:
        steps += 1
    np.testing.assert_allclose(cg.x, np.linalg.solve(A, b), atol=1e-9)
    assert steps <= 20  # 40 / 5 in exact arithmetic
