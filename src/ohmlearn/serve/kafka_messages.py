"""From messages to one batch of edges.

What a message means does not depend on the messages that happen to come with it. The decoder takes
the names of columns from the first object, so only messages whose first objects name the same
columns are decoded with one call. Other messages are decoded alone.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.node_ids import Strings, take
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_edges import decode_edges
from ohmlearn.serve.decode_rows import REMEDY, Names, choose_names, join_batches
from ohmlearn.serve.kafka_partition import Message

__all__ = ["EMPTY", "CannotJoinError", "Decoded", "Form", "decode_messages"]

Form = Literal["json", "arrow"]
MAX_BYTES = 64 << 20  # of the value of a message
NO_IDS = np.empty(0, dtype=np.int64)
AT_ONCE = 2000  # messages in JSON; if one is bad, all of them are read again
JOINED_BYTES = 64 << 10  # larger messages are decoded alone, which costs little for each edge
EMPTY = RawBatch(NO_IDS, NO_IDS)
DECODER = json.JSONDecoder()
# With these lines, no object spans two of them: "}" is never followed by "{" inside an object. So
# if there are as many objects as lines, each line has one.
OBJECT_LINES = re.compile(rb"\{[^\n]*\}[ \t\r]*(?:\n[ \t\r]*\{[^\n]*\}[ \t\r]*)*")


class CannotJoinError(ValueError):
    """Messages whose ids are of different kinds; each may be a batch of its own."""


class Decoded(NamedTuple):
    """Edges, and the messages that have none that can be used, with the reason."""

    batch: RawBatch
    bad: list[tuple[Message, str]]


class MessagePart(NamedTuple):
    """Edges with weights and times, and the offset of the message of each."""

    batch: RawBatch
    offsets: NDArray[np.int64]


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
    parts: list[MessagePart] = []
    bad: list[tuple[Message, str]] = []
    for group in _group(messages) if form == "json" else [[message] for message in messages]:
        _collect(group, form, id_kind, parts, bad)
    bad.sort(key=lambda letter: letter[0].offset)
    return Decoded(_join([part for part in parts if part.batch.u.size > 0]), bad)


def _group(messages: list[Message]) -> list[list[Message]]:
    """Return groups of messages, each of which can be decoded with one call."""
    alone: list[list[Message]] = []
    groups: dict[Names, list[Message]] = {}
    known: dict[tuple[str, ...], Names | None] = {}
    for message in messages:
        names = _find_names(message.value, known)
        if names is None:
            alone.append([message])
        else:
            groups.setdefault(names, []).append(message)
    cuts = [range(0, len(group), AT_ONCE) for group in groups.values()]
    pairs = zip(groups.values(), cuts, strict=True)
    return [group[at : at + AT_ONCE] for group, starts in pairs for at in starts] + alone


def _find_names(value: bytes, known: dict[tuple[str, ...], Names | None]) -> Names | None:
    """Return the columns that the first object of a message names; None in case of doubt.

    Any other message whose first object names the same columns is decoded in the same way, alone or
    together with this one. `known` has the columns of names that were seen before.
    """
    value = value.strip()
    is_list = value.startswith(b"[")
    if len(value) > JOINED_BYTES or not (is_list or OBJECT_LINES.fullmatch(value)):
        return None
    try:
        first: Any = DECODER.raw_decode(value.removeprefix(b"[").lstrip().decode())[0]
        names = tuple(first) if isinstance(first, dict) else ()
        if names not in known:
            known[names] = choose_names(names)
        return known[names]
    except (ValueError, RecursionError):
        return None


def _collect(
    messages: list[Message],
    form: Form,
    id_kind: str | None,
    parts: list[MessagePart],
    bad: list[tuple[Message, str]],
) -> None:
    """Decode messages with one call, which is much faster; if that fails, decode their halves."""
    try:
        parts.append(_decode(messages, form, id_kind))
    except Exception as error:  # even a fault of ours must not stop the messages that follow
        if len(messages) == 1:
            reason = str(error).removesuffix(f"; {REMEDY}")  # which is for HTTP
            bad.append((messages[0], reason or type(error).__name__))
            return
        middle = len(messages) // 2
        _collect(messages[:middle], form, id_kind, parts, bad)
        _collect(messages[middle:], form, id_kind, parts, bad)


def _decode(messages: list[Message], form: Form, id_kind: str | None) -> MessagePart:
    """Return edges with weights and times; Arrow has one message only."""
    size = sum(len(message.value) for message in messages)
    if size > MAX_BYTES:
        raise ValueError(
            f"the message has {size} bytes, but at most {MAX_BYTES >> 20} MiB are allowed; send "
            f"smaller ones"
        )
    bodies = [message.value.strip() for message in messages]
    if not any(bodies):  # messages without a value, which compacted topics have
        return MessagePart(EMPTY, NO_IDS)
    if form == "arrow":
        batch = decode_edges(messages[0].value, "arrow", id_kind=id_kind)
    else:
        bodies = [_as_lines(body) for body in bodies]
        batch = decode_edges(b"\n".join(bodies), "ndjson", id_kind=id_kind)
    counts = [batch.u.size]
    if len(messages) > 1:
        counts = [body.count(b"\n") + 1 for body in bodies]
    w = np.ones(batch.u.size) if batch.w is None else batch.w
    t = np.repeat([message.time for message in messages], counts) if batch.t is None else batch.t
    offsets = np.repeat(np.array([message.offset for message in messages], np.int64), counts)
    return MessagePart(batch._replace(w=w, t=t), offsets)


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


def _join(parts: list[MessagePart]) -> RawBatch:
    """Join edges in the order of their messages."""
    if not parts:
        return EMPTY
    if len({isinstance(part.batch.u, Strings) for part in parts}) > 1:
        raise CannotJoinError("some of the messages have integers as ids, others strings")
    batch = join_batches([part.batch for part in parts])
    offsets = np.concatenate([part.offsets for part in parts])
    if np.all(offsets[:-1] <= offsets[1:]):
        return batch
    order = np.argsort(offsets, kind="stable")
    assert batch.w is not None
    assert batch.t is not None
    return RawBatch(take(batch.u, order), take(batch.v, order), batch.w[order], t=batch.t[order])
