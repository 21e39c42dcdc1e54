"""The client, with a real server and with one that fails in every way."""

import datetime
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from serve_cases import serving
from serve_http import READ, WRITE, serve, wait_for

from ohmlearn import client as client_module
from ohmlearn.client import Client, ServerError
from ohmlearn.serve.http_auth import Tokens


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path / "folder", every_seconds=0.05) as service:
        yield service


@pytest.fixture
def client(service):
    with serve(service) as server, Client(f"http://127.0.0.1:{server.port}") as client:
        yield client


@pytest.fixture
def no_pause(monkeypatch):
    """Pauses are noted, and not made."""
    pauses = []
    stand_in = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(client_module, "time", stand_in)
    return pauses


@pytest.fixture(params=["arrow", "json"])
def form(request, monkeypatch):
    if request.param == "json":
        monkeypatch.setattr(client_module, "find_spec", lambda name: None)
    return request.param


def live_edges(service):
    return sorted(zip(*(x.tolist() for x in edges_of(service)), strict=True))


def edges_of(service):
    batch = next(iter(service._log))
    ids = np.asarray(service._log.nodes.ids())
    return ids[batch.u], ids[batch.v], batch.w, batch.t


# With a real server.


def test_all_of_it(client, tmp_path):
    """Two groups of nodes, with a label each; all methods in the order of the guide."""
    u = ["ann", "bob", "ann", "dan", "eve", "dan"]
    v = ["bob", "cy", "cy", "eve", "fay", "fay"]
    receipt = client.send(u, v, [1.0] * 6)
    assert receipt["n_edges"] == 6
    assert not receipt["repeated"]
    assert client.put_labels({"ann": "good", "dan": "bad"}, {"ann": 2.0}) == 2
    answers = client.wait_until(receipt["operation"])
    assert answers["watermark"]["edges"] == 6
    client.wait_until()
    assert client.label("bob")["label"] == "good"
    assert [row["label"] for row in client.labels(["cy", "fay", "nobody"])] == ["good", "bad", None]
    changes = client.changes()
    assert {row["node"] for row in changes["changes"]} >= {"bob", "cy", "eve", "fay"}
    assert client.changes(changes["next"])["changes"] == []
    assert isinstance(client.suggest(2), list)
    assert client.status()["edges"] == 6
    assert client.remove(["cy", "zoe"], ["bob", "ann"])["n_removed"] == 1
    assert client.status()["edges"] == 5
    import pyarrow.parquet

    client.export(tmp_path / "labels.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "labels.parquet").to_pylist()
    assert {row["node"]: row["label"] for row in table}["fay"] == "bad"
    assert [path.name for path in tmp_path.glob("labels*")] == ["labels.parquet"]
    assert client.delete_labels(["ann", "bob"]) == 1


@pytest.mark.parametrize("kind", ["list", "array", "iterator", "pandas"])
def test_columns_of_any_kind(service, client, form, kind):
    u, v, w, t = [1, 2, 3], [2, 3, 5], [1.0, 0.5, 2.0], [1.6e9, 1.6e9 + 1, 1.6e9 + 2]
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        u, v, w, t = (pandas.Series(x) for x in (u, v, w, t))
    elif kind != "list":
        u, v, w, t = (np.array(x) if kind == "array" else iter(x) for x in (u, v, w, t))
    client.send(u, v, w, t)
    expected = [(1, 2, 1.0, 1.6e9), (2, 3, 0.5, 1.6e9 + 1), (3, 5, 2.0, 1.6e9 + 2)]
    assert live_edges(service) == expected


@pytest.mark.parametrize("unit", ["datetime", "ns", "s"])
def test_dates(service, client, form, unit):
    moment = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    t = [moment, moment + datetime.timedelta(seconds=1)]
    if unit != "datetime":
        t = np.array([x.replace(tzinfo=None) for x in t], dtype=f"datetime64[{unit}]")
    client.send(["a", "b"], ["b", "c"], t=t)
    assert edges_of(service)[3].tolist() == [moment.timestamp(), moment.timestamp() + 1]


def test_many_edges_are_split_and_count_once(service, form):
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (2, 1001))
    with (
        serve(service) as server,
        Client(f"http://127.0.0.1:{server.port}", batch_edges=100) as client,
    ):
        assert client.send(u, v, batch_id="monday")["n_edges"] == 1001
        assert service.metrics()["batches_total"][0] == 11
        again = client.send(u, v, batch_id="monday")
        assert again["repeated"]
        assert client.send(u[:100], v[:100], batch_id="tuesday")["n_edges"] == 100
        assert client.send([], [])["n_edges"] == 0
        assert client.status()["edges"] == 1101


def test_many_nodes_are_split(client, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_NODES", 7)
    client.send(range(50), range(1, 51))
    assert client.put_labels(dict.fromkeys(range(20), "x")) == 20
    assert [row["node"] for row in client.labels(np.arange(30))] == list(range(30))
    assert client.delete_labels(range(30)) == 20


def test_errors_name_the_row(client):
    with pytest.raises(ServerError, match="row 2: weight") as caught:
        client.send(["a", "b"], ["b", "c"], [1.0, -1.0])
    assert (caught.value.status, caught.value.row) == (400, 2)
    assert "weight" in caught.value.message
    with pytest.raises(ServerError, match="404: node 'nobody' is not known"):
        client.label("nobody")
    with pytest.raises(ServerError) as caught:
        client.changes(-1)
    assert (caught.value.parameter, caught.value.value) == ("since", "-1")
    assert client.send(["a/b?#", "ü %2F"], ["b", "c"])["n_edges"] == 2  # the connection is usable
    assert client.label("a/b?#")["node"] == "a/b?#"
    assert client.label("ü %2F")["node"] == "ü %2F"


def test_tokens(service):
    with serve(service, tokens=Tokens({READ: "read", WRITE: "write"})) as server:
        url = f"http://127.0.0.1:{server.port}"
        for token, status in ((None, 401), ("wrong-token-012345", 401), (READ, 403)):
            with Client(url, token) as client, pytest.raises(ServerError) as caught:
                client.send([1], [2])
            assert caught.value.status == status
            assert str(token) not in repr(client) + str(caught.value)
        with Client(url, WRITE) as client:
            assert client.send([1], [2])["n_edges"] == 1
        with Client(url + "/", READ) as client:
            assert client.status()["edges"] == 1


def test_threads_share_a_client(service, client):
    def send(first):
        for at in range(first, first + 10):
            client.send([at], [at + 1])

    threads = [threading.Thread(target=send, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.status()["edges"] == 40


@pytest.mark.slow
def test_the_server_starts_again(tmp_path):
    """A client sends on while servers come and go; each edge counts once."""
    n_sent, stop = 0, threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def keep_sending(client):
        nonlocal n_sent
        while not stop.is_set():
            client.send([n_sent], [n_sent + 1])
            n_sent += 1

    with Client(f"http://127.0.0.1:{port}", retries=20) as client:
        thread = threading.Thread(target=keep_sending, args=(client,))
        thread.start()
        for round_ in range(3):
            with serving(tmp_path) as service, serve(service, port=port):
                seen = n_sent
                wait_for(lambda seen=seen: n_sent > seen + 5)
                if round_ == 2:
                    stop.set()
                    thread.join()
    with serving(tmp_path) as service:
        assert service.status()["edges"] == n_sent


# With a server that fails.


class Script(http.server.BaseHTTPRequestHandler):
    """Does what the server's list of steps says, one for each request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.requests.append((self.headers["Idempotency-Key"], body))
        step = self.server.steps.pop(0)
        if step == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if step == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            self.close_connection = True
            return
        status, headers, content = step
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_):
        pass


TAKEN = (200, {}, b'{"n_edges": 1, "n_bad": 0, "repeated": false, "operation": 5}')


@contextmanager
def scripted(*steps, **options):
    """Yield a server that follows steps, and a client of it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
    server.steps, server.requests = list(steps), []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", **options) as client:
            yield server, client
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "failure",
    ["drop", "cut"] + [(status, {}, b"<html>") for status in (429, 502, 503, 504)],
    ids=str,
)
def test_failures_are_repeated_with_the_same_id(failure, no_pause):
    with scripted(failure, failure, TAKEN) as (server, client):
        assert client.send([1], [2])["operation"] == 5
    assert len(server.requests) == 3
    assert len(set(server.requests)) == 1
    assert server.requests[0][0]
    assert 0.1 <= no_pause[0] <= 0.15
    assert 0.2 <= no_pause[1] <= 0.3


def test_retry_after_is_honoured(no_pause):
    busy = (429, {"Retry-After": "3"}, b'{"error": {"status": 429, "message": "busy"}}')
    with scripted(busy, (429, {"Retry-After": "999"}, b""), TAKEN) as (_, client):
        client.send([1], [2])
    assert 3.0 <= no_pause[0] <= 4.5
    assert 30.0 <= no_pause[1] <= 45.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 500])
def test_other_errors_are_not_repeated(status, no_pause):
    with scripted((status, {}, b"[1]"), TAKEN) as (server, client):
        with pytest.raises(ServerError, match=f"^{status}: "):
            client.send([1], [2])
        assert client.send([1], [2])["n_edges"] == 1
    assert no_pause == []
    assert len({key for key, _ in server.requests}) == 2


def test_the_last_failure_is_raised(no_pause):
    with scripted(*["drop"] * 3, retries=2) as (_, client), pytest.raises(ConnectionError):
        client.status()
    with scripted(*[(503, {}, b"")] * 3, retries=2) as (_, client), pytest.raises(ServerError):
        client.status()
    assert len(no_pause) == 4


def test_cut_off_export_leaves_no_file(tmp_path, no_pause):
    with scripted("cut", "cut", retries=1) as (_, client), pytest.raises(Exception, match="Incomp"):
        client.export(tmp_path / "labels.parquet")
    assert list(tmp_path.iterdir()) == []


def test_refusal_before_the_body_is_read(no_pause):
    """The connection is closed while the body is still being sent."""
    answer = b'{"error": {"status": 413, "message": "too large"}}'

    def refuse(listener):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            head = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(answer) + answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, args=(listener,))
        thread.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with client, pytest.raises(ServerError, match="413: too large"):
            client.send(np.arange(100_000), np.arange(100_000))
        thread.join()


def test_wait_until_gives_up(no_pause):
    status = (200, {}, b'{"answers": {"watermark": {"operation": 3, "labels_version": 0}}}')
    with scripted(status, status) as (_, client):
        with pytest.raises(TimeoutError, match="operation 3, not yet 4"):
            client.wait_until(4, timeout=0.01)
        assert client.wait_until(3)["watermark"]["operation"] == 3


# Arguments.


def test_wrong_columns():
    client = Client("http://127.0.0.1:1", retries=0)
    with pytest.raises(ValueError, match=r"the same length, got \{'u': 2, 'v': 1\}"):
        client.send([1, 2], [3])
    with pytest.raises(TypeError, match="u must be a list or an array, got str"):
        client.send("ann", ["bob"])
    with pytest.raises(ValueError, match="batch_edges = 0"):
        Client("http://127.0.0.1:1", batch_edges=0)
    for address in ("127.0.0.1:8377", "ftp://host", "http://"):
        with pytest.raises(ValueError, match="must be http://HOST:PORT"):
            Client(address)


def test_values_that_json_does_not_know(monkeypatch):
    monkeypatch.setattr(client_module, "find_spec", lambda name: None)
    client = Client("http://127.0.0.1:1", retries=0)
    with pytest.raises(TypeError, match="cannot be sent"):
        client.send([object()], [2])
    kind, body = client_module._encode({"u": [np.int64(3)], "v": ["x"]})
    assert (kind, json.loads(body)) == ("application/x-ndjson", {"u": 3, "v": "x"})


def test_import_needs_the_standard_library_alone():
    """Neither numpy nor pyarrow is loaded; and a missing pyarrow is no error."""
    code = (
        "import sys, ohmlearn.client as c; "
        "print([name for name in ('numpy', 'scipy', 'pyarrow', 'httpx') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_example_of_the_guide_waits_for_changes(monkeypatch):
    """Also if there are more, but none can be had yet."""
    guide = Path(__file__).parents[2] / "docs/guides/live.md"
    if not guide.exists():
        pytest.skip("there is no documentation here")
    (example,) = (
        part.partition("```")[0]
        for part in guide.read_text(encoding="utf-8").split("```python\n")[1:]
        if "client.changes(" in part.partition("```")[0]
    )
    asked, pauses, exports = [], [], []
    change = {"node": 1, "before": None, "after": "x"}
    pages = iter([([change], 1, False), ([], 1, False), None, ([], 1, True)])

    def changes(self, since=0):
        asked.append(since)
        page = next(pages)
        if page is None:
            raise ServerError(410, "start over")
        found, following, complete = page
        return {"changes": found, "next": following, "complete": complete}

    monkeypatch.setattr(Client, "changes", changes)
    monkeypatch.setattr(Client, "export", lambda self, path: exports.append(len(asked)))
    monkeypatch.setattr(Client, "status", lambda self: {"answers": {"changes_next": 0}})
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(len(asked)))
    with pytest.raises(StopIteration):
        exec(example, {})
    assert asked == [0, 1, 1, 0, 1]
    assert pauses == [2, 4]
    assert exports == [0, 3]  # the second one after the changes were gone
