"""``ohmlearn.dask.sparsify`` gives the same bytes on any cluster, as accurate as one stream."""

import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client
from distributed.protocol import deserialize, serialize
from worker_deaths import disturbed_runs

from benchmarks.families import FAMILIES, Ruler
from ohmlearn import Graph, StreamingSparsifier, sparsify
from ohmlearn.cluster import LocalEdges
from ohmlearn.cluster.partition_sparsifier import (
    Partial,
    derive_seed,
    merge_partials,
    sparsify_partition,
)
from ohmlearn.dask import ClusterEdges
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import ReadOptions, read_edges
from ohmlearn.report.progress import peak_memory


def content(found: StreamingSparsifier) -> bytes:
    """All that the result consists of: the state of the sampler, parameters, seed and node ids."""
    assert found.nodes is not None
    return b"".join(array.tobytes() for array in found.get_state().values())


def edges_by_id(graph: Graph, nodes: NodeTable) -> dict[frozenset[Any], float]:
    ids = nodes.ids()
    pairs = zip(*graph.edges(), strict=True)
    return {frozenset((ids[a], ids[b])): float(w) for a, b, w in pairs}


def run(client: Client | None, files: list[Path]) -> StreamingSparsifier:
    edges = ClusterEdges(files, client=client, partition_edges=20_000, split_every=3)
    assert edges.n_partitions == 10
    return edges.sparsify(epsilon=0.9, random_state=3)


@pytest.fixture(scope="module")
def undisturbed(files: list[Path]) -> bytes:
    """The result of threads of this process."""
    with dask.config.set(scheduler="threads"):
        found = run(None, files)
    assert found.n_rows_ < found.n_edges_seen_ / 10
    return content(found)


def test_any_number_of_workers_gives_the_same_bytes(
    two: Client, four: Client, files: list[Path], undisturbed: bytes
):
    assert content(run(two, files)) == undisturbed
    assert content(run(four, files)) == undisturbed


def test_the_order_of_finishing_does_not_matter(four: Client):
    def late(seconds: float, batch: Any) -> Any:
        time.sleep(seconds)
        return batch

    generator = np.random.default_rng(0)
    batches = [tuple(generator.integers(0, 200, (2, 5_000))) for _ in range(6)]
    results = []
    for order in (range(6), range(5, -1, -1)):
        parts = [dask.delayed(late)(0.1 * i, b) for i, b in zip(order, batches, strict=True)]
        edges = ClusterEdges(parts, client=four)
        results.append(content(edges.sparsify(epsilon=0.9, random_state=1)))
    assert results[0] == results[1]


@pytest.mark.slow
def test_workers_killed_at_random_moments_change_nothing(
    two: Client, files: list[Path], undisturbed: bytes
):
    for found in disturbed_runs(two, lambda: run(two, files), seed=4):
        assert content(found) == undisturbed


def test_it_is_the_merge_of_sparsifiers_of_the_partitions(two: Client):
    generator = np.random.default_rng(1)
    batches = [tuple(generator.integers(0, 150, (2, 20_000))) for _ in range(3)]
    edges = ClusterEdges([dask.delayed(batch) for batch in batches], client=two, split_every=2)
    found = edges.sparsify(epsilon=0.8, random_state=9)
    # The leaves by hand, the tree by hand: partitions 0 and 1, then 2.
    parameters = {"epsilon": 0.8, "max_edges": None, "constants": "practical"}
    leaves = [
        sparsify_partition(batch, at, "", ReadOptions(), parameters, derive_seed(9, 0, at))
        for at, batch in enumerate(batches)
    ]
    lower = merge_partials(leaves[:2], parameters, derive_seed(9, 1, 0))
    root = merge_partials([lower, leaves[2]], parameters, derive_seed(9, 2, 0))
    expected = root.sparsifier(parameters, 9)
    expected.nodes = root.nodes()
    assert content(found) == content(expected)
    assert edges.traffic == (
        sum(p.nbytes for p in leaves[:2]),
        lower.nbytes + leaves[2].nbytes,
    )


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_where_nothing_is_dropped_it_is_the_graph_itself(two: Client, kind: str):
    # An empty partition, large ids, nodes and parallel edges in one partition or several.
    batches: list[Any] = [
        ([5, 2**62, 5], [2**62, -3, 5], [1.0, 2.0, 9.0]),
        ([], []),
        ([-3, 7], [5, 8], [0.5, 0.0]),
        ([2**62, 11], [5, 7], [0.25, 4.0]),
    ]
    if kind == "strings":
        batches = [([str(a) for a in u], [str(b) for b in v], *w) for u, v, *w in batches]
    edges = ClusterEdges([dask.delayed(b) for b in batches], client=two)
    found = edges.sparsify(random_state=0)
    ids = (5, 2**62, -3, 7, 8, 11)
    five, large, three, seven, eight, eleven = ids if kind == "integers" else map(str, ids)
    assert edges_by_id(found.snapshot(), edges.nodes) == {
        frozenset((five, large)): 1.25,
        frozenset((large, three)): 2.0,
        frozenset((three, five)): 0.5,
        frozenset((seven, eleven)): 4.0,
    }
    assert set(edges.nodes.ids()) == {five, large, three, seven, eight, eleven}
    stats = found.stats_
    assert (stats["n_self_loops_dropped"], stats["n_zero_weights_dropped"]) == (1, 1)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of dask, with pandas 3.1
def test_a_dask_dataframe_and_its_files_have_the_same_edges(files: list[Path]):
    dd = pytest.importorskip("dask.dataframe")
    edges = ClusterEdges(dd.read_parquet(files))
    with dask.config.set(scheduler="threads"):
        found = edges.sparsify(epsilon=0.9, random_state=0)
    assert edges.columns == "u = 'src', v = 'dst', weights = 'weight' (guessed)"
    stream = read_edges(files)
    weight = sum(float(batch.w[batch.u != batch.v].sum()) for batch in stream)
    loops = found.stats_["n_self_loops_dropped"]
    assert found.n_edges_seen_ + loops == 200_000
    assert found.weight_seen_ == pytest.approx(weight)
    assert set(edges.nodes.ids()) == set(stream.nodes.ids())


def test_files_are_cut_between_row_groups_and_put_together(files: list[Path], tmp_path: Path):
    edges = ClusterEdges(files, partition_edges=20_000)
    assert edges.sources[0] == f"partition 0 ({files[0]}, row groups 0 to 1)"
    assert len(edges.sources) == 10
    edges = ClusterEdges([files[0].parent], partition_edges=100_000)
    assert edges.sources == [
        f"partition 0 ({files[0]}, row groups 0 to 3 to {files[2]}, row groups 0 to 1)",
        f"partition 1 ({files[2]}, row groups 2 to 3 to {files[4]}, row groups 0 to 3)",
    ]
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("u,v\na,b\nb,c\n")
    assert ClusterEdges(str(tmp_path / "*.csv")).n_partitions == 1


@pytest.mark.slow
def test_measured_epsilon_is_that_of_a_single_stream_at_equal_rows():
    # Over 10 seeds the ratio of means has a standard deviation below 0.04 and is near 1.
    family = FAMILIES["blocks"]()
    u, v, w = family.stream("random", 0)
    cuts = [slice(i * len(u) // 8, (i + 1) * len(u) // 8) for i in range(8)]
    ruler = Ruler(family.graph)
    merged, single = [], []
    for seed in range(10):
        edges = LocalEdges([(u[at], v[at], w[at]) for at in cuts], split_every=2)
        a, b, weights = edges.sparsify(max_edges=6000, random_state=seed).snapshot().edges()
        ids = edges.nodes.ids()
        merged.append(
            ruler.epsilon(Graph.from_edges(ids[a], ids[b], weights, n_nodes=family.graph.n_nodes))
        )
        plain = sparsify((u, v, w), max_edges=6000, random_state=seed)
        assert len(a) == pytest.approx(plain.n_edges, rel=0.1)
        single.append(ruler.epsilon(plain))
    assert np.mean(merged) <= 1.15 * np.mean(single)


def test_sparsifiers_travel_as_frames_of_bytes(files: list[Path]):
    parameters = {"epsilon": 0.9}
    partial = sparsify_partition(str(files[0]), 0, "", ReadOptions(), parameters, 1)
    header, frames = serialize(partial)
    small, *buffers = sorted(memoryview(frame).nbytes for frame in frames)
    assert small + sum(buffers) < partial.nbytes + 2000  # arrays are not copied into the pickle
    assert max(buffers) == max(array.nbytes for array in partial.arrays.values())
    assert partial.nbytes < 17 * len(partial.arrays["u"]) + 30 * 250
    back: Partial = deserialize(header, frames)
    assert back.partitions == (0, 0)
    for name, array in partial.arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].dtype == array.dtype


@pytest.mark.slow
def test_memory_of_a_worker_does_not_grow_with_the_partition(two: Client, tmp_path: Path):
    import pyarrow as pa
    from pyarrow import parquet

    generator = np.random.default_rng(0)
    path = tmp_path / "edges.parquet"
    ends = generator.integers(0, 2000, (2, 1_000_000))
    table = pa.table({"u": ends[0], "v": ends[1]})
    peaks = []
    for copies in (1, 8):
        with parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(copies):
                writer.write_table(table)
        two.run(lambda: Path("/proc/self/clear_refs").write_text("5"))
        found = ClusterEdges(path, client=two).sparsify(epsilon=0.9, random_state=0)
        assert found.n_edges_seen_ > copies * 990_000
        peaks.append(max(two.run(peak_memory).values()))
    # Seven million more edges are 112 MB as they come.
    assert peaks[1] - peaks[0] < 40e6


def test_a_task_reads_a_whole_group_where_there_are_enough(
    two: Client, files: list[Path], monkeypatch: pytest.MonkeyPatch
):
    from ohmlearn.cluster import dask_tree

    done: list[int] = []

    def run() -> bytes:
        done.clear()
        edges = ClusterEdges(
            files,
            client=two,
            partition_edges=10_000,
            split_every=3,
            progress=lambda stage, at, of: done.append(at),
        )
        assert edges.n_partitions == 20
        return content(edges.sparsify(epsilon=0.9, random_state=3))

    grouped = run()
    assert sorted(done) == done
    assert len(done) == 7  # tasks
    assert done[-1] == 20
    monkeypatch.setattr(dask_tree, "ROUNDS", 100)
    assert run() == grouped
    assert len(done) == 20


def test_one_process_gives_the_same_bytes(files: list[Path], undisturbed: bytes):
    edges = LocalEdges(files, partition_edges=20_000, split_every=3, n_jobs=2)
    assert content(edges.sparsify(epsilon=0.9, random_state=3)) == undisturbed
