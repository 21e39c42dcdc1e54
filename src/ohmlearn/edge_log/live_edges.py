"""The live edges of a log at one moment, as a stream that can be read any number of times."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._display import Shown
from ohmlearn.checks.parameters import require_extra
from ohmlearn.checks.times import find_unix_unit
from ohmlearn.edge_log.journal import Contents, Rows, find_runs, is_removed
from ohmlearn.edge_log.log_errors import refuse_damaged
from ohmlearn.edge_log.records import (
    EdgeColumns,
    SegmentFile,
    concatenate,
    decode_edges,
    segment_path,
)
from ohmlearn.edges import Batch, Edges
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Ids, ids_from_arrow
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source

__all__ = ["LiveEdges", "LivePart", "LogSource", "open_log"]

SMALL = 1 << 16  # records with fewer rows are put together when they are read


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
    keeper: Callable[[int, int | None], Any] | None = None  # gives the sparsifier of the log
    n_updates = 0  # see `Store.n_updates`

    def __init__(
        self,
        folder: Path,
        contents: Contents,
        files: dict[int, SegmentFile],
        nodes: NodeTable,
        has_times: bool,
    ) -> None:
        self.nodes, self.has_times = nodes, has_times
        self.n_nodes, self.n_edges = len(nodes), contents.n_edges
        self.sources = [str(folder)]
        self.columns = "u, v, weights and times of the log" if has_times else "u, v and weights"
        self.options = ReadOptions()
        self.n_operations = contents.n_operations
        self._folder, self._files = folder, files
        self._records, self._first_rows = contents.records, contents.first_rows
        self._is_checked = contents.is_checked
        self._removed, self._limits = dict(contents.removed), contents.limits()

    def _facts(self) -> dict[str, Any]:
        facts = {"log": self.sources[0], "edges": self.n_edges, "nodes": self.n_nodes}
        return facts | {"times": self.has_times}

    @property
    def time_unit(self) -> str | None:
        """The unit of the times if they look like Unix times; dates are stored in seconds."""
        for part in self.parts():
            return None if part.columns.t is None else find_unix_unit(part.columns.t)
        return None

    def kept_sparsifier(self, n_jobs: int | None = None) -> Any:
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
        return Batch(*columns)

    @property
    def n_records(self) -> int:
        """Number of records, with or without live edges."""
        return len(self._records)

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
        record = self._records[at]
        file = self._files[int(record["segment"])]
        file.release(int(record["offset"]), int(record["length"]))

    def read_live(self, at: int) -> tuple[EdgeColumns, NDArray[np.bool_] | None]:
        """Return the live rows of a record, and which they are; None means all."""
        columns = self.read(at)
        is_live = self.find_live(at, columns.t)
        return (columns if is_live is None else columns.take(is_live)), is_live

    def count_before(self, limit: float) -> int:
        """Return the number of live edges with an earlier time."""
        parts = self.expired(len(self._records), self._limits, limit)
        return sum(len(part.u) for part in parts)

    def expired(
        self, stop: int, limits: NDArray[np.float64], limit: float
    ) -> Iterator[EdgeColumns]:
        """Yield the edges of records before number `stop` that a new limit removes.

        They are not removed on their own, and their times are between an earlier limit of their
        record and the new one.
        """
        for at in range(stop):
            if self._records["low"][at] >= limit or self._records["high"][at] < limits[at]:
                continue
            columns = self.read(at)
            assert columns.t is not None
            chosen = (columns.t < limit) & (columns.t >= limits[at])
            dead = self._find_removed(at)
            if dead is not None:
                chosen &= ~dead
            if chosen.any():
                yield columns.take(chosen)
            self._release(at)

    def gather(self, segment: int, rows: Rows) -> Iterator[EdgeColumns]:
        """Yield some rows of a segment, given in ascending order, record by record."""
        if len(rows) == 0:
            return
        records = np.flatnonzero(self._records["segment"] == segment)
        borders = np.searchsorted(rows, self._first_rows[records])
        for at, first, stop in zip(
            records.tolist(), borders.tolist(), [*borders[1:].tolist(), len(rows)], strict=True
        ):
            if stop > first:
                yield self.read(at).take(rows[first:stop] - self._first_rows[at])

    def rank(self, segment: int, rows: Rows) -> NDArray[np.int64]:
        """Return how many live rows of a segment are before each of some live rows."""
        ranks = np.empty(len(rows), np.int64)
        n_before = 0
        for at in np.flatnonzero(self._records["segment"] == segment).tolist():
            first, count = int(self._first_rows[at]), int(self._records["rows"][at])
            is_live = self.find_live(at, self.read(at).t)
            inside = (rows >= first) & (rows < first + count)
            own = rows[inside].astype(np.int64) - first
            if is_live is None:
                ranks[inside] = n_before + own
                n_before += count
            else:
                ranks[inside] = n_before + np.cumsum(is_live)[own] - 1
                n_before += int(np.count_nonzero(is_live))
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
        offset, length = int(record["offset"]), int(record["length"])
        segment = int(record["segment"])
        message = self._files[segment].read(offset, length)
        if not self._is_checked[at]:
            if zlib.crc32(message) != record["payload_crc"]:
                path = segment_path(self._folder, segment)
                refuse_damaged(path, offset, "edges do not match their checksum")
            self._is_checked[at] = True
        return decode_edges(message, int(record["form"]))

    def find_live(self, at: int, t: NDArray[np.float64] | None) -> NDArray[np.bool_] | None:
        """Return which rows of a record are live; None means all."""
        dead = self._find_removed(at)
        is_live = None if dead is None else ~dead
        if t is not None and self._records["low"][at] < self._limits[at]:
            recent = t >= self._limits[at]
            is_live = recent if is_live is None else is_live & recent
        return is_live

    def _find_removed(self, at: int) -> NDArray[np.bool_] | None:
        """Return which rows of a record were removed; None means none."""
        bits = self._removed.get(int(self._records["segment"][at]))
        if bits is None:
            return None
        dead = is_removed(bits, int(self._first_rows[at]), int(self._records["rows"][at]))
        return dead if dead.any() else None

    def segments(self) -> Iterator[tuple[range, int]]:
        """Yield the records of each file, which are neighbours, and the number of their rows."""
        for run in find_runs(self._records["segment"]):
            yield run, int(self._records["rows"][run.start : run.stop].sum())

    def place(self, at: int) -> tuple[int, int]:
        """Return the segment of a record, and the number of its first row there."""
        return int(self._records["segment"][at]), int(self._first_rows[at])


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
        live = self._live
        assert live is not None
        records = range(live.n_records) if self._records is None else self._records
        ids, n_read = _AllIds(live.nodes), 0
        for part in live.parts(records.start, records.stop):
            u, v, w, t = part.columns
            if self.times is None:
                t = None
            elif t is None:
                refuse_source(self.name, "the edges of this log have no times")
            else:
                self.times.take(self.name, t)  # notes their unit; they were checked when appended
            yield RawBatch(ids.take(u), ids.take(v), w, t=t)
            n_read += len(u)
            self.fraction = n_read / max(1, live.n_edges)


class _AllIds:
    """The ids of a table, for choosing many of them quickly."""

    def __init__(self, nodes: NodeTable) -> None:
        self._ids: Any = nodes.ids() if nodes.kind != "string" else nodes.to_arrow()

    def take(self, numbers: NDArray[np.int32]) -> Ids:
        """Return the ids of some nodes."""
        if isinstance(self._ids, np.ndarray):
            chosen: NDArray[Any] = self._ids[numbers]
            return chosen
        pa = require_extra("pyarrow", "files")
        return ids_from_arrow(self._ids.take(pa.array(numbers))).ids
