"""The payloads of a log: edges as Arrow record batches, ids of nodes, and rows.

A file of edges, a segment, is an Arrow IPC stream: pyarrow, DuckDB or pandas can read it, too. It
does not say which rows were removed.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra
from ohmlearn.nodes.node_ids import Ids, Strings

__all__ = [
    "TEXT_OF_KINDS",
    "TIMES",
    "Columns",
    "concatenate",
    "decode_edges",
    "decode_ids",
    "encode_edges",
    "encode_ids",
    "make_schema",
]

FLOAT32, FLOAT64, TIMES = 1, 2, 4  # bits of the form of edges: type of weights, and whether timed
INTEGERS, TEXT, TEXT_OF_KINDS = 1, 2, 3  # forms of ids; the last start with the kind of the node


class Columns(NamedTuple):
    """Columns of edges, numbered by the table of the log; w is None if all weights are 1."""

    u: NDArray[np.int32]
    v: NDArray[np.int32]
    w: NDArray[Any] | None = None
    t: NDArray[np.float64] | None = None

    @property
    def form(self) -> int:
        """Which columns there are, as a number for the journal."""
        form = 0 if self.t is None else TIMES
        if self.w is not None:
            form |= FLOAT32 if self.w.dtype == np.float32 else FLOAT64
        return form

    def take(self, rows: Any) -> Columns:
        """Return some rows: a slice, a mask or their numbers."""
        w, t = (None if column is None else column[rows] for column in self[2:])
        return Columns(self.u[rows], self.v[rows], w, t)


def concatenate(parts: list[Columns]) -> Columns:
    """Return the rows of several columns of the same form, one after the other."""
    if len(parts) == 1:
        return parts[0]
    u, v, w, t = zip(*parts, strict=True)
    return Columns(
        np.concatenate(u),
        np.concatenate(v),
        None if w[0] is None else np.concatenate(w),
        None if t[0] is None else np.concatenate(t),
    )


@cache
def make_schema(form: int) -> Any:
    """Return the Arrow schema of a segment."""
    pa = require_extra("pyarrow", "files")
    fields = [("u", pa.int32()), ("v", pa.int32())]
    if form & (FLOAT32 | FLOAT64):
        fields.append(("w", pa.float32() if form & FLOAT32 else pa.float64()))
    if form & TIMES:
        fields.append(("t", pa.float64()))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def encode_edges(columns: Columns) -> Any:
    """Return a record batch as a message of an IPC stream.

    Examples
    --------
    >>> edges = Columns(np.array([0], np.int32), np.array([1], np.int32), np.array([0.5]))
    >>> decode_edges(encode_edges(edges), edges.form).w
    array([0.5])
    """
    pa = require_extra("pyarrow", "files")
    schema = make_schema(columns.form)
    present = [np.ascontiguousarray(column) for column in columns if column is not None]
    arrays = [  # not pa.array, which imports pandas
        pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])
        for kind, column in zip(schema.types, present, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema).serialize()


def decode_edges(message: Any, form: int) -> Columns:
    """Return the columns of a message, which are not copied."""
    pa = require_extra("pyarrow", "files")
    batch = pa.ipc.read_record_batch(message, make_schema(form))
    found: dict[str, NDArray[Any]] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        _, values = column.buffers()
        dtype = field.type.to_pandas_dtype()  # that of numpy
        found[field.name] = np.frombuffer(values, dtype, len(column))
    return Columns(found["u"], found["v"], found.get("w"), found.get("t"))


def encode_ids(ids: Ids, *, have_kinds: bool = False) -> tuple[int, bytes]:
    """Return the form and the bytes of ids.

    Examples
    --------
    >>> form, content = encode_ids(np.array([7, 5]))
    >>> decode_ids([content], form)
    array([7, 5])
    """
    if not isinstance(ids, Strings):
        return INTEGERS, ids.astype("<i8").tobytes()
    lengths = np.diff(ids.offsets).astype("<u4")
    text = ids.data[ids.offsets[0] : ids.offsets[-1]]
    form = TEXT_OF_KINDS if have_kinds else TEXT
    return form, len(lengths).to_bytes(8, "little") + lengths.tobytes() + text.tobytes()


def decode_ids(contents: list[bytes], form: int) -> Ids:
    """Return the ids of several payloads of one form."""
    if form == INTEGERS:
        return np.frombuffer(b"".join(contents), "<i8").astype(np.int64)
    counts = [int.from_bytes(content[:8], "little") for content in contents]
    lengths = [
        np.frombuffer(content, "<u4", count, 8)
        for content, count in zip(contents, counts, strict=True)
    ]
    text = b"".join(
        content[8 + 4 * count :] for content, count in zip(contents, counts, strict=True)
    )
    offsets = np.zeros(sum(counts) + 1, np.int64)
    np.cumsum(np.concatenate(lengths), out=offsets[1:])
    return Strings(offsets, np.frombuffer(text, np.uint8))
