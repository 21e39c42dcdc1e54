"""The stream of the demo: people talk within their teams, some move, and labels follow."""

import threading

import numpy as np
import pytest

from ohmlearn.nodes.node_ids import decode_strings
from ohmlearn.serve.demo_feed import N_LABELLED, SIZES, TEAMS, People, run_feeder
from ohmlearn.serve.serve_errors import Refused


class Recorder:
    """Stands in for a service: keeps what it is given, and stops the feeder in the end."""

    def __init__(self, stop, n_batches, *, busy_at=(), refused_at=None):
        self.stop, self.n_batches = stop, n_batches
        self.busy_at, self.refused_at = set(busy_at), refused_at
        self.batches, self.labels, self.n_calls = [], [], 0

    def submit(self, batch):
        self.n_calls += 1
        if self.n_calls in self.busy_at:
            raise Refused(429, "later", retry_after=0.001)
        if self.n_calls == self.refused_at:
            raise Refused(503, "the service stops")
        self.batches.append(batch)
        if len(self.batches) == self.n_batches:
            self.stop.set()
        return self

    def result(self):
        return None

    def put_labels(self, rows):
        self.labels += rows


@pytest.fixture
def at_once(monkeypatch):
    """Let the feeder never wait; batches have 20 events."""
    monkeypatch.setattr("ohmlearn.serve.demo_feed.EVENTS_PER_SECOND", 200_000)
    monkeypatch.setattr("ohmlearn.serve.demo_feed.BATCHES_PER_SECOND", 10_000)
    monkeypatch.setattr("ohmlearn.serve.demo_feed.MOVE_SECONDS", 0.0005)


def test_people_talk_within_their_teams():
    people = People(0)
    u, v = people.talk(50_000)
    same = np.mean(people.team[u] == people.team[v])
    # 94 % talk with colleagues, strays meet one by chance: 0.94 + 0.06 * sum of squared shares.
    expected = 0.94 + 0.06 * np.sum((np.array(SIZES) / sum(SIZES)) ** 2)
    assert abs(same - expected) < 0.01  # five standard deviations are 0.005
    assert not (u == v).any()


def test_labelled_people_stay_and_no_team_dies_out():
    people = People(1)
    labels = people.label_first()
    for _ in range(600):
        people.move_some()
    numbers = {people.name(person): person for person in range(people.n_people)}
    assert {name: TEAMS[people.team[numbers[name]]] for name in labels} == labels
    assert np.bincount(people.team).min() >= 30
    assert people.n_people == 1500
    assert len(numbers) == people.n_people  # no name twice


def test_same_seed_gives_the_same_events(at_once):
    def run():
        stop = threading.Event()
        service = Recorder(stop, 30)
        run_feeder(service, stop, seed=4, clock=lambda: 0.0)
        return [decode_strings(batch.v).tolist() for batch in service.batches]

    assert run() == run()


def test_feeder_waits_while_the_service_is_busy(at_once):
    stop = threading.Event()
    service = Recorder(stop, 4, busy_at=[1, 3, 4])
    run_feeder(service, stop)
    assert service.n_calls == 7
    assert {row.label for row in service.labels} == set(TEAMS)
    assert len(service.labels) == N_LABELLED * len(TEAMS)


def test_feeder_ends_when_the_service_stops(at_once):
    stop = threading.Event()
    service = Recorder(stop, 100, refused_at=3)
    run_feeder(service, stop)
    assert not stop.is_set()
    assert len(service.batches) == 2
