"""Checks what the messages of an Arrow IPC stream declare, before pyarrow reads them.

A reader of Arrow believes some numbers in a message before it sees that the bytes do not follow:
the size of a compressed buffer, or the number of buffers of a column of views. So a body of a
kilobyte could ask for gigabytes. Here each number is compared with the bytes that there are.

A message is metadata, which is a table of FlatBuffers, and a body, which has the buffers of the
columns. The fields are those of Message.fbs and Schema.fbs in the repository of Arrow. A table
starts with the distance to its vtable, which has the position of each field, or 0 if the field is
absent.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.reading.source_errors import shorten
from ohmlearn.serve.decode_rows import BadBody, Rules

__all__ = ["check_messages"]

MAGIC = b"ARROW1"
CONTINUATION = 0xFFFFFFFF
SCHEMA, DICTIONARY, RECORDS = 1, 2, 3  # types of messages
MOST_MESSAGES = 10_000
MOST_COLUMNS = 1000
LARGEST_SCHEMA = 1 << 20
# A dictionary is checked again with each record batch.
MOST_DICTIONARY_WORK = 1 << 30
NOT_ARROW = "the body is not an Arrow IPC stream"


class _IpcTable:
    """A table of FlatBuffers, whose fields are read by their numbers."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._read("<i", at)
        self._size = self._read("<H", self._vtable)

    def _read(self, form: str, at: int) -> int:
        if at < 0:  # struct would count from the end
            raise struct.error("a position is negative")
        return int(struct.unpack_from(form, self._data, at)[0])

    def _find(self, field: int) -> int | None:
        at = 4 + 2 * field
        if at + 2 > self._size:
            return None
        place = self._read("<H", self._vtable + at)
        return self._at + place if place else None

    def number(self, field: int, form: str) -> int:
        """Return a number, 0 if it is absent."""
        at = self._find(field)
        return 0 if at is None else self._read(form, at)

    def has(self, field: int) -> bool:
        """Return whether a field is there."""
        return self._find(field) is not None

    def table(self, field: int) -> _IpcTable:
        """Return a table inside this one."""
        at = self._find(field)
        if at is None:
            raise struct.error(f"field {field} is absent")
        return _IpcTable(self._data, at + self._read("<I", at))

    def array(self, field: int, dtype: Any, width: int = 1) -> NDArray[Any]:
        """Return a vector of numbers, or of structures of `width` numbers."""
        at = self._find(field)
        if at is None:
            return np.empty((0, width), dtype)
        at += self._read("<I", at)
        count = self._read("<I", at) * width
        return np.frombuffer(self._data, dtype, count, at + 4).reshape(-1, width)

    def tables(self, field: int) -> list[_IpcTable]:
        """Return a vector of tables."""
        at = self._find(field)
        if at is None:
            return []
        at += self._read("<I", at) + 4
        offsets = self.array(field, "<u4")[:MOST_COLUMNS, 0].tolist()
        return [_IpcTable(self._data, at + 4 * k + offset) for k, offset in enumerate(offsets)]

    def text(self, field: int) -> str:
        """Return a string."""
        return self.array(field, "u1").tobytes().decode(errors="replace")


def check_messages(body: bytes, rules: Rules) -> slice | None:
    """Return which part of a body is a stream that pyarrow may read; None if it is empty.

    Raises
    ------
    BadBody
        If a message declares more than there is, more rows than may be sent, or what is not
        accepted: compressed buffers, nested columns, extension types.
    """
    if not body:
        return None
    try:
        return _Walk(body, rules).walk()
    except (struct.error, ValueError, OverflowError) as error:
        if isinstance(error, BadBody):
            raise
        raise BadBody(f"{NOT_ARROW}: its metadata is damaged ({error})") from error


class _Walk:
    """One pass over the messages of a body."""

    def __init__(self, body: bytes, rules: Rules) -> None:
        self.data, self.rules = memoryview(body), rules
        self.is_file = body.startswith(MAGIC)
        self.n_rows = self.n_messages = self.n_batches = self.n_dictionary_bytes = 0

    def walk(self) -> slice:
        """Check each message; return where the stream starts and ends."""
        data, size = self.data, len(self.data)
        # A file is a stream between two magic words; the table of contents behind it is not needed.
        start = at = 8 if self.is_file else 0
        while at < size:
            if size - at < 8:
                raise BadBody(f"{NOT_ARROW}: it is cut off")
            marker, length = struct.unpack_from("<Ii", data, at)
            if marker != CONTINUATION:
                raise BadBody(f"{NOT_ARROW}: a message does not start as it should at byte {at}")
            at += 8
            if length == 0:
                break
            if not 0 < length <= size - at:
                raise BadBody(
                    f"{NOT_ARROW}: a message declares {length:,} bytes of metadata, but "
                    f"{size - at:,} follow; is it cut off?"
                )
            at = self.check_message(data[at : at + length], at + length)
        if self.n_messages == 0:
            raise BadBody(f"{NOT_ARROW}: it has no schema")
        if at < size and not self.is_file:
            raise BadBody(
                f"{size - at:,} bytes follow the end of the Arrow IPC stream; send one stream in "
                f"each body"
            )
        return slice(start, at)

    def check_message(self, metadata: memoryview, at: int) -> int:
        """Check a message whose body starts at a byte; return where the body ends."""
        self.n_messages += 1
        if self.n_messages > MOST_MESSAGES:
            raise BadBody(
                f"the body has more than {MOST_MESSAGES:,} messages; send larger record batches"
            )
        (root,) = struct.unpack_from("<I", metadata)
        message = _IpcTable(metadata, root)
        kind, length = message.number(1, "<B"), message.number(3, "<q")
        if not 0 <= length <= len(self.data) - at:
            raise BadBody(
                f"{NOT_ARROW}: a message declares {length:,} bytes, but {len(self.data) - at:,} "
                f"follow; is it cut off?"
            )
        if (kind == SCHEMA) != (self.n_messages == 1) or kind not in (SCHEMA, DICTIONARY, RECORDS):
            raise BadBody(f"{NOT_ARROW}: message {self.n_messages} has type {kind}")
        header = message.table(2)
        if kind == SCHEMA:
            self.check_schema(header, metadata)
        elif kind == DICTIONARY:
            if header.number(2, "<B"):
                raise BadBody("the body has a delta dictionary; send whole dictionaries")
            self.n_dictionary_bytes += length
            self.check_columns(header.table(1), length, len(self.data))
        else:
            self.n_batches += 1
            self.n_rows += self.check_columns(header, length, 2**62)
            self.rules.check_count(self.n_rows)
        if self.n_dictionary_bytes * self.n_batches > MOST_DICTIONARY_WORK:
            raise BadBody(
                "the body has large dictionaries and many record batches; send larger record "
                "batches, or columns without dictionaries"
            )
        return at + length

    def check_schema(self, schema: _IpcTable, metadata: memoryview) -> None:
        """Accept plain columns in little-endian order."""
        if len(metadata) > LARGEST_SCHEMA:
            raise BadBody(f"the schema has {len(metadata):,} bytes; send fewer columns")
        if schema.number(0, "<h") != 0:
            raise BadBody("the body is big-endian; send it in little-endian order")
        n_columns = len(schema.array(1, "<u4"))
        if n_columns > MOST_COLUMNS:
            raise BadBody(f"the body has {n_columns:,} columns; at most {MOST_COLUMNS:,} are read")
        for field in schema.tables(1):
            if len(field.array(5, "<u4")):
                raise BadBody(f"column {shorten(field.text(0))} is nested; leave it out")
        if b"ARROW:extension:" in bytes(metadata):
            raise BadBody("a column has an extension type; cast it to its storage type")

    def check_columns(self, batch: _IpcTable, length: int, most: int) -> int:
        """Check nodes and buffers of a batch against its body; return its number of rows."""
        n_rows = batch.number(0, "<q")
        if batch.has(3):
            raise BadBody(
                "the buffers are compressed; send the stream uncompressed, and compress the whole "
                "body with Content-Encoding: gzip if it is large"
            )
        if not 0 <= n_rows <= most:
            raise BadBody(f"{NOT_ARROW}: a batch declares {n_rows:,} rows")
        nodes, buffers = batch.array(1, "<i8", 2), batch.array(2, "<i8", 2)
        views = batch.array(4, "<i8")
        offsets, sizes = buffers[:, 0], buffers[:, 1]
        # Each term is checked by itself, so no sum overflows.
        fits = (offsets >= 0) & (sizes >= 0) & (offsets <= length) & (sizes <= length)
        fits &= sizes <= length - np.where(fits, offsets, 0)
        if not fits.all():
            raise BadBody(f"{NOT_ARROW}: a buffer is larger than the message that has it")
        if (nodes[:, 0] != n_rows).any() or (nodes[:, 1] < 0).any() or (nodes[:, 1] > n_rows).any():
            raise BadBody(f"{NOT_ARROW}: columns of a batch differ in length")
        if views.size and not ((views >= 0) & (views <= len(buffers))).all():
            raise BadBody(f"{NOT_ARROW}: a column of views declares buffers that it does not have")
        return n_rows
