"""The journal of a log: which bytes of which file belong to the log, and what they mean.

An entry has 64 bytes and a checksum. Entries are only appended. An operation, such as an append, is
a group of entries; the last one is marked, and a group without its last entry is not part of the
log. The bytes that an entry names are on disk before the entry is written, and the entry is on disk
before the operation is acknowledged. So whatever the end of the journal looks like after a crash,
the operations found in it are complete.

`Contents` is what a journal says: records of edges, removed rows, expired times.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edge_log.manifest import refuse_damaged

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
# In memory, a record also has the number of its first row in its segment, and whether this process
# has compared it with its checksum.
RECORD = np.dtype([*ENTRY.descr, ("first_row", "<i8"), ("is_checked", "?")])
CHECKED = ENTRY.fields["crc"][1] if ENTRY.fields else 0  # bytes
Entries = NDArray[np.void]
Bits = NDArray[np.uint8]
Rows = NDArray[np.uint32]  # numbers of rows in a segment


class Kind(IntEnum):
    """What an entry does."""

    NODES = 1  # ids of new nodes
    EDGES = 2  # a record of edges
    REMOVE = 3  # rows of a segment
    EXPIRE = 4  # all rows before it in the journal whose time is below `low`


def journal_path(folder: Path, number: int) -> Path:
    """Return the path of a journal."""
    return folder / f"journal-{number:06}.log"


def make_entry(kind: Kind, **values: float) -> Entries:
    """Return one entry, without checksum."""
    entry = np.zeros(1, ENTRY)
    entry["kind"] = kind
    for name, value in values.items():
        entry[name] = value
    return entry


def pack_entries(entries: Entries, first: int) -> bytes:
    """Return entries with checksums, as they are written; `first` is the number of the first."""
    packed = entries.copy()
    packed["n_safe"] = first
    packed["crc"] = _checksums(memoryview(packed.tobytes()), first)
    return packed.tobytes()


def read_journal(path: Path) -> Entries:
    """Return the entries of all complete operations.

    A crash can leave a part of an entry, zeros or a part of an operation at the end. They were not
    acknowledged, and are left out. Any other entry with a wrong checksum has been damaged: LogError
    names the file and the position.
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
    starts = range(0, len(content), ENTRY.itemsize)
    numbered = enumerate(starts, first)
    return np.array([zlib.crc32(content[at : at + CHECKED], n) for n, at in numbered], np.uint32)


@dataclass
class Contents:
    """Records of edges in the order in which they were appended, and which rows are dead.

    A removed row is a bit of its segment. Expired rows are not marked: an expiry is one number,
    which holds for all records before it.
    """

    n_edges: int = 0  # live ones
    n_removed: int = 0  # rows that are dead but still on disk
    n_operations: int = 0
    n_updates: int = 0  # rows that were appended, removed or have expired
    segment_rows: dict[int, int] = field(default_factory=dict)
    segment_ends: dict[int, int] = field(default_factory=dict)  # in bytes
    # By segment; arrays are replaced, never changed, so that a reader can keep them.
    removed: dict[int, Bits] = field(default_factory=dict)
    # Records before an expiry, and its limit; later ones have lower limits, others no effect.
    expiries: list[tuple[int, float]] = field(default_factory=list)
    n_records: int = 0
    _records: Entries = field(default_factory=lambda: np.empty(0, RECORD))

    @property
    def records(self) -> Entries:
        """The entries of the records, with the fields that only this process knows."""
        return self._records[: self.n_records]

    @property
    def last_segment(self) -> int:
        """The largest number of a segment; 0 if there is none."""
        return max(self.segment_rows, default=0)

    def add_records(self, entries: Entries, is_checked: bool = False) -> None:
        """Take in entries of kind EDGES."""
        first, stop = self.n_records, self.n_records + len(entries)
        if stop > len(self._records):
            self._records = np.concatenate([self.records, np.empty(stop + 16, RECORD)])
        records, self.n_records = self._records[first:stop], stop
        for name in ENTRY.names or ():
            records[name] = entries[name]
        records["is_checked"] = is_checked
        for run in find_runs(records["segment"]):
            own = records[run.start : run.stop]
            segment, rows = int(own["segment"][0]), own["rows"].astype(np.int64)
            n_before, ends = self.segment_rows.get(segment, 0), np.cumsum(rows)
            own["first_row"] = n_before + ends - rows
            n_rows = int(ends[-1])
            self.segment_rows[segment] = n_before + n_rows
            self.segment_ends[segment] = int(own["offset"][-1] + own["length"][-1])
            self.n_edges += n_rows
            self.n_updates += n_rows

    def remove(self, segment: int, rows: Rows) -> None:
        """Take in removed rows, all of them live before."""
        before = self.removed.get(segment, np.empty(0, np.uint8))
        marked = np.zeros((self.segment_rows[segment] + 7) // 8, np.uint8)
        marked[: len(before)] = before
        np.bitwise_or.at(marked, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        self.removed[segment] = marked
        self._bury(len(rows))

    def expire(self, limit: float, n_expired: int, n_before: int | None = None) -> None:
        """Take in an expiry of the first records, by default of all."""
        self.expiries = [one for one in self.expiries if one[1] > limit]
        self.expiries.append((self.n_records if n_before is None else n_before, limit))
        self._bury(n_expired)

    def _bury(self, n_rows: int) -> None:
        self.n_edges -= n_rows
        self.n_removed += n_rows
        self.n_updates += n_rows

    @classmethod
    def from_entries(cls, entries: Entries) -> Contents:
        """Return what a journal says; rows of REMOVE entries are still to be given to `remove`."""
        found = cls(n_operations=int(np.count_nonzero(entries["is_last"])))
        is_record = entries["kind"] == Kind.EDGES
        found.add_records(entries[is_record])
        n_before = np.cumsum(is_record)
        for at in np.flatnonzero(entries["kind"] == Kind.EXPIRE).tolist():
            found.expire(float(entries["low"][at]), int(entries["rows"][at]), int(n_before[at]))
        return found


def find_runs(values: NDArray[Any]) -> Iterator[range]:
    """Yield the places of neighbours that are equal."""
    borders = np.flatnonzero(values[1:] != values[:-1]) + 1
    for first, stop in pairwise([0, *borders.tolist(), len(values)]):
        if stop > first:
            yield range(first, stop)


def find_limits(n_records: int, expiries: list[tuple[int, float]]) -> NDArray[np.float64]:
    """Return for each record the time before which its rows have expired."""
    limits = np.full(n_records, -np.inf)
    for n_before, limit in expiries:
        np.maximum(limits[:n_before], limit, out=limits[:n_before])
    return limits


def is_removed(bits: Bits, first: int, count: int) -> NDArray[np.bool_]:
    """Return whether each of `count` rows from `first` on is marked."""
    start = first >> 3
    part = bits[start : (first + count + 7) >> 3]
    found = np.unpackbits(part, bitorder="little").view(bool)[first & 7 :][:count]
    if len(found) < count:  # rows that were appended after the last removal
        found = np.concatenate([found, np.zeros(count - len(found), bool)])
    return found
