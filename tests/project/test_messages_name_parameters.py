"""Messages name parameters with tokens, which each interface writes in its own way."""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ohmlearn
from ohmlearn.cli import main
from ohmlearn.cli.messages import ALIASES
from ohmlearn.reading.label_table import read_labels
from ohmlearn.reading.read_options import ReadOptions

SOURCES = sorted(Path(ohmlearn.__file__).parent.rglob("*.py"))
TOKENS = {"Param", "Setting", "InPython"}
OURS = {"warn", "refuse_source", "bad_value"}
# The client has the standard library alone; expert_tasks is about methods of scikit-learn.
OTHERS = {"client.py", "expert_tasks.py"}


def parameters() -> set[str]:
    """Return parameters that cannot be English words: options, and what they are in Python."""
    known = set(ALIASES)
    for command in main.commands.values():
        commands = command.commands.values() if isinstance(command, click.Group) else [command]
        known |= {str(option.name) for one in commands for option in one.params}
    for function in (
        ohmlearn.read_edges, ohmlearn.sparsify, ohmlearn.StreamingSparsifier, ohmlearn.certify,
        ohmlearn.HFSClassifier, ohmlearn.knn_edges, ReadOptions, read_labels,
    ):  # fmt: skip
        known |= set(inspect.signature(function).parameters)
    return {name for name in known if "_" in name}


def called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def is_token(node: ast.AST) -> bool:
    return called(node) in TOKENS


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts in a part of a program, without those of tokens, subscripts and defaults."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif not is_token(node) and not isinstance(node, ast.Subscript | ast.Compare):
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def messages(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield what is raised, and calls that warn or refuse."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield node.exc
        elif isinstance(node, ast.Call) and called(node) in OURS:
            yield node


def constants(tree: ast.Module) -> set[str]:
    """Return the names of texts with tokens, such as SKIP."""
    return {
        target.id
        for one in tree.body
        if isinstance(one, ast.Assign) and any(is_token(node) for node in ast.walk(one.value))
        for target in one.targets
        if isinstance(target, ast.Name)
    }


TREES = {path: ast.parse(path.read_text()) for path in SOURCES}
SHARED = set().union(*(constants(tree) for tree in TREES.values()))


BARE = re.compile(rf"(?<![\w.('\"/=-])({'|'.join(sorted(parameters()))})(?![\w(\[])")


def bare_name(call: ast.Call) -> str | None:
    """Return a parameter that a message names without a token."""
    found = (BARE.search(text) for text in texts(call) if " " in text)
    return next((one[0] for one in found if one is not None), None)


def is_plain(name: str) -> bool:
    """Whether a call writes texts as they are."""
    kind = getattr(builtins, name, None)
    is_error = isinstance(kind, type) and issubclass(kind, BaseException)
    return is_error or name in ("print", "tell", "echo", "UsageError", "ClickException")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_tokens_are_rendered(path):
    for node in ast.walk(TREES[path]):
        if is_plain(called(node)):
            inside = [*ast.walk(node)]
            named = {one.id for one in inside if isinstance(one, ast.Name)} & SHARED
            assert not any(map(is_token, inside)), f"{path.name}:{node.lineno}: use InputError"
            assert not named, f"{path.name}:{node.lineno}: {named} has tokens; use InputError"


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.name not in OTHERS], ids=lambda path: path.name
)
def test_parameters_are_tokens(path):
    for call in messages(TREES[path]):
        found = bare_name(call)
        assert found is None, f"{path.name}:{call.lineno}: write Param({found!r})"


def test_the_checks_find_something():
    assert {"max_edges", "on_bad", "n_jobs", "id_type", "random_state"} <= parameters()
    assert {"SKIP", "SAVED"} <= SHARED
    tree = ast.parse("raise ValueError(f'{Param(1)} is {SKIP}, use max_edges')")
    (call,) = messages(tree)
    assert is_plain(called(call))
    assert bare_name(call) == "max_edges"
    (call,) = messages(ast.parse('refuse_source(name, f\'{Setting("on_bad", "skip")} it\')'))
    assert bare_name(call) is None
