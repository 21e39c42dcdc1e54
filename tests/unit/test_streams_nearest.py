"""Exact neighbours of points in any form, against brute force in float64."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import ohmlearn.points.neighbor_edges as knn_module
from ohmlearn.points import knn_edges
from ohmlearn.points.exact_neighbors import NeighborIndex, check_neighbor_points, find_neighbors

RNG = np.random.default_rng(7)
N = 400
CSR = scipy.sparse.csr_array
# Points that float32, which most of the search computes in, cannot tell apart, and other traps.
CLOUDS = {
    "normal": RNG.normal(size=(N, 20)),
    "far away": 1e8 + RNG.normal(size=(N, 5)),
    "far away and close together": 1e3 + 1e-9 * RNG.normal(size=(N, 5)),
    "two far clusters": RNG.normal(size=(N, 3)) + 1e9 * (np.arange(N) % 2)[:, None],
    "copies": np.repeat(RNG.normal(size=(4, 6)), N // 4, axis=0)[RNG.permutation(N)],
    "constant": np.full((N, 3), 7.7),
    "constant columns": np.hstack([RNG.normal(size=(N, 2)), np.full((N, 4), 0.1)]),
    "1e30": 1e30 * RNG.normal(size=(N, 4)),
    "1e30, float32": (1e30 * RNG.normal(size=(N, 4))).astype(np.float32),
    "1e-140": 1e-140 * RNG.normal(size=(N, 4)),
    "300 orders of magnitude": np.geomspace(1e-150, 1e150, N)[RNG.permutation(N)][:, None],
    "outlier": np.vstack([RNG.normal(size=(N - 1, 4)), np.full((1, 4), 1e12)]),
    "integers": RNG.integers(0, 4, size=(N, 5)).astype(float),
    "tenths": 0.1 * RNG.integers(0, 3, size=(N, 4)),
    "bytes": RNG.integers(0, 256, size=(N, 90), dtype=np.uint8),
    "few bytes": RNG.integers(0, 3, size=(N, 4), dtype=np.uint8),
    "many features": RNG.normal(size=(N, 700)).astype(np.float32),
}


def brute_force(x, queries, k, *, own):
    """Sort (distance, index); squares are summed coordinate by coordinate, as the search does."""
    x, queries = x.astype(float), queries.astype(float)
    distance = np.zeros((len(queries), len(x)))
    for a, b in zip(queries.T, x.T, strict=True):
        distance += (a[:, None] - b) ** 2
    if own:
        distance[np.arange(len(x)), np.arange(len(x))] = np.inf
    order = np.lexsort((np.broadcast_to(np.arange(len(x)), distance.shape), distance))[:, :k]
    return order, np.take_along_axis(distance, order, axis=1)


def assert_equal(found, expected):
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("name", CLOUDS)
def test_equals_brute_force(name):
    x = CLOUDS[name]
    for k in (1, 10, 40):
        expected = brute_force(x, x, k, own=True)
        for threads in (1, 3):
            assert_equal(find_neighbors(x, k, threads), expected)
        assert_equal(
            find_neighbors(check_neighbor_points(scipy.sparse.coo_array(x)), k, 2), expected
        )


@pytest.mark.parametrize("name", CLOUDS)
def test_new_points_equal_brute_force(name):
    x = CLOUDS[name]
    new = x[RNG.integers(0, N, 50)]
    if x.dtype != np.uint8:
        new = (new * RNG.choice([1, 1.001, -1], size=(50, 1))).astype(x.dtype)
    for k in (1, 7):
        expected = brute_force(x, new, k, own=False)
        assert_equal(NeighborIndex(x, n_jobs=2).find(new, k), expected)
        sparse = scipy.sparse.csr_array(x.astype(float))
        assert_equal(NeighborIndex(sparse).find(scipy.sparse.csr_array(new), k), expected)
        assert_equal(NeighborIndex(sparse).find(new, k), expected)


def test_new_points_of_another_dtype():
    x = CLOUDS["few bytes"]
    new = np.array([[0.4, 1.6, 2.5, -7.25], [1e9, 0, 0, 0]])
    assert_equal(NeighborIndex(x).find(new, 5), brute_force(x, new, 5, own=False))
    near = np.array([[0.5 + 1e-12]])  # float32 would put it in the middle
    single = np.array([[0], [1]], dtype=np.float32)
    assert NeighborIndex(single).find(near, 1)[0].item() == 1


def test_sparse_input_is_not_changed():
    twice = scipy.sparse.csr_array(([1.0, 2.0, 1.0], [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    assert find_neighbors(check_neighbor_points(twice), 1, 1)[1].tolist() == [[10.0], [10.0]]
    assert twice.nnz == 3


def test_sparse_indices_outside_the_shape_are_refused():
    outside = scipy.sparse.csr_array((np.ones(2), np.array([0, 7]), np.array([0, 1, 2])), (2, 3))
    with pytest.raises(ValueError, match="indices must be"):
        check_neighbor_points(outside)
    wide = scipy.sparse.coo_array(([1.0], ([0], [2**31])), shape=(2, 2**31 + 1))
    with pytest.raises(ValueError, match="at most 2147483647 features"):
        check_neighbor_points(wide)


def test_cosine_of_the_smallest_numbers():
    x = np.array([[1e-320, 0.0], [0.0, 2e-320], [3e-320, 1e-320], [1.0, 1.0]])
    dense = check_neighbor_points(x, "cosine")
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), 1.0)
    sparse = check_neighbor_points(scipy.sparse.csr_array(x), "cosine")
    np.testing.assert_array_equal(sparse.toarray(), dense)


def test_cosine():
    x = RNG.normal(size=(300, 6))
    x[[5, 9]] = 0
    unit = x / np.where(np.linalg.norm(x, axis=1) > 0, np.linalg.norm(x, axis=1), 1)[:, None]
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    index, squares = find_neighbors(check_neighbor_points(x, "cosine"), 4, 1)
    others = np.delete(np.arange(300), [5, 9])
    np.testing.assert_array_equal(index[others], np.argsort(-cosine, axis=1)[others, :4])
    np.testing.assert_allclose(
        squares[others], 2 - 2 * np.take_along_axis(cosine, index, 1)[others]
    )
    assert index[5, 0] == 9  # the other row of zeros; all others are at cosine 0
    np.testing.assert_allclose(squares[5], [0, 2, 2, 2])
    sparse = check_neighbor_points(scipy.sparse.csr_array(x), "cosine")
    np.testing.assert_array_equal(find_neighbors(sparse, 4, 1)[0][others], index[others])
    scaled = x * RNG.choice([2.0**-500, 1.0, 2.0**400], size=(300, 1))
    found = find_neighbors(check_neighbor_points(scaled, "cosine"), 4, 1)[0]
    np.testing.assert_array_equal(found[others], index[others])
    for X in (x, scipy.sparse.csr_array(x)):
        near = NeighborIndex(X, "cosine").find(3.0 * X[20:30], 1)[0]
        assert near.ravel().tolist() == list(range(20, 30))
        assert NeighborIndex(X, "cosine").find(X[5:6], 2)[0].tolist() == [[5, 9]]


def collect(stream):
    columns = zip(*stream, strict=True)
    return [np.concatenate(parts) for parts in columns if parts[0] is not None]


def test_sweeps_give_the_same_edges(monkeypatch):
    x = CLOUDS["tenths"]
    kept = collect(knn_edges(x, n_neighbors=12, weights="gaussian"))
    monkeypatch.setattr(knn_module, "KEPT", 12 * 12 * N - 1)
    stream = knn_edges(x, n_neighbors=12, weights="gaussian", n_jobs=2, block=50)
    for a, b in zip(collect(stream), kept, strict=True):
        np.testing.assert_array_equal(a, b)
    assert stream.fraction == 1.0


def test_neighbours_are_found_once_and_not_if_interrupted(monkeypatch):
    calls = []

    def find(x, k, threads, report):
        calls.append(k)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return find_neighbors(x, k, threads, report)

    monkeypatch.setattr(knn_module, "find_neighbors", find)
    stream = knn_edges(CLOUDS["normal"], n_neighbors=3)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert stream.fraction == 0.0
    first, second = collect((u, v) for u, v, *_ in stream), collect((u, v) for u, v, *_ in stream)
    np.testing.assert_array_equal(first, second)
    assert stream.fraction == 1.0
    assert calls == [3, 3]


def test_the_search_can_be_interrupted():
    parts = []

    def report(fraction):
        parts.append(fraction)
        if len(parts) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_neighbors(RNG.normal(size=(3000, 30)), 5, 2, report)
    assert 0 < parts[0] < parts[-1] < 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_finds_the_same():
    stream = knn_edges(CLOUDS["normal"], n_neighbors=3, n_jobs=2)
    expected = collect((u, v) for u, v, *_ in knn_edges(CLOUDS["normal"], n_neighbors=3, n_jobs=2))
    child = os.fork()
    if child == 0:
        found = collect((u, v) for u, v, *_ in stream)
        os._exit(0 if all(map(np.array_equal, found, expected)) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
def test_memory_is_bounded():
    # All distances of 20,000 points would take 1.6 GB in float32.
    code = """
import resource, numpy as np
from ohmlearn.points import knn_edges
x = np.random.default_rng(0).normal(size=(20000, 8)).astype(np.float32)
knn_edges(x[:100], n_neighbors=3).find_neighbors()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
knn_edges(x, n_neighbors=10, n_jobs=2).find_neighbors()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 60 << 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: knn_edges(CSR([[1.0], [np.inf]]), n_neighbors=1), r"X\[1, 0\] = inf"),
        (lambda: knn_edges(CSR([[1j], [2]]), n_neighbors=1), "real numbers"),
        (lambda: knn_edges(CSR((3, 0)), n_neighbors=1), "n_points, n_features"),
        (lambda: knn_edges(np.eye(3), n_neighbors=1, metric="cityblock"), "metric must be one of"),
        (lambda: knn_edges(np.eye(3), n_neighbors=1, method="auto"), "method must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
