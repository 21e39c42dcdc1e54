"""The same edges give the same bytes, in whatever form they come."""

import gzip
import os
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
from row_files import write_rows
from servers import serve_bucket, serve_files

from ohmlearn import StreamingSparsifier, read_edges
from ohmlearn.cluster import LocalEdges

N_EDGES, N_NODES = 30_000, 300
FORMS = ["csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl"]


@pytest.fixture(scope="module", params=["int64", "string"])
def table(request):
    random = np.random.default_rng(7)
    ids = np.arange(1000, 1000 + N_NODES)
    names = ids if request.param == "int64" else np.array([f"n {i}" for i in ids])
    u, v = names[random.integers(0, N_NODES, (2, N_EDGES))]
    return pa.table({"src": u, "dst": v, "weight": random.integers(1, 9, N_EDGES) / 4})


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    for ending in ("csv", "tsv", "parquet", "arrow", "jsonl"):
        write_rows(folder / f"e.{ending}", table.to_pydict(), 10_000)
    (folder / "e.csv.gz").write_bytes(gzip.compress((folder / "e.csv").read_bytes(), 1))
    with pa.ipc.new_stream(folder / "e.arrows", table.schema) as stream:
        stream.write_table(table, max_chunksize=7_000)
    return folder


def content(sparsifier):
    """All that is kept: the state of the sampler and the ids, but not the number of threads."""
    state = sparsifier.copy(n_jobs=1).get_state()
    return b"".join(array.tobytes() for array in state.values())


def sparsify(source, n_jobs=1):
    kept = StreamingSparsifier(epsilon=0.9, random_state=0, n_jobs=n_jobs)
    return content(kept.update(read_edges(source)))


@pytest.fixture(scope="module")
def expected(table):
    kept = StreamingSparsifier(epsilon=0.9, random_state=0, n_jobs=1)
    kept.update(read_edges(tuple(table[name].to_numpy() for name in table.column_names)))
    assert kept.n_rows_ < N_EDGES / 2
    return content(kept)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_files(form, n_jobs, files, expected):
    assert sparsify(files / f"e.{form}", n_jobs) == expected


def test_objects(table, files, expected):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    objects = [
        table,
        table.to_reader(max_chunksize=999),
        pandas.DataFrame(table.to_pydict()),
        polars.from_arrow(table),
        polars.scan_parquet(files / "e.parquet"),
        duckdb.read_parquet(str(files / "e.parquet")),
        [tuple(row.values()) for row in table.to_pylist()],
    ]
    for each in objects:
        assert sparsify(each) == expected, type(each)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "arrows"])
def test_named_pipes(form, files, expected, tmp_path):
    """A pipe is opened once and read once; a thread that cannot write does not block the test."""
    pipe = tmp_path / f"pipe.{form}"
    os.mkfifo(pipe)
    content = (files / f"e.{form}").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    assert sparsify(pipe) == expected
    writer.join(30)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "arrows"])
def test_standard_input_and_process_substitution(form, files, expected, tmp_path):
    options = ["--epsilon", "0.9", "--seed", "0", "--quiet", "-o"]
    ohmlearn = [sys.executable, "-m", "ohmlearn", "sparsify"]
    how = {"csv": [], "jsonl": ["--read", "format=jsonl"], "arrows": ["--read", "format=arrow"]}[
        form
    ]
    out, path = tmp_path / "h.ohm", files / f"e.{form}"
    with path.open("rb") as file:
        subprocess.run(
            [*ohmlearn, "-", *how, *options, str(out)], stdin=file, check=True, timeout=60
        )
    assert content(StreamingSparsifier.load(out)) == expected
    reader, writer = os.pipe()
    given = [*ohmlearn, f"/dev/fd/{reader}", *how, *options, str(out)]
    with subprocess.Popen(given, pass_fds=[reader]) as command:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(path.read_bytes())
        assert command.wait(60) == 0
    assert content(StreamingSparsifier.load(out)) == expected


def test_remote_files(files, expected, monkeypatch):
    contents = {f"e.{form}": (files / f"e.{form}").read_bytes() for form in FORMS}
    with serve_files(contents) as server:
        for name in contents:
            assert sparsify(f"{server.address}/{name}") == expected, name
    pytest.importorskip("moto")
    with serve_bucket(monkeypatch, contents):
        for name in contents:
            assert sparsify(f"s3://edges/{name}") == expected, name


def test_partitions(files):
    """Of these formats only Parquet can be split; one partition has the same bytes in each."""
    found = set()
    for form in FORMS:
        edges = LocalEdges(files / f"e.{form}", partition_edges=N_EDGES)
        found.add(content(edges.sparsify(epsilon=0.9, random_state=0)))
    assert len(found) == 1
