"""Threads that read ahead change nothing but the time, and end with the iteration."""

import os
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from row_files import write_rows

from ohmlearn import StreamingSparsifier, read_edges
from ohmlearn.reading import SourceError, parallel, parquet_reader
from ohmlearn.reading import byte_blocks as byte_streams

N = 6000
RNG = np.random.default_rng(0)
# New nodes keep coming: ends of row i are below i / 4.
U, V = (RNG.random((2, N)) * (np.arange(N) / 4 + 2)).astype(int)
W = RNG.integers(1, 9, N).astype(float)
T = 1.7e9 + np.sort(RNG.random(N))
NAMES = [f"n{'x' * (i % 23)}{i}" for i in range(N)]  # some longer than 16 bytes
TEXT = {"u": [NAMES[i] for i in U], "v": [NAMES[i] for i in V], "w": W}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(byte_streams, "BLOCK", 4000)
    monkeypatch.setattr(parquet_reader, "ROWS", 130)
    monkeypatch.setattr(parquet_reader, "ROWS_TOGETHER", 600)
    monkeypatch.setattr(parallel, "CHUNK", 500)
    monkeypatch.setattr(parallel, "SLACK", 100)  # fewer than a batch has
    yield
    assert not helpers()


def helpers():
    """Return the threads that read ahead."""
    return [x for x in threading.enumerate() if x.name.startswith("ohmlearn-prepare")]


def write(path, columns, row_group_size=500, **how):
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size, **how)
    return path


def text_codes(column):
    return pa.array(column).dictionary_encode()


def make_npy(folder):
    np.save(folder / "e.npy", np.column_stack([U, V]))
    return folder / "e.npy"


def make_parts(folder):
    """Files with row groups of all sizes."""
    for number, size in enumerate((4, 100, 700, 1500)):
        rows = slice(number * N // 4, (number + 1) * N // 4)
        write(folder / f"{number}.parquet", {"u": U[rows], "v": V[rows], "w": W[rows]}, size)
    return [folder / f"{number}.parquet" for number in range(4)]


SOURCES = {
    "integers": lambda x: write(x / "e.parquet", {"u": U, "v": V}),
    "int32": lambda x: write(x / "e.parquet", {"u": U.astype("i4"), "v": V.astype("i4"), "w": W}),
    "one row group": lambda x: write(x / "e.parquet", {"u": U, "v": V, "w": W}, N),
    "times": lambda x: write(x / "e.parquet", {"u": U, "v": V, "w": W, "t": T}),
    "plain strings": lambda x: write(x / "e.parquet", TEXT, use_dictionary=False),
    "coded strings": lambda x: write(x / "e.parquet", TEXT),
    "one column coded": lambda x: write(x / "e.parquet", TEXT, use_dictionary=["v"]),
    "dictionary full": lambda x: write(x / "e.parquet", TEXT, 3000, dictionary_pagesize_limit=2000),
    "dictionaries of Arrow": lambda x: write(
        x / "e.parquet", {"u": text_codes(TEXT["u"]), "v": text_codes(TEXT["v"])}
    ),
    "dictionaries of integers": lambda x: write(
        x / "e.parquet", {"u": text_codes(U), "v": text_codes(V)}
    ),
    "several files": make_parts,
    "csv": lambda x: write_rows(x / "e.csv", TEXT),
    "json": lambda x: write_rows(x / "e.jsonl", TEXT),
    "npy": make_npy,
    "arrow": lambda x: write_rows(x / "e.arrow", TEXT, 700),
}


def read_all(stream, n_jobs):
    """Return all that a reading finds."""
    columns = [[], [], [], []]
    for batch in stream.batches(n_jobs):
        for found, array in zip(columns, batch, strict=False):
            found.append(np.zeros(0) if array is None else array)
    arrays = [np.concatenate(found).tolist() for found in columns if found]
    counts = stream.n_read, stream.n_bad, stream.first_bad, stream.n_edges, stream.fraction
    return arrays, stream.nodes.ids().tolist(), stream.kinds, counts


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_edges_do_not_depend_on_the_number_of_threads(kind, n_jobs, tmp_path):
    paths = SOURCES[kind](tmp_path)
    options = {"time": True} if kind == "times" else {}
    expected = read_all(read_edges(paths, **options), 1)
    assert len(expected[0][0]) == N
    stream = read_edges(paths, **options)
    assert read_all(stream, n_jobs) == expected
    assert read_all(stream, n_jobs) == expected  # with all ids known


@pytest.mark.parametrize(
    "options",
    [
        {"where": "w > 4"},
        {"where": "u != 'n0'", "on_bad": "skip"},
        {"bipartite": ("user", "item")},
        {"id_type": "string"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_codes_of_strings_are_as_the_strings(options, n_jobs, tmp_path):
    options = {"on_bad": "skip"} | options
    columns = TEXT | {"u": [u if i % 71 else None for i, u in enumerate(TEXT["u"])]}
    columns["w"] = np.where(np.arange(N) % 83 == 5, -1.0, W)
    plain = write(tmp_path / "plain.parquet", columns, use_dictionary=False)
    arrays, ids, kinds, counts = read_all(read_edges(plain, **options), 1)
    coded = write(tmp_path / "coded.parquet", columns)
    found = read_all(read_edges(coded, **options), n_jobs)
    assert found[:3] == (arrays, ids, kinds)
    assert found[3][:2] == counts[:2]
    assert found[3][2].partition(":")[2] == counts[2].partition(":")[2]


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_counts_grow_while_threads_read(n_jobs, tmp_path):
    stream = read_edges(make_parts(tmp_path), on_bad="skip")
    before, fraction, source = 0, 0.0, 0
    for batch in stream.batches(n_jobs):
        before += len(batch.u)
        assert stream.n_read == before
        assert fraction <= stream.fraction <= 1
        assert source <= stream.source
        fraction, source = stream.fraction, stream.source
    assert source == 3


def collect(stream, n_jobs):
    """Return the edges before an error, and the error."""
    found = []
    try:
        for batch in stream.batches(n_jobs):
            found += zip(batch.u.tolist(), batch.v.tolist(), strict=True)
    except SourceError as error:
        return found, str(error).partition(" at string index")[0]  # of pyarrow, in a batch
    raise AssertionError("no error")


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("problem", ["weight", "null", "utf8", "cut off", "missing", "csv"])
def test_errors_come_where_they_did(problem, n_jobs, tmp_path):
    names = pa.array(TEXT["u"])
    columns = {"u": names, "v": TEXT["v"], "w": W.copy()}
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    if problem == "weight":
        columns["w"][4001] = -1
    elif problem == "null":
        columns["u"] = pa.array([None if i == 4001 else u for i, u in enumerate(TEXT["u"])])
    elif problem == "utf8":
        bad = pa.array([b"\xff" if i == 4001 else u.encode() for i, u in enumerate(TEXT["u"])])
        columns["u"] = pa.Array.from_buffers(pa.string(), N, bad.buffers())
    for path in paths:
        write(path, columns)
    streams = [read_edges(paths) for _ in range(2)]
    if problem == "csv":
        paths = [SOURCES["csv"](tmp_path)]
        lines = paths[0].read_text().splitlines()
        lines[4001] += "x"
        paths[0].write_text("\n".join(lines))
        streams = [read_edges(paths) for _ in range(2)]
    elif problem == "cut off":
        content = paths[1].read_bytes()
        middle = len(content) // 2
        paths[1].write_bytes(content[:middle] + bytes(2000) + content[middle + 2000 :])
    elif problem == "missing":
        paths[1].unlink()
        with pytest.raises(FileNotFoundError):
            read_all(streams[0], 1)
        with pytest.raises(FileNotFoundError):
            read_all(streams[1], n_jobs)
        assert streams[0].n_read == streams[1].n_read == N
        return
    edges, message = collect(streams[0], 1)
    found, same = collect(streams[1], n_jobs)
    assert same == message
    shorter = min(len(edges), len(found))
    assert edges[:shorter] == found[:shorter]
    assert abs(len(edges) - len(found)) < 500


def test_threads_end_when_the_iteration_is_left(tmp_path):
    stream = read_edges(write(tmp_path / "e.parquet", {"u": U, "v": V}))
    batches = stream.batches(3)
    assert not helpers()
    next(batches)
    assert not helpers()  # the first batch decides what ids are
    next(batches)
    assert helpers()
    batches.close()
    assert not helpers()
    batches = stream.batches(2)
    next(batches), next(batches)
    with pytest.raises(KeyboardInterrupt):
        batches.throw(KeyboardInterrupt)
    assert not helpers()
    for batch in stream.batches(2):  # let go
        if batch.u.max() > 100:
            break
    del batch
    assert not helpers()
    assert read_all(stream, 2) == read_all(stream, 1)


def test_threads_end_when_the_caller_fails(tmp_path):
    stream = read_edges(write(tmp_path / "e.parquet", {"u": U, "v": V}))
    sparsifier = StreamingSparsifier(n_nodes=300, n_jobs=2, random_state=0)
    with pytest.raises(ValueError, match="300"):
        sparsifier.update(stream)
    assert not helpers()


def test_code_of_the_user_runs_in_the_thread_of_the_caller():
    seen = []

    def make():
        for first in range(0, 1000, 100):
            seen.append(threading.current_thread())
            yield U[first : first + 100], V[first : first + 100]

    for stream in (read_edges(make), read_edges(make())):
        for number, _ in enumerate(stream.batches(4), 1):
            assert len(seen) == number  # nor does it run early
        assert set(seen) == {threading.current_thread()}
        seen.clear()


def test_two_streams_share_a_table(tmp_path):
    paths = [SOURCES["coded strings"](tmp_path), SOURCES["csv"](tmp_path)]

    def read_both(n_jobs):
        first = read_edges(paths[0])
        streams = first, read_edges(paths[1], nodes=first.nodes)
        parts = [[], []]
        readers = [stream.batches(n_jobs) for stream in streams]
        for _ in range(N // 100):
            for part, reader in zip(parts, readers, strict=True):
                if (batch := next(reader, None)) is not None:
                    part += np.column_stack([batch.u, batch.v]).tolist()
        return first.nodes, parts

    for n_jobs in (1, 3):
        nodes, parts = read_both(n_jobs)
        ids = nodes.ids()
        for part in parts:
            ends = ids[np.array(part)]
            assert ends[:, 0].tolist() == TEXT["u"]
            assert ends[:, 1].tolist() == TEXT["v"]


FORK = """
import os, sys, warnings
from ohmlearn import read_edges
from ohmlearn.reading import parquet_reader, parallel

warnings.simplefilter("ignore", DeprecationWarning)  # about a fork with threads
parquet_reader.ROWS, parquet_reader.ROWS_TOGETHER, parallel.CHUNK = 130, 600, 500
stream = read_edges(sys.argv[1])
batches = stream.batches(2)
n_read = sum(len(next(batches).u) for _ in range(4))
child = os.fork()
if child == 0:
    try:
        list(batches)
    except RuntimeError as error:
        assert "the process was forked" in str(error)
    else:
        os._exit(1)
    again = read_edges(sys.argv[1], nodes=stream.nodes)
    os._exit(0 if sum(len(batch.u) for batch in again.batches(2)) == int(sys.argv[2]) else 2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert n_read + sum(len(batch.u) for batch in batches) == int(sys.argv[2])
left = stream.batches(2)  # is not closed: the interpreter must end nevertheless
next(left), next(left)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_again(tmp_path):
    path = SOURCES["coded strings"](tmp_path)
    command = [sys.executable, "-c", FORK, str(path), str(N)]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize("as_ids", [np.asarray, lambda ends: [NAMES[i] for i in ends]])
def test_memory_of_batches_is_used_again_only_when_they_are_gone(tmp_path, as_ids):
    ends = RNG.integers(0, 40, (2, N))
    path = write(tmp_path / "e.parquet", {"u": as_ids(ends[0]), "v": as_ids(ends[1])})
    kept = list(read_edges(path).batches(2))
    for end in (0, 1):
        found = np.concatenate([batch[end] for batch in kept])
        alone = np.concatenate([batch[end] for batch in read_edges(path)])
        assert np.array_equal(found, alone)
    places = [batch.u.ctypes.data for batch in read_edges(path).batches(2)]
    assert len(places) > 10
    assert len(set(places)) < len(places)
    first = next(batches := read_edges(path).batches(2))
    part, copy = first.u[3:9], first.u[3:9].copy()
    del first
    assert sum(len(batch.u) for batch in batches) > N - 600
    assert np.array_equal(part, copy)  # a view of a part keeps the memory of all


def test_small_chunks_do_not_hold_the_memory_of_large_ones(tmp_path):
    files = []
    for number in range(6):
        ends = RNG.integers(0, 40, (2, 500 if number == 0 else 120))
        files.append(write(tmp_path / f"{number}.parquet", {"u": ends[0], "v": ends[1]}))
    last = list(read_edges(files).batches(2))[-1]
    assert len(last.u) == 120
    assert (last.u if last.u.base is None else last.u.base).nbytes == 4 * 120
