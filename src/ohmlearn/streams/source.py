"""The interface of a reader: it yields batches of edges with the ids of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.ids import Ids, take
from ohmlearn.streams.columns import Columns
from ohmlearn.streams.errors import refuse_source
from ohmlearn.streams.options import ReadOptions
from ohmlearn.streams.times import CheckedTimes, TimeRule

__all__ = ["RawBatch", "Source", "drop_bad"]

LARGEST_WEIGHT = _core.LARGEST_WEIGHT


class RawBatch(NamedTuple):
    """A batch of edges with the ids of the user, checked weights and, if asked for, times."""

    u: Ids
    v: Ids
    w: NDArray[np.float32] | NDArray[np.float64] | None = None
    n_bad: int = 0  # number of rows that were left out
    first_bad: str | None = None  # where the first of them is, and what is wrong with it
    t: NDArray[np.float64] | None = None


class Source(ABC):
    """One file, pipe or object with edges.

    Attributes
    ----------
    name : str
        Name for messages.
    options : ReadOptions
        How it is read.
    rereadable : bool
        Whether it can be read more than once.
    n_edges : int or None
        Number of edges, if it is known before they are read.
    fraction : float or None
        Which share of it has been read, if known.
    columns : Columns or None
        Known after `inspect`, or from the first batch on.
    times : TimeRule or None
        Which times are accepted, if times are read; the sources of a stream share it.
    node_kinds : tuple of str
        The kinds of nodes, if ids start with them already.
    position : int or list of int
        Where the batch after the last one starts, for `batches_from`; 0 is the beginning.
    """

    def __init__(self, name: str, options: ReadOptions, *, rereadable: bool = True) -> None:
        self.name = name
        self.options = options
        self.rereadable = rereadable
        self.n_edges: int | None = None
        self.fraction: float | None = None
        self.columns: Columns | None = None
        self.times = None if options.time is None else TimeRule(options.latest)
        self.node_kinds: tuple[str, ...] = ()
        self.position: Any = 0

    def batches_from(self, kind: str | None, position: Any) -> Iterator[RawBatch]:
        """Read from a position of an earlier reading on, and keep `position` up to date.

        Here it is a number of batches, which are read and dropped. Sources that can skip a part
        without reading it have positions of another kind.
        """
        for number, batch in enumerate(self.batches(kind), 1):
            self.position = number
            if number > position:
                yield batch

    @abstractmethod
    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read from the beginning; `kind` is that of the ids in earlier sources, if any."""

    @abstractmethod
    def inspect(self) -> None:
        """Find columns and size without reading the edges, if that is possible."""


def drop_bad(
    source: str,
    options: ReadOptions,
    first_row: int,
    u: Ids,
    v: Ids,
    w: NDArray[Any] | None,
    bad: NDArray[np.bool_] | None = None,
    reason: str = "",
    times: CheckedTimes | None = None,
) -> RawBatch:
    """Check weights. Rows with bad weights or times, and rows in `bad`, are refused or left out."""
    if w is not None and w.dtype not in (np.float32, np.float64):
        w = w.astype(np.float64)
    # NaN makes both comparisons false.
    weights_good = w is None or w.size == 0 or bool(w.min() >= 0 and w.max() <= LARGEST_WEIGHT)
    t = None if times is None else times.t
    if bad is None and weights_good and (times is None or times.bad is None):
        return RawBatch(u, v, w, t=t)
    mask = np.zeros(u.size, dtype=bool) if bad is None else bad.copy()
    if w is not None:
        mask |= ~((w >= 0) & (w <= LARGEST_WEIGHT))
    if times is not None and times.bad is not None:
        mask |= times.bad
    at = int(np.argmax(mask))
    row = f"row {first_row + at}"
    if bad is not None and bad[at]:
        why = reason
    elif times is not None and times.bad is not None and times.bad[at]:
        why = times.why(at)
    else:
        value = None if w is None else w[at]
        why = f"weights must not be negative nor above {LARGEST_WEIGHT:g}, got {value}"
    if not options.skip_bad:
        refuse_source(source, f'{why}; correct it, or use on_bad="skip"', row)
    keep = ~mask
    return RawBatch(
        take(u, np.flatnonzero(keep)),
        take(v, np.flatnonzero(keep)),
        None if w is None else w[keep],
        int(np.count_nonzero(mask)),
        f"{source}, {row}: {why}",
        None if t is None else t[keep],
    )
