"""The scheme "paper": expectation, and the requested accuracy. Seeds are fixed."""

import math

import numpy as np
import pytest

from benchmarks.families import Ruler
from ohmlearn import Graph, gallery
from ohmlearn.paper import KelnerLevin

N_SEEDS = 300
N_FORMS = 12
# Two-sided normal tail 1e-5 for each of 12 + 1 energies: a correct scheme fails a check with
# probability about 1.3e-4 over the choice of seeds.
Z_LIMIT = 4.42


def two_clusters():
    """A cluster, a bridge, then a longer cluster, during which the first one does not change."""
    rng = np.random.default_rng(0)
    u = rng.integers(0, 8, 300)
    v = (u + rng.integers(1, 8, 300)) % 8
    late = np.arange(300) >= 100
    u, v = np.insert(u + 8 * late, 100, 0), np.insert(v + 8 * late, 100, 8)
    return u, v, np.ones(301), 16


def weighted_parallel():
    rng = np.random.default_rng(1)
    u = rng.integers(0, 12, 400)
    v = (u + rng.integers(1, 12, 400)) % 12
    return u, v, 10 ** rng.uniform(-2, 2, 400), 12


def energy_ratios(h, graph, forms):
    """Energies of a sparsifier over the graph's: of some voltages, and of all on average."""
    laplacian = h.laplacian().toarray()
    full = graph.laplacian().toarray()
    ratios = np.sum(forms * (laplacian @ forms), axis=0) / np.sum(forms * (full @ forms), axis=0)
    trace = np.trace(np.linalg.pinv(full) @ laplacian) / (graph.n_nodes - 1)
    return np.append(ratios, trace)


def make(n_nodes, seed, weight_rule):
    """A tenth of the copies and of the block size, so that a short stream has several blocks."""
    block = math.ceil(0.1 * n_nodes * math.log(n_nodes) ** 2 / 0.25)
    how = {"constant": 0.1, "random_state": seed, "block_size": block}
    return KelnerLevin(n_nodes, 0.5, weight_rule=weight_rule, **how)


def z_scores(stream, weight_rule, merge=False):
    u, v, w, n_nodes = stream
    graph = Graph.from_edges(u, v, w, n_nodes=n_nodes)
    forms = np.random.default_rng(2).standard_normal((n_nodes, N_FORMS))
    samples = []
    for seed in range(N_SEEDS):
        sketch = make(n_nodes, seed, weight_rule)
        if merge:
            half = len(u) // 2
            other = make(n_nodes, 1000 + seed, weight_rule)
            sketch.update(u[:half], v[:half], w[:half])
            other.update(u[half:], v[half:], w[half:])
            sketch.merge([other])
        else:
            sketch.update(u, v, w)
        h = sketch.flush().graph()
        assert sketch.n_rows < 0.5 * len(u)  # coins were tossed
        samples.append(energy_ratios(h, graph, forms))
    return (np.mean(samples, axis=0) - 1) / (np.std(samples, axis=0) / np.sqrt(N_SEEDS))


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("stream", [two_clusters, weighted_parallel])
def test_expected_laplacian_is_the_graphs(stream, merge):
    assert np.abs(z_scores(stream(), "corrected", merge)).max() < Z_LIMIT


def test_weights_as_printed_are_biased_low():
    """The weight rule printed in the paper fails the same check by a wide margin."""
    z = z_scores(two_clusters(), "printed")
    assert z[-1] < -2 * Z_LIMIT
    assert z.max() < 0


FAMILIES = {
    "complete": lambda: gallery.complete(60),
    "clusters with bridges": lambda: gallery.dense_clusters(90, n_neighbors=40),
    "paper": lambda: gallery.paper_knn(60, n_points=120),
    "weights over 4 decades": lambda: gallery.log_uniform_weights(
        gallery.complete(60), 4, random_state=0
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.5, 0.8])
def test_measured_epsilon_meets_the_asked(family, epsilon):
    """Every edge comes in 30 parts, in random order, so that much can be dropped.

    With 20 seeds the largest measured epsilon was 0.27 and the standard deviation below 0.04, so
    with other seeds a failure needs 6 standard deviations or more.
    """
    graph = FAMILIES[family]()
    u, v, w = graph.edges()
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(u)), 30))
    sketch = KelnerLevin(graph.n_nodes, epsilon, random_state=0)
    sketch.update(u[order], v[order], w[order] / 30).flush()
    assert sketch.n_resamples >= 3
    assert sketch.n_rows < 0.6 * len(order)
    found = Ruler(graph).epsilon(sketch.graph())
    assert 0.01 < found < epsilon
