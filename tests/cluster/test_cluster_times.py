"""Times of edges in partitions on a cluster."""

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from ohmlearn.cluster.partitions import open_partition
from ohmlearn.dask import ClusterEdges, PartitionError
from ohmlearn.reading import ReadOptions

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N = 1000
U, V = np.arange(N) % 50, np.arange(N) % 49 + 50
T = 1.6e9 + np.arange(N)[::-1]


def times(content: Any, options: ReadOptions) -> list[float]:
    batches = list(open_partition(content, options))
    assert all(batch.t is not None for batch in batches)
    return [t for batch in batches for t in batch.t.tolist()]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Dates in Parquet, in two partitions of row groups, and seconds in CSV."""
    half = N // 2
    dates = (T[:half] * 1e6).astype(np.int64).astype("M8[us]")
    table = pa.table({"src": U[:half], "dst": V[:half], "ts": dates})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=half // 2)
    rows = (f"{a},{b},{t}" for a, b, t in zip(U[half:], V[half:], T[half:], strict=True))
    (tmp_path / "b.csv").write_text("\n".join(["src,dst,ts", *rows, ""]))
    return [tmp_path / "a.parquet", tmp_path / "b.csv"]


def test_partitions_of_files_have_times(files: list[Path]):
    edges = ClusterEdges(files, partition_edges=250, time=True)
    assert edges.columns == "u = 'src', v = 'dst', no weights, times = 'ts' (guessed)"
    assert edges.n_partitions > 2
    found = [times(part.content, edges.options) for part in edges.partitions]
    assert [t for part in found for t in part] == T.tolist()


def test_edges_know_what_their_times_are(two: Client, files: list[Path]):
    edges = ClusterEdges(files, client=two, partition_edges=250, time="ts")
    assert edges.has_times
    assert edges.time_unit == "date"  # before anything is sparsified
    assert edges.sparsify(random_state=0).n_edges_seen_ == N
    assert edges.time_unit == "date"
    plain = ClusterEdges(files, client=two, partition_edges=250)
    assert not plain.has_times
    assert plain.time_unit is None
    assert "times" not in str(plain.columns)


def test_data_frames_have_times(two: Client):
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    dates = pandas.to_datetime(T, unit="s", utc=True)
    frame = pandas.DataFrame({"note": "x", "ts": dates, "a": U, "b": V})
    cut = dataframe.from_pandas(frame, npartitions=2)
    names: dict[str, Any] = {"source_col": "a", "target_col": "b", "time": "ts"}
    for options in (names, {"source_col": 2, "target_col": 3, "time": 1}):
        edges = ClusterEdges(cut, client=two, **options)
        assert edges.columns == "u = 'a', v = 'b', no weights, times = 'ts'"
        found = [times(part.content.compute(), edges.options) for part in edges.partitions]
        assert [len(part) for part in found] == [N // 2, N // 2]
        assert [t for part in found for t in part] == T.tolist()
        assert edges.time_unit is None  # the partitions are not computed for it
        assert edges.sparsify(random_state=0).n_edges_seen_ == N
        assert edges.time_unit == "date"


def test_partitions_with_other_units_are_refused(two: Client):
    parts = [(U, V, None, T), (U, V, None, T * 1000), (U[:0], V[:0], None, T[:0])]
    delayed = [dask.delayed(part) for part in parts]
    edges = ClusterEdges([delayed[0], delayed[2], delayed[0]], client=two, time=True)
    assert edges.sparsify(random_state=0).n_edges_seen_ == 2 * N
    assert edges.time_unit == "s"
    with pytest.raises(PartitionError, match="partition 1: times are Unix times in ms, but they"):
        ClusterEdges(delayed, client=two, time=True).sparsify()


def test_bad_times_name_the_partition(two: Client):
    late = np.where(np.arange(N) == 7, 2.9e9, T)
    parts = [dask.delayed((U, V, None, T)), dask.delayed((U, V, None, late))]
    with pytest.raises(
        PartitionError, match=r"partition 1: .*row 7: a time is 2900000000, later th"
    ):
        ClusterEdges(parts, client=two, time=True).sparsify()
    edges = ClusterEdges(parts, client=two, time=True, on_bad="skip")
    edges.sparsify(random_state=0)
    assert edges.n_bad == 1
