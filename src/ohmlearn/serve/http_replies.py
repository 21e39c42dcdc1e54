"""Answers in JSON, and errors as such answers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ohmlearn.errors import query_style, render
from ohmlearn.serve.serve_errors import Refused

__all__ = ["JsonReply", "error_reply", "to_json"]


class JsonReply(Response):
    """An answer in JSON; see `to_json`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body; bytes are JSON already."""
        return content if isinstance(content, bytes) else to_json(content)


def error_reply(error: Refused) -> JsonReply:
    """Return the answer that says what is wrong; see the schema Error."""
    about: dict[str, Any] = {"status": error.status, "message": error.render(query_style)}
    about["remedy"] = None if error.remedy is None else render(error.remedy, query_style)
    for name in ("parameter", "value", "row", "retry_after"):
        about[name] = getattr(error, name)
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))  # whole seconds
    known = {name: part for name, part in about.items() if part is not None}
    return JsonReply({"error": known}, error.status, headers)


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
