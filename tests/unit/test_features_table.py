"""`NodeFeatures`: tables become numbers, are joined by id, and are chosen by rows."""

import datetime
from contextlib import suppress

import duckdb
import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils import _safe_indexing, indexable, resample
from sklearn.utils.validation import _num_samples

from ohmlearn import NodeFeatures, NodeTable
from ohmlearn.reading import SourceError

PEOPLE = {
    "node": ["ann", "bob", "cy", "dan"],
    "age": [30.0, None, 50.0, 60.0],
    "city": ["Rome", None, "Bern", "Rome"],
    "member": [True, False, True, True],
}
NUMBERS = [[30, 0, 0, 1, 0, 1], [140 / 3, 1, 0, 0, 1, 0], [50, 0, 1, 0, 0, 1], [60, 0, 0, 1, 0, 1]]
NAMES = ["age", "age_missing", "city=Bern", "city=Rome", "city_missing", "member"]


def from_columns(values, **how):
    return NodeFeatures.from_table(pyarrow.table(values), **how)


def table_of(ids):
    nodes = NodeTable()
    nodes.add(ids)
    return nodes


def make_tables():
    table = pyarrow.table(PEOPLE)
    frame = pandas.DataFrame(PEOPLE)
    yield "arrow", table
    yield "arrow batches", pyarrow.concat_tables([table.slice(0, 1), table.slice(1)])
    yield "pandas", frame
    yield "pandas index", frame.set_index("node")
    yield "pandas index without a name", frame.set_index("node").rename_axis(None)
    yield "pandas categories", frame.astype({"city": "category", "node": "category"})
    yield "pandas nullable", frame.convert_dtypes()
    yield "pandas filtered", pandas.concat([frame, frame]).reset_index(drop=True)[4:]
    with suppress(ImportError):  # free-threaded Python has no polars yet
        import polars

        yield "polars", polars.DataFrame(PEOPLE)
        yield "polars lazy", polars.DataFrame(PEOPLE).lazy()
        yield "polars categories", polars.DataFrame(PEOPLE).cast({"city": polars.Categorical})
    yield "duckdb", duckdb.from_arrow(table)
    yield "dictionary", table.set_column(2, "city", table["city"].dictionary_encode())
    yield "views", table.set_column(2, "city", table["city"].cast(pyarrow.string_view()))


TABLES = dict(make_tables())


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_gives_the_same_numbers(name):
    features = NodeFeatures.from_table(TABLES[name])
    assert features.names == NAMES
    np.testing.assert_allclose(features.X, NUMBERS)
    assert features.ids.tolist() == PEOPLE["node"]


def test_treatment_says_what_was_done():
    features = from_columns(
        {
            "id": range(60),
            "same": [3] * 60,
            "row": range(7, 67),
            "nothing": pyarrow.nulls(60),
            "empty": pyarrow.nulls(60, pyarrow.string()),
            "one": ["x"] * 60,
            "text": [f"no {i}" for i in range(60)],
            "digits": [str(i) for i in range(60)],
            "sometimes": [None, 5.0] * 30,
            "age": [float("nan"), *range(59)],
            "label": [0, 1] * 30,
        }
    )
    assert features.treatment == {
        "same": "left out: all values are 3",
        "row": "numbers, all different: if it is an id, leave the column out",
        "nothing": "left out: all values are missing",
        "empty": "left out: all values are missing",
        "one": "left out: all values are 'x'",
        "text": "left out: text with 60 different values in 60 rows",
        "digits": "left out: text with 60 different values in 60 rows; they are numbers, so cast "
        "the column to use it",
        "sometimes": "all known values are 5; only marks 30 missing",
        "age": "numbers; 1 missing, replaced by the mean 29",
        "label": "left out: labels are no features; name the column to use it",
    }
    assert features.names == ["row", "sometimes_missing", "age", "age_missing"]
    np.testing.assert_array_equal(features.X[:2], [[7, 1, 29, 1], [8, 0, 0, 0]])
    assert "7 columns left out" in repr(features)


def test_many_categories_share_a_column_and_make_the_matrix_sparse():
    rng = np.random.default_rng(0)
    words = [f"w{i:03}" for i in rng.geometric(0.02, size=4000)]
    counts = {word: words.count(word) for word in words}
    features = from_columns({"id": range(4000), "word": words, "x": rng.normal(size=4000)})
    assert sparse.issparse(features.X)
    assert len(features.names) == 51
    assert features.names[49] == "word=(rare)"
    common = features.names[:49]
    assert min(counts[name.removeprefix("word=")] for name in common) >= max(
        count for word, count in counts.items() if f"word={word}" not in common
    )
    sums = np.asarray(features.X.sum(axis=0)).ravel()
    assert sums[:49].tolist() == [counts[name.removeprefix("word=")] for name in common]
    assert sums[:50].sum() == 4000  # each row has one word
    assert f"of which the {len(counts) - 49:,} rarest share a column" in features.treatment["word"]


def test_categories_do_not_depend_on_the_order_of_rows():
    ids, colours = [1, 2, 3, 4], ["red", "blue", "red", "green"]
    one = from_columns({"id": ids, "colour": colours})
    other = from_columns({"id": ids[::-1], "colour": colours[::-1]})
    assert one.names == other.names == ["colour=blue", "colour=green", "colour=red"]
    np.testing.assert_array_equal(one.X, other.X[::-1])


def test_dates_are_days():
    day = datetime.date(1970, 1, 3)
    moment = datetime.datetime(1970, 1, 2, 12)
    features = from_columns(
        {
            "id": [1, 2],
            "date": [day, None],
            "moment": pyarrow.array([moment, datetime.datetime(1970, 1, 3)]),
            "clock": pyarrow.array([datetime.time(6), datetime.time(12)]),
            "span": pyarrow.array([datetime.timedelta(days=2), datetime.timedelta(0)]),
        }
    )
    assert features.names == ["date_missing", "moment", "clock", "span"]
    np.testing.assert_allclose(features.X, [[0, 1.5, 0.25, 2], [1, 2, 0.5, 0]])
    assert features.treatment["moment"] == "dates, as days since 1970"


def test_small_floats_stay_small():
    numbers = pyarrow.array([1.5, 2.5], pyarrow.float32())
    assert from_columns({"id": [1, 2], "x": numbers, "ok": [True, False]}).X.dtype == np.float32
    assert from_columns({"id": [1, 2], "x": numbers, "n": [1, 2]}).X.dtype == np.float64


def refused(values, message, **how):
    with pytest.raises(SourceError, match=message):
        from_columns(values, **how)


def test_bad_values_are_refused_by_column_and_row():
    inf = float("inf")
    refused({"id": [1, 2], "x": [1.0, inf]}, "the Table, row 1: the column 'x' is infinite")
    refused({"id": [1, 2], "x": [1.0, 1e200]}, "row 1: the column 'x' is too large: 1e.200")
    small = pyarrow.array([1.0, -inf], pyarrow.float32())
    refused({"id": [1, 2], "x": small}, "row 1: the column 'x' is infinite")
    refused({"id": [1, 2], "x": [None, [1, 2]]}, r"row 1: the column 'x' has the type list.*\[1, 2")
    refused({"id": [1, 2], "x": [b"a", b"b"]}, "row 0: the column 'x' has the type binary")
    mixed = pandas.DataFrame({"id": [1, 2, 3], "x": pandas.Series([1, 2.5, "three"], dtype=object)})
    with pytest.raises(SourceError, match="row 2: the column 'x' has values of different types"):
        NodeFeatures.from_table(mixed)
    mixed["y"] = [1, 2, 3]
    assert NodeFeatures.from_table(mixed, columns=["y"]).names == ["y"]


def test_bad_ids_are_refused():
    refused(
        {"id": [7, 8, 7], "x": [1, 2, 3]}, "the id 7 is in the rows 0 and 2; a node has one row"
    )
    refused({"id": ["a", None], "x": [1, 2]}, "row 1: the id in the column 'id' is missing")
    refused({"id": [1.0, float("nan")], "x": [1, 2]}, "row 1: the id in the column 'id' is missing")
    refused({"id": [True, False], "x": [1, 2]}, "ids must be integers or strings, .* type bool")
    refused(
        {"id": [2.0, 1.5], "x": [1, 2]}, "row 1: the ids in the column 'id' must be whole .*1.5"
    )
    assert from_columns({"id": [1.0, 2.0], "x": [1, 2]}).ids.tolist() == [1, 2]


def test_the_column_of_ids_is_found_or_asked_for():
    assert from_columns({"x": [1, 2], "user_id": [5, 6]}).id_heading == "user_id"
    assert from_columns({"x": [1, 2], "who": [5, 6]}, node_col=1).ids.tolist() == [5, 6]
    assert from_columns({"x": [1, 2], "who": [5, 6]}, node_col="who").ids.tolist() == [5, 6]
    columns = {"x": [1, 2], "who": [5, 6]}
    refused(columns, "no column is called node, node_id or id; .* the columns are 'x', 'who'")
    refused(columns, "has no column 'whom'; the columns are 'x', 'who'", node_col="whom")
    refused(columns, "has no column 5", node_col=5)
    refused({"src": [1, 2], "dst": [2, 3]}, "'src' and 'dst' seem to be the ends of edges")
    default = pandas.DataFrame({"x": [1, 2]})
    with pytest.raises(SourceError, match="no column is called node"):
        NodeFeatures.from_table(default)
    assert NodeFeatures.from_table(default.rename_axis("node")).ids.tolist() == [0, 1]
    levels = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    with pytest.raises(SourceError, match="an index of several columns"):
        NodeFeatures.from_table(default.set_index(levels))


def test_columns_are_chosen_by_name():
    columns = {"id": [1, 2], "x": [1, 2], "label": [0, 1]}
    assert from_columns(columns).names == ["x"]
    assert from_columns(columns, columns=["label"]).names == ["label"]
    refused(columns, "has no column 'y'; the columns are 'id', 'x', 'label'", columns=["y"])
    refused(columns, "'id' is the column of ids", columns=["id"])
    refused({"id": [1, 2], "label": [0, 1]}, "has no columns of features: 'label' is left out")
    refused({"id": [1, 2]}, "has no columns of features; is it the right file?")
    refused({"id": [], "x": []}, "is empty")
    with pytest.raises(ValueError, match="columns must be a list"):
        from_columns(columns, columns="x")
    with pytest.raises(TypeError, match=r"read files with ohmlearn\.read_features"):
        NodeFeatures.from_table("people.csv")


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[1.0], [np.nan]], {}, r"row 1, column 0 is NaN; fill in missing"),
        (sparse.csr_matrix([[0.0, 1.0], [0.0, np.inf]]), {}, "row 1, column 1 is inf"),
        ([1.0, 2.0], {}, "X must have shape"),
        ([["a"], ["b"]], {}, "X must be real numbers"),
        (np.empty((0, 3)), {}, "at least one row"),
        ([[1], [2]], {"ids": [1, 2, 3]}, "2 rows, but there are 3 ids"),
        ([[1], [2]], {"ids": ["a", "a"]}, "the id 'a' is in the rows 0 and 1"),
        ([[1], [2]], {"names": ["a", "b"]}, "1 columns, but there are 2 names"),
    ],
)
def test_matrices_are_checked(X, options, message):
    with pytest.raises(ValueError, match=message):
        NodeFeatures(X, **options)


def test_tables_are_no_matrices():
    with pytest.raises(TypeError, match=r"use NodeFeatures\.from_table"):
        NodeFeatures(pandas.DataFrame({"x": [1]}))


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csr_array])
def test_match_orders_rows_by_node(make):
    X = make([[1.0, 0.0], [2.0, 0.0], [6.0, 5.0]])
    nodes = table_of([30, 10, 40])
    matched = NodeFeatures(X, ids=[10, 20, 30]).match(nodes)
    mean = [3, 5 / 3] if make is np.array else [3, 0]
    dense = matched.X if make is np.array else matched.X.toarray()
    np.testing.assert_allclose(dense, [[6, 5], [1, 0], mean])
    assert matched.missing.tolist() == [False, False, True]
    assert matched.numbers.tolist() == [1, -1, 0]
    assert (matched.n_missing, matched.n_only_features) == (1, 1)
    assert matched.about() == (
        "1 of 3 nodes has no features, such as 40; 1 id is only in the features, such as 20; it is "
        "left out"
    )
    added = NodeFeatures(X, ids=[10, 20, 30]).match(nodes, add=True)
    assert nodes.ids().tolist() == [30, 10, 40, 20]
    assert added.numbers.tolist() == [1, 3, 0]
    assert added.X.shape == (4, 2)
    assert added.about().endswith("1 id is only in the features, such as 20")
    features = NodeFeatures(X[:2], ids=[10, 30])
    matched = features.match(table_of([10, 30]))
    assert matched.X is features.X
    assert matched.about() == ""


def test_ids_follow_the_rules_of_labels():
    integers = table_of([7, 8])
    assert NodeFeatures([[1], [2]], ids=["8", "7"]).match(integers).numbers.tolist() == [1, 0]
    texts = table_of(["7", "8"])
    assert NodeFeatures([[1], [2]], ids=[8, 7]).match(texts).numbers.tolist() == [1, 0]
    with pytest.raises(SourceError, match="row 1: the ids of the edges are integers, but 'x'"):
        NodeFeatures([[1], [2]], ids=["7", "x"]).match(integers)
    with pytest.raises(SourceError, match="the id 7 is in the rows 0 and 1; a node has one row"):
        NodeFeatures([[1], [2]], ids=["7", "7.0"]).match(integers)


def test_kinds_are_in_the_id_or_in_the_heading():
    nodes = NodeTable()
    nodes.add_edges([1, 2], [1, 1], kinds=("user", "item"))  # user:1, item:1, user:2
    by_heading = from_columns({"user_id": [2, 1], "x": [5, 3]}).match(nodes)
    assert by_heading.numbers.tolist() == [2, 0]
    assert by_heading.about() == "1 of 3 nodes has no features, such as 'item:1'"
    by_id = from_columns({"node": ["item:1", "user:1"], "x": [5, 3]}).match(nodes)
    assert by_id.numbers.tolist() == [1, 0]
    with pytest.raises(SourceError, match="row 0: 2 may be of several kinds of nodes"):
        from_columns({"node": [2, 1], "x": [5, 3]}).match(nodes)


def test_rows_without_ids_have_the_order_of_the_nodes():
    features = NodeFeatures([[1.0], [2.0], [3.0]])
    assert features.match(None, n_nodes=3).numbers.tolist() == [0, 1, 2]
    assert features.match(table_of(["a", "b", "c"])).numbers.tolist() == [0, 1, 2]
    with pytest.raises(SourceError, match="3 rows and no ids, but the graph has 4 nodes"):
        features.match(None, n_nodes=4)
    with pytest.raises(SourceError, match=r"the order of nodes.ids\(\), which starts with \[2, 0"):
        features.match(table_of([2, 0, 1]))
    some = NodeFeatures([[1.0], [3.0]], ids=[4, 1])
    plain = some.match(None, n_nodes=3)
    assert plain.numbers.tolist() == [-1, 1]
    np.testing.assert_array_equal(plain.X, [[2], [3], [2]])
    assert some.match(None, n_nodes=3, add=True).X.ravel().tolist() == [2, 3, 2, 2, 1]
    with pytest.raises(SourceError, match="got the id -1"):
        NodeFeatures([[1.0]], ids=[-1]).match(None, n_nodes=3)


def test_scikit_learn_can_choose_rows():
    X = np.arange(12.0).reshape(6, 2)
    features, _ = indexable(NodeFeatures(X, ids=list("abcdef")), np.arange(6))
    assert _num_samples(features) == len(features) == 6
    mask = np.array([True, False, True, False, False, True])
    for key in (mask, mask.tolist(), [0, 2, 5], np.array([0, 2, 5]), pandas.Series([0, 2, 5])):
        some = _safe_indexing(features, key)
        assert some.chosen_ids.tolist() == ["a", "c", "f"]
        assert some.X is features.X
        np.testing.assert_array_equal(some.chosen, X[[0, 2, 5]])
    assert _safe_indexing(features, slice(1, 3)).rows.tolist() == [1, 2]
    twice = features[2:][[3, -1, 0, 0]]
    assert twice.rows.tolist() == [5, 5, 2, 2]
    assert twice.shape == (4, 2)
    assert features[[]].shape == (0, 2)
    assert features[...].shape == (6, 2)
    assert features[mask, :].shape == (3, 2)
    assert resample(features, n_samples=4, random_state=0).shape == (4, 2)
    np.testing.assert_array_equal(np.asarray(features[[1]]), X[[1]])
    for wrong in (1, "a", [0.5], np.zeros((2, 2), int), (slice(None), 0)):
        with pytest.raises(TypeError, match="rows"):
            features[wrong]
    with pytest.raises(IndexError):
        features[mask[:3]]
    with pytest.raises(IndexError):
        features[[6]]


def test_estimators_without_a_graph_take_the_chosen_rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    features = NodeFeatures(rng.normal(size=(40, 2)) + 3 * y[:, np.newaxis])
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=StratifiedKFold(4))
    assert search.fit(features, y).best_score_ > 0.9
    with pytest.raises(TypeError, match=r"sparse; use features.chosen"):
        np.asarray(NodeFeatures(sparse.eye(3, format="csr")))


COLUMN = st.sampled_from(
    [
        st.floats(width=32, allow_nan=True, allow_infinity=False),
        st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
        st.text(max_size=3),
        st.dates(),
        st.datetimes(),
    ]
)


def is_useful(values):
    """Whether a column has two different values, or a missing one."""
    known = {value for value in values if value is not None and value == value}
    has_missing = any(value is None or value != value for value in values)
    if any(isinstance(value, str) for value in known):
        n_known = sum(value is not None for value in values)
        return len(known) + has_missing > 1 and len(known) <= max(20, n_known / 2)
    return len({float(value) if isinstance(value, int) else value for value in known}) > 1 or (
        has_missing and len(known) == 1
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_table_gives_finite_numbers_or_a_message(data):
    n_rows = data.draw(st.integers(1, 30))
    columns = {"id": list(range(n_rows))}
    for at in range(data.draw(st.integers(1, 5))):
        value = st.none() | data.draw(COLUMN)
        columns[f"c{at}"] = data.draw(st.lists(value, min_size=n_rows, max_size=n_rows))
    if not any(is_useful(columns[name]) for name in columns if name != "id"):
        refused(columns, "has no columns of features")
        return
    features = from_columns(columns)
    dense = features.X.toarray() if sparse.issparse(features.X) else features.X
    assert np.isfinite(dense).all()
    assert dense.shape == (n_rows, len(features.names))
    assert (dense.min(axis=0) < dense.max(axis=0)).all()  # no column is constant
    assert set(features.treatment) == set(columns) - {"id"}
    for at, name in enumerate(features.names):
        if name.endswith("_missing"):
            source = name.removesuffix("_missing")
            unknown = [value is None or value != value for value in columns[source]]
            np.testing.assert_array_equal(dense[:, at], unknown)


def test_ids_that_are_written_in_another_way():
    features = NodeFeatures([[1.0], [2.0]], ids=[7, 8])
    names, numbers = NodeTable(), NodeTable()
    names.add(["007", "008"])
    numbers.add([7, 8])
    with pytest.raises(ValueError, match=r"such as '007'; zeros in front are missing on one side"):
        features.match(names)
    with pytest.raises(ValueError, match=r"'007' has zeros in front.*write it as 7, or, if those"):
        NodeFeatures([[1.0], [2.0]], ids=["007", "008"]).match(numbers)
    with pytest.raises(ValueError, match=r"the ids are texts, such as 'a', but the graph has no"):
        NodeFeatures([[1.0], [2.0]], ids=["a", "b"]).match(None, n_nodes=2)
