"""A stream to watch: people in four teams who talk with their colleagues, and sometimes move.

``ohmlearn serve --demo`` starts a service with `settings` and lets `run_feeder` feed it. Only three
people in each team are labelled with its name. Everybody else gets a label from those they talk
with, so the label of a person who moves to another team follows after about a half-life.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.node_ids import encode_strings
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.serve.database import LabelRow
from ohmlearn.serve.serve_errors import Refused
from ohmlearn.serve.settings import Settings

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service

TEAMS = ("research", "design", "sales", "support")
SIZES = (200, 160, 140, 100)  # people at the start
MOST_PEOPLE = 1500
N_LABELLED = 3  # people of each team
N_NEAR = 15  # colleagues on each side who are close
STRAY = 0.06  # fraction of events with anybody at all
EVENTS_PER_SECOND = 2000
BATCHES_PER_SECOND = 10
MOVE_SECONDS = 3.0  # between two moves
N_MOVING = 10  # people who move together; with them, two new ones come
NAMES = (
    "ana", "ben", "chloe", "dan", "eva", "finn", "gita", "hugo", "ines", "jan", "kim", "leo", "mia",
    "noah", "olga", "paul", "quinn", "rosa", "sam", "tara", "uma", "vera", "will", "xenia", "yan",
    "zoe",
)  # fmt: skip


def settings() -> Settings:
    """Return settings for which changes can be seen within seconds, and H drops some edges."""
    return Settings(half_life="8s", epsilon=0.9, seed=0, every_seconds=1.0, certify_every="15s")


class People:
    """Who is in which team, and who talks with whom next."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.team: NDArray[np.int64] = np.repeat(np.arange(len(TEAMS)), SIZES)
        # Some people talk a lot and most a little, as in real life.
        self.talkative = self._rng.lognormal(0.0, 0.5, MOST_PEOPLE)
        self.fixed: list[int] = []  # labelled people stay where they are

    @property
    def n_people(self) -> int:
        """Number of people so far."""
        return int(self.team.size)

    def name(self, person: int) -> str:
        """Return the id of a person, such as "ana-012"."""
        return f"{NAMES[person * 7 % len(NAMES)]}-{person:03d}"

    def label_first(self) -> dict[str, str]:
        """Return the labels that are given at the start; these people stay in their teams."""
        found: dict[str, str] = {}
        for team, label in enumerate(TEAMS):
            people = self._rng.choice(np.flatnonzero(self.team == team), N_LABELLED, replace=False)
            self.fixed += people.tolist()
            found |= {self.name(person): label for person in people.tolist()}
        return found

    def talk(self, n_events: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return who talks with whom in the next events."""
        talkative = self.talkative[: self.n_people]
        u = self._rng.choice(self.n_people, n_events, p=talkative / talkative.sum())
        # Half of the colleagues are close in number: teams have smaller circles within.
        by_team, sizes = np.argsort(self.team, kind="stable"), np.bincount(self.team)
        first, size = (np.cumsum(sizes) - sizes)[self.team[u]], sizes[self.team[u]]
        near = self._rng.integers(-N_NEAR, N_NEAR + 1, n_events)
        anybody = self._rng.integers(0, size)
        apart = np.where(self._rng.random(n_events) < 0.5, near, anybody)
        v = by_team[first + (np.argsort(by_team)[u] - first + apart) % size]
        stray = self._rng.random(n_events) < STRAY
        v[stray] = self._rng.integers(0, self.n_people, int(stray.sum()))
        differ = u != v
        return u[differ], v[differ]

    def move_some(self) -> None:
        """Move a circle of one team to another, and let two new people come."""
        away, to = self._rng.choice(len(TEAMS), 2, replace=False)
        members = np.setdiff1d(np.flatnonzero(self.team == away), self.fixed)
        if members.size > 40:  # no team dies out
            start = int(self._rng.integers(0, members.size - N_MOVING))
            self.team[members[start : start + N_MOVING]] = to
        if self.n_people < MOST_PEOPLE:
            self.team = np.append(self.team, self._rng.integers(0, len(TEAMS), 2))


def run_feeder(
    service: Service, stop: Event, *, seed: int = 0, clock: Callable[[], float] = time.time
) -> None:
    """Label a few people, then submit events until `stop` is set or the service stops.

    Edges are submitted as any client does; if the service is busy, the feeder waits.
    """
    people = People(seed)
    labels = [LabelRow(node, label) for node, label in people.label_first().items()]
    names = [people.name(person) for person in range(MOST_PEOPLE)]
    pause = 1 / BATCHES_PER_SECOND
    started = time.monotonic()
    n_batches, next_move = 0, MOVE_SECONDS
    while not stop.is_set():
        u, v = people.talk(EVENTS_PER_SECOND // BATCHES_PER_SECOND)
        us, vs = (encode_strings([names[person] for person in side.tolist()]) for side in (u, v))
        batch = RawBatch(us, vs, t=np.full(u.size, clock()))
        try:
            service.submit(batch).result()
            if n_batches == 0:
                service.put_labels(labels)
        except Refused as refused:
            if refused.status != 429:
                return  # the service stops, or its disk is full
            stop.wait(refused.retry_after)
            continue
        n_batches += 1
        if n_batches * pause > next_move:
            people.move_some()
            next_move += MOVE_SECONDS
        # Late batches are not made up for: after a pause of the machine, time goes on from now.
        ahead = started + n_batches * pause - time.monotonic()
        if ahead > 0:
            stop.wait(ahead)
        else:
            started -= ahead
