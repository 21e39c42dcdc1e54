"""Counts that say how simple the source is. They may fall, never rise: lower a limit when you can.

``python tests/project/test_counts.py`` prints them.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ohmlearn"
STREAMS = {"edges", "stream", "source", "given", "batches", "_edges", "_stream"}
LIMITS = {
    "lines of src and cpp": 61_521,
    "Python files": 197,
    "questions to edges (hasattr, getattr)": 1,
    "annotations Any": 439,
    "edges: Any": 0,
    "private names of other packages": 9,
    "own classes above HFSClassifier": 1,
}


# The package of each file, and its code.
TREES = [
    (path.relative_to(SOURCE).parts[0].removesuffix(".py"), ast.parse(path.read_text()))
    for path in SOURCE.rglob("*.py")
]


def name_of(node: ast.AST) -> str:
    """Return the last name of an expression: `b` of `a.b`."""
    return getattr(node, "attr", getattr(node, "id", ""))


def count_lines() -> int:
    native = [p for p in (ROOT / "cpp").rglob("*.?pp") if "tests" not in p.parts]
    return sum(len(path.read_text().splitlines()) for path in [*SOURCE.rglob("*.py"), *native])


def count_questions() -> int:
    """Return how often code asks what a stream of edges can do, instead of calling it."""
    calls = (node for _, tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(
        name_of(call.func) in ("hasattr", "getattr") and name_of(call.args[0]) in STREAMS
        for call in calls
        if call.args
    )


def annotations() -> Iterator[tuple[str, str]]:
    """Yield names of arguments and attributes, "" for what is returned, and their types."""
    for _, tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                name = node.arg if isinstance(node, ast.arg) else name_of(node.target)
                yield name, ast.unparse(node.annotation)
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                yield "", ast.unparse(node.returns)


def count_private() -> int:
    """Return how often a package uses a private name that only another package defines."""
    defined: dict[str, set[str]] = defaultdict(set)
    used: list[tuple[str, str]] = []
    for package, tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined[package].add(node.name)
            elif isinstance(node, ast.Attribute):
                if isinstance(node.ctx, ast.Store) or name_of(node.value) in ("self", "cls"):
                    defined[package].add(node.attr)
                elif node.attr.startswith("_") and not node.attr.endswith("__"):
                    used.append((package, node.attr))
            elif isinstance(node, ast.Name | ast.arg):
                defined[package].add(node.arg if isinstance(node, ast.arg) else node.id)
    own = ("_core", "_replace", "_asdict", "_fields")
    return sum(name not in defined[package] and name not in own for package, name in used)


def classes_above() -> int:
    """Return how many classes of ohmlearn the classifier inherits from."""
    from ohmlearn import HFSClassifier

    return sum(base.__module__.startswith("ohmlearn") for base in HFSClassifier.__mro__) - 1


def measure() -> dict[str, int]:
    loose = [name for name, annotation in annotations() if "Any" in annotation.split(" | ")]
    return {
        "lines of src and cpp": count_lines(),
        "Python files": len(TREES),
        "questions to edges (hasattr, getattr)": count_questions(),
        "annotations Any": len(loose),
        "edges: Any": sum(name in STREAMS - {"given"} for name in loose),
        "private names of other packages": count_private(),
        "own classes above HFSClassifier": classes_above(),
    }


def test_counts_do_not_rise() -> None:
    risen = {name: count for name, count in measure().items() if count > LIMITS[name]}
    assert risen == {}


if __name__ == "__main__":
    for name, count in measure().items():
        print(f"{count:7,}  {name} (limit {LIMITS[name]:,})")
