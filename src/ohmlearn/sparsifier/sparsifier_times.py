"""Times given to a sparsifier: those of arriving edges, and those of the graphs asked for."""

import math
import time

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.times import (
    check_duration_unit,
    check_moment,
    check_moment_unit,
    describe_time,
    find_unix_unit,
    most_ahead,
)
from ohmlearn.errors import InputError, InPython, Param, Setting
from ohmlearn.graph.time_view import TimeView
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions

SKIP = f"use {Setting('latest', ...)} and {Setting('on_bad', 'skip')}{InPython(' of read_edges')}"
MOST_AHEAD = 1e6  # half-lives or horizons; an edge so far ahead has probably a wrong time
MOST_HALF_LIVES = 2.0**40  # between time 0 and an edge: as in cpp/sampling/decay.hpp


def choose_view(
    options: SparsifierOptions, latest: float | None, at: object, since: object
) -> TimeView | None:
    """Return the graph that is asked for; None if times do not matter."""
    has_half_life = options.decay < math.inf
    if at is not None and not has_half_life:
        raise InputError(
            f"{Param('at')} is the time to which weights have faded; it needs a "
            f"{Param('half_life')}"
        )
    if since is not None and options.reach is None:
        raise InputError(
            f"{Param('since')} needs a sparsifier that keeps times; make it with "
            f"{Param('horizon')}, for example {Setting('horizon', math.inf)}"
        )
    if has_half_life:
        moment = (latest or 0.0) if at is None else check_moment("at", at)  # None: no edge yet
        if latest is not None and moment < latest:
            raise InputError(
                f"{Param('at', moment)} is before the latest edge, of time {latest}: what has "
                f"been dropped since then cannot come back; ask for a later time"
            )
        return TimeView(at=moment, half_life=options.decay)
    if options.reach is None:
        return None
    oldest = -math.inf if latest is None else latest - options.reach
    start = oldest if since is None else check_moment("since", since)
    if start < oldest:
        raise InputError(
            f"{Param('since', start)} is before {oldest}, the earliest time that "
            f"{Param('horizon', options.reach)} keeps; give {Param('horizon')} a larger value"
        )
    return TimeView(since=start)


def check_moments(unit: str | None, at: object, since: object) -> None:
    """Refuse a number for a stream whose times are dates, and a date for one with numbers."""
    if unit is not None:  # that of a pipe is not known before it is read
        check_moment_unit("at", at, unit)
        check_moment_unit("since", since, unit)


def check_arrivals(t: NDArray[np.float64], latest: float, options: SparsifierOptions) -> None:
    """Refuse times so far after all earlier ones that they are probably wrong."""
    if len(t) == 0:
        return
    name = "half_life" if options.reach is None else "horizon"
    given = getattr(options, name)
    span = options.decay if options.reach is None else options.reach
    if latest == -math.inf and isinstance(given, str):
        unit = find_unix_unit(t)
        if unit not in (None, "s"):  # a duration in seconds, but times in a smaller unit
            check_duration_unit(name, given, unit)
    low, high = float(t.min()), float(t.max())
    if options.reach is None and max(high, -low) > MOST_HALF_LIVES * span:
        at = int(np.argmax(np.abs(t)))
        raise InputError(
            f"{Param('half_life', options.half_life)} is too short for times such as "
            f"{InPython(f't[{at}] = {t[at]}', str(t[at]))}: float64 numbers of that size are too "
            f"coarse; subtract a constant from all times"
        )
    if isinstance(given, str) and high > time.time() + most_ahead(span):  # so these are seconds
        at = int(np.argmax(t))
        raise InputError(
            f"{_at(at, describe_time(high, True))} is {high - time.time():.0f} s ahead of the "
            f"clock, so that with {Param(name, given)} all other edges would be forgotten; "
            f"correct it, or {SKIP}"
        )
    start = latest if latest > -math.inf else t[0]
    if high - start <= MOST_AHEAD * span:
        return
    before = np.maximum.accumulate(np.concatenate([[start], t[:-1]]))
    ahead = t - before > MOST_AHEAD * span
    if ahead.any():
        at = int(np.argmax(ahead))
        raise InputError(
            f"{_at(at, t[at])} is more than a million times {Param(name, given)} after all earlier "
            f"edges, so that these would be forgotten; if it is a typing error, correct it, or "
            f"{SKIP}"
        )


def _at(position: int, time: object) -> InPython:
    return InPython(f"t[{position}] = {time}", f"the time {time}")
