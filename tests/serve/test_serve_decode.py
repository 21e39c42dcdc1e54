"""Bodies of requests: the same edges in each form, limits, and what is said about bad ones.

The readers themselves are tested in tests/unit; here is what a server adds to them.
"""

import contextlib
import io
import json
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa

from ohmlearn.errors import query_style
from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.serve import decode_edges as decode_module
from ohmlearn.serve.decode_edges import BadBody, decode_edges

FORMS = ("ndjson", "csv", "arrow")


def ipc(columns, *, file=False, options=None, rows=None) -> bytes:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    sink = io.BytesIO()
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def encode(columns: dict, form: str) -> bytes:
    """Write columns in one of the forms; None is null, or an empty field."""
    if form == "arrow":
        return ipc(columns)
    rows = list(zip(*columns.values(), strict=True))
    if form == "ndjson":
        return b"\n".join(json.dumps(dict(zip(columns, r, strict=True))).encode() for r in rows)
    texts = [",".join("" if x is None else str(x) for x in row) for row in rows]
    return "\n".join([",".join(columns), *texts]).encode()


def ids(column):
    return decode_strings(column).tolist() if isinstance(column, Strings) else column.tolist()


def read(body, form, **options):
    raw = decode_edges(body, form, **options)
    lists = (None if x is None else x.tolist() for x in (raw.w, raw.t))
    return ids(raw.u), ids(raw.v), *lists


def refused(body, form, **options) -> BadBody:
    with pytest.raises(BadBody) as caught:
        decode_edges(body, form, **options)
    return caught.value


@pytest.mark.parametrize("form", FORMS)
class TestEachForm:
    def test_strings_with_weights_and_dates(self, form):
        dates = ["2026-01-31", "2026-01-31T12:30:00Z", "1969-12-31T23:59:59+00:00"]
        columns = {"source": ["é", "b", "c"], "target": ["x", "y z", "0"]}
        columns |= {"weight": [0.5, 0, 1e27], "created_at": dates}
        seconds = [1769817600.0, 1769862600.0, -1.0]
        expected = ["é", "b", "c"], ["x", "y z", "0"], [0.5, 0.0, 1e27], seconds
        assert read(encode(columns, form), form) == expected

    def test_other_columns_are_ignored(self, form):
        columns = {"note": ["a", "b"], "T": [5, 6.5], "V": [3, 4], "x": [0, 1], "U": [1, 2]}
        assert read(encode(columns, form), form) == ([1, 2], [3, 4], None, [5.0, 6.5])

    def test_ids_that_are_not_of_the_type_of_the_log(self, form):
        body = encode({"u": [17, 5], "v": [-3, 2**40]}, form)
        expected = ["17", "5"], ["-3", str(2**40)], None, None
        assert read(body, form, id_kind="string") == expected
        error = refused(encode({"u": ["a"], "v": ["b"]}, form), form, id_kind="int64")
        assert "so far" in str(error)
        assert "integers" in str(error)
        body = encode({"u": [17.0, 5.0], "v": [-3.0, 2.0**53]}, form)
        for kind in (None, "int64"):
            assert read(body, form, id_kind=kind) == ([17, 5], [-3, 2**53], None, None)

    @pytest.mark.parametrize(
        ("name", "value", "why"),
        [
            ("weight", -1.0, "negative nor above 1e+27"),
            ("weight", 1e-45, "nor below 1.2e-38 unless 0"),
            ("weight", None, "weight"),
            ("time", None, "missing"),
            ("time", 1.7e12, "later than tomorrow; send dates, or Unix times in seconds, not in"),
            ("time", 99_999_999_999.0, "later than tomorrow"),
            ("v", None, "v"),
        ],
    )
    def test_bad_rows(self, form, name, value, why):
        columns = {"u": [1, 2, 3, 4], "v": [2, 3, 4, 5], "weight": [1.0] * 4, "time": [5.0] * 4}
        columns[name] = [1, 2, value, 3]
        body = encode(columns, form)
        row = 4 if form == "csv" else 3  # in text the number of the line
        error = refused(body, form)
        assert error.row == row
        assert str(error).startswith(f"row {row}: ")
        assert why in str(error)
        assert error.render(query_style).endswith("; correct it, or send on_bad=skip")
        raw = decode_edges(body, form, skip_bad=True)
        assert (ids(raw.u), raw.w.size, raw.t.size, raw.n_bad) == ([1, 2, 4], 3, 3, 1)
        assert raw.first_bad.startswith(f"row {row}: ")
        assert why in raw.first_bad

    def test_long_ids(self, form):
        body = encode({"u": ["a", "b", "c"], "v": ["é" * 5, "é" * 6, "d"]}, form)
        error = refused(body, form, max_id_bytes=10)
        assert error.row == (3 if form == "csv" else 2)
        assert "'éééééé' has 12 bytes, but node ids may have at most 10" in str(error)
        raw = decode_edges(body, form, max_id_bytes=10, skip_bad=True)
        assert (ids(raw.u), ids(raw.v), raw.n_bad) == (["a", "c"], ["é" * 5, "d"], 1)
        assert raw.first_bad.startswith(f"row {error.row}: the id 'éééééé'")

    def test_dates(self, form):
        body = encode({"u": [1, 1], "v": [2, 2], "t": ["2026-01-01", "2999-01-01"]}, form)
        error = refused(body, form)
        assert "2999-01-01" in str(error)
        assert "later than tomorrow" in str(error)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        assert read(encode({"u": [1], "v": [2], "t": [now]}, form), form)[0] == [1]
        body = encode({"u": [1, 1], "v": [2, 2], "t": ["2026-01-01", "soon"]}, form)
        assert "'soon'" in str(refused(body, form))

    def test_columns_need_usual_names(self, form):
        error = refused(encode({"a": [1], "b": [2]}, form), form, one="a pair")
        assert error.row is None
        assert str(error).startswith(
            "a pair needs two columns with node ids, but the columns are 'a', 'b'; name them as "
            "one of these pairs: u and v, src and dst, source and target"
        )
        body = {
            "ndjson": b'{"u": 1, "U": 2, "v": 3}',
            "csv": b"u,U,v\n1,2,3",
            "arrow": ipc({"u": [1], "U": [2], "v": [3]}),
        }[form]
        assert "two columns are named u" in str(refused(body, form))

    def test_too_many_rows(self, form):
        body = encode({"u": [1, 2, 3], "v": [2, 3, 4]}, form)
        assert read(body, form, max_rows=3)[0] == [1, 2, 3]
        why = "the body has more than 2 rows; split it into several requests"
        assert str(refused(body, form, max_rows=2)) == why

    def test_no_rows(self, form):
        bodies = {
            "ndjson": [b"", b"\n \r\n", b"\xef\xbb\xbf", b"[]"],
            "csv": [b"", b"u,v\n", b"\n\nu,v,w"],
            "arrow": [b"", ipc(pa.table({"u": pa.array([], pa.int64()), "v": pa.array([], "i8")}))],
        }[form]
        for body in bodies:
            raw = decode_edges(body, form)
            assert (ids(raw.u), ids(raw.v), raw.n_bad) == ([], [], 0)
            assert isinstance(decode_edges(body, form, id_kind="string").u, Strings)

    def test_memory_of_the_caller(self, form):
        body = bytearray(encode({"u": [1, 2], "v": [3, 4]}, form))
        raw = decode_edges(memoryview(body), form)
        body[:] = bytes(len(body))
        assert ids(raw.u) == [1, 2]

    def test_many_rows_with_bad_ones(self, form):
        n = 40_000  # several blocks of JSON
        columns = {"u": [f"n{i}" for i in range(n)], "v": ["x"] * n, "w": [1.0] * n}
        columns["w"][15_000] = columns["w"][19_000] = -1.0
        body = encode(columns, form)
        assert refused(body, form).row == 15_001 + (form == "csv")
        raw = decode_edges(body, form, skip_bad=True)
        good = [x for at, x in enumerate(columns["u"]) if at not in (15_000, 19_000)]
        assert (ids(raw.u), raw.n_bad) == (good, 2)
        assert raw.first_bad.startswith(f"row {15_001 + (form == 'csv')}: ")


class TestJson:
    def test_arrays(self):
        rows = [{"u": 1, "v": 2, "w": 0.5}, {"u": 3, "v": 4, "w": 1}]
        for body in (json.dumps(rows), json.dumps(rows, indent=2), "\ufeff " + json.dumps(rows)):
            assert read(body.encode(), "ndjson") == ([1, 3], [2, 4], [0.5, 1.0], None)
        error = refused(json.dumps([*rows, {"u": 5}]).encode(), "ndjson")
        assert (error.row, str(error)[:20]) == (3, "row 3: 'v' is missin")
        body = b"[" + b'{"u":1,"v":2},' * 80_000 + b'{"u":1,"v":2}]'
        assert "JSON array of more than 1 MiB; write one JSON object per line" in str(
            refused(body, "ndjson")
        )

    def test_weights_and_times_of_later_rows_are_not_lost(self):
        for name in ("weight", "time", "\\u0074s"):
            body = f'{{"u":1,"v":2}}\n{{"u":1,"v":2,"{name}":5}}'.encode()
            why = "but the first row has not; give all rows one, or none"
            assert refused(body, "ndjson").row == 2
            assert why in str(refused(body, "ndjson"))
            assert decode_edges(body, "ndjson", skip_bad=True).n_bad == 1

    def test_long_lines(self):
        # As Python objects, these would take many times their size.
        body = b'{"u":1,"v":2}\n{"u":1,"v":2,"x":[' + b"[]," * 400_000 + b"1]}"
        why = "row 2: the line has 1,200,022 bytes, but a row may have at most 1,048,576"
        assert str(refused(body, "ndjson")).startswith(why)
        assert decode_edges(body, "ndjson", skip_bad=True).n_bad == 1


class TestCsv:
    def test_headers_are_needed(self):
        assert "but the columns are '1', '2'" in str(refused(b"1,2\n3,4", "csv"))
        assert "a quote is not closed" in str(refused(b'"u,v\n1,2', "csv"))
        assert "UTF-16" in str(refused("u,v\n1,2".encode("utf-16"), "csv"))

    def test_stray_quotes_take_linear_time(self):
        # A reader that looks for the end of each quote in the rest of the text would need hours.
        for line in (b'a","b\n', b'"a\n', b'""",\n'):
            raw = decode_edges(b"u,v\n" + line * 50_000, "csv", skip_bad=True)
            assert raw.u.size + raw.n_bad <= 50_000


class TestArrow:
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
    def test_types_of_strings(self, kind):
        texts = ["a", "é" * 20, "b", "a"]
        column = pa.array(texts, pa.string())
        arrays = [column.cast(kind), pa.DictionaryArray.from_arrays([0, 1, 2, 0], column[:3])]
        for array in arrays:
            for rows in (None, 2):
                for file in (False, True):
                    body = ipc({"u": array, "v": array}, rows=rows, file=file)
                    raw = decode_edges(body, "arrow")
                    assert ids(raw.u) == ids(raw.v) == texts

    def test_rows_of_several_batches(self):
        body = ipc({"u": [1, 2, 3, 4, 5], "v": [1] * 5, "w": [1.0, 1, 1, 1, -1]}, rows=2)
        assert refused(body, "arrow").row == 5

    @pytest.mark.parametrize("codec", ["lz4", "zstd"])
    def test_compressed_buffers(self, codec):
        texts = pa.array(["a" * 1000] * 99)
        for columns in ({"u": texts, "v": texts}, {"u": texts.dictionary_encode(), "v": texts}):
            for file in (False, True):
                options = pa.ipc.IpcWriteOptions(compression=codec)
                error = refused(ipc(columns, file=file, options=options), "arrow")
                assert str(error).startswith("the buffers are compressed; send the stream uncomp")

    def test_damaged_text(self):
        array = pa.array([b"a", b"\xff", b"c"], pa.binary()).view(pa.string())
        assert "UTF8" in str(refused(ipc({"u": array, "v": ["x"] * 3}), "arrow"))
        for body in (b"{}", b"u,v\n1,2\n", b"\xff\xff\xff\xff", b"ARROW1", b"ARROW1\0\0"):
            assert str(refused(body, "arrow")).startswith("the body: cannot be read as arrow")

    def test_cut_off_anywhere(self):
        body = ipc({"u": ["a", "b"], "v": ["c", "d"]})
        for size in range(1, len(body) - 8):  # the end of the stream may be missing
            with contextlib.suppress(BadBody):
                assert ids(decode_edges(body[:size], "arrow").u) == []  # only the schema is left

    def test_texts_that_many_rows_share(self, monkeypatch):
        monkeypatch.setattr(decode_module, "LARGEST_TEXT", 1 << 20)
        n = 2000
        text = pa.array(["a" * 1000])
        coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), text)
        view = np.tile(np.frombuffer(text.cast(pa.string_view()).buffers()[1], np.uint8, 16), n)
        data = text.cast(pa.string_view()).buffers()[2]
        views = pa.Array.from_buffers(pa.string_view(), n, [None, pa.py_buffer(view), data])
        for array in (coded, views):
            body = ipc({"u": array, "v": array})
            why = "the texts of u have 1 MiB when they are written out, but may have at most 1"
            assert len(body) < 100_000
            assert why in str(refused(body, "arrow", max_id_bytes=5000))

    def test_rows_without_buffers(self):
        # A column of nulls has no buffers, so any number of rows fits in a few bytes.
        nulls = pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])
        batch = pa.record_batch([nulls, nulls], names=["u", "v"])
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        assert "more than 1,000,000 rows" in str(refused(sink.getvalue(), "arrow"))

    def test_many_messages(self, monkeypatch):
        monkeypatch.setattr(decode_module, "MOST_MESSAGES", 10)
        body = ipc({"u": [1] * 20, "v": [2] * 20}, rows=1)
        assert "more than 10 record batches" in str(refused(body, "arrow"))
