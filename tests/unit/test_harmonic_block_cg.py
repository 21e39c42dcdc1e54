"""Block conjugate gradients: the last step without a product, and what is known of quotients."""

import numpy as np
import pytest
import scipy.linalg

from ohmlearn import gallery, sparsify
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.harmonic import refine, solve_hfs
from ohmlearn.harmonic.block_cg import BlockCG
from ohmlearn.harmonic.hfs_system import HFSSolver, HFSSystem

N = 60


@pytest.fixture
def systems():
    """A = C S C' and M = C C'; the diagonal S, from 0.6 to 1.9, has the quotients of A and M."""
    rng = np.random.default_rng(0)
    c = np.linalg.qr(rng.standard_normal((N, N)))[0] * 10.0 ** rng.uniform(-1, 1, N)
    spectrum = np.linspace(0.6, 1.9, N)
    return c @ np.diag(spectrum) @ c.T, c @ c.T, rng.standard_normal((N, 2)), spectrum


def energy_norms(a, error):
    return np.sqrt(np.einsum("ij,ij->j", error, a @ error))


def test_look_ahead_brings_the_error_down_without_a_product(systems):
    a, m, b, spectrum = systems
    exact = np.linalg.solve(a, b)
    products = 0

    def multiply(p):
        nonlocal products
        products += 1
        return a @ p

    cg = BlockCG(b, lambda r: np.linalg.solve(m, r))
    for number in range(1, 7):
        cg.step(multiply)
        low, high = cg._quotients
        assert spectrum[0] - 1e-9 <= low <= high <= spectrum[-1] + 1e-9
        factor = np.abs(1 - 2 / (low + high) * spectrum).max()
        before, after = (energy_norms(a, exact - x) for x in (cg.x, cg.look_ahead()))
        assert np.all(after <= factor * before + 1e-12)
        assert products == number
    assert factor < 0.6  # by now nearly all quotients were seen


def test_smallest_quotient_is_that_of_all_directions_together():
    rng = np.random.default_rng(1)
    c = np.linalg.qr(rng.standard_normal((N, N)))[0] * 10.0 ** rng.uniform(-1, 1, N)
    a, m = c @ np.diag(np.geomspace(1e-3, 1e3, N)) @ c.T, c @ c.T
    b = rng.standard_normal((N, 3))
    cg = BlockCG(np.c_[b, b[:, :2].sum(axis=1)], lambda r: np.linalg.solve(m, r))
    assert cg.smallest_quotient() == 1.0
    spans = np.empty((N, 0))
    for _ in range(6):
        p = cg.propose()
        spans = np.hstack([spans, p])
        cg.accept(p, a @ p)
        expected = scipy.linalg.eigvalsh(spans.T @ a @ spans, spans.T @ m @ spans)[0]
        assert cg.smallest_quotient() == pytest.approx(expected, rel=1e-6)
    assert expected < 0.2


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_refine_ends_with_a_step_that_reads_no_edge(passes):
    graph = gallery.dense_clusters(1210)
    h = sparsify(graph, epsilon=0.8, random_state=0)
    labelled, y = [0, 1, 1208, 1209], [1.0, 1.0, -1.0, -1.0]
    exact = solve_hfs(graph, labelled, y).f
    system = HFSSystem(h.components()[1], labelled, y)
    solver = HFSSolver(h, system)
    cg = BlockCG(system.right_hand_sides, lambda b: solver.solve(b, 1e-8))
    for _ in range(passes):
        cg.step(lambda x: system.multiply(x, multiply_laplacian(graph, x)))
    plain = system.combine(cg.x)[0][:, 0]
    options = {"passes": passes, "tol": 1e-9, "random_state": 0}
    found = refine(graph, h, labelled, y, **options)
    assert found.passes == passes
    assert not found.converged.all()
    assert found.stepped_ahead
    without = refine(
        graph, h, labelled, y, passes=passes, tol=1e-9, step_ahead=False, random_state=0
    )
    assert not without.stepped_ahead
    np.testing.assert_allclose(without.f, plain, atol=1e-5 * np.abs(plain).max())
    np.testing.assert_array_equal(without.residual, found.residual)  # those before the step
    laplacian = graph.laplacian()

    def error(f):
        return (f - exact) @ (laplacian @ (f - exact))

    assert error(found.f) < 0.5 * error(plain)
