"""Messages of Kafka: from values to one batch of edges, and a file of those that are no edges.

What a message means does not depend on the messages that happen to come with it. The reader takes
the names of columns from the first object, so messages that follow each other are read with one
call only if their first objects name the same columns. Other messages are read alone.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ohmlearn.errors import OhmError, render
from ohmlearn.reading.read_options import ScaledColumn
from ohmlearn.reading.table_reader import RawBatch, join_batches
from ohmlearn.serve.decode_edges import EDGE, choose_names, decode_edges

KafkaFormat = Literal["json", "arrow"]
MAX_BYTES = 64 << 20  # of the value of a message
AT_ONCE = 1000  # messages; if one is bad, all of them are read again
JOINED_BYTES = 64 << 10  # larger messages are read alone, which costs little for each edge
MESSAGE_BYTES = 200  # what a message takes in addition to its value
MOST_LETTER_BYTES = 1 << 30  # a larger file gets letters without the content of their messages
DECODER = json.JSONDecoder()  # making one takes longer than reading a small message
EMPTY = RawBatch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), t=np.empty(0))
# With these lines, no object spans two of them: "}" is never followed by "{" inside an object. So
# if there are as many objects as lines, each line has one.
OBJECT_LINES = re.compile(rb"\{[^\n]*\}[ \t\r]*(?:\n[ \t\r]*\{[^\n]*\}[ \t\r]*)*")


class Message(NamedTuple):
    """A message that has been read."""

    offset: int
    time: float  # Unix seconds
    value: bytes

    @property
    def n_bytes(self) -> int:
        """What it takes in memory."""
        return len(self.value) + MESSAGE_BYTES


class Decoded(NamedTuple):
    """Edges, and the messages that have none that can be used, with the reason."""

    batch: RawBatch
    bad: list[tuple[Message, str]]


def decode_messages(
    messages: list[Message],
    form: KafkaFormat,
    id_kind: str | None,
    event_id: str | None = None,
    weight: ScaledColumn | None = None,
) -> Decoded:
    """Return the edges of messages in one batch; if `id_kind` is None, of one, which decides.

    Edges without a time get that of their message. A message with a bad row is bad as a whole.
    """
    how: dict[str, Any] = {"event_id": event_id, "weight": weight}
    batches: list[RawBatch] = []
    bad: list[tuple[Message, str]] = []

    @cache
    def columns_of(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names[at] for at in choose_names(names, EDGE, **how).used)

    def key(message: Message) -> object:
        """Return the columns that the first object names; the offset in case of doubt."""
        value = message.value.strip()
        if form == "arrow" or len(value) > JOINED_BYTES or not OBJECT_LINES.fullmatch(value):
            return message.offset
        try:
            return columns_of(tuple(DECODER.raw_decode(value.decode())[0]))
        except (ValueError, RecursionError):
            return message.offset

    def collect(together: list[Message]) -> None:
        """Read messages with one call, which is much faster; if that fails, read their halves."""
        try:
            batches.append(_read(together, form, id_kind, **how))
        except Exception as error:  # even a fault of ours must not stop the messages that follow
            if len(together) == 1:
                bad.append((together[0], _reason(error)))
                return
            middle = len(together) // 2
            collect(together[:middle])
            collect(together[middle:])

    # Compacted topics have messages without a value.
    for _, group in groupby((message for message in messages if message.value.strip()), key):
        together = list(group)
        for at in range(0, len(together), AT_ONCE):
            collect(together[at : at + AT_ONCE])
    batches = [batch for batch in batches if batch.u.size]
    return Decoded(join_batches(batches) if batches else EMPTY, bad)


def _reason(error: Exception) -> str:
    """Return what is wrong with a message, without the remedy, which is for HTTP."""
    if isinstance(error, OhmError):
        place = "" if error.place is None else f"{error.place}: "
        return place + render(error.message)
    return str(error) or type(error).__name__


def _read(messages: list[Message], form: KafkaFormat, id_kind: str | None, **how: Any) -> RawBatch:
    """Return edges with weights and times."""
    values = [message.value if form == "arrow" else message.value.strip() for message in messages]
    body = b"\n".join(values)
    if len(body) > MAX_BYTES:
        raise ValueError(
            f"the message has {len(body)} bytes, but at most {MAX_BYTES >> 20} MiB are allowed; "
            f"send smaller ones"
        )
    batch = decode_edges(body, "arrow" if form == "arrow" else "ndjson", id_kind=id_kind, **how)
    counts = [batch.u.size]
    if len(messages) > 1:
        counts = [value.count(b"\n") + 1 for value in values]
    t = np.repeat([message.time for message in messages], counts) if batch.t is None else batch.t
    w = np.ones(batch.u.size) if batch.w is None else batch.w
    if len(t) != batch.u.size:
        raise ValueError("lines and objects differ in number")
    return batch._replace(w=w, t=t)


class DeadLetters:
    """A file of messages without usable edges, one JSON object per line.

    Letters are on disk when `write` returns. If a crash comes before their offsets are stored,
    the messages are read again; letters that the file has are not written a second time. An
    incomplete line, which a crash has left, is cut off. When the file has more than a GiB, letters
    no longer have the content of their messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_letters = self._end = 0
        self._known: dict[tuple[str, int], set[int]] = {}  # offsets that may come again
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):  # the last one may be torn
                        break
                    self._end += len(line)
                    self.n_letters += 1
                    with suppress(ValueError, KeyError, TypeError):  # somebody else wrote this line
                        letter = json.loads(line)
                        key = str(letter["topic"]), int(letter["partition"])
                        self._known.setdefault(key, set()).add(int(letter["offset"]))

    def has(self, topic: str, partition: int, message: Message) -> bool:
        """Whether a message that may come again is in the file."""
        return message.offset in self._known.get((topic, partition), ())

    def write(
        self, topic: str, partition: int, bad: list[tuple[Message, str]], stored: int = 0
    ) -> None:
        """Add letters that are not there yet: messages, and what is wrong with each.

        `stored` is the next offset of the partition; messages below it cannot come again.
        """
        known = {at for at in self._known.get((topic, partition), ()) if at >= stored}
        self._known[topic, partition] = known
        new = [(message, reason) for message, reason in bad if message.offset not in known]
        if not new:
            return
        lines = b"".join(self._line(topic, partition, *letter) for letter in new)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(file, self._end)
            done = 0
            while done < len(lines):
                done += os.pwrite(file, lines[done:], self._end + done)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, self._end)
            raise
        finally:
            os.close(file)
        if self.n_letters == 0:  # the file itself must be durable, too
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._end += len(lines)
        self.n_letters += len(new)
        known.update(message.offset for message, _ in new)

    def _line(self, topic: str, partition: int, message: Message, reason: str) -> bytes:
        has_room = self._end <= MOST_LETTER_BYTES
        letter = {
            "topic": topic,
            "partition": partition,
            "offset": message.offset,
            "time": message.time,
            "at": time.time(),
            "error": reason,
            "payload": base64.b64encode(message.value).decode() if has_room else None,
        }
        return json.dumps(letter).encode() + b"\n"
