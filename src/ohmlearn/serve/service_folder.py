"""The folder of a service: the log of edges, the database, and the last answers.

log/            an `EdgeLog`: edges, and the sparsifier as it was saved last
service.sqlite  labels, batch ids, offsets of Kafka, changes of labels, certificates
answers.ohm     the last answers, so that a service that starts again has some at once
dead-letters.ndjson  messages of Kafka that could not be read
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ohmlearn._arrays_file import check_folder, check_writable
from ohmlearn._defaults import LABEL_EPSILON
from ohmlearn.checks.times import check_duration
from ohmlearn.edge_log import EdgeLog, LogError
from ohmlearn.edge_log.journal import journal_path
from ohmlearn.edge_log.manifest import Manifest
from ohmlearn.edge_log.records import file_lengths, load_log
from ohmlearn.errors import InputError, Param
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.file_names import LOG_MANIFEST, is_log
from ohmlearn.serve.answer_store import Answers
from ohmlearn.serve.database import Database
from ohmlearn.serve.live_features import LiveFeatures
from ohmlearn.serve.settings import OF_THE_LOG, Settings, read_weight

LOG, DATABASE, ANSWERS, LETTERS = "log", "service.sqlite", "answers.ohm", "dead-letters.ndjson"
KNOWN = {LOG, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", ANSWERS, LETTERS}
TRIES = 20  # of a backup, if the log is compacted meanwhile
logger = logging.getLogger(__name__)


class Folder:
    """An open folder, made if it does not exist. Only one process can have it open."""

    def __init__(self, path: str | Path, settings: Settings) -> None:
        self.path = Path(path)
        self.features = LiveFeatures(**settings.features)  # an error leaves no folder
        self.answers_path = self.path / ANSWERS  # the file of the last answers
        if not self.path.is_dir():
            check_folder(self.path)
            check_writable(self.path)
            self.path.mkdir()
        others = {one.name for one in self.path.iterdir()} - KNOWN
        is_old = is_log(self.path / LOG)
        if others and not is_old:
            raise ValueError(
                f"{self.path} is not the folder of a service and has other files, such as "
                f"{min(others)}; give an empty folder, or one that does not exist"
            )
        given = settings.of_the_log()
        if is_old:
            _refuse_other(self.path, given)
            given = {}
        else:
            given = {"epsilon": LABEL_EPSILON, "random_state": 0, **given}
        self.log = EdgeLog(self.path / LOG, n_jobs=settings.n_jobs, **given)
        self.log.open_for_writing()  # refuses a second process
        file = self.path / DATABASE
        try:
            if self.log.n_operations > 0:
                _require_database(file)
            with _naming_damage(file):
                self.database = self.features.database = Database(file)
                self.event_id = self.database.keep_column("event_id", settings.event_id)
                self.weight = read_weight(self.database.keep_column("weight", settings.weight))
                # Ids of batches that were never acknowledged; see database.py.
                self.database.forget_after(self.log.n_durable)
        except BaseException:
            self.log.close()
            raise
        self.options = self.log.parameters
        self.seed = int(self.options["random_state"])

    def load_answers(self) -> Answers:
        """Return the last answers; empty ones if there are none, or if they are damaged."""
        # Changes that were stored, but not the answers, are reported again, with new numbers.
        end, log = self.database.get("changes_end"), self.log
        if self.answers_path.exists():
            try:
                answers = Answers.load(self.answers_path)
                n_since = log.n_operations - answers.operation
                if min(n_since, end - answers.changes_end, log.n_nodes - answers.n_nodes) >= 0:
                    # At least so many edges; the exact number is not kept.
                    n_since += abs(log.n_edges - answers.edges) if n_since else 0
                    return replace(answers, changes_end=end, n_updates=log.n_updates - n_since)
                logger.warning("the last answers are computed again: they are not of these edges")
            except (ValueError, KeyError, TypeError, OSError) as error:
                logger.warning("the last answers are computed again, because %s", error)
        return Answers.empty(self.database.get("version"), changes_end=end)

    def close(self) -> None:
        """Save the sparsifier and close the files."""
        try:
            self.log.close()
        finally:
            self.database.close()


@contextmanager
def _naming_damage(file: Path) -> Iterator[None]:
    """Raise LogError if SQLite finds that a file is damaged."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # a full disk, or a lock
        raise LogError(f"{file} is damaged: {error}; restore it from a copy") from None


def _refuse_other(path: Path, given: dict[str, Any]) -> None:
    """Refuse settings that differ from those with which the folder was made."""
    stored = Manifest.read(path / LOG).sparsifier
    for name, value in given.items():
        if _in_seconds(name, stored.get(name)) != _in_seconds(name, value):
            raise InputError(
                f"{path} was made with {Param(OF_THE_LOG[name], stored.get(name))}, got "
                f"{value!r}; leave it out, or use another folder"
            )


def _in_seconds(name: str, value: Any) -> Any:
    """Return a duration such as "7d" in seconds, and other values as they are."""
    is_duration = name in ("half_life", "horizon") and value is not None
    return check_duration(name, value) if is_duration else value


def _require_service(path: Path) -> None:
    if not is_log(path / LOG):
        raise FileNotFoundError(f"{path} is not the folder of a service: it has no log")
    _require_database(path / DATABASE)


def _require_database(file: Path) -> None:
    if not (file.exists() and file.stat().st_size > 0):
        raise LogError(f"{file} is missing or empty; restore it from a copy of the folder")


def check_folder_contents(path: str | Path) -> dict[str, Any]:
    """Read and check all files of a folder, which may be in use; return what was found.

    Every record of the log is compared with its checksum. An error names the file that is missing
    or damaged.
    """
    path = Path(path)
    _require_service(path)
    log = EdgeLog(path / LOG)
    live = log.live_edges()
    n_edges = sum(len(batch.u) for batch in live)
    if n_edges != live.n_edges:
        raise LogError(
            f"{path / LOG}: {n_edges} edges were read, but there should be {live.n_edges}"
        )
    file = path / DATABASE
    with _naming_damage(file), closing(Database(file, is_read_only=True)) as database:
        said = database.check()
        if said != "ok":
            raise sqlite3.DatabaseError(said)
        facts: dict[str, Any] = {
            "n_edges": n_edges,
            "n_nodes": log.n_nodes,
            "n_operations": live.n_operations,
            "n_labels": database.count_labels(),
            "n_certificates": len(database.certificates(-1)),
            "settings": log.parameters,
        }
    answers = path / ANSWERS
    facts["answers"] = Answers.load(answers).version if answers.exists() else None
    return facts


def backup(path: str | Path, target: str | Path) -> dict[str, Any]:
    """Copy a folder that may be in use; the copy is checked.

    The order makes it safe. The answers come first, so that the journal and the database have all
    that they reflect. The journal of the log comes next: it names only bytes that are on disk. Then
    the database, so that it has the ids of all batches that the copied journal
    has; a service that starts with the copy forgets the others. No batch and no answer is stored
    between these. Then come the files that the journal names, which have only grown meanwhile.
    """
    path, target = Path(path), Path(target)
    _require_service(path)
    check_folder(target)
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{target} is not empty; give another folder for the copy")
    for attempt in range(TRIES):
        (target / LOG).mkdir(parents=True, exist_ok=True)
        try:
            _copy(path, target)
            return check_folder_contents(target)
        except FileNotFoundError:  # the log was compacted meanwhile
            if attempt == TRIES - 1:
                raise
            shutil.rmtree(target)
            time.sleep(0.2)
    raise AssertionError


def _copy(path: Path, target: Path) -> None:
    source, copy = path / LOG, target / LOG
    manifest = Manifest.read(source)
    journal = journal_path(source, manifest.journal)

    def copy_first() -> None:
        if (path / ANSWERS).exists():
            shutil.copyfile(path / ANSWERS, target / ANSWERS)
        shutil.copyfile(source / LOG_MANIFEST, copy / LOG_MANIFEST)
        shutil.copyfile(journal, copy / journal.name)

    file = path / DATABASE
    is_read_only = not os.access(path, os.W_OK)  # a snapshot, which nobody changes
    with _naming_damage(file), closing(Database(file, is_read_only=is_read_only)) as database:
        database.copy_to(target / DATABASE, copy_first)
    for file in source.glob("*.*"):
        if file.name not in (LOG_MANIFEST, journal.name) and not file.name.endswith(".tmp"):
            shutil.copyfile(file, copy / file.name)
    if Manifest.read(source) != manifest:  # compaction may have deleted files before their turn
        raise FileNotFoundError("the log was compacted")
    if (path / LETTERS).exists():
        shutil.copyfile(path / LETTERS, target / LETTERS)
    _, entries, _ = load_log(copy, NodeTable())
    for file in file_lengths(copy, entries):
        if not file.exists():
            raise FileNotFoundError(f"{file} is missing")
