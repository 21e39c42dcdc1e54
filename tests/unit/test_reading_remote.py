"""Remote files: the same edges as from this machine, also when connections are lost."""

import gzip
import io
import re
import threading

import numpy as np
import pytest
from servers import serve_bucket, serve_files

from ohmlearn import read_edges
from ohmlearn.reading import SourceError, remote
from ohmlearn.reading.label_table import read_labels

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

FROM_ADDRESS, FETCH_AHEAD = remote._from_address, remote.fetch_ahead


def make_files():
    random = np.random.default_rng(5)
    n = 60_000
    u, v = random.integers(0, 900, n), random.integers(0, 900, n)
    junk = random.bytes(3 * n)
    table = pa.table(
        {"u": u, "v": v, "n": np.arange(n), "junk": [junk[3 * i : 3 * i + 3] for i in range(n)]}
    )
    text = "u,v,n\n" + "".join(f"{a},{b},{i}\n" for i, (a, b) in enumerate(zip(u, v, strict=True)))
    packed, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(table, packed, row_group_size=10_000, compression="none")
    feather.write_feather(table, arrow, compression="uncompressed")
    return {
        "e.csv": text.encode(),
        "e.csv.gz": gzip.compress(text.encode(), 1),
        "e.parquet": packed.getvalue(),
        "e.arrow": arrow.getvalue(),
    }


@pytest.fixture(scope="module")
def files():
    return make_files()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Read in many blocks, and repeat attempts at once."""
    monkeypatch.setattr(remote, "FIRST", 10_000)
    monkeypatch.setattr(remote, "BLOCK", 50_000)
    monkeypatch.setattr(remote, "DELAYS", (0.0, 0.01, 0.02, 0.04))
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("ohmlearn-read")]


def edges_of(source, **options):
    stream = read_edges(source, **options)
    batches = list(stream)
    ids = stream.nodes.ids()
    return [np.concatenate([ids[getattr(batch, x)] for batch in batches]).tolist() for x in "uv"]


@pytest.fixture
def expected(files, tmp_path):
    (tmp_path / "e.csv").write_bytes(files["e.csv"])
    return edges_of(tmp_path / "e.csv", where="n >= 35000"), edges_of(tmp_path / "e.csv")


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.parquet", "e.arrow"])
def test_lost_connections_are_continued(name, files, expected):
    """The formats without faults are in contract/test_same_bytes.py."""
    with serve_files(files) as server:
        address = f"{server.address}/{name}"
        assert edges_of(address + "?signature=x", where="n >= 35000") == expected[0]
        server.drops = [0, 17, 1000, 4000]  # the fifth attempt succeeds
        server.statuses = [503, 500]
        assert edges_of(address) == expected[1]
        assert (server.drops, server.statuses) == ([], [])


def test_a_server_that_stays_away_is_reported(files):
    with serve_files(files) as server:
        server.statuses = [200] + [503] * 100
        with pytest.raises(SourceError, match=r"e\.csv: cannot be reached.* 503"):
            read_edges(f"{server.address}/e.csv")
        server.statuses = []
        with pytest.raises(
            FileNotFoundError, match=r"there is no file http://127.0.0.1:\d+/f.csv;"
        ):
            read_edges(f"{server.address}/f.csv?token=secret")
        server.statuses = [403] * 10
        with pytest.raises(PermissionError, match=r"e\.csv: access is denied; check the"):
            read_edges(f"{server.address}/e.csv")
        address = server.address
    with pytest.raises(SourceError, match=r"e\.csv: cannot be reached, .*refused"):
        read_edges(f"{address}/e.csv")


def test_a_server_that_knows_no_ranges(files, expected):
    with serve_files(files) as server:
        server.knows_ranges = False
        for says_length in (True, False):
            server.says_length = says_length
            assert edges_of(f"{server.address}/e.csv") == expected[1]
            assert edges_of(f"{server.address}/e.csv.gz") == expected[1]
        server.says_length = True
        server.drops = [2000, 30_000]
        assert edges_of(f"{server.address}/e.csv") == expected[1]
        assert server.drops == []
        with pytest.raises(SourceError, match="does not send parts of a file, which this format"):
            read_edges(f"{server.address}/e.parquet")


@pytest.mark.parametrize("size", [700_000, 6_000_000])
def test_a_file_that_changes_is_refused(size):
    content = b"u,v\n" + b"1,2\n" * 6_000_000  # more than is read ahead
    with serve_files({"e.csv": content}) as server:
        server.changed = "Mon, 05 Jan 2026 10:00:00 GMT"
        stream = iter(read_edges(f"{server.address}/e.csv"))
        next(stream)
        server.files["e.csv"] = content[: 4 + 4 * size]
        if size == 6_000_000:  # as before
            server.changed = "Mon, 05 Jan 2026 10:00:01 GMT"
        with pytest.raises(SourceError, match="has changed while it was read"):
            list(stream)


def test_only_columns_and_row_groups_that_are_needed_are_fetched(files):
    with serve_files(files) as server:
        edges_of(f"{server.address}/e.parquet", where="n >= 52000")
        fetched = 0
        for _, asked in server.requests:
            start, stop = re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups()
            fetched += int(stop) + 1 - int(start)
    assert fetched < len(files["e.parquet"]) / 2


def test_parquet_needs_few_requests_and_asks_for_its_columns_at_the_same_time(files, monkeypatch):
    together = []

    def watch(tasks, n_ahead=remote.AHEAD):
        tasks = list(tasks)
        together.append(len(tasks))
        return FETCH_AHEAD(tasks, n_ahead)

    monkeypatch.setattr(remote, "fetch_ahead", watch)
    with serve_files(dict(files)) as server:
        edges_of(f"{server.address}/e.parquet")
        # The size, the footer, and u and v of each row group, which other columns separate.
        assert len(server.requests) == 8
        assert together == [6]
        stream = read_edges(f"{server.address}/e.parquet")
        server.files["e.parquet"] = files["e.parquet"] + b"more"
        with pytest.raises(SourceError, match="has changed while it was read"):
            list(stream)


def test_an_empty_file_and_a_reading_that_stops_early(files):
    with serve_files({**files, "empty.csv": b""}) as server:
        with pytest.raises(SourceError, match=r"empty\.csv: is empty"):
            read_edges(f"{server.address}/empty.csv")
        stream = iter(read_edges(f"{server.address}/e.csv"))
        next(stream)
        stream.close()  # ends the threads, which the fixture checks


@pytest.fixture(scope="module")
def bucket(files):
    pytest.importorskip("moto.server")
    parts = {f"days/day=2026-01-0{i}/part.csv": f"u,v,n\n{i},9,{i}\n".encode() for i in (1, 2, 3)}
    labels = {
        "labels.csv": b"node,label\n1,a\n2,b\n",
        "days/_SUCCESS": b"",
        "days/a b/x.csv": b"u,v\n7,8\n",
    }
    with (
        pytest.MonkeyPatch.context() as patch,
        serve_bucket(patch, {**files, **parts, **labels}) as client,
    ):
        yield client


def test_s3_gives_the_same_edges_of_a_condition(bucket, files, expected):
    for name in files:
        assert edges_of(f"s3://edges/{name}", where="n >= 35000") == expected[0]
    assert read_labels("s3://edges/labels.csv") == {"1": "a", "2": "b"}


def test_folders_and_patterns_of_s3(bucket):
    assert edges_of("s3://edges/days/day=*/", where="day > '2026-01-01'") == [[2, 3], [9, 9]]
    assert edges_of("s3://edges/days/day=*/part.csv") == [[1, 2, 3], [9, 9, 9]]
    assert edges_of("s3://edges/days/") == [[7, 1, 2, 3], [8, 9, 9, 9]]
    stream = read_edges("s3://edges/days/day=2026-01-0[12]", time="day")
    assert [batch.t.tolist() for batch in stream] == [[86400.0 * 20454], [86400.0 * 20455]]
    with pytest.raises(ValueError, match="s3://edges/ has files of different formats"):
        read_edges("s3://edges/")


def once(address, *settings):
    """Return the file system of an address; it does not repeat requests, for many seconds."""
    filesystem, path = FROM_ADDRESS(address, *settings)
    make, (options,) = filesystem.__reduce__()
    strategy = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    return make({**options, "retry_strategy": strategy}), path


def test_what_s3_lacks_is_one_line(bucket, monkeypatch):
    for address in ("s3://edges/f.csv", "s3://nobody/e.csv", "s3://nobody/"):
        with pytest.raises(FileNotFoundError, match=f"there is no file {address}") as caught:
            read_edges(address)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"s3://edges/f\* fits no file"):
        read_edges("s3://edges/f*")
    monkeypatch.setattr(remote, "_from_address", once)
    with pytest.raises(SourceError, match=r"s3://edges/e\.csv: cannot be") as caught:
        read_edges("s3://key:secret@edges/e.csv?endpoint_override=127.0.0.1:1&scheme=http")
    assert "secret" not in str(caught.value)


def test_wrong_credentials_are_one_line(bucket, monkeypatch):
    from moto import settings

    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)  # moto checks them from now on
    with pytest.raises(PermissionError, match=r"s3://edges/e\.csv: access is denied") as caught:
        read_edges("s3://edges/e.csv")
    assert "\n" not in str(caught.value)


def test_a_filesystem_can_be_given(files, tmp_path, expected):
    (tmp_path / "sub").mkdir()
    for name, content in files.items():
        (tmp_path / "sub" / name).write_bytes(content)
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for name in files:
        assert edges_of(f"sub/{name}", filesystem=local) == expected[1]
    assert edges_of("sub/*.parquet", filesystem=local, where="n >= 35000") == expected[0]
    with pytest.raises(FileNotFoundError, match=r"there is no file sub/f\.csv"):
        read_edges("sub/f.csv", filesystem=local)
    with pytest.raises(TypeError, match="filesystem must be a file system of pyarrow or fsspec"):
        read_edges("sub/f.csv", filesystem=3)


def test_fsspec(files, expected):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    try:
        for name, content in files.items():
            memory.pipe(f"/ohmlearn-test/{name}", content)
        for name in files:
            assert edges_of(f"/ohmlearn-test/{name}", filesystem=memory) == expected[1]
            assert edges_of(f"memory://ohmlearn-test/{name}") == expected[1]
        assert edges_of("memory://ohmlearn-test/*.csv", where="n >= 35000") == expected[0]
        with pytest.raises(SourceError, match="nosuch://x: Protocol not known"):
            read_edges("nosuch://x")
    finally:
        memory.rm("/ohmlearn-test", recursive=True)
