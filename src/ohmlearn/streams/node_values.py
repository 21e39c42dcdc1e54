"""Values of nodes: a table with a column of node ids and columns of numbers."""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.streams.errors import reading, refuse_source
from ohmlearn.validation.parameters import require_extra

__all__ = ["read_node_values"]


def read_node_values(path: str) -> tuple[list[Any], list[str], NDArray[np.float64]]:
    """Read a table whose first column is a node id and the others are numbers.

    Returns the ids (strings from text, else of the type in the file), the names of the other
    columns, and their values.
    """
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
            rows = [table.column(at).to_pylist() for at in range(len(names))]
    else:
        with reading(path, "text"), open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            mark = "\t" if "\t" in first else ","
            file.seek(0)
            records = [row for row in csv.reader(file, delimiter=mark) if row]
        names = records[0] if records else []
        for at, record in enumerate(records, start=1):
            if len(record) != len(names):
                why = f"{len(names)} columns are needed, got {len(record)}"
                refuse_source(path, why, f"row {at}")
        rows = [list(column) for column in zip(*records[1:], strict=True)]
    if len(names) < 2 or not rows or not rows[0]:
        refuse_source(path, "a header, a column of node ids and one or more of values are needed")
    if len({"node", *names[1:]}) < len(names):
        refuse_source(
            path,
            f"columns of values must have different names, and none may be 'node', got {names[1:]}",
        )
    values = np.empty((len(rows[0]), len(names) - 1))
    for at, column in enumerate(rows[1:]):
        for row, value in enumerate(column):
            try:
                values[row, at] = float(value)
            except (TypeError, ValueError):
                refuse_source(path, f"{names[at + 1]!r} is not a number: {value!r}", f"row {row}")
    return rows[0], names[1:], values
