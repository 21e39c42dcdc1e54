"""Answers: JSON, errors as JSON, streams (events as they happen, the export), and metrics."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ohmlearn.errors import query_style, render
from ohmlearn.serve.serve_errors import Refused

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

PREFIX = "ohmlearn_"  # of metrics
KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
POLL_SECONDS = 1.0
COMMENT_SECONDS = 15.0  # so that proxies do not take the connection for dead
# What changes all the time without anything having happened.
RESTLESS = ("uptime_seconds", "memory_mib")


class JsonReply(Response):
    """An answer in JSON; see `to_json`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body; bytes are JSON already."""
        return content if isinstance(content, bytes) else to_json(content)


def error_reply(error: Refused) -> JsonReply:
    """Return the answer that says what is wrong; see the schema Error."""
    about: dict[str, Any] = {"status": error.status, "message": error.render(query_style)}
    about["remedy"] = None if error.remedy is None else render(error.remedy, query_style)
    about |= {name: getattr(error, name) for name in ("parameter", "value", "row", "retry_after")}
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))  # whole seconds
    known = {name: part for name, part in about.items() if part is not None}
    return JsonReply({"error": known}, error.status, headers)


def to_json(content: Any) -> bytes:
    """Return content as JSON in UTF-8. Numbers that JSON does not have, as nan, become null."""
    try:
        text = _dump(content)
    except ValueError:  # rare, so only then everything is looked at
        text = _dump(_finite(content))
    # A lone surrogate cannot be written in UTF-8; ids and labels are checked, so there is none.
    return text.encode("utf-8", "replace")


def _dump(content: Any) -> str:
    return json.dumps(
        content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )


def _plain(value: Any) -> Any:
    """Return numpy's scalars and arrays as Python objects."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _finite(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@dataclass
class StreamLimit:
    """How many streams of a kind may be sent at the same time, and the refusal of others."""

    most: int
    status: int
    message: str
    retry_after: float
    n_running: int = 0


class LimitedStream(Response):
    """A stream, if there is room for it. A client that goes away ends it."""

    def __init__(self, room: StreamLimit, kind: str, parts: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        self._room, self._kind, self._parts = room, kind, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        headers = {"Content-Type": self._kind}
        if scope["method"] == "HEAD":
            await Response(headers=headers)(scope, receive, send)
            return
        room = self._room
        if room.n_running >= room.most:
            raise Refused(room.status, room.message, retry_after=room.retry_after)
        room.n_running += 1
        try:
            async with aclosing(self._parts) as parts:
                # The first part comes before the head: if it fails, there can still be an error.
                first = await anext(parts, b"")

                async def all_parts() -> AsyncIterator[bytes]:
                    yield first
                    async for part in parts:
                        yield part

                await StreamingResponse(all_parts(), headers=headers)(scope, receive, send)
        finally:
            room.n_running -= 1


async def watch(service: Service, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Yield events: "status" when a figure has changed, "map" when the map has."""
    yield b"retry: 2000\n\n"
    seen: Any = None
    seen_map: Any = None
    sent_at = time.monotonic()
    while not stopping.is_set():
        status = service.status()
        answers = {**status["answers"], "age_seconds": None}
        key = {**status, **dict.fromkeys(RESTLESS), "answers": answers}  # worth an event
        parts = []
        if key != seen:
            seen = key
            parts.append(b"event: status\ndata: " + to_json(status) + b"\n\n")
        picture = service.map()
        if picture.get("version") != seen_map:
            seen_map = picture.get("version")
            parts.append(b"event: map\ndata: " + to_json(picture) + b"\n\n")
        if not parts and time.monotonic() - sent_at >= COMMENT_SECONDS:
            parts.append(b": nothing has changed\n\n")
        if parts:
            sent_at = time.monotonic()
            yield b"".join(parts)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), POLL_SECONDS)


async def in_threads(
    make: Callable[[], Iterator[bytes]], pool: ThreadPoolExecutor
) -> AsyncGenerator[bytes, None]:
    """Yield parts that are made in a thread, such as those of ``/v1/export``."""
    loop = asyncio.get_running_loop()
    parts = await loop.run_in_executor(pool, make)
    lock = threading.Lock()  # a part may still be made when this stream is cancelled

    def make_part() -> bytes | None:
        with lock:
            return next(parts, None)

    def close() -> None:
        with lock:
            getattr(parts, "close", lambda: None)()

    try:
        while (part := await loop.run_in_executor(pool, make_part)) is not None:
            yield part
    finally:
        await loop.run_in_executor(pool, close)


class HttpMetrics(Collector):
    """Counts requests, and collects the figures of a service when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # A registry of its own: two services in one process must not mix.
        self._registry = CollectorRegistry(auto_describe=False)
        labels, about = ["route", "method", "status"], "Requests that were answered."
        self._requests = Counter(f"{PREFIX}http_requests", about, labels, registry=self._registry)
        about = "Time from the head of a request to the end of its answer."
        self._seconds = Histogram(
            f"{PREFIX}http_request_seconds", about, labels[:2],
            buckets=SECONDS, registry=self._registry,
        )  # fmt: skip
        self._registry.register(self)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. There are few routes and methods: clients cannot make up new ones."""
        method = method if method in METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        if route != "/v1/events":  # these last for as long as the client likes
            self._seconds.labels(route, method).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the service."""
        for name, (value, text) in self._service.metrics().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(PREFIX + name, text, value=float(value))

    def render(self) -> tuple[bytes, str]:
        """Return all figures in the text format of Prometheus, and its media type."""
        return generate_latest(self._registry), KIND
