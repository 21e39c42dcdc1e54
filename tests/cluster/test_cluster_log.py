"""The files of a log are partitions of a cluster."""

import numpy as np

from ohmlearn import EdgeLog, Graph, HFSClassifier, gallery
from ohmlearn.dask import ClusterEdges, label
from ohmlearn.edge_log import log_store


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
