"""Write tables of results to files."""

import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import whole_file
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.label_columns import Coded, Column
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.reading.remote import is_remote, write_remote
from ohmlearn.reading.source_errors import show_name

ARROW_ENDINGS = (".parquet", ".arrow", ".feather")
TABLE_ENDINGS = (*ARROW_ENDINGS, ".csv", ".tsv", ".jsonl")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")  # the last four are full-width characters
TEXT_CELLS = 1 << 16  # in a block of rows of text: about 8 MiB of Python objects and text
ARROW_CELLS = 1 << 22  # in a row group: 32 MiB of numbers
Columns = Mapping[str, Column]
Report = Callable[[int, int], None]  # of the rows written, and of all


class NodeIds:
    """The ids of all nodes as a column; strings are decoded when they are asked for."""

    def __init__(self, nodes: NodeTable) -> None:
        self._keys = nodes.keys_from(0)
        self.dtype = np.dtype(object if isinstance(self._keys, Strings) else np.int64)

    def __len__(self) -> int:
        return self._keys.size

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        if not isinstance(self._keys, Strings):
            return self._keys[rows]
        start, stop, _ = rows.indices(len(self))
        ends = self._keys.offsets[start : stop + 1]
        return decode_strings(Strings(ends - ends[0], self._keys.data[ends[0] : ends[-1]]))


def check_table_path(path: str, csv_safe: bool = False) -> None:
    """Check the path of an output before the work starts."""
    ending = _find_ending(path)
    if path != "-" and ending not in TABLE_ENDINGS:
        known = ", ".join(TABLE_ENDINGS)
        raise ValueError(
            f"{show_name(path)}: the name must end in one of {known}, or be - for stdout"
        )
    if csv_safe and path != "-" and ending not in (".csv", ".tsv"):
        problem = f"{Param('csv_safe')} is for .csv and .tsv, but the output is {show_name(path)}"
        raise InputError(problem, remedy="leave it out")
    if ending in ARROW_ENDINGS:
        require_extra("pyarrow", "files")


def _find_ending(path: str) -> str:
    """Return the ending of a path or an address, whose settings follow a question mark."""
    return Path(path.partition("?")[0] if is_remote(path) else path).suffix.lower()


def write_table(
    path: str,
    columns: Columns,
    csv_safe: bool = False,
    report: Report | None = None,
) -> None:
    """Write columns in the format of the file name's ending; "-" prints CSV.

    The file may be on another machine, such as s3://bucket/labels.parquet.
    The file is written completely or not at all, in blocks of rows, so that memory for the text or
    the Arrow arrays of one block is enough. In Parquet each block is a row group. With `csv_safe`,
    text in CSV and TSV is quoted, and text that a spreadsheet would interpret as a formula starts
    with an apostrophe, as OWASP advises against CSV injection. Numbers do not change. Entries that
    are masked are null, which is empty in CSV. ``report(n_written, n_rows)`` follows each block.
    """
    if path == "-":
        for line in _csv_lines(columns, ",", csv_safe, report):
            sys.stdout.write(line)
        sys.stdout.flush()  # a disk may be full, and what follows relies on the answers
        return
    ending = _find_ending(path)
    with write_remote(path) if is_remote(path) else whole_file(path) as file:
        if ending in ARROW_ENDINGS:
            _write_arrow(file, columns, report, as_parquet=ending == ".parquet")
            return
        if ending == ".jsonl":
            lines = _json_lines(columns, report)
        else:
            lines = _csv_lines(columns, "\t" if ending == ".tsv" else ",", csv_safe, report)
        for line in lines:
            file.write(line.encode("utf-8"))


def _blocks(columns: Columns, n_cells: int, report: Report | None) -> Iterator[list[NDArray[Any]]]:
    """Yield the columns of some rows after the other, with at most so many cells at a time."""
    n_rows = len(next(iter(columns.values())))
    size = max(1, n_cells // len(columns))
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        yield [column[start:stop] for column in columns.values()]
        if report is not None:
            report(stop, n_rows)


def _write_arrow(
    file: BinaryIO, columns: Columns, report: Report | None, *, as_parquet: bool
) -> None:
    pa = require_extra("pyarrow", "files")
    schema = pa.schema([(name, _arrow_type(pa, column)) for name, column in columns.items()])
    if as_parquet:
        parquet = require_extra("pyarrow.parquet", "files")
        # Floats are hardly ever equal, so a dictionary of them would only make the file larger.
        named = [field.name for field in schema if not pa.types.is_floating(field.type)]
        new_writer = parquet.ParquetWriter(file, schema, use_dictionary=named)
    else:
        new_writer = require_extra("pyarrow.ipc", "files").new_file(file, schema)
    with new_writer as writer:
        for block in _blocks(columns, ARROW_CELLS, report):
            arrays = [pa.array(part, type=t) for part, t in zip(block, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _arrow_type(pa: Any, column: Column) -> Any:
    """Return the type of a column, which all of its blocks have."""
    if column.dtype.kind != "O":
        return pa.array(np.empty(0, column.dtype)).type
    types = (pa.infer_type(part.tolist()) for part in _parts(column))
    return next((kind for kind in types if not pa.types.is_null(kind)), pa.string())


def _csv_lines(columns: Columns, mark: str, safe: bool, report: Report | None) -> Iterator[str]:
    buffer = io.StringIO()
    # By default csv quotes neither carriage returns nor blanks around a name.
    quoted = safe or any(map(_needs_quotes, (np.array([*columns]), *columns.values())))
    writer = csv.writer(
        buffer,
        delimiter=mark,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL,
    )
    for rows in chain([[tuple(columns)]], _rows(columns, report)):
        for row in map(_without_formulas, rows) if safe else rows:
            writer.writerow(["true" if x is True else "false" if x is False else x for x in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _needs_quotes(column: Column) -> bool:
    if column.dtype.kind not in "OUT":
        return False
    texts = (x for part in _parts(column) for x in part if isinstance(x, str))
    return any("\r" in text or text != text.strip(" \t") for text in texts)


def _parts(column: Column) -> Iterator[NDArray[Any]]:
    """Yield all entries of a column in arrays; those of `Coded` once each."""
    if isinstance(column, Coded):
        yield column.values
        return
    for start in range(0, len(column), TEXT_CELLS):
        yield column[start : start + TEXT_CELLS]


def _without_formulas(row: Iterable[Any]) -> list[Any]:
    """Return cells that spreadsheets do not interpret as formulas, such as '=1+1 for =1+1."""
    return [
        f"'{x}" if isinstance(x, str) and FORMULA.match(x) and not NUMBER.fullmatch(x) else x
        for x in row
    ]


def _json_lines(columns: Columns, report: Report | None) -> Iterator[str]:
    for rows in _rows(columns, report):
        for row in rows:
            # JSON has no infinity or NaN, so write null.
            values = [None if isinstance(x, float) and not math.isfinite(x) else x for x in row]
            yield json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False) + "\n"


def _rows(columns: Columns, report: Report | None) -> Iterator[Iterable[tuple[Any, ...]]]:
    """Yield blocks of rows."""
    for block in _blocks(columns, TEXT_CELLS, report):
        yield zip(*(part.tolist() for part in block), strict=True)
