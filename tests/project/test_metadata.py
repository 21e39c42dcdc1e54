"""The version and the public names are written in one place, and copies of them agree."""

import ast
import re
from importlib.metadata import version
from pathlib import Path

import ohmlearn

ROOT = Path(__file__).parents[2]


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [ohmlearn.__version__]
    assert version("ohmlearn") == ohmlearn.__version__


def test_public_names_exist():
    stub = ast.parse((ROOT / "src/ohmlearn/__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    listed = [alias.asname for node in imports for alias in node.names if node.module != "ohmlearn"]
    assert ohmlearn.__all__ == sorted(listed)
    for name in ohmlearn.__all__:
        assert getattr(ohmlearn, name).__name__ == name
    assert set(ohmlearn.__all__) <= set(dir(ohmlearn))
