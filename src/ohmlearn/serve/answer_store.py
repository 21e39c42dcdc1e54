"""Answers at one moment: the label of every node, and which edges they reflect."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import check_arrays, read_arrays, write_arrays
from ohmlearn.checks.parameters import require_extra
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import as_ids
from ohmlearn.serve.database import convert_id

EXPORT_ROWS = 1 << 17
N_BINS = 20
ABSTAINED = -2  # code of a node whose label is not probable enough
CHANGE = np.dtype([("node", "<i4"), ("before", "<i4"), ("after", "<i4"), ("probability", "<f4")])
ABOUT = (
    "version", "classes", "edges", "operation", "labels_version", "changes_end", "latest",
    "computed_at", "staleness",
)  # fmt: skip
CHECKED = {"codes": np.int32, "probabilities": np.float32, "given": np.int32, "about": np.uint8}


@dataclass(frozen=True, eq=False)
class Answers:
    """The labels of all nodes that were known when they were computed. Nothing here changes."""

    version: int  # grows with each answer
    classes: list[str]
    codes: NDArray[np.int32]  # the class of each node; -1 if no label reaches it, or ABSTAINED
    probabilities: NDArray[np.float32]  # of each node and class
    given: NDArray[np.int32]  # the nodes whose label was given
    edges: int = 0  # live ones that are reflected
    operation: int = 0  # the last one of the log
    labels_version: int = 0  # how often labels had been changed
    changes_end: int = 0  # number of changes of labels up to these answers
    latest: float = float("-inf")  # time of the latest edge
    computed_at: float = 0.0  # Unix time
    staleness: float = 0.0  # how far removals have taken the sparsifier from the edges
    seconds: float = 0.0  # that it took to compute
    n_updates: int = 0  # edges appended, removed or expired up to `operation`, in this process
    beside: tuple[NodeTable, Answers] | None = None  # of nodes that no edge has, from features

    @classmethod
    def empty(cls, version: int = 0, n_nodes: int = 0, **about: Any) -> Answers:
        """Return answers without any label."""
        nothing = np.empty((n_nodes, 0), np.float32)
        codes = np.full(n_nodes, -1, np.int32)
        return cls(version, [], codes, nothing, np.empty(0, np.int32), **about)

    @property
    def n_nodes(self) -> int:
        """Number of nodes with an answer."""
        return len(self.codes)

    @cached_property
    def largest(self) -> NDArray[np.float32]:
        """The probability of the label of each node; 0 where no label reaches it."""
        found = np.zeros(self.n_nodes, np.float32)
        rows = np.flatnonzero(self.codes == ABSTAINED)
        found[rows] = self.probabilities[rows].max(axis=1, initial=0.0)
        rows = np.flatnonzero(self.codes >= 0)
        found[rows] = self.probabilities[rows, self.codes[rows]]
        return found

    def label_of(self, number: int) -> str | None:
        """Return the label of a node; None if no label reaches it."""
        code = int(self.codes[number]) if self.has(number) else -1
        return self.classes[code] if code >= 0 else None

    def has(self, number: int) -> bool:
        """Whether anything is known of a node, although it may not be probable enough."""
        return 0 <= number < self.n_nodes and bool(self.codes[number] != -1)

    def envelope(self) -> dict[str, Any]:
        """Return which edges the answers reflect, and how old they are."""
        time_of_edge = None if self.latest == float("-inf") else self.latest
        return {
            "version": self.version,
            "watermark": {
                "edges": self.edges,
                "operation": self.operation,
                "time": time_of_edge,
                "labels_version": self.labels_version,
            },
            "computed_at": self.computed_at,
            "age_seconds": max(0.0, time.time() - self.computed_at) if self.computed_at else None,
            "staleness": self.staleness,
            "changes_next": self.changes_end,
        }

    def lookup(self, numbers: NDArray[np.integer[Any]], ids: list[Any]) -> list[dict[str, Any]]:
        """Return the answers of some nodes; a negative number is a node that has no edge yet."""
        is_given = np.isin(numbers, self.given).tolist()
        found = []
        for number, node, given in zip(numbers.tolist(), ids, is_given, strict=True):
            code = int(self.codes[number]) if self.has(number) else -1
            row = {"node": node, "known": number >= 0, "label": None, "probability": None}
            row |= {"reached": code != -1, "given": given, "probabilities": None}
            row["abstained"] = code == ABSTAINED
            if code != -1:
                p = self.probabilities[number].tolist()
                row["label"] = self.classes[code] if code >= 0 else None
                row["probability"] = round(p[code] if code >= 0 else max(p), 6)
                row["probabilities"] = {
                    name: round(each, 6) for name, each in zip(self.classes, p, strict=True)
                }
            found.append(row)
        return found

    def of_ids(self, nodes: NodeTable, ids: list[Any]) -> list[dict[str, Any]]:
        """Return the answers of nodes, which the log has or only features or labels have."""
        found = self.lookup(find_numbers(nodes, ids), ids)
        if self.beside is None:
            return found
        table, answers = self.beside
        numbers = find_numbers(table, ids)
        others = zip(numbers.tolist(), found, answers.lookup(numbers, ids), strict=True)
        return [one if number < 0 else other for number, one, other in others]

    @cached_property
    def class_sizes(self) -> list[int]:
        """The number of nodes of each class."""
        codes = self.codes[self.codes >= 0]
        return [int(size) for size in np.bincount(codes, minlength=len(self.classes))]

    @cached_property
    def histogram(self) -> list[int]:
        """How many labels have a probability in each of 20 intervals from 0 to 1."""
        probabilities = self.largest[self.codes >= 0]
        bins = np.minimum((probabilities * N_BINS).astype(np.int64), N_BINS - 1)
        return [int(count) for count in np.bincount(bins, minlength=N_BINS)]

    def export(self, nodes: NodeTable, about: dict[str, Any]) -> Iterator[bytes]:
        """Yield a Parquet file of all nodes in parts; its metadata has `about` as JSON."""
        pa = require_extra("pyarrow", "files")
        from pyarrow import parquet

        ids = nodes.to_arrow().slice(0, self.n_nodes)
        names = pa.array(self.classes, pa.string())
        is_given = np.zeros(self.n_nodes, bool)
        is_given[self.given[self.given < self.n_nodes]] = True
        schema = pa.schema(
            [("node", ids.type), ("label", pa.string()), ("probability", pa.float32()),
             ("reached", pa.bool_()), ("given", pa.bool_())],
            metadata={"ohmlearn": json.dumps(about)},
        )  # fmt: skip
        largest, file = self.largest, _Parts()
        with parquet.ParquetWriter(file, schema) as writer:
            for first in range(0, self.n_nodes, EXPORT_ROWS):
                part = slice(first, first + EXPORT_ROWS)
                codes = self.codes[part]
                reached = codes != -1
                columns = [
                    ids.slice(first, EXPORT_ROWS),
                    names.take(pa.array(codes, mask=codes < 0)),
                    pa.array(largest[part], mask=~reached),
                    pa.array(reached),
                    pa.array(is_given[part]),
                ]
                writer.write_table(pa.table(columns, schema=schema))
                yield file.take()
        yield file.take()

    # On disk.

    def save(self, path: Path) -> None:
        """Write the answers to a file, completely or not at all."""
        about = json.dumps({name: getattr(self, name) for name in ABOUT}).encode()
        arrays = {"codes": self.codes, "probabilities": self.probabilities.ravel()}
        arrays |= {"given": self.given, "about": np.frombuffer(about, np.uint8)}
        write_arrays(path, arrays)

    @classmethod
    def load(cls, path: Path) -> Answers:
        """Read saved answers; a damaged file raises a ValueError."""
        arrays = read_arrays(path)
        check_arrays(arrays, CHECKED)
        about = json.loads(arrays["about"].tobytes())
        codes, given, n_classes = arrays["codes"], arrays["given"], len(about["classes"])
        if len(arrays["probabilities"]) != len(codes) * n_classes or (codes >= n_classes).any():
            raise ValueError(f"{path}: the answers do not fit together")
        probabilities = arrays["probabilities"].reshape(len(codes), n_classes)
        return cls(**about, codes=codes, probabilities=probabilities, given=given)


class _Parts(io.RawIOBase):
    """A file for pyarrow that can only be written; what is written is taken out in between."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, content: Any) -> int:
        self._parts.append(bytes(content))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


@dataclass(frozen=True, eq=False)
class Changes:
    """Which labels differ from those of an earlier answer."""

    classes: list[str]
    rows: NDArray[np.void]

    def pack(self) -> bytes:
        """Return the changes as bytes."""
        names = json.dumps(self.classes).encode()
        return len(names).to_bytes(4, "little") + names + self.rows.tobytes()

    @classmethod
    def unpack(cls, content: bytes) -> Changes:
        """Return the changes from the bytes of `pack`."""
        end = 4 + int.from_bytes(content[:4], "little")
        return cls(json.loads(content[4:end]), np.frombuffer(content[end:], CHANGE))

    def describe(self, first: int, stop: int) -> list[dict[str, Any]]:
        """Return some of the changes in words; "node" is the number of the node."""
        names = [*self.classes, None]  # -1 is the last one
        return [
            {"node": node, "before": names[old], "after": names[new], "probability": round(p, 6)}
            for node, old, new, p in self.rows[first:stop].tolist()
        ]


def find_changes(before: Answers, after: Answers) -> Changes:
    """Compare two answers."""
    classes = list(dict.fromkeys([*after.classes, *before.classes]))
    place = {name: at for at, name in enumerate(classes)}
    codes = np.maximum(before.codes, -1)
    old = np.array([*(place[name] for name in before.classes), -1], np.int32)[codes]
    size = max(before.n_nodes, after.n_nodes)
    was, now = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    was[: len(old)] = old
    now[: after.n_nodes] = np.maximum(after.codes, -1)
    chosen = np.flatnonzero(was != now)
    rows = np.empty(len(chosen), CHANGE)
    rows["node"], rows["before"], rows["after"] = chosen, was[chosen], now[chosen]
    largest = np.zeros(size, np.float32)
    largest[: after.n_nodes] = after.largest
    rows["probability"] = largest[chosen]
    return Changes(classes, rows)


def find_numbers(nodes: NodeTable, ids: list[Any]) -> NDArray[np.int32]:
    """Return the numbers of ids, integers or strings; -1 for those that the table does not have."""
    found = np.full(len(ids), -1, np.int32)
    wanted = [convert_id(node, nodes.kind) for node in ids]
    places = [at for at, node in enumerate(wanted) if node is not None]
    if places and nodes.kind is not None:
        numbers = nodes.peek(as_ids([wanted[at] for at in places], "ids"))
        if numbers is not None:
            found[places] = numbers
    return found


def name_nodes(nodes: NodeTable, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the ids of their nodes instead of the numbers."""
    ids = nodes.ids([row["node"] for row in rows]).tolist()
    return [{**row, "node": node} for row, node in zip(rows, ids, strict=True)]
