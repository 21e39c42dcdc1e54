"""The interface of a reader: it yields batches of edges with the ids of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import Param, render
from ohmlearn.nodes.node_ids import (
    CodedIds,
    Ids,
    Strings,
    decode_codes,
    encode_strings,
    strings_of,
    take,
)
from ohmlearn.reading.byte_blocks import ByteSource
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample, choose_columns
from ohmlearn.reading.event_ids import Events
from ohmlearn.reading.file_names import find_folder_columns
from ohmlearn.reading.read_options import TIMES, ReadOptions
from ohmlearn.reading.remote import is_remote
from ohmlearn.reading.source_errors import BadRows, refuse_source
from ohmlearn.reading.time_rule import TimeRule

if TYPE_CHECKING:
    from ohmlearn.reading.row_filter import RowFilter


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

    def rows(self, rows: NDArray[np.intp]) -> RawBatch:
        """Return some rows of the batch."""
        if rows.size == self.u.size:
            return self
        columns: tuple[Any, ...] = (self.w, self.t, self.event)
        w, t, event = (None if column is None else column[rows] for column in columns)
        return self._replace(u=take(self.u, rows), v=take(self.v, rows), w=w, t=t, event=event)


def join_batches(batches: Sequence[RawBatch]) -> RawBatch:
    """Return the rows of several batches with the same columns in one."""
    if len(batches) == 1:
        return batches[0]
    joined: dict[str, Any] = {"fraction": batches[-1].fraction}
    for name in ("w", "t", "event"):
        parts = [getattr(raw, name) for raw in batches]
        joined[name] = None if parts[0] is None else np.concatenate(parts)
    joined["n_bad"] = sum(raw.n_bad for raw in batches)
    joined["first_bad"] = next((raw.first_bad for raw in batches if raw.first_bad), None)
    u, v = ([getattr(raw, end) for raw in batches] for end in ("u", "v"))
    return RawBatch(_join_ids(u), _join_ids(v), **joined)


def _join_ids(parts: Any) -> Ids:
    if not isinstance(parts[0], Strings):
        return np.asarray(np.concatenate(parts))
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    texts = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
    return strings_of(lengths, np.concatenate(texts))


class Source(ABC):
    """One file, pipe or object with edges; without a `pipe`, `name` is that of a file."""

    has_rows = False  # with columns, so that ``where`` can choose some
    first_row = 1  # its number in messages; 0 for objects in memory, as for their indices
    which_rows = ""  # what the numbers of rows count, if not all rows of the source
    reads_files = False  # so that threads may read ahead: no code of the user runs in them
    version: Mapping[str, str | int] = {}  # how a table that has versions is recognised
    keeps_codes = False  # whether batches may have `CodedIds` ids

    def __init__(
        self,
        name: str,
        options: ReadOptions,
        pipe: BinaryIO | None = None,
        *,
        rereadable: bool = True,
    ) -> None:
        given = options.where and f"{Param('where', options.where)} needs"
        if options.event_id_col is not None:
            given = given or "ids of events need"
        if given and not self.has_rows:
            tables = "CSV, JSON lines, Parquet, Arrow or a data frame"
            refuse_source(name, f"{given} a table with columns, such as {tables}")
        self.name, self.options, self.pipe = name, options, pipe
        self.rereadable = rereadable and pipe is None
        self.n_edges: int | None = None  # if it is known before they are read
        self.columns: ColumnChoice | None = None  # after `inspect`, or from the first batch on
        self.condition: RowFilter | None = None  # which rows count, known as the columns are
        # Which times are accepted, if times are read; the sources of a stream share it.
        self.times = None if options.time is None else TimeRule(options.latest)
        self.node_kinds: tuple[str, ...] = ()  # the types of nodes, if ids start with them already
        self.folders = find_folder_columns(name)  # columns in its path, such as day=2026-01-31
        self.group: str | None = None  # the folder or pattern that means this file and others
        self._constants: dict[str, float] = {}  # "t" or "w" that a folder has, and its value

    def open(self) -> ByteSource:
        """Open the file or the pipe."""
        return ByteSource(self.name, self.pipe, self.options.filesystem)

    @property
    def is_remote(self) -> bool:
        """Whether it is a file on another machine."""
        return self.options.filesystem is not None or is_remote(self.name)

    def own_options(self, names: Sequence[str] | None) -> ReadOptions:
        """Return the options without columns that only the names of folders have.

        `complete` adds those to the batches. `names` are the columns of the file.
        """
        options, self._constants = self.options, {}
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
        weight = options.weight and options.weight.column
        if weight in only:
            text = self._folder_value(only, weight)
            self._constants["w"] = x = _core.parse_time(text.encode(), False)
            if not are_weights(x):
                refuse_source(self.name, f"the weight in the name of its folder is {text!r}")
            options = replace(options, weight_col=False)
        if time in only and self.times is not None:
            text = self._folder_value(only, time)
            t, bad = self.times.take(self.name, encode_strings([text]))
            if bad is not None:
                refuse_source(self.name, f"in the name of its folder, {bad.why(0)}")
            self._constants["t"] = t[0]
            options = replace(options, time=None, latest=None)
        return options

    def _folder_value(self, folders: dict[str, str | None], name: object) -> str:
        value = folders[str(name)]
        if value is None:
            refuse_source(self.name, f"its folder has no value of {name!r}")
        return value

    @property
    def own_times(self) -> TimeRule | None:
        """Which times are accepted, unless the time is the name of a folder."""
        return None if "t" in self._constants else self.times

    def complete(self, raw: RawBatch) -> RawBatch:
        """Return a batch with the columns that the names of folders have."""
        for name, value in self._constants.items():
            column: Any = {name: np.full(raw.u.size, value)}
            raw = raw._replace(**column)
        return raw

    def choose(
        self,
        names: Sequence[str] | None,
        n_columns: int,
        values: ColumnSample,
        *,
        is_text: bool = False,
        optional: Iterable[str] = (),
    ) -> ColumnChoice:
        """Choose the columns of a table, and which rows count.

        `values` says which columns are not ends; rows may have `optional` columns, too.
        """
        self.columns = choose_columns(self.name, self.own_options(names), names, n_columns, values)
        if self.options.where is not None:
            require_extra("pyarrow", "files")
            from ohmlearn.reading.row_filter import RowFilter

            known = names and list(dict.fromkeys([*names, *optional]))
            how = (known, self.folders, is_text, n_columns)
            self.condition = RowFilter(self.name, self.options.where, *how)
        return self.columns

    def refuse_or_count(self, bad: BadRows, rows: int | NDArray[np.int64]) -> tuple[int, str]:
        """Refuse the source if a row is bad or, with ``on_bad="skip"``, count its bad rows.

        Returns their number, and where the first one is and what is wrong with it. `rows` is the
        number of the first row of the batch, or those of all rows.
        """
        at = int(np.argmax(bad.mask))
        row = int(rows + at if isinstance(rows, int) else rows[at])
        why = bad.why(at)
        if not self.options.skip_bad:
            place = f"row {row}{self.which_rows}" if self.which_rows else row
            refuse_source(self.name, why, place, self.options.rows.remedy)
        first = render(f"{self.name}, row {row}{self.which_rows}: {why}")
        return int(np.count_nonzero(bad.mask)), first

    def drop_bad(
        self, raw: RawBatch, bad: Iterable[BadRows | None], rows: int | NDArray[np.int64]
    ) -> RawBatch:
        """Check weights, and refuse or leave out bad rows; the first of `bad` explains a row.

        For `rows` see `refuse_or_count`.
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
        counted = self.refuse_or_count(BadRows(mask, explain), rows)
        return raw._replace(w=w).rows(np.flatnonzero(~mask)).with_bad(*counted)

    def pieces(self, kind: str | None, n_jobs: int) -> Iterator[Iterator[RawBatch]]:
        """Yield parts of the source that threads may read at the same time.

        Each of them is read by one thread at a time. Here is only one.
        """
        yield self.batches(kind)

    @abstractmethod
    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read from the beginning; `kind` is that of the ids in earlier sources, if any."""

    def inspect(self) -> None:  # noqa: B027
        """Find columns and size, if that is possible without reading all edges.

        Here it is not: reading the beginning of a pipe could block, or use up an iterator.
        """

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
