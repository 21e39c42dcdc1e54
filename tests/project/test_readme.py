"""The examples in the README run and print what it says they print."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
START = README.parent / "docs" / "start.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_there_is_an_example():
    assert len(BLOCKS) > 0


def test_session_is_one_of_the_documentation():
    """There test_documentation.py runs it."""
    (session,) = re.findall(
        r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S
    )
    assert session in START.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", BLOCKS)
def test_example_prints_its_comments(code: str, capsys: pytest.CaptureFixture[str]):
    exec(compile(code, str(README), "exec"), {})
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
    assert len(promised) > 0
    assert capsys.readouterr().out.splitlines() == promised
