"""`GraphSmoother`: which graphs and features it takes, and what it returns."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ohmlearn import (
    EdgeLog,
    Graph,
    GraphFeatureClassifier,
    GraphSmoother,
    NodeFeatures,
    StreamingSparsifier,
    gallery,
    read_edges,
)
from ohmlearn.features import smooth


@pytest.fixture(scope="module")
def graph():
    return gallery.chimera(300, random_state=1)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 4))


def test_graphs_in_memory_are_used_whole(graph, X, tmp_path):
    networkx = pytest.importorskip("networkx")
    expected = smooth(graph, X, 9.0, random_state=0)
    other = networkx.from_scipy_sparse_array(graph.to_scipy())
    for form in (graph, graph.to_scipy(), graph.to_scipy().toarray(), other):
        smoother = GraphSmoother(form, epsilon=0.5, random_state=0)
        np.testing.assert_array_equal(smoother.fit_transform(X), expected)
        assert smoother.graph_ == graph
        assert smoother.nodes_ is None
    sparse = GraphSmoother(graph, random_state=0).fit_transform(scipy.sparse.csr_array(X))
    np.testing.assert_array_equal(sparse, expected)
    several = GraphSmoother(graph, gamma=(0, 9.0, 1), random_state=0).fit_transform(X)
    assert several.shape == (300, 12)
    np.testing.assert_array_equal(several[:, :4], X)
    np.testing.assert_array_equal(several[:, 4:8], expected)
    narrow = GraphSmoother(graph, random_state=0).fit_transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, atol=1e-5)


def test_other_features_of_the_same_nodes(graph, X):
    smoother = GraphSmoother(graph, random_state=0).fit(X)
    other = np.arange(1200.0).reshape(300, 4)
    np.testing.assert_array_equal(smoother.transform(other), smooth(graph, other, random_state=0))
    with pytest.raises(ValueError, match=r"features of all 300 nodes .* in fit; got 299 rows"):
        smoother.transform(X[:299])
    with pytest.raises(ValueError, match="X has 3 features, but GraphSmoother is expecting 4"):
        smoother.transform(X[:, :3])


def test_streams_have_exact_degrees():
    graph = gallery.complete(400)
    X = np.random.default_rng(0).normal(size=(400, 3))
    u, v, w = graph.edges()
    expected = smooth(graph, X, 9.0)
    for edges in ((u, v, w), [(u[:99], v[:99]), (u[99:], v[99:])], read_edges((u, v))):
        smoother = GraphSmoother(edges, random_state=0).fit(X)
        assert smoother.graph_.n_edges < graph.n_edges / 4
        np.testing.assert_array_equal(smoother.degrees_, graph.degrees)
        assert not np.array_equal(smoother.graph_.degrees, graph.degrees)
        found = smoother.transform(X)
        np.testing.assert_array_equal(
            found, smooth(smoother.graph_, X, 9.0, degrees=graph.degrees, random_state=0)
        )
        # H is a sparsifier of accuracy 0.8 at most: (D + gamma L) differs by as much.
        assert np.linalg.norm(found - expected) < 0.5 * np.linalg.norm(expected)
    whole = GraphSmoother(iter([(u, v)]), epsilon=None).fit(X)
    assert whole.graph_ == graph
    np.testing.assert_allclose(whole.transform(X), expected, atol=1e-5)
    few = GraphSmoother((u, v), max_edges=2000, random_state=0).fit(X)
    assert few.graph_.n_edges <= 2000


def test_saved_sparsifiers_have_their_own_degrees(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))
    sparsifier = StreamingSparsifier(epsilon=0.8, random_state=0).update(gallery.complete(400))
    path = tmp_path / "h.ohm"
    sparsifier.save(path)
    h = sparsifier.snapshot()
    expected = smooth(h, X, 9.0, random_state=0)
    for form in (sparsifier, path, str(path)):
        smoother = GraphSmoother(form, random_state=0)
        np.testing.assert_array_equal(smoother.fit_transform(X), expected)
        np.testing.assert_array_equal(smoother.degrees_, h.degrees)
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n")
    with pytest.raises(ValueError, match=r"must be a saved sparsifier: .* give graph=read_edges"):
        GraphSmoother(tmp_path / "edges.csv").fit(X)
    with pytest.raises(ValueError, match=r"^graph is 'nowhere\.ohm', but there is no such file"):
        GraphSmoother("nowhere.ohm").fit(X)


def test_nodes_with_ids(tmp_path):
    stream = read_edges([(["ann", "bob"], ["bob", "cy"])])
    X = np.eye(3)
    smoother = GraphSmoother(stream, epsilon=None).fit(X)
    assert smoother.nodes_.ids().tolist() == ["ann", "bob", "cy"]
    np.testing.assert_allclose(smoother.transform(X), smooth(gallery.path(3), X), atol=1e-6)
    for rows in (2, 4):
        with pytest.raises(ValueError, match=r"the 3 nodes of the graph, in the order of the ids"):
            GraphSmoother(stream).fit(np.eye(rows))
    pytest.importorskip("pyarrow")
    with EdgeLog(tmp_path / "log") as log:
        log.append([5, 6], [6, 7])
        found = GraphSmoother(log).fit(X)
        assert found.nodes_.ids().tolist() == [5, 6, 7]
        np.testing.assert_array_equal(found.degrees_, [1.0, 2.0, 1.0])


def test_rows_and_nodes_without_edges():
    X = np.random.default_rng(0).normal(size=(5, 2))
    edges = ([0, 1], [1, 2])
    sparsifier = StreamingSparsifier(random_state=0).update(*edges)
    for form in (edges, [edges], sparsifier):
        found = GraphSmoother(form).fit_transform(X)
        np.testing.assert_array_equal(found[3:], X[3:])
        np.testing.assert_allclose(found[:3], smooth(gallery.path(3), X[:3]), atol=1e-6)
    assert sparsifier.snapshot().n_nodes == 3
    for form in (edges, sparsifier, gallery.path(3)):
        with pytest.raises(ValueError, match=r"each of the 3 nodes of the graph; got 2 rows"):
            GraphSmoother(form).fit(X[:2])
    with pytest.raises(ValueError, match=r"each of the 3 nodes of the graph; got 5 rows"):
        GraphSmoother(gallery.path(3)).fit(X)


def test_neighbours_of_the_rows(X):
    smoother = GraphSmoother(random_state=0)
    found = smoother.fit_transform(X)
    assert smoother.graph_.n_nodes == 300
    assert np.diff(smoother.graph_.indptr).min() >= 10
    np.testing.assert_array_equal(found, smooth(smoother.graph_, X, random_state=0))
    sparse = GraphSmoother(random_state=0).fit_transform(scipy.sparse.csc_array(X))
    np.testing.assert_allclose(sparse, found, atol=1e-5)
    ids = [f"n{i}" for i in range(300)]
    named = GraphSmoother(random_state=0).fit(NodeFeatures(X, ids=ids))
    np.testing.assert_array_equal(named.transform(X), found)
    turned = named.transform(NodeFeatures(X[::-1], ids=ids[::-1]))
    np.testing.assert_allclose(turned, found[::-1], atol=1e-5)
    np.testing.assert_array_equal(GraphSmoother().fit_transform(X[:1]), X[:1])
    assert GraphSmoother().fit(X[:3]).graph_.n_edges == 3


def test_graphs_that_are_refused(X):
    with pytest.raises(TypeError, match=r"^edges are needed, got int"):
        GraphSmoother(7).fit(X)
    smoother = GraphSmoother(iter([([0], [1])]), epsilon=None)
    assert smoother.fit(X[:2]).graph_ == Graph.from_edges([0], [1])
    with pytest.raises(ValueError, match=r"a list_iterator can be read only once, and may have"):
        smoother.fit(X[:2])


def test_features_with_ids_are_joined_by_id(X):
    names = [f"n{i}" for i in range(300)]
    u, v, _ = gallery.chimera(300, random_state=1).edges()
    edges = read_edges((np.array(names)[u], np.array(names)[v]))
    smoother = GraphSmoother(Graph.from_batches(edges), random_state=0)
    order = [names.index(node) for node in smoother.graph.nodes.ids()]
    expected = np.empty_like(X)
    expected[order] = smoother.fit_transform(X[order])
    shuffled = np.random.default_rng(3).permutation(300)
    features = NodeFeatures(X[shuffled], ids=[names[i] for i in shuffled], names=list("abcd"))
    np.testing.assert_allclose(smoother.fit_transform(features), expected[shuffled], atol=1e-5)
    assert smoother.get_feature_names_out().tolist()[:2] == ["a_gamma9", "b_gamma9"]
    some = smoother.transform(features[[7, 3]])
    np.testing.assert_allclose(some, expected[shuffled[[7, 3]]], atol=1e-5)
    sparse = NodeFeatures(scipy.sparse.csr_matrix(features.X), ids=features.ids)
    np.testing.assert_allclose(smoother.transform(sparse), expected[shuffled], atol=1e-5)
    with pytest.raises(ValueError, match="X has 1 features, but the fit had 4"):
        smoother.transform(NodeFeatures(X[:, :1], ids=names))


def test_features_of_some_nodes_and_of_others(graph, X):
    features = NodeFeatures(X[:200], ids=[*range(199), 999])
    smoother = GraphSmoother(graph, gamma=[1.0, 9.0], random_state=0)
    with pytest.warns(UserWarning, match=r"101 of 300 nodes have no features.*1 id is only in"):
        found = smoother.fit(features).transform(features)
    np.testing.assert_array_equal(found[-1], np.tile(X[199], 2))
    filled = np.vstack([X[:199], np.tile(X[:200].mean(axis=0), (101, 1))])
    np.testing.assert_allclose(found[:199], smoother.transform(filled)[:199], atol=1e-5)


def test_tables_with_dates_are_refused():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "born": pandas.to_datetime(["2020-01-01"] * 2)})
    path = gallery.path(2)
    for estimator in (GraphSmoother(path), GraphFeatureClassifier(graph=path)):
        with pytest.raises(ValueError, match=r"column 1 \(born\) is .*NodeFeatures.from_table"):
            estimator.fit(table, [0, 1])


def test_features_with_ids_in_a_pipeline(graph, X):
    smoother = GraphSmoother(graph, random_state=0)
    y = (smoother.fit_transform(X)[:, 0] > 0).astype(int)
    features = NodeFeatures(X[::-1], ids=range(299, -1, -1))
    model = make_pipeline(smoother, StandardScaler(), LogisticRegression(C=100.0))
    assert cross_val_score(model, features, y[::-1], cv=3).min() > 0.9
    assert cross_val_score(model, features, y, cv=3).max() < 0.8  # the rows of other nodes
