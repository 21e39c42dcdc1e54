"""Values of nodes: a table with a column of node ids and columns of numbers."""

import csv
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.source_errors import reading, refuse_source

__all__ = ["NodeValues", "read_node_values"]


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
        with reading(path, "text"), open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            mark = "\t" if "\t" in first else ","
            file.seek(0)
            lines = csv.reader(file, delimiter=mark)
            records = [(lines.line_num, record) for record in lines if record]
        names = records[0][1] if records else []
        for row, record in records:
            if len(record) != len(names):
                why = f"{len(names)} columns are needed, got {len(record)}"
                refuse_source(path, why, f"row {row}")
        columns = [list(column) for column in zip(*(rec for _, rec in records[1:]), strict=True)]
        rows = [row for row, _ in records[1:]]
    if len(names) < 2 or not rows:
        refuse_source(path, "a header, a column of node ids and one or more of values are needed")
    if len({"node", *names[1:]}) < len(names):
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
                refuse_source(path, why, f"row {rows[i]}")
    return NodeValues(names[0], columns[0], names[1:], values, rows)
