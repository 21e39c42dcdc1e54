"""The threads that answer: labels from the sparsifier, suggestions, the map, certificates.

Answers are computed in the background, and readers see the last ones. Each computation starts from
the answer before it, so it takes fewer iterations than the first.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from ohmlearn.certificate import certify
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.semi_supervised import HFSClassifier
from ohmlearn.serve.answers import Answers, Changes, find_changes, find_numbers, names_of
from ohmlearn.serve.database import Database
from ohmlearn.serve.folder import Folder
from ohmlearn.serve.follower import Follower, Moment
from ohmlearn.serve.map import GraphMap
from ohmlearn.serve.settings import Settings

__all__ = ["Certifier", "Labeller"]

N_SUGGESTED = 50
N_RECENT = 50  # changes that the page shows
SHARE = 0.2  # of the time that suggestions and the map may take
logger = logging.getLogger(__name__)


class Labeller:
    """Computes answers again when edges or labels have changed.

    Parameters
    ----------
    folder : Folder
    follower : Follower
    settings : Settings

    Attributes
    ----------
    answers : Answers
        The last ones; other threads read this attribute at any time.
    suggestions, map : dict
        As the service returns them.
    graph : (Graph, LiveEdges, int) or None
        The last sparsifier, the edges it stands for, and the operation, for certificates.
    """

    def __init__(self, folder: Folder, follower: Follower, settings: Settings) -> None:
        self._folder, self._database = folder, folder.database
        self._nodes: NodeTable = folder.log.nodes
        self._follower, self._settings = follower, settings
        self._changed = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="ohmlearn-labeller", daemon=True)
        self._model = self._make_model()
        self._labels_at = 0  # counts changes of labels; see `labels_changed`
        self._answered = (-1, -1)  # operation and labels of the last answer
        self._map = GraphMap(seed=folder.seed)
        self._spare = 0.0  # seconds that suggestions and the map may take
        self.answers = folder.load_answers()
        self.recent: deque[dict[str, Any]] = deque(maxlen=N_RECENT)
        self.suggestions: dict[str, Any] = {"suggestions": [], "of_version": 0}
        self.map: dict[str, Any] = {"version": 0, "nodes": [], "links": []}
        self.graph: tuple[Graph, Any, int] | None = None
        self.n_labels = len(self._database.labels())
        self.n_answers = self.n_changes = 0
        self.changes_end = self._database.get("changes_end")
        self.problem: str | None = None
        self.notes: list[str] = []  # what the estimator has warned of

    def _make_model(self) -> HFSClassifier:
        stored = self._folder.options
        return HFSClassifier(
            epsilon=stored["epsilon"],
            half_life=stored.get("half_life"),
            horizon=stored.get("horizon"),
            passes=self._settings.passes,
            random_state=self._folder.seed,
            n_jobs=self._settings.n_jobs,
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End after the present answer."""
        self._is_stopping = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def labels_changed(self) -> None:
        """Say that labels were given or deleted."""
        self._labels_at += 1
        self._changed.set()

    # The thread.

    def _run(self) -> None:
        rest = 0.0
        while not self._is_stopping:
            self._changed.wait(min(0.2, self._settings.every_seconds) or 0.05)
            self._changed.clear()
            if self._is_stopping or time.time() < rest or not self._is_due():
                continue
            start = time.perf_counter()
            try:
                self.answer()
                self.problem = None
            except Exception as error:
                logger.exception("answers could not be computed")
                self.problem = f"answers could not be computed: {_describe(error)}"
            # Half of the time belongs to others.
            rest = time.time() + min(time.perf_counter() - start, 60.0)

    def _is_due(self) -> bool:
        operation, labels = self._follower.operation, self._labels_at
        if (operation, labels) == self._answered:
            return False
        age = time.time() - self.answers.computed_at
        n_new = abs(self._follower.n_edges - self.answers.edges)
        wait = self._settings.every_seconds
        return (
            labels != self._answered[1]
            or not 0 <= age < wait
            or n_new >= self._settings.every_edges
        )

    def answer(self) -> None:
        """Compute answers from the present sparsifier and labels."""
        start = time.perf_counter()
        labels_at = self._labels_at
        moment = self._follower.moment()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers = self._solve(moment)
        self.notes = list(dict.fromkeys(str(one.message) for one in caught))[:5]
        seconds = time.perf_counter() - start
        answers = replace(answers, computed_at=time.time(), seconds=seconds)
        self._publish(answers)
        self._answered = (moment.operation, labels_at)
        self._spare = min(self._spare + SHARE * max(seconds, self._settings.every_seconds), 10.0)
        if self._spare >= 0 and moment.live.n_edges > 0:
            self._look_around(answers)

    def _solve(self, moment: Moment) -> Answers:
        """Return the answers at a moment, without the time at which they were computed."""
        model, live = self._model, moment.live
        given = self._database.labels()
        self.n_labels = len(given)
        numbers = find_numbers(self._nodes, [row.node for row in given])
        known = [at for at in range(len(given)) if numbers[at] >= 0]
        about: dict[str, Any] = {
            "edges": live.n_edges,
            "operation": moment.operation,
            "latest": moment.latest,
            "staleness": moment.kept.staleness,
        }
        version = self.answers.version + 1
        model._follow(moment.kept)
        self.graph = None
        if not known or live.n_edges == 0:
            return Answers.empty(version, live.n_nodes, **about)
        ids = names_of(self._nodes, numbers[known])
        y = {node: given[at].label for node, at in zip(ids, known, strict=True)}
        weights = {node: given[at].weight for node, at in zip(ids, known, strict=True)}
        is_weighted = any(weight != 1.0 for weight in weights.values())
        model.relabel(y, sample_weight=weights if is_weighted else None)
        if self._settings.passes > 1:
            model.refine(live, passes=self._settings.passes - 1)
        self.graph = model.graph_, live, moment.operation
        classes = [str(name) for name in model.classes_]
        shares = model.label_distributions_.astype(np.float32)
        codes = np.searchsorted(model.classes_, model.transduction_).astype(np.int32)
        codes[~model.reached_] = -1
        return Answers(version, classes, codes, shares, numbers[known], **about)

    def _publish(self, answers: Answers) -> None:
        """Store and show answers, and which labels have changed."""
        changes = find_changes(self.answers, answers)
        count = len(changes.rows)
        try:
            # In this order: after a crash in between, the same changes are reported again.
            if count:
                self._database.add_changes(
                    self.changes_end, count, answers.version, changes.pack(),
                    self._settings.max_kept_changes,
                )  # fmt: skip
            answers.save(self._folder.answers_path)
        except Exception as error:  # a full disk must not keep answers from readers
            logger.error("answers were not stored: %s", error)
            self.problem = "answers are not stored, because the disk is full or has failed"
        self.changes_end += count
        self.n_changes += count
        self.n_answers += 1
        shown = changes.describe(self._nodes, 0, N_RECENT)
        self.recent.extendleft({**one, "at": answers.computed_at} for one in shown[::-1])
        self.answers = answers

    def _look_around(self, answers: Answers) -> None:
        """Suggest nodes to label, and draw the map; skipped for a while if that took long."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._model.suggest_labels(N_SUGGESTED)
            suggested = [
                {"node": one.node, "reason": one.reason, "kind": one.kind} for one in found
            ]
            self.suggestions = {"suggestions": suggested, "of_version": answers.version}
            numbers = find_numbers(self._nodes, [one.node for one in found[:20]])
            layout = self._map.update(
                self._model.graph_, given=answers.given, suggested=numbers[numbers >= 0]
            )
        rows = answers.lookup(layout.nodes, names_of(self._nodes, layout.nodes))
        columns = [
            [row[name] for row in rows] for name in ("node", "label", "probability", "given")
        ]
        self.map = layout.describe(answers.version, *columns)
        self._spare -= time.perf_counter() - start

    def changes(self, since: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        """Return changes from a number on, and the number of the next one."""
        found: list[dict[str, Any]] = []
        at = since
        for first, count, version, when, content in self._database.changes_from(since, limit):
            changes = Changes.unpack(content)
            start = max(0, at - first)
            part = changes.describe(self._nodes, start, min(count, start + limit - len(found)))
            found += [{"version": version, "at": when, **one} for one in part]
            at = first + start + len(part)
            if len(found) >= limit:
                break
        return found, at


class Certifier:
    """Compares the sparsifier with all edges now and then, in its own thread."""

    def __init__(self, database: Database, labeller: Labeller, settings: Settings) -> None:
        self._database, self._labeller, self._settings = database, labeller, settings
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ohmlearn-certifier", daemon=True)
        last = database.certificates(1)
        self.last: dict[str, Any] | None = last[0] if last else None
        self.problem: str | None = None

    def start(self) -> None:
        """Start the thread, if certificates are wanted."""
        if self._settings.certify_seconds is not None:
            self._thread.start()

    def stop(self) -> None:
        """End; a certificate that is being computed is given up."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        every = self._settings.certify_seconds
        assert every is not None
        wait = min(every, 10.0)  # the first one comes soon
        while not self._stopping.wait(wait):
            wait = every
            try:
                if not self._certify():
                    wait = min(every, 10.0)
                self.problem = None
            except _Stopped:
                return
            except Exception as error:
                logger.exception("the certificate failed")
                self.problem = f"the certificate failed: {_describe(error)}"

    def _certify(self) -> bool:
        """Compute a certificate; return whether there was something to certify."""
        graph = self._labeller.graph
        if graph is None:
            return False
        h, live, operation = graph
        found = certify(
            _UntilStopped(live, self._stopping),
            h,
            random_state=operation,
            n_jobs=self._settings.n_jobs,
        )
        self.last = {
            "at": time.time(),
            "epsilon": _finite(found.epsilon),
            "bound": _finite(found.epsilon_bound),
            "confidence": found.confidence,
            "edges": live.n_edges,
        }
        self._database.add_certificate(self.last)
        return True


class _Stopped(Exception):
    """The service is stopping."""


class _UntilStopped:
    """Edges whose reading ends with an error when the service is stopped."""

    rereadable = True

    def __init__(self, edges: Any, stopping: threading.Event) -> None:
        self._edges, self._stopping = edges, stopping
        self.nodes, self.n_nodes = edges.nodes, edges.n_nodes
        self.has_times, self.sources = edges.has_times, ["the log"]

    def __iter__(self) -> Any:
        for batch in self._edges:
            if self._stopping.is_set():
                raise _Stopped
            yield batch


def _finite(value: float) -> float | None:
    """Return a number that JSON has; None for infinity and NaN."""
    return float(value) if np.isfinite(value) else None


def _describe(error: Exception) -> str:
    """Return a short message about an error; that of a file would name its path."""
    if isinstance(error, ValueError) and not hasattr(error, "filename"):
        return json.dumps(str(error))[1:-1][:300]
    return type(error).__name__
