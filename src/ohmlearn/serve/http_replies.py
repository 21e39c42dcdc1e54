"""Answers: JSON, errors as JSON, and streams, which are events as they happen and the export."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ohmlearn.errors import query_style, render
from ohmlearn.serve.serve_errors import Refused

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

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
    for name in ("parameter", "value", "row", "retry_after"):
        about[name] = getattr(error, name)
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


class _LimitedStream(Response):
    """A stream of which there may be only so many at the same time."""

    def __init__(self, running: set[object], most: int, kind: str, too_many: Refused) -> None:
        super().__init__()
        self._running, self._most, self._kind, self._too_many = running, most, kind, too_many

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; a client that goes away ends it."""
        headers = {"Content-Type": self._kind}
        if scope["method"] == "HEAD":
            await Response(headers=headers)(scope, receive, send)
            return
        if len(self._running) >= self._most:
            raise self._too_many
        self._running.add(self)
        try:
            async with aclosing(self._parts()) as parts:
                # The first part comes before the head: if it fails, there can still be an error.
                first = await anext(parts, b"")

                async def all_parts() -> AsyncIterator[bytes]:
                    yield first
                    async for part in parts:
                        yield part

                await StreamingResponse(all_parts(), headers=headers)(scope, receive, send)
        finally:
            self._running.discard(self)

    def _parts(self) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError


class EventStream(_LimitedStream):
    """Events of ``/v1/events``: "status" when a figure has changed, "map" when the map has."""

    def __init__(
        self, service: Service, stopping: asyncio.Event, clients: set[object], most: int
    ) -> None:
        too_many = Refused(503, f"there are {most} clients for events already", retry_after=10.0)
        super().__init__(clients, most, "text/event-stream", too_many)
        self._service, self._stopping = service, stopping

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        yield b"retry: 2000\n\n"
        seen: Any = None
        seen_map: Any = None
        sent_at = time.monotonic()
        while not self._stopping.is_set():
            status = self._service.status()
            key, parts = _without_restless(status), []
            if key != seen:
                seen = key
                parts.append(b"event: status\ndata: " + to_json(status) + b"\n\n")
            picture = self._service.map()
            if picture.get("version") != seen_map:
                seen_map = picture.get("version")
                parts.append(b"event: map\ndata: " + to_json(picture) + b"\n\n")
            if not parts and time.monotonic() - sent_at >= COMMENT_SECONDS:
                parts.append(b": nothing has changed\n\n")
            if parts:
                sent_at = time.monotonic()
                yield b"".join(parts)
            try:
                await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)
            except TimeoutError:
                continue


def _without_restless(status: dict[str, Any]) -> dict[str, Any]:
    """Return the figures whose change is worth an event."""
    found = {name: value for name, value in status.items() if name not in RESTLESS}
    if isinstance(found.get("answers"), dict):
        answers: dict[str, Any] = found["answers"]
        found["answers"] = {name: answers[name] for name in answers if name != "age_seconds"}
    return found


class ExportStream(_LimitedStream):
    """The Parquet file of ``/v1/export``, whose parts are made in a thread."""

    def __init__(
        self,
        export: Callable[[], Iterator[bytes]],
        pool: ThreadPoolExecutor,
        running: set[object],
        most: int,
    ) -> None:
        too_many = Refused(429, f"{most} exports are running already", retry_after=5.0)
        super().__init__(running, most, "application/vnd.apache.parquet", too_many)
        self._export, self._pool = export, pool

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        parts = await loop.run_in_executor(self._pool, self._export)
        lock = threading.Lock()  # a part may still be made when this stream is cancelled

        def make() -> bytes | None:
            with lock:
                return next(parts, None)

        def close() -> None:
            with lock:
                getattr(parts, "close", lambda: None)()

        try:
            while (part := await loop.run_in_executor(self._pool, make)) is not None:
                yield part
        finally:
            await loop.run_in_executor(self._pool, close)
