"""`RowFilter`: which rows of a batch fulfil a condition, in tables with types, in text and in JSON.

A condition becomes calls of pyarrow.compute, on columns or, to choose row groups of Parquet, on
fields of a schema. A missing value makes a comparison neither true nor false, as in SQL; such rows
are left out. The value decides what a field of text must be: compared with a date it must be a
date. A field that is not is a fault of its row, unless the rest of the condition leaves the row out
anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.errors import Param
from ohmlearn.nodes.node_ids import Strings, ids_from_arrow
from ohmlearn.reading.arrow_reader import as_plain
from ohmlearn.reading.csv_reader import take_columns
from ohmlearn.reading.source_errors import BadRows, refuse_source, shorten
from ohmlearn.reading.where import Condition, columns_of, parse_where, tests_of

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal, "and": pc.and_kleene, "or": pc.or_kleene,
}  # fmt: skip
MOST_PRUNED = 100  # values of "in" that are compared with the statistics of row groups
TYPES = {"number": "a number", "date": "a date", "text": "a text", "truth": "true or false"}
BLANK, NEWLINE = 32, 10


class RowFilter:
    """The condition of ``where`` for the columns of one source.

    If `names` is None, the columns have no names, and positions are used instead; then `n_columns`
    says how many there are. `folders` has columns from names of folders. With `is_text` each field
    is read as what it is compared with, as in text and JSON; in a table with types, a column that
    cannot be compared is refused. `columns` are those of the source that the condition needs, and
    `positions` where they are.
    """

    def __init__(
        self,
        source: str,
        where: str,
        names: Sequence[str] | None,
        folders: Mapping[str, str | None] | None = None,
        is_text: bool = False,
        n_columns: int = 0,
    ) -> None:
        self._source, self._is_text = source, is_text
        self._condition = parse_where(where)
        known = [str(at) for at in range(n_columns)] if names is None else list(names)
        self._folders = {name: x for name, x in (folders or {}).items() if name not in known}
        wanted = columns_of(self._condition)
        self.columns = [name for name in wanted if name not in self._folders]
        for name in self.columns:
            if name not in known:
                self._refuse_name(name, names, n_columns)
        self.positions = [known.index(name) for name in self.columns]

    def _refuse_name(self, name: str, names: Sequence[str] | None, n_columns: int) -> NoReturn:
        if names is not None:
            found = ", ".join(shorten(each) for each in [*names, *self._folders][:20])
            why = f"has no column {name!r} for {Param('where')}, only {found}"
        elif name.isdecimal():
            why = f"has no column {name} for {Param('where')}, only {n_columns} of them"
        else:
            why = f"has no names of columns, so there is no column {name!r} for {Param('where')}"
            why += "; give its position in double quotes, from 0 on"
        refuse_source(self._source, why)

    def keep(
        self, columns: Mapping[str, Any], n_rows: int
    ) -> tuple[NDArray[np.bool_], BadRows | None]:
        """Return which rows count, and which have no answer because of a bad field.

        `columns` has an array of Arrow without a dictionary for each name in `self.columns`.
        """
        faults: list[tuple[NDArray[np.bool_], str, str, Any]] = []
        answers = _join(self._condition, lambda test: self._test(test, columns, n_rows, faults))
        rows = answers.fill_null(False).to_numpy(zero_copy_only=False)
        unknown = answers.is_null().to_numpy(zero_copy_only=False)
        bad = unknown & np.logical_or.reduce([unknown & False, *(mask for mask, *_ in faults)])
        if not bad.any():
            return rows, None

        def explain(at: int) -> str:
            _, name, type_of, column = next(fault for fault in faults if fault[0][at])
            value = shorten(str(column[at].as_py()))
            return f"{name!r} is not {TYPES[type_of]}, which {Param('where')} needs: {value}"

        return rows, BadRows(bad, explain)

    def excludes_all(self) -> bool:
        """Whether the names of the folders alone leave out all rows."""

        def test(condition: Condition) -> Any:
            if condition.parts[0] not in self._folders:
                return pa.nulls(1, pa.bool_())
            return self._test(condition, {}, 1, [])

        return bool(self._folders) and _join(self._condition, test).to_pylist() == [False]

    def as_expression(self, schema: Any) -> Any:
        """Return a filter that Arrow can apply, or None; it may let more rows pass.

        Raises SourceError if a column cannot be compared with the value.
        """
        types = {name: schema.types[schema.names.index(name)] for name in self.columns}
        self.keep({name: as_plain(pa.array([], kind)) for name, kind in types.items()}, 0)

        def test(condition: Condition) -> Any:
            name, *values = condition.parts
            if condition.operator == "null":
                return pc.is_null(pc.field(name))
            type_of = schema.field(name).type
            return _compare(condition.operator, pc.field(name), type_of, values)

        parts, found = [self._condition], None
        while parts:
            part = parts.pop()
            if part.operator == "and":
                parts += part.parts
            elif all(_is_plain(schema, each) for each in tests_of(part)):
                one = _join(part, test)
                found = one if found is None else found & one
        return found

    def _test(
        self, test: Condition, columns: Mapping[str, Any], n_rows: int, faults: list[Any]
    ) -> Any:
        """Return the answers of one test for rows."""
        name, *values = test.parts
        if name in self._folders:
            column = pa.array([self._folders[name]] * n_rows, pa.large_string())
        else:
            column = columns[name]
        if test.operator == "null":
            return column.is_null()
        wanted, found = _type_of_values(values), _type_name(column.type)
        is_text = self._is_text or name in self._folders or found == "null"
        if not (is_text or found == wanted or (found, wanted) == ("text", "date")):
            hint = "; write the value in quotes" if found == "text" else ""
            hint = "; write a date such as '2026-03-31'" if found == "date" else hint
            refuse_source(
                self._source,
                f"{Param('where')} compares {name!r} with {TYPES[wanted]}, but it has type "
                f"{column.type}{hint}",
            )
        operand = column if found == wanted else _from_texts(column, wanted)
        bad = pc.and_not(operand.is_null(), column.is_null()).to_numpy(zero_copy_only=False)
        if bad.any():
            faults.append((bad, name, wanted, column))
        return _compare(test.operator, operand, operand.type, values)


def choose_records(
    rows: RowFilter,
    layout: _core.TextLayout,
    blocks: Iterator[bytes],
    note: Callable[[BadRows, NDArray[np.int64]], None],
) -> Iterator[bytes]:
    """Yield blocks of text in which records that do not count are blank, which are no edges.

    The blocks have as many lines as before, so numbers of lines stay right. `note` gets the records
    that cannot be compared, and the numbers of the lines of all records, from 0. The parser of
    edges names what else is wrong with a record.
    """
    for line, text, found in take_columns(blocks, layout, rows.positions, 0):
        starts, ends, lines, fields, _ = found
        columns = {
            name: Strings(*field).to_arrow(is_given=np.diff(field[0]) > 0)
            for name, field in zip(rows.columns, fields, strict=True)
        }
        keep, bad = rows.keep(columns, len(starts))
        if bad is not None:
            note(bad, line + lines)
        steps = np.zeros(len(text) + 1, dtype=np.int8)
        steps[starts[~keep]] += 1
        steps[ends[~keep]] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).astype(bool)
        inside &= text != NEWLINE
        yield np.where(inside, np.uint8(BLANK), text).tobytes()


def _join(condition: Condition, test: Callable[[Condition], Any]) -> Any:
    """Return the answer of a condition, given those of its tests."""
    if condition.operator not in ("and", "or", "not"):
        return test(condition)
    parts = [_join(part, test) for part in condition.parts]
    if condition.operator == "not":
        return pc.invert(parts[0])
    return reduce(FUNCTIONS[condition.operator], parts)


def _compare(operator: str, operand: Any, type_of: Any, values: list[Any]) -> Any:
    """Compare an array, or a field of a schema, with values of its type."""
    limits = np.iinfo(str(type_of)) if pa.types.is_integer(type_of) else None
    if operator == "in" and isinstance(operand, pa.Array) and (limits or _is_text(type_of)):
        if limits:
            values = [int(x) for x in values if limits.min <= x <= limits.max and not x % 1]
        found = pc.is_in(operand, value_set=pa.array(values, type_of))
        return pc.if_else(operand.is_valid(), found, pa.scalar(None, pa.bool_()))
    if operator == "in":
        return reduce(pc.or_kleene, (_compare("=", operand, type_of, [x]) for x in values))
    (value,) = values
    if limits:  # Arrow would compare floats, which are not exact
        if value > limits.max or value < limits.min or (value % 1 and operator in ("=", "!=")):
            true = ("!=", "<", "<=") if value > limits.min else ("!=", ">", ">=")
            return FUNCTIONS["=" if operator in true else "!="](operand, operand)
        value = math.ceil(value) if operator in ("<", ">=") else math.floor(value)
    scalar = _as_scalar(value, type_of)
    is_field = isinstance(operand, pc.Expression)
    return FUNCTIONS[operator](operand, pc.scalar(scalar) if is_field else scalar)


def _as_scalar(value: Any, type_of: Any) -> Any:
    """Return a value that Arrow compares with a column of a type."""
    name = _type_name(type_of)
    if name == "date":
        microseconds = round(_core.parse_time(value.encode(), True) * 1e6)
        return pa.scalar(microseconds, pa.timestamp("us", getattr(type_of, "tz", None)))
    if name == "number" and not pa.types.is_integer(type_of):
        return pa.scalar(float(value))
    return pa.scalar(value, type_of)


def _is_text(type_of: Any) -> bool:
    return bool(pa.types.is_string(type_of) or pa.types.is_large_string(type_of))


def _is_plain(schema: Any, test: Condition) -> bool:
    """Whether Arrow can compare a column with the values without a conversion of the column."""
    name, *values = test.parts
    names: list[str] = schema.names
    if names.count(name) != 1 or test.operator == "null":
        return names.count(name) == 1
    is_same = _type_name(schema.field(name).type) == _type_of_values(values)
    return is_same and len(values) <= MOST_PRUNED


def _type_of_values(values: list[Any]) -> str:
    """Return which of TYPES the values of a test are; a text may be a date."""
    if isinstance(values[0], str):
        times = [_core.parse_time(value.encode(), True) for value in values]
        return "text" if any(map(math.isnan, times)) else "date"
    return "truth" if isinstance(values[0], bool) else "number"


def _type_name(type_of: Any) -> str | None:
    """Return which of TYPES a type of Arrow is, or "null"."""
    types = pa.types
    if types.is_integer(type_of) or types.is_floating(type_of) or types.is_decimal(type_of):
        return "number"
    if types.is_date(type_of) or types.is_timestamp(type_of):
        return "date"
    if _is_text(type_of):
        return "text"
    return {"bool": "truth", "null": "null"}.get(str(type_of))


def _from_texts(texts: Any, type_of: str) -> Any:
    """Return texts as one of TYPES, with nulls for those that are not of that type."""
    texts = texts.cast(pa.large_string())
    if type_of == "text":
        return texts
    lower = pc.utf8_lower(texts)
    if type_of == "truth":
        known = pc.is_in(lower, value_set=pa.array(["true", "false"], lower.type))
        return pc.if_else(known, pc.equal(lower, "true"), pa.scalar(None, pa.bool_()))
    if type_of == "number":
        try:
            return texts.cast(pa.int64())  # exact, also above 2**53
        except pa.ArrowInvalid:
            pass
    strings, parse = ids_from_arrow(texts).ids, cast(Any, _core.parse_times)
    values: NDArray[np.float64] = parse(*strings, type_of == "date")
    is_bad = np.isnan(values)
    if type_of == "date":
        microseconds = np.round(np.where(is_bad, 0.0, values) * 1e6).astype(np.int64)
        return pa.array(microseconds, mask=is_bad).cast(pa.timestamp("us"))
    is_nan = pc.equal(lower, "nan").fill_null(False).to_numpy(zero_copy_only=False)
    return pa.array(values, mask=is_bad & ~is_nan)
