"""How Dask runs work: a task for each partition, or for a group of them, and a tree of merges.

The shape of the tree follows from the number of partitions and `split_every`, and a task is a pure
function of what is below it: no number of workers, order of finishing or death of a worker changes
a bit of the result.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, get_client, get_worker

from ohmlearn.cluster.cluster_errors import PartitionError, WorkerError, in_partition
from ohmlearn.cluster.merge_tree import Progress, Work, merge_tree
from ohmlearn.cluster.partitions import Partition
from ohmlearn.errors import Param

Key = tuple[str, int]  # of a task
PATIENCE = 60.0  # seconds without any worker
ROUNDS = 2  # groups of partitions for each thread of the workers, if a task gets a whole group
# For worker processes on this machine.
SETTINGS = {
    # When a worker is lost, Dask looks after this time whether it is back, and else never restarts
    # it. With the default of 15 s, a restarted worker that has just died again would be given up.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Dask makes workers return freed memory to the system at once. Each batch then needs new pages,
    # which takes a third more time. With these thresholds workers keep freed memory up to 256 MB.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": str(2**28),
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": str(2**26),
}
# Tables of nodes and blocks of columns are part of the Dask task graph, so that lost copies can be
# recomputed. Dask would warn about the size of such a graph.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


def find_client(client: Client | None) -> Client | None:
    """Return the client given, or the present one; without any, threads of this process work.

    As always in Dask, ``dask.config.set(scheduler="threads")`` goes before the present client.
    """
    if client is None:
        chosen = dask.config.get("scheduler", None)
        try:
            return get_client() if chosen in (None, "distributed", "dask.distributed") else None
        except ValueError:
            return None
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(f"a synchronous dask.distributed.Client is needed, got {client!r}")
    return client


def hold(value: object, client: Client | None) -> Delayed:
    """Return the value as something that the cluster keeps and hands to the tasks that need it."""
    held: Delayed = delayed(lambda held: held, pure=False)(value)
    if client is not None:
        with dask.config.set(QUIET):
            held = client.persist(held)
    return held


def run_tree(
    work: Work,
    partitions: Sequence[Partition],
    split_every: int,
    client: Client | None,
    progress: Progress | None,
    shared: Sequence[object],
) -> Any:
    """Run work on all partitions and merge the results, `split_every` at a time.

    If there are many partitions of files, a task reads all that are merged together, and only the
    merged result travels.
    """
    token = uuid.uuid4().hex
    job = Job(work.stage, f"ohmlearn-{token}", progress)
    whole_groups = _pays_to_group(partitions, split_every, client)
    size = split_every if whole_groups else 1
    leaves: list[Delayed] = []
    for index, at in enumerate(range(0, len(partitions), size)):
        group = list(partitions[at : at + size])
        key = (f"{work.stage}-partition-{token}", index)
        places = [(part.number, part.name) for part in group]
        task = partial(_read, work=work, places=places, index=index, topic=job.topic)
        contents = [part.content for part in group]
        leaves.append(delayed(task, pure=False)(contents, *shared, dask_key_name=key))
        job.inside[key], job.names[key] = group, " or ".join(part.name for part in group)

    def merge(group: list[Delayed], level: int, index: int) -> Delayed:
        key = (f"{work.stage}-merge-{level}-{token}", index)
        job.names[key] = f"merging partitions ({work.stage}, level {level}, number {index})"
        task = partial(work.merge, level=level, index=index)
        merged: Delayed = delayed(task, pure=False)(group, dask_key_name=key)
        return merged

    root = merge_tree(leaves, len(leaves), split_every, merge, level=int(whole_groups))
    return dask.compute(root)[0] if client is None else job.run(client, leaves, root)


def _pays_to_group(
    partitions: Sequence[Partition], split_every: int, client: Client | None
) -> bool:
    """Whether a task should read all partitions of a group and merge them.

    Only of files, which it reads in batches: the other contents would all be in its memory. And
    only if there are enough groups for all workers.
    """
    if client is None or not isinstance(partitions[0].content, tuple):
        return False
    threads: int = sum(client.nthreads().values())
    return len(partitions) // split_every >= ROUNDS * max(1, threads)


def _read(
    contents: list[object],
    *shared: object,
    work: Work,
    places: list[tuple[int, str]],
    index: int,
    topic: str,
) -> object:
    """Read partitions and merge the results.

    The scheduler gets events, because it outlives a worker that dies at a partition.
    """
    try:
        log = get_worker().log_event
    except ValueError:  # a thread of the user's process
        log = None
    results = []
    for content, (number, name) in zip(contents, places, strict=True):
        if log is not None:
            log(topic, number)
        results.append(work.read(content, number, name, *shared))
        if log is not None:
            log(topic, -1 - number)
    return results[0] if len(results) == 1 else work.merge(results, 1, index)


@dataclass
class Job:
    """A tree of tasks on a cluster, and what is known of them."""

    stage: str
    topic: str  # of the events that say which partitions were begun, and which read
    progress: Progress | None
    inside: dict[Key, list[Partition]] = field(default_factory=dict)  # of each task that reads
    names: dict[Key, str] = field(default_factory=dict)  # of each task, for errors

    def run(self, client: Client, leaves: list[Delayed], root: Delayed) -> object:
        """Compute the root; the results of leaves are let go as they come."""
        with dask.config.set(QUIET):
            *futures, result = client.compute([*leaves, root])
        done: SimpleQueue[Future] = SimpleQueue()
        for future in (*futures, result):
            future.add_done_callback(done.put)
        waiting, n_done = {future.key: future for future in futures}, 0
        total = sum(map(len, self.inside.values()))
        del futures  # what is held here is kept on the workers
        try:
            while True:
                future = self._next_done(client, done, list(waiting))
                if future.status != "finished":
                    failed = [leaf for leaf in waiting.values() if leaf.status == "error"]
                    raise self._explain(client, failed or [future])
                if waiting.pop(future.key, None) is not None and self.progress is not None:
                    n_done += len(self.inside[future.key])
                    self.progress(self.stage, n_done, total)
                if future.key == result.key:
                    return result.result()
        except BaseException:
            result.cancel()
            raise

    def _next_done(self, client: Client, done: SimpleQueue[Future], waiting: list[Key]) -> Future:
        """Return the next task that has ended; give up if there are no workers."""
        alone_since: float | None = None
        while True:
            try:
                return done.get(timeout=1.0)
            except Empty:
                if client.status != "running":
                    raise WorkerError(
                        "the connection to the Dask scheduler is lost; see in its log why it "
                        "ended, and run this again with a new client"
                    ) from None
                if client.nthreads():
                    alone_since = None
                    continue
            now = time.monotonic()
            alone_since = now if alone_since is None else alone_since
            if now - alone_since > PATIENCE:
                begun = " and ".join(self._begun(client, waiting))
                since = f", since those with {begun} died, maybe for want of memory"
                raise WorkerError(
                    f"the cluster has had no worker for {PATIENCE:.0f} s{since if begun else ''}; "
                    f"start some, or see in their logs why they ended"
                )

    def _explain(self, client: Client, failed: list[Future]) -> Exception:
        """Return one error for failed tasks; a merge fails only if no partition did."""
        future = failed[0]
        name = self.names.get(future.key, "a task")
        if future.status != "error":
            return WorkerError(
                f"the task for {name} was {future.status}; check that the scheduler is running"
            )
        error = future.exception()
        if isinstance(error, KilledWorker):
            keys = [task.key for task in failed]
            killed = self._begun(client, keys) or [self.names[key] for key in keys]
            if "-merge-" in future.key[0]:
                killed = [self.names.get(error.task, name)]
            return WorkerError(
                f"{' or '.join(killed)}: {error.allowed_failures + 1} workers died while running "
                f"it, probably out of memory; increase their memory, reduce "
                f"{Param('partition_edges')}, increase {Param('epsilon')}, or set "
                f"{Param('max_edges')}"
            )
        try:
            with in_partition(name):
                raise error
        except PartitionError as named:
            return named.with_traceback(None)

    def _begun(self, client: Client, keys: list[Key]) -> list[str]:
        """Return the partitions that were read when workers died, not those that were waiting."""
        events = [message for _, message in client.get_events(self.topic)]
        parts = (part for key in keys for part in self.inside.get(key, ()))
        return [
            part.name
            for part in parts
            if events.count(part.number) > events.count(-1 - part.number)
        ]
