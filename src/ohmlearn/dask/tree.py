"""A task for each partition, a tree of tasks that puts the results together, and how it is run.

The shape of the tree follows from the number of partitions and `split_every`, and a task is a pure
function of what is below it: no number of workers, order of finishing or death of a worker changes
a bit of the result.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, get_client, get_worker

from ohmlearn.dask.partitions import Partition, PartitionError, in_partition

__all__ = ["Progress", "WorkerError", "find_client", "hold", "run_tree"]

Progress = Callable[[str, int, int], None]  # stage, partitions done, partitions
PATIENCE = 60.0  # seconds without any worker
# Tables of nodes and blocks of columns are part of the Dask task graph, so that lost copies can be
# recomputed. Dask would warn about the size of such a graph.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


class WorkerError(OSError):
    """Workers died at a partition again and again, or the cluster is gone."""

    __module__ = "ohmlearn.dask"  # where users import it from


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
    stage: str,
    partitions: Sequence[Partition],
    leaf: Callable[[Partition], Callable[[Any], Any]],
    merge: Callable[[int, int], Callable[[list[Any]], Any]],
    split_every: int,
    client: Client | None = None,
    progress: Progress | None = None,
    shared: Sequence[Any] = (),
) -> Any:
    """Run a task for each partition and merge what they return, `split_every` at a time.

    Parameters
    ----------
    stage : str
        What is done, for messages and Dask's dashboard.
    partitions : list of Partition
    leaf : callable
        ``leaf(partition)`` returns a function; the task calls it with the partition's content and
        what `shared` holds.
    merge : callable
        ``merge(level, index)`` returns the function that takes a list of results.

    Examples
    --------
    >>> parts = [Partition(i, f"partition {i}", delayed(i)) for i in range(5)]
    >>> run_tree("add", parts, lambda part: lambda x: 10 * x, lambda level, index: sum, 2)
    100
    """
    token = uuid.uuid4().hex
    leaves: list[Delayed] = []
    for part in partitions:
        key = (f"{stage}-partition-{token}", part.number)
        work = partial(_work, function=leaf(part), topic=f"ohmlearn-{token}", number=part.number)
        leaves.append(delayed(work, pure=False)(part.content, *shared, dask_key_name=key))
    names = {task.key: part.name for task, part in zip(leaves, partitions, strict=True)}
    rank, level = leaves, 0
    while len(rank) > 1:
        level += 1
        groups = [rank[at : at + split_every] for at in range(0, len(rank), split_every)]
        rank = []
        for index, group in enumerate(groups):
            if len(group) == 1:  # waits for the next level
                rank += group
                continue
            key = (f"{stage}-merge-{level}-{token}", index)
            rank.append(delayed(merge(level, index), pure=False)(group, dask_key_name=key))
            names[key] = f"merging partitions ({stage}, level {level}, number {index})"
    if client is None:
        return dask.compute(rank[0])[0]
    return _run(client, leaves, rank[0], names, stage, progress)


def _work(*arguments: Any, function: Callable[..., Any], topic: str, number: int) -> Any:
    """Work on a partition; tell the scheduler, which outlives a worker that dies of it."""
    try:
        worker = get_worker()
    except ValueError:  # a thread of the user's process
        return function(*arguments)
    worker.log_event(topic, number)
    result = function(*arguments)
    worker.log_event(topic, -1 - number)
    return result


def _run(
    client: Client,
    leaves: list[Delayed],
    root: Delayed,
    names: dict[Any, str],
    stage: str,
    progress: Progress | None,
) -> Any:
    """Compute the root on the cluster; the results of leaves are let go as they come."""
    with dask.config.set(QUIET):
        *futures, result = client.compute([*leaves, root])
    done: SimpleQueue[Any] = SimpleQueue()
    for future in (*futures, result):
        future.add_done_callback(done.put)
    waiting, total = {future.key: future for future in futures}, len(futures)
    del futures  # what is held here is kept on the workers
    try:
        while True:
            future = _next_done(done, client, list(waiting.values()), names)
            if future.status != "finished":
                failed = [leaf for leaf in waiting.values() if leaf.status == "error"]
                raise _explain(client, failed or [future], names)
            if waiting.pop(future.key, None) is not None and progress is not None:
                progress(stage, total - len(waiting), total)
            if future.key == result.key:
                return result.result()
    except BaseException:
        result.cancel()
        raise


def _next_done(
    done: SimpleQueue[Any], client: Client, waiting: list[Future], names: dict[Any, str]
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
            begun = " and ".join(names[task.key] for task in _begun(client, waiting))
            raise WorkerError(
                f"the cluster has had no worker for {PATIENCE:.0f} s"
                + (f", since those with {begun} died, maybe for want of memory" if begun else "")
                + "; start some, or see in their logs why they ended"
            )


def _explain(client: Client, failed: list[Future], names: dict[Any, str]) -> Exception:
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
        killed = [names[task.key] for task in _begun(client, failed) or failed]
        if "-merge-" in future.key[0]:
            killed = [names.get(error.task, name)]
        return WorkerError(
            f"{' or '.join(killed)}: {error.allowed_failures + 1} workers died while running it, "
            f"probably out of memory; increase their memory, reduce partition_edges, increase "
            f"epsilon, or set max_edges"
        )
    try:
        with in_partition(name):
            raise error
    except PartitionError as named:
        return named.with_traceback(None)


def _begun(client: Client, leaves: list[Future]) -> list[Future]:
    """Return the tasks that were running when workers died, not those that were waiting."""
    if not leaves:
        return []
    token = leaves[0].key[0].rpartition("-")[2]
    events = [message for _, message in client.get_events(f"ohmlearn-{token}")]
    return [task for task in leaves if events.count(task.key[1]) > events.count(-1 - task.key[1])]
