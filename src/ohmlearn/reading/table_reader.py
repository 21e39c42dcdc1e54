"""The interface of a reader: it yields batches of edges with the ids of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import Param, render
from ohmlearn.nodes.node_ids import CodedIds, Ids, decode_codes, encode_strings, take
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.event_ids import Events
from ohmlearn.reading.file_names import find_folder_columns
from ohmlearn.reading.read_options import TIMES, ReadOptions
from ohmlearn.reading.remote import is_remote
from ohmlearn.reading.source_errors import BadRows, refuse_source
from ohmlearn.reading.time_rule import TimeRule

__all__ = ["RawBatch", "Source", "drop_bad", "inspect_all", "refuse_or_count"]


class RawBatch(NamedTuple):
    """A batch of edges with the ids of the user, checked weights and, if asked for, times."""

    u: Ids | CodedIds
    v: Ids | CodedIds
    w: NDArray[np.float32] | NDArray[np.float64] | None = None
    n_bad: int = 0  # number of rows that were left out
    first_bad: str | None = None  # where the first of them is, and what is wrong with it
    t: NDArray[np.float64] | None = None
    fraction: float | None = None  # fraction of the source that has been read with it
    event: Events | None = None  # hashes of the ids of events, if asked for

    def with_bad(self, n_bad: int, first_bad: str | None) -> RawBatch:
        """Return the batch with more rows that were left out."""
        return self._replace(n_bad=self.n_bad + n_bad, first_bad=self.first_bad or first_bad)


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
        Which fraction of it has been read, if known.
    columns : ColumnChoice or None
        Known after `inspect`, or from the first batch on.
    times : TimeRule or None
        Which times are accepted, if times are read; the sources of a stream share it.
    node_kinds : tuple of str
        The types of nodes, if ids start with them already.
    folders : dict
        Columns that the names of the folders of a file have, such as day=2026-01-31.
    group : str or None
        The folder or pattern that means this file and others.
    keeps_codes : bool
        Whether batches may have `CodedIds` ids.
    stays_open : bool
        Whether a file stays open between `inspect` and the first pass.
    """

    has_rows = False  # with columns, so that ``where`` can choose some
    first_row = 1  # its number in messages; 0 for objects in memory, as for their indices
    reads_files = False  # so that threads may read ahead: no code of the user runs in them

    def __init__(self, name: str, options: ReadOptions, *, rereadable: bool = True) -> None:
        if options.where is not None and not self.has_rows:
            refuse_source(
                name,
                f"{Param('where', options.where)} needs a table with columns, such as CSV, JSON "
                f"lines, Parquet, Arrow or a data frame",
            )
        if options.event_id_col is not None and not self.has_rows:
            refuse_source(
                name,
                "ids of events need a table with columns, such as CSV, JSON lines, Parquet, Arrow "
                "or a data frame",
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
        self.stays_open = False
        self.folders = find_folder_columns(name)
        self.group: str | None = None
        self._from_folders: dict[str, str] = {}  # "time" or "weight_col", and its value

    @property
    def is_remote(self) -> bool:
        """Whether it is a file on another machine."""
        return self.options.filesystem is not None or is_remote(self.name)

    def own_options(self, names: Sequence[str] | None) -> ReadOptions:
        """Return the options without columns that only the names of folders have.

        `complete` adds those to the batches. `names` are the columns of the file.
        """
        options, self._from_folders = self.options, {}
        only = {name: x for name, x in self.folders.items() if name not in (names or ())}
        time = options.time
        if time is True and not any(name.strip().lower() in TIMES for name in names or ()):
            time = next((name for name in self.folders if name.lower() in TIMES), time)
        for option in ("source_col", "target_col"):
            if (name := getattr(options, option)) in only:
                refuse_source(
                    self.name,
                    f"{Param(option, name)} is the name of a folder; the ends of an edge must be "
                    f"columns of the file",
                )
        own: dict[str, Any] = {}
        weight = options.weight and options.weight.column
        for option, name in (("time", time), ("weight_col", weight)):
            if name not in only:
                continue
            value = only[str(name)]
            if value is None:
                refuse_source(self.name, f"its folder has no value of {name!r}")
            own[option] = False if option == "weight_col" else None
            self._from_folders[option] = value
        return replace(options, **own) if own else options

    @property
    def own_times(self) -> TimeRule | None:
        """Which times are accepted, unless the time is the name of a folder."""
        return None if "time" in self._from_folders else self.times

    def complete(self, raw: RawBatch) -> RawBatch:
        """Return a batch with the columns that the names of folders have."""
        if "time" in self._from_folders and self.times is not None:
            text = self._from_folders["time"]
            t, bad = self.times.take(self.name, encode_strings([text]))
            if bad is not None:
                refuse_source(self.name, f"in the name of its folder, {bad.why(0)}")
            raw = raw._replace(t=np.full(raw.u.size, t[0]))
        if "weight_col" in self._from_folders:
            text = self._from_folders["weight_col"]
            weight = _core.parse_time(text.encode(), False)
            if not are_weights(weight):
                refuse_source(self.name, f"the weight in the name of its folder is {text!r}")
            raw = raw._replace(w=np.full(raw.u.size, weight))
        return raw

    def make_filter(
        self, names: Sequence[str] | None, *, is_text: bool = False, n_columns: int = 0
    ) -> Any:
        """Return the `RowFilter` of a source with these columns; None if all rows count."""
        if self.options.where is None:
            return None
        require_extra("pyarrow", "files")
        from ohmlearn.reading.row_filter import RowFilter

        how = (names, self.folders, is_text, n_columns)
        return RowFilter(self.name, self.options.where, *how)

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


def refuse_or_count(
    source: str,
    options: ReadOptions,
    bad: BadRows,
    rows: int | NDArray[np.int64],
    which_rows: str = "",
) -> tuple[int, str]:
    """Refuse a source with a bad row or, with ``on_bad="skip"``, count its bad rows.

    Returns their number, and where the first one is and what is wrong with it. `rows` is the number
    of the first row of the batch, or those of all rows; `which_rows` says what the numbers count.
    """
    at = int(np.argmax(bad.mask))
    row = int(rows + at if isinstance(rows, int) else rows[at])
    why = bad.why(at)
    if not options.skip_bad:
        place = f"row {row}{which_rows}" if which_rows else row
        refuse_source(source, why, place, options.rows.remedy)
    return int(np.count_nonzero(bad.mask)), render(f"{source}, row {row}{which_rows}: {why}")


def drop_bad(
    source: str,
    options: ReadOptions,
    rows: int | NDArray[np.int64],
    raw: RawBatch,
    bad: Iterable[BadRows | None] = (),
    which_rows: str = "",
) -> RawBatch:
    """Check weights, and refuse or leave out bad rows; the first of `bad` explains a row.

    The other parameters are those of `refuse_or_count`.
    """
    w: Any = raw.w
    if w is not None and w.dtype not in (np.float32, np.float64):
        w = w.astype(np.float64)
    found = [each for each in bad if each is not None]
    if w is not None and not (good := are_weights(w)).all():
        found.append(BadRows(~good, lambda at: f"weights must {ALLOWED_WEIGHTS}, got {w[at]}"))
    if not found:
        return raw._replace(w=w)

    def explain(at: int) -> str:
        return next(each.why(at) for each in found if each.mask[at])

    mask = np.logical_or.reduce([each.mask for each in found])
    counted = refuse_or_count(source, options, BadRows(mask, explain), rows, which_rows)
    keep = np.flatnonzero(~mask)
    columns: tuple[Any, ...] = (w, raw.t, raw.event)
    w, t, event = (None if column is None else column[keep] for column in columns)
    return RawBatch(take(raw.u, keep), take(raw.v, keep), w, *counted, t, event=event)
