"""Times given to a sparsifier: those of arriving edges, and those of the graphs asked for."""

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.times import (
    check_duration_unit,
    check_moment,
    check_moment_unit,
    describe_time,
    find_unix_unit,
    most_ahead,
)
from ohmlearn.graph.time_view import TimeView
from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions

__all__ = ["check_arrivals", "check_moments", "choose_view"]

MOST_AHEAD = 1e6  # half-lives or horizons; an edge so far ahead has probably a wrong time
MOST_HALF_LIVES = 2.0**40  # between time 0 and an edge: as in cpp/sampling/decay.hpp


def choose_view(
    options: SparsifierOptions, latest: float | None, at: Any, since: Any
) -> TimeView | None:
    """Return the graph that is asked for; None if times do not matter.

    Examples
    --------
    >>> choose_view(SparsifierOptions(half_life=7), 100.0, None, None)
    TimeView(at=100.0, half_life=7.0, since=None)
    >>> choose_view(SparsifierOptions(half_life=7), 100.0, 99, None)
    Traceback (most recent call last):
    ...
    ValueError: at = 99.0 is before the latest edge, of time 100.0: what has been dropped since then
    cannot come back; ask for a later time
    """
    has_half_life = options.decay < math.inf
    if at is not None and not has_half_life:
        raise ValueError("at is the time to which weights have faded; it needs a half_life")
    if since is not None and options.reach is None:
        raise ValueError(
            "since needs a sparsifier that keeps times; make it with horizon=..., or math.inf"
        )
    if has_half_life:
        moment = latest if at is None else check_moment("at", at)
        if moment is None:  # no edge yet
            moment = 0.0
        if latest is not None and moment < latest:
            raise ValueError(
                f"at = {moment} is before the latest edge, of time {latest}: what has been dropped "
                f"since then cannot come back; ask for a later time"
            )
        return TimeView(at=moment, half_life=options.decay)
    if options.reach is None:
        return None
    oldest = -math.inf if latest is None else latest - options.reach
    start = oldest if since is None else check_moment("since", since)
    if start < oldest:
        raise ValueError(
            f"since = {start} is before {oldest}, where the horizon of {options.reach} before the "
            f"latest edge ends; give a longer horizon"
        )
    return TimeView(since=start)


def check_moments(unit: str | None, at: Any, since: Any) -> None:
    """Refuse a number for a stream whose times are dates, and a date for one with numbers."""
    if unit is not None:  # that of a pipe is not known before it is read
        check_moment_unit("at", at, unit)
        check_moment_unit("since", since, unit)


def check_arrivals(t: NDArray[np.float64], latest: float, options: SparsifierOptions) -> None:
    """Refuse times so far after all earlier ones that they are probably wrong.

    Examples
    --------
    >>> check_arrivals(np.array([1.0, 3e9, 2.0]), 0.0, SparsifierOptions(half_life=7))
    Traceback (most recent call last):
    ...
    ValueError: t[1] = 3000000000.0 is more than a million times half_life = 7 after all earlier
    edges, so that these would be forgotten; if it is a typing error, correct it, or use
    read_edges(..., latest=..., on_bad='skip')
    """
    if len(t) == 0:
        return
    if latest == -math.inf:
        _check_first(t, options)
    name = "half_life" if options.reach is None else "horizon"
    span = options.decay if options.reach is None else options.reach
    low, high = _core.find_range(t)
    if options.reach is None and max(high, -low) > MOST_HALF_LIVES * span:
        at = int(np.argmax(np.abs(t)))
        raise ValueError(
            f"half_life = {options.half_life!r} is too short for times such as t[{at}] = {t[at]}: "
            f"float64 numbers of that size are too coarse; subtract a constant from all times"
        )
    given = getattr(options, name)
    if isinstance(given, str) and high > time.time() + most_ahead(span):  # so these are seconds
        at = int(np.argmax(t))
        raise ValueError(
            f"t[{at}] = {describe_time(high, True)} is {high - time.time():.0f} s ahead of the "
            f"clock, so that with {name} = {given!r} all other edges would be forgotten; correct "
            f"it, or use read_edges(..., latest=..., on_bad='skip')"
        )
    start = latest if latest > -math.inf else t[0]
    if high - start <= MOST_AHEAD * span:
        return
    before = np.maximum.accumulate(np.concatenate([[start], t[:-1]]))
    ahead = t - before > MOST_AHEAD * span
    if not ahead.any():
        return
    at = int(np.argmax(ahead))
    raise ValueError(
        f"t[{at}] = {t[at]} is more than a million times {name} = {given!r} after "
        f"all earlier edges, so that these would be forgotten; if it is a typing error, correct "
        f"it, or use read_edges(..., latest=..., on_bad='skip')"
    )


def _check_first(t: NDArray[np.float64], options: SparsifierOptions) -> None:
    """Refuse a duration in seconds if the first times are Unix times in a smaller unit."""
    given = options.half_life if options.reach is None else options.horizon
    if isinstance(given, str):
        unit = find_unix_unit(t)
        if unit not in (None, "s"):
            check_duration_unit("half_life" if options.reach is None else "horizon", given, unit)
