"""Random requests to every endpoint: no answer is an error of the server, none names a file.

A request is a valid one that was changed in a few random ways: method, address, headers or body.
With OHMLEARN_LONG=1 there are 10,000 for each endpoint.
"""

import gzip
import http.client
import json
import os
import random
import socket
import zlib

import pytest

pytest.importorskip("starlette")

from serve_cases import serving
from serve_http import REQUESTS, serve

from ohmlearn.serve.http_limits import Limits
from ohmlearn.serve.http_table import PAGE

N_REQUESTS = 10_000 if os.environ.get("OHMLEARN_LONG") else 60
IDS = [f"{method} {path}" for method, path, *_ in REQUESTS]
DELIBERATE = {503, 507}  # of errors of the server
LEAKS = [b"Traceback", b"site-packages", b".py", b"ohmlearn.serve", b"sqlite3", b"object at 0x"]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"]
WORDS = [
    "", "0", "-1", "1", "a", "NaN", "null", "true", "1e999", "9" * 30, "é", "\ud800", "\x00", "\n",
    "../..", "/etc/passwd", "%s%n", "<script>", "' OR 1=1 --", "a" * 300, "𝔘", "\u202e", "ünï",
    "2024-01-01", "u,v",
]  # fmt: skip
QUERY = ["batch_id", "on_bad", "limit", "after", "since", "k", "x", "batch_id[]", "", "%00", "é"]
KINDS = [
    "application/json", "text/csv", "application/x-ndjson", "application/vnd.apache.arrow.stream",
    "text/csv; charset=latin-1", "multipart/form-data; boundary=x", "text/plain", "*/*", "/", "é",
]  # fmt: skip
HEADERS = [
    "Content-Encoding", "Idempotency-Key", "Accept", "Accept-Encoding", "Range", "If-None-Match",
    "Cookie", "Authorization", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "X-Forwarded-Host",
    "Expect", "Upgrade", "Connection", "Forwarded", "Last-Event-ID", "Transfer-Encoding", "Te",
    "Content-Type", "Host",
]  # fmt: skip
ENCODINGS = ["gzip", "x-gzip", "deflate", "br", "identity", "gzip, gzip"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secret-place") / "service"
    # What is broken may look like a request whose rest is still to come.
    limits = Limits(head_seconds=0.5, body_seconds=0.5)
    with serving(folder, every_seconds=0.5) as service, serve(service, limits=limits) as client:
        client.post_csv("/v1/edges", "u,v\na,b\nb,c\nc,d\n")
        client.post_json("/v1/labels", {"labels": [{"node": "a", "label": "x"}]})
        client.leaks = [*LEAKS, b"secret-place", str(folder).encode()]
        yield client


@pytest.mark.parametrize("request_", REQUESTS, ids=IDS)
def test_random_requests(served, request_):
    rng = random.Random(" ".join(request_[:2]))
    with Wire(served.port) as wire:
        for _ in range(N_REQUESTS):
            content, is_strange = change(rng, *request_)
            answer = wire.exchange(content)
            if is_strange:
                wire.close()  # what follows could be taken for its rest
            if answer is None:  # closed without an answer
                assert is_strange, content
                continue
            status, headers, body = answer
            assert status < 500 or status in DELIBERATE, (content, body)
            everything = repr(headers).encode() + (b"" if request_[1] in PAGE else body)
            assert not [leak for leak in served.leaks if leak in everything], (content, body)
            if status >= 400 and body:
                about = json.loads(body)["error"]
                assert about["status"] == status
                assert about["message"]
                assert headers["x-content-type-options"] == "nosniff"
    assert served.get("/healthz").status == 200
    assert served.get("/v1/status").json["nodes"] >= 4


class Wire:
    """A connection that is kept as long as the server does."""

    def __init__(self, port):
        self._port, self._socket = port, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, content):
        """Send bytes; return status, headers and body, or None if the server hangs up."""
        for is_new in (False, True):  # a kept connection may have been closed meanwhile
            if self._socket is None or is_new:
                self.close()
                self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
            answer = self._try(content)
            if answer is not None:
                return answer
        self.close()
        return None

    def _try(self, content):
        method = content.split(b" ", 1)[0].decode("latin-1")
        try:
            self._socket.sendall(content)
            answer = http.client.HTTPResponse(self._socket, method=method)
            answer.begin()
        except (OSError, http.client.HTTPException):
            return None
        with answer:
            headers = {name.lower(): value for name, value in answer.getheaders()}
            if headers.get("content-type") == "text/event-stream" and method != "HEAD":
                found = answer.status, headers, answer.read1()
                self.close()
                return found
            found = answer.status, headers, answer.read()
            if answer.will_close:
                self.close()
            return found


def change(rng, method, path, headers, body):
    """Return the bytes of a changed request, and whether HTTP itself is broken."""
    headers = {"Host": "localhost", **headers}
    body = body or b""
    is_strange = False
    if rng.random() < 0.15:
        method = rng.choice(METHODS)
        is_strange |= method == "get"
    if rng.random() < 0.3:
        path = change_path(rng, path)
    if rng.random() < 0.5:
        parts = [
            f"{rng.choice(QUERY)}={quote(rng, rng.choice(WORDS))}" for _ in range(rng.randint(1, 3))
        ]
        path += "?" + "&".join(parts)
    if rng.random() < 0.3:
        headers["Content-Type"] = rng.choice(KINDS)
    if rng.random() < 0.8:
        body = change_body(rng, body)
    if rng.random() < 0.2:
        headers["Content-Encoding"] = rng.choice(ENCODINGS)
        packed = {"gzip": gzip.compress, "deflate": zlib.compress}
        if rng.random() < 0.7:
            body = packed.get(headers["Content-Encoding"], bytes)(body)
    for _ in range(rng.choice([0, 0, 1, 2])):
        name = rng.choice(HEADERS)
        headers[name] = rng.choice([*WORDS, *ENCODINGS, *KINDS, "close", "chunked", "h2c"])
        # What changes the framing or names of hosts may end the connection.
        is_strange |= name in ("Transfer-Encoding", "Connection", "Upgrade", "Expect", "Te")
    lines = [f"{method} {path} HTTP/1.1".encode("utf-8", "surrogatepass")]
    for name, value in headers.items():
        lines.append(f"{name}: {value}".encode("utf-8", "surrogatepass"))
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(b"Content-Length: %d" % len(body))
    if any(b"\n" in line or b"\0" in line for line in lines) or not path.isascii():
        is_strange = True
    content = b"\r\n".join([*lines, b"", b""]) + body
    if rng.random() < 0.02:
        is_strange, content = True, flip(rng, content) + b"\r\n\r\n"
    return content, is_strange


def quote(rng, text):
    return "".join(
        f"%{byte:02X}" if rng.random() < 0.7 or not 48 <= byte <= 122 else chr(byte)
        for byte in text.encode("utf-8", "surrogatepass")
    )


def change_path(rng, path):
    ways = [
        lambda: path + "/",
        lambda: path.upper(),
        lambda: path + "/" + quote(rng, rng.choice(WORDS)),
        lambda: path.rsplit("/", 1)[0] + "/" + quote(rng, rng.choice(WORDS)),
        lambda: "/" + path,
        lambda: path.replace("/", "%2F")[3:] or "/",
        lambda: "/../.." + path,
        lambda: path + "%" + rng.choice(["", "0", "zz", "00", "ff"]),
        lambda: "http://evil.example" + path,
        lambda: path + "a" * rng.choice([300, 40_000]),
    ]
    found = rng.choice(ways)()
    return found if found.startswith(("/", "http")) else "/" + found


def change_body(rng, body):
    ways = [
        lambda: b"",
        lambda: flip(rng, body),
        lambda: body[: rng.randint(0, len(body))],
        lambda: body * rng.randint(2, 50),
        lambda: rng.randbytes(rng.choice([1, 10, 1000])),
        lambda: json.dumps(random_json(rng, 4)).encode(),
        lambda: json.dumps({rng.choice(["labels", "nodes"]): random_json(rng, 3)}).encode(),
        lambda: json.dumps({"labels": [random_row(rng) for _ in range(3)]}).encode(),
        lambda: json.dumps({"nodes": [random_json(rng, 0) for _ in range(5)]}).encode(),
        lambda: b"".join(json.dumps(random_edge(rng)).encode() + b"\n" for _ in range(4)),
        lambda: "\n".join(
            ",".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4))) for _ in range(4)
        ).encode("utf-8", "surrogatepass"),
        lambda: rng.choice([b"[", b'{"a":', b'"', b"9"]) * rng.choice([10, 20_000]),
    ]
    return rng.choice(ways)()


def random_json(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([*WORDS, None, True, 0, -1, 2**64, 1.5, float("nan"), float("inf")])
    if rng.random() < 0.5:
        return [random_json(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    return {rng.choice(WORDS): random_json(rng, depth - 1) for _ in range(rng.randint(0, 4))}


def random_row(rng):
    row = {"node": random_json(rng, 1), "label": random_json(rng, 1), "weight": random_json(rng, 0)}
    return {name: value for name, value in row.items() if rng.random() < 0.8}


def random_edge(rng):
    edge = {"u": rng.choice("abcd"), "v": random_json(rng, 1), "time": rng.choice([1, 2.5, "x"])}
    return {name: value for name, value in edge.items() if rng.random() < 0.8}


def flip(rng, content):
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if changed:
            at = rng.randrange(len(changed))
            if rng.random() < 0.7:
                changed[at] = rng.randrange(256)
            else:
                del changed[at]
    return bytes(changed)
