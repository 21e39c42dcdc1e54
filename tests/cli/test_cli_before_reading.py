"""What can be refused without reading edges is refused before they are read."""

from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ohmlearn.cli import main
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
    "bad_b.csv": "node,b\nn0,one\n",
    "names.txt": "n0\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    return tmp_path


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the edges were read")

    monkeypatch.setattr(EdgeStream, "batches", refuse)


LABEL = "label edges.csv --labels labels.csv -o out.csv"
CASES = [
    # Headings of all files.
    (f"{LABEL} --read-labels label=group", "labels.csv: has no column 'group', only 'node'"),
    (f"{LABEL} --read-labels node=5", "labels.csv: has no column 5"),
    (f"{LABEL} --from from", "edges.csv: has no column 'from'"),
    ("label edges.csv --labels heading.csv --read-labels label=class", "heading.csv: has no"),
    ("label edges.csv --labels empty.csv", "empty.csv: is empty: there is no line with a label"),
    ("label edges.csv other.csv --labels labels.csv --to dst",
     "other.csv: has no column 'dst', only 'u', 'x'"),
    ("label edges.csv empty.csv --labels labels.csv",
     "empty.csv: is empty: there is no line with an edge"),
    ("resistance edges.csv --pairs empty.csv", "empty.csv: is empty: there is no line with a pair"),
    ("resistance edges.csv --pairs nowhere.csv", "there is no file nowhere.csv"),
    ("solve edges.csv bad_b.csv", "bad_b.csv, row 2: 'b' is not a number: 'one'"),
    ("solve edges.csv header.csv", "header.csv: a header, a column of node ids and one or more"),
    # Ids of another kind.
    ("label numbers.csv --labels labels.csv",
     "labels.csv: 'n0' is not an integer, but the ids of the edges are; read those with "
     "--read id_type=string"),
    ("suggest numbers.csv --exclude names.txt", "names.txt, row 1: 'n0' is not an integer"),
    ("suggest numbers.csv --labels labels.csv", "labels.csv: 'n0' is not an integer"),
    ("resistance numbers.csv --pairs pairs.csv", "pairs.csv, pair 1: 'n0' is not an integer"),
    ("solve numbers.csv b.csv", "b.csv, row 2: 'n0' is not an integer"),
    # Values of options, and options that do not go together.
    (f"{LABEL} --class-prior a=1,c=1", "--class-prior has no share of 'b'"),
    (f"{LABEL} --gamma nan", "--gamma must be 'auto' or a number"),
    (f"{LABEL} --min-probability nan", "'--min-probability': nan is not a number."),
    (f"{LABEL} --memory 5MB", "--memory needs --n-nodes"),
    (f"{LABEL} --memory 5MB --n-nodes 9 --max-edges 50",
     "--memory and --max-edges limit the same edges; give one of them"),
    (f"{LABEL} --half-life 7d --since 5", "--half-life and --since are different ways to forget"),
    (f"{LABEL} --since 2026-01-01 --time nope", "has no column 'nope'"),
    (f"{LABEL} --read latest=5", "--read latest=5 needs times"),
    (f"{LABEL} --certify", "--certify needs --report"),
    (f"{LABEL} --state labels.csv", "--state labels.csv would overwrite what is read"),
    (f"{LABEL} --state names.txt", "names.txt"),
    (f"{LABEL} --threads 0", "--threads 0 has no meaning; use 1 for one thread, -1 for all cores"),
    (f"{LABEL} --seed {2**64}", "Invalid value for '--seed'"),
    ("resistance edges.csv --threads 0", "--threads 0 has no meaning"),
    ("resistance edges.csv --rtol nan", "Invalid value for '--rtol': nan is not a number."),
    ("certify edges.csv edges.csv --eta nan", "Invalid value for '--eta': nan is not a number."),
    ("suggest edges.csv --read-labels label=x", "--read-labels needs --labels"),
    ("suggest edges.csv --labels labels.csv --half-life x", "--half-life must be a positive"),
    ("suggest --state nowhere.ohm", "File 'nowhere.ohm' does not exist"),
    ("suggest", "Missing argument 'EDGES...'"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), CASES)
def test_refused_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
):
    with monkeypatch.context() as patch:
        forbid_reading(patch)
        if "--pairs" in command:  # they are read as edges are
            patch.undo()
        result = invoke(*command.split())
    assert message in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--class-prior a=1,c=1", "--class-prior has no share of 'b'"),
        ("--since 5", "state.ohm was started without --horizon and --since, so it has no times"),
        ("--labels more.csv --class-prior a=1,b=1", "--class-prior has no share of 'c'"),
    ],
)
def test_what_a_state_cannot_use_is_refused_before_reading(
    files: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
):
    Path("more.csv").write_text("node,label\nn4,c\n")
    assert invoke(*LABEL.split(), "--state", "state.ohm").exit_code == 0
    before = Path("state.ohm").read_bytes()
    Path("new.csv").write_text("src,dst\nn1,n5\n")
    with monkeypatch.context() as patch:
        forbid_reading(patch)
        args = ["label", "new.csv", "--state", "state.ohm", "-o", "out.csv", *options.split()]
        result = invoke(*args)
    assert message in result.stderr
    assert result.exit_code == 2
    assert Path("state.ohm").read_bytes() == before


def test_certify_does_not_consume_a_pipe(files: Path):
    result = CliRunner().invoke(main, ["certify", "-", "edges.csv"], input=FILES["edges.csv"])
    assert result.exit_code == 2
    assert "a pipe can be read only once, but certify needs several passes" in result.stderr


def test_the_first_rows_of_good_label_files_stay(files: Path):
    # The first label is in no other row, but this is so of other labels, too.
    Path("few.csv").write_text("n0,a\nn1,b\nn2,b\nn3,c\n")
    result = invoke("label", "edges.csv", "--labels", "few.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert "n0,a," in Path("out.csv").read_text()


def write_empty(path: Path, ends: tuple[str, str], ending: str) -> None:
    """Write a table with headings and no row, or what is like it in a format."""
    file = path.with_suffix(ending)
    if ending in (".csv", ".txt"):
        file.write_text(",".join(ends) + "\n" if ending == ".csv" else "# nothing\n")
    elif ending == ".tsv":
        file.write_text("\t".join(ends) + "\n")
    elif ending == ".jsonl":
        file.write_text("\n")
    elif ending == ".npy":
        np.save(file, np.empty((0, 2), np.int64))
    elif ending == ".mtx":
        file.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n5 5 0\n")
    else:
        pa = pytest.importorskip("pyarrow")
        table = pa.table({name: pa.array([], pa.string()) for name in ends})
        if ending == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, file)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(table, str(file))


ENDINGS = [".csv", ".tsv", ".txt", ".jsonl", ".npy", ".mtx", ".parquet", ".arrow"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_edges_without_a_row_are_blamed_not_the_labels(files: Path, ending: str):
    write_empty(files / "none", ("src", "dst"), ending)
    for command in ("label", "suggest"):
        result = invoke(command, f"none{ending}", "--labels", "labels.csv", "-o", "out.csv")
        assert result.exit_code == 2, result.stderr
        assert f"Error: none{ending}: " in result.stderr
        assert "no edge" in result.stderr or "no line with an edge" in result.stderr
    result = invoke("label", f"none{ending}", f"none{ending}", "--labels", "labels.csv")
    assert f"Error: none{ending}" in result.stderr


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".mtx"])
def test_labels_without_a_row_are_blamed_not_the_edges(
    files: Path, monkeypatch: pytest.MonkeyPatch, ending: str
):
    write_empty(files / "none", ("node", "label"), ending)
    with monkeypatch.context() as patch:
        forbid_reading(patch)
        result = invoke("label", "edges.csv", "--labels", f"none{ending}")
    assert result.exit_code == 2, result.stderr
    assert f"Error: none{ending}: " in result.stderr
    assert "label" in result.stderr.rpartition(": ")[2]


def test_if_all_rows_are_bad_the_first_is_named(files: Path):
    Path("bad.csv").write_text("src,dst\na,\n,b\n")
    result = invoke("label", "bad.csv", "--labels", "labels.csv", "--on-bad", "skip")
    assert result.exit_code == 2
    assert "Error: bad.csv: all 2 rows are bad; the first is bad.csv, row 2: 'dst' is" in (
        result.stderr
    )


def test_one_of_several_files_may_have_no_row(files: Path):
    result = invoke("label", "edges.csv", "header.csv", "--labels", "labels.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert invoke("label", "edges.csv", "--labels", "labels.csv", "-o", "one.csv").exit_code == 0
    assert Path("out.csv").read_text() == Path("one.csv").read_text()


def test_a_state_takes_in_a_day_without_edges(files: Path):
    assert invoke(*LABEL.split(), "--state", "state.ohm").exit_code == 0
    result = invoke("label", "header.csv", "--state", "state.ohm", "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert "0 edges added" in result.stderr
