"""Graphs of points as scikit-learn makes them: kernels, functions, sparse points, neighbours."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, make_circles
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from sklearn.semi_supervised import LabelSpreading

import ohmlearn.points.affinity as affinity_module
from ohmlearn import Graph, HFSClassifier, HFSRegressor, kernel_edges, knn_edges, sparsify

X, TRUTH = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))[:700]
X, TRUTH = X[order], TRUTH[order]
GAMMA = 1 / (64 * X[:500].var())  # the default
Y = np.where(np.arange(500) < 100, TRUTH[:500], -1)


quarter = partial(rbf_kernel, gamma=0.25)


def test_kernel_weights_that_cannot_be_stored_are_no_silent_loss():
    # Weights of nearest neighbours go down to 1e-140 here. LabelSpreading, in float64, is right.
    x, y = X[:340], Y[:340]
    right = LabelSpreading(gamma=0.25, max_iter=20).fit(x, y)
    assert np.mean(right.transduction_ == TRUTH[:340]) > 0.85
    joined_to_none = r"below 1\.2e-38"
    for affinity in ("rbf", quarter):
        for epsilon in (0.5, None):
            with pytest.raises(ValueError, match=joined_to_none):
                HFSClassifier(affinity=affinity, kernel_gamma=0.25, epsilon=epsilon).fit(x, y)
    edges = kernel_edges(x, gamma=0.25)
    with pytest.raises(ValueError, match=joined_to_none):
        HFSRegressor().fit_edges(edges, np.where(y == -1, np.nan, y))
    with pytest.warns(UserWarning, match=joined_to_none):
        sparsify(edges)
    with pytest.raises(ValueError, match=r"at least 1\.2e-38"):
        HFSClassifier(affinity="precomputed").fit(quarter(x, x), y)
    model = HFSClassifier(affinity="rbf", kernel_gamma=0.05, random_state=0).fit(x, y)
    assert np.mean(model.transduction_ == TRUTH[:340]) > 0.85


def test_weights_between_labelled_clusters_may_be_lost():
    points = np.concatenate([np.arange(20.0), 1e3 + np.arange(20.0)])[:, np.newaxis]
    y = np.full(40, -1)
    y[[0, 39]] = 0, 1
    for affinity in ("rbf", lambda A, B: rbf_kernel(A, B, gamma=0.1) + 1e-300):
        model = HFSClassifier(affinity=affinity, kernel_gamma=0.1).fit(points, y)
        np.testing.assert_array_equal(model.transduction_, np.repeat([0, 1], 20))


def test_a_far_point_keeps_its_edges():
    x = np.append(np.linspace(0, 1, 600), 1e4)[:, np.newaxis]
    for n_neighbors in (5, 550):  # which are kept, and computed in each pass
        graph = Graph.from_batches(knn_edges(x, n_neighbors=n_neighbors, weights="gaussian"))
        assert graph.degrees[600] == pytest.approx(n_neighbors * 1e-12)


def nearest(A, B):
    """Join the points of B to their nearest ones in A; two equal sets in both directions."""
    joined = NearestNeighbors(n_neighbors=7).fit(A).kneighbors_graph(B).T
    return joined.maximum(joined.T) if joined.shape[0] == joined.shape[1] else joined


@pytest.mark.slow
def test_functions_get_points_in_the_order_of_scikit_learn():
    for model in (LabelSpreading(kernel=nearest), HFSClassifier(affinity=nearest, random_state=0)):
        model.fit(X[:500], Y)
        found = [model.predict(X[begin : begin + 10]) for begin in range(500, 700, 10)]
        assert np.mean(np.concatenate(found) == TRUTH[500:]) > 0.9


def test_functions_are_called_for_all_points_and_a_block(monkeypatch):
    whole = HFSClassifier(epsilon=None, affinity=quarter).fit(X[:500] / 16, Y)
    monkeypatch.setattr(affinity_module, "PAIRS", 500 * 30)
    parts = HFSClassifier(epsilon=None, affinity=quarter).fit(X[:500] / 16, Y)
    np.testing.assert_allclose(parts.scores_, whole.scores_, atol=1e-7)


@pytest.mark.parametrize("pairs", [1 << 22, 500 * 30])
def test_functions_must_be_symmetric(monkeypatch, pairs):
    monkeypatch.setattr(affinity_module, "PAIRS", pairs)
    for function in (
        lambda A, B: kneighbors_graph(A, 7) if len(A) == len(B) else nearest(A, B),
        lambda A, B: rbf_kernel(A, B, gamma=0.001) * A[:, :3].sum(axis=1, keepdims=True),
    ):
        with pytest.raises(ValueError, match=r"affinity\(A, B\) must be symmetric"):
            HFSClassifier(affinity=function).fit(X[:500], Y)


def test_a_function_must_return_a_weight_for_each_pair():
    with pytest.raises(ValueError, match=r"must return a matrix of shape \(len\(A\), len\(B\)\)"):
        HFSClassifier(epsilon=None, affinity=lambda A, B: np.ones(3)).fit(X[:500], Y)
    model = HFSClassifier(affinity=lambda A, B: rbf_kernel(A, B[:600], gamma=0.001))
    model.fit(X[:500], Y)
    with pytest.raises(ValueError, match=r"shape \(len\(A\), len\(B\)\) = \(500, 700\), got"):
        model.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [None, 0.003])
def test_sparse_points_have_the_same_kernel(gamma):
    dense = HFSClassifier(epsilon=None, affinity="rbf", kernel_gamma=gamma).fit(X[:500], Y)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        model = HFSClassifier(epsilon=None, affinity="rbf", kernel_gamma=gamma)
        model.fit(form(X[:500]), Y)
        np.testing.assert_allclose(model.scores_, dense.scores_, atol=1e-5)
        np.testing.assert_allclose(
            model.predict_proba(form(X[500:])), dense.predict_proba(X[500:]), atol=1e-5
        )
        function = HFSClassifier(epsilon=None, affinity=partial(rbf_kernel, gamma=gamma or GAMMA))
        function.fit(form(X[:500]), Y)
        np.testing.assert_allclose(function.scores_, dense.scores_, atol=1e-5)


def test_neighbours_are_one_fewer_than_those_of_label_spreading():
    x = np.random.default_rng(0).normal(size=(300, 3))
    graph = Graph.from_batches(knn_edges(x, n_neighbors=6, weights="uniform"))
    theirs = (
        NearestNeighbors(n_neighbors=7).fit(x).kneighbors_graph(x)
    )  # with the points themselves
    theirs.setdiag(0)
    np.testing.assert_array_equal(graph.to_scipy().toarray(), theirs.maximum(theirs.T).toarray())
    circles, side = make_circles(n_samples=200, shuffle=False)
    y = np.full(200, -1)
    y[[0, -1]] = 0, 1
    spread = LabelSpreading(kernel="knn", alpha=0.8).fit(circles, y)  # 7 neighbours
    assert spread.score(circles, side) == 1
    model = HFSClassifier(n_neighbors=6, random_state=0).fit(circles, y)
    np.testing.assert_array_equal(model.transduction_, spread.transduction_)


def test_integers_beyond_float64_are_refused():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    large = 2**60 + np.arange(600).reshape(200, 3)
    y = np.where(np.arange(200) < 100, 0, 1)
    columns = {"a": large[:, 2], "b": np.linspace(0, 1, 200)}  # together, numpy makes floats
    forms = [large, large.astype(np.uint64), large.tolist(), scipy.sparse.csr_array(large)]
    forms += [pandas.DataFrame(columns), polars.DataFrame(columns)]
    model = HFSClassifier(n_neighbors=3, random_state=0).fit(large - 2**60, y)
    assert (model.transduction_ == y).all()
    for use in (
        lambda X: knn_edges(X, n_neighbors=3),
        lambda X: HFSClassifier().fit(X, y),
        lambda X: HFSClassifier(affinity="rbf").fit(X, y),
    ):
        for form in forms:
            with pytest.raises(ValueError, match=rf"X has the integer {2**60 + 599}"):
                use(form)
    for use in (kernel_edges, model.predict):
        with pytest.raises(ValueError, match=rf"X has the integer {2**60 + 599}"):
            use(large)
    with pytest.raises(ValueError, match=r"the integer -\d+"):
        knn_edges(-large, n_neighbors=3)
    assert knn_edges(np.full((4, 1), 2**53), n_neighbors=1).n_nodes == 4
