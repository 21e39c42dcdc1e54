"""The thread that answers: labels of all nodes, from the sparsifier and the given labels.

Answers are computed in the background, and readers see the last ones. Each computation starts from
the answer before it, so it takes fewer iterations than the first.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.edge_log import LogFollower, LogSnapshot
from ohmlearn.edges.wrapped import DegreeCounting
from ohmlearn.estimators.answer import ClassAnswer
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.problem import ClassProblem, HFSParameters
from ohmlearn.graph import Graph
from ohmlearn.harmonic import HFSResult
from ohmlearn.nodes import NodeTable
from ohmlearn.serve.accuracy_watch import AccuracyWatch
from ohmlearn.serve.answer_store import (
    ABSTAINED,
    Answers,
    Changes,
    find_changes,
    find_numbers,
    name_nodes,
)
from ohmlearn.serve.database import LABEL_WEIGHTS, LabelRow, convert_id
from ohmlearn.serve.service_folder import Folder
from ohmlearn.serve.service_threads import Worker, describe
from ohmlearn.serve.settings import Settings

if TYPE_CHECKING:
    from ohmlearn.features.feature_classifier import FeatureClassAnswer

    AnyAnswer = ClassAnswer | FeatureClassAnswer

N_RECENT = 50  # changes that the page shows
LONGEST_REST = 60.0  # seconds
MOST_EDGES, MOST_CELLS = 5_000_000, 5_000_000  # of an answer that is kept after the next one
logger = logging.getLogger(__name__)


class Solved(NamedTuple):
    """What answers were computed from; nothing of it changes later."""

    kept: KeptGraph
    answer: ClassAnswer | None  # None without labels
    moment: LogSnapshot
    answers: Answers
    pool: FeatureClassAnswer | None = None  # if there are features; `answer` is of edges alone

    @property
    def graph(self) -> Graph:
        """The edges kept, with all labelled nodes."""
        return self.kept.graph if self.answer is None else self.answer.problem.full_graph

    @property
    def is_small(self) -> bool:
        """Whether there is memory for another one: edges take 24 bytes, scores 8 several times."""
        cells = self.answers.n_nodes * max(1, len(self.answers.classes))
        return self.graph.n_edges <= MOST_EDGES and cells <= MOST_CELLS


class Labeller(Worker):
    """Computes answers again when edges or labels have changed.

    Other threads read `answers` and `solved` at any time.
    """

    niceness = 10
    task = "computing answers"
    poll_seconds = 0.1
    retry_seconds = 2.0

    def __init__(self, folder: Folder, follower: LogFollower, settings: Settings) -> None:
        super().__init__("labeller")
        self._folder, self._database = folder, folder.database
        self._nodes: NodeTable = folder.log.nodes
        self._follower, self._settings = follower, settings
        stored = folder.options
        self._parameters = HFSParameters(
            epsilon=stored["epsilon"],
            half_life=stored.get("half_life"),
            horizon=stored.get("horizon"),
            passes=settings.passes,
            random_state=folder.seed,
            n_jobs=settings.n_jobs,
            **settings.model,
        )
        self.features = folder.features
        self._before: HFSResult | None = None  # where the next solve starts
        self._guard = threading.Lock()
        self.labels_version = self._database.get("labels_version")
        self._answered = (-1, -1)  # versions of the sparsifier and of the labels
        self.answers = self._recorded = folder.load_answers()  # whose changes are stored
        self.solved: Solved | None = None
        self.previous: Solved | None = None  # for reasons of changes, if it is not large
        self.recent: deque[dict[str, Any]] = deque(maxlen=N_RECENT)
        self.accuracy = AccuracyWatch()
        self.n_labels = self._database.count_labels()
        self.n_answers = self.n_changes = self.n_unused = 0
        self.notes: list[str] = []
        self._unused: list[str] = []  # which labels are not used, and why features are not
        self.colours: dict[str, int] = {}  # numbers of classes that stay, whatever classes come
        self._note_colours(self.answers)

    def labels_changed(self) -> None:
        """Say that labels were given or deleted."""
        with self._guard:
            self.labels_version = self._database.get("labels_version")
        self.wake()

    # The thread.

    def _step(self) -> float:
        if not self._is_due():
            return 0.0
        start = time.monotonic()
        self.answer()
        return min(time.monotonic() - start, LONGEST_REST)  # half of the time belongs to others

    def _is_due(self) -> bool:
        has_labels = self.labels_version > self._answered[1]
        if self._follower.version == self._answered[0] and not has_labels:
            return False
        age = time.time() - self.answers.computed_at
        n_new = self._follower.n_updates - self.answers.n_updates
        return (
            has_labels
            or not 0 <= age < self._settings.every_seconds
            or n_new >= self._settings.every_edges
        )

    def answer(self) -> None:
        """Compute answers from the present sparsifier and labels."""
        start = time.perf_counter()
        labels_version = self._database.get("labels_version")
        moment = self._follower.snapshot()
        if moment is None:  # it is being loaded
            return
        # This concerns all threads, but no other one of a service does it.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solved = self._solve(moment)
            self.accuracy.see(time.time(), solved.pool or solved.answer)
        self.notes = list(dict.fromkeys(str(one.message) for one in caught))[:5]
        seconds = time.perf_counter() - start
        answers = replace(
            solved.answers, labels_version=labels_version, computed_at=time.time(), seconds=seconds
        )
        self.problem = "; ".join(self._unused) or None
        answers = self._publish(answers)
        before = self.solved
        self.previous = before if before is not None and before.is_small else None
        self.solved = solved._replace(answers=answers)
        self._answered = (moment.version, labels_version)

    def _solve(self, moment: LogSnapshot) -> Solved:
        """Return the answers at a moment, without the time at which they were computed."""
        p, live = self._parameters, moment.live
        kept = KeptGraph.start(p, sparsifier=moment.kept.sparsifier)
        kept.follow(moment.kept)
        given = self._usable_labels()
        numbers = find_numbers(self._nodes, [row.node for row in given])
        known = [at for at in range(len(given)) if numbers[at] >= 0]
        about: dict[str, Any] = {
            "edges": live.n_edges, "operation": moment.operation, "n_updates": live.n_updates,
            "latest": moment.latest, "staleness": moment.kept.staleness,
        }  # fmt: skip
        version = self.answers.version + 1
        if not known or live.n_edges == 0:
            self._before = None
            self.n_unused = len(given)
            return Solved(kept, None, moment, Answers.empty(version, live.n_nodes, **about))
        ids = self._nodes.ids(numbers[known]).tolist()
        y = {node: given[at].label for node, at in zip(ids, known, strict=True)}
        weights = {node: given[at].weight for node, at in zip(ids, known, strict=True)}
        is_weighted = any(weight != 1.0 for weight in weights.values())
        p = self._with_known_classes(p, set(y.values()))
        how = (y, None, kept.nodes, weights if is_weighted else None)
        problem = ClassProblem.make(ClassProblem.read(p, *how), kept, p)
        found = Labelling(p, kept, before=self._before).solve(problem, live)
        answer, self._before = found.class_answer, found.before
        pool = self._combine(moment, kept, given, p)
        if pool is None:
            answer.warn_apart()
            answer.warn_few()
            answer.warn_imbalance()
        shown = pool or answer
        self.n_unused = len(given) - len(shown.problem.used.nodes)
        answers = self._tabulate(version, shown, len(answer.reached), numbers[known])
        return Solved(kept, answer, moment, replace(answers, **about), pool)

    def _combine(
        self, moment: LogSnapshot, kept: KeptGraph, given: list[LabelRow], p: HFSParameters
    ) -> FeatureClassAnswer | None:
        """Return the answer of features and edges together, if there are features to use.

        Nodes that only features or labels have come after those of the log, in a copy of its table.
        """
        try:
            features = self.features.current(self._nodes.kind)
            if features is None:
                return None
            from ohmlearn.features.feature_classifier import fit_features
            from ohmlearn.features.feature_problem import KnownGraph

            nodes = NodeTable.from_state(self._nodes.get_state())
            known = KnownGraph.of(kept.graph, nodes, kept.sparsifier, _degrees_of(moment))
            by_id = {convert_id(row.node, nodes.kind): row for row in given}
            by_id.pop(None, None)
            return fit_features(
                known, features, {node: row.label for node, row in by_id.items()},
                sample_weight={node: row.weight for node, row in by_id.items()},
                class_prior=p.class_prior, random_state=p.random_state, n_jobs=p.n_jobs,
                **self.features.model,
            ).answer_  # fmt: skip
        except ValueError as error:
            self._unused.append(f"features are not used: {describe(error)}")
            return None

    def _tabulate(
        self, version: int, answer: AnyAnswer, n_nodes: int, given: NDArray[np.int32]
    ) -> Answers:
        """Return the answers of the first nodes, which the log has, and of others beside them."""
        assert answer.problem.classes is not None
        classes = [str(name) for name in answer.problem.classes]
        probabilities = answer.probabilities.astype(np.float32)
        codes = np.where(answer.answered, answer.codes(-1), -1).astype(np.int32)
        least = self._settings.min_probability
        if least is not None:  # as float64, so that borders are those of the command line
            codes[(codes >= 0) & (answer.probabilities.max(axis=1) < least)] = ABSTAINED
        first = codes[:n_nodes], probabilities[:n_nodes], given
        if isinstance(answer, ClassAnswer):
            return Answers(version, classes, *first)
        others, nodes = NodeTable(), answer.problem.known.nodes
        assert nodes is not None
        others.add(nodes.ids(range(n_nodes, len(codes))))
        labelled = answer.problem.labels.nodes
        new = (labelled[labelled >= n_nodes] - n_nodes).astype(np.int32)
        beside = Answers(version, classes, codes[n_nodes:], probabilities[n_nodes:], new)
        return Answers(version, classes, *first, beside=(others, beside))

    def _with_known_classes(self, p: HFSParameters, classes: set[str]) -> HFSParameters:
        """Leave out proportions until there are labels of the same classes, and say so."""
        prior = p.class_prior
        if not isinstance(prior, Mapping) or set(prior) == classes:
            return p
        odd = ", ".join(sorted(set(prior) ^ classes)[:3])
        warn(
            f"the known proportions of the classes are not used: there must be labels of the same "
            f"classes, but these are only in one of both: {odd}"
        )
        return replace(p, class_prior=None)

    def _usable_labels(self) -> list[LabelRow]:
        """Return the given labels, and note those with a weight that no solve accepts."""
        given, (least, most) = self._database.labels(), LABEL_WEIGHTS
        self.n_labels, self._unused = len(given), []
        bad = [row for row in given if not least <= row.weight <= most]
        if not bad:
            return given
        self._unused.append(
            f"{len(bad)} labels are not used, because weights must lie between {least:g} and "
            f"{most:g}, but that of node {bad[0].node!r} is {bad[0].weight:g}; give these labels "
            f"again, or delete them"
        )
        return [row for row in given if least <= row.weight <= most]

    def _publish(self, answers: Answers) -> Answers:
        """Store and show answers, and which labels have changed."""
        changes = find_changes(self._recorded, answers)
        count, end = len(changes.rows), self._recorded.changes_end
        try:
            # In this order: after a crash in between, the same changes are reported again.
            first = self._database.next_change() if count else end
            answers = replace(answers, changes_end=first + count)
            if count:
                most = self._settings.max_kept_changes
                self._database.add_changes(first, count, answers.version, changes.pack(), most)
            answers.save(self._folder.answers_path)
            self._recorded = answers
        except Exception as error:  # a full disk must not keep answers from readers
            logger.error("answers were not stored: %s", error)
            self.problem = "answers are not stored, because the disk is full or has failed"
            answers = replace(answers, changes_end=end)
        _ = answers.histogram, answers.class_sizes  # computed here, not where they are asked for
        self._note_colours(answers)
        self.n_changes += count
        self.n_answers += 1
        shown = name_nodes(self._nodes, changes.describe(0, N_RECENT))
        self.recent.extendleft({**one, "at": answers.computed_at} for one in shown[::-1])
        self.answers = answers
        return answers

    def _note_colours(self, answers: Answers) -> None:
        for name in answers.classes:
            self.colours.setdefault(name, len(self.colours))

    def changes(self, since: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        """Return changes from a number on, and the number of the next one."""
        found: list[dict[str, Any]] = []
        at = since
        for first, count, version, when, content in self._database.changes_from(since):
            start = max(0, at - first)
            part = Changes.unpack(content).describe(start, min(count, start + limit - len(found)))
            found += [{"version": version, "at": when, **one} for one in part]
            at = first + start + len(part)
            if len(found) >= limit:
                break
        return name_nodes(self._nodes, found), at


def _degrees_of(moment: LogSnapshot) -> NDArray[np.float64] | None:
    """Return the exact degrees; None if the sparsifier has others, because edges fade or went."""
    if moment.kept.removed_weight > 0.0 or moment.kept.sparsifier.options.has_times:
        return None
    counted = DegreeCounting(moment.live)
    deque(counted.batches(), maxlen=0)
    return counted.degrees_of(moment.live.n_nodes)
