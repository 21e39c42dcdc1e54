"""Which times a stream accepts. All readers ask the same rule."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from itertools import pairwise
from numbers import Real

import numpy as np

from ohmlearn import _core
from ohmlearn.checks.times import (
    LARGEST_TIME,
    UNIX_UNITS,
    Floats,
    as_times,
    check_moment,
    describe_time,
    find_unix_unit,
    is_missing,
    tomorrow,
)
from ohmlearn.errors import Param
from ohmlearn.nodes.node_ids import Strings, decode_ids, take
from ohmlearn.reading.source_errors import BadRows, refuse_source, shorten

SAMPLE = 1000  # times of a batch that are compared with the unit of the stream
LOCAL_DATE = re.compile(r"\s*([0-3]?\d)([/.-])([0-3]?\d)\2(\d{4})(?!\d)")
DATE = "a date such as 2026-03-31 or 2026-03-31T12:30:00Z"


class TimeRule:
    """Which times a stream accepts; its first times decide.

    Times are dates, Unix times in some unit, or other numbers. Dates and Unix times must not be
    later than tomorrow, unless `latest` says another limit. Other numbers have no limit by default.
    """

    def __init__(self, latest: object = None) -> None:
        self._given = latest
        self._given_date = latest is not None and not isinstance(latest, Real | Decimal)
        self._tomorrow = tomorrow()
        self.is_known = False  # whether a time has been seen
        self.unit: str | None = None  # "date", "s", "ms", "us", "ns", or None for other numbers
        self.live = False  # whether the stream may last for days, so that tomorrow moves on

    @property
    def dates(self) -> bool | None:
        """Whether times are dates; None if that is not known yet."""
        return self.unit == "date" if self.is_known else None

    def take(self, source: str, values: object) -> tuple[Floats, BadRows | None]:
        """Return the times of a batch, and which of them are refused."""
        if isinstance(values, Strings):
            t, is_date = self._parse(values)
        else:
            given, t, is_date = as_times(values, dates=self.dates)
        limit = self.limit(source, t, is_date)
        # NaN makes both comparisons false.
        if t.size == 0 or (t.max() <= limit and t.min() >= -LARGEST_TIME):
            return t, None

        def explain(at: int) -> str:
            if isinstance(values, Strings):
                return self._explain(float(t[at]), decode_ids(take(values, np.array([at])))[0])
            return self._explain(float(t[at]), given[at])

        return t, BadRows(~((t <= limit) & (t >= -LARGEST_TIME)), explain)

    def limit(self, source: str, t: Floats, is_date: bool) -> float:
        """Return the latest time accepted in a batch; refuse a batch in another unit."""
        step = max(1, len(t) // SAMPLE) if self.is_known else 1
        sample = t[::step][np.isfinite(t[::step])]
        if sample.size == 0:
            return self.latest
        found = "date" if is_date else find_unix_unit(sample)
        if not self.is_known:
            self.unit, self.is_known = found, True
            if self._given_date and found is None:
                refuse_source(
                    source,
                    f"{Param('latest', self._given)} is a date, but the times are neither dates "
                    f"nor Unix times; give {Param('latest')} as a number",
                )
        elif problem := find_conflict(found, self.unit):
            refuse_source(source, problem)
        return self.latest

    @property
    def latest(self) -> float:
        """The latest time accepted so far."""
        if not self.is_known:
            return LARGEST_TIME
        per_second = UNIX_UNITS.get(self.unit or "", 1.0)
        if self._given is not None:
            return check_moment("latest", self._given) * (per_second if self._given_date else 1.0)
        if self.unit is None:
            return LARGEST_TIME
        return (tomorrow() if self.live else self._tomorrow) * per_second

    def describe_late(self) -> str:
        """Say which times are too late."""
        if self._given is None:
            return f"later than tomorrow (give {Param('latest')} for another limit)"
        return f"later than {Param('latest', self._given)}"

    def _parse(self, texts: Strings) -> tuple[Floats, bool]:
        dates = self.dates
        if dates is None:
            first = texts.offsets[: SAMPLE + 1]
            dates = are_date_texts([texts.data[a:b].tobytes() for a, b in pairwise(first.tolist())])
        return _core.parse_times(texts.offsets, texts.data, dates), dates

    def _explain(self, t: float, value: object) -> str:
        if math.isnan(t):
            if is_missing(value):
                return "a time is missing"
            kind = {True: DATE, False: "a finite number", None: f"a number or {DATE}"}[self.dates]
            return f"a time must be {kind}, got {shorten(str(value))}{explain_date(str(value))}"
        shown = describe_time(t, self.unit == "date")
        if math.isinf(t) or t < -LARGEST_TIME or (t > LARGEST_TIME >= self.latest):
            return f"a time must be below 2**63 in size, got {shown}"
        return f"a time is {shown}, {self.describe_late()}"


def are_date_texts(texts: list[bytes]) -> bool:
    """Return whether at least as many of some texts are dates as are numbers, and not none."""
    dates, numbers = (
        sum(not math.isnan(_core.parse_time(text, kind)) for text in texts)
        for kind in (True, False)
    )
    return dates > 0 and dates >= numbers


def explain_date(text: str) -> str:
    """Say what a date such as 09/01/2026 may mean; empty if the text is no such date."""
    found = LOCAL_DATE.match(text)
    if found is None:
        return ""
    one, other, year = found[1].zfill(2), found[3].zfill(2), found[4]
    ways = [(f"{year}-{other}-{one}", "day"), (f"{year}-{one}-{other}", "month")]
    if one == other or max(int(one), int(other)) > 12:
        return f", which is {ways[int(other) > 12][0]}; write the year first"
    shown = " or ".join(f"{date} ({which} first)" for date, which in ways)
    return f", which may be {shown}; write the year first"


def find_conflict(found: str | None, unit: str | None) -> str | None:
    """Say why times in the unit `found` may not follow those in another, if they may not."""
    same = found == unit or {found, unit} == {"date", "s"}
    # Numbers may look like Unix times by accident.
    plain = None in (found, unit) and "date" not in (found, unit)
    if same or plain:
        return None
    return f"times are {_name(found)}, but they were {_name(unit)} so far; convert one of them"


def _name(unit: str | None) -> str:
    names = {"date": "dates", None: "numbers that are not Unix times"}
    return names.get(unit, f"Unix times in {unit}")
