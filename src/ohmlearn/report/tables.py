"""Write tables of results to files."""

import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._storage import whole_file
from ohmlearn.validation.parameters import require_extra

__all__ = [
    "check_table_path",
    "write_table",
]

ARROW_ENDINGS = (".parquet", ".arrow", ".feather")
TABLE_ENDINGS = (*ARROW_ENDINGS, ".csv", ".tsv", ".jsonl")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")  # the last four are full-width characters
Columns = dict[str, NDArray[Any]]


def check_table_path(path: str, csv_safe: bool = False) -> None:
    """Check the path of an output before the work starts.

    Examples
    --------
    >>> check_table_path("out.xls")
    Traceback (most recent call last):
    ...
    ValueError: out.xls: the name must end in one of .parquet, .arrow, ..., or be - for stdout
    """
    ending = Path(path).suffix.lower()
    if path != "-" and ending not in TABLE_ENDINGS:
        known = ", ".join(TABLE_ENDINGS)
        raise ValueError(f"{path}: the name must end in one of {known}, or be - for stdout")
    if csv_safe and path != "-" and ending not in (".csv", ".tsv"):
        raise ValueError(f"csv_safe is for .csv and .tsv, but the output is {path}; leave it out")
    if ending in ARROW_ENDINGS:
        require_extra("pyarrow", "files")


def write_table(path: str, columns: Columns, csv_safe: bool = False) -> None:
    """Write columns in the format of the file name's ending; "-" prints CSV.

    The file is written completely or not at all. With `csv_safe`, text in CSV and TSV is quoted,
    and text that a spreadsheet would interpret as a formula starts with an apostrophe, as OWASP
    advises against CSV injection. Numbers do not change.
    """
    if path == "-":
        for line in _csv_lines(columns, ",", csv_safe):
            sys.stdout.write(line)
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    ending = target.suffix.lower()
    with whole_file(target) as file:
        if ending in ARROW_ENDINGS:
            pa = require_extra("pyarrow", "files")
            table = pa.table(columns)
            if ending == ".parquet":
                require_extra("pyarrow.parquet", "files").write_table(table, file)
            else:
                with require_extra("pyarrow.ipc", "files").new_file(file, table.schema) as writer:
                    writer.write_table(table)
            return
        mark = "\t" if ending == ".tsv" else ","
        lines = _json_lines(columns) if ending == ".jsonl" else _csv_lines(columns, mark, csv_safe)
        for line in lines:
            file.write(line.encode("utf-8"))


def _csv_lines(columns: Columns, mark: str, safe: bool) -> Iterator[str]:
    buffer = io.StringIO()
    # By default csv quotes neither carriage returns nor blanks around a name.
    quoted = safe or any(
        _needs_quotes(column) for column in (np.array([*columns]), *columns.values())
    )
    writer = csv.writer(
        buffer,
        delimiter=mark,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL,
    )
    rows = chain([columns], _rows(columns))
    for row in map(_without_formulas, rows) if safe else rows:
        writer.writerow(["true" if x is True else "false" if x is False else x for x in row])
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _needs_quotes(column: NDArray[Any]) -> bool:
    if column.dtype.kind not in "OUT":
        return False
    return any(isinstance(x, str) and ("\r" in x or x != x.strip(" \t")) for x in column)


def _without_formulas(row: Iterable[Any]) -> list[Any]:
    """Return cells that spreadsheets do not interpret as formulas.

    Examples
    --------
    >>> _without_formulas(["=1+1", "-1", "a=b", -2])
    ["'=1+1", '-1', 'a=b', -2]
    """
    return [
        f"'{x}" if isinstance(x, str) and FORMULA.match(x) and not NUMBER.fullmatch(x) else x
        for x in row
    ]


def _json_lines(columns: Columns) -> Iterator[str]:
    for row in _rows(columns):
        # JSON has no infinity or NaN, so write null.
        values = [None if isinstance(x, float) and not math.isfinite(x) else x for x in row]
        yield json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False) + "\n"


def _rows(columns: Columns) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns.values()), strict=True)
