"""Which columns are the ends of edges, and which kinds of nodes their headings name."""

import pytest
from stream_cases import edges

from ohmlearn import read_edges
from ohmlearn.reading import SourceError
from ohmlearn.reading.column_choice import (
    find_ends,
    is_one_kind,
    kind_of,
    kinds_of_headings,
    names_kind,
    simplify,
)
from ohmlearn.reading.read_options import EDGE_ENDS


def test_a_timestamp_is_not_an_end(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("seen_at,src_package,dst_package\n2026-01-01,a,b\n2026-01-02,b,c\n")
    assert read_edges(path).columns == "u = 'src_package', v = 'dst_package', no weights (guessed)"
    assert edges(read_edges(path)) == (["a", "b"], ["b", "c"], None)
    path.write_text("when,giver,taker\n2026-01-01 12:30,a,b\n2026-01-02 12:30,b,c\n")
    assert edges(read_edges(path, bipartite=False))[0] == ["a", "b"]
    # Named, it is an end.
    stream = read_edges(path, source_col="when", target_col="taker")
    assert edges(stream)[0] == ["2026-01-01 12:30", "2026-01-02 12:30"]


@pytest.mark.parametrize(
    ("headings", "ends"),
    [
        ("ts,from_account,to_account,amount", (1, 2)),
        ("id,account_from,account_to", (1, 2)),
        ("package_src,version,package_dst", (0, 2)),
        ("date,payer_id,payee_id", (1, 2)),
        ("id_a,id_b,id", (0, 1)),
        ("player1,player2,round", (0, 1)),
        ("Source IP,Destination IP,Protocol", (0, 1)),
        ("sourceNodeId,targetNodeId,type", (0, 1)),
        (":START_ID,:END_ID,:TYPE", (0, 1)),
        ("src_id,dst_id,src_type,dst_type", (0, 1)),
        ("timestamp,userId,movieId,rating", (1, 2)),
        ("user_id,item_id,category", (0, 1)),
        ("buyer,seller,product", (0, 1)),
        ("src_ip,src_port,dst_ip,dst_port", None),
        ("x1,y1,x2,y2", None),
        ("start_time,end_time,a1,a2", (2, 3)),
        ("user,item,category", None),
        ("score_1,score_2,shop,tag", None),
        ("giver,taker,what", (0, 1)),
        ("a,b,c", None),
        ("shop,tag", None),
    ],
)
def test_pairs_of_headings(headings, ends):
    assert find_ends(headings.split(","), EDGE_ENDS) == ends


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shop,tag,what\n1,2,3\n", "make an edge: there are 'shop', 'tag', 'what'; name them"),
        ("a,b,c\n1,2,3\n", "make an edge: there are 'a', 'b', 'c'"),
        ("day,who\n2026-01-01,2\n", r"'day', 'who' \('day' seems to have times\); name them"),
        ("time,who\n5,2\n", r"\('time' seems to have times\)"),
        ("2026-01-01,a,b,c\n", r"columns 0 to 3 \(column 0 seems to have times\); name"),
        ("0.5,1,2,3\n1.5,1,2,3\n", r"\(column 0 seems to have numbers that are not ids\)"),
        ("src_ip,src_port,dst_ip,dst_port\n1,2,3,4\n", "there are 'src_ip', 'src_port', 'dst_ip'"),
    ],
)
def test_weak_guesses_are_refused(tmp_path, text, problem):
    path = tmp_path / "e.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=problem):
        read_edges(path)


@pytest.mark.parametrize(
    ("text", "columns", "weights"),
    [
        ("1 2\n", (0, 1), None),
        ("1 2 3\n", (0, 1), 2),
        ("6 2 4 1289241911.72\n2 6 4 1289241941.53\n", (0, 1), 2),
        ("ann bob 0.5\n", (0, 1), 2),
        ("2026-01-01 1 2\n2026-01-02 1 2\n", (1, 2), None),
        ("0.5 1 2\n0.25 3 4\n", (1, 2), 0),
        ("".join(f"{1_700_000_000 + 9 * i} {i} {i + 1}\n" for i in range(9)), (1, 2), None),
        ("".join(f"{1_700_000_000 - 7**i} {i} {i + 1}\n" for i in (3, 1, 4, 2, 5)), (0, 1), 2),
        ("1.0 2.0 1\n2.0 3.0 1\n", (0, 1), 2),
    ],
)
def test_lists_without_headings(tmp_path, text, columns, weights):
    path = tmp_path / "e.txt"
    path.write_text(text)
    u, v = columns
    found = str(read_edges(path).columns)
    weights = "no weights" if weights is None else f"weights = column {weights}"
    assert found.startswith(f"u = column {u}, v = column {v}, {weights} (guessed")


def test_one_end_is_named(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("who,what,where\n1,2,3\n")
    with pytest.raises(SourceError, match="which two columns make an edge"):
        read_edges(path, source_col="who")
    path.write_text("who,seen_at,what\n1,2,3\n")
    assert edges(read_edges(path, source_col="what", bipartite=False)) == ([3], [1], None)
    path.write_text("src,dst,who\n1,2,3\n")
    assert edges(read_edges(path, source_col="who", bipartite=False)) == ([3], [2], None)
    path = tmp_path / "e.txt"
    path.write_text("1 2 3\n")
    assert edges(read_edges(path, source_col=2)) == ([3], [2], [1.0])
    assert edges(read_edges(path, source_col=1)) == ([2], [1], [3.0])


def test_columns_by_type():
    pa = pytest.importorskip("pyarrow")
    import datetime

    day = datetime.datetime(2026, 1, 1)
    table = pa.table({"when": [day], "who": ["a"], "whom": ["b"], "sum": [0.5]})
    assert edges(read_edges(table, bipartite=False)) == (["a"], ["b"], None)
    with pytest.raises(SourceError, match=r"'who' \('when' seems to have times\)"):
        read_edges(table.select(["when", "who"]))
    with pytest.raises(SourceError, match="'when' has type timestamp"):
        read_edges(table, source_col="when", target_col="who")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("seen_at src_package dst_package\n2026-01-01 a b\n2026-01-02 b c\n", ["a", "b"]),
        ("user_id item_id\nann milk\nbob tea\n", ["ann", "bob"]),
        # Words, not names of columns:
        ("song artist\nsong music\nartist fame\n", ["song", "song", "artist"]),
        ("p1 p2\np2 p3\n", ["p1", "p2"]),
        ("a b\nb c\n", ["a", "b"]),
    ],
)
def test_headings_of_text(tmp_path, text, first):
    (tmp_path / "e.txt").write_text(text)
    assert edges(read_edges(tmp_path / "e.txt"))[0] == first


@pytest.mark.parametrize(
    ("function", "headings", "expected"),
    [
        (simplify, ["FromNodeId", " User ID", ":START_ID", "Kunde-Nr."],
         ["from_node_id", "user_id", "start_id", "kunde_nr"]),
        (kind_of, ["MovieID", "Query Key", "grid", "id", "Ünïcode-Nr", "姓名_id"],
         ["movie", "query", "grid", "id", "ünïcode", "姓名"]),
        (lambda pair: kinds_of_headings(*pair),
         [("Kunden_ID", "Ware"), ("u", "v"), ("user", "User_ID"), ("##", "dst")],
         [("kunden", "ware"), ("left", "right"), ("left", "right"), ("left", "right")]),
        (lambda heading: names_kind(heading, "User"), ["user", "userid", "Users", "node"],
         [True, True, True, False]),
        (lambda pair: is_one_kind(*pair), [("shop", "tag"), ("payee_id", "payer_id"), ("a", "b"),
         ("node1", "node2"), ("id_a", "id_b"), ("dst_x", "src_x"), ("物", "shop")],
         [False, True, True, True, True, True, False]),
    ],
)  # fmt: skip
def test_what_headings_mean(function, headings, expected):
    assert [function(heading) for heading in headings] == expected
