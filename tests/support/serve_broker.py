"""A Kafka broker for tests: the mock cluster of librdkafka, over TCP, in its own process.

confluent-kafka ships librdkafka, which contains a small cluster for its own tests. It keeps
messages in memory (at most 5 MiB or 100,000 messages per partition; then it deletes the oldest),
knows groups and rebalances, and can close its ports and open them again. A rebalance takes a second
less than the session timeout of the members. It has no SASL, TLS or ACLs.

``python serve_broker.py`` reads commands, one per line, and answers each with a line.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = "missing"
PRODUCER = 0  # rd_kafka_type_t; the cluster needs a handle of any type


class Cluster:
    """The functions of librdkafka that control a mock cluster."""

    def __init__(self, n_brokers):
        import confluent_kafka.cimpl  # loads librdkafka with the libraries that it needs

        folder = Path(confluent_kafka.__file__).parent
        (path,) = folder.with_name("confluent_kafka.libs").glob("librdkafka-*")
        self._library = ctypes.CDLL(str(path))
        for name in ("conf_new", "new", "mock_cluster_new"):
            getattr(self._library, f"rd_kafka_{name}").restype = ctypes.c_void_p
        self._library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        conf = ctypes.c_void_p(self._call("conf_new"))
        error = ctypes.create_string_buffer(512)
        size = ctypes.c_size_t(512)
        self._handle = ctypes.c_void_p(self._call("new", PRODUCER, conf, error, size))
        self._cluster = ctypes.c_void_p(self._call("mock_cluster_new", self._handle, n_brokers))
        if not self._handle or not self._cluster:
            raise RuntimeError(f"librdkafka made no mock cluster: {error.value.decode()}")
        self._brokers = range(1, n_brokers + 1)
        # A first member need not wait for others: tests start many consumers.
        self._call("mock_group_initial_rebalance_delay_ms", self._cluster, 0)

    def _call(self, name, *arguments):
        return getattr(self._library, f"rd_kafka_{name}")(*arguments)

    def address(self):
        """Return the addresses of the brokers."""
        return self._call("mock_cluster_bootstraps", self._cluster).decode()

    def topic(self, name, n_partitions):
        """Make a topic."""
        partitions = int(n_partitions)
        return self._call("mock_topic_create", self._cluster, name.encode(), partitions, 1)

    def remake(self, name, n_partitions):
        """Delete a topic, and make it again."""
        self._call("mock_topic_delete", self._cluster, name.encode())
        return self.topic(name, n_partitions)

    def forget(self, name, partition, before):
        """Delete the messages of a partition below an offset, as a broker does with old ones."""
        at = ctypes.c_int32(int(partition)), ctypes.c_int64(int(before))
        return self._call("mock_partition_delete_records", self._cluster, name.encode(), *at)

    def down(self):
        """Close all ports and connections; the messages stay."""
        return sum(self._call("mock_broker_set_down", self._cluster, i) for i in self._brokers)

    def up(self):
        """Open the ports again."""
        return sum(self._call("mock_broker_set_up", self._cluster, i) for i in self._brokers)


class Broker:
    """A mock cluster in another process, so that a test may kill all others.

    Examples
    --------
    >>> with Broker() as broker:
    ...     broker.topic("edges", 2)
    ...     broker.address.startswith("127.0.0.1:")
    True
    """

    def __init__(self, n_brokers=1):
        command = [sys.executable, __file__, str(n_brokers)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, **pipes, text=True, bufsize=1)
        self.address = self._ask("address")  # librdkafka writes a warning or many to stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=30)  # the end of its input ends it

    def _ask(self, *words):
        print(*words, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def _do(self, *words):
        answer = self._ask(*words)
        if answer == MISSING:
            pytest.skip(f"the mock cluster of confluent-kafka < 2.15 cannot {words[0]}")
        if answer != "0":
            raise RuntimeError(f"the mock broker answered {answer!r} to {words}")

    def topic(self, name, n_partitions):
        """Make a topic."""
        self._do("topic", name, n_partitions)

    def remake(self, name, n_partitions):
        """Delete a topic, and make it again."""
        self._do("remake", name, n_partitions)

    def forget(self, name, partition, before):
        """Delete the messages of a partition below an offset."""
        self._do("forget", name, partition, before)

    def down(self):
        """Close all ports and connections; the messages stay."""
        self._do("down")

    def up(self):
        """Open the ports again."""
        self._do("up")


def serve(n_brokers):
    """Obey commands until there are no more."""
    cluster = Cluster(n_brokers)
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            answer = getattr(cluster, name)(*arguments)
        except AttributeError:  # librdkafka has no such function
            answer = MISSING
        print(answer, flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
