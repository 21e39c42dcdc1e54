"""Ids of events on the server: each event counts once, whatever batch or message it comes in."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("starlette")

from serve_cases import serving
from serve_http import serve
from serve_killed import EVENTS, SCRIPT, events_of

from ohmlearn import EdgeLog
from ohmlearn.client import Client
from ohmlearn.reading import event_ids
from ohmlearn.reading.event_ids import hash_values
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve import database
from ohmlearn.serve.kafka_messages import Message, decode_messages
from ohmlearn.serve.service import Offset, Refused

CSV, NDJSON = {"Content-Type": "text/csv"}, {"Content-Type": "application/x-ndjson"}


def batch_of(events, first=0):
    """Return an edge for each event; its weight tells the event."""
    n = len(events)
    u = np.arange(first, first + n)
    return RawBatch(u, u + 1, np.array(events) + 1.0, event=hash_values(list(events)))


def weights_of(folder):
    return np.concatenate([batch.w for batch in EdgeLog(folder / "log")]).tolist()


def test_an_event_counts_once_in_every_form_and_after_a_restart(tmp_path):
    folder = tmp_path / "s"
    with serving(folder, event_id="id") as service, serve(service) as client:
        first = client.ask("POST", "/v1/edges", b"id,u,v\n1,1,2\n2,2,3\n1,1,2\n", CSV).json
        assert (first["n_edges"], first["n_repeated"], first["repeated"]) == (2, 1, False)
        rows = [{"u": 2, "v": 3, "id": 2}, {"u": 3, "v": 4, "id": "3"}]
        body = "\n".join(map(json.dumps, rows)).encode()
        second = client.ask("POST", "/v1/edges?batch_id=b", body, NDJSON).json
        assert (second["n_edges"], second["n_repeated"]) == (1, 1)
        again = client.ask("POST", "/v1/edges?batch_id=b", body, NDJSON).json
        assert again == {**second, "repeated": True}
        with Client(f"http://127.0.0.1:{client.port}") as sender:
            receipt = sender.send([3, 4], [4, 5], event_id=[3, 4])
        assert (receipt["n_edges"], receipt["n_repeated"]) == (1, 1)
        missing = client.ask("POST", "/v1/edges", b"u,v\n1,2\n", CSV)
        assert (missing.status, "the column id" in missing.message) == (400, True)
        empty = client.ask("POST", "/v1/edges?on_bad=skip", b"u,v,id\n1,2,\n1,2,9\n", CSV).json
        assert (empty["n_edges"], empty["n_bad"]) == (1, 1)
        pairs = client.ask("POST", "/v1/removals", b"u,v\n1,2\n", CSV).json  # need no ids
        assert pairs["n_removed"] == 2
        assert client.get("/v1/status").json["repeated_events"] == 3
        assert b"ohmlearn_repeated_events_total 3.0" in client.get("/metrics").body
    with serving(folder) as service, serve(service) as client:  # the folder has the name
        found = client.ask("POST", "/v1/edges", b"id,u,v\n4,4,5\n5,5,6\n", CSV).json
        assert (found["n_edges"], found["n_repeated"]) == (1, 1)
    with (
        pytest.raises(ValueError, match=r"event_id = 'id', got 'key'"),
        serving(folder, event_id="key"),
    ):
        pass


def test_without_the_option_the_column_is_ignored_and_it_may_come_later(tmp_path):
    folder = tmp_path / "s"
    with serving(folder) as service:
        assert service.event_id is None
        with service._database._change() as connection:  # as an earlier version left it
            connection.execute("DROP TABLE events")
            connection.execute("PRAGMA user_version = 1")
    with serving(folder, event_id="id") as service:
        receipts = [service.submit(batch_of([1, 2, 1])).result(30) for _ in range(2)]
    assert [(x.n_edges, x.n_repeated) for x in receipts] == [(2, 1), (0, 3)]


def test_rows_that_do_not_count_are_not_remembered(tmp_path, monkeypatch):
    """Neither bad ones, nor those of batches that were refused or could not be stored."""
    with serving(tmp_path / "s", event_id="id", half_life="1h") as service:
        late = batch_of([1, 2])._replace(t=np.array([0.0, 1e11]))
        with pytest.raises(ValueError, match="ahead of the clock"):
            service.submit(late).result(30)
        assert service.submit(late, skip_bad=True).result(30).n_edges == 1
        assert service.submit(batch_of([1, 2])).result(30).n_edges == 1  # 2 was bad before

        def fail(*_):
            raise OSError(28, "full")

        with monkeypatch.context() as patched:
            patched.setattr(service._database, "record", fail)
            with pytest.raises(Refused):
                service.submit(batch_of([3, 4])).result(30)
        append = service._log.append

        def fail_once(*arguments, **options):
            monkeypatch.setattr(service._log, "append", append)
            raise TypeError("ids of another kind")

        with service._log._lock:  # so that the three are written together
            futures = [service.submit(batch_of([3, 5]))]
            monkeypatch.setattr(service._log, "append", fail_once)
            futures += [service.submit(batch_of(x)) for x in ([5, 6], [6, 3, 7])]
        found = []
        for future in futures:
            try:
                found.append(future.result(30).n_edges)
            except Refused:
                found.append(None)
        assert None in found
    counted = weights_of(tmp_path / "s")
    assert len(counted) == len(set(counted))


def test_messages_of_kafka(tmp_path):
    """Events count once across messages, partitions and HTTP; one without an id is bad."""
    values = [b'{"u": 1, "v": 2, "id": 1}', b'{"u": 2, "v": 3, "id": 2}', b'{"u": 2, "v": 3}']
    messages = [Message(at, 100.0 + at, value) for at, value in enumerate(values)]
    decoded, bad = decode_messages(messages, "json", "int64", "id")
    assert decoded.u.tolist() == [1, 2]
    assert [message.offset for message, _ in bad] == [2]
    with serving(tmp_path / "s", event_id="id") as service:
        first = service.submit(decoded, offset=Offset("t", 0, 2)).result(30)
        other = service.submit(decoded, offset=Offset("t", 1, 9)).result(30)
        mixed = service.submit(batch_of([2, 3])).result(30)
        assert [x.n_edges for x in (first, other, mixed)] == [2, 0, 1]
        assert service.next_offsets("t") == {0: 3, 1: 10}


def test_the_last_ids_are_remembered_and_no_others(tmp_path, monkeypatch):
    for module in (event_ids, database):
        monkeypatch.setattr(module, "MOST", 100)
    rng, known, order = np.random.default_rng(0), set(), []
    for _ in range(4):
        with serving(tmp_path / "s", event_id="id") as service:
            for _ in range(15):
                events = rng.integers(0, 260, 20).tolist()
                n_new = 0
                for event in events:
                    if event not in known:
                        n_new += 1
                        known.add(event)
                        order.append(event)
                        if len(order) > 100:
                            known.discard(order.pop(0))
                assert service.submit(batch_of(events)).result(30).n_edges == n_new
            n_stored = len(service._database.events())
            assert 100 <= n_stored <= 140  # at most the last batch and a part of one are more


@pytest.mark.slow
def test_killed_at_random(tmp_path):
    """Batches that overlap are sent without ids of batches, and killed at any moment."""
    kills = 60 if os.environ.get("OHMLEARN_LONG") else 5
    rng, folder, first = np.random.default_rng(1), tmp_path / "s", 0
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(SCRIPT), str(folder), EVENTS], **pipes) as server:
        for _ in range(kills):
            print(first, rng.integers(300_000), file=server.stdin, flush=True)
            said = [int(number) for number in server.stdout.readline().split()]
            first = max(0, max(said) - 20)  # these come again, and their events with them
        server.stdin.close()
        assert server.wait() == 0
    counted = (np.array(weights_of(folder)) - 1).astype(int)
    assert len(counted) == len(set(counted.tolist()))  # no event counts twice
    expected = {int(event) for number in range(max(said) + 1) for event in events_of(number)}
    assert expected <= set(counted.tolist())  # and none that was acknowledged is lost
