"""Two kinds of nodes, and columns that are guessed, on the command line."""

from pathlib import Path

import numpy as np
import pytest
from commands import invoke, read_rows, refuse, succeed, summary_of

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")
N = 40
TWO = ("--bipartite", "columns")


def write_edges(path: Path, headings: str = "user,item", seed: int = 0) -> Path:
    """Write edges between users and items of equal parity; both are numbered from 0 on."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(N, size=(2, 2000))
    v = v - v % 2 + u % 2
    rows = (f"{a},{b}" for a, b in zip(u, v, strict=True))
    path.write_text("\n".join([headings, *rows]) + "\n")
    return path


def read_answers(path: Path) -> dict[str, str]:
    return {node: row["label"] for node, row in read_rows(path).items()}


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.csv"
    path.write_text("user_id,label\n" + "".join(f"{i},{'eo'[i % 2]}\n" for i in range(8)))
    return path


def test_labels_of_both_kinds(tmp_path: Path, known: Path):
    edges, out = write_edges(tmp_path / "e.csv"), tmp_path / "out.csv"
    result = succeed("label", edges, "--labels", known, "-o", out, *TWO)
    assert "two kinds of nodes (user:..., item:...) (guessed)" in result.output
    assert "80, 8 of them with a label given" in result.output
    answers = read_answers(out)
    assert len(answers) == 2 * N
    assert all(label == "eo"[int(node.partition(":")[2]) % 2] for node, label in answers.items())
    assert {node.partition(":")[0] for node in answers} == {"user", "item"}

    result = invoke("label", edges, "--labels", known, "-o", out, "--bipartite", "no")
    assert "40, 8 of them with a label given" in result.output
    write_edges(edges, "src,dst")
    known.write_text(known.read_text().replace("user_id", "kunde"))
    succeed("label", edges, "--bipartite", "kunde,ware", "--labels", known, "-o", out, "--quiet")
    assert read_answers(out)["ware:17"] == "o"


def test_a_plain_id_of_a_label_is_refused(tmp_path: Path, known: Path):
    edges = write_edges(tmp_path / "e.csv")
    known.write_text(known.read_text().replace("user_id", "node"))
    result = refuse("label", edges, "--labels", known, "-o", tmp_path / "out.csv", *TWO)
    problem = "known.csv: '0' may be of several kinds of nodes; write it as 'user:0' or"
    assert problem in result.output


def test_the_command_of_a_report_is_complete(tmp_path: Path, known: Path):
    pytest.importorskip("matplotlib")
    edges, page = write_edges(tmp_path / "e.csv"), tmp_path / "page.html"
    known.write_text("node,label\n0,e\n1,o\n2,e\n3,o\n")
    words = ("label", edges, "--labels", known, "-o", tmp_path / "out.csv", "--report", page)
    succeed(*words, "--bipartite", "no", "--read", "header=yes")
    text = page.read_text()
    assert "--bipartite", "no" in text
    assert "--read", "header=yes" in text
    assert "--bipartite", "columns" not in text


def test_options_of_kinds(tmp_path: Path):
    edges = write_edges(tmp_path / "e.csv", "shop,tag")
    result = invoke("info", edges)
    assert "is in both columns, 'shop' and 'tag', and is read as one node" in result.output
    assert "use --bipartite shop,tag, if not, --bipartite no" in result.output
    assert invoke("info", edges, "--bipartite", "no").stderr.count("\n") == 1
    assert "Nodes        80" in invoke("info", edges, "--bipartite", "columns").output


def test_a_state_keeps_its_kinds(tmp_path: Path, known: Path):
    state, out = tmp_path / "s.ohm", tmp_path / "out.csv"
    first, second = write_edges(tmp_path / "a.csv"), tmp_path / "b.csv"
    command = ("label", "--state", state, "-o", out, "--quiet")
    succeed(*command, first, "--labels", known, *TWO)
    before = state.read_bytes()
    for more, headings, problem in (
        ((), "src,dst", "nodes are of the kinds user and item, so ids start with one"),
        (TWO, "customer,product", "has the kinds customer and product, but the nodes so far"),
    ):
        result = refuse(*command, write_edges(second, headings, 1), *more)
        assert problem in result.output
        assert "if they are the same, use --bipartite user,item" in result.output
        assert state.read_bytes() == before
    succeed(*command, second, "--bipartite", "user,item")
    succeed(*command, write_edges(second, "user,item", 2), "--labels", known, *TWO)
    answers = read_answers(out)
    assert len(answers) == 2 * N
    known.write_text("user,label\n0,x\n1,o\n")
    result = invoke("label --state", state, "-o", out, "--labels", known, "--json")
    counts = summary_of(result)["state"]["labels"]
    assert counts == {"kept": 6, "replaced": 2, "new": 0}


def test_a_state_without_kinds_refuses_them(tmp_path: Path):
    state, out, known = tmp_path / "s.ohm", tmp_path / "out.csv", tmp_path / "known.csv"
    known.write_text("node,label\n0,e\n1,o\n")
    command = ("label", "--state", state, "-o", out, "--quiet")
    first = write_edges(tmp_path / "a.csv", "src,dst")
    succeed(*command, first, "--labels", known)
    second = write_edges(tmp_path / "b.csv", seed=1)
    result = refuse(*command, second, *TWO)
    assert "the nodes so far have no kinds, such as" in result.output
    assert "for example --bipartite user,item, or --bipartite no" in result.output
    succeed(*command, second, "--bipartite", "no")


def test_sparsify_certify_resistance_solve(tmp_path: Path):
    edges, h = write_edges(tmp_path / "e.csv"), tmp_path / "h.csv"
    succeed("sparsify", edges, "-o", h, "--quiet", *TWO)
    assert ",item:" in h.read_text()
    succeed("certify", edges, h, *TWO)
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    for text in ("user,item\n0,0\n", "u,v\nuser:0,item:0\n"):
        pairs.write_text(text)
        succeed("resistance", edges, "--pairs", pairs, "--exact", "-o", out, *TWO)
        assert out.read_text().splitlines()[1].startswith("user:0,item:0,")
    pairs.write_text("u,v\n0,2\n")
    problem = "'0' may be of several kinds of nodes; write it as 'user:0' or"
    refuse("resistance", edges, "--pairs", pairs, "-o", out, *TWO, said=problem)
    b = tmp_path / "b.csv"
    b.write_text("item,b\n0,1\n2,-1\n")
    succeed("solve", edges, b, "-o", out, *TWO)
    b.write_text("node,b\n0,1\n2,-1\n")
    assert (
        "row 2: '0' may be of several kinds of nodes"
        in invoke("solve", edges, b, "-o", out, *TWO).output
    )


def test_suggest(tmp_path: Path, known: Path):
    edges, exclude = write_edges(tmp_path / "e.csv"), tmp_path / "exclude.txt"
    exclude.write_text("user:3\nitem:4\n")
    out = tmp_path / "out.csv"
    succeed("suggest", edges, "--labels", known, "--exclude", exclude, "-o", out, "-k", 3, *TWO)
    assert all(
        node.startswith(("user:", "item:"))
        for node in (line.split(",")[0] for line in out.read_text().splitlines()[1:])
    )
    exclude.write_text("3\n")
    problem = "exclude.txt, row 1: '3' may be of several kinds of nodes"
    refuse("suggest", edges, "--exclude", exclude, "-o", out, *TWO, said=problem)


def test_logs(tmp_path: Path):
    pytest.importorskip("pyarrow")
    edges, log = write_edges(tmp_path / "e.csv"), tmp_path / "log"
    succeed("log append", log, edges, *TWO)
    succeed("log append", log, write_edges(tmp_path / "f.csv", seed=1), *TWO)
    refuse(
        "log append", log, write_edges(tmp_path / "g.csv", "src,dst"), said="so ids start with one"
    )
    result = invoke("log remove", log, edges, *TWO)
    assert "edges removed" in result.output
    assert "0 requests that match no edge" in result.output
    succeed("log remove-nodes", log, "user:1")
    refuse("log remove-nodes", log, "1")
    other = tmp_path / "other"
    succeed("log append", other, edges, "--bipartite", "no")
    result = invoke("log remove", other, edges)
    assert "0 requests that match no edge; the log has 0 edges" in result.output
