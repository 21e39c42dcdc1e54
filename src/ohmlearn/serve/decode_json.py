"""Edges of NDJSON: one object per line.

The first object with two ends names their columns. Weights and times are read if the first object
has them, or if another one has them under a usual name in lower case.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ohmlearn.reading.read_options import TIMES
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_arrow import Columns, assemble_columns
from ohmlearn.serve.decode_lines import (
    BLANKS,
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    count_lines,
    describe_long,
    line_blocks,
    lines_of,
)
from ohmlearn.serve.decode_rows import (
    WEIGHTS,
    Names,
    Row,
    RowReader,
    Rules,
    choose_names,
    join_batches,
    refuse_names,
    show,
)

__all__ = ["decode_json"]

ESCAPED_LETTER = re.compile(rb"\\u00[2-7]")


def decode_json(body: bytes, rules: Rules) -> RawBatch:
    """Return the edges of objects, one per line."""
    body = body.removeprefix(BYTE_ORDER_MARK)
    n_rows = count_lines(body)
    rules.check_count(n_rows)
    if n_rows == 0:
        return rules.no_rows()
    first = _parse(next(lines_of(body)))
    names = choose_names(list(first)) if isinstance(first, dict) else None
    kind = rules.id_kind
    if names is not None and (raw := _read_fast(body, rules, names, n_rows, 1, kind)) is not None:
        return raw
    names = _find_names(body, rules)
    batches = []
    for block, n_rows, row in line_blocks(body):
        raw = None if kind is None else _read_fast(block, rules, names, n_rows, row, kind)
        if raw is None:
            reader = RowReader(rules, names, kind)
            _read_rows(block, reader, row)
            raw, kind = reader.finish(), reader.kind
        batches.append(raw)
    return join_batches(batches)


def _read_fast(
    body: bytes,
    rules: Rules,
    names: Names,
    n_rows: int,
    row: int,
    kind: str | None,
) -> RawBatch | None:
    """Return the edges of objects whose types are those of the first one; None if they differ.

    `row` is the number of the first row, and `kind` that of the ids before it.
    """
    import pyarrow as pa
    import pyarrow.json

    first = _parse(next(lines_of(body)))
    schema = _make_schema(names, first) if isinstance(first, dict) else None
    if schema is None or not _is_utf8(body):
        return None
    is_text = not pa.types.is_integer(schema.types[0])
    if (kind == "int64" and is_text) or (kind == "string" != rules.id_kind and not is_text):
        return None
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(body),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=LONGEST_LINE),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    if table.num_rows != n_rows:  # pyarrow also reads two objects in a line, and one in two lines
        return None
    u, v, w, t = (None if x is None else table.column(x).combine_chunks() for x in names)
    return assemble_columns(rules, names, [Columns(u, v, w, t)], row)


def _make_schema(names: Names, row: dict[str, Any]) -> Any:
    """Return the types that the first object suggests; None if its ids are not plain.

    They are given, because pyarrow would take strings such as "2026-03-31" for dates. Columns that
    the first object does not have, but that would be read, may have no values.
    """
    import pyarrow as pa

    types = {int: pa.int64(), str: pa.string()}
    u, v = type(row.get(names.u)), type(row.get(names.v))
    if u is not v or u not in types:
        return None
    fields = [(names.u, types[u]), (names.v, types[v])]
    if names.w is not None:
        fields.append((names.w, pa.float64()))
    if names.t is not None:
        fields.append((names.t, pa.string() if isinstance(row.get(names.t), str) else pa.float64()))
    for name, usual in ((names.w, WEIGHTS), (names.t, TIMES)):
        if name is None:
            fields += [(other, pa.null()) for other in usual if other not in row]
    return pa.schema(fields)


def _is_utf8(body: bytes) -> bool:
    """Return whether a body is UTF-8; pyarrow does not look at columns that it ignores."""
    try:
        body.isascii() or body.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Twice(dict[str, Any]):
    """An object with two values of the same name."""

    twice: frozenset[str]


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    result = _Twice(found)
    counts = Counter(name for name, _ in pairs)
    result.twice = frozenset(name for name, count in counts.items() if count > 1)
    return result


def _parse(line: bytes) -> Any:
    """Return the value that a line has; an error if it has none."""
    if len(line) > LONGEST_LINE:
        return ValueError(describe_long(line))
    try:
        return json.loads(line.strip(BLANKS).decode(), object_pairs_hook=_make_object)
    except UnicodeDecodeError as error:
        return ValueError(f"the line is not UTF-8: {error.reason} at byte {error.start + 1}")
    except ValueError as error:
        said = str(error).partition(": line ")[0]
        column = f" at letter {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        return ValueError(f"the line is not JSON: {said}{column}")
    except RecursionError:
        return ValueError("the line is not JSON that can be read: it is nested too deeply")


def _read_rows(block: bytes, reader: RowReader, row: int) -> None:
    """Read line by line, from the row with this number on, and name what is wrong."""
    names = reader.names
    for number, line in enumerate(lines_of(block), row):
        found = _parse(line)
        if isinstance(found, ValueError):
            reader.refuse(number, str(found))
        elif not isinstance(found, dict):
            why = f'a line must be an object such as {{"u": 1, "v": 2}}, got {show(found)}'
            reader.refuse(number, why)
        elif isinstance(found, _Twice) and (twice := found.twice.intersection(names.used)):
            reader.refuse(number, f"the object has {min(twice)} twice")
        else:
            u, v, w, t = (None if name is None else found.get(name) for name in names)
            reader.add(number, Row(u, v, w, t))


def _find_names(body: bytes, rules: Rules) -> Names:
    """Return the columns of a body whose rows differ."""
    rows = (row for row in map(_parse, lines_of(body)) if isinstance(row, dict))
    first = next(rows, None)
    if first is None:  # then each row is bad
        return Names("u", "v", None, None)
    found = choose_names(list(first))
    found = found or next(filter(None, (choose_names(list(row)) for row in rows)), None)
    if found is None:
        refuse_names(list(first), rules.one)
    wanted = [*(WEIGHTS if found.w is None else ()), *(TIMES if found.t is None else ())]
    later = _find_later(body, wanted)
    w, t = (
        name or next((other for other in usual if other in later), None)
        for name, usual in ((found.w, WEIGHTS), (found.t, TIMES))
    )
    return found._replace(w=w, t=t)


def _find_later(body: bytes, wanted: Sequence[str]) -> set[str]:
    """Return which of some names any object has."""
    # Most bodies do not contain them at all. A name may be written with escapes.
    escaped = ESCAPED_LETTER.search(body) is not None
    possible = {name for name in wanted if escaped or f'"{name}"'.encode() in body}
    if not possible:
        return possible
    rows = (row for row in map(_parse, lines_of(body)) if isinstance(row, dict))
    return {name for row in rows for name in row.keys() & possible}
