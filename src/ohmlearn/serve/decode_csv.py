"""Edges of CSV with a header. A row is a line: quoted values may not have line breaks."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np

from ohmlearn import _core
from ohmlearn.nodes.node_ids import Ids, Strings
from ohmlearn.reading.source_errors import shorten
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_lines import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    count_lines,
    describe_long,
    line_blocks,
    lines_of,
)
from ohmlearn.serve.decode_rows import (
    BadBody,
    Names,
    Row,
    RowReader,
    Rules,
    choose_names,
    join_batches,
    refuse_names,
)

__all__ = ["decode_csv"]


def decode_csv(body: bytes, rules: Rules) -> RawBatch:
    """Return the edges of lines, of which the first one names the columns."""
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadBody("the body is UTF-16; send it in UTF-8")
    body = body.removeprefix(BYTE_ORDER_MARK)
    if b"\n" not in body:
        body = body.replace(b"\r", b"\n")
    n_rows = count_lines(body) - 1
    rules.check_count(n_rows)
    if n_rows <= 0:
        return rules.no_rows()
    body = body if body.endswith(b"\n") else body + b"\n"
    header = next(lines_of(body))
    if len(header) > LONGEST_LINE:
        raise BadBody(f"the header has {len(header):,} bytes; send fewer columns")
    table = _Table(header.strip(b"\r\n"), rules)
    rest = body[body.index(header) + len(header) :]
    raw = table.read_fast(rest, rules.id_kind)
    return table.read_rows(rest) if raw is None else raw


class _Table:
    """The layout of a text, which its header says."""

    def __init__(self, header: bytes, rules: Rules) -> None:
        self.rules = rules
        self.mark = max(",;\t|", key=lambda mark: header.count(mark.encode()))
        self.layout = _core.TextLayout()
        self.layout.delimiter = self.mark
        fields = _core.split_line(header, self.layout)
        if fields is None:
            raise BadBody(f"a quote is not closed in the header, {_quote(header)}")
        columns = [field.decode(errors="replace").strip() for field in fields]
        names = choose_names(columns)
        if names is None:
            refuse_names(columns, rules.one)
        self.names: Names = names
        self.n_columns = len(columns)
        at = [-1 if name is None else columns.index(name) for name in names]
        self.layout.u, self.layout.v, self.layout.w, self.layout.t = at
        self.at = at
        mark = re.escape(self.mark.encode())
        blanks = rb"[ ]*+" if self.mark == "\t" else rb"[ \t]*+"
        quoted = blanks + rb'"(?:[^"\r\n]++|"")*+"' + blanks
        field = rb'(?:[^"\r\n' + mark + rb"]*+(?=" + mark + rb"|\r?$)|" + quoted + rb")"
        self.record = field + rb"(?:" + mark + field + rb")*+"

    def read_fast(self, text: bytes, kind: str | None) -> RawBatch | None:
        """Return the edges of a text without a bad row; None if there seems to be one."""
        has_quotes = b'"' in text
        if has_quotes:
            # The kernel would take a quoted line break as part of a value.
            line = rb"(?:[ \t]*+|" + self.record + rb")\r?$\n"
            if re.compile(rb"(?:" + line + rb")*+", re.MULTILINE).fullmatch(text) is None:
                return None
        first = next(lines_of(text))
        if len(first) > LONGEST_LINE:
            return None
        fields = _core.split_line(first.strip(b"\r\n"), self.layout)
        if fields is None or len(fields) != self.n_columns:
            return None
        u, v, _, t = self.at
        self.layout.dates = t >= 0 and not math.isnan(_core.parse_time(fields[t], True))
        whole = all(_core.parse_whole(fields[at]) is not None for at in (u, v))
        raw, fault = self._parse(text, kind or ("int64" if whole else "string"))
        is_text = fault is not None and fault.kind == _core.LineFault.Kind.integer
        if is_text and kind is None:
            raw, fault = self._parse(text, "string")
        if fault is not None:
            return None
        longest = max(_longest(raw.u), _longest(raw.v))
        n_marks = raw.u.size * (self.n_columns - 1)
        if longest > self.rules.max_id_bytes or raw.u.size > self.rules.max_rows:
            return None
        if not has_quotes and text.count(self.mark.encode()) != n_marks:
            return None  # a row has more or fewer values than there are columns
        return raw

    def _parse(self, text: bytes, kind: str) -> tuple[RawBatch, _core.LineFault | None]:
        strings = self.layout.strings = kind == "string"
        reader: Any = _core.EdgeText(self.layout, 1)
        reader.latest = self.rules.latest
        *ends, w, t = reader.parse(np.frombuffer(text, np.uint8), strings, True)
        u, v = (Strings(*ends[:2]), Strings(*ends[2:])) if strings else ends
        w, t = (x if at >= 0 else None for x, at in zip((w, t), self.at[2:], strict=True))
        return RawBatch(u, v, w, t=t), reader.first_fault

    def read_rows(self, text: bytes) -> RawBatch:
        """Read blocks that have a bad row line by line, and name what is wrong."""
        record = re.compile(self.record)
        kind = self.rules.id_kind or "string"
        batches = []
        for block, _, row in line_blocks(text):
            raw = self.read_fast(block, kind)
            if raw is None:
                reader = RowReader(self.rules, self.names, kind)
                for number, line in enumerate(lines_of(block), row):
                    values = self._split(line.rstrip(b"\r\n"), record)
                    if isinstance(values, str):
                        reader.refuse(number, values)
                    else:
                        reader.add(number, values)
                raw = reader.finish()
            batches.append(raw)
        raw = join_batches(batches)
        return raw if self.rules.id_kind is not None else _as_integers(raw)

    def _split(self, line: bytes, record: re.Pattern[bytes]) -> Row | str:
        if len(line) > LONGEST_LINE:
            return describe_long(line)
        if b"\r" in line:
            return f"a carriage return is inside {_quote(line)}; lines must end with a line feed"
        if b'"' in line and record.fullmatch(line) is None:
            return (
                f"quotes do not enclose a whole value in {_quote(line)}; write a quote in a value "
                f'as "", and send values with line breaks as NDJSON or Arrow'
            )
        fields = _core.split_line(line, self.layout)
        if fields is None or len(fields) != self.n_columns:
            n_values = len(fields or ())
            return (
                f"{_quote(line)} has {n_values} value{'s' * (n_values != 1)}, but the header names "
                f"{self.n_columns} columns; enclose values that contain {self.mark!r} in double "
                f"quotes"
            )
        values: list[Any] = []
        for name, at in zip(self.names, self.at, strict=True):
            try:
                values.append(None if name is None else fields[at].decode() or None)
            except UnicodeDecodeError:
                return f"{name} is {_quote(fields[at])}, which is not UTF-8"
        u, v, w, t = values
        if self.rules.id_kind == "int64":
            u, v = (x if x is None else _as_whole(x) for x in (u, v))
        return Row(u, v, None if w is None else _as_number(w), t)


def _as_integers(raw: RawBatch) -> RawBatch:
    """Return integers if all ids look like integers."""
    ends = []
    for ids in (raw.u, raw.v):
        assert isinstance(ids, Strings)
        data = ids.data.tobytes()
        numbers = []
        for start, stop in pairwise(ids.offsets.tolist()):
            if (whole := _core.parse_whole(data[start:stop])) is None:
                return raw
            numbers.append(whole)
        ends.append(np.array(numbers, dtype=np.int64))
    return raw._replace(u=ends[0], v=ends[1])


def _as_whole(text: str) -> int | str:
    whole = _core.parse_whole(text.encode())
    return text if whole is None else whole


def _as_number(text: str) -> float | str:
    number = _core.parse_time(text.encode(), False)
    return text if math.isnan(number) else number


def _longest(ids: Any) -> int:
    """Return the size of the longest id, if they are strings."""
    found: Ids = ids
    if not isinstance(found, Strings) or found.size == 0:
        return 0
    return int(np.diff(found.offsets).max())


def _quote(line: bytes) -> str:
    return shorten(line[:400].decode(errors="replace"))
