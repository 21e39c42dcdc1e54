"""Any interleaving of operations, crashes and restarts leaves the edges of a model in memory."""

import shutil
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from memory_folder import make_memory_folder

from ohmlearn import EdgeLog, Graph, refine
from ohmlearn.edge_log import compaction, log_store

pytest.importorskip("pyarrow")

IDS = [f"n{at}" for at in range(9)]
ids = st.sampled_from(IDS)
weights = st.sampled_from([0.5, 1.0, 4.0])
times = st.integers(0, 9).map(float)
edges = st.tuples(ids, ids, weights, times)


class LogMachine(RuleBasedStateMachine):
    """A log beside a list of edges."""

    def __init__(self):
        super().__init__()
        self.folder = make_memory_folder()
        self.log = EdgeLog(self.folder, epsilon=0.5, random_state=0)
        self.edges, self.flushed = [], []

    def teardown(self):
        self.log.close()
        shutil.rmtree(self.folder)

    def done(self, sync):
        if sync:
            self.flushed = list(self.edges)

    @rule(batch=st.lists(edges, min_size=1, max_size=12), sync=st.booleans())
    def append(self, batch, sync):
        u, v, w, t = zip(*batch, strict=True)
        assert self.log.append(list(u), list(v), np.array(w), np.array(t), sync=sync) == len(batch)
        self.edges += batch
        self.done(sync)

    @rule(batches=st.lists(st.lists(edges, min_size=1, max_size=5), max_size=3))
    def append_stream(self, batches):
        stream = [tuple(zip(*batch, strict=True)) for batch in batches]
        self.log.append([(list(u), list(v), list(w), list(t)) for u, v, w, t in stream])
        self.edges += [edge for batch in batches for edge in batch]
        self.done(True)

    @rule(batch=st.lists(edges, min_size=1, max_size=3))
    def append_with_an_error(self, batch):
        u, v, w, t = zip(*batch, strict=True)
        good = (list(u), list(v), list(w), list(t))
        bad = (["new"], ["newer"], [-1.0], [0.0])
        with pytest.raises(ValueError, match="not negative"):
            self.log.append([good, bad])

    @rule(
        pairs=st.lists(edges, min_size=1, max_size=3),
        by_weight=st.booleans(),
        by_time=st.booleans(),
        sync=st.booleans(),
    )
    def remove(self, pairs, by_weight, by_time, sync):
        u, v, w, t = zip(*pairs, strict=True)

        def fits(edge, pair):
            return (
                {edge[0], edge[1]} == {pair[0], pair[1]}
                and (not by_weight or edge[2] == pair[2])
                and (not by_time or edge[3] == pair[3])
            )

        kept = [edge for edge in self.edges if not any(fits(edge, pair) for pair in pairs)]
        absent = [
            at for at, pair in enumerate(pairs) if not any(fits(edge, pair) for edge in self.edges)
        ]
        found = self.log.remove(
            list(u),
            list(v),
            list(w) if by_weight else None,
            list(t) if by_time else None,
            missing="ignore",
            sync=sync,
        )
        assert found.missing.tolist() == absent
        assert found.n_removed == len(self.edges) - len(kept)
        self.edges = kept
        if found.n_removed:
            self.done(sync)

    @rule(nodes=st.lists(ids, min_size=1, max_size=2))
    def remove_nodes(self, nodes):
        kept = [edge for edge in self.edges if edge[0] not in nodes and edge[1] not in nodes]
        ends = {end for edge in self.edges for end in edge[:2]}
        found = self.log.remove_nodes(nodes, missing="ignore")
        assert found.n_removed == len(self.edges) - len(kept)
        assert found.missing.tolist() == [at for at, x in enumerate(nodes) if x not in ends]
        self.edges = kept
        if found.n_removed:
            self.done(True)

    @rule(before=times)
    def expire(self, before):
        kept = [edge for edge in self.edges if edge[3] >= before]
        assert self.log.expire(before).n_removed == len(self.edges) - len(kept)
        if len(kept) < len(self.edges):
            self.edges = kept
            self.done(True)

    @rule(background=st.booleans())
    def compact(self, background):
        self.log.compact(background=background)
        self.done(True)

    @rule()
    def flush(self):
        self.log.flush()
        self.done(True)

    @rule()
    def reopen(self):
        self.log.close()
        self.log = EdgeLog(self.folder)
        self.done(True)

    @rule(tail=st.binary(max_size=63), n_zeros=st.integers(0, 3))
    def crash(self, tail, n_zeros):
        if self.log._compaction is not None:  # its end flushes
            self.flush()
        self.log.wait_for_compaction()
        self.log.open_for_writing()  # only a writer leaves something behind
        self.log._store.close()  # without flush
        for path in self.folder.iterdir():
            with path.open("ab") as file:
                if path.suffix in (".arrows", ".ids", ".rows"):
                    file.write(tail)  # a record that was not acknowledged
                elif path.suffix == ".log":
                    file.write(bytes(64 * n_zeros) + tail)
        self.log = EdgeLog(self.folder)
        self.edges = list(self.flushed)

    @precondition(lambda self: len(self.edges) > 0)
    @rule(label=ids)
    def answer(self, label):
        h = self.log.snapshot()
        assert self.log.staleness() <= 0.3
        nodes = self.log.nodes
        labelled = nodes.find([self.edges[0][0], self.edges[-1][1]])
        labelled = labelled[: len(set(labelled.tolist()))]
        y = np.array([1.0, -1.0])[: len(labelled)]
        found = refine(
            self.log, h, labelled, y, passes=60, tol=1e-9, normalization=None, random_state=0
        )
        numbers = np.array([nodes.find(list(edge[:2])) for edge in self.edges])
        w = np.array([edge[2] for edge in self.edges])
        graph = Graph.from_edges(*numbers.T, w, n_nodes=h.n_nodes)
        reached = np.isin(graph.components()[1], graph.components()[1][labelled])
        ground = np.bincount(labelled, minlength=h.n_nodes)
        system = np.diag(ground) + len(labelled) * graph.laplacian().toarray()
        b = np.zeros(h.n_nodes)
        b[labelled] = y
        exact = np.zeros(h.n_nodes)
        exact[reached] = np.linalg.solve(system[np.ix_(reached, reached)], b[reached])
        np.testing.assert_allclose(found.f, exact, atol=1e-6)
        np.testing.assert_array_equal(found.reached, reached)

    @invariant()
    def same_edges(self):
        found = Counter()
        names = self.log.nodes.ids()
        for u, v, w, t in self.log:
            found.update(zip(names[u], names[v], w.tolist(), t.tolist(), strict=True))
        assert found == Counter(self.edges)
        assert self.log.n_edges == len(self.edges)
        assert self.log.info()["n_dead"] >= 0


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Records and segments so small that all borders are met."""
    for module in (log_store, compaction):
        monkeypatch.setattr(module, "RECORD_ROWS", 4)
        monkeypatch.setattr(module, "SEGMENT_ROWS", 10)


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class TestLog(LogMachine.TestCase):
    """Run the machine."""
