"""The version is written in one place, and copies of it agree."""

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
    assert sorted(ohmlearn.__all__) == sorted(ohmlearn._HOMES)
    for name in ohmlearn.__all__:
        assert getattr(ohmlearn, name).__name__ == name
    assert set(ohmlearn.__all__) <= set(dir(ohmlearn))
