"""Partitions of filtered, partitioned and remote files."""

import numpy as np
import pytest
from servers import serve_files

pytest.importorskip("dask")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from ohmlearn import read_edges  # noqa: E402
from ohmlearn.cluster.partitions import open_partition  # noqa: E402
from ohmlearn.dask import ClusterEdges  # noqa: E402
from ohmlearn.reading import SourceError  # noqa: E402


def edges_of(streams):
    found = []
    for stream in streams:
        for batch in stream:
            ids = stream.nodes.ids()
            found += zip(ids[batch.u].tolist(), ids[batch.v].tolist(), strict=True)
    return found


def test_partitions_have_the_edges_of_the_stream(tmp_path):
    n = 1000
    for day in (1, 2, 3):
        folder = tmp_path / f"day=2026-01-0{day}"
        folder.mkdir()
        table = pa.table({"u": np.arange(n) * day, "v": np.arange(n) + 1, "n": np.arange(n)})
        pq.write_table(table, folder / "e.parquet", row_group_size=100)
    paths = sorted(tmp_path.rglob("*.parquet"))
    with serve_files(
        {f"{path.parent.name}.parquet": path.read_bytes() for path in paths}
    ) as server:
        addresses = [f"{server.address}/{path.parent.name}.parquet" for path in paths]
        for source, where in (
            (str(tmp_path), "n >= 850 and day > '2026-01-01'"),
            (addresses, "n < 120"),
        ):
            edges = ClusterEdges(source, partition_edges=400, where=where)
            assert edges.n_partitions > 5  # some of them are empty
            found = edges_of(open_partition(x.content, edges.options) for x in edges.partitions)
            assert found == edges_of([read_edges(source, where=where)])
            assert len(found) == {"n >": 300, "n <": 360}[where[:3]]


def test_columns_of_a_condition_stay_in_a_data_frame():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"junk": range(10), "u": range(10), "v": range(1, 11), "n": range(10)})
    cut, ends = dd.from_pandas(frame, npartitions=1), {"source_col": "u", "target_col": "v"}
    edges = ClusterEdges(cut, where="n > 6", **ends)
    content = edges.partitions[0].content.compute(scheduler="sync")
    assert edges_of([open_partition(content, edges.options)]) == [(7, 8), (8, 9), (9, 10)]
    with pytest.raises(SourceError, match="the DataFrame: has no column 'm' for where"):
        ClusterEdges(cut, where="m > 6", **ends)
