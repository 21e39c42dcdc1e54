"""A server in a thread, a client that reads every answer, and a service that does nothing.

The stand-in is for tests of HTTP alone: who is let in, which bodies are refused. What requests mean
is tested with the real service.
"""

import http.client
import json
import shutil
import socket
import subprocess
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from serve_cases import wait_for

from ohmlearn.serve.database import Receipt
from ohmlearn.serve.http_limits import Limits
from ohmlearn.serve.http_runner import listen, make_server

READ, WRITE = "read-token-0123456789", "write-token-0123456789"
ENVELOPE = {"version": 1, "watermark": {"edges": 0, "operation": 0, "time": None}}
# A valid request for each endpoint: method, path, headers, body.
JSON = {"Content-Type": "application/json"}
CSV = {"Content-Type": "text/csv"}
REQUESTS = [
    ("GET", "/", {}, None),
    ("GET", "/page/page.js", {}, None),
    ("GET", "/healthz", {}, None),
    ("GET", "/readyz", {}, None),
    ("GET", "/metrics", {}, None),
    ("GET", "/v1/openapi.json", {}, None),
    ("POST", "/v1/edges", CSV, b"u,v\na,b\nb,c\n"),
    ("POST", "/v1/removals", CSV, b"u,v\na,b\n"),
    ("GET", "/v1/labels", {}, None),
    ("POST", "/v1/labels", JSON, b'{"labels": [{"node": "a", "label": "x"}]}'),
    ("DELETE", "/v1/labels", JSON, b'{"nodes": ["a"]}'),
    ("POST", "/v1/features", JSON, b'{"features": [{"node": "a", "age": 3}]}'),
    ("POST", "/v1/labels:lookup", JSON, b'{"nodes": ["a", "b"]}'),
    ("GET", "/v1/labels/a", {}, None),
    ("GET", "/v1/labels/a/why", {}, None),
    ("DELETE", "/v1/labels/a", {}, None),
    ("GET", "/v1/changes", {}, None),
    ("GET", "/v1/review", {}, None),
    ("GET", "/v1/export", {}, None),
    ("GET", "/v1/suggest", {}, None),
    ("GET", "/v1/certificates", {}, None),
    ("GET", "/v1/status", {}, None),
    ("GET", "/v1/map", {}, None),
    ("GET", "/v1/events", {}, None),
]


class StandIn:
    """A service that takes everything and knows every node."""

    name, ready, id_kind, kafka, answers_fail = "stand-in", True, "string", None, False
    labels_version, event_id, weight = 0, None, None

    def __init__(self):
        self.batches, self.rows, self.deleted = [], [], []
        self.future = None  # given for the next batch, if set
        self.error = None  # raised by the next call

    def _raise(self):
        error, self.error = self.error, None
        if error is not None:
            raise error

    def submit(self, batch, *, is_removal=False, batch_id=None, offset=None, skip_bad=False):
        self._raise()
        self.batches.append((batch, batch_id))
        future, self.future = self.future, None
        if future is None:
            future = Future()
            future.set_result(Receipt(batch.u.size, batch.n_bad, batch.first_bad, False, 1))
        return future

    def put_features(self, rows):
        return len(rows)

    def put_labels(self, rows):
        self._raise()
        self.rows += rows
        return len(rows)

    def delete_labels(self, nodes):
        self.deleted += nodes
        return len(nodes)

    def given_labels(self, limit=1000, after=None):
        return {"labels": [], "next": None}

    def lookup(self, nodes):
        self._raise()
        row = {"known": True, "label": None, "given": False}
        return {**ENVELOPE, "results": [{"node": node, **row} for node in nodes]}

    def why(self, node, **how):
        return {**ENVELOPE, "node": node, "label": None, "labels": [], "text": ""}

    def changes(self, since, limit=10_000, *, reasons=False):
        self._raise()
        return {**ENVELOPE, "changes": [], "next": since, "complete": True}

    def review(self, n):
        return {**ENVELOPE, "classes": []}

    def export(self):
        self._raise()
        return iter([b"PAR1", b"PAR1"])

    def suggestions(self, k=10):
        return {**ENVELOPE, "suggestions": [], "of_version": 1}

    def status(self):
        self._raise()
        return {"name": self.name, "edges": len(self.batches), "answers": dict(ENVELOPE)}

    def certificates(self, limit=200):
        return []

    def map(self):
        return {"version": 1, "nodes": [], "links": []}

    def metrics(self):
        return {"edges_total": (len(self.batches), "Edges."), "nodes": (2, "Nodes.")}


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["error"]["message"]


class Client:
    """Sends requests to a port of this machine, each by a connection of its own unless kept."""

    def __init__(self, port, server=None):
        self.port, self.server = port, server
        self._kept = None

    def ask(self, method, path, body=None, headers=None, **more):
        """Return the whole answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            return self._exchange(connection, method, path, body, {**(headers or {}), **more})
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, None, headers)

    def post_json(self, path, content, method="POST", **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.ask(method, path, body, {**JSON, **headers})

    def post_csv(self, path, text, **headers):
        return self.ask("POST", path, text.encode(), {**CSV, **headers})

    def _exchange(self, connection, method, path, body, headers):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if found.get("content-type") == "text/event-stream":
            return Answer(answer.status, found, answer.read1())
        return Answer(answer.status, found, answer.read())

    @contextmanager
    def connect(self):
        """Yield a socket, for what no client would send."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as raw:
            yield raw

    def send_raw(self, content):
        """Return all bytes that come back before the connection is closed."""
        with self.connect() as raw:
            raw.sendall(content)
            return read_all(raw)


def receive(raw):
    """Return one answer in JSON, which may come in parts."""
    answer = b""
    while not answer.endswith(b"}"):
        part = raw.recv(1 << 16)
        assert part, answer
        answer += part
    return answer


def read_all(raw):
    """Return what comes until the other side closes the connection."""
    parts = []
    while True:
        try:
            part = raw.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


@contextmanager
def serve(service, *, port=0, limits=None, **options):
    """Serve a service in a thread; yield a client."""
    listener = listen("127.0.0.1", port)
    server = make_server(service, limits=limits or Limits(), **options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive())
        yield Client(listener.getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def make_certificate(folder):
    """Return the files of a certificate for localhost and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"
