"""Edges from Arrow: tables of other libraries, IPC and Feather files, Parquet files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.ids import EXACT, Ids, Strings, ids_from_arrow, join_masks
from ohmlearn.streams.bytes import ByteSource
from ohmlearn.streams.columns import Columns, Values, choose_columns
from ohmlearn.streams.errors import reading, refuse_source
from ohmlearn.streams.options import ReadOptions
from ohmlearn.streams.source import RawBatch, Source, drop_bad
from ohmlearn.streams.times import TimeRule
from ohmlearn.validation.parameters import require_extra

__all__ = ["ArrowFile", "ArrowObject", "ArrowPipe", "ParquetFile", "take_record_batch"]

# Rows in a batch. With a power of two, pyarrow would fill a buffer of that size, read a little
# further, double and copy the buffer, and copy it again to cut it to size.
ROWS = 3 << 15


class ArrowSource(Source):
    """A source with a schema and record batches."""

    format = "Arrow"
    _n_skipped = 0  # rows before those that are read

    @abstractmethod
    def _read(self) -> Iterator[tuple[Columns, Any]]:
        """Yield record batches, each with the positions of the columns of edges in it."""

    def _first_row(self) -> int:
        """Return the number of the first row, for messages."""
        return 0

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Yield the columns of edges of each record batch."""
        row, seen = self._first_row() + self._n_skipped, self._n_skipped
        batches = self._read()
        while True:
            with reading(self.name, self.format):
                found = next(batches, None)
                if found is None:
                    break
                columns, batch = found
                raw = take_record_batch(
                    batch, columns, self.name, self.options, kind, row, self.times
                )
            row += batch.num_rows
            seen += batch.num_rows
            if self.n_edges:
                self.fraction = min(1.0, seen / self.n_edges)
            yield raw

    def _choose(self, schema: Any) -> Columns:
        names, values = schema.names, look_at_types(schema.types)
        columns = choose_columns(self.name, self.options, names, len(names), values)
        self.columns = columns
        ends = (columns.u,) if self.options.rows.second_may_be_empty else (columns.u, columns.v)
        for at in ends:
            check_id_type(schema.field(at).type, self.name, columns.name(at))
        return columns


class ParquetFile(ArrowSource):
    """A Parquet file, or some of its row groups; only the columns of edges are read."""

    format = "Parquet"

    def __init__(self, name: str, options: ReadOptions, row_groups: range | None = None) -> None:
        super().__init__(name, options)
        self._row_groups = row_groups

    def inspect(self) -> None:
        """Read the footer."""
        with self._open() as file:
            self._choose(file.schema_arrow)
            self.n_edges = self._count(file, self._row_groups)

    @staticmethod
    def _count(file: Any, row_groups: range | None) -> int:
        """Return the number of rows in some row groups, by default in all."""
        if row_groups is None:
            return int(file.metadata.num_rows)
        return sum(file.metadata.row_group(at).num_rows for at in row_groups)

    def _first_row(self) -> int:
        if self._row_groups is None:
            return 0
        with self._open() as file:
            return self._count(file, range(self._row_groups.start))

    def _open(self) -> Any:
        parquet = require_extra("pyarrow.parquet", "files")
        with reading(self.name, self.format):
            # With pre_buffer, pyarrow keeps all that it has read until the file is closed.
            return parquet.ParquetFile(self.name, pre_buffer=False)

    def _read(self) -> Iterator[tuple[Columns, Any]]:
        with self._open() as file:
            chosen = self._choose(file.schema_arrow)
            self.n_edges = self._count(file, self._row_groups)
            names = file.schema_arrow.names
            wanted = [names[at] for at in chosen.used]
            if len(set(names)) < len(names):
                refuse_source(self.name, "two columns have the same name")
            weight = None if chosen.w is None else 2
            time = None if chosen.t is None else len(wanted) - 1
            columns = Columns(0, 1, weight, wanted, chosen.guessed, time)
            groups, skipped = self._find_row_groups(file)
            for batch in file.iter_batches(ROWS, groups, wanted, use_threads=False):
                batch = batch.select(wanted)  # pyarrow returns them in the order of the file
                if skipped < batch.num_rows:
                    yield columns, batch.slice(skipped)
                skipped = max(0, skipped - batch.num_rows)

    def batches_from(self, kind: str | None, position: int) -> Iterator[RawBatch]:
        """Read from a row on; the row groups before it are not decoded."""
        self.position = self._n_skipped = position
        try:
            for batch in self.batches(kind):
                self.position += batch.u.size + batch.n_bad
                yield batch
        finally:
            self._n_skipped = 0

    def _find_row_groups(self, file: Any) -> tuple[range | None, int]:
        """Return the row groups to read, and how many rows of the first one to skip."""
        groups, skipped = self._row_groups, self._n_skipped
        if skipped == 0:
            return groups, 0
        groups = range(file.metadata.num_row_groups) if groups is None else groups
        while groups and skipped >= self._count(file, groups[:1]):
            skipped -= self._count(file, groups[:1])
            groups = groups[1:]
        return groups, skipped


class ArrowFile(ArrowSource):
    """An Arrow IPC file, also known as Feather, or a file with an IPC stream."""

    format = "Arrow IPC"

    def inspect(self) -> None:
        """Read the schema."""
        with self._open() as reader:
            self._choose(reader.schema)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        pa = require_extra("pyarrow", "files")
        with reading(self.name, self.format), pa.memory_map(self.name) as file:
            is_file = file.size() >= 6 and file.read(6) == b"ARROW1"
            file.seek(0)
            yield pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)

    def _read(self) -> Iterator[tuple[Columns, Any]]:
        with self._open() as reader:
            columns = self._choose(reader.schema)
            count = getattr(reader, "num_record_batches", None)  # a stream does not say it
            batches = reader if count is None else map(reader.get_batch, range(count))
            for at, batch in enumerate(batches):
                self.fraction = at / count if count else None
                yield columns, _validated(batch)


class ArrowPipe(ArrowSource):
    """An IPC stream from a pipe."""

    format = "an Arrow IPC stream"

    def __init__(self, name: str, options: ReadOptions, pipe: BinaryIO) -> None:
        super().__init__(name, options, rereadable=False)
        self._pipe = pipe

    def inspect(self) -> None:
        """Do nothing: reading the schema could block."""

    def _read(self) -> Iterator[tuple[Columns, Any]]:
        pa = require_extra("pyarrow", "files")
        with ByteSource(self.name, self._pipe) as source, pa.ipc.open_stream(source.file) as reader:
            columns = self._choose(reader.schema)
            for batch in reader:
                yield columns, _validated(batch)


class ArrowObject(ArrowSource):
    """An object with ``__arrow_c_stream__``: a table of pyarrow, pandas, polars, duckdb, ..."""

    def __init__(self, table: Any, options: ReadOptions) -> None:
        once = hasattr(table, "read_next_batch")  # a reader, not a table
        super().__init__(f"the {type(table).__name__}", options, rereadable=not once)
        self._table = table

    def inspect(self) -> None:
        """Look at the schema if the object has one; others would have to run a query."""
        pa = require_extra("pyarrow", "files")
        schema = getattr(self._table, "schema", None)
        if isinstance(schema, pa.Schema):
            self._choose(schema)
        self.n_edges = getattr(self._table, "num_rows", None)

    def _read(self) -> Iterator[tuple[Columns, Any]]:
        pa = require_extra("pyarrow", "files")
        reader = pa.RecordBatchReader.from_stream(self._table)
        columns = self._choose(reader.schema)
        for batch in reader:
            yield columns, batch


def _validated(batch: Any) -> Any:
    """Return the batch after a check of its buffers, which may be wrong in damaged files."""
    batch.validate(full=True)
    return batch


def look_at_types(types: list[Any]) -> Values:
    """Return which columns are not ends, by their types."""
    import pyarrow.types as t

    return Values(
        times={at for at, kind in enumerate(types) if t.is_temporal(kind)},
        floats={at for at, kind in enumerate(types) if t.is_floating(kind) or t.is_decimal(kind)},
    )


def check_id_type(kind: Any, source: str, column: str | None) -> None:
    """Refuse a column whose type cannot be that of ids."""
    import pyarrow.types as types

    value = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(value) or types.is_string(value) or types.is_large_string(value):
        return
    if str(value) == "string_view" or types.is_floating(value) or types.is_null(value):
        return
    refuse_source(
        source,
        f"node ids must be integers or strings, but {column} has type {kind}; "
        f"cast it, or name other columns with source_col and target_col",
    )


def take_record_batch(
    batch: Any,
    columns: Columns,
    source: str,
    options: ReadOptions,
    kind: str | None,
    row: int,
    rule: TimeRule | None = None,
) -> RawBatch:
    """Return ids, weights and times of a record batch whose first row has number `row`."""
    u, v = batch.column(columns.u), batch.column(columns.v)
    if options.rows.second_may_be_empty:
        v = as_text(v)
    w = None if columns.w is None else batch.column(columns.w)
    needed = (u, v) if options.rows.second_may_be_empty else (u, v, w)
    missing = [array for array in needed if array is not None and array.null_count > 0]
    bad: NDArray[np.bool_] | None = None
    if missing:
        bad = np.zeros(batch.num_rows, dtype=bool)
        for array in missing:
            bad |= array.is_null().to_numpy(zero_copy_only=False)
    weights = None if w is None else take_weights(w, source, columns)
    id_type = options.id_type or kind
    a, u_reason, u_bad = take_ids(u, id_type)
    b, v_reason, v_bad = take_ids(v, id_type)
    reason = "a node id or weight is missing"
    wrong = join_masks(u_bad, v_bad)
    if wrong is not None:
        if bad is None or int(np.argmax(wrong)) < int(np.argmax(bad)):
            reason = u_reason if u_bad is not None and u_bad[np.argmax(wrong)] else v_reason
        bad = wrong if bad is None else bad | wrong
    times = None
    if rule is not None and columns.t is not None:
        array = batch.column(columns.t)
        values = take_times(array, source, columns)
        times = rule.take(source, values, lambda at: array[at].as_py())
    return drop_bad(source, options, row, a, b, weights, bad, reason, times)


def as_text(array: Any) -> Any:
    """Return labels as strings, nulls as empty ones."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string()).fill_null("")


def take_ids(array: Any, id_type: str | None) -> tuple[Ids, str, NDArray[np.bool_] | None]:
    """Return ids, with any value for bad ones; what is wrong with those; which are bad."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), "", None
    bad, why = None, ""
    if pa.types.is_floating(array.type):
        array, bad, why = _whole(array)
    is_integer = pa.types.is_integer(array.type)
    if array.null_count > 0:
        array = array.fill_null(0 if is_integer else "")
    if not is_integer:
        array.validate(full=True)  # Parquet does not check UTF-8
        return ids_from_arrow(array).ids, "", None
    if id_type == "string":
        return ids_from_arrow(array.cast(pa.large_string())).ids, why, bad
    integers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    if integers.dtype != np.uint64:
        narrow = integers.dtype in (np.int32, np.int64)
        return integers if narrow else integers.astype(np.int64), why, bad
    large = integers > np.uint64(2**63 - 1)
    why = "a node id does not fit int64"
    return integers.astype(np.int64), why, large if large.any() else None


def _whole(array: Any) -> tuple[Any, NDArray[np.bool_] | None, str]:
    """Return floats as integers, with any value for bad ones; which are bad, and why."""
    import pyarrow as pa

    floats: NDArray[Any] = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bad = ~((np.abs(floats) <= EXACT) & (floats == np.floor(floats)))
    why = ""
    if bad.any():
        first = floats[np.argmax(bad)]
        why = "a node id is missing"
        if not np.isnan(first):
            why = f"node ids must be whole numbers (at most 2**53 if they are floats), got {first}"
    return pa.array(np.where(bad, 0, floats).astype(np.int64)), bad if bad.any() else None, why


def take_weights(array: Any, source: str, columns: Columns) -> NDArray[Any]:
    """Return weights, with 1 for nulls."""
    import pyarrow as pa

    types = pa.types
    kind = array.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        refuse_source(
            source, f"weights must be numbers, but {columns.name(columns.w)} has type {kind}"
        )
    if not (types.is_float32(kind) or types.is_float64(kind)):
        array = array.cast(pa.float64(), safe=False)
    if array.null_count > 0:
        array = array.fill_null(1.0)
    weights: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return weights


def take_times(array: Any, source: str, columns: Columns) -> NDArray[Any] | Strings:
    """Return times as numbers, dates or texts, with NaN, NaT or an empty text for nulls."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_date(kind):
        array = array.cast(pa.timestamp("s" if types.is_date32(kind) else "ms"))
        kind = array.type
    if types.is_timestamp(kind):
        ticks = array.cast(pa.int64())
        if ticks.null_count > 0:
            ticks = ticks.fill_null(np.iinfo(np.int64).min)  # NaT
        dates: NDArray[Any] = ticks.to_numpy(zero_copy_only=False).view(f"M8[{kind.unit}]")
        return dates
    if types.is_integer(kind) or types.is_floating(kind):
        if array.null_count > 0:
            array = array.cast(pa.float64(), safe=False).fill_null(np.nan)
        numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return numbers
    is_text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    if is_text or types.is_decimal(kind):
        texts = array.cast(pa.large_string()).fill_null("")
        found = ids_from_arrow(texts).ids
        assert isinstance(found, Strings)
        return found
    refuse_source(
        source,
        f"times must be numbers or dates, but {columns.name(columns.t)} has type {kind}; cast it, "
        f"or name another column with time",
    )
