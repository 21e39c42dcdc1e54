"""Files on other machines: s3://, gs://, abfs://, https:// and what pyarrow and fsspec know.

A name is resolved to a file system of pyarrow and a path in it; http and https are read by
`HttpFile`. Libraries are imported when a remote file is read, not before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import InputTypeError, Param
from ohmlearn.reading.http_file import HttpFile
from ohmlearn.reading.http_file import is_final as is_final_http
from ohmlearn.reading.read_ahead import ReadAhead
from ohmlearn.reading.source_errors import SourceError, show_name

__all__ = [
    "describe_remote",
    "find_remote_size",
    "is_remote",
    "list_remote",
    "open_ahead",
    "open_remote",
    "read_remote_start",
]

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?=://)")
MAGIC = re.compile(r"[*?\[]")
ARROW_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")  # how their variables of the environment start
Choose = Callable[[Iterable[str], str, str | None], list[str]]
# What file systems say, and what that means.
DENIED = re.compile(
    r"access.?denied|\b40[13]\b|forbidden|unauthori[sz]ed|InvalidAccessKeyId|SignatureDoesNotMatch"
    r"|PERMISSION_DENIED|AuthenticationFailed|authenticat|\bcredentials\b",
    re.IGNORECASE,
)
AWAY = re.compile(r"\bUNAVAILABLE\b|resolve host|NETWORK_CONNECTION", re.IGNORECASE)
MOST_SAID = 300  # characters
ABSENT = re.compile(
    r"no.?such.?(bucket|key|file)|\b404\b|not.?found|ContainerNotFound|does not exist",
    re.IGNORECASE,
)


def is_remote(name: str) -> bool:
    """Whether a name is that of a file on another machine.

    Examples
    --------
    >>> is_remote("s3://bucket/edges.parquet"), is_remote("edges.csv"), is_remote("C:\\\\e.csv")
    (True, False, False)
    """
    return SCHEME.match(name) is not None


class ArrowBytes:
    """A file of a file system of pyarrow."""

    n_parallel = 4

    def __init__(self, filesystem: Any, path: str) -> None:
        self._filesystem, self._path = filesystem, path
        self._file: Any = filesystem.open_input_file(path)
        self.size: int | None = self._file.size()

    @property
    def changed(self) -> int | None:
        """When the file was changed, in nanoseconds since 1970."""
        found: int | None = self._filesystem.get_file_info(self._path).mtime_ns
        return found

    def read_at(self, start: int, count: int) -> bytes:
        """Return so many bytes; several threads may ask at a time."""
        file = self._file
        if file is None:
            file = self._file = self._filesystem.open_input_file(self._path)
        content: bytes = file.read_at(count, start)
        return content

    def reopen(self) -> None:
        """Forget the open file, because it has failed; other threads may still use it."""
        self._file = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class FsspecBytes(ArrowBytes):
    """A file of a file system of fsspec, which is asked for ranges of bytes."""

    def read_at(self, start: int, count: int) -> bytes:
        """Return so many bytes; several threads may ask at a time."""
        fs = self._filesystem.handler.fs
        content: bytes = fs.cat_file(self._path, start=start, end=start + count)
        return content


def open_remote(name: str, filesystem: Any = None) -> ReadAhead:
    """Return an open remote file, whose blocks are read ahead."""
    return ReadAhead(_find_bytes(name, filesystem), lambda error: _explain(name, error), _is_final)


def open_ahead(name: str, filesystem: Any, start: bool) -> Future[ReadAhead]:
    """Begin to open a remote file that is needed soon, and to fetch its first blocks."""

    def open_it() -> ReadAhead:
        file = open_remote(name, filesystem)
        if start:
            file.start()
        return file

    pool = ThreadPoolExecutor(1, thread_name_prefix="ohmlearn-read")
    future = pool.submit(open_it)
    pool.shutdown(wait=False)
    return future


def read_remote_start(name: str, count: int, filesystem: Any = None) -> bytes:
    """Return the first bytes of a remote file."""
    remote = _find_bytes(name, filesystem)
    try:
        count = count if remote.size is None else min(count, remote.size)
        content: bytes = remote.read_at(0, count)
        return content
    except Exception as error:
        raise _explain(name, error) from error
    finally:
        remote.close()


def find_remote_size(name: str, filesystem: Any = None) -> int | None:
    """Return the number of bytes of a remote file, if it is known."""
    remote = _find_bytes(name, filesystem)
    remote.close()
    size: int | None = remote.size
    return size


def describe_remote(name: str) -> dict[str, Any]:
    """Return size and time of the last change of a remote file, and its first and last bytes."""
    remote = _find_bytes(name, None)
    try:
        ends = [remote.read_at(0, min(1 << 16, remote.size or 1 << 16))]
        if remote.size is not None and remote.n_parallel > 1:
            start = max(0, remote.size - (1 << 16))
            ends.append(remote.read_at(start, remote.size - start))
        return {"size": remote.size, "changed": remote.changed, "ends": ends}
    except Exception as error:
        raise _explain(name, error) from error
    finally:
        remote.close()


def list_remote(pattern: str, filesystem: Any, choose: Choose) -> list[str]:
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
        raise _explain(pattern, error) from error
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


def _find_bytes(name: str, filesystem: Any) -> Any:
    try:
        if filesystem is None and _is_http(name):
            return HttpFile(name)
        found, path = _resolve(name, filesystem)
        handler = getattr(found, "handler", None)
        return (ArrowBytes if not hasattr(handler, "fs") else FsspecBytes)(found, path)
    except Exception as error:
        raise _explain(name, error) from error


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
    path = name
    if isinstance(filesystem, fs.FileSystem):
        return filesystem, name.partition("://")[2] if is_remote(name) else name
    if not hasattr(filesystem, "cat_file"):
        raise InputTypeError(
            f"{Param('filesystem')} must be a file system of pyarrow or fsspec, got "
            f"{type(filesystem).__name__}"
        )
    path = filesystem._strip_protocol(name)
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path


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
    said = str(error)
    return is_final_http(error) or bool(DENIED.search(said) or ABSENT.search(said))


def _explain(name: str, error: Exception) -> Exception:
    """Return the error that a user sees: one line that says what to do."""
    if isinstance(error, SourceError | ImportError | TypeError):
        return error
    shown, said = show_name(name), " ".join(str(error).split())
    code = error.code if isinstance(error, HTTPError) else None
    lost = SourceError(
        f"{shown}: cannot be reached, or the connection was lost; check the name, your credentials "
        f"and the network ({_shorten(said)})"
    )
    if AWAY.search(said):  # some libraries also speak of credentials, which they cannot fetch
        return lost
    if code in (401, 403) or isinstance(error, PermissionError) or DENIED.search(said):
        return PermissionError(
            f"{shown}: access is denied; check the credentials and the name ({_shorten(said)})"
        )
    if isinstance(error, FileNotFoundError) or ABSENT.search(said):
        return FileNotFoundError(f"there is no file {shown}; check the name of bucket and file")
    if isinstance(error, ValueError):  # not about the network
        return SourceError(f"{shown}: {_shorten(said)}")
    return lost


def _shorten(said: str) -> str:
    """Return what a library says, or its first sentences, or words.

    Examples
    --------
    >>> _shorten("access is denied"), _shorten(100 * "retry ")[-15:]
    ('access is denied', 'retry retry ...')
    >>> _shorten("No token. " + 100 * "retry ")
    'No token.'
    """
    if len(said) <= MOST_SAID:
        return said
    sentences, found, _ = said[:MOST_SAID].rpartition(". ")
    return f"{sentences}." if found else said[:MOST_SAID].rpartition(" ")[0] + " ..."
