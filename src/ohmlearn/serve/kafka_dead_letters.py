"""A file of messages that could not be used, one JSON object per line."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

from ohmlearn.serve.kafka_partition import Message

__all__ = ["DeadLetters"]

MOST_BYTES = 1 << 30  # a larger file gets letters without the content of their messages


class DeadLetters:
    """Messages of Kafka without usable edges, in a file.

    Letters are on disk when `write` returns. If a crash comes before their offsets are stored,
    the messages are read again; letters that the file has are not written a second time. An
    incomplete line, which a crash has left, is cut off. When the file has more than a GiB, letters
    no longer have the content of their messages.

    Parameters
    ----------
    path : Path
        The file is made with the first letter.

    Attributes
    ----------
    n_letters : int
        Number of letters in the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_letters = 0
        self._known: dict[tuple[str, int], set[int]] = {}  # offsets that may come again
        self._file: int | None = None
        self._end = 0
        if path.exists():
            self._read()

    def _read(self) -> None:
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._end += len(line)
                self.n_letters += 1
                try:
                    letter = json.loads(line)
                    key = str(letter["topic"]), int(letter["partition"])
                    self._known.setdefault(key, set()).add(int(letter["offset"]))
                except (ValueError, KeyError, TypeError):
                    continue  # somebody else wrote this line

    def forget(self, topic: str, partition: int, below: int) -> None:
        """Forget letters whose messages cannot come again, as their offsets are stored."""
        if known := self._known.get((topic, partition)):
            self._known[topic, partition] = {offset for offset in known if offset >= below}

    def write(self, topic: str, partition: int, bad: list[tuple[Message, str]]) -> None:
        """Add letters that are not there yet.

        Parameters
        ----------
        topic : str
        partition : int
        bad : list of (Message, str)
            Messages, and what is wrong with them.
        """
        known = self._known.setdefault((topic, partition), set())
        new = [(message, reason) for message, reason in bad if message.offset not in known]
        if not new:
            return
        has_room = self._end <= MOST_BYTES
        lines = b"".join(_line(topic, partition, *letter, has_room) for letter in new)
        file = self._open()
        try:
            done = 0
            while done < len(lines):
                done += os.pwrite(file, lines[done:], self._end + done)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, self._end)
            raise
        self._end += len(lines)
        self.n_letters += len(new)
        known.update(message.offset for message, _ in new)

    def _open(self) -> int:
        """Return the open file, without an incomplete line; make the file itself durable."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._file, self._end)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return self._file

    def close(self) -> None:
        """Close the file; `write` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _line(topic: str, partition: int, message: Message, reason: str, has_room: bool) -> bytes:
    letter: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": message.offset,
        "time": message.time,
        "at": time.time(),
        "error": reason,
        "payload": base64.b64encode(message.value).decode() if has_room else None,
    }
    return json.dumps(letter).encode() + b"\n"
