"""Processes that write to a log until they are killed.

``python log_writer.py FOLDER SEED``. Operation number k follows from the seed and k, so that the
test knows which edges are live after the operations that were acknowledged.
"""

import os
import sys
from functools import partial

import numpy as np
import pyarrow.ipc  # noqa: F401 before forks, because it takes longer than the writers live
from forks import kill_while_it_works

from ohmlearn import EdgeLog

N_NODES = 40


def operation(seed, number):
    """Return what operation `number` does: a name and arguments."""
    rng = np.random.default_rng([seed, number])
    u, v = rng.integers(0, N_NODES, (2, int(rng.integers(1, 30))))
    kind = rng.choice(["append", "append", "remove", "remove_nodes", "expire", "compact"])
    if kind == "append":
        return kind, (u, v, np.full(len(u), 1.0), np.arange(number, number + len(u), dtype=float))
    if kind == "remove":
        return kind, (u[:3], v[:3])
    if kind == "remove_nodes":
        return kind, (u[:1],)
    return kind, (float(number - 20),) if kind == "expire" else ()


def apply(edges, seed, number):
    """Return the live edges (u, v, t) after an operation."""
    kind, arguments = operation(seed, number)
    if kind == "append":
        u, v, _, t = arguments
        return [*edges, *zip(u.tolist(), v.tolist(), t.tolist(), strict=True)]
    if kind == "remove":
        gone = {frozenset(pair) for pair in zip(*(x.tolist() for x in arguments), strict=True)}
        return [edge for edge in edges if frozenset(edge[:2]) not in gone]
    if kind == "remove_nodes":
        gone = set(arguments[0].tolist())
        return [edge for edge in edges if not gone & set(edge[:2])]
    if kind == "expire":
        return [edge for edge in edges if edge[2] >= arguments[0]]
    return edges


def run(log, seed, number):
    """Do an operation on a log."""
    kind, arguments = operation(seed, number)
    options = {"missing": "ignore"} if kind.startswith("remove") else {}
    if kind == "compact":
        options = {"background": number % 2 == 0}
    if kind != "expire" or log.n_edges > 0:
        getattr(log, kind)(*arguments, **options)


def write(folder, seed, number, pipe):
    """Do one operation after the other, and acknowledge each with a byte."""
    log = EdgeLog(folder)
    while True:
        run(log, seed, number)
        os.write(pipe, b".")
        number += 1


def serve(folder, seed):
    """For each line with a number and a delay, fork a writer and kill it after so many µs.

    The delay starts with the first operation that is acknowledged. Answer with their number.
    """
    for line in sys.stdin:
        number, delay = map(int, line.split())
        said = kill_while_it_works(partial(write, folder, seed, number), delay)
        print("killed", len(said), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
