"""Readers of edges: invalid input and the messages that refuse it."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from row_files import write_rows
from stream_cases import edges

from ohmlearn import Graph, certify
from ohmlearn.reading import SourceError, read_edges

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

# A value that is refused, what is said of it, and the formats that can hold it.
BAD_VALUES = [
    ("w", -1.0, "must not be negative", "text json table"),
    ("w", float("nan"), "must not be negative", "text json table arrays"),
    ("w", float("inf"), "must not be negative", "text json table arrays"),
    ("w", 1e300, "must not be negative", "text json table arrays"),
    ("w", 1e-45, r"below 1\.2e-38 unless 0", "text json table arrays"),
    ("w", "x", "is not a number: .*x", "text json"),
    ("w", None, "the weight, 'w', is (not a number|missing)", "text table"),
    ("u", None, "'u',? is (empty|missing)", "text json table"),
    ("v", None, "'v',? is (empty|missing)", "text json table"),
    ("v", 1.5, "whole number|integers so far", "json table arrays"),
    ("v", True, "an integer or a string", "json"),
    ("v", 2**63, "does not fit int64", "json"),
]


def write_bad(folder, form, column, value):
    """Write three rows of which the second is bad; return the source and its place."""
    columns = {"u": [1, 5, 2], "v": [2, 6, 1], "w": [1.0, 1.0, 0.5]}
    columns[column] = [columns[column][0], value, columns[column][2]]
    if form == "table":
        return pa.table(columns), "row 1"
    if form == "arrays":
        np.save(folder / "e.npy", np.array(list(columns.values())).T)
        return folder / "e.npy", "row 2"
    ending, row = {"text": ("csv", 3), "json": ("jsonl", 2)}[form]
    return write_rows(folder / f"e.{ending}", columns), f"row {row}"


@pytest.mark.parametrize(
    ("form", "column", "value", "message"),
    [(form, *case) for *case, forms in BAD_VALUES for form in forms.split()],
)
def test_a_bad_value_is_named_or_left_out(tmp_path, form, column, value, message):
    source, place = write_bad(tmp_path, form, column, value)
    with pytest.raises(SourceError, match=rf"{place}\b.*({message})"):
        list(read_edges(source))
    stream = read_edges(source, on_bad="skip")
    assert edges(stream) == ([1, 2], [2, 1], [1.0, 0.5])
    assert stream.n_bad == 1
    assert place in stream.first_bad


TEXT_FAULTS = [
    ("u,v\n1,2\n3\n", "'v' is missing in '3'"),
    ('u,v\n1,2\n"a,3\n', "a quote is not closed"),
    ('u,v\na,b\n"a"x,3\n', "a quote is not closed, or text follows"),
    ("u,v\n1,2\n1,2,3\n", "'1,2,3' has 3 fields, but there are 2 columns"),
    ("u,v,note\n1,2,x\n1,2\n", "'1,2' has 2 fields, but there are 3 columns"),
    (b"u,v\na,b\na,\xff\n", "'v' is not UTF-8"),
    (b"u,v\na,b\na,\xed\xa0\x80\n", "'v' is not UTF-8"),
]


@pytest.mark.parametrize(("text", "message"), TEXT_FAULTS)
def test_text_faults(tmp_path, text, message):
    path = tmp_path / "e.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SourceError, match=f"e.csv, row 3: {message}"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert len(edges(stream)[0]) == 1
    assert stream.n_bad == 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("e.csv", b"", "e.csv: is empty"),
        ("e.txt", b"# only\n# comments\n", "e.txt: is empty"),
        ("e.csv", b"u\n1\n", "an edge needs two columns, got 1"),
        ("e.csv", b"a~b\n", "got 1: they are separated by ',', but the first line is 'a~b'; if"),
        ("e.tsv", b"a b\n", "they are separated by tabs, but the first line is 'a b'"),
        ("e.csv", b"\xff\xfeu\x00", "is UTF-16"),
        ("e.csv", b"x" * (17 << 20), "a line of more than 16 MiB"),
        ("e.csv.gz", gzip.compress(b"1,2\n" * 9999, mtime=0)[:50], "cannot be read as text"),
        ("e.parquet", b"PAR1", "e.parquet: cannot be read as Parquet"),
        ("e.arrow", b"ARROW1", "cannot be read as Arrow IPC"),
        ("e.arrow", b"", "cannot be read as Arrow IPC"),
        ("e.npy", b"", "e.npy: is empty"),
        ("e.npy", b"\x93NUMPY\x01\x00", "cannot be read as a numpy file"),
        ("e.npz", b"PK\x03\x04", "cannot be read as a numpy file"),
        ("e.mtx", b"1 2 3\n", "does not begin with a %%MatrixMarket line"),
        ("e.mtx", b"%%MatrixMarket matrix array real general\n1 1\n", "matrix coordinate"),
        ("e.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "complex"),
        ("e.mtx", b"%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", "hermitian"),
        ("e.mtx", b"%%MatrixMarket matrix coordinate real general\n% x\n", "ends before"),
        ("e.mtx", b"%%MatrixMarket matrix coordinate real general\n2 3 0\n", "square matrix"),
        ("e.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2\n", "row 2: rows, columns"),
        (
            "e.mtx",
            b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n",
            "says 2 entries, but there are 1",
        ),
        (
            "e.mtx",
            b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n",
            r"entry 1: \(1, 3\) is outside",
        ),
    ],
)
def test_bad_files(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SourceError, match=message):
        list(read_edges(path))


TABLE = {"u": [1], "v": [2]}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (TABLE, {"source_col": "a"}, "has no column 'a', only 'u', 'v'"),
        (TABLE, {"source_col": 5}, "has no column 5, only 2"),
        (TABLE, {"source_col": "u", "target_col": "u"}, "needs different columns, got 0 and 0"),
        ({"u": [True], "v": [2]}, {}, "'u' has type bool; cast it"),
        ({"u": [1, 2, None], "v": [1, None, 2]}, {}, "row 1: the node id, 'v', is missing"),
        (TABLE | {"w": ["x"]}, {}, "weights must be numbers, but 'w' has type string"),
    ],
)
def test_bad_tables(columns, options, message):
    with pytest.raises(SourceError, match=message):
        list(read_edges(pa.table(columns), **options))


@pytest.mark.parametrize(
    ("columns", "message", "kept"),
    [
        (
            {"u": pa.array([1, 2**63], pa.uint64()), "v": [1, 2]},
            "row 1: a node id does not fit int64",
            ([1], [1], None),
        ),
        (
            {"u": ["a", "b", "c"], "v": ["b", None, "c"], "w": [-1.0, 1.0, 2.0]},
            r"row 0: weights must not be negative .* got -1.0",
            (["c"], ["c"], [2.0]),
        ),
    ],
)
def test_bad_rows_of_tables(columns, message, kept):
    with pytest.raises(SourceError, match=message):
        list(read_edges(pa.table(columns)))
    stream = read_edges(pa.table(columns), on_bad="skip")
    assert edges(stream) == kept
    assert stream.n_bad == len(columns["u"]) - 1


def test_mixed_kinds(tmp_path):
    (tmp_path / "a.csv").write_text("u,v\n1,2\n")
    parquet.write_table(pa.table({"u": ["x"], "v": ["y"]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b.parquet: .*were integers so far, but now strings"):
        list(read_edges([tmp_path / "a.csv", tmp_path / "b.parquet"]))
    both = [tmp_path / "a.csv", tmp_path / "b.parquet"]
    assert edges(read_edges(both, id_type="string"))[0] == ["1", "x"]


def test_bad_arrays(tmp_path):
    path = tmp_path / "e.npy"
    for array, message in (
        (np.zeros((2, 9)), "transpose it"),
        (np.zeros(3), r"shape \(n, 2\) or \(n, 3\), got \(3,\)"),
    ):
        np.save(path, array)
        with pytest.raises(SourceError, match=message):
            list(read_edges(path))
    scipy.sparse.save_npz(tmp_path / "e.npz", scipy.sparse.csr_array([[0, 1], [2, 0]]))
    with pytest.raises(SourceError, match="neither symmetric nor triangular"):
        list(read_edges(tmp_path / "e.npz"))
    np.savez(tmp_path / "e.npz", u=[1, 2], v=[1])
    with pytest.raises(SourceError, match="equally long"):
        list(read_edges(tmp_path / "e.npz"))
    with pytest.raises(ValueError, match="equally long"):
        read_edges((np.array([1, 2]), np.array([1])))
    for batch, message in (
        ((np.array([1]),), "batch 0: .*: a batch of edges is a tuple"),
        ((np.array([1]), np.array([1, 2])), "batch 0: .*must be equally long, got len"),
        ((["a"], [1]), "were strings so far, but now integers"),
        ((["a", 1], ["b", "c"]), r"u\[1\] = 1 is a int"),
        (3, "but it is int"),
    ):
        with pytest.raises(SourceError, match=message):
            list(read_edges([batch]))


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("no.csv", {}, FileNotFoundError, "there is no file"),
        ("*.nothing", {}, FileNotFoundError, "no file fits"),
        ("empty", {}, FileNotFoundError, "folder without files"),
        ([], {}, ValueError, "empty list"),
        (3, {}, TypeError, "batches of edges are needed, got int"),
        ("e.csv", {"on_bad": "no"}, ValueError, "on_bad must be one of"),
        ("e.csv", {"format": "xls"}, ValueError, "format must be one of"),
        ("e.csv", {"id_type": "float"}, ValueError, "id_type must be one of"),
        ("e.csv", {"delimiter": ",,"}, ValueError, "one ASCII character"),
        ("e.csv", {"delimiter": "x"}, ValueError, "one ASCII character that is not a letter"),
        ("e.csv", {"comment": "a"}, ValueError, "ASCII marks"),
        ("e.csv", {"header": "no"}, ValueError, "header must be True, False or None, got 'no'"),
        ("e.csv", {"source_col": 1.5}, TypeError, "source_col must be a name or a position"),
    ],
)
def test_bad_arguments(tmp_path, monkeypatch, source, options, error, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "e.csv").write_text("1,2\n")
    with pytest.raises(error, match=message):
        read_edges(source, **options)


def test_what_reads_several_times_refuses_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1,2\n")))
    with pytest.raises(ValueError, match="but standard input can be read only once; write"):
        certify(read_edges("-"), Graph.from_edges([0], [1]))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, None])
def test_truncated_compression_is_noticed(tmp_path, compress):
    text = "".join(f"{i * 7919 % 10007},{i}\n" for i in range(5000)).encode()
    data = compress(text) if compress else pa.compress(text, "zstd", asbytes=True)
    path = tmp_path / "edges.csv"
    for length in (len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(SourceError, match=r"edges.csv: .*text: the compressed file is cut"):
            list(read_edges(path))
