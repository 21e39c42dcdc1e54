"""Two kinds of nodes, and columns that are guessed, on the command line."""

from pathlib import Path

import numpy as np
import pytest
from commands import invoke, read_rows, refuse, succeed, summary_of
from pages import Page

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are few for:UserWarning")
N = 40
TWO = "--bipartite columns"
LABEL = "label e.csv --labels known.csv -o out.csv"
STATE = "label --state s.ohm -o out.csv --quiet"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_edges("e.csv")
    Path("known.csv").write_text(
        "user_id,label\n" + "".join(f"{i},{'eo'[i % 2]}\n" for i in range(8))
    )


def write_edges(path: str, headings: str = "user,item", seed: int = 0) -> None:
    """Write edges between users and items of equal parity; both are numbered from 0 on."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(N, size=(2, 2000))
    v = v - v % 2 + u % 2
    rows = (f"{a},{b}" for a, b in zip(u, v, strict=True))
    Path(path).write_text("\n".join([headings, *rows]) + "\n")


def rename_ids(heading: str) -> None:
    known = Path("known.csv")
    known.write_text(known.read_text().replace("user_id", heading))


def read_answers() -> dict[str, str]:
    return {node: row["label"] for node, row in read_rows().items()}


def test_labels_of_both_kinds():
    result = succeed(f"{LABEL} {TWO}", said="two kinds of nodes (user:..., item:...) (guessed)")
    assert "80, 8 of them with a label given" in result.stderr
    answers = read_answers()
    assert len(answers) == 2 * N
    assert all(label == "eo"[int(node.partition(":")[2]) % 2] for node, label in answers.items())
    assert {node.partition(":")[0] for node in answers} == {"user", "item"}
    succeed(f"{LABEL} --bipartite no", said="40, 8 of them with a label given")
    write_edges("e.csv", "src,dst")
    rename_ids("kunde")
    succeed(f"{LABEL} --bipartite kunde,ware --quiet")
    assert read_answers()["ware:17"] == "o"


def test_a_plain_id_of_a_label_is_refused():
    rename_ids("node")
    problem = "known.csv: '0' may be of several kinds of nodes; write it as 'user:0' or"
    refuse(f"{LABEL} {TWO}", said=problem)


def test_the_command_of_a_report_is_complete():
    pytest.importorskip("matplotlib")
    rename_ids("node")
    succeed(f"{LABEL} --report page.html --bipartite no --read header=yes")
    assert "--bipartite no --read header=yes" in " ".join(Page(Path("page.html")).text.split())


def test_options_of_kinds():
    write_edges("e.csv", "shop,tag")
    said = "is in both columns, 'shop' and 'tag', and is read as one node"
    result = succeed("info e.csv", said=said)
    assert "use --bipartite shop,tag, if not, --bipartite no" in result.stderr
    assert succeed("info e.csv --bipartite no").stderr.count("\n") == 1
    assert "Nodes        80" in succeed(f"info e.csv {TWO}").stdout


def test_a_state_keeps_its_kinds():
    succeed(f"{STATE} e.csv --labels known.csv {TWO}")
    before = Path("s.ohm").read_bytes()
    for more, headings, problem in (
        ("", "src,dst", "nodes are of the kinds user and item, so ids start with one"),
        (TWO, "customer,product", "has the kinds customer and product, but the nodes so far"),
    ):
        write_edges("b.csv", headings, 1)
        result = refuse(f"{STATE} b.csv {more}".rstrip(), said=problem)
        assert "if they are the same, use --bipartite user,item" in result.stderr
        assert Path("s.ohm").read_bytes() == before
    succeed(f"{STATE} b.csv --bipartite user,item")
    write_edges("b.csv", seed=2)
    succeed(f"{STATE} b.csv --labels known.csv {TWO}")
    assert len(read_answers()) == 2 * N
    Path("known.csv").write_text("user,label\n0,x\n1,o\n")
    result = invoke("label --state s.ohm -o out.csv --labels known.csv --json")
    assert summary_of(result)["state"]["labels"] == {"kept": 6, "replaced": 2, "new": 0}


def test_a_state_without_kinds_refuses_them():
    write_edges("a.csv", "src,dst")
    rename_ids("node")
    succeed(f"{STATE} a.csv --labels known.csv")
    write_edges("b.csv", seed=1)
    result = refuse(f"{STATE} b.csv {TWO}", said="the nodes so far have no kinds, such as")
    assert "for example --bipartite user,item, or --bipartite no" in result.stderr
    succeed(f"{STATE} b.csv --bipartite no")


def test_sparsify_certify_resistance_solve():
    succeed(f"sparsify e.csv -o h.csv --quiet {TWO}")
    assert ",item:" in Path("h.csv").read_text()
    succeed(f"certify e.csv h.csv {TWO}")
    for text in ("user,item\n0,0\n", "u,v\nuser:0,item:0\n"):
        Path("pairs.csv").write_text(text)
        succeed(f"resistance e.csv --pairs pairs.csv --exact -o out.csv {TWO}")
        assert Path("out.csv").read_text().splitlines()[1].startswith("user:0,item:0,")
    Path("pairs.csv").write_text("u,v\n0,2\n")
    problem = "'0' may be of several kinds of nodes; write it as 'user:0' or"
    refuse(f"resistance e.csv --pairs pairs.csv -o out.csv {TWO}", said=problem)
    Path("b.csv").write_text("item,b\n0,1\n2,-1\n")
    succeed(f"solve e.csv b.csv -o out.csv {TWO}")
    Path("b.csv").write_text("node,b\n0,1\n2,-1\n")
    refuse(f"solve e.csv b.csv -o out.csv {TWO}", said=f"row 2: {problem}")


def test_suggest():
    Path("exclude.txt").write_text("user:3\nitem:4\n")
    succeed(f"suggest e.csv --labels known.csv --exclude exclude.txt -o out.csv -k 3 {TWO}")
    assert all(node.startswith(("user:", "item:")) for node in read_rows())
    Path("exclude.txt").write_text("3\n")
    problem = "exclude.txt, row 1: '3' may be of several kinds of nodes"
    refuse(f"suggest e.csv --exclude exclude.txt -o out.csv {TWO}", said=problem)


def test_logs():
    pytest.importorskip("pyarrow")
    write_edges("f.csv", seed=1)
    write_edges("g.csv", "src,dst")
    succeed(f"log append log e.csv {TWO}")
    succeed(f"log append log f.csv {TWO}")
    refuse("log append log g.csv", said="so ids start with one")
    result = succeed(f"log remove log e.csv {TWO}", said="edges removed")
    assert "0 requests that match no edge" in result.stderr
    succeed("log remove-nodes log user:1")
    refuse("log remove-nodes log 1")
    succeed("log append other e.csv --bipartite no")
    said = "0 requests that match no edge; the log has 0 edges"
    succeed("log remove other e.csv", said=said)
