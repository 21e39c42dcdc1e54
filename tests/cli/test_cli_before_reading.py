"""What can be refused without reading edges is refused before they are read."""

from pathlib import Path
from typing import NoReturn

import pytest
from commands import invoke, refuse, succeed

from ohmlearn.reading import EdgeStream

FILES = {
    "edges.csv": "src,dst,time\n" + "".join(f"n{i % 9},n{i % 7},{i}\n" for i in range(60)),
    "numbers.csv": "src,dst\n" + "".join(f"{i % 9},{i % 7}\n" for i in range(60)),
    "labels.csv": "node,label\nn0,a\nn1,b\nn2,a\nn3,b\n",
    "heading.csv": "who,group\nn0,a\nn1,b\nn2,a\nn3,b\n",
    "other.csv": "u,x\nn0,n1\n",
    "empty.csv": "",
    "header.csv": "src,dst\n",
    "pairs.csv": "u,v\nn0,n1\n",
    "b.csv": "node,b\nn0,1\nn1,-1\n",
    "bad_b.csv": "node,b\nn0,2\n\nn0,one\n",
    "same_b.csv": "id,b,node\n1,2,3\n",
    "ragged_b.csv": "node,b\n1,2,3\n",
    "names.txt": "n0\n",
    "unknown.csv": "node,label\nnobody,red\nno one,blue\n",
    "nodes.csv": "id,age,same\nn0,40,1\nn1,38,1\nn2,41,1\n",
    "strange.csv": "id,x\nr1,1\nr2,2\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    return tmp_path


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the edges were read")

    monkeypatch.setattr(EdgeStream, "batches", refuse)


LABEL = "label edges.csv --labels labels.csv -o out.csv"
FEATURES = f"{LABEL} --features nodes.csv"
CASES = [
    # Headings of all files.
    (f"{LABEL} --read-labels label=group", "labels.csv: has no column 'group', only 'node'"),
    (f"{LABEL} --read-labels node=5", "labels.csv: has no column 5"),
    (f"{LABEL} --from from", "edges.csv: has no column 'from'"),
    (f"{LABEL} --weight amount", "edges.csv: has no column 'amount', only 'src', 'dst', 'time'"),
    ("label edges.csv --labels heading.csv --read-labels label=class", "heading.csv: has no"),
    ("label edges.csv --labels empty.csv", "empty.csv: is empty: there is no line with a label"),
    ("label edges.csv other.csv --labels labels.csv --to dst",
     "other.csv: has no column 'dst', only 'u', 'x'"),
    ("label edges.csv empty.csv --labels labels.csv",
     "empty.csv: is empty: there is no line with an edge"),
    ("resistance edges.csv --pairs empty.csv", "empty.csv: is empty: there is no line with a pair"),
    ("resistance edges.csv --pairs nowhere.csv", "there is no file nowhere.csv"),
    ("info no.csv", "there is no file no.csv"),
    ("solve edges.csv bad_b.csv", "bad_b.csv, row 4: 'b' is not a number: 'one'"),
    ("solve edges.csv same_b.csv", "must have different names, and none may"),
    ("solve edges.csv ragged_b.csv", "row 2: '1,2,3' has 3 fields, but there are 2 columns"),
    ("solve edges.csv header.csv", "header.csv: a header, a column of node ids and one or more"),
    # Ids of another kind.
    ("label numbers.csv --labels labels.csv",
     "labels.csv: the ids of the edges are integers, but 'n0' is not; if the edges have such ids "
     "in later rows, read the edges (not this table) with --read id_type=string"),
    ("suggest numbers.csv --exclude names.txt",
     "names.txt, row 1: the ids of the edges are integers"),
    ("suggest numbers.csv --labels labels.csv", "labels.csv: the ids of the edges are integers"),
    ("resistance numbers.csv --pairs pairs.csv",
     "pairs.csv, pair 1: the ids of the edges are integers"),
    ("solve numbers.csv b.csv", "b.csv, row 2: the ids of the edges are integers"),
    # Values of options, and options that do not go together.
    (f"{LABEL} --class-prior red", "--class-prior needs NAME=PROPORTION, such as ham=0.7,spam=0.3"),
    (f"{LABEL} --class-prior a=0.5,b", "got 'a=0.5,b'"),
    (f"{LABEL} --class-prior labels --class-prior a=1", "or labels alone, got 'labels'"),
    (f"{LABEL} --class-prior a=x", "the proportion of 'a' must be a positive number, got 'x'"),
    (f"{LABEL} --class-prior a=0", "the proportion of 'a' must be a positive number, got '0'"),
    (f"{LABEL} --class-prior a=inf", "of 'a' must be a positive number, got 'inf'"),
    (f"{LABEL} --class-prior a=1,a=2", "--class-prior has two proportions of 'a'"),
    (f"{LABEL} --class-prior a=1,c=1", "--class-prior: no proportion is given for the class 'b'"),
    (f"{LABEL} --class-prior 0=1,1=1", "'a', and '0' and '1' are not among the classes; the"),
    (f"{LABEL} --class-prior a=1,b=1,c=1", "--class-prior: 'c' is not among the classes"),
    (f"{LABEL} --gamma nan", "--gamma must be 'auto' or a number"),
    (f"{LABEL} --min-probability nan", "'--min-probability': nan is not a number."),
    (f"{LABEL} --min-probability 1.5", "1.5 is not in the range 0.0<x<1.0"),
    (f"{LABEL} --epsilon 2", "2.0 is not in the range 0.0<x<1.0"),
    (f"{LABEL} --method best", "'best' is not one of 'auto', 'harmonic', 'restart'"),
    (f"{LABEL} --method logistic", "--method logistic needs --features"),
    (f"{LABEL} --option calibration=some", "'some' is not one of 'loo', 'none'"),
    (f"{LABEL} --memory 5MB", "--memory needs --n-nodes"),
    (f"{LABEL} --memory lots --n-nodes 9", "memory must be"),
    (f"{LABEL} --memory 5MB --n-nodes 9 --max-edges 50",
     "--memory and --max-edges limit the same edges; give one of them"),
    (f"{LABEL} --half-life soon", "--half-life must be a positive number"),
    (f"{LABEL} --half-life 7d --since 5", "--half-life and --since are different ways to forget"),
    (f"{LABEL} --half-life 1d --horizon 3d", "--half-life and --horizon are different ways"),
    (f"{LABEL} --since 2026-01-01 --time nope", "has no column 'nope'"),
    (f"{LABEL} --read latest=5", "--read latest=5 needs times"),
    (f"{LABEL} --option certify=yes", "--option certify= needs --report"),
    (f"{LABEL} -o labels.xls", "labels.xls: the name must end in one of .parquet"),
    (f"{LABEL} --state labels.csv", "--state labels.csv would overwrite what is read"),
    (f"{LABEL} --state names.txt", "names.txt"),
    (f"{LABEL} --threads 0", "--threads 0 has no meaning; use 1 for one thread, -1 for all cores"),
    (f"{LABEL} --seed {2**64}", "Invalid value for '--seed'"),
    ("resistance edges.csv --threads 0", "--threads 0 has no meaning"),
    ("resistance edges.csv --rtol nan", "Invalid value for '--rtol': nan is not a number."),
    ("certify edges.csv edges.csv --eta nan", "Invalid value for '--eta': nan is not a number."),
    ("suggest edges.csv --read-labels label=x", "--read-labels needs --labels"),
    ("suggest edges.csv --labels labels.csv --half-life x", "--half-life must be a positive"),
    ("suggest edges.csv -k 0", "0 is not in the range x>=1"),
    ("suggest edges.csv -o edges.csv", "would overwrite what is read"),
    ("suggest edges.csv --class-prior labels", "--class-prior needs --labels"),
    ("suggest --state nowhere.ohm", "File 'nowhere.ohm' does not exist"),
    ("suggest", "Missing argument 'EDGES...'"),
    ("label --labels labels.csv", "Missing argument 'EDGES...'"),
    ("label edges.csv", "Missing option '--labels'"),
    ("label --state s.ohm --labels labels.csv", "there is no s.ohm yet; give the first EDGES"),
    ("label edges.csv --state s.ohm", "s.ohm has no labels yet; give them with --labels"),
    ("info edges.csv --bipartite a", "'--bipartite': it needs two names"),
    ("info edges.csv --bipartite a,a", "two kinds need different names"),
    ("info edges.csv --read header", "Invalid value for '--read': "),
    ("info edges.csv --read headers=yes", "Invalid value for '--read': "),
    ("info edges.csv --read header=perhaps", "Invalid value for '--read': "),
    ("label edges.csv --source-col=u", "--source-col is no option now; use --from\n"),
    ("label edges.csv --no-header", "--no-header is no option now; use --read header=no\n"),
    ("label edges.csv --csv-safe", "--csv-safe is no option now; use --option csv_safe=yes\n"),
    ("no-such-command", "No such command 'no-such-command'"),
    ("demo --points 10", "10 is not in the range 300<=x<=100000"),
    ("demo --seed -1", "-1 is not in the range x>=0"),
    ("demo -o .", "File '.' is a directory"),
    ("paper run --paper-scheme most", "'most' is not one of 'none', 'some', 'all'"),
    # Features of nodes.
    (f"{FEATURES} --cluster local:2", "--cluster cannot be used with --features"),
    (f"{FEATURES} --memory 2GB --n-nodes 200", "--memory cannot be used with --features"),
    (f"{FEATURES} --passes 3", "--features reads the edges once; leave out --passes"),
    (f"{FEATURES} --method restart", "--method restart is about labels from the edges alone"),
    (f"{FEATURES} --class-prior labels", "--class-prior labels means nothing with --features"),
    (f"{FEATURES} --option normalization=cmn",
     "--option normalization= is about labels from the edges alone"),
    (f"{FEATURES} --gamma -3", "--gamma must be from 0 to 1e+09 with --features"),
    (f"{FEATURES} --features -", "--features cannot be read from a pipe; give a file"),
    (f"{FEATURES} --read-features columns=age,size", "nodes.csv: has no column 'size'"),
    (f"{FEATURES} --read-features node=who", "nodes.csv: has no column 'who'; the columns"),
    (f"{FEATURES} --read-features node=same", "nodes.csv: the id '1' is in the rows 2 and 3"),
    (f"{LABEL} --features none.csv", "there is no file none.csv"),
    (f"{LABEL} --features edges.csv", "'src' and 'dst' seem to be the ends of edges, not features"),
    (f"{LABEL} --features labels.csv", "has no columns of features: 'label' is left out"),
    (f"{FEATURES} -o nodes.csv", "-o nodes.csv would overwrite what is read"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), CASES)
def test_refused_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
):
    if "--pairs" not in command:  # they are read as edges are
        forbid_reading(monkeypatch)
    refuse(command, said=message)
    assert not Path("out.csv").exists()


def test_nodes_that_no_edge_has_are_noticed_after_reading(files: Path):
    for command in ("label", "suggest"):
        problem = "no edge has any of these nodes, such as 'nobody'"
        refuse(command, "edges.csv", "--labels", "unknown.csv", said=problem)
    problem = "none of the 2 ids, such as 'r1', is among the 9 of the graph"
    refuse(*LABEL.split(), "--features", "strange.csv", "--state", "s.ohm", said=problem)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("label new.csv --class-prior a=1,c=1",
         "--class-prior: no proportion is given for the class 'b'"),
        ("label new.csv --since 5",
         "state.ohm was started without --horizon and --since, so it has no times"),
        ("label new.csv --labels more.csv --class-prior a=1,b=1",
         "--class-prior: no proportion is given for the class 'c'"),
        ("suggest edges.csv", "--state has its edges; leave out EDGES, or add them with label"),
        ("suggest --labels labels.csv", "--labels and --state cannot be used together"),
        ("suggest --epsilon 0.5", "--epsilon and --state cannot be used together"),
        ("suggest --class-prior a=1,b=1", "--class-prior and --state cannot be used together"),
        ("suggest --half-life 5", "--half-life and --state cannot be used together"),
    ],
)  # fmt: skip
def test_what_a_state_cannot_use_is_refused_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
):
    Path("more.csv").write_text("node,label\nn4,c\n")
    Path("new.csv").write_text("src,dst\nn1,n5\n")
    succeed(*LABEL.split(), "--state", "state.ohm")
    before = Path("state.ohm").read_bytes()
    forbid_reading(monkeypatch)
    result = invoke(*command.split(), "--state", "state.ohm", "-o", "out.csv")
    assert message in result.stderr
    assert result.exit_code == 2
    assert Path("state.ohm").read_bytes() == before


def test_certify_does_not_consume_a_pipe(files: Path):
    problem = "a pipe can be read only once, but certify needs several passes"
    refuse("certify - edges.csv", input=FILES["edges.csv"], said=problem)


def test_the_first_rows_of_good_label_files_stay(files: Path):
    # The first label is in no other row, but this is so of other labels, too.
    Path("few.csv").write_text("n0,a\nn1,b\nn2,b\nn3,c\n")
    succeed("label edges.csv --labels few.csv -o out.csv")
    assert "n0,a," in Path("out.csv").read_text()


@pytest.mark.parametrize(
    ("ending", "text"),
    [(".csv", "src,dst\n"), (".txt", "# nothing\n"), (".jsonl", "\n"), (".mtx", "5 5 0\n")],
)
def test_a_file_without_a_row_is_blamed_and_not_the_other(files: Path, ending: str, text: str):
    if ending == ".mtx":
        text = "%%MatrixMarket matrix coordinate pattern symmetric\n" + text
    Path(f"none{ending}").write_text(text)
    for edges in ([f"none{ending}"], [f"none{ending}"] * 2):
        for command in ("label", "suggest"):
            result = refuse(command, *edges, "--labels", "labels.csv")
            assert f"Error: none{ending}" in result.stderr
            assert "no edge" in result.stderr or "no line with an edge" in result.stderr
    if ending != ".mtx":
        Path(f"none{ending}").write_text(text.replace("src,dst", "node,label"))
        result = refuse("label edges.csv --labels", f"none{ending}")
        assert f"Error: none{ending}: " in result.stderr
        assert "label" in result.stderr.rpartition(": ")[2]


def test_if_all_rows_are_bad_the_first_is_named(files: Path):
    Path("bad.csv").write_text("src,dst\na,\n,b\n")
    result = refuse("label bad.csv --labels labels.csv --on-bad skip")
    text = "Error: bad.csv: all 2 rows are bad; the first is bad.csv, row 2: 'dst' is"
    assert text in result.stderr


def test_files_without_a_row_may_be_beside_others(files: Path):
    succeed("label edges.csv header.csv --labels labels.csv -o two.csv")
    succeed(*LABEL.split(), "--state", "state.ohm")
    assert Path("out.csv").read_text() == Path("two.csv").read_text()
    result = succeed("label header.csv --state state.ohm -o out.csv")
    assert "0 edges added" in result.stderr
