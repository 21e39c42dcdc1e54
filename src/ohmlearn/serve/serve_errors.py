"""Why a service does not take or answer something."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ohmlearn.edge_log import LogError
from ohmlearn.errors import UNSET, InputError, OhmError, Place

LATER = {429: 1.0, 503: 5.0, 507: 5.0}  # seconds after which to try again


class Refused(OhmError):
    """A request or a batch that the service does not take or answer, with the status of HTTP.

    The message is for the client: it must not contain names of files on this machine. `row` is the
    row of the body that is wrong, counted from 1; `retry_after` is in seconds.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        row: int | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        remedy: str | None = None,
        value: Any = UNSET,
    ) -> None:
        place = None if row is None else Place("", row)
        super().__init__(message, remedy=remedy, place=place, value=value)
        self.status, self.row, self.headers = status, row, dict(headers or {})
        self.retry_after = LATER.get(status) if retry_after is None else retry_after


@contextmanager
def refusals() -> Iterator[None]:
    """Let clients know which of the values that they sent is wrong."""
    try:
        yield
    except LogError:  # a damaged file, whose name is for the log of the server only
        raise
    except InputError as error:
        row = None if error.place is None else error.place.row
        value = UNSET if error.value is None else error.value
        raise Refused(400, error.message, remedy=error.remedy, row=row, value=value) from None
    except ValueError as error:
        raise Refused(400, " ".join(str(error).split())) from None


def storage_error(error: OSError | sqlite3.Error) -> Refused:
    """Return the refusal of something that could not be stored; the message names no path."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if is_full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return Refused(507, "the disk is full, so nothing was stored; send the batch again later")
    return Refused(503, f"nothing was stored, because the disk failed: {reason}; try again later")
