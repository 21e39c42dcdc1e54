"""What the first records of a text say about its columns."""

from __future__ import annotations

import re

import numpy as np

from ohmlearn import _core
from ohmlearn.checks.times import find_unix_unit
from ohmlearn.reading.column_choice import ColumnSample, doubt_weights
from ohmlearn.reading.time_rule import are_date_texts, explain_date

LOOK = 300  # records that decide what a column is
FEWEST_TIMES = 5  # integers that look like Unix times
DECIMAL_COMMA = re.compile(rb"[-+]?\d+,\d+")


def find_delimiter(line: bytes, style: str, given: str | None = None) -> str:
    """Return the delimiter of a text from its first line; empty for runs of blanks.

    Examples
    --------
    >>> [find_delimiter(line, "csv") for line in (b"a;b;c", b"a b", b"ab")]
    [';', '', ',']
    >>> [find_delimiter(line, "text") for line in (b"a b\\tc d", b"a\\tb", b"a,b")]
    ['\\t', '', ',']
    """
    if given is not None:
        return "" if given == " " else given
    if style == "tsv":
        return "\t"
    if style == "csv":
        counts = {mark: line.count(mark.encode()) for mark in ",;\t|"}
        best = max(counts, key=lambda mark: counts[mark])
        return best if counts[best] else "," if b" " not in line.strip() else ""
    if b"\t" in line and len(line.split(b"\t")) != len(line.split()):
        return "\t"  # blanks belong to the names
    return next((mark for mark in ",;" if mark.encode() in line and b"\t" not in line), "")


class TextSample:
    """Some rows of a text, split into fields."""

    def __init__(self, rows: list[list[bytes]]) -> None:
        self.rows = rows

    def column(self, at: int, limit: int | None = None) -> list[bytes]:
        """Return the values of a column that are not empty."""
        return [fields[at] for fields in self.rows[:limit] if len(fields) > at and fields[at]]

    def look(self, n_columns: int) -> ColumnSample:
        """Return which columns are not ends, by their values."""
        columns = [self.column(at, LOOK) for at in range(n_columns)]
        numbers = [np.array([as_number(text) for text in texts]) for texts in columns]
        for x in numbers:
            x[np.isinf(x)] = np.nan
        good = [at for at, x in enumerate(numbers) if x.size > 0 and not np.isnan(x).any()]
        return ColumnSample(
            times={at for at, texts in enumerate(columns) if _are_times(texts, n_columns)},
            fractions={at for at, x in enumerate(numbers) if np.sum(x % 1 > 0) > len(x) / 2},
            floats={at for at, x in enumerate(numbers) if np.any(x % 1 > 0)},
            numbers=good,
            doubts={at: doubt for at in good if (doubt := doubt_weights(numbers[at]))},
        )

    def has_decimal_commas(self, at: int) -> bool:
        """Whether numbers in a column are written as 0,5."""
        texts = self.column(at)
        return any(map(DECIMAL_COMMA.fullmatch, texts)) and not any(b"." in x for x in texts)

    def are_whole(self, at: int) -> bool:
        """Whether a column has whole numbers, some of which are written as 17.0."""
        texts = self.column(at)
        return any(b"." in text for text in texts) and all(
            _core.parse_whole(text) is not None for text in texts
        )

    def are_integers(self, u: int, v: int, *, mostly: bool = False) -> bool:
        """Whether ids in two columns are integers: in all rows, or in most rows.

        Numbers with fractions among them are faults, not names.
        """
        n_integer = n_other = 0
        for fields in self.rows:
            if len(fields) > max(u, v):
                good = all(
                    _core.parse_whole(fields[at]) is not None or as_number(fields[at]) % 1 > 0
                    for at in (u, v)
                )
                n_integer += good
                n_other += not good
        return n_integer > n_other if mostly else n_other == 0


def as_number(text: bytes) -> float:
    """Return the number that a text is, perhaps with a decimal comma; NaN if it is none."""
    text = text.replace(b",", b".") if DECIMAL_COMMA.fullmatch(text) else text
    return _core.parse_time(text, False)


def _are_times(texts: list[bytes], n_columns: int) -> bool:
    if not texts:
        return False
    n_dates = sum(not np.isnan(_core.parse_time(text, True)) for text in texts)
    if n_dates > len(texts) / 2:
        return are_date_texts(texts)
    if sum(explain_date(text.decode(errors="replace")) != "" for text in texts) > len(texts) / 2:
        return True
    # Ids may have as many digits as Unix times, but they are not in order.
    if n_columns < 3 or len(texts) < FEWEST_TIMES:
        return False
    numbers = np.array([_core.parse_time(text, False) for text in texts])
    if np.isnan(numbers).any() or numbers[0] == numbers[-1]:
        return False
    steps = np.diff(numbers)
    return find_unix_unit(numbers) is not None and bool((steps >= 0).all() or (steps <= 0).all())
