"""Edges from iterables of batches, and from functions that return one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.array_reader import BatchSource
from ohmlearn.reading.arrow_objects import ArrowObject
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import reading, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source


def columns_of_rows(given: object) -> tuple[Any, ...] | None:
    """Return the columns of a list of edges with their ids; None for anything else."""
    if not isinstance(given, list) or not given or not _is_edge(given[0]):
        return None
    for number, row in enumerate(given):
        if not _is_edge(row):
            why = "an edge is a tuple (u, v), (u, v, w) or (u, v, w, t) of two ids and numbers"
            refuse_source("the list", f"{why}, got {shorten(repr(row))}", number)
    rows = [(*row, 1.0, None)[:4] if len(row) == 2 else (*row, None)[:4] for row in given]
    longest = max(map(len, given))
    w = [x.get("weight", 1.0) if isinstance(x, dict) else x for _, _, x, *_ in rows]
    t = [row[3] for row in rows] if longest == 4 else None
    return [row[0] for row in rows], [row[1] for row in rows], w if longest > 2 else None, t


def _is_edge(row: object) -> bool:
    if not isinstance(row, tuple | list) or not 2 <= len(row) <= 4:
        return False
    return all(isinstance(end, str | Integral) for end in row[:2])


class IterableSource(Source):
    """Batches (u, v), (u, v, w) or (u, v, w, t) of arrays, or Arrow tables and record batches.

    An iterator can be read once; other iterables, and functions, any number of times.
    """

    has_rows = True

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]], options: ReadOptions):
        once = not callable(batches) and iter(batches) is batches
        super().__init__(f"the {type(batches).__name__}", options, rereadable=not once)
        self._batches = batches

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read one batch after the other."""
        batches = self._batches() if callable(self._batches) else self._batches
        for number, batch in enumerate(batches):
            source = self._open(batch, f"{self.name}, batch {number}")
            source.times = self.times
            for raw in source.batches(kind):
                self.columns = source.columns
                kind = kind or ("int64" if isinstance(raw.u, np.ndarray) else "string")
                yield raw

    def _open(self, batch: Any, name: str) -> Source:
        if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
            if not hasattr(batch, "__arrow_c_stream__"):
                batch = require_extra("pyarrow", "files").record_batch(batch)
            source: Source = ArrowObject(batch, self.options)
            source.name = name
            return source
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3, 4):
            refuse_source(
                name,
                f"a batch of edges is a tuple (u, v), (u, v, w) or (u, v, w, t) of arrays, or an "
                f"Arrow table, got {type(batch).__name__}"
                + (f" of length {len(batch)}" if hasattr(batch, "__len__") else ""),
            )
        u, v, w, t = (*batch, None, None)[:4]
        with reading(name, "columns of edges"):
            lengths = {len(column) for column in batch if column is not None}
            weights = None if w is None else np.asarray(w)
        if len(lengths) > 1:
            refuse_source(name, f"columns must be equally long, got lengths {sorted(lengths)}")
        return BatchSource(name, self.options, (u, v, weights, t))
