"""Tables of nodes that come in files: labels, and columns of numbers."""

import csv
import io
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.table import NodeTable
from ohmlearn.streams.errors import reading, refuse_source
from ohmlearn.validation.parameters import require_extra

__all__ = [
    "INTEGER",
    "LABEL_NAMES",
    "NODE_NAMES",
    "UNLABELLED",
    "Pairs",
    "as_node_ids",
    "find_labelled",
    "read_labels",
    "read_node_values",
    "tell_unknown",
]


ARROW_ENDINGS = (".parquet", ".arrow", ".feather")
NODE_NAMES = ("node", "id", "node_id", "u")


LABEL_NAMES = ("label", "class", "y", "target", "value")


INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")  # as Python writes them: 007 stays a name


UNLABELLED = ("", "-1", "nan", "none", "null")


Pairs = list[tuple[Any, Any]]


def read_labels(path: str, node_col: str | None = None, label_col: str | None = None) -> Pairs:
    """Return (node id, label) for each row of a CSV, TSV, JSON lines, Parquet or Arrow file.

    The columns are those named, else ones with usual names, else the first two. Rows whose label is
    empty, null, -1 or NaN are left out. Labels of text are integers if all of them are.

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
        if value is None or value != value or str(value).strip().lower() in UNLABELLED:
            continue
        pairs.append((row[node], value.strip() if isinstance(value, str) else value))
    if not pairs:
        refuse_source(path, "has no label; a row is a node and its label")
    if all(isinstance(value, str) and INTEGER.fullmatch(value) for _, value in pairs):
        return [(node, int(value)) for node, value in pairs]
    return pairs


def as_node_ids(path: str, ids: list[Any], kind: str | None) -> NDArray[Any]:
    """Return ids of the kind that those of the edges are."""
    if kind == "int64":
        for at, node in enumerate(ids):
            if not str(node).strip().removeprefix("-").isdecimal():
                why = f"{node!r} is not an integer, but the ids of the edges are"
                refuse_source(path, f'{why}; read those with id type "string"', f"row {at}")
        return np.array([int(node) for node in ids], dtype=np.int64)
    return np.array([str(node) for node in ids], dtype=object)


def find_labelled(path: str, pairs: Pairs, nodes: NodeTable) -> dict[int, Any]:
    """Return {number of the node: label}; nodes that no edge has are added to the table.

    Warns
    -----
    UserWarning
        If there are such nodes.
    """
    ids = as_node_ids(path, [node for node, _ in pairs], nodes.kind)
    unknown = np.flatnonzero(nodes.find(ids) < 0)
    if len(unknown) == len(pairs):
        refuse_source(path, f"no edge has any of these nodes, such as {ids.tolist()[0]!r}")
    if unknown.tolist() == [0] and _seems_heading(path, pairs):
        why = "seems to be a heading, but no column has a usual name"
        refuse_source(path, f"{why}; name them (--node-col, --label-col) or take it out", "row 1")
    tell_unknown(ids[unknown], len(pairs))
    numbers = nodes.add(ids)
    labels: dict[int, Any] = {}
    for number, (node, label) in zip(numbers.tolist(), pairs, strict=True):
        if labels.setdefault(number, label) != label:
            refuse_source(path, f"node {node!r} has two labels, {labels[number]!r} and {label!r}")
    return labels


def tell_unknown(ids: NDArray[Any], n_labels: int) -> None:
    """Warn of labelled nodes that no edge has: mistyped ones, say."""
    if len(ids) > 0:
        warnings.warn(
            f"{len(ids)} of the {n_labels} labelled nodes are in no edge, such as "
            f"{ids.tolist()[0]!r}",
            UserWarning,
            stacklevel=3,
        )


def _seems_heading(path: str, pairs: Pairs) -> bool:
    """Whether the first pair stands in the first line of a text and no other row has its label."""
    tables = (*ARROW_ENDINGS, ".pq", ".ipc", ".jsonl", ".ndjson")
    if not os.path.isfile(path) or Path(path).suffix.lower() in tables:
        return False
    with open(path, encoding="utf-8-sig") as file:
        first = next((line for line in file if line.strip() and not line.startswith("#")), "")
    node, label = pairs[0]
    if not isinstance(label, str):
        return False
    return node in first and label in first and all(other != label for _, other in pairs[1:])


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


def _arrow_rows(path: str, ending: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    if ending in (".parquet", ".pq"):
        table = require_extra("pyarrow.parquet", "files").read_table(path)
    else:
        table = require_extra("pyarrow.feather", "files").read_table(path)
    columns = [column.to_pylist() for column in table.columns]
    return table.column_names, enumerate(zip(*columns, strict=True))


def _json_rows(path: str) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    objects = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
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
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse_source(path, f"is not UTF-8 text: {error.reason} at byte {error.start}")
    # Not splitlines, which divides names at U+2028 and the like, too.
    lines = list(io.StringIO(text, newline=""))
    # As with edges, # begins comments only in files that begin with it: #name may be a node.
    comment = "#" if text.startswith("#") else "\n"  # blank lines
    first = next((line for line in lines if line.strip() and not line.startswith(comment)), "")
    delimiter = next((mark for mark in ("\t", ",", ";") if mark in first), None)
    rows = [(at, x) for at, x in _records(path, lines, delimiter, comment) if any(x)]
    names = rows[0][1] if rows else []
    usual = {*NODE_NAMES, *LABEL_NAMES, *(name for name in (node_col, label_col) if name)}
    if usual.isdisjoint(name if name in usual else name.lower() for name in names):
        names = [str(at) for at in range(len(names))]
    else:
        rows = rows[1:]
    return names, iter(rows)


def _records(
    path: str, lines: list[str], delimiter: str | None, comment: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each record, and its cells; quotes may hold lines."""
    if delimiter is None:
        yield from enumerate(([] if x.startswith(comment) else x.split() for x in lines), 1)
        return
    number = 1  # of the first line of the record that is read

    def without_comments() -> Iterator[str]:
        for at, line in enumerate(lines, 1):
            yield "\n" if at == number and line.startswith(comment) else line

    reader = csv.reader(without_comments(), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            yield number, [cell.strip(" \t") for cell in cells]
            number = reader.line_num + 1
    except csv.Error as error:
        refuse_source(path, f"is not CSV from here on: {error}", f"row {number}")


def _choose(
    path: str, names: Sequence[str], wanted: str | None, usual: Sequence[str], first: int
) -> int:
    if wanted is not None:
        if wanted not in names:
            refuse_source(path, f"has no column {wanted!r}, only {', '.join(names)}")
        return list(names).index(wanted)
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in usual if name in lower), first)
