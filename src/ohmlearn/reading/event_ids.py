"""Ids of events: rows that repeat an event of a file that was read before do not count.

An id is remembered as a hash of 64 bits. The memory has the last `MOST` different ids, in the
order in which they came first, so at most 192 MiB, and 64 MiB in a state file. An event that comes
again after more than `MOST` others counts twice. A new event is taken for a known one with
probability `MOST` / 2**64, less than 5e-13. Whether a row counts depends on the rows before it
only, not on batches or threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.nodes.node_ids import Strings, encode_strings, ids_from_arrow
from ohmlearn.reading.source_errors import refuse_source

MOST = 1 << 23  # ids that are remembered
Events = NDArray[np.uint64]


def recall(*parts: Events) -> _core.RecentIds:
    """Return a memory of the ids of earlier events, from the oldest to the newest."""
    recent = _core.RecentIds(MOST)
    for ids in parts:
        recent.take(ids)
    return recent


def hash_values(values: list[Any]) -> Events:
    """Return hashes of integers and strings; 17 and "17" are the same id.

    Examples
    --------
    >>> bool((hash_values([17]) == hash_values(["17"])).all())
    True
    """
    return _hash(encode_strings([str(value) for value in values]))


def hash_array(array: Any, source: str, column: str | None) -> Events:
    """Return hashes of a column of Arrow, `NONE` for nulls."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    if not (is_text or pa.types.is_integer(array.type) or str(array.type) == "string_view"):
        refuse_source(
            source,
            f"ids of events must be integers or strings, but {column} has type {kind}; cast it",
        )
    found = ids_from_arrow(array.cast(pa.large_string()).fill_null("")).ids
    assert isinstance(found, Strings)
    return _hash(found)


def _hash(texts: Strings) -> Events:
    return _core.hash_texts(np.asarray(texts.offsets, np.int64), texts.data)


NONE = hash_values([""])[0]  # which is no id
