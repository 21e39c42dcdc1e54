"""How much each label counts: shares of a distribution, and the argument sample_weight."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.estimators.labels_by_node import as_dict

__all__ = ["has_several", "normalise_shares", "weigh_rows"]

Floats = NDArray[np.float64]
BY_NODE = "a dict {node: weight}, or a Series with nodes as its index"


def has_several(entry: Any) -> bool:
    """Whether an entry of y is a list of labels or a distribution, not a single label.

    Examples
    --------
    >>> [has_several(entry) for entry in (["a"], {"a": 0.5, "b": 0.5}, "ab", np.array(1))]
    [True, True, False, False]
    """
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0
    return isinstance(entry, list | tuple | set | frozenset | Mapping)


def normalise_shares(shares: NDArray[Any], name: str = "y") -> Floats:
    """Return rows that sum to 1, or to 0 if all shares are 0 or NaN.

    Examples
    --------
    >>> normalise_shares(np.array([[1, 3], [0, 0], [np.nan, np.nan]]))
    array([[0.25, 0.75],
           [0.  , 0.  ],
           [0.  , 0.  ]])
    """
    try:
        rows = np.array(shares, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have numbers as shares of the classes: {error}") from error
    rows[np.isnan(rows).all(axis=1)] = 0.0
    bad = ~(np.isfinite(rows) & (rows >= 0))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"the share in row {at[0]}, column {at[1]}," if name == "y" else "a share"
        raise ValueError(
            f"{name} has shares of the classes, which must be finite and not negative, but "
            f"{place} is {rows[at]}; unlabelled nodes have only NaN or only 0"
        )
    largest = rows.max(axis=1, keepdims=True, initial=0.0)
    rows /= np.where(largest > 0, largest, 1.0)  # so that the sum does not overflow
    total = rows.sum(axis=1, keepdims=True)
    normalised: Floats = rows / np.where(total > 0, total, 1.0)
    return normalised


def weigh_rows(
    sample_weight: Any,
    nodes: Any,
    at: NDArray[np.int64],
    soft: NDArray[np.bool_],
    by_node: bool,
    given_by_node: bool,
) -> Floats:
    """Return the weight of each row of labels.

    Parameters
    ----------
    sample_weight : array-like, mapping or None
    nodes : array or list
        The nodes of the entries of y.
    at : ndarray
        The entry of each row.
    soft : ndarray of bool
        Whether a row is a share of a distribution, for which there is no weight of its own.
    by_node, given_by_node : bool
        Whether y and sample_weight are mappings.
    """
    if sample_weight is None:
        return np.ones(len(at))
    if by_node != given_by_node:
        raise ValueError(
            f"y is {'given by node' if by_node else 'an array'}, so sample_weight must be "
            f"{BY_NODE if by_node else 'an array with one weight per node'}, got "
            f"{type(sample_weight).__name__}"
        )
    if by_node:
        return _weigh_by_node(as_dict(sample_weight), nodes, at, soft)
    weights = _as_weights(sample_weight, "sample_weight")
    if weights.shape != (len(nodes),):
        raise ValueError(
            f"sample_weight must have one entry for each of the {len(nodes)} entries of y, got "
            f"shape {weights.shape}"
        )
    return weights[at]


def _weigh_by_node(
    given: dict[Any, Any], nodes: Any, at: NDArray[np.int64], soft: NDArray[np.bool_]
) -> Floats:
    names = nodes.tolist() if isinstance(nodes, np.ndarray) else nodes
    if given and given.keys().isdisjoint(names):
        raise ValueError(
            f"sample_weight has no node of y; it has {next(iter(given))!r}, and y has {names[:1]}"
        )
    own = [given.get(name, 1.0) for name in names]
    lists = [number for number, weight in enumerate(own) if has_several(weight)]
    single = own.copy()
    for number in lists:
        single[number] = 1.0
    weights = _as_weights(single, "sample_weight", names)[at]
    for number in lists:
        name = f"sample_weight[{names[number]!r}]"
        start, stop = np.searchsorted(at, (number, number + 1))  # entries are in order
        each = _as_weights(own[number], name)
        if each.shape != (stop - start,) or soft[start:stop].any():
            raise ValueError(
                f"{name} must be one number, or a list with one for each label of the node, got "
                f"{own[number]!r}"
            )
        weights[start:stop] = each
    return weights


def _as_weights(given: Any, name: str, keys: Sequence[Any] | None = None) -> Floats:
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
