"""Times that are missing, wrong or absurdly late are refused, or left out and counted."""

import datetime
import json

import numpy as np
import pytest
from refuses import refuses

from ohmlearn.errors import InputError, InputTypeError
from ohmlearn.reading import SourceError, read_edges

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

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
        (np.datetime64("2020-01-01"), np.datetime64("NaT"), "a time is missing"),
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
