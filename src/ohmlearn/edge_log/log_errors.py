"""The error of a log that cannot be read."""

from pathlib import Path
from typing import NoReturn

from ohmlearn.errors import Place, SourceError

__all__ = ["LogError", "refuse_damaged"]


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
