"""Find the labelled nodes, their labels and weights in the arguments y and sample_weight.

Labels are kept in rows: a node, a class or number, and a weight. A node has one row for each of its
labels, or for each class of its distribution. `merge_rows` makes one row per node of them.
"""

import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import check_node_ids, is_table
from ohmlearn.errors import InputError, OhmWarning, Param
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import are_reordered
from ohmlearn.reading import label_table
from ohmlearn.reading.arrow_reader import read_whole
from ohmlearn.reading.column_choice import is_id
from ohmlearn.reading.label_table import FileLabels, as_node_ids, gather, read_labels
from ohmlearn.reading.source_errors import refuse_source

Floats = NDArray[np.float64]
MISSING = ("NAType", "NaTType")  # of pandas
SERIES = ("Series", "ChunkedArray", "Array")  # single columns, which have no nodes
NODES = ("node", "node_id", "id")  # usual headings of the column of nodes
VALUES = ("label", "class", "target", "weight")  # and of the other one
BY_NODE = "a dict {node: weight}, or a Series with nodes as its index"


class Labels(NamedTuple):
    """Labels in rows; a node may have several."""

    nodes: NDArray[Any]  # numbers; or the ids of a stream, as objects
    values: NDArray[Any]  # classes or numbers
    weights: Floats
    soft: NDArray[np.bool_]  # whether the row is a part of a distribution
    classes: NDArray[Any] | None = None  # if values are positions in it
    path: str = "y"  # where they come from, for messages
    id_heading: str | None = None  # of the column of nodes, which may say of which kind they are

    @property
    def has_ids(self) -> bool:
        """Whether nodes are ids, not numbers yet."""
        return self.nodes.dtype.kind == "O"

    def take(self, at: NDArray[Any]) -> "Labels":
        """Return some of the rows, in the order of `at`."""
        nodes, values, weights, soft = (column[at] for column in self[:4])
        return self._replace(nodes=nodes, values=values, weights=weights, soft=soft)


class NodeLabels(NamedTuple):
    """What the labels say about each labelled node."""

    nodes: NDArray[np.int64]
    values: Floats  # proportions of the classes, or one column of numbers
    weights: Floats


def choose_labels(labels: NodeLabels, at: NDArray[Any]) -> NodeLabels:
    """Return some of the labels."""
    return NodeLabels(labels.nodes[at], labels.values[at], labels.weights[at])


def split_by_edges(labels: NodeLabels, graph: Graph) -> tuple[NodeLabels, NodeLabels]:
    """Return the labels of nodes that have an edge, and the others.

    The others say nothing about any other node, so they must not change its answer. If no labelled
    node has an edge, both parts have all labels.
    """
    nodes = np.minimum(labels.nodes, graph.n_nodes - 1)
    has_edge = (labels.nodes == nodes) & (graph.indptr[nodes + 1] > graph.indptr[nodes])
    if not has_edge.any():
        return labels, labels
    return choose_labels(labels, has_edge), choose_labels(labels, ~has_edge)


def is_mapping(y: Any, ids: NodeTable | None) -> bool:
    """Whether y has nodes as keys; for nodes with ids, the index of a pandas object has them."""
    is_indexed = type(y).__name__ in ("Series", "DataFrame")
    return isinstance(y, Mapping) or (ids is not None and is_indexed)


def number_labels(labels: Labels, ids: NodeTable | None) -> Labels:
    """Replace node ids by numbers and sort by them; ids that no edge has get the next free ones.

    An array of labels for nodes with the ids 0, 1, ... in another order is refused.
    """
    if ids is None or not labels.has_ids:
        if ids is not None and are_reordered(ids):
            raise ValueError(
                f"y is an array, whose entries have the order of nodes.ids(), which starts with "
                f"{ids.ids()[:3].tolist()} here; to be sure, give labels by id: "
                f"dict(enumerate(y)) or pandas.Series(y) if y[i] is the label of the node i, else "
                f"dict(zip(edges.nodes.ids().tolist(), y))"
            )
        return labels
    nodes, is_unknown = _find_unknown(labels, ids)
    if is_unknown.all():
        there = f"; the edges have nodes such as {ids.ids([0]).tolist()[0]!r}" if len(ids) else ""
        refuse_source(
            labels.path,
            f"no edge has any of these nodes, such as {nodes.tolist()[0]!r}{there}; if these are "
            f"no nodes, call the columns of the labels node and label",
        )
    numbers = ids.add(nodes).astype(np.int64)
    return labels._replace(nodes=numbers).take(np.argsort(numbers, kind="stable"))


def _find_unknown(labels: Labels, ids: NodeTable) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the ids of labelled nodes as the edges have them, and whether no edge has them."""
    given = labels.nodes.tolist()
    nodes = as_node_ids(labels.path, given, ids.kind, ids.kinds, heading=labels.id_heading)
    return nodes, np.ma.getmaskarray(ids.find(nodes, missing="mask"))


def refuse_unknown(labels: Labels, ids: NodeTable | None) -> None:
    """Refuse labels of nodes that a graph does not have, because they may be mistyped.

    Of a stream they cannot be refused: its nodes are known only after it has been read, and a
    node without an edge may have a label.
    """
    if ids is None or not labels.has_ids:
        return
    nodes, is_unknown = _find_unknown(labels, ids)
    if is_unknown.any():
        unknown = nodes[is_unknown].tolist()
        raise ValueError(
            f"{labels.path} has {len(unknown):,} labels of nodes that are not in the graph, such "
            f"as {unknown[0]!r}; leave them out, or add the nodes to the graph"
        )


def merge_rows(labels: Labels) -> NodeLabels:
    """Return each node once, with the weighted mean of its rows and the sum of their weights."""
    if labels.classes is None:
        columns = labels.values[:, np.newaxis]
    else:
        columns = np.eye(len(labels.classes))[labels.values]
    _, first, group = np.unique(labels.nodes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # nodes stay in the order of their first rows
    group = np.argsort(order)[group]
    weights = np.bincount(group, weights=labels.weights).astype(np.float64, copy=False)
    sums = np.zeros((len(first), columns.shape[1]))
    np.add.at(sums, group, labels.weights[:, np.newaxis] * columns)
    return NodeLabels(labels.nodes[first[order]], sums / weights[:, np.newaxis], weights)


def find_contradictions(labels: Labels) -> NDArray[np.int64]:
    """Return the nodes with labels of different classes; a distribution is no contradiction."""
    values = labels.values[~labels.soft]
    nodes, first, group = np.unique(
        labels.nodes[~labels.soft], return_index=True, return_inverse=True
    )
    found: NDArray[np.int64] = nodes[np.unique(group[values != values[first][group]])]
    return found


def find_classes(
    y: object,
    n_nodes: int | None = None,
    ids: NodeTable | None = None,
    sample_weight: object = None,
) -> Labels:
    """Return a row for each label; -1, None, NaN and the weight 0 mean unlabelled."""
    labels = _split(y, n_nodes, ids, sample_weight, classes=True)
    values, known = labels.values, labels.weights > 0
    if values.dtype.kind == "O":
        known &= np.array([not is_unlabelled(value) for value in values], dtype=bool)
    elif values.dtype.kind == "f":
        _refuse_infinity(values)
        known &= ~np.isnan(values) & (values != -1)
    elif values.dtype.kind == "i":
        known &= values != -1
    values = values[known]
    if values.dtype.kind == "O":
        _check_scalars(values)
        values = np.array(values.tolist())
    if len(values) == 0:
        raise InputError(
            f"{Param('y')} has no label: all entries are -1, None or NaN, or have zero weight, "
            f"which mean unlabelled; at least one class must be given"
        )
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        # Integers are always classes: with few labels per class scikit-learn would mistake them
        # for a regression target. Its message for fractions starts with the same words.
        fraction = values[np.argmax(values != np.floor(values))]
        raise ValueError(
            f"Unknown label type: continuous. y has the number {fraction:g}, but classes must be "
            f"strings or integers; use HFSRegressor for numbers, or convert y with str if each "
            f"number is a class"
        )
    _warn_names(values, labels.path)
    return labels.take(known)._replace(values=values)


def read_classes(y: object, *how: Any) -> Labels:
    """Return the labels of `find_classes` as positions; warn if all are of one class."""
    labels = find_classes(y, *how)
    classes = labels.classes
    if classes is None:
        classes, codes = np.unique(labels.values, return_inverse=True)
        labels = labels._replace(values=codes, classes=classes)
    found = np.unique(labels.values)
    if len(found) == 1:
        warn(
            f"all labels are {classes.tolist()[found[0]]!r}, so all answers will be the same; "
            f"give labels of another class, too"
        )
    return labels


def find_single_classes(y: object, n_nodes: int | None = None) -> Labels:
    """Return the labels of `find_classes`, if no node has more than one."""
    labels = find_classes(y, n_nodes)
    if labels.soft.any() or len(np.unique(labels.nodes)) < len(labels.nodes):
        raise InputError(f"{Param('y')} must have at most one label for each node here")
    return labels


def find_values(
    y: object,
    n_nodes: int | None = None,
    ids: NodeTable | None = None,
    sample_weight: object = None,
) -> Labels:
    """Return a row for each number; None, NaN and the weight 0 mean unknown."""
    labels = _split(y, n_nodes, ids, sample_weight, classes=False)
    values = labels.values
    if values.dtype.kind == "O":
        values = np.array([math.nan if _is_missing(value) else value for value in values])
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{Param('y')} must be numbers, None or NaN, got {values.dtype}: {error}"
        ) from error
    _refuse_infinity(numbers)
    known = ~np.isnan(numbers) & (labels.weights > 0)
    if not known.any():
        raise InputError(
            f"{Param('y')} has no value: all entries are None or NaN, or have zero weight, which "
            f"mean unknown; at least one number must be given"
        )
    return labels.take(known)._replace(values=numbers[known])


def _split(
    y: Any, n_nodes: int | None, ids: NodeTable | None, sample_weight: object, *, classes: bool
) -> Labels:
    """Return the rows of a mapping, or of an array with one entry or row per node."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; give an array with one entry for "
            "each node, or a dict {node: label}"
        )
    path, id_heading, names = "y", None, None
    if classes and type(y).__name__ == "DataFrame" and y.shape[1] > 1:
        names = np.array(y.columns.tolist())
    if is_mapping(y, ids):
        if isinstance(y, Mapping):  # a frame would answer with its columns
            path, id_heading = getattr(y, "path", "y"), getattr(y, "id_heading", None)
        elif isinstance(y.index.name, str):
            id_heading = y.index.name
        nodes, entries = _split_mapping(y, ids, classes)
    else:
        entries = _as_array(y, classes)
        nodes = np.arange(len(entries))
        if n_nodes is not None and len(entries) != n_nodes:
            raise InputError(
                f"{Param('y')} must have one entry for each of the {n_nodes} nodes, got "
                f"{len(entries)}; mark unlabelled nodes by -1, None or NaN, or pass a dict "
                f"{{node: label}}"
            )
    if entries.ndim == 2:
        proportions = normalise_rows(entries)
        at, values = np.nonzero(proportions)
        parts, soft = proportions[at, values], np.ones(len(at), dtype=bool)
        names = np.arange(entries.shape[1]) if names is None else names
    else:
        at, values, parts, soft = _as_rows(entries, classes)
    given = is_mapping(y, ids), is_mapping(sample_weight, ids)
    parts = parts * weigh_rows(sample_weight, nodes, at, soft, *given)
    return Labels(nodes[at], values, parts, soft, names, path, id_heading)


def _split_mapping(
    y: Any, ids: NodeTable | None, classes: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the nodes and the entries of a mapping, or of a pandas object with an index of ids."""
    if type(y).__name__ == "DataFrame":
        return _as_objects(y.index.tolist()), _as_array(y, classes)
    path = getattr(y, "path", None)
    y = as_dict(y)
    entries = _as_objects(y.values())
    if ids is not None:
        return _as_objects(y), entries
    if path is not None:  # ids in files are strings
        return as_node_ids(path, list(y), "int64"), entries
    named = next((key for key in y if isinstance(key, str)), None)
    if named is not None:
        raise InputError(
            f"{Param('y')} has the node {named!r}, but the nodes of these edges are numbers; read "
            f"the edges with read_edges, which knows their ids, or number both with NodeTable"
        )
    whole = [int(x) if isinstance(x, float) and x.is_integer() else x for x in y]
    return check_node_ids(whole, "y.keys()").astype(np.int64), entries


def _as_objects(values: Collection[Any]) -> NDArray[Any]:
    """Return a vector of objects, also if these are lists or tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


def _as_array(y: Any, classes: bool) -> NDArray[Any]:
    """Return y as an array with one entry per node, or as a matrix of class proportions."""
    if isinstance(y, np.ma.MaskedArray):
        y = np.array(y.tolist(), dtype=object)  # None where it is masked
    values = np.asarray(y)
    if classes and values.ndim == 2 and values.shape[1] > 1:
        return values
    if classes and values.dtype.kind == "f" and not isinstance(y, np.ndarray):
        values = _keep_integers(y, values)
    if values.dtype.kind in "UT" and not isinstance(y, np.ndarray):
        values = np.asarray(y, dtype=object)  # numpy turned None, NaN and -1 into strings
    elif values.dtype.kind in "UT":
        _warn_numbers_as_strings(values)
    if values.ndim == 1:
        return values
    from sklearn.utils import column_or_1d  # late: takes a second to import

    column: NDArray[Any] = column_or_1d(values, warn=True)  # warns, or refuses
    return column


def _keep_integers(y: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Return the entries as they were if numpy turned integers to floats for what is missing."""
    column = y.iloc[:, 0] if hasattr(y, "iloc") and y.ndim == 2 else y
    entries = _as_objects(column.to_pylist() if hasattr(column, "to_pylist") else list(column))
    whole = any(isinstance(entry, Integral) for entry in entries)
    return entries.reshape(values.shape) if whole else values


def _as_rows(
    entries: NDArray[Any], classes: bool
) -> tuple[NDArray[np.int64], NDArray[Any], Floats, NDArray[np.bool_]]:
    """Return, for each row, the position of its entry, its value, its part, and whether it is one.

    An entry that is a list has a row for each label, one that is a mapping for each class.
    """
    if entries.dtype.kind != "O" or not any(map(has_several, entries)):
        n = len(entries)
        return np.arange(n), entries, np.ones(n), np.zeros(n, dtype=bool)
    rows: list[tuple[int, Any, float, bool]] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            if not classes:
                raise ValueError(f"a value must be a number or a list of numbers, got {entry!r}")
            row = np.array([list(entry.values())], dtype=object)
            proportions = normalise_rows(row, f"the entry {entry!r} of y")[0].tolist()
            rows += [(number, *one, True) for one in zip(entry, proportions, strict=True)]
        else:
            labels = entry if has_several(entry) else [entry]
            rows += [(number, label, 1.0, False) for label in labels]
    at, values, parts, soft = zip(*rows, strict=True) if rows else ((), (), (), ())
    return np.array(at, np.int64), _as_objects(values), np.array(parts), np.array(soft, bool)


def _warn_numbers_as_strings(values: NDArray[Any]) -> None:
    """Warn of "-1" and "nan", into which numpy turns -1 and NaN among strings."""
    strange = [name for name in ("-1", "nan") if np.any(values == name)]
    if strange:
        warn(
            f"{Param('y')} has the class {strange[0]!r}, because an array of strings cannot hold "
            f"-1 or NaN; mark unlabelled nodes by None in an array of dtype object",
            OhmWarning,
        )


def _warn_names(values: NDArray[Any], path: str) -> None:
    """Warn of an empty string, which is a class like any other, and of names that are alike."""
    if values.dtype.kind not in "UT":
        return
    counts = Counter(values.tolist())
    if counts[""]:
        warn(
            f"{path} has the class '', an empty string ({counts['']:,} labels); mark unlabelled "
            f"nodes by None",
        )
    alike: dict[str, list[str]] = {}
    for name in sorted(counts):
        alike.setdefault(" ".join(name.split()).casefold(), []).append(name)
    for names in alike.values():
        if len(names) > 1:
            shown = " and ".join(f"{name!r} ({counts[name]:,} labels)" for name in names[:5])
            warn(
                f"{path} has the classes {shown}, which differ only in case or blanks; they are "
                f"different classes; if they are one, write them alike, for example with "
                f".strip().lower()",
            )


def is_unlabelled(value: object) -> bool:
    """Whether an entry means "unlabelled": None, NaN, pandas.NA or -1."""
    if _is_missing(value):
        return True
    if isinstance(value, bool | np.bool_ | str):
        return False
    return bool(value == -1 or value != value)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in MISSING


def _check_scalars(values: NDArray[Any]) -> None:
    """Raise ValueError for labels that are not scalars or mix strings and numbers."""
    for value in values:
        if np.ndim(value) > 0 or isinstance(value, dict | set | frozenset):
            raise ValueError(
                f"a label must be a string or number, or a list of them, or for classes a dict "
                f"{{class: proportion}}, got {value!r}"
            )
    first = {isinstance(value, str): value for value in values[::-1]}
    if len(first) > 1:
        raise ValueError(
            f"labels must be all strings or all numbers, got {first[True]!r} and {first[False]!r}; "
            f"convert all of them, for example with str"
        )


def _refuse_infinity(values: NDArray[Any]) -> None:
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        raise ValueError(
            f"Input y contains infinity or a value too large for {values.dtype!r}: entry {at}"
        )


# How much each label counts: proportions of a distribution, and the argument sample_weight.


def has_several(entry: object) -> bool:
    """Whether an entry of y is a list of labels or a distribution, not a single label."""
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0
    return isinstance(entry, list | tuple | set | frozenset | Mapping)


def normalise_rows(proportions: NDArray[Any], name: str = "y") -> Floats:
    """Return rows that sum to 1, or to 0 if all proportions are 0 or NaN."""
    try:
        rows = np.array(proportions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have numbers as class proportions: {error}") from error
    rows[np.isnan(rows).all(axis=1)] = 0.0
    bad = ~(np.isfinite(rows) & (rows >= 0))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"the proportion in row {at[0]}, column {at[1]}," if name == "y" else "a proportion"
        raise ValueError(
            f"{name} has proportions of the classes, which must be finite and not negative, but "
            f"{place} is {rows[at]}; unlabelled nodes have only NaN or only 0"
        )
    largest = rows.max(axis=1, keepdims=True, initial=0.0)
    rows /= np.where(largest > 0, largest, 1.0)  # so that the sum does not overflow
    total = rows.sum(axis=1, keepdims=True)
    return rows / np.where(total > 0, total, 1.0)


def weigh_rows(
    sample_weight: object,
    nodes: NDArray[Any],
    at: NDArray[np.int64],
    soft: NDArray[np.bool_],
    by_node: bool,
    given_by_node: bool,
) -> Floats:
    """Return the weight of each row of labels.

    `nodes` are those of the entries of y, `at` is the entry of each row, and `soft` whether it is a
    part of a distribution, which has no weight of its own. `by_node` and `given_by_node` say
    whether y and sample_weight are mappings.
    """
    if sample_weight is None:
        return np.ones(len(at))
    if by_node != given_by_node:
        raise InputError(
            f"{Param('y')} is {'given by node' if by_node else 'an array'}, so "
            f"{Param('sample_weight')} must be "
            f"{BY_NODE if by_node else 'an array with one weight per node'}, got "
            f"{type(sample_weight).__name__}"
        )
    if by_node:
        return _weigh_by_node(as_dict(sample_weight), nodes.tolist(), at, soft)
    weights = _as_weights(sample_weight, "sample_weight")
    if weights.shape != (len(nodes),):
        raise InputError(
            f"{Param('sample_weight')} must have one entry for each of the {len(nodes)} entries "
            f"of y, got shape {weights.shape}"
        )
    return weights[at]


def _weigh_by_node(
    given: dict[Any, Any], names: list[Any], at: NDArray[np.int64], soft: NDArray[np.bool_]
) -> Floats:
    if given and given.keys().isdisjoint(names):
        raise InputError(
            f"{Param('sample_weight')} has no node of y; it has {next(iter(given))!r}, and y has "
            f"{names[:1]}"
        )
    own = [given.get(name, 1.0) for name in names]
    lists = {number: weight for number, weight in enumerate(own) if has_several(weight)}
    single = [1.0 if number in lists else weight for number, weight in enumerate(own)]
    weights = _as_weights(single, "sample_weight", names)[at]
    for number, weight in lists.items():
        name = f"sample_weight[{names[number]!r}]"
        rows = slice(*np.searchsorted(at, (number, number + 1)))  # entries are in order
        each = _as_weights(weight, name)
        if each.shape != at[rows].shape or soft[rows].any():
            raise ValueError(
                f"{name} must be one number, or a list with one for each label of the node, got "
                f"{weight!r}"
            )
        weights[rows] = each
    return weights


def _as_weights(given: object, name: str, keys: list[Any] | None = None) -> Floats:
    """Return an array of weights; `keys` are what they are known by, else their positions."""
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    bad = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad) > 0:
        where = "".join(f"[{i}]" for i in bad[0]) if keys is None else f"[{keys[bad[0, 0]]!r}]"
        raise ValueError(
            f"weights of labels must be finite and not negative, but {name}{where} = "
            f"{weights[tuple(bad[0])]}; the weight 0 means unlabelled"
        )
    return weights


# Labels and weights that are given by node: a dict, a Series, or a table of two columns.


def by_node(given: Any, *, by_index: bool) -> Any:
    """Return labels or weights as a dict if they say to which nodes they belong, else as they are.

    Tables with two columns do, the nodes and the labels; one of pandas may be a matrix of class
    proportions instead, see `_is_table`. A pandas Series does by its index, if `by_index`; for
    points, scikit-learn's interface wants the order of the points, whatever the index is.
    """
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    if library == "pandas" and name == "Series" and by_index:
        return as_dict(given)
    if (library, name) == ("pandas", "DataFrame"):
        names = given.columns.tolist()
        columns = [given.iloc[:, at].tolist() for at in range(len(names))]
        if not _is_table(names, columns):
            return given  # proportions of the classes, or a single column
    elif name not in SERIES and is_table(given):
        table = read_whole(given)
        names, columns = table.column_names, [column.to_pylist() for column in table.columns]
    else:
        return given
    if len(names) != 2:
        raise ValueError(
            f"a table of labels or weights must have two columns, the nodes and their values, got "
            f"{', '.join(map(repr, names)) or 'none'}; select two of them"
        )
    at = _find_nodes(names, columns)
    if library == "pandas" and str(names[at]).lower() in VALUES:
        raise ValueError(
            f"a table of labels or weights must have a column of nodes, got {names[0]!r} and "
            f"{names[1]!r}; if its index has the nodes, give table[{names[1 - at]!r}]"
        )
    return _gather(zip(columns[at], columns[1 - at], strict=True), names[at])


def _is_table(names: list[Any], columns: list[list[Any]]) -> bool:
    """Whether a pandas table has a column of nodes, and not proportions of the classes."""
    if len(names) < 2:
        return False
    headings = [str(name).lower() for name in names]
    if any(heading in NODES or is_id(heading) for heading in headings):
        return True
    if len(names) == 2 and not {*VALUES}.isdisjoint(headings):
        return True
    return any(isinstance(value, str) for column in columns for value in column)


def _find_nodes(names: list[Any], columns: Sequence[Sequence[Any]] = ((), ())) -> int:
    """Return which of two columns has the nodes: the first, unless headings or values disagree."""
    simple = [str(name).lower() for name in names]
    found = [at for at in range(2) if simple[at] in NODES]
    if found or not {*simple}.isdisjoint(VALUES):
        return found[0] if found else int(simple[0] in VALUES)
    return int(is_id(simple[1]) and not is_id(simple[0])) or int(label_table.are_swapped(*columns))


def label_heading(y: Any) -> str | None:
    """Return the name of the column that labels come from, if it has one."""
    library, kind = type(y).__module__.partition(".")[0], type(y).__name__
    names: list[Any] = []
    if library == "pyarrow":
        names = y.schema.names if kind in ("Table", "RecordBatch") else []
    elif library in ("pandas", "polars", "duckdb", "_duckdb"):
        names = [y.name] if kind == "Series" else list(getattr(y, "columns", ()))
    elif isinstance(y, Mapping):
        names = [getattr(y, "label_heading", None)]
    is_pair = len(names) == 2 and (library != "pandas" or _is_table(names, []))
    name = names[0] if len(names) == 1 else names[1 - _find_nodes(names)] if is_pair else None
    return name if isinstance(name, str) else None


def pair_by_node(
    y: object, sample_weight: object, *, by_index: bool, numbers: bool = False
) -> tuple[Any, Any]:
    """Return labels and their weights, as dicts if the labels are given by node; a path is read."""
    if isinstance(y, str | os.PathLike):
        y = _read_labels(os.fspath(y), numbers)
        sample_weight = y.weights if sample_weight is None else sample_weight
    _refuse_pairs(y, by_index)
    labels = by_node(y, by_index=by_index)
    if isinstance(labels, Mapping):  # else weights are in the order of the nodes, too
        sample_weight = by_node(sample_weight, by_index=True)
    return labels, sample_weight


def _read_labels(path: str, numbers: bool) -> FileLabels:
    """Return the labels of a file; a single word may be meant as an attribute of the nodes."""
    try:
        return read_labels(path, numbers=numbers)
    except FileNotFoundError as error:
        if not path.isidentifier():
            raise
        raise FileNotFoundError(
            f"{error}; labels are a path, an array or a dict {{node: label}}, which is "
            f"dict(G.nodes(data={path!r})) for an attribute of a networkx graph"
        ) from error


def _refuse_pairs(y: object, by_index: bool) -> None:
    """Refuse what looks like labels by node, but is none of the forms that are taken.

    Pairs of numbers may be proportions of two classes instead: for points, if they are lists, and
    if the first numbers are not all different.
    """
    if not isinstance(y, list | tuple) or not y:
        return
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in y):
        return
    named = any(isinstance(value, str) for pair in y for value in pair)
    numbered = by_index and all(
        isinstance(pair, tuple) and isinstance(pair[0], Integral) for pair in y
    )
    nodes = {pair[0] for pair in y} if numbered else set()
    if named or (len(nodes) == len(y) and max(nodes) > 1):
        raise InputError(
            f"{Param('y')} has pairs, such as {y[0]!r}; if these are nodes and their labels, give "
            f"dict(y)"
        )


def as_dict(given: Any) -> dict[Any, Any]:
    """Return a mapping or a pandas Series as a dict; a Series may have a node several times."""
    if not isinstance(given, Mapping):
        found = _gather(given.items(), given.index.name)
        found.has_default_index = given.index.name is None and is_default_index(given.index)
        return found
    _check_nodes(given)
    return dict(given)


class NodeDict(dict[Any, Any]):
    """Values by node; the heading of the nodes may say of which kind they are."""

    id_heading: str | None = None
    has_default_index = False  # 0, 1, 2, ..., because a pandas Series was given none


def is_default_index(index: Any) -> bool:
    """Whether an index of pandas is 0, 1, 2, ..."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def warn_default_index(y: object, n_nodes: int) -> None:
    """Warn of a Series without an index of its own that has not one label for each node."""
    if isinstance(y, NodeDict) and y.has_default_index and len(y) != n_nodes:
        warn(
            "the index of this Series is 0, 1, 2, ..., so its labels are those of the nodes 0, 1, "
            "...; set the column of nodes as its index",
        )


def _gather(rows: Iterable[tuple[Any, Any]], heading: object = None) -> NodeDict:
    pairs = list(rows)
    _check_nodes(node for node, _ in pairs)
    found = NodeDict(gather(pairs))
    found.id_heading = heading if isinstance(heading, str) else None
    return found


def _check_nodes(nodes: Iterable[Any]) -> None:
    """Refuse what cannot be the id of a node."""
    for node in nodes:
        if _is_missing(node) or (isinstance(node, float) and node != node):
            raise ValueError(
                f"labels and weights belong to nodes, but {node!r} is no id; leave it out"
            )
        try:
            hash(node)
        except TypeError:
            raise ValueError(
                f"ids of nodes must be integers or strings, got {node!r} in labels or weights"
            ) from None
