"""Readers of edges: every kind of source gives the edges that were written."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from stream_cases import edges

from ohmlearn.edges import Batch
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import SourceError, read_edges

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

U, V, W = [7, -3, 2**62, 7], [2**62, 7, 5, 5], [1.0, 0.25, 3.0, 0.0]
NAMES = {7: "ann", -3: "bob", 2**62: 'Zoë, the "cat"', 5: "d"}


def named(ids):
    return [NAMES[i] for i in ids]


@pytest.fixture
def table():
    return pa.table({"src": U, "dst": V, "weight": W})


# ---- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "text", "weighted"),
    [
        (".csv", "u,v\n{}\n", False),
        (".csv", "{}\n", False),
        (".csv", "\ufeffu,v,w\r\n{}\r\n", True),
        (".csv", "to,from,x\n{}\n", False),
        (".tsv", "source\ttarget\tweight\n{}", True),
        (".txt", "# SNAP\n# FromNodeId\tToNodeId\n{}\n", False),
        (".edges", "% konect\n{}", False),
        ("", "{}\n\n  \n", False),
    ],
)
def test_text(tmp_path, suffix, text, weighted):
    flip = text.startswith("to,from")
    rows = [(v, u, w) if flip else (u, v, w) for u, v, w in zip(U, V, W, strict=True)]
    mark = {".csv": ",", ".tsv": "\t"}.get(suffix, "  \t ")
    end = "\r\n" if "\r" in text else "\n"
    columns = 3 if weighted or flip else 2
    body = end.join(mark.join(map(str, row[:columns])) for row in rows)
    path = tmp_path / f"edges{suffix}"
    path.write_bytes(text.format(body).encode())
    stream = read_edges(path)
    assert edges(stream) == (U, V, W if weighted else None)
    assert stream.n_edges == 4
    assert stream.n_nodes == 4
    assert edges(stream) == (U, V, W if weighted else None)  # read again, with the same numbers


def test_text_names_with_blanks_between_tabs(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# names\nann lee\tbob\nbob\tcy young\n")
    assert edges(read_edges(path)) == (["ann lee", "bob"], ["bob", "cy young"], None)


@pytest.mark.parametrize(
    ("name", "text", "options", "first"),
    [
        # In CSV the first line is a header if it can be one.
        ("e.csv", "ann,bob\nbob,cy\n", {}, ["bob"]),
        ("e.csv", "ann,bob\nbob,cy\n", {"header": False}, ["ann", "bob"]),
        ("e.csv", "ann,bob,0.5\nbob,cy,1.5\n", {"weight_col": 2}, ["ann", "bob"]),
        ("e.txt", "ann bob\nbob cy\n", {}, ["ann", "bob"]),
        ("e.txt", "from to\nbob cy\n", {}, ["bob"]),
        ("e.txt", "person friend\n1 2\n", {}, [1]),
        *[(f"e.{x}", "# Nodes: 3\n# FromNodeId\tToNodeId\n10\t20\n20\t30\n", {}, [10, 20])
          for x in ("csv", "tsv", "txt")],
    ],
)  # fmt: skip
def test_text_header_or_not(tmp_path, name, text, options, first):
    (tmp_path / name).write_text(text)
    assert edges(read_edges(tmp_path / name, **options))[0] == first


def test_text_columns(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("time,b,a,cost\n5,1,2,0.5\n6,3,4,1.5\n")
    stream = read_edges(path, source_col="a", target_col="b", weight_col="cost")
    assert stream.columns == "u = 'a', v = 'b', weights = 'cost'"
    assert edges(stream) == ([2, 4], [1, 3], [0.5, 1.5])
    assert edges(read_edges(path, source_col=2, target_col=0)) == ([2, 4], [5, 6], None)
    assert read_edges(path).columns == "u = 'b', v = 'a', no weights (guessed)"
    path.write_text("time,payer,payee,cost\n5,1,2,0.5\n")
    assert edges(read_edges(path)) == ([1], [2], None)
    path.write_text("1;2;3\n")
    assert edges(read_edges(path, weight_col=2)) == ([1], [2], [3.0])


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ("1,2\n007,+3\n", {}, (["1", "007"], ["2", "+3"])),  # 007 is not 7
        ("1,2\n", {"id_type": "string"}, (["1"], ["2"])),
        ("1,9223372036854775808\n", {}, (["1"], ["9223372036854775808"])),  # past int64
    ],
)
def test_text_integers_and_strings(tmp_path, rows, options, expected):
    (tmp_path / "e.csv").write_text("u,v\n" + rows)
    assert edges(read_edges(tmp_path / "e.csv", **options))[:2] == expected


def test_text_weights(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("u,v,w\n1,2,1e-3\n1,2,+2\n1,2,.5\n1,2, 7 \n1,2,1e-500\n")
    assert edges(read_edges(path))[2] == [1e-3, 2.0, 0.5, 7.0, 0.0]


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, partial(lzma.compress, preset=0), None]
)
def test_compressed_text(tmp_path, compress):
    n = 100_000  # several blocks
    text = "".join(f"{i} {i * i}\n" for i in range(n)).encode()
    path = tmp_path / "edges.txt.zst"
    path.write_bytes(compress(text) if compress else pa.compress(text, "zstd", asbytes=True))
    u, v, _ = edges(read_edges(path))
    assert u == list(range(n))
    assert v == [i * i for i in u]


def test_text_over_many_blocks_has_right_rows(tmp_path):
    path = tmp_path / "edges.csv"
    rows = [f"{i},{i + 1}" for i in range(300_000)]
    rows[250_000] = "250000,x"
    path.write_text("\n".join(rows))
    with pytest.raises(SourceError, match=r"edges.csv, row 250001: .*column 1 is 'x'"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert sum(len(batch.u) for batch in stream) == 299_999
    assert stream.n_bad == 1
    assert "row 250001" in stream.first_bad


def test_standard_input(monkeypatch):
    """That it gives the same edges is in contract/test_same_bytes.py."""

    def pipe(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return read_edges("-")

    stream = pipe(b"src,dst\n1,2\n")
    assert stream.rereadable is False
    assert edges(stream) == ([1], [2], None)
    with pytest.raises(SourceError, match="standard input: can be read only once; write it to a"):
        list(stream)
    assert edges(pipe(gzip.compress(b"1,2\n")))[0] == [1]
    with pytest.raises(SourceError, match="parquet cannot be read from a pipe"):
        pipe(b"PAR1.....")
    with pytest.raises(SourceError, match="send an IPC stream"):
        pipe(b"ARROW1...")


# ---- Arrow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrows", ""])
def test_arrow_files(tmp_path, table, suffix):
    path = tmp_path / f"edges{suffix}"
    if suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    elif suffix in (".parquet", ""):
        parquet.write_table(table, path, row_group_size=3)
    else:
        feather.write_feather(table, path, chunksize=3, compression="zstd")
    stream = read_edges(path)
    assert stream.columns == "u = 'src', v = 'dst', weights = 'weight' (guessed)"
    for _ in range(2):
        assert edges(stream) == (U, V, W)


def test_parquet_takes_columns_in_any_order(tmp_path):
    path = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"w": [9], "x": [1], "b": [2], "a": [3]}), path)
    stream = read_edges(path, source_col="a", target_col="b")
    assert stream.n_edges == 1
    assert edges(stream) == ([3], [2], [9.0])
    assert stream.columns == "u = 'a', v = 'b', weights = 'w'"


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64(), pa.large_string()]
)
def test_arrow_types(kind):
    table = pa.table({"u": pa.array([1, 2, 1]).cast(kind), "v": pa.array([2, 3, 3]).cast(kind)})
    words = str if kind == pa.large_string() else int
    expected = ([words(i) for i in (1, 2, 1)], [words(i) for i in (2, 3, 3)], None)
    assert edges(read_edges(table)) == expected
    encoded = pa.table({name: table[name].dictionary_encode() for name in ("u", "v")})
    assert edges(read_edges(encoded)) == expected
    assert edges(read_edges(table, id_type="string"))[0] == ["1", "2", "1"]


@pytest.mark.parametrize("kind", [pa.int16(), pa.float32(), pa.decimal128(21, 2), pa.float16()])
def test_arrow_weights(kind):
    w = pa.array(np.array([1, 2], dtype=np.float16) if kind == pa.float16() else [1, 2])
    table = pa.table({"u": [1, 2], "v": [2, 3], "w": w.cast(kind)})
    assert edges(read_edges(table))[2] == [1.0, 2.0]


# ---- arrays and matrices -------------------------------------------------------------------------


def test_arrays_and_iterables():
    u, v, w = np.array(U), np.array(V), np.array(W, dtype=np.float32)
    assert edges(read_edges((u, v, w))) == (U, V, W)
    assert edges(read_edges((u, v))) == (U, V, None)
    batches = [(u[:2], v[:2], w[:2]), Batch(u[2:], v[2:], w[2:])]
    stream = read_edges(batches)
    assert edges(stream) == edges(stream) == (U, V, W)
    assert edges(read_edges(lambda: iter(batches))) == (U, V, W)
    assert read_edges(lambda: iter(batches)).rereadable
    once = read_edges(iter(batches))
    assert edges(once) == (U, V, W)
    with pytest.raises(SourceError, match="can be read only once"):
        list(once)
    assert edges(read_edges([(named(U), named(V))])) == (named(U), named(V), None)
    assert edges(read_edges([(pa.array(U), pa.array(V), W)])) == (U, V, W)


def test_scipy_matrices(tmp_path):
    a = scipy.sparse.random_array((30, 30), density=0.2, rng=np.random.default_rng(0))
    a = scipy.sparse.triu(a, 1).tocsr()
    symmetric = (a + a.T).tocsc()
    for name, matrix in (("upper", a), ("lower", a.T.tocoo()), ("both", symmetric)):
        path = tmp_path / f"{name}.npz"
        scipy.sparse.save_npz(path, matrix)
        stream = read_edges(path)
        u, v, w = edges(stream)
        built = scipy.sparse.coo_array((w, (u, v)), shape=(30, 30)).tocsr()
        assert abs(built + built.T - symmetric).max() < 1e-15


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_matrix_market(tmp_path, field, symmetry):
    rng = np.random.default_rng(1)
    matrix = scipy.sparse.tril(scipy.sparse.random_array((40, 40), density=0.1, rng=rng), -1)
    matrix.data = np.ceil(9 * matrix.data)
    full = matrix + matrix.T if symmetry == "symmetric" else matrix
    path = tmp_path / "e.mtx"
    scipy.io.mmwrite(path, full, comment="a comment", field=field, symmetry=symmetry)
    stream = read_edges(path)
    u, v, w = edges(stream)
    assert stream.n_edges == matrix.nnz
    assert (w is None) == (field == "pattern")
    found = scipy.sparse.coo_array((w or np.ones(len(u)), (np.array(u) - 1, np.array(v) - 1)))
    expected = scipy.sparse.coo_array(matrix)
    expected.data = expected.data if w else np.ones_like(expected.data)
    assert found.tocsr()[:40].toarray().sum() == expected.sum()
    np.testing.assert_array_equal(
        np.unique(np.stack([u, v]), axis=1), np.unique(np.stack(expected.coords) + 1, axis=1)
    )


# ---- many files, reports, errors -----------------------------------------------------------------


def test_many_files(tmp_path, table):
    (tmp_path / "part-1.csv").write_text("u,v\n1,2\n")
    (tmp_path / "part-0.csv").write_text("u,v\n2,3\n")
    parquet.write_table(pa.table({"source": [9], "target": [1]}), tmp_path / "z.parquet")
    assert edges(read_edges(str(tmp_path / "part-*.csv")))[0] == [2, 1]
    stream = read_edges([tmp_path / "part-1.csv", str(tmp_path / "z.parquet")])
    assert edges(stream) == ([1, 9], [2, 1], None)
    assert stream.nodes.ids().tolist() == [1, 2, 9]
    (tmp_path / "z.parquet").unlink()
    assert edges(read_edges(tmp_path))[0] == [2, 1]
    assert read_edges(tmp_path).fraction == 0
    nodes = NodeTable()
    nodes.add([9])
    assert next(iter(read_edges(tmp_path, nodes=nodes))).u.tolist() == [1]


def test_fraction_and_messages(tmp_path, capsys):
    path = tmp_path / "e.csv"
    path.write_text("u,v,w\n" + "1,2,1\n" * 500_000 + "1,2,-1\n")
    stream = read_edges(path, on_bad="skip", verbose=1)
    assert "u = 'u', v = 'v', weights = 'w' (guessed)" in capsys.readouterr().err
    fractions = [stream.fraction for _ in stream]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.6
    assert stream.fraction == 1
    assert "1 bad rows left out" in capsys.readouterr().err
    assert "row 500002: weights must not be negative nor above" in stream.first_bad


@pytest.mark.slow
def test_memory_does_not_grow_with_a_parquet_file(tmp_path):
    rng = np.random.default_rng(0)
    read = "import sys, resource, ohmlearn\nfor _ in ohmlearn.read_edges(sys.argv[1]): pass\n"
    read += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    peaks = []
    for name, batches in (("small", 2), ("large", 16)):
        path = tmp_path / f"{name}.parquet"
        schema = pa.schema({"u": pa.int64(), "v": pa.int64()})
        with parquet.ParquetWriter(path, schema) as writer:
            for _ in range(batches):
                ends = [pa.array(rng.integers(0, 50_000, 1 << 20)) for _ in range(2)]
                writer.write_table(pa.table(ends, schema=schema))
        run = [sys.executable, "-c", read, str(path)]
        peaks.append(int(subprocess.run(run, capture_output=True, check=True).stdout))
    assert path.stat().st_size > 60_000_000
    assert peaks[1] - peaks[0] < 30_000  # KiB
