"""Edges between two kinds of nodes, whose ids overlap."""

import pickle
import warnings

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from row_files import write_rows
from stream_cases import edges

import ohmlearn
from ohmlearn import EdgeLog, NodeTable
from ohmlearn.estimators.label_input import find_classes, number_labels
from ohmlearn.reading import SourceError
from ohmlearn.reading.label_table import as_node_ids, read_labels

USERS, ITEMS = [1, 2, 2, 17], [1, 1, 2, 5]
TYPED = (["user:1", "user:2", "user:2", "user:17"], ["item:1", "item:1", "item:2", "item:5"])


def read_edges(source, **options):
    """Read edges between two kinds of nodes, unless the options say something else."""
    return ohmlearn.read_edges(source, **{"bipartite": True} | options)


def write(path, headings, u=USERS, v=ITEMS, mark=","):
    rows = [headings, *(f"{a}{mark}{b}" for a, b in zip(u, v, strict=True))]
    path.write_text("".join(f"{row}\n" for row in rows if row))
    return path


def sources(folder):
    """The same edges of users and items in all formats with headings."""
    columns = {"user_id": USERS, "item_id": ITEMS}
    for ending in ("csv", "tsv", "txt", "jsonl", "parquet", "arrow", "npz"):
        yield write_rows(folder / f"e.{ending}", columns)
    table = pa.table(columns)
    yield table
    yield table.set_column(1, "item_id", table["item_id"].cast(pa.string()))
    yield table.set_column(0, "user_id", table["user_id"].cast(pa.float64()))
    yield [table, table.slice(0, 0)]


@pytest.mark.parametrize("number", range(11))
def test_every_format_gives_the_same_ids(tmp_path, number):
    source = list(sources(tmp_path))[number]
    stream = read_edges(source)
    assert edges(stream) == (*TYPED, None)
    assert stream.kinds == stream.nodes.kinds == ("user", "item")
    assert "two kinds of nodes (user:..., item:...)" in stream.columns
    assert edges(stream) == (*TYPED, None)  # again
    typed = read_edges(source, id_type="string", on_bad="skip")
    assert edges(typed) == (*TYPED, None)
    one = read_edges(source, bipartite=False, id_type="string")
    assert len({*edges(one)[0], *edges(one)[1]}) == 4
    assert one.nodes.kinds == ()
    for kinds in (True, ("user", "item")):
        unread = read_edges(source, bipartite=kinds)
        assert unread.id_type == "string"
        for heading, ids in (("user_id", ["1", "17"]), ("node", ["user:1", "user:17"])):
            found = as_node_ids("y.csv", ids, unread.id_type, unread.kinds, heading=heading)
            assert found.tolist() == ["user:1", "user:17"]


def test_sources_without_headings(tmp_path):
    for kinds, names in ((True, ("left", "right")), (("user", "item"), ("user", "item"))):
        expected = [f"{names[0]}:{u}" for u in USERS], [f"{names[1]}:{v}" for v in ITEMS], None
        text = write(tmp_path / "e.txt", "", mark=" ")
        np.save(tmp_path / "e.npy", np.stack([USERS, ITEMS], axis=1))
        arrays = np.array(USERS), np.array(ITEMS)
        for source in (text, tmp_path / "e.npy", arrays, [arrays], [(USERS, ITEMS)]):
            assert edges(read_edges(source, bipartite=kinds)) == expected
        assert (
            read_edges(text, bipartite=None).columns
            == "u = column 0, v = column 1, no weights (guessed)"
        )
    assert edges(read_edges(write(tmp_path / "e.csv", "u,v"), bipartite=True))[0][0] == "left:1"


def test_matrices_need_not_be_square(tmp_path):
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 1, 1], [1, 0, 2])), shape=(2, 3))
    scipy.sparse.save_npz(tmp_path / "e.npz", matrix)
    (tmp_path / "e.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 2 1\n2 1 2\n2 3 3\n"
    )
    for name, first in (("e.npz", 0), ("e.mtx", 1)):
        with pytest.raises(SourceError, match=r"square matrix, got .*; if .* use bipartite=True"):
            list(read_edges(tmp_path / name, bipartite=None))
        u, v, w = edges(read_edges(tmp_path / name, bipartite=True))
        assert u == [f"row:{at + first}" for at in (0, 1, 1)]
        assert v == [f"column:{at + first}" for at in (1, 0, 2)]
        assert w == [1.0, 2.0, 3.0]
    (tmp_path / "e.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n"
    )
    with pytest.raises(SourceError, match="the same nodes, not two kinds; use bipartite=False"):
        read_edges(tmp_path / "e.mtx", bipartite=True)
    (tmp_path / "e.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n3 1 1\n")
    with pytest.raises(SourceError, match=r"\(3, 1\) is outside the matrix, whose rows are 1"):
        list(read_edges(tmp_path / "e.mtx", bipartite=True))


def test_an_id_in_both_columns_is_told_once(tmp_path):
    path = tmp_path / "e.csv"
    read = ohmlearn.read_edges
    for headings, remedy in (("shop,tag", '"shop", "tag"'), ("user_id,item_id", '"user", "item"')):
        write(path, headings)
        names = " and ".join(map(repr, headings.split(",")))
        said = f"1 is in both columns, {names}, and is read as one node; if these are different"
        with pytest.warns(UserWarning, match=said) as found:
            assert edges(read(path)) == (USERS, ITEMS, None)
        (warning,) = found
        assert f"use bipartite=({remedy}), if not, bipartite=False" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(read(path, bipartite=False))
        list(read(write(path, "shop,tag", [1, 2], [3, 4])))  # no id in both columns
        for headings in ("src,dst", "u,v", "node1,node2", "buyer,seller", "a,b", ""):
            list(read(write(path, headings)))
    tables = [pa.table({"shop": [a], "tag": [b]}) for a, b in ((1, 2), (3, 4), (4, 5))]
    with pytest.warns(UserWarning, match="4 is in both columns"):
        list(read(tables))


def test_parts_without_headings_have_the_kinds_of_the_first(tmp_path):
    parts = [write(tmp_path / "a.csv", "user,item"), write(tmp_path / "b.csv", "")]
    stream = read_edges(parts)
    assert edges(stream)[0] == TYPED[0] * 2
    assert len(stream.nodes) == 6


def test_kinds_that_do_not_fit_those_of_a_table_are_refused(tmp_path):
    first, second = write(tmp_path / "a.csv", "user,item"), tmp_path / "b.csv"
    write(second, "item,user", ITEMS, USERS)
    assert edges(read_edges([first, second]))[1] == [*TYPED[1], *TYPED[0]]
    one = read_edges(first, bipartite=False)
    list(one)
    with pytest.raises(SourceError, match="nodes so far have no kinds, such as 1, but now nodes"):
        list(read_edges(second, nodes=one.nodes))


def test_more_kinds_may_be_named(tmp_path):
    stream = read_edges(write(tmp_path / "e.csv", "user,item"))
    list(stream)
    path = write(tmp_path / "f.csv", "user,shop", [1], [1])
    with pytest.raises(SourceError, match="kinds user and shop, but the nodes so far are of the"):
        list(read_edges(path, nodes=stream.nodes))
    list(read_edges(path, nodes=stream.nodes, bipartite=("user", "shop")))
    assert stream.nodes.kinds == ("user", "item", "shop")
    assert stream.nodes.ids()[-1] == "shop:1"


def test_options_of_kinds():
    for kinds, error in (
        (("user",), TypeError),
        ("user,item", TypeError),
        (("user", 3), TypeError),
        (("user", "User"), ValueError),
        (("a:b", "c"), ValueError),
        (("", "c"), ValueError),
        (("a\n", "c"), ValueError),
    ):
        with pytest.raises(error, match="kinds"):
            read_edges(([1], [2]), bipartite=kinds)
    arrays = np.array([1]), np.array([1])
    assert edges(read_edges(arrays, bipartite=["Käufer in", "物"]))[:2] == (
        ["Käufer in:1"],
        ["物:1"],
    )


def test_bad_rows(tmp_path):
    path = write(tmp_path / "e.csv", "user,item", [1, "", 3.5, 4], [1, 2, "é", ""])
    stream = read_edges(path, on_bad="skip")
    assert edges(stream)[:2] == (["user:1", "user:3.5"], ["item:1", "item:é"])
    assert stream.n_bad == 2
    with pytest.raises(SourceError, match="row 3: 'user' is empty"):
        list(read_edges(path))


def test_ids_of_kinds_in_a_table():
    table = NodeTable()
    table.add_edges([1, "user:1"][:1], ["é"], kinds=("user", "item"))
    assert table.add_edges(["user:1"], ["item:é"])[0].tolist() == [0]
    for call in (table.find, table.add, lambda ids: table.add_edges(ids, ids)):
        with pytest.raises(ValueError, match=r"of the kinds user and item, so .* 'user:17' or"):
            call([17])
        with pytest.raises(ValueError, match=r"\[1\] = 'users:1'"):
            call(["user:1", "users:1"])
    assert table.add_edges(["user:7"], ["x"], kinds=("user", "item"))[0].tolist() == [2]  # once
    again = pickle.loads(pickle.dumps(table))
    assert again.kinds == ("user", "item")
    again.truncate(1)
    assert again.kinds == ("user",)
    again.truncate(0)
    assert again.add([3]).tolist() == [0]
    other = NodeTable()
    assert other.merge(table).tolist() == [0, 1, 2, 3]
    assert other.kinds == table.kinds
    with pytest.raises(ValueError, match="so far have no kinds, such as 3"):
        again.merge(table)
    state = {**table.get_state(), "node_kinds": np.array(["user"])}
    with pytest.raises(ValueError, match="no kinds, such as 'item:é'"):
        NodeTable.from_state(state)
    with pytest.raises(ValueError, match="names of kinds must be strings"):
        NodeTable.from_state({**state, "node_kinds": np.array([1])})


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_labels_of_kinds(tmp_path, ending):
    from ohmlearn.report.write_table import write_table

    if ending == "parquet":
        pytest.importorskip("pyarrow")
    stream = read_edges(write(tmp_path / "e.csv", "user,item"))
    list(stream)
    path = str(tmp_path / f"y.{ending}")

    def numbers(heading, ids):
        write_table(path, {heading: np.array(ids), "label": np.array(["x"] * len(ids))})
        return number_labels(find_classes(read_labels(path), ids=stream.nodes), stream.nodes).nodes

    expected = np.sort(stream.nodes.find(["user:17", "user:1"])).tolist()
    assert numbers("node", ["user:17", "user:1"]).tolist() == expected
    for heading in ("user", "user_id", "Users"):
        assert numbers(heading, [17, 1]).tolist() == expected
        assert numbers(heading, ["user:17", "1"]).tolist() == expected
    for heading in ("node", "id", "shop"):
        with pytest.raises(SourceError, match=r"y\.\w+: '17' may be of .* 'user:17' or"):
            numbers(heading, [17])


def test_float_ids_of_labels(tmp_path):
    edges_path, labels_path = tmp_path / "e.csv", tmp_path / "y.csv"
    labels_path.write_text("user_id,label\n6507.0,x\n1,y\n")
    for headings in ("user,item", "src,dst"):
        kinds = headings == "user,item"
        stream = read_edges(write(edges_path, headings, [6507.0, 1.0], [3, 3]), bipartite=kinds)
        list(stream)
        labels = find_classes(read_labels(str(labels_path)), ids=stream.nodes)
        found = stream.nodes.ids(number_labels(labels, stream.nodes).nodes).tolist()
        assert [str(node).removeprefix("user:") for node in found] == ["6507", "1"]
    labels = find_classes({6507.0: "x", np.float64(1): "y"}, ids=stream.nodes)
    assert number_labels(labels, stream.nodes).nodes.tolist() == [0, 2]


def test_a_log_keeps_kinds(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "log"
    with EdgeLog(folder, random_state=0) as log:
        log.append(read_edges(write(tmp_path / "e.csv", "user,item")))
        assert log.nodes.kinds == ("user", "item")
    with EdgeLog(folder) as log:
        assert log.nodes.kinds == ("user", "item")
        log.append(read_edges(tmp_path / "e.csv", nodes=log.nodes))
        assert log.n_nodes == 6
        assert log.remove_nodes(["item:1"]).n_removed == 4
        with pytest.raises(ValueError, match="so ids start with one"):
            log.remove_nodes([1])
        with pytest.raises(ValueError, match="so ids start with one"):
            log.append([1], [2])
    together = read_edges([folder, tmp_path / "e.csv"], bipartite=("user", "item"))
    assert len(edges(together)[0]) == 8
    assert together.nodes.kinds == ("user", "item")


def test_an_append_that_fails_leaves_no_kinds(tmp_path):
    pytest.importorskip("pyarrow")
    path = write(tmp_path / "e.csv", "user,item")
    path.write_text(path.read_text() + "7,\n")
    with EdgeLog(tmp_path / "log", random_state=0) as log:
        with pytest.raises(SourceError):
            log.append(read_edges(path, nodes=log.nodes))
        log.append([1], [2])
        assert log.nodes.kinds == ()
