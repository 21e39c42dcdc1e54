"""Tables of nodes: labels in, results out."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pandas
import pytest
from row_files import write_rows
from stream_cases import edges

from ohmlearn.estimators.label_input import by_node, find_classes, number_labels
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import SourceError, read_edges
from ohmlearn.reading.label_table import read_labels
from ohmlearn.report import write_table as table_module
from ohmlearn.report.write_table import Coded, NodeIds, write_table


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('node,label\n"a\nb",x\nc,y\n', [("a\nb", "x"), ("c", "y")]),
        ('# e\nnode,label\n"a\n# b",x\n# d,"z\nc,y\n', [("a\n# b", "x"), ("c", "y")]),
        ("node,label\ra,x\rc,y\r", [("a", "x"), ("c", "y")]),
        ("node,label\na\u2028b,x\nc\x1cd,y\n", [("a\u2028b", "x"), ("c\x1cd", "y")]),
        ("node,label\n#cats,x\nc,y\n", [("#cats", "x"), ("c", "y")]),
        ("# who, what\na x\nc y\n", [("a", "x"), ("c", "y")]),
    ],
)
def test_labels_in_text(tmp_path, text, pairs):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    assert read_labels(str(path)) == dict(pairs)


ROWS = {"node": [1, 2, 3, 4], "label": ["x", None, "y", ""]}


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "jsonl", "parquet", "arrow", "npz"])
def test_labels_are_read_from_the_formats_of_edges(tmp_path, ending):
    path = tmp_path / f"labels.{ending}"
    if ending == "csv.gz":
        path.write_bytes(gzip.compress(b"node,label\n1,x\n2,null\n3,y\n4,\n"))
    elif ending == "npz":
        write_rows(path, ROWS | {"label": ["x", "-1", "y", "nan"]})
    else:
        write_rows(path, ROWS)
    assert read_labels(str(path)) == {"1": "x", "3": "y"}


@pytest.mark.parametrize("kind", ["int8", "float64", "string"])
def test_numbers_are_integer_labels_whatever_their_type(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    labels = pa.array([3, None, -1, 7]).cast(kind)
    parquet.write_table(pa.table({"label": labels, "node": list("abcd")}), tmp_path / "y.parquet")
    assert read_labels(str(tmp_path / "y.parquet")) == {"a": 3, "d": 7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,label\na,x\nb\n", r"y.csv, row 3: 'label' is missing in 'b'"),
        ("node,label\na,x\n,y\n", r"y.csv, row 3: 'node' is empty in ',y'"),
        ("node\na\n", r"y.csv: a label needs two columns, got 1"),
        ("", r"y.csv: is empty: there is no line with a label"),
        ("node,label\na,-1\n", r"y.csv: has no label; a row is a node and its label"),
        ("node,label\na,-1\nb,1\n", r"y.csv: the labels are only 1 and -1, but -1 means unlab"),
        ("node,label\na,1.0\nb,-1.0\n", r"are only 1 and -1, .*; give the classes other names"),
    ],
)
def test_bad_labels(tmp_path, text, message):
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(SourceError, match=message):
        read_labels(str(tmp_path / "y.csv"))


def test_columns_of_labels(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("year,2020,who\n1,x,a\n2,y,b\n")
    assert read_labels(str(path), "who", "2020") == {"a": "x", "b": "y"}
    by_position = {"who": "2020", "a": "x", "b": "y"}  # then the first row is not a header
    assert read_labels(str(path), 2, 1) == by_position
    with pytest.raises(SourceError, match="a label needs different columns, got 1 and 1; name"):
        read_labels(str(path), 1, 1)


WEIGHED = {"id": [1, 2, 1, 3, 4], "class": ["x", "y", "z", "", "x"], "trust": [2, None, 0.5, 7, 0]}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
def test_several_labels_of_a_node_and_their_weights(tmp_path, ending):
    columns = WEIGHED | {"trust": [2, 1, 0.5, 7, 0]} if ending == "npz" else WEIGHED
    labels = read_labels(str(write_rows(tmp_path / f"labels.{ending}", columns)))
    assert labels == {"1": ["x", "z"], "2": "y", "4": "x"}
    assert labels.weights == {"1": [2.0, 0.5], "2": 1.0, "4": 0.0}
    assert labels.columns == "nodes = 'id', labels = 'class', weights = 'trust' (guessed)"


def test_a_name_of_weights_may_be_a_label(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("ann,trust\nbob,distrust\ncy,trust\n")
    labels = read_labels(str(path))
    assert labels == {"ann": "trust", "bob": "distrust", "cy": "trust"}
    assert labels.weights is None
    path.write_text("who,what,sure\nann,x,0.5\nbob,y,1\n")
    labels = read_labels(str(path), label_weight_col="sure")
    assert labels.weights == {"ann": 0.5, "bob": 1.0}
    path.write_text("ann,x,0.5\nbob,y,1\n")
    assert read_labels(str(path), label_weight_col=2).weights == {"ann": 0.5, "bob": 1.0}
    assert read_labels(str(path)).weights is None


def test_columns_of_labels_are_not_guessed_without_reason(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("label,node_id,seen_at\nspam,1,2026-01-01\n")
    assert read_labels(str(path)) == {"1": "spam"}
    path.write_text("label,user_id,seen_at\nspam,1,2026-01-01\n")
    assert read_labels(str(path)) == {"1": "spam"}
    path.write_text("user_id,fraud\n1,0\n2,1\n")
    assert read_labels(str(path)) == {"1": 0, "2": 1}
    path.write_text("node,colour,size\nann,red,5\n")
    with pytest.raises(SourceError, match="which two columns make a label: there are 'node', 'col"):
        read_labels(str(path))
    assert read_labels(str(path), label_col="colour") == {"ann": "red"}


def test_ids_of_labels_that_no_edge_can_have(tmp_path):
    nodes = NodeTable()
    nodes.add([7])
    for name, what in {
        "ann": "the ids of the edges are integers, but 'ann' is not",
        "007": "'007' has zeros in front, but the ids of the edges are integers",
        str(2**63): f"the ids of the edges are integers, but '{2**63}' is not",
    }.items():
        labels = find_classes({name: "x"}, ids=nodes)._replace(path="y.csv")
        with pytest.raises(SourceError, match=f"y.csv: {what}"):
            number_labels(labels, nodes)


def test_a_quote_that_is_not_closed_swallows_no_label(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('node,label\nb,x\n"a,y\nc,"z\n')
    with pytest.raises(SourceError, match=r"labels.csv, row 3: a quote is not closed, or text"):
        read_labels(str(path))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_any_name_comes_back(tmp_path, ending):
    names = ["a\nb", "c\u2028d", "e\x85f", '"g"', "h,\t;i", "#j", "=k", "l\rm"]
    path = tmp_path / f"table.{ending}"
    write_table(str(path), {"node": np.array(names, dtype=object), "label": np.array(names)})
    assert read_labels(str(path)) == {name: name for name in names}


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_any_name_is_an_end_of_an_edge(tmp_path, ending):
    names = ["a\rb", " c", "d\t", "e\r\n", '"', "'", ",", "#f", "%g", "=h", "\ufeffi"]
    path = tmp_path / f"edges.{ending}"
    ids = np.array(names, dtype=object)
    write_table(str(path), {"u": ids, "v": ids[::-1], "w": np.ones(len(ids))})
    assert edges(read_edges(path)) == (names, names[::-1], [1.0] * len(names))


def test_labels_that_are_whole_floats_are_integers(tmp_path: Path):
    path = tmp_path / "y.csv"
    path.write_text("node,label\na,1.0\nb,\nc,-1.0\nd,2.0\ne,10\n")  # as pandas writes 1, None, ...
    assert read_labels(str(path)) == {"a": 1, "d": 2, "e": 10}
    path.write_text("node,label\na,1.0\nb,2.5\n")
    assert read_labels(str(path)) == {"a": "1.0", "b": "2.5"}
    path.write_text("node,label\na,007\nb,1\n")
    assert read_labels(str(path)) == {"a": "007", "b": "1"}


@pytest.mark.parametrize("heading", ["node,label\n", "name,score\n", ""])
def test_measurements_are_no_labels(tmp_path: Path, heading: str):
    path = tmp_path / "y.csv"
    numbers = np.random.default_rng(0).random(40).round(6)
    rows = [f"n{at},{number:.6f}" for at, number in enumerate(numbers)]
    path.write_text(heading + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=r"4[01] different numbers, such as 0\.\d+, and no"):
        read_labels(str(path))
    stars = [f"n{at},{(at % 9) / 2 + 0.5}" for at in range(40)]  # of 9 kinds
    path.write_text(heading + "\n".join(stars) + "\n")
    assert "4.5" in read_labels(str(path)).classes()
    names = [f"n{at},v{number}" for at, number in enumerate(numbers)]
    path.write_text(heading + "\n".join(names) + "\n")
    assert len(read_labels(str(path)).classes()) >= 40


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_blocks_of_rows_do_not_show(tmp_path: Path, monkeypatch, ending: str):
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, 1000)
    columns = {
        "node": np.array([f"n{at}" for at in range(1000)], dtype=object),
        "label": Coded(np.array(["ham", "spam", "eggs, fried"]), codes),
        "share": np.ma.masked_array(rng.random(1000), codes < 0),
        "nothing": np.ma.masked_all(1000, object),
        "reached": codes >= 0,
    }
    if ending in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    found = []
    for cells in (1 << 20, 50):
        monkeypatch.setattr(table_module, "TEXT_CELLS", cells)
        monkeypatch.setattr(table_module, "ARROW_CELLS", cells)
        path, seen = tmp_path / f"{cells}.{ending}", []
        write_table(str(path), columns, report=lambda *place, seen=seen: seen.append(place))
        rows = cells // 5
        assert seen == [(min(at, 1000), 1000) for at in range(rows, 1000 + rows, rows)]
        found.append(read_any(path))
    assert found[0] == found[1]
    assert found[0] is not None


def read_any(path: Path):
    """Return the content of a table: the text, or a list of rows."""
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return pytest.importorskip("pyarrow.feather").read_table(path).to_pylist()
    return path.read_text()


def test_writing_takes_memory_for_a_block_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table_module, "TEXT_CELLS", table_module.TEXT_CELLS >> 3)
    columns = {f"p{at}": np.random.default_rng(at).random(10_000) for at in range(20)}
    tracemalloc.start()
    try:
        write_table(str(tmp_path / "out.csv"), columns)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5e6  # all cells at once are 200,000 floats of 24 bytes, and their pointers


def test_empty_table_has_its_columns(tmp_path: Path):
    columns = {"node": np.empty(0, dtype=object), "label": Coded(np.array(["a"]), np.empty(0, int))}
    write_table(str(tmp_path / "out.csv"), columns)
    assert (tmp_path / "out.csv").read_text() == "node,label\n"
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(str(tmp_path / "out.parquet"), columns)
    assert parquet.read_schema(tmp_path / "out.parquet").names == ["node", "label"]


@pytest.mark.parametrize(
    "names", [[], [7, -3, 10**15], ["é", "", "a,b", "x" * 100], [f" n{i}" for i in range(99)]]
)
def test_ids_are_the_same_in_blocks(tmp_path: Path, monkeypatch, names: list):
    nodes = NodeTable()
    nodes.add(names)
    assert NodeIds(nodes)[: len(names)].tolist() == names
    assert NodeIds(nodes)[2:50].tolist() == names[2:50]
    write_table(str(tmp_path / "whole.csv"), {"node": nodes.ids()})
    monkeypatch.setattr(table_module, "TEXT_CELLS", 2)
    write_table(str(tmp_path / "blocks.csv"), {"node": NodeIds(nodes)})
    assert (tmp_path / "blocks.csv").read_text() == (tmp_path / "whole.csv").read_text()
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(table_module, "ARROW_CELLS", 2)
    write_table(str(tmp_path / "blocks.parquet"), {"node": NodeIds(nodes)})
    assert parquet.read_table(tmp_path / "blocks.parquet")["node"].to_pylist() == names


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "frame", "content"])
def test_unusual_names_of_columns_in_any_order(tmp_path, ending):
    # No name is a usual one; the ids are all different, the labels are not.
    columns = {"Befund": ["ok", "gut?", "ok", "ok"], "Konto": ["a b 1", "ü 2", "c3", "d4"]}
    expected = dict(zip(columns["Konto"], columns["Befund"], strict=True))
    for order in (list(columns), list(columns)[::-1]):
        table = {name: columns[name] for name in order}
        if ending == "frame":
            assert by_node(pandas.DataFrame(table), by_index=True) == expected
        elif ending == "content":
            text = "\n".join(";".join(row) for row in (order, *zip(*table.values(), strict=True)))
            assert read_labels("the body", content=text.encode()) == expected
        else:
            labels = read_labels(str(write_rows(tmp_path / f"y.{ending}", table)))
            assert labels == expected
            assert labels.columns == "nodes = 'Konto', labels = 'Befund' (guessed)"


def test_a_heading_above_missing_labels(tmp_path):
    path = tmp_path / "y.csv"
    path.write_text("konto,befund\na 1,\na 2,\na 3,ok\na 4,\na 5,schlecht\n")
    assert read_labels(str(path)) == {"a 3": "ok", "a 5": "schlecht"}
    path.write_text("who,konto,note,befund\nann,k1,,ok\nbob,k2,,ok\n")
    with pytest.raises(SourceError, match="not clear which two columns make a label: there are 'w"):
        read_labels(str(path))
    assert read_labels(str(path), "konto", 3) == {"k1": "ok", "k2": "ok"}
    with pytest.raises(SourceError, match="has no column 'x,y', only 'who', 'konto'"):
        read_labels(str(path), "x,y")
