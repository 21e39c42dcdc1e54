"""Files on other machines: s3://, gs://, abfs://, https:// and what pyarrow and fsspec know.

A name is resolved to a file system of pyarrow and a path in it; http and https are read by
`HttpFile`. Text is read in blocks, of which the next ones are fetched meanwhile. Each block is
asked for by its position, so that a request that fails can be repeated. Libraries are imported when
a remote file is used, not before.
"""

from __future__ import annotations

import io
import os
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from http.client import HTTPException
from importlib.util import find_spec
from tempfile import TemporaryFile
from textwrap import shorten
from typing import Any, BinaryIO, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputTypeError, Param, Place, SourceError
from ohmlearn.reading.source_errors import show_name

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?=://)")
MAGIC = re.compile(r"[*?\[]")
PART = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
STORES = ("s3", "gs", "gcs", "abfs", "abfss")  # whose first folder is a bucket
ARROW_SCHEMES = (*STORES, "hdfs", "viewfs", "file")
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")  # how their variables of the environment start
FIRST = 1 << 20  # bytes of the first request: often nothing else is needed
BLOCK = 8 << 20  # bytes of the others
AHEAD = 3  # blocks that are fetched before they are needed
DELAYS = (0.2, 0.6, 1.8, 5.4)  # seconds before each attempt after the first
TIMEOUT = 60.0  # seconds without an answer of a web server
MOST_SAID = 300  # characters
Choose = Callable[[Iterable[str], str, str | None], list[str]]
T = TypeVar("T")
# pyarrow raises OSError for all that a store refuses, without a code. These are the names of errors
# of S3, Google and Azure in its messages.
DENIED = (
    "ACCESS_DENIED", "AccessDenied", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID",
    "SIGNATURE_DOES_NOT_MATCH", "HTTP status 403", "HTTP status 401", "PERMISSION_DENIED",
    "UNAUTHENTICATED", "AuthenticationFailed", "AuthorizationFailure",
)  # fmt: skip


def is_remote(name: str) -> bool:
    """Whether a name is that of a file on another machine.

    Examples
    --------
    >>> is_remote("s3://bucket/edges.parquet"), is_remote("edges.csv"), is_remote("C:\\\\e.csv")
    (True, False, False)
    """
    return SCHEME.match(name) is not None


def retry(fetch: Callable[[], T]) -> T:
    """Return what `fetch` returns; an attempt that fails is repeated after a while."""
    for delay in DELAYS:
        try:
            return fetch()
        except (OSError, HTTPException) as error:
            if _is_final(error):
                raise
            time.sleep(delay)
    return fetch()


def fetch_ahead(
    tasks: Iterable[Callable[[], T]], n_threads: int = AHEAD, n_ahead: int | None = None
) -> Generator[T]:
    """Yield what tasks return, in order; threads do the next ones, `n_ahead` of them, meanwhile."""
    most = n_threads if n_ahead is None else n_ahead
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="ohmlearn-read")
    ahead: deque[Future[T]] = deque()
    try:
        for task in tasks:
            ahead.append(pool.submit(task))
            if len(ahead) > most:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class RemoteFile(io.RawIOBase, ABC):
    """A remote file. Until the first `seek`, it is read in blocks that threads fetch ahead."""

    size: int | None  # in bytes; None if it is known only at the end
    changed: Any  # when the file was changed
    has_parts = True  # whether parts can be read in any order
    is_native = False  # whether pyarrow can ask for several parts at a time

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._position = name, 0
        self._blocks: Generator[bytes] | None = self._read_whole()
        self._parts: list[tuple[int, memoryview]] = []  # that have been fetched: start, content

    @property
    def native(self) -> Any:
        """The file for pyarrow."""
        return require_extra("pyarrow", "files").PythonFile(self, mode="r")

    @abstractmethod
    def _fetch(self, start: int, count: int) -> bytes:
        """Return so many bytes; several threads may ask at a time."""

    def read_at(self, start: int, count: int) -> bytes:
        """Return so many bytes, or less at the end of the file, after up to five attempts."""
        count = count if self.size is None else min(count, self.size - start)
        try:
            return retry(partial(self._fetch, start, count)) if count > 0 else b""
        except Exception as error:
            raise explain_remote(self._name, error) from error

    def _read_whole(self) -> Generator[bytes]:
        """Yield all blocks. The first one is small, because often nothing else is needed."""
        yield self.read_at(0, FIRST)
        starts = range(FIRST, self.size or 0, BLOCK)
        yield from fetch_ahead(partial(self.read_at, start, BLOCK) for start in starts)

    def fetch(self, ranges: list[tuple[int, int]]) -> None:
        """Fetch ranges of bytes at the same time: pyarrow asks a Python file for one at a time."""
        tasks = [partial(self.read_at, start, end - start) for start, end in ranges]
        found = (memoryview(content) for content in fetch_ahead(tasks))
        self._parts = [(start, part) for (start, _), part in zip(ranges, found, strict=True)]

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Whether parts can be read in any order."""
        return self.has_parts

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another byte; nothing is fetched."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size or 0}
        self._position = max(0, base[whence] + offset)
        self._blocks = None
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, unless the file has ended."""
        at = self._position
        need = len(buffer) if self._blocks is None else 1  # pyarrow takes less for the end
        fits = (x[at - s :] for s, x in self._parts if s <= at and at + need <= s + len(x))
        part = next(fits, None)
        if part is None and self._blocks is not None:
            part = memoryview(next(self._blocks, b""))
            self._parts = [(at, part)]
        elif part is None:
            part = memoryview(self.read_at(at, len(buffer)))
        part = part[: len(buffer)]
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)

    def close(self) -> None:
        """Stop the threads and close the file."""
        if self._blocks is not None:
            self._blocks.close()
        super().close()


class StoreFile(RemoteFile):
    """A file of a file system of pyarrow."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        super().__init__(name)
        self._filesystem, self._path = filesystem, path
        self._file = filesystem.open_input_file(path)
        self.size = self._file.size()
        handler = getattr(filesystem, "handler", None)
        self._fsspec = getattr(handler, "fs", None)
        self.is_native = self._fsspec is None

    @property
    def native(self) -> Any:
        """The file for pyarrow."""
        return self._file if self.is_native else super().native

    @property
    def changed(self) -> int | None:
        """When the file was changed, in nanoseconds since 1970."""
        found: int | None = self._filesystem.get_file_info(self._path).mtime_ns
        return found

    def _fetch(self, start: int, count: int) -> bytes:
        if self._fsspec is not None:  # pyarrow would ask in turn
            return bytes(self._fsspec.cat_file(self._path, start, start + count))
        return bytes(self._file.read_at(count, start))

    def close(self) -> None:
        """Stop the threads and close the file."""
        super().close()
        self._file.close()


class HttpFile(RemoteFile):
    """A file at an address of http or https. Not every server sends parts of a file."""

    def __init__(self, address: str, known: RemoteFile | None = None) -> None:
        super().__init__(address)
        if known is not None:
            self.changed, self.has_parts, self.size = known.changed, known.has_parts, known.size
            return
        with retry(partial(self._ask, 0, 1)) as first:
            self.changed = first.headers.get("Last-Modified")
            part = PART.fullmatch(first.headers.get("Content-Range", ""))
            self.has_parts = first.status == 206 and part is not None
            length = part[3] if part else first.headers.get("Content-Length")
            is_whole = first.status == 200 or self.has_parts  # else its size is not known
            self.size = int(length) if length is not None and is_whole else None

    def _ask(self, start: int, count: int | None = None) -> Any:
        headers = {"Accept-Encoding": "identity"}
        if count is not None:
            headers["Range"] = f"bytes={start}-{start + count - 1}"
        try:
            return urlopen(Request(self._name, headers=headers), timeout=TIMEOUT)
        except HTTPError as error:
            error.close()
            if error.code != 416:  # an empty file has no first byte
                raise
            return urlopen(Request(self._name), timeout=TIMEOUT)

    def _fetch(self, start: int, count: int) -> bytes:
        with self._ask(start, count) as response:
            part = PART.fullmatch(response.headers.get("Content-Range", ""))
            is_same = response.headers.get("Last-Modified") == self.changed
            if self.has_parts and not (is_same and part and int(part[3]) == self.size):
                raise ValueError("has changed while it was read")
            return bytes(response.read(None if self.has_parts else count))

    def _read_whole(self) -> Generator[bytes]:
        if self.has_parts:
            yield from super()._read_whole()
            return
        position = 0
        for delay in (*DELAYS, None):  # after a loss, the server begins again
            try:
                with self._ask(0) as response:
                    at = 0
                    while part := response.read(FIRST):
                        at += len(part)
                        if at > position:
                            yield part[max(0, len(part) - (at - position)) :]
                            position = at
                if self.size is None or position >= self.size:
                    return
                raise ConnectionError(f"the connection ended after {position} bytes")
            except (OSError, HTTPException) as error:
                if delay is None or _is_final(error):
                    raise explain_remote(self._name, error) from error
                time.sleep(delay)


def open_remote(
    name: str, filesystem: object = None, known: RemoteFile | None = None, *, in_parts: bool = False
) -> RemoteFile:
    """Open a remote file; `known` is the same one as it was opened before.

    With `in_parts`, a server that sends whole files only is refused.
    """
    try:
        if filesystem is None and _is_http(name):
            remote: RemoteFile = HttpFile(name, known)
        else:
            remote = StoreFile(name, *_resolve(name, filesystem))
    except Exception as error:
        raise explain_remote(name, error) from error
    if in_parts and not remote.has_parts:
        raise SourceError(
            "the server does not send parts of a file, which this format needs",
            remedy="download it first",
            place=Place(show_name(name)),
        )
    return remote


def describe_remote(name: str) -> dict[str, Any]:
    """Return size and time of the last change of a remote file, and its first and last bytes."""
    with open_remote(name) as remote:
        ends = [remote.read_at(0, 1 << 16)]
        if remote.has_parts:
            ends.append(remote.read_at(max(0, (remote.size or 0) - (1 << 16)), 1 << 16))
        return {"size": remote.size, "changed": remote.changed, "ends": ends}


def check_remote_output(name: str) -> None:
    """Refuse an address where `write_remote` cannot write, as far as that is known before."""
    if _is_http(name):
        raise SourceError(
            "web servers can be read, but not written to",
            remedy="write to a file, or to an address such as s3://bucket/labels.csv",
            place=Place(show_name(name)),
        )
    try:
        fs = require_extra("pyarrow.fs", "files")
        filesystem, path = _resolve(name, None)
        if name.partition("://")[0].lower() in STORES:
            bucket = filesystem.get_file_info(path.partition("/")[0])
            if bucket.type == fs.FileType.NotFound:
                raise FileNotFoundError(bucket.path)
        if filesystem.get_file_info(path).type == fs.FileType.Directory:
            raise ValueError("is a folder; name a file in it")
    except Exception as error:
        raise explain_remote(name, error) from error


@contextmanager
def write_remote(name: str) -> Iterator[BinaryIO]:
    """Write a file here, and copy it to an address when it is complete.

    Object stores show a file when the last byte has arrived. If copying fails, what other stores
    have of it is deleted.
    """
    with TemporaryFile() as file:
        yield file
        file.seek(0)
        try:
            filesystem, path = _resolve(name, None)
            with filesystem.open_output_stream(path) as target:
                try:
                    while block := file.read(BLOCK):
                        target.write(block)
                except BaseException:
                    with suppress(Exception):
                        target.close()  # which also ends an upload to S3
                        filesystem.delete_file(path)
                    raise
        except Exception as error:
            raise explain_remote(name, error, "written") from error


def list_remote(pattern: str, filesystem: object, choose: Choose) -> list[str]:
    """Return the names of the remote files that a name, a folder or a pattern means.

    `choose` is given all paths below a folder, the folder, and a pattern or None.
    """
    if filesystem is None and _is_http(pattern):
        return [pattern]  # * and ? are part of an address
    address, mark, query = pattern.partition("?") if filesystem is None else (pattern, "", "")
    magic = MAGIC.search(address)
    base = address if magic is None else address[: address.rfind("/", 0, magic.start()) + 1]
    try:
        found, path = _resolve(base + mark + query, filesystem)
        path = path.rstrip("/")
        info = found.get_file_info(path) if path else None
        if magic is None and info is not None and info.is_file:
            return [pattern]
        fs = require_extra("pyarrow.fs", "files")
        if info is not None and info.type == fs.FileType.NotFound:
            raise FileNotFoundError(base)
        below = found.get_file_info(fs.FileSelector(path, recursive=True))
    except Exception as error:
        raise explain_remote(pattern, error) from error
    start = path + "/" if path else ""
    wanted = None if magic is None else start + address[len(base) :]
    chosen = choose((each.path for each in below if each.is_file), start, wanted)
    if not chosen:
        problem = "is a folder without files" if magic is None else "fits no file"
        raise FileNotFoundError(f"{show_name(pattern)} {problem}")
    if filesystem is not None:
        return chosen
    base = base.rstrip("/") + "/"
    return [base + quote(each.removeprefix(start), safe="/=") + mark + query for each in chosen]


def _is_http(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def _resolve(name: str, filesystem: Any) -> tuple[Any, str]:
    """Return a file system of pyarrow and the path in it."""
    fs = require_extra("pyarrow.fs", "files")
    if filesystem is None:
        scheme = name.partition("://")[0].lower()
        if scheme in ARROW_SCHEMES:
            settings = [pair for pair in os.environ.items() if pair[0].startswith(SETTINGS)]
            return _from_address(quote(name, safe=":/?&=@%+,;~!$()'"), os.getpid(), *settings)
        if find_spec("fsspec") is None:
            raise ImportError(
                f"{show_name(name)} needs a file system of fsspec; install fsspec and what it "
                f"needs for {scheme}://, or give filesystem="
            )
        import fsspec

        inner, path = fsspec.core.url_to_fs(name)
        return fs.PyFileSystem(fs.FSSpecHandler(inner)), path
    if isinstance(filesystem, fs.FileSystem):
        return filesystem, name.partition("://")[2] if is_remote(name) else name
    if not hasattr(filesystem, "cat_file"):
        raise InputTypeError(
            f"{Param('filesystem')} must be a file system of pyarrow or fsspec, got "
            f"{type(filesystem).__name__}"
        )
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), filesystem._strip_protocol(name)


@lru_cache(maxsize=128)
def _from_address(address: str, process: int, *settings: tuple[str, str]) -> tuple[Any, str]:
    """Return the file system of an address.

    A forked process needs its own connections, and so do other settings of the environment.
    """
    fs = require_extra("pyarrow.fs", "files")
    if address.startswith(("gs://", "gcs://")) and "retry_limit_seconds" not in address:
        # Google's library would repeat a request for 15 minutes.
        address += ("&" if "?" in address else "?") + "retry_limit_seconds=5"
    found: tuple[Any, str] = fs.FileSystem.from_uri(address)
    return found


def _is_final(error: Exception) -> bool:
    """Whether another attempt would fail as well."""
    if isinstance(error, HTTPError):
        return error.code < 500 and error.code not in (408, 425, 429)
    return isinstance(error, FileNotFoundError | PermissionError) or _is_denied(error)


def _is_denied(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code in (401, 403)
    return isinstance(error, PermissionError) or any(word in str(error) for word in DENIED)


def explain_remote(name: str, error: Exception, done: str = "reached") -> Exception:
    """Return the error that a user sees: one line that says what to do."""
    if isinstance(error, SourceError | ImportError | TypeError):
        return error
    shown, said = show_name(name), shorten(str(error), MOST_SAID, placeholder=" ...")
    if said.endswith(" ...") and ". " in said:  # whole sentences are better
        said = said[: said.rindex(". ") + 1]
    if _is_denied(error):
        return PermissionError(
            f"{shown}: access is denied; check the credentials and the name ({said})"
        )
    if isinstance(error, FileNotFoundError) or getattr(error, "code", None) == 404:
        return FileNotFoundError(f"there is no file {shown}; check the name of bucket and file")
    if isinstance(error, ValueError):  # not about the network
        return SourceError(said, place=Place(shown))
    return SourceError(
        f"cannot be {done}, or the connection was lost; check the name, your credentials and the "
        f"network ({said})",
        place=Place(shown),
    )
