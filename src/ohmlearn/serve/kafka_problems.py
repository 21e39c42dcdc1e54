"""What went wrong with Kafka: shown in the status, and logged once a minute."""

from __future__ import annotations

import logging
import time
from typing import Any

from confluent_kafka import KafkaError

from ohmlearn.serve.serve_errors import Refused

__all__ = ["Moved", "Problems", "reason_of"]

RECENT = 60.0  # seconds for which an error is shown as a problem
logger = logging.getLogger(__name__)


class Problems:
    """The last error, and which errors were logged recently.

    Attributes
    ----------
    last : dict or None
        The message of the last error, and its Unix time, "at".
    """

    def __init__(self) -> None:
        self.last: dict[str, Any] | None = None
        self._logged: dict[Any, float] = {}  # when an error was logged

    def note(self, message: str, kind: Any = None) -> None:
        """Keep an error, and log it unless the same or its kind was just logged."""
        now = time.time()
        self.last = {"message": message, "at": now}
        kind = message if kind is None else kind
        if now - self._logged.get(kind, 0.0) > RECENT:
            logger.warning("Kafka: %s", message)
            self._logged = {key: at for key, at in self._logged.items() if now - at < RECENT}
            self._logged[kind] = now

    def current(self) -> str | None:
        """Return the last error, if it is recent."""
        last = self.last
        return last["message"] if last is not None and time.time() - last["at"] < RECENT else None


class Moved(RuntimeError):
    """The folder is not where the consumer was."""


def reason_of(error: BaseException) -> str:
    """Return what an error says to clients; paths of files are for the log of the server only."""
    first = error.args[0] if error.args else None
    if isinstance(first, KafkaError):
        return first.str()
    if isinstance(error, Refused | Moved):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}; the log of the server has the reason"
