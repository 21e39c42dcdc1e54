"""Progress of commands: on a terminal, as JSON, and what a page costs."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, succeed

from ohmlearn._phases import watch
from ohmlearn.cli.outputs import write_output
from ohmlearn.report import progress

N_NODES = 60


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with edges.csv and labels.csv, which is the present one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["src,dst,time"]
    for time in range(3000):
        u, v = rng.integers(N_NODES, size=2)
        lines.append(f"n{u},n{v},{time}")
    Path("edges.csv").write_text("\n".join(lines) + "\n")
    labels = [f"n{node},{'even' if node % 2 == 0 else 'odd'}" for node in range(13)]
    Path("labels.csv").write_text("\n".join(["node,label", *labels]) + "\n")
    return tmp_path


def on_terminal(*args: str) -> tuple[str, int]:
    """Run a command whose standard error is a terminal; return what is printed there."""
    code = (
        "import sys, ohmlearn.report.progress as progress\n"
        "from ohmlearn.cli import main\n"
        "progress.INTERVAL = 0.001\n"
        "main(sys.argv[1:])"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, *args]
    run = subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL, stdin=theirs)
    os.close(theirs)
    printed = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        printed += part
    os.close(ours)
    return printed.decode(), run.wait()


LABEL = ("label", "edges.csv", "--labels", "labels.csv", "--max-edges", "200", "-o", "out.csv")


@pytest.mark.slow
def test_on_a_terminal_every_phase_is_shown_and_the_line_is_removed(graph: Path):
    pytest.importorskip("matplotlib")
    printed, status = on_terminal(*LABEL, "--report", "page.html", "--option", "certify=yes")
    assert status == 0
    for phase in ("solving on the edges kept", "certificate, pass 1 of at most 20",
                  "making page.html"):  # fmt: skip
        assert f"\x1b[K{phase}" in printed
    # What stays is what is printed where the line is not.
    lines = [line.rsplit("\x1b[K", 1)[-1] for line in printed.split("\r\n")]
    assert [line.split()[0] for line in lines if line] == [
        "edges.csv:", "Edges", "Nodes", "Classes", "Accuracy", "Bias", "Passes", "Cost", "Page",
    ]  # fmt: skip


@pytest.mark.slow
def test_an_error_is_on_a_line_of_its_own(graph: Path):
    with open("edges.csv", "a") as file:
        file.write("n1,,7\n")
    printed, status = on_terminal(*LABEL)
    assert status == 2
    last = printed.rstrip("\r\n").split("\r\n")[-1].rsplit("\x1b[K", 1)[-1]
    assert last.startswith("Error: edges.csv, row 3002: ")


@pytest.mark.parametrize(
    ("args", "phases"),
    [
        (("info", "edges.csv"), ["reading edges"]),
        (("sparsify", "edges.csv", "-o", "h.csv"),
         ["reading edges", "choosing the edges to keep", "writing h.csv"]),
        (("resistance", "edges.csv", "-o", "r.csv"),
         ["reading edges", "computing resistances", "writing r.csv"]),
        (("solve", "edges.csv", "b.csv", "-o", "x.csv"),
         ["reading edges", "solving", "writing x.csv"]),
        (("certify", "edges.csv", "edges.csv", "--time", "time", "--horizon", "10000"),
         ["reading edges.csv", "finding the latest time", "preparing the certificate",
          "certificate"]),
        (("suggest", "edges.csv", "--labels", "labels.csv", "-o", "s.csv"),
         ["reading edges", "solving", "choosing nodes", "calibrating", "writing s.csv"]),
        ((*LABEL, "--state", "s.ohm"),
         ["reading edges", "solving", "calibrating probabilities", "writing out.csv",
          "estimating accuracy and stability", "writing s.ohm"]),
        (("log", "append", "log", "edges.csv"), ["reading edges"]),
    ],
)  # fmt: skip
def test_commands_have_phases(
    graph: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], phases: list[str]
):
    Path("b.csv").write_text("node,b\nn0,1\nn1,-1\n")
    seen: list[str] = []
    begin: Callable[..., None] = progress.StatusLine.begin

    def watch(line: progress.StatusLine, phase: progress.Phase) -> None:
        seen.append(phase.name)
        begin(line, phase)

    monkeypatch.setattr(progress.StatusLine, "begin", watch)
    succeed(*args, "--json")
    assert list(dict.fromkeys(seen)) == phases


def test_only_certify_measures_the_sparsifier(graph: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    result = invoke(*LABEL, "--report", "page.html", "--option", "certify=yes", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "energies in H are" in Path("page.html").read_text()
    monkeypatch.setattr("ohmlearn.certificate.certify", lambda *_, **__: pytest.fail("measured"))
    succeed(*LABEL, "--report", "page.html")
    page = Path("page.html").read_text()
    assert "The sparsifier was not measured; --option certify=yes does this." in page
    assert "energies in H" not in page
    assert "--option certify= needs --report" in invoke(*LABEL, "--option", "certify=yes").stderr


def test_the_page_of_a_state_says_why_it_has_no_certificate(graph: Path):
    pytest.importorskip("matplotlib")
    succeed(*LABEL, "--state", "s.ohm", "--report", "page.html")
    assert "only the new edges can be read" in Path("page.html").read_text()


def test_writing_shows_how_much_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = []

    class Line(progress.StatusLine):
        def write(self, n_written: int, n_rows: int) -> None:
            super().write(n_written, n_rows)
            facts = self._facts()
            assert facts is not None
            seen.append((facts["phase"], facts["rows_written"], facts["fraction"]))

    line = Line(as_json=False, quiet=True)
    monkeypatch.setattr("ohmlearn.cli.outputs.status_line", lambda: line)
    monkeypatch.setattr("ohmlearn.report.write_table.TEXT_CELLS", 25)
    path = str(tmp_path / "out.csv")
    with watch(line):
        write_output({"output": path, "csv_safe": False}, {"x": np.arange(100)})
    assert seen == [(f"writing {path}", rows, rows / 100) for rows in (25, 50, 75, 100)]
