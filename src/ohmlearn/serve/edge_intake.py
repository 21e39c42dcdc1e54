"""The thread that makes batches durable, and the queue before it.

Batches that wait are written together: all of them to the log, their ids to the database, then one
flush. Only then are they acknowledged. A batch is one operation of the log, so that it counts
completely or not at all.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.times import describe_time, most_ahead
from ohmlearn.edge_log import EdgeLog, LogError, Transaction
from ohmlearn.errors import text_of
from ohmlearn.nodes.node_ids import Strings, take
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.clock import Clock
from ohmlearn.serve.database import Database, Offset, Receipt
from ohmlearn.serve.decode_edges import BadBody
from ohmlearn.serve.serve_errors import Refused, storage_error
from ohmlearn.serve.settings import Settings
from ohmlearn.serve.worker_thread import Worker

__all__ = ["Intake"]

GROUP_BYTES = 16 << 20  # of batches that are written together
EARLIEST = -62_135_596_800.0  # the year 1 in Unix seconds; floats have fractions of seconds there
TOLD_AHEAD = 60.0  # seconds ahead of the clock from which on edges are a problem
TELL_SECONDS = 600.0  # how long they are one
PRUNE_EVERY = 1000  # flushes between two prunings of the database
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Item:
    """A batch in the queue."""

    batch: RawBatch
    is_removal: bool
    batch_id: str | None
    offset: Offset | None
    size: int
    future: Future[Receipt]
    skip_bad: bool


class Intake(Worker):
    """Takes batches from any thread and makes them durable in one.

    Parameters
    ----------
    log : EdgeLog
    database : Database
    settings : Settings
    lag : callable
        Returns the number of durable edges and removals that the sampler has not seen.
    after_flush : callable
        Called after batches have become durable.
    keep_house : callable
        Called between batches, and about once a second without any; it may change the log.
    """

    def __init__(
        self,
        log: EdgeLog,
        database: Database,
        settings: Settings,
        *,
        lag: Callable[[], int],
        after_flush: Callable[[], None],
        keep_house: Callable[[], None],
    ) -> None:
        super().__init__("intake")
        self._log, self._database, self._settings = log, database, settings
        self._lag, self._after_flush, self._keep_house = lag, after_flush, keep_house
        self._queue: deque[Item] = deque()
        self._changed = threading.Condition()
        self._writing = threading.Lock()  # held while the database may be ahead of the log
        self.clock = Clock()
        options = log.sparsifier_options
        self._memory = options.decay if options.reach is None else options.reach  # seconds
        self._told_at = 0.0  # when an edge was ahead of the clock
        self._next: dict[tuple[str, int], int] = {}  # offsets, as far as they are known here
        self._must_forget = False  # ids of batches that the log does not have are stored
        self._pruned = 0
        self.counts = dict.fromkeys(
            ("edges", "batches", "repeated_batches", "bad_rows", "refused_batches", "removals",
             "edges_ahead", "refused_ahead"), 0,
        )  # fmt: skip
        self.queued_edges = self.queued_bytes = self.n_flushes = 0
        self.flush_seconds = 0.0
        self.is_full = False  # the disk
        self._rates: deque[tuple[float, int]] = deque([(time.monotonic(), 0)], 64)

    # Called from any thread.

    def stop(self) -> None:
        """Write what has been accepted, and end."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        super().stop()

    def submit(
        self,
        batch: RawBatch,
        *,
        is_removal: bool = False,
        batch_id: str | None = None,
        offset: Offset | None = None,
        skip_bad: bool = False,
    ) -> Future[Receipt]:
        """Put a batch into the queue; the result is there when the batch is durable."""
        if batch_id is not None:  # a removal is not to be taken for a batch of edges
            batch_id = f"{'removal' if is_removal else 'edges'} {batch_id}"
        item = Item(batch, is_removal, batch_id, offset, _size(batch), Future(), skip_bad)
        with self._changed:
            if self._stopping.is_set():
                raise Refused(503, "the service is stopping; send the batch again later")
            if self._queue and self.queued_bytes + item.size > self._settings.max_queued_bytes:
                self.counts["refused_batches"] += 1
                raise Refused(429, "too many batches are waiting; send this one again later")
            if self._lag() > self._settings.max_lag_edges:
                self.counts["refused_batches"] += 1
                raise Refused(429, "the sampler is too far behind; send the batch again later")
            self._queue.append(item)
            self.queued_bytes += item.size
            self.queued_edges += item.batch.u.size
            self._changed.notify_all()
        return item.future

    def next_offsets(self, topic: str) -> dict[int, int]:
        """Return the next offset of each partition; only of messages that are durable."""
        with self._writing:  # while batches are written, their offsets are not durable yet
            return self._database.next_offsets(topic)

    def rate(self) -> float:
        """Return durable edges per second, in the last few seconds."""
        now, samples = time.monotonic(), list(self._rates)
        recent = [sample for sample in samples if now - sample[0] <= 5.0]
        then, before = recent[0] if recent else samples[-1]
        return (self.counts["edges"] - before) / max(now - then, 1.0)

    # The thread.

    def _run(self) -> None:
        while True:
            group, is_last = self._take_group()
            if group:
                self._write(group)
            elif is_last:
                return
            try:
                self._keep_house()
                self._prune()
                if time.monotonic() - self._told_at > TELL_SECONDS:
                    self.problem = None
            except Exception:  # the next batch must still be written
                logger.exception("work on the log failed")

    def _take_group(self) -> tuple[list[Item], bool]:
        """Wait for batches, but not longer than a second; return some, and whether to end."""
        with self._changed:
            if not self._queue and not self._stopping.is_set():
                self._changed.wait(1.0)
            group: list[Item] = []
            size = 0
            while self._queue and (not group or size + self._queue[0].size <= GROUP_BYTES):
                item = self._queue.popleft()
                if item.future.set_running_or_notify_cancel():
                    group.append(item)
                    size += item.size
                else:  # whoever waited for it has given up
                    self._unqueue([item])
            return group, self._stopping.is_set() and not self._queue

    def _write(self, group: list[Item]) -> None:
        start = time.perf_counter()
        outcomes: list[Receipt | Exception]
        try:
            with self._writing:
                outcomes = self._write_all(group)
        except (OSError, sqlite3.Error) as error:
            if not self.is_full:  # else this has been said
                logger.error("batches were not stored: %s", error)
            outcomes = [storage_error(error)] * len(group)
        except Exception as error:  # a fault of ours; the thread must live
            logger.exception("batches were not stored")
            outcomes = [Refused(500, f"the service failed: {type(error).__name__}")] * len(group)
        self.flush_seconds += time.perf_counter() - start
        self.n_flushes += 1
        self._count(group, outcomes)
        if any(isinstance(one, Receipt) for one in outcomes):
            self._after_flush()
        for item, one in zip(group, outcomes, strict=True):
            if isinstance(one, Receipt):
                item.future.set_result(one)
            else:
                item.future.set_exception(one)

    def _write_all(self, group: list[Item]) -> list[Receipt | Exception]:
        """Write batches to the log, their ids to the database, and flush.

        Returns what became of each. An error is raised if none of them is stored.
        """
        outcomes: list[Receipt | Exception] = []
        batches: dict[str, Receipt] = {}
        offsets: list[tuple[Offset, int]] = []
        positions = dict(self._next)
        try:
            with self._log.transaction() as changes:
                if self._must_forget:
                    self._forget()
                for item in group:
                    one = self._try(item, changes, batches, positions)
                    outcomes.append(one)
                    if isinstance(one, Receipt) and not one.repeated:
                        if item.batch_id is not None:
                            batches[item.batch_id] = one
                        if item.offset is not None:
                            offsets.append((item.offset, one.operation))
                if batches or offsets:
                    # From here until the log is flushed, the database is ahead of it.
                    self._must_forget = True
                    self._database.record(batches.items(), offsets)
        except BaseException:  # the log has undone them: none was acknowledged
            try:
                if self._must_forget:
                    self._forget()
            except sqlite3.Error as error:  # it is done before the next batch
                logger.error("ids of batches could not be deleted yet: %s", error)
            raise
        self._must_forget = False
        self._next = positions
        return outcomes

    def _try(
        self,
        item: Item,
        changes: Transaction,
        batches: dict[str, Receipt],
        positions: dict[tuple[str, int], int],
    ) -> Receipt | Exception:
        """Do what a batch asks for; return an error that concerns only this batch."""
        try:
            return self._take(item, changes, batches, positions)
        except LogError:
            raise  # the log is damaged
        except OSError as error:
            if changes.is_lost:
                raise  # all batches of the group are gone
            return storage_error(error)
        except TypeError as error:  # ids of another kind
            return Refused(409, text_of(error))
        except (ValueError, Refused) as error:
            return error

    def _prune(self) -> None:
        """Delete ids that are too old to be remembered, now and then."""
        if self.n_flushes - self._pruned >= PRUNE_EVERY:
            self._pruned = self.n_flushes
            self._database.prune(self._log.n_durable, self._settings.max_kept_batches)

    def _forget(self) -> None:
        """Delete the ids of batches that the log does not have."""
        self._database.forget_after(self._log.n_durable)
        self._must_forget = False

    def _take(
        self,
        item: Item,
        changes: Transaction,
        batches: dict[str, Receipt],
        positions: dict[tuple[str, int], int],
    ) -> Receipt:
        """Do what a batch asks for, unless that was done before."""
        if item.batch_id is not None:
            before = batches.get(item.batch_id) or self._database.find_batch(item.batch_id)
            if before is not None:
                return before._replace(repeated=True)
        place = item.offset
        if place is not None:
            key = place.topic, place.partition
            if key not in positions:
                known = self._database.next_offsets(place.topic)
                positions[key] = known.get(place.partition, -1)
            if place.offset < positions[key]:
                return Receipt(0, repeated=True)
            if place.start > positions[key] >= 0:
                raise Refused(409, f"offset {positions[key]} of {place.topic} is missing")
        receipt = (self._remove if item.is_removal else self._append)(item, changes)
        if place is not None:
            positions[place.topic, place.partition] = place.offset + 1
        return receipt

    def _append(self, item: Item, changes: Transaction) -> Receipt:
        batch = self._check_times(item.batch, item.skip_bad)
        n_edges = changes.append(batch.u, batch.v, batch.w, batch.t)
        return Receipt(n_edges, batch.n_bad, batch.first_bad, operation=changes.n_operations)

    def _check_times(self, batch: RawBatch, skip_bad: bool) -> RawBatch:
        """Return edges with times, none of which is ahead of the clock if edges are forgotten.

        A single one would make all others look old. So edges that are a little ahead count as of
        now, and those that are ahead by more than the memory are bad.
        """
        now, t = self.clock.now(), batch.t
        if t is None:
            return batch._replace(t=np.full(batch.u.size, now))
        forgets = self._memory < math.inf
        most = most_ahead(self._memory) if forgets else math.inf
        if forgets:
            self._tell_ahead(t - now, most)
        bad = (t < EARLIEST) | (t > now + most)
        if bad.any():
            at = int(np.argmax(bad))
            why = "before the year 1; give Unix seconds, or a date"
            if t[at] > now:
                why = (
                    f"{t[at] - now:.0f} s ahead of the clock of the server, but at most "
                    f"{most:.0f} s are accepted; send Unix seconds, or dates in UTC"
                )
            why = f"the time is {describe_time(float(t[at]), t[at] > now)}, which is {why}"
            if not skip_bad:
                raise BadBody(f"edge {at + 1} of the batch: {why}")
            good = np.flatnonzero(~bad)
            w, n_bad = None if batch.w is None else batch.w[good], batch.n_bad + int(bad.sum())
            ends, t = (take(batch.u, good), take(batch.v, good)), t[good]
            batch = RawBatch(*ends, w, n_bad, batch.first_bad or why, t)
        return batch._replace(t=np.minimum(t, now)) if forgets else batch

    def _tell_ahead(self, ahead: NDArray[np.float64], most: float) -> None:
        """Count edges that are ahead of the clock; by more than a minute, they are a problem."""
        n_refused, longest = int((ahead > most).sum()), ahead.max(initial=0.0)
        self.counts["edges_ahead"] += int((ahead > 0).sum()) - n_refused
        self.counts["refused_ahead"] += n_refused
        if longest > TOLD_AHEAD:
            self._told_at = time.monotonic()
            self.problem = (
                f"edges have times ahead of the clock of the server, the last ones by "
                f"{longest:.0f} s; {self.counts['edges_ahead']:,} count as of their arrival, and "
                f"{self.counts['refused_ahead']:,} were refused, because they were ahead by more "
                f"than {most:.0f} s; perhaps a client sends local times as UTC"
            )

    def _remove(self, item: Item, changes: Transaction) -> Receipt:
        batch = item.batch
        found = changes.remove(batch.u, batch.v, batch.w, batch.t, missing="ignore")
        about = Receipt(0, batch.n_bad, batch.first_bad, operation=changes.n_operations)
        return about._replace(n_removed=found.n_removed, n_missing=len(found.missing))

    def _count(self, group: list[Item], outcomes: list[Receipt | Exception]) -> None:
        counts = self.counts
        for one in outcomes:
            if not isinstance(one, Receipt):
                counts["refused_batches"] += 1
                continue
            counts["batches"] += 1
            counts["repeated_batches"] += one.repeated
            if not one.repeated:
                counts["edges"] += one.n_edges
                counts["bad_rows"] += one.n_bad
                counts["removals"] += one.n_removed
                if one.n_edges + one.n_removed > 0:
                    self.is_full = False
        if any(getattr(one, "status", 0) == 507 for one in outcomes):
            self.is_full = True
        now = time.monotonic()
        if now - self._rates[-1][0] >= 0.25:
            self._rates.append((now, counts["edges"]))
        with self._changed:
            self._unqueue(group)

    def _unqueue(self, items: list[Item]) -> None:
        self.queued_bytes -= sum(item.size for item in items)
        self.queued_edges -= sum(item.batch.u.size for item in items)


def _size(batch: RawBatch) -> int:
    """Return the bytes that a batch takes in memory."""
    total = 1000
    for column in (batch.u, batch.v, batch.w, batch.t):
        parts: Any = column if isinstance(column, Strings) else (column,)
        total += sum(part.nbytes for part in parts if part is not None)
    return total
