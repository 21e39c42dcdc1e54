"""Edges of Arrow IPC streams and files, and of columns of Arrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.times import as_times, describe_time
from ohmlearn.nodes.node_ids import EXACT, Ids, Strings, encode_strings, join_masks, take
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.decode_rows import (
    BadBody,
    Floats,
    Mask,
    Names,
    Row,
    Rules,
    assemble,
    choose_names,
    find_fault,
    join_ids,
    refuse_names,
)
from ohmlearn.serve.ipc_messages import check_messages

__all__ = ["Columns", "assemble_columns", "decode_arrow"]

# Views and codes of a dictionary may refer to the same text many times. This is how many bytes a
# column may have when each row has its own copy.
LARGEST_TEXT = 1 << 27


class Columns(NamedTuple):
    """Arrays of Arrow of the same length, which are valid."""

    u: Any
    v: Any
    w: Any = None
    t: Any = None
    not_utf8: frozenset[tuple[str, int]] = frozenset()  # columns and rows, which are null here

    def row(self, at: int) -> Row:
        """Return the values of a row, for a message."""
        return Row(*(None if array is None else _value(array, at) for array in self[:4]))


def decode_arrow(body: bytes, rules: Rules) -> RawBatch:
    """Return the edges of an IPC stream or file."""
    import pyarrow as pa

    part = check_messages(body, rules)
    if part is None:
        return rules.no_rows()
    content = pa.py_buffer(memoryview(body)[part.start : part.stop])
    with pa.ipc.open_stream(content) as reader:
        fields = reader.schema.names
    names = choose_names(fields)
    if names is None:
        refuse_names(fields, rules.one)
    wanted = [fields.index(name) for name in names.used]
    # Other columns are not even loaded.
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=wanted)
    batches = []
    with pa.ipc.open_stream(content, options=options) as reader:
        for batch in reader:
            if batch.num_rows > 0:
                batches.append(_load(batch, names))
    return assemble_columns(rules, names, batches) if batches else rules.no_rows()


def _load(batch: Any, names: Names) -> Columns:
    """Return the columns of a record batch after a check of their buffers."""
    arrays: list[Any] = []
    not_utf8: set[tuple[str, int]] = set()
    for name in names:
        array, rows = (None, []) if name is None else _validate(batch.column(name), name)
        arrays.append(array)
        not_utf8.update((str(name), row) for row in rows)
    u, v, w, t = arrays
    return Columns(u, v, w, t, frozenset(not_utf8))


def assemble_columns(
    rules: Rules, names: Names, batches: Sequence[Columns], first_row: int = 1
) -> RawBatch:
    """Return the edges of columns in one or several pieces."""
    kind = _find_kind(rules, names, batches[0])
    ends = []
    for side in (0, 1):
        name = names.v if side else names.u
        parts = [_take_ids(batch[side], kind, name) for batch in batches]
        bad = None
        if any(mask is not None for _, mask in parts):
            bad = np.concatenate([_as_mask(ids.size, mask) for ids, mask in parts])
        ends.append((join_ids([ids for ids, _ in parts]), bad))
    w = t = None
    if names.w is not None:
        w = np.concatenate([_take_numbers(batch.w, names.w, "weights") for batch in batches])
    if names.t is not None:
        t = np.concatenate([_take_times(batch.t, names.t) for batch in batches])
    starts = np.cumsum([0, *(len(batch.u) for batch in batches)])

    def explain(at: int) -> str:
        piece = int(np.searchsorted(starts, at, side="right")) - 1
        batch, row = batches[piece], at - int(starts[piece])
        for name in names.used:
            if (name, row) in batch.not_utf8:
                return f"{name} is not UTF-8"
        return find_fault(rules, names, batch.row(row), kind)

    return assemble(rules, ends, w, t, explain, first_row)


def _find_kind(rules: Rules, names: Names, columns: Columns) -> str:
    """Return the kind of the ids of a batch, by the types of its columns."""
    import pyarrow.types as types

    kinds: list[str | None] = []
    for array, name in zip(columns[:2], names[:2], strict=True):
        kind = array.type.value_type if types.is_dictionary(array.type) else array.type
        if types.is_null(kind):
            kinds.append(None)
        elif types.is_integer(kind) or types.is_floating(kind):
            kinds.append("int64")
        elif _is_text(kind):
            kinds.append("string")
        else:
            raise BadBody(
                f"{name} has type {array.type}, but node ids must be integers or strings; cast it"
            )
    u, v = (kind or kinds[1 - side] or "int64" for side, kind in enumerate(kinds))
    if rules.id_kind is None and u != v:
        raise BadBody(
            f"{names.u} has type {columns.u.type}, but {names.v} has type {columns.v.type}; cast "
            f"them, so that the node ids are all integers or all strings"
        )
    if rules.id_kind == "int64" and "string" in kinds:
        name, array = (names.u, columns.u) if kinds[0] == "string" else (names.v, columns.v)
        raise BadBody(
            f"{name} has type {array.type}, but the node ids so far are integers; cast it to int64"
        )
    return rules.id_kind or u


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _validate(array: Any, name: str) -> tuple[Any, list[int]]:
    """Return an array whose buffers cannot mislead what reads it.

    Texts that are not UTF-8 become null; the numbers of their rows are returned, too.
    """
    import pyarrow as pa

    try:
        array.validate()
        if pa.types.is_dictionary(array.type):
            _validate_values(array.dictionary, name)
        elif str(array.type) == "string_view":
            _check_views(array, name)  # before the texts are looked at
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _replace_bad_utf8(array)
        if found is None:
            said = " ".join(str(error).split())[:200]
            raise BadBody(f"column {name} is damaged: {said}") from error
        return found
    return array, []


def _validate_values(values: Any, name: str) -> None:
    """Check the values of a dictionary."""
    _, bad = _validate(values, name)
    if bad:
        raise BadBody(f"the dictionary of {name} has texts that are not UTF-8; send UTF-8")


def _replace_bad_utf8(array: Any) -> tuple[Any, list[int]] | None:
    """Return texts with nulls for those that are not UTF-8, and their rows; None if all are."""
    import pyarrow as pa

    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    large = pa.types.is_large_string(array.type)
    raw = array.view(pa.large_binary() if large else pa.binary())
    try:
        raw.validate(full=True)
    except pa.ArrowInvalid:
        return None
    texts: list[str | None] = []
    bad = []
    for at, text in enumerate(raw):
        try:
            texts.append(text.as_py().decode() if text.is_valid else None)
        except UnicodeDecodeError:
            texts.append(None)
            bad.append(at)
    return (pa.array(texts, array.type), bad) if bad else None


def _check_views(array: Any, name: str) -> None:
    views = np.frombuffer(array.buffers()[1] or b"", np.int32)
    lengths = views.reshape(-1, 4)[array.offset : array.offset + len(array), 0]
    _check_total(lengths[~_as_mask(len(array), _nulls(array))], name)


def _check_total(lengths: NDArray[Any], name: str) -> None:
    total = int(lengths.sum(dtype=np.int64))
    if total > LARGEST_TEXT or (lengths.size and lengths.min() < 0):
        raise BadBody(
            f"the texts of {name} have {total >> 20:,} MiB when they are written out, but may have "
            f"at most {LARGEST_TEXT >> 20}; send fewer rows at once"
        )


def _nulls(array: Any) -> Mask | None:
    if array.null_count == 0:
        return None
    nulls: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _as_mask(size: int, mask: Mask | None) -> Mask:
    return np.zeros(size, dtype=bool) if mask is None else mask


def _plain(array: Any) -> NDArray[Any]:
    """Return the numbers of an array without a copy; nulls have any value."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0:
        return np.empty(0, dtype)
    found = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
    return np.require(found, requirements="A")


def _take_ids(array: Any, kind: str, name: str) -> tuple[Ids, Mask | None]:
    """Return ids, with any value for bad ones, and which are bad."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(array.type):
        ids = encode_strings([""] * len(array)) if kind == "string" else np.zeros(len(array), int)
        return ids, np.ones(len(array), dtype=bool)
    if types.is_dictionary(array.type):
        return _take_coded(array, kind, name)
    if _is_text(array.type):
        return _take_texts(array)
    numbers, bad = _plain(array), _nulls(array)
    if numbers.dtype.kind == "f":
        whole = numbers.astype(np.float64)
        unfit = ~((np.abs(whole) <= EXACT) & (whole == np.floor(whole)))
        numbers = np.where(unfit, 0.0, whole).astype(np.int64)
        bad = join_masks(bad, unfit if unfit.any() else None)
    if kind == "string":
        buffers = [None, pa.py_buffer(np.ascontiguousarray(numbers))]
        kinds = pa.from_numpy_dtype(numbers.dtype)
        plain = pa.Array.from_buffers(kinds, len(numbers), buffers)
        return _take_texts(plain.cast(pa.large_string()))[0], bad
    if numbers.dtype == np.uint64 and numbers.size and numbers.max() >= 2**63:
        bad = join_masks(bad, numbers >= np.uint64(2**63))
    return numbers.astype(np.int64, copy=False), bad


def _take_coded(array: Any, kind: str, name: str) -> tuple[Ids, Mask | None]:
    """Return the ids of a dictionary, one for each row."""
    values, bad_values = _take_ids(array.dictionary, kind, name)
    codes = _plain(array.indices).astype(np.int64)
    bad = _nulls(array.indices)
    if values.size == 0:  # then all rows are null
        return _take_ids(array.dictionary.slice(0, 0), kind, name)[0], bad
    if bad is not None:
        codes = np.where(bad, 0, codes)
    if bad_values is not None:
        bad = join_masks(bad, bad_values[codes])
    if isinstance(values, Strings):
        _check_total(np.diff(values.offsets)[codes], name)
    return take(values, codes), bad


def _take_texts(array: Any) -> tuple[Strings, Mask | None]:
    """Return the texts of an array that is not a dictionary, and which are missing."""
    import pyarrow as pa

    if str(array.type) == "string_view":
        array = array.cast(pa.large_string())
    missing = _nulls(array)
    dtype: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, offsets, data = array.buffers()
    if len(array) == 0:  # it may have no buffers
        return Strings(np.zeros(1, dtype=np.int64), np.empty(0, np.uint8)), missing
    size = np.dtype(dtype).itemsize
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * size)
    text = np.frombuffer(data or b"", np.uint8)
    return Strings(np.require(ends, requirements="A"), text), missing


def _take_numbers(array: Any, name: str, what: str) -> Floats:
    """Return numbers, NaN for nulls."""
    import pyarrow.types as types

    if types.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (types.is_integer(array.type) or types.is_floating(array.type)):
        raise BadBody(f"{name} has type {array.type}, but {what} must be numbers; cast it")
    return _without_nulls(_plain(array), array)


def _without_nulls(values: NDArray[Any], array: Any) -> Floats:
    found = values.astype(np.float64, copy=False)
    if (missing := _nulls(array)) is not None:
        found = np.where(missing, np.nan, found)
    return found


def _take_times(array: Any, name: str) -> Floats:
    """Return times in Unix seconds, NaN for nulls and for texts that are no times."""
    import pyarrow as pa

    types, kind = pa.types, array.type
    if types.is_timestamp(kind) or types.is_date(kind):
        unit = "D" if types.is_date32(kind) else "ms" if types.is_date64(kind) else kind.unit
        width: Any = np.int32 if unit == "D" else np.int64
        ticks = np.frombuffer(
            array.buffers()[1], width, len(array), array.offset * width().itemsize
        )
        return _without_nulls(as_times(ticks.astype(np.int64).view(f"M8[{unit}]"))[1], array)
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not _is_text(value):
        return _take_numbers(array, name, "times must be dates or times")
    texts, missing = _take_ids(array, "string", name)
    assert isinstance(texts, Strings)
    found = _core.parse_times(texts.offsets, texts.data, True)
    if not np.isfinite(found).all():
        found = np.where(
            np.isnan(found), _core.parse_times(texts.offsets, texts.data, False), found
        )
    return found if missing is None else np.where(missing, np.nan, found)


def _value(array: Any, at: int) -> Any:
    """Return a value for a message; a date as text, because Python does not have all of them."""
    import pyarrow.types as types

    if types.is_timestamp(array.type) or types.is_date(array.type):
        seconds = float(_take_times(array.slice(at, 1), "")[0])
        return None if math.isnan(seconds) else describe_time(seconds, True)
    return array[at].as_py()
