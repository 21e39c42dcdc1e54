"""`ReadAhead`: a remote file whose next blocks are fetched while earlier ones are in use."""

from __future__ import annotations

import bisect
import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from typing import Any, Protocol

__all__ = ["ReadAhead", "RemoteBytes", "retry"]

FIRST = 1 << 20  # bytes of the first request: often nothing else is needed
BLOCK = 8 << 20  # bytes of the others
GAP = 1 << 16  # bytes that are fetched though nobody needs them, rather than making two requests
AHEAD = 3  # blocks that are fetched before they are needed
KEPT = 4  # blocks that stay in memory after use; Parquet reads some columns in turn
DELAYS = (0.2, 0.6, 1.8, 5.4)  # seconds before each attempt after the first


class RemoteBytes(Protocol):
    """What a remote file must be able to do.

    Attributes
    ----------
    size : int or None
        Number of bytes; None if it is known only at the end.
    n_parallel : int
        How many calls of `read_at` may run at a time. With 1, blocks are asked for in order.
    """

    @property
    def size(self) -> int | None: ...

    @property
    def n_parallel(self) -> int: ...

    def read_at(self, start: int, count: int) -> bytes:
        """Return so many bytes, or less if the connection is lost or the file ends."""

    def reopen(self) -> None:
        """Forget what is open, because it has failed."""

    def close(self) -> None:
        """Close what is open."""


def retry(
    fetch: Callable[[], Any],
    reopen: Callable[[], None],
    is_final: Callable[[Exception], bool],
    stop: threading.Event | None = None,
) -> Any:
    """Return what `fetch` returns; an attempt that fails is repeated after a while.

    `is_final` tells errors that another attempt would not change. `stop` ends the attempts.
    """
    stop = stop or threading.Event()
    for delay in (*DELAYS, None):
        try:
            return fetch()
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, HTTPException) as error:
            if delay is None or is_final(error) or stop.wait(delay):
                raise
            reopen()
    raise AssertionError("the last attempt returns or raises")


class ReadAhead(io.RawIOBase):
    """A file of bytes that are fetched in blocks, ahead of use, by threads in the background.

    The whole file is read in blocks, the first one small. After `will_need`, only the bytes named
    there are fetched ahead, and others when they are asked for.

    Parameters
    ----------
    remote : RemoteBytes
    translate : function
        Turns an error of the remote file into one for the user.
    is_final : function
        Tells errors that another attempt would not change.
    """

    def __init__(
        self,
        remote: RemoteBytes,
        translate: Callable[[Exception], Exception],
        is_final: Callable[[Exception], bool],
    ) -> None:
        super().__init__()
        self._remote = remote
        self._translate = translate
        self._is_final = is_final
        self._pool = ThreadPoolExecutor(remote.n_parallel, thread_name_prefix="ohmlearn-read")
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._plan: list[tuple[int, int]] | None = None  # blocks of `will_need`
        self._stop = threading.Event()
        self._size = remote.size
        self._position = 0

    @property
    def size(self) -> int | None:
        """Number of bytes, if it is known."""
        return self._size

    def will_need(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch only these ranges (start, end) ahead of use."""
        plan: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            while start < end:
                last = plan[-1] if plan else (-BLOCK, -BLOCK)
                if start <= last[1] + GAP and last[1] - last[0] < BLOCK:
                    stop = min(end, last[0] + BLOCK)
                    plan[-1] = (last[0], max(last[1], stop))
                else:
                    stop = min(end, start + BLOCK)
                    plan.append((start, stop))
                start = max(start, stop)
        self._plan = plan
        self._blocks.clear()

    def _find_block(self, position: int) -> int | None:
        """Return the number of the block with a byte; None if it is not planned."""
        if self._plan is None:
            return 0 if position < FIRST else 1 + (position - FIRST) // BLOCK
        at = bisect.bisect_right(self._plan, (position, float("inf"))) - 1
        return at if at >= 0 and position < self._plan[at][1] else None

    def _limits(self, block: int) -> tuple[int, int]:
        """Return where a block starts and ends."""
        if self._plan is not None:
            return self._plan[block]
        start = 0 if block == 0 else FIRST + (block - 1) * BLOCK
        end = start + (FIRST if block == 0 else BLOCK)
        return start, end if self._size is None else min(end, self._size)

    def _find_next(self, block: int) -> range:
        """Return the blocks to fetch ahead of a block."""
        if self._plan is not None:
            return range(block + 1, min(block + 1 + AHEAD, len(self._plan)))
        if block == 0:
            return range(0)
        end = block + 1 + AHEAD
        if self._size is not None:
            end = min(end, 1 + -(-(self._size - FIRST) // BLOCK))
        return range(block + 1, end)

    def start(self) -> None:
        """Begin to fetch the first blocks."""
        last = AHEAD if self._size is None else self._find_block(max(0, self._size - 1))
        for block in range(min(last or 0, AHEAD) + 1):
            self._blocks[block] = self._pool.submit(self._fetch, *self._limits(block))

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Whether parts can be read in any order."""
        return self._size is not None and self._remote.n_parallel > 1

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another byte; nothing is fetched yet."""
        if whence == io.SEEK_END and self._size is None:
            raise io.UnsupportedOperation("the size is not known")
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size or 0}
        self._position = max(0, base[whence] + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, unless the file has ended."""
        view = memoryview(buffer).cast("B")
        part = self._next_part(len(view))
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, or less at the end of the file."""
        parts: list[bytes | memoryview] = []
        while size != 0 and (part := self._next_part(size)):
            parts.append(part)
            self._position += len(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)

    def _next_part(self, most: int) -> memoryview:
        """Return the bytes from the position to the end of its block, and not more than `most`."""
        if self._size is not None and self._position >= self._size:
            return memoryview(b"")
        at = self._find_block(self._position)
        try:
            if at is None:
                end = self._size if most < 0 else self._position + most
                return memoryview(self._fetch(self._position, end or self._position + BLOCK))
            content = self._take(at)
        except Exception as error:
            raise self._translate(error) from error
        start = self._position - self._limits(at)[0]
        return memoryview(content)[start : len(content) if most < 0 else start + most]

    def _take(self, at: int) -> bytes:
        """Return a block, and start to fetch the next ones."""
        for block in (at, *self._find_next(at)):
            if block not in self._blocks:
                limits = self._limits(block)
                self._blocks[block] = self._pool.submit(self._fetch, *limits)
        self._blocks.move_to_end(at)
        try:
            content = self._blocks[at].result()
        except Exception:
            del self._blocks[at]
            raise
        while len(self._blocks) > AHEAD + KEPT:
            self._blocks.popitem(last=False)[1].cancel()
        return content

    def _fetch(self, start: int, end: int) -> bytes:
        """Return a part of the file; after a loss, continue with the first byte that is missing."""
        end = end if self._size is None else min(end, self._size)
        content = b""

        def fetch() -> bytes:
            part = self._remote.read_at(start + len(content), end - start - len(content))
            if not part and self._size is not None:
                raise ConnectionError("the connection was lost")
            return part

        while start + len(content) < end:
            part: bytes = retry(fetch, self._remote.reopen, self._is_final, self._stop)
            content += part
            if self._size is None:
                break
        return content

    def close(self) -> None:
        """Stop the threads and close the file."""
        if not self.closed:
            self._stop.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._blocks.clear()
            self._remote.close()
        super().close()
