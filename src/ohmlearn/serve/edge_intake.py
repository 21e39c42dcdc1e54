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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.times import describe_time, most_ahead
from ohmlearn.edge_log import EdgeLog, LogError, Transaction
from ohmlearn.errors import text_of
from ohmlearn.nodes.node_ids import Strings
from ohmlearn.reading.event_ids import Events, recall
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.database import Database, Offset, Receipt
from ohmlearn.serve.decode_edges import BadBody
from ohmlearn.serve.serve_errors import Refused, storage_error
from ohmlearn.serve.service_threads import Worker
from ohmlearn.serve.settings import Settings

GROUP_BYTES = 16 << 20  # of batches that are written together
EARLIEST = -62_135_596_800.0  # the year 1 in Unix seconds; floats have fractions of seconds there
MUCH_AHEAD = 60.0  # seconds ahead of the clock from which on edges are a problem
SHOW_SECONDS = 600.0  # how long they are one
PRUNE_EVERY = 1000  # flushes between two prunings of the database
JUMP = 3600.0  # seconds by which the clock of the system may be set, at once
PATIENCE = 600.0  # seconds after which a new time is believed
COUNTS = {
    "edges": "Edges that have become durable.",
    "batches": "Batches that were acknowledged.",
    "repeated_batches": "Batches that had been taken before, and were not counted again.",
    "repeated_events": "Rows whose events had been counted before.",
    "bad_rows": "Rows that were skipped on request.",
    "refused_batches": "Batches that were refused, but not for bad rows.",
    "edges_ahead": "Edges whose time was ahead of the clock; they count as of their arrival.",
    "refused_ahead": "Edges that were refused, because they were too far ahead of the clock.",
    "removals": "Edges that were removed.",
}
logger = logging.getLogger(__name__)


class Clock:
    """The time of edges that come without one, although the clock of the system may be set wrong.

    One edge with a time in the far future would make all others look old. So when the clock of the
    system jumps by more than an hour against a steady clock, time continues as before. A new time
    that stays for ten minutes is believed.
    """

    def __init__(self) -> None:
        self._offset = time.time() - steady_time()
        self._since: float | None = None  # when the clock of the system jumped

    def now(self) -> float:
        """Return the time."""
        steady = steady_time()
        offset = time.time() - steady
        if abs(offset - self._offset) <= JUMP:
            self._offset, self._since = offset, None
        elif self._since is None:
            self._since = steady
            logger.warning("the clock has jumped by %.0f s; ignored", offset - self._offset)
        elif steady - self._since > PATIENCE:
            logger.warning("the clock stays set by %.0f s; believed", offset - self._offset)
            self._offset, self._since = offset, None
        return steady + self._offset


def steady_time() -> float:
    """Return seconds that are never set; on Linux they also pass while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(eq=False)
class Item:
    """A batch in the queue."""

    batch: RawBatch
    is_removal: bool
    batch_id: str | None
    offset: Offset | None
    skip_bad: bool
    future: Future[Receipt] = field(default_factory=Future)

    def __post_init__(self) -> None:
        if self.batch_id is not None:  # a removal is not to be taken for a batch of edges
            self.batch_id = f"{'removal' if self.is_removal else 'edges'} {self.batch_id}"

    @cached_property
    def size(self) -> int:
        """The bytes that the batch takes in memory."""
        total = 1000
        for column in (self.batch.u, self.batch.v, self.batch.w, self.batch.t, self.batch.event):
            parts: Any = column if isinstance(column, Strings) else (column,)
            total += sum(int(part.nbytes) for part in parts if part is not None)
        return total


@dataclass
class Pending:
    """What the batches of one transaction have, before it is stored."""

    next: dict[tuple[str, int], int]  # the next offset of each topic and partition
    batches: dict[str, Receipt] = field(default_factory=dict)
    offsets: list[tuple[Offset, int]] = field(default_factory=list)  # and their operations
    events: dict[int, Events] = field(default_factory=dict)  # new ones of each operation


class Intake(Worker):
    """Takes batches from any thread and makes them durable in one.

    `lag` returns the number of durable edges and removals that the sampler has not seen.
    `after_flush` is called after batches have become durable, and `keep_house` between batches, and
    about once a second without any; it may change the log.
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
        self._shown_at = 0.0  # when an edge was much ahead of the clock
        self._next: dict[tuple[str, int], int] = {}  # offsets, as far as they are known here
        self._events: _core.RecentIds | None = None  # of the database, when it is needed
        self._must_forget = False  # ids of batches that the log does not have are stored
        self._pruned = 0
        self.counts = dict.fromkeys(COUNTS, 0)
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

    def submit(self, item: Item) -> Future[Receipt]:
        """Put a batch into the queue; the result is there when the batch is durable."""
        with self._changed:
            if self._stopping.is_set():
                raise Refused(503, "the service is stopping; send the batch again later")
            why = ""
            if self._queue and self.queued_bytes + item.size > self._settings.max_queued_bytes:
                why = "too many batches are waiting; send this one again later"
            elif self._lag() > self._settings.max_lag_edges:
                why = "the sampler is too far behind; send the batch again later"
            if why:
                self.counts["refused_batches"] += 1
                raise Refused(429, why)
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
            items, is_last = self._take_items()
            if items:
                self._write(items)
            elif is_last:
                return
            try:
                self._keep_house()
                if self.n_flushes - self._pruned >= PRUNE_EVERY:  # ids that are too old
                    self._pruned = self.n_flushes
                    self._database.prune(self._log.n_durable, self._settings.max_kept_batches)
                if time.monotonic() - self._shown_at > SHOW_SECONDS:
                    self.problem = None
            except Exception:  # the next batch must still be written
                logger.exception("work on the log failed")

    def _take_items(self) -> tuple[list[Item], bool]:
        """Wait for batches, but not longer than a second; return some, and whether to end."""
        with self._changed:
            if not self._queue and not self._stopping.is_set():
                self._changed.wait(1.0)
            items: list[Item] = []
            size = 0
            while self._queue and (not items or size + self._queue[0].size <= GROUP_BYTES):
                item = self._queue.popleft()
                if item.future.set_running_or_notify_cancel():
                    items.append(item)
                    size += item.size
                else:  # whoever waited for it has given up
                    self._unqueue([item])
            return items, self._stopping.is_set() and not self._queue

    def _write(self, items: list[Item]) -> None:
        start = time.perf_counter()
        outcomes: list[Receipt | Exception]
        try:
            with self._writing:
                outcomes = self._write_all(items)
        except (OSError, sqlite3.Error) as error:
            if not self.is_full:  # else this has been said
                logger.error("batches were not stored: %s", error)
            outcomes = [storage_error(error)] * len(items)
        except Exception as error:  # a fault of ours; the thread must live
            logger.exception("batches were not stored")
            outcomes = [Refused(500, f"the service failed: {type(error).__name__}")] * len(items)
        self.flush_seconds += time.perf_counter() - start
        self.n_flushes += 1
        self._count(items, outcomes)
        if any(isinstance(one, Receipt) for one in outcomes):
            self._after_flush()
        for item, one in zip(items, outcomes, strict=True):
            if isinstance(one, Receipt):
                item.future.set_result(one)
            else:
                item.future.set_exception(one)

    def _write_all(self, items: list[Item]) -> list[Receipt | Exception]:
        """Write batches to the log, their ids to the database, and flush.

        Returns what became of each. An error is raised if none of them is stored.
        """
        pending = Pending(dict(self._next))
        try:
            with self._log.transaction() as changes:
                if self._must_forget:
                    self._forget()
                outcomes = [self._try(item, changes, pending) for item in items]
                if pending.batches or pending.offsets or pending.events:
                    # From here until the log is flushed, the database is ahead of it.
                    self._must_forget = True
                    self._database.record(pending.batches, pending.offsets, pending.events)
        except BaseException:  # the log has undone them: none was acknowledged
            self._events = None
            try:
                if self._must_forget:
                    self._forget()
            except sqlite3.Error as error:  # it is done before the next batch
                logger.error("ids of batches could not be deleted yet: %s", error)
            raise
        self._must_forget = False
        self._next = pending.next
        return outcomes

    def _try(self, item: Item, changes: Transaction, pending: Pending) -> Receipt | Exception:
        """Do what a batch asks for; return an error that concerns only this batch."""
        try:
            return self._take(item, changes, pending)
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

    def _forget(self) -> None:
        """Delete the ids of batches that the log does not have."""
        self._database.forget_after(self._log.n_durable)
        self._must_forget = False

    def _take(self, item: Item, changes: Transaction, pending: Pending) -> Receipt:
        """Do what a batch asks for, unless that was done before."""
        if item.batch_id is not None:
            before = pending.batches.get(item.batch_id) or self._database.find_batch(item.batch_id)
            if before is not None:
                return before._replace(repeated=True)
        place = item.offset
        if place is not None:
            key = place.topic, place.partition
            if key not in pending.next:
                known = self._database.next_offsets(place.topic)
                pending.next[key] = known.get(place.partition, -1)
            if place.offset < pending.next[key]:
                return Receipt(0, repeated=True)
            if place.start > pending.next[key] >= 0:
                raise Refused(409, f"offset {pending.next[key]} of {place.topic} is missing")
        if item.is_removal:
            receipt = self._remove(item.batch, changes)
        else:
            receipt = self._append(item, changes, pending)
        if item.batch_id is not None:
            pending.batches[item.batch_id] = receipt
        if place is not None:
            pending.next[place.topic, place.partition] = place.offset + 1
            pending.offsets.append((place, receipt.operation))
        return receipt

    def _append(self, item: Item, changes: Transaction, pending: Pending) -> Receipt:
        batch = self._check_times(item.batch, item.skip_bad)
        n_rows = batch.u.size
        if batch.event is not None:
            if self._events is None:
                # At the start, or after a failure: what is remembered must not have its events.
                self._events = recall(self._database.events(), *pending.events.values())
            batch = batch.rows(np.flatnonzero(self._events.take(batch.event)))
        try:
            n_edges = changes.append(batch.u, batch.v, batch.w, batch.t)
        except BaseException:
            self._events = None
            raise
        if batch.event is not None and batch.event.size:
            pending.events[changes.n_operations] = batch.event
        n_repeated = n_rows - batch.u.size
        return Receipt(
            n_edges, batch.n_bad, batch.first_bad, operation=changes.n_operations,
            n_repeated=n_repeated,
        )  # fmt: skip

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
            self._note_ahead(t - now, most)
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
            batch = batch.rows(np.flatnonzero(~bad)).with_bad(int(bad.sum()), why)
            t = t[~bad]
        return batch._replace(t=np.minimum(t, now)) if forgets else batch

    def _note_ahead(self, ahead: NDArray[np.float64], most: float) -> None:
        """Count edges that are ahead of the clock; by more than a minute, they are a problem."""
        n_refused, longest = int((ahead > most).sum()), ahead.max(initial=0.0)
        self.counts["edges_ahead"] += int((ahead > 0).sum()) - n_refused
        self.counts["refused_ahead"] += n_refused
        if longest > MUCH_AHEAD:
            self._shown_at = time.monotonic()
            self.problem = (
                f"edges have times ahead of the clock of the server, the last ones by "
                f"{longest:.0f} s; {self.counts['edges_ahead']:,} count as of their arrival, and "
                f"{self.counts['refused_ahead']:,} were refused, because they were ahead by more "
                f"than {most:.0f} s; perhaps a client sends local times as UTC"
            )

    def _remove(self, batch: RawBatch, changes: Transaction) -> Receipt:
        found = changes.remove(batch.u, batch.v, batch.w, batch.t, missing="ignore")
        about = Receipt(0, batch.n_bad, batch.first_bad, operation=changes.n_operations)
        return about._replace(n_removed=found.n_removed, n_missing=len(found.missing))

    def _count(self, items: list[Item], outcomes: list[Receipt | Exception]) -> None:
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
                counts["repeated_events"] += one.n_repeated
                if one.n_edges + one.n_removed > 0:
                    self.is_full = False
        if any(getattr(one, "status", 0) == 507 for one in outcomes):
            self.is_full = True
        now = time.monotonic()
        if now - self._rates[-1][0] >= 0.25:
            self._rates.append((now, counts["edges"]))
        with self._changed:
            self._unqueue(items)

    def _unqueue(self, items: list[Item]) -> None:
        self.queued_bytes -= sum(item.size for item in items)
        self.queued_edges -= sum(item.batch.u.size for item in items)
