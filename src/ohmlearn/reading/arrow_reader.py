"""Edges from record batches of Arrow: IPC and Feather files, pipes, and tables of other libraries.

Of a table, be it of pyarrow, pandas, polars, DuckDB or others, only the columns of edges and of
``where`` are asked for, so that a library reads no others from its files, and a column that Arrow
cannot hold does no harm.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.edge_arrays import library_of
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import Param
from ohmlearn.nodes.node_ids import EXACT, CodedIds, Ids, Strings, ids_from_arrow
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample
from ohmlearn.reading.event_ids import NONE, hash_array
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import open_remote
from ohmlearn.reading.source_errors import BadRows, reading, refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source

# Rows in a batch. With a power of two, pyarrow would fill a buffer of that size, read a little
# further, double and copy the buffer, and copy it again to cut it to size.
ROWS = 3 << 15
QUERIES = ("dataset", "relation", "lazy frame", "iceberg")  # whose columns are chosen first
LOOK = 100  # rows of a data frame that show the types of its columns


class Found(NamedTuple):
    """A record batch with the columns that are needed, or with all."""

    columns: ColumnChoice  # their positions in it
    batch: Any
    row: int  # number of its first row
    fraction: float | None = None  # of the source that has been read with it


class ArrowSource(Source):
    """A source with a schema and record batches."""

    format = "Arrow"
    has_rows = True

    @abstractmethod
    def _read(self) -> Iterator[Found]:
        """Yield record batches."""

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Yield the columns of edges of each record batch."""
        yield from self._convert(self._read(), kind)

    def _number(
        self, columns: ColumnChoice, batches: Iterable[Any], n_batches: int | None = None
    ) -> Iterator[Found]:
        """Yield the record batches of the whole source."""
        row = 0
        for number, batch in enumerate(batches, 1):
            fraction = number / n_batches if n_batches else None
            yield Found(columns, batch, row, fraction)
            row += batch.num_rows

    def _convert(self, batches: Iterator[Found], kind: str | None) -> Iterator[RawBatch]:
        """Yield the columns of edges of some record batches, as `_read` yields them."""
        while True:
            with reading(self.name, self.format):
                found = next(batches, None)
                if found is None:
                    break
                raw = self.complete(self._take(found, kind))
            yield raw._replace(fraction=found.fraction)

    def _take(self, found: Found, kind: str | None) -> RawBatch:
        """Return the edges of a record batch that count."""
        columns, batch, row = found.columns, found.batch, found.row + self.first_row
        rows: int | NDArray[np.int64] = row
        counted: tuple[int, str | None] = 0, None
        if self.condition is not None:
            names = batch.schema.names
            values = {x: as_plain(batch.column(names.index(x))) for x in self.condition.columns}
            kept, bad = self.condition.keep(values, batch.num_rows)
            if bad is not None:
                counted = self.refuse_or_count(bad, row)
            if not kept.all():
                import pyarrow as pa

                # Arrow cannot choose rows of views of strings.
                arrays = [as_plain(batch.column(at)).filter(pa.array(kept)) for at in columns.used]
                columns = columns.alone()
                batch = pa.record_batch(arrays, names=columns.names)
                rows = row + np.flatnonzero(kept)
        return take_record_batch(self, batch, columns, kind, rows).with_bad(*counted)

    def _choose(self, schema: Any) -> ColumnChoice:
        names, values = schema.names, look_at_types(schema.types)
        columns = self.choose(names, len(names), values)
        ends = (columns.u,) if self.options.rows.second_may_be_empty else (columns.u, columns.v)
        for at in ends:
            check_id_type(schema.field(at).type, self.name, columns.name(at))
        return columns

    def _project(self, chosen: ColumnChoice) -> tuple[ColumnChoice, list[str]]:
        """Return the names of the columns to read, and the positions of the edges in those."""
        names = list(chosen.names or ())
        if len(set(names)) < len(names):
            refuse_source(self.name, "two columns have the same name")
        alone = chosen.alone()
        used = list(alone.names or ())
        more = [] if self.condition is None else self.condition.columns
        wanted = [*used, *(name for name in more if name not in used)]
        return alone._replace(names=wanted), wanted


class ArrowFile(ArrowSource):
    """An Arrow IPC file, also known as Feather, or a file or pipe with an IPC stream."""

    format = "Arrow IPC"
    reads_files = True

    def inspect(self) -> None:
        """Read the schema."""
        if self.pipe is None:
            with self.open_reader() as reader:
                self._choose(reader.schema)

    @contextmanager
    def open_reader(self, *, copies: bool = False) -> Iterator[Any]:
        """Open the file or the pipe; batches refer to a file on this machine or are copies."""
        pa = require_extra("pyarrow", "files")
        with reading(self.name, self.format), ExitStack() as stack:
            if self.pipe is not None:
                yield pa.ipc.open_stream(stack.enter_context(self.open()).file)
                return
            if self.is_remote:
                opened = open_remote(self.name, self.options.filesystem, in_parts=True)
                file = stack.enter_context(opened).native
            else:
                file = stack.enter_context((pa.OSFile if copies else pa.memory_map)(self.name))
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            yield pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)

    def _read(self) -> Iterator[Found]:
        with self.open_reader() as reader:
            columns = self._choose(reader.schema)
            if self.condition is not None and self.condition.excludes_all():
                return
            count = getattr(reader, "num_record_batches", None)  # a stream does not say it
            batches = reader if count is None else map(reader.get_batch, range(count))
            yield from self._number(columns, _validate(batches), count)


def read_whole(table: Any) -> Any:
    """Return all rows and columns of a table as a table of pyarrow.

    Examples
    --------
    >>> import polars
    >>> read_whole(polars.DataFrame({"node": [1, 2], "age": [30, 40]})).column_names
    ['node', 'age']
    """
    table, kind, _ = pin(table)
    if kind in ("dataset", "scanner"):
        return table.to_table()
    if kind == "iceberg":
        return table.to_arrow()
    if kind in ("relation", "connection"):
        return _from_duckdb(table).read_all()
    return _as_reader(table.collect() if kind == "lazy frame" else table).read_all()


def open_delta(path: str) -> object:
    """Return the Delta table in a folder on this machine; None if there is none."""
    if not os.path.isdir(os.path.join(path, "_delta_log")):
        return None
    return require_extra("deltalake", "lake").DeltaTable(path)


def pin(table: Any) -> tuple[Any, str, dict[str, Any]]:
    """Return a table, how it is read, and how it is recognised; Delta and Iceberg as they are now.

    A version of a table has no size and samples of content, as files have, but names.
    """
    kind = library_of(table)
    if kind == "delta":
        name, path = table.table_uri.removeprefix("file://"), table.metadata().id
        version, table, kind = f"version {table.version()}", table.to_pyarrow_dataset(), "dataset"
    elif kind == "iceberg" and hasattr(table, "scan"):  # a scan may be of some rows
        name, path = table.location(), str(table.metadata.table_uuid)
        snapshot = table.current_snapshot()
        version, table = f"snapshot {snapshot and snapshot.snapshot_id}", table.scan()
    else:
        return table, kind, {}
    about = {"name": f"the table {name}", "path": path, "sample": f"{path} {version}"}
    return table, kind, about | {"size": 0, "version": version}


class ArrowObject(ArrowSource):
    """A table: a data frame, a query, a dataset, or another object with ``__arrow_c_stream__``.

    Readers of record batches, scanners and results of DuckDB can be read once. A relation of DuckDB
    and a lazy frame of polars are executed again for each reading.
    """

    first_row = 0

    def __init__(self, table: object, options: ReadOptions) -> None:
        self._table, self._kind, self.version = pin(table)
        name = self.version.get("name", f"the {type(table).__name__}")
        once = self._kind in ("scanner", "connection") or hasattr(self._table, "read_next_batch")
        super().__init__(name, options, rereadable=not once)
        if self._kind in ("dataset", "scanner", "relation", "lazy frame") and options.where:
            self.which_rows = " of those read"

    def inspect(self) -> None:
        """Look at the schema if the object knows it; others would have to run a query."""
        if self._kind in QUERIES:
            self._choose(self._find_schema())
        else:
            pa = require_extra("pyarrow", "files")
            schema = getattr(self._table, "schema", None)
            if isinstance(schema, pa.Schema):
                self._choose(schema)
        if self.options.where is None:
            self.n_edges = getattr(self._table, "num_rows", None)

    def _find_schema(self) -> Any:
        """Return the schema of a query without its rows."""
        if self._kind == "dataset":
            return self._table.schema
        if self._kind == "iceberg":
            return self._table.projection().as_arrow()
        if self._kind == "relation":
            return _from_duckdb(self._table.limit(0)).schema
        return _as_reader(self._table.head(0).collect()).schema

    def _read(self) -> Iterator[Found]:
        for found in self._number(*self._scan()):
            end = found.row + found.batch.num_rows
            yield found._replace(fraction=min(1.0, end / self.n_edges) if self.n_edges else None)

    def _scan(self) -> tuple[ColumnChoice, Iterable[Any]]:
        """Return record batches with the columns that are needed, or with all."""
        table = self._table
        if self._kind in QUERIES:
            schema = self._find_schema()
            columns, wanted = self._project(self._choose(schema))
            return columns, (batch.select(wanted) for batch in self._query(schema, wanted))
        is_frame = self._kind in ("pandas", "polars")
        names = list(table.columns) if is_frame else []
        if is_frame and len(set(names)) == len(names) and all(isinstance(x, str) for x in names):
            columns, wanted = self._project(self._choose(_look_at_frame(table)))
            reader = _as_reader(table[wanted])
            for at in columns.used[: 1 if self.options.rows.second_may_be_empty else 2]:
                check_id_type(reader.schema.field(at).type, self.name, columns.name(at))
            return columns, (batch.select(wanted) for batch in reader)
        if self._kind == "scanner":
            reader = table.to_reader()
        elif self._kind == "connection":
            reader = _from_duckdb(table)
        else:
            reader = _as_reader(table)
        return self._choose(reader.schema), reader

    def _query(self, schema: Any, wanted: list[str]) -> Iterator[Any]:
        """Yield the record batches of a query of some columns."""
        if self._kind == "dataset":
            condition = None if self.condition is None else self.condition.as_expression(schema)
            how = {"batch_size": ROWS, "batch_readahead": 2, "fragment_readahead": 1}
            yield from self._table.scanner(columns=wanted, filter=condition, **how).to_batches()
        elif self._kind == "relation":
            names = (name.replace('"', '""') for name in wanted)
            query = self._table.project(", ".join(f'"{name}"' for name in names))
            yield from _from_duckdb(query)
        elif self._kind == "iceberg":
            yield from self._table.select(*wanted).to_arrow_batch_reader()
        else:
            query = self._table.select(wanted)
            for frame in _stream(query):
                yield from _as_reader(frame)


def _stream(query: Any) -> Iterator[Any]:
    """Yield the rows of a lazy frame of polars as data frames.

    Until 1.36, `collect_batches` ends early when a query fails, and loses the error: the columns
    must then fit in memory.
    """
    import polars

    if tuple(map(int, polars.__version__.split(".")[:2])) < (1, 37):
        yield from query.collect().iter_slices(ROWS)
    else:
        yield from query.collect_batches(chunk_size=ROWS, maintain_order=True, lazy=True)


def _look_at_frame(frame: Any) -> Any:
    """Return the schema of a data frame; a column that Arrow cannot hold has the type binary."""
    pa = require_extra("pyarrow", "files")
    fields = []
    for name in frame.columns:
        try:
            fields.append(_as_reader(frame[:LOOK][[name]]).schema.field(name))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
            fields.append(pa.field(name, pa.binary()))
    return pa.schema(fields)


def _from_duckdb(query: Any) -> Any:
    """Return a reader of record batches; its method has had two names."""
    name = "to_arrow_reader" if hasattr(query, "to_arrow_reader") else "fetch_record_batch"
    with warnings.catch_warnings():  # DuckDB would copy less of a relation
        warnings.simplefilter("ignore", UserWarning)
        return getattr(query, name)(ROWS)


def _as_reader(table: Any) -> Any:
    pa = require_extra("pyarrow", "files")
    if isinstance(table, pa.Table):  # exporting short views of strings crashes pyarrow < 25
        return table.to_reader()
    return pa.RecordBatchReader.from_stream(table)


def _validate(batches: Iterable[Any]) -> Iterator[Any]:
    """Check the buffers of record batches, which may be wrong in damaged files."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def look_at_types(types: list[Any]) -> ColumnSample:
    """Return which columns are not ends, by their types."""
    import pyarrow.types as t

    return ColumnSample(
        times={at for at, kind in enumerate(types) if t.is_temporal(kind)},
        floats={at for at, kind in enumerate(types) if t.is_floating(kind) or t.is_decimal(kind)},
        numbers={at for at, kind in enumerate(types) if t.is_integer(kind)},
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
        f"cast it, or name other columns with {Param('source_col')} and {Param('target_col')}",
    )


def take_record_batch(
    source: Source,
    batch: Any,
    columns: ColumnChoice,
    kind: str | None,
    rows: int | NDArray[np.int64],
) -> RawBatch:
    """Return ids, weights and times of a record batch; see `Source.refuse_or_count` for `rows`."""
    u, v = batch.column(columns.u), batch.column(columns.v)
    rule, may_be_empty = source.own_times, source.options.rows.second_may_be_empty
    if may_be_empty:
        v = as_text(v)
    bad = [_find_missing(u, "node id", columns.name(columns.u))]
    bad.append(_find_missing(v, "node id", columns.name(columns.v)))
    id_type = source.options.id_type or kind
    a, u_bad = take_ids(u, id_type, source.keeps_codes)
    b, v_bad = take_ids(v, id_type, source.keeps_codes)
    bad += [u_bad, v_bad, _find_empty(a, columns.name(columns.u))]
    if not may_be_empty:
        bad.append(_find_empty(b, columns.name(columns.v)))
    w = t = None
    if columns.w is not None:
        w = take_weights(batch.column(columns.w), source.name, columns)
        if not may_be_empty:
            name = columns.name(columns.w)
            bad.append(_find_missing(batch.column(columns.w), "weight", name))
    if rule is not None and columns.t is not None:
        times = take_times(batch.column(columns.t), source.name, columns)
        t, bad_times = rule.take(source.name, times)
        bad.append(bad_times)
    event = None
    if columns.event is not None:
        name = columns.name(columns.event)
        event = hash_array(batch.column(columns.event), source.name, name)
        if (missing := event == NONE).any():
            bad.append(BadRows(missing, lambda _: f"the event id, {name}, is missing"))
    return source.drop_bad(RawBatch(a, b, w, t=t, event=event), bad, rows)


def _find_missing(array: Any, what: str, column: str | None) -> BadRows | None:
    """Return the rows without a value, or with a code for no value."""
    if hasattr(array, "dictionary") and array.dictionary.null_count > 0:
        array = decode(array)
    if array.null_count == 0:
        return None
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return BadRows(mask, lambda _: f"the {what}, {column}, is missing")


def _find_empty(ids: Ids | CodedIds, column: str | None) -> BadRows | None:
    """Return the rows whose id is an empty text."""
    texts = ids.values if isinstance(ids, CodedIds) else ids
    if not isinstance(texts, Strings):
        return None
    mask = texts.offsets[1:] == texts.offsets[:-1]
    if not mask.any():
        return None
    mask = mask[ids.codes] if isinstance(ids, CodedIds) else mask
    return BadRows(mask, lambda _: f"the node id, {column}, is missing") if mask.any() else None


def decode(array: Any) -> Any:
    """Return a column without its dictionary; Arrow cannot take from views of strings."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        return array
    if str(array.type.value_type) == "string_view":
        values = array.dictionary.cast(pa.large_string())
        array = pa.DictionaryArray.from_arrays(array.indices, values)
    return array.dictionary_decode()


def as_plain(array: Any) -> Any:
    """Return a column without a dictionary and without views."""
    import pyarrow as pa

    array = decode(array)
    return array.cast(pa.large_string()) if str(array.type) == "string_view" else array


def as_text(array: Any) -> Any:
    """Return labels as strings, nulls as empty ones."""
    import pyarrow as pa

    return decode(array).cast(pa.large_string()).fill_null("")


def take_ids(
    array: Any, id_type: str | None, keeps_codes: bool = False
) -> tuple[Ids | CodedIds, BadRows | None]:
    """Return ids, with any value for bad and missing ones, and which are bad."""
    import pyarrow as pa

    if keeps_codes and pa.types.is_dictionary(array.type) and (coded := take_codes(array)):
        return coded, None
    array = decode(array)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), None
    bad = None
    if pa.types.is_floating(array.type):
        floats = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        whole, bad = whole_numbers(floats)
        array = pa.array(whole)
    is_integer = pa.types.is_integer(array.type)
    if array.null_count > 0:
        array = array.fill_null(0 if is_integer else "")
    if not is_integer:
        array.validate(full=True)  # Parquet does not check UTF-8
        return ids_from_arrow(array).ids, None
    if id_type == "string":
        return ids_from_arrow(array.cast(pa.large_string())).ids, bad
    integers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    if integers.dtype == np.uint64 and (large := integers > np.uint64(2**63 - 1)).any():
        bad = BadRows(large, lambda _: "a node id does not fit int64")
    narrow = integers.dtype in (np.int32, np.int64)
    return integers if narrow else integers.astype(np.int64), bad


def take_codes(array: Any) -> CodedIds | None:
    """Return strings of a dictionary with their codes; None if they had better be decoded."""
    import pyarrow as pa

    values = array.dictionary
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if not is_text or array.null_count or values.null_count or 2 * len(values) > len(array):
        return None
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # perhaps of a string that no row has
        return None
    found = ids_from_arrow(values).ids
    assert isinstance(found, Strings)
    return CodedIds(found, array.indices.to_numpy(zero_copy_only=False))


def whole_numbers(floats: NDArray[Any]) -> tuple[NDArray[np.int64], BadRows | None]:
    """Return floats as integers, with any value for bad ones, and which are bad."""
    bad = ~((np.abs(floats) <= EXACT) & (floats == np.floor(floats)))

    def explain(at: int) -> str:
        if np.isnan(floats[at]):
            return "a node id is missing"
        wanted = "node ids must be whole numbers (at most 2**53 if they are floats)"
        return f"{wanted}, got {floats[at]}"

    whole: NDArray[np.int64] = np.where(bad, 0, floats).astype(np.int64)
    return whole, BadRows(bad, explain) if bad.any() else None


def take_weights(array: Any, source: str, columns: ColumnChoice) -> NDArray[Any]:
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
    return np.asarray(array.to_numpy(zero_copy_only=False))


def take_times(array: Any, source: str, columns: ColumnChoice) -> NDArray[Any] | Strings:
    """Return times as numbers, dates or texts, with NaN, NaT or an empty text for nulls."""
    import pyarrow as pa

    types = pa.types
    array = decode(array)
    kind = array.type
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if is_number or types.is_date(kind) or types.is_timestamp(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    is_text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    if is_text or types.is_decimal(kind):
        texts = array.cast(pa.large_string()).fill_null("")
        found = ids_from_arrow(texts).ids
        assert isinstance(found, Strings)
        return found
    refuse_source(
        source,
        f"times must be numbers or dates, but {columns.name(columns.t)} has type {kind}; cast it, "
        f"or name another column with {Param('time')}",
    )
