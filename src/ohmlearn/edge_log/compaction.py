"""Compaction: rewrite the files of a log without dead edges, while others read and append.

    start    under the lock of the log: remember the live edges; later appends go to new files
    rewrite  without the lock: write the live edges to new files
    finish   under the lock: write a new journal, with the new files and with the operations since
             the start; replace the manifest; delete the old files

A crash before the manifest is replaced leaves the old log, and one after it the new log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from ohmlearn.edge_log.journal import (
    Contents,
    Entries,
    Kind,
    Rows,
    find_limits,
    find_runs,
    journal_path,
    make_entry,
)
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_store import RECORD_ROWS, SEGMENT_ROWS, Store, Writer
from ohmlearn.edge_log.manifest import Manifest, sync_folder
from ohmlearn.edge_log.records import EdgeColumns, concatenate, read_rows


class Compaction:
    """One compaction of a log that is writing; hooks are called around the change of files."""

    def __init__(
        self, store: Store, before_finish: Callable[[], None], after_finish: Callable[[], None]
    ) -> None:
        self._store = store
        self._hooks = before_finish, after_finish
        store.flush()
        self._live: LiveEdges = store.live()
        self._n_entries = store.writer.n_entries
        self._n_operations = store.contents.n_operations
        self._head = store.journal_entries()
        self._rewritten = choose_segments(store.contents)
        # Numbers for the new files: at most one for each old one, and one for each change of form.
        self._next_segment = store.contents.last_segment + 1
        store.sealed = self._next_segment + 2 * len(store.contents.segment_rows)
        self._starts: dict[int, int] = {}  # live rows before each rewritten segment
        self._placed: list[tuple[int, int]] = []  # new segments, and live rows before each
        number = store.manifest.journal + 1
        journal_path(store.folder, number).touch()
        self._writer = Writer(store.folder, number, 0, {})
        self._number = number

    def run(self, lock: AbstractContextManager[Any]) -> None:
        """Compact now; the lock of the log, which a thread can take twice, is needed at the end."""
        with ExitStack() as held:
            try:
                head = self._rewrite()
                held.enter_context(lock)
                self._finish(head)
            except BaseException:
                held.enter_context(lock)  # no thread may write before the files are in order again
                self._abandon()
                raise

    def run_in_background(self, lock: AbstractContextManager[Any]) -> Future[None]:
        """Compact in another thread."""
        done: Future[None] = Future()

        def work() -> None:
            try:
                self.run(lock)
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)

        # Not of an executor: the end of the process does not wait for a daemon.
        threading.Thread(target=work, name="ohmlearn-compaction", daemon=True).start()
        return done

    def _rewrite(self) -> Entries:
        """Write the live edges of chosen segments to new files; return the entries of all."""
        records = self._head[self._head["kind"] == Kind.EDGES]
        head = [self._head[self._head["kind"] == Kind.NODES]]
        n_placed = n_in_segment = 0
        form: int | None = None
        chosen = np.isin(records["segment"], list(self._rewritten))
        for run in find_runs(chosen):
            if not chosen[run.start]:
                head.append(records[run.start : run.stop])
                form = None  # edges after it go to another file, to keep the order
                continue
            for columns in self._collect(run, n_placed):
                if columns.form != form or n_in_segment >= SEGMENT_ROWS:
                    form, n_in_segment = columns.form, 0
                    self._placed.append((self._next_segment, n_placed))
                    self._next_segment += 1
                head.append(self._writer.write_edges(self._next_segment - 1, columns))
                n_placed += len(columns.u)
                n_in_segment += len(columns.u)
        return np.concatenate(head)

    def _collect(self, records: range, n_before: int) -> Iterator[EdgeColumns]:
        """Yield the live edges of records in records of full size."""
        waiting: list[EdgeColumns] = []
        n_waiting = 0
        for at in records:
            segment, row = self._live.place(at)
            if row == 0:
                self._starts[segment] = n_before + n_waiting
            columns, _ = self._live.read_live(at)
            if len(columns.u) == 0:
                continue
            if waiting and waiting[0].form != columns.form:
                yield concatenate(waiting)
                n_before, waiting, n_waiting = n_before + n_waiting, [], 0
            waiting.append(columns)
            n_waiting += len(columns.u)
            while n_waiting >= RECORD_ROWS:
                joined = concatenate(waiting)
                yield joined.take(slice(0, RECORD_ROWS))
                rest = joined.take(slice(RECORD_ROWS, None))
                n_before, waiting, n_waiting = n_before + RECORD_ROWS, [rest], len(rest.u)
        if n_waiting:
            yield concatenate(waiting)

    def _finish(self, head: Entries) -> None:
        store, writer = self._store, self._writer
        store.flush()
        before, after = self._hooks
        before()
        if len(head):
            writer.add([head])
        later = store.journal_entries()[self._n_entries :]
        for operation in np.split(later, np.flatnonzero(later["is_last"]) + 1)[:-1]:
            entries = np.split(operation, len(operation))
            moved = [new for entry in entries for new in self._move(entry)]
            # If all of its rows are gone, it still counts as an operation.
            writer.add(moved or [make_entry(Kind.EXPIRE, low=-np.inf)])
        writer.flush()
        writer.close()
        sync_folder(store.folder)
        manifest = replace(
            store.manifest, journal=self._number, n_head=len(head),
            n_operations=self._n_operations, has_times=store.has_times,
        )  # fmt: skip
        store.switch(manifest)
        after()

    def _move(self, entry: Entries) -> Iterator[Entries]:
        """Yield the entries in the new journal of one that was written since the start."""
        if entry["kind"][0] != Kind.REMOVE:
            yield entry
            return
        segment, rows = int(entry["segment"][0]), read_rows(self._store.folder, entry[0])
        is_moved = segment in self._rewritten
        for new, part in self._translate(segment, rows) if is_moved else [(segment, rows)]:
            yield self._writer.write_rows(self._number, new, part)

    def _translate(self, segment: int, rows: Rows) -> list[tuple[int, Rows]]:
        """Return where rows of a rewritten segment are now."""
        ranks = self._starts[segment] + self._live.rank(segment, rows)
        starts = np.array([start for _, start in self._placed])
        which = np.searchsorted(starts, ranks, "right") - 1
        return [
            (self._placed[at][0], (ranks[which == at] - starts[at]).astype(np.uint32))
            for at in np.unique(which).tolist()
        ]

    def _abandon(self) -> None:
        """Delete the new files, unless the manifest names them already."""
        self._writer.close()
        if Manifest.read(self._store.folder).journal == self._number:
            self._store.close()  # the next operation continues with the new files
            self._store.refresh()
            self._hooks[1]()
            return
        for path in self._writer.paths:
            path.unlink(missing_ok=True)


def choose_segments(contents: Contents) -> set[int]:
    """Return the segments to rewrite: those with dead rows or with many small records."""
    records = contents.records
    is_expired = records["low"] < find_limits(contents.n_records, contents.expiries)
    chosen = set(contents.removed) | set(records["segment"][is_expired].tolist())
    segments, n_records = np.unique(records["segment"], return_counts=True)
    for segment, count in zip(segments.tolist(), n_records.tolist(), strict=True):
        if count > 4 + 2 * contents.segment_rows[segment] // RECORD_ROWS:
            chosen.add(segment)
    return chosen
