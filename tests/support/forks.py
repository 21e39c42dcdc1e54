"""Forks of this process that work until they are killed: starting Python takes most of the time."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable


def kill_while_it_works(
    work: Callable[[int], None], microseconds: int, *, after_first: bool = True
) -> bytes:
    """Run ``work(pipe)`` in a fork, and kill it; return all that it has written to the pipe.

    The time starts with the first bytes that are written, or else with the fork.
    """
    reader, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work(pipe)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(pipe)
    said = os.read(reader, 1 << 16) if after_first else b""
    time.sleep(microseconds * 1e-6)
    os.kill(child, signal.SIGKILL)
    while more := os.read(reader, 1 << 16):
        said += more
    os.close(reader)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        sys.exit("a process has ended before it was killed")
    return said
