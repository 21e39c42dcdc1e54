"""Ids of nodes of several kinds, which start with the kind, as in "user:17"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.node_ids import Ids, Strings, decode_strings

__all__ = ["check_kinds", "find_plain", "kinds_in", "kinds_of", "with_kind"]


def with_kind(column: Ids, kind: str) -> Strings:
    """Return ids with a kind in front; those that have it already stay as they are.

    Examples
    --------
    >>> decode_strings(with_kind(np.array([17, 4]), "user"))
    array(['user:17', 'user:4'], dtype=object)
    """
    if isinstance(column, Strings):
        offsets: Any = column.offsets  # of 32 or 64 bits
        return Strings(*_core.with_prefix(offsets, column.data, f"{kind}:"))
    return Strings(*_core.with_prefix(column.astype(np.int64, copy=False), f"{kind}:"))


def find_plain(column: Ids, kinds: Sequence[str]) -> int:
    """Return the position of the first id that does not start with a kind, or -1."""
    if not isinstance(column, Strings):
        return 0 if column.size > 0 else -1
    offsets: Any = column.offsets
    return _core.find_without_prefix(offsets, column.data, [f"{kind}:" for kind in kinds])


def check_kinds(column: Ids, kinds: Sequence[str], name: str) -> None:
    """Refuse ids that do not start with a kind.

    Examples
    --------
    >>> check_kinds(np.array([17]), ("user", "item"), "ids")
    Traceback (most recent call last):
    ...
    ValueError: nodes are of the kinds user and item, so ids start with one, as in 'user:17' or
    'item:17', but ids[0] = 17
    """
    at = find_plain(column, kinds)
    if at < 0:
        return
    if isinstance(column, Strings):
        plain = decode_strings(Strings(column.offsets[at : at + 2], column.data))[0]
    else:
        plain = column[at].item()
    ways = " or ".join(repr(f"{kind}:{plain}") for kind in kinds)
    raise ValueError(
        f"nodes are of the kinds {' and '.join(kinds)}, so ids start with one, as in {ways}, but "
        f"{name}[{at}] = {plain!r}"
    )


def kinds_of(ids: Strings) -> tuple[str, ...]:
    """Return the kinds that ids start with, in the order of appearance."""
    offsets: Any = ids.offsets
    return tuple(_core.kinds_of(offsets, ids.data))


def kinds_in(state: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the kinds of nodes in the arrays of `NodeTable.get_state`."""
    kinds = state.get("node_kinds", np.empty(0, dtype=str))
    if kinds.dtype.kind != "U" or kinds.ndim != 1:
        raise ValueError(f"the names of kinds must be strings, got {kinds.dtype}")
    return tuple(kinds.tolist())
