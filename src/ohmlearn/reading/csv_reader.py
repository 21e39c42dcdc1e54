"""Edges from text: CSV, TSV, and lists with comments and blanks, as SNAP has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, takewhile
from math import isnan
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import ALLOWED_WEIGHTS
from ohmlearn.checks.times import find_unix_unit
from ohmlearn.errors import Setting
from ohmlearn.nodes.node_ids import Strings, is_name
from ohmlearn.reading.byte_blocks import line_blocks
from ohmlearn.reading.column_choice import (
    ColumnChoice,
    ColumnSample,
    doubt_weights,
    find_ends,
    is_id,
)
from ohmlearn.reading.read_options import TIMES, ReadOptions, Rows
from ohmlearn.reading.source_errors import BadRows, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source
from ohmlearn.reading.time_rule import DATE, TimeRule, are_date_texts, explain_date

LOOK = 300  # records that decide what a column is
FEWEST_TIMES = 5  # integers that look like Unix times
DECIMAL_COMMA = re.compile(rb"[-+]?\d+,\d+")
THOUSANDS = re.compile(rb"[-+]?[1-9]\d{0,2},\d{3}")
ODD_ONE = 5
SAMPLE = 1000  # records of about 100 bytes that decide whether ids are integers or strings
Floats = NDArray[np.float64]
LINE_ENDS = r"lines must all end with \n, all with \r\n, or all with \r"


def find_delimiter(line: bytes, style: str, given: str | None = None) -> str:
    """Return the delimiter of a text from its first line; empty for runs of blanks.

    Attributes of networkx, and blanks between numbers of KONECT, do not belong to names.
    """
    if given is not None:
        return "" if given == " " else given
    if line.rstrip().endswith(b"}"):
        line = line.partition(b"{")[0].rstrip(b" ") or line
    if style == "tsv":
        return "\t"
    if style == "csv":
        counts = {mark: line.count(mark.encode()) for mark in ",;\t|"}
        best = max(counts, key=lambda mark: counts[mark])
        return best if counts[best] else "," if b" " not in line.strip() else ""
    words = line.split()
    if b"\t" in line and len(line.split(b"\t")) != len(words) and not all(map(_is_number, words)):
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

    def may_be_thousands(self, at: int) -> bytes | None:
        """Return a number such as 1,500, if no number in a column has a comma elsewhere."""
        texts = [text for text in self.column(at) if b"," in text]
        return texts[0] if all(map(THOUSANDS.fullmatch, texts)) else None

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


class TextPlan(NamedTuple):
    """How to read a text."""

    columns: ColumnChoice
    layout: _core.TextLayout
    text: bytes  # the first block, from the first edge on
    line: int  # number of its first line


class TextStart(NamedTuple):
    """The beginning of a text: its first record, which may be a header, and some more."""

    layout: _core.TextLayout
    text: bytes  # from the first record on
    line: int  # number of its first line
    first: bytes
    fields: list[bytes]  # of the first record
    end: int  # of the first record
    records: list[bytes]  # some of those after it

    def after_header(self) -> tuple[bytes, int]:
        """Return the text after the first record, and the number of its first line."""
        return self.text[self.end :], self.line + self.text.count(b"\n", 0, self.end)


def start_text(
    name: str,
    blocks: Iterator[bytes],
    style: str,
    one: str,
    delimiter: str | None = None,
    comment: str | None = None,
    n_records: int = SAMPLE,
) -> TextStart:
    """Read the beginning of a text, and find its delimiter; `one` is a row, in words."""
    block = next(blocks, b"")
    if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
        refuse_source(name, "is UTF-16; convert it to UTF-8 first, for example with iconv")
    block = block.removeprefix(b"\xef\xbb\xbf")
    layout = _core.TextLayout()
    # CSV has no comments, but some lists of SNAP have the ending .csv; they start with #.
    usual = "#%" if style == "text" else "#" if block[:1] == b"#" else ""
    layout.comments = usual if comment is None else comment
    layout.quotes = True
    block, line = skip_comments(name, chain([block], blocks), layout)
    if not block:
        refuse_source(name, f"is empty: there is no line with {one}")
    if len(block) < 200 * SAMPLE:  # too little to guess from
        block += next(blocks, b"")
    found = find_delimiter(block[: block.index(b"\n")].rstrip(b"\r"), style, delimiter)
    layout.delimiter = found
    more: bytes | None = b""
    end = 0
    while end == 0:  # the first record may be longer than a block
        block += more or b""
        first, end, _, has_return = _core.first_record(block, 0, layout, more is None)
        more = next(blocks, None) if end == 0 else more
    if has_return:
        refuse_return(name, first, line)
    fields = _core.split_line(first, layout)
    if fields is None:
        text = shorten(first.decode(errors="replace"))
        refuse_source(name, f"a quote is not closed in {text}", line)
    stop = min(len(block), end + 100 * SAMPLE)
    records = _core.some_records(block, end, stop, n_records, layout)
    return TextStart(layout, block, line, first, fields, end, records)


class TextSource(Source):
    """A file or pipe with one edge per line.

    The styles "csv" and "tsv" have no comments and usually a header; "text" is the format of SNAP.
    """

    has_rows = True
    reads_files = True
    n_sample = SAMPLE  # records; if it is one, the names alone say what columns are

    def __init__(
        self, name: str, options: ReadOptions, style: str, pipe: BinaryIO | None = None
    ) -> None:
        super().__init__(name, options, pipe)
        self._style = style

    def inspect(self) -> None:
        """Read the beginning of a file."""
        if self.pipe is None:
            with self.open() as source:
                self._plan(line_blocks(source), None)

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the lines."""
        with self.open() as source:
            blocks = line_blocks(source)
            plan = self._plan(blocks, kind)
            blocks = chain([plan.text], blocks)
            bad: list[tuple[int, str]] = []  # rows that cannot be compared

            def note(rows: BadRows, lines: NDArray[np.int64]) -> None:
                bad.append(self.refuse_or_count(rows, plan.line + lines))

            if self.condition is not None:
                from ohmlearn.reading.row_filter import choose_records

                if self.condition.excludes_all():
                    return
                blocks = choose_records(self.condition, plan.layout, blocks, note)
            for batch in parse_blocks(self, plan.columns, plan.layout, plan.line, blocks):
                while bad:
                    batch = batch.with_bad(*bad.pop(0))
                yield self.complete(batch._replace(fraction=source.fraction()))

    def _plan(self, blocks: Iterator[bytes], kind: str | None) -> TextPlan:
        options = self.options
        how = (self._style, options.rows.one, options.delimiter, options.comment, self.n_sample)
        start = start_text(self.name, blocks, *how)
        layout, fields, line = start.layout, start.fields, start.line
        if layout.delimiter == "":  # a comment may follow
            marks = tuple(mark.encode() for mark in layout.comments)
            fields = list(takewhile(lambda field: not field.startswith(marks), fields))
        layout.skips_faults = options.skip_bad
        names = None
        split = (_core.split_line(record, layout) for record in start.records)
        sample = TextSample([row for row in split if row is not None])
        if self._is_header(fields, sample):
            names = [field.decode(errors="replace") for field in fields]
            block, line = start.after_header()
        else:
            block, sample = start.text, TextSample([start.fields, *sample.rows])
        if len(fields) < 2:
            refuse_one_column(self.name, options, layout.delimiter, start.first)
        own = self.own_options(names)
        layout.attributes = names is None and _are_attributes(own, sample)
        if layout.attributes:
            fields = fields[:2]
        is_known = layout.attributes or self.n_sample == 1
        values = ColumnSample() if is_known else sample.look(len(fields))
        columns = self.choose(names, len(fields), values, is_text=True)
        layout.u, layout.v = columns.u, columns.v
        layout.w = -1 if columns.w is None else columns.w
        layout.event = -1 if columns.event is None else columns.event
        if columns.w is not None and sample.has_decimal_commas(columns.w):
            # Where commas are decimal ones, programs write semicolons between the columns.
            doubt = None if layout.delimiter == ";" else sample.may_be_thousands(columns.w)
            if doubt is not None:
                shown, whole = doubt.decode(), doubt.replace(b",", b"").decode()
                refuse_source(
                    self.name,
                    f"the weight, {columns.name(columns.w)}, is {shown!r}, which may be {whole} or "
                    f"{shown.replace(',', '.')}; write numbers without commas",
                )
            layout.decimal_comma = True
        self._choose_ids(columns, sample, layout, kind, values)
        if columns.t is not None:
            layout.t = columns.t
            layout.dates = are_date_texts(sample.column(columns.t))
        layout.empty_v = options.rows.second_may_be_empty
        # Blanks also separate a day and the time of the day, which not every row need have.
        if not (layout.attributes or (layout.dates and layout.delimiter == "")):
            layout.n_fields = len(fields)
        if layout.attributes:
            guessed = f"{columns.guessed}, in dicts".strip(", ")
            self.columns = columns = columns._replace(w=2, guessed=guessed)
        return TextPlan(columns, layout, block, line)

    def _choose_ids(
        self,
        columns: ColumnChoice,
        sample: TextSample,
        layout: _core.TextLayout,
        kind: str | None,
        values: ColumnSample,
    ) -> None:
        """Decide whether ids are integers or strings; refuse those with fractions."""
        options = self.options
        has_labels = options.rows.second_may_be_empty
        if columns.kinds is not None:
            kind = "string"  # with the kind in front
        if options.id_type != "string" and not has_labels:
            for at in (columns.u, columns.v):
                if at in values.fractions:
                    why = f"node ids must be whole numbers or names, but {columns.name(at)} is"
                    texts = (x for x in sample.column(at) if _core.parse_whole(x) is None)
                    found = shorten(next(texts).decode(errors="replace"))
                    remedy = f"name other columns with {' and '.join(options.rows.options)}"
                    remedy += f", or use {Setting('id_type', 'string')} if these are names"
                    refuse_source(self.name, f"{why} {found}; {remedy}")
        if options.id_type or kind:
            layout.strings = (options.id_type or kind) == "string"
        else:
            # If bad rows are left out, a few names among integers are bad rows.
            integers = sample.are_integers(layout.u, layout.v, mostly=options.skip_bad)
            layout.strings = not integers
        if layout.strings and (has_labels or options.id_type is None):
            layout.whole_u = sample.are_whole(columns.u)
            layout.whole_v = not has_labels and sample.are_whole(columns.v)

    def _is_header(self, fields: list[bytes], sample: TextSample) -> bool:
        options, rows = self.options, self.options.rows
        if options.header is not None:
            return options.header
        lower = {field.decode(errors="replace").strip().lower() for field in fields}
        weight = options.weight and options.weight.column
        named = (options.source_col, options.target_col, weight, options.time)
        columns = (*named, options.event_id_col)
        if lower & {name.lower() for name in columns if isinstance(name, str)}:
            return True
        if any(_is_number(field) or not isnan(_core.parse_time(field, True)) for field in fields):
            return False
        texts = [field.decode(errors="replace") for field in fields]
        if any(explain_date(text) or text.startswith("{") for text in texts):
            return False
        # One letter may be an id; a pair of usual letters is not.
        # In a table without a header by convention, "trust" may be a label.
        times = () if options.time is None else TIMES
        names = chain(*rows.ends, rows.weights if rows.csv_has_header else (), times)
        usual = {name for name in names if len(name) > 1}
        if lower & usual or any(lower.issuperset(pair) for pair in rows.ends):
            return True
        if _are_headings(texts, rows, sample):
            return True
        if rows.second_may_be_empty and str in map(type, columns):
            return True
        if rows.second_may_be_empty and options.source_col is options.target_col is None:
            return _is_odd_row(fields, sample)
        # A CSV file of names has a header by convention; other text only if numbers follow.
        if self._style != "text" or not sample.rows:
            return self._style != "text" and rows.csv_has_header
        after = sample.rows[0]
        return len(after) > 1 and None not in map(_core.parse_whole, after[:2])


def _are_attributes(options: ReadOptions, sample: TextSample) -> bool:
    """Whether all rows are two ids and a dict of attributes, as networkx writes them."""
    if options.rows is not ReadOptions.rows:
        return False
    if not (options.source_col is options.target_col is options.weight_col is options.time is None):
        return False
    return bool(sample.rows) and all(
        len(fields) > 2 and fields[2].startswith(b"{") and fields[-1].endswith(b"}")
        for fields in sample.rows
    )


def _are_headings(headings: list[str], rows: Rows, sample: TextSample) -> bool:
    """Whether words that no row has as ids are names of columns, such as user_id."""
    named = [at for at, heading in enumerate(headings) if is_id(heading)]
    if rows.csv_has_header and not named:
        pair = find_ends(headings, rows.ends) or ()
        named = [at for at in pair if len(headings[at]) > 1 and not headings[at][-1].isdecimal()]
        named = named if len(named) == 2 else []
    return bool(named) and not any(headings[at].encode() in sample.column(at) for at in named)


def _is_odd_row(fields: list[bytes], sample: TextSample) -> bool:
    """Whether a first row of a table of labels is its heading, though no name is a usual one.

    It must be of words without digits that no other row has. It is one if another column has digits
    in all rows, as ids and numbers do; or if its label is in no other row, and at most one label in
    five is alone like this, so that it would be a coincidence.
    """
    columns = [sample.column(at) for at in range(len(fields))]
    if _has_digit(b"".join(fields)) or any(map(list.__contains__, columns, fields)):
        return False
    if any(texts and all(map(_has_digit, texts)) for texts in columns):
        return True
    labels = min(map(Counter, columns[:2]), key=len)
    n_alone = 1 + sum(count == 1 for count in labels.values())
    return len(fields) > 1 and ODD_ONE * n_alone <= 1 + labels.total()


def _has_digit(text: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in text)


def _is_number(field: bytes) -> bool:
    """Return whether a field is a number, and so not the name of a column."""
    return not is_name(field) or not isnan(as_number(field))


def skip_comments(
    name: str, blocks: Iterator[bytes], layout: _core.TextLayout
) -> tuple[bytes, int]:
    """Return the text that starts with the first line that is neither blank nor a comment.

    Returns the rest of a block, which is empty if there is no such line, and the number of the
    line.
    """
    number = 1
    for block in blocks:
        start = 0
        while start < len(block):
            content, end, is_empty, has_return = _core.first_record(block, start, layout)
            if not is_empty:
                return block[start:], number
            if has_return:
                refuse_return(name, content, number)
            start, number = end, number + 1
    return b"", number


def take_columns(
    blocks: Iterator[bytes], layout: _core.TextLayout, columns: list[int], line: int
) -> Iterator[tuple[int, NDArray[np.uint8], Any]]:
    """Yield whole records: the number of their first line, their text, and their fields.

    The first line of all has the number `line`. See ``_core.take_fields`` for the fields.
    """
    rest = b""  # a record whose quotes are not closed yet
    for block in chain(blocks, [None]):
        if block is None and not rest:
            return
        rest += block or b""
        text = np.frombuffer(rest, np.uint8)
        found: Any = _core.take_fields(text, layout, columns, block is None)
        *fields, n_consumed = found
        yield line, text[:n_consumed], fields
        line += rest.count(b"\n", 0, n_consumed)
        rest = rest[n_consumed:]


def refuse_return(name: str, line: bytes, number: int) -> NoReturn:
    """Refuse a line before the first edge that seems to be several lines."""
    text = shorten(line.decode(errors="replace"))
    refuse_source(name, f"a carriage return is inside {text}; {LINE_ENDS}", number)


def refuse_one_column(name: str, options: ReadOptions, delimiter: str, line: bytes) -> NoReturn:
    """Refuse a text whose lines have no delimiter."""
    mark = {"": "blanks", "\t": "tabs"}.get(delimiter, repr(delimiter))
    text = shorten(line.decode(errors="replace"))
    why = f"{options.rows.one} needs two columns, got 1: they are separated by {mark}, but the "
    why += f"first line is {text}"
    if options.rows is ReadOptions.rows:  # tables of labels have no such option
        why += f"; if the delimiter is another one, give {Setting('delimiter', ...)}"
    refuse_source(name, why)


def parse_blocks(
    source: Source,
    columns: ColumnChoice,
    layout: _core.TextLayout,
    line: int,
    blocks: Iterator[bytes],
) -> Iterator[RawBatch]:
    """Yield the edges in blocks of lines; the first line has number `line`."""
    name, times, rows = source.name, source.own_times, source.options.rows
    text: Any = _core.EdgeText(layout, line)
    n_known = 0  # faults in earlier blocks
    rest = b""  # a record whose quotes are not closed yet
    for block in chain(blocks, [None]):
        if block is None and not rest:
            break
        rest += block or b""
        lines = np.frombuffer(rest, dtype=np.uint8)
        if times is not None:
            if not times.is_known:
                times.limit(name, _scan_times(lines, layout, block is None), layout.dates)
            text.latest = times.latest
        *ends, w, t = text.parse(lines, layout.strings, block is None)
        rest = rest[text.n_consumed :]
        fault = text.first_fault
        if fault is not None and not layout.skips_faults:
            problem = describe_fault(fault, columns, times, rows)
            refuse_source(name, problem, fault.line, rows.remedy)
        if times is not None:
            times.limit(name, t, layout.dates)
        n_bad, n_known = text.n_faults - n_known, text.n_faults
        why = None
        if fault is not None:
            why = f"{name}, row {fault.line}: {describe_fault(fault, columns, times, rows)}"
        weights = w if layout.w >= 0 or layout.attributes else None
        u, v = (Strings(*ends[:2]), Strings(*ends[2:])) if layout.strings else ends
        event = text.take_events() if layout.event >= 0 else None
        yield RawBatch(u, v, weights, n_bad, why, None if times is None else t, event=event)


def _scan_times(lines: NDArray[np.uint8], layout: _core.TextLayout, last: bool) -> Floats:
    """Return the times in a block, whatever else is wrong with it."""
    skips, layout.skips_faults = layout.skips_faults, True
    text: Any = _core.EdgeText(layout, 1)  # which copies the layout
    layout.skips_faults = skips
    return np.asarray(text.parse(lines, layout.strings, last)[-1])


def describe_fault(
    fault: _core.LineFault,
    columns: ColumnChoice,
    times: TimeRule | None = None,
    rows: Rows = ReadOptions.rows,
) -> str:
    """Say what is wrong with a line."""
    kinds = _core.LineFault.Kind
    text = shorten(fault.text.decode(errors="replace"))
    names = columns.names
    date = explain_date(fault.text.decode(errors="replace"))
    column = columns.name(fault.column if not names or fault.column < len(names) else None)
    late = "" if times is None else times.describe_late()
    wide = f"there are {len(names)} columns" if names else "the first row has another number"
    wanted = DATE if times is not None and times.dates else f"a finite number or {DATE}"
    return {
        kinds.columns: f"{column} is missing in {text}",
        kinds.quote: f"a quote is not closed, or text follows it, in {text}",
        kinds.integer: f"node ids were integers so far, but {column} is {text}; "
        f"{rows.names_remedy}",
        kinds.utf8: f"{column} is not UTF-8: {text}",
        kinds.empty_id: f"{column} is empty in {text}",
        kinds.number: f"the weight, {column}, is not a number: {text}",
        kinds.weight: f"weights must {ALLOWED_WEIGHTS}, but {column} is {text}"
        + ("" if names else f"; if it is no weight, use {Setting('weight_col', False)}"),
        kinds.time: f"the time, {column}, is missing in this row"
        if not fault.text.strip()
        else f"the time, {column}, must be {wanted}, got {text}{date}",
        kinds.late: f"the time, {column}, is {text}, {late}",
        kinds.ragged: f"{text} has {fault.column} field{'s' * (fault.column != 1)}, but {wide}; "
        f"if a value contains the delimiter, enclose it in double quotes",
        kinds.carriage_return: f"a carriage return is inside {text}; {LINE_ENDS}",
    }[fault.kind]
