"""Run work on a cluster while workers are killed."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from distributed import Client

KILLS = int(os.environ.get("OHMLEARN_KILLS", "2"))  # 20 for the long form


def disturbed_runs(client: Client, work: Callable[[], Any], seed: int) -> Iterator[Any]:
    """Yield the results of runs; in each run one worker gets SIGKILL at a random time."""
    moments = random.Random(seed)
    work()
    start = time.perf_counter()
    work()
    usual = time.perf_counter() - start
    for _ in range(KILLS):
        _wait_until_whole(client)
        pids = sorted(client.run(os.getpid).values())
        victim = moments.choice(pids)
        killer = threading.Timer(moments.uniform(0.0, usual), os.kill, (victim, signal.SIGKILL))
        killer.start()
        yield work()
        killer.join()
        assert _is_gone(victim)


def _wait_until_whole(client: Client) -> None:
    """Wait until workers have started; Dask does not restart one that dies before that."""
    nannies = client.cluster.workers.values()
    while not all(n.process is not None and n.process.status.name == "running" for n in nannies):
        time.sleep(0.05)
    client.wait_for_workers(len(nannies))


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
