"""Columns of ids as the kernels take them: equally long, of one kind, and of one width."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.node_ids import Ids, Strings

__all__ = [
    "arguments",
    "check_equal_sizes",
    "check_id_kind",
    "make_alike",
    "number_column",
    "widen",
]


def widen(column: Ids) -> Ids:
    """Return integers with 64 bits; strings stay as they are."""
    return column if isinstance(column, Strings) else column.astype(np.int64, copy=False)


def arguments(column: Ids) -> tuple[NDArray[Any], ...]:
    """Return the arrays of which a column consists."""
    return tuple(column) if isinstance(column, Strings) else (column,)


def number_column(method: Any, column: Ids) -> NDArray[np.int32]:
    """Return what a method of a kernel says are the numbers of ids."""
    numbers: NDArray[np.int32] = method(*arguments(column))
    return numbers


def make_alike(a: Ids, b: Ids) -> tuple[Ids, Ids]:
    """Return both columns with integers or offsets of the same width.

    Examples
    --------
    >>> make_alike(np.array([1], np.int32), np.array([2], np.int64))
    (array([1]), array([2]))
    """
    if isinstance(a, Strings) != isinstance(b, Strings):
        kinds = ["string" if isinstance(x, Strings) else "int64" for x in (a, b)]
        check_id_kind(kinds[1], kinds[0])
    if isinstance(a, Strings) and isinstance(b, Strings):
        if a.offsets.dtype != b.offsets.dtype:
            a, b = (Strings(x.offsets.astype(np.int64), x.data) for x in (a, b))
        return a, b
    both_narrow = all(not isinstance(x, Strings) and x.dtype == np.int32 for x in (a, b))
    return (a, b) if both_narrow else (widen(a), widen(b))


def check_equal_sizes(**sizes: int) -> None:
    """Raise ValueError unless all columns have the same length."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"len({name}) = {size}" for name, size in sizes.items())
        raise ValueError(f"the columns of edges must be equally long, got {found}")


def check_id_kind(kind: str, expected: str | None) -> None:
    """Refuse ids whose kind is not that of the table."""
    words = {"int64": "integers", "string": "strings"}
    if expected is not None and kind != expected:
        raise TypeError(
            f"node ids were {words[expected]} so far, but now {words[kind]} came; "
            f"make them all strings, for example with astype(str)"
        )
