"""The eight invariants of `ohmlearn.edges.protocol`, on every source of edges."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ohmlearn import (
    EdgeLog,
    Graph,
    HFSClassifier,
    StateFile,
    StreamingSparsifier,
    kernel_edges,
    knn_edges,
    read_edges,
    refine,
    solve_hfs,
)  # fmt: skip
from ohmlearn.cluster import LocalEdges
from ohmlearn.edges import Batch, Edges
from ohmlearn.edges.in_memory import ArrayEdges, GraphEdges, IterableEdges, NamedEdges
from ohmlearn.edges.wrapped import DegreeCounting, TimeFiltered, Watched
from ohmlearn.estimators.state_file import Recorded
from ohmlearn.graph.time_view import TimeView
from ohmlearn.points.affinity import CallableEdges
from ohmlearn.reading.as_edges import as_edges

N, M = 60, 4000
RNG = np.random.default_rng(0)
U, V = RNG.integers(0, N, M), RNG.integers(0, N, M)
W, T = RNG.random(M).astype(np.float32) + 0.5, np.sort(RNG.random(M) * 100.0)
POINTS = RNG.random((N, 2))


def batches(*columns: Any) -> list[Any]:
    return [tuple(column[i : i + 700] for column in columns) for i in range(0, M, 700)]


class Own(Edges):
    """A source outside of ohmlearn, which gives lists."""

    sources = ("my source",)

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        for u, v, w in batches(U, V, W):
            yield Batch(u.tolist(), v.tolist(), w.tolist())


def write_csv(folder: Path, *names: str) -> str:
    columns = {"source": U, "target": V, "weight": W, "time": T}
    lines = [",".join(names)]
    lines += [",".join(map(str, row)) for row in zip(*(columns[x] for x in names), strict=True)]
    path = folder / "edges.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def write_parquet(folder: Path) -> str:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = str(folder / "edges.parquet")
    table = pa.table({"source": [f"n{u}" for u in U], "target": [f"n{v}" for v in V], "weight": W})
    pyarrow.parquet.write_table(table, path, row_group_size=500)
    return path


def make_log(folder: Path, *columns: Any) -> Edges:
    log = EdgeLog(folder / "log", epsilon=0.9, random_state=0)
    for batch in batches(*columns):
        log.append(*batch)
    log.remove(U[:50], V[:50])
    return as_edges(log)


def add_to_state(folder: Path, *, reads_all: bool = False) -> Edges:
    """Return the sources of two of which a state file has the first already."""
    first = folder / "first.csv"
    first.write_text("source,target,weight\n0,1,1.0\n")
    state = StateFile(folder / "state.ohm", random_state=0)
    state.update(first)
    found = state.load(pytest.fail)
    paths = [first, write_csv(folder, "source", "target", "weight")]
    new = Recorded(read_edges(paths, nodes=found.kept.nodes), state, found, {}, set())
    new.reads_all = reads_all
    return new


SOURCES: dict[str, Callable[[Path], Edges]] = {
    "arrays": lambda _: ArrayEdges((U, V, W)),
    "arrays with times": lambda _: ArrayEdges((U, V, None, T)),
    "list": lambda _: IterableEdges(batches(U, V, W)),
    "list with times": lambda _: IterableEdges(batches(U, V, W, T)),
    "function": lambda _: IterableEdges(lambda: iter(batches(U, V))),
    "iterator": lambda _: IterableEdges(iter(batches(U, V, W))),
    "ids": lambda _: NamedEdges(batches(U.astype(str), V.astype(str), W)),
    "graph": lambda _: GraphEdges(Graph.from_edges(U, V, W)),
    "csv": lambda folder: read_edges(write_csv(folder, "source", "target", "weight")),
    "csv with times": lambda folder: read_edges(
        write_csv(folder, "source", "target", "time"), time="time"
    ),
    "parquet": lambda folder: read_edges(write_parquet(folder)),
    "batches of ids": lambda _: read_edges(batches(U.astype(str), V.astype(str), W)),
    "log": lambda folder: make_log(folder, U, V, W),
    "log with times": lambda folder: make_log(folder, U, V, W, T),
    "neighbours": lambda _: knn_edges(POINTS, n_neighbors=4, weights="gaussian"),
    "kernel": lambda _: kernel_edges(POINTS, block=20),
    "affinity": lambda _: CallableEdges(POINTS, lambda a, b: a @ b.T),
    "sparsifier": lambda _: StreamingSparsifier(epsilon=0.9, random_state=0).update(U, V, W),
    "own": lambda _: as_edges(Own()),
    "since": lambda _: IterableEdges(batches(U, V, W, T)).since(20.0),
    "half-life": lambda _: TimeFiltered(
        IterableEdges(batches(U, V, W, T)), TimeView(at=100.0, half_life=20.0)
    ),
    "watched": lambda _: Watched(IterableEdges(batches(U, V)), lambda given, number: given),
    "new in a state": add_to_state,
    "all of a state": lambda folder: add_to_state(folder, reads_all=True),
    "counted": lambda folder: DegreeCounting(read_edges(write_parquet(folder))),
}


@pytest.fixture(params=SOURCES)
def edges(request: pytest.FixtureRequest, tmp_path: Path) -> Edges:
    return SOURCES[request.param](tmp_path)


def read(edges: Edges, n_jobs: int = 1) -> list[Any]:
    """Return the columns of all edges of a pass."""
    parts = list(edges.batches(n_jobs))
    return [
        None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)
    ]


def test_numbers_are_those_of_the_table_and_within_the_bound(edges: Edges):
    table, bound = edges.nodes, edges.n_nodes
    u, v, _, _ = read(edges)
    last = int(max(u.max(), v.max()))
    assert edges.nodes is table
    assert table is None or last < len(table)
    assert bound is None or last < bound


def test_arrays_are_valid(edges: Edges):
    for u, v, w, t in edges:
        assert u.dtype == v.dtype
        assert u.dtype in (np.int32, np.int64)
        assert min(u.min(initial=0), v.min(initial=0)) >= 0
        assert w is None or (w.dtype in (np.float32, np.float64) and w.min(initial=0.0) >= 0)
        assert t is None or (t.dtype == np.float64 and np.isfinite(t).all())
        columns = [column for column in (u, v, w, t) if column is not None]
        assert {column.shape for column in columns} == {(len(u),)}
        assert all(column.flags.c_contiguous for column in columns)


def test_all_batches_have_times_or_none_has(edges: Edges):
    has = {batch.t is not None for batch in edges}
    assert has == {edges.has_times}


def test_order_does_not_depend_on_threads_and_passes_are_equal(edges: Edges):
    first = read(edges)
    if not edges.rereadable:
        if not edges.is_sample:
            with pytest.raises(ValueError, match="only once"):
                list(edges.batches())
        with pytest.raises(ValueError, match="several times, but"):
            edges.again("this")
        return
    for n_jobs in (1, 3):
        for before, now in zip(first, read(edges, n_jobs), strict=True):
            np.testing.assert_array_equal(before, now)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="files are counted on Linux")
def test_threads_and_files_end_with_the_iterator(edges: Edges):
    if edges.rereadable:
        list(edges)  # opens what stays open, such as the segments of a log
    n_threads, n_files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    passes = edges.batches(3)
    next(passes)
    if hasattr(passes, "close"):
        passes.close()
    del passes
    assert threading.active_count() == n_threads
    assert len(os.listdir("/proc/self/fd")) == n_files


def test_final_nodes_do_not_grow(edges: Edges):
    before = None if edges.nodes is None else len(edges.nodes)
    list(edges)
    if edges.nodes_are_final and edges.nodes is not None:
        assert len(edges.nodes) == before


def test_everything_that_takes_edges_takes_them(edges: Edges):
    h = StreamingSparsifier(epsilon=0.9, random_state=0)
    h = edges.feed(h)
    assert h.snapshot().n_edges > 0
    if edges.rereadable:
        u, v, w, _ = read(edges)
        graph = Graph.from_edges(u, v, w, n_nodes=edges.n_nodes or N)
        exact = solve_hfs(graph, [0, 30], [1.0, -1.0], gamma=0.1).f
        found = refine(edges, h, [0, 30], [1.0, -1.0], passes=30, tol=1e-9, gamma=0.1)
        np.testing.assert_allclose(found.f, exact, atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (([0], [1, 2]), r"batch 2: one entry per edge"),
        (([0], ["x"]), r"batch 2: node ids must be integers"),
        (([0], [1], [1.0], [np.nan]), r"batch 2: .*finite"),
        (([0], [1]), r"batch 2 has no times"),
    ],
)
def test_a_bad_batch_is_not_yielded_and_is_named(bad: Any, said: str):
    good = ([0, 1], [1, 2], [1.0, 1.0], [0.0, 1.0])
    edges, seen = as_edges([good, good, bad]), []
    with pytest.raises(ValueError, match=said):
        seen.extend(edges.batches())
    assert len(seen) == 2


def test_a_source_of_ones_own_is_checked():
    class Wrong(Edges):
        def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
            yield Batch(np.array([0.5]), np.array([1]))

    with pytest.raises(ValueError, match="node ids must be integers"):
        HFSClassifier().fit_edges(Wrong(), {0: "a", 1: "b"})


def test_edges_on_a_cluster_are_fed_where_they_are():
    edges = LocalEdges(batches(U, V, W))
    assert not edges.is_local
    with pytest.raises(TypeError, match="not read in this process"):
        list(edges)
    h = edges.feed(StreamingSparsifier(epsilon=0.9, random_state=0))
    found = refine(edges, h, [0, 30], [1.0, -1.0], passes=3)
    assert found.passes == 3
    assert h.snapshot().n_nodes == len(edges.nodes)


def test_a_class_derived_from_one_of_ohmlearn_is_used_as_it_is():
    class Mine(StreamingSparsifier):
        pass

    class Elsewhere(LocalEdges):
        pass

    for edges in (Mine(random_state=0).update(U, V), Elsewhere(batches(U, V))):
        assert as_edges(edges) is edges
