"""Labels of nodes: read from a table, and matched with the nodes of a graph."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.errors import Param, Setting
from ohmlearn.nodes.node_ids import as_integer, decode_codes, decode_ids
from ohmlearn.reading.column_choice import ColumnChoice, names_kind, refuse_swapped
from ohmlearn.reading.csv_reader import TextSource
from ohmlearn.reading.read_edges import find_sources
from ohmlearn.reading.read_options import EDGE_ENDS, LabelOptions
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import Source

# As Python writes them: 007 stays a name. A column with missing values has floats: 1.0 is 1.
INTEGER = re.compile(r"(0|-?[1-9]\d{0,17})(\.0*)?", re.ASCII)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
STRINGS = Setting("id_type", "string")
MINUS_ONES = ("-1", "-1.0")
MISSING = ("", "nan", "none", "null")
UNLABELLED = (*MISSING, *MINUS_ONES)
MANY, DISTINCT = (
    20,
    0.5,
)  # more different fractions than this, and this fraction of all, are refused


class FileLabels(dict[str, Any]):
    """The label of each node id in a file, or a list of labels if several rows have the id."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path  # for messages, as the next
        self.columns = ""  # which columns are used
        # Of each label, or a list of weights; None if the file has no column of weights.
        self.weights: dict[str, Any] | None = None
        self.id_heading: str | None = None  # may name the type of these nodes
        self.label_heading: str | None = None
        self.n_minus_ones = 0  # rows with the label -1, which are left out

    @property
    def has_usual_headings(self) -> bool:
        """Whether one of the columns is called as those of labels usually are."""
        usual = set(chain.from_iterable(LabelOptions.rows.ends))
        names = (self.id_heading, self.label_heading)
        return any(str(name).strip().lower() in usual for name in names)

    def classes(self) -> set[Any]:
        """Return the different labels."""
        every = (label if isinstance(label, list) else [label] for label in self.values())
        return set(chain.from_iterable(every))


def read_labels(
    path: str,
    node_col: str | int | None = None,
    label_col: str | int | None = None,
    label_weight_col: str | int | None = None,
    *,
    content: bytes | None = None,
    numbers: bool = False,
) -> FileLabels:
    """Return the label of each node id in a file of any format of `read_edges`.

    `content` is CSV as bytes, read instead of the file; then `path` is its name for messages.

    The columns are those named, else ones with usual names, else the first two and no weights. Rows
    whose label is empty, null, -1 or NaN are left out; labels that are only 1 and -1 are refused,
    because these may be two classes. Ids are strings; labels are integers if all
    of them are (1.0 is 1), else strings. Many different fractions are refused, because they are
    measurements and no classes; with `numbers`, labels are floats, and -1 is a number. An empty
    weight is 1. If a node has several rows, its labels and weights are lists.
    """
    options = LabelOptions(
        source_col=node_col, target_col=label_col, weight_col=label_weight_col, id_type="string"
    )
    unlabelled = MISSING if numbers else UNLABELLED
    rows, columns, n_minus_ones = _read_rows(path, options, unlabelled, content)
    if columns is not None and columns.guessed and not numbers:
        usual = {*chain.from_iterable(options.rows.ends)}
        headings = {name.strip().lower() for name in columns.names or ()}
        nodes, texts = ([row[at] for row in rows] for at in (0, 1))
        if usual.isdisjoint(headings) and are_swapped(nodes, texts):
            at = columns.v, columns.u
            u, v = (columns.names[i] for i in at) if columns.names else at
            options = replace(options, source_col=u, target_col=v)
            rows, columns, n_minus_ones = _read_rows(path, options, unlabelled, content)
            columns = columns and columns._replace(guessed="guessed")
    if not rows:
        refuse_source(path, "has no label; a row is a node and its label")
    if columns is not None and node_col is None and label_col is None:
        names, at = columns.names, (columns.u, columns.v)
        u, v = (names[at[0]], names[at[1]]) if names else rows[0][:2]
        if (u.strip().lower(), v.strip().lower()) in EDGE_ENDS:
            refuse_swapped(path, u, v)
    as_label: Callable[[str], Any] = str
    if numbers:
        as_label = partial(_as_float, path)
    elif all(INTEGER.fullmatch(text) for _, text, _ in rows):
        as_label = _as_integer
        if n_minus_ones > 0 and all(_as_integer(text) == 1 for _, text, _ in rows):
            refuse_source(
                path,
                "the labels are only 1 and -1, but -1 means unlabelled; give the classes other "
                "names, such as 0 and 1, or take the rows with -1 out",
            )
    else:
        _refuse_measurements(path, [text for _, text, _ in rows], columns)
    labels = FileLabels(path)
    labels.n_minus_ones = 0 if numbers else n_minus_ones
    labels.update(gather((node, as_label(text)) for node, text, _ in rows))
    if columns is not None:
        if columns.names is not None:
            labels.id_heading = columns.names[columns.u]
            labels.label_heading = columns.names[columns.v]
        used = f"nodes = {columns.name(columns.u)}, labels = {columns.name(columns.v)}"
        if columns.w is not None:
            labels.weights = gather((node, weight) for node, _, weight in rows)
            used += f", weights = {columns.name(columns.w)}"
        guessed = columns.guessed != "" or (columns.w is not None and label_weight_col is None)
        labels.columns = used + (" (guessed)" if guessed else "")
    return labels


def _read_rows(
    path: str, options: LabelOptions, unlabelled: Collection[str], content: bytes | None
) -> tuple[list[tuple[str, str, float]], ColumnChoice | None, int]:
    """Return the rows with a label (node, label, weight), the columns, and how often -1 occurs."""
    n_minus_ones = 0
    rows: list[tuple[str, str, float]] = []
    sources: list[Source] = []
    if content is None:
        sources += find_sources(path, options)
    else:
        sources.append(TextSource(path, options, "csv", io.BytesIO(content)))
    for source in sources:
        for raw in source.batches("string"):
            ends = (decode_ids(decode_codes(ids)) for ids in (raw.u, raw.v))
            nodes, labels = (list(map(str, ids.tolist())) for ids in ends)
            weights = [1.0] * len(nodes) if raw.w is None else raw.w.tolist()
            every = zip(nodes, labels, weights, strict=True)
            rows.extend(row for row in every if row[1].strip().lower() not in unlabelled)
            n_minus_ones += sum(text.strip() in MINUS_ONES for text in labels)
    return rows, sources[0].columns, n_minus_ones


def _as_integer(text: str) -> int:
    return int(text.partition(".")[0])


def _as_float(path: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        refuse_source(path, f"labels must be numbers here, got {text!r}")


def _refuse_measurements(path: str, labels: list[str], columns: ColumnChoice | None) -> None:
    """Refuse numbers with fractions, most of which are different."""
    n_different = len(set(labels))
    if n_different <= max(MANY, DISTINCT * len(labels)):
        return
    if all(NUMBER.fullmatch(text.strip()) for text in labels):
        column = "" if columns is None else f" ({columns.name(columns.v)})"
        example = next(text for text in labels if not INTEGER.fullmatch(text))
        refuse_source(
            path,
            f"the labels{column} are {n_different:,} different numbers, such as {example}, and no "
            f"classes; name another column with {Param('label_col')}, or group the numbers into "
            f"classes first; to predict numbers, use HFSRegressor in Python",
        )


def are_swapped(nodes: Sequence[Any], labels: Sequence[Any]) -> bool:
    """Whether two columns without usual names are labels and nodes: the latter all different."""
    return len(set(labels)) == len(labels) and 1 < len(nodes) >= 2 * len(set(nodes))


def gather(rows: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the value of each key, or a list of its values if several rows have the key."""
    found: dict[Any, list[Any]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def as_node_ids(
    path: str,
    ids: list[Any],
    kind: str | None,
    kinds: Sequence[str] = (),
    *,
    heading: str | None = None,
    rows: list[int] | None = None,
) -> NDArray[Any]:
    """Return the ids of a table as integers or strings, whichever `kind` the edges have.

    If nodes are of several `kinds`, an id has its kind in front, or the `heading` of the column of
    ids says it. A message names the row of an id if `rows` has their numbers.
    """

    def refuse(at: int, why: str) -> NoReturn:
        refuse_source(path, why, None if rows is None else rows[at])

    names = [str(as_integer(node)) for node in ids]
    if kinds:
        own = next((one for one in kinds if heading is not None and names_kind(heading, one)), None)
        for at, name in enumerate(names):
            if not name.startswith(tuple(f"{one}:" for one in kinds)):
                if own is None:
                    ways = " or ".join(repr(f"{one}:{name}") for one in kinds)
                    headings = " or ".join(kinds)
                    refuse(
                        at,
                        f"{ids[at]!r} may be of several kinds of nodes; write it as {ways}, or "
                        f"call the column of ids {headings}",
                    )
                names[at] = f"{own}:{name}"
    if kind != "int64":
        return np.array(names, dtype=object)
    numbers = [_core.parse_whole(name.strip().encode()) for name in names]
    if None in numbers:
        at = numbers.index(None)
        short = names[at].strip().lstrip("0")
        if short and _core.parse_whole(short.encode()) is not None:
            refuse(
                at,
                f"{ids[at]!r} has zeros in front, but the ids of the edges are integers; write it "
                f"as {short}, or, if those have zeros, too, read them with {STRINGS}",
            )
        refuse(
            at,
            f"the ids of the edges are integers, but {ids[at]!r} is not; if the edges have such "
            f"ids in later rows, read the edges (not this table) with {STRINGS}; otherwise this "
            f"table is about other nodes",
        )
    return np.array(numbers, dtype=np.int64)
