"""Limits of connections: how many, how long a head may take, how slowly a client may read.

uvicorn waits for as long as a client likes. Here, a client that opens a connection has some seconds
to send the head of its request, one that does not read its answer is cut off, and when there are
too many connections, the one that has been idle longest makes room. So clients that do nothing, or
do it slowly, cost a few kilobytes each and cannot keep others out. The time for bodies is limited
where they are read, in `bodies`.
"""

from __future__ import annotations

import asyncio
import http
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ohmlearn.serve.http_replies import error_reply
from ohmlearn.serve.serve_errors import Refused

MIB = 1 << 20
RESERVED_FILES = 256  # of the log, the database, Kafka and so on
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of requests and connections; times are in seconds, sizes in bytes."""

    body: int = 64 * MIB  # of edges, before and after decompression
    json_body: int = 8 * MIB
    rows: int = 1_000_000
    id_bytes: int = 256
    lookup_nodes: int = 10_000
    all_bodies: int = 256 * MIB  # of edges that are being read or wait for a decoder
    all_json_bodies: int = 64 * MIB
    head: int = 32 << 10
    headers: int = 100
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    keep_alive_seconds: int = 30
    write_seconds: float = 60.0  # without any progress
    stop_seconds: float = 2.0  # for bodies that are being read when the server stops
    event_clients: int = 64
    exports: int = 4  # at the same time
    reasons: int = 16  # requests that wait for them
    max_connections: int = 12_000


def raise_file_limit(max_connections: int) -> int:
    """Allow as many open files as the system does; return how many connections fit."""
    import resource  # Windows has none, and no server

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS allows fewer than its hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return max_connections
    return min(max_connections, max(16, soft - RESERVED_FILES))


def refusal(error: Refused) -> bytes:
    """Return a whole answer for a request that never reaches the application."""
    reply = error_reply(error)
    lines = [f"HTTP/1.1 {error.status} {http.HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in SECURITY_HEADERS.items()]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    lines += ["cache-control: no-store", "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + bytes(reply.body)


class LimitedProtocol(HttpToolsProtocol):
    """What limits a protocol of uvicorn; its fast parser has no limit on the size of a head.

    A connection is idle if it has no request, or its last one is answered. While it is idle and
    bytes have arrived, or nothing ever did, a timer runs until the head of a request is complete.
    An idle connection without such bytes is closed by uvicorn's own timer (keep-alive).
    """

    limits: Limits
    idle: dict[LimitedProtocol, None]  # all idle connections; those that wait longest come first
    transport: asyncio.Transport

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._has_data = False
        self._in_head = True
        self._n_head = 0  # bytes that have arrived since the last message ended
        self._has_offer = self._is_reading_again = False
        self._data = b""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=256 << 10)
        if len(self.connections) > self.limits.max_connections and not self._make_room():
            self._refuse(Refused(503, "too many connections", retry_after=5.0))
            return
        self.idle[self] = None
        self._expect_head()

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest."""
        for other in self.idle:
            del self.idle[other]
            other.transport.abort()
            return True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.pop(self, None)
        self._stop_timer("head")
        self._stop_timer("write")
        super().connection_lost(exc)
        # uvicorn leaves this timer if there was an error; it would hold the connection in memory.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        before, self._data = self.cycle, data
        if self._in_head:
            self._n_head += len(data)
        super().data_received(data)
        self._data = b""
        if self.transport.is_closing():
            return
        if self.cycle is not before:  # a head is complete
            self._stop_timer("head")
            self.idle.pop(self, None)
            self._has_data = False
        elif before is None or before.response_complete:
            self._has_data = True
            self._expect_head()
        if self._in_head and self._n_head > self.limits.head:
            self._refuse(Refused(431, "the head of the request is too large"))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self.idle[self] = None

    def _expect_head(self) -> None:
        self._start_timer("head", self.limits.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._stop_timer("head")
        if self.transport.is_closing():
            return
        if self._has_data and self.cycle is None:
            seconds = f"{self.limits.head_seconds:g}"
            self._refuse(Refused(408, f"the head of the request took more than {seconds} seconds"))
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer("write", self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_timer("write")
        super().resume_writing()

    def _start_timer(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, call)

    def _stop_timer(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _refuse(self, error: Refused) -> None:
        """Answer in place of the application, and close the connection."""
        self._stop_timer("head")
        self.idle.pop(self, None)
        # In the middle of another answer, these bytes would become a part of it.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(refusal(error))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(Refused(400, "the request is not valid HTTP"))

    def on_headers_complete(self) -> None:
        self._in_head, self._n_head = False, 0
        self._has_offer = self.parser.should_upgrade()
        if not self._has_offer:
            super().on_headers_complete()
        elif self.parser.get_method() == b"CONNECT" or self._is_reading_again:
            raise ValueError("not a request that is served here")  # becomes 400

    def on_message_complete(self) -> None:
        self._in_head = True
        if not self._has_offer:
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Read a request again without its offer of another protocol.

        Clients of Java offer HTTP/2 with every request. The parser takes what follows such a
        head for the other protocol, and would lose the body.
        """
        end = sys.exc_info()[1]
        assert isinstance(end, httptools.HttpParserUpgrade)
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        lines += [
            name + b": " + value
            for name, value in self.headers
            if name not in (b"connection", b"upgrade", b"http2-settings")
        ]
        if not self.parser.should_keep_alive():
            lines.append(b"connection: close")
        rest = self._data[end.args[0] :]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._is_reading_again = True
        try:
            super().data_received(b"\r\n".join([*lines, b"", b""]) + rest)
        finally:
            self._is_reading_again = False


def make_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return a protocol for uvicorn's ``http``. All connections of a server share its class."""
    return type("Protocol", (LimitedProtocol,), {"limits": limits, "idle": {}})
