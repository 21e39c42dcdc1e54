"""`read_features`: the features of nodes from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ohmlearn.checks.parameters import require_extra
from ohmlearn.features.feature_columns import NODES, Column, find_columns, find_node_column
from ohmlearn.features.node_features import NodeFeatures
from ohmlearn.reading.byte_blocks import ByteSource
from ohmlearn.reading.column_headings import is_id
from ohmlearn.reading.file_names import check_one_format, find_files, find_format
from ohmlearn.reading.label_table import NUMBER
from ohmlearn.reading.remote import is_remote, open_remote_parts
from ohmlearn.reading.source_errors import reading, refuse_source, shorten
from ohmlearn.reading.text_table import read_text_table

__all__ = ["read_features"]

BLOCK = 1 << 24  # bytes of text that decide the types of columns
# Texts that mean a missing value, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>")


def read_features(
    path: str | os.PathLike[str],
    *,
    node_col: str | int | None = None,
    columns: Sequence[str] | None = None,
) -> NodeFeatures:
    """Read features of nodes from files with a column of ids and columns of numbers or texts.

    See `NodeFeatures.from_table` for what becomes of the columns. Requires the extra ``files``.

    Parameters
    ----------
    path : path or pattern
        A file, or several that have the same columns: CSV and TSV with a header (also compressed
        with gzip, zstd, bz2 or xz), JSON lines, Parquet, Arrow IPC or Feather. A folder means all
        files in it. Addresses such as ``s3://bucket/nodes.parquet`` are read from there. In text,
        empty fields, NA, NaN and null are missing, and ids stay as they are written.
    node_col : str or int, optional
        Name or position of the column of ids. By default a column called node, node_id or id, the
        index that pandas stored in the file, or the only column with a name such as user_id.
    columns : list of str, optional
        Columns to use; by default all but that of the ids.

    Returns
    -------
    NodeFeatures

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    SourceError
        A ValueError that names the file, and column and row where it can.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import read_features
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("node,age,city\\nann,30,Rome\\nbob,,Bern\\ncy,50,Rome\\n")
    ...     file.flush()
    ...     features = read_features(file.name)
    >>> features.ids, features.names
    (array(['ann', 'bob', 'cy'], dtype=object), ['age', 'age_missing', 'city=Bern', 'city=Rome'])
    """
    require_extra("pyarrow", "files")
    name = os.fspath(path)
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
        with reading(file, NAMES[kind]):
            table = READERS[kind](file, node_col, columns)
            table.validate(full=True)  # Parquet does not check UTF-8
        tables.append(table)
    table = tables[0] if len(tables) == 1 else _concatenate(name, files, tables)
    first_row = 2 if kind in ("csv", "tsv", "text") and len(files) == 1 else 1
    # Reading has already applied a position, because fewer columns may have been read.
    node = find_columns(table.schema, name, node_col, columns).node
    return NodeFeatures._from_arrow(table, name, first_row, node, columns)


def _concatenate(name: str, files: list[str], tables: list[Any]) -> Any:
    """Return the rows of several files; types of columns may differ in what Arrow can unify."""
    import pyarrow as pa

    first = tables[0].column_names
    for file, table in zip(files, tables, strict=True):
        if table.column_names != first:
            refuse_source(file, f"has other columns than {files[0]}: {table.column_names}")
    with reading(name, "files with the same columns"):
        return pa.concat_tables(tables, promote_options="permissive")


def _read_parquet(path: str, node_col: Column | None, columns: Sequence[str] | None) -> Any:
    parquet = require_extra("pyarrow.parquet", "files")
    with _open(path) as file:
        schema = parquet.read_schema(file)
        wanted = _wanted(schema, path, node_col, columns)
        file.seek(0)
        return parquet.ParquetFile(file).read(wanted)


def _read_arrow(path: str, node_col: Column | None, columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    with _open(path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).read_all()
        return table.select(_wanted(table.schema, path, node_col, columns))


def _wanted(
    schema: Any, path: str, node_col: Column | None, columns: Sequence[str] | None
) -> list[str]:
    """Return which columns to read, in the order of the file."""
    found = find_columns(schema, path, node_col, columns)
    return [name for name in schema.names if name == found.node or name in found.features]


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """Open a file that can be sought."""
    import pyarrow as pa

    if is_remote(path):
        with open_remote_parts(path) as file:
            yield file
    else:
        with pa.OSFile(path) as file:
            yield file


def _read_json(path: str, node_col: Column | None, columns: Sequence[str] | None) -> Any:
    json = require_extra("pyarrow.json", "files")
    with ByteSource(path) as source:
        if not source.file.read(1):
            refuse_source(path, "is empty: there is no row with features")
    with ByteSource(path) as source:
        table = json.read_json(source.file, json.ReadOptions(block_size=BLOCK))
        return table.select(_wanted(table.schema, path, node_col, columns))


def _read_text(path: str, node_col: Column | None, columns: Sequence[str] | None) -> Any:
    """Read a table with a header; ids are read as strings, so that 007 stays as it is."""
    import pyarrow as pa

    pc = require_extra("pyarrow.compute", "files")
    style = "tsv" if find_format(path) == "tsv" else "csv"
    node = ""

    def choose(names: list[str], first: bytes) -> list[str]:
        nonlocal node
        _check_heading(path, names, first, node_col)
        node = find_node_column(names, path, node_col)
        return _wanted(pa.schema([(name, pa.string()) for name in names]), path, node, columns)

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
        if name == node:
            known = pc.if_else(pc.equal(simple, ""), None, column)
        else:
            simple = pc.utf8_lower(simple)
            missing = pc.is_in(simple, pa.array(MISSING, pa.large_string()))
            known = _as_values(pc.if_else(missing, None, column))
        table = table.set_column(at, name, known)
    return table


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


def _check_heading(path: str, names: list[str], first: bytes, node_col: Column | None) -> None:
    """Refuse a text whose first record does not name the columns."""
    text = shorten(first.decode(errors="replace"))
    if len(names) == 1:
        refuse_source(path, f"the first line, {text}, has one column; is it CSV with a header?")
    is_named = isinstance(node_col, str) or any(
        name.strip().lower() in NODES or is_id(name) for name in names
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


READERS: dict[str, Callable[[str, Column | None, Sequence[str] | None], Any]] = {
    "csv": _read_text,
    "tsv": _read_text,
    "text": _read_text,
    "jsonl": _read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
NAMES = {
    "csv": "CSV",
    "tsv": "TSV",
    "text": "CSV",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
}
