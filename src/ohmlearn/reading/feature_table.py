"""Tables about nodes: features from files of any format, as tables of pyarrow; and columns of text.

Text is read by the reader of edges, so quotes, comments and delimiters mean the same, and without
pyarrow; every other format by pyarrow.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputError, InputTypeError, Param
from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.reading.arrow_reader import ArrowFile, open_delta, read_whole
from ohmlearn.reading.byte_blocks import ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice, find_ends, is_id
from ohmlearn.reading.csv_reader import describe_fault, start_text, take_columns
from ohmlearn.reading.file_names import check_one_format, find_files, find_format
from ohmlearn.reading.label_table import NUMBER
from ohmlearn.reading.parquet_reader import ParquetFile
from ohmlearn.reading.read_options import EDGE_ENDS, ReadOptions
from ohmlearn.reading.source_errors import reading, refuse_source, shorten

Column = str | int
NODES = ("node", "node_id", "id")  # usual headings of the column of ids, in lower case
INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name
# Texts that mean a missing value, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>")
TEXTS = ("csv", "tsv", "text")


class Wanted(NamedTuple):
    """Which columns are asked for."""

    node_col: Column | None
    columns: Sequence[str] | None
    hint: str | None  # what the ids of the labels are called


def read_feature_table(
    path: str | os.PathLike[str],
    node_col: Column | None = None,
    columns: Sequence[str] | None = None,
    hint: str | None = None,
) -> tuple[Any, int]:
    """Read the columns of one file or of several; see `read_features`.

    A column called as `hint` has the ids if no column has a usual name. Returns a table of pyarrow,
    whose first column has the ids, and the number of its first row, for messages.
    """
    pa = require_extra("pyarrow", "files")
    name = os.fspath(path)
    if (delta := open_delta(name)) is not None:
        table = read_whole(delta)
        return table.select(find_columns(table.schema, name, node_col, columns, hint)), 1
    files = find_files(name)
    if len(files) > 1:
        check_one_format(name, files, None, None)
    kind = find_format(files[0])
    if kind not in READERS:
        refuse_source(
            name,
            f"features in the format {kind} cannot be read; use Parquet, CSV, JSON lines or Arrow",
        )
    what, read = READERS[kind]
    tables: list[Any] = []
    for file in files:
        with reading(file, what):
            table = read(file, Wanted(node_col, columns, hint))
            table.validate(full=True)  # Parquet does not check UTF-8
        if tables and table.column_names != tables[0].column_names:
            refuse_source(file, f"has other columns than {files[0]}: {table.column_names}")
        tables.append(table)
    if len(files) == 1:
        return tables[0], 2 if kind in TEXTS else 1
    with reading(name, "files with the same columns"):  # types may differ in what Arrow can unify
        return pa.concat_tables(tables, promote_options="permissive"), 1


def find_columns(
    schema: Any,
    source: str,
    node_col: Column | None,
    columns: Sequence[str] | None,
    hint: str | None = None,
) -> list[str]:
    """Return the name of the column of ids, and then those of the features.

    Examples
    --------
    >>> import pyarrow
    >>> schema = pyarrow.schema({"age": "int64", "id": "string", "city": "string"})
    >>> find_columns(schema, "people.csv", None, None)
    ['id', 'age', 'city']
    """
    names = schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse_source(source, f"two columns have the same name, {twice!r}")
    meta = (schema.metadata or {}).get(b"pandas")
    indices = json.loads(meta).get("index_columns", []) if meta else []
    index = indices[0] if len(indices) == 1 and isinstance(indices[0], str) else None
    node = find_node_column(names, source, node_col, index if index in names else None, hint)
    if columns is None:
        return [node, *(x for x in names if x != node and x and not INDEX.fullmatch(x))]
    if isinstance(columns, str) or not columns:
        raise InputError(f"{Param('columns')} must be a list of names of columns, got {columns!r}")
    for name in columns:
        if name not in names:
            refuse_source(source, f"has no column {name!r}; {_list_columns(names)}")
        if name == node:
            refuse_source(source, f"{name!r} is the column of ids; it cannot be a feature, too")
    return list(dict.fromkeys([node, *columns]))


def find_node_column(
    names: list[str], source: str, node_col: Column | None, index: str | None, hint: str | None
) -> str:
    """Return the name of the column of ids.

    That is the one asked for, else the `index` of pandas if it has a name, else a column called
    node, node_id or id, else the one called as the ids of the labels (`hint`), else the other
    `index`, else the only column with a name such as user_id.
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
    plain = [name for name in names if not name[-1:].isdigit()]
    ends = find_ends(plain, EDGE_ENDS)
    if ends is not None:
        refuse_source(
            source,
            f"the columns {plain[ends[0]]!r} and {plain[ends[1]]!r} seem to be the ends of edges, "
            f"not features of nodes; are the files swapped? If not, name the column with the ids "
            f"in {Param('node_col')}",
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


def _read_parquet(path: str, wanted: Wanted) -> Any:
    source = ParquetFile(path, ReadOptions())
    with source.open_file() as file, source.open_parquet(file) as opened:
        return opened.read(find_columns(opened.schema_arrow, path, *wanted))


def _read_arrow(path: str, wanted: Wanted) -> Any:
    with ArrowFile(path, ReadOptions()).open_reader(copies=True) as reader:
        return reader.read_all().select(find_columns(reader.schema, path, *wanted))


def _read_json(path: str, wanted: Wanted) -> Any:
    json = require_extra("pyarrow.json", "files")
    with ByteSource(path) as source:
        if not source.file.read(1):
            refuse_source(path, "is empty: there is no row with features")
    with ByteSource(path) as source:
        # Types of columns are those of the first block, so it is large.
        table = json.read_json(source.file, json.ReadOptions(block_size=1 << 24))
    return table.select(find_columns(table.schema, path, *wanted))


def _read_text(path: str, wanted: Wanted) -> Any:
    """Read a table with a header; ids are read as strings, so that 007 stays as it is."""
    import pyarrow as pa

    pc = require_extra("pyarrow.compute", "files")

    def choose(names: list[str], first: bytes) -> list[str]:
        _check_heading(path, names, first, wanted)
        schema = pa.schema([(name, pa.string()) for name in names])
        return find_columns(schema, path, *wanted)

    columns: dict[str, Any] = {}
    for name, blocks in read_text_table(path, "features", choose).columns.items():
        parts = [block.to_arrow() for block in blocks]
        column = pa.chunked_array(parts, pa.large_string())
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            refuse_source(
                path, f"the column {name!r} is not UTF-8; convert the file, for example with iconv"
            )
        simple = pc.utf8_trim_whitespace(column)
        if not columns:  # the ids
            columns[name] = pc.if_else(pc.equal(simple, ""), None, column)
        else:
            missing = pc.is_in(pc.utf8_lower(simple), pa.array(MISSING, pa.large_string()))
            columns[name] = as_values(pc.if_else(missing, None, column))
    return pa.table(columns)


def as_values(texts: Any) -> Any:
    """Return a column of texts as numbers, truth values or dates, if all of them are.

    Examples
    --------
    >>> import pyarrow
    >>> for texts in (["1", "2.5"], ["true", None], ["2026-03-31"], ["1", "x"]):
    ...     print(as_values(pyarrow.chunked_array([texts])).type)
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
    # Numbers may be the names of columns if they count, as 0, 1, 2; others are values.
    counted = [[str(at + k) for at in range(len(numbers))] for k in (0, 1)]
    if len(numbers) == len(names) or not (is_named or numbers in counted):
        refuse_source(path, f"the first line, {text}, must be a header with the names of columns")


# What a format is called in messages, and its reader, which puts the column of ids first.
READERS: dict[str, tuple[str, Callable[[str, Wanted], Any]]] = {
    **dict.fromkeys(TEXTS, ("CSV", _read_text)),
    "jsonl": ("JSON lines", _read_json),
    "parquet": ("Parquet", _read_parquet),
    "arrow": ("Arrow IPC", _read_arrow),
}


class TextTable(NamedTuple):
    """Columns of a text."""

    names: list[str]  # of all columns
    columns: dict[str, list[Strings]]  # the chosen ones, in blocks of rows
    lines: NDArray[np.int64]  # number of the first line of each row, from 1


def read_text_table(
    path: str, one: str, choose: Callable[[list[str], bytes], Sequence[str]] | None = None
) -> TextTable:
    """Read a text whose first record names the columns; `one` is a row, in words.

    `choose` returns the names of the columns to read, given all names and the first record. By
    default all columns are read.
    """
    style = "tsv" if find_format(path) == "tsv" else "csv"
    with ByteSource(path) as source:
        blocks = line_blocks(source)
        start = start_text(path, blocks, style, one)
        layout = start.layout
        layout.n_fields = len(start.fields)
        names = [field.decode(errors="replace") for field in start.fields]
        chosen = list(names if choose is None else choose(names, start.first))
        at = [names.index(name) for name in chosen]
        columns: list[list[Strings]] = [[] for _ in at]
        rest, first = start.after_header()
        lines = [np.empty(0, np.int64)]
        for line, _, found in take_columns(chain([rest], blocks), layout, at, first):
            _, _, numbers, fields, fault = found
            if fault is not None:
                why = describe_fault(fault, ColumnChoice(0, 1, None, names, ""))
                refuse_source(path, f"{why}; correct it", line + fault.line)
            for blocks_of_column, field in zip(columns, fields, strict=True):
                blocks_of_column.append(Strings(*field))
            lines.append(line + numbers)
    return TextTable(names, dict(zip(chosen, columns, strict=True)), np.concatenate(lines))


class NodeValues(NamedTuple):
    """Values of nodes, as read from a file."""

    heading: str  # of the column of nodes
    nodes: list[Any]  # strings from text, else of the type in the file
    names: list[str]  # of the columns of values
    values: NDArray[np.float64]
    rows: list[int]  # of the file, from 1, for messages; in text, the header is the first


def read_node_values(path: str) -> NodeValues:
    """Read a table whose first column is a node id and the others are numbers."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}")
    if find_format(path) not in TEXTS:
        table, _ = read_feature_table(path, node_col=0)
        names = table.column_names
        columns = [column.to_pylist() for column in table.columns]
        rows = list(range(1, table.num_rows + 1))
    else:
        with reading(path, "text"):
            found = read_text_table(path, "a node and its values")
        names, rows = found.names, found.lines.tolist()
        columns = [
            [text for block in blocks for text in decode_strings(block).tolist()]
            for blocks in found.columns.values()
        ]
    if len(names) < 2 or not rows:
        refuse_source(path, "a header, a column of node ids and one or more of values are needed")
    if len({"node", *names[1:]}) < len(names) or names[0] in names[1:]:
        refuse_source(
            path,
            f"columns of values must have different names, and none may be 'node', got {names[1:]}",
        )
    values = np.empty((len(rows), len(names) - 1))
    for at, column in enumerate(columns[1:]):
        for i, value in enumerate(column):
            try:
                values[i, at] = float(value)
            except (TypeError, ValueError):
                why = f"{names[at + 1]!r} is not a number: {value!r}"
                refuse_source(path, why, rows[i])
    return NodeValues(names[0], columns[0], names[1:], values, rows)
