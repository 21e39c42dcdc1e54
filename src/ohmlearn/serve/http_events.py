"""Answers that take long: events that are sent as they happen, and the export of all labels."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ohmlearn.serve.http_replies import to_json
from ohmlearn.serve.serve_errors import Refused

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

__all__ = ["EventStream", "ExportStream"]

POLL_SECONDS = 1.0
COMMENT_SECONDS = 15.0  # so that proxies do not take the connection for dead
# What changes all the time without anything having happened.
RESTLESS = ("uptime_seconds", "memory_mib")


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
            # The first part comes before the head: if it fails, there can still be an error.
            parts = self._parts()
            try:
                first = await anext(parts, b"")

                async def all_parts() -> AsyncIterator[bytes]:
                    yield first
                    async for part in parts:
                        yield part

                await StreamingResponse(all_parts(), headers=headers)(scope, receive, send)
            finally:
                await parts.aclose()  # type: ignore[attr-defined]
        finally:
            self._running.discard(self)

    def _parts(self) -> AsyncIterator[bytes]:
        raise NotImplementedError


class EventStream(_LimitedStream):
    """Events of ``/v1/events``: "status" when a figure has changed, "map" when the map has."""

    def __init__(
        self, service: Service, stopping: asyncio.Event, clients: set[object], most: int
    ) -> None:
        too_many = Refused(503, f"there are {most} clients for events already", retry_after=10.0)
        super().__init__(clients, most, "text/event-stream", too_many)
        self._service, self._stopping = service, stopping

    async def _parts(self) -> AsyncIterator[bytes]:
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

    async def _parts(self) -> AsyncIterator[bytes]:
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
