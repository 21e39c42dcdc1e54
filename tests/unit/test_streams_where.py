"""Filters: the same rows from every format, as another program chooses them."""

import numpy as np
import pytest

from ohmlearn import read_edges
from ohmlearn.reading import ReadOptions, SourceError
from ohmlearn.reading.where import columns_of, parse_where

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

N_ROWS = 300
SEED = 7


def make_table():
    random = np.random.default_rng(SEED)
    day = np.datetime64("2026-01-01T00:00") + random.integers(0, 50 * 24 * 60, N_ROWS).astype(
        "m8[m]"
    )
    amount = [None if x < 2 else int(x) - 10 for x in random.integers(0, 25, N_ROWS)]
    kind = [
        None if x == 3 else ["buy", "sell", 'it\'s, "odd"'][x]
        for x in random.integers(0, 4, N_ROWS)
    ]
    price = [None if x < 0.1 else float(x.round(3)) for x in random.random(N_ROWS)]
    return pa.table(
        {
            "src": random.integers(0, 30, N_ROWS),
            "dst": random.integers(30, 60, N_ROWS),
            "amount": pa.array(amount, pa.int64()),
            "kind": pa.array(kind),
            "price": pa.array(price, pa.float64()),
            "day": pa.array(day.astype("M8[s]")),
            "is_new": pa.array(random.random(N_ROWS) < 0.5),
            "row": np.arange(N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table in each format; its weights are the numbers of rows."""
    import csv
    import json

    folder = tmp_path_factory.mktemp("where")
    table = make_table()
    rows = table.to_pylist()
    paths = [folder / f"e.{ending}" for ending in ("csv", "tsv", "jsonl", "parquet", "arrow")]
    for path, mark in zip(paths[:2], ",\t", strict=True):
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, table.column_names, delimiter=mark, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    lines = (json.dumps({**row, "day": row["day"].isoformat()}) for row in rows)
    paths[2].write_text("".join(line + "\n" for line in lines))
    pq.write_table(table, paths[3], row_group_size=40)
    feather.write_feather(table, paths[4], chunksize=64)
    return paths


def rows_of(source, where, **options):
    stream = read_edges(
        source, source_col="src", target_col="dst", weight_col="row", where=where, **options
    )
    return [int(x) for batch in stream for x in batch.w]


def random_condition(random, depth=0):
    if depth < 3 and random.random() < 0.6:
        how = random.integers(0, 4)
        if how == 0:
            return f"not {random_condition(random, depth + 1)}"
        parts = random_condition(random, depth + 1), random_condition(random, depth + 1)
        return "({} {} {})".format(parts[0], "and" if how == 1 else "or", parts[1])
    column = random.choice(["amount", "price", "kind", "day", "is_new"])
    if random.random() < 0.15:
        return f"{column} is {random.choice(['', 'not '])}null"
    if column == "is_new":
        return f"is_new {random.choice(['=', '!='])} {random.choice(['true', 'false'])}"
    values = {
        "amount": ["3", "-2", "7", "4.5", "12"],
        "price": ["0.5", ".25", "1e-1", "1"],
        "kind": ["'buy'", "'sell'", "'it''s, \"odd\"'", "'zzz'"],
        "day": ["'2026-01-20'", "'2026-02-01 12:30'", "'2026-01-05T00:00:00'"],
    }[column]
    if random.random() < 0.25:
        some = ", ".join(random.choice(values, 2))
        return f"{column} {random.choice(['', 'not '])}in ({some})"
    operator = random.choice(["=", "!=", "<>", "<", "<=", ">", ">="])
    pair = [column, random.choice(values)]
    return f" {operator} ".join(pair if random.random() < 0.7 else pair[::-1])


def ask_sql(duckdb, where):
    with duckdb.connect() as connection:
        connection.register("edges", make_table())
        query = f"select row from edges where {where} order by row"
        return [row for (row,) in connection.execute(query).fetchall()]


def test_all_formats_agree_with_sql(files):
    duckdb = pytest.importorskip("duckdb")
    random = np.random.default_rng(SEED)
    n_chosen = 0
    for _ in range(40):
        where = random_condition(random)
        expected = ask_sql(duckdb, where)
        n_chosen += len(expected)
        for path in files:
            if expected:
                assert rows_of(path, where) == expected, (where, path.name)
            else:
                with pytest.raises(SourceError, match="no row fulfils where"):
                    rows_of(path, where)
    assert n_chosen > 10 * N_ROWS


def test_row_groups_that_cannot_have_such_rows_are_not_read(tmp_path):
    path = tmp_path / "e.parquet"
    n = 4000
    table = pa.table({"u": np.arange(n), "v": np.arange(n) + 1, "amount": np.arange(n)})
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False, compression="none")
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = b"x" * column.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read as Parquet"):
        list(read_edges(path))
    stream = read_edges(path, where="amount >= 2500")
    assert sum(len(batch.u) for batch in stream) == 1500


def test_rows_that_are_left_out_are_not_bad_and_messages_count_all_rows(tmp_path):
    texts = {
        "e.csv": "u,v,amount\n1,2,5\n,2,1\n3,,20\n",
        "e.jsonl": '{"u": 1, "v": 2, "amount": 5}\n{"v": 2, "amount": 1}\n{"u": 3, "amount": 20}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    columns = {"u": [1, None, 3], "v": [2, 2, None], "amount": [5, 1, 20]}
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    for name, row in {"e.csv": 4, "e.jsonl": 3, "e.parquet": 3}.items():
        stream = read_edges(tmp_path / name, where="amount = 5 or amount = 1", on_bad="skip")
        assert sum(len(batch.u) for batch in stream) == 1
        assert stream.n_bad == 1
        stream = read_edges(tmp_path / name, where="amount = 5")
        assert sum(len(batch.u) for batch in stream) == 1
        with pytest.raises(SourceError, match=f"{name}, row {row}: "):
            list(read_edges(tmp_path / name, where="amount > 2"))


def test_a_field_that_cannot_be_compared_is_bad_unless_the_rest_decides(tmp_path):
    csv, lines = tmp_path / "e.csv", tmp_path / "e.jsonl"
    csv.write_text("u,v,n,kind\n1,2,5,a\n3,4,many,a\n5,6,few,b\n")
    lines.write_text(
        '{"u": 1, "v": 2, "n": 5, "kind": "a"}\n'
        '{"u": 3, "v": 4, "n": "many", "kind": "a"}\n{"u": 5, "v": 6, "n": [], "kind": "b"}\n'
    )
    for path, row in ((csv, 3), (lines, 2)):
        why = f"row {row}: 'n' is not a number, which where needs: 'many'; correct it"
        with pytest.raises(SourceError, match=why):
            list(read_edges(path, where="n > 1"))
        stream = read_edges(path, where="n > 1", on_bad="skip")
        assert [batch.u.tolist() for batch in stream] == [[0]]
        assert (stream.n_bad, "many" in stream.first_bad) == (2, True)
        stream = read_edges(path, where="kind = 'a' and n < 100", on_bad="skip")
        assert sum(len(batch.u) for batch in stream) == 1
        assert stream.n_bad == 1


def test_records_of_several_lines_and_blocks(tmp_path):
    path = tmp_path / "e.csv"
    note = '"a\n""long""\nnote, ' + "x" * 1000 + '"'
    text = "u,v,note,n\n" + "".join(f"{i},{i + 1},{note},{i % 7}\n" for i in range(4000))
    path.write_text(text + "bad\n")
    assert len(text) > 3 << 20  # several blocks
    stream = read_edges(path, where="n = 3", on_bad="skip")
    found = [stream.nodes.ids()[batch.u] for batch in stream]
    assert np.concatenate(found).tolist() == [i for i in range(4000) if i % 7 == 3]
    with pytest.raises(SourceError, match=f"row {text.count(chr(10)) + 1}: "):
        list(read_edges(path, where="n = 3 or n is null"))


def test_text_without_names_has_positions(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("# a list\n1 2 0.5\n3 4 1.5\n")
    stream = read_edges(path, where='"2" > 1')
    assert [stream.nodes.ids()[batch.u].tolist() for batch in stream] == [[3]]
    with pytest.raises(SourceError, match="no names of columns, so there is no column 'w'"):
        read_edges(path, where="w > 1")
    with pytest.raises(SourceError, match="no column 7 for where, only 3"):
        read_edges(path, where='"7" > 1')


def test_integers_above_2_to_53_are_exact(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("u,v,id\n1,2,9007199254740992\n3,4,9007199254740993\n")
    stream = read_edges(path, where="id = 9007199254740993")
    assert [stream.nodes.ids()[batch.u].tolist() for batch in stream] == [[3]]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("amuont > 1", "has no column 'amuont' for where, only 'src', 'dst', 'amount'"),
        ("amount > 'x'", "compares 'amount' with a text, but it has type int64"),
        ("kind > 1", "compares 'kind' with a number, but it has type .*string.*quotes"),
        ("day > 5", "compares 'day' with a number, but it has type timestamp"),
        ("day = 'monday'", "compares 'day' with a text, .*write a date such as"),
        ("is_new = 1", "compares 'is_new' with a number, but it has type bool"),
    ],
)
def test_columns_and_types_are_checked_before_reading(files, where, message):
    with pytest.raises(SourceError, match=message):
        read_edges(files[3], source_col="src", target_col="dst", where=where)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "where is empty; write for example amount > 10"),
        ("a >", "a part is missing at the end"),
        ("a > b", "a column can only be compared with a value, so write 'b' in single quotes"),
        ('a = "b"', "write 'b' in single quotes for a text"),
        ("a = 'b", 'a quote is not closed at "\'b"'),
        ("a = 1 b = 2", "cannot be understood at 'b = 2'"),
        ("(a = 1", "a parenthesis is not closed at '(a = 1'"),
        ("a not 1", "cannot be understood at '1'"),
        ("a is 1", "cannot be understood at 'a is 1'"),
        ("a; drop table b", "cannot be understood at '; drop table b'"),
        ("__import__('os') = 1", "the name of a column is missing at"),
        ("a in (1, 'x')", "must have values of one type at"),
        ("not " * 300 + "a = 1", "more than 200 conditions"),
    ],
)
def test_what_cannot_be_understood_is_refused(where, message):
    with pytest.raises(ValueError, match="where") as caught:
        ReadOptions(where=where)
    assert message in str(caught.value)


def test_names_and_values_may_be_unusual():
    condition = parse_where("`a b` = 'it''s' AND \"c\"\"d\" < -1.5e3 Or Über.x IS NOT NULL")
    assert columns_of(condition) == ["a b", 'c"d', "Über.x"]
    assert columns_of(parse_where("x=-1 and y>.5")) == ["x", "y"]


def test_edges_without_columns_are_refused(tmp_path):
    with pytest.raises(SourceError, match="where = 'w > 1' needs a table with columns"):
        read_edges((np.array([0]), np.array([1])), where="w > 1")
    np.save(tmp_path / "e.npy", np.zeros((3, 2), dtype=int))
    with pytest.raises(SourceError, match="needs a table with columns"):
        read_edges(tmp_path / "e.npy", where="w > 1")
    with pytest.raises(TypeError, match="where must be a text"):
        ReadOptions(where=3)


def test_objects_may_leave_out_what_is_missing(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"u": 1, "v": 2}\n{"u": 3, "v": 4, "amount": 20}\n')
    stream = read_edges(path, where="amount > 10")
    assert [stream.nodes.ids()[batch.u].tolist() for batch in stream] == [[3]]
    stream = read_edges(path, where="amount is null")
    assert [stream.nodes.ids()[batch.u].tolist() for batch in stream] == [[1]]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1.5", [1, 2, 3]),
        ("n >= 2.0", [1, 2, 3]),
        ("n > 1.7e9", [3]),
        ("n <= 2.5", [0, 1]),
        ("not n = 2.5", [0, 1, 2, 3]),
        ("n != 2.5", [0, 1, 2, 3]),
        ("n in (1, 2.5, 1e30)", [0]),
        ("n < 1e30 and n > -1e30", [0, 1, 2, 3]),
        ("n > 1e30 or n < -1e30 or n = 2.5 or n in (0.5, 1e30)", []),
        ("n > 99999999999999999999 or n = 1152921504606846976", []),
    ],
)
def test_integers_are_compared_with_fractions_and_huge_numbers(tmp_path, where, expected):
    table = pa.table(
        {
            "src": ["a", "b", "c", "d", "e"],
            "dst": ["b", "c", "d", "a", "a"],
            "n": pa.array([1, 2, 20_000_001, 2**60 + 1, None], pa.int64()),
            "row": range(5),
        }
    )
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=2)
    lines = [
        ",".join("" if x is None else str(x) for x in row.values()) for row in table.to_pylist()
    ]
    (tmp_path / "e.csv").write_text("\n".join(["src,dst,n,row", *lines]) + "\n")
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "e.parquet")
    for source in (tmp_path / "e.parquet", tmp_path / "e.csv", table, dataset):
        if expected:
            assert rows_of(source, where) == expected
        else:
            with pytest.raises(SourceError, match="no row fulfils"):
                rows_of(source, where)
