"""A service that is killed at any moment: what was acknowledged is there, and counted once."""

import os
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from serve_cases import serving, wait_for_answers
from serve_killed import SCRIPT, SETTINGS, edges_of

from ohmlearn import EdgeLog, HFSClassifier, StreamingSparsifier
from ohmlearn.serve.service_folder import check_folder_contents

KILLS = 100 if os.environ.get("OHMLEARN_LONG") else 6


@pytest.mark.slow
def test_killed_at_random(tmp_path):
    rng, folder = random.Random(0), tmp_path / "s"
    durable: set[int] = set()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(SCRIPT), str(folder)], **pipes) as server:
        for _ in range(KILLS):
            first = max(0, max(durable, default=0) - 30)  # some that were acknowledged come again
            print(first, rng.randrange(400_000), file=server.stdin, flush=True)
            said = [int(number) for number in server.stdout.readline().split()]
            assert said
            durable |= set(said)
            check_folder_contents(folder)
        server.stdin.close()
        assert server.wait() == 0
    assert durable == set(range(max(durable) + 1))
    log = EdgeLog(folder / "log")
    ids = log.nodes.ids()
    batches = list(log)
    columns = [np.concatenate([batch[at] for batch in batches]) for at in range(4)]
    counts = Counter((columns[2] - 1).astype(int).tolist())
    assert set(counts.values()) == {50}  # no batch is there in part, or twice
    assert set(counts) >= durable
    for number in rng.sample(sorted(counts), 20):
        rows, sent = columns[2] == number + 1.0, edges_of(number)
        np.testing.assert_array_equal(ids[columns[0][rows]], sent.u)
        np.testing.assert_array_equal(ids[columns[1][rows]], sent.v)
        np.testing.assert_array_equal(columns[3][rows], sent.t)

    # The sparsifier has the bits of one that was never interrupted, and the labels are the same.
    plain = StreamingSparsifier(epsilon=0.9, half_life="1h", random_state=0).update(*columns)
    for mine, theirs in zip(log.snapshot().edges(), plain.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with serving(folder, epsilon=SETTINGS.epsilon, half_life=SETTINGS.half_life) as service:
        wait_for_answers(service)
        found = service.lookup(list(range(90)))["results"]
    model = HFSClassifier(epsilon=0.9, half_life="1h", random_state=0, passes=1)
    model.fit_edges(
        [tuple(columns)],
        {int(n): f"group {ids[n] % 3}" for n in np.flatnonzero(ids < 6)},
    )
    assert [row["label"] for row in found] == model.transduction_[
        log.nodes.find(np.arange(90))
    ].tolist()
