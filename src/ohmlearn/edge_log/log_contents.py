"""What a log holds, as its journal tells it: records of edges, removed rows, expired times."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edge_log.journal import ENTRY, Entries, Kind

__all__ = ["Contents", "Rows", "find_limits", "is_removed", "mark_removed"]

Bits = NDArray[np.uint8]
Rows = NDArray[np.uint32]  # numbers of rows in a segment


@dataclass
class Contents:
    """Records of edges in the order in which they were appended, and which rows are dead.

    A removed row is a bit of its segment. Expired rows are not marked: an expiry is one number,
    which holds for all records before it.

    Attributes
    ----------
    first_rows : ndarray
        For each record, the number of its first row in its segment.
    is_checked : ndarray of bool
        Which records this process has compared with their checksums.
    removed : dict
        For each segment with removed rows, their bits. The arrays are replaced, never changed, so
        that a reader can keep them.
    expiries : list of (int, float)
        Number of the records before an expiry, and its limit. Later ones have lower limits; others
        have no effect.
    """

    n_edges: int = 0  # live ones
    n_removed: int = 0  # rows that are dead but still on disk
    n_operations: int = 0
    n_updates: int = 0  # rows that were appended, removed or have expired
    segment_rows: dict[int, int] = field(default_factory=dict)
    segment_ends: dict[int, int] = field(default_factory=dict)  # in bytes
    segment_forms: dict[int, int] = field(default_factory=dict)
    removed: dict[int, Bits] = field(default_factory=dict)
    expiries: list[tuple[int, float]] = field(default_factory=list)
    n_records: int = 0
    _records: Entries = field(default_factory=lambda: np.empty(0, ENTRY))
    _first_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _is_checked: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def records(self) -> Entries:
        """The entries of the records."""
        return self._records[: self.n_records]

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """For each record, the number of its first row in its segment."""
        return self._first_rows[: self.n_records]

    @property
    def is_checked(self) -> NDArray[np.bool_]:
        """Which records this process has compared with their checksums."""
        return self._is_checked[: self.n_records]

    @property
    def last_segment(self) -> int:
        """The largest number of a segment; 0 if there is none."""
        return max(self.segment_rows, default=0)

    def limits(self) -> NDArray[np.float64]:
        """For each record, the time before which its rows have expired."""
        return find_limits(self.n_records, self.expiries)

    def add_record(self, entry: Entries, is_checked: bool = False) -> None:
        """Take in an entry of kind EDGES."""
        at = self.n_records
        if at == len(self._records):
            more = at + 16
            self._records = np.concatenate([self._records, np.empty(more, ENTRY)])
            self._first_rows = np.concatenate([self._first_rows, np.empty(more, np.int64)])
            self._is_checked = np.concatenate([self._is_checked, np.zeros(more, bool)])
        segment, rows = int(entry["segment"][0]), int(entry["rows"][0])
        self._records[at] = entry[0]
        self._first_rows[at] = self.segment_rows.get(segment, 0)
        self._is_checked[at] = is_checked
        self.n_records += 1
        self.segment_rows[segment] = self.segment_rows.get(segment, 0) + rows
        self.segment_ends[segment] = int(entry["offset"][0] + entry["length"][0])
        self.segment_forms[segment] = int(entry["form"][0])
        self.n_edges += rows
        self.n_updates += rows

    def remove(self, segment: int, rows: Rows) -> None:
        """Take in removed rows, all of them live before."""
        bits = self.removed.get(segment, np.empty(0, np.uint8))
        self.removed[segment] = mark_removed(bits, rows, self.segment_rows[segment])
        self._bury(len(rows))

    def expire(self, limit: float, n_expired: int) -> None:
        """Take in an expiry."""
        self._expire(limit, n_expired, self.n_records)

    def _expire(self, limit: float, n_expired: int, n_before: int) -> None:
        self.expiries = [one for one in self.expiries if one[1] > limit]
        self.expiries.append((n_before, limit))
        self._bury(n_expired)

    def _bury(self, n_rows: int) -> None:
        self.n_edges -= n_rows
        self.n_removed += n_rows
        self.n_updates += n_rows

    @classmethod
    def from_entries(cls, entries: Entries) -> Contents:
        """Return what a journal says; rows of REMOVE entries are still to be given to `remove`."""
        is_record = entries["kind"] == Kind.EDGES
        records = entries[is_record]
        found = cls(_records=records, n_records=len(records))
        found._is_checked = np.zeros(len(records), bool)
        found._first_rows = np.empty(len(records), np.int64)
        ends = np.cumsum(records["rows"].astype(np.int64))
        borders = np.flatnonzero(np.diff(records["segment"], prepend=0, append=0))
        for first, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            own = records[first:stop]  # records of a segment are neighbours
            segment, before = int(own["segment"][0]), int(ends[first] - own["rows"][0])
            found._first_rows[first:stop] = ends[first:stop] - own["rows"].astype(np.int64) - before
            found.segment_rows[segment] = int(ends[stop - 1]) - before
            found.segment_ends[segment] = int(own["offset"][-1] + own["length"][-1])
            found.segment_forms[segment] = int(own["form"][-1])
        found.n_edges = found.n_updates = int(ends[-1]) if len(records) else 0
        n_before = np.cumsum(is_record)
        for at in np.flatnonzero(entries["kind"] == Kind.EXPIRE).tolist():
            found._expire(float(entries["low"][at]), int(entries["rows"][at]), int(n_before[at]))
        found.n_operations = int(np.count_nonzero(entries["is_last"]))
        return found


def find_limits(n_records: int, expiries: list[tuple[int, float]]) -> NDArray[np.float64]:
    """Return for each record the time before which its rows have expired.

    Examples
    --------
    >>> find_limits(3, [(1, 9.0), (2, 5.0)])
    array([  9.,   5., -inf])
    """
    limits = np.full(n_records, -np.inf)
    for n_before, limit in expiries:
        np.maximum(limits[:n_before], limit, out=limits[:n_before])
    return limits


def mark_removed(bits: Bits, rows: Rows, n_rows: int) -> Bits:
    """Return a copy of bits, long enough for all rows, with those of some rows set."""
    marked = np.zeros((n_rows + 7) // 8, np.uint8)
    marked[: len(bits)] = bits
    np.bitwise_or.at(marked, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
    return marked


def is_removed(bits: Bits, first: int, count: int) -> NDArray[np.bool_]:
    """Return whether each of `count` rows from `first` on is marked.

    Examples
    --------
    >>> bits = mark_removed(np.empty(0, np.uint8), np.array([3, 9], np.uint32), 12)
    >>> is_removed(bits, 2, 9)
    array([False,  True, False, False, False, False, False,  True, False])
    """
    start = first >> 3
    part = bits[start : (first + count + 7) >> 3]
    found = np.unpackbits(part, bitorder="little").view(bool)[first & 7 :][:count]
    if len(found) < count:  # rows that were appended after the last removal
        found = np.concatenate([found, np.zeros(count - len(found), bool)])
    return found
