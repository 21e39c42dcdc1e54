"""Files on web servers, read in parts; from a server that knows no parts, from the beginning."""

from __future__ import annotations

import re
import threading
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ohmlearn.reading.read_ahead import retry

__all__ = ["HttpFile"]

TIMEOUT = 60.0  # seconds without an answer
PART = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class HttpFile:
    """A file at an address of http or https.

    Attributes
    ----------
    size : int or None
    changed : str or None
        When the server says it was changed.
    n_parallel : int
        1 if the server does not send parts of a file.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._response: Any = None
        self._at = 0  # of the next byte of the response
        first = retry(lambda: self._ask(0, 1), lambda: None, is_final)
        self.changed: str | None = first.headers.get("Last-Modified")
        part = PART.fullmatch(first.headers.get("Content-Range", ""))
        if first.status == 206 and part is not None:
            self.size: int | None = int(part[3])
            self.n_parallel = 4
            first.close()
        else:
            length = first.headers.get("Content-Length")
            self.size = None if length is None else int(length)
            self.n_parallel = 1
            self._response = first

    def _ask(self, start: int, count: int | None) -> Any:
        end = "" if count is None else start + count - 1
        headers = {"Range": f"bytes={start}-{end}", "Accept-Encoding": "identity"}
        try:
            return urlopen(Request(self._address, headers=headers), timeout=TIMEOUT)
        except HTTPError as error:
            error.close()
            if error.code != 416:  # an empty file has no first byte
                raise
            return urlopen(Request(self._address), timeout=TIMEOUT)

    def read_at(self, start: int, count: int) -> bytes:
        """Return so many bytes, or less if the connection is lost or the file ends."""
        if self.n_parallel > 1:
            return self._read_part(start, count)
        with self._lock:
            return self._read_on(start, count)

    def _read_part(self, start: int, count: int) -> bytes:
        """Ask for a part; if the connection is lost, return what has come."""
        with self._ask(start, count) as response:
            part = PART.fullmatch(response.headers.get("Content-Range", ""))
            is_same = response.headers.get("Last-Modified") == self.changed
            if part is None or int(part[3]) != self.size or not is_same:
                raise ValueError("has changed while it was read")
            try:
                content: bytes = response.read()
            except IncompleteRead as error:
                if not error.partial:
                    raise
                content = error.partial
        return content

    def _read_on(self, start: int, count: int) -> bytes:
        """Read on from the last byte; after an error, from the beginning of the file."""
        if self._response is None or self._at > start:
            self.reopen()
            self._response = self._ask(0, None)
        while self._at < start:
            self._at += len(self._response.read(min(start - self._at, 1 << 20)) or self._end())
        parts = []
        while count > 0 and (part := self._response.read(min(count, 1 << 20))):
            parts.append(part)
            self._at += len(part)
            count -= len(part)
        if self.size is not None and count > 0 and self._at < self.size:
            self._end()
        return b"".join(parts)

    def _end(self) -> bytes:
        raise ConnectionError(f"the connection ended after {self._at} bytes")

    def reopen(self) -> None:
        """Forget the connection, because it has failed."""
        with_response, self._response, self._at = self._response, None, 0
        if with_response is not None:
            with_response.close()

    def close(self) -> None:
        """Close the connection."""
        self.reopen()


def is_final(error: Exception) -> bool:
    """Whether another attempt would fail as well."""
    if isinstance(error, HTTPError):
        return error.code < 500 and error.code not in (408, 425, 429)
    return not isinstance(error, OSError | HTTPException)
