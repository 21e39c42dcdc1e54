"""The files of edges of a log, mapped into memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from ohmlearn.checks.parameters import require_extra
from ohmlearn.edge_log.log_contents import Contents
from ohmlearn.edge_log.log_errors import refuse_damaged

__all__ = ["SegmentFile", "SegmentFiles", "segment_path"]


def segment_path(folder: Path, segment: int) -> Path:
    """Return the path of a file of edges."""
    return folder / f"edges-{segment:06}.arrows"


class SegmentFile:
    """A file of edges, mapped into memory."""

    def __init__(self, path: Path) -> None:
        pa = require_extra("pyarrow", "files")
        with open(path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            self._map = (
                mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ) if self.size else None
            )
        self._buffer = pa.py_buffer(b"" if self._map is None else self._map)

    def read(self, offset: int, length: int) -> Any:
        """Return some bytes, which are not copied."""
        return self._buffer.slice(offset, length)

    def release(self, offset: int, length: int) -> None:
        """Let the system take pages back; they are mapped again if they are used again.

        Else the memory of this process would seem to grow to the size of the file.
        """
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        n_bytes = (offset + length) // mmap.PAGESIZE * mmap.PAGESIZE - first
        if self._map is not None and n_bytes > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, n_bytes)


class SegmentFiles:
    """The files of edges of a log while one journal is in use.

    A mapped file can be read after compaction has deleted it.
    """

    def __init__(self, folder: Path, journal: int) -> None:
        self._folder, self.journal = folder, journal
        self._files: dict[int, SegmentFile] = {}

    def open(self, contents: Contents) -> dict[int, SegmentFile]:
        """Return all files that hold records."""
        found = {}
        for segment, end in contents.segment_ends.items():
            known = self._files.get(segment)
            if known is None or known.size < end:
                path = segment_path(self._folder, segment)
                known = SegmentFile(path)
                if known.size < end:
                    refuse_damaged(path, known.size, f"{end - known.size} bytes are missing")
            found[segment] = self._files[segment] = known
        return found
