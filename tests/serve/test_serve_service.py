"""A service: what was acknowledged is counted once, and answers are those of a batch run."""

import io
import json
import threading

import numpy as np
import pytest
from pyarrow import parquet
from serve_cases import cut, make_edges, serving, three_labels, wait_for, wait_for_answers

from ohmlearn import EdgeLog, HFSClassifier, StreamingSparsifier
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.service import LabelRow, Offset, Refused, Service
from ohmlearn.serve.service_folder import backup, check_folder_contents
from ohmlearn.serve.settings import Settings

EDGES = make_edges(4000)


def send(service, columns, size=500, prefix="b"):
    """Send edges in batches, and wait until they are durable."""
    futures = [
        service.submit(batch, batch_id=f"{prefix}{at}")
        for at, batch in enumerate(cut(columns, size))
    ]
    return [future.result(30) for future in futures]


def stored(folder):
    """Return the edges of a folder with their ids, in their order."""
    log = EdgeLog(folder / "log")
    ids = log.nodes.ids()
    parts = [(ids[batch.u], ids[batch.v], batch.w, batch.t) for batch in log]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def test_edges_are_stored_in_their_order_and_repeated_batches_count_once(tmp_path):
    with serving(tmp_path / "s") as service:
        first = send(service, EDGES)
        again = send(service, EDGES)
    assert sum(receipt.n_edges for receipt in first) == 4000
    assert not any(receipt.repeated for receipt in first)
    assert all(receipt.repeated for receipt in again)
    assert [receipt.operation for receipt in again] == [receipt.operation for receipt in first]
    with serving(tmp_path / "s") as service:
        assert all(receipt.repeated for receipt in send(service, EDGES))
        assert service.status()["edges"] == 4000
    for mine, theirs in zip(stored(tmp_path / "s"), EDGES, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("half_life", [None, "20min"])
def test_the_sparsifier_has_the_bits_of_one_that_reads_the_edges_at_once(tmp_path, half_life):
    columns = make_edges(60_000, 300)
    settings = {"half_life": half_life, "epsilon": 0.9, "seed": 5}
    for part in (slice(0, 20_000), slice(20_000, 60_000)):
        with serving(tmp_path / "s", **settings) as service:
            send(service, tuple(column[part] for column in columns), 700, f"{part.start}-")
    log = EdgeLog(tmp_path / "s" / "log")
    u, v = log.nodes.find(columns[0]), log.nodes.find(columns[1])
    plain = StreamingSparsifier(epsilon=0.9, random_state=5, half_life=half_life)
    plain.update(u, v, columns[2], columns[3])
    for mine, theirs in zip(log.snapshot().edges(), plain.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("passes", [1, 3])
def test_labels_are_those_of_a_batch_run(tmp_path, passes):
    columns = make_edges(30_000, 150)
    rows = three_labels()
    with serving(tmp_path / "s", epsilon=0.9, passes=passes) as service:
        service.put_labels(rows)
        send(service, columns, 1000)
        wait_for_answers(service)
        found = service.lookup(list(range(150)))["results"]
    model = HFSClassifier(epsilon=0.9, random_state=0, passes=passes)
    model.fit_edges(EdgeLog(tmp_path / "s" / "log"), {row.node: row.label for row in rows})
    numbers = model.nodes_.find(list(range(150)))
    assert [row["label"] for row in found] == model.transduction_[numbers].tolist()
    shares = np.array([[row["probabilities"][name] for name in model.classes_] for row in found])
    np.testing.assert_allclose(shares, model.label_distributions_[numbers], atol=1e-4)
    assert {row["node"] for row in found if row["given"]} == {row.node for row in rows}


def test_labels_of_nodes_without_a_live_edge_count_for_no_other_node(tmp_path):
    u, v, w, t = make_edges(4000)
    old = np.arange(1000, 1030)
    ends = (np.append(old, u), np.append(np.roll(old, 1), v))
    columns = (*ends, np.append(np.ones(30), w), np.append(np.full(30, t.min() - 1e6), t))
    rows = three_labels()
    found = []
    for more in ([], [LabelRow(int(node), rows[0].label) for node in [*old, 5000]]):
        with serving(tmp_path / f"s{len(more)}", window="1d") as service:
            service.put_labels([*rows, *more])
            send(service, columns)
            wait_for_answers(service)
            results = service.lookup(list(range(60)))["results"]
            found.append([row["probabilities"] for row in results])
            assert service.status()["unused_labels"] == len(more)
    assert found[0] == found[1]


def test_answers_survive_a_restart_and_changes_are_numbered_through(tmp_path):
    with serving(tmp_path / "s") as service:
        send(service, EDGES)
        service.put_labels(three_labels())
        wait_for_answers(service)
        before = service.lookup([0, 1, 2, 3])
        page = service.changes(0, 7)
        assert len(page["changes"]) == 7
        assert not page["complete"]
        rest = service.changes(page["next"])
        assert rest["complete"]
        assert len(page["changes"]) + len(rest["changes"]) == rest["next"] == 60
    with serving(tmp_path / "s") as service:
        after = service.lookup([0, 1, 2, 3])
        assert [row["label"] for row in after["results"]] == [
            row["label"] for row in before["results"]
        ]
        service.put_labels([LabelRow(0, "other"), *(LabelRow(n, "other") for n in range(3, 60, 3))])
        found = wait_for(lambda: service.changes(60)["changes"])
        assert {one["after"] for one in found} == {"other"}
        colours = {one["label"]: one["colour"] for one in service.status()["classes"]}
        assert colours["group 1"] == 1  # although "group 0" is gone
        assert {one["before"] for one in found} == {"group 0"}
        assert {one["node"] for one in found} == set(range(0, 60, 3))


def test_changes_that_are_not_kept_are_gone(tmp_path):
    with serving(tmp_path / "s", max_kept_changes=10) as service:
        send(service, EDGES)
        service.put_labels(three_labels())
        wait_for_answers(service)
        service.put_labels([LabelRow(n, "other") for n in range(0, 60, 3)])
        wait_for_answers(service)
        wait_for(lambda: service.envelope()["changes_next"] > 60)
        with pytest.raises(
            Refused,
            match=r"changes before number 60 .* got since = 3; start over: take changes_next",
        ):
            service.changes(3)


def test_the_export_has_all_nodes(tmp_path):
    with serving(tmp_path / "s") as service:
        alone = RawBatch(np.array([1000]), np.array([1001]), t=np.array([1.7e9]))
        send(service, EDGES)
        service.submit(alone).result(30)
        service.put_labels(three_labels())
        wait_for_answers(service)
        table = parquet.read_table(io.BytesIO(b"".join(service.export())))
        about = json.loads(table.schema.metadata[b"ohmlearn"])
        table = table.to_pylist()
        looked_up = service.lookup([row["node"] for row in table])["results"]
    assert len(table) == 62
    assert about["watermark"]["edges"] == 4001
    assert about["watermark"]["labels_version"] == 1
    names = ("node", "label", "reached", "given")
    for mine, theirs in zip(table, looked_up, strict=True):
        assert [mine[name] for name in names] == [theirs[name] for name in names]
        assert mine["probability"] == pytest.approx(theirs["probability"], abs=1e-5)
    assert [row["node"] for row in table if not row["reached"]] == [1000, 1001]


def test_removed_edges_do_not_count(tmp_path):
    u, v, w, _ = EDGES
    gone = np.flatnonzero((u == 7) | (v == 7))
    with serving(tmp_path / "s", epsilon=0.5) as service:
        send(service, EDGES)
        service.put_labels(three_labels()[:7])
        pairs = RawBatch(u[gone], v[gone])
        receipt = service.submit(pairs, batch_id="r", is_removal=True).result(30)
        assert receipt.n_removed == len(gone)
        assert not service.submit(RawBatch(u[:0], v[:0]), batch_id="r").result(30).repeated
        again = service.submit(pairs, batch_id="r", is_removal=True).result(30)
        assert again.repeated
        assert again.n_removed == len(gone)
        missing = service.submit(RawBatch(np.array([7]), np.array([8])), is_removal=True).result(30)
        assert missing.n_missing == 1
        wait_for_answers(service)
        assert not service.lookup([7])["results"][0]["reached"]
        assert service.envelope()["watermark"]["edges"] == 4000 - len(gone)
    kept = np.setdiff1d(np.arange(4000), gone)
    np.testing.assert_array_equal(stored(tmp_path / "s")[2], w[kept])


def test_offsets_count_each_message_once_and_refuse_gaps(tmp_path):
    batches = list(cut(EDGES, 1000))
    with serving(tmp_path / "s") as service:
        for at, batch in enumerate(batches):
            place = Offset("events", 3, 10 * at, 10 * at - 9 if at else 0)
            assert service.submit(batch, offset=place).result(30).n_edges == 1000
        again = service.submit(batches[1], offset=Offset("events", 3, 10, 1)).result(30)
        assert again.repeated
        assert service.next_offsets("events") == {3: 31}
        lost = service.submit(batches[0], offset=Offset("events", 3, 50, 45))
        with pytest.raises(Refused, match="offset 31 of events is missing"):
            lost.result(30)
        empty = RawBatch(np.empty(0, np.int64), np.empty(0, np.int64))
        service.submit(empty, offset=Offset("events", 3, 31, 31)).result(30)
    with serving(tmp_path / "s") as service:
        assert service.next_offsets("events") == {3: 32}
        assert service.next_offsets("others") == {}
        assert service.status()["edges"] == 4000


def test_a_bad_batch_is_refused_and_the_others_are_taken(tmp_path):
    good = RawBatch(np.array([1, 2]), np.array([2, 3]))
    names = RawBatch(*(_strings(["a"]), _strings(["b"])))
    negative = RawBatch(np.array([1]), np.array([2]), np.array([-1.0]))
    with serving(tmp_path / "s") as service:
        futures = [service.submit(batch) for batch in (good, names, negative, good)]
        with pytest.raises(Refused, match="node ids were integers so far, but now strings came"):
            futures[1].result(30)
        with pytest.raises(ValueError, match="-1"):
            futures[2].result(30)
        assert futures[3].result(30).n_edges == 2
        assert service.status()["edges"] == 4
        assert service.metrics()["refused_batches_total"][0] == 2


def _strings(names):
    from ohmlearn.nodes.node_ids import encode_strings

    return encode_strings(names)


def test_too_much_at_a_time_is_refused_for_now(tmp_path):
    big = RawBatch(*(np.arange(50_000) % 97, (np.arange(50_000) + 1) % 97))
    with serving(tmp_path / "s", max_queued_bytes=1000) as service:
        with service._log._lock:  # the thread that writes has to wait
            futures = [service.submit(big)]
            wait_for(lambda: not service._intake._queue)  # the thread has taken it
            futures.append(service.submit(big))
            with pytest.raises(Refused, match="too many batches are waiting") as caught:
                service.submit(big)
        assert caught.value.retry_after > 0
        assert all(future.result(30).n_edges == 50_000 for future in futures)
        assert service.submit(big).result(30).n_edges == 50_000
        assert service.metrics()["queued_bytes"][0] == 0


def test_after_a_stop_nothing_is_taken(tmp_path):
    service = Service(tmp_path / "s", Settings(certify_every=None))
    with pytest.raises(Refused, match="starting or stopping"):
        service.submit(RawBatch(np.array([1]), np.array([2])))
    service.start()
    service.stop()
    service.stop()
    service.start()  # it stays stopped
    assert not service.ready
    with pytest.raises(Refused, match="starting or stopping"):
        service.submit(RawBatch(np.array([1]), np.array([2])))
    with pytest.raises(Refused, match="stopping"):
        service.put_labels(three_labels())


def test_settings_must_be_those_of_the_folder(tmp_path):
    busy = pytest.raises(ValueError, match="another writer has this log open")
    with serving(tmp_path / "s", half_life="7d"), busy:
        Service(tmp_path / "s")
    Service(tmp_path / "s", Settings(half_life="168h")).stop()
    with pytest.raises(ValueError, match="was made with half_life = '7d', got '8d'; leave it out"):
        Service(tmp_path / "s", Settings(half_life="8d"))
    with pytest.raises(ValueError, match="was made with window = None, got '8d'"):
        Service(tmp_path / "s", Settings(window="8d"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"has other files, such as thesis.tex; give an empty"):
        Service(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Service(tmp_path / "no" / "such")


def test_old_edges_leave_the_window_and_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.service.MANY_DEAD", 1000)
    u, v, w, _ = EDGES
    with serving(tmp_path / "s", window="1h") as service:
        send(service, (u, v, w, np.full(4000, 1.7e9)), prefix="old")
        service.put_labels(three_labels())
        new = (u[:600], v[:600], w[:600], np.full(600, 1.7e9 + 7200.0))
        send(service, new, prefix="new")
        wait_for_answers(service)
        assert service._labeller.solved.graph.n_edges <= 600
        service._expire()
        service._compact()
        service._end_compaction()
        assert service._log.info()["n_dead"] == 0
        wait_for_answers(service)
        assert service.envelope()["watermark"]["edges"] == 600
        assert service.lookup([0])["results"][0]["label"] == "group 0"
    np.testing.assert_array_equal(stored(tmp_path / "s")[2], w[:600])


@pytest.mark.slow
def test_the_log_is_compacted_while_edges_arrive(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.service.MANY_RECORDS", 50)
    columns = make_edges(30_000, 150)
    with serving(tmp_path / "s", epsilon=0.9) as service:
        for start in range(0, 30_000, 3000):
            part = tuple(column[start : start + 3000] for column in columns)
            send(service, part, 20, f"{start}-")
            service._compacted = 0.0
        wait_for(lambda: service._log.info()["n_records"] < 600)
        wait_for(lambda: service.envelope()["watermark"]["edges"] == 30_000)
        wait_for(lambda: service.status()["unsampled_edges"] == 0)
    assert EdgeLog(tmp_path / "s" / "log").info()["n_records"] < 600
    for mine, theirs in zip(stored(tmp_path / "s"), columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    log = EdgeLog(tmp_path / "s" / "log")
    plain = StreamingSparsifier(epsilon=0.9, random_state=0)
    plain.update(log.nodes.find(columns[0]), log.nodes.find(columns[1]), columns[2])
    for mine, theirs in zip(log.snapshot().edges(), plain.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_certificate_is_stored(tmp_path):
    columns = make_edges(60_000, 300)
    with serving(tmp_path / "s", certify_every="1s", epsilon=0.9) as service:
        service.put_labels(three_labels())
        send(service, columns, 5000)
        wait_for_answers(service)
        found = wait_for(lambda: service.certificates())
        certificate = wait_for(lambda: service.envelope()["certificate"])
    assert 0 <= found[0]["epsilon"] <= found[0]["bound"]
    assert found[-1]["edges"] > 0
    assert certificate["confidence"] == 0.999
    with serving(tmp_path / "s") as service:
        assert service.envelope()["certificate"] is not None


def test_without_labels_and_with_labels_of_unknown_nodes(tmp_path):
    with serving(tmp_path / "s") as service:
        service.put_labels([LabelRow("nobody", "x")])
        send(service, EDGES)
        wait_for(lambda: service.envelope()["watermark"]["edges"] == 4000)
        found = service.lookup([0, "nobody", 10**30])["results"]
        assert [row["known"] for row in found] == [True, False, False]
        assert [row["label"] for row in found] == [None, None, None]
        assert service.status()["problems"] == []
        assert service.delete_labels(["nobody", "else"]) == 1
        assert service.given_labels() == {"labels": [], "next": None}


@pytest.mark.slow
def test_a_copy_of_a_folder_in_use_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.edge_intake.PRUNE_EVERY", 1)  # of offsets, all the time
    columns = make_edges(20_000, 150)
    batches = list(cut(columns, 100))

    def send_all(service):
        futures = [
            service.submit(batch, batch_id=f"b{at}", offset=Offset("t", 0, at, at))
            for at, batch in enumerate(batches)
        ]
        return [future.result(30) for future in futures]

    with serving(tmp_path / "s") as service:
        service.put_labels(three_labels())
        for at, batch in enumerate(batches[:20]):
            service.submit(batch, batch_id=f"b{at}", offset=Offset("t", 0, at, at)).result(30)
        sender = threading.Thread(target=send_all, args=(service,))
        sender.start()
        facts = [backup(tmp_path / "s", tmp_path / f"copy{at}") for at in range(3)]
        sender.join()
    with pytest.raises(ValueError, match="is not empty"):
        backup(tmp_path / "s", tmp_path / "copy0")
    for at, fact in enumerate(facts):
        assert fact["n_labels"] == 9
        assert fact["n_edges"] >= 2000
        with serving(tmp_path / f"copy{at}") as service:
            assert service.next_offsets("t") == {0: fact["n_edges"] // 100}
            receipts = send_all(service)
        assert sum(not receipt.repeated for receipt in receipts) == 200 - fact["n_edges"] // 100
        for mine, theirs in zip(stored(tmp_path / f"copy{at}"), columns, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert check_folder_contents(tmp_path / "s")["n_edges"] == 20_000


def test_a_batch_that_nobody_waits_for_is_left_out(tmp_path):
    batch = next(cut(EDGES, 100))
    with serving(tmp_path / "s") as service:
        with service._log._lock:
            first = service.submit(batch)
            wait_for(lambda: not service._intake._queue)
            given_up = service.submit(batch)
            assert given_up.cancel()
        assert first.result(30).n_edges == 100
        assert service.submit(batch).result(30).n_edges == 100
        assert service.status()["edges"] == 200
        assert service.metrics()["queued_bytes"][0] == 0
