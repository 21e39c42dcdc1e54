"""Commands whose standard streams are closed or full, and outputs that cannot be written."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # starts processes
LABEL = "label e.csv --labels y.csv -q"
CLOSED_INPUT = "Error: standard input: is closed; send data to it, or give a file"
CLOSED_OUTPUT = "Error: standard output is closed, so the results are lost; open it, or name a file"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "e.csv").write_text("src,dst\na,b\nb,c\nc,d\n")
    (tmp_path / "y.csv").write_text("a,x\nd,y\n")
    return tmp_path


def run(folder: Path, command: str, **options: object) -> subprocess.CompletedProcess[str]:
    shell = f'"$0" -m ohmlearn {command}'
    args = ["sh", "-c", shell, sys.executable]
    return subprocess.run(args, cwd=folder, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("label - --labels y.csv -q <&-", 2, CLOSED_INPUT),
        ("label e.csv --labels - -q <&-", 2, CLOSED_INPUT),
        ("info - <&-", 2, CLOSED_INPUT),
        (f"{LABEL} >&-", 1, CLOSED_OUTPUT),
        ("info e.csv -q >&-", 1, CLOSED_OUTPUT),
        ("--help >&-", 1, CLOSED_OUTPUT),
        (f"{LABEL} >/dev/full", 1, "No space left on device; free some space"),
    ],
)
def test_a_stream_that_cannot_be_used_is_one_clear_line(folder, command, code, message):
    if "/dev/full" in command and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    done = run(folder, command)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_that_needs_no_closed_stream_runs(folder: Path, closed: str):
    expected = run(folder, f"{LABEL} -o open.csv")
    assert expected.returncode == 0
    done = run(folder, f"label e.csv --labels y.csv -o closed.csv --state s.ohm {closed}")
    assert done.returncode == 0
    assert (folder / "closed.csv").read_text() == (folder / "open.csv").read_text()


def test_a_state_is_not_saved_if_the_answers_cannot_be_written(folder: Path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    assert run(folder, f"{LABEL} --state s.ohm >/dev/full").returncode == 1
    assert run(folder, f"{LABEL} --state s.ohm >&-").returncode == 1
    assert not (folder / "s.ohm").exists()


def test_a_full_disk_names_the_file_and_leaves_the_old_one(folder: Path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (folder / "out.csv").write_text("old")
    done = run(folder, f"{LABEL} -o out.csv --state s.ohm", preexec_fn=limit)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: s.ohm: File too large; free some space, or write to another place\n"
    )
    assert not (folder / "s.ohm").exists()
    assert sorted(os.listdir(folder)) == ["e.csv", "out.csv", "y.csv"]


def test_the_state_behind_a_link_is_updated(folder: Path):
    (folder / "far").mkdir()
    (folder / "s.ohm").symlink_to("far/real.ohm")
    assert run(folder, f"{LABEL} --state s.ohm").returncode == 0
    first = (folder / "far" / "real.ohm").read_bytes()
    (folder / "far" / "real.ohm").chmod(0o600)
    (folder / "more.csv").write_text("src,dst\nd,e\n")
    assert run(folder, "label more.csv -q --state s.ohm").returncode == 0
    assert (folder / "s.ohm").is_symlink()
    assert (folder / "far" / "real.ohm").read_bytes() != first
    assert (folder / "far" / "real.ohm").stat().st_mode & 0o777 == 0o600
