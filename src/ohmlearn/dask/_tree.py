"""A task for each partition, a tree of tasks that puts the results together, and how it is run.

The shape of the tree follows from the number of partitions and `split_every`, and a task is a pure
function of what is below it: no number of workers, order of finishing or death of a worker changes
a bit of the result.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, as_completed, get_client

from ohmlearn.dask._partitions import Partition, PartitionError, in_partition

__all__ = ["Progress", "WorkerError", "find_client", "hold", "run_tree"]

Progress = Callable[[str, int, int], None]  # stage, partitions done, partitions
# Tables of nodes and blocks of columns go with the graph, so that the scheduler can make them anew.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


class WorkerError(OSError):
    """Workers died at a partition again and again, or the cluster is gone."""


def find_client(client: Client | None) -> Client | None:
    """Return the client given, or the present one; without any, threads of this process work."""
    if client is None:
        try:
            return get_client()
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
        leaves.append(delayed(leaf(part), pure=False)(part.content, *shared, dask_key_name=key))
    names = {leaf_.key: part.name for leaf_, part in zip(leaves, partitions, strict=True)}
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
        return dask.compute(rank[0], scheduler="threads")[0]
    return _run(client, leaves, rank[0], names, stage, progress)


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
    total, done = len(futures), 0
    waiting = as_completed(futures)
    del futures  # what is held here is kept on the workers
    try:
        for future in waiting:
            if future.status != "finished":
                raise _explain(future, names)
            if future.key != result.key:  # a single partition is the root itself
                future.release()
            done += 1
            if progress is not None:
                progress(stage, done, total)
        try:
            return result.result()
        except Exception:
            raise _explain(result, names) from None
    except BaseException:
        waiting.clear()
        result.cancel()
        raise


def _explain(future: Future, names: dict[Any, str]) -> Exception:
    """Return one error for what a task has failed with."""
    if future.status != "error":
        return WorkerError(
            f"the cluster has let go of {names.get(future.key, future.key)} ({future.status}): is "
            f"its scheduler still there?"
        )
    error = future.exception()
    name = names.get(future.key, "a task")
    if isinstance(error, KilledWorker):
        if future.key not in names or "merging" in name:
            name = names.get(error.task, name)
        return WorkerError(
            f"{name}: the workers that had it died {error.allowed_failures + 1} times, most likely "
            f"for want of memory; give them more, or a smaller partition_edges, a larger epsilon, "
            f"or max_edges"
        )
    if isinstance(error, PartitionError):
        return error.with_traceback(None)
    try:
        with in_partition(name):
            raise error
    except PartitionError as named:
        return named.with_traceback(None)
