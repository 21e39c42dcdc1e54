"""Ids in the types of other libraries, and ids that became floats."""

import numpy as np
import pytest
from stream_cases import edges

from ohmlearn import NodeTable, read_edges
from ohmlearn.nodes.node_ids import as_ids, decode_strings, read_ids


def plain(column):
    return column.tolist() if isinstance(column, np.ndarray) else decode_strings(column).tolist()


def test_whole_floats_are_integers():
    assert plain(as_ids(np.array([6507.0, -3.0, 2.0**53]), "u")) == [6507, -3, 2**53]
    assert plain(as_ids([6507.0, 3], "u")) == [6507, 3]
    assert plain(as_ids(np.array([1, 2], np.float32), "u")) == [1, 2]
    for values in ([2.5], np.array([2.5]), np.array([np.inf]), [float("inf")], [2.0**54]):
        with pytest.raises(ValueError, match=r"node ids must be whole numbers .* as u\[0\]"):
            as_ids(values, "u")


def test_missing_ids():
    for values in (
        [7, None],
        [7, float("nan")],
        np.array([7, np.nan]),
        np.ma.array([7, 1], mask=[0, 1]),
    ):
        ids, missing = read_ids(values, "u")
        assert plain(ids)[0] == 7
        assert missing.tolist() == [False, True]
        with pytest.raises(ValueError, match=r"a node id is missing: u\[1\]"):
            as_ids(values, "u")
    ids, missing = read_ids(["a", None], "u")
    assert plain(ids) == ["a", ""]
    assert missing.tolist() == [False, True]
    assert read_ids([None, None], "u").missing.all()
    assert plain(as_ids(np.ma.array(["b", "a"]), "u")) == ["b", "a"]


def test_pandas_columns():
    pandas = pytest.importorskip("pandas")
    for values, expected in (
        (pandas.array([2**60 + 1, 5], dtype="Int64"), [2**60 + 1, 5]),
        (pandas.Series([2**60 + 1, None, 5], dtype="Int64"), [2**60 + 1, None, 5]),
        (pandas.Series([1.0, None, 5.0]), [1, None, 5]),
        (pandas.Series([1.0, None], dtype="Float64"), [1, None]),
        (pandas.Series(["a", None, "b"], dtype="string"), ["a", None, "b"]),
        (pandas.Series(["a", None, "b"], dtype="category"), ["a", None, "b"]),
        (
            pandas.Series([7, 7, 2**60 + 1, None], dtype="Int64").astype("category"),
            [7, 7, 2**60 + 1, None],
        ),
        (pandas.Series([7, 9], dtype="category"), [7, 9]),
        (pandas.Index([7, 9]), [7, 9]),
        (pandas.Series([None, None], dtype="Int64"), [None, None]),
        (pandas.Series([], dtype="Int64"), []),
    ):
        ids, missing = read_ids(values, "u")
        lost = [False] * len(expected) if missing is None else missing.tolist()
        assert lost == [value is None for value in expected]
        found = [None if gone else value for value, gone in zip(plain(ids), lost, strict=True)]
        assert found == expected, values
    with pytest.raises(TypeError, match="is a Timestamp"):
        as_ids(pandas.Series(pandas.to_datetime(["2026-01-01"], utc=True)), "u")
    table = NodeTable()
    table.add(pandas.Series([5, 7], dtype="Int64"))
    assert table.find(pandas.Series([7], dtype="category")).tolist() == [1]


def test_arrow_columns():
    pa = pytest.importorskip("pyarrow")
    words = pa.array(["b", None, "a", "b"]).dictionary_encode()
    ids, missing = read_ids(words, "u")
    assert plain(ids) == ["b", "", "a", "b"]
    assert missing.tolist() == [False, True, False, False]
    ids, missing = read_ids(pa.chunked_array([[6507.0], [None, 2.0]]), "u")
    assert plain(ids) == [6507, 0, 2]
    assert missing.tolist() == [False, True, False]
    assert plain(as_ids(pa.array([2**60 + 1]).dictionary_encode(), "u")) == [2**60 + 1]
    assert read_ids(pa.array([None, None]), "u").missing.all()


def test_polars_columns():
    polars = pytest.importorskip("polars")
    assert plain(as_ids(polars.Series(["b", "a"], dtype=polars.Categorical), "u")) == ["b", "a"]
    frame = polars.DataFrame({"src": ["a", "b"], "dst": ["b", None]})
    stream = read_edges(frame.cast(polars.Categorical), on_bad="skip")
    assert edges(stream) == (["a"], ["b"], None)
    assert stream.n_bad == 1


def float_sources(folder):
    """The same edges, with ids as floats and one missing, in several formats."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"src": [6507.0, 1.0, None], "dst": [1.0, 2.0, 3.0]})
    frame.to_csv(folder / "e.csv", index=False)
    frame.to_parquet(folder / "e.parquet")
    text = '{"src": 6507.0, "dst": 1}\n{"src": 1, "dst": 2.0}\n{"src": null, "dst": 3.0}\n'
    (folder / "e.jsonl").write_text(text)
    np.save(folder / "e.npy", frame.to_numpy())
    yield from (folder / f"e.{ending}" for ending in ("csv", "parquet", "jsonl", "npy"))
    yield frame
    yield frame.astype("Int64")
    yield frame.src.to_numpy(), frame.dst.to_numpy()
    yield frame.src.astype("Int64"), frame.dst.astype("category")


@pytest.mark.parametrize("number", range(8))
def test_floats_in_every_format(tmp_path, number):
    source = list(float_sources(tmp_path))[number]
    stream = read_edges(source, on_bad="skip")
    assert edges(stream) == ([6507, 1], [1, 2], None)
    assert stream.n_bad == 1
    assert stream.nodes.kind == "int64"
    with pytest.raises(ValueError, match=r"row [234]: .*(is missing|is empty)"):
        list(read_edges(source))


def test_fractions_are_refused(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n1,2\n3,4.0\n5,0.25\n")
    with pytest.raises(ValueError, match=r"row 4: node ids were integers so far, but 'dst' is '0"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert edges(stream) == ([1, 3], [2, 4], None)
    path.write_text("src,dst\n0.5,2\n0.25,4\n")
    with pytest.raises(ValueError, match=r"'src' is '0.5'; name other columns with source_col"):
        read_edges(path)
    assert edges(read_edges(path, id_type="string"))[0] == ["0.5", "0.25"]


def test_one_column_of_floats_among_names(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n6507.0,ann\n17,bob\n")
    assert edges(read_edges(path)) == (["6507", "17"], ["ann", "bob"], None)
    assert edges(read_edges(path, id_type="string"))[0] == ["6507.0", "17"]


def test_float_ids_that_cannot_be_ids_are_left_out():
    u = np.array([1.0, np.inf, 2.5, 1e300, np.nan, 4.0])
    stream = read_edges((u, np.arange(6)), on_bad="skip")
    numbers = np.concatenate([batch.u for batch in stream])
    assert stream.nodes.ids(numbers).tolist() == [1, 4]
    assert stream.n_bad == 4
