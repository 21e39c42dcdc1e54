"""The estimated accuracy of live answers: that of a model, which falls when labels are wrong."""

import numpy as np
import pytest
from serve_cases import cut, make_edges, serving, wait_for_answers

from ohmlearn import HFSClassifier
from ohmlearn.serve import accuracy_watch
from ohmlearn.serve.accuracy_watch import AccuracyWatch
from ohmlearn.serve.service import LabelRow

EDGES = make_edges(3000, 300)


def rows_of(nodes, shift=0):
    return [LabelRow(int(node), f"group {(node + shift) % 3}") for node in nodes]


def test_the_estimate_falls_when_labels_are_wrong_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy_watch, "EVERY", 0.0)
    nodes = np.random.default_rng(0).choice(300, 90, replace=False)
    with serving(tmp_path / "s") as service:
        for batch in cut(EDGES, 1000):
            service.submit(batch).result(30)
        for count in (60, 65, 70, 75, 80):
            service.put_labels(rows_of(nodes[:count]))
            wait_for_answers(service)
        good = service.status()["accuracy"]
        model = HFSClassifier(random_state=0, passes=1)
        labels = {row.node: row.label for row in rows_of(nodes[:80])}
        expected = model.fit_edges(EDGES[:3], labels).answer_.accuracy()
        assert good["estimate"]["value"] == pytest.approx(expected.value, abs=1e-3)
        assert good["estimate"]["low"] == pytest.approx(expected.low, abs=1e-3)
        assert good["estimate"]["n_labels"] == expected.n_labels == 80
        assert good["alarm"] is None
        assert len(good["history"]) >= 5
        assert sum(group["n_labels"] for group in good["reliability"]) == 80
        assert {group["label"] for group in good["by_class"]} == {f"group {k}" for k in range(3)}
        service.put_labels(rows_of(nodes[:40], shift=1))  # on purpose
        wait_for_answers(service)
        bad = service.status()["accuracy"]
        assert bad["estimate"]["value"] < good["estimate"]["low"]
        assert "the estimated accuracy has fallen to" in bad["alarm"]
        assert service.metrics()["accuracy_alarm"][0]
        assert service.metrics()["accuracy_estimate"][0] == bad["estimate"]["value"]
        service.put_labels(rows_of(nodes[:40]))
        wait_for_answers(service)
        assert service.status()["accuracy"]["alarm"] is None
        service.delete_labels(nodes.tolist())
        wait_for_answers(service)
        none = service.status()["accuracy"]
        assert none["estimate"] is None
        assert none["reliability"] == []
        assert np.isnan(service.metrics()["accuracy_estimate"][0])


def test_the_alarm_compares_with_the_past_hour():
    watch = AccuracyWatch()
    for minute in range(100):
        watch.add(60.0 * minute, 0.9, 0.85, 0.95, 100)
    watch.add(6000.0, 0.86, 0.8, 0.9, 100)  # inside of the interval
    assert watch.alarm is None
    watch.add(6060.0, 0.84, 0.8, 0.9, 100)
    assert watch.alarm is not None
    for minute in range(102, 160):  # it lasts, although the past becomes as low
        watch.add(60.0 * minute, 0.84, 0.8, 0.9, 100)
        assert watch.alarm is not None
    for minute in range(160, 165):  # an hour later this is usual
        watch.add(60.0 * minute, 0.84, 0.8, 0.9, 100)
    assert watch.describe() is None
    assert len(watch.status()["history"]) <= accuracy_watch.N_SHOWN + 2
