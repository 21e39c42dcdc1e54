"""Columns of node ids as the tables of nodes take them: integers, or strings as Arrow has them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._validation_sources import check_ids, check_strings

__all__ = ["Ids", "Strings", "as_ids", "decode_strings", "encode_strings", "ids_from_arrow"]


class Strings(NamedTuple):
    """String i is the UTF-8 bytes ``data[offsets[i] : offsets[i + 1]]``."""

    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.uint8]

    # A tuple has a length already: that of the columns is `size`, as with arrays.
    @property
    def size(self) -> int:
        """Number of strings."""
        return len(self.offsets) - 1


Ids = NDArray[np.int32] | NDArray[np.int64] | Strings


def encode_strings(values: list[str]) -> Strings:
    """Lay strings out one after the other.

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
    """Return ids from an Arrow array without nulls, copied only where the type asks for it."""
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
    if len(array) == 0:  # may come without buffers
        return Strings(np.zeros(1, dtype=dtype), np.empty(0, dtype=np.uint8))
    ends = np.frombuffer(offsets, dtype=dtype)[array.offset : array.offset + len(array) + 1]
    return Strings(ends, np.frombuffer(data or b"", dtype=np.uint8))
