"""The live edges of a log at one moment: read any number of times, and found by nodes or pairs."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._display import Shown
from ohmlearn.checks.times import find_unix_unit
from ohmlearn.edge_log.journal import Contents, Kind, Rows, find_limits, find_runs, is_removed
from ohmlearn.edge_log.manifest import refuse_damaged
from ohmlearn.edge_log.records import (
    EdgeColumns,
    SegmentFile,
    concatenate,
    decode_edges,
    payload_path,
)
from ohmlearn.edges import Batch, Edges
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import take
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source

if TYPE_CHECKING:
    from ohmlearn.edge_log.log_sparsifier import KeptSparsifier

SMALL = 1 << 16  # records with fewer rows are put together when they are read
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: the high bits are well mixed
LEAST_BITS = 16  # of the filter


class LivePart(NamedTuple):
    """The live edges of a record."""

    record: int
    columns: EdgeColumns
    is_live: NDArray[np.bool_] | None  # of all its rows; None if all are live


class LiveEdges(Edges, Shown):
    """The live edges of a log; what is done to the log later does not change them.

    Attributes
    ----------
    nodes : NodeTable
        The ids of the nodes.
    n_edges, n_nodes : int
        Number of live edges, and of nodes in the log, with or without edges.
    has_times : bool
        Whether batches have times.
    rereadable : bool
        Always True.
    sources : list of str
        The folder.
    n_read, fraction : int, float
        Edges read so far in the current pass, and which share of all edges they are.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     _ = log.append([5, 6], [6, 7])
    ...     before = log.live_edges()
    ...     _ = log.remove([5], [6])
    ...     before.n_edges, sum(len(batch.u) for batch in before), log.n_edges
    (2, 2, 1)
    """

    is_log = knows_unit = True
    nodes: NodeTable
    n_nodes: int
    n_edges: int
    keeper: Callable[[int, int | None], KeptSparsifier | None] | None = None  # of the log

    def __init__(
        self,
        folder: Path,
        contents: Contents,
        files: dict[int, SegmentFile],
        nodes: NodeTable,
        has_times: bool,
        n_updates: int,
    ) -> None:
        self.nodes, self.has_times = nodes, has_times
        self.n_nodes, self.n_edges = len(nodes), contents.n_edges
        self.sources = [str(folder)]
        self.columns = "u, v, weights and times of the log" if has_times else "u, v and weights"
        self.options = ReadOptions()
        self.n_operations, self.n_updates = contents.n_operations, n_updates
        self.n_records, self.expiries = contents.n_records, list(contents.expiries)
        self._folder, self._files = folder, files
        self._records, self._removed = contents.records, dict(contents.removed)
        self._limits = find_limits(self.n_records, self.expiries)

    def _facts(self) -> dict[str, Any]:
        facts = {"log": self.sources[0], "edges": self.n_edges, "nodes": self.n_nodes}
        return facts | {"times": self.has_times}

    @property
    def time_unit(self) -> str | None:
        """The unit of the times if they look like Unix times; dates are stored in seconds."""
        for part in self.parts():
            return None if part.columns.t is None else find_unix_unit(part.columns.t)
        return None

    def kept_sparsifier(self, n_jobs: int | None = None) -> KeptSparsifier | None:
        """Return the sparsifier that the log keeps of these edges; None if it has none of them."""
        return None if self.keeper is None else self.keeper(self.n_operations, n_jobs)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield the live edges; small records are put together."""
        self.n_read = 0
        waiting: list[EdgeColumns] = []
        for part in self.parts():
            if waiting and (
                waiting[0].form != part.columns.form or sum(len(x.u) for x in waiting) >= SMALL
            ):
                yield self._batch(waiting)
                waiting = []
            waiting.append(part.columns)
        if waiting:
            yield self._batch(waiting)

    def _batch(self, parts: list[EdgeColumns]) -> Batch:
        columns = concatenate(parts)
        self.n_read += len(columns.u)
        self.fraction = self.n_read / max(1, self.n_edges)
        return columns

    def latest(self) -> float:
        """Return the latest time in the records, of live edges or not."""
        return float(self._records["high"].max(initial=-np.inf))

    def parts(self, first: int = 0, stop: int | None = None) -> Iterator[LivePart]:
        """Yield the live edges of each record from number `first` to `stop` that has some."""
        for at in range(first, len(self._records) if stop is None else stop):
            if self._records["high"][at] < self._limits[at]:
                continue  # all of it has expired
            columns, is_live = self.read_live(at)
            if len(columns.u) > 0:
                yield LivePart(at, columns, is_live)
            self._release(at)

    def _release(self, at: int) -> None:
        segment, *place = self._records[["segment", "offset", "length"]][at].tolist()
        self._files[segment].release(*place)

    def read_live(self, at: int) -> tuple[EdgeColumns, NDArray[np.bool_] | None]:
        """Return the live rows of a record, and which they are; None means all."""
        columns = self.read(at)
        is_live = self._find_live(at, columns.t, self._limits[at])
        return (columns if is_live is None else columns.take(is_live)), is_live

    def expired(
        self, limit: float, earlier: NDArray[np.float64] | None = None
    ) -> Iterator[EdgeColumns]:
        """Yield the edges that a new limit of times removes; others are dead already.

        `earlier` are the limits so far, of the first records; by default, those of all.
        """
        limits = self._limits if earlier is None else earlier
        for at in range(len(limits)):
            if self._records["low"][at] >= limit or self._records["high"][at] < limits[at]:
                continue
            columns = self.read(at)
            assert columns.t is not None
            is_old, is_live = columns.t < limit, self._find_live(at, columns.t, limits[at])
            chosen = is_old if is_live is None else is_old & is_live
            if chosen.any():
                yield columns.take(chosen)
            self._release(at)

    def gather(self, segment: int, rows: Rows) -> Iterator[EdgeColumns]:
        """Yield some rows of a segment, given in ascending order, record by record."""
        if len(rows) == 0:
            return
        records = np.flatnonzero(self._records["segment"] == segment)
        first_rows = self._records["first_row"][records]
        borders = np.searchsorted(rows, first_rows)
        parts = np.split(rows, borders[1:])
        for at, first_row, own in zip(records.tolist(), first_rows, parts, strict=True):
            if len(own) > 0:
                yield self.read(at).take(own - first_row)

    def rank(self, segment: int, rows: Rows) -> NDArray[np.int64]:
        """Return how many live rows of a segment are before each of some live rows."""
        ranks = np.empty(len(rows), np.int64)
        n_before = 0
        for at in np.flatnonzero(self._records["segment"] == segment).tolist():
            first, count = self._records[["first_row", "rows"]][at].tolist()
            is_live = self._find_live(at, self.read(at).t, self._limits[at])
            inside = (rows >= first) & (rows < first + count)
            own = rows[inside].astype(np.int64) - first
            ranks[inside] = n_before + (own if is_live is None else np.cumsum(is_live)[own] - 1)
            n_before += count if is_live is None else int(np.count_nonzero(is_live))
        return ranks

    def rows_before(self, n_records: int) -> dict[int, int]:
        """Return how many rows of each segment are in the first records."""
        found: dict[int, int] = {}
        for segment, rows in self._records[["segment", "rows"]][:n_records].tolist():
            found[segment] = found.get(segment, 0) + rows
        return found

    def read(self, at: int) -> EdgeColumns:
        """Return all rows of a record, live or not."""
        record = self._records[at]
        segment, offset, length = (int(record[name]) for name in ("segment", "offset", "length"))
        message = self._files[segment].read(offset, length)
        if not record["is_checked"]:
            if zlib.crc32(message) != record["payload_crc"]:
                path = payload_path(self._folder, Kind.EDGES, segment)
                refuse_damaged(path, offset, "edges do not match their checksum")
            record["is_checked"] = True
        return decode_edges(message, int(record["form"]))

    def _find_live(
        self, at: int, t: NDArray[np.float64] | None, limit: float
    ) -> NDArray[np.bool_] | None:
        """Return which rows of a record are live, with a limit of their times; None means all."""
        record, is_live = self._records[at], None
        bits = self._removed.get(int(record["segment"]))
        if bits is not None:
            dead = is_removed(bits, int(record["first_row"]), int(record["rows"]))
            is_live = ~dead if dead.any() else None
        if t is not None and record["low"] < limit:
            is_live = t >= limit if is_live is None else is_live & (t >= limit)
        return is_live

    def segments(self) -> Iterator[tuple[range, int]]:
        """Yield the records of each file, which are neighbours, and the number of their rows."""
        for run in find_runs(self._records["segment"]):
            yield run, int(self._records["rows"][run.start : run.stop].sum())

    def place(self, at: int) -> tuple[int, int]:
        """Return the segment of a record, and the number of its first row there."""
        return int(self._records["segment"][at]), int(self._records["first_row"][at])


def open_log(folder: str | os.PathLike[str]) -> LiveEdges:
    """Return the live edges of a log, numbered by its own table."""
    from ohmlearn.edge_log.edge_log import EdgeLog  # which imports this module

    return EdgeLog(folder).live_edges()


class LogSource(Source):
    """The live edges of a log, or of some of its records, with the ids of the user.

    It is used where the edges of a log are read together with others, or in partitions.
    """

    def __init__(self, name: str, options: ReadOptions, records: range | None = None) -> None:
        super().__init__(name, options)
        self._records = records
        self._live: LiveEdges | None = None

    def inspect(self) -> None:
        """Open the log; from now on, operations on it do not change these edges."""
        self._live = live = open_log(self.name)
        t = 3 if live.has_times and self.times is not None else None
        self.columns = ColumnChoice(0, 1, 2, ["u", "v", "w", "t"], "", t)
        self.node_kinds = live.nodes.kinds
        if self._records is None:
            self.n_edges = live.n_edges

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Yield the live edges of each record."""
        if self._live is None:
            self.inspect()
        live, n_read = self._live, 0
        assert live is not None
        records = range(live.n_records) if self._records is None else self._records
        ids = live.nodes.keys_from(0)
        for part in live.parts(records.start, records.stop):
            u, v, w, t = part.columns
            if self.times is None:
                t = None
            elif t is None:
                refuse_source(self.name, "the edges of this log have no times")
            else:
                self.times.take(self.name, t)  # notes their unit; they were checked when appended
            n_read += len(u)
            fraction = n_read / max(1, live.n_edges)
            yield RawBatch(take(ids, u), take(ids, v), w, t=t, fraction=fraction)


class Pairs:
    """Pairs of nodes, each perhaps with a weight and a time, that edges are compared with.

    Ids that the log does not have are -1. `is_found` says which pairs have matched an edge so far.
    """

    def __init__(
        self,
        u: NDArray[np.integer],
        v: NDArray[np.integer],
        w: NDArray[np.floating] | None = None,
        t: NDArray[np.float64] | None = None,
    ) -> None:
        keys = _key(u, v)
        known = np.flatnonzero((u >= 0) & (v >= 0))
        self._order = known[np.argsort(keys[known], kind="stable")]
        self._keys = keys[self._order]
        self._w = None if w is None else w[self._order]
        self._t = None if t is None else t[self._order]
        self.is_found = np.zeros(len(u), bool)
        # Most edges are not in this filter, so that few need the binary search.
        bits = max(LEAST_BITS, 4 + int(max(1, len(self._keys))).bit_length())
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, bool)
        self._filter[self._hash(self._keys)] = True

    def match(self, columns: EdgeColumns) -> NDArray[np.intp]:
        """Return the rows that match a pair."""
        keys = _key(columns.u, columns.v)
        rows = np.flatnonzero(self._filter[self._hash(keys)])
        keys = keys[rows]
        low = np.searchsorted(self._keys, keys, "left")
        count = np.searchsorted(self._keys, keys, "right") - low
        # One entry for each row and each pair with the same key.
        rows = np.repeat(rows, count)
        starts = np.repeat(low - np.cumsum(count) + count, count)
        pairs = starts + np.arange(len(rows))
        is_match = np.ones(len(rows), bool)
        if self._w is not None:
            w = np.ones(len(rows)) if columns.w is None else columns.w[rows]
            is_match &= self._w[pairs].astype(w.dtype) == w
        if self._t is not None and columns.t is not None:
            is_match &= self._t[pairs] == columns.t[rows]
        self.is_found[self._order[pairs[is_match]]] = True
        return np.unique(rows[is_match])

    def _hash(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.asarray((keys * MULTIPLIER) >> self._shift)


def find_edges(
    live: LiveEdges, match: Callable[[EdgeColumns], NDArray[np.intp]]
) -> dict[int, list[Rows]]:
    """Return the rows, by segment, of the live edges that `match` chooses."""
    found: dict[int, list[Rows]] = {}
    for part in live.parts():
        chosen = match(part.columns)
        if len(chosen) > 0:
            segment, first_row = live.place(part.record)
            rows = chosen if part.is_live is None else np.flatnonzero(part.is_live)[chosen]
            found.setdefault(segment, []).append((first_row + rows).astype(np.uint32))
    return found


def find_nodes(
    live: LiveEdges, nodes: NDArray[np.integer], is_found: NDArray[np.bool_]
) -> dict[int, list[Rows]]:
    """Return the rows of live edges of some nodes, and mark the nodes that have one."""
    position = np.full(live.n_nodes, -1, np.int64)
    known = nodes >= 0
    position[nodes[known]] = np.flatnonzero(known)
    is_chosen = position >= 0

    def match(columns: EdgeColumns) -> NDArray[np.intp]:
        rows = np.flatnonzero(is_chosen[columns.u] | is_chosen[columns.v])
        ends = np.concatenate([columns.u[rows], columns.v[rows]])
        is_found[position[ends[is_chosen[ends]]]] = True
        return rows

    found = find_edges(live, match)
    is_found[known] = is_found[position[nodes[known]]]  # ids may be repeated
    return found


def _key(u: NDArray[np.integer], v: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return one number for each pair, the same in both directions."""
    low, high = np.minimum(u, v).astype(np.uint64), np.maximum(u, v).astype(np.uint64)
    return np.asarray((low << np.uint64(32)) | high)
