"""What goes wrong on a cluster is one error that names the partition."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import pytest
from distributed import Client

from ohmlearn.cluster.partition_sparsifier import Partial, merge_partials, sparsify_partition
from ohmlearn.dask import ClusterEdges, PartitionError, WorkerError, sparsify
from ohmlearn.reading import ReadOptions, SourceError

GOOD = dask.delayed(([0, 1], [1, 2]))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (([0], [1], [-1.0]), "partition 1: .*row 0: weights must not be negative"),
        (([0], [1, 2]), "partition 1: .*must be equally long"),
        (([0.5], [1]), "partition 1: .*node ids must be whole numbers"),
        ((["a"], ["b"]), "partition 1: node ids were integers so far, but now strings came"),
        (7, "partition 1: a file, arrays, .* or batches of edges are needed, got int"),
    ],
)
def test_a_bad_partition_is_named(two: Client, batch: Any, message: str):
    with pytest.raises(PartitionError, match=message) as caught:
        sparsify([GOOD, dask.delayed(batch), GOOD], client=two, random_state=0)
    assert isinstance(caught.value, SourceError)
    # And with threads of this process.
    with dask.config.set(scheduler="threads"), pytest.raises(PartitionError, match=message):
        sparsify([GOOD, dask.delayed(batch), GOOD], random_state=0)


def test_a_partition_that_cannot_be_made_is_named(two: Client):
    def fail() -> None:
        raise RuntimeError("no such bucket")

    with pytest.raises(PartitionError, match=r"^partition 2: RuntimeError: no such bucket$"):
        sparsify([GOOD, GOOD, dask.delayed(fail)()], client=two)


def test_a_corrupt_file_is_named_with_its_row_groups(two: Client, files: list[Path]):
    edges = ClusterEdges(files[:2], client=two, partition_edges=20_000)
    content = files[1].read_bytes()
    try:
        damaged = bytearray(content)
        damaged[1000 : len(content) // 2] = b"\0" * (len(content) // 2 - 1000)
        files[1].write_bytes(damaged)
        with pytest.raises(PartitionError, match=rf"partition [23] \({files[1]}, row groups") as e:
            edges.sparsify(random_state=0)
        assert "cannot be read as Parquet" in str(e.value)
        files[1].unlink()
        with pytest.raises(PartitionError, match=str(files[1])):
            edges.sparsify(random_state=0)
    finally:
        files[1].write_bytes(content)


def test_rows_of_a_file_are_counted_from_its_beginning(two: Client, tmp_path: Path):
    import pyarrow as pa
    from pyarrow import parquet

    weights = np.ones(1000)
    weights[777] = np.nan
    table = pa.table({"u": np.arange(1000), "v": np.arange(1000) + 1, "w": weights})
    path = tmp_path / "edges.parquet"
    parquet.write_table(table, path, row_group_size=100)
    with pytest.raises(PartitionError, match=r"partition 3 \(.*, row groups 6 to 7\): .*row 778: "):
        sparsify(path, client=two, partition_edges=200)
    edges = ClusterEdges(path, client=two, partition_edges=200, on_bad="skip")
    assert edges.sparsify().n_edges_seen_ == 999
    assert edges.n_bad == 1
    assert "row 778" in str(edges.first_bad)


@pytest.mark.slow
def test_a_worker_out_of_memory_is_told_with_the_partition():
    def greedy() -> Iterator[Any]:
        held = []
        while True:
            held.append(np.ones(1_000_000))
            time.sleep(0.01)
            yield [0], [1]

    # Others wait for the same worker and go down with it: they are not to blame.
    parts = [GOOD, dask.delayed(lambda: greedy)(), GOOD, GOOD]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit="400MB",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(WorkerError, match=r"^partition 1: 2 workers died while running it, prob"),
    ):
        sparsify(parts, client=client)


@pytest.mark.slow
def test_a_cluster_without_workers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ohmlearn.cluster.dask_tree.PATIENCE", 1.0)
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(WorkerError, match="the cluster has had no worker for 1 s"),
    ):
        sparsify([GOOD], client=client)


@pytest.mark.parametrize(
    ("edges", "options", "error", "message"),
    [
        ([GOOD, 5], {}, TypeError, "a Dask DataFrame, paths of files, or a list of dask.delayed"),
        (["-"], {}, ValueError, "workers cannot read standard input"),
        (["none.parquet"], {}, FileNotFoundError, "there is no file .*none.parquet"),
        ([GOOD], {"colour": 1}, TypeError, "there is no option 'colour'"),
        ([GOOD], {"on_bad": "weep"}, ValueError, "on_bad"),
        ([GOOD], {"split_every": 1}, ValueError, "split_every must be at least 2, got 1"),
        ([GOOD], {"client": "tcp://x"}, TypeError, "a synchronous dask.distributed.Client"),
    ],
)
def test_what_cannot_be_right_is_refused_before_the_work(
    edges: Any, options: dict[str, Any], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        sparsify(edges, **options)


def test_passes_need_the_numbers_of_the_nodes():
    with pytest.raises(ValueError, match="call the method sparsify of these edges first"):
        ClusterEdges([GOOD]).open_passes(np.zeros(3, dtype=np.int32), "refine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"u": np.array([0, 3], np.int32)}, "partition 1: its rows and its nodes do not fit"),
        ({"v": np.array([1, -1], np.int32)}, "partition 1: its rows and its nodes do not fit"),
        ({"u": np.array([0.0, 1.0])}, "partition 1: u must be a vector of int32, got float64"),
        ({"w": np.array([1.0, np.nan], np.float32)}, "row 1 has weight nan"),
        ({"capacity": np.zeros(3, np.int64)}, "capacity must be a single int64, got int64"),
        ({"position": np.array(-1)}, "the number of edges seen is -1"),
        ({"node_ids": np.array([5])}, "partition 1: its rows and its nodes do not fit"),
    ],
)
def test_parts_that_no_worker_can_have_sent_are_refused(changes: dict[str, Any], message: str):
    first, second = (
        sparsify_partition(
            ([0, 1], [1, 2]), number, "", ReadOptions(), {"epsilon": 0.5}, seed=number
        )
        for number in (0, 1)
    )
    assert merge_partials([first, second], {"epsilon": 0.5}, 2).partitions == (0, 1)
    spoilt = Partial(second.arrays | changes, second.partitions)
    with pytest.raises(ValueError, match=message):
        merge_partials([first, spoilt], {"epsilon": 0.5}, 2)
