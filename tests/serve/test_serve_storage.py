"""A disk that is full or fails: nothing is acknowledged that is not stored, and reads go on."""

import errno
import logging
import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from serve_cases import cut, make_edges, serving, three_labels, wait_for, wait_for_answers

from ohmlearn import EdgeLog, StreamingSparsifier
from ohmlearn.edge_log import LogError
from ohmlearn.edge_log.compaction import Compaction
from ohmlearn.edge_log.log_sparsifier import SparsifierInStep
from ohmlearn.edge_log.log_store import Store
from ohmlearn.estimators.problem import ClassProblem
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.database import Database
from ohmlearn.serve.service import LabelRow, Offset, Refused

EDGES = make_edges(3000)
FULL = OSError(errno.ENOSPC, "No space left on device")


def full_database(*_):
    """Fail as SQLite does on a full disk."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


@pytest.mark.parametrize("what", ["pwrite", "fdatasync", "record", "forget_after"])
def test_a_full_disk_refuses_writes_and_recovers(tmp_path, monkeypatch, what):
    batches = list(cut(EDGES, 500))

    def fail(*_):
        raise FULL

    with serving(tmp_path / "s") as service:
        service.put_labels(three_labels())
        for at in range(3):
            place = Offset("t", 0, at, at)
            service.submit(batches[at], batch_id=f"b{at}", offset=place).result(30)
        wait_for_answers(service)
        with monkeypatch.context() as patch:
            if what in ("pwrite", "fdatasync"):
                patch.setattr(os, what, fail)
            elif what == "record":
                patch.setattr(Database, "record", full_database)
            else:  # the log fails after the database, which then cannot be cleaned up at once
                patch.setattr(os, "fdatasync", fail)
                patch.setattr(Database, "forget_after", full_database)
            for at in (3, 3):
                future = service.submit(
                    batches[at], batch_id=f"b{at}", offset=Offset("t", 0, at, at)
                )
                with pytest.raises(Refused, match="the disk is full") as caught:
                    future.result(30)
                assert caught.value.status == 507
            assert service.status()["read_only"]
            assert service.lookup([0])["results"][0]["label"] == "group 0"
            assert service.status()["edges"] == 1500
        assert service.next_offsets("t") == {0: 3} or what == "forget_after"
        for at in range(6):
            receipt = service.submit(
                batches[at], batch_id=f"b{at}", offset=Offset("t", 0, at, at)
            ).result(30)
            assert receipt.repeated == (at < 3)
        assert not service.status()["read_only"]
        assert service.status()["problems"] == []
        assert service.next_offsets("t") == {0: 6}
        wait_for_answers(service)
    log = EdgeLog(tmp_path / "s" / "log")
    weights = np.concatenate([batch.w for batch in log])
    np.testing.assert_array_equal(weights, EDGES[2])


def test_labels_on_a_full_disk(tmp_path, monkeypatch):
    with serving(tmp_path / "s") as service:
        monkeypatch.setattr(Database, "put_labels", full_database)
        with pytest.raises(Refused, match="the disk is full, so nothing was stored"):
            service.put_labels([LabelRow(1, "a")])
        assert service.given_labels()["labels"] == []


def test_answers_are_shown_although_they_cannot_be_stored(tmp_path, monkeypatch):
    with serving(tmp_path / "s") as service:
        with monkeypatch.context() as patch:
            patch.setattr(Database, "add_changes", full_database)
            for batch in cut(EDGES, 500):
                service.submit(batch).result(30)
            service.put_labels(three_labels())
            wait_for_answers(service)
            assert service.lookup([4])["results"][0]["label"] == "group 1"
            assert service.problems == [
                "answers are not stored, because the disk is full or has failed"
            ]
            found = service.changes(0)
            assert (found["changes"], found["next"], found["complete"]) == ([], 0, True)
        service.put_labels([LabelRow(59, "group 2")])
        wait_for_answers(service)
        found = service.changes(0)  # also those that could not be stored before
        assert {one["node"] for one in found["changes"]} == set(range(60))
        assert service.problems == []


def test_batches_beside_one_that_finds_damage_are_not_stored_in_secret(tmp_path, monkeypatch):
    batches = list(cut(EDGES, 500))

    def find_damage(*_, **__):
        raise LogError("edges-1.arrows, byte 7: damaged")

    with serving(tmp_path / "s") as service:
        service.submit(batches[0]).result(30)
        with monkeypatch.context() as patch:
            patch.setattr(EdgeLog, "remove", find_damage)
            with service._log._lock:  # so that the three are written together
                first = service.submit(batches[1], batch_id="b1")
                wait_for(lambda: not service._intake._queue)
                others = [
                    service.submit(batches[2], batch_id="b2"),
                    service.submit(batches[2], is_removal=True),
                ]
            assert first.result(30).n_edges == 500
            for future in others:
                with pytest.raises(Refused, match="the service failed: LogError"):
                    future.result(30)
        assert not service.submit(batches[2], batch_id="b2").result(30).repeated
        assert service.status()["edges"] == 1500
    log = EdgeLog(tmp_path / "s" / "log")
    np.testing.assert_array_equal(np.concatenate([batch.w for batch in log]), EDGES[2][:1500])


def fail_once(monkeypatch, target, name, error=FULL):
    """Let the next call of a method fail."""
    right = getattr(target, name)

    def fail(*arguments, **options):
        monkeypatch.setattr(target, name, right)
        raise error

    monkeypatch.setattr(target, name, fail)


@pytest.mark.parametrize(
    ("target", "name"),
    [(SparsifierInStep, "take"), (SparsifierInStep, "apply"), (SparsifierInStep, "save"),
     (StreamingSparsifier, "add")],
)  # fmt: skip
def test_a_sampler_that_fails_is_loaded_again(tmp_path, monkeypatch, target, name):
    monkeypatch.setattr("ohmlearn.serve.service_threads.Sampler.retry_seconds", 0.05)
    batches = list(cut(EDGES, 500))
    with serving(tmp_path / "s", checkpoint_seconds=0.0) as service:
        service.put_labels(three_labels())
        for batch in batches[:2]:
            service.submit(batch).result(30)
        wait_for_answers(service)
        fail_once(monkeypatch, target, name)
        for batch in batches[2:]:
            service.submit(batch).result(30)
        wait_for_answers(service)
        wait_for(lambda: service.problems == [])
        assert service.envelope()["watermark"]["edges"] == 3000
    log = EdgeLog(tmp_path / "s" / "log")
    assert log.sparsifier.n_edges_seen_ == 3000
    plain = StreamingSparsifier(epsilon=0.8, random_state=0)
    plain.update(log.nodes.find(EDGES[0]), log.nodes.find(EDGES[1]), EDGES[2])
    for mine, theirs in zip(log.snapshot().edges(), plain.snapshot().edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_rebuild_that_fails_is_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.service_threads.Sampler.retry_seconds", 0.05)
    u, v, *_ = EDGES
    with serving(tmp_path / "s") as service:
        service.put_labels(three_labels()[:7])
        for batch in cut(EDGES, 500):
            service.submit(batch).result(30)
        wait_for_answers(service)
        fail_once(monkeypatch, Store, "write_manifest")
        gone = (u == 7) | (v == 7)
        service.submit(RawBatch(u[gone], v[gone]), is_removal=True).result(30)
        wait_for(lambda: service._log._in_step and service._log._in_step.generation == 1)
        wait_for_answers(service)
        wait_for(lambda: service.problems == [])
        assert not service.lookup([7])["results"][0]["reached"]


def test_pruning_that_fails_refuses_no_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.edge_intake.PRUNE_EVERY", 1)
    monkeypatch.setattr(Database, "prune", full_database)
    with serving(tmp_path / "s") as service:
        for at, batch in enumerate(cut(EDGES, 500)):
            assert service.submit(batch, batch_id=f"b{at}").result(30).n_edges == 500
        assert service.status()["edges"] == 3000


def test_a_flush_that_fails_and_cannot_be_undone_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.service_threads.Sampler.retry_seconds", 0.1)
    batches = list(cut(EDGES, 500))
    with serving(tmp_path / "s") as service:
        service.submit(batches[0], batch_id="b0").result(30)
        with monkeypatch.context() as patch:
            fail_once(patch, os, "fdatasync", OSError(errno.EMFILE, "Too many open files"))
            fail_once(patch, Store, "journal_entries", OSError(errno.EMFILE, "Too many open files"))
            failed = service.submit(batches[1], batch_id="b1")
            with pytest.raises(Refused, match="nothing was stored"):
                failed.result(30)
        for at, batch in enumerate(batches):
            receipt = service.submit(batch, batch_id=f"b{at}").result(30)
            assert receipt.repeated == (at == 0)
        wait_for(lambda: service._follower.n_updates == 3000)
    log = EdgeLog(tmp_path / "s" / "log")
    np.testing.assert_array_equal(np.concatenate([batch.w for batch in log]), EDGES[2])
    assert log.sparsifier.n_edges_seen_ == 3000


def test_a_compaction_that_fails_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.service.MANY_RECORDS", 0)
    batches = list(cut(EDGES, 100))
    with serving(tmp_path / "s") as service:
        for batch in batches[:20]:
            service.submit(batch).result(30)
        fail_once(monkeypatch, Compaction, "_rewrite")
        service._compact()
        for batch in batches[20:]:
            service.submit(batch).result(30)
    with serving(tmp_path / "s") as service:
        assert service.status()["edges"] == 3000


def test_messages_name_no_paths(tmp_path, monkeypatch):
    with serving(tmp_path / "s") as service:
        for batch in cut(EDGES, 500):
            service.submit(batch).result(30)
        fail_once(monkeypatch, ClassProblem, "solve", LogError("/srv/x, byte 7: damaged"))
        service.put_labels(three_labels())
        wait_for(lambda: service.problems)
        assert service.problems == ["computing answers failed: LogError; it is tried again"]


def test_removals_before_a_crash_count_after_it(tmp_path):
    u = np.concatenate([np.repeat(np.arange(30), 29), np.repeat(np.arange(30, 60), 29)])
    v = np.concatenate([np.delete(np.arange(30), i) for i in range(30)])
    v = np.concatenate([v, v + 30])
    bridge = RawBatch(np.arange(30), np.arange(30, 60))
    with serving(tmp_path / "s") as service:
        service.put_labels([LabelRow(0, "a"), LabelRow(1, "b")])
        service.submit(RawBatch(u, v)).result(30)
        service.submit(bridge).result(30)
    with serving(tmp_path / "s") as service:
        service.submit(bridge, is_removal=True).result(30)
        wait_for(lambda: not service.lookup([45])["results"][0]["reached"])
        wait_for(lambda: service._follower._is_stale is False)
        shutil.copytree(tmp_path / "s", tmp_path / "crashed")  # nothing is being written
    with serving(tmp_path / "crashed") as service:
        wait_for(lambda: service._follower._is_stale is False)
        wait_for_answers(service)
        assert service.envelope()["staleness"] == 0.0
        assert not service.lookup([45])["results"][0]["reached"]


@pytest.mark.parametrize("option", [{"half_life": "1s"}, {"window": "1min"}])
def test_times_that_are_years_apart(tmp_path, option):
    old = RawBatch(np.array([1, 2, 3]), np.array([2, 3, 4]), t=np.array([0.0, 1e3, -1e9]))
    new = RawBatch(np.array([1, 2, 3]), np.array([2, 3, 5]), t=np.full(3, 1.7e9))
    for number in range(3):
        with serving(tmp_path / "s", **option) as service:
            service.put_labels([LabelRow(1, "a")])
            for batch in (old, new):
                service.submit(batch).result(30)
            if number == 1:
                service.submit(old, is_removal=True).result(30)
            if number == 2:
                service._expire()
            wait_for_answers(service)
            assert service.problems == []
            assert service.lookup([5])["results"][0]["reached"]
            assert not service.lookup([4])["results"][0]["reached"]
            ancient = service.submit(old._replace(t=np.array([0.0, 0.0, -1e18])))
            with pytest.raises(
                ValueError, match=r"edge 3 of the batch: the time is -10{18}, which is before"
            ):
                ancient.result(30)


def test_a_checkpoint_that_fails_keeps_the_sparsifier(tmp_path, monkeypatch):
    with serving(tmp_path / "s", checkpoint_seconds=0.0) as service:
        service.put_labels(three_labels())
        loaded = service._log._in_step
        with monkeypatch.context() as patch:
            patch.setattr(SparsifierInStep, "save", lambda _: (_ for _ in ()).throw(FULL))
            for batch in cut(EDGES, 500):
                service.submit(batch).result(30)
            wait_for(lambda: service.problems)
            assert service.problems == [
                "the sparsifier is not saved, because the disk is full or has failed"
            ]
            wait_for_answers(service)
        wait_for(lambda: service.problems == [])
        assert service._log._in_step is loaded


def test_a_stop_on_a_full_disk_says_what_is_lost(tmp_path, monkeypatch, caplog):
    logger = logging.getLogger("ohmlearn.serve.service")
    # Another server of this process may still keep logs from the root, or all loggers quiet.
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    monkeypatch.setattr(logger, "disabled", False)
    caplog.set_level(logging.WARNING, logger=logger.name)
    with serving(tmp_path / "s") as service:
        for batch in cut(EDGES, 500):
            service.submit(batch).result(30)
        fail_once(monkeypatch, SparsifierInStep, "save")
        service.stop()
    assert "all edges that were acknowledged are safe" in caplog.text
    with serving(tmp_path / "s") as service:
        assert service.status()["edges"] == 3000


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(PermissionError) as found:
        Database(tmp_path / "none" / "service.sqlite")
    assert found.value.filename == str(tmp_path / "none" / "service.sqlite")
    path = tmp_path / "service.sqlite"
    with closing(Database(path)) as database:
        database.keep_column("event_id", "number")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "access", lambda *_: False)  # as on a read-only disk
    with closing(Database(path, is_read_only=True)) as database:
        assert database.check() == "ok"
        assert sorted(tmp_path.iterdir()) == before  # SQLite made no files
        database.copy_to(tmp_path / "copy.sqlite", lambda: None)
    with closing(Database(tmp_path / "copy.sqlite")) as copy:
        assert copy.keep_column("event_id", None) == "number"
