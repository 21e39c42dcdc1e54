"""`ChosenRecords`: lines of text whose records fulfil a condition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.reading.row_filter import RowFilter
from ohmlearn.reading.source_errors import SKIP, refuse_source
from ohmlearn.reading.table_reader import RawBatch

__all__ = ["ChosenRecords"]

BLANK, NEWLINE = 32, 10


class ChosenRecords:
    """Blocks of lines in which the other records are blank.

    Blank lines are no edges. The blocks have as many bytes and lines as before, so positions and
    numbers of lines stay right.

    Parameters
    ----------
    name : str
        The source, for messages.
    rows : RowFilter
    layout : TextLayout
    line : int
        Number of the first line.
    blocks : iterator of bytes
    """

    def __init__(
        self,
        name: str,
        rows: RowFilter,
        layout: _core.TextLayout,
        line: int,
        blocks: Iterator[bytes],
    ) -> None:
        self._name, self._rows, self._layout, self._line = name, rows, layout, line
        self._blocks = blocks
        self._n_faults = 0
        self._first_fault: str | None = None
        self._iterator = self._choose()

    def __iter__(self) -> Iterator[bytes]:
        return self._iterator

    def __next__(self) -> bytes:
        return next(self._iterator)

    def add_faults(self, batch: RawBatch) -> RawBatch:
        """Add the rows that could not be compared to the bad rows of a batch."""
        n_faults, self._n_faults = self._n_faults, 0
        if n_faults == 0:
            return batch
        first = batch.first_bad or self._first_fault
        return batch._replace(n_bad=batch.n_bad + n_faults, first_bad=first)

    def _choose(self) -> Iterator[bytes]:
        rest = b""  # a record whose quotes are not closed yet
        for block in chain(self._blocks, [None]):
            if block is None and not rest:
                return
            rest += block or b""
            text = np.frombuffer(rest, dtype=np.uint8)
            found: Any = _core.take_fields(text, self._layout, self._rows.positions, block is None)
            *records, _, n_consumed = found  # the parser names what is wrong with other records
            yield self._blank(text[:n_consumed], *records)
            rest = rest[n_consumed:]

    def _blank(
        self,
        text: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        lines: NDArray[np.int64],
        fields: list[tuple[Any, Any]],
    ) -> bytes:
        """Return a text in which records that do not count are blank."""
        columns = zip(self._rows.columns, fields, strict=True)
        kept = self._rows.keep_texts(
            {name: _as_texts(*field) for name, field in columns}, len(starts)
        )
        if kept.bad is not None:
            at = int(np.argmax(kept.bad))
            row, why = self._line + lines[at], kept.why(at)
            if not self._layout.skips_faults:
                refuse_source(self._name, f"{why}; {SKIP}", row)
            self._n_faults += int(np.count_nonzero(kept.bad))
            self._first_fault = self._first_fault or f"{self._name}, row {row}: {why}"
        self._line += int(np.count_nonzero(text == NEWLINE))
        if kept.rows.all():
            return text.tobytes()
        steps = np.zeros(len(text) + 1, dtype=np.int8)
        steps[starts[~kept.rows]] += 1
        steps[ends[~kept.rows]] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).astype(bool)
        return np.where(inside & (text != NEWLINE), np.uint8(BLANK), text).tobytes()


def _as_texts(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> Any:
    """Return fields as texts of Arrow; an empty one is missing."""
    import pyarrow as pa

    is_given = np.packbits(np.diff(offsets) > 0, bitorder="little")
    buffers = [pa.py_buffer(is_given), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
