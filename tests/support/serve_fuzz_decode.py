"""Decode damaged bodies: each must give a batch or raise BadBody, in little memory.

The suite runs a few bodies per form; fuzz_driver.py says how to run more.
"""

import io
import json
import time

import fuzz_driver
import numpy as np
import pyarrow as pa
from fuzz_readers import DATES, NAMES, NUMBERS, UNIX, U, V, W, damage

from ohmlearn.nodes.node_ids import Strings, decode_strings
from ohmlearn.serve.decode_edges import BadBody, decode_edges

SLOW = 5.0  # seconds that a small body must never take
MAX_ID_BYTES = 40


def lines(columns: dict) -> bytes:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(map(json.dumps, rows)).encode()


def csv(columns: dict, quote: str = "", end: str = "\n") -> bytes:
    rows = [
        ",".join(f"{quote}{x}{quote}" for x in row) for row in zip(*columns.values(), strict=True)
    ]
    return end.join([",".join(columns), *rows]).encode()


def ipc(columns: dict, *, rows: int | None = None, file: bool = False) -> bytes:
    table = pa.table(columns)
    sink = io.BytesIO()
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


INTEGERS = {"u": U, "v": V, "w": W}
TEXTS = {"source": NAMES, "target": NAMES[::-1], "weight": W}
DATED = {"u": NAMES, "v": NAMES[::-1], "time": DATES}
TIMED = {"u": U, "v": V, "time": UNIX}
LONG = [name * 5 for name in NAMES]  # longer than a view of a string has room for


def _arrow() -> list[bytes]:
    names = pa.array(NAMES)
    stamps = np.array([text[:10] for text in DATES], "M8[D]").astype("M8[us]")
    views = pa.array(LONG).cast(pa.string_view())
    with_nulls = pa.array([None if at % 7 == 3 else x for at, x in enumerate(NAMES)])
    return [
        ipc(INTEGERS),
        ipc(TEXTS, rows=16),
        ipc(TEXTS, file=True),
        ipc(DATED),
        ipc({**TIMED, "extra": NAMES}),
        ipc({"u": names.dictionary_encode(), "v": names.dictionary_encode(), "t": stamps}),
        ipc({"u": views, "v": views, "w": pa.array(W, pa.float32())}, rows=20),
        ipc({"u": pa.array(LONG, pa.large_string()), "v": with_nulls, "x": [[1]] * 40}),
        ipc({"u": pa.array(U), "v": pa.array(V, pa.int16()), "w": pa.array(V, pa.uint8())}),
        ipc({"u": with_nulls, "v": with_nulls, "t": NUMBERS}),
        ipc({"u": views.cast(pa.string()).dictionary_encode(), "v": views}),
    ]


BODIES = {
    "ndjson": [lines(x) for x in (INTEGERS, TEXTS, DATED, TIMED)],
    "csv": [csv(INTEGERS), csv(TEXTS, '"'), csv(DATED, end="\r\n"), csv(TIMED), csv(DATED, '"')],
    "arrow": _arrow(),
}


def damage_numbers(body: bytes, rng: np.random.Generator) -> bytes:
    """Change numbers of the metadata of an IPC stream, which are small integers at even places."""
    result = bytearray(body)
    for _ in range(int(rng.integers(1, 4))):
        width = int(rng.choice([1, 2, 4, 8]))
        at = int(rng.integers(0, len(result) // width)) * width
        old = int.from_bytes(result[at : at + width], "little")
        new = [0, 1, old + 1, old - 1, old * 2, old << 16, 2 ** (8 * width - 1), -1, 2**31 - 1]
        value = int(rng.choice(np.array(new, dtype=object))) % 2 ** (8 * width)
        result[at : at + width] = value.to_bytes(width, "little")
    return bytes(result)


def run(form: str, seed: int, folder: str) -> str:
    """Decode one damaged body; return "edges" or "refused"."""
    rng = np.random.default_rng(seed)
    bodies = BODIES[form]
    body = bodies[int(rng.integers(0, len(bodies)))]
    in_numbers = form == "arrow" and rng.random() < 0.5
    body = damage_numbers(body, rng) if in_numbers else damage(body, rng)
    kind = [None, "int64", "string"][int(rng.integers(0, 3))]
    skip = bool(rng.random() < 0.5)
    started = time.perf_counter()
    try:
        raw = decode_edges(
            body, form, id_kind=kind, skip_bad=skip, max_rows=100, max_id_bytes=MAX_ID_BYTES
        )
    except BadBody as error:
        if isinstance(error.__cause__, MemoryError):
            raise AssertionError(f"{form}, seed {seed}: {error}") from error
        str(error).encode()
        return "refused"
    finally:
        if time.perf_counter() - started > SLOW:
            raise AssertionError(f"{form}, seed {seed}: took too long")
    for ids in (raw.u, raw.v):
        if isinstance(ids, Strings):
            texts = decode_strings(ids)  # raises if one is not UTF-8
            sizes = [len(text.encode()) for text in texts]
            good = kind != "int64" and all(0 < size <= MAX_ID_BYTES for size in sizes)
        else:
            good = kind != "string" and ids.dtype == np.int64
        for column in (raw.w, raw.t):
            good &= column is None or (len(column) == ids.size and bool(np.isfinite(column).all()))
        good &= raw.w is None or raw.w.size == 0 or raw.w.min() >= 0
        good &= (raw.n_bad > 0) == (raw.first_bad is not None) and (skip or raw.n_bad == 0)
        if not (good and ids.size == raw.u.size):
            raise AssertionError(f"{form}, seed {seed}: {raw}")
    return "edges"


if __name__ == "__main__":
    fuzz_driver.main(BODIES, run, gigabytes=4)
