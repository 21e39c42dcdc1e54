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
            review = client.review(limit=3)
        expected = model.explain(40, n_labels=9)
        assert found["label"] == label["label"] == expected.label == "group 1"
        assert found["version"] == label["version"]
        assert found["text"] == expected.text()
        assert [one["node"] for one in found["labels"][:6]] == [
            one.node for one in expected.labels[:6]
        ]
        assert found["margin"] == pytest.approx(expected.margin, rel=1e-5)
        assert sum_of(found) == pytest.approx(found["margin"], rel=1e-6)
        assert len(found["edges"]) == 20
        assert len(other["edges"]) == 3
        assert other["against"] == "group 2"
        for one, own in zip(review["classes"], model.review(n=3).to_dict()["classes"], strict=True):
            assert (one["label"], len(one["surest"])) == (own["label"], 3)
            assert [row["text"] for row in one["thresholds"]] == [
                row["text"] for row in own["thresholds"]
            ]
        assert found["changes_if"]
        assert "changes_if" not in other


def test_nodes_without_reasons(tmp_path):
    with serving(tmp_path / "s") as service, serve(service) as server:
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
        assert "no label reaches it" in apart["note"]
        assert apart["labels"] == []
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
    assert near["edges"] is None
    assert "sparsifier" in near["basis"]
    assert "all edges" in found["basis"]
    assert found["margin"] == pytest.approx(expected.margin, rel=0.02)
    named = {frozenset((one["source"], one["target"])) for one in found["edges"][:3]}
    assert named <= {frozenset((one.source, one.target)) for one in expected.edges[:5]}


def test_changes_name_what_counts_differently(tmp_path):
    """A label that is given, edges that come, and a change that is too long ago."""
    with serving(tmp_path / "s") as service, serve(service) as server:
        send(service, EDGES)
        service.put_labels(three_labels())
        wait_for_answers(service)
        first = service.envelope()["changes_next"]
        assert all(
            one["reason"] is None for one in service.changes(0, reasons=True)["changes"][20:]
        )
        service.put_labels([LabelRow(40, "group 2", 50.0)])  # it was in group 1
        wait_for_answers(service)
        with Client(f"http://127.0.0.1:{server.port}") as client:
            rows = client.changes(first, reasons=True)["changes"]
        by_node = {row["node"]: row["reason"] for row in rows}
        reason = by_node[40]
        assert reason["labels"][0]["node"] == 40
        assert reason["labels"][0]["since"] == "given"
        assert "40 (group 2, given" in reason["text"]
        second = service.envelope()["changes_next"]
        heavy = np.arange(1, 9) * 3 + 2  # nodes of group 2
        send(service, (np.full(8, 58), heavy, np.full(8, 500.0), np.full(8, 1.7e9 + 9000)))
        wait_for_answers(service)
        (old, *_), new = (service.changes(at, reasons=True)["changes"] for at in (first, second))
        assert "last answer only" in old["reason"]["text"]
        for row in new:
            assert "no label was given or taken away" in row["reason"]["text"]
            # Differences of all contributions are the change of the margin.
            assert abs(sum(one["fraction"] for one in row["reason"]["labels"])) < 3


def test_differences_of_contributions_sum_to_the_change_of_the_margin(tmp_path):
    with serving(tmp_path / "s") as service:
        send(service, EDGES)
        service.put_labels(three_labels())
        wait_for_answers(service)
        then = service.why(30, n_labels=1000)
        other, since = then["against"], service.envelope()["changes_next"]
        service.put_labels([LabelRow(30, other, 50.0)])
        wait_for_answers(service)
        now = service.why(30, n_labels=1000, against=then["label"])
        rows = service.changes(since, reasons=True)["changes"]
        (row,) = [one for one in rows if one["node"] == 30]
        assert (row["before"], row["after"]) == (then["label"], other)
        fractions = [one["fraction"] for one in row["reason"]["labels"]]
        mine = next(x["contribution"] for x in now["labels"] if x["node"] == 30)
        assert fractions[0] == pytest.approx(mine / (now["margin"] + then["margin"]), rel=1e-6)
