"""How Dask runs work: a task for each partition, or for a group of them, and a tree of merges.

The shape of the tree follows from the number of partitions and `split_every`, and a task is a pure
function of what is below it: no number of workers, order of finishing or death of a worker changes
a bit of the result.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, get_client, get_worker

from ohmlearn.cluster.cluster_errors import PartitionError, WorkerError, in_partition
from ohmlearn.cluster.merge_tree import merge_levels
from ohmlearn.cluster.partition_work import Work
from ohmlearn.cluster.partitioned_edges import Progress
from ohmlearn.cluster.partitions import Partition
from ohmlearn.errors import Param

__all__ = ["find_client", "hold", "run_tree"]

PATIENCE = 60.0  # seconds without any worker
ROUNDS = 2  # groups of partitions for each thread of the workers, if a task gets a whole group
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


def hold(value: Any, client: Client | None) -> Delayed:
    """Return the value as something that the cluster keeps and hands to the tasks that need it."""
    held = delayed(_same, pure=False)(value)
    if client is None:
        return held
    with dask.config.set(QUIET):
        kept: Delayed = client.persist(held)
    return kept


def _same(value: Any) -> Any:
    return value


def run_tree(
    work: Work,
    partitions: Sequence[Partition],
    split_every: int,
    client: Client | None = None,
    progress: Progress | None = None,
    shared: Sequence[Any] = (),
) -> Any:
    """Run work on all partitions and merge the results, `split_every` at a time.

    If there are many partitions of files, a task reads all that are merged together, and only the
    merged result travels.

    Examples
    --------
    >>> from ohmlearn.cluster.partition_work import Sparsifying
    >>> from ohmlearn.reading import ReadOptions
    >>> parts = [Partition(i, f"partition {i}", delayed(([i], [i + 1]))) for i in range(5)]
    >>> run_tree(Sparsifying(ReadOptions(), {}, seed=0), parts, 2).nodes().ids().tolist()
    [0, 1, 2, 3, 4, 5]
    """
    token = uuid.uuid4().hex
    whole_groups = _pays_to_group(partitions, split_every, client)
    size = split_every if whole_groups else 1
    leaves: list[Delayed] = []
    inside: dict[Any, list[Partition]] = {}  # partitions of a task
    names: dict[Any, str] = {}
    for index, at in enumerate(range(0, len(partitions), size)):
        group = list(partitions[at : at + size])
        key = (f"{work.stage}-partition-{token}", index)
        places = [(part.number, part.name) for part in group]
        task = partial(_read, work=work, places=places, index=index, topic=f"ohmlearn-{token}")
        contents = [part.content for part in group]
        leaves.append(delayed(task, pure=False)(contents, *shared, dask_key_name=key))
        inside[key], names[key] = group, " or ".join(part.name for part in group)

    def merge(group: list[Delayed], level: int, index: int) -> Delayed:
        key = (f"{work.stage}-merge-{level}-{token}", index)
        names[key] = f"merging partitions ({work.stage}, level {level}, number {index})"
        task = partial(work.merge, level=level, index=index)
        merged: Delayed = delayed(task, pure=False)(group, dask_key_name=key)
        return merged

    root = merge_levels(leaves, split_every, merge, level=int(whole_groups))
    if client is None:
        return dask.compute(root)[0]
    return _run(client, leaves, root, names, inside, work.stage, progress)


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
    contents: list[Any],
    *shared: Any,
    work: Work,
    places: list[tuple[int, str]],
    index: int,
    topic: str,
) -> Any:
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


def _run(
    client: Client,
    leaves: list[Delayed],
    root: Delayed,
    names: dict[Any, str],
    inside: dict[Any, list[Partition]],
    stage: str,
    progress: Progress | None,
) -> Any:
    """Compute the root on the cluster; the results of leaves are let go as they come."""
    with dask.config.set(QUIET):
        *futures, result = client.compute([*leaves, root])
    done: SimpleQueue[Any] = SimpleQueue()
    for future in (*futures, result):
        future.add_done_callback(done.put)
    waiting, n_done = {future.key: future for future in futures}, 0
    total = sum(map(len, inside.values()))
    del futures  # what is held here is kept on the workers
    try:
        while True:
            future = _next_done(done, client, waiting, inside)
            if future.status != "finished":
                failed = [leaf for leaf in waiting.values() if leaf.status == "error"]
                raise _explain(client, failed or [future], names, inside)
            if waiting.pop(future.key, None) is not None and progress is not None:
                n_done += len(inside[future.key])
                progress(stage, n_done, total)
            if future.key == result.key:
                return result.result()
    except BaseException:
        result.cancel()
        raise


def _next_done(
    done: SimpleQueue[Any],
    client: Client,
    waiting: dict[Any, Future],
    inside: dict[Any, list[Partition]],
) -> Any:
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
            begun = " and ".join(_begun(client, list(waiting), inside))
            raise WorkerError(
                f"the cluster has had no worker for {PATIENCE:.0f} s"
                + (f", since those with {begun} died, maybe for want of memory" if begun else "")
                + "; start some, or see in their logs why they ended"
            )


def _explain(
    client: Client,
    failed: list[Future],
    names: dict[Any, str],
    inside: dict[Any, list[Partition]],
) -> Exception:
    """Return one error for what tasks have failed with; a merge fails only if no partition did."""
    future = failed[0]
    name = names.get(future.key, "a task")
    if future.status != "error":
        return WorkerError(
            f"the task for {name} was {future.status}; check that the scheduler is running"
        )
    error = future.exception()
    if isinstance(error, PartitionError):
        return error.with_traceback(None)
    if isinstance(error, KilledWorker):
        keys = [task.key for task in failed]
        killed = _begun(client, keys, inside) or [names[key] for key in keys]
        if "-merge-" in future.key[0]:
            killed = [names.get(error.task, name)]
        return WorkerError(
            f"{' or '.join(killed)}: {error.allowed_failures + 1} workers died while running it, "
            f"probably out of memory; increase their memory, reduce {Param('partition_edges')}, "
            f"increase {Param('epsilon')}, or set {Param('max_edges')}"
        )
    try:
        with in_partition(name):
            raise error
    except PartitionError as named:
        return named.with_traceback(None)


def _begun(client: Client, keys: list[Any], inside: dict[Any, list[Partition]]) -> list[str]:
    """Return the partitions that were read when workers died, not those that were waiting."""
    if not keys:
        return []
    token = keys[0][0].rpartition("-")[2]
    events = [message for _, message in client.get_events(f"ohmlearn-{token}")]
    parts = (part for key in keys for part in inside.get(key, ()))
    return [
        part.name for part in parts if events.count(part.number) > events.count(-1 - part.number)
    ]
