"""Edges from tables of other libraries: pyarrow, pandas, polars, DuckDB and others.

Only the columns of edges and of ``where`` are asked for, so that a library reads no others from its
files, and a column that Arrow cannot hold does no harm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from ohmlearn.checks.edge_arrays import library_of
from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.arrow_reader import ROWS, ArrowSource, Found, check_id_type
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.read_options import ReadOptions

LOOK = 100  # rows of a data frame that show the types of its columns


def read_whole(table: Any) -> Any:
    """Return all rows and columns of a table as a table of pyarrow.

    Examples
    --------
    >>> import polars
    >>> read_whole(polars.DataFrame({"node": [1, 2], "age": [30, 40]})).column_names
    ['node', 'age']
    """
    kind = library_of(table)
    if kind in ("dataset", "scanner"):
        return table.to_table()
    if kind in ("relation", "connection"):
        return _from_duckdb(table).read_all()
    return _as_reader(table.collect() if kind == "lazy frame" else table).read_all()


class ArrowObject(ArrowSource):
    """A table: a data frame, a query, a dataset, or another object with ``__arrow_c_stream__``.

    Readers of record batches, scanners and results of DuckDB can be read once. A relation of DuckDB
    and a lazy frame of polars are executed again for each reading.
    """

    first_row = 0

    def __init__(self, table: Any, options: ReadOptions) -> None:
        self._kind = library_of(table)
        once = self._kind in ("scanner", "connection") or hasattr(table, "read_next_batch")
        super().__init__(f"the {type(table).__name__}", options, rereadable=not once)
        self._table = table
        if self._kind in ("dataset", "scanner", "relation", "lazy frame") and options.where:
            self.which_rows = " of those read"

    def inspect(self) -> None:
        """Look at the schema if the object knows it; others would have to run a query."""
        if self._kind in ("dataset", "relation", "lazy frame"):
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
        if self._kind in ("dataset", "relation", "lazy frame"):
            schema = self._find_schema()
            columns, wanted = self._project(self._choose(schema))
            return columns, (batch.select(wanted) for batch in self._query(schema, wanted))
        if self._kind in ("pandas", "polars") and _has_names(table):
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
        else:
            query = self._table.select(wanted)
            if hasattr(query, "collect_batches"):
                frames = query.collect_batches(chunk_size=ROWS, maintain_order=True, lazy=True)
            else:  # an old version: the columns of edges must fit in memory
                frames = [query.collect()]
            for frame in frames:
                yield from _as_reader(frame)


def _has_names(frame: Any) -> bool:
    """Whether the columns of a data frame have different names, which are texts."""
    names = list(frame.columns)
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


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
