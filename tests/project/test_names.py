"""A name belongs to one thing, and an idea has one word; docs/glossary.md has the words."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = {path: ast.parse(path.read_text()) for path in (ROOT / "src/ohmlearn").rglob("*.py")}
NATIVE = [path for path in (ROOT / "cpp").rglob("*.?pp") if "tests" not in path.parts]
# What to say instead. Files still have "chance", as the key of an array; threads may share objects.
NOT_IN_NAMES = {"chance": "probability", "share": "proportion (of a class), fraction"}
NOT_IN_DOCSTRINGS = {
    "anew": "again",
    "goes on": "continues",
    "keeps? house": "maintains",
    "one a (node|row|column|class)": "each node has one",
    "strangers?": "untrusted input",
    "stretch(es)?": "leverage",
    "strips?": "block",
}


def repeated(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def test_names_of_files_and_classes_are_unique():
    for folder in ("src", "tests"):
        files = repeated(path.name for path in (ROOT / folder).rglob("*.py"))
        assert files <= {"__init__.py", "conftest.py"}  # prescribed, one for each folder
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    assert repeated(node.name for node in nodes if isinstance(node, ast.ClassDef)) == set()


@pytest.mark.parametrize("path", [*TREES, *NATIVE], ids=lambda path: path.name)
def test_an_idea_has_one_word(path):
    names: set[str] = set()
    if path in NATIVE:
        names |= {*re.findall(r"\w+", re.sub(r'//.*|"(\\.|[^"\\])*"', "", path.read_text()))}
    for node in ast.walk(TREES.get(path, ast.Module([], []))):
        names |= {str(getattr(node, field, "")) for field in ("name", "id", "arg")}
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            text = " ".join((ast.get_docstring(node) or "").split())
            for word, better in NOT_IN_DOCSTRINGS.items():
                assert not re.search(rf"\b{word}\b", text), f"{word}: say {better}"
    for word, better in NOT_IN_NAMES.items():
        bad = [name for name in names if re.search(rf"(^|_|k){word}s?(_|$)", name.lower())]
        assert bad == [], f"say {better}"


def test_a_word_of_the_glossary_has_one_definition():
    rows = re.findall(r"^\| (\*\*.*?) \| (.*) \|$", (ROOT / "docs/glossary.md").read_text(), re.M)
    words = [re.findall(r"\*\*(.*?)\*\*", row[0]) for row in rows]
    assert (len(words) > 20, repeated(word for row in words for word in row)) == (True, set())
    assert all(len(w) in (1, row[1].count("; ") + 1) for w, row in zip(words, rows, strict=True))
