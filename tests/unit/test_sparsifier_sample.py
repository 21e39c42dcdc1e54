"""The probabilities of edges, the errors drawn from them, and the estimate of epsilon."""

import numpy as np
import pytest
import scipy.linalg
from refuses import refuses

from ohmlearn import Graph, StreamingSparsifier, gallery
from ohmlearn.sparsifier.sampling_error import Sample


def sparsified(seed=0, **options):
    options = {"n_nodes": 200, "epsilon": 0.9} | options
    return StreamingSparsifier(**options, random_state=seed).update(gallery.complete(200))


def sample_of(graph, probability, loose=0.0):
    probability = np.broadcast_to(np.float32(probability), (graph.n_edges,)).copy()
    return Sample(graph, probability, loose, seed=3, threads=1)


def test_the_probability_of_a_single_edge_of_weight_one_is_the_inverse_of_its_weight():
    """This holds for coins at arrival and any number of resamples."""
    sparsifier = sparsified()
    assert sparsifier.n_resamples_ > 1
    _, _, w = sparsifier.snapshot().edges()
    np.testing.assert_allclose(sparsifier.sample().probability, 1.0 / w, rtol=1e-5)
    assert w.min() < 5.0 < w.max()


def test_a_sparsifier_without_edges():
    assert StreamingSparsifier(random_state=0).epsilon_estimate_ == 0.0
    assert StreamingSparsifier(n_nodes=5, random_state=0).replicate().n_edges == 0


def test_the_estimate_is_the_largest_ratio_of_a_drawn_error():
    """Compare 16 steps of Lanczos with all eigenvalues; they may miss a few percent."""
    sparsifier = sparsified()
    h, other = sparsifier.snapshot(), sparsifier.replicate(amplitude=1.0)
    error = (other.laplacian() - h.laplacian()).toarray()
    ground = h.laplacian().toarray() + 1.0  # the ones are the null space of both
    exact = np.abs(scipy.linalg.eigvalsh(error, ground)).max()
    assert 0.94 * exact < sparsifier.epsilon_estimate_ < 1.001 * exact


def test_the_estimate_of_a_few_nodes_is_exact():
    """Three nodes have two directions, after which the Krylov space is exhausted."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 4.0])
    sample = sample_of(graph, 0.2)
    error = (sample.replicate(0, 1.0).laplacian() - graph.laplacian()).toarray()
    exact = np.abs(scipy.linalg.eigvalsh(error, graph.laplacian().toarray() + 1.0)).max()
    assert sample.epsilon == pytest.approx(exact, rel=1e-3)


def test_components_are_estimated_together():
    """The largest error of two components is that of the worse one."""
    one = gallery.complete(40)
    two = gallery.disjoint_union(one, gallery.path(5), gallery.path(1))
    probability = np.where(two.edges()[0] < 40, 0.3, 1.0).astype(np.float32)
    apart = Sample(two, probability, 0.0, seed=3, threads=1).epsilon
    assert apart == pytest.approx(sample_of(one, 0.3).epsilon, rel=0.05)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.4, 0.75, 0.99])
def test_errors_have_mean_zero_and_the_variance_of_the_weights(probability):
    """Means over 400 draws of 190 edges; the limits are five standard errors or more."""
    graph = gallery.complete(20)
    sample = sample_of(graph, probability)
    draws = np.array([sample.errors(k) for k in range(400)])
    assert np.abs(draws).max() <= 1.0 + 1e-6
    assert abs(draws.mean()) < 0.01
    np.testing.assert_allclose((draws**2).mean(), 1.0 - probability, rtol=0.03)
    assert np.abs(draws.mean(axis=0)).max() < 0.3


def test_errors_cancel_at_each_node_unless_they_are_loose():
    graph = gallery.complete(60)

    def spread(loose):
        errors = sample_of(graph, 0.0, loose).errors(1)
        u, v, _ = graph.edges()
        at_nodes = np.bincount(u, errors, 60) + np.bincount(v, errors, 60)
        return np.sqrt(np.mean(at_nodes**2))

    assert spread(0.0) < 3.0  # independent signs give sqrt(59) = 7.7
    assert 6.0 < spread(1.0) < 9.5


def test_replicates_depend_on_their_number_and_scale_with_the_amplitude():
    sparsifier = sparsified()
    w = sparsifier.snapshot().edges()[2]
    half, whole = (sparsifier.replicate(4, amplitude=a).edges()[2] - w for a in (0.25, 0.5))
    np.testing.assert_allclose(2.0 * half, whole, atol=1e-6 * w.max())
    assert sparsifier.replicate(4) == sparsifier.replicate(4)
    assert sparsifier.replicate(4) != sparsifier.replicate(5)


def test_neither_threads_nor_batches_change_the_estimate():
    u, v, _ = gallery.complete(200).edges()
    parts = StreamingSparsifier(n_nodes=200, epsilon=0.9, random_state=0, n_jobs=2)
    for start in range(0, len(u), 3001):
        parts.update(u[start : start + 3001], v[start : start + 3001])
    assert parts.epsilon_estimate_ == sparsified().epsilon_estimate_
    assert parts.replicate() == sparsified().replicate()


def test_the_estimate_follows_updates_and_survives_a_file(tmp_path):
    sparsifier = sparsified()
    before = sparsifier.epsilon_estimate_
    sparsifier.save(tmp_path / "h.ohm")
    loaded = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert loaded.epsilon_estimate_ == before
    sparsifier.update(gallery.complete(200))
    assert sparsifier.epsilon_estimate_ != before
    assert loaded.update(gallery.complete(200)).epsilon_estimate_ == sparsifier.epsilon_estimate_


def test_probabilities_of_parallel_rows_of_a_merge_are_combined():
    """Two samplers have kept the same edge, each for certain or with some probability."""
    certain = StreamingSparsifier(n_nodes=2, random_state=0).update([0], [1], [3.0])
    state = StreamingSparsifier(n_nodes=2, random_state=1).update([0], [1], [1.0]).get_state()
    state["chance"] = np.array([0.25], np.float32)
    uncertain = StreamingSparsifier.from_state(state)
    merged = certain.merge(uncertain)
    assert merged.snapshot().edges()[2].tolist() == [4.0]
    np.testing.assert_allclose(merged.sample().probability, 1.0 - 0.75 / 16.0)


def test_refused_parameters():
    sparsifier = StreamingSparsifier(random_state=0).update([0], [1])
    for bad in ({"number": -1}, {"number": 0.5}, {"amplitude": 0.0}, {"amplitude": 1.5}):
        with refuses(parameter=next(iter(bad))):
            sparsifier.replicate(**bad)
