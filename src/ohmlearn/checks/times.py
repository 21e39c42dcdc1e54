"""Times of edges, and durations. Inside, a time is a float64.

Numbers stay as they are. Dates become seconds since 1970 (UTC), so that they can be compared with
each other, and durations such as "7d" become seconds, too. A date without a time zone is in UTC.
"""

import math
import re
import time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.parameters import Allowed, check_value
from ohmlearn.errors import InputError, Param, Setting, bad_value

Floats = NDArray[np.float64]

UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*(ms|s|min|h|d|w)\s*", re.IGNORECASE)
UNIX_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # per second
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
YEAR_2001 = 978_307_200.0  # in Unix seconds
DAY = 86400.0
LARGEST_TIME = _core.LARGEST_TIME


def _as_duration(value: Any) -> float:
    """Return a number as it is, and a duration such as "7d" in seconds; NaN for other values."""
    if isinstance(value, str):
        match = DURATION.fullmatch(value)
        return float(match[1]) * UNITS[match[2].lower()] if match else math.nan
    if isinstance(value, np.timedelta64) or hasattr(value, "total_seconds"):
        return float(np.timedelta64(value) / np.timedelta64(1, "s"))
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan


DURATIONS = Allowed(
    lambda value: _as_duration(value) > 0.0,
    "a positive number in the unit of the times, or a duration such as '7d', '12h', '30min', '45s'",
)


def check_duration(name: str, value: Any) -> float:
    """Return a positive duration: a number in the unit of the times, or seconds."""
    return _as_duration(check_value(name, value, DURATIONS))


def check_duration_unit(name: str, value: object, unit: str | None) -> float:
    """Return a duration for times in a unit, which is that of `EdgeStream.time_unit`.

    A duration such as "7d" is in seconds, so the times must be dates or Unix seconds.
    """
    found = check_duration(name, value)
    if isinstance(value, Real) or unit in ("s", "date"):
        return found
    if unit is None:
        raise InputError(
            f"{Param(name, value)} needs times in seconds, but they are numbers whose unit is not "
            f"known; give {Param(name)} as a number in their unit; if that is seconds, "
            f"{Setting(name, found)}"
        )
    raise InputError(
        f"{Param(name, value)} needs times in seconds, but they are Unix {UNIT_NAMES[unit]}; give "
        f"a number in that unit, {Setting(name, found * UNIX_UNITS[unit])}"
    )


def check_moment_unit(name: str, value: object, unit: str) -> None:
    """Refuse a number for times that are dates, and a date for Unix times not in seconds."""
    is_number = isinstance(value, Real)
    if value is None or unit == "s" or is_number != (unit == "date"):
        return
    if is_number:
        raise InputError(
            f"{Param(name, value)} is a number, but the times are dates; give a date such as "
            f"'2026-03-31'"
        )
    raise InputError(
        f"{Param(name, value)} is a date, but the times are Unix {UNIT_NAMES[unit]}; give a number "
        f"in that unit"
    )


def tomorrow() -> float:
    """Return when tomorrow ends (UTC), in seconds since 1970.

    Dates must not be later: a wrong year would silence a stream that forgets. A day is left for
    clocks and time zones that differ.
    """
    return (math.floor(time.time() / DAY) + 2) * DAY


def most_ahead(memory: float) -> float:
    """Return how many seconds ahead of the clock an edge may be, if edges are forgotten so fast.

    An edge that is ahead by more than a half-life or a window would silence all others. A minute is
    left for clocks that differ, and no more than a day.
    """
    return min(max(memory, 60.0), DAY)


def find_unix_unit(times: Floats) -> str | None:
    """Return the unit in which the median of some numbers is a time between 2001 and tomorrow."""
    if times.size == 0:
        return None
    # Of two numbers in the middle the lower one: their mean may be neither here nor there.
    middle = (times.size - 1) // 2
    median = float(np.partition(times, middle)[middle])
    last = tomorrow()
    fits = (unit for unit, per in UNIX_UNITS.items() if YEAR_2001 <= median / per <= last)
    return next(fits, None)


def check_times(values: object) -> Floats:
    """Return times as float64, dates as seconds since 1970.

    Refuse times that are missing or not finite, and dates later than tomorrow.
    """
    array, times, is_date = as_times(values)
    if times.size == 0:
        return times
    latest = tomorrow() if is_date else LARGEST_TIME
    if times.max() <= latest and times.min() >= -LARGEST_TIME:  # NaN if one of the times is
        return times
    at = int(np.argmax(~((times <= latest) & (times >= -LARGEST_TIME))))
    remedy = "drop or correct such edges first"
    if is_date and times[at] > latest:
        raise ValueError(
            f"dates must not be later than tomorrow, but t[{at}] = {array[at]}; {remedy}"
        )
    if array.dtype.kind in "OUT" and not is_missing(array[at]) and math.isnan(times[at]):
        most = "dates such as 2026-03-31T12:30:00Z" if is_date else "numbers"
        raise ValueError(
            f"times must be all numbers or all dates; these are {most}, but t[{at}] = "
            f"{array[at]!r}; {remedy}"
        )
    must = "finite" if not math.isfinite(times[at]) else "below 2**63 in size"
    raise ValueError(f"times must be {must}, but t[{at}] = {array[at]}; {remedy}")


def as_times(values: object, dates: bool | None = None) -> tuple[NDArray[Any], Floats, bool]:
    """Return values as an array, as times with NaN for those that are none, and if they are dates.

    Objects and texts are dates if `dates` says so, by default if most of them are. The others are
    NaN.
    """
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # pandas, with a time zone
        values = np.asarray(values, dtype="M8[ns]")
    array = np.asarray(values)
    is_array = hasattr(values, "dtype") or hasattr(values, "__array__")
    if not is_array and array.dtype.kind not in "iufM":  # texts, also of numbers among texts
        array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"t must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind == "M":
        return array, _seconds(array), True
    if array.dtype.kind in "iuf":
        return array, np.ascontiguousarray(array, np.float64), False
    if array.dtype.kind not in "OUT":
        raise ValueError(f"times must be numbers or dates, but t has dtype {array.dtype}")
    pairs = [_from_object(value) for value in array]
    times = np.array([pair[0] for pair in pairs], dtype=np.float64)
    are_dates = np.array([pair[1] for pair in pairs], dtype=bool)
    known = ~np.isnan(times)
    if dates is None:
        n_dates = np.count_nonzero(are_dates[known])
        dates = bool(n_dates > 0 and 2 * n_dates >= np.count_nonzero(known))
    times[are_dates != dates] = np.nan
    return array, times, dates


def is_missing(value: object) -> bool:
    """Return whether a value stands where there is none: None, NaN, NaT, an empty text."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or bool(value != value)  # only NaN and NaT differ from themselves


def check_moment(name: str, value: Any) -> float:
    """Return one time, which may be a date as a string."""
    if isinstance(value, bool | np.bool_) or np.ndim(value) != 0:
        raise bad_value(name, "be one time, a number or a date", value)
    found, is_date = _from_object(value)
    if math.isnan(found) or (isinstance(value, str) and not is_date):
        dates = "'2026-03-31' or '2026-03-31T12:30:00Z'"
        raise bad_value(name, f"be a time, such as 12.5, or a date, such as {dates}", value)
    if not abs(found) <= LARGEST_TIME:
        raise bad_value(name, "be finite", value)
    return found


def show_time(value: float, unit: str | None) -> str:
    """Return a time as a date, or as a number if its unit is not known."""
    return describe_time(value, unit in ("date", "s"))


def describe_time(value: float, is_date: bool) -> str:
    """Return a time for a message: a number, or a date."""
    if is_date and abs(value) < 1e12:
        return str(np.datetime64(round(value), "s"))
    return str(int(value)) if abs(value) < 1e19 and value.is_integer() else repr(value)


def _seconds(dates: NDArray[Any]) -> Floats:
    """Return seconds since 1970; NaN for a missing date."""
    unit = np.datetime_data(dates.dtype)[0]
    parts = PARTS.get(unit, 1)
    ticks = dates.astype(f"M8[{unit if parts > 1 else 's'}]").astype(np.int64)
    whole, rest = np.divmod(ticks, parts)
    found: Floats = whole + rest / parts
    found[np.isnat(dates)] = np.nan
    return found


def _from_object(value: Any) -> tuple[float, bool]:
    """Return a time, NaN if the value is none, and whether it is a date."""
    if isinstance(value, str):
        text = value.strip().encode(errors="replace")
        date = _core.parse_time(text, True)
        return (_core.parse_time(text, False), False) if math.isnan(date) else (date, True)
    if isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_):
        try:
            return float(value), False
        except (OverflowError, ValueError):  # an integer of many digits; a signalling NaN
            return math.inf, False
    try:
        if hasattr(value, "to_datetime64"):  # pandas
            value = value.to_datetime64()
        elif getattr(value, "tzinfo", None) is not None:
            value = value.replace(tzinfo=None) - value.utcoffset()
        if isinstance(value, np.datetime64) or hasattr(value, "isoformat"):
            return float(_seconds(np.array([value], dtype="M8"))[0]), True
    except (ValueError, TypeError, OverflowError):
        pass
    return math.nan, False
