"""Labels by node: dicts, Series and tables, wherever labels are taken."""

import warnings

import numpy as np
import pytest

from ohmlearn import Graph, HFSClassifier, HFSRegressor, NodeTable, read_edges

pandas = pytest.importorskip("pandas")

N = 40
NAMES = [f"n{number}" for number in range(N)]
GIVEN = {"n3": "left", "n8": "left", "n35": "right", "n30": "right"}
PATH = (np.arange(N - 1), np.arange(1, N))


def stream():
    names = np.array(NAMES, dtype=object)
    return read_edges((names[:-1], names[1:]))


def graph():
    found = Graph.from_edges(*PATH)
    found.nodes = NodeTable()
    found.nodes.add(NAMES)
    return found


def forms(given):
    """Return the same labels in all forms."""
    nodes, values = list(given), list(given.values())
    found = {
        "dict": dict(given),
        "Series": pandas.Series(values, nodes),
        "Series of numpy strings": pandas.Series(values, np.array(nodes)),
        "frame": pandas.DataFrame({"label": values, "node": nodes}),
    }
    if not isinstance(values[0], float):
        found["categories"] = pandas.Series(
            values, pandas.CategoricalIndex(nodes), dtype="category"
        )
    try:
        import polars

        found["polars"] = polars.DataFrame({"id": nodes, "what": values})
        found["lazy"] = found["polars"].lazy()
    except ImportError:
        pass
    try:
        import pyarrow

        found["pyarrow"] = pyarrow.table({"label": values, "node": nodes})
        found["record batch"] = pyarrow.record_batch({"node": nodes, "label": values})
        import duckdb

        found["relation"] = duckdb.from_arrow(found["pyarrow"])
        found["query"] = found["relation"].filter("label is not null")
    except ImportError:
        pass
    return found


@pytest.mark.parametrize("form", list(forms(GIVEN)))
def test_all_forms_give_the_same_labels(form):
    expected = HFSClassifier(random_state=0).fit_edges(stream(), GIVEN).transduction_
    y = forms(GIVEN)[form]
    model = HFSClassifier(random_state=0)
    assert model.fit_edges(stream(), y).transduction_.tolist() == expected.tolist()
    assert model.relabel(y).transduction_.tolist() == expected.tolist()
    assert model.fit_edges(graph(), y).transduction_.tolist() == expected.tolist()
    fitted = HFSClassifier(random_state=0, affinity="precomputed").fit(graph(), y)
    assert fitted.transduction_.tolist() == expected.tolist()
    assert fitted.relabel(y).transduction_.tolist() == expected.tolist()


@pytest.mark.parametrize("form", ["Series", "frame"])
def test_weights_are_matched_by_id(form):
    weights = {"n30": 3.0, "n3": 0.5, "n8": 0.0, "n35": 1.0}  # in another order
    model = HFSClassifier(random_state=0, calibration=None)
    expected = model.fit_edges(stream(), GIVEN, sample_weight=weights).scores_
    y, given = forms(GIVEN)[form], forms(weights)[form]
    if form == "frame":
        given = given.rename(columns={"label": "weight"})
    np.testing.assert_array_equal(
        model.fit_edges(stream(), y, sample_weight=given).scores_, expected
    )
    np.testing.assert_array_equal(model.relabel(y, sample_weight=given).scores_, expected)
    np.testing.assert_array_equal(model.relabel(GIVEN, sample_weight=given).scores_, expected)


def test_series_of_some_numbered_nodes_is_matched_by_its_index():
    y = pandas.Series(["left", "right"], [3, 35])
    expected = HFSClassifier(random_state=0).fit_edges(PATH, {3: "left", 35: "right"})
    model = HFSClassifier(random_state=0).fit_edges(PATH, y)
    assert model.transduction_.tolist() == expected.transduction_.tolist()
    # Once the labels were those of nodes 0 and 1.
    assert model.relabel(y).labelled_.tolist() == [3, 35]
    assert model.relabel(y.set_axis([3.0, 35.0])).labelled_.tolist() == [3, 35]
    regressor = HFSRegressor().fit_edges(PATH, pandas.Series([1.0, None, 2.0], [3, 4, 35]))
    assert regressor.labelled_.tolist() == [3, 35]


def test_points_keep_the_order_of_scikit_learn():
    X, truth = np.vstack([np.zeros((20, 2)), np.ones((20, 2))]), np.repeat([0, 1], 20)
    X = X + 0.01 * np.random.default_rng(0).standard_normal(X.shape)
    y = pandas.Series(np.where(np.arange(40) % 7 == 0, truth, -1), np.arange(40)[::-1])
    model = HFSClassifier(n_neighbors=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # two components
        assert model.fit(X, y).transduction_.tolist() == truth.tolist()
        assert model.relabel(y).transduction_.tolist() == truth.tolist()
        assert model.fit(X, y, y.abs()).labelled_.tolist() == [21, 28, 35]


def test_node_that_is_given_twice_has_two_labels():
    y = pandas.Series(["left", "right", "right"], ["n3", "n3", "n30"])
    with pytest.warns(UserWarning, match="contradicting labels, such as 'n3': left 1, right 1"):
        model = HFSClassifier(random_state=0).fit_edges(stream(), y)
    assert model.contradicting_.tolist() == [3]


def left_and_right(nodes):
    return pandas.Series(["left", "right"], pandas.Index(nodes, dtype=object))


PAIRS = [list(GIVEN.items()), [(3, 0), (30, 1)], [["n3", 0], ["n30", 1]]]
FRACTIONS = [{0: 0.5, 3: 1.5}, [0.37, *[np.nan] * (N - 2), 0.5], {0: [0.5], 3: {0.25: 1.0}}]
NO_SHARES = [
    {"node": [3, 30], "label": [0, 1], "age": [1, 2]},
    {"node": ["n3", "n30"], "label": [0, 1], "weight": [1.0, 2.0]},
    {"ID": [3, 30], "x": [0, 1], "y": [1, 2]},
    {"user_id": [3, 30], "x": [0, 1], "y": [1, 2]},
    {"x": ["n3", "n30"], "y": [0, 1], "z": [1, 2]},
]
REFUSED = [
    *[(stream, left_and_right(["n3", x]), "is no id") for x in (None, float("nan"), pandas.NA)],
    (stream, {"n3": "left", None: "right"}, "is no id"),
    (stream, {"n3": "left", pandas.NaT: "right"}, "is no id"),
    (stream, pandas.DataFrame({"node": [["n3"]], "label": ["left"]}), "integers or strings"),
    (stream, left_and_right(["x", "y"]), "no edge has any of these nodes"),
    (graph, left_and_right(["n3", "m40"]), "not in the graph, such as 'm40'"),
    (lambda: PATH, left_and_right([7, "n3"]), "'n3', but the nodes of these edges are numbers"),
    (lambda: PATH, {0: [("a", "b")], 1: "c"}, "a label must be a string or number"),
    (lambda: PATH, {0: "a", 1: 2}, "all strings or all numbers"),
    (graph, ["left", None, "right"], "one entry for each of the 40 nodes, got 3"),
    *[(stream, y, r"y has pairs, such as .*3.*, give dict\(y\)") for y in PAIRS],
    *[(lambda: PATH, y, "^Unknown label type: continuous") for y in FRACTIONS],
    *[(lambda: read_edges(PATH), pandas.DataFrame(y), "two columns") for y in NO_SHARES],
    (stream, pandas.DataFrame({"label": ["x"], "weight": [1.0]}, ["n3"]), "index has the nodes"),
]


@pytest.mark.parametrize(("edges", "y", "why"), REFUSED)
def test_labels_that_are_refused(edges, y, why):
    with pytest.raises(ValueError, match=why):
        HFSClassifier().fit_edges(edges(), y)


def test_weights_of_missing_ids_and_relabelling_with_an_array_of_another_length_are_refused():
    with pytest.raises(ValueError, match="is no id"):
        HFSClassifier().fit_edges(stream(), GIVEN, sample_weight={"n3": 2.0, None: 1.0})
    model = HFSClassifier(random_state=0).fit_edges(PATH, {3: "left", 35: "right"})
    with pytest.raises(ValueError, match="one entry for each of the 40 nodes, got 2"):
        model.relabel(["left", "right"])
    known = graph()
    with pytest.raises(ValueError, match="1 labels of nodes that are not in the graph"):
        HFSClassifier(affinity="precomputed").fit(known, left_and_right(["n3", "m40"]))
    assert len(known.nodes) == N  # the table of the graph has no more names than it has nodes


def test_frame_of_shares_still_has_a_column_for_each_class():
    frame = pandas.DataFrame({"b": [0.9, 0.0], "a": [0.1, 1.0]}, ["n3", "n30"])
    model = HFSClassifier(random_state=0).fit_edges(stream(), frame)
    assert model.classes_.tolist() == ["b", "a"]


@pytest.mark.parametrize("heading", ["item", "item_id"])
@pytest.mark.parametrize("form", ["frame", "index of a frame", "Series"])
def test_heading_says_the_kind_of_the_nodes(heading, form):
    frame = pandas.DataFrame({"user_id": [1, 2, 2, 3], "item_id": [1, 1, 2, 2]})
    edges = read_edges(frame, bipartite=True)
    y = pandas.DataFrame({heading: [1, 2], "label": [0, 1]})
    if form == "index of a frame":
        y = pandas.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]}, pandas.Index([1, 2], name=heading))
    elif form == "Series":
        y = y.set_index(heading)["label"]
    model = HFSClassifier(random_state=0).fit_edges(edges, y)
    assert model.nodes_.ids(model.labelled_).tolist() == ["item:1", "item:2"]


def test_pairs_for_each_node_are_shares():
    shares = [(1, 0), *[(0, 0)] * (N - 2), (0, 1)]
    model = HFSClassifier(random_state=0).fit_edges(PATH, shares)
    assert model.labelled_.tolist() == [0, N - 1]


def test_array_for_ids_in_another_order_is_refused():
    order = np.random.default_rng(0).permutation(N)
    names = np.empty(N, dtype=int)  # the node at each place of the path
    names[order] = np.arange(N)
    y = np.full(N, -1)
    y[names[[3, 8]]], y[names[[30, 35]]] = 0, 1
    edges = read_edges((names[:-1], names[1:]))
    for given in (y, y.tolist(), np.eye(2)[np.maximum(y, 0)] * (y >= 0)[:, np.newaxis]):
        with pytest.raises(ValueError, match=r"order of nodes\.ids\(\)"):
            HFSClassifier().fit_edges(edges, given)
    model = HFSClassifier(random_state=0).fit_edges(edges, dict(enumerate(y.tolist())))
    expected = np.arange(N) >= 20
    assert abs(model.transduction_ - expected).sum() <= 2  # nodes are in the order of the path
    for given in (pandas.Series(y), dict(zip(edges.nodes.ids().tolist(), y[names], strict=True))):
        assert (model.relabel(given).transduction_ == model.transduction_).all()
    with pytest.raises(ValueError, match=r"dict\(zip\(edges\.nodes\.ids\(\)\.tolist\(\), y\)\)"):
        model.relabel(y)
    # Ids that are in order, or no numbers of nodes, leave no doubt.
    assert (
        HFSClassifier().fit_edges(read_edges(PATH), y).labelled_.tolist()
        == np.flatnonzero(y >= 0).tolist()
    )
    HFSClassifier().fit_edges(read_edges((names[:-1] + 5, names[1:] + 5)), y)
    HFSClassifier().fit_edges(stream(), y)


def test_series_without_an_index_of_its_own():
    message = "index of this Series is 0, 1, 2, .* nodes 0, 1, ...; set the column of nodes as its"
    y = pandas.Series(["left", "left", "right", "right"])
    model = HFSClassifier(random_state=0)
    for edges in (PATH, read_edges(PATH)):
        with pytest.warns(UserWarning, match=message):
            model.fit_edges(edges, y)
        with pytest.warns(UserWarning, match=message):
            model.relabel(y)
        model.relabel(y.set_axis([0, 1, 2, 3]))
        model.relabel(y.reindex(range(N)))


def test_empty_string_is_a_class_with_a_warning():
    y = ["left", *[""] * (N - 2), "right"]
    for given in (y, np.array(y), np.array(y, dtype=object), pandas.Series(y), dict(enumerate(y))):
        with pytest.warns(UserWarning, match=r"class '', an empty string \(38 labels\)"):
            model = HFSClassifier(calibration=None).fit_edges(PATH, given)
        assert model.classes_.tolist() == ["", "left", "right"]


def test_edges_are_no_points():
    advice = r"; if the rows of X are edges, use fit_edges\(read_edges\(X\), \.\.\.\)"
    X = pandas.DataFrame({"u": PATH[0], "v": PATH[1]})
    for y in (np.zeros(N), pandas.Series(["left"] * N)):
        with pytest.raises(ValueError, match=f"one entry for each of the 39 rows .* 40{advice}"):
            HFSClassifier().fit(X, y)
    X = pandas.DataFrame({"who": NAMES[1:], "whom": NAMES[:-1], "weight": 1.0})
    for y in (GIVEN, np.zeros(N - 1)):
        with pytest.raises(ValueError, match=f"X must have numbers, got 'n1'{advice}"):
            HFSClassifier().fit(X, y)


def test_texts_of_fractions_and_whole_floats_are_classes():
    model = HFSClassifier(random_state=0).fit_edges(PATH, {0: "0.5", 30: "1.5"})
    assert model.classes_.tolist() == ["0.5", "1.5"]
    model.relabel([1.0, *[np.nan] * (N - 2), 2.0])
    assert model.classes_.tolist() == [1.0, 2.0]
    assert model.labelled_.tolist() == [0, N - 1]
    y = pandas.Series([7.0, None, 9.0])
    model = HFSClassifier(n_neighbors=1).fit(np.arange(3.0)[:, None], y)
    assert model.classes_.dtype == np.float64


def test_labels_that_are_nearly_all_different_are_probably_ids():
    y = {number: f"user{number}" for number in range(30)}
    with pytest.warns(UserWarning, match="y: 30 labels have 30 different classes, such as user0"):
        HFSClassifier(calibration=None).fit_edges(PATH, y)
    few = {number: number % 10 for number in range(30)}
    HFSClassifier(calibration=None).fit_edges(PATH, few)
    one_for_each = {number: number for number in range(20)}
    HFSClassifier(calibration=None).fit_edges(PATH, one_for_each)


def test_regressor_accepts_nullable_numbers():
    y = pandas.Series([1.0, None, 2.0], ["n3", "n8", "n30"], dtype="Float64")
    assert HFSRegressor().fit_edges(stream(), y).labelled_.tolist() == [3, 30]


def test_names_of_networkx_are_ids():
    networkx = pytest.importorskip("networkx")
    G = networkx.relabel_nodes(networkx.path_graph(N), dict(enumerate(NAMES)))
    expected = HFSClassifier(random_state=0).fit_edges(stream(), GIVEN).transduction_
    y = pandas.Series(GIVEN)
    model = HFSClassifier(random_state=0).fit_edges(Graph.from_networkx(G), y)
    assert model.transduction_.tolist() == expected.tolist()


def test_labels_of_a_networkx_graph_are_no_argument_of_fit_and_no_attribute():
    networkx = pytest.importorskip("networkx")
    G = networkx.path_graph(4)
    with pytest.raises(TypeError, match=r"for a graph call fit_edges\(G, y\)"):
        HFSClassifier().fit(G, {0: "a", 3: "b"})
    networkx.set_node_attributes(G, {0: "a", 3: "b"}, "label")
    with pytest.raises(FileNotFoundError, match=r"dict\(G.nodes\(data='label'\)\)"):
        HFSClassifier().fit_edges(G, "label")
    model = HFSClassifier(random_state=0).fit_edges(G, dict(G.nodes(data="label")))
    assert model.transduction_.tolist() == ["a", "a", "b", "b"]


LARGE = 2**60 + 1  # which float64 cannot hold


@pytest.mark.parametrize("first", [7, LARGE])
def test_missing_labels_do_not_turn_integers_to_floats(first):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    values = [first, None, None, None, None, 9]
    forms = [
        values,
        [first, None, float("nan"), pandas.NA, -1, 9],
        np.ma.array([first, 3, 3, 3, 3, 9], mask=[0, 1, 1, 1, 1, 0]),
        pandas.Series(values, dtype="Int64"),
        pandas.Series(values, dtype="int64[pyarrow]"),
        pandas.array(values, dtype="UInt64"),
        pandas.Series(pandas.Categorical(values)),
        polars.Series(values),
        pyarrow.array(values),
        pyarrow.chunked_array([values]),
    ]
    names = list("abcdef")
    edges = pandas.DataFrame({"source": names[:-1], "target": names[1:]})
    tables = [
        pyarrow.table({"node": names, "label": values}),
        polars.DataFrame({"node": names, "label": values}),
        pandas.DataFrame({"node": names, "label": pandas.array(values, dtype="Int64")}),
        pandas.Series(values, names, dtype="Int64"),
        pandas.DataFrame({"label": pandas.array(values, dtype="Int64")}, index=names)["label"],
    ]
    models = [HFSClassifier(n_neighbors=1).fit(np.arange(6.0)[:, None], y) for y in forms]
    models += [HFSClassifier().fit_edges((np.arange(5), np.arange(1, 6)), y) for y in forms]
    models += [HFSClassifier().fit_edges(read_edges(edges), y) for y in tables]
    for model in models:
        assert model.classes_.dtype.kind in "iu"
        assert model.classes_.tolist() == sorted([first, 9])


def test_a_column_of_integers_with_missing_ones_stays_one():
    values = pandas.array([7, None, 9], dtype="Int64")
    edges = read_edges(pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}))
    with pytest.warns(UserWarning, match="column-vector"):
        models = [
            HFSClassifier(n_neighbors=1).fit(np.arange(3.0)[:, None], pandas.DataFrame(values)),
            HFSClassifier().fit_edges(edges, pandas.DataFrame({"label": values}, list("abc"))),
        ]
    assert [model.classes_.dtype for model in models] == [np.int64, np.int64]
