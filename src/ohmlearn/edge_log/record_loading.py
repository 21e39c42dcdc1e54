"""Read a log from its folder."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ohmlearn.edge_log.journal import Entries, Kind, read_journal
from ohmlearn.edge_log.log_contents import Contents, Rows
from ohmlearn.edge_log.log_errors import LogError, refuse_damaged
from ohmlearn.edge_log.log_segments import segment_path
from ohmlearn.edge_log.log_writer import journal_path
from ohmlearn.edge_log.manifest import Manifest
from ohmlearn.edge_log.records import TEXT_OF_KINDS, decode_ids
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Strings
from ohmlearn.nodes.node_types import kinds_of

__all__ = [
    "Loaded",
    "file_lengths",
    "load_log",
    "nodes_path",
    "read_contents",
    "read_rows",
    "removed_path",
]

TRIES = 100  # a reader starts over if compaction deletes files that it was about to read


class Loaded(NamedTuple):
    """What the files of a log say."""

    manifest: Manifest
    entries: Entries
    contents: Contents


def nodes_path(folder: Path) -> Path:
    """Return the path of the ids of the nodes."""
    return folder / "nodes.ids"


def removed_path(folder: Path, number: int) -> Path:
    """Return the path of the rows that were removed while a journal was in use."""
    return folder / f"removed-{number:06}.rows"


def load_log(folder: Path, nodes: NodeTable) -> Loaded:
    """Read manifest and journal, and add ids to `nodes` that it does not have yet.

    Raises
    ------
    LogError
        If a file is missing or damaged.
    """
    for _ in range(TRIES):
        manifest = Manifest.read(folder)
        try:
            entries = read_journal(journal_path(folder, manifest.journal))
            _add_nodes(folder, entries, nodes)
            return Loaded(manifest, entries, read_contents(folder, manifest, entries))
        except FileNotFoundError as error:
            if Manifest.read(folder) == manifest:
                raise LogError(
                    f"{error.filename} is missing; restore it from a copy of the folder"
                ) from error
    raise LogError(f"{folder}: the log was compacted again and again while it was opened")


def read_contents(folder: Path, manifest: Manifest, entries: Entries) -> Contents:
    """Return what a log holds after some operations."""
    contents, files = Contents.from_entries(entries), _Files()
    removed: dict[int, list[Rows]] = {}
    for at in np.flatnonzero(entries["kind"] == Kind.REMOVE):
        entry = entries[at : at + 1]
        payload = files.read(removed_path(folder, int(entry["file"][0])), entry)
        rows = np.frombuffer(payload, np.uint32)
        removed.setdefault(int(entry["segment"][0]), []).append(rows)
    for segment, parts in removed.items():
        contents.remove(segment, np.concatenate(parts))
    if manifest.n_head:  # these entries stand for many operations
        head = int(np.count_nonzero(entries["is_last"][: manifest.n_head]))
        contents.n_operations += manifest.n_operations - head
    return contents


def read_rows(folder: Path, entry: Entries) -> Rows:
    """Return the rows that an entry of kind REMOVE removes."""
    path = removed_path(folder, int(entry["file"][0]))
    return np.frombuffer(_Files().read(path, entry), np.uint32)


def file_lengths(folder: Path, entries: Entries) -> dict[Path, int]:
    """Return how many bytes of each file belong to the log."""
    lengths: dict[Path, int] = {}
    for kind, number in np.unique(entries[["kind", "file"]]):
        own = entries[(entries["kind"] == kind) & (entries["file"] == number)]
        if kind == Kind.NODES:
            path = nodes_path(folder)
        elif kind == Kind.EDGES:
            path = segment_path(folder, int(number))
        elif kind == Kind.REMOVE:
            path = removed_path(folder, int(number))
        else:
            continue
        lengths[path] = int((own["offset"] + own["length"]).max())
    return lengths


def _add_nodes(folder: Path, entries: Entries, nodes: NodeTable) -> None:
    n_seen, form, contents, files = 0, 0, [], _Files()
    for at in np.flatnonzero(entries["kind"] == Kind.NODES):
        entry = entries[at : at + 1]
        if n_seen >= len(nodes):
            contents.append(bytes(files.read(nodes_path(folder), entry)))
            form = int(entry["form"][0])
        n_seen += int(entry["rows"][0])
    if contents:
        before, ids = len(nodes), decode_ids(contents, form)
        if form == TEXT_OF_KINDS and isinstance(ids, Strings):
            nodes.add_kinds(kinds_of(ids))
        nodes.add(ids)
        if len(nodes) != before + ids.size:
            raise LogError(f"{nodes_path(folder)} has an id twice; restore it from a copy")


class _Files:
    """Files that are read as a whole, each once."""

    def __init__(self) -> None:
        self._contents: dict[Path, memoryview] = {}

    def read(self, path: Path, entry: Entries) -> memoryview:
        """Return the payload of an entry."""
        if path not in self._contents:
            self._contents[path] = memoryview(path.read_bytes())
        offset, length = int(entry["offset"][0]), int(entry["length"][0])
        payload = self._contents[path][offset : offset + length]
        if len(payload) < length:
            missing = length - len(payload)
            refuse_damaged(path, offset + len(payload), f"{missing} bytes are missing")
        if zlib.crc32(payload) != entry["payload_crc"][0]:
            refuse_damaged(path, offset, "the content does not match its checksum")
        return payload
