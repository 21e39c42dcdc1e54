"""`RowFilter`: which rows of a batch fulfil a condition, in tables with types and in text.

A value that is missing makes a comparison neither true nor false, as in SQL; such rows are left
out. In text an empty field is missing, and the value decides what the field must be: compared with
a number it must be a number, compared with a date it must be a date. A field that is not is a fault
of its row, unless the rest of the condition leaves the row out anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import Param
from ohmlearn.reading.source_errors import refuse_source, shorten
from ohmlearn.reading.where import (
    Both,
    Compared,
    Condition,
    Either,
    Missing,
    Negation,
    columns_of,
    conjuncts,
    parse_where,
)

__all__ = ["Kept", "RowFilter", "as_plain", "decode"]

KINDS = {"number": "a number", "date": "a date", "text": "a text", "truth": "true or false"}
FUNCTIONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
# Returns a column as one of KINDS, or as it is if None, and its type.
Take = Callable[[str, str | None], tuple[Any, Any]]


class Kept(NamedTuple):
    """Which rows of a batch count."""

    rows: NDArray[np.bool_]
    bad: NDArray[np.bool_] | None  # rows that have no answer because of a bad field
    why: Callable[[int], str]  # what is wrong with one of them


class RowFilter:
    """The condition of ``where`` for the columns of one source.

    Parameters
    ----------
    source : str
        Name for messages.
    where : str
    names : sequence of str, or None
        Columns of the source; None if they have no names. Then a name is a position.
    folders : dict
        Columns from names of folders, see `find_folder_columns`.

    Attributes
    ----------
    columns : list of str
        Columns of the source that the condition needs.
    positions : list of int
        Their positions, known after `set_positions`.
    """

    def __init__(
        self,
        source: str,
        where: str,
        names: Sequence[str] | None,
        folders: Mapping[str, str | None] | None = None,
    ) -> None:
        self._source = source
        self._condition = parse_where(where)
        self._names = names
        self._folders = dict(folders or {})
        for name in names or ():
            self._folders.pop(name, None)
        wanted = columns_of(self._condition)
        self.columns = [name for name in wanted if name not in self._folders]
        self.positions: list[int] = []
        for name in self.columns:
            self._check_name(name)

    def _check_name(self, name: str) -> None:
        if self._names is None:
            if not name.isdecimal():
                refuse_source(
                    self._source,
                    f"has no names of columns, so there is no column {name!r} for "
                    f"{Param('where')}; give its position in double quotes, from 0 on",
                )
        elif name not in self._names:
            found = ", ".join(shorten(name) for name in [*self._names, *self._folders][:20])
            refuse_source(
                self._source, f"has no column {name!r} for {Param('where')}, only {found}"
            )

    def set_positions(self, n_columns: int) -> None:
        """Find the positions of `columns` in a source with so many columns."""
        if self._names is not None:
            self.positions = [list(self._names).index(name) for name in self.columns]
            return
        self.positions = [int(name) for name in self.columns]
        if max(self.positions, default=0) >= n_columns:
            refuse_source(
                self._source,
                f"has no column {max(self.positions)} for {Param('where')}, only {n_columns} of "
                f"them",
            )

    def excludes_all(self) -> bool:
        """Whether the names of the folders alone leave out all rows."""
        parts = conjuncts(self._condition)
        known = [part for part in parts if set(columns_of(part)) <= set(self._folders)]
        return any(not self._keep(part, {}.__getitem__, 1).rows[0] for part in known)

    def keep_batch(self, batch: Any) -> Kept:
        """Return which rows of a record batch count; its columns have types."""
        names = batch.schema.names

        def take(name: str) -> Any:
            return batch.column(names.index(name))

        return self._keep(self._condition, take, batch.num_rows)

    def keep_texts(self, texts: Mapping[str, Any], n_rows: int) -> Kept:
        """Return which rows count, from `columns` as arrays of text with nulls."""
        return self._keep(self._condition, texts.__getitem__, n_rows, are_texts=True)

    def keep_objects(self, rows: Sequence[Mapping[str, Any]]) -> Kept:
        """Return which objects of JSON lines count."""
        return self._keep(self._condition, lambda name: [row.get(name) for row in rows], len(rows))

    def as_expression(self, schema: Any) -> Any:
        """Return a filter that Arrow can apply, or None; it may let more rows pass.

        Raises SourceError if a column cannot be compared with the value.
        """
        pc = require_extra("pyarrow.compute", "files")
        self.keep_batch(_empty_batch(schema))

        def take(name: str, kind: str | None) -> tuple[Any, Any]:
            of = schema.field(name).type
            return pc.field(name), of

        found = None
        for part in conjuncts(self._condition):
            if all(_is_plain(schema, test) for test in _tests(part)):
                one = _evaluate(part, take, self._source, as_expression=True)
                found = one if found is None else found & one
        return found

    def _keep(
        self, condition: Condition, find: Any, n_rows: int, *, are_texts: bool = False
    ) -> Kept:
        faults: list[tuple[NDArray[np.bool_], str, str, Any]] = []

        def take(name: str, kind: str | None) -> tuple[Any, Any]:
            pa = require_extra("pyarrow", "files")
            if name in self._folders:
                column = pa.array([self._folders[name]] * n_rows, pa.large_string())
                is_text = True
            else:
                column, is_text = find(name), are_texts
            if isinstance(column, list):
                found, bad = _from_objects(column, kind)
            elif is_text:
                found, bad = _from_texts(column, kind)
            else:
                found, bad = self._from_array(name, column, kind)
            if bad is not None:
                faults.append((bad, name, str(kind), column))
            return found, found.type

        answers = _evaluate(condition, take, self._source)
        rows = answers.fill_null(False).to_numpy(zero_copy_only=False)
        if not faults:
            return Kept(rows, None, str)
        unknown = answers.is_null().to_numpy(zero_copy_only=False)
        bad = unknown & np.logical_or.reduce([mask for mask, *_ in faults])

        def explain(at: int) -> str:
            _, name, kind, column = next(fault for fault in faults if fault[0][at])
            value = column[at] if isinstance(column, list) else column[at].as_py()
            said = shorten(str(value))
            return f"{name!r} is not {KINDS[kind]}, which {Param('where')} needs: {said}"

        return Kept(rows, bad if bad.any() else None, explain)

    def _from_array(
        self, name: str, array: Any, kind: str | None
    ) -> tuple[Any, NDArray[np.bool_] | None]:
        """Return a column with a type as a kind of value."""
        array = decode(array)
        found = _kind_of_type(array.type)
        if str(array.type) == "null" and kind is not None:
            return _from_objects([None] * len(array), kind)
        if kind is None or found == kind:
            return (array if found != "text" else as_text_array(array)), None
        if found == "text" and kind == "date":
            return _from_texts(as_text_array(array), kind)
        if found == "date" and kind == "text":
            hint = "; write a date such as '2026-03-31'"
        else:
            hint = "; write the value in quotes" if found == "text" else ""
        refuse_source(
            self._source,
            f"{Param('where')} compares {name!r} with {KINDS[kind]}, but it has type "
            f"{array.type}{hint}",
        )


def _evaluate(condition: Condition, take: Take, source: str, *, as_expression: bool = False) -> Any:
    """Return the answers for rows, or an expression of Arrow, depending on what `take` returns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def evaluate(part: Condition) -> Any:
        return _evaluate(part, take, source, as_expression=as_expression)

    if isinstance(condition, Negation):
        return pc.invert(evaluate(condition.part))
    if isinstance(condition, Both):
        return pc.and_kleene(evaluate(condition.left), evaluate(condition.right))
    if isinstance(condition, Either):
        return pc.or_kleene(evaluate(condition.left), evaluate(condition.right))
    if isinstance(condition, Missing):
        return pc.is_null(take(condition.column, None)[0])
    kind = _kind_of_values(condition)
    operand, type_of = take(condition.column, kind)
    if kind == "number" and pa.types.is_integer(type_of):
        condition = _in_integers(condition, type_of)
        if not isinstance(condition, Compared):
            return evaluate(condition)
    values = [_as_scalar(value, kind, type_of) for value in condition.values]
    if condition.operator != "in":
        value = pc.scalar(values[0]) if as_expression else values[0]
        return getattr(pc, FUNCTIONS[condition.operator])(operand, value)
    if as_expression:
        return _any_equal(operand, [pc.scalar(value) for value in values])
    answers = pc.is_in(operand, value_set=_as_value_set(values, operand.type))
    return pc.if_else(pc.is_valid(operand), answers, pa.scalar(None, pa.bool_()))


def _in_integers(test: Compared, type_of: Any) -> Condition:
    """Return the same test with integers that a type can hold, because Arrow would make floats.

    Examples
    --------
    >>> import pyarrow as pa
    >>> _in_integers(Compared("n", ">=", (1.5,)), pa.int64())
    Compared(column='n', operator='>', values=(1,))
    """
    numbers: Any = test.values
    limits = np.iinfo(type_of.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)
    whole = [int(x) for x in numbers if low <= x <= high and x == math.floor(x)]
    if test.operator == "in" and whole:
        return test._replace(values=tuple(whole))
    if test.operator != "in" and len(whole) == 1:
        return test._replace(values=(whole[0],))
    # No integer equals the value. Those below it are x <= border, and those above it the others.
    value = numbers[0]
    if value < low:
        below, above = (Compared(test.column, mark, (low,)) for mark in ("<", ">="))
    else:
        border = high if value > high else math.floor(value)
        below, above = (Compared(test.column, mark, (border,)) for mark in ("<=", ">"))
    if test.operator in ("in", "="):
        return Both(below, above)
    if test.operator == "!=":
        return Either(below, above)
    return below if test.operator in ("<", "<=") else above


def _any_equal(operand: Any, values: list[Any]) -> Any:
    found = operand == values[0]
    for value in values[1:]:
        found = found | (operand == value)
    return found


def _as_value_set(values: list[Any], type_of: Any) -> Any:
    """Return values for a comparison with a column, without those that its type cannot hold."""
    import pyarrow as pa

    found = []
    for value in values:
        try:
            found.append(value.cast(type_of, safe=True).as_py())
        except pa.ArrowInvalid:
            continue
    return pa.array(found, type_of)


def _tests(condition: Condition) -> list[Compared | Missing]:
    if isinstance(condition, Compared | Missing):
        return [condition]
    return [test for part in condition for test in _tests(part)]


def _is_plain(schema: Any, test: Compared | Missing) -> bool:
    """Whether Arrow can compare a column with the values without a conversion of the column."""
    import pyarrow as pa

    if test.column not in schema.names or schema.names.count(test.column) > 1:
        return False
    type_of = schema.field(test.column).type
    if isinstance(test, Missing):
        return True
    if pa.types.is_dictionary(type_of) or str(type_of) == "string_view":
        return False
    return _kind_of_type(type_of) == _kind_of_values(test) and len(test.values) <= 100


def _kind_of_values(test: Compared) -> str:
    kinds = {_kind_of_value(value) for value in test.values}
    return "text" if len(kinds) > 1 else kinds.pop()  # not all of the texts are dates


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if math.isnan(_core.parse_time(value.encode(), True)) else "date"


def _kind_of_type(type_of: Any) -> str | None:
    import pyarrow.types as types

    if types.is_dictionary(type_of):
        type_of = type_of.value_type
    if types.is_boolean(type_of):
        return "truth"
    if types.is_integer(type_of) or types.is_floating(type_of) or types.is_decimal(type_of):
        return "number"
    if types.is_date(type_of) or types.is_timestamp(type_of):
        return "date"
    is_text = types.is_string(type_of) or types.is_large_string(type_of)
    return "text" if is_text or str(type_of) == "string_view" else None


def _as_scalar(value: Any, kind: str, type_of: Any) -> Any:
    """Return a value that Arrow compares with a column of a type."""
    import pyarrow as pa

    if kind == "date":
        microseconds = round(_core.parse_time(value.encode(), True) * 1e6)
        zone = type_of.tz if pa.types.is_timestamp(type_of) else None
        return pa.scalar(microseconds, pa.timestamp("us", zone))
    if kind == "number":
        return pa.scalar(value, type_of if pa.types.is_integer(type_of) else pa.float64())
    if kind == "text":
        return pa.scalar(value, type_of)
    return pa.scalar(value)


def _from_texts(texts: Any, kind: str | None) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return texts as a kind of value, and which of them are not of that kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind in (None, "text"):
        return texts, None
    given = texts.is_valid().to_numpy(zero_copy_only=False)
    if kind == "truth":
        lower = pc.utf8_lower(texts)
        truth = pc.equal(lower, "true").to_numpy(zero_copy_only=False)
        known = pc.is_in(lower, value_set=pa.array(["true", "false"], lower.type))
        bad = given & ~known.to_numpy(zero_copy_only=False)
        return pa.array(truth.astype(bool), mask=bad | ~given), bad if bad.any() else None
    if kind == "number":
        try:
            return texts.cast(pa.int64()), None  # exact, also above 2**53
        except pa.ArrowInvalid:
            pass
    values = _parse_texts(texts, dates=kind == "date")
    bad = given & np.isnan(values)
    if kind == "number" and bad.any():
        is_nan = pc.equal(pc.utf8_lower(texts), "nan").fill_null(False)
        bad &= ~is_nan.to_numpy(zero_copy_only=False)
    missing = bad | ~given
    if kind == "date":
        microseconds = np.round(np.where(missing, 0.0, values) * 1e6).astype(np.int64)
        found = pa.array(microseconds, mask=missing).cast(pa.timestamp("us"))
    else:
        found = pa.array(values, mask=missing)
    return found, bad if bad.any() else None


def _parse_texts(texts: Any, *, dates: bool) -> NDArray[np.float64]:
    import pyarrow as pa

    texts = texts.cast(pa.large_string()).fill_null("")
    _, offsets, data = texts.buffers()
    at = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)
    return np.asarray(_core.parse_times(np.ascontiguousarray(at), content, dates))


def _from_objects(values: list[Any], kind: str | None) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return values of JSON as a kind of value, and which of them are not of that kind."""
    import pyarrow as pa

    if kind is None:
        return pa.array([None if value is None else True for value in values], pa.bool_()), None
    good: list[Any]
    if kind in ("text", "date"):
        good = [value if isinstance(value, str) else None for value in values]
        found, bad = _from_texts(pa.array(good, pa.large_string()), kind)
    elif kind == "number":
        good = [
            value if isinstance(value, int | float) and not isinstance(value, bool) else None
            for value in values
        ]
        try:
            found, bad = pa.array(good, from_pandas=False), None
        except (pa.ArrowInvalid, OverflowError):  # integers and floats, or above int64
            found, bad = pa.array([None if x is None else float(x) for x in good]), None
        if pa.types.is_null(found.type):
            found = found.cast(pa.float64())
    else:
        good = [value if isinstance(value, bool) else None for value in values]
        found, bad = pa.array(good, pa.bool_()), None
    wrong = np.array(
        [value is not None and kept is None for value, kept in zip(values, good, strict=True)],
        dtype=bool,
    )
    if bad is not None:
        wrong |= bad
    return found, wrong if wrong.any() else None


def as_text_array(array: Any) -> Any:
    """Return strings of any of Arrow's types as large_string."""
    import pyarrow as pa

    return array if pa.types.is_large_string(array.type) else array.cast(pa.large_string())


def decode(array: Any) -> Any:
    """Return a column without its dictionary; Arrow cannot take from views of strings."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        return array
    if str(array.type.value_type) == "string_view":
        values = array.dictionary.cast(pa.large_string())
        array = pa.DictionaryArray.from_arrays(array.indices, values)
    return array.dictionary_decode()


def as_plain(array: Any) -> Any:
    """Return a column without a dictionary and without views."""
    array = decode(array)
    return as_text_array(array) if str(array.type) == "string_view" else array


def _empty_batch(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
