"""The interface of a reader: it yields batches of edges with the ids of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.nodes.node_ids import CodedIds, Ids, decode_codes, encode_strings, take
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.file_names import find_folder_columns
from ohmlearn.reading.read_ahead import ReadAhead
from ohmlearn.reading.read_options import TIMES, ReadOptions
from ohmlearn.reading.remote import is_remote, open_ahead
from ohmlearn.reading.row_filter import RowFilter
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.time_rule import CheckedTimes, TimeRule

__all__ = ["RawBatch", "Source", "drop_bad", "inspect_all", "read_in_turn"]


class RawBatch(NamedTuple):
    """A batch of edges with the ids of the user, checked weights and, if asked for, times."""

    u: Ids | CodedIds
    v: Ids | CodedIds
    w: NDArray[np.float32] | NDArray[np.float64] | None = None
    n_bad: int = 0  # number of rows that were left out
    first_bad: str | None = None  # where the first of them is, and what is wrong with it
    t: NDArray[np.float64] | None = None
    fraction: float | None = None  # share of the source that has been read with it


class Source(ABC):
    """One file, pipe or object with edges.

    Attributes
    ----------
    name : str
        Name for messages.
    options : ReadOptions
        How it is read.
    rereadable : bool
        Whether it can be read more than once.
    n_edges : int or None
        Number of edges, if it is known before they are read.
    fraction : float or None
        Which share of it has been read, if known.
    columns : ColumnChoice or None
        Known after `inspect`, or from the first batch on.
    times : TimeRule or None
        Which times are accepted, if times are read; the sources of a stream share it.
    node_kinds : tuple of str
        The kinds of nodes, if ids start with them already.
    folders : dict
        ColumnChoice that the names of the folders of a file have, such as day=2026-01-31.
    group : str or None
        The folder or pattern that means this file and others.
    keeps_codes : bool
        Whether batches may have `CodedIds` ids.
    """

    has_rows = False  # with columns, so that ``where`` can choose some
    first_row = 1  # its number in messages; 0 for objects in memory, as for their indices
    is_read_in_order = False  # from the first byte of a file to the last one
    reads_files = False  # so that threads may read ahead: no code of the user runs in them

    def __init__(self, name: str, options: ReadOptions, *, rereadable: bool = True) -> None:
        if options.where is not None and not self.has_rows:
            refuse_source(
                name,
                f"where = {options.where!r} needs a table with columns, such as CSV, JSON lines, "
                f"Parquet, Arrow or a data frame",
            )
        self.name = name
        self.options = options
        self.rereadable = rereadable
        self.n_edges: int | None = None
        self.fraction: float | None = None
        self.columns: ColumnChoice | None = None
        self.times = None if options.time is None else TimeRule(options.latest)
        self.node_kinds: tuple[str, ...] = ()
        self.keeps_codes = False
        self.folders = find_folder_columns(name)
        self.group: str | None = None
        self._ahead: Future[ReadAhead] | None = None
        self._from_folders: dict[str, str] = {}  # "time" or "weight_col", and its value

    @property
    def is_remote(self) -> bool:
        """Whether it is a file on another machine."""
        return self.options.filesystem is not None or is_remote(self.name)

    def open_ahead(self) -> None:
        """Begin to fetch a remote file, which is read next."""
        if self._ahead is None and self.has_rows and self.is_remote:
            self._ahead = open_ahead(self.name, self.options.filesystem, self.is_read_in_order)

    def take_ahead(self) -> ReadAhead | None:
        """Return the open file of `open_ahead`, if there is one."""
        future, self._ahead = self._ahead, None
        return None if future is None else future.result()

    def drop_ahead(self) -> None:
        """Close the file of `open_ahead`, if it has not been taken."""
        with suppress(Exception):  # a reading would report it
            if (file := self.take_ahead()) is not None:
                file.close()

    def own_options(self, names: Sequence[str] | None) -> ReadOptions:
        """Return the options without columns that only the names of folders have.

        `complete` adds those to the batches. `names` are the columns of the file.
        """
        options, folders = self.options, self.folders
        only = folders.keys() - set(names or ())
        time = options.time
        if time is True and not any(name.strip().lower() in TIMES for name in names or ()):
            time = next((name for name in folders if name.lower() in TIMES), time)
        named = {"time": time, "weight_col": options.weight and options.weight.column}
        found = {option: name for option, name in named.items() if name in only}
        for option in ("source_col", "target_col"):
            if getattr(options, option) in only:
                refuse_source(
                    self.name,
                    f"{option} = {getattr(options, option)!r} is the name of a folder; the ends of "
                    f"an edge must be columns of the file",
                )
        self._from_folders = {}
        for option, name in found.items():
            value = folders[str(name)]
            if value is None:
                refuse_source(self.name, f"its folder has no value of {name!r}")
            self._from_folders[option] = value
        own: dict[str, Any] = {x: False if x == "weight_col" else None for x in found}
        return replace(options, **own) if found else options

    @property
    def own_times(self) -> TimeRule | None:
        """Which times are accepted, unless the time is the name of a folder."""
        return None if "time" in self._from_folders else self.times

    def complete(self, raw: RawBatch) -> RawBatch:
        """Return a batch with the columns that the names of folders have."""
        if "time" in self._from_folders and self.times is not None:
            text = self._from_folders["time"]
            times = self.times.take(self.name, encode_strings([text]), lambda _: text)
            if times.bad is not None:
                refuse_source(self.name, f"in the name of its folder, {times.why(0)}")
            raw = raw._replace(t=np.full(raw.u.size, times.t[0]))
        if "weight_col" in self._from_folders:
            text = self._from_folders["weight_col"]
            weight = _core.parse_time(text.encode(), False)
            if not are_weights(weight):
                refuse_source(self.name, f"the weight in the name of its folder is {text!r}")
            raw = raw._replace(w=np.full(raw.u.size, weight))
        return raw

    def make_filter(self, names: Sequence[str] | None) -> RowFilter | None:
        """Return which rows count, for a source with these columns; None if all of them do."""
        where = self.options.where
        return None if where is None else RowFilter(self.name, where, names, self.folders)

    def pieces(self, kind: str | None, n_jobs: int) -> Iterator[Iterator[RawBatch]]:
        """Yield parts of the source that threads may read at the same time.

        Each of them is read by one thread at a time. Here is only one.
        """
        yield (raw._replace(fraction=self.fraction) for raw in self.batches(kind))

    @abstractmethod
    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read from the beginning; `kind` is that of the ids in earlier sources, if any."""

    @abstractmethod
    def inspect(self) -> None:
        """Find columns and size without reading the edges, if that is possible."""

    def look_at_ids(self) -> Ids | None:
        """Return ids of one end of the first edges."""
        return next((decode_codes(raw.u) for raw in self.batches(None) if raw.u.size > 0), None)


def inspect_all(sources: list[Source]) -> None:
    """Inspect the sources of a stream; remote files several at a time."""
    if len(sources) > 1 and any(is_remote(source.name) for source in sources):
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda source: source.inspect(), sources):
                pass
    else:
        for source in sources:
            source.inspect()
    check_same_columns(sources)


def read_in_turn(sources: list[Source]) -> Iterator[tuple[int, Source]]:
    """Yield numbers and sources; if the next one is a remote file, it is opened meanwhile."""
    try:
        for at in range(len(sources)):
            if at + 1 < len(sources):
                sources[at + 1].open_ahead()
            yield at, sources[at]
            sources[at].drop_ahead()  # it may have been left out as a whole
    finally:
        for source in sources:
            source.drop_ahead()


def check_same_columns(sources: list[Source]) -> None:
    """Refuse files of one folder or pattern in which different columns were guessed."""
    first: dict[str, tuple[Source, list[str]]] = {}
    for source in sources:
        columns = source.columns
        if source.group is None or columns is None or columns.names is None or not columns.guessed:
            continue
        here = [columns.names[at] for at in columns.used]
        other, there = first.setdefault(source.group, (source, here))
        if sorted(here) != sorted(there):
            refuse_source(
                source.name,
                f"its columns would be {', '.join(here)}, but those of {other.name} are "
                f"{', '.join(there)}; name them with {' and '.join(source.options.rows.options)}, "
                f"or read the files one by one",
            )


def drop_bad(
    source: str,
    options: ReadOptions,
    first_row: int | NDArray[np.int64],
    u: Ids | CodedIds,
    v: Ids | CodedIds,
    w: NDArray[Any] | None,
    bad: NDArray[np.bool_] | None = None,
    reason: str = "",
    times: CheckedTimes | None = None,
    which_rows: str = "",
) -> RawBatch:
    """Check weights. Rows with bad weights or times, and rows in `bad`, are refused or left out.

    `first_row` is the number of the first row, or those of all rows.
    """
    if w is not None and w.dtype not in (np.float32, np.float64):
        w = w.astype(np.float64)
    weights_good = w is None or bool(are_weights(w).all())
    t = None if times is None else times.t
    if bad is None and weights_good and (times is None or times.bad is None):
        return RawBatch(u, v, w, t=t)
    mask = np.zeros(u.size, dtype=bool) if bad is None else bad.copy()
    if w is not None:
        mask |= ~are_weights(w)
    if times is not None and times.bad is not None:
        mask |= times.bad
    at = int(np.argmax(mask))
    row = f"row {first_row + at if isinstance(first_row, int) else first_row[at]}{which_rows}"
    if bad is not None and bad[at]:
        why = reason
    elif times is not None and times.bad is not None and times.bad[at]:
        why = times.why(at)
    else:
        value = None if w is None else w[at]
        why = f"weights must {ALLOWED_WEIGHTS}, got {value}"
    if not options.skip_bad:
        refuse_source(source, f"{why}; {options.rows.remedy}", row)
    keep = ~mask
    return RawBatch(
        take(u, np.flatnonzero(keep)),
        take(v, np.flatnonzero(keep)),
        None if w is None else w[keep],
        int(np.count_nonzero(mask)),
        f"{source}, {row}: {why}",
        None if t is None else t[keep],
    )
