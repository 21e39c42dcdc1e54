"""Messages of Kafka count exactly once, whatever happens; with a broker over TCP."""

import base64
import errno
import json
import os
import random
import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import nullcontext
from itertools import count

import confluent_kafka
import numpy as np
import pytest
from confluent_kafka import Producer
from serve_broker import Broker
from serve_cases import wait_for
from serve_consumer import (
    CONFIG,
    Sender,
    Victims,
    consuming,
    counted,
    outage,
    positions,
    rival,
    to_arrow,
)

from ohmlearn import EdgeLog
from ohmlearn.edge_log import LogError
from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.serve import kafka_consumer as consumer_module
from ohmlearn.serve import kafka_messages as messages_module
from ohmlearn.serve.decode_edges import decode_edges
from ohmlearn.serve.kafka_consumer import read_config
from ohmlearn.serve.kafka_messages import DeadLetters, Message, decode_messages
from ohmlearn.serve.serve_errors import Refused
from ohmlearn.serve.service import Service

N_KILLS = 100 if os.environ.get("OHMLEARN_LONG") else 10
N_PARTITIONS = 3
NUMBERS = count()


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker):
    name = f"edges-{next(NUMBERS)}"
    broker.topic(name, N_PARTITIONS)
    return name


@pytest.fixture
def sender(broker, topic):
    return Sender(broker.address, topic, N_PARTITIONS)


def letters(folder):
    path = folder / "dead-letters.ndjson"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finish(folder, broker, topic, sender, **options):
    """Consume what is left, and compare the edges in the folder with those that were sent."""
    total = sender.n_messages
    sender.flush()
    with consuming(folder, broker.address, topic, **options) as consumer:
        wait_for(lambda: sum(p["next"] for p in consumer.status()["partitions"]) == total)
    assert counted(folder) == sender.sent
    assert len(letters(folder)) == sender.n_bad


@pytest.mark.parametrize("form", ["lines", "list", "arrow"])
def test_messages_of_any_size_and_form(tmp_path, broker, topic, sender, form):
    for n_edges in (1, 10_000, 1, 7, 1, 1):
        sender.send(n_edges, form)
    finish(tmp_path, broker, topic, sender, form="arrow" if form == "arrow" else "json")


def test_an_event_in_two_messages_counts_once(tmp_path, broker, topic, sender):
    for number in (1, 2, 1, 3, 2):
        row = {**sender.edges(1)[0], "u": 1, "v": 2, "id": number}
        sender.send_raw(json.dumps(row).encode(), partition=number % 2)
    sender.send_bad(b'{"u": 1, "v": 2}')  # without an id
    sender.flush()
    for n_new in (3, 0):  # the folder has the name of the column
        event_id = "id" if n_new else None
        with consuming(tmp_path, broker.address, topic, event_id=event_id) as consumer:
            wait_for(lambda: sum(p["next"] for p in consumer.status()["partitions"]) == 6)
            assert consumer.status()["edges"] == n_new
    assert counted(tmp_path).total() == 3
    assert len(letters(tmp_path)) == 1


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path, topic):
    """Also while the broker is down, and while another member of the group has partitions."""
    rng = random.Random(2)
    ends = Counter()
    with Broker() as broker, Victims(tmp_path, broker.address, topic) as victims:
        broker.topic(topic, N_PARTITIONS)
        sender = Sender(broker.address, topic, N_PARTITIONS, seed=1)
        for number in range(N_KILLS):
            sizes = [1] * 30 + [rng.randrange(1, 300) for _ in range(10)]
            sizes += [10_000] * (number % 5 == 0)
            rng.shuffle(sizes)
            for at, n_edges in enumerate(sizes):
                if at % 20 == 19:
                    sender.send_bad()
                sender.send(n_edges)
            event, after_first, delay = nullcontext(), number % 2 == 0, rng.randrange(60_000)
            if number % 5 == 3:
                sender.flush()  # what is under way when the broker goes down may be sent twice
                event = outage(broker, rng.uniform(0, 0.3), rng.uniform(0, 0.3))
                after_first, delay = False, rng.randrange(1_000_000)
            elif number % 5 == 4:
                event = rival(broker.address, topic, f"{topic}-victim-{number}")
                after_first = True
            elif not after_first:
                delay = rng.randrange(400_000)
            with event:
                ends[victims.run(-delay - 1 if after_first else delay) > 0] += 1
        finish(tmp_path, broker, topic, sender)
    assert ends[True] >= N_KILLS // 2  # most of them have died with work in their hands
    report = {"kills": N_KILLS, "with_messages": ends[True], "messages": sender.n_messages}
    print(json.dumps({**report, "edges": sender.sent.total(), "dead_letters": sender.n_bad}))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_rebalances(tmp_path, broker, topic, sender, strategy):
    """Another member takes partitions and reads them; the folder reads them itself later."""
    config = {**CONFIG, "partition.assignment.strategy": strategy}
    stop = threading.Event()

    def keep_sending():
        while not stop.wait(0.002):
            sender.send(3)

    with consuming(tmp_path, broker.address, topic, group=topic, config=config) as consumer:
        thread = threading.Thread(target=keep_sending)
        thread.start()
        try:
            wait_for(lambda: len(consumer.status()["partitions"]) == N_PARTITIONS)
            other = confluent_kafka.Consumer(
                {**config, "bootstrap.servers": broker.address, "group.id": topic, "log_level": 0}
                | {"auto.offset.reset": "earliest", "enable.auto.commit": True}
            )
            other.subscribe([topic])
            read = []
            wait_for(lambda: read.extend(other.consume(100, 0.05)) or len(read) > 100)
            assert len(consumer.status()["partitions"]) < N_PARTITIONS
            other.commit(asynchronous=False)  # offsets in Kafka must not matter
            other.close()
            wait_for(lambda: len(consumer.status()["partitions"]) == N_PARTITIONS)
        finally:
            stop.set()
            thread.join()
        sender.flush()
        places = lambda: consumer.status()["partitions"]  # noqa: E731
        wait_for(lambda: sum(p["next"] for p in places()) == sender.n_messages)
    assert counted(tmp_path) == sender.sent


@pytest.mark.slow
def test_broker_goes_down_and_comes_back(tmp_path, topic):
    with Broker() as broker:
        broker.topic(topic, N_PARTITIONS)
        sender = Sender(broker.address, topic, N_PARTITIONS)
        with consuming(tmp_path, broker.address, topic) as consumer:
            for n_sent in (20, 40, 60):
                for _ in range(20):
                    sender.send(5)
                wait_for(lambda n=n_sent: 0 < consumer.status()["messages"] <= n)
                sender.flush()  # what is under way when the broker goes down may be sent twice
                broker.down()
                for _ in range(10):
                    sender.send(2)  # the producer keeps them until the broker is back
                wait_for(lambda: consumer.status()["state"] == "disconnected")
                assert consumer.status()["error"]
                broker.up()
                wait_for(lambda: consumer.status()["state"] == "running")
            sender.flush()
            wait_for(lambda: consumer.status()["messages"] == sender.n_messages)
    assert counted(tmp_path) == sender.sent


@pytest.mark.slow
def test_starts_while_the_broker_is_down(tmp_path, topic, monkeypatch):
    monkeypatch.setattr(consumer_module, "CONNECT_SECONDS", 0.5)
    with Broker() as broker:
        broker.topic(topic, 1)
        sender = Sender(broker.address, topic, 1)
        sender.send(4)
        sender.flush()
        broker.down()
        with consuming(tmp_path, broker.address, topic) as consumer:
            wait_for(lambda: consumer.status()["state"] == "disconnected")
            broker.up()
            wait_for(lambda: consumer.status()["messages"] == 1)
    assert counted(tmp_path) == sender.sent


def test_poison_messages(tmp_path, broker, topic, sender):
    """Each is in the file once, and all messages around it count."""
    bad = [b"\xff\xfe", b"{", b"[1]", b"[[[", b'{"u": 1}', b"[" * 100_000, b'{"u": 1, "v": 2}\n{']
    for value in bad:
        sender.send(3)
        sender.send_bad(value)
        sender.send(2, "list")
    sender.send_raw(None)  # a tombstone has no edges, and is no mistake
    sender.send_raw(b" \n")
    sender.send_raw(b"[]")
    finish(tmp_path, broker, topic, sender)
    found = letters(tmp_path)
    assert Counter(base64.b64decode(letter["payload"]) for letter in found) == Counter(bad)
    assert {letter["topic"] for letter in found} == {topic}
    assert all(letter["error"] and letter["time"] > 1.7e9 for letter in found)
    assert len({(letter["partition"], letter["offset"]) for letter in found}) == len(bad)
    finish(tmp_path, broker, topic, sender)  # nothing is read again


def test_ids_of_another_kind_are_dead_letters(tmp_path, broker, topic):
    """Messages have one partition, whose first message decides."""
    sender = Sender(broker.address, topic, 1)
    sender.send_bad(b"?")  # decides nothing
    sender.send(2)
    sender.send_bad(b'{"u": "ann", "v": "bob"}')
    sender.send(3)
    finish(tmp_path, broker, topic, sender)


def test_time_of_the_message_is_that_of_its_edges(tmp_path, broker, topic):
    producer = Producer({"bootstrap.servers": broker.address})
    at = 1_700_000_000
    values = [
        (b'{"u": 1, "v": 2}\n\n{"u": 2, "v": 3}', at),
        (b'{"u": 3, "v": 4}', at + 1),
        (b'{"u": 4, "v": 5, "time": 1600000000.5}', at + 2),
        (b'[{"u": 5, "v": 6}]', at + 3),
    ]
    for value, seconds in values:
        producer.produce(topic, value, partition=0, timestamp=seconds * 1000)
    producer.flush()
    with consuming(tmp_path, broker.address, topic) as consumer:
        wait_for(lambda: consumer.status()["messages"] == 4)
    with EdgeLog(tmp_path / "log") as log:
        times = np.concatenate([batch.t for batch in log]).tolist()
    assert times == [at, at, at + 1, 1600000000.5, at + 3]


class Refusing:
    """Makes a service refuse batches, at random, before it takes them or afterwards."""

    def __init__(self, service, errors, seed=0):
        self._submit, self._errors = service.submit, errors
        self._random = random.Random(seed)
        self.n_refused = 0

    def __call__(self, batch, **options):
        if self._random.random() < 0.3:
            return self._submit(batch, **options)
        self.n_refused += 1
        error = self._random.choice(self._errors)
        if error.status == 429 or self._random.random() < 0.5:
            raise error
        future = Future()
        future.set_exception(error)
        return future


def test_refusals_lose_nothing(tmp_path, broker, topic, sender, monkeypatch):
    errors = [
        Refused(429, "full", retry_after=0.01),
        Refused(507, "the disk is full"),
        Refused(503, "failed"),
    ]
    monkeypatch.setattr(consumer_module, "LONGEST_RETRY", 0.02)
    with consuming(tmp_path, broker.address, topic) as consumer:
        refusing = Refusing(consumer._service, errors)
        monkeypatch.setattr(consumer._service, "submit", refusing)
        for _ in range(60):
            sender.send(2)
            sender.flush()
        wait_for(lambda: consumer.status()["messages"] == 60)
    assert refusing.n_refused > 10
    assert counted(tmp_path) == sender.sent
    assert letters(tmp_path) == []


def test_batches_that_the_service_refuses_are_halved(tmp_path, broker, topic, monkeypatch):
    """The service knows faults that decoding does not."""
    sender = Sender(broker.address, topic, 1)
    sender.send(1)
    for _ in range(40):
        sender.send(2)
    unlucky = sender.edges(1)
    sender.send_bad(json.dumps(unlucky[0]).encode())
    for _ in range(40):
        sender.send(2)
    sender.flush()
    weight = unlucky[0]["weight"]
    sender.sent = Counter({edge: n for edge, n in sender.sent.items() if edge[2] != weight})
    submit = Service.submit

    def refuse(service, batch, **options):
        if batch.w is not None and weight in batch.w:
            raise ValueError("an unlucky weight")
        return submit(service, batch, **options)

    monkeypatch.setattr(Service, "submit", refuse)
    with consuming(tmp_path, broker.address, topic) as consumer:
        wait_for(lambda: consumer.status()["messages"] == sender.n_messages)
        assert consumer._service.metrics()["batches_total"][0] < 30
    assert counted(tmp_path) == sender.sent
    (letter,) = letters(tmp_path)
    assert letter["error"] == "an unlucky weight"


@pytest.mark.slow
def test_a_busy_service_pauses_and_resumes(tmp_path, broker, topic, sender, monkeypatch):
    submit, is_busy = Service.submit, threading.Event()
    is_busy.set()

    def refuse(service, batch, **options):
        if is_busy.is_set():
            raise Refused(429, "full", retry_after=0.02)
        return submit(service, batch, **options)

    monkeypatch.setattr(Service, "submit", refuse)
    config = {"queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 2000}
    with consuming(tmp_path, broker.address, topic, config=config) as consumer:
        for _ in range(600):
            sender.send(1)
        sender.flush()
        wait_for(lambda: any(part.is_paused for part in consumer._partitions.values()))
        wait_for(lambda: consumer.status()["state"] == "waiting")
        is_busy.clear()
        wait_for(lambda: consumer.status()["messages"] == 600)
    assert counted(tmp_path) == sender.sent


@pytest.mark.slow
def test_failures_of_the_consumer_start_it_again(tmp_path, broker, topic, sender, monkeypatch):
    monkeypatch.setattr(consumer_module, "LONGEST_RETRY", 0.05)
    failures = iter([True, False, True, True])
    with consuming(tmp_path, broker.address, topic) as consumer:
        read = consumer._read

        def fail(client):
            if consumer._submitted and next(failures, False):  # the service has batches
                raise OSError(errno.ENOENT, "No such file", "/srv/secret/log")
            read(client)

        monkeypatch.setattr(consumer, "_read", fail)
        for _ in range(20):
            sender.send(2)
        sender.flush()
        wait_for(lambda: consumer.status()["messages"] == 20)
        assert consumer.status()["last_error"]["message"] == "No such file"
    assert counted(tmp_path) == sender.sent


def test_deleted_messages_are_reported(tmp_path, broker, topic):
    sender = Sender(broker.address, topic, 1)
    sender.send(1)
    finish(tmp_path, broker, topic, sender)
    kept = Counter(sender.sent)
    for _ in range(5):
        sender.send(1)
    sender.flush()
    lost = sender.sent - kept
    sender.send(2)
    sender.flush()
    broker.forget(topic, 0, 6)
    with consuming(tmp_path, broker.address, topic) as consumer:
        wait_for(lambda: consumer.status()["messages"] == 1)
        status = consumer.status()
    assert status["deleted_before_read"] == 5
    assert "offsets 1 to 5 were deleted in Kafka" in status["error"]
    assert counted(tmp_path) == sender.sent - lost


def test_topic_that_was_made_again_is_reported(tmp_path, broker, topic):
    sender = Sender(broker.address, topic, 1)
    for _ in range(3):
        sender.send(1)
    finish(tmp_path, broker, topic, sender)
    broker.remake(topic, 1)
    with consuming(tmp_path, broker.address, topic) as consumer:
        wait_for(lambda: "made again" in (consumer.status()["error"] or ""))
    assert counted(tmp_path) == sender.sent
    assert positions(tmp_path, topic, 1) == [3]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"no.such.thing": "1"}, "No such configuration property"),
        ({"security.protocol": "nonsense"}, "Invalid value"),
        ({"sasl.jaas.config": "x"}, "JAAS"),
        ({"enable.auto.commit": "true"}, "stores offsets together with edges"),
        ({"auto.offset.reset": "latest"}, "leave it out"),
        ({"bootstrap.servers": "elsewhere:9092"}, "differs from the address"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ann",
                "sasl.password": "secret-word",
            },
            "Kafka refuses the connection: .*SASL",
        ),
    ],
)
def test_wrong_settings_are_refused(tmp_path, broker, topic, config, message):
    with (
        pytest.raises(ValueError, match=message) as caught,
        consuming(tmp_path, broker.address, topic, config=config),
    ):
        pass
    assert "secret-word" not in str(caught.value)


def test_read_config(tmp_path):
    path = tmp_path / "kafka.properties"
    path.write_text("# ours\n\n! too\nsasl.password = a=b# c \nsecurity.protocol=SSL\n")
    assert read_config(path) == {"sasl.password": "a=b# c", "security.protocol": "SSL"}
    for text, message in [
        ("sasl.password secret-word", "line 1 of .* must be name = value"),
        ("a = 1\n\na = secret-word", "line 3 of .* sets a a second time"),
        ("= secret-word", "line 1"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message) as caught:
            read_config(path)
        assert "secret-word" not in str(caught.value)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="UTF-8"):
        read_config(path)


def test_dead_letters_survive_torn_lines(tmp_path):
    path = tmp_path / "dead-letters.ndjson"
    first = DeadLetters(path)
    first.write("edges", 0, [(Message(3, 1.0, b"a"), "bad"), (Message(5, 1.0, b"b"), "bad")])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])  # a crash
    second = DeadLetters(path)
    assert second.n_letters == 2
    second.write("edges", 0, [(Message(n, 1.0, b"c"), "bad") for n in (3, 4, 5)])
    second.write("edges", 0, [], 6)
    assert [letter["offset"] for letter in letters(tmp_path)] == [3, 5, 4]


def test_dead_letters_on_a_full_disk_leave_no_half_line(tmp_path, monkeypatch):
    found = DeadLetters(tmp_path / "dead-letters.ndjson")
    write = os.pwrite

    def write_some(file, data, at):
        if at > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:20], at)

    monkeypatch.setattr(os, "pwrite", write_some)
    with pytest.raises(OSError, match="No space"):
        found.write("edges", 0, [(Message(3, 1.0, b"a"), "bad")])
    monkeypatch.undo()
    assert found.path.stat().st_size == 0
    found.write("edges", 0, [(Message(3, 1.0, b"a"), "bad")])
    assert len(letters(tmp_path)) == 1


def test_a_long_file_of_dead_letters_gets_no_contents(tmp_path, monkeypatch):
    monkeypatch.setattr(messages_module, "MOST_LETTER_BYTES", 100)
    found = DeadLetters(tmp_path / "dead-letters.ndjson")
    for offset in range(3):
        found.write("edges", 0, [(Message(offset, 1.0, b"?" * 80), "bad")])
    first, *others = letters(tmp_path)
    assert base64.b64decode(first["payload"]) == b"?" * 80
    assert [(letter["offset"], letter["error"], letter["payload"]) for letter in others] == [
        (1, "bad", None),
        (2, "bad", None),
    ]
    assert DeadLetters(found.path).n_letters == 3


@pytest.mark.parametrize(
    "error",
    [
        LogError("/srv/secret/edges.arrows is damaged"),
        OSError(errno.EIO, "Input/output error", "/srv/secret/edges.arrows"),
        RuntimeError("cannot open /srv/secret"),
    ],
)
def test_damage_is_no_fault_of_messages_and_paths_are_not_shown(
    tmp_path, broker, topic, sender, monkeypatch, caplog, error
):
    monkeypatch.setattr(consumer_module, "LONGEST_RETRY", 0.02)
    with consuming(tmp_path, broker.address, topic) as consumer:
        future = Future()
        future.set_exception(error)
        with monkeypatch.context() as patch:
            patch.setattr(consumer._service, "submit", lambda *_, **__: future)
            sender.send(2)
            sender.flush()
            wait_for(lambda: consumer.status()["error"])
        assert "secret" not in json.dumps(consumer.status())
        wait_for(lambda: "/srv/secret" in caplog.text)  # the log comes after the status
        wait_for(lambda: consumer.status()["messages"] == 1)
    assert letters(tmp_path) == []
    assert counted(tmp_path) == sender.sent


TEXTS = [
    b'{"u": 1, "v": 2}',
    b'{"v": 2, "u": 1, "note": "x"}',
    b'{"u": 2, "v": 3, "Weight": 5, "Timestamp": 150}',
    b'{"u": 2, "v": 3, "Weight": 5}',
    b'{"u": 2, "v": 3, "weight": 5}',
    b'{"u": 2, "v": 3, "weight": null}',
    b'{"source": 4, "target": 5, "u": 9, "weight": 2}',
    b'{"u": 4, "v": 5, "time": "2026-01-01"}',
    b'{"u": 4, "v": 5, "time": 99}',
    b'{"U": 4, "V": 5}',
    b'{"u": 4, "U": 5, "v": 6}',
    b'{"u": 4, "u": 5, "v": 6}',
    b'{"u": 2.0, "v": 3}',
    b'{"u": "2", "v": "3"}',
    b'{"u": 1, "v": 2}{"u": 2, "v": 3}',
    b'{"u": 3,\n"v": 4}',
    b'{"u": 1, "v": 2}\n{"u": 2, "v": 3}{"u": 4, "v": 5}',
    b'{"u": 1, "v": 2}\n{"u": 3,\n"v": 4}',
    b'{"u": 1, "v": 2}\n{"u": 3,',
    b'"v": 4}\n{"u": 1, "v": 2}',
    b'{"u": 1, "v": 2}\n{"u": 3, "v": 4, "weight": 2}',
    b'{"u": 1, "v": 2}\n{"u": 3, "v": 4, "weight": null}',
    b'{"u": 1, "v": 2}\n\n{"u": 3, "v": 4}\r\n',
    b'{"x": 1}\n{"source": 3, "target": 4}',
    b'[{"u": 1, "v": 2}, {"u": 3, "v": 4}]',
    b'[{"u": 1, "v": 2}, {"u": 3, "v": 4, "weight": 7}]',
    b'[{"source": 1, "target": 2, "value": 3}]',
    b"[]",
    b"[1]",
    b"",
    b" \n",
    b"\xef\xbb\xbf" + b'{"u": 1, "v": 2}',
    b"\xff",
]


def edges_of(batch):
    """Return the edges of a batch in plain values."""
    u, v = (
        decode_strings(column) if isinstance(column, Strings) else column
        for column in (batch.u, batch.v)
    )
    if batch.u.size == 0:
        return []
    return list(zip(u.tolist(), v.tolist(), batch.w.tolist(), batch.t.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_messages_mean_the_same_alone_and_together(kind):
    """Whichever messages have arrived by then; each pair, and many at random."""
    alone = [decode_messages([Message(0, 7.0, text)], "json", kind) for text in TEXTS]
    rng = random.Random(0)
    pairs = [(a, b) for a in range(len(TEXTS)) for b in range(len(TEXTS)) if kind == "int64"]
    several = [rng.choices(range(len(TEXTS)), k=rng.randrange(3, 30)) for _ in range(100)]
    for chosen in [*pairs, *several]:
        messages = [Message(at, 7.0 + at, TEXTS[which]) for at, which in enumerate(chosen)]
        together = decode_messages(messages, "json", kind)
        expected = [
            (u, v, w, 7.0 + at if t == 7.0 else t)
            for at, which in enumerate(chosen)
            for u, v, w, t in edges_of(alone[which].batch)
        ]
        assert edges_of(together.batch) == expected, chosen
        bad = [(at, alone[which].bad[0][1]) for at, which in enumerate(chosen) if alone[which].bad]
        assert [(message.offset, reason) for message, reason in together.bad] == bad


def test_messages_with_the_same_columns_are_decoded_together(monkeypatch):
    n_calls = 0

    def count(*arguments, **options):
        nonlocal n_calls
        n_calls += 1
        return decode_edges(*arguments, **options)

    monkeypatch.setattr(messages_module, "decode_edges", count)
    texts = [b'{"u": %d, "v": 2, "note%d": 1}' % (n, n % 3) for n in range(100)]
    texts += [b"", b'[{"u": 1, "v": 2}]', b'{"source": 1, "target": 2}']
    messages = [Message(n, 1.0, text) for n, text in enumerate(texts)]
    batch, bad = decode_messages(messages, "json", "int64")
    assert (batch.u.size, bad, n_calls) == (102, [], 3)


def test_arrow_messages_are_joined():
    rows = [[{"u": "a", "v": "b"}], [{"u": "cc", "v": "x", "weight": 2.0}, {"u": "d", "v": "é"}]]
    rows[1][1]["weight"] = 3.0
    messages = [Message(n, float(n), to_arrow(part)) for n, part in enumerate(rows)]
    batch, bad = decode_messages([*messages, Message(2, 2.0, b"no Arrow")], "arrow", "string")
    assert bytes(batch.u.data) == b"accd"
    assert batch.u.offsets.tolist() == [0, 1, 3, 4]
    assert bytes(batch.v.data) == "bxé".encode()
    assert batch.w.tolist() == [1.0, 2.0, 3.0]
    assert batch.t.tolist() == [0.0, 1.0, 1.0]
    assert [message.offset for message, _ in bad] == [2]
