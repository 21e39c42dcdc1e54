"""Columns of node ids: arrays of integers, or strings in the layout of Arrow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Ids",
    "Strings",
    "as_ids",
    "check_ids",
    "check_strings",
    "decode_strings",
    "encode_strings",
    "ids_from_arrow",
]


class Strings(NamedTuple):
    """String i is the UTF-8 bytes ``data[offsets[i] : offsets[i + 1]]``."""

    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.uint8]

    # The length of the tuple is 2, so the number of strings is `size`, as in arrays.
    @property
    def size(self) -> int:
        """Number of strings."""
        return len(self.offsets) - 1


Ids = NDArray[np.int32] | NDArray[np.int64] | Strings


def encode_strings(values: list[str]) -> Strings:
    """Return strings in the layout of Arrow.

    Examples
    --------
    >>> encode_strings(["ab", "", "c"])
    Strings(offsets=array([0, 2, 2, 3]), data=array([97, 98, 99], dtype=uint8))
    """
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    return Strings(offsets, np.frombuffer(b"".join(encoded), dtype=np.uint8))


def decode_strings(strings: Strings) -> NDArray[np.object_]:
    """Return an array of Python strings.

    Examples
    --------
    >>> decode_strings(encode_strings(["ab", "", "c"]))
    array(['ab', '', 'c'], dtype=object)
    """
    data = strings.data.tobytes()
    ends = strings.offsets.tolist()
    result = np.empty(strings.size, dtype=object)
    result[:] = [data[a:b].decode() for a, b in pairwise(ends)]
    return result


def as_ids(values: Any, name: str) -> Ids:
    """Return ids from an array or a list of integers or strings, or from an Arrow array.

    Examples
    --------
    >>> as_ids([5, 3], "u")
    array([5, 3])
    >>> as_ids(["a", "b"], "u").size
    2
    """
    if isinstance(values, Strings):
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return ids_from_arrow(values)
    array = check_ids(values, name)
    if array.dtype.kind in "iu":
        return array
    return encode_strings(check_strings(array.tolist(), name))


def ids_from_arrow(array: Any) -> Ids:
    """Return ids from an Arrow array without nulls, copied only if the type requires it."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return ids_from_arrow(array.dictionary_decode())
    if pa.types.is_integer(kind):
        integers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return integers
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    dtype: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if len(array) == 0:  # it may have no buffers
        return Strings(np.zeros(1, dtype=dtype), np.empty(0, dtype=np.uint8))
    ends = np.frombuffer(offsets, dtype=dtype)[array.offset : array.offset + len(array) + 1]
    return Strings(ends, np.frombuffer(data or b"", dtype=np.uint8))


def check_ids(values: Any, name: str) -> NDArray[Any]:
    """Return ids as a contiguous vector of signed integers, or one of strings.

    Examples
    --------
    >>> check_ids([7, 2**40], "u")
    array([            7, 1099511627776])
    >>> check_ids(["a", 2.5], "u")
    Traceback (most recent call last):
    ...
    TypeError: node ids must be all integers or all strings, but u[1] = 2.5 is a float
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # else mixed lists become strings or floats
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:  # numpy makes an empty list float64
        return np.empty(0, dtype=np.int64)
    if not array.flags.aligned:
        array = array.copy()
    if array.dtype.kind == "O":
        kinds = (int, np.integer) if not isinstance(array[0], str) else (str,)
        for at, value in enumerate(array):
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise TypeError(
                    f"node ids must be all integers or all strings, but {name}[{at}] = {value!r} "
                    f"is a {type(value).__name__}"
                )
        if kinds == (str,):
            return array
        if not all(-(2**63) <= value < 2**63 for value in array):
            at = next(i for i, value in enumerate(array) if not -(2**63) <= value < 2**63)
            raise ValueError(f"node ids must fit int64, but {name}[{at}] = {array[at]}")
        return array.astype(np.int64)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() >= 2**63:
        at = int(np.argmax(array >= 2**63))
        raise ValueError(f"node ids must fit int64, but {name}[{at}] = {array[at]}")
    if array.dtype.kind not in "iuUT":
        raise TypeError(
            f"node ids must be integers or strings, but {name} has dtype {array.dtype}; cast it "
            f"with astype(int) or astype(str) if that is what they mean"
        )
    if array.dtype.kind == "u":
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)


def check_strings(values: list[Any], name: str) -> list[str]:
    """Return the strings if UTF-8 can encode them all."""
    for at, value in enumerate(values):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(
                f"node ids must be valid Unicode, but {name}[{at}] = {value!r} has a lone surrogate"
            )
    return values
