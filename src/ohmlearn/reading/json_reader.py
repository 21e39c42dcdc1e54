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
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS, are_weights
from ohmlearn.nodes.node_ids import Ids, Strings, as_integer, encode_strings
from ohmlearn.reading.arrow_reader import take_record_batch
from ohmlearn.reading.byte_blocks import ARRAY_HINT, LONGEST_LINE, ByteSource, line_blocks
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.csv_reader import TextSample
from ohmlearn.reading.event_ids import hash_values
from ohmlearn.reading.source_errors import BadRows, SourceError, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source

if TYPE_CHECKING:
    from ohmlearn.reading.row_filter import RowFilter

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

    _late: Sequence[str] = ()  # names that no object may have if the first one does not

    def inspect(self) -> None:
        """Read the first object."""
        if self.pipe is None:
            with self.open() as source:
                self._choose(json_blocks(source, self.longest_line))

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the lines, about 1 MiB at a time."""
        with self.open() as source:
            blocks = json_blocks(source, self.longest_line)
            columns, first = self._choose(blocks)
            if self.condition is not None and self.condition.excludes_all():
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
                yield self.complete(batch._replace(fraction=source.fraction()))

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
            columns = self._choose_columns(names, block)
            usual = self.options.rows.weights if columns.w is None else ()
            usual += self.options.rows.times if columns.t is None else ()
            self._late = [name for name in usual if name not in names]
            return columns, read
        refuse_source(self.name, f"is empty: there is no line with {self.options.rows.one}")

    def _choose_columns(self, names: list[str], block: bytes) -> ColumnChoice:
        """Return which columns are read, by the names in the first object and some lines."""
        lines = self._parse_lines(b"\n".join(block.split(b"\n", LOOK)[:-1]))
        rows = [row.values for row in lines if row.values is not None]
        values = ([row.get(name) for name in names] for row in rows)
        texts = [[_as_text(x).encode(errors="replace") for x in row] for row in values]
        sample = TextSample(texts).look(len(names))
        # An object may leave out what is missing.
        return self.choose(names, len(names), sample, is_text=True, optional=chain(*rows))

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
        batch = None if self.condition is not None else self._parse_columns(block, columns)
        if batch is None:
            return None
        alone = columns.alone()
        has_text = "string" in batch.schema.types[:2]
        is_number = alone.t is not None and batch.schema.types[alone.t] != "string"
        if (has_text and kind == "int64") or (is_number and self.times and self.times.dates):
            return None
        try:
            raw = take_record_batch(self, batch, alone, "string" if has_text else kind, 1)
        except SourceError:
            return None
        if raw.n_bad > 0:
            return None
        for ids, may_be_empty in ((raw.u, False), (raw.v, self.options.rows.second_may_be_empty)):
            if isinstance(ids, Strings) and not may_be_empty and not np.diff(ids.offsets).all():
                return None
        return raw

    def _parse_columns(self, block: bytes, columns: ColumnChoice) -> Any:
        """Return the columns that are read in a record batch; None if pyarrow cannot."""
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
        batch = table.select(list(fields)).combine_chunks().to_batches()[0]
        return None if any(column.null_count for column in batch.columns) else batch

    def _read_rows(
        self, block: bytes, number: int, columns: ColumnChoice, kind: str | None
    ) -> RawBatch:
        """Return the edges of the good rows of a block; refuse or count the others."""
        rows = list(self._parse_lines(block, number))
        names, has_labels = columns.names or (), self.options.rows.second_may_be_empty
        if kind is None:
            ids = ((row.values or {}).get(names[at]) for row in rows for at in columns[:2])
            kind = "string" if any(isinstance(node, str) for node in ids) else "int64"
        if self.condition is not None:
            rows = _choose_rows(rows, self.condition)
        good: list[dict[int, Any]] = []  # the values that are read, by column; none of bad rows
        faults = []
        for row in rows:
            given = row.values or {}
            values = {at: given.get(names[at]) for at in columns.used}
            values |= {at: as_integer(values[at]) for at in (columns.u, columns.v)}
            if has_labels and not isinstance(values[columns.v], list | dict):
                values[columns.v] = _as_text(values[columns.v])
            faults.append(row.fault or self._find_fault(given, values, columns, kind))
            good.append({} if faults[-1] else values)

        def take(at: int) -> list[Any]:
            return [values.get(at) for values in good]

        def as_ids(at: int) -> Ids:  # any value for those that are missing
            if kind == "string":
                return encode_strings(["" if x is None else str(x) for x in take(at)])
            return np.array([x or 0 for x in take(at)], dtype=np.int64)

        raw = RawBatch(as_ids(columns.u), as_ids(columns.v))
        if columns.w is not None:
            w = np.array([1.0 if x is None else float(x) for x in take(columns.w)])
            raw = raw._replace(w=w)
        if columns.event is not None:
            raw = raw._replace(event=hash_values(take(columns.event)))
        is_bad = np.array([fault != "" for fault in faults], bool)
        bad = [BadRows(is_bad, faults.__getitem__) if is_bad.any() else None]
        if self.own_times is not None and columns.t is not None:
            times = np.empty(len(rows), dtype=object)
            times[:] = take(columns.t)
            t, bad_times = self.own_times.take(self.name, times)
            raw = raw._replace(t=t)
            bad.append(bad_times)
        numbers = np.array([row.number for row in rows], np.int64)
        return self.drop_bad(raw, bad, numbers)

    def _find_fault(
        self, row: dict[str, Any], values: dict[int, Any], columns: ColumnChoice, kind: str
    ) -> str:
        """Say what is wrong with the values of an object, except its time; empty if nothing is."""
        may_be_empty = self.options.rows.second_may_be_empty
        for at in (columns.u, columns.v):
            is_label = may_be_empty and at == columns.v
            if problem := self._id_fault(values[at], kind, may_be_empty=is_label):
                return f"{columns.name(at)} {problem}"
        late = next((name for name in self._late if row.get(name) is not None), None)
        if late is not None:
            return f"it has {late!r}, but the first row has not; give all rows one, or none"
        if columns.w is not None and not ((w := values[columns.w]) is None and may_be_empty):
            weight = f"the weight, {columns.name(columns.w)},"
            if isinstance(w, bool) or not isinstance(w, int | float):
                return f"{weight} is not a number: {shorten(repr(w))}"
            if not are_weights(w):
                return f"{weight} must {ALLOWED_WEIGHTS}, got {shorten(repr(w))}"
        if columns.event is None:
            return ""
        problem = self._id_fault(values[columns.event], "string", may_be_empty=False)
        return problem and f"the event id, {columns.name(columns.event)}, {problem}"

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


def _choose_rows(rows: list[JsonRow], condition: RowFilter) -> list[JsonRow]:
    """Return the rows that count, and those that are bad."""
    import pyarrow as pa

    columns = {}
    for name in condition.columns:
        values = ((row.values or {}).get(name) for row in rows)
        texts = (None if x is None else _as_text(x) for x in values)
        columns[name] = pa.array(texts, pa.large_string())
    kept, bad = condition.keep(columns, len(rows))
    chosen = []
    for position, row in enumerate(rows):
        if bad is not None and bad.mask[position]:
            chosen.append(JsonRow(row.number, None, bad.why(position)))
        elif row.values is None or kept[position]:
            chosen.append(row)
    return chosen


def _as_text(value: Any) -> str:
    """Return a value as a field of text has it; null is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)
