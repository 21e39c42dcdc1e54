"""The folder of a log: reads it, and writes operations to it, each completely or not at all.

`Store` has the state of the log in memory, `Writer` the files that are open, `Lock` the right to
write.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn._arrays_file import check_folder
from ohmlearn.edge_log.journal import (
    ENTRY,
    Contents,
    Entries,
    Kind,
    Rows,
    journal_path,
    make_entry,
    pack_entries,
    read_journal,
)
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.manifest import LogError, Manifest, sync_folder
from ohmlearn.edge_log.records import (
    TIMES,
    EdgeColumns,
    SegmentFile,
    encode_edges,
    encode_ids,
    file_lengths,
    load_log,
    make_schema,
    open_segments,
    payload_path,
    read_contents,
)
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.file_names import is_log

RECORD_ROWS = 1 << 18  # edges in a record, at most
SEGMENT_ROWS = 1 << 25  # a file of edges is not continued when it has this many
Savepoint = tuple[dict[Path, int], int]  # lengths of files, number of operations


class Store:
    """The state of a log in memory, kept equal to that of its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes = NodeTable()
        self.operations: list[Entries] = []  # that this process has written, for `take_operations`
        self._group: list[Entries] = []  # of the operation that is being written
        self.sealed = 0  # segments up to this number are not continued
        self._n_earlier = 0  # updates that compaction has taken out of the journal
        self._n_ids = 0  # of the table that are in the log
        self.n_durable = self._n_durable_ids = 0  # operations that are on disk, and ids
        self._lock: Lock | None = None
        self._writer: Writer | None = None
        self.refresh()

    # Reading.

    def refresh(self) -> None:
        """Read what other processes have written since."""
        if self._writer is not None:
            return
        if len(self.nodes) > self._n_durable_ids:  # ids of a stream, or of lost operations
            self.nodes.truncate(self._n_durable_ids)
        self._load()
        self._note_durable()

    def _load(self) -> None:
        """Read the folder; files are mapped again, as names may be used again."""
        files: dict[int, SegmentFile] = {}
        self._take(*load_log(self.folder, self.nodes, files))
        self._files = files

    def _take(self, manifest: Manifest, entries: Entries, contents: Contents) -> None:
        self.manifest, self.contents, self._entries = manifest, contents, entries
        self._n_ids = int(entries["rows"][entries["kind"] == Kind.NODES].sum())

    @property
    def has_times(self) -> bool | None:
        """Whether the edges have times; None if there was no edge yet."""
        if self.manifest.has_times is not None:
            return self.manifest.has_times
        if self.contents.n_records == 0:
            return None
        return bool(self.contents.records["form"][0] & TIMES)

    def live(self) -> LiveEdges:
        """Return the live edges."""
        files = open_segments(self.folder, self.contents, self._files)
        has_times, n_updates = bool(self.has_times), self.n_updates
        return LiveEdges(self.folder, self.contents, files, self.nodes, has_times, n_updates)

    @property
    def n_updates(self) -> int:
        """Edges that were appended, removed or have expired; grows while this process writes."""
        return self._n_earlier + self.contents.n_updates

    def size(self) -> int:
        """Return the number of bytes of all files that hold the log."""
        entries = self.journal_entries()
        return len(entries) * ENTRY.itemsize + sum(file_lengths(self.folder, entries).values())

    def journal_entries(self) -> Entries:
        """Return all entries of the present journal, with those that wait to be flushed."""
        entries = read_journal(journal_path(self.folder, self.manifest.journal))
        pending = [] if self._writer is None else self._writer.pending
        return np.concatenate([entries, *pending])

    # Writing.

    @property
    def is_writing(self) -> bool:
        """Whether this process may write."""
        return self._writer is not None

    @property
    def writer(self) -> Writer:
        """The files that are written to."""
        assert self._writer is not None
        return self._writer

    def start_writing(self) -> None:
        """Acquire the right to write; read what others have written before."""
        if self._writer is not None:
            if self._lock is not None and self._lock.process != os.getpid():
                raise LogError(
                    f"{self.folder}: the process was forked while this log was open for writing; "
                    f"write in the parent, or open the log again in the child"
                )
            return
        lock = Lock(self.folder)
        try:
            self.refresh()
            self._open_files()
        except BaseException:
            lock.close()
            raise
        self._lock = lock

    def _open_files(self) -> None:
        """Open the files for writing, and delete what an interrupted compaction has left."""
        lengths = file_lengths(self.folder, self._entries)
        writer = Writer(self.folder, self.manifest.journal, len(self._entries), lengths)
        used = {*lengths, journal_path(self.folder, self.manifest.journal)}
        for pattern in ("edges-*.arrows", "removed-*.rows", "journal-*.log", "*.tmp"):
            for path in self.folder.glob(pattern):
                if path not in used:
                    path.unlink()
        self._writer = writer

    @contextmanager
    def operation(self, sync: bool = True) -> Iterator[None]:
        """Make one operation of all that is added inside; undo it if an error is raised."""
        self.start_writing()
        writer = self.writer
        savepoint, n_ids, self._group = writer.savepoint(), self._n_ids, []
        try:
            yield
        except BaseException as error:
            is_clean = writer.savepoint() == savepoint and len(self.nodes) == n_ids
            if isinstance(error, OSError) or not is_clean:
                self._undo(savepoint)
            raise
        if self._group:
            writer.add(self._group)
            self.operations.append(writer.pending[-1])
            self.contents.n_operations += 1
        if sync:
            self.flush()

    def flush(self) -> None:
        """Make all operations durable; if that fails, undo those since the last flush."""
        if self._writer is None:
            return
        try:
            self._writer.flush()
            self._note_durable()
        except BaseException:
            self._undo(self._writer.flushed)
            raise

    def _note_durable(self) -> None:
        self.n_durable, self._n_durable_ids = self.contents.n_operations, self._n_ids

    def drop_pending(self) -> None:
        """Undo all operations since the last flush."""
        if self._writer is not None and self._writer.pending:
            self._undo(self._writer.flushed)

    def close(self) -> None:
        """Give the right to write back; operations that were not flushed are lost."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def add_edges(self, columns: EdgeColumns) -> None:
        """Append edges, and the ids of nodes that are new."""
        entries = self._add_ids()
        for first in range(0, len(columns.u), RECORD_ROWS):
            part = columns.take(slice(first, first + RECORD_ROWS))
            entry = self.writer.write_edges(self._choose_segment(part.form), part)
            self.contents.add_records(entry, is_checked=True)
            entries.append(entry)
        self._group += entries

    def add_removal(self, found: dict[int, list[Rows]]) -> None:
        """Remove rows of segments, all of them live."""
        entries = []
        for segment, parts in found.items():
            rows = np.concatenate(parts)
            entries.append(self.writer.write_rows(self.manifest.journal, segment, rows))
            self.contents.remove(segment, rows)
        self._group += entries

    def add_expiry(self, limit: float, n_expired: int) -> None:
        """Remove all edges with an earlier time."""
        self.contents.expire(limit, n_expired)
        self._group.append(make_entry(Kind.EXPIRE, low=limit, rows=n_expired))

    def take_operations(self) -> list[Entries]:
        """Return the entries of operations since the last call."""
        taken, self.operations = self.operations, []
        return taken

    def write_manifest(self, **changes: Any) -> None:
        """Replace the manifest by one with some changes."""
        manifest = replace(self.manifest, **changes)
        manifest.write(self.folder)
        self.manifest = manifest

    def switch(self, manifest: Manifest) -> None:
        """Continue with the files of a new manifest, and delete those that it does not name."""
        manifest.write(self.folder)
        self.writer.close()
        n_updates = self.n_updates
        self._load()
        self._n_earlier = n_updates - self.contents.n_updates
        self._open_files()

    def _add_ids(self) -> list[Entries]:
        """Write the ids that the table has and the log does not."""
        n_new = len(self.nodes) - self._n_ids
        if n_new == 0:
            return []
        ids = self.nodes.keys_from(self._n_ids)
        form, content = encode_ids(ids, have_kinds=bool(self.nodes.kinds))
        self._n_ids += n_new
        return [self.writer.write(Kind.NODES, 0, content, form=form, rows=n_new)]

    def _choose_segment(self, form: int) -> int:
        """Return the segment of the last record, so that records of a segment are neighbours."""
        contents = self.contents
        last = int(contents.records["segment"][-1]) if contents.n_records else 0
        is_full = contents.segment_rows.get(last, 0) >= SEGMENT_ROWS
        if is_full or last <= self.sealed or contents.records["form"][-1] != form:
            return max(contents.last_segment, self.sealed) + 1
        return last

    def _undo(self, savepoint: Savepoint) -> None:
        n_undone = len(self.writer.pending) - savepoint[1]
        self.operations = self.operations[: max(0, len(self.operations) - n_undone)]
        try:
            self.writer.undo(savepoint)
            self._read_again()
        except BaseException:
            self.close()  # the next operation reads the folder, and so finds what is there
            raise

    def _read_again(self) -> None:
        entries, self._files = self.journal_entries(), {}
        self._take(self.manifest, entries, read_contents(self.folder, self.manifest, entries))
        if len(self.nodes) > self._n_ids:
            self.nodes.truncate(self._n_ids)


def make_log(folder: Path, sparsifier: dict[str, Any]) -> None:
    """Make the folder of a log without edges."""
    if folder.exists() and not folder.is_dir():
        raise LogError(f"{folder} is a file, but a log is a folder; give another name")
    check_folder(folder)
    folder.mkdir(exist_ok=True)
    others = [path.name for path in folder.iterdir() if path.name != "lock"]
    if others and others != ["journal-000001.log"]:
        raise LogError(
            f"{folder} is not a log and has other files, such as {min(others)}; give an empty "
            f"folder, or one that does not exist"
        )
    with closing(Lock(folder)):
        if not is_log(folder):  # another process may have been faster
            journal_path(folder, 1).touch()
            Manifest(sparsifier=sparsifier).write(folder)
            sync_folder(folder.absolute().parent)


class Lock:
    """The right to write to a log. It ends with `close`, or with the process."""

    def __init__(self, folder: Path) -> None:
        self._fd = -1  # if the next lines fail
        try:
            import fcntl
        except ImportError:
            raise LogError(
                f"{folder}: a log can be read but not written on Windows, which lacks the lock "
                f"that keeps other writers out; write it on Linux or macOS, or in WSL"
            ) from None
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            writer = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            self.close()
            raise LogError(
                f"{folder}: another writer has this log open (process {writer}); only one can "
                f"write at a time, so close the other one first"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        self.process = os.getpid()  # a forked child does not have the right to write

    def close(self) -> None:
        """Let others write."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class Writer:
    """Appends payloads to files, and entries to the journal.

    Entries wait in memory until `flush`, which first flushes the payloads to disk. What was written
    since a savepoint can be undone as long as it was not flushed.

    `n_entries` says how many entries of the journal belong to complete operations, and `lengths`
    how many bytes of each file belong to the log; what follows them is cut off.
    """

    def __init__(
        self, folder: Path, journal: int, n_entries: int, lengths: dict[Path, int]
    ) -> None:
        self._fds: dict[Path, int] = {}
        self._folder = folder
        self._journal = journal_path(folder, journal)
        self._lengths = dict(lengths)
        self._unsynced: set[Path] = set()
        self._has_new_files = False
        self.n_entries = n_entries
        self.pending: list[Entries] = []
        self.flushed: Savepoint = self.savepoint()
        for path, length in {**lengths, self._journal: n_entries * ENTRY.itemsize}.items():
            if path.stat().st_size > length:
                os.ftruncate(self._open(path), length)

    def write(self, kind: Kind, number: int, payload: Any, **fields: float) -> Entries:
        """Append bytes to a file; return the entry that names them."""
        path = payload_path(self._folder, kind, number)
        offset, length = self._lengths.setdefault(path, 0), memoryview(payload).nbytes
        self._unsynced.add(path)
        _write_all(self._open(path), payload, offset)
        self._lengths[path] = offset + length
        fields |= {"offset": offset, "length": length, "payload_crc": zlib.crc32(payload)}
        return make_entry(kind, file=number, **fields)

    def write_edges(self, segment: int, columns: EdgeColumns) -> Entries:
        """Append a record to a segment; return its entry."""
        form, t = columns.form, columns.t
        if self._lengths.get(payload_path(self._folder, Kind.EDGES, segment), 0) == 0:
            self.write(Kind.EDGES, segment, make_schema(form).serialize())
        low, high = (0.0, 0.0) if t is None else (t.min(), t.max())
        fields = {"segment": segment, "form": form, "rows": len(columns.u), "low": low}
        return self.write(Kind.EDGES, segment, encode_edges(columns), high=high, **fields)

    def write_rows(self, journal: int, segment: int, rows: Rows) -> Entries:
        """Write rows of a segment that a removal removes; return the entry."""
        return self.write(Kind.REMOVE, journal, rows, segment=segment, rows=len(rows))

    @property
    def paths(self) -> list[Path]:
        """The files that were written, and the journal."""
        return [*self._lengths, self._journal]

    def add(self, entries: Iterable[Entries]) -> None:
        """Add the entries of an operation, which wait for `flush`."""
        group = np.concatenate(list(entries))
        group["is_last"] = 0
        group["is_last"][-1] = 1
        self.pending.append(group)

    def flush(self) -> None:
        """Make all operations so far durable."""
        if not self.pending:
            return
        for path in sorted(self._unsynced):
            os.fdatasync(self._open(path))
        if self._has_new_files:
            sync_folder(self._folder)
        entries = np.concatenate(self.pending)
        fd, end = self._open(self._journal), self.n_entries * ENTRY.itemsize
        try:
            _write_all(fd, pack_entries(entries, self.n_entries), end)
            os.fdatasync(fd)
        except BaseException:
            os.ftruncate(fd, end)
            raise
        self.n_entries += len(entries)
        self.pending = []
        self._unsynced.clear()
        self._has_new_files = False
        self.flushed = self.savepoint()

    def savepoint(self) -> Savepoint:
        """Return where `undo` goes back to."""
        return dict(self._lengths), len(self.pending)

    def undo(self, savepoint: Savepoint) -> None:
        """Take back what was written since a savepoint.

        A reader in this process may have mapped the bytes of earlier operations that were not
        flushed, so files are cut only where no such operation is undone; else later operations
        overwrite the bytes.
        """
        lengths, n_pending = savepoint
        if len(self.pending) <= n_pending + 1:
            for path in self._unsynced:
                os.ftruncate(self._open(path), lengths.get(path, 0))
        self._lengths = dict(lengths)
        self.pending = self.pending[:n_pending]

    def close(self) -> None:
        """Close the files; what was not flushed is lost."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def __del__(self) -> None:
        self.close()

    def _open(self, path: Path) -> int:
        if path not in self._fds:
            self._has_new_files = self._has_new_files or not path.exists()
            self._fds[path] = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        return self._fds[path]


def _write_all(fd: int, payload: Any, offset: int) -> None:
    """Write bytes at an offset; the system may take them in several parts."""
    content = memoryview(payload).cast("B")
    while len(content) > 0:
        n_written = os.pwrite(fd, content, offset)
        content, offset = content[n_written:], offset + n_written
