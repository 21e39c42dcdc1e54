"""Bodies of requests: read within limits of size and time, decompressed, parsed."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from ohmlearn.serve.serve_errors import Refused

__all__ = ["BodyReader", "gunzip", "is_gzip", "media_type", "parse_json", "short"]

CHUNK = 1 << 20  # bytes that are decompressed at once
PIECE = 16 << 10
MOST_MEMBERS = 10_000


class BodyReader:
    """Reads bodies of one kind; all of them together may take only so much memory.

    Parameters
    ----------
    limit : int
        Bytes of one body.
    limit_of_all : int
        Bytes of all bodies that are being read or used.
    seconds : float
        Time for one body, from the head of its request on.
    stop_seconds : float
        Time that is left to bodies when the server stops.
    """

    def __init__(self, limit: int, limit_of_all: int, seconds: float, stop_seconds: float) -> None:
        self._limit, self._limit_of_all = limit, limit_of_all
        self._seconds, self._stop_seconds = seconds, stop_seconds
        self._held = 0  # bytes
        self._timeouts: set[asyncio.Timeout] = set()
        self._stopping = False

    @contextmanager
    def counted(self) -> Iterator[Counted]:
        """Hold the bytes of one body against the limit of all, until it is used."""
        counted = Counted()
        try:
            yield counted
        finally:
            self._held -= counted.n_bytes

    def stop(self) -> None:
        """Give bodies that are being read a short time; called on the event loop."""
        self._stopping = True
        end = asyncio.get_running_loop().time() + self._stop_seconds
        for timeout in self._timeouts:
            when = timeout.when()
            timeout.reschedule(end if when is None else min(end, when))

    async def read(self, request: Request, counted: Counted) -> bytes:
        """Return the body of a request as it was sent.

        Raises
        ------
        Refused
            408 if it takes too long, 413 if it is too large, 429 if memory is short.
        starlette.requests.ClientDisconnect
        """
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limit:
            raise self._too_large()
        if self._stopping:
            raise _stopping()
        parts: list[bytes] = []
        timeout = asyncio.timeout(self._seconds)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                async for part in request.stream():
                    self.count(counted, len(part))
                    parts.append(part)
        except TimeoutError:
            if self._stopping:
                raise _stopping() from None
            raise Refused(
                408,
                f"the body took more than {self._seconds:g} seconds; send smaller batches",
                headers={"Connection": "close"},
            ) from None
        finally:
            self._timeouts.discard(timeout)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def count(self, counted: Counted, n_bytes: int) -> None:
        """Hold more bytes of a body, or refuse it; called on the event loop."""
        counted.n_bytes += n_bytes
        self._held += n_bytes
        if counted.n_bytes > self._limit:
            raise self._too_large()
        if self._held > self._limit_of_all:
            raise Refused(429, "too many requests with large bodies", retry_after=1.0)

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is larger than {self._limit:,} bytes; send it in parts")


@dataclass
class Counted:
    """The size of one body."""

    n_bytes: int = 0


def _stopping() -> Refused:
    headers = {"Connection": "close"}
    return Refused(503, "the server is stopping", retry_after=5.0, headers=headers)


def media_type(request: Request) -> str:
    """Return the type of a body, without parameters; only UTF-8 is accepted as charset."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    for parameter in rest.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in (
            "utf-8",
            "utf8",
            "us-ascii",
        ):
            raise Refused(415, f"charset {value.strip()!r} is not known; send UTF-8")
    return kind.strip().lower()


def is_gzip(request: Request) -> bool:
    """Whether a body is compressed; only gzip is accepted."""
    given = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    if given in ("", "identity"):
        return False
    if given in ("gzip", "x-gzip"):
        return True
    raise Refused(
        415,
        f"Content-Encoding {given!r} is not known; send gzip or no compression",
        headers={"Accept-Encoding": "gzip"},
    )


def gunzip(body: bytes, limit: int) -> bytes:
    """Decompress a body piece by piece, so that a small one cannot fill the memory.

    Examples
    --------
    >>> import gzip
    >>> gunzip(gzip.compress(b"a,b") + gzip.compress(b",c"), 100)
    b'a,b,c'
    >>> gunzip(gzip.compress(bytes(1000)), 100)
    Traceback (most recent call last):
    ...
    ohmlearn.serve.serve_errors.Refused: the body is larger than 100 bytes when decompressed; ...
    """
    parts: list[bytes] = []
    n_bytes, n_members = 0, 0
    member = None  # a file of gzip has one or more
    try:
        # In small pieces: zlib copies the rest of a piece at the end of each member.
        for start in range(0, len(body), PIECE):
            rest = body[start : start + PIECE]
            while rest or (member is not None and member.unconsumed_tail):
                if member is None:
                    member, n_members = zlib.decompressobj(16 + zlib.MAX_WBITS), n_members + 1
                part = member.decompress(rest, min(CHUNK, limit + 1))
                parts.append(part)
                n_bytes += len(part)
                rest = member.unconsumed_tail
                if member.eof:
                    rest, member = member.unused_data, None
                if n_bytes > limit or n_members > MOST_MEMBERS:
                    message = f"the body is larger than {limit:,} bytes when decompressed"
                    raise Refused(413, f"{message}; send it in parts")
    except zlib.error:
        raise Refused(400, "the body is not valid gzip data") from None
    if member is not None or not body:
        raise Refused(400, "the body ends before its gzip data does")
    return b"".join(parts)


def parse_json(body: bytes) -> Any:
    """Return what a body in JSON says; duplicate names and numbers such as NaN are refused.

    Examples
    --------
    >>> parse_json(b'{"nodes": [1, "a"]}')
    {'nodes': [1, 'a']}
    >>> parse_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ohmlearn.serve.serve_errors.Refused: the body is not valid JSON: 'a' is given twice ...
    """
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8: byte {error.start + 1} is wrong") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, f"the body is not valid JSON: {error.msg}, {where}") from None
    except RecursionError:
        raise Refused(400, "the body is not valid JSON: it is nested too deeply") from None
    except _Invalid as error:
        raise Refused(400, f"the body is not valid JSON: {error}") from None
    except ValueError:  # an integer of thousands of digits
        raise Refused(400, "the body is not valid JSON: a number is too long") from None


class _Invalid(ValueError):
    """What Python would read, but JSON does not have."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for twice, _ in pairs:
            if twice in seen:
                break
            seen.add(twice)
        raise _Invalid(f"{short(twice)} is given twice in an object")
    return found


def _no_constant(name: str) -> Any:
    raise _Invalid(f"{name} is not a number of JSON")


def short(value: Any) -> str:
    """Return a value in the form of Python, but not a long one, for a message."""
    text = repr(value[:60]) if isinstance(value, str) else repr(value)[:80]
    return f"{text}..." if isinstance(value, str) and len(value) > 60 else text
