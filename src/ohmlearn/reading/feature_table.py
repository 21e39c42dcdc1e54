"""Tables of features in files: which column has the ids, and the columns as tables of pyarrow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputError, InputTypeError, Param
from ohmlearn.reading.byte_blocks import ByteSource
from ohmlearn.reading.column_headings import find_ends, is_id
from ohmlearn.reading.file_names import check_one_format, find_files, find_format
from ohmlearn.reading.label_table import NUMBER
from ohmlearn.reading.read_options import EDGE_ENDS
from ohmlearn.reading.remote import is_remote, open_remote
from ohmlearn.reading.source_errors import reading, refuse_source, shorten
from ohmlearn.reading.text_table import read_text_table

__all__ = ["NODES", "Column", "FeatureTable", "find_columns", "read_feature_table"]

Column = str | int
NODES = ("node", "node_id", "id")  # usual headings of the column of ids, in lower case
INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name
# Texts that mean a missing value, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>")
FORMATS = {
    "csv": "CSV",
    "tsv": "TSV",
    "text": "CSV",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
}


class FeatureTable(NamedTuple):
    """The columns of files."""

    table: Any  # of pyarrow
    node: str  # the column of ids
    first_row: int  # number of the first row, for messages


class Wanted(NamedTuple):
    """What was asked for."""

    node_col: Column | None
    columns: Sequence[str] | None
    hint: str | None  # what the ids of the labels are called


class Found(NamedTuple):
    """What the columns of a table are."""

    node: str
    features: list[str]


def read_feature_table(
    path: str | os.PathLike[str],
    node_col: Column | None = None,
    columns: Sequence[str] | None = None,
    hint: str | None = None,
) -> FeatureTable:
    """Read the columns of one file or of several; see `read_features`.

    A column called as `hint` has the ids if no column has a usual name.
    """
    require_extra("pyarrow", "files")
    name, wanted = os.fspath(path), Wanted(node_col, columns, hint)
    files = find_files(name)
    if len(files) > 1:
        check_one_format(name, files, None, None)
    kind = find_format(files[0])
    if kind not in READERS:
        refuse_source(
            name,
            f"features in the format {kind} cannot be read; use Parquet, CSV, JSON lines or Arrow",
        )
    tables = []
    for file in files:
        with reading(file, FORMATS[kind]):
            table, node = READERS[kind](file, wanted)
            table.validate(full=True)  # Parquet does not check UTF-8
        tables.append(table)
    table = tables[0] if len(tables) == 1 else _concatenate(name, files, tables)
    first_row = 2 if kind in ("csv", "tsv", "text") and len(files) == 1 else 1
    return FeatureTable(table, node, first_row)


def find_columns(
    schema: Any,
    source: str,
    node_col: Column | None,
    columns: Sequence[str] | None,
    hint: str | None = None,
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
    index = index if index in names else None
    node = find_node_column(names, source, node_col, index, hint)
    if columns is None:
        chosen = [name for name in names if name != node and name and not INDEX.fullmatch(name)]
        return Found(node, chosen)
    if isinstance(columns, str) or not columns:
        raise InputError(f"{Param('columns')} must be a list of names of columns, got {columns!r}")
    for name in columns:
        if name not in names:
            refuse_source(source, f"has no column {name!r}; {_list_columns(names)}")
        if name == node:
            refuse_source(source, f"{name!r} is the column of ids; it cannot be a feature, too")
    return Found(node, list(dict.fromkeys(columns)))


def find_node_column(
    names: list[str],
    source: str,
    node_col: Column | None,
    index: str | None = None,
    hint: str | None = None,
) -> str:
    """Return the name of the column of ids.

    That is the one asked for, else the `index` of pandas if it has a name, else a column called
    node, node_id or id, else the one called as the ids of the labels (`hint`), else the other
    `index`, else the only column with a name such as user_id.

    Examples
    --------
    >>> find_node_column(["age", "Node_ID"], "people.csv", None)
    'Node_ID'
    >>> find_node_column(["package", "svd1", "svd2"], "packages.csv", None, hint="Package")
    'package'
    >>> find_node_column(["age", "city"], "people.csv", None)
    Traceback (most recent call last):
    ...
    ohmlearn.reading.SourceError: people.csv: no column is called node, node_id or id; name the one
    with the ids in node_col; the columns are 'age', 'city'
    """
    if node_col is not None:
        if isinstance(node_col, bool) or not isinstance(node_col, str | int):
            raise InputTypeError(
                f"{Param('node_col')} must be a name or a position of a column, got {node_col!r}"
            )
        if isinstance(node_col, str) and node_col in names:
            return node_col
        if isinstance(node_col, int) and 0 <= node_col < len(names):
            return names[node_col]
        refuse_source(source, f"has no column {node_col!r}; {_list_columns(names)}")
    if index is not None and not INDEX.fullmatch(index):
        return index
    simple = [name.strip().lower() for name in names]
    usual = (*NODES, hint.strip().lower()) if hint is not None else NODES
    named = next((names[simple.index(name)] for name in usual if name in simple), index)
    if named is not None:
        return named
    # Columns that are numbered, such as svd1 and svd2, are features.
    ends = find_ends([name for name in names if not name[-1:].isdigit()], EDGE_ENDS)
    if ends is not None:
        u, v = ([name for name in names if not name[-1:].isdigit()][at] for at in ends)
        refuse_source(
            source,
            f"the columns {u!r} and {v!r} seem to be the ends of edges, not features of nodes; are "
            f"the files swapped? If not, name the column with the ids in {Param('node_col')}",
        )
    known = [name for name in names if is_id(name)]
    if len(known) == 1:
        return known[0]
    refuse_source(
        source,
        f"no column is called node, node_id or id; name the one with the ids in "
        f"{Param('node_col')}; {_list_columns(names)}",
    )


def _list_columns(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"the columns are {shown}{', ...' if len(names) > 20 else ''}"


def _concatenate(name: str, files: list[str], tables: list[Any]) -> Any:
    """Return the rows of several files; types of columns may differ in what Arrow can unify."""
    import pyarrow as pa

    first = tables[0].column_names
    for file, table in zip(files, tables, strict=True):
        if table.column_names != first:
            refuse_source(file, f"has other columns than {files[0]}: {table.column_names}")
    with reading(name, "files with the same columns"):
        return pa.concat_tables(tables, promote_options="permissive")


Read = tuple[Any, str]  # a table, and the name of its column of ids


def _read_parquet(path: str, wanted: Wanted) -> Read:
    parquet = require_extra("pyarrow.parquet", "files")
    with _open(path) as file:
        found = find_columns(parquet.read_schema(file), path, *wanted)
        file.seek(0)
        return parquet.ParquetFile(file).read([found.node, *found.features]), found.node


def _read_arrow(path: str, wanted: Wanted) -> Read:
    import pyarrow as pa

    with _open(path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).read_all()
    return _select(table, path, wanted)


def _select(table: Any, path: str, wanted: Wanted) -> Read:
    found = find_columns(table.schema, path, *wanted)
    return table.select([found.node, *found.features]), found.node


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """Open a file that can be sought."""
    import pyarrow as pa

    if is_remote(path):
        with open_remote(path) as remote, pa.PythonFile(remote, mode="r") as file:
            yield file
    else:
        with pa.OSFile(path) as file:
            yield file


def _read_json(path: str, wanted: Wanted) -> Read:
    json = require_extra("pyarrow.json", "files")
    with ByteSource(path) as source:
        if not source.file.read(1):
            refuse_source(path, "is empty: there is no row with features")
    with ByteSource(path) as source:
        # Types of columns are those of the first block, so it is large.
        table = json.read_json(source.file, json.ReadOptions(block_size=1 << 24))
    return _select(table, path, wanted)


def _read_text(path: str, wanted: Wanted) -> Read:
    """Read a table with a header; ids are read as strings, so that 007 stays as it is."""
    import pyarrow as pa

    pc = require_extra("pyarrow.compute", "files")
    style = "tsv" if find_format(path) == "tsv" else "csv"
    found = Found("", [])

    def choose(names: list[str], first: bytes) -> list[str]:
        nonlocal found
        _check_heading(path, names, first, wanted)
        schema = pa.schema([(name, pa.string()) for name in names])
        found = find_columns(schema, path, *wanted)
        return [found.node, *found.features]

    table = read_text_table(path, style, "features", choose).to_arrow()
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            refuse_source(
                path, f"the column {name!r} is not UTF-8; convert the file, for example with iconv"
            )
        simple = pc.utf8_trim_whitespace(column)
        if name == found.node:
            known = pc.if_else(pc.equal(simple, ""), None, column)
        else:
            missing = pc.is_in(pc.utf8_lower(simple), pa.array(MISSING, pa.large_string()))
            known = _as_values(pc.if_else(missing, None, column))
        table = table.set_column(at, name, known)
    return table, found.node


def _as_values(texts: Any) -> Any:
    """Return a column of texts as numbers, truth values or dates, if all of them are.

    Examples
    --------
    >>> import pyarrow
    >>> for texts in (["1", "2.5"], ["true", None], ["2026-03-31"], ["1", "x"]):
    ...     print(_as_values(pyarrow.chunked_array([texts])).type)
    double
    bool
    date32[day]
    string
    """
    import pyarrow as pa

    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    for kind in (
        pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns"),
        pa.timestamp("ns", "UTC"), pa.float64(),
    ):  # fmt: skip
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return texts


def _check_heading(path: str, names: list[str], first: bytes, wanted: Wanted) -> None:
    """Refuse a text whose first record does not name the columns."""
    text = shorten(first.decode(errors="replace"))
    if len(names) == 1:
        refuse_source(path, f"the first line, {text}, has one column; is it CSV with a header?")
    is_named = isinstance(wanted.node_col, str) or any(
        name.strip().lower() in (*NODES, wanted.hint) or is_id(name) for name in names
    )
    numbers = [name.strip() for name in names if NUMBER.fullmatch(name.strip())]
    if len(numbers) == len(names) or (not is_named and not _are_counted(numbers)):
        refuse_source(path, f"the first line, {text}, must be a header with the names of columns")


def _are_counted(numbers: list[str]) -> bool:
    """Whether numbers may be the names of columns, such as 0, 1, 2; others are values.

    Examples
    --------
    >>> _are_counted(["0", "1", "2"]), _are_counted(["30"]), _are_counted(["0.5", "1.5"])
    (True, False, False)
    """
    starts = (range(first, first + len(numbers)) for first in (0, 1))
    return any(numbers == [str(number) for number in counted] for counted in starts)


READERS: dict[str, Callable[[str, Wanted], Read]] = {
    "csv": _read_text,
    "tsv": _read_text,
    "text": _read_text,
    "jsonl": _read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
