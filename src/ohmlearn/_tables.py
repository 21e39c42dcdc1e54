"""Tables of nodes in files: labels that come in, results that go out."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn._storage import whole_file
from ohmlearn._validation import require_extra
from ohmlearn._validation_sources import refuse_source
from ohmlearn.nodes import NodeTable

__all__ = ["TABLE_ENDINGS", "find_labelled", "read_labels", "write_table"]

TABLE_ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl")
NODE_NAMES = ("node", "id", "node_id", "u")
LABEL_NAMES = ("label", "class", "y", "target", "value")
UNLABELLED = ("", "-1", "nan", "none", "null")
Pairs = list[tuple[Any, Any]]


def read_labels(
    path: str,
    node_col: str | None = None,
    label_col: str | None = None,
    unlabelled: Sequence[str] = UNLABELLED,
) -> Pairs:
    """Return (node id, label) for each row of a CSV, TSV, JSON lines, Parquet or Arrow file.

    The columns are those named, else ones with usual names, else the first two. Rows whose label is
    null, or by default empty, -1 or NaN, are left out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("node,label\\nann,spam\\nbob,-1\\ncy,ham\\n")
    ...     file.flush()
    ...     read_labels(file.name)
    [('ann', 'spam'), ('cy', 'ham')]
    """
    ending = Path(path).suffix.lower()
    if ending in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        names, rows = _arrow_rows(path, ending)
    elif ending in (".jsonl", ".ndjson"):
        names, rows = _json_rows(path)
    else:
        names, rows = _text_rows(path, node_col, label_col)
    node = _choose(path, names, node_col, NODE_NAMES, 0)
    label = _choose(path, names, label_col, LABEL_NAMES, 1)
    pairs: Pairs = []
    for number, row in rows:
        if len(row) <= max(node, label):
            refuse_source(path, f"needs a node and a label, got {row}", f"row {number}")
        value = row[label]
        if value is None or value != value or str(value).strip().lower() in unlabelled:
            continue
        pairs.append((row[node], value.strip() if isinstance(value, str) else value))
    if not pairs:
        refuse_source(path, "has no label; a row is a node and its label")
    return pairs


def find_labelled(path: str, pairs: Pairs, nodes: NodeTable) -> dict[int, Any]:
    """Return {number of the node: label}; nodes that no edge has are added to the table."""
    ids: list[Any] = [node for node, _ in pairs]
    if nodes.kind == "int64":
        try:
            ids = [int(node) for node in ids]
        except (TypeError, ValueError):
            _refuse_kind(path, ids)
    elif nodes.kind == "string":
        ids = [str(node) for node in ids]
    numbers = nodes.add(np.array(ids, dtype=object if isinstance(ids[0], str) else None))
    labels: dict[int, Any] = {}
    for number, (node, label) in zip(numbers.tolist(), pairs, strict=True):
        if labels.setdefault(number, label) != label:
            refuse_source(path, f"node {node!r} has two labels, {labels[number]!r} and {label!r}")
    return labels


def write_table(path: str | None, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns as Parquet, CSV, TSV or JSON lines, by the ending; None is CSV on stdout.

    A file is written whole or not at all.
    """
    if path is None:
        sys.stdout.write("".join(_csv_lines(columns, ",")))
        sys.stdout.flush()
        return
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        pq = require_extra("pyarrow.parquet", "files")
        pa = require_extra("pyarrow", "files")
        with whole_file(path) as file:
            pq.write_table(pa.table(columns), file)
        return
    lines = _json_lines(columns) if ending == ".jsonl" else None
    if lines is None:
        lines = _csv_lines(columns, "\t" if ending == ".tsv" else ",")
    with whole_file(path) as file:
        for line in lines:
            file.write(line.encode("utf-8"))


def _csv_lines(columns: dict[str, NDArray[Any]], delimiter: str) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for row in _rows(columns):
        writer.writerow(["true" if x is True else "false" if x is False else x for x in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _json_lines(columns: dict[str, NDArray[Any]]) -> Iterator[str]:
    for row in _rows(columns):
        yield json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"


def _rows(columns: dict[str, NDArray[Any]]) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns.values()), strict=True)


def _arrow_rows(path: str, ending: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    if ending in (".parquet", ".pq"):
        table = require_extra("pyarrow.parquet", "files").read_table(path)
    else:
        table = require_extra("pyarrow.feather", "files").read_table(path)
    columns = [column.to_pylist() for column in table.columns]
    return table.column_names, enumerate(zip(*columns, strict=True))


def _json_rows(path: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    objects = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                refuse_source(path, f"is not JSON: {error}", f"line {number}")
            if not isinstance(row, dict):
                refuse_source(
                    path, f"a line is an object with names, got {row!r}", f"line {number}"
                )
            objects.append((number, row))
    names = list(objects[0][1]) if objects else []
    return names, ((number, [row.get(name) for name in names]) for number, row in objects)


def _text_rows(
    path: str, node_col: str | None, label_col: str | None
) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        refuse_source(path, f"is not UTF-8 text: {error.reason} at byte {error.start}")
    lines = text.splitlines()
    first = lines[0] if lines else ""
    delimiter = next((mark for mark in ("\t", ",", ";") if mark in first), None)
    rows = [
        (number, line.split() if delimiter is None else row)
        for number, (line, row) in enumerate(
            zip(lines, csv.reader(lines, delimiter=delimiter or ","), strict=False), 1
        )
        if line.strip() and not line.startswith("#")
    ]
    names = [cell.strip() for cell in rows[0][1]] if rows else []
    usual = {*NODE_NAMES, *LABEL_NAMES, *(name for name in (node_col, label_col) if name)}
    if usual.isdisjoint(name if name in usual else name.lower() for name in names):
        names = [str(at) for at in range(len(names))]
    else:
        rows = rows[1:]
    return names, iter(rows)


def _choose(
    path: str, names: Sequence[str], wanted: str | None, usual: Sequence[str], first: int
) -> int:
    if wanted is not None:
        if wanted not in names:
            refuse_source(path, f"has no column {wanted!r}, only {', '.join(names)}")
        return list(names).index(wanted)
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in usual if name in lower), first)


def _refuse_kind(path: str, ids: list[Any]) -> NoReturn:
    for node in ids:
        try:
            int(node)
        except (TypeError, ValueError):
            refuse_source(
                path,
                f"node {node!r} is not an integer, but the ids of the edges are; if those are "
                f"meant as text, read them with id type string",
            )
    raise AssertionError
