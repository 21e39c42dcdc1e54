"""Neighbours of the estimators: found once, in any form of X, by any method; their number."""

import sys

import numpy as np
import pytest
import scipy.sparse
from refuses import refuses
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import ohmlearn.points.neighbor_edges as knn_module
from ohmlearn import HFSClassifier, HFSRegressor, gallery, knn_edges
from ohmlearn.estimators import suggest_neighbors

X, TRUTH = load_digits(return_X_y=True)
X, TRUTH = X[:600], TRUTH[:600]
Y = np.where(np.arange(600) < 60, TRUTH, -1)


@pytest.mark.parametrize("options", [{}, {"passes": 5}, {"epsilon": None}, {"method": "auto"}])
def test_neighbours_are_found_once_per_fit(monkeypatch, options):
    calls = []
    find = knn_module.find_neighbors
    monkeypatch.setattr(
        knn_module, "find_neighbors", lambda *args: calls.append(len(args[0])) or find(*args)
    )
    model = HFSClassifier(random_state=0, max_edges=2000, **options).fit(X, Y)
    model.predict(X[:20] + 0.5)
    assert model.transduction_.shape == (600,)
    assert model.stability_.shape == (600,)
    assert calls == [600]


def test_form_and_dtype_of_points_do_not_matter():
    expected = HFSClassifier(random_state=0).fit(X, Y)
    new = X[300:340] + 0.25
    for form in (
        X.astype(np.uint8),
        X.astype(np.float32),
        X.astype(np.int64),
        scipy.sparse.csr_array(X),
        scipy.sparse.csc_matrix(X.astype(np.float32)),
    ):
        model = HFSClassifier(random_state=0, n_jobs=2).fit(form, Y)
        np.testing.assert_array_equal(model.scores_, expected.scores_)
        np.testing.assert_array_equal(model.predict_proba(new), expected.predict_proba(new))
    assert model.X_.dtype == np.float32
    assert scipy.sparse.issparse(model.X_)


def test_metric_cosine_does_not_depend_on_lengths():
    lengths = 2.0 ** np.random.default_rng(0).integers(-9, 9, size=(600, 1))
    one, other = (
        HFSClassifier(metric="cosine", random_state=0).fit(points, Y) for points in (X, X * lengths)
    )
    np.testing.assert_array_equal(one.scores_, other.scores_)
    assert not np.array_equal(one.scores_, HFSClassifier(random_state=0).fit(X, Y).scores_)
    np.testing.assert_array_equal(one.predict(X[:50] + 1), one.predict(8 * (X[:50] + 1)))
    stream = knn_edges(X, n_neighbors=10, weights="gaussian", metric="cosine")
    edges = HFSClassifier(random_state=0).fit_edges(stream, Y)
    np.testing.assert_array_equal(one.scores_, edges.scores_)


@pytest.mark.parametrize("weights", ["uniform", "gaussian"])
def test_new_points_are_joined_to_their_neighbours(weights):
    values = np.linspace(0, 1, 600)
    model = HFSRegressor(n_neighbors=7, weights=weights, random_state=0).fit(X, values)
    new = X[::9] + 0.3
    distances, near = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(X).kneighbors(new)
    w = np.ones_like(distances) if weights == "uniform" else np.exp(
        -8.0 * (distances / distances[:, -1:]) ** 2
    )  # fmt: skip
    expected = np.average(model.transduction_[near], axis=1, weights=w)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9)


@pytest.mark.parametrize("form", [np.uint8, np.float32, "sparse"])
def test_saved_models_keep_points_and_parameters(tmp_path, form):
    points = scipy.sparse.csr_array(X) if form == "sparse" else X.astype(form)
    model = HFSClassifier(metric="cosine", neighbors="exact", random_state=0).fit(points, Y)
    model.save(tmp_path / "model.ohm")
    again = HFSClassifier.load(tmp_path / "model.ohm")
    assert again.get_params() == model.get_params()
    assert (again.neighbors, again.metric) == ("exact", "cosine")
    assert again.X_.dtype == model.X_.dtype
    np.testing.assert_array_equal(again.predict_proba(X[:30] + 1), model.predict_proba(X[:30] + 1))


def test_sparse_points_in_files_are_not_trusted(tmp_path):
    model = HFSClassifier(random_state=0).fit(scipy.sparse.csr_array(X), Y)
    path = tmp_path / "model.ohm"
    for wrong in ([0, 64], [-1, 3]):
        model.X_ = scipy.sparse.csr_array(X)
        model.X_.indices[:2] = wrong
        model.save(path)
        with pytest.raises(ValueError, match="holds no HFSClassifier that can continue: indices"):
            HFSClassifier.load(path)


def test_faiss_is_one_of_the_methods():
    pytest.importorskip("faiss")
    exact, found = (
        HFSClassifier(random_state=0, neighbors=method).fit(X, Y) for method in ("exact", "faiss")
    )
    np.testing.assert_allclose(found.scores_, exact.scores_, atol=1e-4)


def test_what_cannot_be_used_is_refused(monkeypatch):
    with refuses(parameter="neighbors"):
        HFSClassifier(neighbors="annoy").fit(X, Y)
    with refuses(parameter="metric"):
        HFSRegressor(metric="l1").fit(X, Y)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"ohmlearn\[knn\]"):
        HFSClassifier(neighbors="faiss").fit(X, Y)


def test_the_search_is_a_phase_after_the_labels_are_checked(capsys):
    HFSClassifier(random_state=0, verbose=1).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert lines.index("finding neighbours") < lines.index("reading edges, pass 1 of 3")
    with pytest.raises(ValueError, match="label"):
        HFSClassifier(verbose=1).fit(X, np.full(600, -1))
    assert "finding neighbours" not in capsys.readouterr().err


POINTS = gallery.paper_points(1210)


def test_suggested_neighbours_follow_the_labels():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900], truth[:900]
    y = np.where(np.arange(900) < 100, truth, -1)
    how = {"candidates": (7, 400), "weights": "uniform"}
    advice = suggest_neighbors(X, y, **how)
    assert advice.n_neighbors == 7
    assert advice.accuracy[0] > advice.accuracy[1] + 0.05
    assert "a sparser graph does better here" in str(advice)
    assert "<- suggested" in str(advice).splitlines()[1]
    # The same from a sample of the points, and without the others.
    assert suggest_neighbors(X, y, candidates=(7, 400), max_points=600).n_points == 600


def test_suggested_neighbours_where_density_helps():
    # Two rings, each in many parts if points see two neighbours only.
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    radius = np.where(np.arange(300) % 2, 1.0, 3.0)
    X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    y = np.where(np.arange(300) < 20, np.arange(300) % 2, -1)
    advice = suggest_neighbors(X, y, candidates=(1, 12))
    assert advice.n_neighbors == 12
    assert advice.reached[0] < 0.5
    assert advice.n_components[1] == 2
    assert "try larger k as well" in str(advice)


def test_suggested_neighbours_from_one_label_a_class():
    advice = suggest_neighbors(POINTS, {3: 0, 1100: 1}, candidates=(5, 400, 600, 10**6))
    assert advice.candidates == (5, 400, 600)
    assert advice.n_neighbors == next(
        k for k, share in zip(advice.candidates, advice.reached, strict=True) if share == 1
    )
    assert "too few labels to leave any out" in str(advice)
    with pytest.raises(ValueError, match="candidates must be below the number of points, 1210"):
        suggest_neighbors(POINTS, {3: 0, 1100: 1}, candidates=(5000,))
