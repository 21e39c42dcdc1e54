"""What a log promises beside the model of test_edge_log_properties: errors, readers, files."""

import errno
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import (
    EdgeLog,
    Graph,
    HFSClassifier,
    NodeTable,
    StreamingSparsifier,
    read_edges,
)
from ohmlearn.edge_log import LogError

pytest.importorskip("pyarrow")
import log_writer


def edges_of(log):
    """Return the live edges with ids and weights, sorted."""
    found = []
    for u, v, w, *_ in log:
        ids = log.nodes.ids().tolist()
        weights = np.ones(len(u)) if w is None else w
        found += [(ids[a], ids[b], c) for a, b, c in zip(u, v, weights.tolist(), strict=True)]
    return sorted(found)


def test_weights_may_come_and_go(folder):
    with EdgeLog(folder) as log:
        log.append([1], [2])
        log.append([2], [3], np.array([0.5], np.float32))
        log.append([3], [4], [0.25])
        assert [batch.w is None for batch in log] == [True, False, False]
        assert log.remove([2, 1], [3, 2], w=[0.5, 1.0]).n_removed == 2
        assert edges_of(log) == [(3, 4, 0.25)]


def test_streams_are_appended_with_their_ids(folder):
    first = read_edges([(["a", "b"], ["b", "c"]), (["c"], ["d"])])
    graph = Graph.from_edges([0, 1], [1, 2], [3.0, 4.0])
    graph.nodes = NodeTable()
    graph.nodes.add(["d", "a", "e"])
    with EdgeLog(folder) as log:
        assert log.append(first) == 3
        assert log.append(graph) == 2
        assert log.append(read_edges([(["x"], ["a"])], nodes=log.nodes)) == 1
        expected = [("a", "b", 1.0), ("a", "e", 4.0), ("b", "c", 1.0), ("c", "d", 1.0)]
        assert edges_of(log) == sorted([*expected, ("d", "a", 3.0), ("x", "a", 1.0)])
    assert EdgeLog(folder).nodes.ids().tolist() == ["a", "b", "c", "d", "e", "x"]


def test_live_edges_do_not_change(folder):
    with EdgeLog(folder) as log:
        log.append([0, 1], [1, 2])
        before, reader = log.live_edges(), EdgeLog(folder)
        log.append([2], [3])
        log.remove([0], [1])
        log.compact()
        for stream in (before, reader):
            assert [batch.u.tolist() for batch in stream] == [[0, 1]]
        assert edges_of(reader.refresh()) == [(1, 2, 1.0), (2, 3, 1.0)]
        assert log.info()["n_dead"] == 0


def test_updates_are_counted_through_compactions_and_errors(folder):
    with EdgeLog(folder) as log:
        log.append([0, 1, 2], [1, 2, 3], t=[1.0, 2.0, 3.0])
        log.remove([0], [1])
        log.expire(2.5)
        assert log.n_updates == log.live_edges().n_updates == 5
        log.compact()
        log.append([4], [5], t=[4.0])
        with pytest.raises(ValueError, match="-1"):
            log.append([([6], [7], [1.0], [5.0]), ([6], [7], [-1.0], [5.0])])
        assert log.n_updates == log.live_edges().n_updates == 6
        assert log.n_edges == 2


def test_the_folder_of_a_log_is_a_source(folder):
    with EdgeLog(folder) as log:
        log.append(["a", "b", "c"], ["b", "c", "a"])
        log.remove(["a"], ["b"])
    for source in (folder, [folder], str(folder)):
        stream = read_edges(source)
        assert edges_of(stream) == [("b", "c", 1.0), ("c", "a", 1.0)]
        assert stream.n_edges == 2
    other = NodeTable()
    other.add(["z", "c"])
    assert edges_of(read_edges(folder, nodes=other)) == [("b", "c", 1.0), ("c", "a", 1.0)]


def test_times_of_a_log_are_read(folder):
    days = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    with EdgeLog(folder) as log:
        assert log.time_unit is None
        log.append(["a", "b"], ["b", "c"], t=days)
        assert log.time_unit == "s"
        expected = days.astype("M8[s]").astype(float).tolist()
        for stream in (read_edges(folder), read_edges(folder, nodes=NodeTable(), time=True)):
            assert [batch.t.tolist() for batch in stream] == [expected]
            assert stream.time_unit == "s"
        sparsifier = StreamingSparsifier(half_life="1d").update(log)
        assert sparsifier.snapshot().weights.tolist() == [0.5, 0.5, 1.0, 1.0]
    with EdgeLog(folder.with_name("h"), half_life="1d", random_state=0) as log:
        log.append(["a", "b"], ["b", "c"], t=days)
        assert log.snapshot().weights.tolist() == [0.5, 0.5, 1.0, 1.0]
        log.append(["c"], ["d"], t=days[1:] + np.timedelta64(1, "D"))
        assert log.sparsifier.snapshot().weights.tolist() == [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]
    assert EdgeLog(folder.with_name("h")).snapshot() == log.snapshot()


def test_requests_that_match_nothing(folder):
    with EdgeLog(folder) as log:
        log.append([1, 2], [2, 3])
        with pytest.warns(UserWarning, match="1 of 2 edges between pairs match no live edge"):
            found = log.remove([1, 1], [2, 3])
        assert (found.n_removed, found.missing.tolist()) == (1, [1])
        with pytest.raises(LogError, match="nothing was removed"):
            log.remove([2, 1], [3, 2], missing="raise")
        assert log.n_edges == 1
        with pytest.warns(UserWarning, match="1 of 1 nodes match"):
            log.remove_nodes([1])
    EdgeLog(folder).append([7], [8])  # is not closed, but lets others write
    with EdgeLog(folder) as log:
        assert log.append([1], [2]) == 1


@pytest.mark.parametrize(
    ("edges", "error", "match"),
    [
        (([0], [1]), ValueError, "give t"),
        ((["a"], ["b"], None, [1.0]), TypeError, "node ids were integers so far"),
        (([7], [8], [np.inf], [1.0]), ValueError, "weights must be finite"),
        (([7], [8], [1e-45], [1.0]), ValueError, r"at least 1\.2e-38, .* but w\[0\] = 1e-45"),
    ],
)
def test_edges_that_do_not_fit_are_refused(folder, edges, error, match):
    with EdgeLog(folder) as log:
        log.append([0], [1], t=[5.0])
        with pytest.raises(error, match=match):
            log.append(*edges)
        assert (log.n_nodes, log.n_edges) == (2, 1)  # the ids of refused edges are forgotten


def test_errors_of_folders_and_writers(folder, tmp_path):
    with EdgeLog(folder, epsilon=0.4, random_state=0) as log:
        log.append([0], [1])
        with refuses(parameter="epsilon", value="0.4"):
            EdgeLog(folder, epsilon=0.5)
        with pytest.raises(LogError, match=rf"another writer .* \(process {os.getpid()}\)"):
            EdgeLog(folder).append([0], [1])
    EdgeLog(folder).append([0], [1])
    with pytest.raises(ValueError, match="so they cannot expire"):
        EdgeLog(folder).expire(3)
    (tmp_path / "other.csv").write_text("u,v\n")
    for place in (tmp_path / "other.csv", tmp_path):
        with pytest.raises(LogError, match=r"other\.csv"):
            EdgeLog(place)
    fading = EdgeLog(folder.with_name("fading"), half_life=10.0)
    with pytest.raises(ValueError, match=r"at least 1\.4e-20, .* but w\[0\] = 1e-30"):
        fading.append([0], [1], [1e-30], [1.0])


@contextmanager
def little_room(n_bytes):
    """Let no file grow beyond a size: the system then writes what fits, and refuses the rest."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk(folder):
    """The error loses nothing, and the log continues when there is room again."""
    with EdgeLog(folder) as log:
        log.append(["a"], ["b"])
        many = [f"n{at}" for at in range(3000)]
        for room in (1000, 40_000):  # too little for the ids, and for the edges
            with little_room(room):
                log.append([(many, many[::-1])] * 3)
            assert edges_of(log) == edges_of(EdgeLog(folder)) == [("a", "b", 1.0)]
            assert log.nodes.ids().tolist() == ["a", "b"]
        log.append(many, many[::-1])
        log.remove_nodes(["n7"])
        names = {path.name for path in folder.iterdir()}
        with little_room(10_000):
            log.compact()
        assert {path.name for path in folder.iterdir()} == names
        assert log.n_edges == len(edges_of(log)) == 2999
        log.compact()
        assert log.info()["n_dead"] == 0
    assert EdgeLog(folder).n_edges == 2999


def fail_later(monkeypatch, call):
    """Let a call of the system fail once, when the returned number of calls has come."""
    original, left = getattr(os, call), [0]

    def fails_once(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.EIO, "input/output error")
        return original(*arguments)

    monkeypatch.setattr(os, call, fails_once)
    return left


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_any_call_may_fail(folder, monkeypatch, call):
    """Whichever write or flush fails, the operation and those not flushed are undone."""
    left = fail_later(monkeypatch, call)
    operations = [
        lambda log, name: log.append([name, name], [f"{name}'", "a"], t=[2.0, 9.0]),
        lambda log, name: log.remove([name], ["a"]),
        lambda log, name: log.expire(3.0),
    ]
    n_failed = 0
    with EdgeLog(folder, random_state=0) as log:
        log.append(["a"], ["b"], t=[5.0])
        log.snapshot()
        for number in range(12):
            for operation in operations:
                before = edges_of(log)
                left[0] = number % 4 + 1
                try:
                    operation(log, f"n{number}")
                except OSError:
                    n_failed += 1
                    assert edges_of(log) == before
                    left[0] = 0
                    operation(log, f"n{number}")
                left[0] = 0
                assert edges_of(log) == edges_of(EdgeLog(folder))
                assert log.n_edges == len(edges_of(log))
        assert edges_of(log) == [("a", "b", 1.0)]
        assert log.snapshot().n_edges == 1
    assert n_failed >= 12


@pytest.mark.parametrize("call", ["fsync", "fdatasync", "pwrite", "replace"])
def test_any_call_of_a_compaction_may_fail(folder, monkeypatch, call):
    """The log is as it was, or compacted, and operations continue."""
    left = fail_later(monkeypatch, call)
    n_failed = 0
    with EdgeLog(folder, random_state=0) as log:
        log.append(["a"], ["b"])
        log.snapshot()
        for number in range(6):
            log.append([f"n{number}", "a"], ["a", "b"])
            log.remove_nodes([f"n{number}"])
            before, left[0] = edges_of(log), number + 1
            try:
                log.compact()
            except OSError:
                n_failed += 1
            left[0] = 0
            assert edges_of(log) == edges_of(EdgeLog(folder)) == before
            log.append(["b"], ["c"])
            assert edges_of(EdgeLog(folder)) == sorted([*before, ("b", "c", 1.0)])
        assert log.snapshot().n_edges == 2
        assert log.sparsifier.weight_seen_ == log.n_edges == 13
    assert n_failed > 0
    assert edges_of(EdgeLog(folder)) == sorted([("a", "b", 1.0)] * 7 + [("b", "c", 1.0)] * 6)


def test_damaged_bytes(folder):
    """A changed byte is found, or does not matter; acknowledged edges are never lost silently."""
    with EdgeLog(folder, random_state=0) as log:
        log.append(["a", "b"], ["b", "c"], t=[1.0, 2.0])
        log.append(["c", "d"], ["d", "e"], t=[3.0, 4.0])
        log.remove(["b"], ["c"])
        log.expire(2)
        expected = edges_of(log)
        log.snapshot()
    assert expected == [("c", "d", 1.0), ("d", "e", 1.0)]
    outcomes = {"refused": 0, "same": 0}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        step = 1 if path.suffix != ".ohm" else 97
        for at in range(0, len(content), step):
            path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
            try:
                assert edges_of(EdgeLog(folder)) == expected
                outcomes["same"] += 1
            except LogError:
                outcomes["refused"] += 1
        path.write_bytes(content)
    # Padding, the schema of the Arrow stream and the sparsifier do not matter.
    assert outcomes["refused"] > 500 > outcomes["same"]


def test_a_damaged_sparsifier_is_made_again(folder):
    with EdgeLog(folder, random_state=0) as log:
        log.append([0, 1], [1, 2])
        before = log.snapshot()
    path = folder / "sparsifier.ohm"
    path.write_bytes(path.read_bytes()[:-9])
    with EdgeLog(folder) as log, pytest.warns(UserWarning, match="made again, because"):
        assert log.snapshot() == before


def test_missing_files_are_named(folder):
    with EdgeLog(folder) as log:
        log.append([0, 1], [1, 2])
    for name in ("edges-000001.arrows", "nodes.ids", "journal-000001.log"):
        path = folder / name
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(LogError, match=name):
            EdgeLog(folder)
        path.write_bytes(content)
    segment = folder / "edges-000001.arrows"
    segment.write_bytes(segment.read_bytes()[:-8])
    with pytest.raises(LogError, match=r"edges-000001\.arrows, byte .* bytes are missing"):
        EdgeLog(folder)


def test_segments_are_arrow_streams(folder):
    import pyarrow as pa

    with EdgeLog(folder) as log:
        log.append([5, 6], [6, 7], [1.0, 2.0], [3.0, 4.0])
        log.append([7], [5], [1.0], [9.0])
    with pa.ipc.open_stream(folder / "edges-000001.arrows") as reader:
        table = reader.read_all()
    assert table.to_pydict() == {
        "u": [0, 1, 2], "v": [1, 2, 0], "w": [1.0, 2.0, 1.0], "t": [3.0, 4.0, 9.0]
    }  # fmt: skip


def test_many_writers_take_turns(folder):
    """Writers that wait for each other all get their edges in."""
    EdgeLog(folder).close()

    def write(_):
        for at in range(10):
            while True:
                try:
                    with EdgeLog(folder) as log:
                        log.append([at], [at + 1])
                    break
                except LogError:
                    time.sleep(0.0001)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(write, range(3)))
    assert edges_of(EdgeLog(folder)) == sorted([(at, at + 1, 1.0) for at in range(10)] * 3)


def test_a_forked_child_does_not_write(folder):
    with EdgeLog(folder) as log:
        log.append([0], [1])
        child = os.fork()
        if child == 0:
            try:
                log.append([1], [2])
            except LogError as error:
                os._exit(7 if "was forked" in str(error) else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        log.append([1], [2])
    assert EdgeLog(folder).n_edges == 2


def test_small_records_are_put_together(folder):
    with EdgeLog(folder) as log:
        for at in range(300):
            log.append([at], [at + 1], t=[float(at)], sync=False)
        log.remove([1], [2], sync=False)
        log.expire(100.0)
        assert [len(batch.u) for batch in log] == [200]
    with EdgeLog(folder) as log:
        log.compact()
        assert (log.n_operations, log.n_records) == (302, 1)
        assert edges_of(log) == [(at, at + 1, 1.0) for at in range(100, 300)]


def test_the_classifier_uses_the_sparsifier_of_the_log(folder):
    rng = np.random.default_rng(0)
    blocks = np.repeat([0, 1], 60)
    u, v = np.triu_indices(120, 1)
    kept = rng.random(len(u)) < np.where(blocks[u] == blocks[v], 0.9, 0.05)
    u, v = u[kept], v[kept]
    labels = {0: "a", 119: "b"}
    with EdgeLog(folder, epsilon=0.8, random_state=3) as log:
        log.append(u, v)
        one = HFSClassifier(passes=1, epsilon=0.8, random_state=3).fit_edges(
            read_edges((u, v)), labels
        )
        own = HFSClassifier(passes=1, random_state=3).fit_edges(log, labels)
        assert own.staleness_ == one.staleness_ == 0.0
        assert own.graph_ == one.graph_  # the same seed gives the same sparsifier
        assert own.sparsifier_ is not log.sparsifier
        gone = rng.choice(len(u), len(u) // 20, replace=False)
        log.remove(u[gone], v[gone])
        model = HFSClassifier(passes=40, tol=1e-10, random_state=0).fit_edges(log, labels)
        assert 0.0 < model.staleness_ == log.staleness() < 0.3
        assert log.info()["generation"] == 0
    live = np.ones(len(u), bool)
    live[gone] = False
    exact = HFSClassifier(epsilon=None).fit_edges((u[live], v[live]), labels)
    assert model.gamma_ == pytest.approx(exact.gamma_)
    np.testing.assert_allclose(model.scores_, exact.scores_[log.nodes.ids()], atol=1e-6)


def test_operations_of_a_transaction_are_flushed_once(folder, monkeypatch):
    with EdgeLog(folder) as log:
        log.append([1], [2], sync=False)
        flushed, reader = [], EdgeLog(folder)
        flush = log._store.writer.flush
        monkeypatch.setattr(log._store.writer, "flush", lambda: flushed.append(flush()))
        with log.transaction() as changes:
            assert (log.n_durable, len(flushed)) == (1, 1)  # what waited before is not at risk
            assert (changes.append([2, 3], [3, 4]), changes.n_operations) == (2, 2)
            with pytest.raises(ValueError, match="-1"):  # is undone alone
                changes.append([([5], [6], [1.0]), ([6], [7], [-1.0])])
            assert (changes.remove([1], [2]).n_removed, changes.n_operations) == (1, 3)
            assert (log.n_operations, log.n_durable) == (3, 1)
            assert edges_of(reader.refresh()) == [(1, 2, 1.0)]
        assert (log.n_durable, len(flushed)) == (3, 2)
        with pytest.raises(LogError, match="this transaction is over"):
            changes.append([8], [9])
        assert edges_of(reader.refresh()) == [(2, 3, 1.0), (3, 4, 1.0)]
        assert reader.n_durable == 3


def broken(*_):
    raise OSError(errno.EIO, "broken")


@pytest.mark.parametrize("fails", ["inside", "flush", "flush and undo"])
def test_an_error_undoes_a_transaction(folder, monkeypatch, fails):
    def change(log, patch):
        with log.transaction() as changes:
            changes.append([7], [8])
            log.remove([1], [2], sync=False)
            if fails == "inside":
                broken()
            patch.setattr(os, "fdatasync", broken)
            if fails == "flush and undo":
                patch.setattr(log._store, "_read_again", broken)

    with EdgeLog(folder, random_state=0) as log:
        log.append([1, 2], [2, 3])
        log.snapshot()  # the sparsifier is in step with all operations
        with monkeypatch.context() as patch, pytest.raises(OSError, match="broken"):
            change(log, patch)
        assert log.n_durable == 1
        log.append([3], [9])
        assert (log.n_durable, log.sparsifier.n_edges_seen_) == (2, 3)
        expected = [(1, 2, 1.0), (2, 3, 1.0), (3, 9, 1.0)]
        assert edges_of(log) == edges_of(EdgeLog(folder)) == expected
        assert log.nodes.ids().tolist() == [1, 2, 3, 9]


@pytest.mark.parametrize("undo", ["ftruncate", "_read_again"])
def test_an_operation_that_cannot_be_undone_alone_loses_the_transaction(folder, monkeypatch, undo):
    def change(log):
        with log.transaction() as changes:
            changes.append([2], [3])
            with monkeypatch.context() as patch, suppress(OSError):
                patch.setattr(os, "pwrite", broken)
                patch.setattr(os if undo == "ftruncate" else log._store, undo, broken)
                changes.append([3], [4])
            assert changes.is_lost

    with EdgeLog(folder) as log:
        log.append([1], [2])
        with pytest.raises(LogError, match="all operations of its transaction were undone"):
            change(log)
        with EdgeLog(folder) as other:  # the right to write was given back
            other.append([5], [6])
        log.append([6], [7])
        expected = [(1, 2, 1.0), (5, 6, 1.0), (6, 7, 1.0)]
        assert edges_of(log) == edges_of(EdgeLog(folder)) == expected
        assert log.nodes.ids().tolist() == [1, 2, 5, 6, 7]


KILLS = 100


def live(log):
    ids = log.nodes.ids()
    for u, v, _, t in log:
        yield from zip(ids[u].tolist(), ids[v].tolist(), t.tolist(), strict=True)


@pytest.mark.slow
def test_sigkill(folder):
    """A writer that is killed leaves what it has acknowledged, and nothing that is half done."""
    edges, number = [], 0
    EdgeLog(folder, random_state=0).close()
    rng = np.random.default_rng(0)
    # Starting Python takes most of the time, so the writers are forked from one process.
    command = [sys.executable, log_writer.__file__, str(folder), "7"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    n_half_done = 0
    with subprocess.Popen(command, **pipes) as server:
        for _ in range(KILLS):
            server.stdin.write(f"{number} {rng.integers(0, 20_000)}\n")
            server.stdin.flush()
            name, n_done = server.stdout.readline().split()
            assert name == "killed"
            for _ in range(int(n_done)):
                edges = log_writer.apply(edges, 7, number)
                number += 1
            with EdgeLog(folder) as log:
                found = Counter(live(log))
                assert log.n_edges == found.total()
            # The operation in which it was killed is there completely, or not at all.
            after = log_writer.apply(edges, 7, number)
            assert found in (Counter(edges), Counter(after))
            if found != Counter(edges):
                edges = after
                n_half_done += 1
            number += 1
        server.stdin.close()
        assert server.wait() == 0
    assert number > 2 * KILLS
    print(f"{number} operations, {n_half_done} not acknowledged but there")
