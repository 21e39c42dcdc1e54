"""Read damaged files: each must give edges or raise a SourceError.

Text must also give the same edges, or the same error, for any size of the blocks that are read.
The suite runs a few files per reader; fuzz_driver.py says how to run more.
"""

import contextlib
import gzip
import io
import json
import os
import zipfile
from pathlib import Path
from unittest import mock

import fuzz_driver
import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse
from pyarrow import feather, parquet

from ohmlearn.reading import SourceError, array_reader, csv_reader, read_edges
from ohmlearn.reading import byte_blocks as byte_streams

U = [1, 2, 3, 2**40, -5] * 8
V = [2, 3, 1, 7, 7] * 8
W = [0.5, 1.0, 2.0, 1e-9, 0.0] * 8
NAMES = [f"n{i}é" for i in U]
NUMBERS = [5, -7, 1e9, 0.25, 3] * 8
UNIX = [1700000000 + i for i in range(40)]
DATES = ["2026-03-31", "2026-03-31T12:30:15.5Z", "1969-12-31 23:59", "2020-02-29T00:00+02:00"] * 10
TIMED = "_times"  # readers whose name ends so read times


def _csv(end: str = "\r\n") -> bytes:
    rows = [f'"{a}",{b},{c}' for a, b, c in zip(NAMES, V, W, strict=True)]
    return end.join(["source,target,weight", *rows]).encode()


def _timed_csv(t: list, names: str = "source,target,t") -> bytes:
    rows = [f"{a},{b},{x}" for a, b, x in zip(U, V, t, strict=True)]
    return "\n".join([names, *rows]).encode()


def _timed_text(t: list) -> bytes:
    rows = [f"{a} {b} {x}" for a, b, x in zip(U, V, t, strict=True)]
    return "\n".join(["u v t", *rows]).encode()


def _timed_json(t: list) -> bytes:
    rows = [{"u": a, "v": b, "t": x} for a, b, x in zip(U, V, t, strict=True)]
    return "\n".join(map(json.dumps, rows)).encode()


def _timed_tables() -> list[pa.Table]:
    days = [text[:10] for text in DATES]
    stamps = pa.array(np.array(days, "M8[D]").astype("M8[us]"), pa.timestamp("us", "UTC"))
    return [pa.table({"u": U, "v": V, "t": t}) for t in (UNIX, DATES, NUMBERS, stamps)]


def _mixed_ends() -> bytes:
    lines = _csv("\n").split(b"\n")
    return b"".join(line + (b"\n", b"\r\n", b"\r")[at % 3] for at, line in enumerate(lines))


def _quoted_ends() -> bytes:
    rows = [f'"{a}\n{a}",{b},"x\r\n""{c},{c}"\n' for a, b, c in zip(NAMES, V, W, strict=True)]
    return ('source,target,"a\nnote"\n' + "".join(rows)).encode()


def _text(comments: int = 1) -> bytes:
    lines = [f"{a}\t{b}" for a, b in zip(U, V, strict=True)]
    return "\n".join(["# SNAP"] * comments + ["% more", *lines, "", " 7  8 "]).encode()


def _json(ids: list) -> bytes:
    rows = [{"u": a, "v": b, "w": c} for a, b, c in zip(ids, ids[::-1], W, strict=True)]
    return "\n".join(map(json.dumps, rows)).encode()


def _bomb(names: list[str], count: int, claimed: int) -> bytes:
    """Columns of zeros, which compress a thousandfold, and a header that may be wrong."""
    header = io.BytesIO()
    form = {"descr": "<i8", "fortran_order": False, "shape": (claimed,)}
    np.lib.format.write_array_header_1_0(header, form)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", header.getvalue() + bytes(8 * count))
    return file.getvalue()


def _zeros(count: int) -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((np.zeros(count), np.zeros((2, count), int)), shape=(9, 9))


def _buffer(write) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _table(strings: bool) -> pa.Table:
    return pa.table({"u": NAMES if strings else U, "v": NAMES[::-1] if strings else V, "w": W})


def _ipc_stream() -> bytes:
    sink = io.BytesIO()
    table = _table(True)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return sink.getvalue()


def _matrix() -> scipy.sparse.coo_array:
    u, v = np.triu_indices(9, 1)
    return scipy.sparse.coo_array((np.arange(1.0, 37), (u, v)), shape=(9, 9))


def _dictionaries(file) -> None:
    table = _table(True)
    feather.write_feather(pa.table({n: table[n].dictionary_encode() for n in "uv"}), file)


# Name -> suffix of the file, and valid files to damage.
METIS = b"% mesh\n5 5\n2 3\n1 3 4\n1 2 5\n2\n3\n"
METIS_WEIGHTS = b"3 2 011 2\n7 7 2 5\n7 7 1 5 3 0.5\n7 7 2 0.5\n"
GRAPHML = b"""<?xml version="1.0"?><graphml>
<key id="w" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"><data key="w">2.5</data></edge>
<edge source="b" target="c"/></graph></graphml>"""

READERS = {
    "csv": (".csv", [_csv(), _csv("\r"), _mixed_ends(), _quoted_ends()]),
    "metis": (".graph", [METIS, METIS_WEIGHTS]),
    "graphml": (".graphml", [GRAPHML]),
    "gzip": (".csv.gz", [gzip.compress(_csv(), mtime=0)]),
    "zstd": (".csv.zst", [pa.compress(_csv(), "zstd", asbytes=True)]),
    "jsonl": (".jsonl", [_json(NAMES), _json(U)]),
    "text": (".txt", [_text(), _text(comments=500)]),
    "matrix_market": (
        ".mtx",
        [
            _buffer(lambda f, c=c: scipy.io.mmwrite(f, _matrix(), comment=c, symmetry="general"))
            for c in ("", "long\n" * 500)
        ],
    ),
    "parquet": (
        ".parquet",
        [
            _buffer(lambda f: parquet.write_table(_table(False), f, row_group_size=16)),
            _buffer(lambda f: parquet.write_table(_table(True), f, compression="zstd")),
            _buffer(lambda f: parquet.write_table(_table(True), f, use_dictionary=False)),
        ],
    ),
    "arrow": (
        ".arrow",
        [
            _buffer(lambda f: feather.write_feather(_table(False), f, compression="uncompressed")),
            _buffer(lambda f: feather.write_feather(_table(True), f, compression="lz4")),
            _buffer(lambda f: feather.write_feather(_table(True), f, compression="uncompressed")),
            _buffer(_dictionaries),
            _ipc_stream(),
        ],
    ),
    "numpy": (
        ".npy",
        [
            _buffer(lambda f: np.save(f, np.array([U, V]).T)),
            _buffer(lambda f: np.save(f, np.array([U, V, W]).T)),
            _buffer(lambda f: np.savez(f, u=U, v=V, w=W)),
            _buffer(lambda f: scipy.sparse.save_npz(f, _matrix().tocsr())),
        ],
    ),
    "csv_times": (
        ".csv",
        [_timed_csv(NUMBERS), _timed_csv(UNIX), _timed_csv(DATES), _timed_csv(DATES, "u,t,v")],
    ),
    "text_times": (".txt", [_timed_text(NUMBERS), _timed_text(UNIX), _timed_text(DATES)]),
    "jsonl_times": (".jsonl", [_timed_json(NUMBERS), _timed_json(UNIX), _timed_json(DATES)]),
    "parquet_times": (
        ".parquet",
        [_buffer(lambda f, t=t: parquet.write_table(t, f)) for t in _timed_tables()],
    ),
    "arrow_times": (
        ".arrow",
        [
            _buffer(lambda f, t=t: feather.write_feather(t, f, compression="uncompressed"))
            for t in _timed_tables()
        ],
    ),
    "numpy_times": (
        ".npz",
        [
            _buffer(lambda f, t=t: np.savez(f, u=U, v=V, t=t))
            for t in (UNIX, NUMBERS, DATES, np.array(UNIX, "M8[s]"), np.array(U, "M8[ns]"))
        ],
    ),
    "packed": (
        ".npz",
        [
            _bomb(["u", "v"], 1 << 17, 1 << 17),
            _bomb(["u", "v"], 1 << 17, 1 << 60),
            _bomb(["format", "row", "col", "data", "shape"], 1 << 17, 1 << 17),
            _buffer(lambda f: scipy.sparse.save_npz(f, _zeros(1000))),
            _buffer(lambda f: scipy.sparse.save_npz(f, _zeros(1 << 17))),
            _buffer(lambda f: np.savez_compressed(f, u=["a" * 5000] * 99, v=["b"] * 99)),
        ],
    ),
}
# Not compressed, so that the end may be damaged.
TEXT = ("csv", "text", "matrix_market", "csv_times", "text_times")
CAPS = {"SMALL_MATRIX": 1 << 18, "BATCH_BYTES": 1 << 16}  # small files exceed these limits
LIVELY = [
    b"\n", b"\r", b"\r\n", b'"\n', b'""', b",", b'"', b"\t", b"\0", b"\xff", b"-", b"nan", b"1e999",
    b"#", b"%", b"9" * 30, b"9999-12-31", b"2026-", b"T25:00", b" 12:30", b"+02:00", b"inf",
]  # fmt: skip


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a file in a few places."""
    result = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(result) + 1))
        length = int(rng.integers(1, 17))
        kind = int(rng.integers(0, 7))
        if kind == 0 and result:
            result[at % len(result)] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            result[at : at + length] = rng.bytes(length)
        elif kind == 2:
            del result[at : at + length]
        elif kind == 3:
            result[at:at] = LIVELY[int(rng.integers(0, len(LIVELY)))]
        elif kind == 4:
            start = int(rng.integers(0, len(result) + 1))
            result[at:at] = result[start : start + 8 * length]
        elif kind == 5:
            result[at : at + 4] = int(rng.integers(-3, 2**31)).to_bytes(4, "little", signed=True)
        elif rng.random() < 0.3:
            del result[at:]
    return bytes(result)


def read(reader: str, seed: int, path: Path, on_bad: str) -> list:
    """Return the edges of a file as [u, v, w, t, ...] with names, and what was dropped."""
    timed = reader.endswith(TIMED)
    stream = read_edges(path, on_bad=on_bad, time=True if timed else None)
    batches = list(stream)
    ids = stream.nodes.ids()
    if len(ids) != len(stream.nodes):
        raise AssertionError(f"{reader}, seed {seed}: ids that cannot be given back")
    for u, v, w, t in batches:
        times = [] if t is None else [t]
        good = w is None or bool(np.isfinite(w).all() and (w >= 0).all())
        good &= len(times) == timed and all(bool(np.isfinite(t).all()) for t in times)
        lengths = {len(column) for column in (u, v, *times, *([] if w is None else [w]))}
        if not (good and len(lengths) == 1):
            raise AssertionError(f"{reader}, seed {seed}: columns that do not fit")
    ends = [[x for b in batches for x in ids[b[side]].tolist()] for side in (0, 1)]
    weights = [x for b in batches if b.w is not None for x in b.w.tolist()]
    times = [x for b in batches if timed for x in b.t.tolist()]
    return [*ends, weights, times, stream.n_bad, stream.first_bad]


def run(reader: str, seed: int, folder: str) -> str:
    """Read one damaged file; return "edges" or "refused"."""
    rng = np.random.default_rng(seed)
    ending, files = READERS[reader]
    path = Path(folder) / f"damaged{ending}"
    data = damage(files[int(rng.integers(0, len(files)))], rng)
    path.write_bytes(data)
    on_bad = "skip" if rng.random() < 0.5 else "raise"
    blocks = [1 << 20]
    patches = [mock.patch.multiple(array_reader, **CAPS)]
    if reader in TEXT and b"\r" not in data:  # a first block without \n would make them line ends
        blocks.append(int(rng.integers(400, 1500)))
        patches.append(mock.patch.object(csv_reader, "SAMPLE", 1))  # both guess from the same lines
    found: list[object] = []
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        for size in blocks:
            with mock.patch.object(byte_streams, "BLOCK", size):
                try:
                    found.append(read(reader, seed, path, on_bad))
                except SourceError as error:
                    found.append(str(error))
    if reader == "matrix_market":  # of two faults, the one that is named depends on the blocks
        found = ["refused" if isinstance(result, str) else result for result in found]
    if found[0] != found[-1]:
        raise AssertionError(f"{reader}, seed {seed}, blocks of {blocks}: {found}")
    return "refused" if isinstance(found[0], str) else "edges"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    fuzz_driver.main(READERS, run)
