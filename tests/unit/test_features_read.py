"""`read_features`: the same features from files of every format, and clear messages."""

import gzip
import json

import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from servers import serve_files

from ohmlearn import NodeTable, read_features
from ohmlearn.features.node_features import read_features_as
from ohmlearn.reading import SourceError

TEXT = "node,age,city,born\nann,30,Rome,1970-01-02\nbob,,,1970-01-03\ncy,50,Bern,1970-01-04\n"
NAMES = ["age", "age_missing", "city=Bern", "city=Rome", "city_missing", "born"]
NUMBERS = [[30, 0, 0, 1, 0, 1], [40, 1, 0, 0, 1, 2], [50, 0, 1, 0, 0, 3]]


def as_table():
    days = pyarrow.array([1, 2, 3], pyarrow.int32()).cast(pyarrow.date32())
    ages, cities = [30, None, 50], ["Rome", None, "Bern"]
    return pyarrow.table({"node": ["ann", "bob", "cy"], "age": ages, "city": cities, "born": days})


def write_stream(table, path):
    with pyarrow.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "people.csv": lambda path: path.write_text(TEXT),
    "people.txt": lambda path: path.write_text(TEXT.replace(",", "\t")),
    "semicolons.csv": lambda path: path.write_text(TEXT.replace(",", ";")),
    "windows.csv": lambda path: path.write_bytes(
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    ),
    "people.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "people.parquet": lambda path: pyarrow.parquet.write_table(as_table(), path),
    "people.arrow": lambda path: pyarrow.feather.write_feather(as_table(), path),
    "people.arrows": lambda path: write_stream(as_table(), path),
    "people": lambda path: pyarrow.parquet.write_table(as_table(), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_numbers(tmp_path, name):
    WRITERS[name](tmp_path / name)
    features = read_features(tmp_path / name)
    assert features.names == NAMES
    assert features.ids.tolist() == ["ann", "bob", "cy"]
    np.testing.assert_allclose(features.X, NUMBERS)
    assert features.source == str(tmp_path / name)


def test_json_lines(tmp_path):
    path = tmp_path / "people.jsonl"
    rows = as_table().to_pylist()
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    features = read_features(path, columns=["age", "city"])
    assert features.names == NAMES[:5]
    np.testing.assert_allclose(features.X, np.array(NUMBERS)[:, :5])


def test_some_columns_in_the_order_asked_for(tmp_path):
    for name in ("people.parquet", "people.csv"):
        WRITERS[name](tmp_path / name)
        found = read_features(tmp_path / name, columns=["born", "age"])
        assert found.names == ["born", "age", "age_missing"]
        assert read_features(tmp_path / name, node_col=0, columns=["born"]).names == ["born"]
    position = tmp_path / "position.csv"
    position.write_text("a,b,who,x\n1,2,ann,5\n3,4,bob,6\n")
    features = read_features(position, node_col=2, columns=["x"])
    assert (features.ids.tolist(), features.names) == (["ann", "bob"], ["x"])


def test_pandas_writes_its_index(tmp_path):
    frame = pandas.DataFrame({"age": [30, 40]}, index=["ann", "bob"])
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    assert read_features(path).ids.tolist() == ["ann", "bob"]
    frame.rename_axis("who").to_parquet(path)
    assert read_features(path).ids.tolist() == ["ann", "bob"]
    frame.assign(id=["x", "y"]).to_parquet(path)  # a filtered frame: its index is no feature
    features = read_features(path)
    assert (features.ids.tolist(), features.names) == (["x", "y"], ["age"])


def test_ids_in_text_stay_as_they_are_written(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("id,x\n007,1\n7,2\nNA,3\n")
    features = read_features(path)
    assert features.ids.tolist() == ["007", "7", "NA"]
    nodes = NodeTable()
    nodes.add([7, 8])
    path.write_text("id,x\n8,1\n7,2\n9,4\n")
    matched = read_features(path).match(nodes)
    assert matched.numbers.tolist() == [1, 0, -1]
    assert matched.about() == f"1 id is only in {path}, such as 9; it is left out"


def test_quotes_and_empty_lines(tmp_path):
    path = tmp_path / "quoted.csv"
    path.write_text('\n"id","the ""size"""\n"a, b",1\n"c\nd",2\n\n')
    features = read_features(path)
    assert features.ids.tolist() == ["a, b", "c\nd"]
    assert features.names == ['the "size"']


def test_several_files_are_one_table(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,y\na,1,\nb,2,\n")
    (tmp_path / "b.csv").write_text("id,x,y\nc,2.5,p\nd,3,q\n")
    features = read_features(tmp_path)
    assert features.ids.tolist() == ["a", "b", "c", "d"]
    assert features.X[:, 0].tolist() == [1, 2, 2.5, 3]
    assert features.names == ["x", "y=p", "y=q", "y_missing"]
    (tmp_path / "b.csv").write_text("id,z\nc,2.5\n")
    with pytest.raises(SourceError, match=r"b\.csv: has other columns than .*a\.csv"):
        read_features(tmp_path / "*.csv")


def test_types_are_decided_by_the_whole_file(tmp_path):
    lines = [f"{i},{i},{i % 3}" for i in range(1000)] + ["a,0.5,many"]
    (tmp_path / "late.csv").write_text("id,x,y\n" + "\n".join(lines) + "\n")
    features = read_features(tmp_path / "late.csv")
    assert features.names == ["x", "y=0", "y=1", "y=2", "y=many"]
    assert features.X[-1].tolist() == [0.5, 0, 0, 0, 1]


def refused(tmp_path, text, message, name="bad.csv", **how):
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=message):
        read_features(tmp_path / name, **how)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x\na,1\nb,inf\n", r"bad\.csv, row 3: the column 'x' is infinite"),
        ("id,x\na,1\na,2\n", "the id 'a' is in the rows 2 and 3"),
        ("id,x\na,1\n,2\n", "row 3: the id in the column 'id' is missing"),
        ("id,x\na,1\nb,2,3\n", "row 3: 'b,2,3' has 3 fields"),
        ("", "is empty"),
        ("id,x\n", "is empty: there is no row"),
        ("1,2,3\n4,5,6\n", "the first line, '1,2,3', must be a header"),
        ("words\n", "has one column; is it CSV with a header"),
        ("id,x,x\n1,2,3\n", "two columns have the same name, 'x'"),
        ("src,dst\na,b\nb,c\n", "seem to be the ends of edges"),
        ("user_id,item_id,rating\n1,2,3\n", "seem to be the ends of edges"),
        ("node,label\na,spam\nb,ham\n", "labels are no features"),
    ],
)
def test_bad_files_are_refused_with_the_row(tmp_path, text, message):
    refused(tmp_path, text, message)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    refused(tmp_path, "ann,30,Rome\nbob,40,Bern\n", "must be a header", node_col=0)
    refused(tmp_path, "not Parquet", "cannot be read as Parquet", name="bad.parquet")
    refused(tmp_path, '{"id": 1, "x": [1]}\n', "row 1: the column 'x' has the type list", "a.jsonl")
    refused(tmp_path, "%%MatrixMarket", "the format matrix_market cannot be read", name="m.mtx")
    (tmp_path / "latin.csv").write_bytes("id,x\n1,Köln\n2,Bonn\n".encode("latin-1"))
    with pytest.raises(SourceError, match="'x' is not UTF-8; convert the file"):
        read_features(tmp_path / "latin.csv")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_features(tmp_path / "nowhere.csv")


def test_numbered_columns_are_features(tmp_path):
    """Columns svd1 and svd2, or f_1 and f_2, are not the ends of edges."""
    for names in ("package,svd1,svd2", "package,f_1,f_2,f_3", "package,x1,x2,weight"):
        path = tmp_path / "packages.csv"
        row = ",1" * names.count(",")
        path.write_text(f"{names}\na{row}\nb{row.replace('1', '2')}\n")
        with pytest.raises(SourceError, match=r"no column is called node, .* in node_col; the col"):
            read_features(path)
        assert read_features(path, node_col="package").ids.tolist() == ["a", "b"]
        assert read_features_as(path, None, None, " Package").names == names.split(",")[1:]
    path.write_text("svd1,svd2,user_id\n1,2,a\n3,4,b\n")
    assert read_features(path).ids.tolist() == ["a", "b"]


def test_files_of_web_servers(tmp_path):
    WRITERS["people.parquet"](tmp_path / "e")
    with serve_files({"people.parquet": (tmp_path / "e").read_bytes()}) as server:
        features = read_features(f"{server.address}/people.parquet?token=secret")
        np.testing.assert_allclose(features.X, NUMBERS)
        with pytest.raises(FileNotFoundError, match=r"there is no file .*/none\.csv;"):
            read_features(f"{server.address}/none.csv")


@pytest.mark.parametrize(
    ("column", "doubt"),
    [
        ([*range(29), "unknown"], "nearly all are numbers, but row 31 has 'unknown'; make it"),
        ([*range(29), "33,379.54"], "31 has '33,379.54'; write numbers without separators of"),
        ([f"{n},5" for n in range(30)], "numbers such as '0,5' in row 2 are not read; write 0.5"),
        ([f"1,{n:03}.5" for n in range(30)], "without separators of thousands, 1000.5"),
        ([f"{n + 1}/01/2019" for n in range(30)], "dates such as '1/01/2019' in row 2 are not"),
        (
            [f"2019-01-{n + 1:02}" for n in range(29)] + ["28/01/2019"],
            "nearly all are dates, but row 31 has '28/01/2019'; write dates as 2019-01-28",
        ),
        ([n % 25 if n < 59 else "?" for n in range(60)], "but row 61 has '?'"),
    ],
)
def test_numbers_that_one_text_spoils(tmp_path, column, doubt):
    path = tmp_path / "nodes.csv"
    lines = [f'n{at},{at % 7},"{value}"\n' for at, value in enumerate(column)]
    path.write_text("id,size,amount\n" + "".join(lines))
    with pytest.warns(UserWarning, match="the column 'amount' is read as text: ") as caught:
        features = read_features(path)
    assert doubt in str(caught[0].message)
    assert doubt in features.treatment["amount"]


def test_texts_that_only_look_like_numbers_or_dates(tmp_path):
    path = tmp_path / "nodes.csv"
    for column in ([f"1.2.{n}" for n in range(30)], [f"{n}-B" for n in range(30)], ["7", "x"] * 15):
        lines = [f"n{at},{at % 7},{value}\n" for at, value in enumerate(column)]
        path.write_text("id,size,version\n" + "".join(lines))
        assert " has " not in read_features(path).treatment["version"]
