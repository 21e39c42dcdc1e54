"""JSON answers, and errors that become one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

__all__ = ["HttpError", "JsonReply", "error_reply", "to_json"]


class HttpError(Exception):
    """A request that cannot be answered, and why.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        A sentence for the client. It must not contain names of files on this machine.
    row : int, optional
        The row of the body that is wrong, counted from 1.
    retry_after : float, optional
        After how many seconds to try again.
    headers : dict, optional
        More headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        row: int | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.row = status, message, row
        self.retry_after = retry_after
        self.headers = dict(headers or {})


class JsonReply(Response):
    """An answer in JSON; see `to_json`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body; bytes are JSON already."""
        return content if isinstance(content, bytes) else to_json(content)


def error_reply(error: HttpError) -> JsonReply:
    """Return the answer that says what is wrong."""
    about: dict[str, Any] = {"status": error.status, "message": error.message}
    headers = dict(error.headers)
    if error.row is not None:
        about["row"] = error.row
    if error.retry_after is not None:
        about["retry_after"] = error.retry_after
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))  # whole seconds
    return JsonReply({"error": about}, error.status, headers)


def to_json(content: Any) -> bytes:
    """Return content as JSON in UTF-8. Numbers that JSON does not have, such as nan, become null.

    Examples
    --------
    >>> to_json({"a": [1.5, float("nan")], "b": "é"}).decode()
    '{"a":[1.5,null],"b":"é"}'
    """
    try:
        text = _dump(content)
    except ValueError:  # rare, so only then everything is looked at
        text = _dump(_finite(content))
    # A lone surrogate cannot be written in UTF-8; ids and labels are checked, so there is none.
    return text.encode("utf-8", "replace")


def _dump(content: Any) -> str:
    return json.dumps(
        content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )


def _plain(value: Any) -> Any:
    """Return numpy's scalars and arrays as Python objects."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _finite(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
