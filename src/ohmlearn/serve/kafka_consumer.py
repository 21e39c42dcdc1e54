"""Edges from Kafka: each message counts exactly once.

Kafka delivers a message at least once: after a crash or a rebalance it comes again. A message
counts once because its offset is stored in the folder of the service, together with its edges, by
the same intake that takes batches from HTTP. The id of a batch is its topic, partition and range of
offsets. Ids of HTTP are remembered one by one and forgotten after a million; offsets grow, so the
next one of each partition says for ever which batches were taken:

1. A batch is submitted with the offset of its last message. The service makes both durable in one
   step, or neither. So after a crash the folder has the edges of exactly the messages below its
   next offset.
2. Whenever a partition is assigned, it is read from the next offset of the folder on. Offsets that
   Kafka stores for the group are neither written nor read.
3. A batch of each partition is submitted, then all receipts are waited for. A batch that is refused
   is submitted again, before any later message of its partition. So no message is left out.
4. More messages are read while the service writes these batches. Before a partition that Kafka
   takes away then is given up, the receipts are waited for. So the next offset of step 2 is final,
   and no message counts twice.
5. A message without usable edges goes to the file of dead letters. The file is flushed to disk, and
   only then the offset of the message is submitted.

Messages that have come by then are joined into one batch. If the service refuses the batch for its
content, half as many are tried, until the message that is to blame is alone and becomes a dead
letter. Messages below the next offset, which a broker may send again, are dropped.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import accumulate, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from ohmlearn.edge_log import LogError
from ohmlearn.serve.database import Offset, Receipt
from ohmlearn.serve.kafka_messages import DeadLetters, KafkaFormat, Message, decode_messages
from ohmlearn.serve.serve_errors import Refused
from ohmlearn.serve.service_threads import Worker

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

GROUP_BYTES = 4 << 20  # of messages that are joined into one batch
READ_AT_ONCE = 10_000  # messages
PATIENCE = 4  # refusals of a batch after which partitions are paused
LONGEST_RETRY = 10.0  # seconds
CONNECT_SECONDS = 5.0
RECENT = 60.0  # seconds for which an error is shown, and not logged again
# Settings of librdkafka, the library that confluent-kafka uses.
DEFAULTS = {
    "session.timeout.ms": 10_000,  # after a crash, the group waits so long for the lost member
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 2,  # errors come by a call, and are logged once
}
FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",  # messages must not be skipped without a word
}
MISCONFIGURED = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
logger = logging.getLogger(__name__)


class KafkaPartition:
    """What has been read of a partition and is not durable yet."""

    def __init__(self, topic: str, number: int, stored: int) -> None:
        self.topic, self.number = self.key = topic, number
        self.stored = stored  # the next offset according to the folder of the service
        self.next = stored  # the offset after the last message that was read
        self.high: int | None = None  # the offset after the last message in Kafka
        self.is_lost = False  # whether Kafka does not have the message at `next`
        self.is_paused = False  # because the service refuses its batch
        self.messages: deque[Message] = deque()
        self.most = READ_AT_ONCE  # messages to join; fewer after a batch was refused
        self.n_failures = 0  # how often in a row a batch was refused
        self.retry_at = 0.0  # when to submit it again

    def __str__(self) -> str:
        return f"{self.topic} [{self.number}]"

    @property
    def place(self) -> TopicPartition:
        """Where the partition is to be read from."""
        return TopicPartition(self.topic, self.number, self.next or OFFSET_BEGINNING)

    def take(self, most: int) -> list[Message]:
        """Return the messages of the next batch: at least one, and not too many bytes."""
        sizes = accumulate(message.n_bytes for message in self.messages)
        some = zip(islice(self.messages, min(most, self.most)), sizes, strict=False)
        group = [message for message, _ in takewhile(lambda one: one[1] <= GROUP_BYTES, some)]
        return group or [self.messages[0]]

    def finish(self, group: list[Message]) -> None:
        """Remove the messages of a batch, which is durable."""
        for _ in group:
            self.messages.popleft()
        self.stored = group[-1].offset + 1
        self.n_failures, self.most = 0, min(2 * self.most, READ_AT_ONCE)


class Submitted(NamedTuple):
    """A batch that the service has, or has refused."""

    part: KafkaPartition
    group: list[Message]
    id_kind: str | None  # the type of ids in the log when they were decoded
    future: Future[Receipt]


class Consumer(Worker):
    """Reads edges from topics of Kafka into a service, each message exactly once.

    The service is started before the consumer, and stopped after it. No other consumer of the same
    service may read the same topics. Members of a group share partitions; by default each folder
    has its own group. A message in JSON has one object or several, one per line or in a list, with
    the names that ``POST /v1/edges`` accepts; in "arrow" it is an IPC stream. Edges without a time
    get that of their message.
    """

    def __init__(
        self,
        service: Service,
        *,
        bootstrap: str,
        topics: Sequence[str],
        group: str | None = None,
        form: KafkaFormat = "json",
        config: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("kafka")
        self._service, self._topics, self._form = service, list(topics), form
        self._config = merge_config(config or {}, bootstrap, group, service.folder)
        strategy = str(self._config.get("partition.assignment.strategy", ""))
        protocol = str(self._config.get("group.protocol", ""))
        self._is_incremental = "cooperative" in strategy or protocol.lower() == "consumer"
        self._letters = DeadLetters(service.folder / "dead-letters.ndjson")
        self._partitions: dict[tuple[str, int], KafkaPartition] = {}
        self._submitted: list[Submitted] = []
        self._errors: deque[KafkaError] = deque(maxlen=20)
        self._n_messages = self._n_edges = self._n_deleted = 0
        self._last: dict[str, Any] | None = None  # the last error
        self._logged: dict[Any, float] = {}  # when an error was logged
        self._state = "stopped"
        self._look_at = 0.0

    def start(self) -> None:
        """Connect, and start to read.

        A ValueError says that the settings are wrong, or that Kafka refuses the name, the password
        or the certificate. If no broker can be reached, `status` says so, and it is tried again
        for ever.
        """
        self._client = self._connect()
        try:
            self._check(self._client)
        except BaseException:
            self._client.close()
            raise
        self._state = "joining"
        super().start()

    def status(self) -> dict[str, Any]:
        """Return what has been read since the start, how far behind it is, and the last error.

        The state is "joining" the group, "running", "waiting" for the service, "disconnected",
        "retrying" after a failure, or "stopped". "error" is what is wrong now, or None.
        """
        partitions = []
        for _, part in sorted(self._partitions.items()):
            lag = None if part.high is None else max(part.high - part.stored, 0)
            place = {"topic": part.topic, "partition": part.number, "next": part.stored, "lag": lag}
            partitions.append(place)
        return {
            "state": self._state,
            "topics": self._topics,
            "group": self._config["group.id"],
            "messages": self._n_messages,
            "edges": self._n_edges,
            "dead_letters": self._letters.n_letters,
            "deleted_before_read": self._n_deleted,
            "partitions": partitions,
            "error": self._current_error(),
            "last_error": self._last,
        }

    def _note(self, message: str, kind: Any = None) -> None:
        """Keep an error, and log it unless the same or its kind was just logged."""
        now = time.time()
        self._last = {"message": message, "at": now}
        kind = message if kind is None else kind
        if now - self._logged.get(kind, 0.0) > RECENT:
            logger.warning("Kafka: %s", message)
            self._logged = {key: at for key, at in self._logged.items() if now - at < RECENT}
            self._logged[kind] = now

    def _current_error(self) -> str | None:
        """Return the last error, if it is recent."""
        last = self._last
        return last["message"] if last is not None and time.time() - last["at"] < RECENT else None

    def _connect(self) -> confluent_kafka.Consumer:
        settings = {**self._config, "error_cb": self._on_error}
        try:
            return confluent_kafka.Consumer(settings, logger=logger)
        except (KafkaException, TypeError, ValueError) as error:
            first = error.args[0] if error.args else error
            said = first.str() if isinstance(first, KafkaError) else str(error)
            raise ValueError(f"the settings of Kafka are wrong: {said}") from None

    def _check(self, client: confluent_kafka.Consumer) -> None:
        """Look for the topics; raise errors that no waiting cures."""
        end = time.monotonic() + CONNECT_SECONDS
        for topic in self._topics:
            found = None
            while found is None and time.monotonic() < end:
                with suppress(KafkaException):
                    found = client.list_topics(topic, timeout=0.5).topics[topic]
                client.poll(0)  # calls `_on_error`
                for error in self._errors:
                    refuse_misconfigured(error)
            if found is not None and found.error is not None:
                refuse_misconfigured(found.error)
                self._note(f"topic {topic}: {found.error.str()}")

    def _on_error(self, error: KafkaError) -> None:
        self._errors.append(error)
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._state = "disconnected"
            if self._current_error() is not None:
                return  # which says why
        self._note(error.str(), error.code())

    def _run(self) -> None:
        client: confluent_kafka.Consumer | None = self._client
        calls = {"on_assign": self._assign, "on_revoke": self._revoke, "on_lost": self._revoke}
        while not self._stopping.is_set():
            try:
                client = client or self._connect()
                client.subscribe(self._topics, **calls)
                while not self._stopping.is_set():
                    self._exchange(client)
            except Exception as error:  # what failed may work again
                self._note(reason_of(error))
                self._state = "retrying"
                if not isinstance(error, KafkaException):
                    logger.exception("the consumer of Kafka failed and starts again")
            with suppress(Refused):
                self._settle()  # so that the next offsets of the folder are final
            if client is not None:
                with suppress(KafkaException, RuntimeError):
                    client.close()
            client, self._partitions = None, {}
            self._stopping.wait(LONGEST_RETRY)
        self._state = "stopped"

    def _exchange(self, client: confluent_kafka.Consumer) -> None:
        """Let the service store what has been read; read more when it has all of that."""
        now = time.monotonic()
        parts = [part for part in self._partitions.values() if now >= part.retry_at]
        self._submitted = [self._submit(part) for part in parts if part.messages]
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + 1.0
            self._look(client)
        for part in self._partitions.values():
            must_pause = part.n_failures >= PATIENCE
            if must_pause != part.is_paused:
                (client.pause if must_pause else client.resume)([part.place])
                part.is_paused = must_pause
        # A pause discards what is fetched, so first the service gets some time.
        n_left = sum(len(x.messages) for x in self._partitions.values() if not x.is_paused)
        if n_left > sum(len(one.group) for one in self._submitted):
            self._stopping.wait(0 if self._submitted else 0.01)
        else:
            self._read(client)
        self._settle()

    def _read(self, client: confluent_kafka.Consumer) -> None:
        """Read messages; also while all partitions are paused, to stay a member of the group."""
        n_more = READ_AT_ONCE * max(len(self._partitions), 1) - 1
        message = client.poll(0 if self._submitted else 0.1)
        if message is not None:
            self._take(client, message)
            for message in client.consume(n_more, 0):
                self._take(client, message)

    def _take(self, client: confluent_kafka.Consumer, message: confluent_kafka.Message) -> None:
        """Put a message into the buffer."""
        topic, number, offset = message.topic(), message.partition(), message.offset()
        part = None if topic is None or number is None else self._partitions.get((topic, number))
        error = message.error()
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            if error.code() == KafkaError._AUTO_OFFSET_RESET and part is not None:
                part.is_lost, self._look_at = True, 0.0
            else:
                self._note(error.str())
        elif part is not None and offset is not None and offset >= part.next:
            kind, milliseconds = message.timestamp()
            sent, now = milliseconds / 1000, time.time()
            if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE or not 0 <= sent <= now:
                sent = now  # one wrong clock must not make all other edges old
            part.messages.append(Message(offset, sent, message.value() or b""))
            part.next = offset + 1

    def _assign(self, client: confluent_kafka.Consumer, places: list[TopicPartition]) -> None:
        """Read partitions from where the folder is."""
        keys = {(place.topic, place.partition) for place in places}
        stored = {topic: self._service.next_offsets(topic) for topic, _ in keys}
        new = {key: KafkaPartition(*key, stored[key[0]].get(key[1], 0)) for key in keys}
        self._partitions = {**self._partitions, **new}
        assign = client.incremental_assign if self._is_incremental else client.assign
        assign([part.place for part in new.values()])
        self._state = "running"

    def _revoke(self, _: confluent_kafka.Consumer, places: list[TopicPartition]) -> None:
        self._settle()
        gone = {(place.topic, place.partition) for place in places}
        self._partitions = {key: x for key, x in self._partitions.items() if key not in gone}
        if not self._partitions and self._state in ("running", "waiting"):
            self._state = "joining"

    def _look(self, client: confluent_kafka.Consumer) -> None:
        """Once a second: update lags and the state, and read again where Kafka was stuck."""
        parts = list(self._partitions.values())
        if self._state == "disconnected":
            with suppress(KafkaException):
                client.list_topics(self._topics[0], timeout=0.5)
                self._state = "running" if parts else "joining"
        if found := [part for part in parts if part.is_lost and self._find_place(client, part)]:
            if self._is_incremental:
                client.incremental_unassign([part.place for part in found])
                client.incremental_assign([part.place for part in found])
            else:
                client.assign([part.place for part in parts])
                for part in parts:
                    part.is_paused = False
        for part in parts:
            with suppress(KafkaException, TypeError):
                _, high = client.get_watermark_offsets(part.place, cached=True)
                part.high = high if high >= 0 else part.high
        if self._state in ("running", "waiting"):
            self._state = "waiting" if any(part.n_failures for part in parts) else "running"

    def _find_place(self, client: confluent_kafka.Consumer, part: KafkaPartition) -> bool:
        """Find out why Kafka does not have the next message; return whether it can be read on."""
        try:
            low, high = client.get_watermark_offsets(part.place, timeout=CONNECT_SECONDS)
        except (KafkaException, TypeError):  # it returns None if it takes too long
            return False
        if low > part.next:
            self._n_deleted += low - part.next
            self._note(
                f"{part}: offsets {part.next} to {low - 1} were deleted in Kafka before they were "
                f"read; keep messages longer there"
            )
            part.next = low
        elif high < part.next:
            self._note(
                f"{part} ends at offset {high}, but this folder has counted the messages below "
                f"{part.next}; if the topic was deleted and made again, use another name for it"
            )
        part.is_lost = high < part.next
        return not part.is_lost

    def _settle(self) -> None:
        """Wait for the receipts of all batches that the service has."""
        submitted, self._submitted = self._submitted, []
        wait([one.future for one in submitted])
        for one in submitted:
            error = one.future.exception()
            if error is not None:
                self._handle_refusal(one, error)
                continue
            one.part.finish(one.group)
            receipt = one.future.result()
            if not receipt.repeated:
                self._n_messages += len(one.group)
                self._n_edges += receipt.n_edges

    def _submit(self, part: KafkaPartition) -> Submitted:
        """Decode the next messages, and hand them to the service."""
        kind = self._service.id_kind
        # The first message alone decides which type of ids there is.
        group = part.take(READ_AT_ONCE if kind is not None else 1)
        future: Future[Receipt] = Future()
        try:
            usable = [message for message in group if not self._letters.has(*part.key, message)]
            columns = self._service.event_id, self._service.weight
            batch, bad = decode_messages(usable, self._form, kind, *columns)
            self._bury(part, bad)
            offset = Offset(*part.key, group[-1].offset, part.stored or -1)
            future = self._service.submit(batch, offset=offset)
        except Exception as error:
            future.set_exception(error)
        return Submitted(part, group, kind, future)

    def _handle_refusal(self, refused: Submitted, error: BaseException) -> None:
        """Try again later what may succeed then, and isolate what never will."""
        part, group = refused.part, refused.group
        is_bad = isinstance(error, ValueError) and not isinstance(error, LogError)
        is_bad = is_bad or getattr(error, "status", 0) in (400, 409, 413)
        if not is_bad or all(self._letters.has(*part.key, message) for message in group):
            self._retry_later(part, error)
            return
        stored = self._service.next_offsets(part.topic).get(part.number, 0)
        if stored != part.stored:  # then the fault is not in the messages
            raise Refused(
                409,
                f"{part} is at offset {stored} in the folder, but the consumer was at "
                f"{part.stored}; it reads again from {stored} on",
            )
        if len(group) > 1:
            part.most = len(group) // 2
        elif self._service.id_kind == refused.id_kind:  # else another batch was the first
            try:
                self._bury(part, [(group[0], str(error))])
            except Refused as full:
                self._retry_later(part, full)

    def _retry_later(self, part: KafkaPartition, error: BaseException) -> None:
        part.n_failures += 1
        delay = min(0.1 * 2.0 ** min(part.n_failures, 10), LONGEST_RETRY)
        if isinstance(error, Refused) and error.status == 429 and error.retry_after is not None:
            delay = min(error.retry_after, LONGEST_RETRY)
        else:
            self._note(f"{part}: {reason_of(error)}")
            if not isinstance(error, Refused):
                logger.error("a batch of Kafka could not be stored", exc_info=error)
        part.retry_at = time.monotonic() + delay

    def _bury(self, part: KafkaPartition, bad: list[tuple[Message, str]]) -> None:
        """Write dead letters, which are not submitted from then on."""
        try:
            self._letters.write(*part.key, bad, part.stored)
        except OSError as error:
            raise Refused(507, f"no dead letters: {error.strerror}") from None
        if bad:
            message, reason = bad[-1]
            self._note(f"{part}, offset {message.offset} is a dead letter: {reason}")


def reason_of(error: BaseException) -> str:
    """Return what an error says to clients; paths of files are for the log of the server only."""
    first = error.args[0] if error.args else None
    if isinstance(first, KafkaError):
        return first.str()
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}; the log of the server has the reason"


def merge_config(
    config: dict[str, Any], bootstrap: str, group: str | None, folder: Path
) -> dict[str, Any]:
    """Return the settings of a client; refuse those with which messages could be lost."""
    if config.get("bootstrap.servers", bootstrap) != bootstrap:
        raise ValueError(
            f"bootstrap.servers = {config['bootstrap.servers']!r} in the settings of Kafka differs "
            f"from the address {bootstrap!r}; leave it out"
        )
    for name, value in FIXED.items():
        if str(config.get(name, value)).lower() != str(value).lower():
            raise ValueError(
                f"{name} = {config[name]!r} in the settings of Kafka is not possible, because "
                f"ohmlearn stores offsets together with edges; leave it out"
            )
    # The group of a folder is its own, as two folders in one group would share the messages.
    where = f"{socket.gethostname()}:{folder.resolve()}"
    own = "ohmlearn-" + hashlib.sha256(where.encode()).hexdigest()[:12]
    group = group or config.get("group.id") or own
    return {**DEFAULTS, **config, **FIXED, "bootstrap.servers": bootstrap, "group.id": group}


def refuse_misconfigured(error: KafkaError) -> None:
    """Raise errors that no waiting cures."""
    if error.code() in MISCONFIGURED:
        raise ValueError(
            f"Kafka refuses the connection: {error.str()}; check the settings of SASL and TLS, "
            f"and the rights to the topics and the group"
        )


def read_config(path: str | Path) -> dict[str, str]:
    """Read settings of librdkafka, such as those of SASL and TLS, from a file of properties.

    A line is ``name = value``; lines that start with "#" or "!" are comments. Error messages do not
    show values, which may be passwords.
    """
    settings: dict[str, str] = {}
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name or any(character.isspace() for character in name):
            raise ValueError(f"line {number} of {path} must be name = value")
        if name in settings:
            raise ValueError(f"line {number} of {path} sets {name} a second time")
        settings[name] = value.strip()
    return settings
