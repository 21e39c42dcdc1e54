"""From messages to one batch of edges."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.ids import Coded, Ids, Strings, decode_codes
from ohmlearn.serve.decode import decode_edges
from ohmlearn.serve.decode.rows import REMEDY
from ohmlearn.serve.kafka.partition import Message
from ohmlearn.streams.source import RawBatch

__all__ = ["EMPTY", "CannotJoinError", "Decoded", "Form", "decode_messages"]

Form = Literal["json", "arrow"]
MAX_BYTES = 64 << 20  # of the value of a message
NO_IDS = np.empty(0, dtype=np.int64)
AT_ONCE = 2000  # messages in JSON; if one is bad, all of them are read again
EMPTY = RawBatch(NO_IDS, NO_IDS)


class CannotJoinError(ValueError):
    """Messages whose ids are of different kinds; each may be a batch of its own."""


class Decoded(NamedTuple):
    """Edges, and the messages that have none that can be used, with the reason."""

    batch: RawBatch
    bad: list[tuple[Message, str]]


def decode_messages(messages: list[Message], form: Form, id_kind: str | None) -> Decoded:
    """Return the edges of messages in one batch.

    Edges without a time get that of their message. A message with a bad row is bad as a whole.

    Parameters
    ----------
    messages : list of Message
    form : {"json", "arrow"}
    id_kind : str or None
        That of the ids so far, as for `decode_edges`.

    Raises
    ------
    CannotJoinError
        If there are several messages, and their ids are of different kinds.

    Examples
    --------
    >>> first = Message(0, 100.0, b'{"u": 1, "v": 2}')
    >>> second = Message(1, 200.0, b'[{"u": 2, "v": 3}, {"u": 3, "v": 4}]')
    >>> edges, bad = decode_messages([first, second, Message(2, 300.0, b"?")], "json", None)
    >>> edges.u, edges.t
    (array([1, 2, 3]), array([100., 200., 200.]))
    >>> [message.offset for message, reason in bad]
    [2]
    """
    batches: list[RawBatch] = []
    bad: list[tuple[Message, str]] = []
    at_once = AT_ONCE if form == "json" else 1
    for start in range(0, len(messages), at_once):
        _collect(messages[start : start + at_once], form, id_kind, batches, bad)
    return Decoded(_join([batch for batch in batches if batch.u.size > 0]), bad)


def _collect(
    messages: list[Message],
    form: Form,
    id_kind: str | None,
    batches: list[RawBatch],
    bad: list[tuple[Message, str]],
) -> None:
    """Decode messages with one call, which is much faster; if that fails, decode their halves."""
    try:
        batches.append(_decode(messages, form, id_kind))
    except Exception as error:  # even a fault of ours must not stop the messages that follow
        if len(messages) == 1:
            reason = str(error).removesuffix(f"; {REMEDY}")  # which is for HTTP
            bad.append((messages[0], reason or type(error).__name__))
            return
        middle = len(messages) // 2
        _collect(messages[:middle], form, id_kind, batches, bad)
        _collect(messages[middle:], form, id_kind, batches, bad)


def _decode(messages: list[Message], form: Form, id_kind: str | None) -> RawBatch:
    """Return a batch with weights and times; Arrow has one message only."""
    size = sum(len(message.value) for message in messages)
    if size > MAX_BYTES:
        raise ValueError(
            f"the message has {size} bytes, but at most {MAX_BYTES >> 20} MiB are allowed; send "
            f"smaller ones"
        )
    bodies = [message.value.strip() for message in messages]
    if not any(bodies):  # messages without a value, which compacted topics have
        return EMPTY
    if form == "arrow":
        batch = decode_edges(messages[0].value, "arrow", id_kind=id_kind)
    else:
        bodies = [_as_lines(body) for body in bodies]
        batch = decode_edges(b"\n".join(bodies), "ndjson", id_kind=id_kind)
    w = np.ones(batch.u.size) if batch.w is None else batch.w
    if batch.t is not None:
        return batch._replace(w=w)
    counts = [body.count(b"\n") + 1 if body else 0 for body in bodies]
    if len(messages) == 1:
        counts = [batch.u.size]
    if sum(counts) != batch.u.size:  # some lines are empty
        raise ValueError("it is not clear which edge belongs to which message")
    return batch._replace(w=w, t=np.repeat([message.time for message in messages], counts))


def _as_lines(value: bytes) -> bytes:
    """Return JSON lines; a list of objects becomes lines."""
    if not value.startswith(b"["):
        return value
    try:
        rows = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the list is not valid JSON: {error}") from None
    for at, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError(f"row {at}: a list must consist of objects")
    return b"\n".join(json.dumps(row).encode() for row in rows)


def _join(batches: list[RawBatch]) -> RawBatch:
    """Join batches, all of which have weights and times."""
    if len(batches) < 2:
        return batches[0] if batches else EMPTY
    u, v = _join_ids([batch.u for batch in batches]), _join_ids([batch.v for batch in batches])
    w = np.concatenate([batch.w for batch in batches if batch.w is not None])
    return RawBatch(u, v, w, t=np.concatenate([b.t for b in batches if b.t is not None]))


def _join_ids(parts: list[Ids | Coded]) -> Ids:
    columns = [decode_codes(part) for part in parts]
    strings = [column for column in columns if isinstance(column, Strings)]
    arrays = [column for column in columns if not isinstance(column, Strings)]
    if arrays and strings:
        raise CannotJoinError("some of the messages have integers as ids, others strings")
    if arrays:
        return np.concatenate(arrays).astype(np.int64, copy=False)
    offsets: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
    data = []
    for column in strings:
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        offsets.append(column.offsets[1:].astype(np.int64) - first + offsets[-1][-1])
        data.append(column.data[first:last])
    return Strings(np.concatenate(offsets), np.concatenate(data))
