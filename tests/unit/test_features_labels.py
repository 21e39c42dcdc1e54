"""Labels, ids and edges in all forms that the estimators with features and graph accept."""

import numpy as np
import pytest

from ohmlearn import (
    Graph,
    GraphFeatureClassifier,
    GraphFeatureRegressor,
    GraphSmoother,
    NodeFeatures,
    NodeTable,
    StreamingSparsifier,
    gallery,
    read_edges,
)

N = 80
TRUTH = np.repeat([0, 1], N // 2)
GRAPH = gallery.stochastic_blocks([N // 2, N // 2], p=0.2, bridges=25, random_state=0)
RNG = np.random.default_rng(0)
X = TRUTH[:, np.newaxis] + RNG.standard_normal((N, 3))
Y = np.where(RNG.random(N) < 0.3, TRUTH, -1)
KNOWN = np.flatnonzero(Y >= 0)


def classifier(**parameters):
    return GraphFeatureClassifier(**{"gamma": 9.0, "random_state": 0, **parameters})


def fit(y, **arguments):
    return classifier(graph=GRAPH).fit(X, y, **arguments)


EXPECTED = fit(Y).label_distributions_


def same(model, expected=EXPECTED):
    np.testing.assert_array_equal(model.label_distributions_, expected)


@pytest.mark.slow
def test_forms_of_labels():
    names = np.array(["ham", "spam"])
    entries = [names[value] if value >= 0 else None for value in Y]
    named = fit(entries)
    same(named)
    assert named.classes_.tolist() == ["ham", "spam"]
    assert set(named.transduction_) == {"ham", "spam"}
    same(fit(Y.astype(float)))
    same(fit({node: int(Y[node]) for node in KNOWN}))
    same(fit({node: int(Y[node]) for node in KNOWN[::-1]}))  # in another order
    same(fit(np.eye(3)[Y][:, :2]))  # distributions; rows of zeros are unlabelled
    pandas = pytest.importorskip("pandas")
    same(fit(pandas.Series(Y)))


@pytest.mark.slow
def test_weights():
    weights = np.where(np.arange(N) % 2 == 0, 3.0, 1.0)
    weighted = fit(Y, sample_weight=weights).label_distributions_
    assert not np.array_equal(weighted, EXPECTED)
    same(fit(dict(enumerate(Y)), sample_weight=dict(enumerate(weights))), weighted)
    for scale in (2.0**-300, 2.0**300):  # only ratios matter
        same(fit(Y, sample_weight=scale * weights), weighted)
    several = {node: [int(Y[node])] * int(weights[node]) for node in KNOWN}
    same(fit(several), weighted)  # weight 3 is a label given three times
    zero = np.where(np.arange(N) < 20, 0.0, 1.0)
    same(fit(Y, sample_weight=zero), fit(np.where(zero > 0, Y, -1)).label_distributions_)
    numbers = np.where(Y < 0, np.nan, Y)
    model = GraphFeatureRegressor(graph=GRAPH, random_state=0)
    by_weight = model.fit(X, numbers, sample_weight=weights).transduction_
    twice = model.fit(X, {k: [float(Y[k])] * int(weights[k]) for k in KNOWN}).transduction_
    np.testing.assert_array_equal(by_weight, twice)


def test_soft_labels():
    sure = {node: {0: 1 - Y[node], 1: Y[node]} for node in KNOWN}
    same(fit(sure))
    unsure = {
        node: {0: 0.5 + 0.1 * (1 - 2 * Y[node]), 1: 0.5 - 0.1 * (1 - 2 * Y[node])} for node in KNOWN
    }
    model = fit(unsure)
    assert np.mean(model.transduction_ == TRUTH) > 0.9
    largest = model.label_distributions_.max(axis=1)
    assert largest.mean() < EXPECTED.max(axis=1).mean() - 0.15


@pytest.mark.parametrize("estimator", [GraphFeatureClassifier, GraphFeatureRegressor])
def test_few_labels(estimator):
    model = estimator(graph=GRAPH, random_state=0)
    if estimator is GraphFeatureClassifier:
        for y in ({3: 1}, {3: 1, 4: 1}):
            with pytest.warns(UserWarning, match="all labels are 1, so all answers will be the"):
                np.testing.assert_array_equal(model.fit(X, y).transduction_, 1)
    else:
        np.testing.assert_allclose(model.fit(X, {3: 1.5}).transduction_, 1.5)
        np.testing.assert_allclose(model.fit(X, {3: 1.5, 4: 1.5}).transduction_, 1.5)
    two = model.fit(X, {0: 0, 79: 1}).transduction_  # fewer labels than folds
    assert np.mean((two > 0.5) == (TRUTH == 1)) > 0.7
    one_of_a_class = model.fit(X, {0: 0, 1: 0, 2: 0, 3: 0, 79: 1}).transduction_
    assert one_of_a_class[79] > one_of_a_class[0]
    assert np.isfinite(one_of_a_class).all()


@pytest.mark.parametrize("y", [{0: "a", 50: "b", 79: "c"}, {0: "a", 1: "a", 2: "a", 79: "b"}])
def test_one_label_in_a_class_is_the_mean_of_both_and_graph(y):
    model = fit(y)
    assert model.weights_ == {"features": 0.0, "both": 0.5, "graph": 0.5}
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)
    assert model.accuracy_estimate_.n_labels == 0  # no label can be left out
    assert np.isnan(model.accuracy_estimate_.value)
    assert model.prediction_sets(0.1).all()
    assert str(model.graph_use_).startswith("It is not known whether the graph helps")


def test_nodes_that_are_not_there_and_numbers_that_are_too_large_are_refused():
    with pytest.raises(ValueError, match="y has a label of node 999, but the nodes of the graph a"):
        fit({3: 0, 999: 1})
    with pytest.raises(ValueError, match=r"y must be between -1e\+70 and 1e\+70, .* scale y down"):
        GraphFeatureRegressor(graph=GRAPH).fit(X, Y * 1e200)


def test_numbers_of_any_size():
    model = GraphFeatureRegressor(graph=GRAPH, random_state=0)
    values = np.where(Y < 0, np.nan, Y)
    expected = model.fit(X, values).transduction_
    for scale in (2.0**-200, 2.0**200):
        np.testing.assert_allclose(model.fit(X, scale * values).transduction_ / scale, expected)
    shifted = model.fit(X, values + 1e6).transduction_ - 1e6
    np.testing.assert_allclose(shifted, expected, atol=1e-4)


# Ids and the order of rows.


def test_rows_of_features_in_another_order():
    order = np.random.default_rng(1).permutation(N)
    features = NodeFeatures(X[order], ids=order)
    model = classifier(graph=GRAPH).fit(features, Y[order])
    same(model)
    np.testing.assert_array_equal(model.predict_proba(features), EXPECTED[order])
    same(model.relabel(Y[order]))
    same(model.relabel(dict(enumerate(Y))))
    np.testing.assert_array_equal(model.predict_proba(features[[3, 5]]), EXPECTED[order[[3, 5]]])


@pytest.fixture
def stream(tmp_path):
    """Edges in a file, whose nodes are numbered as they come."""
    order = np.random.default_rng(2).permutation(GRAPH.n_edges)
    u, v, _ = GRAPH.edges()
    path = tmp_path / "edges.csv"
    rows = zip(u[order].tolist(), v[order].tolist(), strict=True)
    path.write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return path


def test_ids(stream):
    features = NodeFeatures(X, ids=np.arange(N))
    expected = classifier().fit_edges(read_edges(stream), features, dict(enumerate(Y)))
    ids = np.asarray(expected.nodes_.ids())
    assert np.mean(expected.transduction_ == TRUTH[ids]) > 0.95
    by_row = classifier().fit_edges(read_edges(stream), features, Y)
    same(by_row, expected.label_distributions_)
    # Ids that were read, but are in no edge of the model, are new points.
    expected.nodes_.add([900])
    new = NodeFeatures(X[:2], ids=[900, 0])
    found = expected.predict_proba(new)
    np.testing.assert_array_equal(found[:1], expected.predict_proba(X[:1]))
    np.testing.assert_array_equal(found[1], expected.label_distributions_[ids.tolist().index(0)])


def test_rows_that_may_be_in_another_order(stream):
    labels = dict(enumerate(Y))
    message = (
        r"rows of X have the order of nodes.ids\(\), .* give NodeFeatures\(X, ids=range\(80\)\)"
    )
    with pytest.raises(ValueError, match=message):
        classifier().fit_edges(read_edges(stream), X, labels)
    with pytest.raises(ValueError, match=message):
        classifier(graph=read_edges(stream)).fit(X, labels)
    model = classifier().fit_edges(read_edges(stream), NodeFeatures(X, ids=np.arange(N)), labels)
    with pytest.raises(ValueError, match=message):
        model.update(([0], [1]), X)


def test_index_of_a_frame():
    pandas = pytest.importorskip("pandas")
    nodes = NodeTable()
    names = np.array([f"p{node}" for node in range(N)])
    u, v, w = GRAPH.edges()
    a, b = nodes.add_edges(names[u].tolist(), names[v].tolist())
    graph = Graph.from_edges(a, b, w)
    graph.nodes = nodes
    frame, y = pandas.DataFrame(X, index=names), pandas.Series(Y, index=names)
    for estimator in (classifier(graph=graph), GraphSmoother(graph)):
        with pytest.raises(ValueError, match=r"row 1 of X is 'p1' .* give X.loc\[nodes.ids\(\)\]"):
            estimator.fit(frame, y)
        estimator.fit(frame.loc[nodes.ids().tolist()], y)
    in_order = classifier(graph=graph).fit(frame.loc[nodes.ids().tolist()], y)
    by_id = classifier(graph=graph).fit(NodeFeatures(X, ids=names), y)
    same(by_id, in_order.label_distributions_)


def test_labels_of_ids_that_the_graph_does_not_have():
    extended = NodeFeatures(np.vstack([X, X[:2]]), ids=np.append(np.arange(N), [500, 501]))
    with pytest.warns(UserWarning, match="2 ids are only in the features, such as 500"):
        same(classifier(graph=GRAPH).fit(extended, np.append(Y, [0, 1])))
    message = "no labelled row of X belongs to a node of the graph"
    with pytest.warns(UserWarning, match="2 ids"), pytest.raises(ValueError, match=message):
        classifier(graph=GRAPH).fit(extended, np.append(np.full(N, -1), [0, 1]))


def test_nodes_without_features():
    there = np.arange(N) % 4 > 0
    with pytest.warns(UserWarning, match="20 of 80 nodes have no features, such as 0"):
        model = classifier(graph=GRAPH).fit(
            NodeFeatures(X[there], ids=np.flatnonzero(there)), Y[there]
        )
    assert np.mean(model.transduction_[~there] == TRUTH[~there]) > 0.9
    # A node with neither features nor edges gets the shares of the labels.
    graph = Graph.from_edges(*GRAPH.edges(), n_nodes=N + 1)
    with pytest.warns(UserWarning, match="1 of 81 nodes has no features"):
        model = classifier(graph=graph, calibration=None).fit(NodeFeatures(X, ids=np.arange(N)), Y)
    shares = np.bincount(Y[KNOWN]) / len(KNOWN)
    np.testing.assert_allclose(model.label_distributions_[N], shares)


# Edges.


def test_streams_and_graphs_agree():
    u, v, w = GRAPH.edges()
    same(classifier(epsilon=None).fit_edges((u, v, w), X, Y))
    same(classifier().fit_edges(GRAPH, X, Y))
    same(classifier(graph=GRAPH.to_scipy()).fit(X, Y))
    whole = classifier().fit_edges((u, v, w), X, Y)  # so few edges are all kept
    assert whole.sparsifier_.n_edges_seen_ == whole.graph_.n_edges == GRAPH.n_edges
    np.testing.assert_allclose(whole.label_distributions_, EXPECTED, atol=1e-4)


def test_same_bits_for_any_split_of_a_stream():
    rng = np.random.default_rng(3)
    u = rng.integers(0, N, 4000)
    v = (u + rng.integers(0, N // 2, 4000)) % (N // 2) + u // (N // 2) * (N // 2)  # same block
    one = classifier(max_edges=300).fit_edges((u, v), X, Y)
    assert one.graph_.n_edges <= 300
    parts = [(u[at], v[at]) for at in np.array_split(np.arange(4000), 9)]
    two = classifier(max_edges=300, n_jobs=2).fit_edges(parts, X, Y)
    same(two, one.label_distributions_)
    np.testing.assert_array_equal(one.degrees_, Graph.from_edges(u, v, n_nodes=N).degrees)


@pytest.mark.parametrize("epsilon", [None, 0.8])
def test_update_equals_all_edges_at_once(epsilon):
    u, v, w = GRAPH.edges()
    half = len(u) // 2
    model = classifier(epsilon=epsilon).fit_edges((u[:half], v[:half], w[:half]), X, Y)
    model.update((u[half:], v[half:], w[half:]))
    whole = classifier(epsilon=epsilon).fit_edges((u, v, w), X, Y)
    np.testing.assert_array_equal(model.degrees_, whole.degrees_)
    same(model, whole.label_distributions_)
    model.update(([0], [N]))  # a new node, without features
    assert model.transduction_[N] == model.transduction_[0]
    model.update(([1], [N]), np.vstack([X, X[:1]]))
    edges = (np.append(u, [0, 1]), np.append(v, [N, N]), np.append(w, [1.0, 1.0]))
    whole.fit_edges(edges, np.vstack([X, X[:1]]), np.append(Y, -1))
    same(model, whole.label_distributions_)


@pytest.mark.parametrize("epsilon", [None, 0.8])
def test_failed_update_and_relabel_change_nothing(epsilon):
    edges = GRAPH.edges()
    model = classifier(epsilon=epsilon).fit_edges(edges, X, Y)
    before = model.label_distributions_

    def broken():
        yield [0], [1]
        raise OSError("the disk is gone")

    wrong = [
        ((([1], [N]), X), "one row for each of the 81 nodes of the graph; got 80 rows"),
        ((([1], [2]), X[:, :2]), "X has 2 features"),
        ((([1], [2]), NodeFeatures(X[:, :2])), "X has 2 features"),
        ((([1], [2]), np.full((N, 3), np.nan)), "row 0, column 0 is NaN"),
        ((([1], [-2]),), "-2"),
        ((broken(),), "the disk is gone"),
    ]
    for arguments, message in wrong:
        with pytest.raises((ValueError, OSError), match=message):
            model.update(*arguments)
        same(model, before)
        np.testing.assert_array_equal(model.degrees_, GRAPH.degrees)
    for labels in (Y[1:], np.full(N, -1), Y + 0.5, {"ann": 1}):
        with pytest.raises(ValueError, match="y "):
            model.relabel(labels)
        same(model, before)
    other = np.where(np.arange(N) % 5 == 0, TRUTH, -1)
    same(model.relabel(other), fit_whole(epsilon, edges, other))
    whole = [np.append(end, more) for end, more in zip(edges, (0, 1, 1.0), strict=True)]
    same(model.update(([0], [1])), fit_whole(epsilon, whole, other))


def fit_whole(epsilon, edges, y):
    return classifier(epsilon=epsilon).fit_edges(tuple(edges), X, y).label_distributions_


def test_parameter_graph_is_not_changed_by_update():
    u, v, w = GRAPH.edges()
    sparsifier = StreamingSparsifier(n_nodes=N, random_state=0).update(u, v, w)
    model = classifier(graph=sparsifier).fit(X, Y)
    model.update(([0], [70], [5.0]))
    assert model.sparsifier_.n_edges_seen_ == GRAPH.n_edges + 1
    assert sparsifier.n_edges_seen_ == GRAPH.n_edges


def test_index_of_a_series_has_the_nodes_for_relabel_as_for_fit():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(Y[KNOWN], index=KNOWN)
    model = classifier().fit_edges(GRAPH, X, y)
    same(model)
    same(model.relabel(y[::-1]))


def test_half_life():
    u, v, w = GRAPH.edges()
    sparsifier = StreamingSparsifier(half_life=1.0, random_state=0)
    model = classifier().fit_edges([(u, v, w, np.zeros(len(u)))], X, Y, sparsifier=sparsifier)
    model.update([([0], [1], [1.0], [2.0])])
    np.testing.assert_array_equal(model.degrees_, model.graph_.degrees)
    assert np.mean(model.transduction_ == TRUTH) > 0.95


@pytest.mark.filterwarnings("ignore:the graph does not help")
def test_class_prior_makes_up_for_labels_that_were_chosen():
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < 0.1).astype(int)
    points = truth[:, np.newaxis] * 1.5 + rng.standard_normal((400, 3))
    graph = Graph.from_edges(*rng.integers(400, size=(2, 1200)), n_nodes=400)
    y = np.full(400, -1)
    for code in (0, 1):  # as many of the rare class as of the other one
        y[np.flatnonzero(truth == code)[:20]] = code
    plain = GraphFeatureClassifier(graph=graph, random_state=0).fit(points, y)
    known = GraphFeatureClassifier(graph=graph, class_prior={0: 0.9, 1: 0.1}, random_state=0)
    known.fit(points, y)
    other = y < 0
    shares = [model.label_distributions_[other, 1].mean() for model in (plain, known)]
    assert shares[1] < 0.8 * shares[0]
    assert np.mean(known.transduction_ == truth) > np.mean(plain.transduction_ == truth)
    with pytest.raises(ValueError, match="class_prior: no proportion is given for the class 1;"):
        GraphFeatureClassifier(graph=graph, class_prior={0: 1.0}).fit(points, y)


# The column of the labels among the features.


def leaking_table():
    """Features with a column "fraud" that is filled for labelled nodes only."""
    pandas = pytest.importorskip("pandas")
    columns = {f"x{at}": X[:, at] for at in range(3)}
    fraud = np.where(Y >= 0, np.array(["no", "yes"])[Y], None)
    return pandas.DataFrame({"id": np.arange(N), **columns, " Fraud": fraud})


def labels_by_name(form):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    series = pandas.Series(Y[KNOWN], index=KNOWN, name="fraud")
    columns = {"node": KNOWN.tolist(), "fraud": Y[KNOWN].tolist()}
    return {
        "Series": series,
        "DataFrame": pandas.DataFrame(columns),
        "Table": pyarrow.table(columns),
    }[form]


@pytest.mark.parametrize("form", ["Series", "DataFrame", "Table"])
def test_column_with_the_name_of_the_labels_is_left_out(form):
    table, y = leaking_table(), labels_by_name(form)
    expected = classifier().fit_edges(GRAPH, table.drop(columns=" Fraud"), y)
    with pytest.warns(UserWarning, match="the column ' Fraud' of the features is left out"):
        model = classifier().fit_edges(GRAPH, table, y)
    same(model, expected.label_distributions_)
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    features = NodeFeatures.from_table(table)
    np.testing.assert_array_equal(model.predict(features), expected.transduction_)
    again = model.update(([0], [1]), features)
    assert again.n_features_in_ == 3


def test_data_frame_of_points_with_the_column_of_the_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["x0", "x1", "x2"])
    y = pandas.Series(Y, name="fraud")
    with pytest.warns(UserWarning, match="the column 'fraud' of the features is left out"):
        model = classifier(graph=GRAPH).fit(frame.assign(fraud=Y), y)
    same(model)
    np.testing.assert_array_equal(model.predict(frame.assign(fraud=Y)), model.predict(frame))
    with pytest.raises(ValueError, match="the only column of the features, 'fraud', has the name"):
        classifier(graph=GRAPH).fit(frame.assign(fraud=Y)[["fraud"]], y)


def test_column_of_the_labels_that_was_asked_for_is_used_with_a_warning():
    table, y = leaking_table(), labels_by_name("Series")
    features = NodeFeatures.from_table(table, columns=["x0", " Fraud"])
    with pytest.warns(UserWarning, match=r"than all unlabelled ones.* column ' Fraud_missing'"):
        model = classifier().fit_edges(GRAPH, features, y)
    assert model.n_features_in_ == 4
