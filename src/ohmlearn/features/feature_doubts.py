"""What is strange about a column of a table, such as a text in a column of numbers."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ohmlearn.reading.source_errors import shorten

__all__ = ["find_odd_value", "is_number"]

SAMPLE = 100  # different texts that are tried before all are
NEARLY_ALL = 0.9  # share of the rows
MANY, DISTINCT = 20, 0.5  # more different numbers than this, or this share of all, are measured
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?|[+-]?\d{1,3}([' ]\d{3})+([.,]\d*)?")
DECIMAL_COMMA = re.compile(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+")
SEPARATORS = "[, ']"
DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?")  # as Arrow reads it
OTHER_DATE = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./-])\d{1,2}\3\d{1,2}|\d{1,2}/\d{1,2}/\d\d)([ T].*)?"
)
ALIKE = {"number": ("number", "comma"), "date": ("date", "other date")}


def find_odd_value(codes: NDArray[np.int64], values: list[str], first_row: int) -> str:
    """Return why texts are not read as numbers or dates although nearly all are; empty if not so.

    Parameters
    ----------
    codes : array of int
        The number of the text in each row, -1 if it is missing.
    values : list of str
        The different texts.
    first_row : int
        The number of the first row, for the message.

    Examples
    --------
    >>> codes, values = np.arange(30), [str(n) for n in range(29)] + ["unknown"]
    >>> find_odd_value(codes, values, 2)
    "nearly all are numbers, but row 31 has 'unknown'; make it empty, which means missing"
    >>> find_odd_value(codes, [f"{n},5" for n in range(30)], 2)
    "numbers such as '0,5' in row 2 are not read; write 0.5, not a decimal comma"
    >>> find_odd_value(codes, [f"{n + 1:02}/01/2019" for n in range(30)], 2)
    "dates such as '01/01/2019' in row 2 are not read; write dates as 2019-01-28"
    """
    if not values or not _may_be(values[:: max(1, len(values) // SAMPLE)]):
        return ""
    rows = np.flatnonzero(codes >= 0)
    kinds = np.array([_kind_of(value.strip()) for value in values])
    for wanted, allowed in ALIKE.items():
        alike = np.isin(kinds, allowed)
        is_measured = alike.sum() > min(MANY, DISTINCT * len(rows))
        if is_measured and alike[codes[rows]].mean() >= NEARLY_ALL:
            odd = np.flatnonzero(kinds[codes[rows]] != wanted)
            if len(odd) == 0:  # stored as texts
                return "" if wanted == "number" else "they are dates, so cast the column"
            at = rows[odd[0]]
            is_only_one = bool((kinds[codes[rows]] == wanted).mean() > DISTINCT)
            return _say(wanted, values[codes[at]].strip(), first_row + int(at), is_only_one)
    return ""


def _say(wanted: str, value: str, row: int, is_only_one: bool) -> str:
    """Return what is odd about a value, and what to do."""
    shown, kind = shorten(value), _kind_of(value)
    remedy = "make it empty, which means missing"
    if kind == "other date":
        remedy = "write dates as 2019-01-28"
    elif kind == "comma" and THOUSANDS.fullmatch(value):
        remedy = f"write numbers without separators of thousands, {re.sub(SEPARATORS, '', value)}"
    elif kind == "comma":
        remedy = f"write {value.replace('.', '').replace(',', '.')}, not a decimal comma"
    if is_only_one:
        return f"nearly all are {wanted}s, but row {row:,} has {shown}; {remedy}"
    return f"{wanted}s such as {shown} in row {row:,} are not read; {remedy}"


def _may_be(values: list[str]) -> bool:
    """Whether so many of some texts may be numbers or dates that all are worth a look."""
    return sum(_kind_of(value.strip()) != "text" for value in values) > len(values) / 2


def _kind_of(text: str) -> str:
    if is_number(text):
        return "number"
    if THOUSANDS.fullmatch(text) or DECIMAL_COMMA.fullmatch(text):
        return "comma"
    if DATE.fullmatch(text):
        return "date"
    return "other date" if OTHER_DATE.fullmatch(text) else "text"


def is_number(text: str) -> bool:
    """Whether a text is a number.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1,5")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
