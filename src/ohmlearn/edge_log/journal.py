"""The journal of a log: which bytes of which file belong to the log, and what they mean.

An entry has 64 bytes and a checksum. Entries are only appended. An operation, such as an append, is
a group of entries; the last one is marked, and a group without its last entry is not part of the
log. The bytes that an entry names are on disk before the entry is written, and the entry is on disk
before the operation is acknowledged. So whatever the end of the journal looks like after a crash,
the operations found in it are complete.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edge_log.log_errors import refuse_damaged

__all__ = ["ENTRY", "Entries", "Kind", "make_entry", "pack_entries", "read_journal"]

ENTRY = np.dtype(
    [
        ("kind", "u1"),
        ("is_last", "u1"),  # of its operation
        ("form", "<u2"),  # of the payload: columns of edges, or kind of ids
        ("file", "<u4"),  # number of the file with the payload
        ("segment", "<u4"),  # whose rows are meant
        ("payload_crc", "<u4"),
        ("offset", "<u8"),  # of the payload in its file
        ("length", "<u8"),
        ("rows", "<u8"),  # added or removed; ids for NODES
        ("low", "<f8"),  # range of the times; the limit for EXPIRE
        ("high", "<f8"),
        ("n_safe", "<u4"),  # entries that were on disk before this one was written
        ("crc", "<u4"),  # of the bytes before it and the number of this entry
    ]
)
CHECKED = ENTRY.fields["crc"][1] if ENTRY.fields else 0  # bytes
Entries = NDArray[np.void]


class Kind(IntEnum):
    """What an entry does."""

    NODES = 1  # ids of new nodes
    EDGES = 2  # a record of edges
    REMOVE = 3  # rows of a segment
    EXPIRE = 4  # all rows before it in the journal whose time is below `low`


def make_entry(kind: Kind, **values: Any) -> Entries:
    """Return one entry, without checksum.

    Examples
    --------
    >>> make_entry(Kind.EXPIRE, low=5.0, rows=3)["low"]
    array([5.])
    """
    entry = np.zeros(1, ENTRY)
    entry["kind"] = kind
    for name, value in values.items():
        entry[name] = value
    return entry


def pack_entries(entries: Entries, first: int) -> bytes:
    """Return entries with checksums, as they are written; `first` is the number of the first."""
    packed = entries.copy()
    packed["n_safe"] = first
    content = memoryview(packed.tobytes())
    packed["crc"] = _checksums(content, first)
    return packed.tobytes()


def read_journal(path: Path) -> Entries:
    """Return the entries of all complete operations.

    A crash can leave a part of an entry, zeros or a part of an operation at the end. They were not
    acknowledged, and are left out. Any other entry with a wrong checksum has been damaged.

    Raises
    ------
    LogError
        Names the file and the position of a damaged entry.
    """
    content = path.read_bytes()
    whole = len(content) - len(content) % ENTRY.itemsize
    entries = np.frombuffer(content[:whole], ENTRY)
    is_good = _checksums(memoryview(content)[:whole], 0) == entries["crc"]
    is_good &= entries["kind"] > 0
    n_good = len(entries) if is_good.all() else int(np.argmin(is_good))
    if n_good < len(entries):
        is_empty = not any(content[n_good * ENTRY.itemsize : (n_good + 1) * ENTRY.itemsize])
        n_safe = int(entries["n_safe"][is_good].max(initial=0))
        if not is_empty or n_safe > n_good:
            refuse_damaged(path, n_good * ENTRY.itemsize, "an entry does not match its checksum")
    ends = np.flatnonzero(entries["is_last"][:n_good])
    return entries[: int(ends[-1]) + 1 if len(ends) else 0].copy()


def _checksums(content: memoryview, first: int) -> NDArray[np.uint32]:
    """Return checksums of entries at their places, so that a moved entry is found, too."""
    size = ENTRY.itemsize
    return np.array(
        [
            zlib.crc32(content[at : at + CHECKED], first + at // size)
            for at in range(0, len(content), size)
        ],
        np.uint32,
    )
