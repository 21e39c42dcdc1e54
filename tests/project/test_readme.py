"""The example in the README runs and prints what it says it prints."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_there_is_an_example():
    assert len(BLOCKS) > 0


@pytest.mark.parametrize("code", BLOCKS)
def test_example_prints_its_comments(code: str, capsys: pytest.CaptureFixture[str]):
    exec(compile(code, str(README), "exec"), {})
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
    assert len(promised) > 0
    assert capsys.readouterr().out.splitlines() == promised
