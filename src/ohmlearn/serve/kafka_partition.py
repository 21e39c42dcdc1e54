"""What has been read of a partition and is not durable yet."""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.database import Receipt

__all__ = ["KafkaPartition", "Message"]

GROUP_BYTES = 4 << 20  # of messages that are joined into one batch
GROUP_MESSAGES = 10_000
MESSAGE_BYTES = 200  # what a message takes in addition to its value


class Message(NamedTuple):
    """A message that has been read."""

    offset: int
    time: float  # Unix seconds
    value: bytes


class KafkaPartition:
    """Messages in groups, each of which becomes one batch.

    Attributes
    ----------
    stored : int
        The next offset according to the folder of the service.
    next : int
        The offset after the last message that was read.
    groups : deque of list of Message
        In the order of their offsets.
    batch : RawBatch or None
        The edges of the first group, once they are decoded.
    id_kind : str or None
        The kind of ids in the log when they were.
    future : Future or None
        The receipt for the batch, while the service has it.
    n_bytes : int
        Size of all messages.
    n_failures : int
        How often the first group has been refused.
    retry_at : float
        When to submit it again.
    find_at : float
        When to look for the place of the partition again, if Kafka does not have `next`.
    high : int or None
        The offset after the last message in Kafka.

    Examples
    --------
    >>> part = KafkaPartition("edges", 0, 5)
    >>> for offset in (5, 6, 9):
    ...     part.add(Message(offset, 0.0, b"{}"))
    >>> part.split(1)
    >>> [len(group) for group in part.groups], part.next
    ([1, 2], 10)
    >>> len(part.finish()), part.stored
    (1, 6)
    """

    def __init__(self, topic: str, number: int, stored: int) -> None:
        self.topic = topic
        self.number = number
        self.stored = stored
        self.next = stored
        self.groups: deque[list[Message]] = deque()
        self.batch: RawBatch | None = None
        self.id_kind: str | None = None
        self.future: Future[Receipt] | None = None
        self.n_bytes = 0
        self._last_bytes = 0  # of the last group
        self.n_failures = 0
        self.retry_at = 0.0
        self.find_at = math.inf
        self.high: int | None = None

    def __str__(self) -> str:
        return f"{self.topic} [{self.number}]"

    @property
    def place(self) -> TopicPartition:
        """Where the partition is to be read from."""
        return TopicPartition(self.topic, self.number, self.next or OFFSET_BEGINNING)

    def add(self, message: Message) -> None:
        """Add a message to the last group, or to a new one."""
        size = _size(message)
        is_open = len(self.groups) > 1 or (len(self.groups) == 1 and self.batch is None)
        has_room = self._last_bytes + size <= GROUP_BYTES
        if is_open and has_room and len(self.groups[-1]) < GROUP_MESSAGES:
            self.groups[-1].append(message)
        else:
            self.groups.append([message])
            self._last_bytes = 0
        self._last_bytes += size
        self.n_bytes += size
        self.next = message.offset + 1

    def split(self, at: int) -> None:
        """Cut the first group into two, the first of which has `at` messages."""
        group = self.groups.popleft()
        self.groups.extendleft((group[at:], group[:at]))
        self.batch = None

    def finish(self) -> list[Message]:
        """Remove the first group, which is durable, and return it."""
        group = self.groups.popleft()
        self.batch = None
        self.n_failures = 0
        self.n_bytes -= sum(map(_size, group))
        self.stored = group[-1].offset + 1
        return group


def _size(message: Message) -> int:
    return len(message.value) + MESSAGE_BYTES
