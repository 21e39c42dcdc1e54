"""Logs of a server: one line for each event, as JSON or as text, on the standard error."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGERS = ("ohmlearn.serve", "uvicorn", "uvicorn.error", "asyncio")
MOST_SHOWN = 1000  # warnings that are remembered, so that each is shown once
# The attributes of every record; others were given as `extra`.
OTHERS = {"message", "asctime", "color_message", "taskName"}  # that loggers and uvicorn add
USUAL = frozenset(vars(logging.makeLogRecord({}))) | OTHERS


class Lines(logging.Formatter):
    """A record as a JSON object, or as a line to read that indented ones of a traceback follow."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record: time, level, event, and what else was given."""
        about = _describe(record, self.formatException)
        if self._form == "json":
            return json.dumps(about, default=str)
        trace = about.pop("traceback", None)
        line = f"{about.pop('at')} {about.pop('level'):<7} {_visible(str(about.pop('event')))}"
        about.pop("logger")
        line += "".join(f" {name}={_visible(str(value))}" for name, value in about.items())
        # Indented, because the text of an error may look like a line of the log.
        rest = [] if trace is None else [f"    {_visible(x)}" for x in str(trace).splitlines()]
        return "\n".join([line, *rest])


def _describe(record: logging.LogRecord, show: Any) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC)
    about: dict[str, Any] = {
        "at": moment.isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "event": record.getMessage(),
        "logger": record.name,
    }
    about |= {name: value for name, value in vars(record).items() if name not in USUAL}
    if record.exc_info and record.exc_info[0] is not None:
        about["error"] = f"{record.exc_info[0].__name__}: {record.exc_info[1]}"
        about["traceback"] = show(record.exc_info)
    return about


def _visible(text: str) -> str:
    """Write out control characters, so that a client cannot forge lines of the log."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


@contextmanager
def logs_to(form: str, stream: TextIO | None = None) -> Iterator[None]:
    """Write the logs of the server, and warnings, to a stream for a while and to nothing else.

    `form` is "json" or "text". The stream is the standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form))
    before = []
    for name in LOGGERS:
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers, logger.level, logger.propagate))
        logger.handlers, logger.propagate = [handler], False
        # uvicorn's own events say nothing that ours do not, unless something is wrong.
        logger.setLevel(logging.INFO if name.startswith("ohmlearn") else logging.ERROR)
    shown: set[str] = set()

    def show_once(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            if len(shown) >= MOST_SHOWN:
                shown.clear()
            shown.add(text)
            logging.getLogger(LOGGERS[0]).warning("%s", text)

    show_before, warnings.showwarning = warnings.showwarning, show_once
    try:
        yield
    finally:
        warnings.showwarning = show_before
        for logger, handlers, level, propagate in before:
            logger.handlers, logger.level, logger.propagate = handlers, level, propagate
            logger.manager._clear_cache()  # type: ignore[attr-defined]
        handler.close()
