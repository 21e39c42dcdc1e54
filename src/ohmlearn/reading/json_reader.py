"""Edges from JSON lines, one object per line with the same names in each, and from JSON arrays.

pyarrow parses each block of lines with the types that its first object has. If it refuses a block,
or a value of the block is missing or bad, the block is parsed line by line with `json`, which
decides what is wrong with which row. So both ways give the same edges, and only bad blocks are
slow. The types are given to pyarrow, because it would take a string such as "2026-03-31" for a date
and change ids.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.checks.parameters import require_extra
from ohmlearn.checks.times import Floats
from ohmlearn.nodes.node_ids import Ids, Strings, encode_strings, ids_from_arrow, is_whole
from ohmlearn.reading.arrow_reader import take_ids
from ohmlearn.reading.byte_blocks import ARRAY_HINT, LONGEST_LINE, ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample, choose_columns
from ohmlearn.reading.event_ids import hash_array, hash_values
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import BadRows, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source
from ohmlearn.reading.time_rule import are_date_texts

__all__ = ["BYTE_ORDER_MARK", "JsonLinesSource", "json_blocks"]

LOOK = 100  # lines that decide which columns are not ends
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonRow(NamedTuple):
    """A line that is not blank: its number, and the object in it or what is wrong with it."""

    number: int
    values: dict[str, Any] | None
    fault: str


class JsonLinesSource(Source):
    """A file or pipe of JSON objects; the first one has the names of the columns."""

    has_rows = True
    reads_files = True
    longest_line = LONGEST_LINE  # bytes; as objects of Python they may take fifty times as much
    _rows: Any = None  # a `RowFilter`

    def __init__(self, name: str, options: ReadOptions, pipe: BinaryIO | None = None) -> None:
        super().__init__(name, options, rereadable=pipe is None)
        self._pipe = pipe
        self._late: list[str] = []  # names that no object may have if the first one does not

    def inspect(self) -> None:
        """Read the first object."""
        if self._pipe is None:
            with ByteSource(self.name, None, self.options.filesystem) as source:
                self._choose(json_blocks(source, self.longest_line))

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the lines, about 1 MiB at a time."""
        with ByteSource(self.name, self._pipe, self.options.filesystem) as source:
            blocks = json_blocks(source, self.longest_line)
            columns, first = self._choose(blocks)
            if self._rows is not None and self._rows.excludes_all():
                return
            kind = self.options.id_type or kind
            if columns.kinds is not None:
                kind = kind or "string"
            number = 1
            for block in chain(first, blocks):
                batch = self._read_fast(block, columns, kind)
                batch = batch or self._read_rows(block, number, columns, kind)
                number += block.count(b"\n")
                kind = kind or ("string" if isinstance(batch.u, Strings) else "int64")
                self.fraction = source.fraction()
                yield self.complete(batch)

    def _choose(self, blocks: Iterator[bytes]) -> tuple[ColumnChoice, list[bytes]]:
        """Return the columns, and the blocks that were read to find them."""
        read: list[bytes] = []
        number = 1
        for block in blocks:
            read.append(block)
            rows = self._parse_lines(block, number)
            row = first = next(rows, None)
            number += block.count(b"\n")
            if first is None:
                continue
            if self.options.skip_bad:
                row = next((row for row in chain([first], rows) if row.values is not None), first)
            if row is None or row.values is None:
                refuse_source(self.name, first.fault, first.number)
            names = list(row.values)
            self.columns = columns = self.choose_columns(names, block)
            usual = self.options.rows.weights if columns.w is None else ()
            usual += self.options.rows.times if columns.t is None else ()
            self._late = [name for name in usual if name not in names]
            return columns, read
        refuse_source(self.name, f"is empty: there is no line with {self.options.rows.one}")

    def choose_columns(self, names: list[str], block: bytes) -> ColumnChoice:
        """Return which columns are read, by the names in the first object and some lines."""
        lines = self._parse_lines(b"\n".join(block.split(b"\n", LOOK)[:-1]))
        rows = [row.values for row in lines if row.values is not None]
        own = self.own_options(names)
        # An object may leave out what is missing.
        self._rows = self.make_filter(list(dict.fromkeys(chain(*rows))), is_text=True)
        return choose_columns(self.name, own, names, len(names), _look(names, rows))

    def _parse_lines(self, block: bytes, number: int = 1) -> Iterator[JsonRow]:
        """Parse the lines of a block that are not blank; the first line has this number."""
        for at, line in enumerate(io.BytesIO(block), number):
            if not line.strip():
                continue
            if len(line) > self.longest_line:
                most = f"but a row may have at most {self.longest_line:,}"
                yield JsonRow(at, None, f"the line has {len(line):,} bytes, {most}")
                continue
            row, fault = _parse(line.rstrip(b"\n"))
            if not fault and not isinstance(row, dict):
                fault = f"a line must be an object with names, got {shorten(repr(row))}"
            yield JsonRow(at, None if fault else row, fault)

    def _read_fast(self, block: bytes, columns: ColumnChoice, kind: str | None) -> RawBatch | None:
        """Return the edges of a block without a bad row; None if there may be one."""
        arrays = None if self._rows is not None else self._parse_columns(block, columns)
        if arrays is None:
            return None
        is_text = [array.type == "string" for array in arrays]
        if kind == "int64" and any(is_text[:2]):
            return None
        id_type = "string" if kind == "string" or any(is_text[:2]) else None
        u, v = (take_ids(array, id_type)[0] for array in arrays[:2])
        for ids, may_be_empty in ((u, False), (v, self.options.rows.second_may_be_empty)):
            if isinstance(ids, Strings) and not may_be_empty and not np.diff(ids.offsets).all():
                return None
        w = t = None
        if columns.w is not None:
            w = arrays[2].to_numpy(zero_copy_only=False)
            if not are_weights(w).all():
                return None
        if self.own_times is not None and columns.t is not None:
            if self.own_times.dates and not is_text[-1]:
                return None
            values = ids_from_arrow(arrays[-1]).ids if is_text[-1] else arrays[-1].to_numpy()
            t, bad = self.own_times.take(self.name, values)
            if bad is not None:
                return None
        event = None
        if columns.event is not None:
            values = arrays[columns.used.index(columns.event)]
            event = hash_array(values, self.name, columns.name(columns.event))
        return RawBatch(u, v, w, t=t, event=event)

    def _parse_columns(self, block: bytes, columns: ColumnChoice) -> list[Any] | None:
        """Return the columns that are read, without a null; None if pyarrow cannot."""
        try:
            import pyarrow as pa
            import pyarrow.json
        except ImportError:
            return None
        first = next(self._parse_lines(block), None)
        if first is None or first.values is None:
            return None
        types: dict[type, Any] = {int: pa.int64(), str: pa.string()}
        numbers: dict[type, Any] = {int: pa.float64(), float: pa.float64()}
        texts: dict[type, Any] = {str: pa.string()}
        allowed = {columns.w: numbers, columns.t: numbers | texts}
        if self.options.rows.second_may_be_empty:
            allowed[columns.v] = texts
        fields = {}
        for at in columns.used:
            name = (columns.names or ())[at]
            fields[name] = allowed.get(at, types).get(type(first.values.get(name)))
        if None in fields.values():
            return None
        schema = pa.schema([*fields.items(), *((name, pa.null()) for name in self._late)])
        try:
            block.isascii() or block.decode()  # pyarrow does not check it
            table = pyarrow.json.read_json(
                pa.BufferReader(block),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowException, ValueError):
            return None
        # pyarrow also reads two objects in a line, and long ones.
        if table.num_rows != _count_lines(block, self.longest_line):
            return None
        arrays = [column.combine_chunks() for column in table.columns[: len(fields)]]
        return None if any(array.null_count for array in arrays) else arrays

    def _read_rows(
        self, block: bytes, number: int, columns: ColumnChoice, kind: str | None
    ) -> RawBatch:
        """Return the edges of the good rows of a block; refuse or count the others."""
        rows = list(self._parse_lines(block, number))
        kind = kind or _guess_ids(rows, columns)
        if self._rows is not None:
            rows = self._choose_rows(rows)
        ends: tuple[list[Any], list[Any]] = ([], [])
        weights: list[float] = []
        times: list[float] = []
        events: list[Any] = []
        event_name = None if columns.event is None else (columns.names or ())[columns.event]
        n_bad, first_bad = 0, None
        t, bad = self._take_times(rows, columns)
        for position, (at, row, fault) in enumerate(rows):
            u = v = w = None
            if row is not None:
                u, v, w, fault = self._take(row, columns, kind)
            if not fault and bad is not None and bad.mask[position]:
                fault = bad.why(position)
            event = None if row is None or event_name is None else row.get(event_name)
            if not fault and event_name is not None:
                problem = self._id_fault(event, "string", may_be_empty=False)
                fault = problem and f"the event id, {event_name!r}, {problem}"
            if not fault:
                events.append(event)
                ends[0].append(u)
                ends[1].append(v)
                weights.append(1.0 if w is None else float(w))
                if t is not None:
                    times.append(t[position])
            elif self.options.skip_bad:
                n_bad += 1
                first_bad = first_bad or f"{self.name}, row {at}: {fault}"
            else:
                refuse_source(self.name, fault, at, self.options.rows.remedy)
        a, b = (_as_column(ids, kind) for ids in ends)
        return RawBatch(
            a,
            b,
            None if columns.w is None else np.array(weights),
            n_bad,
            first_bad,
            None if t is None else np.array(times, dtype=np.float64),
            event=None if event_name is None else hash_values(events),
        )

    def _choose_rows(self, rows: list[JsonRow]) -> list[JsonRow]:
        """Return the rows that count, and those that are bad."""
        objects = [row.values or {} for row in rows]
        columns = {
            name: _as_texts([row.get(name) for row in objects]) for name in self._rows.columns
        }
        kept, bad = self._rows.keep(columns, len(rows))
        chosen = []
        for position, row in enumerate(rows):
            if bad is not None and bad.mask[position]:
                chosen.append(JsonRow(row.number, None, bad.why(position)))
            elif row.values is None or kept[position]:
                chosen.append(row)
        return chosen

    def _take_times(
        self, rows: list[JsonRow], columns: ColumnChoice
    ) -> tuple[Floats | None, BadRows | None]:
        """Return the times of rows, if they are wanted; that of a bad line is missing."""
        if self.own_times is None or columns.t is None:
            return None, None
        name = (columns.names or ())[columns.t]
        values = np.empty(len(rows), dtype=object)
        values[:] = [None if row.values is None else row.values.get(name) for row in rows]
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
        late = next((name for name in self._late if row.get(name) is not None), None)
        if problem := self._id_fault(u, kind, may_be_empty=False):
            fault = f"{columns.name(columns.u)} {problem}"
        elif problem := self._id_fault(v, kind, may_be_empty=may_be_empty):
            fault = f"{columns.name(columns.v)} {problem}"
        elif late is not None:
            fault = f"it has {late!r}, but the first row has not; give all rows one, or none"
        elif w is None and (may_be_empty or columns.w is None):
            return u, v, None, ""
        elif problem := _weight_fault(w):
            fault = f"the weight, {columns.name(columns.w)}, {problem}"
        return u, v, w, fault

    def _id_fault(self, value: Any, kind: str, *, may_be_empty: bool) -> str:
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
            hint = self.options.rows.names_remedy
            return f"is {shorten(value)}, but node ids were integers so far; {hint}"
        elif not -(2**63) <= value < 2**63:
            return f"does not fit int64: {value}"
        return ""


def json_blocks(source: ByteSource, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield blocks of lines; an array becomes a block with one line per entry."""
    blocks = line_blocks(source)
    first = next(blocks, b"").removeprefix(BYTE_ORDER_MARK)
    if not first.lstrip().startswith(b"["):
        yield from chain([first] if first else [], blocks)
        return
    while len(first) <= longest and (block := next(blocks, b"")):
        first += block
    if len(first) > longest:
        refuse_source(
            source.name, f"is a JSON array of more than {longest >> 20} MiB; {ARRAY_HINT}"
        )
    entries, fault = _parse(first)
    if not isinstance(entries, list):
        refuse_source(source.name, f"starts with [, but is not a JSON array: {fault}")
    yield b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def _parse(text: bytes) -> tuple[Any, str]:
    """Return the value that a text holds, or what is wrong with it."""
    try:
        return json.loads(text.decode()), ""
    except (ValueError, RecursionError) as error:
        return None, f"is not JSON: {error}"


def _count_lines(text: bytes, longest: int) -> int:
    """Return the number of lines that are not blank, -1 if one is too long; without a list."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if len(text) > longest and np.diff(ends, prepend=-1, append=len(text)).max() > longest:
        return -1
    if not text.startswith(b"\n") and (letters[ends - 1] == ord("}")).all():  # the usual case
        return len(ends) + text.endswith(b"}")
    return sum(1 for line in io.BytesIO(text) if line.strip())


def _look(names: list[str], rows: list[dict[str, Any]]) -> ColumnSample:
    """Return which columns are not ends, by their values in some rows."""
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


def _guess_ids(rows: list[JsonRow], columns: ColumnChoice) -> str:
    """Return "int64" if no id of the rows is a string, else "string"."""
    names = [(columns.names or ())[at] for at in (columns.u, columns.v)]
    ids = ((row.values or {}).get(name) for row in rows for name in names)
    return "string" if any(isinstance(node, str) for node in ids) else "int64"


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
