"""The wording of messages in Python, on the command line and over HTTP: tests/unit/messages.txt.

Other tests assert the parts of an error (tests/support/refuses.py). After a change of a message run
``python tests/unit/test_messages.py``, which writes the file again, and read the difference.
"""

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import click
import numpy as np

from ohmlearn import (
    EdgeLog,
    Graph,
    HFSClassifier,
    LaplacianSolver,
    NodeTable,
    StreamingSparsifier,
    certify,
    effective_resistance,
    gallery,
    knn_edges,
    read_edges,
    solve_hfs,
    sparsify,
)
from ohmlearn.cli import main
from ohmlearn.cli.messages import ALIASES, option_style
from ohmlearn.errors import CLOSE, NEXT, OPEN, OhmError, OhmWarning, query_style, render
from ohmlearn.reading.label_table import read_labels

STORED = Path(__file__).parent / "messages.txt"
FILES = {
    "edges.csv": "src,dst,w,time\n"
    + "".join(f"n{i},n{(7 * i + 1) % 40},{1 + i % 3},{i}\n" for i in range(80)),
    "negative.csv": "src,dst,w\na,b,-1\n",
    "missing.csv": "src,dst\na,\n",
    "mixed.csv": "src,dst\n" + "1,2\n" * 3000 + "x,y\n",
    "fractions.csv": "src,dst\n1.5,2\n2,3\n",
    "odd.csv": "a,b,c,d\nx,y,1,2\n",
    "three.csv": "a,b,c\nx,y,1\n",
    "none.txt": "1 2 3 4\n",
    "future.csv": "src,dst,time\na,b,2099-01-01\n",
    "early.csv": "src,dst,time\na,b,1\na,c,99999999999999\n",
    "ms.csv": "src,dst,time\n" + "".join(f"a{i},b,{1_700_000_000_000 + i}\n" for i in range(9)),
    "two.csv": "shop,tag\n1,2\n3,1\n",
    "matrix.mtx": "%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1.0\n",
    "strange.csv": "node,label\nzz,a\nyy,b\n",
    "odd.ohm": "not saved",
}
X = np.random.default_rng(0).normal(size=(20, 2))
PATH = gallery.path(5)


def read(name: Any, **options: Any) -> None:
    for _ in read_edges(name, **options):
        pass


def sparsify_file(name: str, **options: Any) -> None:
    reading = {key: options.pop(key) for key in ("time", "latest") if key in options}
    sparsify(read_edges(name, **reading), random_state=0, **options)


def fit(**parameters: Any) -> None:
    HFSClassifier(**parameters).fit_edges(PATH, [0, -1, -1, -1, 1])


def log_twice(**options: Any) -> None:
    with EdgeLog("log") as log:
        log.append([1], [2])
    EdgeLog("log", **options)


def remove() -> None:
    with EdgeLog("log") as log:
        log.append([1], [2])
        log.remove([1], [3])


def merge() -> None:
    StreamingSparsifier(half_life=7).merge(StreamingSparsifier(half_life=8))


# What is wrong, the command that could say so, and how to get the message.
CASES: list[tuple[str, str, Callable[[], Any]]] = [
    ("an unknown choice", "info", lambda: read("edges.csv", on_bad="ignore")),
    ("a number of the wrong size", "label", lambda: fit(gamma=-1)),
    ("a number of passes", "label", lambda: fit(passes=0)),
    ("no threads", "label", lambda: sparsify(PATH, n_jobs=0)),
    ("too many threads", "label", lambda: sparsify(PATH, n_jobs=9999)),
    ("threads in words", "label", lambda: sparsify(PATH, n_jobs="two")),
    ("a negative seed", "label", lambda: sparsify(PATH, random_state=-1)),
    ("a seed in words", "label", lambda: sparsify(PATH, random_state="x")),
    ("a fraction", "sparsify", lambda: sparsify(PATH, epsilon=2)),
    ("an infinite number", "label", lambda: solve_hfs(PATH, [0], [1.0], gamma=np.inf)),
    ("an iteration limit", "solve", lambda: LaplacianSolver(PATH).solve(np.ones(5), max_iter=-1)),
    ("a dense matrix", "solve", lambda: LaplacianSolver(gallery.path(5001), method="direct")),
    ("the wrong shape", "solve", lambda: LaplacianSolver(PATH, ground=[1.0, 2.0])),
    ("pairs", "resistance", lambda: effective_resistance(PATH, [[0, 9]])),
    ("neighbours", "label", lambda: knn_edges(X, n_neighbors=20)),
    ("points that are no numbers", "label", lambda: knn_edges([["a"]], n_neighbors=1)),
    ("a node beyond n_nodes", "label", lambda: Graph.from_edges([0], [7], n_nodes=5)),
    ("few edges", "sparsify", lambda: sparsify(PATH, max_edges=5)),
    ("two budgets", "sparsify", lambda: sparsify(PATH, max_edges=50, memory="1MB")),
    ("memory without nodes", "sparsify", lambda: StreamingSparsifier(memory="1MB")),
    ("memory in an unknown unit", "sparsify", lambda: StreamingSparsifier(memory="1XB", n_nodes=9)),
    ("little memory", "sparsify", lambda: StreamingSparsifier(memory=100, n_nodes=9)),
    ("the paper's scheme", "sparsify", lambda: StreamingSparsifier(scheme="paper")),
    ("a scheme that does not forget", "sparsify",
     lambda: StreamingSparsifier(scheme="online", half_life=7)),
    ("two ways to forget", "label", lambda: StreamingSparsifier(half_life=7, horizon=8)),
    ("sparsifiers that differ", "label", merge),
    ("a duration in words", "label", lambda: StreamingSparsifier(half_life="a week")),
    ("a duration for milliseconds", "label",
     lambda: sparsify_file("ms.csv", time="time", half_life="7d")),
    ("a duration for numbers", "label",
     lambda: sparsify_file("edges.csv", time="time", horizon="7d")),
    ("a date for numbers", "label",
     lambda: sparsify_file("edges.csv", time="time", latest="2024-01-01")),
    ("a time that is none", "label",
     lambda: sparsify_file("edges.csv", time="time", horizon=5, since="soon")),
    ("a time before the horizon", "label",
     lambda: sparsify_file("edges.csv", time="time", horizon=5, since=3)),
    ("since without times", "label", lambda: sparsify(PATH, since=3)),
    ("a time far ahead", "label", lambda: sparsify_file("early.csv", time="time", horizon=7)),
    ("a half-life for large times", "label",
     lambda: sparsify_file("early.csv", time="time", half_life=1e-9)),
    ("a time after tomorrow", "label", lambda: read("future.csv", time="time")),
    ("a latest time without times", "label", lambda: read("edges.csv", latest=5)),
    ("no column of times", "label", lambda: read("negative.csv", time=True)),
    ("times in an array", "label", lambda: read((np.array([0]), np.array([1])), time=True)),
    ("four columns", "label", lambda: read("four.npy")),
    ("a negative weight", "label", lambda: read("negative.csv")),
    ("an empty id", "label", lambda: read("missing.csv")),
    ("a name after integers", "label", lambda: read("mixed.csv")),
    ("ids with fractions", "label", lambda: read("fractions.csv")),
    ("columns that are not clear", "label", lambda: read("odd.csv")),
    ("too few columns", "label", lambda: read("edges.csv", source_col="src", weight_col="src")),
    ("a delimiter", "label", lambda: read("edges.csv", delimiter=";;")),
    ("another delimiter", "label", lambda: read("edges.csv", delimiter=";")),
    ("no kinds", "label", lambda: read("edges.csv", bipartite=5)),
    ("a matrix with two kinds of nodes", "label", lambda: read("matrix.mtx")),
    ("an id in both columns", "label", lambda: read("two.csv")),
    ("a condition that ends early", "label", lambda: read("edges.csv", where="w >")),
    ("a condition on no column", "label", lambda: read("edges.csv", where="amount > 3")),
    ("a condition that no row fulfils", "label", lambda: read("edges.csv", where="w > 99")),
    ("a condition on text", "label", lambda: read("edges.csv", where="src > 3")),
    ("a table of edges as labels", "label", lambda: read_labels("edges.csv")),
    ("labels of other nodes", "label", lambda: HFSClassifier().fit_edges(
        read_edges((np.array([1]), np.array([2]))), read_labels("strange.csv"))),
    ("a class without a proportion", "label", lambda: fit(class_prior={0: 0.5})),
    ("labels by node and weights by row", "label", lambda: HFSClassifier().fit_edges(
        PATH, {0: "a"}, sample_weight=[1.0])),
    ("a pipe that is read twice", "label", lambda: HFSClassifier(passes=2).fit_edges(
        iter([([0], [1])]), [0, 1])),
    ("a file that was not saved", "label", lambda: StreamingSparsifier.load("odd.ohm")),
    ("a log with other parameters", "log", lambda: log_twice(epsilon=0.1)),
    ("nothing to remove", "log", remove),
    ("ids that are not there", "label", lambda: NodeTable().find(["eve"])),
    ("a certificate", "certify", lambda: certify(PATH, PATH, confidence=1.0)),
    ("a tolerance", "solve", lambda: LaplacianSolver(gallery.path(50)).solve(
        np.random.default_rng(0).normal(size=50), tol=1e-300)),
]  # fmt: skip


def message_of(make: Callable[[], Any]) -> OhmError | OhmWarning:
    """Return the error or the warning of a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OhmWarning)
        try:
            make()
        except (OhmError, OhmWarning) as error:
            return error
    raise AssertionError("there was no message")


def messages() -> Iterator[tuple[str, str, OhmError | OhmWarning]]:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text)
        np.save("four.npy", np.array([[0, 1, 1, 5]]))
        for what, command, make in CASES:
            yield what, command, message_of(make)


def describe() -> Iterator[str]:
    for what, command, error in messages():
        style = option_style(main.commands[command])
        yield f"\n{what[0].upper()}{what[1:]}\n"
        said = {"Python": str(error), f"ohmlearn {command}": error.render(style)}
        said["HTTP"] = render(without_place(error), query_style)
        if isinstance(error, OhmError):
            parts = {"parameter": error.parameter, "value": error.value}
            parts["row"] = str(error.place.row) if error.place and error.place.row else None
            said["parts"] = ", ".join(f"{name} {part}" for name, part in parts.items() if part)
        for who, text in said.items():
            # The digits of a residual depend on the processor.
            text = re.sub(r"with [0-9]\S* after", "with ... after", text)
            yield f"  {who:<20}{text}".rstrip() + "\n"


def without_place(error: OhmError | OhmWarning) -> str:
    """Return a message as a server sends it, without the name of a source."""
    if isinstance(error, OhmWarning):
        return error.message
    row = "" if error.place is None or error.place.row is None else f"row {error.place.row}: "
    return row + error.text(with_place=False)


def test_the_messages_are_those_that_were_read():
    assert "".join(describe()) == STORED.read_text(encoding="utf-8")


def test_no_command_names_a_parameter_that_is_an_option():
    commands = dict(main.commands)
    for what, _, error in messages():
        for name, command in commands.items():
            said = error.render(option_style(command))
            assert not {OPEN, NEXT, CLOSE} & set(said)
            one = command.commands.values() if isinstance(command, click.Group) else [command]
            options = {p.name for c in one for p in c.params if isinstance(p, click.Option)}
            known = options | {python for python, own in ALIASES.items() if own in options}
            for option in known:
                if option is not None and "_" in option:
                    bare = re.search(rf"(?<![\w'-]){option}(?![\w'])", said)
                    assert bare is None, f"{what}, {name}: {said}"


if __name__ == "__main__":
    STORED.write_text("".join(describe()), encoding="utf-8")
