"""The files of a log that are being written, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ohmlearn.edge_log.journal import ENTRY, Entries, pack_entries
from ohmlearn.edge_log.log_errors import LogError
from ohmlearn.edge_log.manifest import sync_folder

__all__ = ["Lock", "Savepoint", "Writer", "journal_path"]

Savepoint = tuple[dict[Path, int], int]


def journal_path(folder: Path, number: int) -> Path:
    """Return the path of a journal."""
    return folder / f"journal-{number:06}.log"


class Lock:
    """The right to write to a log. It ends with `release`, or with the process."""

    def __init__(self, folder: Path) -> None:
        self._fd = -1  # if the next line fails
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            writer = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            self.release()
            raise LogError(
                f"{folder}: another writer has this log open (process {writer}); only one can "
                f"write at a time, so close the other one first"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        self.process = os.getpid()  # a forked child does not have the right to write

    def release(self) -> None:
        """Let others write."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.release()


class Writer:
    """Appends payloads to files, and entries to the journal.

    Entries wait in memory until `flush`, which first flushes the payloads to disk. What was written
    since a savepoint can be undone as long as it was not flushed.

    Parameters
    ----------
    folder : Path
    journal : int
        Number of the journal.
    n_entries : int
        Entries of complete operations in it; what follows is cut off.
    lengths : dict
        How many bytes of each file belong to the log; what follows is cut off.
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

    def write(self, path: Path, payload: Any) -> dict[str, int]:
        """Append bytes to a file; return the fields of the entry that names them."""
        length = memoryview(payload).nbytes
        offset = self._lengths.setdefault(path, 0)
        self._unsynced.add(path)
        _write_all(self._open(path), payload, offset)
        self._lengths[path] = offset + length
        return {"offset": offset, "length": length, "payload_crc": zlib.crc32(payload)}

    @property
    def paths(self) -> list[Path]:
        """The files that were written, and the journal."""
        return [*self._lengths, self._journal]

    def length(self, path: Path) -> int:
        """Return how many bytes of a file belong to the log."""
        return self._lengths.get(path, 0)

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

    def undo(self, savepoint: Savepoint) -> int:
        """Take back what was written since a savepoint; return how many operations that were.

        A reader in this process may have mapped the bytes of earlier operations that were not
        flushed, so files are cut only where no such operation is undone; else later operations
        overwrite the bytes.
        """
        lengths, n_pending = savepoint
        n_undone = len(self.pending) - n_pending
        if n_undone <= 1:
            for path in self._unsynced:
                os.ftruncate(self._open(path), lengths.get(path, 0))
        self._lengths = dict(lengths)
        self.pending = self.pending[:n_pending]
        return n_undone

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
