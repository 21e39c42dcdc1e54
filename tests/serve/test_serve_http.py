"""Requests and their answers, with the real service in a folder."""

import asyncio
import gzip
import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")

import pyarrow as pa
import pyarrow.parquet
from serve_cases import serving
from serve_http import CSV, REQUESTS, StandIn, serve, wait_for

from ohmlearn.edge_log import LogError
from ohmlearn.errors import InputError, Param, Place, Setting
from ohmlearn.serve import http_endpoints
from ohmlearn.serve.http_replies import LimitedStream, StreamLimit, in_threads
from ohmlearn.serve.http_table import FORMS, describe
from ohmlearn.serve.serve_errors import Refused

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
NDJSON = {"Content-Type": "application/x-ndjson"}
# Two triangles and a bridge; their names are as awkward as ids may be.
TRIANGLES = ["a/b", "b c", "ü", "<b>", "d?e=1", "%41"]
EDGES = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A service with two triangles, of which one node each has a label."""
    folder = tmp_path_factory.mktemp("service") / "live"
    with serving(folder, every_seconds=0.05) as service, serve(service) as client:
        rows = [{"u": TRIANGLES[u], "v": TRIANGLES[v]} for u, v in EDGES]
        body = "\n".join(map(json.dumps, rows)).encode()
        assert client.ask("POST", "/v1/edges", body, NDJSON).json["n_edges"] == 7
        labels = [{"node": TRIANGLES[0], "label": "x"}, {"node": TRIANGLES[5], "label": 7}]
        assert client.post_json("/v1/labels", {"labels": labels}).json["n_labels"] == 2
        wait_for(lambda: client.get("/v1/labels/ü".replace("ü", quote("ü"))).json["label"])
        yield client


@pytest.fixture
def fresh(tmp_path):
    with serving(tmp_path / "live", every_seconds=0.05) as service, serve(service) as client:
        yield client


@pytest.fixture(scope="module")
def server_of_stand_in():
    service = StandIn()
    with serve(service) as client:
        client.service = service
        yield client


@pytest.fixture
def local(server_of_stand_in):
    """A service that does nothing, as if it were new."""
    vars(server_of_stand_in.service).clear()
    server_of_stand_in.service.__init__()
    return server_of_stand_in


def n_edges(client):
    return client.get("/v1/status").json["edges"]


# Edges.


def test_edges_in_every_form(fresh):
    table = pa.table({"u": ["a", "b"], "v": ["b", "c"], "weight": [1.0, 2.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    bodies = {
        "ndjson": b'{"u": "a", "v": "b", "weight": 1}\n{"u": "b", "v": "c", "weight": 2}\n',
        "csv": b"u,v,weight\na,b,1\nb,c,2\n",
        "arrow": sink.getvalue(),
    }
    expected = {"n_edges": 2, "n_repeated": 0, "n_bad": 0, "first_bad": None, "repeated": False}
    n_batches = 0
    for kind, form in FORMS.items():
        for packed in (False, True):
            body = gzip.compress(bodies[form]) if packed else bodies[form]
            headers = {"Content-Type": kind, **({"Content-Encoding": "gzip"} if packed else {})}
            n_batches += 1
            answer = fresh.ask("POST", "/v1/edges", body, headers)
            assert answer.status == 200, answer
            assert answer.json == {**expected, "operation": n_batches}
    assert n_edges(fresh) == 2 * n_batches


def test_a_repeated_batch_counts_once(fresh):
    first = fresh.post_csv("/v1/edges?batch_id=b%201", "u,v\n1,2\n").json
    assert not first["repeated"]
    again = fresh.post_csv("/v1/edges", "u,v\n1,2\n", **{"Idempotency-Key": "b 1"}).json
    assert again == {**first, "repeated": True}
    both = fresh.post_csv("/v1/edges?batch_id=b%201", "u,v\n1,2\n", **{"Idempotency-Key": "b 1"})
    assert both.json["repeated"]
    assert n_edges(fresh) == 1


def test_a_batch_that_many_clients_send_counts_once(fresh):
    """Also while the first of them is being written."""
    body = "u,v\n" + "1,2\n" * 1000

    def send(_):
        return fresh.post_csv("/v1/edges?batch_id=same", body).json

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(send, range(16)))
    assert [receipt["repeated"] for receipt in receipts].count(False) == 1
    assert {receipt["operation"] for receipt in receipts} == {1}
    assert n_edges(fresh) == 1000


def test_a_bad_row_refuses_the_batch_or_is_skipped(fresh):
    body = "u,v,weight\n1,2,1\n1,3,-1\n1,4,x\n"
    answer = fresh.post_csv("/v1/edges", body)
    assert (answer.status, answer.json["error"]["row"]) == (400, 3)  # lines, as in a file
    assert answer.message.startswith("row 3: ")
    assert n_edges(fresh) == 0
    answer = fresh.post_csv("/v1/edges?on_bad=skip", body).json
    assert (answer["n_edges"], answer["n_bad"]) == (1, 2)
    assert answer["first_bad"].startswith("row 3: ")
    assert n_edges(fresh) == 1


@pytest.mark.parametrize(
    ("path", "headers", "status", "message"),
    [
        ("", {"Content-Type": "text/xml"}, 415, "application/x-ndjson, application/json, text/csv"),
        ("", {"Content-Type": ""}, 415, "set the header Content-Type"),
        ("", {"Content-Type": "text/csv; charset=latin-1"}, 415, "send UTF-8"),
        ("", {"Content-Type": 'text/csv; charset="UTF-8"'}, 200, ""),
        ("?batchid=1", CSV, 400, "'batchid' is unknown; this knows batch_id, on_bad"),
        ("?batch_id=1&batch_id=1", CSV, 400, "batch_id is given twice"),
        ("?batch_id=", CSV, 400, "1 to 200 printable characters, got ''"),
        ("?batch_id=" + "x" * 201, CSV, 400, "1 to 200 printable characters"),
        ("?batch_id=" + "é" * 200, CSV, 200, ""),
        ("?batch_id=%0a", CSV, 400, "printable characters, got '\\n'"),
        ("?batch_id=%ff", CSV, 400, "the query of the address cannot be read"),
        ("?batch_id=1", {**CSV, "Idempotency-Key": "2"}, 400, "differ; send one of them"),
        ("", {**CSV, "Idempotency-Key": "\xff"}, 400, "Idempotency-Key is not UTF-8"),
        ("?on_bad=Skip", CSV, 400, "on_bad must be raise or skip or refuse, got 'Skip'"),
        ("?" + "&".join(["on_bad=skip"] * 30), CSV, 400, "the query of the address"),
    ],
)
def test_wrong_requests_with_edges(local, path, headers, status, message):
    answer = local.ask("POST", "/v1/edges" + quote(path, "?=&%"), b"u,v\na,b\n", headers)
    assert answer.status == status
    assert message in (answer.body.decode() if status == 200 else answer.message)


# Labels and answers.


def test_one_label_and_many_are_the_same(started):
    nodes = [*TRIANGLES, "nobody", 5]
    many = started.post_json("/v1/labels:lookup", {"nodes": nodes}).json
    assert [row["node"] for row in many["results"]] == [*TRIANGLES, "nobody", "5"]
    assert [row["known"] for row in many["results"]] == [True] * 6 + [False] * 2
    # Each triangle has the label that one of its nodes was given; an integer is a name.
    assert [row["label"] for row in many["results"]] == ["x"] * 3 + ["7"] * 3 + [None] * 2
    assert [row["given"] for row in many["results"]] == [1, 0, 0, 0, 0, 1, 0, 0]
    assert many["watermark"]["edges"] == 7
    assert many["lag_edges"] == 0
    for row in many["results"]:
        one = started.get("/v1/labels/" + quote(str(row["node"]), ""))
        if not row["known"]:
            assert one.status == 404
            assert "is not known" in one.message
            continue
        assert {name: one.json[name] for name in row} == row
        assert one.json["version"] == many["version"]
        assert sum(row["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
    large = started.post_json("/v1/labels:lookup", {"nodes": TRIANGLES * 1000}).json
    assert large["results"] == many["results"][:6] * 1000


def test_export_is_what_lookups_say(started):
    answer = started.get("/v1/export")
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    table = pyarrow.parquet.read_table(io.BytesIO(answer.body)).to_pylist()
    found = started.post_json("/v1/labels:lookup", {"nodes": TRIANGLES}).json["results"]
    for name in ("label", "given"):
        assert {row["node"]: row[name] for row in table} == {
            row["node"]: row[name] for row in found
        }
    assert started.ask("HEAD", "/v1/export").body == b""


def test_changes_are_those_that_were_seen(started):
    found = started.get("/v1/changes?since=0").json
    last = {row["node"]: row["after"] for row in found["changes"]}
    assert last == dict.fromkeys(TRIANGLES[:3], "x") | dict.fromkeys(TRIANGLES[3:], "7")
    assert found["complete"]
    first = started.get("/v1/changes?limit=2").json
    assert not first["complete"]
    second = started.get(f"/v1/changes?since={first['next']}&limit=100").json
    assert first["changes"] + second["changes"] == found["changes"]
    assert started.get(f"/v1/changes?since={found['next']}").json["changes"] == []
    assert {node["id"] for node in started.get("/v1/map").json["nodes"]} <= set(TRIANGLES)


def test_labels_in_csv(fresh):
    """They are read as files of labels are: -1 is no label, and weights may be missing."""
    body = "node,label,trust\nn0,a,0.5\nn1,-1,\nn2,b,\n"
    assert fresh.post_csv("/v1/labels", body).json == {"n_labels": 2, "labels_version": 1}
    found = fresh.get("/v1/labels").json["labels"]
    assert [(row["node"], row["label"], row["weight"]) for row in found] == [
        ("n0", "a", 0.5),
        ("n2", "b", 1.0),
    ]
    for body, row, why in [
        ("node,label,trust\nn0,a,1\nn1,b,-1\n", 3, "row 3: weights must"),
        ("node,label\nn0,a\nn0,b\n", 2, "earlier row"),
        ("source,target\nn0,a\n", None, "ends of edges"),
        ("node,label\n", None, "has no label"),
    ]:
        answer = fresh.post_csv("/v1/labels", body)
        assert (answer.status, answer.json["error"].get("row")) == (400, row)
        assert why in answer.message
        assert answer.message.count("row 3") <= 1
    answer = fresh.ask("POST", "/v1/labels", b"<a>", {"Content-Type": "text/xml"})
    assert (answer.status, answer.message[-47:]) == (
        415,
        "CSV; set Content-Type: application/json or text/csv"[-47:],
    )


PEOPLE = "id,age,city\n" + "".join(f"n{at},{20 + at},{'RB'[at % 2]}\n" for at in range(9))


def wait_for_labels(client):
    def is_done():
        status = client.get("/v1/status").json
        mark = status["answers"]["watermark"]
        return mark["labels_version"] == status["labels_version"] and mark["edges"] and status

    return wait_for(is_done)


def test_features(tmp_path):
    """Nodes without edges are answered from them; they survive a restart, and can be deleted."""
    with serving(tmp_path / "s", every_seconds=0.0) as service, serve(service) as client:
        assert client.post_csv("/v1/features", PEOPLE).json == {"n_nodes": 9, "labels_version": 1}
        rows = [{"node": "n9", "age": None, "city": "B"}, {"node": "n8", "age": 7.5}]
        assert client.post_json("/v1/features", {"features": rows}).json["n_nodes"] == 2
        client.post_csv("/v1/edges", "u,v\nn0,n2\nn2,n4\nn1,n3\nn3,n5\nn2,n3\nx,y\n")
        client.post_csv("/v1/labels", "node,label\nn0,even\nn1,odd\nn4,even\nn5,odd\nno,odd\n")
        status = wait_for_labels(client)
        assert (status["problems"], status["unused_labels"]) == ([], 1)
        assert sum(status["features"].values()) == pytest.approx(1.0)
        nodes = [f"n{at}" for at in range(10)]
        found = client.post_json("/v1/labels:lookup", {"nodes": nodes}).json["results"]
        assert [row["label"] for row in found] == ["even", "odd"] * 5
        why = client.get("/v1/labels/n3/why").json
        assert sum(why["experts"].values()) == pytest.approx(why["margin"], abs=1e-5)
        assert why["text"].startswith('n3 is "odd"')
        assert why["graph"]["labels"]
        assert client.get("/v1/labels/x/why").json["label"] is None
    with serving(tmp_path / "s", every_seconds=0.0) as service, serve(service) as client:
        assert service._labeller.features.current("string").shape == (10, 5)
        wait_for(lambda: client.get("/v1/status").json["features"])
        assert client.get("/v1/labels/n6").json["label"] == "even"
        gone = {"features": [{"node": node} for node in nodes]}
        assert client.post_json("/v1/features", gone).json["n_nodes"] == 10
        status = wait_for_labels(client)
        assert status["features"] is None
        assert client.get("/v1/labels/n6").status == 404
        # Other columns may come now.
        rows = [{"node": "n1", "height": 3}, {"node": "other", "height": "4"}]
        assert client.post_json("/v1/features", {"features": rows}).status == 200


@pytest.mark.parametrize(
    ("body", "row", "why"),
    [
        ("id,age,city\nn0,old,R\n", 1, "'age' must be a finite number, got 'old'"),
        ("id,age,city\nn0,1,R\nn1,inf,R\n", 2, "'age' must be a finite number, got 'inf'"),
        ("id,age,city\nn0,1\n", 1, "there are 2 fields, but the header has 3"),
        ("id,age,town\nn0,1,R\n", 1, "no column 'town'; the columns are 'age', 'city'"),
        ("id,age\nn0,1\nn0,2\n", 2, "earlier row"),
        ("age,city\n1,R\n", None, "no column is called node"),
        ("", None, "not CSV with a header"),
        ("id,age\n,1\n", 1, "the id of a node is empty"),
        ({"labels": []}, None, 'must be an object {"features": [...]}'),
        ({"features": [{"age": 3}]}, 1, "expected an object with node and values"),
        ({"features": [{"node": "n0", "age": [3]}]}, 1, "'age' must be a number or a text"),
        ({"features": [{"node": "n0", "city": "R" * 300}]}, 1, "longer than 256"),
        ({"features": [{"node": "n0", "age": 1e300}]}, 1, "finite number"),
    ],
)
def test_features_that_do_not_fit_are_refused(people, body, row, why):
    post = people.post_csv if isinstance(body, str) else people.post_json
    before = people.service._database.features()
    answer = post("/v1/features", body)
    assert (answer.status, answer.json["error"].get("row")) == (400, row), answer.json
    assert why in answer.message
    assert people.service._database.features() == before


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A server that has features."""
    with serving(tmp_path_factory.mktemp("s") / "s") as service, serve(service) as client:
        assert client.post_csv("/v1/features", PEOPLE).status == 200
        client.service = service
        yield client


def test_values_of_features_that_are_missing(people):
    body = "id,age,city\nn0,NaN,NA\n"
    assert people.post_csv("/v1/features", body).status == 200
    assert people.service._labeller.features.current("string").names[:2] == ["age", "age_missing"]


def test_features_that_cannot_be_used_leave_the_answers_of_the_edges(fresh, tmp_path):
    assert fresh.post_csv("/v1/features", PEOPLE).status == 200
    fresh.post_csv("/v1/edges", "u,v\n1,2\n2,3\n")
    fresh.post_csv("/v1/labels", "node,label\n1,a\n3,b\n")
    wait_for_labels(fresh)
    assert fresh.get("/v1/labels/2").json["label"] is not None
    assert fresh.post_csv("/v1/features", "id,age\nn0,3\n").status == 409
    refused = {"refused": "--method restart is about labels from the edges alone"}
    with serving(tmp_path / "s", features=refused) as service, serve(service) as client:
        answer = client.post_csv("/v1/features", PEOPLE)
        assert (answer.status, answer.message) == (400, refused["refused"])


def test_given_labels_in_pages(fresh):
    rows = [{"node": f"n{at}", "label": "ab"[at % 2], "weight": 0.5 + at} for at in range(5)]
    assert fresh.post_json("/v1/labels", {"labels": rows}).json == {
        "n_labels": 5,
        "labels_version": 1,
    }
    found, after = [], ""
    while after is not None:
        page = fresh.get(
            f"/v1/labels?limit=2&after={quote(after)}" if after else "/v1/labels?limit=2"
        )
        found += page.json["labels"]
        after = page.json["next"]
    assert [{name: row[name] for name in ("node", "label", "weight")} for row in found] == rows
    assert fresh.ask("DELETE", "/v1/labels/n3").json["n_deleted"] == 1
    assert fresh.ask("DELETE", "/v1/labels/n3").json["n_deleted"] == 0
    gone = fresh.post_json("/v1/labels", {"nodes": ["n0", "n1", "no"]}, "DELETE").json
    assert gone["n_deleted"] == 2
    left = fresh.get("/v1/labels").json["labels"]
    assert [row["node"] for row in left] == ["n2", "n4"]


def test_labels_given_before_the_kind_of_ids_is_known(fresh):
    """They are of the nodes that edges name later, in either form, and can be deleted."""
    fresh.post_json(
        "/v1/labels", {"labels": [{"node": 1, "label": "x"}, {"node": "2", "label": "y"}]}
    )
    fresh.post_csv("/v1/edges", "u,v\nann,1\n1,2\n2,bob\n")
    wait_for(lambda: fresh.get("/v1/labels/ann").json.get("label") == "x")
    assert fresh.get("/v1/labels/bob").json["label"] == "y"
    nodes = {"nodes": ["1", 2]}
    assert fresh.post_json("/v1/labels", nodes, "DELETE").json["n_deleted"] == 2


@pytest.mark.parametrize(
    ("body", "row", "message"),
    [
        ([], None, 'the body must be an object {"labels": [...]}'),
        ({"labels": {}}, None, "the body must be an object"),
        ({"labels": [], "more": 1}, None, "'more' is unknown; the body has labels only"),
        ({"labels": [{"node": 1, "label": "x"}, 5]}, 2, "expected an object with node and label"),
        ({"labels": [{"label": "x"}]}, 1, "row 1: there is no node"),
        ({"labels": [{"node": 1}]}, 1, "there is no label"),
        ({"labels": [{"node": 1, "label": "x", "wieght": 2}]}, 1, "'wieght' is unknown"),
        ({"labels": [{"node": True, "label": "x"}]}, 1, "must be an integer or a text, got True"),
        ({"labels": [{"node": 1.0, "label": "x"}]}, 1, "must be an integer or a text, got 1.0"),
        ({"labels": [{"node": 2**63, "label": "x"}]}, 1, "has more than 64 bits"),
        ({"labels": [{"node": "", "label": "x"}]}, 1, "the id of a node is empty"),
        ({"labels": [{"node": "é" * 129, "label": "x"}]}, 1, "has 258 bytes, but at most 256"),
        ({"labels": [{"node": "\ud800", "label": "x"}]}, 1, "is not valid Unicode: '\\ud800'"),
        ({"labels": [{"node": 1, "label": None}]}, 1, "must be a text or an integer, got None"),
        ({"labels": [{"node": 1, "label": 1.5}]}, 1, "must be a text or an integer, got 1.5"),
        ({"labels": [{"node": 1, "label": False}]}, 1, "must be a text or an integer, got False"),
        ({"labels": [{"node": 1, "label": ""}]}, 1, "a label is empty"),
        ({"labels": [{"node": 1, "label": "x", "weight": 1e-101}]}, 1, "between 1e-50 and 1e+06"),
        ({"labels": [{"node": 1, "label": "x", "weight": "1"}]}, 1, "got '1'"),
        (b'{"labels": [{"node": 1, "label": "x", "weight": 1e999}]}', 1, "got inf"),
        (b'{"labels": [{"node": 1, "label": "x", "weight": 1' + b"0" * 400 + b"}]}", 1, "1e+06"),
        ({"labels": [{"node": 1, "label": "x"}, {"node": "1", "label": "y"}]}, 2, "earlier row"),
    ],
)
def test_wrong_labels(local, body, row, message):
    answer = local.post_json("/v1/labels", body)
    assert answer.status == 400
    assert message in answer.message
    assert answer.json["error"].get("row") == row
    assert local.service.rows == []


def test_wrong_lookups(local):
    too_many = local.post_json("/v1/labels:lookup", {"nodes": [1] * 10_001})
    assert (too_many.status, "at most 10,000" in too_many.message) == (413, True)
    assert local.ask("POST", "/v1/labels:lookup", b"{}", CSV).status == 415
    assert local.ask("POST", "/v1/labels:lookup?x=1", b"{}", CSV).status == 400
    assert local.get("/v1/labels/%ff").message == "the id of the node is not UTF-8"
    assert local.get("/v1/labels/").message == "the id of a node is empty"
    assert local.get("/v1/labels/" + "a" * 257).status == 400
    assert local.get("/v1%2Flabels/a").status == 404
    assert local.get("/v1/labels/a%2Fb").json["node"] == "a/b"
    assert local.get("/v1/labels/a/b").json["node"] == "a/b"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/labels?limit=0", "limit must be an integer from 1 to 10000, got '0'"),
        ("/v1/changes?since=-1", "since must be an integer from 0 to 9223372036854775807"),
        ("/v1/changes?since=1e3", "since must be an integer"),
        ("/v1/changes?since=%D9%A1", "since must be an integer"),  # a digit, but not of ASCII
        ("/v1/suggest?k=1001", "k must be an integer from 1 to 1000, got '1001'"),
        ("/v1/certificates?limit=" + "9" * 100, "limit must be an integer"),
        ("/v1/status?x", "'x' is unknown; this takes none"),
    ],
)
def test_wrong_queries(local, path, message):
    answer = local.get(path)
    assert answer.status == 400
    assert message in answer.message


# What else there is.


def test_events_come_when_something_changes(fresh):
    fresh.post_csv("/v1/edges", "u,v\n1,2\n2,3\n")
    with fresh.connect() as raw:
        raw.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""

        def has(text):
            nonlocal received
            received += raw.recv(1 << 16)
            return text in received

        wait_for(lambda: has(b"event: status\ndata: {"))
        assert b"content-type: text/event-stream\r\n" in received
        wait_for(lambda: b"event: map\ndata: {" in received or has(b"event: map"))
        assert b'"edges":3' not in received
        fresh.post_csv("/v1/edges", "u,v\n3,4\n")
        wait_for(lambda: has(b'"edges":3'))


def test_quiet_events_have_a_comment(monkeypatch):
    monkeypatch.setattr("ohmlearn.serve.http_replies.POLL_SECONDS", 0.01)
    monkeypatch.setattr("ohmlearn.serve.http_replies.COMMENT_SECONDS", 0.05)
    with serve(StandIn()) as client, client.connect() as raw:
        raw.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while received.count(b": nothing has changed\n\n") < 2:
            received += raw.recv(1 << 16)
        assert received.count(b"event: status") == received.count(b"event: map") == 1


def test_metrics(started):
    text = started.get("/metrics").body.decode()
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(figures["ohmlearn_edges_total"]) == 7
    assert float(figures["ohmlearn_nodes"]) == 6
    assert float(figures["ohmlearn_labels"]) == 2
    route = 'ohmlearn_http_requests_total{method="POST",route="/v1/edges",status="200"}'
    assert float(figures[route]) == 1
    one = 'ohmlearn_http_request_seconds_count{method="GET",route="/v1/labels/{id}"}'
    assert float(figures[one]) >= 1
    for method in ("BREW", "GETX", "PROPFIND"):
        started.ask(method, f"/made-up-{method}")
    text = started.get("/metrics").body.decode()
    assert "made-up" not in text
    assert "PROPFIND" not in text
    assert "# TYPE ohmlearn_edges_total counter" in text
    assert "# TYPE ohmlearn_nodes gauge" in text


def test_every_route_is_described(local):
    routes = {
        (method, re.sub("^/page/.*", "/page/{name}", route.path.replace(":path", "")))
        for route in local.server._app.routes
        for method in route.methods - {"HEAD"}
    }
    described = {
        (method.upper(), path)
        for path, entry in describe()["paths"].items()
        for method in entry
        if method != "parameters"
    }
    assert routes == described
    asked = {(method, path.replace("/a", "/{id}")) for method, path, *_ in REQUESTS}
    assert {(method, path.replace("/page.js", "/{name}")) for method, path in asked} == routes
    assert local.get("/v1/openapi.json").json == json.loads(json.dumps(describe()))


def test_the_page(local):
    types = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
    for file in Path(http_endpoints.__file__).with_name("page").iterdir():
        answer = local.get("/" if file.name == "index.html" else f"/page/{file.name}")
        assert answer.body == file.read_bytes()
        kind = answer.headers["content-type"]
        text = types.get(file.suffix)
        assert kind == (f"{text}; charset=utf-8" if text else "image/svg+xml")
    missing = ("/page", "/page/", "/page/index.html", "/page/none.js", "/page/page.css/")
    outside = ("/page/../http/app.py", "/page/..%2fhttp%2fapp.py", "/page/%2e%2e/service.py")
    for path in (*missing, *outside, "/page.js", "/..%2fapp.py", "/index.html"):
        assert local.get(path).status == 404


def test_unknown_addresses_and_methods(local):
    answer = local.get("/v1/nothing")
    assert answer.json["error"]["status"] == answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    answer = local.ask("PATCH", "/v1/labels")
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, POST")
    assert answer.message == "this address accepts DELETE, GET, HEAD, POST only"
    for path in ("/%0A", "/v1/status%0A", "/v1/status%00", "/v1//status", "/v1/status/"):
        assert local.get(path).status == 404
    assert local.ask("HEAD", "/v1/status").status == 200
    assert local.ask("HEAD", "/v1/events").status == 200
    assert local.ask("HEAD", "/v1/edges").status == 405


# What the service refuses.


def test_what_the_service_refuses(local):
    def ask(error, path="/v1/edges"):
        local.service.error = error
        return local.post_csv(path, "u,v\na,b\n")

    answer = ask(Refused(429, "too many batches are waiting", retry_after=2.5))
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    assert answer.json["error"]["retry_after"] == 2.5
    assert ask(Refused(507, "the disk is full")).status == 507
    assert ask(Refused(409, "ids of another kind"), "/v1/removals").status == 409
    assert ask(ValueError("a weight\nis wrong")).message == "a weight is wrong"
    wrong = InputError(
        f"{Param('half_life', '7d')} is wrong",
        remedy=f"give {Setting('on_bad', 'skip')}",
        place=Place("/srv/secret/edges.csv", 3),
    )
    answer = ask(wrong)
    assert answer.json["error"] == {
        "status": 400,
        "message": "row 3: half_life = 7d is wrong; give on_bad=skip",
        "remedy": "give on_bad=skip",
        "parameter": "half_life",
        "value": "7d",
        "row": 3,
    }
    about = local.get("/v1/changes?since=soon").json["error"]
    assert (about["parameter"], about["value"]) == ("since", "soon")
    local.service.error = Refused(410, "changes before number 5 are no longer kept")
    assert local.get("/v1/changes?since=1").status == 410
    damaged = ask(LogError("/srv/secret/edges.arrows is damaged"))
    assert (damaged.status, b"secret" in damaged.body) == (500, False)
    local.service.ready = False
    assert local.get("/readyz").status == 503
    assert local.get("/healthz").status == 200


def test_an_unforeseen_error_says_nothing_about_the_machine(local, caplog):
    for path in ("/v1/status", "/v1/labels/a", "/v1/export", "/v1/events"):
        caplog.clear()
        local.service.error = RuntimeError("cannot open /srv/secret/edges.log")
        answer = local.get(path)
        if path == "/v1/events":  # its head has been sent
            assert b"secret" not in answer.body
            continue
        assert answer.status == 500
        assert answer.message.startswith("something went wrong; the log of the server has")
        assert b"secret" not in answer.body
        (record,) = [one for one in caplog.records if one.name == "ohmlearn.serve.http_app"]
        assert record.number in answer.message
        assert "secret" in str(record.exc_info[1])


def test_numbers_that_json_does_not_have(local):
    local.service.status = lambda: {"name": "x", "epsilon": float("nan"), "at": [float("inf")]}
    assert local.get("/v1/status").json == {"name": "x", "epsilon": None, "at": [None]}


def test_work_is_not_done_on_the_event_loop(local, monkeypatch):
    """Neither looking nodes up, which may wait for a batch of new ids, nor reading many rows."""
    threads = {}

    def noted(name, work):
        def note(*arguments):
            threads[name] = threading.current_thread().name
            return work(*arguments)

        return note

    for name in ("read_label_rows", "read_nodes"):
        monkeypatch.setattr(http_endpoints, name, noted(name, getattr(http_endpoints, name)))
    for name in ("lookup", "put_labels", "delete_labels"):
        setattr(local.service, name, noted(name, getattr(local.service, name)))
    assert local.get("/v1/labels/a").status == 200
    assert threads.pop("lookup").startswith("ohmlearn-lookup")
    assert local.post_json("/v1/labels:lookup", {"nodes": ["a"]}).status == 200
    assert threads["lookup"] == threads.pop("read_nodes")
    assert threads.pop("lookup").startswith("ohmlearn-lookup")
    assert local.post_json("/v1/labels:lookup", {"nodes": ["a"] * 2000}).status == 200
    assert threads.pop("lookup").startswith("ohmlearn-http")  # few nodes do not wait for many
    labels = {"labels": [{"node": "a", "label": "x"}]}
    assert local.post_json("/v1/labels", labels).status == 200
    assert local.post_json("/v1/labels", {"nodes": ["a"]}, "DELETE").status == 200
    names = {"read_label_rows", "read_nodes", "put_labels", "delete_labels"}
    assert threads.keys() == names
    assert all(name.startswith("ohmlearn-http") for name in threads.values())


def test_an_export_that_is_cancelled_is_closed():
    """Also if its next part is being made at that moment."""
    making, go, closed = threading.Event(), threading.Event(), threading.Event()

    def export():
        try:
            yield b"PAR1"
            making.set()
            go.wait(30)
            yield b"PAR1"
        finally:
            closed.set()

    async def send(_):
        pass

    async def receive():
        await asyncio.sleep(60)

    async def cancel(pool):
        room = StreamLimit(1, 429, "busy", 1.0)
        stream = LimitedStream(room, "text/plain", in_threads(export, pool))
        scope = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.4"}}
        task = asyncio.create_task(stream(scope, receive, send))
        await asyncio.to_thread(making.wait, 30)
        task.cancel()
        await asyncio.sleep(0.05)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.n_running == 0

    with ThreadPoolExecutor(4) as pool:
        asyncio.run(cancel(pool))
    assert closed.is_set()


def test_answers_do_not_wait_for_a_batch(local):
    """While a batch waits for the disk, everything else is answered."""
    from concurrent.futures import Future

    from ohmlearn.serve.database import Receipt

    future = local.service.future = Future()
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(local.post_csv("/v1/edges", "u,v\na,b\n"))
    )
    thread.start()
    wait_for(lambda: local.service.batches)
    assert local.get("/v1/labels/a").status == 200
    assert answers == []
    future.set_result(Receipt(1, 0, None, False, 9))
    thread.join()
    assert answers[0].json["operation"] == 9
