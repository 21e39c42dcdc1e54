"""Tables on disk: results, whole or not at all, and values of nodes."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ohmlearn._validation import require_extra
from ohmlearn._validation_sources import reading, refuse_source

__all__ = ["check_table_path", "read_node_values", "write_table"]

Columns = dict[str, NDArray[Any]]


def _write_delimited(mark: str) -> Callable[[Columns, Path], None]:
    def write(columns: Columns, path: Path) -> None:
        with open(path, "w", encoding="utf-8", newline="") as file:
            _write_rows(columns, file, mark)

    return write


def _write_rows(columns: Columns, file: TextIO, mark: str) -> None:
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_json_lines(columns: Columns, path: Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            # JSON has no infinity or NaN: null.
            values = [None if isinstance(x, float) and not np.isfinite(x) else x for x in row]
            record = dict(zip(columns, values, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(columns: Columns, path: Path) -> None:
    pa = require_extra("pyarrow", "files")
    require_extra("pyarrow.parquet", "files").write_table(pa.table(columns), path)


def _write_arrow(columns: Columns, path: Path) -> None:
    pa = require_extra("pyarrow", "files")
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_delimited(","),
    ".tsv": _write_delimited("\t"),
    ".jsonl": _write_json_lines,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}


def check_table_path(path: str) -> None:
    """Refuse an output before the work, not after it.

    Examples
    --------
    >>> check_table_path("out.xls")
    Traceback (most recent call last):
    ...
    ValueError: out.xls: the ending says the format: .parquet, .csv, .tsv, ...; - is stdout
    """
    ending = Path(path).suffix.lower()
    if path != "-" and ending not in WRITERS:
        raise ValueError(f"{path}: the ending says the format: {', '.join(WRITERS)}; - is stdout")
    if ending in (".parquet", ".arrow", ".feather"):
        require_extra("pyarrow", "files")


def write_table(path: str, columns: Columns) -> None:
    """Write aside and rename, so that there is a whole file or none; "-" prints CSV."""
    if path == "-":
        _write_rows(columns, sys.stdout, ",")
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    os.close(handle)
    aside = Path(name)
    try:
        WRITERS[target.suffix.lower()](columns, aside)
        mask = os.umask(0)
        os.umask(mask)
        aside.chmod(0o666 & ~mask)  # temporary files are private
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def read_node_values(path: str) -> tuple[list[Any], list[str], NDArray[np.float64]]:
    """Read a table whose first column is a node id and the others are numbers.

    Returns ids (strings from text, else as they are), names of the other columns, and their values.
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
    values = np.empty((len(rows[0]), len(names) - 1))
    for at, column in enumerate(rows[1:]):
        for row, value in enumerate(column):
            try:
                values[row, at] = float(value)
            except (TypeError, ValueError):
                refuse_source(path, f"{names[at + 1]!r} is not a number: {value!r}", f"row {row}")
    return rows[0], names[1:], values
