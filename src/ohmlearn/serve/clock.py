"""The time of edges that come without one."""

from __future__ import annotations

import logging
import time

__all__ = ["Clock"]

JUMP = 3600.0  # seconds by which the clock of the system may be set, at once
PATIENCE = 600.0  # seconds after which a new time is believed
logger = logging.getLogger(__name__)


class Clock:
    """Unix time that survives a clock of the system that is set wrong for a while.

    One edge with a time in the far future would make all others look old. So when the clock of the
    system jumps by more than an hour against a steady clock, time goes on as before. A new time
    that stays for ten minutes is believed.

    Examples
    --------
    >>> clock = Clock()
    >>> abs(clock.now() - time.time()) < 1.0
    True
    """

    def __init__(self) -> None:
        self._offset = time.time() - steady_time()
        self._since: float | None = None  # when the clock of the system jumped

    def now(self) -> float:
        """Return the time."""
        steady = steady_time()
        offset = time.time() - steady
        if abs(offset - self._offset) <= JUMP:
            self._offset, self._since = offset, None
        elif self._since is None:
            self._since = steady
            logger.warning("the clock has jumped by %.0f s; ignored", offset - self._offset)
        elif steady - self._since > PATIENCE:
            logger.warning("the clock stays set by %.0f s; believed", offset - self._offset)
            self._offset, self._since = offset, None
        return steady + self._offset


def steady_time() -> float:
    """Return seconds that are never set; on Linux they also pass while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
