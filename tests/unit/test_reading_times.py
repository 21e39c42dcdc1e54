"""Times of edges: the same in every format; bad ones are refused, or left out and counted."""

import datetime
import io
import json
import sys
from decimal import Decimal

import numpy as np
import pytest
from refuses import refuses
from row_files import write_rows
from stream_cases import edges

from ohmlearn.errors import InputError, InputTypeError
from ohmlearn.reading import SourceError, read_edges

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

U, V = ["ann", "bob", "cy", "ann"], ["bob", "cy", "ann", "cy"]
W = [1.0, 0.5, 2.0, 3.0]
# One moment per event, out of order, one of them before 1970.
DATES = np.array(
    ["2026-03-31T12:30:15.123456", "2001-09-09T01:46:40", "1969-12-31T23:59:59.75", "2026-03-31"],
    "M8[us]",
)
SECONDS = [1774960215.123456, 1e9, -0.25, 1774915200.0]
TEXTS = ["2026-03-31T14:30:15.123456+02:00", "2001-09-09 01:46:40", "1969-12-31T23:59:59.750Z"]
TEXTS.append("2026-03-31")


def times(stream):
    batches = list(stream)
    assert all(batch.t is not None for batch in batches)
    assert all(len(batch.t) == len(batch.u) == len(batch.v) for batch in batches)
    assert all(batch.t.dtype == np.float64 for batch in batches)
    return [t for batch in batches for t in batch.t.tolist()]


def rows(t):
    return {"src": U, "dst": V, "weight": W, "ts": t}


def table(t):
    return pa.table(rows(t))


def write_sources(folder, texts, values):
    """The same events in each format that can hold them."""
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        yield write_rows(folder / f"text.{ending}", rows(texts))
    (folder / "semi.csv").write_text((folder / "text.csv").read_text().replace(",", ";"))
    yield folder / "semi.csv"
    for ending in ("parquet", "feather", "npz"):
        yield write_rows(folder / f"e.{ending}", rows(values), 3)
    yield table(values)
    yield table(values).to_batches(max_chunksize=1)
    yield table(values).to_pandas()
    record = np.empty(4, [("src", "U3"), ("dst", "U3"), ("weight", "f8"), ("ts", values.dtype)])
    record["src"], record["dst"], record["weight"], record["ts"] = U, V, W, values
    np.save(folder / "e.npy", record)
    yield folder / "e.npy"


@pytest.mark.parametrize(
    ("texts", "values", "seconds", "unit"),
    [
        (TEXTS, DATES, SECONDS, "date"),
        (
            ["1990", "1991.5", "-3", "1e15"],
            np.array([1990, 1991.5, -3, 1e15]),
            [1990.0, 1991.5, -3.0, 1e15],
            None,
        ),
        (
            [str(1700000000123456789 + i) for i in (0, 1000, 10**6, 3)],
            np.array([1700000000123456789 + i for i in (0, 1000, 10**6, 3)]),
            [float(1700000000123456789 + i) for i in (0, 1000, 10**6, 3)],
            "ns",
        ),
    ],
)
def test_every_format_gives_the_same_times(tmp_path, texts, values, seconds, unit):
    for source in write_sources(tmp_path, texts, values):
        stream = read_edges(source, time="ts")
        assert stream.has_times
        assert times(stream) == seconds, source
        assert stream.time_unit == unit
        ids = stream.nodes.ids()
        batches = list(stream)
        assert [x for b in batches for x in ids[b.u].tolist()] == U
        assert [x for b in batches for x in b.w.tolist()] == W


def test_arrays_and_iterables():
    u, v = np.arange(4), np.arange(4)[::-1]
    assert times(read_edges((u, v, None, DATES), time=True)) == SECONDS
    assert times(read_edges((u, v, np.array(W), np.array(SECONDS)), time="t")) == SECONDS
    parts = [(u[:3], v[:3], None, DATES[:3]), (u[3:], v[3:], None, DATES[3:])]
    stream = read_edges(parts, time=3)
    assert times(stream) == SECONDS
    assert stream.columns == "u = 'u', v = 'v', no weights, times = 't'"
    python = [d.replace(tzinfo=datetime.UTC) for d in DATES.tolist()]
    assert times(read_edges([(u, v, None, python)], time=True)) == SECONDS
    assert times(read_edges([(u, v, None, TEXTS)], time=True)) == SECONDS
    numbers = [1, 2.5, Decimal("3.5"), "4"]
    assert times(read_edges([(u, v, None, numbers)], time=True)) == [1.0, 2.5, 3.5, 4.0]


def test_pandas_series_with_a_time_zone():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(DATES).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    u = np.arange(4)
    assert times(read_edges((u, u[::-1], None, series), time=True)) == SECONDS


@pytest.mark.parametrize(
    ("time", "ends", "w", "t"),
    [
        (True, [0, 1, 1, 2], [5, 6], [100, 50]),
        (3, [0, 1, 1, 2], [5, 6], [100, 50]),
        (2, [0, 1, 1, 2], [100, 50], [5, 6]),
        (0, [1, 2, 5, 6], [100, 50], [0, 1]),  # the others are u, v, w
    ],
)
def test_columns_of_an_npy_file(tmp_path, time, ends, w, t):
    np.save(tmp_path / "e.npy", np.array([[0, 1, 5, 100], [1, 2, 6, 50]]))
    stream = read_edges(tmp_path / "e.npy", time=time)
    (batch,) = stream
    assert stream.nodes.ids()[[*batch.u, *batch.v]].tolist() == ends
    assert (batch.w.tolist(), batch.t.tolist()) == (w, t)


def test_three_columns_of_an_npy_file(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[0, 1, 5, 100], [1, 2, 6, 50]]))
    with pytest.raises(ValueError, match="has four columns; if the last one has times, use time=3"):
        read_edges(tmp_path / "e.npy")
    np.save(tmp_path / "e.npy", np.array([[0, 1, 100], [1, 2, 50]]))
    (batch,) = read_edges(tmp_path / "e.npy", time=2)
    assert (batch.w, batch.t.tolist()) == (None, [100, 50])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(DATES, pa.timestamp("us", "Europe/Berlin")), SECONDS),  # DATES are in UTC
        (pa.array(DATES.astype("M8[ms]"), pa.timestamp("ms")), [1774960215.123, *SECONDS[1:]]),
        (pa.array(DATES.astype("M8[ns]"), pa.timestamp("ns", "UTC")), SECONDS),
        (pa.array(DATES.astype("M8[s]"), pa.timestamp("s")), [1774960215.0, 1e9, -1.0, SECONDS[3]]),
        (pa.array([20543, 0, -1, 1], pa.date32()), [1774915200.0, 0.0, -86400.0, 86400.0]),
        (pa.array([86400000] * 4, pa.date64()), [86400.0] * 4),
        (pa.array([1, 2, 3, 4], pa.uint8()), [1.0, 2.0, 3.0, 4.0]),
        (pa.array([0.5, 2, 3, 4], pa.float32()), [0.5, 2.0, 3.0, 4.0]),
        (pa.array([Decimal("1.25"), Decimal(2), Decimal(3), Decimal(-4)]), [1.25, 2.0, 3.0, -4.0]),
        (pa.array(TEXTS).dictionary_encode(), SECONDS),
        (pa.array(TEXTS, pa.large_string()), SECONDS),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else "",
)
def test_types_of_arrow(tmp_path, values, expected):
    assert times(read_edges(table(values), time="ts")) == expected
    parquet.write_table(table(values), tmp_path / "e.parquet")
    assert times(read_edges(tmp_path / "e.parquet", time="ts")) == expected


def test_types_of_arrow_that_are_no_times():
    with pytest.raises(ValueError, match="numbers or dates, but 'ts' has type bool; cast it, or"):
        list(read_edges(table([True] * 4), time="ts"))


def test_slices_of_arrow():
    found = read_edges(table(pa.array(TEXTS)).slice(1, 2), time="ts")
    assert times(found) == SECONDS[1:3]
    assert times(read_edges(table(pa.array(DATES)).slice(1, 2), time="ts")) == SECONDS[1:3]


def test_snap_text_with_a_time(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("# temporal\n1 2 1254192988\n2\t3\t1254194656\n")
    stream = read_edges(path, time=2)
    assert times(stream) == [1254192988.0, 1254194656.0]
    assert stream.time_unit == "s"
    assert (
        stream.columns == "u = column 0, v = column 1, no weights, times = column 2 (ends guessed)"
    )
    path.write_text("1 2 2026-03-31 12:30:00\n2 3 2026-03-31\n")
    assert times(read_edges(path, time=2)) == [1774960200.0, 1774915200.0]


def test_standard_input(monkeypatch, tmp_path):
    data = write_rows(tmp_path / "e.csv", rows(TEXTS)).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    stream = read_edges("-", time=True)
    assert stream.time_unit is None  # nothing has been read
    assert times(stream) == SECONDS
    assert stream.time_unit == "date"


def test_without_time_they_are_not_read(tmp_path):
    stream = read_edges(write_rows(tmp_path / "e.csv", rows(["x"] * 4)))
    assert not stream.has_times
    assert stream.time_unit is None
    assert all(batch.t is None for batch in stream)
    u = np.arange(2)
    (batch,) = read_edges((u, u[::-1], None, np.array([np.nan, 0])))
    assert batch.t is None


@pytest.mark.parametrize(
    ("header", "options", "columns"),
    [
        ("src,dst,ts", {"time": True}, "u = 'src', v = 'dst', no weights, times = 'ts' (guessed)"),
        ("Created_At,a,b", {"time": True}, "u = 'a', v = 'b', no weights, times = 'Created_At' (g"),
        (
            "t,time,a,b",
            {"time": True, "source_col": "a", "target_col": "b"},
            "times = 'time' (times gue",
        ),
        ("t,a,b", {"time": "t", "source_col": "a", "target_col": "b"}, "no weights, times = 't'"),
        ("u,v,a", {"time": "v"}, "u = 'u', v = 'a', no weights, times = 'v' (ends guessed)"),
        ("u,v,w", {"time": "w"}, "u = 'u', v = 'v', no weights, times = 'w' (ends guessed)"),
        ("u,v,w,weight", {"time": "w"}, "weights = 'weight', times = 'w' (ends guessed)"),
        ("date,t", {"time": True, "source_col": "date"}, "needs two columns and one of times"),
    ],
)
def test_which_columns_are_used(tmp_path, header, options, columns):
    path = tmp_path / "e.csv"
    path.write_text(header + "\n" + ",".join("1234"[: header.count(",") + 1]) + "\n")
    if columns.startswith("needs"):
        with pytest.raises(ValueError, match=columns):
            read_edges(path, **options)
        return
    found = read_edges(path, **options).columns
    assert columns in found
    assert found.endswith("guessed)") == (" (" in columns)


def test_the_unit_is_known_before_reading(tmp_path):
    path = write_rows(tmp_path / "e.csv", rows([1.7e12, 1.6e12, 1.5e12, 1.4e12]))
    stream = read_edges(path, time=True)
    assert stream.time_unit == "ms"
    assert len(stream.nodes) == 0
    assert len(edges(stream)[0]) == 4


def test_latest_limits_times(tmp_path):
    path = write_rows(tmp_path / "e.csv", rows([1, 2, 3, 4]))
    stream = read_edges(path, time=True, latest=2.5, on_bad="skip")
    assert times(stream) == [1.0, 2.0]
    assert stream.n_bad == 2
    assert "row 4: the time, 'ts', is '3', later than latest = 2.5" in stream.first_bad
    path = write_rows(tmp_path / "e.csv", rows(["2090-01-01", "2091-01-01", "2092-01-01", "1"]))
    stream = read_edges(path, time=True, latest="2091-06-01", on_bad="skip")
    assert times(stream) == [3786912000.0, 3818448000.0]
    ms = np.array([1.7e12, 1.71e12, 3.8e12, 3.9e12])
    stream = read_edges(
        (np.arange(4), np.arange(4)[::-1], None, ms), time=True, latest="2091-01-01"
    )
    with refuses(SourceError, parameter="latest", value="2091-01-01"):
        list(stream)


def test_sources_of_one_stream_share_a_unit(tmp_path):
    seconds = write_rows(tmp_path / "a.csv", rows([1.7e9, 1.6e9, 1.5e9, 1.4e9]))
    dates = write_rows(tmp_path / "b.csv", rows(TEXTS))
    milliseconds = write_rows(tmp_path / "c.csv", rows([1.7e12, 1.6e12, 1.5e12, 1.4e12]))
    plain = write_rows(tmp_path / "d.csv", rows([1, 2, 3, 4]))
    assert times(read_edges([seconds, dates], time=True))[4:] == SECONDS
    assert times(read_edges([dates, seconds], time=True))[:4] == SECONDS
    assert times(read_edges([plain, seconds], time=True))[0] == 1.0
    with pytest.raises(ValueError, match=r"a.csv: times are Unix times in s, but they were Unix t"):
        list(read_edges([milliseconds, seconds], time=True))
    with pytest.raises(ValueError, match=r"b.csv: times are dates, but they were Unix times in ms"):
        list(read_edges([milliseconds, dates], time=True))
    with pytest.raises(ValueError, match=r"d.csv: times are numbers that are not Unix times, but"):
        list(read_edges([dates, plain], time=True))
    with pytest.raises(ValueError, match=r"c.csv, row 2: the time, 'ts', is '17000.*', later than"):
        list(read_edges([seconds, milliseconds], time=True))


DATE_FAULTS = [
    ("", "missing"),
    ("soon", "must be a date such as 2026-03-31 or 2026-03-31T12:30:00Z, got 'soon'"),
    ("nan", "must be a date such as"),
    ("17", "must be a date such as"),
    ("2026-02-30", "must be a date such as"),
    ("31.03.2026", "must be a date such as"),
    ("9999-12-31", r"later than tomorrow \(give latest for another limit\)"),
    ("2062-01-01T00:00:00", "later than tomorrow"),
]
NUMBER_FAULTS = [
    ("", "missing"),
    ("soon", "must be a finite number"),
    ("nan", "missing|must be a finite number"),
    ("inf", "below 2..63 in size|must be a finite number"),
    ("-inf", "below 2..63 in size|must be a finite number"),
    ("-1e300", "below 2..63 in size|must be a finite number"),
    ("2026-03-31", "must be a finite number"),
    ("2903299200", "later than tomorrow"),  # 2062
    ("1700000000000", "later than tomorrow"),  # ms among s
]
FAULTS = [("2020-01-01T00:00:00", *fault) for fault in DATE_FAULTS]
FAULTS += [("1577836800", *fault) for fault in NUMBER_FAULTS]


def check(source, place, message, **options):
    with pytest.raises(SourceError, match=f"{place}: .*({message})"):
        list(read_edges(source, **{"time": "ts"} | options))
    with pytest.raises(SourceError, match='on_bad="skip"'):
        list(read_edges(source, **{"time": "ts"} | options))
    stream = read_edges(source, on_bad="skip", **{"time": "ts"} | options)
    kept = [t for batch in stream for t in batch.t.tolist()]
    assert kept == [1577836800.0, 1577836800.0]
    assert (stream.n_bad, stream.n_edges) == (1, 2)
    assert stream.first_bad is not None
    ids = stream.nodes.ids()
    assert [x for batch in stream for x in ids[batch.u].tolist()] == [1, 2]


@pytest.mark.parametrize(("good", "bad", "message"), FAULTS)
def test_bad_times_in_text_and_json(tmp_path, good, bad, message):
    path = tmp_path / "e.csv"
    path.write_text(f"u,v,ts\n1,2,{good}\n3,4,{bad}\n2,1,{good}\n")
    check(path, "e.csv, row 3", message)
    path = tmp_path / "other.csv"  # not in the columns of the fast path
    path.write_text(f"ts,u,v\n{good},1,2\n{bad},3,4\n{good},2,1\n")
    check(path, "other.csv, row 3", message)
    path = tmp_path / "e.jsonl"
    rows = [(1, 2, good), (3, 4, bad), (2, 1, good)]
    path.write_text("".join(json.dumps({"u": a, "v": b, "ts": t}) + "\n" for a, b, t in rows))
    check(path, "e.jsonl, row 2", message)
    check(pa.table({"u": [1, 3, 2], "v": [2, 4, 1], "ts": [good, bad, good]}), "row 1", message)
    arrays = ([1, 3, 2], [2, 4, 1], None, [good, bad, good])
    check([arrays], "the list, batch 0, row 1", message, time=True)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (1577836800.0, np.nan, "a time is missing"),
        (1577836800.0, np.inf, "below 2..63 in size"),
        (1577836800.0, -np.inf, "below 2..63 in size"),
        (1577836800.0, 2903299200.0, "a time is 2903299200, later than tomorrow"),
        (np.datetime64("2020-01-01"), np.datetime64("NaT", "D"), "a time is missing"),
        (np.datetime64("2020-01-01"), np.datetime64("9999-12-31"), "a time is 9999-12-31T00:00:00"),
    ],
)
def test_bad_times_in_arrays(tmp_path, good, bad, message):
    u, v, t = np.array([1, 3, 2]), np.array([2, 4, 1]), np.array([good, bad, good])
    check((u, v, None, t), "the arrays, row 1", message, time=True)
    np.savez(tmp_path / "e.npz", u=u, v=v, ts=t)
    check(tmp_path / "e.npz", "e.npz, row 2", message)
    parquet.write_table(pa.table({"u": u, "v": v, "ts": t}), tmp_path / "e.parquet")
    check(tmp_path / "e.parquet", "e.parquet, row 2", message)


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.string(), pa.float64()])
def test_nulls_of_arrow(kind):
    good = 1577836800.0 if kind == pa.float64() else "2020-01-01"
    good = datetime.datetime(2020, 1, 1) if kind in (pa.timestamp("us"), pa.date32()) else good
    t = pa.array([good, None, good], kind)
    check(pa.table({"u": [1, 3, 2], "v": [2, 4, 1], "ts": t}), "row 1", "a time is missing")


def test_json_values_that_are_no_times(tmp_path):
    path = tmp_path / "e.jsonl"
    for bad in ("true", "null", "[1]", "{}", "1e999", "1" + "0" * 400):
        lines = ['{"u":1,"v":2,"ts":1577836800}', f'{{"u":3,"v":4,"ts":{bad}}}']
        path.write_text("\n".join([*lines, '{"u":2,"v":1,"ts":1577836800}']))
        check(path, "e.jsonl, row 2", "missing|must be|below")
    path.write_text("\n".join([lines[0], '{"u":3,"v":4}', '{"u":2,"v":1,"ts":1577836800}']))
    check(path, "e.jsonl, row 2", "a time is missing")


def test_the_first_bad_row_is_named_whatever_is_wrong_with_it(tmp_path):
    path = tmp_path / "e.jsonl"
    lines = ['{"u":1,"v":2,"ts":7}', '{"u":1,"v":2,"ts":"x"}', '{"u":null,"v":2,"ts":7}', "rubbish"]
    for order in ([0, 1, 2, 3], [0, 3, 2, 1], [0, 2, 1, 3]):
        path.write_text("\n".join(lines[at] for at in order))
        stream = read_edges(path, time="ts", on_bad="skip")
        assert sum(len(batch.u) for batch in stream) == 1
        assert stream.n_bad == 3
        assert "row 2:" in stream.first_bad
    table = pa.table({"u": [1, 1, None], "v": [2, 2, 2], "w": [1.0, -1.0, 1.0], "t": [7, 7, None]})
    with pytest.raises(SourceError, match="row 1: weights must not be negative"):
        list(read_edges(table, time="t"))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("src,dst,when\n1,2,3\n", {"time": True}, r"e.csv: no column has a usual name .* 'src'"),
        ("src,dst,when\n1,2,3\n", {"time": "ts"}, "has no column 'ts', only 'src', 'dst', 'when'"),
        ("src,dst,when\n1,2,3\n", {"time": "dst", "source_col": "src", "target_col": "dst"},
         "needs different columns, got 0 and 1, and 1 for the times"),
        ("1 2 3\n", {"time": True}, "cannot be guessed; give its position, for example time=2"),
        ("1 2\n", {"time": True}, "cannot be guessed; the edges seem to have no times"),
        ("1 2 3\n", {"time": 3}, "has no column 3, only 3 of them"),
        (None, {"time": True}, r"fourth of the arrays \(u, v, w, t\), got time = True and "),
        ([([1], [2], None, [3])], {"time": "ts"}, r"batch 0: times are the fourth .*time = 'ts'"),
        ([([1], [2], None, [3])], {"time": 1}, "the fourth .*, got time = 1; use time=True"),
    ],
)  # fmt: skip
def test_no_column_of_times(tmp_path, text, options, message):
    source = text or (np.arange(2), np.arange(2))
    if isinstance(text, str):
        source = tmp_path / ("e.csv" if "," in text else "e.txt")
        source.write_text(text)
    with pytest.raises(SourceError, match=message):
        list(read_edges(source, **options))


def test_matrices_have_no_times(tmp_path):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "e.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    with pytest.raises(SourceError, match=r"e.mtx: a matrix has no times; write the edges to CSV"):
        read_edges(path, time=True)
    scipy_sparse.save_npz(tmp_path / "e.npz", scipy_sparse.csr_array(np.eye(2)))
    with pytest.raises(SourceError, match=r"e.npz: a matrix has no times; save columns"):
        read_edges(tmp_path / "e.npz", time=True)


@pytest.mark.parametrize(
    ("options", "error", "parameter"),
    [
        ({"time": 2.5}, InputTypeError, "time"),
        ({"time": False}, InputTypeError, "time"),
        ({"latest": 5}, InputError, "latest"),
        ({"time": True, "latest": "soon"}, InputError, "latest"),
        ({"time": 3, "latest": "2026-01-01"}, SourceError, "latest"),  # these are no dates
    ],
)
def test_options_are_checked(options, error, parameter):
    with refuses(error, parameter=parameter):
        list(read_edges((np.arange(2), np.arange(2), None, np.arange(2)), **options))
