"""Reasons for live answers are those of a model of the same edges and labels."""

from urllib.parse import quote

import numpy as np
import pytest
from serve_cases import cut, make_edges, serving, three_labels, wait_for_answers
from serve_http import serve

from ohmlearn import HFSClassifier
from ohmlearn.client import Client, ServerError
from ohmlearn.serve.service import LabelRow

EDGES = make_edges(500)  # all are kept
LABELS = {row.node: row.label for row in three_labels()}


def send(service, columns):
    for batch in cut(columns, 1000):
        service.submit(batch).result(30)


def sum_of(reasons):
    parts = [one["contribution"] for one in reasons["labels"]]
    return sum(parts) + sum(reasons["offsets"].values()) + reasons["rest"]


def test_reasons_are_those_of_a_model_of_the_same_edges(tmp_path):
    with serving(tmp_path / "s") as service, serve(service) as server:
        send(service, EDGES)
        service.put_labels(three_labels())
        wait_for_answers(service)
        model = HFSClassifier(epsilon=None, random_state=0)
        model.fit_edges(EDGES[:3], LABELS)
        with Client(f"http://127.0.0.1:{server.port}") as client:
            found = client.why(40, changes=True, n_labels=9)
            other = client.why("40", against="group 2", n_edges=3)
            label = client.label(40)
        expected = model.explain(40, n_labels=9)
        assert found["label"] == label["label"] == expected.label == "group 1"
        assert found["version"] == label["version"]
        assert found["text"] == expected.text()
        assert [one["node"] for one in found["labels"][:6]] == [
            one.node for one in expected.labels[:6]
        ]
        assert found["margin"] == pytest.approx(expected.margin, rel=1e-5)
        assert sum_of(found) == pytest.approx(found["margin"], rel=1e-6)
        assert len(found["edges"]) == 20 and len(other["edges"]) == 3
        assert other["against"] == "group 2"
        assert found["changes_if"] and "changes_if" not in other


def test_nodes_without_reasons(tmp_path):
    with serving(tmp_path / "s") as service, serve(service) as server:
        with pytest.raises(Exception, match="the first answer is being computed|is not known"):
            service.why(1)
        names = np.array([*EDGES[0][:400].astype(str), "a/why"])
        others = np.array([*EDGES[1][:400].astype(str), "alone"])
        send(service, (names, others, np.ones(401), np.arange(401) + 1.7e9))
        wait_for_answers(service)
        get = server.get
        assert "there are no labels" in get("/v1/labels/5/why").json["note"]
        service.put_labels([LabelRow(str(node), label) for node, label in LABELS.items()])
        wait_for_answers(service)
        assert get("/v1/labels/x/why").status == 404
        assert get("/v1/labels/%FF/why").status == 400
        assert "group 9 must be a class" in get("/v1/labels/9/why?against=group%209").message
        assert "must be false or true" in get("/v1/labels/9/why?changes=yes").message
        apart = get("/v1/labels/alone/why").json
        assert "no label reaches it" in apart["note"] and apart["labels"] == []
        # A node may have the name of the address of reasons.
        assert get("/v1/labels/a%2Fwhy").json["node"] == "a/why"
        assert get(f"/v1/labels/{quote('a/why', safe='')}/why").json["node"] == "a/why"
        with Client(f"http://127.0.0.1:{server.port}") as client, pytest.raises(ServerError):
            client.why("y")


@pytest.mark.parametrize("settings", [{}, {"half_life": "20min"}, {"window": "40min"}])
def test_all_edges_are_those_that_are_live(tmp_path, settings):
    """Removed edges and those before a window do not count, and older ones weigh less."""
    u, v, w, t = columns = make_edges(40_000, 300)
    with serving(tmp_path / "s", epsilon=0.95, **settings) as service:
        send(service, columns)
        gone = (u < 30) & (v < 30)
        for batch in cut((u[gone], v[gone], w[gone], t[gone]), 1000):
            service.submit(batch, is_removal=True).result(30)
        service.put_labels(three_labels())
        wait_for_answers(service)
        assert not service._labeller.solved.answer.problem.holds_all_edges
        near = service.why(200)
        found = service.why(200, all_edges=True)
    names = {"window": "horizon"}
    how = {names.get(name, name): value for name, value in settings.items()}
    model = HFSClassifier(epsilon=None, random_state=0, **how)
    rest = ~gone
    edges = tuple(column[rest] for column in (columns if how else columns[:3]))
    expected = model.fit_edges(edges, LABELS).explain(200)
    assert near["edges"] is None and "sparsifier" in near["basis"]
    assert "all edges" in found["basis"]
    assert found["margin"] == pytest.approx(expected.margin, rel=0.02)
    named = {frozenset((one["source"], one["target"])) for one in found["edges"][:3]}
    assert named <= {frozenset((one.source, one.target)) for one in expected.edges[:5]}
