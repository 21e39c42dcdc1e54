"""Times and durations as users give them."""

import datetime
import math
import time
from decimal import Decimal

import numpy as np
import pytest
from refuses import refuses

from ohmlearn.checks.times import (
    check_duration,
    check_duration_unit,
    check_moment,
    check_times,
    describe_time,
    find_unix_unit,
    tomorrow,
)

BERLIN = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7d", 604800.0),
        ("12 h", 43200.0),
        ("30MIN", 1800.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("2w", 1209600.0),
        (datetime.timedelta(days=2), 172800.0),
        (np.timedelta64(90, "m"), 5400.0),
        (3, 3.0),
        (math.inf, math.inf),
    ],
)
def test_durations(value, seconds):
    assert check_duration("half_life", value) == seconds


@pytest.mark.parametrize("value", ["", "7", "7 days", "-7d", 0, -1, math.nan, True, None, [1]])
def test_durations_that_are_none(value):
    with refuses(parameter="half_life"):
        check_duration("half_life", value)


def test_a_duration_as_text_needs_seconds():
    for unit in ("s", "date"):
        assert check_duration_unit("horizon", "2h", unit) == 7200.0
    for unit in ("s", "date", "ms", "us", "ns", None):
        assert check_duration_unit("horizon", 5, unit) == 5.0
    with pytest.raises(ValueError, match="they are Unix microseconds; give"):
        check_duration_unit("horizon", datetime.timedelta(hours=2), "us")
    with refuses(parameter="horizon", value="2h"):
        check_duration_unit("horizon", "2h", None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], [1.0, 2.0]),
        (np.array([1.5], np.float32), [1.5]),
        (np.array([2**40], np.uint64), [2.0**40]),
        ([], []),
        (["1970-01-01T02:00+02:00", "1970-01-02"], [0.0, 86400.0]),
        ([datetime.datetime(1970, 1, 1, 2, tzinfo=BERLIN)], [0.0]),
        ([datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)], [86400, 1.5]),
        ([Decimal("0.5"), 3], [0.5, 3.0]),
        (np.array(["1970-01-02"], "M8[D]"), [86400.0]),
        (np.array(["1970-02"], "M8[M]"), [2678400.0]),
        (np.array([1500], "M8[ms]"), [1.5]),
        (np.array([-(10**9), -(5 * 10**8)], "M8[ns]"), [-1.0, -0.5]),
        (np.array([3], "M8[10s]"), [30.0]),
    ],
)
def test_times(values, expected):
    found = check_times(values)
    assert found.dtype == np.float64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, math.nan], r"times must be finite, but t\[1\] = nan"),
        ([1, math.inf], r"times must be finite, but t\[1\] = inf"),
        ([-(2.0**64)], "below 2..63 in size"),
        (np.array(["NaT"], "M8[s]"), r"times must be finite, but t\[0\] = NaT"),
        (["1970-01-01", None], r"times must be finite, but t\[1\] = None"),
        (["1970-01-01", "soon"], r"these are dates such as .*, but t\[1\] = 'soon'"),
        (["1970-01-01", "1970-01-02", 5], r"all dates; these are dates .* but t\[2\] = 5"),
        ([3, 5, "1970-01-01"], r"these are numbers, but t\[2\] = '1970-01-01'"),
        (["9999-12-31"], r"dates must not be later than tomorrow, but t\[0\] = 9999-12-31"),
        ([True], r"these are numbers, but t\[0\] = True"),
        (np.array([True]), "t has dtype bool"),
        ([[1]], "one-dimensional"),
    ],
)
def test_times_that_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        check_times(values)


def test_moments():
    assert check_moment("at", 5) == 5.0
    assert check_moment("at", "2026-03-31") == 1774915200.0
    assert check_moment("at", "2026-03-31T12:30:00+02:00") == 1774953000.0
    assert check_moment("at", datetime.datetime(2026, 3, 31, 2, tzinfo=BERLIN)) == 1774915200.0
    assert check_moment("at", np.datetime64("2026-03-31")) == 1774915200.0
    for bad in ("soon", "2026", True, None, [5], np.array([5]), math.nan, math.inf, "NaT"):
        with refuses(parameter="at"):
            check_moment("at", bad)


def test_the_unit_of_unix_times():
    now = time.time()
    for unit, per in {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}.items():
        assert find_unix_unit(np.array([0.0, now * per, now * per])) == unit
        assert find_unix_unit(np.array([979e6 * per, now * per * 1e9])) == unit
    for other in ([], [5.0], [978e6], [now + 3 * 86400], [now * 30], [-now], [2026.0]):
        assert find_unix_unit(np.array(other)) is None


def test_tomorrow_ends_at_midnight():
    assert 86400 <= tomorrow() - time.time() <= 2 * 86400
    assert tomorrow() % 86400 == 0


def test_times_in_messages():
    assert describe_time(-0.25, False) == "-0.25"
    assert describe_time(1774953000.0, True) == "2026-03-31T10:30:00"
    assert describe_time(1e300, True) == "1e+300"
