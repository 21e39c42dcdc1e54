"""Edges made from points, against brute force and scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, rbf_kernel

from ohmlearn import Graph, HFSClassifier, StreamingSparsifier, gallery
from ohmlearn.points import kernel_edges, knn_edges


def collect(stream):
    batches = list(stream)
    u, v = (np.concatenate([batch[side] for batch in batches]) for side in (0, 1))
    w = None if batches[0].w is None else np.concatenate([batch.w for batch in batches])
    return u, v, w


def brute_force_knn(x, k):
    """Pairs i < j by sorting (distance, index); distances are summed coordinate by coordinate."""
    n = len(x)
    joined = np.zeros((n, n), dtype=bool)
    distance = np.zeros((n, n), dtype=x.dtype)
    for column in x.T:
        distance += (column[:, None] - column) ** 2
    for i in range(n):
        others = np.delete(np.arange(n), i)
        near = others[np.lexsort((others, distance[i, others]))[:k]]
        joined[i, near] = True
    return np.nonzero(np.triu(joined | joined.T, 1)), distance


def make_grid():
    """A 6 x 6 grid, every point four times: most distances are tied."""
    side = np.arange(6.0)
    return np.tile(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2), (4, 1))


CLOUDS = {
    "two": np.random.default_rng(0).normal(size=(2, 1)),
    "float32": np.random.default_rng(1).normal(size=(333, 17)).astype(np.float32),
    "many features": np.random.default_rng(2).normal(size=(200, 100)),
    "grid": make_grid(),
    "equal": np.zeros((300, 3)),
    "300 orders of magnitude": np.geomspace(1e-150, 1e150, 400)[:, None],  # must not stall
}


@pytest.mark.parametrize("name", CLOUDS)
def test_knn_equals_brute_force(name):
    x = CLOUDS[name]
    for k in sorted({1, 3, 8, 40, 143, len(x) // 3, len(x) - 1} & set(range(1, len(x)))):
        (u, v), _ = brute_force_knn(x, k)
        found = collect(knn_edges(x, n_neighbors=k, weights="uniform", block=7, n_jobs=3))
        np.testing.assert_array_equal(found[0], u)
        np.testing.assert_array_equal(found[1], v)
    if name == "equal":
        assert (collect(knn_edges(x, n_neighbors=5, weights="gaussian"))[2] == 1).all()


@pytest.mark.slow
def test_knn_of_the_papers_points():
    for k, n_edges in [(100, 660_148), (12_000, 73_187_920)]:
        stream = knn_edges(gallery.paper_points(), n_neighbors=k, weights="uniform")
        assert sum(len(batch.u) for batch in stream) == n_edges
    u, v, w = collect(knn_edges(gallery.paper_points(1210), n_neighbors=300, weights="uniform"))
    a, b, _ = gallery.paper_knn(300, n_points=1210).edges()
    np.testing.assert_array_equal(u, a)
    np.testing.assert_array_equal(v, b)
    assert w is None


@pytest.mark.parametrize("gamma", [None, 1.0, 3.0])
def test_knn_self_tuning_weights(gamma):
    x = np.random.default_rng(3).normal(size=(150, 4))
    x[:8] = x[8]  # nine copies, whose 8th neighbour is at distance 0
    k = 8
    how = {} if gamma is None else {"gamma": gamma}
    u, v, w = collect(knn_edges(x, n_neighbors=k, **how))
    _, distance = brute_force_knn(x, k)
    scale = np.sqrt(np.sort(distance, axis=1)[:, k])
    assert (scale[:9] == 0).all()
    scale[:9] = scale[9:].mean()
    expected = np.exp(-(gamma or 8.0) * distance[u, v] / (scale[u] * scale[v]))
    np.testing.assert_allclose(w, np.maximum(expected, 1e-12), rtol=2e-5)


def test_points_far_from_copies_stay_joined():
    x = np.zeros((300, 2))
    x[:100] += np.random.default_rng(0).normal(scale=1e-9, size=(100, 2))  # nearly copies
    x[100:200] += 1e-3 * np.random.default_rng(1).normal(size=(100, 2))
    x[200:] = np.random.default_rng(2).normal(size=(100, 2))
    graph = Graph.from_batches(knn_edges(x, n_neighbors=10))
    alone = Graph.from_batches(knn_edges(x, n_neighbors=10, weights="uniform"))
    assert graph.n_edges == alone.n_edges
    assert graph.weights.min() >= 0.999e-12
    truth = np.repeat(["copy", "near", "far"], 100)
    labels = {node: truth[node] for node in range(0, 300, 20)}
    with warnings.catch_warnings(action="error"):  # of solves that do not converge
        model = HFSClassifier().fit(x, [labels.get(node) for node in range(300)])
    assert np.mean(model.transduction_[:100] == "copy") > 0.8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "reference"),
    [("rbf", rbf_kernel), ("laplacian", laplacian_kernel), ("cosine", cosine_similarity)],
)
def test_kernel_equals_scikit_learn(kernel, reference, dtype):
    x = np.random.default_rng(0).normal(size=(150, 7)).astype(dtype)
    x[3] = 0
    gamma = {} if kernel == "cosine" else {"gamma": 0.3}
    u, v, w = collect(kernel_edges(x, kernel=kernel, block=11, n_jobs=2, **gamma))
    a, b = np.triu_indices(150, 1)
    np.testing.assert_array_equal(u, a)
    np.testing.assert_array_equal(v, b)
    expected = np.maximum(reference(x.astype(float), **gamma), 0)[a, b]
    np.testing.assert_allclose(w, expected, rtol=5e-6, atol=2e-7 if kernel == "cosine" else 0)


def test_kernel_default_gamma_follows_the_units():
    x = np.random.default_rng(0).normal(size=(60, 5))
    for kernel in ("rbf", "laplacian"):
        w = collect(kernel_edges(x, kernel=kernel))[2]
        np.testing.assert_allclose(collect(kernel_edges(1000 * x, kernel=kernel))[2], w, rtol=1e-5)
    assert kernel_edges(x).gamma == pytest.approx(1 / (5 * x.var()))
    assert kernel_edges(np.ones((3, 2))).gamma == 1


def test_kernel_weights_over_all_of_float():
    # One point at 0, and others such that the exponent goes from 0 to below the smallest float.
    x = np.sqrt(np.linspace(0, 90, 100_000))[:, None]
    w = next(iter(kernel_edges(x, gamma=1.0, block=1))).w.astype(float)
    exponent = (x[1:, 0] - x[0, 0]) ** 2
    normal = exponent < 87.3
    np.testing.assert_allclose(w[normal], np.exp(-exponent[normal]), rtol=5e-6)
    assert (w[exponent > 87.4] == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: knn_edges([1.0, 2.0], n_neighbors=1), r"shape \(n_points, n_features\).*reshape"),
        (lambda: knn_edges(np.zeros((4, 2)), n_neighbors=1.5), "n_neighbors must be an integer"),
        (lambda: knn_edges([[0.0], [np.nan]], n_neighbors=1), r"X\[1, 0\] = nan"),
        (lambda: knn_edges([[0.0], [1e200]], n_neighbors=1), "scale X down"),
        (lambda: knn_edges([[0.0], [1e-160]], n_neighbors=1), "scale X up"),
        (lambda: kernel_edges(np.float32([[0.0], [1e-20]])), "squared distances fall below"),
        (lambda: knn_edges(np.zeros((4, 2)), n_neighbors=1, weights="x"), "weights must be one of"),
        (lambda: kernel_edges(np.zeros((4, 2)), kernel="poly"), "kernel must be one of"),
        (lambda: kernel_edges(np.zeros((4, 2)), gamma=0), "gamma must be a number in"),
    ],
)
def test_bad_points_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(TypeError, match=r"needs a dense X, got a sparse one; give X\.toarray\(\)"):
        kernel_edges(scipy.sparse.eye_array(3))


def test_faiss_finds_the_same_neighbours():
    pytest.importorskip("faiss")
    x = np.random.default_rng(5).normal(size=(400, 6)).astype(np.float32)
    x[50] = x[51]
    for weights in ("uniform", "gaussian"):
        exact = collect(knn_edges(x, n_neighbors=7, weights=weights))
        found = collect(knn_edges(x, n_neighbors=7, weights=weights, method="faiss", block=10))
        np.testing.assert_array_equal(found[0], exact[0])
        np.testing.assert_array_equal(found[1], exact[1])
        if weights == "gaussian":
            np.testing.assert_allclose(found[2], exact[2], rtol=1e-3)
    with pytest.raises(ValueError, match="faiss needs a dense X"):
        knn_edges(scipy.sparse.eye_array(3), n_neighbors=1, method="faiss")


def test_faiss_misses_few_neighbours_of_many_points():
    pytest.importorskip("faiss")
    x = np.random.default_rng(5).normal(size=(21_000, 8)).astype(np.float32)
    exact, found = (
        set((u.astype(np.int64) * len(x) + v).tolist())
        for u, v, _ in (collect(knn_edges(x, n_neighbors=10, method=m)) for m in ("exact", "faiss"))
    )
    assert len(exact & found) > 0.9 * len(exact)


@pytest.mark.parametrize("scheme", ["resample", "paper"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_feeding_a_sparsifier_equals_updating_it(scheme, dtype):
    x = np.random.default_rng(0).normal(size=(700, 3)).astype(dtype)
    one, other = (
        StreamingSparsifier(n_nodes=700, epsilon=0.9, scheme=scheme, random_state=1)
        for _ in range(2)
    )
    stream = kernel_edges(x, n_jobs=2)
    assert stream.feed(one).n_edges_seen_ == stream.n_edges == 700 * 699 // 2
    for batch in stream:
        other.update(*batch)
    for a, b in zip(one.snapshot().edges(), other.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.stats_ == other.stats_
