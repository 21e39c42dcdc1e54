"""The same seed gives the same sparsifier, for any batches and any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ohmlearn import gallery
from ohmlearn.sparsifier import StreamingSparsifier


def stream():
    """Dense enough to resample several times, weighted, with loops and parallel edges."""
    u, v, _ = gallery.stochastic_blocks([60, 60], 0.9, bridges=2, random_state=0).edges()
    u, v = np.r_[u, v, u[:50], 3], np.r_[v, u, v[:50], 3]
    order = np.random.default_rng(1).permutation(len(u))
    w = np.random.default_rng(2).lognormal(size=len(u)).astype(np.float32)
    return u[order], v[order], w


U, V, W = stream()


def run(cuts, scheme, n_jobs=1):
    n_nodes = 120 if scheme == "paper" else None
    sparsifier = StreamingSparsifier(
        n_nodes=n_nodes, epsilon=0.9, scheme=scheme, random_state=5, n_jobs=n_jobs
    )
    for u, v, w in zip(*(np.split(array, cuts) for array in (U, V, W)), strict=True):
        sparsifier.update(u, v, w)
    return sparsifier


@pytest.mark.parametrize("scheme", ["resample", "online", "paper"])
@given(cuts=st.lists(st.integers(0, len(U)), max_size=12))
@settings(max_examples=15, deadline=None)
def test_cuts_do_not_matter(scheme, cuts):
    whole, parts = run([], scheme), run(sorted(cuts), scheme)
    assert parts.snapshot() == whole.snapshot()
    assert parts.stats_ == whole.stats_


@pytest.mark.parametrize(("size", "n_jobs"), [(1, 1), (5000, 2), (5000, 4)])
def test_neither_single_edges_nor_threads_matter(size, n_jobs):
    whole, parts = run([], "resample"), run(np.arange(size, len(U), size), "resample", n_jobs)
    assert whole.n_resamples_ >= 1
    assert parts.snapshot() == whole.snapshot()


@given(cuts=st.lists(st.integers(0, 30_000), max_size=6), n_jobs=st.sampled_from([1, 3]))
@settings(max_examples=10, deadline=None)
def test_nodes_that_appear_late_do_not_matter(cuts, n_jobs):
    # Ids keep increasing. At a resample, the number of nodes must be that of the edges so far.
    random = np.random.default_rng(3)
    top = np.linspace(50, 400, 30_000).astype(np.int64)
    u, v = random.integers(0, top), random.integers(0, top)
    whole = StreamingSparsifier(epsilon=0.9, random_state=0).update(u, v)
    parts = StreamingSparsifier(epsilon=0.9, random_state=0, n_jobs=n_jobs)
    for a, b in zip(np.split(u, sorted(cuts)), np.split(v, sorted(cuts)), strict=True):
        parts.update(a, b)
    assert whole.n_resamples_ >= 2
    assert parts.snapshot() == whole.snapshot()
    assert parts.stats_ == whole.stats_
