"""A run of ``label --state`` that is killed or interrupted: the same command continues it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ohmlearn import HFSClassifier

pytestmark = pytest.mark.slow  # starts processes
N_FILES = 6
# Counts the calls of two functions, and is killed at the given call of one of them.
CHILD = """
import json, os, sys, time
import ohmlearn._arrays_file as files
from ohmlearn.estimators import state_file
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.cli import main

where, when, what, *command = json.loads(sys.argv[1])
if what:
    state_file.WORTH, state_file.FIRST = 1e-9, 0.0  # saves after each file
counts = dict.fromkeys(("add", "fsync", "replace", "table"), 0)

def watch(owner, name, place):
    real = getattr(owner, name)
    def call(*args, **options):
        counts[place] += 1
        if (place, counts[place]) == (where, when):
            os.kill(os.getpid(), what)
            time.sleep(60)
        return real(*args, **options)
    setattr(owner, name, call)

from ohmlearn.report import write_table
watch(StreamingSparsifier, "add", "add")
watch(os, "fsync", "fsync")
watch(os, "replace", "replace")
watch(write_table, "write_table", "table")
main(command, prog_name="ohmlearn")
"""


def run(folder: Path, command: list[str], where: str = "", when: int = 0, what: int = 0) -> int:
    args = json.dumps([where, when, what, *command])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, args], cwd=folder, capture_output=True, timeout=100
    )
    if what == 0:
        assert done.returncode == 0, done.stderr.decode()
    return done.returncode


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for at in range(N_FILES):
        ends = rng.integers(0, 100 + 40 * at, (1500, 2))
        rows = [f"n{u},n{v},{w}" for (u, v), w in zip(ends, rng.integers(1, 4, 1500), strict=True)]
        (folder / f"part-{at}.csv").write_text("\n".join(["src,dst,w", *rows]) + "\n")
    known = "".join(f"n{i},{'odd' if i % 2 else 'even'}\n" for i in range(12))
    (folder / "known.csv").write_text(known)
    return folder


def command_for(folder: Path, data: Path, *more: str) -> list[str]:
    edges = [str(data / f"part-{at}.csv") for at in range(N_FILES)]
    known = ["--labels", str(data / "known.csv"), "--max-edges", "700", "--seed", "5"]
    return ["label", *edges, *known, "--state", "s.ohm", "-o", "out.csv", "-q", *more]


@pytest.mark.parametrize("more", [(), ("--passes", "3", "--threads", "2")])
def test_a_killed_run_continues_and_ends_with_the_same_bytes(
    more: tuple[str, ...], data: Path, tmp_path: Path
):
    whole = tmp_path / "whole"
    whole.mkdir()
    run(whole, command_for(whole, data, *more))
    expected = [(whole / name).read_bytes() for name in ("s.ohm", "out.csv")]
    moments = [("add", 1), ("add", 4), ("fsync", 2), ("replace", 3), ("table", 1), ("fsync", 8)]
    for number, (where, when) in enumerate(moments):
        folder = tmp_path / f"killed-{number}"
        folder.mkdir()
        what = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[number % 3]
        command = command_for(folder, data, *more)
        code = run(folder, command, where, when, what)
        assert code == (130 if what == signal.SIGINT else -what), (where, when)
        if (where, when) == ("add", 4):  # the files before are there
            names = [
                source["name"] for source in HFSClassifier.load(folder / "s.ohm").kept_.sources
            ]
            assert names == ["part-0.csv", "part-1.csv", "part-2.csv"]
        if (where, when) == ("table", 1):
            assert len(HFSClassifier.load(folder / "s.ohm").kept_.sources) == N_FILES
        run(folder, command)
        found = [(folder / name).read_bytes() for name in ("s.ohm", "out.csv")]
        assert found == expected, (where, when)


def test_a_run_that_adds_to_a_state_is_killed(data: Path, tmp_path: Path):
    first, second = tmp_path / "whole", tmp_path / "killed"
    for folder in (first, second):
        folder.mkdir()
        command = command_for(folder, data)
        run(folder, [command[0], *command[1:3], *command[1 + N_FILES :]])
        (folder / "more.csv").write_text("n40,odd\nn41,even\n")
    command = command_for(first, data, "--method", "auto")
    command[command.index("--labels") + 1] = "more.csv"
    run(first, command)
    for where, when in (("add", 3), ("replace", 2), ("table", 1)):
        assert run(second, command, where, when, signal.SIGKILL) == -signal.SIGKILL
        assert os.listdir(second)
    run(second, command)
    for name in ("s.ohm", "out.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
