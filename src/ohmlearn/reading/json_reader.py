"""Edges from JSON lines: one object per line, with the same names in each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import render
from ohmlearn.nodes.node_ids import Ids, encode_strings, is_whole
from ohmlearn.reading.byte_blocks import ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample, choose_columns
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source
from ohmlearn.reading.time_rule import CheckedTimes, are_date_texts

__all__ = ["JsonLinesSource"]

LOOK = 100  # lines that decide which columns are not ends


class JsonLinesSource(Source):
    """A file or pipe of JSON objects; the first one has the names of the columns."""

    has_rows = True
    reads_files = True
    _rows: Any = None  # a `RowFilter`

    def __init__(self, name: str, options: ReadOptions, pipe: BinaryIO | None = None) -> None:
        super().__init__(name, options, rereadable=pipe is None)
        self._pipe = pipe

    def inspect(self) -> None:
        """Read the first object."""
        if self._pipe is None:
            with ByteSource(self.name, None, self.options.filesystem) as source:
                self._choose(line_blocks(source))

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the lines, about 1 MiB at a time."""
        with ByteSource(self.name, self._pipe, self.options.filesystem) as source:
            blocks = line_blocks(source)
            columns, first = self._choose(blocks)
            yield from self._read(columns, kind, source, chain(first, blocks))

    def _read(
        self,
        columns: ColumnChoice,
        kind: str | None,
        source: ByteSource,
        blocks: Iterator[bytes],
    ) -> Iterator[RawBatch]:
        if self._rows is not None and self._rows.excludes_all():
            return
        kind = self.options.id_type or kind
        if columns.kinds is not None:
            kind = kind or "string"
        number = 1
        for block in blocks:
            lines = block.split(b"\n")[:-1]
            if kind is None:
                kind = self._guess_ids(lines, columns)
            batch = self.complete(self._parse(lines, number, columns, kind))
            number += len(lines)
            self.fraction = source.fraction()
            yield batch

    def _choose(self, blocks: Iterator[bytes]) -> tuple[ColumnChoice, list[bytes]]:
        """Return the columns, and the blocks that were read to find them."""
        read: list[bytes] = []
        number = 0
        for block in blocks:
            read.append(block if read else block.removeprefix(b"\xef\xbb\xbf"))
            for line in read[-1].split(b"\n")[:-1]:
                number += 1
                if line.strip():
                    row, fault = _parse_object(line)
                    if row is None:
                        refuse_source(self.name, fault, number)
                    lines = read[-1].split(b"\n", LOOK)[:-1]
                    values = _look(list(row), lines)
                    names = list(row)
                    own = self.own_options(names)
                    columns = choose_columns(self.name, own, names, len(names), values)
                    self._rows = self.make_filter(_all_names(lines), is_text=True)
                    self.columns = columns
                    return columns, read
        refuse_source(self.name, f"is empty: there is no line with {self.options.rows.one}")

    def _guess_ids(self, lines: list[bytes], columns: ColumnChoice) -> str:
        """Return "int64" if no id of the first block is a string, else "string"."""
        rows = (_parse_object(line)[0] or {} for line in lines if line.strip())
        names = [(columns.names or ())[at] for at in (columns.u, columns.v)]
        ids = (row.get(name) for row in rows for name in names)
        return "string" if any(isinstance(node, str) for node in ids) else "int64"

    def _parse(self, lines: list[bytes], number: int, columns: ColumnChoice, kind: str) -> RawBatch:
        ends: tuple[list[Any], list[Any]] = ([], [])
        weights: list[float] = []
        times: list[float] = []
        n_bad, first_bad = 0, None
        rows = [(at, *_parse_object(line)) for at, line in enumerate(lines, number) if line.strip()]
        if self._rows is not None:
            rows = self._choose_rows(rows)
        checked = self._take_times([row for _, row, _ in rows], columns)
        for position, (at, row, fault) in enumerate(rows):
            u = v = w = None
            if row is not None:
                u, v, w, fault = self._take(row, columns, kind)
            if checked and not fault and checked.bad is not None and checked.bad[position]:
                fault = checked.why(position)
            if not fault:
                ends[0].append(u)
                ends[1].append(v)
                weights.append(1.0 if w is None else float(w))
                if checked:
                    times.append(checked.t[position])
            elif self.options.skip_bad:
                n_bad += 1
                first_bad = first_bad or render(f"{self.name}, row {at}: {fault}")
            else:
                problem = f"{fault}; {self.options.rows.remedy}"
                refuse_source(self.name, problem, at)
        a, b = (_as_column(ids, kind) for ids in ends)
        return RawBatch(
            a,
            b,
            None if columns.w is None else np.array(weights),
            n_bad,
            first_bad,
            None if checked is None else np.array(times, dtype=np.float64),
        )

    def _choose_rows(self, rows: list[Any]) -> list[Any]:
        """Return the rows that count, and those that are bad."""
        objects = [row or {} for _, row, _ in rows]
        columns = {
            name: _as_texts([row.get(name) for row in objects]) for name in self._rows.columns
        }
        kept, bad = self._rows.keep(columns, len(rows))
        chosen = []
        for position, (at, row, fault) in enumerate(rows):
            if bad is not None and bad.mask[position]:
                chosen.append((at, None, bad.why(position)))
            elif row is None or kept[position]:
                chosen.append((at, row, fault))
        return chosen

    def _take_times(
        self, rows: list[dict[str, Any] | None], columns: ColumnChoice
    ) -> CheckedTimes | None:
        """Return the times of rows, if they are wanted; that of a bad line is missing."""
        if self.own_times is None or columns.t is None:
            return None
        name = (columns.names or ())[columns.t]
        values = np.empty(len(rows), dtype=object)
        values[:] = [None if row is None else row.get(name) for row in rows]
        return self.own_times.take(self.name, values)

    def _take(
        self, row: dict[str, Any], columns: ColumnChoice, kind: str
    ) -> tuple[Any, Any, float | None, str]:
        """Return the ids and the weight of a row, and what is wrong with it, if anything."""
        names = columns.names or ()
        u, v = row.get(names[columns.u]), row.get(names[columns.v])
        w = None if columns.w is None else row.get(names[columns.w])
        may_be_empty = self.options.rows.second_may_be_empty
        if may_be_empty:
            v = _as_text(v)
        u, v = _as_id(u), _as_id(v)
        fault = ""
        if problem := _id_fault(u, kind, may_be_empty=False):
            fault = f"{columns.name(columns.u)} {problem}"
        elif problem := _id_fault(v, kind, may_be_empty=may_be_empty):
            fault = f"{columns.name(columns.v)} {problem}"
        elif w is None and (may_be_empty or columns.w is None):
            return u, v, None, ""
        elif problem := _weight_fault(w):
            fault = f"the weight, {columns.name(columns.w)}, {problem}"
        return u, v, w, fault


def _parse_object(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the object that a line holds, or what is wrong with the line."""
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return None, f"is not JSON: {error}"
    if not isinstance(row, dict):
        return None, f"a line must be an object with names, got {shorten(repr(row))}"
    return row, ""


def _all_names(lines: list[bytes]) -> list[str]:
    """Return the names in some lines: an object may leave out what is missing."""
    rows = (row for row, _ in map(_parse_object, lines) if row is not None)
    return list(dict.fromkeys(name for row in rows for name in row))


def _look(names: list[str], lines: list[bytes]) -> ColumnSample:
    """Return which columns are not ends, by their values in some lines."""
    rows = [row for row, _ in map(_parse_object, lines) if row is not None]
    times, fractions, floats = set(), set(), set()
    for at, name in enumerate(names):
        values = [row[name] for row in rows if row.get(name) not in (None, "")]
        texts = [value.encode(errors="replace") for value in values if isinstance(value, str)]
        if texts and len(texts) == len(values) and are_date_texts(texts):
            times.add(at)
        n_fractions = sum(isinstance(value, float) and value % 1 > 0 for value in values)
        if n_fractions > 0:
            floats.add(at)
        if n_fractions > len(values) / 2:
            fractions.add(at)
    return ColumnSample(times, fractions, floats)


def _as_id(value: Any) -> Any:
    """Return a whole number that is written as a float as an integer."""
    if isinstance(value, float) and is_whole(value):
        return int(value)
    return value


def _as_text(value: Any) -> Any:
    """Return a label as text, null as an empty one; arrays and objects stay as they are."""
    if value is None or isinstance(value, str | list | dict):
        return "" if value is None else value
    return json.dumps(value)


def _as_texts(values: list[Any]) -> Any:
    """Return values as texts of Arrow, for a condition."""
    pa = require_extra("pyarrow", "files")
    texts = (x if x is None or isinstance(x, str) else json.dumps(x) for x in values)
    return pa.array(texts, pa.large_string())


def _id_fault(value: Any, kind: str, *, may_be_empty: bool) -> str:
    """Say why a value cannot be an id, if it cannot."""
    if value is None or (value == "" and not may_be_empty) or value != value:  # NaN
        return "is missing"
    if isinstance(value, bool) or not isinstance(value, int | str):
        what = "a whole number" if isinstance(value, float) else "an integer"
        return f"must be {what} or a string, got {shorten(repr(value))}"
    if kind == "string":
        try:
            str(value).encode()
        except UnicodeEncodeError:
            return f"is not valid Unicode: {shorten(ascii(value))}"
    elif isinstance(value, str):
        hint = 'if they are names, use id_type="string"'
        return f"is {shorten(value)}, but node ids were integers so far; {hint}"
    elif not -(2**63) <= value < 2**63:
        return f"does not fit int64: {value}"
    return ""


def _weight_fault(value: Any) -> str:
    """Say why a value cannot be a weight, if it cannot."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"is not a number: {shorten(repr(value))}"
    if not are_weights(value):
        return f"must {ALLOWED_WEIGHTS}, got {shorten(repr(value))}"
    return ""


def _as_column(ids: list[Any], kind: str) -> Ids:
    if kind == "string":
        return encode_strings([str(node) for node in ids])
    return np.array(ids, dtype=np.int64)
