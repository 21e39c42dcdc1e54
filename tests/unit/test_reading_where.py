"""Conditions: the same rows from every format, as plain Python chooses them."""

import csv
import datetime
import json
import operator
import sys

import numpy as np
import pytest
from stream_cases import edges

from ohmlearn import read_edges
from ohmlearn.reading import ReadOptions, SourceError
from ohmlearn.reading.where import columns_of, parse_where

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 200
RNG = np.random.default_rng(7)
DAYS = [
    datetime.datetime(2026, 1, 1 + int(i) % 28, 12 * (int(i) % 2)) for i in RNG.integers(0, 99, N)
]
BIG = 2**60 + 1
VALUES = {  # of a column, and those that it is compared with
    "n": ([-3, 2, 20_000_001, BIG, None], ["2", "2.0", "2.5", "-3", str(BIG - 1), "1e30", "-1e30"]),
    "price": ([0.25, 1.0, -1e300, None], [".25", "1", "2e-1", "-1e300"]),
    "text": (["buy", "sell", 'it\'s, "odd"', None], ["'buy'", "'it''s, \"odd\"'", "'c'"]),
    "day": ([*DAYS, None], ["'2026-01-15'", "'2026-01-05 12:00'", "'2026-01-20T00:00:00Z'"]),
    "new": ([True, False, None], ["true", "FALSE"]),
    "none": ([None], ["3", "'x'", "'2026-01-15'", "true"]),
}
TYPES = [pa.int64(), pa.float64(), pa.string(), pa.timestamp("s"), pa.bool_(), pa.large_string()]
COMPARISONS = {"=": "eq", "==": "eq", "!=": "ne", "<>": "ne"}
COMPARISONS |= {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ROWS = [
    {"src": int(a), "dst": int(b), "row": i}
    | {x: v[RNG.integers(len(v))] for x, (v, _) in VALUES.items()}
    for i, (a, b) in enumerate(RNG.integers(0, 40, (N, 2)))
]
TABLE = pa.table(
    {x: [row[x] for row in ROWS] for x in ("src", "dst", "row")}
    | {x: pa.array([row[x] for row in ROWS], t) for x, t in zip(VALUES, TYPES, strict=True)}
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table in each format."""
    folder = tmp_path_factory.mktemp("where")
    for name, mark in (("e.csv", ","), ("e.tsv", "\t")):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, TABLE.column_names, delimiter=mark, lineterminator="\n")
            writer.writeheader()
            writer.writerows(ROWS)
    (folder / "e.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in ROWS))
    pq.write_table(TABLE, folder / "e.parquet", row_group_size=30)
    with pa.ipc.new_file(folder / "e.arrow", TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=64)
    return {path.suffix: path for path in sorted(folder.iterdir())}


def rows_of(source, where, **options):
    how = {"source_col": "src", "target_col": "dst", "weight_col": "row", **options}
    try:
        return [int(x) for batch in read_edges(source, where=where, **how) for x in batch.w]
    except SourceError as error:
        assert "no row fulfils where" in str(error)  # noqa: PT017
        return []


def evaluate(text):
    """Return the value that a text means in a condition."""
    if text[0] == "'":
        inner = text[1:-1].replace("''", "'").replace("Z", "")
        return datetime.datetime.fromisoformat(inner) if inner[:4] == "2026" else inner
    return (
        text.lower() == "true"
        if text[0] in "tF"
        else float(text)
        if set(text) & set(".e")
        else int(text)
    )


@pytest.mark.slow
@pytest.mark.parametrize("column", VALUES)
def test_all_operators_in_all_formats(files, column):
    texts = VALUES[column][1] if column != "none" else VALUES[column][1][1:2]  # its type is text
    tests = {
        f"{column} is null": lambda x: x is None,
        f"{column} is not null": lambda x: x is not None,
    }
    for name, function in COMPARISONS.items():
        for text in texts:
            test = getattr(operator, function)
            tests[f"{column} {name} {text}"] = lambda x, f=test, t=text: (
                x is not None and f(x, evaluate(t))
            )
    some = [evaluate(text) for text in texts]
    tests[f"{column} in ({', '.join(texts)})"] = lambda x: x is not None and x in some
    tests[f"not {column} not in ({texts[0]})"] = lambda x: x is not None and x == some[0]
    tests[f"{texts[0]} < {column} or not {column} != {texts[-1]}"] = lambda x: (
        x is not None and (x > some[0] or x == some[-1])
    )
    for where, holds in tests.items():
        expected = [row["row"] for row in ROWS if holds(row[column])]
        for source in (*files.values(), TABLE):
            assert rows_of(source, where) == expected, (where, source)


def test_a_condition_that_always_holds_changes_nothing(files):
    how = {"source_col": "src", "target_col": "dst", "weight_col": "row"}
    for path in files.values():
        expected = edges(read_edges(path, **how))
        for n_jobs in (1, 4):
            stream = read_edges(path, **how, where="row >= 0")
            batches = list(stream.batches(n_jobs))
            u, v, w = (np.concatenate([batch[at] for batch in batches]) for at in range(3))
            ids = stream.nodes.ids()
            assert (ids[u].tolist(), ids[v].tolist(), w.tolist()) == expected


def test_standard_input_has_conditions(files, monkeypatch):
    with files[".csv"].open("rb") as file:
        monkeypatch.setattr(sys, "stdin", type("", (), {"buffer": file})())
        assert rows_of("-", "n = 2") == rows_of(files[".csv"], "n = 2") != []


def test_row_groups_that_cannot_have_such_rows_are_not_read(tmp_path):
    path = tmp_path / "e.parquet"
    table = pa.table({x: np.arange(4000) for x in ("u", "v", "n")})
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False, compression="none")
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content, start = bytearray(path.read_bytes()), column.data_page_offset
    content[start : start + column.total_compressed_size] = b"x" * column.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read as Parquet"):
        list(read_edges(path, where="n >= 1000"))
    for where in ("n >= 2500", "n > 2499.5 and u is not null", "n in (2500, 3999) or n > 2500"):
        assert sum(len(batch.u) for batch in read_edges(path, where=where)) == 1500


def test_bad_rows_are_named_unless_the_condition_leaves_them_out(tmp_path):
    rows = [("1", 5, "a"), (None, 1, "a"), ("3", "many", "a"), ("4", "few", "b"), (None, 20, "b")]
    names = ("src", "n", "kind")
    lines = [json.dumps({"dst": "9", **dict(zip(names, row, strict=True))}) for row in rows]
    (tmp_path / "e.jsonl").write_text("\n".join(lines))
    text = "\n".join(",".join(["9", *("" if x is None else str(x) for x in row)]) for row in rows)
    (tmp_path / "e.csv").write_text("dst,src,n,kind\n" + text)
    for name, first in (("e.csv", 2), ("e.jsonl", 1)):
        path = tmp_path / name
        why = f"{name}, row {first + 2}: 'n' is not a number, which where needs: 'many'; correct it"
        for where, message in (
            ("n > 4", why),
            ("kind = 'a' and src is null", f"row {first + 1}: .*'src'"),
        ):
            with pytest.raises(SourceError, match=message):
                list(read_edges(path, where=where))
        for where, n_bad in (("n > 4", 3), ("kind = 'a' and n > 4", 1), ("kind = 'c' or n < 9", 3)):
            stream = read_edges(path, where=where, on_bad="skip")
            assert (sum(len(batch.u) for batch in stream), stream.n_bad) == (1, n_bad)


def test_records_of_several_lines_and_columns_without_names(tmp_path):
    note = '"a\n""long""\nnote, ' + "x" * 1000 + '"'
    text = "".join(f"{i},{i + 1},{note},{i % 7}\n" for i in range(4000))  # several blocks
    (tmp_path / "e.csv").write_text(text + "bad\n")
    stream = read_edges(tmp_path / "e.csv", where='"3" = 3', on_bad="skip")
    assert edges(stream)[0] == [i for i in range(4000) if i % 7 == 3]
    with pytest.raises(SourceError, match=f"row {text.count(chr(10)) + 1}: "):
        list(read_edges(tmp_path / "e.csv", where='"3" = 3 or "3" is null'))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "where is empty; write for example amount > 10"),
        ("n >", "a column, a value or a parenthesis is missing at the end"),
        ("n > b", "a column can only be compared with a value, so write 'b' in single quotes"),
        ("n = 'b", 'a quote is not closed at "\'b"'),
        ("n = 1 b = 2", "cannot be understood at 'b = 2'"),
        ("(n = 1", "a parenthesis is not closed at '(n = 1'"),
        ("n; drop table b", "cannot be understood at '; drop table b'"),
        ("__import__('os') = 1", "the name of a column is missing at"),
        ("n in (1, 'x')", "must have values of one type at \"(1, 'x')\""),
        ("not " * 300 + "n = 1", "more than 200 conditions"),
        ("m > 1", "has no column 'm' for where, only 'src', 'dst', 'row', 'n'"),
        ("n > 'x'", "where compares 'n' with a text, but it has type int64"),
        ("text > 1", "'text' with a number, but it has type string; write the value in quotes"),
        ("day = 'monday'", "but it has type timestamp[ms]; write a date such as '2026-03-31'"),
    ],
)
def test_what_cannot_be_understood_or_compared_is_refused_before_reading(files, where, message):
    with pytest.raises(ValueError, match="where") as caught:
        read_edges(files[".parquet"], source_col="src", target_col="dst", where=where)
    assert message in str(caught.value)


def test_names_may_be_unusual_and_arrays_have_none():
    condition = parse_where("`a b` = 'it''s' AND \"c\"\"d\" < -1.5e3 Or Über.x IS NOT NULL")
    assert columns_of(condition) == ["a b", 'c"d', "Über.x"]
    with pytest.raises(SourceError, match="where = 'w > 1' needs a table with columns"):
        read_edges((np.array([0]), np.array([1])), where="w > 1")
    with pytest.raises(TypeError, match="where must be a text"):
        ReadOptions(where=3)
