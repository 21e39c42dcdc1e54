"""What one wrong edge, one wrong label or a restored copy must not do to the rest."""

import math
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest
from serve_cases import make_edges, serving, three_labels, wait_for, wait_for_answers
from serve_http import serve

from ohmlearn import EdgeLog
from ohmlearn.client import Client
from ohmlearn.edge_log.manifest import Manifest
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve import label_thread, service_folder
from ohmlearn.serve.answer_store import Answers
from ohmlearn.serve.database import Database
from ohmlearn.serve.service import LabelRow, Refused, Service
from ohmlearn.serve.service_folder import backup
from ohmlearn.serve.settings import Settings

U, V, W, _ = make_edges(2000)


def send(service, t=None, part=slice(None)):
    batch = RawBatch(U[part], V[part], W[part], t=t)
    return service.submit(batch).result(30)


def one_edge(t):
    return RawBatch(np.array([0, 100]), np.array([3, 103]), t=np.array([time.time() - 5.0, t]))


def labels_of(service):
    return [row["label"] for row in service.lookup(list(range(60)))["results"]]


# Edges from the near future.


@pytest.mark.parametrize(
    ("memory", "ahead"), [({"window": "1h"}, 3500.0), ({"half_life": "5min"}, 290.0)]
)
def test_an_edge_ahead_of_the_clock_makes_no_other_old(tmp_path, memory, ahead):
    """Before, the first edge of a client with a wrong clock took the labels of all nodes away."""
    with serving(tmp_path / "s", **memory) as service:
        service.put_labels(three_labels())
        send(service, np.full(2000, time.time() - 200.0))
        wait_for_answers(service)
        before = labels_of(service)
        assert None not in before
        assert service.problems == []
        assert service.submit(one_edge(time.time() + ahead)).result(30).n_edges == 2
        service._expire()
        wait_for_answers(service)
        assert labels_of(service) == before
        status = service.status()
        assert status["edges"] == 2002
        assert status["answers"]["watermark"]["time"] <= time.time()
        assert (status["edges_ahead"], status["refused_ahead"]) == (1, 0)
        (problem,) = status["problems"]
        assert "1 count as of their arrival, and 0 were refused" in problem
        assert service.metrics()["edges_ahead_total"][0] == 1


def test_an_edge_that_is_ahead_by_more_than_the_memory_is_refused(tmp_path):
    with serving(tmp_path / "s", window="1h") as service, serve(service) as client:
        send(service, np.full(2000, time.time()))
        body = f"u,v,time\n0,3,{time.time() - 5}\n0,3,{time.time() + 23 * 3600}\n".encode()
        kind = {"Content-Type": "text/csv"}
        refused = client.ask("POST", "/v1/edges", body, kind)
        assert refused.status == 400
        assert refused.message.startswith("edge 2 of the batch: ")
        assert "s ahead of the clock of the server, but at most 3600 s" in refused.message
        taken = client.ask("POST", "/v1/edges?on_bad=skip", body, kind).json
        assert (taken["n_edges"], taken["n_bad"]) == (1, 1)
        assert "ahead of the clock" in taken["first_bad"]
        status = service.status()
        assert (status["edges"], status["refused_ahead"]) == (2001, 2)
        assert "2 were refused" in status["problems"][0]


def test_a_window_that_starts_again_without_an_edge(tmp_path):
    for _ in range(2):
        with serving(tmp_path / "s", window="1h") as service:
            service.put_labels(three_labels())
            wait_for_answers(service)
            assert service.problems == []


def test_without_a_memory_times_stay_as_they_are(tmp_path):
    t = math.floor(time.time()) + 3600.0
    with serving(tmp_path / "s") as service:
        service.submit(one_edge(t)).result(30)
        assert service.status()["edges_ahead"] == 0
    assert max(batch.t.max() for batch in EdgeLog(tmp_path / "s" / "log")) == t


# Labels.


def test_a_label_that_cannot_be_used_stops_no_other(tmp_path):
    """Also one that an earlier version has stored."""
    with serving(tmp_path / "s") as service:
        service.put_labels([*three_labels()[1:], LabelRow(0, "group 0", 1e-101)])
        send(service)
        wait_for_answers(service)
        assert labels_of(service)[3:6] == ["group 0", "group 1", "group 2"]
        (problem,) = service.problems
        assert "1 labels are not used" in problem
        assert "node 0 is 1e-101" in problem
        assert not service.answers_fail
        service.put_labels([LabelRow(0, "group 0", 1e-50)])
        wait_for_answers(service)
        assert service.problems == []


@pytest.mark.parametrize("weight", [1e-50, 1e6])
@pytest.mark.parametrize("scale", [1e-20, 1e26])
def test_every_weight_that_is_accepted_can_be_solved(tmp_path, weight, scale):
    with serving(tmp_path / "s") as service:
        service.put_labels([row._replace(weight=weight) for row in three_labels()])
        service.submit(RawBatch(U, V, W * scale)).result(30)
        wait_for_answers(service)
        assert service.problems == []
        assert None not in labels_of(service)


def test_readiness_tells_when_answers_always_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(label_thread.Labeller, "retry_seconds", 0.01)
    with serving(tmp_path / "s") as service, serve(service) as client:
        assert client.get("/readyz").status == 200
        monkeypatch.setattr(service._labeller, "_solve", lambda moment: 1 / 0)
        send(service)
        wait_for(lambda: client.get("/readyz").status == 503)
        assert "new answers fail; /v1/status says why" in client.get("/readyz").message
        assert service.problems == [
            "computing answers failed: ZeroDivisionError; it is tried again"
        ]
        assert send(service).n_edges == 2000  # edges are still taken
        monkeypatch.undo()
        service.put_labels(three_labels())
        wait_for(lambda: client.get("/readyz").status == 200)


def test_a_node_has_one_label_whichever_form_its_id_has(tmp_path):
    with serving(tmp_path / "s") as service:
        assert service.put_labels([LabelRow(5, "x"), LabelRow("5", "y"), LabelRow(6, "z")]) == 2
        found = service.given_labels()["labels"]
        assert [(row["node"], row["label"]) for row in found] == [("5", "y"), (6, "z")]
        send(service)
        wait_for_answers(service)
        assert labels_of(service)[5:7] == ["y", "z"]
        assert service.delete_labels([5]) == 1


# How far behind.


def test_edges_that_are_not_reflected_are_counted_not_subtracted(tmp_path, monkeypatch):
    """As many removals as new edges leave the number of edges as it was."""
    with serving(tmp_path / "s", max_lag_edges=1500) as service:
        send(service, part=slice(0, 1000))
        wait_for_answers(service)
        wait_for(lambda: service.envelope()["lag_edges"] == 0)
        monkeypatch.setattr(service._follower, "catch_up", lambda: False)
        pairs = {(min(u, v), max(u, v)) for u, v in zip(U[:1000], V[:1000], strict=True)}
        gone = RawBatch(*np.array(sorted(pairs)).T)
        assert service.submit(gone, is_removal=True).result(30).n_removed == 1000
        send(service, part=slice(1000, 2000))
        assert service.status()["edges"] == 1000
        assert service.status()["unsampled_edges"] == 2000
        assert service.envelope()["lag_edges"] == 2000
        with pytest.raises(Refused, match="the sampler is too far behind"):
            send(service)
        monkeypatch.undo()
        wait_for(lambda: service.envelope()["lag_edges"] == 0)
        assert service.status()["unsampled_edges"] == 0
    with EdgeLog(tmp_path / "s" / "log") as log:
        log.append([1], [2], t=[1.7e9])
        log.remove([1], [2])
    service = Service(tmp_path / "s", Settings(certify_every=None))
    assert service.envelope()["lag_edges"] > 0  # of the answers that were saved
    service.stop()


# Copies.


def test_after_a_restore_followers_are_told_to_start_over(tmp_path):
    with serving(tmp_path / "s") as service:
        send(service)
        service.put_labels(three_labels())
        wait_for_answers(service)
        copied = service.envelope()["changes_next"]
        backup(tmp_path / "s", tmp_path / "copy")
        service.put_labels([LabelRow(n, "later") for n in range(0, 60, 3)])
        wait_for_answers(service)
        lost = service.envelope()["changes_next"]
        assert lost == copied + 20
    with serving(tmp_path / "copy") as service:
        with pytest.raises(Refused, match=r"given out after the copy was made .* start over"):
            service.changes(lost)
        service.put_labels([LabelRow(n, "other") for n in range(1, 60, 3)])
        found = wait_for(lambda: service.changes(copied)["changes"])
        assert {one["after"] for one in found} == {"other"}
        assert len(service.changes(0)["changes"]) == copied + 20
        for since in (copied + 1, lost):  # numbers that the copy has never given out
            with pytest.raises(Refused):
                service.changes(since)
        with serve(service) as client:
            assert client.get(f"/v1/changes?since={lost}").status == 410
        following = service.envelope()["changes_next"]
    with serving(tmp_path / "copy") as service:  # a plain restart goes on
        assert service.changes(following)["changes"] == []
        assert len(service.changes(copied)["changes"]) == 20


def test_a_copy_without_changes_has_numbers_of_its_own(tmp_path):
    with serving(tmp_path / "s") as service:
        send(service)
        wait_for_answers(service)
        backup(tmp_path / "s", tmp_path / "copy")
        service.put_labels(three_labels())
        wait_for_answers(service)
        lost = service.envelope()["changes_next"]
    with serving(tmp_path / "copy") as service:
        service.put_labels(three_labels())
        wait_for(lambda: len(service.changes(0)["changes"]) == 60)
        with pytest.raises(Refused):
            service.changes(lost)


def test_the_answers_of_a_backup_belong_to_its_changes(tmp_path, monkeypatch):
    """An answer that comes while the copy is made is in neither."""
    path, copy_to = tmp_path / "s", Database.copy_to
    with serving(path) as service:
        send(service)
        service.put_labels(three_labels())
        wait_for_answers(service)
        answers = service._labeller.answers
    later = replace(answers, version=99, changes_end=answers.changes_end + 1)

    def copy_and_answer(self, *arguments):
        copy_to(self, *arguments)
        later.save(path / "answers.ohm")

    monkeypatch.setattr(Database, "copy_to", copy_and_answer)
    backup(path, tmp_path / "copy")
    assert Answers.load(tmp_path / "copy" / "answers.ohm").version == answers.version
    # A copy of an earlier version, whose answers are ahead: they are computed again.
    shutil.copyfile(path / "answers.ohm", tmp_path / "copy" / "answers.ohm")
    with serving(tmp_path / "copy") as service:
        wait_for_answers(service)
        assert len(wait_for(lambda: service.changes(answers.changes_end)["changes"])) == 60


@pytest.mark.parametrize("moment", ["journal-000001.log", "edges-000001.arrows", "the second look"])
def test_a_backup_during_which_the_log_is_compacted_starts_over(tmp_path, monkeypatch, moment):
    path, copyfile, read = tmp_path / "s", shutil.copyfile, Manifest.read
    with serving(path) as service:
        send(service)
        gone = RawBatch(U[:500], V[:500])
        assert service.submit(gone, is_removal=True).result(30).n_removed > 0
        service.put_labels(three_labels())
    looks, done = [], []

    def compact_at(now):
        if now == moment and not done:
            done.append(now)
            with EdgeLog(path / "log") as log:
                log.compact()  # deletes the files of edges and of removed rows

    def copy(source, target):
        copyfile(source, target)
        compact_at(source.name)

    def look(folder):
        looks.append(folder)
        found = read(folder)
        compact_at("the second look" if len(looks) == 2 else None)
        return found

    monkeypatch.setattr(shutil, "copyfile", copy)
    monkeypatch.setattr(service_folder.Manifest, "read", look)
    facts = backup(path, tmp_path / "copy")
    monkeypatch.undo()
    assert done == [moment]
    with EdgeLog(path / "log") as log:
        assert facts["n_edges"] == log.n_edges
    assert facts["n_labels"] == 9


# Suggestions.


def test_suggestions_are_those_of_the_answer_that_they_name(tmp_path):
    """After the last label is deleted, they are those of a graph that never had one."""
    with serving(tmp_path / "s") as service, serve(service) as server:
        send(service)
        wait_for(lambda: service.status()["suggestions_version"] > 0)
        first = [one["reason"] for one in service.suggestions()["suggestions"]]
        assert first[0] == "covers a component of 60 nodes without a label"
        service.put_labels(three_labels())
        wait_for_answers(service)
        version = service.envelope()["version"]
        wait_for(lambda: service.status()["suggestions_version"] == version)
        wait_for(lambda: service.status()["map_version"] == version)
        assert not any("covers" in one["reason"] for one in service.suggestions()["suggestions"])
        with Client(f"http://127.0.0.1:{server.port}") as client:
            assert {one["of_version"] for one in client.suggest()} == {version}
        service.delete_labels(list(range(9)))
        wait_for_answers(service)
        wait_for(lambda: service.status()["suggestions_version"] > version)
        assert [one["reason"] for one in service.suggestions()["suggestions"]] == first
