"""What clients may not do: send too much, send it too slowly, or hold on to connections."""

import gzip
import http.client
import socket
import ssl
import threading
import time
import tracemalloc
import zlib
from concurrent.futures import Future
from dataclasses import replace

import pytest

pytest.importorskip("starlette")

from serve_http import (
    CSV,
    JSON,
    REQUESTS,
    StandIn,
    make_certificate,
    read_all,
    receive,
    serve,
    wait_for,
)

from ohmlearn.serve.database import Receipt
from ohmlearn.serve.http_limits import Limits, make_protocol, raise_file_limit
from ohmlearn.serve.http_requests import gunzip, parse_json
from ohmlearn.serve.http_table import PAGE
from ohmlearn.serve.serve_errors import Refused

HEAD = b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
ROWS = b"u,v\n" + b"a,b\n" * 50
QUICK = Limits(
    head_seconds=0.3, body_seconds=0.3, write_seconds=0.5, keep_alive_seconds=1, stop_seconds=0.2
)


@pytest.fixture(scope="module")
def small():
    """A server with small limits."""
    limits = Limits(body=1000, json_body=500, rows=20, id_bytes=10, all_bodies=2500, head=2000)
    service = StandIn()
    with serve(service, limits=limits) as client:
        client.service = service
        yield client


@pytest.fixture(scope="module")
def quick():
    with serve(StandIn(), limits=QUICK) as client:
        yield client


def test_every_answer_has_headers_against_misuse(small):
    for method, path, headers, body in [*REQUESTS, ("GET", "/none", {}, None)]:
        found = small.ask(method, path, body, headers).headers
        assert found["content-security-policy"].startswith("default-src 'self'; ")
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in found
        assert "server" not in found
        page = path in PAGE
        assert found["cache-control"] == ("no-cache" if page else "no-store")


def test_large_bodies_are_refused(small):
    n_batches = len(small.service.batches)
    too_large = [
        small.ask("POST", "/v1/edges", b"u,v\n" + b"a,b\n" * 250, CSV),  # its length is declared
        small.ask("POST", "/v1/edges", iter([b"u,v\n", *[b"a,b\n" * 50] * 6]), CSV),  # it is not
        small.ask("POST", "/v1/labels:lookup", b'{"nodes": [%s"a"]}' % (b'"a", ' * 100), JSON),
    ]
    for answer in too_large:
        assert answer.status == 413
        assert "bytes; send it in parts" in answer.message
    answer = small.ask("POST", "/v1/edges", ROWS, CSV)
    assert answer.status == 400
    assert "the body has more than 20 rows" in answer.message
    answer = small.post_csv("/v1/edges", "u,v\n" + "a" * 11 + ",b\n")
    assert (answer.status, answer.json["error"]["row"]) == (400, 2)
    assert len(small.service.batches) == n_batches


def test_a_client_that_sends_on_reads_the_refusal(small):
    """The connection is not reset while the client sends what was refused."""
    body = b"u,v\n" + b"a,b\n" * (1 << 20)
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=30)
    connection.request("POST", "/v1/edges", body, CSV)
    answer = connection.getresponse()
    assert (answer.status, answer.read()[:20]) == (413, b'{"error":{"status":4')
    connection.request("GET", "/healthz")  # and the connection can be used again
    assert connection.getresponse().status == 200
    connection.close()


def test_compressed_bodies(small):
    packed = {**CSV, "Content-Encoding": "gzip"}
    answer = small.ask("POST", "/v1/edges", gzip.compress(b"u,v\na,b\n"), packed)
    assert answer.json["n_edges"] == 1
    bomb = gzip.compress(b"u,v\n" + bytes(5000))
    assert len(bomb) < 100
    answer = small.ask("POST", "/v1/edges", bomb, packed)
    assert (answer.status, answer.message[:36]) == (413, "the body is larger than 1,000 bytes ")
    answer = small.ask("POST", "/v1/edges", b"u,v\na,b\n", packed)
    assert (answer.status, answer.message) == (400, "the body is not valid gzip data")
    assert small.ask("POST", "/v1/edges", bomb[:-9], packed).status == 413
    nodes = gzip.compress(b'{"nodes": []}')
    assert small.ask("POST", "/v1/labels:lookup", nodes, {**JSON, **packed, **JSON}).status == 200
    for encoding in ("br", "deflate", "gzip, gzip", "zstd"):
        answer = small.ask("POST", "/v1/edges", b"u,v\n", CSV | {"Content-Encoding": encoding})
        assert answer.status == 415
    answer = small.ask("POST", "/v1/edges", b"u,v\n", CSV | {"Content-Encoding": "\x7f"})
    assert answer.status == 400  # such a letter is not allowed in a head


def test_bombs_take_no_memory():
    """Neither a large one, nor one that is packed twice, nor very many small ones."""
    bomb = gzip.compress(bytes(50 << 20), 1)
    members = gzip.compress(b"") * 50_000
    tracemalloc.start()
    try:
        for body in (bomb, gzip.compress(bomb), members):
            with pytest.raises(Refused, match="larger than"):
                gunzip(body, 100_000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1, 100, 16 << 10, 100_000])
def test_gunzip_is_the_inverse(size):
    content = bytes(i * i % 251 for i in range(size))
    assert gunzip(gzip.compress(content), size) == content
    assert gunzip(gzip.compress(content) * 3, 3 * size) == content * 3
    if size > 0:
        with pytest.raises(Refused, match="larger than"):
            gunzip(gzip.compress(content), size - 1)
        with pytest.raises(Refused, match=r"ends before|not valid"):
            gunzip(gzip.compress(content)[:-1], size)
    for body in (b"", gzip.compress(content)[:5], gzip.compress(content) + b"x"):
        with pytest.raises(Refused, match="ends before its gzip data does"):
            gunzip(body, size)
    with pytest.raises(Refused, match="not valid gzip"):
        gunzip(zlib.compress(content), size)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Expecting value, line 1, column 1"),
        (b'{"nodes": [1,]}', "line 1"),
        (b"\xff", "is not UTF-8: byte 1 is wrong"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b'{"nodes": [NaN]}', "NaN is not a number of JSON"),
        (b'{"nodes": [-Infinity]}', "-Infinity is not a number"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"nodes": [' + b"9" * 5000 + b"]}", "a number is too long"),
        (b'{"nodes": [], "nodes": []}', "'nodes' is given twice"),
        (b'{"x": {"' + b"k" * 100 + b'": 1, "' + b"k" * 100 + b'": 2}}', "'... is given twice"),
    ],
)
def test_json_that_is_refused(body, message):
    with pytest.raises(Refused) as caught:
        parse_json(body)
    assert caught.value.status == 400
    assert message in str(caught.value)


def test_all_bodies_together_are_limited(small):
    """Clients that keep the server waiting in the middle of bodies are told to come back."""
    with small.connect() as one, small.connect() as two, small.connect() as three:
        for raw in (one, two, three):
            raw.sendall(HEAD + b"Content-Length: 1000\r\n\r\nu,v\n" + b"a,b\n" * 225)
        # Two of them fit; the last one to arrive does not.
        raws = {raw.fileno(): raw for raw in (one, two, three)}
        refused = None
        end = time.monotonic() + 30
        while refused is None and time.monotonic() < end:
            for raw in raws.values():
                raw.settimeout(0.05)
                try:
                    refused = (raw, raw.recv(1 << 16))
                    break
                except TimeoutError:
                    continue
        assert refused is not None
        assert refused[1].startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in refused[1]
        for raw in raws.values():
            if raw is not refused[0]:
                raw.settimeout(30)
                raw.sendall(b"#" * 96)
                assert receive(raw).startswith(b"HTTP/1.1 ")
    assert small.post_csv("/v1/edges", "u,v\na,b\n").status == 200  # the memory is free again


@pytest.mark.parametrize("is_packed", [False, True])
def test_json_counts_until_it_is_stored(is_packed):
    """With its size when it is decompressed."""
    service, storing, go = StandIn(), threading.Event(), threading.Event()

    def put_labels(rows):
        storing.set()
        go.wait(30)
        return len(rows)

    service.put_labels = put_labels
    body = b'{"labels": [{"node": "a", "label": "x"}]%s}' % (b" " * 400)
    headers = JSON
    if is_packed:
        body, headers = gzip.compress(body), JSON | {"Content-Encoding": "gzip"}
    answers = []
    with serve(service, limits=Limits(json_body=500, all_json_bodies=800)) as client:

        def post():
            answers.append(client.ask("POST", "/v1/labels", body, headers).status)

        thread = threading.Thread(target=post)
        thread.start()
        assert storing.wait(30)
        second = threading.Thread(target=post)
        second.start()
        second.join(2)
        go.set()
        second.join()
        thread.join()
        assert answers == [429, 200]
        post()
        assert answers.pop() == 200


# Heads.


def test_large_heads_are_refused(small):
    assert small.get("/healthz", **{"X-A": "a" * 3000}).status == 431
    assert small.get("/healthz?" + "a" * 3000).status == 431
    many = {f"X-{i}": "1" for i in range(150)}
    assert small.get("/healthz", **many).status == 431
    start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "
    with small.connect() as raw:  # a header that never ends
        raw.sendall(start)
        for _ in range(100):
            try:
                raw.sendall(b"a" * 100)
            except OSError:
                break
            time.sleep(0.001)
        assert read_all(raw)[:13] in (b"HTTP/1.1 431 ", b"")


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
    ],
)
def test_what_is_not_http(quick, content):
    answer = quick.send_raw(content)
    # Closed without an answer, or refused in the form of all errors.
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200"))
    if answer.startswith(b"HTTP/1.1 400"):
        assert b'{"error":{"status":400,' in answer
        assert b"content-security-policy" in answer.lower()
    assert quick.get("/healthz").status == 200


def test_heads_must_come_in_time(quick):
    with quick.connect() as silent, quick.connect() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        assert read_all(slow).startswith(b"HTTP/1.1 408 ")
        assert read_all(silent) == b""
    with quick.connect() as dripping:  # a byte now and then does not help
        for letter in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: 1":
            try:
                dripping.sendall(bytes([letter]))
            except OSError:
                break
            time.sleep(0.02)
        assert read_all(dripping)[:13] in (b"HTTP/1.1 408 ", b"")
    with quick.connect() as second:  # neither does a first request that is answered
        second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert receive(second).startswith(b"HTTP/1.1 200 ")
        second.sendall(b"\r\nGET /he")
        assert read_all(second) == b""


def test_handshakes_must_come_in_time(tmp_path):
    certfile, keyfile = map(str, make_certificate(tmp_path))
    context = ssl.create_default_context(cafile=certfile)
    options = {"ssl_certfile": certfile, "ssl_keyfile": keyfile}
    with serve(StandIn(), limits=QUICK, **options) as client, client.connect() as silent:
        with context.wrap_socket(
            socket.create_connection(("127.0.0.1", client.port)), server_hostname="localhost"
        ) as packed:
            packed.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert packed.recv(100).startswith(b"HTTP/1.1 200 ")
        assert read_all(silent) == b""


def test_idle_connections_are_closed(quick):
    with quick.connect() as raw:
        raw.settimeout(4)  # less than the 5 seconds of uvicorn
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_all(raw).count(b"HTTP/1.1 200 ") == 1  # returns, so it was closed


def test_bodies_must_come_in_time(quick):
    with quick.connect() as raw:
        raw.sendall(HEAD + b"Content-Length: 100\r\n\r\nu,v\n")
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body took more than 0.3 seconds; send smaller batches" in answer
    assert b"connection: close" in answer


def test_a_client_that_does_not_read_is_cut_off():
    service = StandIn()
    n_parts, closed = 0, threading.Event()

    def export():
        nonlocal n_parts
        try:
            while n_parts < 10_000:
                n_parts += 1
                yield bytes(1 << 16)
        finally:
            closed.set()

    service.export = export
    with serve(service, limits=replace(QUICK, exports=1)) as client:
        with client.connect() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: n_parts > 0)
            busy = client.get("/v1/export")
            assert (busy.status, busy.message) == (429, "1 exports are running already")
            wait_for(closed.is_set)
        assert n_parts < 10_000
        service.export = lambda: iter([b"PAR1"])
        wait_for(lambda: client.get("/v1/export").status == 200)


# Clients that go away, and many of them.


def test_a_client_that_goes_away_leaves_nothing_behind(small):
    """Its batch has been accepted all the same, and others are answered."""
    future = small.service.future = Future()
    n_batches = len(small.service.batches)
    with small.connect() as raw:
        raw.sendall(HEAD + b"Content-Length: 8\r\n\r\nu,v\na,b\n")
        wait_for(lambda: len(small.service.batches) == n_batches + 1)
    with small.connect() as raw:
        raw.sendall(HEAD + b"Content-Length: 800\r\n\r\nu,v\na,b\n")
    assert small.get("/healthz").status == 200
    assert not future.cancelled()
    future.set_result(Receipt(1, 0, None, False, 1))
    state = small.server.server_state
    wait_for(lambda: not state.tasks and not state.connections)
    assert len(small.service.batches) == n_batches + 1


def test_many_slow_clients_do_not_keep_others_out():
    """Neither those within the limit, nor those above it: the one that waits longest makes room."""
    limits = Limits(max_connections=200)
    with serve(StandIn(), limits=limits) as client:
        raws = []
        try:
            for at in range(300):
                raw = socket.create_connection(("127.0.0.1", client.port), timeout=30)
                raws.append(raw)
                raw.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: "[: 1 + at % 30])
                if at % 50 == 0:
                    assert client.get("/healthz").status == 200
                    assert client.post_csv("/v1/edges", "u,v\na,b\n").status == 200
            assert client.get("/v1/status").status == 200
            wait_for(lambda: len(client.server.server_state.connections) <= 200)
            assert read_all(raws[0]) == b""  # this one had to go
            raws[-1].sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: "[1 + 299 % 30 :])
            raws[-1].sendall(b"1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert read_all(raws[-1]).startswith(b"HTTP/1.1 200 ")
        finally:
            for raw in raws:
                raw.close()


def test_too_many_busy_connections_are_refused():
    service = StandIn()
    with serve(service, limits=Limits(max_connections=2)) as client:
        futures, raws = [], []
        for at in range(2):
            futures.append(Future())
            service.future = futures[-1]
            raws.append(socket.create_connection(("127.0.0.1", client.port), timeout=30))
            raws[-1].sendall(HEAD + b"Content-Length: 8\r\n\r\nu,v\na,b\n")
            wait_for(lambda at=at: len(service.batches) == at + 1)
        with client.connect() as third:
            answer = read_all(third)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b'"message":"too many connections"' in answer
        for future, raw in zip(futures, raws, strict=True):
            future.set_result(Receipt(1, 0, None, False, 1))
            assert receive(raw).startswith(b"HTTP/1.1 200 ")
            raw.close()


def test_event_clients_are_limited():
    with serve(StandIn(), limits=Limits(event_clients=2)) as client:
        ask = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with client.connect() as one, client.connect() as two:
            for raw in (one, two):
                raw.sendall(ask)
                assert raw.recv(100).startswith(b"HTTP/1.1 200 ")
            answer = client.get("/v1/events")
            assert (answer.status, answer.headers["retry-after"]) == (503, "10")
        wait_for(lambda: client.get("/v1/events").status == 200)  # they have gone away


def test_requests_are_finished_when_the_server_stops():
    """What was accepted is answered; bodies that are being read get a moment; events end."""
    service = StandIn()
    future = service.future = Future()
    with serve(service, limits=replace(QUICK, body_seconds=60.0)) as client:
        accepted, reading, events, idle = (
            socket.create_connection(("127.0.0.1", client.port), timeout=30) for _ in range(4)
        )
        accepted.sendall(HEAD + b"Content-Length: 8\r\n\r\nu,v\na,b\n")
        wait_for(lambda: len(service.batches) == 1)
        reading.sendall(HEAD + b"Content-Length: 100\r\n\r\nu,v\n")
        events.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert events.recv(100).startswith(b"HTTP/1.1 200 ")
        client.server.should_exit = True
        assert b"HTTP/1.1 503 " in read_all(reading)
        assert read_all(events).endswith(b"0\r\n\r\n")  # the proper end of a stream
        assert read_all(idle) == b""
        future.set_result(Receipt(1, 0, None, False, 1))
        assert read_all(accepted).startswith(b"HTTP/1.1 200 ")
        for raw in (accepted, reading, events, idle):
            raw.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", client.port), timeout=5)


def test_expected_bodies(small):
    """A client that waits for 100 Continue gets it, or the refusal and the end."""
    expect = HEAD + b"Expect: 100-continue\r\nContent-Length: "
    with small.connect() as raw:
        raw.sendall(expect + b"8\r\n\r\n")
        assert raw.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(b"u,v\na,b\n")
        assert receive(raw).startswith(b"HTTP/1.1 200 ")
    answer = small.send_raw(expect + b"8000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


def test_an_offer_of_another_protocol_is_ignored(small):
    """Clients of Java offer HTTP/2 with every request; its body must not get lost."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
    body = b"Content-Length: 8\r\n\r\nu,v\na,b\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n4\r\nu,v\n\r\n4\r\na,b\n\r\n0\r\n\r\n"
    with small.connect() as raw:
        for content in (HEAD + offer + body, HEAD + offer + chunked, HEAD + body):
            raw.sendall(content)
            assert b'"n_edges":1' in receive(raw)
        for part in (HEAD, offer, body[:22], body[22:24], body[24:]):
            raw.sendall(part)
            time.sleep(0.01)
        assert b'"n_edges":1' in receive(raw)
    offer = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + offer + b"\r\n"
    assert small.send_raw(get).startswith(b"HTTP/1.1 200 ")
    assert small.send_raw(get * 3000).count(b"HTTP/1.1 200 ") <= 1


def test_pipelined_requests_are_answered_in_turn(small):
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /v1/map HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = small.send_raw(one * 3 + last)
    assert answer.count(b"HTTP/1.1 200 ") == 4
    assert answer.endswith(b'{"version":1,"nodes":[],"links":[]}')


def test_file_limit():
    assert 16 <= raise_file_limit(12_000) <= 12_000
    assert raise_file_limit(50) == 50


def test_servers_do_not_share_connections():
    one, two = make_protocol(Limits()), make_protocol(Limits())
    assert one.idle is not two.idle
