"""Feeds damaged files to the readers: each must end in edges or in a SourceError.

The suite runs a few per reader. For more, each batch in a process of its own, so that a crash or a
hang is seen and named with its seed:

    python tests/fuzz_readers.py --count 10000
    python tests/fuzz_readers.py --reader parquet --first 4711 --count 1    # once more, in this one
"""

import argparse
import gzip
import io
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse
from pyarrow import feather, parquet

from ohmlearn.streams import SourceError, read_edges

U = [1, 2, 3, 2**40, -5] * 8
V = [2, 3, 1, 7, 7] * 8
W = [0.5, 1.0, 2.0, 1e-9, 0.0] * 8
NAMES = [f"n{i}é" for i in U]


def _csv() -> bytes:
    rows = [f'"{a}",{b},{c}' for a, b, c in zip(NAMES, V, W, strict=True)]
    return "\r\n".join(["source,target,weight", *rows]).encode()


def _text() -> bytes:
    lines = [f"{a}\t{b}" for a, b in zip(U, V, strict=True)]
    return "\n".join(["# SNAP", "% more", *lines, "", " 7  8 "]).encode()


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


# Name -> ending of the file, and good files to damage.
READERS = {
    "csv": (".csv", [_csv()]),
    "gzip": (".csv.gz", [gzip.compress(_csv())]),
    "zstd": (".csv.zst", [pa.compress(_csv(), "zstd", asbytes=True)]),
    "text": (".txt", [_text()]),
    "matrix_market": (
        ".mtx",
        [_buffer(lambda f, s=s: scipy.io.mmwrite(f, _matrix(), symmetry=s)) for s in ["general"]],
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
}
LIVELY = [b"\n", b",", b'"', b"\t", b"\0", b"\xff", b"-", b"nan", b"1e999", b"#", b"%", b"9" * 30]


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


def run(reader: str, seed: int, folder: str) -> str:
    """Read one damaged file; return "edges" or "refused"."""
    rng = np.random.default_rng(seed)
    ending, files = READERS[reader]
    path = Path(folder) / f"damaged{ending}"
    path.write_bytes(damage(files[int(rng.integers(0, len(files)))], rng))
    try:
        stream = read_edges(path, on_bad="skip" if rng.random() < 0.5 else "raise")
        for u, v, w in stream:
            good = w is None or bool(np.isfinite(w).all() and (w >= 0).all())
            if not (len(u) == len(v) and good and (w is None or len(w) == len(u))):
                raise AssertionError(f"{reader}, seed {seed}: columns that do not fit")
        if len(stream.nodes.ids()) != len(stream.nodes):
            raise AssertionError(f"{reader}, seed {seed}: ids that cannot be given back")
    except SourceError:
        return "refused"
    return "edges"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=READERS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    if options.reader:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        with tempfile.TemporaryDirectory() as folder:
            outcomes = []
            for seed in range(options.first, options.first + options.count):
                print(seed, file=sys.stderr)  # the last one printed is the one that crashed
                outcomes.append(run(options.reader, seed, folder))
        print(f"{outcomes.count('edges')} read, {outcomes.count('refused')} refused")
        return
    failed = False
    for reader in READERS:
        read = refused = 0
        step = min(1000, options.count)
        for first in range(options.first, options.first + options.count, step):
            command = [sys.executable, __file__, "--reader", reader, f"--first={first}"]
            try:
                done = subprocess.run(
                    [*command, f"--count={step}"], capture_output=True, text=True, timeout=300
                )
                trouble = "" if done.returncode == 0 else f"exit code {done.returncode}"
                output, errors = done.stdout, done.stderr
            except subprocess.TimeoutExpired as error:
                trouble, output = "no end", ""
                errors = (error.stderr or b"").decode()
            if trouble:
                failed = True
                print(f"{reader}: {trouble}; {errors[-2000:]}")
            else:
                words = output.split()
                read, refused = read + int(words[0]), refused + int(words[2])
        print(f"{reader}: {read} read, {refused} refused", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
