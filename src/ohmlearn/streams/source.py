"""What the readers have in common: a request, the columns chosen, and batches of raw columns."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.ids import Ids, Strings
from ohmlearn.streams.errors import refuse_source

__all__ = ["Columns", "RawBatch", "Request", "Source", "choose_columns", "drop_bad", "shorten"]

# Pairs of names that columns of edges usually have, in lower case; the first found is taken.
USUAL_ENDS = (
    ("u", "v"),
    ("src", "dst"),
    ("source", "target"),
    ("from", "to"),
    ("fromnodeid", "tonodeid"),
    ("from_node", "to_node"),
    ("from_id", "to_id"),
    ("source_id", "target_id"),
    ("src_id", "dst_id"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("payer", "payee"),
    ("follower", "followee"),
    ("citing", "cited"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("head", "tail"),
    ("i", "j"),
)
USUAL_WEIGHTS = ("w", "weight", "weights")

Column = str | int


@dataclass(frozen=True)
class Request:
    """What the user asked of all sources of a stream."""

    u: Column | None = None
    v: Column | None = None
    w: Column | None = None
    id_type: Literal["int64", "string"] | None = None
    skip_bad: bool = False
    header: bool | None = None  # these three for text only
    delimiter: str | None = None
    comment: str | None = None


class Columns(NamedTuple):
    """The columns that a source takes edges from, by position, and their names."""

    u: int
    v: int
    w: int | None
    names: Sequence[str] | None  # of all columns, where they have any
    guessed: bool

    def name(self, at: int | None) -> str | None:
        """Return the name of a column, or its position."""
        return None if at is None else f"{self.names[at]!r}" if self.names else f"column {at}"

    def __str__(self) -> str:
        how = " (guessed)" if self.guessed else ""
        weights = f"weights = {self.name(self.w)}" if self.w is not None else "no weights"
        return f"u = {self.name(self.u)}, v = {self.name(self.v)}, {weights}{how}"


class RawBatch(NamedTuple):
    """Some edges with the user's ids; weights are checked."""

    u: Ids
    v: Ids
    w: NDArray[np.float32] | NDArray[np.float64] | None = None
    n_bad: int = 0  # rows left out
    first_bad: str | None = None  # and why the first of them


class Source(ABC):
    """One file, pipe or object with edges.

    Attributes
    ----------
    name : str
        For messages.
    rereadable : bool
    n_edges : int or None
        Where that is known beforehand.
    fraction : float or None
        Share that has been read of it.
    columns : Columns or None
        Known once `inspect` or `batches` has looked at the source.
    """

    def __init__(self, name: str, request: Request, *, rereadable: bool = True) -> None:
        self.name = name
        self.request = request
        self.rereadable = rereadable
        self.n_edges: int | None = None
        self.fraction: float | None = None
        self.columns: Columns | None = None

    @abstractmethod
    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read from the beginning; `kind` is that of the ids that came before, if any."""

    @abstractmethod
    def inspect(self) -> None:
        """Find columns and size without reading on, where that is possible."""


def shorten(text: str, limit: int = 60) -> str:
    """Return text for a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def choose_columns(
    source: str, request: Request, names: Sequence[str] | None, n_columns: int
) -> Columns:
    """Find the columns asked for, or the usual ones, or the first two.

    Examples
    --------
    >>> print(choose_columns("e.csv", Request(), ["id", "src", "dst", "weight"], 4))
    u = 'src', v = 'dst', weights = 'weight' (guessed)
    >>> print(choose_columns("e.txt", Request(w=2), None, 3))
    u = column 0, v = column 1, weights = column 2 (guessed)
    """

    def find(column: Column) -> int:
        if isinstance(column, str):
            if names is None:
                refuse_source(source, f"has no names of columns, so there is no column {column!r}")
            if column not in names:
                found = ", ".join(shorten(name) for name in names[:20])
                refuse_source(source, f"has no column {column!r}, only {found}")
            return names.index(column)
        if not 0 <= column < n_columns:
            refuse_source(source, f"has no column {column}, only {n_columns} of them")
        return column

    if n_columns < 2:
        refuse_source(source, f"an edge needs two columns, got {n_columns}")
    lower = [name.strip().lower() for name in names or ()]
    usual = next((pair for pair in USUAL_ENDS if pair[0] in lower and pair[1] in lower), None)
    guess = [lower.index(name) for name in usual] if usual else [0, 1]
    u = guess[0] if request.u is None else find(request.u)
    v = guess[1] if request.v is None else find(request.v)
    w = None if request.w is None else find(request.w)
    if request.w is None:
        w = next((lower.index(name) for name in USUAL_WEIGHTS if name in lower), None)
    guessed = request.u is None or request.v is None
    if guessed and usual is None and len({*lower} - {*USUAL_WEIGHTS}) > 2:
        ends = " and ".join(shorten((names or lower)[at]) for at in (u, v))
        warnings.warn(
            f"{source}: no columns have usual names, so {ends}, by their order, are taken for the "
            f"ends of edges; name them with source_col and target_col",
            UserWarning,
            stacklevel=2,
        )
    if len({u, v, w}) < 3:
        refuse_source(
            source,
            f"ends and weights must be three different columns, got {u}, {v} and {w}; name them "
            f"with source_col, target_col and weight_col",
        )
    return Columns(u, v, w, names, guessed)


def drop_bad(
    source: str,
    request: Request,
    first_row: int,
    u: Ids,
    v: Ids,
    w: NDArray[Any] | None,
    bad: NDArray[np.bool_] | None = None,
    reason: str = "",
    row: str = "row",
) -> RawBatch:
    """Check weights; rows that are bad, by them or as told, are refused or left out."""
    if w is not None and w.dtype not in (np.float32, np.float64):
        w = w.astype(np.float64)
    # NaN makes both comparisons false.
    weights_good = w is None or w.size == 0 or bool(w.min() >= 0 and w.max() <= LARGEST_WEIGHT)
    if bad is None and weights_good:
        return RawBatch(u, v, w)
    mask = np.zeros(u.size, dtype=bool) if bad is None else bad.copy()
    if w is not None:
        mask |= ~((w >= 0) & (w <= LARGEST_WEIGHT))
    at = int(np.argmax(mask))
    why = reason
    if bad is None or not bad[at]:
        value = None if w is None else w[at]
        why = f"weights must not be negative nor above {LARGEST_WEIGHT:g}, got {value}"
    problem = f"{row} {first_row + at}: {why}"
    if not request.skip_bad:
        refuse_source(source, f'{why}; correct it, or use on_bad="skip"', f"{row} {first_row + at}")
    keep = ~mask
    return RawBatch(
        _take(u, keep),
        _take(v, keep),
        None if w is None else w[keep],
        int(np.count_nonzero(mask)),
        f"{source}, {problem}",
    )


LARGEST_WEIGHT = _core.LARGEST_WEIGHT


def _take(ids: Ids, keep: NDArray[np.bool_]) -> Ids:
    if not isinstance(ids, Strings):
        return ids[keep]
    starts, ends = ids.offsets[:-1][keep], ids.offsets[1:][keep]
    parts = [ids.data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    return Strings(offsets, np.concatenate(parts) if parts else ids.data[:0])
