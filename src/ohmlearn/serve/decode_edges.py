"""Bodies of requests and messages become batches of edges, by the readers of files.

A body is JSON lines, CSV with a header, or an Arrow IPC stream. Its columns need usual names, such
as u and v: a server must not guess. Any bytes give either a batch or `BadBody`, and the memory that
a body takes is bounded by its size and by `max_rows`. So compressed Arrow is refused, and so are
texts that many rows of a dictionary share, if they are large when each row has its own.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from ohmlearn import _core
from ohmlearn.errors import InputError, Place, Setting, SourceError, query_style, render
from ohmlearn.nodes.node_ids import (
    Ids,
    Strings,
    as_ids,
    decode_codes,
    decode_strings,
    encode_strings,
)
from ohmlearn.reading.arrow_reader import ArrowSource, Found
from ohmlearn.reading.column_choice import ColumnChoice
from ohmlearn.reading.csv_reader import TextSource
from ohmlearn.reading.json_reader import BYTE_ORDER_MARK, JsonLinesSource
from ohmlearn.reading.read_options import EDGE_ENDS, TIMES, ReadOptions, Rows, ScaledColumn
from ohmlearn.reading.source_errors import BadRows, shorten
from ohmlearn.reading.table_reader import RawBatch, Source, join_batches
from ohmlearn.reading.time_rule import TimeRule

Form = Literal["ndjson", "csv", "arrow"]
NAME, EDGE = "the body", "an edge"
LONGEST_LINE = 1 << 20  # as objects of Python, its values may take fifty times as much
MOST_MESSAGES = 1000  # of Arrow; each record batch is checked with all of its dictionaries
# Views and codes of a dictionary may refer to the same text many times. This is how many bytes a
# column may have when each row has its own copy.
LARGEST_TEXT = 1 << 27


class BadBody(InputError):
    """A body that cannot be used; `row` is the number of the first bad row, from 1.

    In JSON lines and CSV it is the number of its line, as in files, so the header of CSV has 1.
    """

    def __init__(self, problem: str, row: int | None = None, remedy: str | None = None) -> None:
        place = None if row is None else Place("", row)
        super().__init__(problem, remedy=remedy, place=place)
        self.row = row


class BodyOptions(ReadOptions):
    """How a body is read."""

    rows: ClassVar[Rows] = ReadOptions.rows._replace(
        remedy=f"correct it, or send {Setting('on_bad', 'skip')}",
        names_remedy="the ids of a service are all integers or all strings",
        times=TIMES,
    )


class SecondsRule(TimeRule):
    """Times are dates or Unix seconds until tomorrow."""

    dates = None

    def __init__(self) -> None:
        super().__init__()
        self.is_known, self.unit = True, "s"

    def limit(self, source: str, t: Any, is_date: bool) -> float:
        """Return the latest time accepted."""
        self.unit = "date" if is_date else "s"
        return self.latest

    def describe_late(self) -> str:
        """Say which times are too late."""
        return "later than tomorrow; send dates, or Unix times in seconds, not in milliseconds"


class BodySource(Source):
    """A body, whose columns are chosen by their names only; see `Body.open` for the arguments."""

    def __init__(self, body: Body, options: ReadOptions, *how: Any) -> None:
        super().__init__(NAME, options, *how)  # of the reader, which is the next base class
        self.body = body

    def choose(
        self, names: Sequence[str] | None, n_columns: int, *_: object, **__: object
    ) -> ColumnChoice:
        """Return which columns hold ends, weight and time."""
        how = self.body.one, self.body.event_id, self.body.weight
        self.columns = columns = choose_names(names or (), *how)
        self.times = None if columns.t is None else SecondsRule()
        return columns


class CsvBody(BodySource, TextSource):
    """A body of lines, of which the first one names the columns."""

    n_sample = 1  # ids are text until all are known


class JsonBody(BodySource, JsonLinesSource):
    """A body of objects, one per line or in an array, of which the first names the columns."""

    longest_line = LONGEST_LINE

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read the whole body at once, without a copy, if no row is bad."""
        content = self.body.content
        if content.startswith(b"{"):
            columns, _ = self._choose(iter([content]))
            if (raw := self._read_fast(content, columns, kind)) is not None:
                yield raw
                return
        yield from super().batches(kind)

    def _choose_columns(self, names: list[str], block: bytes) -> ColumnChoice:
        return self.choose(names, len(names))


class ArrowBody(BodySource, ArrowSource):
    """An IPC stream, or a file, which is a stream between two magic words."""

    format = "arrow"

    def _read(self) -> Iterator[Found]:
        import pyarrow as pa

        start = 8 if self.body.content.startswith(b"ARROW1") else 0
        content = pa.py_buffer(memoryview(self.body.content)[start:])
        _check_messages(content)
        with pa.ipc.open_stream(content) as reader:
            columns = self._choose(reader.schema)
            batches = (batch.select(columns.used) for batch in reader)
            for found in self._number(columns.alone(), batches):
                self.body.check_count(found.row + found.batch.num_rows)
                _validate(found.batch)
                yield found


@dataclass(frozen=True)
class Body:
    """A body, and which of its rows are accepted; see `decode_edges`."""

    content: bytes
    id_kind: str | None
    options: BodyOptions
    max_rows: int
    max_id_bytes: int
    one: str
    event_id: str | None
    weight: ScaledColumn | None

    @property
    def is_empty(self) -> bool:
        """Whether there are only blanks, or an empty array."""
        start = b"".join(self.content[:50].split())
        is_short = len(self.content) <= 50 or self.content.isspace()
        return start in (b"", b"[]", BYTE_ORDER_MARK) and is_short

    def open(self, form: Form) -> BodySource:
        """Return the reader of the body."""
        if form == "arrow":
            return ArrowBody(self, self.options)
        pipe = io.BytesIO(self.content)
        if form == "ndjson":
            return JsonBody(self, self.options, pipe)
        id_type: Any = "int64" if self.id_kind == "int64" else "string"
        options = replace(self.options, header=True, comment="", id_type=id_type)
        return CsvBody(self, options, "csv", pipe)

    def check_count(self, n_rows: int) -> None:
        """Refuse a body with too many rows."""
        if n_rows > self.max_rows:
            raise BadBody(
                f"the body has more than {self.max_rows:,} rows; split it into several requests"
            )

    def read(self, form: Form) -> RawBatch:
        """Return the edges in one batch."""
        batches: list[RawBatch] = []
        for raw in () if self.is_empty else self.open(form).batches(self.id_kind):
            batches.append(raw)
            self.check_count(sum(raw.u.size + raw.n_bad for raw in batches))
        full = [raw for raw in batches if raw.u.size]
        kinds = {isinstance(ids, Strings) for raw in full for ids in (raw.u, raw.v)}
        if len(kinds) > 1:
            raise BadBody("some node ids are integers, others strings; send all as one of these")
        if self.id_kind == "int64" and True in kinds:
            raise BadBody("the node ids are strings, but those so far are integers; send integers")
        if not full:
            none: Ids = encode_strings([]) if self.id_kind == "string" else np.empty(0, np.int64)
            full = [RawBatch(none, none)]
        joined = join_batches(full)
        w = joined.w if joined.w is None else joined.w.astype(np.float64, copy=False)
        if w is not None and self.weight is not None and self.weight.function:
            w = np.log1p(w) if self.weight.function == "log" else np.sqrt(w)
        u, v = (as_ids(decode_codes(ids), "ids") for ids in (joined.u, joined.v))
        joined = RawBatch(u, v, w, t=joined.t, event=joined.event)
        if form == "csv" and self.id_kind is None:
            joined = _as_integers(joined)
        joined = self._without_long(joined, form)
        faults = [raw.first_bad for raw in (*batches, joined) if raw.first_bad]
        return joined._replace(
            n_bad=joined.n_bad + sum(raw.n_bad for raw in batches),
            first_bad=render(faults[0], query_style).removeprefix(f"{NAME}, ") if faults else None,
        )

    def _without_long(self, raw: RawBatch, form: Form) -> RawBatch:
        """Refuse or count rows with long ids."""
        ends = [ids for ids in (raw.u, raw.v) if isinstance(ids, Strings)]
        lengths = np.array([np.diff(ids.offsets) for ids in ends])
        if lengths.max(initial=0) <= self.max_id_bytes:
            return raw
        bad = lengths.max(axis=0) > self.max_id_bytes
        at = int(np.argmax(bad))
        side = int(np.argmax(lengths[:, at]))
        text = ends[side].data[slice(*ends[side].offsets[at : at + 2])].tobytes().decode()
        why = (
            f"the id {shorten(text)} has {lengths[side, at]:,} bytes, but node ids may have at "
            f"most {self.max_id_bytes:,}"
        )
        # The rows of text are lines that are not blank, perhaps after a header.
        lines = [n for n, line in enumerate(io.BytesIO(self.content), 1) if line.strip()]
        is_text = form != "arrow" and len(lines) - (form == "csv") == len(bad)
        rows = np.array(lines[form == "csv" :]) if is_text else np.arange(1, len(bad) + 1)
        return self.open(form).drop_bad(raw, [BadRows(bad, lambda _: why)], rows)


def decode_edges(
    body: bytes | memoryview,
    form: Form,
    *,
    id_kind: str | None = None,
    skip_bad: bool = False,
    max_rows: int = 1_000_000,
    max_id_bytes: int = 256,
    one: str = EDGE,
    event_id: str | None = None,
    weight: ScaledColumn | None = None,
) -> RawBatch:
    """Return the edges in a body: ids as int64 or `Strings`, weights, times in Unix seconds.

    Any body that cannot be used raises `BadBody`.

    Parameters
    ----------
    body : bytes or memoryview
        Rows with two ends, and optionally a weight and a time. Other columns are ignored.
    form : {"ndjson", "csv", "arrow"}
    id_kind : {"int64", "string"}, optional
        Type of the ids in the log so far. With "string", integers are taken as text. With None, the
        ids of the body decide; those of CSV are integers if all of them look like integers.
    skip_bad : bool
        Whether bad rows are counted and left out. Otherwise the first one is an error.
    max_rows, max_id_bytes : int
        A body with more rows is refused; a row with a longer id, in UTF-8, is bad.
    one : str
        What error messages call a row. Rows of "a pair" name edges that are to be removed; their
        weights and times, if there are any, say which of parallel edges are meant.
    event_id : str, optional
        The column with the ids of events, of which each row must have one.
    weight : ScaledColumn, optional
        The column of weights, of which each edge must have one, and the function of it; the column
        "none" means that all weights are 1. By default, usual names decide.
    """
    # Arrays may be views of the body, so it must not change.
    content = body if isinstance(body, bytes) else bytes(body)
    options = BodyOptions(on_bad="skip" if skip_bad else "raise")
    try:
        how = max_rows, max_id_bytes, one, event_id, weight
        return Body(content, id_kind, options, *how).read(form)
    except BadBody:
        raise
    except SourceError as error:
        row = None if error.place is None else error.place.row
        problem = error.message if row is not None else f"{NAME}: {error.message}"
        raise BadBody(problem, row, error.remedy) from None
    except Exception as error:
        # What a library says about damaged bytes.
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadBody(f"the body cannot be read as {form}: {said}") from error


def choose_names(
    names: Sequence[str],
    one: str,
    event_id: str | None = None,
    weight: ScaledColumn | None = None,
) -> ColumnChoice:
    """Return which columns hold ends, weight and time, by their names; `one` is a row, in words.

    Examples
    --------
    >>> print(choose_names(["Time", "src", "dst"], "an edge"))
    u = 'src', v = 'dst', no weights, times = 'Time'
    """
    lower = [name.strip().lower() for name in names]
    pair = next((pair for pair in EDGE_ENDS if set(lower).issuperset(pair)), None)
    if pair is None:
        shown = ", ".join(shorten(name, 40) for name in names[:20]) or "none"
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        pairs = ", ".join(f"{u} and {v}" for u, v in EDGE_ENDS)
        raise BadBody(
            f"{one} needs two columns with node ids, but the columns are {shown}{more}; name them "
            f"as one of these pairs: {pairs}"
        )
    w, t = (
        next((x for x in some if x in lower), None) for some in (BodyOptions.rows.weights, TIMES)
    )
    if weight is not None:
        w = None if weight.column == "none" else str(weight.column).strip().lower()
        if w not in lower and w is not None:
            if one == EDGE:
                raise BadBody(f"{one} needs the column {weight.column} with its weight")
            w = None
    event = None if event_id is None else event_id.strip().lower()
    if event in (*pair, w, t) and event is not None:
        raise BadBody(f"the column of event ids, {event}, is an end, the weight or the time, too")
    if event is not None and event not in lower:
        raise BadBody(f"{one} needs the column {event_id} with the id of its event")
    if twice := [name for name in (*pair, w, t, event) if lower.count(str(name)) > 1]:
        raise BadBody(f"two columns are named {twice[0]}; rename one of them")
    at = {name: number for number, name in enumerate(lower)}
    u, v = (at[name] for name in pair)
    w_at, t_at, event_at = (None if name is None else at[name] for name in (w, t, event))
    return ColumnChoice(u, v, w_at, names, "", t_at, event=event_at)


def _as_integers(raw: RawBatch) -> RawBatch:
    """Return integers if all ids look like integers."""
    if not isinstance(raw.u, Strings) or not isinstance(raw.v, Strings):
        return raw
    texts = (decode_strings(ids) for ids in (raw.u, raw.v))
    u, v = ([_core.parse_whole(text.encode()) for text in ids] for ids in texts)
    return raw if None in u or None in v else raw._replace(u=np.array(u), v=np.array(v))


def _check_messages(content: Any) -> None:
    """Refuse compressed buffers, which pyarrow would decompress to any size.

    The metadata of a message are tables of FlatBuffers, which pyarrow has verified; their fields
    are those of Message.fbs in the repository of Arrow. A table starts with the distance to its
    vtable, which has the place of each field, or 0 if the field is absent.
    """
    import pyarrow as pa

    def find(table: int, field: int) -> int:
        (back,) = struct.unpack_from("<i", data, table)
        size, _, *places = struct.unpack_from("<HH4H", data + bytes(12), table - back)
        return table + places[field] if 4 + 2 * field < size and places[field] else 0

    def follow(at: int) -> int:
        return at + int(struct.unpack_from("<I", data, at)[0])

    for number, message in enumerate(pa.ipc.MessageReader.open_stream(content)):
        if number > MOST_MESSAGES:
            raise BadBody(
                f"the body has more than {MOST_MESSAGES:,} record batches and dictionaries; send "
                f"larger record batches"
            )
        if message.type in ("record batch", "dictionary"):
            data = message.metadata.to_pybytes()
            header = follow(find(follow(0), 2))
            if message.type == "dictionary":
                header = follow(find(header, 1))
            if find(header, 3):
                raise BadBody(
                    "the buffers are compressed; send the stream uncompressed, and compress the "
                    "whole body with Content-Encoding: gzip if it is large"
                )


def _validate(batch: Any) -> None:
    """Check all buffers, and the size of texts that many rows share if each row has its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    batch.validate()
    for at, (name, array) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        size, kind = 0, array.type
        if str(kind) == "string_view":  # before each text is looked at
            views = np.frombuffer(array.buffers()[1] or b"", np.int32).reshape(-1, 4)
            size = int(views[array.offset : array.offset + len(array), 0].sum(dtype=np.int64))
        if at > 1 or kind != pa.string() or array.null_count:  # else the reader checks them
            array.validate(full=True)
        if pa.types.is_dictionary(kind) and not pa.types.is_primitive(kind.value_type):
            lengths = pc.binary_length(array.dictionary)
            size = pc.sum(pc.take(lengths, array.indices)).as_py() or 0
        if size > LARGEST_TEXT:
            raise BadBody(
                f"the texts of {name} have {size >> 20:,} MiB when they are written out, but may "
                f"have at most {LARGEST_TEXT >> 20}; send fewer rows at once"
            )
