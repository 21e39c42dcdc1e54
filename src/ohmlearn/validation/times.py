"""Times of edges, and durations. Inside, a time is a float64.

Numbers stay as they are. Dates become seconds since 1970 (UTC), so that they can be compared with
each other, and durations such as "7d" become seconds, too.
"""

import math
import re
import time
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core

__all__ = ["DURATION_KIND", "check_duration", "check_moment", "check_times", "describe_time"]

Floats = NDArray[np.float64]

UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*(ms|s|min|h|d|w)\s*", re.IGNORECASE)
AHEAD = 86400.0  # how far a date may lie in the future: clocks and time zones differ
LARGEST_TIME = 2.0**60


def check_duration(name: str, value: Any) -> float:
    """Return a positive duration: a number in the unit of the times, or a string in seconds.

    Examples
    --------
    >>> check_duration("half_life", "7d"), check_duration("half_life", 0.5)
    (604800.0, 0.5)
    >>> check_duration("half_life", "a week")
    Traceback (most recent call last):
    ...
    ValueError: half_life must be a positive number in the unit of the times, or a duration such as
    '7d', '12h', '30min', '45s', got 'a week'
    """
    found = math.nan
    if isinstance(value, str):
        match = DURATION.fullmatch(value)
        if match:
            found = float(match[1]) * UNITS[match[2].lower()]
    elif isinstance(value, np.timedelta64) or hasattr(value, "total_seconds"):
        found = float(np.timedelta64(value) / np.timedelta64(1, "s"))
    elif isinstance(value, Real) and not isinstance(value, bool):
        found = float(value)
    if not found > 0.0:
        raise ValueError(
            f"{name} must be a positive number in the unit of the times, or a duration such as "
            f"'7d', '12h', '30min', '45s', got {value!r}"
        )
    return found


class DurationKind:
    """A constraint of parameters that are durations, see `check_parameters`."""

    def allows(self, value: Any) -> bool:
        """Return whether a value is a duration."""
        try:
            check_duration("value", value)
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        return "a positive number or a duration such as '7d', '12h', '30min', '45s'"


DURATION_KIND = DurationKind()


def check_times(values: Any, name: str = "t") -> Floats:
    """Return times as float64; dates as seconds since 1970.

    Raises
    ------
    ValueError
        If a time is missing or not finite, or a date is later than tomorrow.

    Examples
    --------
    >>> check_times(np.array(["1970-01-01T00:01", "1970-01-01T01:00"], "M8[s]"))
    array([  60., 3600.])
    >>> check_times([3, 1, 2])
    array([3., 1., 2.])
    >>> check_times([1.0, float("nan")])
    Traceback (most recent call last):
    ...
    ValueError: times must be finite, but t[1] = nan; drop or correct such edges first
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return np.empty(0)
    is_date = array.dtype.kind == "M"
    if array.dtype.kind == "O":  # datetime, pandas.Timestamp
        array, is_date = _from_objects(array, name), True
    if not is_date and array.dtype.kind not in "iuf":
        raise ValueError(
            f"times must be numbers or dates, but {name}[0] = {array[0]!r} ({array.dtype}); "
            f"convert them, for example with pandas.to_datetime"
        )
    times = _seconds(array) if is_date else np.ascontiguousarray(array, np.float64)
    latest = time.time() + AHEAD if is_date else LARGEST_TIME
    lowest, highest = _core.find_range(times)  # NaN if one of the times is
    if highest <= latest and lowest >= -LARGEST_TIME:
        return times
    at = int(np.argmax(~((times <= latest) & (times >= -LARGEST_TIME))))
    if is_date and times[at] > latest:
        raise ValueError(
            f"dates must not be later than tomorrow, but {name}[{at}] = {array[at]}; drop or "
            f"correct such edges first"
        )
    must = "finite" if not math.isfinite(times[at]) else "below 2**60 in size"
    raise ValueError(
        f"times must be {must}, but {name}[{at}] = {array[at]}; drop or correct such edges first"
    )


def check_moment(name: str, value: Any) -> float:
    """Return one time, which may be a date as a string.

    Examples
    --------
    >>> check_moment("since", "1970-01-02"), check_moment("since", 7)
    (86400.0, 7.0)
    """
    if isinstance(value, str):
        try:
            value = np.datetime64(value)
        except ValueError:
            raise ValueError(
                f"{name} must be a time, such as 12.5, or a date, such as '2026-03-31', got "
                f"{value!r}"
            ) from None
    if np.ndim(value) != 0:
        raise ValueError(f"{name} must be one time, got {value!r}")
    if isinstance(value, bool | np.bool_) or not (
        isinstance(value, Real | np.datetime64) or hasattr(value, "timestamp")
    ):
        raise ValueError(f"{name} must be a number or a date, got {value!r}")
    is_number = isinstance(value, Real)
    found = (
        float(value) if is_number else float(_seconds(_from_objects(np.array([value]), name))[0])
    )
    if not abs(found) <= LARGEST_TIME:
        raise ValueError(f"{name} must be finite, got {value!r}")
    return found


def describe_time(value: float, is_date: bool) -> str:
    """Return a time for a message: a number, or a date."""
    return f"{value:g}" if not is_date else str(np.datetime64(round(value), "s"))


def _seconds(dates: NDArray[Any]) -> Floats:
    """Return seconds since 1970; NaN for a missing date."""
    seconds = dates.astype("M8[s]")
    rest = (dates - seconds) / np.timedelta64(1, "s")
    found: Floats = seconds.astype(np.int64).astype(np.float64) + rest
    found[np.isnat(dates)] = np.nan
    return found


def _from_objects(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return dates as datetime64; those with a time zone in UTC."""
    if values.dtype.kind == "M":
        return values
    found = np.empty(len(values), "M8[us]")
    for at, value in enumerate(values):
        try:
            if getattr(value, "tzinfo", None) is not None:
                found[at] = np.datetime64(round(value.timestamp() * 1e6), "us")
            else:
                found[at] = np.datetime64(value)
        except (ValueError, TypeError):
            raise ValueError(
                f"times must be numbers or dates, but {name}[{at}] = {value!r}"
            ) from None
    return found
