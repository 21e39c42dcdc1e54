"""Nothing is dropped as long as the different edges are no more than the target."""

import math
import warnings

import numpy as np
import pytest

from ohmlearn import HFSClassifier, StreamingSparsifier, gallery

N = 400


def target(epsilon: float, n: int = N) -> float:
    """The rows that an epsilon allows, as docs/theory.md has it."""
    return 1.2 * math.log(n) / epsilon**2 * n


def random_edges(size: int, seed: int = 0):
    """Different edges of different weights and leverages: some nodes have few edges."""
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(N, 1)
    order = rng.permutation(len(u))[:size]
    return u[order], v[order], rng.random(size) + 1e-3


@pytest.mark.parametrize(
    "options", [{}, {"half_life": 1e3}, {"horizon": math.inf}, {"scheme": "online"}]
)
def test_no_edge_is_dropped_within_the_target(options):
    u, v, w = random_edges(int(target(0.5)))
    t = np.zeros(len(u))
    sparsifier = StreamingSparsifier(epsilon=0.5, random_state=0, **options)
    for part in np.array_split(np.arange(len(u)), 3):
        sparsifier.update(u[part], v[part], w[part], t[part])
    order = np.lexsort((v, u))
    found = sparsifier.snapshot().edges()
    np.testing.assert_array_equal(found[0], u[order])
    np.testing.assert_array_equal(found[1], v[order])
    np.testing.assert_allclose(found[2], w[order], rtol=1e-6)
    assert sparsifier.epsilon_estimate_ == 0.0
    assert sparsifier.replicate() == sparsifier.snapshot()


@pytest.mark.parametrize("forget", [{}, {"half_life": 1e3}, {"horizon": math.inf}])
def test_edges_beyond_the_target_are_dropped(forget):
    u, v, w = random_edges(int(1.5 * target(0.5)))
    sparsifier = StreamingSparsifier(epsilon=0.5, random_state=0, **forget)
    sparsifier.update(u, v, w, np.zeros(len(u)))
    # Rows of windows of up to x targets: half a target, times 1 + ln(2 x); see windows.hpp.
    most = (1 + math.log(3)) / 2 if "horizon" in forget else 1.0
    assert sparsifier.snapshot().n_edges <= most * target(0.5) < len(u)
    assert not sparsifier.sample().is_whole


@pytest.mark.parametrize("budget", [{"epsilon": 0.8}, {"max_edges": 4 * N}])
def test_repeats_of_few_edges_are_only_added_up(budget):
    pairs = random_edges(2 * N)
    drawn = np.random.default_rng(1).integers(0, 2 * N, 200_000)
    u, v, w = (column[drawn] for column in pairs)
    whole = StreamingSparsifier(random_state=0, **budget).update(u, v, w)
    parts = StreamingSparsifier(random_state=1, **budget)
    for part in np.array_split(np.arange(len(u)), 7):
        parts.update(u[part], v[part], w[part])
    assert len(u) > whole.stats_["row_capacity"]  # so rows were added up on the way
    assert whole.n_resamples_ == 0
    assert whole.snapshot() == parts.snapshot()  # no coin was tossed, so the seed does not matter
    true = np.bincount(drawn, pairs[2][drawn])
    order = np.lexsort(pairs[1::-1])
    np.testing.assert_allclose(whole.snapshot().edges()[2], true[order], rtol=1e-5)
    again = StreamingSparsifier(random_state=2, **budget).update(u[:100], v[:100], w[:100])
    assert again.merge(whole).sample().is_whole


def test_an_estimator_reads_the_edges_once():
    graph = gallery.grid2d(20, 20)
    u, v, _ = graph.edges()
    weights = np.random.default_rng(0).random(len(u))
    twice = [(u, v, weights), (u, v, weights)]  # parallel edges are not dropped either
    n_read = []

    class Edges:
        rereadable = True

        def __iter__(self):
            for batch in twice:
                n_read.append(1)
                yield batch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels
        model = HFSClassifier(epsilon=0.3, random_state=0).fit_edges(Edges(), {0: 0, N - 1: 1})
    assert len(n_read) == len(twice)
    assert model.n_iter_ == 1


def test_a_merge_with_a_thinned_sparsifier_is_not_whole():
    dense = gallery.complete(N)
    thinned = StreamingSparsifier(epsilon=0.9, random_state=1).update(dense)
    assert thinned.n_resamples_ > 0
    merged = StreamingSparsifier(epsilon=0.9, random_state=2).update([0], [1]).merge(thinned)
    assert not merged.sample().is_whole
