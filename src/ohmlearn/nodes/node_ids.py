"""Columns of node ids: arrays of integers, or strings in the layout of Arrow.

If nodes are of several types, their ids are strings that start with the type, as in "user:17".
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._arrays_file import check_arrays


class Strings(NamedTuple):
    """String i is the UTF-8 bytes ``data[offsets[i] : offsets[i + 1]]``."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    # The length of the tuple is 2, so the number of strings is `size`, as in arrays.
    @property
    def size(self) -> int:
        """Number of strings."""
        return len(self.offsets) - 1

    def to_arrow(self, is_given: NDArray[np.bool_] | None = None) -> Any:
        """Return an array of pyarrow, which shares the memory; others than `is_given` are null."""
        import pyarrow as pa

        mask = None if is_given is None else np.packbits(is_given, bitorder="little")
        buffers = (None if x is None else pa.py_buffer(x) for x in (mask, self.offsets, self.data))
        return pa.Array.from_buffers(pa.large_string(), self.size, list(buffers))


class CodedIds(NamedTuple):
    """Strings of which many are equal: string i is ``values[codes[i]]``.

    Only readers make them, see `Source.keeps_codes`.
    """

    values: Strings
    codes: NDArray[np.integer[Any]]

    @property
    def size(self) -> int:
        """Number of strings."""
        return len(self.codes)


Ids = NDArray[np.int64] | Strings
SomeIds = TypeVar("SomeIds", bound=Ids | CodedIds)
EXACT = 2**53  # floats have all integers up to this one


class IdColumn(NamedTuple):
    """Ids, and which of them are missing, with any value there; None if none is."""

    ids: Ids
    missing: NDArray[np.bool_] | None = None


def is_whole(value: float) -> bool:
    """Whether a float is an integer, and so small that no other integer is the same float."""
    return abs(value) <= EXACT and value % 1 == 0


def as_integer(value: Any) -> Any:
    """Return a whole number that is written as a float as an integer, other values as they are."""
    is_float = isinstance(value, float | np.floating)
    return int(value) if is_float and is_whole(float(value)) else value


def is_name(value: object) -> bool:
    """Whether a value is a string that is no number."""
    try:
        float(value if isinstance(value, str | bytes) else 0)
    except ValueError:
        return True
    return False


class FractionError(ValueError):
    """A float that is not an id."""

    def __init__(self, name: str, at: int, value: object) -> None:
        self.at = at
        self.wanted = f"whole numbers (at most 2**53 if they are floats) or strings, got {value}"
        super().__init__(f"node ids must be {self.wanted} as {name}[{at}]")


def encode_strings(values: list[str]) -> Strings:
    """Return strings in the layout of Arrow."""
    encoded = [value.encode() for value in values]
    return strings_of(list(map(len, encoded)), np.frombuffer(b"".join(encoded), dtype=np.uint8))


def strings_of(lengths: ArrayLike, data: NDArray[np.uint8]) -> Strings:
    """Return strings of some lengths in bytes, given one after the other."""
    return Strings(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), data)


def decode_strings(strings: Strings) -> NDArray[np.object_]:
    """Return an array of Python strings."""
    data = strings.data.tobytes()
    ends = strings.offsets.tolist()
    result = np.empty(strings.size, dtype=object)
    result[:] = [data[a:b].decode() for a, b in pairwise(ends)]
    return result


def as_ids(values: object, name: str) -> Ids:
    """Return ids from an array, a list, or a column of pandas, polars or Arrow."""
    ids, missing = read_ids(values, name)
    if missing is not None:
        raise ValueError(f"a node id is missing: {name}[{int(np.argmax(missing))}]")
    return ids


def read_ids(values: Any, name: str) -> IdColumn:
    """Return ids, and which of them are missing; floats must be whole numbers."""
    if isinstance(values, Strings):
        return IdColumn(values)
    library = type(values).__module__.partition(".")[0]
    if library == "polars":
        values, library = values.to_arrow(), "pyarrow"
    if library == "pyarrow":
        return ids_from_arrow(values, name)
    if hasattr(values, "isna") and not isinstance(getattr(values, "dtype", None), np.dtype):
        if values.dtype.kind not in "iufO" or find_spec("pyarrow") is None:  # slower, but it works
            return check_ids(np.asarray(values, dtype=object), name)
        import pyarrow as pa

        return ids_from_arrow(pa.array(values, from_pandas=True), name)
    if isinstance(values, np.ma.MaskedArray):
        fill = {"O": None, "U": ""}.get(values.dtype.kind, 0)
        ids, missing = check_ids(values.filled(fill), name)
        masked: NDArray[np.bool_] = np.ma.getmaskarray(values)
        masked = masked if missing is None else masked | missing
        return IdColumn(ids, masked if masked.any() else None)
    return check_ids(values, name)


def decode_codes(ids: Ids | CodedIds) -> Ids:
    """Return ids without codes."""
    return take(ids.values, ids.codes) if isinstance(ids, CodedIds) else ids


def take(ids: SomeIds, numbers: NDArray[Any]) -> SomeIds:
    """Return some of the ids, by their positions."""
    found: Any
    if isinstance(ids, CodedIds):
        found = CodedIds(ids.values, ids.codes[numbers])
    elif isinstance(ids, Strings):
        positions = np.ascontiguousarray(numbers, dtype=np.int64)
        found = Strings(*_core.take_strings(ids.offsets, ids.data, positions))
    else:
        found = ids[numbers]
    return cast(SomeIds, found)


def ids_from_arrow(array: Any, name: str = "ids") -> IdColumn:
    """Return ids from an Arrow array, copied only if the type requires it."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        return ids_from_arrow(array.dictionary_decode(), name)
    missing = None
    if array.null_count > 0:
        missing = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(array.type):
        return IdColumn(np.zeros(len(array), np.int64), missing)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        if missing is not None:
            array = array.fill_null(0)
        found = check_ids(array.to_numpy(zero_copy_only=False), name)
        if found.missing is not None:  # NaN
            missing = found.missing if missing is None else missing | found.missing
        return IdColumn(found.ids, missing)
    if not pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    if missing is not None:
        array = array.fill_null("")
    _, offsets, data = array.buffers()
    if len(array) == 0:  # it may have no buffers
        return IdColumn(Strings(np.zeros(1, np.int64), np.empty(0, np.uint8)))
    dtype = np.dtype(np.int32 if pa.types.is_string(array.type) else np.int64)
    ends = np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1]
    texts = np.frombuffer(data or b"", np.uint8)
    return IdColumn(Strings(ends.astype(np.int64, copy=False), texts), missing)


def check_ids(values: object, name: str) -> IdColumn:
    """Return ids as a contiguous vector of int64, or as strings."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # else mixed lists become strings or floats
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:  # numpy makes an empty list float64
        return IdColumn(np.empty(0, dtype=np.int64))
    if array.dtype.kind == "O":
        return _ids_from_objects(array, name)
    if array.dtype.kind == "f":
        return _ids_from_floats(array, name)
    if array.dtype.kind in "UT":
        return IdColumn(_encode(array.tolist(), name))
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"node ids must be integers or strings, but {name} has dtype {array.dtype}; cast it "
            f"with astype(int) or astype(str) if that is what they mean"
        )
    if array.dtype.kind == "u" and array.max() >= 2**63:
        at = int(np.argmax(array >= 2**63))
        raise ValueError(f"node ids must fit int64, but {name}[{at}] = {array[at]}")
    array = array if array.flags.aligned else array.copy()
    return IdColumn(np.ascontiguousarray(array, np.int64))


def _ids_from_objects(array: NDArray[Any], name: str) -> IdColumn:
    """Return the ids of an array of Python objects; None, NaN and pandas.NA are missing."""
    types = set(map(type, array))  # fast, and enough in the usual case
    if types == {str}:
        return IdColumn(_encode(array.tolist(), name))
    missing = np.zeros(len(array), dtype=bool)
    if types != {int}:
        missing[:] = [_is_missing(value) for value in array]
    first = next(iter(array[~missing]), 0)
    allowed = (str,) if isinstance(first, str) else (int, np.integer, float, np.floating)
    for at in np.flatnonzero(~missing).tolist():
        value = array[at]
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise TypeError(
                f"node ids must be all integers or all strings, but {name}[{at}] = {value!r} "
                f"is a {type(value).__name__}"
            )
        if isinstance(value, float | np.floating) and not is_whole(float(value)):
            raise FractionError(name, at, value)
        if not isinstance(value, str) and not -(2**63) <= value < 2**63:
            raise ValueError(f"node ids must fit int64, but {name}[{at}] = {value}")
    mask = missing if missing.any() else None
    if allowed == (str,):
        return IdColumn(_encode(np.where(missing, "", array).tolist(), name), mask)
    return IdColumn(np.where(missing, 0, array).astype(np.int64), mask)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _ids_from_floats(array: NDArray[Any], name: str) -> IdColumn:
    """Return ids that became floats because some are missing, or because weights are floats."""
    missing = np.isnan(array)
    whole = np.where(missing, 0, array)
    bad = ~((np.abs(whole) <= EXACT) & (whole == np.floor(whole)))
    if bad.any():
        at = int(np.argmax(bad))
        raise FractionError(name, at, array[at])
    return IdColumn(whole.astype(np.int64), missing if missing.any() else None)


def _encode(values: list[str], name: str) -> Strings:
    """Return strings in the layout of Arrow; refuse those that UTF-8 cannot encode."""
    try:
        return encode_strings(values)
    except UnicodeEncodeError as error:
        at = values.index(error.object)
        raise ValueError(
            f"node ids must be valid Unicode, but {name}[{at}] = {values[at]!r} has a lone "
            f"surrogate"
        ) from error


def decode_ids(ids: Ids) -> NDArray[Any]:
    """Return an array of integers or of Python strings."""
    return decode_strings(ids) if isinstance(ids, Strings) else ids


def id_type_of(column: Ids) -> Literal["int64", "string"]:
    """Return what the ids of a column are."""
    return "string" if isinstance(column, Strings) else "int64"


def arguments(column: Ids) -> tuple[NDArray[Any], ...]:
    """Return the arrays of which a column consists; readers may give integers of 32 bits."""
    return tuple(column) if isinstance(column, Strings) else (column.astype(np.int64, copy=False),)


def check_equal_sizes(**sizes: int) -> None:
    """Raise ValueError unless all columns have the same length."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"len({name}) = {size}" for name, size in sizes.items())
        raise ValueError(f"the columns of edges must be equally long, got {found}")


def check_id_type(id_type: str, expected: str | None) -> None:
    """Refuse ids whose type is not that of the table."""
    words = {"int64": "integers", "string": "strings"}
    if expected is not None and id_type != expected:
        raise TypeError(
            f"node ids were {words[expected]} so far, but now {words[id_type]} came; "
            f"make them all strings, for example with astype(str)"
        )


def with_kind(column: Ids, kind: str) -> Strings:
    """Return ids with a kind in front; those that have it already stay as they are."""
    add_prefix: Any = _core.with_prefix  # for integers and strings
    return Strings(*add_prefix(*arguments(column), f"{kind}:"))


def find_plain(column: Ids, kinds: Sequence[str]) -> int:
    """Return the position of the first id that does not start with a kind, or -1."""
    if not isinstance(column, Strings):
        return 0 if column.size > 0 else -1
    return _core.find_without_prefix(*column, [f"{kind}:" for kind in kinds])


def kinds_of(ids: Strings) -> tuple[str, ...]:
    """Return the kinds that ids start with, in the order of appearance."""
    return tuple(_core.kinds_of(*ids))


def ids_in(state: dict[str, NDArray[Any]]) -> Ids:
    """Return the ids in the arrays of `NodeTable.get_state`, in the order of their numbers."""
    if "node_ids" in state:
        check_arrays(state, {"node_ids": np.int64})
        return state["node_ids"]
    if "node_offsets" in state:
        check_arrays(state, {"node_offsets": np.int64, "node_bytes": np.uint8})
        return Strings(state["node_offsets"], state["node_bytes"])
    return np.empty(0, np.int64)


def kinds_in(state: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the kinds of nodes in the arrays of `NodeTable.get_state`."""
    kinds = state.get("node_kinds", np.empty(0, dtype=str))
    if kinds.dtype.kind != "U" or kinds.ndim != 1:
        raise ValueError(f"the names of kinds must be strings, got {kinds.dtype}")
    return tuple(kinds.tolist())
