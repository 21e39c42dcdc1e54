"""Edges from datasets, queries and data frames of other libraries."""

import numpy as np
import pytest

from ohmlearn import NodeFeatures, StateFile, read_edges, read_features
from ohmlearn.reading import SourceError

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS = 130_000  # several batches


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(3)
    names = np.array([f"node {i}" for i in range(500)])
    return pa.table(
        {
            "amount": random.integers(0, 20, N_ROWS),
            "src": names[random.integers(0, 500, N_ROWS)],
            "dst": names[random.integers(0, 500, N_ROWS)],
            "weight": random.random(N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "e.parquet"
    pq.write_table(table, path, row_group_size=30_000)
    return path


def edges_of(source, **options):
    """Return ids and weights of all edges, from two readings if the stream allows that."""
    stream = read_edges(source, **options)
    for _ in range(2 if stream.rereadable else 1):
        batches = list(stream)
    ids = stream.nodes.ids()
    u, v, w = (np.concatenate([getattr(batch, x) for batch in batches]) for x in "uvw")
    return list(zip(ids[u], ids[v], w.tolist(), strict=True)), stream, len(batches)


def check(source, path, *, rereadable=True, **options):
    expected, _, _ = edges_of(path, **options)
    found, stream, n_batches = edges_of(source, **options)
    assert found == expected
    assert stream.rereadable == rereadable
    assert n_batches > 1  # it is not read as a whole


def check_frame(frame, path, options):
    assert edges_of(frame, **options)[0] == edges_of(path, **options)[0]


@pytest.mark.parametrize("options", [{}, {"where": "amount > 15"}], ids=str)
def test_datasets_and_readers(table, path, options):
    check(ds.dataset(path), path, **options)
    check(ds.dataset(path).filter(ds.field("amount") >= 0), path, **options)
    check(ds.dataset(path).scanner(), path, rereadable=False, **options)
    for make in (lambda reader: reader, ds.Scanner.from_batches):
        reader = table.to_reader(max_chunksize=40_000)
        check(make(reader), path, rereadable=False, **options)


@pytest.mark.parametrize("options", [{}, {"where": "amount > 15"}], ids=str)
def test_duckdb(path, options):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        check(connection.sql(f"select * from '{path}'"), path, **options)
        result = connection.execute(f"select * from '{path}'")
        check(result, path, rereadable=False, **options)


@pytest.mark.parametrize("options", [{}, {"where": "amount > 15"}], ids=str)
def test_data_frames(table, path, options):
    pl = pytest.importorskip("polars")
    check(pl.scan_parquet(path), path, **options)
    frame = pl.read_parquet(path)
    check(frame.lazy(), path, **options)
    check_frame(frame, path, options)
    for kind in (pl.Categorical, pl.Enum([f"node {i}" for i in range(500)])):
        check_frame(frame.with_columns(pl.col("src", "dst").cast(kind)), path, options)
    pytest.importorskip("pandas")
    check_frame(table.to_pandas(), path, options)
    named = table.to_pandas().astype({"src": "category", "dst": "category"})
    check_frame(named, path, options)


def test_only_the_columns_that_are_needed_are_asked_for(tmp_path):
    """A column with bytes that cannot be decoded does no harm unless it is read."""
    path = tmp_path / "e.parquet"
    columns = {"u": [1, 2], "v": [3, 4], "junk": [7, 8], "n": [1, 2]}
    pq.write_table(pa.table(columns), path, use_dictionary=False, compression="none")
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = b"x" * column.total_compressed_size
    path.write_bytes(content)
    sources = [lambda: ds.dataset(path)]
    if (pl := _optional("polars")) is not None:
        sources.append(lambda: pl.scan_parquet(path))
    if (duckdb := _optional("duckdb")) is not None:
        sources.append(lambda: duckdb.sql(f"select * from '{path}'"))
    for make in sources:
        stream = read_edges(make(), source_col="u", target_col="v", where="n = 2")
        assert [stream.nodes.ids()[batch.u].tolist() for batch in stream] == [[2]]
        with pytest.raises(SourceError, match="cannot be read"):
            list(read_edges(make(), source_col="u", target_col="junk"))


def _optional(name):
    try:
        return pytest.importorskip(name)
    except pytest.skip.Exception:
        return None


def test_a_column_that_arrow_cannot_hold_does_no_harm():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"mixed": [1, "a", object()], "u": [1, 2, 3], "v": [4, 5, 6]})
    stream = read_edges(frame, source_col="u", target_col="v")
    assert [len(batch.u) for batch in stream] == [3]
    by_position = read_edges(frame, source_col=1, target_col=2)
    assert [by_position.nodes.ids()[batch.v].tolist() for batch in by_position] == [[4, 5, 6]]


def test_messages_name_the_row_of_a_dataset(tmp_path):
    path = tmp_path / "e.parquet"
    columns = {"u": [1, 2, 3], "v": [4, 5, None], "n": [0, 1, 1]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(SourceError, match="the FileSystemDataset, row 2: the node id, 'v'"):
        list(read_edges(ds.dataset(path)))
    with pytest.raises(SourceError, match="row 1 of those read: the node id, 'v'"):
        list(read_edges(ds.dataset(path), where="n = 1"))


def test_a_reader_that_was_read_says_so(table):
    stream = read_edges(ds.Scanner.from_batches(table.to_reader()))
    list(stream)
    with pytest.raises(SourceError, match="the Scanner: can be read only once"):
        list(stream)


@pytest.mark.parametrize("missing", ["", None])
@pytest.mark.parametrize("end", ["u", "v"])
@pytest.mark.parametrize("is_coded", [False, True])
def test_ids_without_a_character_are_missing(missing, end, is_coded):
    """Also if a dictionary has a code for them; all of them would be one node."""
    ids = pa.array(["a", missing, "b"])
    if is_coded:
        ids = pa.DictionaryArray.from_arrays([0, 1, 2], ids)
    table = pa.table({"u": ["x"] * 3, "v": ["y"] * 3} | {end: ids})
    with pytest.raises(SourceError, match=f"row 1: the node id, '{end}', is missing"):
        list(read_edges(table))
    stream = read_edges(table, on_bad="skip")
    assert (sum(len(batch.u) for batch in stream), stream.n_bad) == (2, 1)


def write_delta(folder, table, **options):
    pytest.importorskip("deltalake").write_deltalake(folder, table, **options)


def make_iceberg(folder, table):
    """Return a table of Iceberg with two snapshots; the second has the rows of the first, too."""
    pytest.importorskip("sqlalchemy")
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    uri = {"uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder}"}
    catalog = catalogs.SqlCatalog("here", **uri)
    catalog.create_namespace("graph")
    lake = catalog.create_table("graph.edges", schema=table.schema)
    lake.append(table[:70_000])
    lake.append(table[70_000:])
    return lake, catalog


@pytest.mark.parametrize("options", [{}, {"where": "amount > 15"}], ids=str)
def test_tables_of_delta(table, path, tmp_path, options):
    """Also by path; a row that a later version does not have is not read."""
    write_delta(tmp_path, table[:70_000])
    write_delta(tmp_path, table[70_000:], mode="append")
    lake = pytest.importorskip("deltalake").DeltaTable(tmp_path)
    expected = sorted(edges_of(path, **options)[0])
    for source in (lake, str(tmp_path)):
        found, stream, n_batches = edges_of(source, **options)
        assert (sorted(found), stream.rereadable, n_batches > 1) == (expected, True, True)
    lake.delete("amount <= 5")
    assert lake.version() == 2
    pinned = list(stream)  # of version 1
    expected = sorted(edges_of(path, where="amount > 5")[0])
    assert sorted(edges_of(lake)[0]) == sorted(edges_of(tmp_path)[0]) == expected
    assert sum(len(batch.u) for batch in pinned) == len(found)


@pytest.mark.parametrize("options", [{}, {"where": "amount > 15"}], ids=str)
def test_tables_of_iceberg(table, path, tmp_path, options):
    lake, catalog = make_iceberg(tmp_path, table)
    expected = sorted(edges_of(path, **options)[0])
    for source in (
        lake,
        lake.scan(),
        lake.scan(selected_fields=("src", "dst", "weight", "amount")),
    ):
        found, stream, _ = edges_of(source, **options)
        assert (sorted(found), stream.rereadable) == (expected, True)
    first, _, _ = edges_of(lake.scan(snapshot_id=lake.history()[0].snapshot_id), **options)
    rows = (table["amount"].to_numpy() > 15)[:70_000] if options else np.ones(70_000)
    assert len(first) == rows.sum()
    pinned = read_edges(lake)
    catalog.load_table("graph.edges").delete("amount <= 5")
    lake.refresh()
    assert sum(len(batch.u) for batch in pinned) == N_ROWS
    expected = sorted(edges_of(path, where="amount > 5")[0])
    assert sorted(edges_of(lake)[0]) == sorted(edges_of(lake.scan("amount > 5"))[0]) == expected


def test_tables_of_delta_and_iceberg_are_features(tmp_path):
    nodes = pa.table({"id": ["ann", "bob"], "age": [30, 40]})
    write_delta(tmp_path / "delta", nodes)
    lake = pytest.importorskip("deltalake").DeltaTable(tmp_path / "delta")
    iceberg, _ = make_iceberg(tmp_path, nodes)
    for features in (
        NodeFeatures.from_table(lake),
        NodeFeatures.from_table(iceberg),
        read_features(tmp_path / "delta"),
    ):
        assert (features.names, features.ids.tolist()) == (["age"], ["ann", "bob"])


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_state_records_the_version(tmp_path, kind):
    """The same version counts once; a later one is refused: its first rows would count twice."""
    table = pa.table({"src": ["a", "b", "c"], "dst": ["b", "c", "d"], "day": [1, 1, 2]})
    if kind == "delta":
        deltalake = pytest.importorskip("deltalake")
        write_delta(tmp_path / "t", table)
        lake, later = deltalake.DeltaTable(tmp_path / "t"), "from version 0 to version 1"
    else:
        lake, _ = make_iceberg(tmp_path, table)
        later = "from snapshot [0-9]+ to snapshot [0-9]+"
    state = tmp_path / "m.ohm"
    known = {"a": "x", "d": "y"}
    model = StateFile(state, random_state=0).update(lake, known)
    (entry,) = model.kept_.sources
    assert entry["version"] == ("version 0" if kind == "delta" else f"snapshot {newest(lake)}")
    assert StateFile(state).update(lake).kept_.n_edges_seen == 3
    if kind == "delta":
        assert StateFile(state).update(tmp_path / "t").kept_.n_edges_seen == 3
        write_delta(tmp_path / "t", table[:1], mode="append")
        lake = str(tmp_path / "t")
    else:
        lake.append(table[:1])
        chosen = lake.scan("day = 2")  # its user has chosen rows
        assert StateFile(state).update(chosen).kept_.n_edges_seen == 4
    with pytest.raises(SourceError, match=f"it has grown since .*m.ohm has read it, {later}"):
        StateFile(state).update(lake)


def newest(lake):
    return lake.current_snapshot().snapshot_id
