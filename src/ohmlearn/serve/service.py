"""`Service`: live labels of the edges in a folder, behind one object.

batches -> Intake (durable) -> Sampler (sparsifier) -> Labeller (answers) -> readers
"""

from __future__ import annotations

import json
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ohmlearn.errors import Param
from ohmlearn.graph.time_view import FADED
from ohmlearn.reading.table_reader import RawBatch
from ohmlearn.report.progress import peak_memory
from ohmlearn.serve.answer_store import ABSTAINED, Answers
from ohmlearn.serve.database import LabelRow, Node, Offset, Receipt, Values
from ohmlearn.serve.edge_intake import COUNTS, Intake, Item
from ohmlearn.serve.label_thread import Labeller
from ohmlearn.serve.live_reasons import Explainer
from ohmlearn.serve.serve_errors import Refused, storage_error
from ohmlearn.serve.service_folder import Folder
from ohmlearn.serve.service_threads import Sampler, Worker
from ohmlearn.serve.settings import Settings
from ohmlearn.serve.side_threads import Certifier, Surveyor

__all__ = ["LabelRow", "Offset", "Receipt", "Refused", "Service"]

T = TypeVar("T")
EXPIRE_EVERY = 60.0  # seconds between two looks for old edges
MANY_RECORDS = 20_000  # small ones, after which the log is compacted
MANY_DEAD = 1_000_000  # edges
UPDATES = "Durable edges and removals of edges"
SHOWN_COUNTS = ("edges_ahead", "refused_ahead", "repeated_events")  # in the status
logger = logging.getLogger(__name__)


class Service:
    """Takes edges and labels, and answers with the labels of all nodes.

    The folder holds everything. A service that starts with it continues where the last one was.
    """

    def __init__(self, folder: str | Path, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._started = time.time()
        self._folder = Folder(folder, self.settings)
        self.folder = self._folder.path  # which holds everything
        self.name = self.folder.absolute().name
        self.event_id = self._folder.event_id  # column with ids of events, if each counts once
        self.weight = self._folder.weight  # column of weights and its function, if it is named
        self._log, self._database = self._folder.log, self._folder.database
        try:
            self._make_workers()
        except BaseException:
            self._folder.close()
            raise
        self._expired = self._compacted = time.monotonic()
        self._changing = threading.Lock()
        self._is_started = self._is_stopped = False
        self.kafka: Any = None  # a Consumer, if there is one

    def _make_workers(self) -> None:
        self._follower = self._log.follower()
        self._sampler = Sampler(self._follower, self.settings)
        self._labeller = Labeller(self._folder, self._follower, self.settings)
        self._explainer = Explainer(self._labeller, self._log.nodes)
        seed, n_jobs = self._folder.seed, self.settings.n_jobs
        self._surveyor = Surveyor(self._labeller, self._log.nodes, self._explainer, seed, n_jobs)
        self._certifier = Certifier(self._database, self._labeller, self.settings)
        self._readers: tuple[Worker, ...] = self._labeller, self._surveyor, self._certifier
        self._intake = Intake(
            self._log, self._database, self.settings, lag=lambda: self._follower.lag,
            after_flush=self._sampler.wake, keep_house=self._keep_house,
        )  # fmt: skip

    def start(self) -> None:
        """Load the sparsifier, read what has come since it was saved, start the threads."""
        with self._changing:
            if self._is_stopped:
                return
            self._follower.load()
            for worker in (self._sampler, self._intake, *self._readers):
                worker.start()
            self._is_started = True

    def stop(self) -> None:
        """Finish what was accepted, save everything, and close the folder."""
        with self._changing:
            if self._is_stopped:
                return
            self._is_stopped = True
            for worker in (self._intake, *self._readers, self._sampler):
                worker.stop()
            self._end_compaction()
            try:
                self._folder.close()
            except OSError as error:
                logger.error(
                    "the sparsifier was not saved: %s; all edges that were acknowledged are safe, "
                    "and the next start takes longer",
                    error,
                )

    @property
    def ready(self) -> bool:
        """Whether edges are taken."""
        return self._is_started and not self._is_stopped and not self._intake.has_failed

    @property
    def answers_fail(self) -> bool:
        """Whether no new answers can be expected, because sampling or solving always fails."""
        return self._sampler.is_stuck or self._labeller.is_stuck

    # Edges.

    @property
    def id_kind(self) -> str | None:
        """The type of the ids so far, "int64" or "string"; None if there was no edge."""
        return self._log.nodes.kind

    def submit(
        self,
        batch: RawBatch,
        *,
        is_removal: bool = False,
        batch_id: str | None = None,
        offset: Offset | None = None,
        skip_bad: bool = False,
    ) -> Future[Receipt]:
        """Take edges, or remove those between pairs. The result is there when that is durable.

        A batch whose id has come before is not counted again, nor is a message of Kafka at an
        earlier offset. A removal reads the whole log. `skip_bad` leaves out edges whose times
        cannot be used; otherwise the batch is refused. Refused with status 503 if the service is
        not ready, and 429 if too much is waiting.
        """
        if not self.ready:
            raise Refused(503, "the service is starting or stopping; try again in a moment")
        return self._intake.submit(Item(batch, is_removal, batch_id, offset, skip_bad))

    def next_offsets(self, topic: str) -> dict[int, int]:
        """Return the next offset to read of each partition of a topic."""
        return self._intake.next_offsets(topic)

    # Labels.

    def put_labels(self, rows: list[LabelRow]) -> int:
        """Give labels to nodes, instead of those that they have; return how many."""
        return self._change_labels(self._database.put_labels, rows)

    def delete_labels(self, nodes: list[int | str]) -> int:
        """Delete the labels of nodes; return how many had one."""
        return self._change_labels(self._database.delete_labels, nodes)

    def put_features(self, rows: Mapping[Node, Values]) -> int:
        """Give features to nodes, instead of earlier ones; a row without values deletes them."""
        return self._change_labels(self._labeller.features.put, rows)

    def _change_labels(self, change: Callable[[T], int], rows: T) -> int:
        if self._is_stopped:
            raise Refused(503, "the service is stopping; try again in a moment")
        try:
            count = change(rows)
        except sqlite3.Error as error:
            raise storage_error(error) from error
        self._labeller.labels_changed()
        return count

    @property
    def labels_version(self) -> int:
        """How often labels have been changed; the watermark of answers says what they reflect."""
        return self._labeller.labels_version

    def given_labels(self, limit: int = 1000, after: str | None = None) -> dict[str, Any]:
        """Return labels that were given, and where the next page starts."""
        rows = self._database.labels(after or "", limit + 1)
        more = len(rows) > limit
        rows = rows[:limit]
        following = json.dumps(rows[-1].node) if more else None
        return {"labels": [row._asdict() for row in rows], "next": following}

    # Answers.

    def envelope(self, answers: Answers | None = None) -> dict[str, Any]:
        """Return which edges answers reflect, by default the last ones, and how good H was."""
        answers, last = answers or self._labeller.answers, self._certifier.last
        lag = max(0, self._log.n_updates - answers.n_updates)
        shown = ("at", "epsilon", "bound", "confidence")
        certificate = None if last is None else {name: last[name] for name in shown}
        return {**answers.envelope(), "lag_edges": lag, "certificate": certificate}

    def lookup(self, nodes: list[int | str]) -> dict[str, Any]:
        """Return the labels of some nodes."""
        answers = self._labeller.answers
        return {**self.envelope(answers), "results": answers.of_ids(self._log.nodes, nodes)}

    def changes(self, since: int, limit: int = 10_000, *, reasons: bool = False) -> dict[str, Any]:
        """Return changes of labels since an earlier call, whose "next" is `since`.

        With `reasons`, those of the last answer say why, up to a number of them.

        Refused with status 410, if they are too old to be kept, or `since` was given out after the
        backup was made from which this folder was restored.
        """
        answers = self._labeller.answers
        oldest = self._database.changes_start()
        why = ""
        if since < oldest:
            why = f"changes before number {oldest} are no longer kept"
        elif not self._database.has_change(since):
            why = "this number was given out after the copy was made that is served now"
        if why:
            raise Refused(
                410,
                f"{why}, got {Param('since', since)}",
                remedy="start over: take changes_next of /v1/status, read /v1/export, then go on "
                "with that number",
            )
        found, following = self._labeller.changes(since, limit)
        if reasons:
            found = self._explainer.explain_changes(found)
        page = {"changes": found, "next": following, "complete": following >= answers.changes_end}
        return {**self.envelope(answers), **page}

    def why(self, node: int | str, **how: Any) -> dict[str, Any]:
        """Return the reasons for the label of a node; see `Explainer.why`."""
        solved, found = self._explainer.why(node, **how)
        return {**self.envelope(solved.answers), **found}

    def review(self, n: int) -> dict[str, Any]:
        """Return what to look at; see `Explainer.review`."""
        solved, found = self._explainer.review(n)
        return {**self.envelope(solved.answers), **found}

    def export(self) -> Iterator[bytes]:
        """Yield a Parquet file with the labels of all nodes, in parts."""
        answers = self._labeller.answers
        return answers.export(self._log.nodes, self.envelope(answers))

    def suggestions(self, k: int = 10) -> dict[str, Any]:
        """Return nodes to label next."""
        found = self._surveyor.suggestions
        return {**self.envelope(), **found, "suggestions": found["suggestions"][:k]}

    def certificates(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the last certificates, the oldest of them first."""
        return self._database.certificates(limit)

    def map(self) -> dict[str, Any]:
        """Return a few hundred nodes, and where to draw them."""
        return self._surveyor.map

    # Figures.

    @property
    def problems(self) -> list[str]:
        """What does not work at present."""
        kafka = None if self.kafka is None else self.kafka.status().get("error")
        workers = (self._intake, self._sampler, *self._readers)
        found = [worker.problem for worker in workers]
        if self._intake.is_full:
            found.append("the disk is full: no edges are taken")
        return [problem for problem in [*found, kafka] if problem]

    def status(self) -> dict[str, Any]:
        """Return figures for the page."""
        answers, labeller = self._labeller.answers, self._labeller
        pool = labeller.solved and labeller.solved.pool
        return {
            "name": self.name,
            "edges": self._log.n_edges,
            "operation": self._log.n_operations,
            "labels_version": self.labels_version,
            "nodes": self._log.n_nodes,
            "labels": labeller.n_labels,
            "unused_labels": labeller.n_unused,
            "classes": [
                {"label": name, "n_nodes": size, "colour": labeller.colours[name]}
                for name, size in zip(answers.classes, answers.class_sizes, strict=True)
            ],
            "edges_per_second": self._intake.rate(),
            "unsampled_edges": self._follower.lag,
            "queued_edges": self._intake.queued_edges,
            **{name: self._intake.counts[name] for name in SHOWN_COUNTS},
            "answers": self.envelope(),
            "confidence": answers.histogram,
            "accuracy": labeller.accuracy.status(),
            "n_unreached": int(np.count_nonzero(answers.codes == -1)),
            "n_abstained": int(np.count_nonzero(answers.codes == ABSTAINED)),
            "features": pool and pool.weights,
            "recent_changes": list(labeller.recent),
            "notes": labeller.notes,
            "suggestions_version": self._surveyor.suggestions["of_version"],
            "map_version": self._surveyor.map["version"],
            "rows": self._follower.n_rows,
            "memory_mib": round(memory_bytes() / 2**20, 1),
            "uptime_seconds": time.time() - self._started,
            "recompute_seconds": answers.seconds,
            "half_life": self._folder.options.get("half_life"),
            "window": self._folder.options.get("horizon"),
            "event_id": self.event_id,
            "kafka": None if self.kafka is None else self.kafka.status(),
            "problems": self.problems,
            "read_only": self._intake.is_full,
        }

    def metrics(self) -> dict[str, tuple[float, str]]:
        """Return figures for Prometheus, and what they are, by name; "_total" means a counter."""
        intake, follower, answers = self._intake, self._follower, self._labeller.answers
        age = time.time() - answers.computed_at if answers.computed_at else 0.0
        error = (self._certifier.last or {}).get("epsilon") or 0.0
        kafka = {} if self.kafka is None else self.kafka.status()
        n_waiting = sum(part["lag"] or 0 for part in kafka.get("partitions", []))
        accuracy = self._labeller.accuracy
        last = accuracy.last or dict.fromkeys(("value", "low", "high"), math.nan)
        n_taken, n_letters = kafka.get("messages", 0), kafka.get("dead_letters", 0)
        lag = self.envelope()["lag_edges"]
        return {
            **{f"{name}_total": (intake.counts[name], text) for name, text in COUNTS.items()},
            "labels": (self._labeller.n_labels, "Labels that are given."),
            "nodes": (self._log.n_nodes, "Nodes that have an edge."),
            "rows": (follower.n_rows, "Rows of the sparsifier."),
            "lag_edges": (lag, f"{UPDATES} that the last answer does not reflect."),
            "unsampled_edges": (follower.lag, f"{UPDATES} that the sampler has not seen."),
            "queued_edges": (intake.queued_edges, "Edges that wait to be written."),
            "queued_bytes": (intake.queued_bytes, "Bytes of batches that wait to be written."),
            "resamples_total": (
                follower.n_resamples, "How often the sampler has thinned out its rows."
            ),
            "follow_seconds_total": (
                self._sampler.seconds, "Time that the sampler spent on new edges."
            ),
            "solve_seconds": (answers.seconds, "Time of the last answer."),
            "answer_age_seconds": (age, "Age of the last answer."),
            "answers_total": (self._labeller.n_answers, "Answers that were computed."),
            "changes_total": (self._labeller.n_changes, "Labels that have changed."),
            "certificate_epsilon": (
                error, "Error of the sparsifier according to the last certificate."
            ),
            "staleness": (
                answers.staleness, "How far removals have taken the sparsifier from the edges."
            ),
            "accuracy_estimate": (last["value"], "Estimated fraction of labels that are right."),
            "accuracy_low": (last["low"], "Lower end of its 95% interval."),
            "accuracy_high": (last["high"], "Upper end of its 95% interval."),
            "accuracy_alarm": (
                accuracy.alarm is not None, "1 if the estimate has fallen below its usual interval."
            ),
            "memory_bytes": (memory_bytes(), "Memory of the process."),
            "kafka_messages_total": (n_taken, "Messages of Kafka that were taken."),
            "kafka_dead_letters_total": (n_letters, "Messages of Kafka that could not be read."),
            "flush_seconds_total": (intake.flush_seconds, "Time that was spent on flushing files."),
            "flushes_total": (intake.n_flushes, "Flushes of files."),
            "disk_full": (
                intake.is_full, "1 if the last batch could not be stored, because the disk is full."
            ),
            "kafka_lag": (n_waiting, "Messages of Kafka that are not read yet."),
        }  # fmt: skip

    # Housekeeping, in the thread of the intake.

    def _keep_house(self) -> None:
        """Forget edges that are too old to count, and rewrite files that have many dead ones."""
        now = time.monotonic()
        if now - self._expired >= EXPIRE_EVERY:
            self._expired = now
            self._expire()
        if now - self._compacted >= EXPIRE_EVERY:
            self._compacted = now
            self._compact()

    def _expire(self) -> None:
        options = self._log.sparsifier_options
        span = options.reach if options.reach is not None else FADED * options.decay
        if span < float("inf") and self._follower.latest > float("-inf"):
            self._log.expire(min(self._follower.latest, self._intake.clock.now()) - span)

    def _compact(self) -> None:
        log = self._log
        if log.is_compacting:
            return
        self._end_compaction()
        is_dead = log.n_dead > max(MANY_DEAD, log.n_edges)
        if is_dead or log.n_records > MANY_RECORDS + log.n_edges // 10_000:
            log.compact(background=True)

    def _end_compaction(self) -> None:
        """Wait for a compaction, which may have failed; then the log is as it was before."""
        try:
            self._log.wait_for_compaction()
        except Exception:
            logger.exception("the log could not be compacted")


def memory_bytes() -> int:
    """Return the memory of this process, or its peak where only that is known."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_memory()
