"""Streams of edges from points do not depend on blocks or threads, to the last bit."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from ohmlearn.points import kernel_edges, knn_edges


def collect(stream):
    batches = list(stream)
    return [
        None if batches[0][part] is None else np.concatenate([batch[part] for batch in batches])
        for part in range(3)
    ]


@st.composite
def clouds(draw):
    """Points on a coarse grid, so that there are ties and copies."""
    n = draw(st.integers(2, 60))
    dims = draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = st.integers(0, 3) if draw(st.booleans()) else st.integers(-(10**6), 10**6)
    return draw(arrays(np.int64, (n, dims), elements=values)).astype(dtype)


@settings(max_examples=60, deadline=None)
@given(clouds(), st.data())
def test_knn(x, data):
    k = data.draw(st.integers(1, len(x) - 1))
    weights = data.draw(st.sampled_from(["uniform", "gaussian"]))
    u, v, w = collect(knn_edges(x, n_neighbors=k, weights=weights))
    distance = ((x[:, None].astype(float) - x) ** 2).sum(axis=2)  # exact: small integers
    order = np.empty((len(x), len(x)), dtype=int)
    for i in range(len(x)):
        key = distance[i].copy()
        key[i] = np.inf
        order[i, np.lexsort((np.arange(len(x)), key))] = np.arange(len(x))
    if x.dtype == np.float64 or distance.max() < 2**24:
        near = (order < k) | (order < k).T
        np.fill_diagonal(near, False)
        expected = np.nonzero(np.triu(near, 1))
        np.testing.assert_array_equal(u, expected[0])
        np.testing.assert_array_equal(v, expected[1])
    block = data.draw(st.integers(1, len(x)))
    other = collect(knn_edges(x, n_neighbors=k, weights=weights, block=block, n_jobs=3))
    for a, b in zip((u, v, w), other, strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)


@settings(max_examples=30, deadline=None)
@given(clouds(), st.data())
def test_kernel(x, data):
    kernel = data.draw(st.sampled_from(["rbf", "laplacian", "cosine"]))
    stream = kernel_edges(x, kernel=kernel, block=data.draw(st.integers(1, len(x))), n_jobs=2)
    whole = collect(kernel_edges(x, kernel=kernel))
    for a, b in zip(collect(stream), whole, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(collect(stream), whole, strict=True):  # read again
        np.testing.assert_array_equal(a, b)
    assert len(whole[0]) == stream.n_edges
