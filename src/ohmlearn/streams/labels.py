"""Labels of nodes: read from a table, and matched with the nodes of a graph."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.ids import Ids, Strings, decode_strings
from ohmlearn.streams.errors import refuse_source
from ohmlearn.streams.options import LabelOptions, ReadOptions
from ohmlearn.streams.read import find_sources

__all__ = ["FileLabels", "as_node_ids", "read_labels", "read_rows"]

INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)  # as Python writes them: 007 stays a name
UNLABELLED = ("", "-1", "nan", "none", "null")


class FileLabels(dict[str, Any]):
    """The label of each node id in a file.

    Attributes
    ----------
    path : str
        The file, for messages.
    heading : str or None
        The first id, if its row may be a heading.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.heading: str | None = None


def read_labels(
    path: str, node_col: str | int | None = None, label_col: str | int | None = None
) -> FileLabels:
    """Return the label of each node id in a file of any format of `read_edges`.

    The columns are those named, else ones with usual names, else the first two. Rows whose label is
    empty, null, -1 or NaN are left out. Ids are strings; labels are integers if all of them are,
    else strings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("node,label\\nann,spam\\nbob,-1\\ncy,ham\\n")
    ...     file.flush()
    ...     read_labels(file.name)
    {'ann': 'spam', 'cy': 'ham'}
    """
    options = LabelOptions(source_col=node_col, target_col=label_col, id_type="string")
    rows = [
        (node, label)
        for node, label in read_rows(path, options)
        if label.strip().lower() not in UNLABELLED
    ]
    if not rows:
        refuse_source(path, "has no label; a row is a node and its label")
    labels = FileLabels(path)
    integers = all(INTEGER.fullmatch(label) for _, label in rows)
    for node, text in rows:
        label = int(text) if integers else text
        if labels.setdefault(node, label) != label:
            refuse_source(path, f"node {node!r} has two labels, {labels[node]!r} and {label!r}")
    first, *others = labels.values()
    if os.path.isfile(path) and _may_be_heading(path, options, first, others):
        labels.heading = rows[0][0]
    return labels


def read_rows(path: str, options: ReadOptions) -> Iterator[tuple[str, str]]:
    """Yield the two values of each row of a file, as strings."""
    for source in find_sources(path, options):
        for raw in source.batches("string"):
            u, v = (_as_text(column) for column in (raw.u, raw.v))
            yield from zip(u, v, strict=True)


def _as_text(column: Ids) -> list[str]:
    names = decode_strings(column) if isinstance(column, Strings) else column.astype(str)
    return [str(name) for name in names]


def as_node_ids(
    path: str,
    ids: list[Any],
    kind: str | None,
    *,
    row: str = "row",
    rows: list[int] | None = None,
) -> NDArray[Any]:
    """Return the ids of a table as integers or strings, whichever `kind` the edges have.

    A message names an id by its number in `rows`; by default, its position in `ids`.
    """
    names = [str(node) for node in ids]
    if kind != "int64":
        return np.array(names, dtype=object)
    for at, name in enumerate(names):
        if not _core.is_integer(name.strip().encode()):
            why = f"{ids[at]!r} is not an integer, but the ids of the edges are"
            number = at if rows is None else rows[at]
            refuse_source(path, f'{why}; read those with id_type="string"', f"{row} {number}")
    return np.array([int(name) for name in names], dtype=np.int64)


def _may_be_heading(path: str, options: ReadOptions, label: Any, others: list[Any]) -> bool:
    """Whether the first row is probably a heading whose names are not the usual ones.

    It is if the file has no names of columns and no other row has the label of the first one.
    """
    (source,) = find_sources(path, options)
    source.inspect()
    if source.columns is None or source.columns.names is not None:
        return False
    return isinstance(label, str) and label not in others
