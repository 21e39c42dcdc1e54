"""Files that other programs write: graphs, lists with weights, spreadsheets, local numbers."""

import gzip

import numpy as np
import pytest

from ohmlearn import HFSClassifier, read_edges
from ohmlearn.reading import SourceError

networkx = pytest.importorskip("networkx")
GRAPH = networkx.les_miserables_graph()  # with weights


def total(stream):
    """Return number and weight of the edges."""
    batches = list(stream)
    return sum(len(b.u) for b in batches), sum(float(np.sum(b.w)) for b in batches)


def named(stream):
    """Return the edges with their ids, each with the smaller one first."""
    rows = [(b.u, b.v) for b in stream]
    ids = stream.nodes.ids()
    return sorted(
        tuple(sorted((ids[x], ids[y]))) for u, v in rows for x, y in zip(u, v, strict=True)
    )


def write_metis(path, weighted=False, extra=""):
    graph = networkx.convert_node_labels_to_integers(GRAPH, 1)
    lines = [f"% a comment\n{len(graph)} {graph.number_of_edges()}{extra}{' 001' * weighted}"]
    for node in range(1, len(graph) + 1):
        near = sorted(graph[node])
        words = [f"{x} {graph[node][x]['weight']}" if weighted else str(x) for x in near]
        lines.append(" ".join(words))
    path.write_text("\n".join(lines) + "\n")
    return sorted(tuple(sorted(edge)) for edge in graph.edges())


@pytest.mark.parametrize("ending", ["graph", "metis"])
def test_metis(tmp_path, ending):
    path = tmp_path / f"e.{ending}"
    expected = write_metis(path)
    stream = read_edges(path)
    assert stream.n_edges == GRAPH.number_of_edges()
    assert named(stream) == expected
    write_metis(path, weighted=True)
    assert total(read_edges(path)) == (254, GRAPH.size("weight"))
    packed = tmp_path / f"e.{ending}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert total(read_edges(packed)) == (254, GRAPH.size("weight"))


def test_nodes_of_metis_may_have_no_edge_and_weights_of_their_own(tmp_path):
    path = tmp_path / "e.graph"
    path.write_text("4 2 011 2\n7 7 2 5\n7 7 1 5 4 3\n7 7\n7 7 2 3\n")
    stream = read_edges(path)
    assert named(stream) == [(1, 2), (2, 4)]
    assert total(stream) == (2, 8.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ann bob\n", r"row 1: METIS has numbers only, got 'ann bob'"),
        ("1\n", "METIS starts with the numbers of nodes and edges, got '1'"),
        ("3 2\n2\n1 3\n", r"says 3 nodes and 2 edges, but there are 2 nodes, .*format=\"text\""),
        ("2 1\n2\n1\n1\n", "row 4: the header says 2 nodes"),
        ("2 1\n3\n1\n", r"row 2: neighbours must be nodes 1, \.\.\., 2"),
        ("2 1 1\n2 1\n1\n", "row 3: the last neighbour has no weight"),
        ("", "is empty"),
    ],
)
def test_damaged_metis(tmp_path, text, problem):
    path = tmp_path / "e.graph"
    path.write_text(text)
    with pytest.raises(SourceError, match=problem):
        list(read_edges(path))


def test_rows_of_another_length_are_no_edges(tmp_path):
    path = tmp_path / "e.txt"  # no name tells that it is METIS
    write_metis(path)
    with pytest.raises(SourceError, match=r"row 3: column 1 is missing in '2'"):
        list(read_edges(path))
    stream = read_edges(path, on_bad="skip")
    assert sum(len(batch.u) for batch in stream) + stream.n_bad == len(GRAPH) + 1
    assert stream.n_bad > 30
    path.write_text(path.read_text().replace("\n2\n", "\n2 1 1\n", 1))
    with pytest.raises(SourceError, match="row 3: '2 1 1' has 3 fields, but the first row"):
        list(read_edges(path))


@pytest.mark.parametrize(
    "text", ["1 2 5 # a\n2 3 1\n", "1,2,5\n2,3,1,\n", "# 1 2\n1\t2\t5\n2\t3\t1\n"]
)
def test_comments_and_empty_fields_are_no_other_length(tmp_path, text):
    path = tmp_path / "e.txt"
    path.write_text(text)
    assert total(read_edges(path)) == (2, 6.0)


@pytest.mark.parametrize("ending", ["gml", "graphml", "gml.gz", "graphml.gz"])
def test_gml_and_graphml(tmp_path, ending):
    path = tmp_path / f"e.{ending}"
    write = networkx.write_gml if ending[:3] == "gml" else networkx.write_graphml
    write(GRAPH, path)
    stream = read_edges(path)
    assert total(stream) == (254, GRAPH.size("weight"))
    assert named(stream) == sorted(tuple(sorted(edge)) for edge in GRAPH.edges())
    y = {"Valjean": "good", "Javert": "bad", "Cosette": "good"}
    assert len(HFSClassifier(random_state=0).fit_edges(path, y).transduction_) == len(GRAPH)


def test_lists_of_networkx_and_igraph_keep_their_weights(tmp_path):
    size = GRAPH.size("weight")
    graph = networkx.convert_node_labels_to_integers(GRAPH)  # names have blanks
    for name, delimiter in (("e.txt", " "), ("e.csv", ","), ("e.edgelist", "\t"), ("e.ncol", " ")):
        path = tmp_path / name
        networkx.write_weighted_edgelist(graph, path, delimiter=delimiter)
        assert total(read_edges(path)) == (254, size)
        networkx.write_edgelist(graph, path, delimiter=delimiter)
        stream = read_edges(path)
        assert total(stream) == (254, size)
        assert "weights = column 2" in stream.columns
    networkx.write_edgelist(GRAPH, path := tmp_path / "names.csv", delimiter=",")
    assert total(read_edges(path)) == (254, size)


@pytest.mark.parametrize("delimiter", [" ", ",", ";", "\t"])
@pytest.mark.parametrize("name", ["e.txt", "e.csv"])
def test_commas_among_attributes_separate_no_columns(tmp_path, name, delimiter):
    graph = networkx.Graph()
    graph.add_edge("a", "b", color="red, dark", size=1, weight=2.5)
    graph.add_edge("b", "c", color="blue", size=2, weight=1)
    networkx.write_edgelist(graph, tmp_path / name, delimiter=delimiter)
    stream = read_edges(tmp_path / name)
    assert total(stream) == (2, 3.5)
    assert named(stream) == [("a", "b"), ("b", "c")]


def test_konect(tmp_path):
    path = tmp_path / "out.konect"
    path.write_text("% sym weighted\n1 2 3\t1200000000\n2 3 1\t1100000000\n")
    stream = read_edges(path)
    assert (total(stream), named(stream)) == ((2, 4.0), [(1, 2), (2, 3)])
    path.write_text(
        "% sym weighted\n% 3 3 3\n1 2 3 1200000000\n2 3 1 1100000000\n1 3 2 1300000000\n"
    )
    stream = read_edges(path)
    assert stream.columns == "u = column 0, v = column 1, weights = column 2 (guessed)"
    assert total(stream) == (3, 6.0)
    (batch,) = read_edges(path, time=3)
    assert (batch.w.tolist(), batch.t.tolist()) == ([3, 1, 2], [1.2e9, 1.1e9, 1.3e9])


RISING = [(i, i + 1, 7 * i) for i in range(30)]


@pytest.mark.parametrize("form", ["txt", "csv", "npy"])
@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(1, 2, 12e8), (2, 3, 11e8), (3, 4, 13e8)], "column 2 .* may be Unix times, such as 12"),
        (RISING, "column 2 may be the weight, but it grows from row to row, as times do"),
        ([(1, 2, -3), (2, 3, 1)], "column 2 .* has negative numbers, such as -3; use weight_col=2"),
    ],
)
def test_doubtful_numbers_are_asked_about(tmp_path, form, rows, problem):
    path = tmp_path / f"e.{form}"
    if form == "npy":
        np.save(path, np.array(rows, dtype=np.int64))
    else:
        text = "\n".join(" ".join(f"{int(x)}" for x in row) for row in rows)
        path.write_text(text if form == "txt" else text.replace(" ", ","))
    with pytest.raises(SourceError, match=problem):
        read_edges(path)
    (batch,) = read_edges(path, weight_col=False)
    assert batch.w is None
    if rows[0][2] >= 0:
        (batch,) = read_edges(path, time=2)
        assert (batch.w, batch.t.tolist()) == (None, [row[2] for row in rows])


def test_times_in_order_are_no_weights(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("".join(f"{i} {i + 1} {1_200_000_000 + i}\n" for i in range(30)))
    stream = read_edges(path)
    assert "no weights (guessed; column 2 seems to have times" in stream.columns
    assert next(iter(stream)).w is None


@pytest.mark.parametrize("heading", ["", "u;v;w\n"])
def test_decimal_commas(tmp_path, heading):
    path = tmp_path / "e.csv"
    path.write_text(f"{heading}a;b;0,5\nb;c;1,25\nc;d;3\n")
    stream = read_edges(path)
    assert [batch.w.tolist() for batch in stream] == [[0.5, 1.25, 3.0]]
    path.write_text('u,v,w\na,b,"0,5"\nb,c,"1,25"\n')
    assert total(read_edges(path)) == (2, 1.75)


def test_commas_of_thousands_are_no_decimal_commas(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text('u,v,amount\na,b,"1,500"\nb,c,20\nc,d,"12,000"\n')
    with pytest.raises(SourceError, match=r"'1,500', which may be 1500 or 1\.500; write numbers"):
        read_edges(path, weight_col="amount")
    path.write_text("u;v;w\na;b;1,500\nb;c;20,125\n")
    assert total(read_edges(path)) == (2, 21.625)


@pytest.mark.parametrize(
    ("day", "meaning"),
    [
        ("09/01/2026", r"2026-01-09 \(day first\) or 2026-09-01 \(month first\); write the year"),
        ("31.12.2025", "which is 2025-12-31; write the year first"),
        ("12/31/2025 10:30", "which is 2025-12-31; write the year first"),
    ],
)
def test_local_dates_are_refused_with_their_meanings(tmp_path, day, meaning):
    path = tmp_path / "e.csv"
    path.write_text(f"u,v,date\na,b,{day}\nb,c,{day}\n")
    with pytest.raises(SourceError, match=f"row 2: .* got '{day}', which .*{meaning[6:]}"):
        list(read_edges(path, time=True))
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": ["a"], "v": ["b"], "date": [day]})
    with pytest.raises(SourceError, match=f"got '{day}', which .*{meaning[6:]}"):
        list(read_edges(table, time=True))
    path.write_text(f"{day},a,b\n{day},b,c\n")  # no heading, and no node
    assert named(read_edges(path)) == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("name", ["e.xlsx", "e.xls", "e.gexf", "e.lgl", "e.adjlist"])
def test_formats_are_refused_by_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(SourceError, match=r"cannot be read; .* CSV"):
        read_edges(path)
    with pytest.raises(SourceError, match=r"cannot be read; .* CSV"):
        HFSClassifier().fit_edges([("a", "b")], path)
