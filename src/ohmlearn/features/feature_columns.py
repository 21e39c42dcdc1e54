"""Which column of a table has the ids of nodes, and which ones are features."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.edge_arrays import library_of
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputTypeError, Param, Place
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import FractionError, Ids, Strings, decode_strings, read_ids
from ohmlearn.reading.arrow_objects import read_whole
from ohmlearn.reading.column_headings import find_ends, is_id
from ohmlearn.reading.read_options import EDGE_ENDS
from ohmlearn.reading.source_errors import SourceError, refuse_source, shorten, show_name

__all__ = [
    "NODES",
    "Column",
    "Found",
    "as_array",
    "as_arrow",
    "check_different",
    "check_same_columns",
    "find_columns",
    "find_node_column",
    "take_ids",
]

NODES = ("node", "node_id", "id")  # usual headings of the column of ids, in lower case
INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name
Column = str | int
MOST_SHOWN = 5  # names in a message


class Found(NamedTuple):
    """What the columns of a table are."""

    node: str
    features: list[str]


def as_arrow(table: Any, source: str, columns: Sequence[str] | None = None) -> Any:
    """Return a table as one of pyarrow; the index of a pandas frame becomes a column if it has ids.

    If only some `columns` are used, others may have values that Arrow cannot hold.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [30, 40]}, index=pandas.Index(["ann", "bob"], name="who"))
    >>> as_arrow(frame, "the DataFrame").column_names
    ['who', 'age']
    """
    require_extra("pyarrow", "files")
    if library_of(table) == "pandas":
        return _from_pandas(table, source, columns)
    return read_whole(table)


def _from_pandas(frame: Any, source: str, wanted: Sequence[str] | None) -> Any:
    """Return a data frame as a table, column by column, so that a message can name the column."""
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, at] for at in range(len(names))]
    index = frame.index
    if index.nlevels > 1:
        refuse_source(
            source, "has an index of several columns; use reset_index() and name the column of ids"
        )
    has_name = index.name is not None
    is_usual = not has_name and any(name.strip().lower() in NODES for name in names)
    if not is_usual and (has_name or not _is_default(index)):
        name = str(index.name) if has_name else "__index_level_0__"
        if name in names:  # as after groupby(..., as_index=True) and a copy of the column
            refuse_source(source, f"the index and a column are both called {name!r}; rename one")
        names.insert(0, name)
        columns.insert(0, index.to_series())
    arrays = []
    for name, column in zip(names, columns, strict=True):
        is_optional = wanted is not None and name not in wanted
        arrays.append(_column_from_pandas(name, column, source, is_optional))
    table = pa.Table.from_arrays(arrays, names=names)
    if len(names) > len(frame.columns):
        meta = json.dumps({"index_columns": [names[0]]})
        table = table.replace_schema_metadata({"pandas": meta})
    return table


def _is_default(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _column_from_pandas(name: str, column: Any, source: str, is_optional: bool) -> Any:
    import pyarrow as pa

    if type(column.dtype).__name__ == "SparseDtype":
        column = column.sparse.to_dense()
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        if is_optional:
            return pa.nulls(len(column))
        values = column.tolist()
        first, at = _find_other_type(values)
        if at is None:
            said = " ".join(str(error).split())[:200]
            refuse_source(source, f"the column {name!r} cannot be read: {said}")
        refuse_source(
            source,
            f"the column {name!r} has values of different types, such as {shorten(str(first))} and "
            f"{shorten(str(values[at]))}; make all of them numbers, or all of them texts",
            at,
        )


def _find_other_type(values: list[Any]) -> tuple[Any, int | None]:
    """Return the first known value, and where the first one of another type is.

    Examples
    --------
    >>> _find_other_type([None, 1, 2.5, "x"])
    (1, 3)
    """
    first: Any = None
    for at, value in enumerate(values):
        if value is None or value != value:
            continue
        if first is None:
            first = value
        both_numbers = isinstance(value, int | float) and isinstance(first, int | float)
        if type(value) is not type(first) and not both_numbers:
            return first, at
    return first, None


def find_columns(
    schema: Any, source: str, node_col: Column | None, columns: Sequence[str] | None
) -> Found:
    """Return the name of the column of ids and those of the features.

    Examples
    --------
    >>> import pyarrow
    >>> schema = pyarrow.schema({"age": "int64", "id": "string", "city": "string"})
    >>> find_columns(schema, "people.csv", None, None)
    Found(node='id', features=['age', 'city'])
    """
    names = schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse_source(source, f"two columns have the same name, {twice!r}")
    meta = (schema.metadata or {}).get(b"pandas")
    indices = json.loads(meta).get("index_columns", []) if meta else []
    index = indices[0] if len(indices) == 1 and isinstance(indices[0], str) else None
    node = find_node_column(names, source, node_col, index if index in names else None)
    if columns is None:
        chosen = [name for name in names if name != node and name and not INDEX.fullmatch(name)]
        return Found(node, chosen)
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns must be a list of names of columns, got {columns!r}")
    for name in columns:
        if name not in names:
            refuse_source(source, f"has no column {name!r}; {_list_columns(names)}")
        if name == node:
            refuse_source(source, f"{name!r} is the column of ids; it cannot be a feature, too")
    return Found(node, list(dict.fromkeys(columns)))


class NoNodeColumn(SourceError):
    """None of the columns has a usual name of ids; `columns` has their names."""

    def __init__(self, source: str, columns: list[str]) -> None:
        super().__init__(
            f"no column is called node, node_id or id; name the one with the ids in "
            f"{Param('node_col')}; {_list_columns(columns)}",
            place=Place(show_name(source)),
        )
        self.columns = columns


def find_node_column(
    names: list[str], source: str, node_col: Column | None, index: str | None = None
) -> str:
    """Return the name of the column of ids.

    That is the one asked for, else the `index` of pandas if it has a name, else a column called
    node, node_id or id, else the other `index`, else the only column with a name such as user_id.

    Examples
    --------
    >>> find_node_column(["age", "Node_ID"], "people.csv", None)
    'Node_ID'
    >>> find_node_column(["age", "city"], "people.csv", None)
    Traceback (most recent call last):
    ...
    ohmlearn.features.feature_columns.NoNodeColumn: people.csv: no column is called node, node_id or
    id; name the one with the ids in node_col; the columns are 'age', 'city'
    """
    if node_col is not None:
        if isinstance(node_col, bool) or not isinstance(node_col, str | int):
            must = "must be a name or a position of a column"
            raise InputTypeError(f"{Param('node_col')} {must}, got {node_col!r}", value=node_col)
        if isinstance(node_col, str) and node_col in names:
            return node_col
        if isinstance(node_col, int) and 0 <= node_col < len(names):
            return names[node_col]
        refuse_source(source, f"has no column {node_col!r}; {_list_columns(names)}")
    if index is not None and not INDEX.fullmatch(index):
        return index
    simple = [name.strip().lower() for name in names]
    usual = next((names[simple.index(name)] for name in NODES if name in simple), None)
    if usual is not None:
        return usual
    if index is not None:
        return index
    ends = find_ends(names, EDGE_ENDS)
    if ends is not None:
        u, v = (names[at] for at in ends)
        refuse_source(
            source,
            f"the columns {u!r} and {v!r} seem to be the ends of edges, not features of nodes; are "
            f"the files swapped? If not, name the column with the ids in {Param('node_col')}",
        )
    known = [name for name in names if is_id(name)]
    if len(known) == 1:
        return known[0]
    raise NoNodeColumn(source, names)


def _list_columns(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"the columns are {shown}{', ...' if len(names) > 20 else ''}"


def check_same_columns(
    known: list[str] | None, n_known: int, names: list[str] | None, n_columns: int
) -> None:
    """Refuse features whose columns are not the known ones; the names of either may be unknown.

    Examples
    --------
    >>> check_same_columns(["age", "city=Bern"], 2, ["age", "city=Rome"], 2)
    Traceback (most recent call last):
    ...
    ValueError: X must have the columns of the fit, but 'city=Bern' is missing and 'city=Rome' is
    new; encode the rows of the fit and these in one table, with NodeFeatures.from_table
    """
    remedy = "encode the rows of the fit and these in one table, with NodeFeatures.from_table"
    if known is not None and names is not None and known != names:
        missing = [name for name in known if name not in set(names)]
        new = [name for name in names if name not in set(known)]
        said = []
        if missing:
            said.append(f"{_list_some(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        if new:
            said.append(f"{_list_some(new)} {'is' if len(new) == 1 else 'are'} new")
        if not said:
            said, remedy = ["they have another order"], f"the order of the fit is {known}"
        raise ValueError(f"X must have the columns of the fit, but {' and '.join(said)}; {remedy}")
    if n_columns != n_known:
        raise ValueError(f"X has {n_columns} features, but the fit had {n_known}; {remedy}")


def _list_some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:MOST_SHOWN]))
    return shown + (f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else "")


def take_ids(column: Any, name: str, source: str, first_row: int) -> NDArray[Any]:
    """Return ids as integers or strings; a missing one, and one that occurs twice, are refused."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    if not (is_text or is_number or str(kind) == "string_view"):
        refuse_source(
            source,
            f"ids must be integers or strings, but the column {name!r} has the type {kind}; name "
            f"another one in {Param('node_col')}",
        )
    if str(kind) == "string_view":
        column = column.cast(pa.large_string())
    try:
        ids, missing = read_ids(column, name)
    except FractionError as error:
        refuse_source(
            source,
            f"the ids in the column {name!r} must be {error.wanted}",
            first_row + error.at,
        )
    if missing is not None and missing.any():
        refuse_source(
            source,
            f"the id in the column {name!r} is missing; leave the row out",
            first_row + int(np.argmax(missing)),
        )
    check_different(ids, source, first_row)
    return as_array(ids)


def as_array(ids: Ids) -> NDArray[Any]:
    """Return ids as an array of int64 or of strings.

    Examples
    --------
    >>> as_array(np.array([7, 8], dtype=np.int32)).dtype
    dtype('int64')
    """
    return decode_strings(ids) if isinstance(ids, Strings) else ids.astype(np.int64, copy=False)


def check_different(ids: Any, source: str, first_row: int = 0) -> None:
    """Refuse an id that occurs twice.

    Examples
    --------
    >>> check_different(np.array([7, 8, 7]), "people.csv")
    Traceback (most recent call last):
    ...
    ohmlearn.reading.SourceError: people.csv: the id 7 is in the rows 0 and 2; a node has one row
    """
    table = NodeTable()
    numbers = table.add(ids)
    if len(table) == len(numbers):
        return
    later = int(np.argmax(numbers != np.arange(len(numbers))))
    first = int(np.argmax(numbers == numbers[later]))
    node = table.ids(numbers[[later]]).tolist()[0]
    refuse_source(
        source,
        f"the id {node!r} is in the rows {first_row + first} and {first_row + later}; a node has "
        f"one row",
    )
