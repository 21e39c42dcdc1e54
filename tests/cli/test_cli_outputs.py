"""No command overwrites what it reads, or one of its outputs with another."""

import os
from pathlib import Path

import pytest
from commands import refuse, succeed

# The inputs are no tables: whoever reads them first fails with another message.
INPUTS = ("edges.csv", "labels.csv", "b.csv", "pairs.csv", "parts/1.csv", "parts/deep/2.csv")
LABEL = "label edges.csv --labels labels.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in INPUTS:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"\0" + name.encode())
    os.symlink("edges.csv", "link.csv")
    os.symlink("parts", "linked")
    os.link("edges.csv", "hard.csv")
    os.mkdir("folder.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{LABEL} -o edges.csv", "-o edges.csv would overwrite what is read: edges.csv;"),
        (f"{LABEL} -o labels.csv", "-o labels.csv would overwrite what is read: labels.csv"),
        (f"{LABEL} -o ./parts/../edges.csv", "would overwrite what is read: edges.csv"),
        (f"{LABEL} -o link.csv", "-o link.csv would overwrite what is read: edges.csv"),
        (f"{LABEL} -o hard.csv", "-o hard.csv would overwrite what is read: edges.csv"),
        (f"{LABEL} -o folder.csv", "-o folder.csv is a folder; name a file in it"),
        (f"{LABEL} --report labels.csv", "--report labels.csv would overwrite what is read"),
        (f"{LABEL} --state edges.csv", "--state edges.csv would overwrite what"),
        (f"{LABEL} --state link.csv", "--state link.csv would overwrite what"),
        (f"{LABEL} -o x.csv --report x.csv", "-o x.csv and --report x.csv are the same file; name"),
        (f"{LABEL} -o parts/x.csv --state linked/x.csv",
         "-o parts/x.csv and --state linked/x.csv are the same file"),
        (f"{LABEL} --report - --state -", "--report - and --state - are the"),
        ("sparsify link.csv -o edges.csv", "overwrite what is read: link.csv"),
        ("sparsify parts -o parts/1.csv", "is read: it is in the folder parts"),
        ("sparsify parts -o parts/new/h.csv", "is read: it is in the folder parts"),
        ("sparsify linked -o parts/h.csv", "is read: it is in the folder linked"),
        ("sparsify parts -o linked/h.csv", "is read: it is in the folder parts"),
        ("sparsify . -o h.csv", "is read: it is in the folder ."),
        ("sparsify parts/*.csv -o parts/1.csv", "it fits the pattern parts/*.csv"),
        ("sparsify parts/*.csv -o linked/h.csv", "it fits the pattern parts/*.csv"),
        ("sparsify parts/** -o parts/a/h.csv", "it fits the pattern parts/**"),
        ("sparsify parts/**/*.csv -o parts/h.csv", "it fits the pattern parts/**"),
        ("sparsify *.csv -o h.csv", "it fits the pattern *.csv"),
        ("sparsify l*.csv -o hard.csv", "overwrite what is read: link.csv"),
        ("sparsify parts edges.csv -o edges.csv", "overwrite what is read: edges"),
        ("resistance edges.csv -o edges.csv", "overwrite what is read: edges.csv"),
        ("resistance edges.csv --pairs pairs.csv -o pairs.csv", "what is read: pairs.csv"),
        ("solve edges.csv b.csv -o edges.csv", "overwrite what is read: edges.csv"),
        ("solve edges.csv b.csv -o b.csv", "overwrite what is read: b.csv"),
        ("demo -o page.png", "-o page.png and its picture page.png are the same file"),
        # What the output is written as at first has a longer name.
        (f"{LABEL} -o {'x' * 250}.csv", "cannot write in the folder ."),
        (f"{LABEL} --state {'x' * 250}", "cannot write in the folder ."),
        (f"{LABEL} --report {'x' * 250}", "cannot write in the folder ."),
        (f"explain edges.csv 1 --labels labels.csv -o {'x' * 250}", "cannot write in the folder ."),
        (f"paper run -o {'x' * 250}", "cannot write in the folder ."),
    ],
)  # fmt: skip
def test_refused_before_any_work(folder: Path, command: str, message: str):
    before = contents(folder)
    refuse(command, said=message)
    assert contents(folder) == before


def contents(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Return what identifies the files, but for the time of the last access."""
    found = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def test_what_only_looks_alike_is_written(folder: Path):
    Path("parts2").mkdir()
    for name in ("edges.csv", "parts/1.csv", "parts/deep/2.csv"):
        Path(name).write_text("u,v\n1,2\n2,3\n")
    for args in (
        ["parts", "-o", "parts2/h.csv"],
        ["parts/*.csv", "-o", "parts/deep/h.csv"],
        ["parts/*.csv", "-o", "parts/h.tsv"],
        ["parts/?.csv", "-o", "parts/10.csv"],
        ["-", "-o", "-.csv"],
    ):
        succeed("sparsify", *args, input=b"1,2\n")
        assert Path(args[-1]).read_text().startswith("u")


@pytest.mark.parametrize(
    "command",
    [
        f"{LABEL} -o OUT.csv",
        f"{LABEL} --report OUT.html",
        f"{LABEL} --state OUT.ohm",
        "suggest edges.csv -o OUT.csv",
        "sparsify edges.csv -o OUT.parquet",
        "sparsify edges.csv -o OUT.ohm",
        "resistance edges.csv -o OUT.csv",
        "solve edges.csv b.csv -o OUT.csv",
        "demo -o OUT.html",
        "paper run -o OUT",
    ],
)
def test_mistyped_folder_is_refused_before_any_work(folder: Path, command: str):
    before = set(folder.rglob("*"))
    for typed, remedy in (
        ("part/x", "there is no folder part; did you mean parts?"),
        ("parts/dep/new/x", "there is no folder parts/dep; did you mean parts/deep?"),
        ("elsewhere/x", "there is no folder elsewhere; make it first"),
        (f"{folder}/part/x", f"there is no folder {folder}/part; did you mean {folder}/parts?"),
        ("edges.csv/x", "there is no folder edges.csv"),
    ):
        words = command.replace("OUT", typed)
        option, path = words.split(" ")[-2:]
        refuse(words, said=f"Error: {option} {path}: {remedy}")
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("option", ["--report", "--state"])
def test_empty_name_of_an_output_is_refused(folder: Path, option: str):
    refuse(LABEL, option, "", said=f"{option} is empty; name a file")


def test_log_is_made_but_not_the_folder_it_is_in(folder: Path):
    Path("edges.csv").write_text("u,v\n1,2\n")
    refuse("log append part/log edges.csv", said="there is no folder part; did you mean parts?")
    assert not Path("part").exists()
    succeed("log append parts/log edges.csv")


def test_default_folder_of_the_demo_is_made(folder: Path):
    succeed("demo --points 605 --neighbors 40")
    assert Path("out/demo.html").exists()
