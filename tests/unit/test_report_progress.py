"""Progress is a bar if stderr is a terminal, and plain lines otherwise."""

import io
import subprocess
import sys

import pytest

from ohmlearn.report.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines(capsys: pytest.CaptureFixture[str]):
    with Progress(2, "work") as progress:
        progress.step("one")
        progress.step("[two]")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "[1/2, 0 s] one\n[2/2, 0 s] [two]\n"


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(2, "work") as progress:
        progress.step("[one]")
        progress.step("two")
    printed = sys.stderr.getvalue()
    assert "[one]" in printed  # not interpreted as markup
    assert "work" in printed
    assert "100%" in printed


def test_lines_on_a_terminal_without_rich(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(1, "work") as progress:
        progress.step("one")
    assert sys.stderr.getvalue() == "[1/1, 0 s] one\n"


@pytest.mark.slow
def test_peak_memory_is_that_of_the_process_itself():
    """Measured in a new process, whose parent has used far more memory."""
    block = b"\1" * 400_000_000
    code = """
from ohmlearn.report.process_cost import cpu_seconds, peak_memory
before = peak_memory()
block = b"1" * 200_000_000
print(before, peak_memory(), cpu_seconds())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, seconds = (float(number) for number in run.stdout.split())
    assert before < 200_000_000 < len(block)
    assert 190_000_000 < after - before < 300_000_000
    assert seconds > 0
