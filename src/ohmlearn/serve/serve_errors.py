"""Why a service does not take or answer something."""

from __future__ import annotations

import errno
import sqlite3

__all__ = ["Busy", "Gone", "Refused", "storage_error"]


class Refused(Exception):
    """Something that the service does not take; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Busy(Refused):
    """More work has come than can wait; try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(429, message)
        self.retry_after = retry_after


class Gone(ValueError):
    """Changes that are no longer kept."""


def storage_error(error: OSError | sqlite3.Error) -> Refused:
    """Return the refusal of something that could not be stored; the message names no path."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if is_full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return Refused(507, "the disk is full, so nothing was stored; send the batch again later")
    return Refused(503, f"nothing was stored, because the disk failed: {reason}; try again later")
