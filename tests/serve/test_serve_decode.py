"""Bodies of requests: the same edges in each form, and what is said about bad ones."""

import contextlib
import io
import json
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa

from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.reading.read_options import EDGE_ENDS, TIMES
from ohmlearn.serve import decode_arrow as decode_arrow
from ohmlearn.serve import ipc_messages
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
    def test_integers(self, form):
        columns = {"u": [1, -2, 2**63 - 1], "v": [4, 5, -(2**63)]}
        raw = decode_edges(encode(columns, form), form)
        assert raw.u.dtype == raw.v.dtype == np.int64
        assert (ids(raw.u), ids(raw.v), raw.w, raw.t) == (columns["u"], columns["v"], None, None)
        assert (raw.n_bad, raw.first_bad) == (0, None)

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

    @pytest.mark.parametrize("pair", EDGE_ENDS)
    def test_names_of_ends(self, form, pair):
        body = encode(dict(zip(pair, ([1], [2]), strict=True)), form)
        assert read(body, form) == ([1], [2], None, None)

    @pytest.mark.parametrize("name", TIMES)
    def test_names_of_times(self, form, name):
        assert read(encode({"u": [1], "v": [2], name: [7]}, form), form)[3] == [7.0]

    def test_integers_in_a_log_of_strings(self, form):
        body = encode({"u": [17, 5], "v": [-3, 2**40]}, form)
        expected = ["17", "5"], ["-3", str(2**40)], None, None
        assert read(body, form, id_kind="string") == expected

    def test_strings_in_a_log_of_integers(self, form):
        error = refused(encode({"u": ["a"], "v": ["b"]}, form), form, id_kind="int64")
        assert "the node ids so far are integers" in str(error)

    def test_whole_floats_are_integers(self, form):
        body = encode({"u": [17.0, 5.0], "v": [-3.0, 2.0**53]}, form)
        assert read(body, form) == ([17, 5], [-3, 2**53], None, None)
        assert read(body, form, id_kind="int64") == ([17, 5], [-3, 2**53], None, None)

    @pytest.mark.parametrize(
        ("name", "value", "why"),
        [
            ("weight", -1.0, "weight is -1, but weights must be between 0 and 1e+27"),
            ("weight", 1e28, "weight is 1e+28, but weights must be between 0 and 1e+27"),
            ("weight", 1e-45, "and at least 1.2e-38 unless 0"),
            ("weight", None, "weight is missing"),
            ("time", None, "time is missing"),
            ("time", 1.7e12, "which seems to be in milliseconds, but times must be Unix seconds"),
            ("time", 99_999_999_999.0, "which is later than tomorrow"),
            ("time", 1e300, "but times must be Unix seconds or dates such as 2026-03-31T12:30"),
        ],
    )
    def test_bad_numbers(self, form, name, value, why):
        columns = {"u": [1, 2, 3, 4], "v": [2, 3, 4, 5], "weight": [1.0] * 4, "time": [5.0] * 4}
        columns[name] = [1.0, 2.0, value, 3.0]
        body = encode(columns, form)
        error = refused(body, form)
        assert error.row == 3
        assert str(error).startswith("row 3: ")
        assert why in str(error)
        assert str(error).endswith("; correct it, or send on_bad=skip")
        raw = decode_edges(body, form, skip_bad=True)
        assert (ids(raw.u), raw.w.size, raw.t.size, raw.n_bad) == ([1, 2, 4], 3, 3, 1)
        assert raw.first_bad.startswith("row 3: ")
        assert why in raw.first_bad

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            (None, "v is missing"),
            ("é" * 6, "v is 'éééééé', which has 12 bytes, but node ids may have at most 10"),
        ],
    )
    def test_bad_ids(self, form, value, why):
        body = encode({"u": ["a", "b", "c"], "v": ["é" * 5, value, "d"]}, form)
        assert str(refused(body, form, max_id_bytes=10)).startswith(f"row 2: {why}")
        raw = decode_edges(body, form, max_id_bytes=10, skip_bad=True)
        assert (ids(raw.u), ids(raw.v), raw.n_bad) == (["a", "c"], ["é" * 5, "d"], 1)

    def test_late_dates(self, form):
        body = encode({"u": [1, 1], "v": [2, 2], "t": ["2026-01-01", "2999-01-01"]}, form)
        assert "row 2: t is 2999-01-01T00:00:00, which is later than tomorrow" in str(
            refused(body, form)
        )
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        assert read(encode({"u": [1], "v": [2], "t": [now]}, form), form)[0] == [1]

    def test_dates_that_are_none(self, form):
        body = encode({"u": [1, 1], "v": [2, 2], "t": ["2026-01-01", "soon"]}, form)
        assert "row 2: t is 'soon', but times must be" in str(refused(body, form))

    def test_numbers_among_dates(self, form):
        body = encode({"u": [1, 1], "v": [2, 2], "t": ["1970-01-02", "5"]}, form)
        assert read(body, form)[3] == [86400.0, 5.0]

    def test_no_columns_of_ends(self, form):
        error = refused(encode({"a": [1], "b": [2]}, form), form)
        assert error.row is None
        assert str(error).startswith(
            "an edge needs two columns with node ids, but the columns are 'a', 'b'; name them as "
            "one of these pairs: u and v, src and dst, source and target"
        )

    def test_same_name_twice(self, form):
        body = {
            "ndjson": b'{"u": 1, "U": 2, "v": 3}',
            "csv": b"u,U,v\n1,2,3",
            "arrow": ipc({"u": [1], "U": [2], "v": [3]}),
        }[form]
        assert "two columns are named u" in str(refused(body, form))

    def test_too_many_rows(self, form):
        body = encode({"u": [1, 2, 3], "v": [2, 3, 4]}, form)
        assert read(body, form, max_rows=3)[0] == [1, 2, 3]
        why = "the body has 3 rows, but at most 2 may be sent at once; split it into several"
        assert str(refused(body, form, max_rows=2)) == why

    def test_no_rows(self, form):
        bodies = {
            "ndjson": [b"", b"\n \r\n", b"\xef\xbb\xbf"],
            "csv": [b"", b"u,v\n", b"\n\nu,v,w", b"what,ever\n\n"],
            "arrow": [b"", ipc(pa.table({"u": pa.array([], pa.int64()), "v": pa.array([], "i8")}))],
        }[form]
        for body in bodies:
            raw = decode_edges(body, form)
            assert (ids(raw.u), ids(raw.v), raw.n_bad) == ([], [], 0)
            assert isinstance(decode_edges(body, form, id_kind="string").u, Strings)

    def test_pairs(self, form):
        columns = {"u": ["a"], "v": ["b"], "w": [2.0]}
        raw = decode_edges(encode(columns, form), form, one="a pair")
        assert (ids(raw.u), ids(raw.v), raw.w.tolist()) == (["a"], ["b"], [2.0])
        with pytest.raises(BadBody, match="a pair needs two columns"):
            decode_edges(encode({"a": [1]}, form), form, one="a pair")

    def test_memory_of_the_caller(self, form):
        body = bytearray(encode({"u": [1, 2], "v": [3, 4]}, form))
        raw = decode_edges(memoryview(body), form)
        body[:] = bytes(len(body))
        assert ids(raw.u) == [1, 2]

    def test_all_rows_bad(self, form):
        body = encode({"u": [1, 2], "v": [3, 4], "w": [-1.0, -2.0]}, form)
        raw = decode_edges(body, form, skip_bad=True)
        assert (ids(raw.u), raw.n_bad) == ([], 2)

    def test_many_rows_with_a_bad_one(self, form):
        n = 20_000  # several blocks of text
        columns = {"u": [f"n{i}" for i in range(n)], "v": ["x"] * n, "w": [1.0] * n}
        columns["w"][15_000] = columns["w"][19_000] = -1.0
        body = encode(columns, form)
        assert refused(body, form).row == 15_001
        if form != "arrow":
            body += b"\nbroken"
        raw = decode_edges(body, form, skip_bad=True)
        good = [x for at, x in enumerate(columns["u"]) if at not in (15_000, 19_000)]
        assert ids(raw.u) == good
        assert raw.n_bad == (2 if form == "arrow" else 3)
        assert raw.first_bad.startswith("row 15001: w is -1")


def test_unknown_form():
    assert "must be one of ndjson, csv, arrow" in str(refused(b"", "xml"))


class TestLines:
    def test_line_ends(self):
        body = b'\xef\xbb\xbf{"u":1,"v":2}\r\n\r\n {"u":3,"v":4}'
        assert read(body, "ndjson") == ([1, 3], [2, 4], None, None)

    def test_strings_that_look_like_dates_and_numbers(self):
        body = b'{"u":"2026-01-01","v":"7"}\n{"u":"2026-01-02","v":"8"}'
        assert read(body, "ndjson")[:2] == (["2026-01-01", "2026-01-02"], ["7", "8"])

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b'{"u":1', "the line is not JSON: Expecting ',' delimiter at letter 7"),
            (b"[1, 2]", 'a line must be an object such as {"u": 1, "v": 2}, got [1, 2]'),
            (b'{"u":1,"v":2}{"u":3,"v":4}', "the line is not JSON: Extra data at letter 14"),
            (b'{"u":1,"u":3,"v":2}', "the object has u twice"),
            (b'{"v":2}', "u is missing"),
            (b'{"u":null,"v":2}', "u is missing"),
            (b'{"u":true,"v":2}', "u is True, but a node id must be an integer or a string"),
            (b'{"u":[1],"v":2}', "u is [1], but a node id must be an integer or a string"),
            (b'{"u":1.5,"v":2}', "u is 1.5, but a node id must be a whole number"),
            (b'{"u":1e60,"v":2}', "u is 1e+60, but a node id must be a whole number"),
            (b'{"u":9223372036854775808,"v":2}', "u is 9223372036854775808, which does not fit"),
            (b'{"u":"a","v":2}', "u is the text 'a', but other node ids of this body are integers"),
            (b'{"u":1,"v":2,"note":"\xff"}', "the line is not UTF-8: invalid start byte at byte"),
            (b'{"u":1,"v":' + b"[" * 100_000, "it is nested too deeply"),
            (b'{"u":1,"v":NaN}', "v is missing"),
        ],
    )
    def test_bad_rows(self, line, why):
        body = b'{"u":5,"v":6}\n\n' + line + b'\n{"u":7,"v":8}\n'
        error = refused(body, "ndjson")
        assert error.row == 2
        assert str(error).startswith(f"row 2: {why}" if "deeply" not in why else "row 2: ")
        assert why in str(error)
        raw = decode_edges(body, "ndjson", skip_bad=True)
        assert (ids(raw.u), ids(raw.v), raw.n_bad) == ([5, 7], [6, 8], 1)

    @pytest.mark.parametrize(
        ("values", "why"),
        [
            (b'"w":"5"', "w is '5', but weights must be numbers between 0 and 1e+27"),
            (b'"w":true', "w is True, but weights must be numbers"),
            (b'"w":NaN', "w is nan, but weights must be between"),
            (b'"w":1e999', "w is inf, but weights must be between"),
            (b'"w":1e-45', "w is 1e-45, but weights must be between 0 and 1e+27, and at least 1.2"),
            (b'"x":1', "w is missing"),
            (b'"W":1', "w is missing"),
        ],
    )
    def test_bad_weights(self, values, why):
        body = b'{"u":5,"v":6,"w":1}\n{"u":5,"v":6,' + values + b"}"
        assert str(refused(body, "ndjson")).startswith(f"row 2: {why}")

    def test_mixed_ids(self):
        body = b'{"u":"a","v":"b"}\n{"u":"a","v":5}'
        why = "row 2: v is the number 5, but other node ids of this body are strings; send all as"
        assert str(refused(body, "ndjson")).startswith(why)
        assert read(body, "ndjson", id_kind="string")[1] == ["b", "5"]

    def test_lone_surrogates(self):
        body = b'{"u":"a","v":"\\ud800"}'
        assert "row 1: v is '\\ud800', which is not valid Unicode" in str(refused(body, "ndjson"))

    def test_weights_and_times_of_later_rows_are_not_lost(self):
        body = b'{"u":1,"v":2}\n{"u":1,"v":2,"weight":5}'
        assert str(refused(body, "ndjson")).startswith("row 1: weight is missing")
        raw = decode_edges(body, "ndjson", skip_bad=True)
        assert raw.w.tolist() == [5.0]
        body = b'{"u":1,"v":2}\n{"u":1,"v":2,"\\u0074s":5}'
        assert str(refused(body, "ndjson")).startswith("row 1: ts is missing")

    def test_first_object_without_ends(self):
        body = b'{}\n{"u":1,"v":2}'
        assert str(refused(body, "ndjson")).startswith("row 1: u is missing")
        assert read(body, "ndjson", skip_bad=True)[:2] == ([1], [2])

    def test_no_object_at_all(self):
        raw = decode_edges(b"1\n2\n", "ndjson", skip_bad=True)
        assert (ids(raw.u), raw.n_bad) == ([], 2)

    def test_long_lines(self):
        # As Python objects, these would take many times their size.
        body = b'{"u":1,"v":2,"x":[' + b"[]," * 400_000 + b'1]}\n{"u":1,"v":2}'
        why = "row 1: the line has 1,200,022 bytes, but a row may have at most 1,048,576"
        assert str(refused(body, "ndjson")).startswith(why)
        assert decode_edges(body, "ndjson", skip_bad=True).n_bad == 1

    def test_numbers_and_dates(self):
        body = b'{"u":1,"v":2,"t":5}\n{"u":1,"v":2,"t":"1970-01-02"}\n{"u":1,"v":2,"t":6.5}'
        assert read(body, "ndjson")[3] == [5.0, 86400.0, 6.5]


class TestCsv:
    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n"])
    def test_delimiters_and_line_ends(self, mark, end):
        rows = [("u", "v", "note"), ("a b", "é", ""), ("c", "d", "x")]
        body = end.join(mark.join(row) for row in rows).encode()
        assert read(body, "csv")[:2] == (["a b", "c"], ["é", "d"])

    def test_quotes(self):
        body = b'u,"v",w\n"a,b","say ""x""",1\nc, "d" ,2\n'
        assert read(body, "csv")[:2] == (["a,b", "c"], ['say "x"', "d"])

    def test_ids_are_integers_if_all_are(self):
        assert read(b"u,v\n1,2\n3,4", "csv")[0] == [1, 3]
        assert read(b"u,v\n1,2\n3,007", "csv")[:2] == (["1", "3"], ["2", "007"])
        raw = decode_edges(b"u,v,w\n1,2,1\nx,y,-1\n3,4,1", "csv", skip_bad=True)
        assert ids(raw.u) == [1, 3]

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b"7", "'7' has 1 value, but the header names 3 columns"),
            (b"1,2,3,4", "'1,2,3,4' has 4 values, but the header names 3 columns"),
            (b'a","b,1', "quotes do not enclose a whole value in 'a\",\"b,1'"),
            (b'"a,b,1', "quotes do not enclose a whole value"),
            (b'"a"b,c,1', "quotes do not enclose a whole value"),
            (b"a\rb,c,1", "a carriage return is inside 'a\\rb,c,1'"),
            (b",b,1", "u is missing"),
            (b'"",b,1', "u is missing"),
            (b"\xff,b,1", "u is '\ufffd', which is not UTF-8"),
            (b"a,b,heavy", "weight is 'heavy', but weights must be numbers between"),
            (b"a,b,nan", "weight is 'nan', but weights must be numbers between"),
            (b"a,b,inf", "weight is inf, but weights must be between"),
            (b"a,b,1e-45", "weight is 1e-45, but weights must be between"),
        ],
    )
    def test_bad_rows(self, line, why):
        body = b"u,v,weight\nx,y,1\n\n" + line + b"\nz,y,2\n"
        error = refused(body, "csv")
        assert error.row == 2
        assert str(error).startswith(f"row 2: {why}")
        raw = decode_edges(body, "csv", skip_bad=True)
        assert (ids(raw.u), raw.w.tolist(), raw.n_bad) == (["x", "z"], [1.0, 2.0], 1)

    def test_names_in_a_log_of_integers(self):
        why = "row 2: u is the text 'a', but the node ids so far are integers"
        assert str(refused(b"u,v\n1,2\na,3", "csv", id_kind="int64")).startswith(why)

    def test_no_header(self):
        assert "but the columns are '1', '2'" in str(refused(b"1,2\n3,4", "csv"))

    def test_long_lines(self):
        body = b"u,v" + b"," * 1_200_000 + b"\n1"
        assert "the header has 1,200,004 bytes" in str(refused(body, "csv"))
        body = b"u,v\n1,2\n" + b"," * 1_200_000
        assert "row 2: the line has 1,200,000 bytes" in str(refused(body, "csv"))

    def test_broken_headers(self):
        assert "a quote is not closed in the header" in str(refused(b'"u,v\n1,2', "csv"))
        assert "UTF-16" in str(refused("u,v\n1,2".encode("utf-16"), "csv"))

    def test_stray_quotes_take_linear_time(self):
        # A reader that looks for the end of each quote in the rest of the text would need hours.
        for line in (b'a","b\n', b'"a\n', b'""",\n'):
            raw = decode_edges(b"u,v\n" + line * 50_000, "csv", skip_bad=True)
            assert raw.n_bad == 50_000


class TestArrow:
    @pytest.mark.parametrize(
        "kind",
        [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float32()],
    )
    def test_types_of_integers(self, kind):
        column = pa.array([1, 2, 3], kind)
        for array in (column, column.dictionary_encode()):
            raw = decode_edges(ipc({"u": array, "v": array}), "arrow")
            assert raw.u.dtype == np.int64
            assert ids(raw.u) == [1, 2, 3]

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
    def test_types_of_strings(self, kind):
        texts = ["a", "é" * 20, "b", "a"]
        column = pa.array(texts, pa.string())
        arrays = [column.cast(kind), pa.DictionaryArray.from_arrays([0, 1, 2, 0], column[:3])]
        for array in arrays:
            for rows in (None, 2):
                raw = decode_edges(ipc({"u": array, "v": array}, rows=rows), "arrow")
                assert ids(raw.u) == ids(raw.v) == texts

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
    def test_missing_strings(self, kind):
        array = pa.array(["a", None, "", "b"], pa.string()).cast(kind)
        raw = decode_edges(ipc({"u": array, "v": ["x"] * 4}), "arrow", skip_bad=True)
        assert (ids(raw.u), raw.n_bad, raw.first_bad) == (["a", "b"], 2, "row 2: u is missing")

    def test_missing_codes(self):
        values = pa.array(["a", None, "b"])
        array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), values)
        raw = decode_edges(ipc({"u": array, "v": ["x"] * 4}), "arrow", skip_bad=True)
        assert (ids(raw.u), raw.n_bad) == (["a", "b"], 2)
        none = pa.DictionaryArray.from_arrays(
            pa.array([None, None], pa.int8()), pa.array([], "str")
        )
        raw = decode_edges(ipc({"u": none, "v": ["x"] * 2}), "arrow", skip_bad=True)
        assert (ids(raw.u), raw.n_bad) == ([], 2)

    def test_columns_of_nulls(self):
        body = ipc({"u": pa.nulls(2), "v": ["a", "b"]})
        assert str(refused(body, "arrow")).startswith("row 1: u is missing")

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    @pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
    def test_timestamps(self, unit, zone):
        t = pa.array([86400, -1, None], pa.int64())
        t = t.cast(pa.timestamp("s")).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
        if zone == "Asia/Tokyo":  # the instants are the same
            assert t.cast(pa.int64()).cast(pa.timestamp(unit))[0].as_py().year == 1970
        body = ipc({"u": [1, 2, 3], "v": [2, 3, 4], "t": t})
        raw = decode_edges(body, "arrow", skip_bad=True)
        assert (raw.t.tolist(), raw.first_bad) == ([86400.0, -1.0], "row 3: t is missing")

    @pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
    def test_dates(self, kind):
        t = pa.array([1, 2], pa.int32()).cast(pa.date32()).cast(kind)
        assert read(ipc({"u": [1, 2], "v": [2, 3], "t": t}), "arrow")[3] == [86400.0, 172800.0]

    def test_late_timestamps(self):
        # Python has neither the second date nor the time zone.
        for number, shown in ((2**35, "3058-10-"), (2**62, "46116860184273879")):
            for name in (None, "Nowhere/At all"):
                t = pa.array([0, number], pa.timestamp("s", name))
                body = ipc({"u": [1, 2], "v": [2, 2], "t": t})
                assert str(refused(body, "arrow")).startswith(f"row 2: t is {shown}")

    def test_files(self):
        columns = {"u": ["a", "b"], "v": pa.array(["c", "c"]).dictionary_encode()}
        assert read(ipc(columns, file=True), "arrow")[:2] == (["a", "b"], ["c", "c"])

    def test_rows_of_several_batches(self):
        body = ipc({"u": [1, 2, 3, 4, 5], "v": [1] * 5, "w": [1.0, 1, 1, 1, -1]}, rows=2)
        assert refused(body, "arrow").row == 5

    def test_large_unsigned_integers(self):
        body = ipc({"u": pa.array([1, 2**63], pa.uint64()), "v": [1, 2]})
        assert str(refused(body, "arrow")).startswith("row 2: u is 9223372036854775808, which does")

    def test_fractions(self):
        body = ipc({"u": [1.0, 2.5, float("nan")], "v": [1, 2, 3]})
        assert str(refused(body, "arrow")).startswith("row 2: u is 2.5, but a node id must be")
        assert decode_edges(body, "arrow", skip_bad=True).n_bad == 2

    @pytest.mark.parametrize("large", [False, True])
    def test_text_that_is_not_utf8(self, large):
        kinds = (pa.large_binary(), pa.large_string()) if large else (pa.binary(), pa.string())
        array = pa.array([b"a", b"\xff", b"c"], kinds[0]).view(kinds[1])
        body = ipc({"u": array, "v": ["x"] * 3})
        assert str(refused(body, "arrow")).startswith("row 2: u is not UTF-8")
        raw = decode_edges(body, "arrow", skip_bad=True)
        assert (ids(raw.u), raw.n_bad, raw.first_bad) == (["a", "c"], 1, "row 2: u is not UTF-8")

    @pytest.mark.parametrize(
        ("columns", "why"),
        [
            ({"u": [True], "v": [1]}, "u has type bool, but node ids must be integers or strings"),
            ({"u": [b"a"], "v": ["a"]}, "u has type binary, but node ids must be"),
            ({"u": [1], "v": ["a"]}, "u has type int64, but v has type string; cast them"),
            ({"u": [1], "v": [2], "w": ["1"]}, "w has type string, but weights must be numbers"),
            ({"u": [1], "v": [2], "t": [True]}, "t has type bool, but times must be dates or"),
            ({"u": [1], "v": [2], "x": [[1]]}, "column 'x' is nested; leave it out"),
            ({"u": [{"a": 1}], "v": [2]}, "column 'u' is nested; leave it out"),
        ],
    )
    def test_types_that_are_not_accepted(self, columns, why):
        assert str(refused(ipc(columns), "arrow")).startswith(why)

    def test_extension_types(self):
        storage = pa.array([b"0123456789abcdef"], pa.binary(16))
        array = pa.ExtensionArray.from_storage(pa.uuid(), storage)
        error = refused(ipc({"u": [1], "v": [2], "x": array}), "arrow")
        assert "extension type; cast it to its storage type" in str(error)

    @pytest.mark.parametrize("codec", ["lz4", "zstd"])
    def test_compressed_buffers(self, codec):
        columns = {"u": ["a" * 1000] * 99, "v": ["b"] * 99}
        for file in (False, True):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            error = refused(ipc(columns, file=file, options=options), "arrow")
            assert str(error).startswith("the buffers are compressed; send the stream uncompressed")

    def test_not_arrow(self):
        for body in (b"{}", b"u,v\n1,2\n", b"\xff\xff\xff\xff", b"ARROW1", b"ARROW1\0\0"):
            assert str(refused(body, "arrow")).startswith("the body is not an Arrow IPC stream")

    def test_cut_off_anywhere(self):
        body = ipc({"u": ["a", "b"], "v": ["c", "d"]})
        for size in range(1, len(body) - 8):  # the end of the stream may be missing
            with contextlib.suppress(BadBody):
                assert ids(decode_edges(body[:size], "arrow").u) == []  # only the schema is left

    def test_two_streams(self):
        body = ipc({"u": [1], "v": [2]})
        assert "follow the end of the Arrow IPC stream; send one" in str(refused(body * 2, "arrow"))

    def test_texts_that_many_rows_share(self, monkeypatch):
        monkeypatch.setattr(decode_arrow, "LARGEST_TEXT", 1 << 20)
        n = 2000
        text = pa.array(["a" * 1000])
        coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), text)
        view = np.tile(np.frombuffer(text.cast(pa.string_view()).buffers()[1], np.uint8, 16), n)
        data = text.cast(pa.string_view()).buffers()[2]
        views = pa.Array.from_buffers(pa.string_view(), n, [None, pa.py_buffer(view), data])
        views.validate(full=True)
        for array in (coded, views):
            body = ipc({"u": array, "v": array})
            why = "the texts of u have 1 MiB when they are written out, but may have at most 1"
            assert len(body) < 100_000
            assert why in str(refused(body, "arrow", max_id_bytes=5000))

    def test_declared_sizes(self):
        # Each 8 bytes of the metadata of a batch are replaced by a huge number. No outcome may
        # need more memory than the body has.
        view = pa.array(["a" * 30, "b" * 40]).cast(pa.string_view())
        body = ipc({"u": view, "v": view})
        pool = pa.default_memory_pool()
        before = pool.max_memory()
        start = len(ipc(pa.table({"u": view[:0], "v": view[:0]}), rows=1)) - 8
        for at in range(start, len(body) - 8, 4):
            for number in (2**31 - 1, 2**40, 2**62, 2**63 - 1):
                changed = body[:at] + number.to_bytes(8, "little") + body[at + 8 :]
                with contextlib.suppress(BadBody):
                    decode_edges(changed, "arrow")
        assert pool.max_memory() - before < 1 << 20

    def test_rows_without_buffers(self):
        # A column of nulls has no buffers, so any number of rows fits in a few bytes.
        nulls = pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])
        batch = pa.record_batch([nulls, nulls], names=["u", "v"])
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        body = sink.getvalue()
        assert "the body has 2,147,483,647 rows" in str(refused(body, "arrow"))

    def test_many_messages(self, monkeypatch):
        monkeypatch.setattr(ipc_messages, "MOST_MESSAGES", 10)
        body = ipc({"u": [1] * 20, "v": [2] * 20}, rows=1)
        assert "more than 10 messages; send larger record batches" in str(refused(body, "arrow"))

    def test_many_columns(self):
        columns = {f"c{i}": [1] for i in range(1001)}
        error = refused(ipc({"u": [1], "v": [2], **columns}), "arrow")
        assert str(error) == "the body has 1,003 columns; at most 1,000 are read"

    def test_delta_dictionaries(self):
        arrays = [pa.array(x).dictionary_encode() for x in (["a"], ["a", "b"])]
        sink = io.BytesIO()
        schema = pa.schema([("u", arrays[0].type), ("v", arrays[0].type)])
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            for array in arrays:
                writer.write_batch(pa.record_batch([array, array], schema=schema))
        assert "delta dictionary; send whole" in str(refused(sink.getvalue(), "arrow"))

    def test_dictionaries_that_are_replaced(self):
        sink = io.BytesIO()
        kind = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema([("u", kind), ("v", kind)])
        with pa.ipc.new_stream(sink, schema) as writer:
            for text in "ab":
                array = pa.array([text]).dictionary_encode()
                writer.write_batch(pa.record_batch([array, array], schema=schema))
        assert ids(decode_edges(sink.getvalue(), "arrow").u) == ["a", "b"]
