"""The manifest of a log, the small file that says what the others are; errors about all of them.

It is replaced as a whole: written aside, flushed to disk, renamed.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ohmlearn._arrays_file import write_whole
from ohmlearn.errors import Place, SourceError
from ohmlearn.reading.file_names import LOG_MANIFEST

FORMAT = "ohmlearn edge log"
VERSION = 1


class LogError(SourceError):
    """A log of edges cannot be used; the message names the file and what is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import EdgeLog
    >>> from ohmlearn.edge_log import LogError
    >>> with tempfile.TemporaryDirectory() as folder, EdgeLog(folder) as log:
    ...     _ = log.append([1], [2])
    ...     try:
    ...         log.remove([1], [3], missing="raise")
    ...     except LogError as error:
    ...         print(error)
    1 of 1 edges between pairs match no live edge of ... at position 0; nothing was removed
    """

    __module__ = "ohmlearn.edge_log"


def refuse_damaged(path: Path, offset: int, problem: str) -> NoReturn:
    """Raise LogError for a file whose content has changed since it was written."""
    remedy = "the file was damaged after it was written, so restore the folder from a copy"
    raise LogError(problem, remedy=remedy, place=Place(str(path), part=f"byte {offset}"))


@dataclass(frozen=True)
class Manifest:
    """What a log is made of."""

    journal: int = 1  # number of the one in use; compaction starts a new one
    n_head: int = 0  # entries that compaction has written, for earlier operations
    n_operations: int = 0  # how many operations these were
    generation: int = 0  # how many sparsifiers have been built
    has_times: bool | None = None  # None if that is only known from the journal
    sparsifier: dict[str, Any] = field(default_factory=dict)  # parameters, with the seed

    def write(self, folder: Path) -> None:
        """Replace the manifest of a folder."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        content["checksum"] = _checksum(content)
        write_whole(folder / LOG_MANIFEST, json.dumps(content, indent=1).encode())
        sync_folder(folder)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder; raise LogError if it is damaged or of another version."""
        path = folder / LOG_MANIFEST
        try:
            content = json.loads(path.read_bytes())
            checksum = content.pop("checksum")
            if content["format"] != FORMAT or checksum != _checksum(content):
                raise ValueError
            del content["format"]
            version = content.pop("version")
            if version == VERSION:
                return cls(**content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{path} is damaged: its checksum does not match; restore it from a copy"
            raise LogError(what) from error
        raise LogError(
            f"{path} has format version {version}, but this ohmlearn reads version {VERSION}; use "
            f"the ohmlearn that wrote it"
        )


def sync_folder(folder: Path) -> None:
    """Flush the names of the files of a folder to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
