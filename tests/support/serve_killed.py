"""A process that sends batches to its own service and says which are durable; tests kill it.

Usage: python serve_killed.py FOLDER FIRST. Batch k has the edges of ``edges_of(k)``.
"""

import sys
from collections import deque
from itertools import count
from pathlib import Path

import numpy as np

from ohmlearn.serve.service import Busy, LabelRow, Service
from ohmlearn.serve.settings import Settings
from ohmlearn.streams.source import RawBatch

SIZE = 50
N_NODES = 90
SETTINGS = Settings(
    certify_every="1s", every_seconds=0.05, checkpoint_seconds=0.1, epsilon=0.9, half_life="1h"
)


def edges_of(number: int) -> RawBatch:
    """Return the edges of a batch; the weights tell its number."""
    rng = np.random.default_rng(number)
    u = rng.integers(0, N_NODES, SIZE)
    v = (u + 3 * rng.integers(1, 10, SIZE)) % N_NODES
    w = np.full(SIZE, 1.0 + number)
    return RawBatch(u, v, w, t=np.full(SIZE, 1.7e9 + number))


def work(folder: Path, first: int) -> None:
    """Send batches until the process is killed."""
    service = Service(folder, SETTINGS)
    service.start()
    service.put_labels([LabelRow(node, f"group {node % 3}") for node in range(6)])
    waiting: deque = deque()
    for number in count(first):
        while True:
            try:
                waiting.append(
                    (number, service.submit(edges_of(number), batch_id=f"batch {number}"))
                )
                break
            except Busy:
                waiting[0][1].result()
        while waiting and (waiting[0][1].done() or len(waiting) > 20):
            done, future = waiting.popleft()
            future.result()
            print(done, flush=True)


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
