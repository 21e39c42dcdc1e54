"""What a row of a body must be, and what is said about a row that is not so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import are_weights
from ohmlearn.checks.times import LARGEST_TIME, UNIT_NAMES, describe_time, find_unix_unit
from ohmlearn.errors import InputError, Place
from ohmlearn.nodes.node_ids import Ids, Strings, encode_strings, is_whole, join_masks, take
from ohmlearn.reading.read_options import EDGE_ENDS, TIMES, ReadOptions
from ohmlearn.reading.source_errors import shorten
from ohmlearn.reading.table_reader import RawBatch

__all__ = [
    "WEIGHTS",
    "BadBody",
    "Names",
    "Row",
    "RowReader",
    "Rules",
    "assemble",
    "choose_names",
    "find_fault",
    "join_batches",
    "join_ids",
    "refuse_names",
    "show",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
WEIGHTS = ReadOptions.rows.weights
REMEDY = "correct it, or send on_bad=skip"


class BadBody(InputError):
    """A body that cannot be used.

    Attributes
    ----------
    row : int or None
        Number of the first bad row, from 1. Blank lines and the header of CSV are not rows.
    """

    __module__ = "ohmlearn.serve.decode_edges"  # where it is imported from; tracebacks show it

    def __init__(self, problem: str, row: int | None = None) -> None:
        super().__init__(problem, place=None if row is None else Place("", row))
        self.row = row


@dataclass(frozen=True)
class Rules:
    """Which rows are accepted; see `decode_edges`."""

    id_kind: str | None
    skip_bad: bool
    max_rows: int
    max_id_bytes: int
    one: str  # a row, in words
    latest: float  # later times are bad

    def check_count(self, n_rows: int) -> None:
        """Refuse a body with too many rows."""
        if n_rows > self.max_rows:
            raise BadBody(
                f"the body has {n_rows:,} rows, but at most {self.max_rows:,} may be sent at once; "
                f"split it into several"
            )

    def no_rows(self) -> RawBatch:
        """Return a batch without edges."""
        if self.id_kind == "string":
            return RawBatch(encode_strings([]), encode_strings([]))
        return RawBatch(np.empty(0, np.int64), np.empty(0, np.int64))


class Names(NamedTuple):
    """The columns that are read, as the body names them."""

    u: str
    v: str
    w: str | None
    t: str | None

    @property
    def used(self) -> list[str]:
        """Those that there are."""
        return [name for name in self if name is not None]


class Row(NamedTuple):
    """The values of a row: of JSON, of Arrow, or texts; None if a value is missing."""

    u: Any
    v: Any
    w: Any
    t: Any


def choose_names(names: Sequence[str]) -> Names | None:
    """Return which columns hold ends, weight and time; None if there are no ends."""
    lower = [name.strip().lower() for name in names]
    known = set(lower)
    pair = next((pair for pair in EDGE_ENDS if known.issuperset(pair)), None)
    if pair is None:
        return None
    found = [*pair, *(next((x for x in usual if x in known), None) for usual in (WEIGHTS, TIMES))]
    for name in found:
        if name is not None and lower.count(name) > 1:
            raise BadBody(f"two columns are named {name}; rename one of them")
    return Names(*(None if x is None else names[lower.index(x)] for x in found))  # type: ignore[arg-type]


def refuse_names(names: Sequence[str], one: str) -> NoReturn:
    """Refuse a body without columns of ends."""
    found = ", ".join(shorten(name, 40) for name in names[:20]) or "none"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    pairs = ", ".join(f"{u} and {v}" for u, v in EDGE_ENDS)
    raise BadBody(
        f"{one} needs two columns with node ids, but the columns are {found}{more}; name them as "
        f"one of these pairs: {pairs}"
    )


def assemble(
    rules: Rules,
    ends: Sequence[tuple[Ids, Mask | None]],
    w: Floats | None,
    t: Floats | None,
    explain: Callable[[int], str],
    first_row: int = 1,
) -> RawBatch:
    """Return the good rows of columns; refuse or count the others.

    `ends` are ids and which of them are bad. A weight or time that is missing is NaN. `explain`
    says what is wrong with the row at a position, whose number is `first_row` more.
    """
    u, v = (ids for ids, _ in ends)
    masks = [mask for _, mask in ends]
    masks += [_bad_lengths(ids, rules.max_id_bytes) for ids in (u, v)]
    masks.append(None if w is None else ~are_weights(w))
    masks.append(_outside(t, -LARGEST_TIME, rules.latest))
    bad = join_masks(*masks)
    if bad is None or not bad.any():
        return RawBatch(u, v, w, t=t)
    at = int(np.argmax(bad))
    why = explain(at) or "its values cannot be used"
    if not rules.skip_bad:
        raise BadBody(f"{why}; {REMEDY}", first_row + at)
    good = np.flatnonzero(~bad)
    return RawBatch(
        take(u, good),
        take(v, good),
        None if w is None else w[good],
        int(np.count_nonzero(bad)),
        f"row {first_row + at}: {why}",
        None if t is None else t[good],
    )


def _bad_lengths(ids: Ids, longest: int) -> Mask | None:
    if not isinstance(ids, Strings) or ids.size == 0:
        return None
    lengths = np.diff(ids.offsets)
    if lengths.min() > 0 and lengths.max() <= longest:
        return None
    bad: Mask = (lengths == 0) | (lengths > longest)
    return bad


def _outside(values: Floats | None, lowest: float, highest: float) -> Mask | None:
    # NaN makes both comparisons false.
    if values is None or values.size == 0:
        return None
    if values.min() >= lowest and values.max() <= highest:
        return None
    bad: Mask = ~((values >= lowest) & (values <= highest))
    return bad


class RowReader:
    """Takes rows one by one, and says what is wrong with a bad one.

    Parameters
    ----------
    rules : Rules
    names : Names
    kind : {"int64", "string"}, optional
        Kind of the ids; by default that of the first good row.
    """

    def __init__(self, rules: Rules, names: Names, kind: str | None) -> None:
        self.rules, self.names, self.kind = rules, names, kind
        self._u: list[Any] = []
        self._v: list[Any] = []
        self._w: list[float] = []
        self._t: list[float] = []
        self._n_bad = 0
        self._first_bad: str | None = None

    def refuse(self, row: int, why: str) -> None:
        """Count a bad row, or raise the error."""
        if not self.rules.skip_bad:
            raise BadBody(f"{why}; {REMEDY}", row)
        self._n_bad += 1
        self._first_bad = self._first_bad or f"row {row}: {why}"

    def add(self, row: int, values: Row) -> None:
        """Take a row if it is good."""
        u, v = (_whole(x) for x in values[:2])
        kind = self.kind
        if kind is None:
            kind = "string" if isinstance(u, str) else "int64"
        if why := find_fault(self.rules, self.names, Row(u, v, *values[2:]), kind):
            self.refuse(row, why)
            return
        self.kind = kind
        self._u.append(u)
        self._v.append(v)
        if self.names.w is not None:
            self._w.append(float(values.w))
        if self.names.t is not None:
            self._t.append(read_seconds(values.t))

    def finish(self) -> RawBatch:
        """Return the good rows."""
        ends: list[Ids] = [self._encode(ids) for ids in (self._u, self._v)]
        w, t = (
            None if name is None else np.array(values, dtype=np.float64)
            for name, values in ((self.names.w, self._w), (self.names.t, self._t))
        )
        return RawBatch(ends[0], ends[1], w, self._n_bad, self._first_bad, t)

    def _encode(self, ids: list[Any]) -> Ids:
        if self.kind == "string":
            return encode_strings([str(node) for node in ids])
        return np.array(ids, dtype=np.int64)


def join_batches(batches: list[RawBatch]) -> RawBatch:
    """Return the rows of several batches with the same columns, one after the other."""
    if len(batches) == 1:
        return batches[0]
    # Those without a good row do not know the kind of their ids.
    full = [batch for batch in batches if batch.u.size] or batches[:1]
    u, v, w, _, _, t = zip(*full, strict=True)
    return RawBatch(
        join_ids(u),
        join_ids(v),
        None if w[0] is None else np.concatenate(w),
        sum(batch.n_bad for batch in batches),
        next((batch.first_bad for batch in batches if batch.first_bad), None),
        None if t[0] is None else np.concatenate(t),
    )


def join_ids(parts: Sequence[Any]) -> Ids:
    """Return the ids of several pieces of the same kind, one after the other."""
    if len(parts) == 1:
        ids: Ids = parts[0]
        return ids
    if not isinstance(parts[0], Strings):
        return np.concatenate(parts)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    texts = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
    return Strings(offsets, np.concatenate(texts))


def find_fault(rules: Rules, names: Names, row: Row, kind: str) -> str:
    """Say what is wrong with a row whose ids must be of a kind; empty if nothing is."""
    return (
        _id_fault(rules, names.u, row.u, kind)
        or _id_fault(rules, names.v, row.v, kind)
        or ("" if names.w is None else _weight_fault(names.w, row.w))
        or ("" if names.t is None else _time_fault(names.t, row.t, rules.latest))
    )


def _whole(value: Any) -> Any:
    """Return a whole number that is written as a float as an integer."""
    return int(value) if isinstance(value, float) and is_whole(value) else value


def _id_fault(rules: Rules, name: str, value: Any, kind: str) -> str:
    value = _whole(value)
    if value is None or value != value:  # NaN
        return f"{name} is missing"
    if value == "":
        return f"{name} is empty"
    if isinstance(value, bool) or not isinstance(value, int | str):
        what = "a whole number (at most 2**53 if it is a float)"
        what = what if isinstance(value, float) else "an integer"
        return f"{name} is {show(value)}, but a node id must be {what} or a string"
    number: Any = value
    is_text = isinstance(value, str)
    if is_text != (kind == "string") and not (kind == rules.id_kind == "string"):
        here = "the text" if is_text else "the number"
        others = "strings" if kind == "string" else "integers"
        if rules.id_kind is not None:
            return f"{name} is {here} {show(value)}, but the node ids so far are {others}"
        return (
            f"{name} is {here} {show(value)}, but other node ids of this body are {others}; send "
            f"all as integers or all as strings"
        )
    if kind == "int64":
        fits = -(2**63) <= number < 2**63
        return "" if fits else f"{name} is {show(value)}, which does not fit int64; send strings"
    try:
        size = len(str(value).encode())
    except UnicodeEncodeError:
        return f"{name} is {ascii(value)[:60]}, which is not valid Unicode"
    if size > rules.max_id_bytes:
        return (
            f"{name} is {show(value)}, which has {size:,} bytes, but node ids may have at most "
            f"{rules.max_id_bytes:,}"
        )
    return ""


def _weight_fault(name: str, value: Any) -> str:
    if value is None or value == "":
        return f"{name} is missing"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and are_weights(value):
        return ""
    kind = "" if is_number else "numbers "
    return (
        f"{name} is {show(value)}, but weights must be {kind}between 0 and "
        f"{_core.LARGEST_WEIGHT:g}, and at least {_core.SMALLEST_WEIGHT:.2g} unless 0"
    )


def read_seconds(value: Any) -> float:
    """Return a time in Unix seconds: of a number, a date, or a text of either; NaN for others."""
    if isinstance(value, str):
        text = value.strip().encode(errors="replace")
        number = _core.parse_time(text, False)
        return _core.parse_time(text, True) if math.isnan(number) else number
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _time_fault(name: str, value: Any, latest: float) -> str:
    if value is None or value == "" or value != value:
        return f"{name} is missing"
    seconds = read_seconds(value)
    if -LARGEST_TIME <= seconds <= latest:
        return ""
    if not abs(seconds) <= LARGEST_TIME:
        return (
            f"{name} is {show(value)}, but times must be Unix seconds or dates such as "
            f"2026-03-31T12:30:00Z"
        )
    unit = find_unix_unit(np.array([seconds]))
    if unit in ("ms", "us", "ns"):
        return (
            f"{name} is {show(value)}, which seems to be in {UNIT_NAMES[unit]}, but times must be "
            f"Unix seconds"
        )
    shown = describe_time(seconds, isinstance(value, str) and "-" in value[1:])
    return f"{name} is {shown}, which is later than tomorrow; times must be Unix seconds or dates"


def show(value: Any) -> str:
    """Return a value for a message."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, float) and abs(value) < 1e15 and value.is_integer():
        return str(int(value))
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
