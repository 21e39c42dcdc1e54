"""The database of a service, an SQLite file: labels, ids of batches and events, offsets, changes.

Edges are in the log, everything else is here. A batch and its id must both survive a crash, or
neither. So the id is committed before the log is flushed, together with the number of the operation
that the batch will have. If the log does not have that operation after a crash, the batch was never
acknowledged, and `forget_after` deletes its id. The same holds for the offsets of Kafka, and for
the ids of events. These are not rows, but the bytes of all hashes of a batch are one value: at
8 bytes per edge, SQLite takes them as fast as a file would, and commits them with the rest.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ohmlearn.checks.parameters import LIGHTEST
from ohmlearn.errors import InputError, Param
from ohmlearn.reading.event_ids import MOST, Events

VERSION = 3  # the first one had no ids of events, the second no features
AS_INTEGER = r"0|-?[1-9][0-9]{0,18}"
INT64 = range(-(1 << 63), 1 << 63)
# Weights of labels: what every solve accepts, and not so heavy that others lose their digits.
LABEL_WEIGHTS = (LIGHTEST, 1e6)
MOST_CERTIFICATES = 10_000  # that are kept
ERRORS = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_CANTOPEN: errno.EACCES}
TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    node TEXT PRIMARY KEY, label TEXT NOT NULL, weight REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    id TEXT PRIMARY KEY, operation INTEGER NOT NULL, receipt TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batches_by_operation ON batches (operation);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, part INTEGER, next INTEGER, operation INTEGER NOT NULL,
    PRIMARY KEY (topic, part, next)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, version INTEGER NOT NULL,
    at REAL NOT NULL, content BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS certificates (at REAL PRIMARY KEY, content TEXT NOT NULL);
-- In the order in which they came. `content` has the values by column, as JSON.
CREATE TABLE IF NOT EXISTS features (node TEXT PRIMARY KEY, content TEXT NOT NULL);
-- `stop` counts the ids of this operation and all before it.
CREATE TABLE IF NOT EXISTS events (
    operation INTEGER PRIMARY KEY, stop INTEGER NOT NULL, ids BLOB NOT NULL
);
"""
Node = int | str
Values = dict[str, str | float | bool | None]  # of features, by column


class LabelRow(NamedTuple):
    """A label that is given to a node, with the Unix time of that once it is stored."""

    node: Node
    label: str
    weight: float = 1.0
    at: float | None = None


class Offset(NamedTuple):
    """The place of a message in Kafka.

    `start` is where the consumer was before the message. If it is after the next offset that is
    stored, an earlier message was not counted, and this one is refused. -1 skips the comparison.
    """

    topic: str
    partition: int
    offset: int
    start: int = -1


class Receipt(NamedTuple):
    """What became of a batch."""

    n_edges: int
    n_bad: int = 0
    first_bad: str | None = None
    repeated: bool = False
    operation: int = 0
    n_removed: int = 0
    n_missing: int = 0
    n_repeated: int = 0  # events that had been counted


class Database:
    """The SQLite file of a service. Threads may share it; each has its own connection."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path, self._is_read_only = path, is_read_only
        self._own = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._is_closed = False
        self._n_changes: int | None = None  # that are kept; None before this process adds some
        try:
            # Nothing is written if nothing has to be: a full disk can still be read.
            version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
            if not 0 <= version <= VERSION:
                raise ValueError(
                    f"{self.path} has version {version}, but this version of ohmlearn reads "
                    f"versions up to {VERSION}; use the version of ohmlearn that wrote it"
                )
            if version < VERSION and not is_read_only:
                with self._change() as connection:
                    for statement in TABLES.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                self._n_changes = 0 if version == 0 else None
        except BaseException as error:
            self.close()
            number = ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
            if number is None:
                raise
            raise OSError(number, str(error), str(path)) from None  # which names the file

    @property
    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            mode = "ro" if self._is_read_only else "rwc"
            if self._is_read_only and not os.access(self.path.parent, os.W_OK):
                # Without a log of its own, SQLite would have to make one.
                mode += "" if Path(f"{self.path}-wal").exists() else "&immutable=1"
            with self._guard:
                if self._is_closed:
                    raise sqlite3.ProgrammingError("the database is closed")
                connection = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?mode={mode}", uri=True,
                    timeout=30.0, isolation_level=None, check_same_thread=False,
                )  # fmt: skip
                self._all.append(connection)
            self._own.connection = connection
            if not self._is_read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")  # survives a loss of power
        return connection

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Do what is inside in one transaction."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close all connections; those of other threads must not be in use."""
        with self._guard:
            self._is_closed = True
            for connection in self._all:
                connection.close()
            self._all.clear()
        self._own = threading.local()

    # Batches, offsets and events.

    def find_batch(self, batch_id: str) -> Receipt | None:
        """Return what became of a batch that was counted before."""
        row = self._connection.execute(
            "SELECT receipt FROM batches WHERE id = ?", (batch_id,)
        ).fetchone()
        return None if row is None else Receipt(*json.loads(row[0]))

    def keep_column(self, name: str, column: str | None) -> str | None:
        """Return a column, such as that of the ids of events; the first one given is kept."""
        known = self._get(name)
        if column is None or column == known:
            return known
        if known is not None:
            raise InputError(
                f"{self.path.parent} was made with {Param(name, known)}, got {column!r}; "
                f"leave it out, or use another folder"
            )
        with self._change() as connection:
            self._set(connection, name, column)
        return column

    def events(self) -> Events:
        """Return the ids of the last events, from the oldest to the newest."""
        rows = self._connection.execute("SELECT ids FROM events ORDER BY operation")
        return np.frombuffer(b"".join(ids for (ids,) in rows), np.uint64)

    def record(
        self,
        batches: Mapping[str, Receipt],
        offsets: Iterable[tuple[Offset, int]],
        events: Mapping[int, Events],
    ) -> None:
        """Store ids of batches, offsets with the operations of their messages, and new events.

        The log must have all operations that were recorded before.
        """
        with self._change() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)",
                [(name, one.operation, json.dumps(one)) for name, one in batches.items()],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)",
                [(at.topic, at.partition, at.offset + 1, operation) for at, operation in offsets],
            )
            if events:
                self._add_events(connection, events)

    @staticmethod
    def _add_events(connection: sqlite3.Connection, events: Mapping[int, Events]) -> None:
        row = connection.execute(
            "SELECT stop FROM events ORDER BY operation DESC LIMIT 1"
        ).fetchone()
        stop = 0 if row is None else int(row[0])
        # Those before the last MOST; the new ones do not count yet, as the log may still lose them.
        connection.execute(
            "DELETE FROM events WHERE operation < "
            "(SELECT operation FROM events WHERE stop > ? ORDER BY operation LIMIT 1)",
            (stop - MOST,),
        )
        for operation, ids in events.items():
            stop += len(ids)
            connection.execute("INSERT INTO events VALUES (?, ?, ?)", (operation, stop, ids.data))

    def forget_after(self, operation: int) -> None:
        """Delete what belongs to operations that the log does not have."""
        with self._change() as connection:
            for table in ("batches", "offsets", "events"):
                connection.execute(f"DELETE FROM {table} WHERE operation > ?", (operation,))

    def prune(self, operation: int, most: int) -> None:
        """Delete old ids, of which `most` stay, and offsets before the last one.

        The log must have all operations up to `operation`.
        """
        with self._change() as connection:
            connection.execute(
                "DELETE FROM offsets WHERE EXISTS (SELECT 1 FROM offsets AS later WHERE "
                "later.topic = offsets.topic AND later.part = offsets.part AND "
                "later.next > offsets.next AND later.operation <= ?)",
                (operation,),
            )
            row = connection.execute(
                "SELECT operation FROM batches ORDER BY operation DESC LIMIT 1 OFFSET ?", (most,)
            ).fetchone()
            if row is not None:
                connection.execute("DELETE FROM batches WHERE operation <= ?", row)

    def next_offsets(self, topic: str) -> dict[int, int]:
        """Return the next offset of each partition."""
        rows = self._connection.execute(
            "SELECT part, max(next) FROM offsets WHERE topic = ? GROUP BY part", (topic,)
        )
        return {int(part): int(offset) for part, offset in rows}

    # Labels.

    def put_labels(self, rows: Iterable[LabelRow]) -> int:
        """Store labels; the last one of a node replaces others. Return how many were stored."""
        now = time.time()
        content = {
            str(row.node): (json.dumps(row.node), row.label, row.weight, now) for row in rows
        }
        self._replace("labels", content, list(content.values()))
        return len(content)

    def delete_labels(self, nodes: Iterable[Node]) -> int:
        """Delete the labels of nodes; return how many had one."""
        return self._replace("labels", nodes, [])

    def _replace(self, table: str, nodes: Iterable[Node], rows: Sequence[tuple[Any, ...]]) -> int:
        """Store rows instead of those that nodes have; return how many these were."""
        # 5 and "5" are the same node, whichever the log has.
        keys = [(json.dumps(node),) for node in both_forms(nodes)]
        with self._change() as connection:
            n_deleted = connection.executemany(f"DELETE FROM {table} WHERE node = ?", keys).rowcount
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            for counted in {"labels", table}:  # that of labels says whether answers are old
                self._count(connection, f"{counted}_version")
        return n_deleted

    def labels(self, after: str = "", limit: int = -1) -> list[LabelRow]:
        """Return labels in the order of their keys, which are nodes as JSON."""
        rows = self._connection.execute(
            "SELECT node, label, weight, at FROM labels WHERE node > ? ORDER BY node LIMIT ?",
            (after, limit),
        )
        return [LabelRow(json.loads(node), *rest) for node, *rest in rows]

    def count_labels(self) -> int:
        """Return the number of labels."""
        return int(self._connection.execute("SELECT count(*) FROM labels").fetchone()[0])

    # Features.

    def put_features(self, rows: Mapping[Node, Values]) -> int:
        """Store features of nodes instead of earlier ones; a row without values deletes them."""
        content = [(json.dumps(node), json.dumps(row)) for node, row in rows.items() if row]
        self._replace("features", rows, content)
        return len(rows)

    def features(self) -> list[tuple[Node, Values]]:
        """Return the features of nodes, in the order in which they came."""
        rows = self._connection.execute("SELECT node, content FROM features ORDER BY rowid")
        return [(json.loads(node), json.loads(content)) for node, content in rows]

    # Changes of labels, and certificates.

    def next_change(self) -> int:
        """Return the number of the next change.

        In a new file they start from 0. Whenever a process starts, its first change has the present
        time in microseconds as its number. So if the folder is a copy of an earlier state, numbers
        that were given out since then are not used again, and `has_change` knows that they are
        from elsewhere.
        """
        end = self.get("changes_end")
        return end if self._n_changes is not None else max(end + 1, int(time.time() * 1e6))

    def add_changes(self, first: int, count: int, version: int, content: bytes, most: int) -> None:
        """Store the changes of one answer, numbered from `first` on; of older ones, keep `most`."""
        with self._change() as connection:
            kept = self._n_changes
            if kept is None:
                kept = int(connection.execute("SELECT total(count) FROM changes").fetchone()[0])
            if kept == 0:
                self._set(connection, "changes_first", first)
            for oldest, n_old in connection.execute(
                "SELECT first, count FROM changes ORDER BY first"
            ):
                if kept + count - n_old < most:
                    break
                connection.execute("DELETE FROM changes WHERE first = ?", (oldest,))
                kept -= n_old
            connection.execute(
                "INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?, ?)",
                (first, count, version, time.time(), content),
            )
            self._set(connection, "changes_end", first + count)
            self._set(connection, "version", version)
        self._n_changes = kept + count

    def changes_from(self, number: int) -> Iterator[tuple[int, int, int, float, bytes]]:
        """Yield rows (first, count, version, at, content) from a change on."""
        yield from self._connection.execute(
            "SELECT first, count, version, at, content FROM changes WHERE first + count > ? "
            "ORDER BY first",
            (number,),
        )

    def changes_start(self) -> int:
        """Return the number of the oldest change that is kept; 0 if none was ever deleted."""
        row = self._connection.execute("SELECT min(first) FROM changes").fetchone()
        oldest = self.get("changes_end") if row[0] is None else int(row[0])
        return 0 if oldest == self.get("changes_first") else oldest

    def has_change(self, number: int) -> bool:
        """Whether a number is one that `changes_from` can start with."""
        row = self._connection.execute(
            "SELECT first + count FROM changes WHERE first <= ? ORDER BY first DESC LIMIT 1",
            (number,),
        ).fetchone()
        return number == 0 if row is None else number <= row[0]

    def add_certificate(self, certificate: dict[str, Any]) -> None:
        """Store a certificate."""
        with self._change() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO certificates VALUES (?, ?)",
                (certificate["at"], json.dumps(certificate)),
            )
            connection.execute(
                "DELETE FROM certificates WHERE at < (SELECT at FROM certificates "
                "ORDER BY at DESC LIMIT 1 OFFSET ?)",
                (MOST_CERTIFICATES - 1,),
            )

    def certificates(self, limit: int) -> list[dict[str, Any]]:
        """Return the last certificates, the oldest of them first."""
        rows = self._connection.execute(
            "SELECT content FROM certificates ORDER BY at DESC LIMIT ?", (limit,)
        )
        return [json.loads(content) for (content,) in rows][::-1]

    # Numbers.

    def get(self, name: str) -> int:
        """Return a number that was stored by name; 0 if there is none."""
        return int(self._get(name) or 0)

    def _get(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    @staticmethod
    def _set(connection: sqlite3.Connection, name: str, value: int | str) -> None:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))

    @staticmethod
    def _count(connection: sqlite3.Connection, name: str) -> None:
        connection.execute(
            "INSERT INTO meta VALUES (?, '1') ON CONFLICT DO UPDATE SET value = value + 1", (name,)
        )

    def check(self) -> str:
        """Return what SQLite says about the file; "ok" if it is whole."""
        return str(self._connection.execute("PRAGMA quick_check").fetchone()[0])

    def copy_to(self, path: Path, before: Callable[[], None]) -> None:
        """Call a function, and copy the database to another file, without a change in between."""
        source = Database(self.path, is_read_only=True)
        # The transaction keeps others from changing it.
        still = nullcontext() if self._is_read_only else self._change()
        with closing(source), closing(sqlite3.connect(path)) as target, still:
            before()
            source._connection.backup(target)


def convert_id(node: int | str, kind: str | None) -> int | str | None:
    """Return an id in the kind of those of a log; None if it cannot be one of them."""
    if kind == "string":
        return str(node) or None
    if isinstance(node, str) and re.fullmatch(AS_INTEGER, node):
        node = int(node)
    return node if isinstance(node, int) and node in INT64 else None


def both_forms(nodes: Iterable[int | str]) -> list[int | str]:
    """Return each node as text and, if it looks like one, as an integer.

    Before the first edge has decided which the ids are, a label may be given in either form.
    """
    texts = [str(node) for node in nodes]
    return [
        form
        for text in texts
        for form in ((text, int(text)) if re.fullmatch(AS_INTEGER, text) else (text,))
    ]
