"""Which nodes are labelled, and with what."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ohmlearn.validation.edges import check_node_ids

__all__ = ["find_classes", "find_values", "is_unlabelled"]

Labelled = tuple[NDArray[np.int64], NDArray[Any]]


def find_classes(y: Any, n_nodes: int | None = None) -> Labelled:
    """Return the labelled nodes and their classes; -1, None and NaN mean unlabelled.

    Examples
    --------
    >>> nodes, classes = find_classes(["spam", None, "ham"])
    >>> nodes.tolist(), classes.tolist()
    ([0, 2], ['spam', 'ham'])
    >>> find_classes({7: 1, 3: 0})
    (array([7, 3]), array([1, 0]))
    """
    nodes, values = _split(y, n_nodes)
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
        # Whole numbers are not asked about: of few labels a class they would be suspected.
        check_classification_targets(values)
    return nodes[known], values


def find_values(y: Any, n_nodes: int | None = None) -> Labelled:
    """Return the nodes with a number and the numbers; None and NaN mean unknown.

    Examples
    --------
    >>> find_values([1.5, None, -1.0])
    (array([0, 2]), array([ 1.5, -1. ]))
    """
    nodes, values = _split(y, n_nodes)
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
    return nodes[known], numbers[known]


def _split(y: Any, n_nodes: int | None) -> Labelled:
    """Return nodes and entries, of a mapping or of one entry a node."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; give an array with one entry a "
            "node, or a dict {node: label}"
        )
    if isinstance(y, Mapping):
        entries = np.empty(len(y), dtype=object)
        entries[:] = list(y.values())
        named = next((key for key in y if isinstance(key, str)), None)
        if named is not None:
            raise ValueError(
                f"y has the node {named!r}, but the nodes of these edges are numbers; read the "
                f"edges with read_edges, which knows their ids, or number both with NodeTable"
            )
        nodes = check_node_ids(list(y.keys()), "y.keys()")
        return nodes.astype(np.int64), entries
    values = np.asarray(y)
    if values.dtype.kind in "UT" and not isinstance(y, np.ndarray):
        values = np.asarray(y, dtype=object)  # numpy has made strings of None, NaN and -1
    elif values.dtype.kind in "UT":
        _tell_numbers_as_strings(values)
    values = column_or_1d(values, warn=True)
    if n_nodes is not None and len(values) != n_nodes:
        raise ValueError(
            f"y must have one entry a node, {n_nodes} of them, got {len(values)}; mark unlabelled "
            f"nodes by -1, None or NaN, or pass a dict {{node: label}}"
        )
    return np.arange(len(values)), values


def _tell_numbers_as_strings(values: NDArray[Any]) -> None:
    """Warn of what numpy makes of -1 and NaN among strings."""
    strange = [name for name in ("-1", "nan") if np.any(values == name)]
    if strange:
        warnings.warn(
            f"y has the class {strange[0]!r}: arrays of strings hold neither -1 nor NaN; mark "
            f"unlabelled nodes by None in an array of dtype object",
            UserWarning,
            stacklevel=4,
        )


def is_unlabelled(value: Any) -> bool:
    """Whether an entry means that a label is not known: None, NaN, pandas.NA or -1.

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
    """Refuse labels that cannot be classes side by side."""
    for value in values:
        if np.ndim(value) > 0 or isinstance(value, dict | set | frozenset):
            raise ValueError(f"a label must be a single string or number, got {value!r}")
    first = {isinstance(value, str): value for value in values[::-1]}
    if len(first) > 1:
        raise ValueError(
            f"labels must be all strings or all numbers, got {first[True]!r} and {first[False]!r}; "
            f"make them all strings, say, with str"
        )


def _refuse_infinity(values: NDArray[Any]) -> None:
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        raise ValueError(
            f"Input y contains infinity or a value too large for {values.dtype!r}: entry {at}"
        )
