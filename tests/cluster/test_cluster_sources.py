"""Partitions of filtered, partitioned and remote files, of logs and of edges between two kinds."""

from pathlib import Path

import numpy as np
import pytest
from servers import serve_files

pytest.importorskip("dask")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from ohmlearn import EdgeLog, Graph, HFSClassifier, certify, gallery, read_edges  # noqa: E402
from ohmlearn.cluster.partitions import open_partition  # noqa: E402
from ohmlearn.dask import ClusterEdges, label  # noqa: E402
from ohmlearn.edge_log import log_store  # noqa: E402
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


def named_edges(graph, nodes):
    (u, v, w), ids = graph.edges(), nodes.ids()
    return {frozenset(pair): x for *pair, x in zip(ids[u], ids[v], w, strict=True)}


def test_a_log_on_a_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(log_store, "RECORD_ROWS", 100)
    monkeypatch.setattr(log_store, "SEGMENT_ROWS", 500)
    u, v, w = gallery.stochastic_blocks([40, 40], 0.9, bridges=3, random_state=0).edges()
    names = np.array([f"n{at}" for at in range(80)])
    with EdgeLog(tmp_path / "log") as log:
        log.append(names[u], names[v], w)
        log.remove(names[u[::17]], names[v[::17]])
        live = Graph.from_batches(log, n_nodes=log.n_nodes)
        for source in (log, tmp_path / "log", [str(tmp_path / "log")]):
            edges = ClusterEdges(source, partition_edges=500)
            assert edges.n_partitions > 2
            assert "records 0 to " in edges.sources[0]
            h = edges.sparsify(epsilon=0.1, random_state=0).snapshot()  # so fine that all are kept
            assert named_edges(h, edges.nodes) == named_edges(live, log.nodes)
        known = {f"n{at}": "left" if at < 40 else "right" for at in (0, 1, 2, 77, 78, 79)}
        one = label(tmp_path / "log", known, passes=9, random_state=0, partition_edges=500)
        other = HFSClassifier(passes=9, random_state=0).fit_edges(log, known)
        order = log.nodes.find(one.ids)
        assert one.labels.tolist() == other.transduction_[order].tolist()


RNG = np.random.default_rng(0)
U, V = RNG.integers(30, size=(2, 600))
V = V - V % 2 + U % 2


def write(folder: Path, *headings: str) -> list[Path]:
    """Write the edges to one file for each heading."""
    paths = []
    for number, heading in enumerate(headings):
        rows = zip(U[number :: len(headings)], V[number :: len(headings)], strict=True)
        lines = ([heading] if heading else []) + [f"{a},{b}" for a, b in rows]
        paths.append(folder / f"part-{number}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def test_partitions_have_the_same_kinds(tmp_path: Path):
    # The second file has no names of columns.
    paths = write(tmp_path, "user,item", "", "user,item")
    edges = ClusterEdges(paths, partition_edges=100, bipartite=True)
    assert edges.n_partitions > 1
    kept = edges.sparsify(random_state=0)
    assert len(edges.nodes) == 60
    assert edges.nodes.kinds == ("user", "item")
    assert certify(edges, kept.snapshot(), random_state=0).epsilon < 1
    known = {f"user:{i}": "eo"[i % 2] for i in range(8)}
    how = {"partition_edges": 100, "bipartite": True}
    found = label(paths, known, calibration=None, random_state=0, **how)
    answers = dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True))
    assert all(answer == "eo"[int(node.split(":")[1]) % 2] for node, answer in answers.items())


def test_columns_of_a_data_frame():
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    table = pandas.DataFrame({"share": U / 7, "shop": U, "what": V, "user_id": U, "item_id": V})
    edges = ClusterEdges(frames.from_pandas(table, npartitions=3), bipartite=True)
    edges.sparsify(random_state=0)
    assert edges.nodes.kinds == ("user", "item")
    assert len(edges.nodes) == 60
    two = frames.from_pandas(table[["share", "shop", "what"]], npartitions=2)
    assert ClusterEdges(two, bipartite=False).columns.startswith("u = 'shop', v = 'what'")
