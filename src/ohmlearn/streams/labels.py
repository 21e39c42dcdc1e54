"""Labels of nodes: read from a table, and matched with the nodes of a graph."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.ids import Ids, Strings, decode_strings
from ohmlearn.nodes.table import NodeTable
from ohmlearn.streams.errors import refuse_source
from ohmlearn.streams.options import LabelOptions, ReadOptions
from ohmlearn.streams.read import find_sources

__all__ = ["Labels", "as_node_ids", "find_labelled", "read_labels", "read_rows", "warn_unknown"]

INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)  # as Python writes them: 007 stays a name
UNLABELLED = ("", "-1", "nan", "none", "null")

Labels = list[tuple[str, Any]]  # (node id, label)


def read_labels(
    path: str, node_col: str | int | None = None, label_col: str | int | None = None
) -> Labels:
    """Return (node id, label) for each row of a file in any format of `read_edges`.

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
    [('ann', 'spam'), ('cy', 'ham')]
    """
    options = LabelOptions(source_col=node_col, target_col=label_col, id_type="string")
    rows = [
        (node, label)
        for node, label in read_rows(path, options)
        if label.strip().lower() not in UNLABELLED
    ]
    if not rows:
        refuse_source(path, "has no label; a row is a node and its label")
    if all(INTEGER.fullmatch(label) for _, label in rows):
        return [(node, int(label)) for node, label in rows]
    return rows


def read_rows(path: str, options: ReadOptions) -> Iterator[tuple[str, str]]:
    """Yield the two values of each row of a file, as strings."""
    for source in find_sources(path, options):
        for raw in source.batches("string"):
            u, v = (_as_text(column) for column in (raw.u, raw.v))
            yield from zip(u, v, strict=True)


def _as_text(column: Ids) -> list[str]:
    names = decode_strings(column) if isinstance(column, Strings) else column.astype(str)
    return [str(name) for name in names]


def as_node_ids(path: str, ids: list[Any], kind: str | None, *, row: str = "row") -> NDArray[Any]:
    """Return the ids of a table as integers or strings, whichever `kind` the edges have."""
    names = [str(node) for node in ids]
    if kind != "int64":
        return np.array(names, dtype=object)
    for at, name in enumerate(names):
        if not _core.is_integer(name.strip().encode()):
            why = f"{ids[at]!r} is not an integer, but the ids of the edges are"
            refuse_source(path, f'{why}; read those with id_type="string"', f"{row} {at}")
    return np.array([int(name) for name in names], dtype=np.int64)


def find_labelled(path: str, labels: Labels, nodes: NodeTable) -> dict[int, Any]:
    """Return {number of the node: label}. Nodes without an edge are added to the table.

    Warns
    -----
    UserWarning
        If there are such nodes.
    """
    ids = as_node_ids(path, [node for node, _ in labels], nodes.kind, row="label")
    unknown = np.flatnonzero(nodes.find(ids) < 0)
    if len(unknown) == len(labels):
        refuse_source(path, f"no edge has any of these nodes, such as {ids.tolist()[0]!r}")
    if unknown.tolist() == [0] and _seems_heading(path, labels):
        why = "seems to be a heading, but no column has a usual name"
        refuse_source(path, f"{why}; name them (--node-col, --label-col) or take it out", "row 1")
    warn_unknown(ids[unknown], len(labels))
    numbers = nodes.add(ids)
    found: dict[int, Any] = {}
    for number, (node, label) in zip(numbers.tolist(), labels, strict=True):
        if found.setdefault(number, label) != label:
            refuse_source(path, f"node {node!r} has two labels, {found[number]!r} and {label!r}")
    return found


def warn_unknown(ids: NDArray[Any], n_labels: int) -> None:
    """Warn about labelled nodes that have no edge: their ids may be misspelt."""
    if len(ids) > 0:
        warnings.warn(
            f"{len(ids)} of the {n_labels} labelled nodes are in no edge, such as "
            f"{ids.tolist()[0]!r}",
            UserWarning,
            stacklevel=3,
        )


def _seems_heading(path: str, labels: Labels) -> bool:
    """Whether the first label comes from the first row of a file without a header, and is unique.

    Then that row is probably a header whose names are not the usual ones.
    """
    if not os.path.isfile(path) or not isinstance(labels[0][1], str):
        return False
    options = LabelOptions(id_type="string")
    (source,) = find_sources(path, options)
    source.inspect()
    if source.columns is None or source.columns.names is not None:
        return False
    label = labels[0][1]
    first = next(read_rows(path, options))
    return first == labels[0] and all(other != label for _, other in labels[1:])
