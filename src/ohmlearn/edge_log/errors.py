"""The error of a log that cannot be read."""

from pathlib import Path
from typing import NoReturn

from ohmlearn.streams.errors import SourceError

__all__ = ["LogError", "refuse_damaged"]


class LogError(SourceError):
    """A log of edges cannot be used; the message names the file and what is wrong with it."""

    __module__ = "ohmlearn.edge_log"


def refuse_damaged(path: Path, offset: int, problem: str) -> NoReturn:
    """Raise LogError for a file whose content has changed since it was written.

    Examples
    --------
    >>> refuse_damaged(Path("log/edges-1.arrows"), 128, "edges do not match their checksum")
    Traceback (most recent call last):
    ...
    ohmlearn.edge_log.LogError: log/edges-1.arrows, byte 128: edges do not match their checksum; ...
    """
    raise LogError(
        f"{path}, byte {offset}: {problem}; the file was damaged after it was written, so restore "
        f"the folder from a copy"
    )
