"""Processes that read edges from Kafka into a folder until they are killed, and what they count.

``python serve_consumer.py FOLDER ADDRESS TOPIC``: for each line with a number of microseconds, a
new process serves the folder and is killed so long after its start, or, if the number is negative,
so long after its first message has become durable.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import confluent_kafka
import numpy as np
from confluent_kafka import Producer
from forks import kill_while_it_works

from ohmlearn import EdgeLog
from ohmlearn.serve.kafka_consumer import Consumer
from ohmlearn.serve.service import Service
from ohmlearn.serve.settings import Settings

# The mock broker takes the session timeout less a second for a rebalance, and does not answer a
# fetch early when a message comes.
CONFIG = {
    "session.timeout.ms": 2000,
    "heartbeat.interval.ms": 200,
    "fetch.wait.max.ms": 20,
    "reconnect.backoff.max.ms": 200,
}
NUMBERS = count()


class Sender:
    """Sends messages with edges, and remembers the edges.

    Each edge has a weight that no other edge has, so that edges that are lost and edges that count
    twice cannot make up for each other.
    """

    def __init__(self, address, topic, n_partitions, seed=0):
        settings = {"bootstrap.servers": address, "log_level": 0, "compression.type": "gzip"}
        self._producer = Producer({**settings, "linger.ms": 1, "message.timeout.ms": 60_000})
        self._topic, self._n_partitions = topic, n_partitions
        self._random = random.Random(seed)
        self._n_edges = 0
        self.sent = Counter()
        self.n_messages = self.n_bad = 0

    def edges(self, n_edges):
        """Return new edges as dicts, and remember them."""
        rows = []
        for _ in range(n_edges):
            self._n_edges += 1
            u, v = self._random.sample(range(500), 2)
            rows.append({"u": u, "v": v, "weight": float(self._n_edges)})
            self.sent[min(u, v), max(u, v), float(self._n_edges)] += 1
        return rows

    def send(self, n_edges, form="lines"):
        """Send a message with edges."""
        rows = self.edges(n_edges)
        if form == "list":
            self.send_raw(json.dumps(rows).encode())
        elif form == "arrow":
            self.send_raw(to_arrow(rows))
        else:
            self.send_raw(b"\n".join(json.dumps(row).encode() for row in rows))

    def send_bad(self, value=b'{"u": 1, "v": 2, "weight": -1}'):
        """Send a message without usable edges."""
        self.n_bad += 1
        self.send_raw(value)

    def send_raw(self, value, **more):
        self.n_messages += 1
        number = self._random.randrange(self._n_partitions)
        self._producer.produce(self._topic, value, partition=more.pop("partition", number), **more)
        self._producer.poll(0)

    def flush(self):
        """Wait until the broker has all messages."""
        assert self._producer.flush(60) == 0


def to_arrow(rows):
    """Return rows as an IPC stream."""
    import pyarrow as pa

    table = pa.Table.from_pylist(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def counted(folder):
    """Return the live edges of a folder, with the numbers of how often they are there."""
    found = Counter()
    with EdgeLog(Path(folder) / "log") as log:
        ids = np.asarray(log.nodes.ids())
        for batch in log:
            ends = np.sort(np.stack([ids[batch.u], ids[batch.v]]), axis=0).tolist()
            found.update(zip(*ends, batch.w.tolist(), strict=True))
    return found


@contextmanager
def consuming(folder, address, topic, **options):
    """Run a service and a consumer, in a new group; yield the consumer."""
    options.setdefault("group", f"{topic}-{next(NUMBERS)}")  # the second in a group waits a second
    config = {**CONFIG, **options.pop("config", {})}
    service = Service(folder, Settings(event_id=options.pop("event_id", None)))
    service.start()
    try:
        consumer = Consumer(service, bootstrap=address, topics=[topic], config=config, **options)
        consumer.start()
        try:
            yield consumer
        finally:
            consumer.stop()
    finally:
        service.stop()


def positions(folder, topic, n_partitions):
    """Return the offsets that a folder has stored."""
    service = Service(folder)
    try:
        stored = service.next_offsets(topic)
        return [stored.get(number, 0) for number in range(n_partitions)]
    finally:
        service.stop()


@contextmanager
def rival(address, topic, group):
    """Run another member of a group, which reads messages and keeps offsets in Kafka."""
    settings = {"bootstrap.servers": address, "group.id": group, "log_level": 0}
    member = confluent_kafka.Consumer({**CONFIG, **settings, "auto.offset.reset": "earliest"})
    stop, is_member = threading.Event(), threading.Event()
    member.subscribe([topic], on_assign=lambda *_: is_member.set())

    def read():
        while not stop.is_set():
            member.consume(100, 0.01)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert is_member.wait(60)
        yield
    finally:
        stop.set()
        thread.join()
        member.close()


@contextmanager
def outage(broker, before, during):
    """Take the broker down after some seconds, and up again after others."""

    def fail():
        time.sleep(before)
        broker.down()
        time.sleep(during)
        broker.up()

    thread = threading.Thread(target=fail)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class Victims:
    """A process that starts consumers and kills them."""

    def __init__(self, folder, address, topic):
        command = [sys.executable, __file__, str(folder), address, topic]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, **pipes, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=60)

    def run(self, microseconds):
        """Run a consumer and kill it; return how many messages it has taken, as far as known."""
        print(microseconds, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


def report(folder, address, topic, group, pipe):
    """Consume for ever, and report each time that messages have become durable."""
    service = Service(folder)
    service.start()
    consumer = Consumer(service, bootstrap=address, topics=[topic], group=group, config=CONFIG)
    consumer.start()
    before = 0
    while True:
        if (n_messages := consumer.status()["messages"]) > before:
            os.write(pipe, b"." * (n_messages - before))
            before = n_messages
        time.sleep(0.0005)


def serve(folder, address, topic):
    """Fork a consumer for each line, and kill it."""
    for number, line in enumerate(sys.stdin):
        # A group of its own: in that of a killed member it would wait for the session timeout.
        work = partial(report, folder, address, topic, f"{topic}-victim-{number}")
        delay = int(line)
        print(len(kill_while_it_works(work, abs(delay), after_first=delay < 0)), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
