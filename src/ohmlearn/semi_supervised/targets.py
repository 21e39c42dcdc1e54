"""Find the labelled nodes and their labels in the argument y."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ohmlearn.nodes import NodeTable
from ohmlearn.streams.errors import refuse_source
from ohmlearn.streams.labels import as_node_ids
from ohmlearn.validation.edges import check_node_ids

__all__ = ["Labels", "find_classes", "find_values", "is_mapping", "is_unlabelled", "number_labels"]


class Labels(NamedTuple):
    """Labelled nodes, as numbers or as the ids of a stream, and their classes or values."""

    nodes: Any
    values: NDArray[Any]
    path: str = "y"  # where they come from, for messages
    heading: Any = None  # a node that may be the heading of the file


def is_mapping(y: Any, ids: NodeTable | None) -> bool:
    """Whether y has nodes as keys; for nodes with ids, the index of a pandas Series has them."""
    return isinstance(y, Mapping) or (ids is not None and type(y).__name__ == "Series")


def number_labels(labels: Labels, ids: NodeTable | None) -> Labels:
    """Replace node ids by numbers; ids that no edge has get the next free numbers.

    Examples
    --------
    >>> table = NodeTable()
    >>> _ = table.add(["ann", "bob"])
    >>> number_labels(Labels(["bob", "cy"], np.array([1, 0])), table).nodes
    array([1, 2])
    """
    if ids is None or isinstance(labels.nodes, np.ndarray):
        return labels
    nodes = as_node_ids(labels.path, labels.nodes, ids.kind, row="label")
    unknown = np.flatnonzero(ids.find(nodes) < 0)
    if len(unknown) == len(nodes):
        refuse_source(labels.path, f"no edge has any of these nodes, such as {nodes.tolist()[0]!r}")
    if labels.heading is not None and [labels.nodes[at] for at in unknown] == [labels.heading]:
        why = "seems to be a heading, but no column has a usual name"
        refuse_source(
            labels.path, f"{why}; name them (--node-col, --label-col) or take it out", "row 1"
        )
    numbers = ids.add(nodes).astype(np.int64)
    first: dict[int, Any] = {}
    for number, value, node in zip(numbers.tolist(), labels.values, nodes.tolist(), strict=True):
        if first.setdefault(number, value) != value:
            refuse_source(labels.path, f"node {node!r} has two labels")
    numbers, at = np.unique(numbers, return_index=True)
    return labels._replace(nodes=numbers, values=labels.values[at])


def find_classes(y: Any, n_nodes: int | None = None, ids: NodeTable | None = None) -> Labels:
    """Return the labelled nodes and their classes; -1, None and NaN mean unlabelled.

    Examples
    --------
    >>> labels = find_classes(["spam", None, "ham"])
    >>> labels.nodes.tolist(), labels.values.tolist()
    ([0, 2], ['spam', 'ham'])
    >>> find_classes({7: 1, 3: 0})
    Labels(nodes=array([7, 3]), values=array([1, 0]), path='y', heading=None)
    """
    labels = _split(y, n_nodes, ids)
    values = labels.values
    if values.dtype.kind == "O":
        known = np.array([not is_unlabelled(value) for value in values], dtype=bool)
        values = values[known]
        _check_scalars(values)
        values = np.array(values.tolist())
    elif values.dtype.kind == "f":
        _refuse_infinity(values)
        known = ~np.isnan(values) & (values != -1)
        values = values[known]
    elif values.dtype.kind == "i":
        known = values != -1
        values = values[known]
    else:
        known = np.ones(len(values), dtype=bool)
    if len(values) == 0:
        raise ValueError(
            "y has no label: all entries are -1, None or NaN, which mean unlabelled; at least one "
            "class must be given"
        )
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        # Integers are always classes: with few labels per class scikit-learn would mistake them
        # for a regression target.
        check_classification_targets(values)
    return labels._replace(nodes=_choose(labels.nodes, known), values=values)


def find_values(y: Any, n_nodes: int | None = None, ids: NodeTable | None = None) -> Labels:
    """Return the nodes with a number and the numbers; None and NaN mean unknown.

    Examples
    --------
    >>> find_values([1.5, None, -1.0])
    Labels(nodes=array([0, 2]), values=array([ 1.5, -1. ]), path='y', heading=None)
    """
    labels = _split(y, n_nodes, ids)
    values = labels.values
    if values.dtype.kind == "O":
        values = np.array([math.nan if value is None else value for value in values])
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers, None or NaN, got {values.dtype}: {error}") from error
    _refuse_infinity(numbers)
    known = ~np.isnan(numbers)
    if not known.any():
        raise ValueError(
            "y has no value: all entries are None or NaN, which mean unknown; at least one number "
            "must be given"
        )
    return labels._replace(nodes=_choose(labels.nodes, known), values=numbers[known])


def _choose(nodes: Any, known: NDArray[np.bool_]) -> Any:
    if isinstance(nodes, np.ndarray):
        return nodes[known]
    return [node for node, labelled in zip(nodes, known, strict=True) if labelled]


def _split(y: Any, n_nodes: int | None, ids: NodeTable | None) -> Labels:
    """Return the nodes and entries of a mapping, or of an array with one entry per node."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; give an array with one entry for "
            "each node, or a dict {node: label}"
        )
    if is_mapping(y, ids):
        path, heading = getattr(y, "path", "y"), getattr(y, "heading", None)
        y = dict(y)
        entries = np.empty(len(y), dtype=object)
        entries[:] = list(y.values())
        if ids is not None:
            return Labels(list(y), entries, path, heading)
        named = next((key for key in y if isinstance(key, str)), None)
        if named is not None:
            raise ValueError(
                f"y has the node {named!r}, but the nodes of these edges are numbers; read the "
                f"edges with read_edges, which knows their ids, or number both with NodeTable"
            )
        return Labels(check_node_ids(list(y), "y.keys()").astype(np.int64), entries)
    values = np.asarray(y)
    if values.dtype.kind in "UT" and not isinstance(y, np.ndarray):
        values = np.asarray(y, dtype=object)  # numpy turned None, NaN and -1 into strings
    elif values.dtype.kind in "UT":
        _warn_numbers_as_strings(values)
    values = column_or_1d(values, warn=True)
    if n_nodes is not None and len(values) != n_nodes:
        raise ValueError(
            f"y must have one entry for each of the {n_nodes} nodes, got {len(values)}; mark "
            f"unlabelled nodes by -1, None or NaN, or pass a dict {{node: label}}"
        )
    return Labels(np.arange(len(values)), values)


def _warn_numbers_as_strings(values: NDArray[Any]) -> None:
    """Warn of "-1" and "nan", into which numpy turns -1 and NaN among strings."""
    strange = [name for name in ("-1", "nan") if np.any(values == name)]
    if strange:
        warnings.warn(
            f"y has the class {strange[0]!r}, because an array of strings cannot hold -1 or NaN; "
            f"mark unlabelled nodes by None in an array of dtype object",
            UserWarning,
            stacklevel=4,
        )


def is_unlabelled(value: Any) -> bool:
    """Whether an entry means "unlabelled": None, NaN, pandas.NA or -1.

    Examples
    --------
    >>> [is_unlabelled(value) for value in (None, float("nan"), -1, "-1", False, 0)]
    [True, True, True, False, False, False]
    """
    if value is None or type(value).__name__ == "NAType":  # pandas.NA
        return True
    if isinstance(value, bool | np.bool_ | str):
        return False
    return bool(value == -1 or value != value)


def _check_scalars(values: NDArray[Any]) -> None:
    """Raise ValueError for labels that are not scalars or mix strings and numbers."""
    for value in values:
        if np.ndim(value) > 0 or isinstance(value, dict | set | frozenset):
            raise ValueError(f"a label must be a single string or number, got {value!r}")
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
