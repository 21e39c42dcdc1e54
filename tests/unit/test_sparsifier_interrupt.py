"""After Ctrl-C during an update, the sparsifier is as if the batch had ended at that edge."""

import subprocess
import sys

import numpy as np
import pytest

from ohmlearn import gallery
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.kelner_levin import KelnerLevin

CHILD = """
import os, signal, sys, threading, time
import numpy as np
from ohmlearn import StreamingSparsifier

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
n = 2000
rng = np.random.default_rng(0)
u = rng.integers(0, n, 10_000_000, dtype=np.int32)
v = (u + rng.integers(1, n, len(u), dtype=np.int32)) % n  # no loops: each edge counts

def fresh():
    return StreamingSparsifier(n_nodes=n, epsilon=0.9, scheme=sys.argv[1], random_state=0, n_jobs=2)

def follow(start, end):
    # Edges start..end of the batch said over and over, from a sparsifier that was never stopped.
    while start < end:
        stop = min(end, start - start % len(u) + len(u))
        first = start % len(u)
        yield u[first : first + stop - start], v[first : first + stop - start]
        start = stop

stopped = fresh()
stopped.n_edges_seen_

def interrupt():
    while stopped._core.position == 0:  # n_edges_seen_ would wait for its turn, perhaps for long
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    while True:
        stopped.update(u, v)
except KeyboardInterrupt:
    seen = stopped.n_edges_seen_
whole = fresh()
for batch in follow(0, seen):
    whole.update(*batch)
assert seen > 0 and stopped.weight_seen_ == seen and stopped.stats_ == whole.stats_
assert stopped.snapshot() == whole.snapshot()
for batch in follow(seen, seen + 5_000_000):
    stopped.update(*batch)
    whole.update(*batch)
assert stopped.n_edges_seen_ == seen + 5_000_000 and stopped.stats_ == whole.stats_
assert stopped.snapshot() == whole.snapshot()
print("went on after", seen)
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["resample", "online"])
def test_an_interrupted_sparsifier_goes_on(scheme):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, scheme], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("went on after")


def test_the_scheme_of_the_paper_is_not_torn_by_an_interrupt(monkeypatch):
    u, v, w = gallery.complete(60).edges()
    u, v, w = (np.tile(array, 20) for array in (u, v, w))
    half = len(u) // 2
    whole = StreamingSparsifier(n_nodes=60, epsilon=0.8, scheme="paper", random_state=1).update(
        u, v, w
    )
    stopped = StreamingSparsifier(n_nodes=60, epsilon=0.8, scheme="paper", random_state=1)
    stopped.update(u[:half], v[:half], w[:half])
    before = stopped.stats_
    resample, calls = KelnerLevin._resample, []

    def interrupted(sketch):
        calls.append(sketch)
        if len(calls) == 3:
            raise KeyboardInterrupt
        resample(sketch)

    monkeypatch.setattr(KelnerLevin, "_resample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stopped.update(u[half:], v[half:], w[half:])
    monkeypatch.setattr(KelnerLevin, "_resample", resample)
    assert stopped.stats_ == before
    stopped.update(u[half:], v[half:], w[half:])
    assert stopped.stats_ == whole.stats_
    assert stopped.snapshot() == whole.snapshot()
