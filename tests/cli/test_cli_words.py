"""Messages of the command line: options, not parameters of Python functions."""

import re
from dataclasses import fields
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from ohmlearn import HFSClassifier, StreamingSparsifier
from ohmlearn.cli import main
from ohmlearn.cli.option_words import ALIASES, in_options
from ohmlearn.reading.read_options import ReadOptions

# What only a Python programmer would write: a_name, a name_ or name=value, f(...), x[0] = 1.
PYTHON = re.compile(
    r"(?<![\w./'-])[a-z]+(?:_[a-z]+)+_?(?![\w./'-])|\b[a-z]+_(?!\w)|(?<![\w'/])[a-z_]+ ?= ?[^ ]"
    r"|\w\(\.\.\.|\w\[\d+\] =|\bNone\b|\bHFS|[a-z][A-Z]\w+|\.py:"
)
COLUMNS = re.compile(r"^\S+: u = .*$", re.M)  # the line that says which columns are used

FILES = {
    "edges.csv": "src,dst,w,time\n"
    + "".join(f"n{i},n{(7 * i + 1) % 40},{1 + i % 3},{i}\n" for i in range(80)),
    "two.csv": "src,dst\n" + "".join(f"n{i},n{i + 1}\n" for i in range(9)) + "z0,z1\n",
    "negative.csv": "src,dst,w\na,b,-1\n",
    "missing.csv": "src,dst\na,\n",
    "mixed.csv": "src,dst\n" + "1,2\n" * 3000 + "x,y\n",
    "numbers.csv": "src,dst\n1,2\n",
    "early.csv": "src,dst,time\na,b,1\na,c,99999999999999\n",
    "ms.csv": "src,dst,time\n" + "".join(f"a{i},b,{1_700_000_000_000 + i}\n" for i in range(9)),
    "dates.csv": "src,dst,time\n" + "".join(f"a{i},b,2024-01-{1 + i:02d}\n" for i in range(9)),
    "future.csv": "src,dst,time\na,b,2099-01-01\n",
    "odd.csv": "a,b,c,d\nx,y,1,2\n",
    "labels.csv": "node,label\n" + "".join(f"n{i},{'ab'[i % 2]}\n" for i in range(8)),
    "weights.csv": "node,label,weight\nn0,a,-1\nn1,b,1\n",
    "strange.csv": "node,label\nzz,a\nyy,b\n",
    "b.csv": "node,b\nn0,0.1\nn7,-0.7\n",
    "pairs.csv": "u,v\nn0,zz\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    np.save("four.npy", np.array([[0, 1, 1, 5], [1, 2, 1, 6]]))
    u, v, w = np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1.0, -1.0, 1.0])
    np.save("weights.npy", np.stack([u, v, w], axis=1))
    np.savez("weights.npz", u=u, v=v, w=w)
    table = pytest.importorskip("pyarrow").table({"u": u, "v": v, "w": w})
    pytest.importorskip("pyarrow.parquet").write_table(table, "weights.parquet")
    pytest.importorskip("pyarrow.feather").write_feather(table, "weights.arrow")
    return tmp_path


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def labelled(edges: str, options: str = "", labels: str = "labels.csv") -> str:
    return f"label {edges} --labels {labels} -o out.csv {options}"


CASES = [
    (labelled("negative.csv"), "negative.csv, row 2: weights must not be negative nor above 1e+27, "
     "nor below 1.2e-38 unless 0, but 'w' is '-1'; correct it, or use --on-bad skip"),
    (labelled("missing.csv"), "'dst' is empty in 'a,'; correct it, or use --on-bad skip"),
    (labelled("numbers.csv", labels="strange.csv"), "strange.csv: 'zz' is not an integer, but the "
     "ids of the edges are; read those with --id-type string"),
    ("info mixed.csv", "mixed.csv, row 3002: node ids were integers so far, but 'src' is 'x'; if "
     "they are names, use --id-type string; correct it, or use --on-bad skip"),
    (labelled("edges.csv", labels="weights.csv"), "weights.csv, row 2: weights must not be "
     "negative nor above 1e+27, nor below 1.2e-38 unless 0, but 'weight' is '-1'; correct it\n"),
    (labelled("edges.csv", labels="strange.csv"), "strange.csv: no edge has any of these nodes, "
     "such as 'zz'; the edges have nodes such as 'n0'"),
    (labelled("two.csv"), "in components without a label: their label is left empty, and reached "
     "is false there"),
    (labelled("weights.npz"), "weights.npz, row 2: weights must not be negative nor above 1e+27"),
    (labelled("weights.parquet"), "weights.parquet, row 2: weights must not be negative nor above"),
    (labelled("weights.arrow"), "weights.arrow, row 2: weights must not be negative nor above"),
    (labelled("four.npy"), "has four columns; if the last one has times, use --time-col 3"),
    (labelled("ms.csv", "--half-life 7d"), "--half-life 7d needs times in seconds, but they are "
     "Unix milliseconds; give a number in that unit, --half-life 604800000.0"),
    (labelled("ms.csv", "--since 2024-01-01"), "--since 2024-01-01 is a date, but the times are "
     "Unix milliseconds; give a number in that unit"),
    (labelled("dates.csv", "--since 7"), "--since 7 is a number, but the times are dates"),
    (labelled("edges.csv", "--latest 2024-01-01 --time-col time"), "--latest 2024-01-01 is a date, "
     "but the times are neither dates nor Unix times; give --latest as a number"),
    (labelled("early.csv", "--last 7"), "the time 99999999999999.0 is more than a million times "
     "--last 7.0 after all earlier edges, so that these would be forgotten; if it is a typing "
     "error, correct it, or use --latest, --on-bad skip"),
    (labelled("early.csv", "--half-life 1e-9"), "--half-life 1e-09 is too short for times such as"),
    (labelled("future.csv", "--last 7d"), "later than tomorrow (give --latest for another limit)"),
    (labelled("negative.csv", "--last 7d"), "if one has the times, name it, for example "
     "--time-col w"),
    (labelled("edges.csv", "--n-nodes 5"), "Error: the edges have more than 5 nodes; raise "
     "--n-nodes"),
    (labelled("edges.csv", "--max-edges 5"), "--max-edges 5 is fewer than two edges for each of "),
    (labelled("edges.csv", "--memory 900KB --n-nodes 50000"), "--memory 900KB is too little for"),
    (labelled("edges.csv", "--gamma -1"), "--gamma must be 'auto' or a number in [1e-100, 1e+100]"),
    (labelled("edges.csv", "--weight-col src"), "it is not clear which two columns make an edge"),
    (labelled("edges.csv", "--source-col src --target-col dst --weight-col src"),
     "name them with --source-col and --target-col and --weight-col"),
    ("sparsify edges.csv --scheme online --half-life 7", "--half-life needs --scheme resample, got "
     "--scheme online"),
    ("sparsify edges.csv --scheme paper --n-nodes 50 --epsilon 1e-9", "--epsilon 1e-09 is too "
     "close to 0 or 1 for --scheme paper with 50 nodes"),
    ("resistance edges.csv --pairs pairs.csv", "pairs.csv, pair 1: node 'zz' is not in the graph"),
    ("solve two.csv b.csv --tol 1e-300 -o x.csv", "float64 cannot store a better answer: raise "
     "--tol"),
    ("log remove log pairs.csv", "match no live edge of log, the first is number 1"),
    ("log append log edges.csv --epsilon 0.1", "log was made with --epsilon 0.5, got 0.1"),
    ("log remove log edges.csv --time-col time", "have no times; leave out --time-col"),
    ("certify edges.csv edges.csv --last 7d", "--last 7d needs times in seconds"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), CASES)
def test_messages_have_the_words_of_the_command_line(files: Path, command: str, message: str):
    if " log " in command:
        assert invoke("log", "append", "log", "edges.csv").exit_code == 0
    result = invoke(*command.split())
    assert message in result.stderr
    lines = COLUMNS.sub("", result.stderr)
    assert PYTHON.findall(lines) == []


def test_the_check_finds_python_words():
    for text in (
        'use on_bad="skip"', "and reached_ is False", "n_nodes = 5", "with source_col", "u[3] = 5",
        "read_edges(..., x)", "got HFSResult", "use None", "base.py:33: UserWarning: x",
    ):  # fmt: skip
        assert PYTHON.search(text), text
    for text in ("a_file.csv, row 3: 'source_col' is x", "use --on-bad skip", "out/n_nodes.csv"):
        assert not PYTHON.search(text), text


def test_what_users_wrote_stays():
    label = main.commands["label"]
    for text in (
        "n_nodes=5/edges.csv, row 7: 'max_edges' is empty",
        "out/half_life.csv and horizon.csv are the same file",
        "time=2026-01-01/part.csv has no column \"on_bad\"",
        "the memory of 5 MB is needed in time",
    ):  # fmt: skip
        assert in_options(text, label) == text


def test_parameters_of_python_have_an_option_or_cannot_be_set():
    """A parameter that a command passes on must be translated in its messages."""
    unset = {
        # Those of points, objects, and those with a fixed value.
        "label": {"filesystem", "affinity", "kernel_gamma", "n_neighbors", "neighbors", "weights",
                  "metric", "tol", "verbose"},
        "sparsify": {"verbose"},
    }  # fmt: skip
    used = {
        "label": {*HFSClassifier().get_params(), *(field.name for field in fields(ReadOptions))},
        "sparsify": {field.name for field in fields(StreamingSparsifier().options)},
    }
    for name, parameters in used.items():
        options = {str(parameter.name) for parameter in main.commands[name].params}
        known = options | {python for python, other in ALIASES.items() if other in options}
        assert parameters - known <= unset[name]


def test_each_warning_is_one_line_and_quiet_ones_are_none(files: Path):
    command = labelled("two.csv").split()
    warned = [line for line in invoke(*command).stderr.splitlines() if "Warning" in line]
    assert len(warned) == 1
    assert warned[0].startswith("Warning: 2 of 12 nodes are in components without a label")
    assert invoke(*command, "-q").stderr == ""


def test_no_alias_is_the_name_of_an_option():
    names = {
        str(parameter.name)
        for command in main.commands.values()
        for one in (command.commands.values() if isinstance(command, click.Group) else [command])
        for parameter in one.params
    }
    assert not names & ALIASES.keys()
    assert set(ALIASES.values()) <= names
