"""Tables about nodes: columns of a text with a header, as text, and columns of numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.parameters import require_extra
from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.reading.byte_blocks import ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.csv_reader import describe_fault, start_text
from ohmlearn.reading.source_errors import reading, refuse_source

__all__ = ["NodeValues", "TextTable", "read_node_values", "read_text_table"]


class TextTable(NamedTuple):
    """Columns of a text."""

    names: list[str]  # of all columns
    columns: dict[str, list[Strings]]  # the chosen ones, in blocks of rows
    lines: NDArray[np.int64]  # number of the first line of each row, from 1

    def to_arrow(self) -> Any:
        """Return a table of pyarrow with columns of strings."""
        import pyarrow as pa

        columns = {
            name: pa.chunked_array([_as_arrow(block) for block in blocks], pa.large_string())
            for name, blocks in self.columns.items()
        }
        return pa.table(columns)


def read_text_table(
    path: str,
    style: str,
    one: str,
    choose: Callable[[list[str], bytes], Sequence[str]] | None = None,
) -> TextTable:
    """Read a text whose first record names the columns, with the reader of edges.

    Parameters
    ----------
    path : str
    style : {"csv", "tsv", "text"}
        See `TextSource`.
    one : str
        A row, in words.
    choose : callable, optional
        Returns the names of the columns to read, given all names and the first record. By default
        all columns are read.
    """
    with ByteSource(path) as source:
        blocks = line_blocks(source)
        start = start_text(path, blocks, style, one)
        layout = start.layout
        layout.n_fields = len(start.fields)
        names = [field.decode(errors="replace") for field in start.fields]
        chosen = list(names if choose is None else choose(names, start.first))
        at = [names.index(name) for name in chosen]
        columns: list[list[Strings]] = [[] for _ in at]
        rest, line = start.after_header()
        lines = [np.empty(0, np.int64)]
        for block in chain([b""], blocks, [None]):
            rest += block or b""
            text = np.frombuffer(rest, np.uint8)
            found: Any = _core.take_fields(text, layout, at, block is None)
            _, _, numbers, fields, fault, n_consumed = found
            if fault is not None:
                why = describe_fault(fault, ColumnChoice(0, 1, None, names, ""))
                refuse_source(path, f"{why}; correct it", line + fault.line)
            for blocks_of_column, field in zip(columns, fields, strict=True):
                blocks_of_column.append(Strings(*field))
            lines.append(line + numbers)
            line += rest.count(b"\n", 0, n_consumed)
            rest = rest[n_consumed:]
    return TextTable(names, dict(zip(chosen, columns, strict=True)), np.concatenate(lines))


def _as_arrow(strings: Strings) -> Any:
    """Return strings as an array of pyarrow; bytes that are not UTF-8 are refused by `validate`."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(strings.offsets), pa.py_buffer(strings.data)]
    return pa.Array.from_buffers(pa.large_string(), strings.size, buffers)


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
    ending = Path(path).suffix.lower()
    if ending in (".parquet", ".arrow", ".feather"):
        with reading(path, "a table"):
            if ending == ".parquet":
                table = require_extra("pyarrow.parquet", "files").read_table(path)
            else:
                table = require_extra("pyarrow.feather", "files").read_table(path)
            names = table.column_names
            columns = [table.column(at).to_pylist() for at in range(len(names))]
            rows = list(range(1, table.num_rows + 1))
    else:
        with reading(path, "text"):
            style = "tsv" if ending == ".tsv" else "csv"
            found = read_text_table(path, style, "a node and its values")
            names, rows = found.names, found.lines.tolist()
            if len(set(names)) == len(names):
                columns = [_decode(found.columns[name]) for name in names]
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


def _decode(blocks: list[Strings]) -> list[str]:
    return [text for block in blocks for text in decode_strings(block).tolist()]
