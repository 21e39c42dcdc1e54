"""Names from files and arguments are text for the terminal and, if asked, for spreadsheets."""

import csv
import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import Result
from commands import invoke, refuse, succeed

RED, TITLE = "\x1b[31m", "\x1b]0;owned\x07"
C1, BIDI = "\x9b2J", "\u202e"
ODD = RED + C1 + BIDI
SHOWN = r"\x1b[31m\x9b2J\u202e"


def is_clean(result: Result) -> bool:
    return all(line.isprintable() for line in result.stderr.splitlines())


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of edges and one of labels, with escape sequences in all names."""
    monkeypatch.chdir(tmp_path)
    names = [f"n{i}{ODD}" for i in range(4)]
    edges = f"edges{ODD}.csv"
    rows = [f"{a},{b},1" for a, b in pairwise(names)]
    Path(edges).write_text("\n".join([f"src,dst,w{TITLE}", *rows]), encoding="utf-8")
    lines = ["node,label", f"{names[0]},{RED}red", f"{names[3]},blue\x7f", f"x{ODD},blue\x7f"]
    Path(f"labels{ODD}.csv").write_text("\n".join(lines), encoding="utf-8")
    return edges


def test_summaries_warnings_and_columns(odd: str):
    result = succeed("label", odd, "--labels", f"labels{ODD}.csv", "-o", f"out{ODD}.csv")
    assert is_clean(result)
    assert f"edges{SHOWN}.csv: u = 'src', v = 'dst'" in result.stderr
    assert r"\x1b[31mred: 2" in result.stderr
    assert rf"such as 'x{SHOWN}'" in result.stderr.replace(r"\\", "\\")
    # What is written stays as it was.
    with open(f"out{ODD}.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["node"] == f"n0{ODD}"
    assert rows[0]["label"] == f"{RED}red"


@pytest.mark.parametrize(
    "args",
    [
        ["info", f"no{ODD}"],
        ["info", "{odd}", "--from", f"x{ODD}"],
        ["info", "{odd}", "--weight", f"v{TITLE}"],
        ["info", "{odd}", f"--no{ODD}"],
        ["info", "{odd}", "--read", f"format={ODD}"],
        ["info", "{odd}", "--read", f"comment=a{ODD}"],
        ["label", "{odd}", "--labels", f"no{ODD}"],
        ["label", "{odd}", "--labels", "{odd}", "-o", f"out{ODD}.xls"],
        ["sparsify", "{odd}", "-o", "{odd}"],
        ["label", "{odd}", "--labels", "{odd}", "--cluster", f"local:{ODD}"],
        [f"no{ODD}"],
        [f"--no{ODD}"],
        ["demo", "--points", ODD],
        ["demo", "-o", f"{ODD}.png"],
    ],
)
def test_errors(odd: str, args: list[str]):
    Path("bad.csv").write_text(f"u,v,w\na,b,x{ODD}\n", encoding="utf-8")
    result = refuse(*[odd if arg == "{odd}" else arg for arg in args])
    assert is_clean(result)
    assert r"\x1b" in result.stderr


def test_rows_left_out(odd: str):
    Path(odd).write_text(f"u,v,w\na,b,x{ODD}\nb,c,1\n", encoding="utf-8")
    result = invoke("info", odd, "--on-bad", "skip")
    assert is_clean(result)
    assert f"1 bad row left out; edges{SHOWN}.csv, row 2" in result.stderr
    result = refuse("info", odd)
    assert is_clean(result)


def test_json_is_ascii(odd: str):
    result = invoke("label", odd, "--labels", f"labels{ODD}.csv", "-o", "out.csv", "--json")
    assert result.stderr.isascii()
    assert "\x1b" not in result.stderr
    assert json.loads(result.stderr.splitlines()[-1])["sources"] == [odd]


FORMULAS = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", " =a", "＝a", "-1+1"]
HARMLESS = ["a=b", "-1", "+2.5", "-3e5", "'a", "a;=b"]


@pytest.fixture
def formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    names = [*FORMULAS, *HARMLESS]
    with open("edges.csv", "w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["u", "v"], *([name, "hub"] for name in names)])
    with open("labels.csv", "w") as file:
        file.write("node,label\n=1+1,=2\nhub,b\n")
    with open("b.csv", "w") as file:
        file.write("node,=b\n=1+1,1\nhub,-1\n")
    return names


def read(path: str, mark: str = ",") -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter=mark))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_formulas_are_text_if_asked(formulas: list[str], ending: str):
    mark = "\t" if ending == "tsv" else ","
    safe = [f"'{name}" for name in FORMULAS] + HARMLESS
    args = ["sparsify", "edges.csv", "--read", "id_type=string", "-o", f"h.{ending}"]
    for more, expected in (([], formulas), (["--option", "csv_safe=yes"], safe)):
        succeed(*args, *more)
        rows = read(f"h.{ending}", mark)
        assert sorted({row[at] for row in rows[1:] for at in (0, 1)} - {"hub"}) == sorted(expected)
        assert all(row[2] == "1.0" for row in rows[1:])
    assert '"a;=b"' in Path(f"h.{ending}").read_text()  # no cell begins inside of another


def test_all_tables_can_be_safe(formulas: list[str]):
    options = ["--read", "id_type=string", "--option", "csv_safe=yes"]
    common = ["edges.csv", *options, "-q", "-o", "out.csv"]
    succeed("label", *common, "--labels", "labels.csv")
    rows = read("out.csv")
    assert rows[0] == ["node", "label", "probability_=2", "probability_b", "reached", "prior_label"]
    assert rows[1][:2] == ["'=1+1", "'=2"]
    succeed("resistance", *common)
    assert read("out.csv")[1][0] == "'=1+1"
    succeed("resistance", *common, "--pairs", "edges.csv")
    assert read("out.csv")[1][0] == "'=1+1"
    succeed("solve edges.csv b.csv", *common[1:])
    rows = read("out.csv")
    assert rows[0] == ["node", "'=b"]
    assert rows[1][0] == "'=1+1"
    assert (
        invoke("sparsify edges.csv", *options, "-q").stdout.splitlines()[1].startswith('"\'=1+1"')
    )


def test_integers_stay_and_other_formats_are_refused(formulas: list[str]):
    Path("numbers.csv").write_text("u,v\n-1,2\n2,-3\n")
    shown = invoke("sparsify numbers.csv -q --option csv_safe=yes")
    assert shown.stdout.split()[1:] == ["-1,2,1.0", "2,-3,1.0"]
    refuse(
        "sparsify edges.csv --option csv_safe=yes -o h.jsonl",
        said="--option csv_safe=... is for .csv and .tsv, but the output is h.jsonl; leave it",
    )
    assert not os.path.exists("h.jsonl")
