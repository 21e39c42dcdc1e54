"""A writer that is killed leaves what it has acknowledged, and nothing that is half done."""

import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from memory_folder import make_memory_folder

from ohmlearn import EdgeLog

pytest.importorskip("pyarrow")
import log_writer

KILLS = 100


def live(log):
    ids, found = log.nodes.ids(), Counter()
    for u, v, _, t in log:
        found.update(zip(ids[u].tolist(), ids[v].tolist(), t.tolist(), strict=True))
    return found


@pytest.fixture
def folder():
    place = make_memory_folder()
    yield place
    shutil.rmtree(place)


@pytest.mark.slow
def test_sigkill(folder):
    edges, number = [], 0
    EdgeLog(folder, random_state=0).close()
    rng = np.random.default_rng(0)
    # Starting Python takes most of the time, so the writers are forked from one process.
    command = [sys.executable, log_writer.__file__, str(folder), "7"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    n_half_done = 0
    with subprocess.Popen(command, **pipes) as server:
        for _ in range(KILLS):
            server.stdin.write(f"{number} {rng.integers(0, 20_000)}\n")
            server.stdin.flush()
            name, n_done = server.stdout.readline().split()
            assert name == "killed"
            for _ in range(int(n_done)):
                edges = log_writer.apply(edges, 7, number)
                number += 1
            with EdgeLog(folder) as log:
                found = live(log)
                assert log.n_edges == found.total()
            # The operation in which it was killed is there completely, or not at all.
            after = log_writer.apply(edges, 7, number)
            assert found in (Counter(edges), Counter(after))
            if found != Counter(edges):
                edges = after
                n_half_done += 1
            number += 1
        server.stdin.close()
        assert server.wait() == 0
    assert number > 2 * KILLS
    print(f"{number} operations, {n_half_done} not acknowledged but there")
