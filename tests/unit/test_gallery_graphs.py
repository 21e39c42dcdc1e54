"""Gallery graphs against known counts, closed forms and shapes."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components

from ohmlearn import gallery
from ohmlearn.graph import Graph


def count_parts(graph: Graph) -> int:
    return int(connected_components(graph.laplacian(), directed=False)[0])


def test_grid_spectrum_is_the_sum_of_path_spectra() -> None:
    def path_values(n: int) -> np.ndarray:
        return 2 - 2 * np.cos(np.pi * np.arange(n) / n)

    sums = path_values(3)[:, None, None] + path_values(4)[:, None] + path_values(5)
    found = np.linalg.eigvalsh(gallery.grid3d(3, 4, 5).laplacian().toarray())
    np.testing.assert_allclose(found, np.sort(sums.ravel()), atol=1e-12)


@pytest.mark.slow
def test_paper_graph_has_the_known_edge_count() -> None:
    graph = gallery.paper_knn(1000)
    assert (graph.n_edges, count_parts(graph)) == (7_006_400, 3)


def test_knn_graph_is_the_union_of_sorted_neighbours() -> None:
    graph = gallery.knn_points(300, 6, dim=3, random_state=5)
    points = np.random.default_rng(5).random((300, 3))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    near = np.argsort(distance, axis=1)[:, 1:7]
    pairs = {(min(i, j), max(i, j)) for i in range(300) for j in near[i].tolist()}
    u, v, _ = graph.edges()
    assert set(zip(u.tolist(), v.tolist(), strict=True)) == pairs


def test_preferential_attachment_has_its_power_law() -> None:
    # P(degree >= d) = k(k+1) / (d(d+1)); 20,000 nodes at d = 30 give a relative deviation of 6%.
    graph = gallery.preferential_attachment(20_000, 3, random_state=0)
    degrees = np.diff(graph.laplacian().indptr) - 1
    assert (degrees >= 30).mean() == pytest.approx(3 * 4 / (30 * 31), rel=0.25)
    assert count_parts(graph) == 1


@pytest.mark.parametrize("n", [2, 3, 7, 50, 333, 3000])
def test_chimera_is_connected_and_keeps_its_decades(n: int) -> None:
    for seed in range(10):
        graph = gallery.chimera(n, random_state=seed, decades=4)
        weights = graph.edges()[2]
        assert count_parts(graph) == 1
        assert 1e-2 <= weights.min() <= weights.max() <= 1e2


def test_stochastic_blocks_bridge_successive_blocks_only() -> None:
    u, v, _ = gallery.stochastic_blocks([20, 30, 40], p=0.5, bridges=4, random_state=0).edges()
    block = np.repeat([0, 1, 2], [20, 30, 40])
    jumps = np.bincount(np.abs(block[v] - block[u]), minlength=3)
    assert jumps[1:].tolist() == [8, 0]


def test_barbell_bridge_carries_unit_current() -> None:
    pseudo = np.linalg.pinv(gallery.barbell(5, bridge=3).laplacian().toarray())
    resistance = pseudo[0, 0] + pseudo[11, 11] - 2 * pseudo[0, 11]
    assert resistance == pytest.approx(2 * (2 / 5) + 3)


def test_disjoint_union_is_block_diagonal() -> None:
    parts = [
        gallery.complete(4),
        gallery.path(1),
        gallery.log_uniform_weights(gallery.star(5), 2, random_state=0),
    ]
    found = gallery.disjoint_union(*parts).laplacian().toarray()
    np.testing.assert_array_equal(
        found, block_diag(*(part.laplacian().toarray() for part in parts))
    )
