"""Processes that send batches to their own service and say which are durable, until killed.

``python serve_killed.py FOLDER`` reads lines with the number of the first batch and a delay in
microseconds. For each it forks such a process, because starting Python takes most of the time,
kills it so long after its first durable batch, and answers with the numbers of the durable ones.
Batch k has the edges of ``edges_of(k)`` and the id k; with the argument EVENTS, the events of
``events_of(k)`` and no id.
"""

import os
import sys
from collections import deque
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from forks import kill_while_it_works

from ohmlearn.reading.event_ids import hash_values
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.service import LabelRow, Refused, Service
from ohmlearn.serve.settings import Settings

SCRIPT, EVENTS = __file__, "events"
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


def events_of(number: int) -> np.ndarray:
    """Return the events of a batch: half of them are those of the batch before."""
    return np.arange(SIZE) + number * SIZE // 2


def work(folder: Path, has_events: bool, first: int, pipe: int) -> None:
    """Send batches until the process is killed; write the number of each that is durable."""
    service = Service(folder, replace(SETTINGS, event_id="id" if has_events else None))
    service.start()
    service.put_labels([LabelRow(node, f"group {node % 3}") for node in range(6)])
    waiting: deque = deque()
    for number in count(first):
        while True:
            try:
                batch, name = edges_of(number), f"batch {number}"
                if has_events:  # the weights tell them
                    events = events_of(number)
                    batch = batch._replace(w=events + 1.0, event=hash_values(events.tolist()))
                    name = None
                waiting.append((number, service.submit(batch, batch_id=name)))
                break
            except Refused:
                waiting[0][1].result()
        while waiting and (waiting[0][1].done() or len(waiting) > 20):
            done, future = waiting.popleft()
            future.result()
            os.write(pipe, b"%d " % done)


def serve(folder: Path, has_events: bool) -> None:
    """Obey the lines of the standard input."""
    for line in sys.stdin:
        first, delay = map(int, line.split())
        said = kill_while_it_works(partial(work, folder, has_events, first), delay)
        print(said.decode(), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), EVENTS in sys.argv)
