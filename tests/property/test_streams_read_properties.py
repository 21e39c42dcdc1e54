"""Edges that are written are read again unchanged, and rows that are not edges are refused."""

import csv
import datetime
import io

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from ohmlearn.reading import SourceError, read_edges

pa = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")
parquet = pytest.importorskip("pyarrow.parquet")

integers = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63 - 1))
# An unquoted CSV field is on one line, and blanks around it are not part of it.
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1)
names = words.filter(lambda s: s.strip(" \t") == s and s != "")
weights = st.just(0.0) | st.floats(2**-126, 1e27)


@st.composite
def edge_lists(draw, ids):
    n = draw(st.integers(1, 30))
    column = st.lists(ids, min_size=n, max_size=n)
    w = draw(st.one_of(st.none(), st.lists(weights, min_size=n, max_size=n)))
    return draw(column), draw(column), w


def read_back(stream):
    batches = list(stream)
    ids = stream.nodes.ids()
    u, v = ([x for b in batches for x in ids[b[side]].tolist()] for side in (0, 1))
    w = None if batches[0].w is None else np.concatenate([b.w for b in batches]).tolist()
    return u, v, w


def as_text(u, v, w, mark):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(["source", "target"] + (["weight"] if w is not None else []))
    writer.writerows(zip(u, v, *([] if w is None else [w]), strict=True))
    return file.getvalue()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.one_of(edge_lists(integers), edge_lists(names)), st.sampled_from([",", "\t", ";", "|"]))
def test_csv_round_trip(tmp_path_factory, edges, mark):
    path = tmp_path_factory.mktemp("csv") / "e.csv"
    path.write_bytes(as_text(*edges, mark).encode())
    kind = "int64" if isinstance(edges[0][0], int) else "string"
    assert read_back(read_edges(path, delimiter=mark, id_type=kind)) == edges


# A quoted field may contain anything; delimiters, quotes and line ends are drawn often.
quoted = st.text(
    st.one_of(st.sampled_from(',;"\n\r #a1'), st.characters(exclude_categories=["Cs"])), min_size=1
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(edge_lists(quoted), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.data())
def test_quoted_csv_round_trip(tmp_path_factory, edges, end, skip, data):
    u, v, w = edges
    if end == "\r":  # line ends inside quotes would be translated as well
        u, v = ([name.replace("\r", "").replace("\n", "") or "x" for name in x] for x in (u, v))
    notes = data.draw(st.lists(quoted, min_size=len(u), max_size=len(u)))
    if end == "\r":
        notes = [note.replace("\n", "") for note in notes]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["source", "target", *(["weight"] if w else []), "note"])
    writer.writerows(zip(u, v, *([w] if w else []), notes, strict=True))
    path = tmp_path_factory.mktemp("quoted") / "e.csv"
    path.write_bytes(file.getvalue().encode())
    stream = read_edges(path, delimiter=",", id_type="string", on_bad="skip" if skip else "raise")
    assert read_back(stream) == (u, v, w)
    assert stream.n_bad == 0


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.one_of(edge_lists(integers), edge_lists(st.text(min_size=1))),
    st.sampled_from(["parquet", "arrow"]),
)
def test_arrow_round_trip(tmp_path_factory, edges, kind):
    path = tmp_path_factory.mktemp("arrow") / f"e.{kind}"
    columns = dict(zip(["source", "target", "weight"], edges, strict=True))
    table = pa.table({name: values for name, values in columns.items() if values is not None})
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=7)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    assert read_back(read_edges(path)) == edges


@settings(max_examples=100, deadline=None)
@given(edge_lists(integers), st.data())
def test_bad_rows_are_found_where_they_are(tmp_path_factory, edges, data):
    lines = as_text(*edges, ",").splitlines()
    at = data.draw(st.integers(1, len(lines)))
    bad = ["7", "x,y,z", ",1,1", "1,,1", '"1,2,3', "1.5,2,2", "1 2,3,4"]
    lines.insert(at, data.draw(st.sampled_from(bad)))
    path = tmp_path_factory.mktemp("bad") / "e.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(SourceError, match=f"e.csv, row {at + 1}: "):
        list(read_edges(path, id_type="int64"))
    stream = read_edges(path, id_type="int64", on_bad="skip")
    assert read_back(stream) == edges
    assert stream.n_bad == 1


plain_times = st.floats(-1e6, 1e6)
moments = st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2026, 1, 1))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(["T", " "]), st.sampled_from([",", "\t"]))
def test_times_are_the_same_in_text_and_arrow(tmp_path_factory, data, between, mark):
    n = data.draw(st.integers(1, 20))
    kind = data.draw(st.sampled_from([plain_times, moments]))
    t = data.draw(st.lists(kind, min_size=n, max_size=n))
    folder = tmp_path_factory.mktemp("times")
    shown = [x.isoformat(between) if isinstance(x, datetime.datetime) else repr(x) for x in t]
    rows = [f"{i}{mark}{i + 1}{mark}{text}" for i, text in enumerate(shown)]
    (folder / "e.csv").write_text("\n".join([mark.join("uvt"), *rows, ""]))
    table = pa.table({"u": range(n), "v": range(1, n + 1), "t": t})
    parquet.write_table(table, folder / "e.parquet")
    values = np.array(t, dtype="M8[us]" if kind is moments else np.float64)
    arrays = (np.arange(n), np.arange(1, n + 1), None, values)
    streams = [read_edges(folder / "e.csv", time="t", delimiter=mark)]
    streams += [read_edges(source, time="t") for source in (folder / "e.parquet", arrays)]
    found = [[x for batch in stream for x in batch.t.tolist()] for stream in streams]
    assert found[0] == found[1] == found[2]
    if kind is plain_times:
        assert found[0] == t
    else:
        zone = datetime.UTC
        assert found[0] == pytest.approx([x.replace(tzinfo=zone).timestamp() for x in t], abs=1e-5)
