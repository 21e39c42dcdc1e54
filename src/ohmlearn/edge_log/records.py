"""The files of a log beside its journal: edges as Arrow record batches, ids of nodes, and rows.

A file of edges, a segment, is an Arrow IPC stream: pyarrow, DuckDB or pandas can read it, too. It
does not say which rows were removed.
"""

from __future__ import annotations

import mmap
import os
import zlib
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.parameters import require_extra
from ohmlearn.edge_log.journal import Contents, Entries, Kind, Rows, journal_path, read_journal
from ohmlearn.edge_log.manifest import LogError, Manifest, refuse_damaged
from ohmlearn.edges import Batch
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import Ids, Strings, kinds_of, strings_of

if TYPE_CHECKING:
    import pyarrow

FLOAT32, FLOAT64, TIMES = 1, 2, 4  # bits of the form of edges: type of weights, and whether timed
INTEGERS, TEXT, TEXT_OF_KINDS = 1, 2, 3  # forms of ids; the last start with the kind of the node
Files = dict[Path, memoryview]  # contents of files, each read once
TRIES = 100  # a reader starts over if compaction deletes files that it was about to read


class EdgeColumns(Batch):
    """Columns of edges, numbered by the table of the log."""

    __slots__ = ()

    @property
    def form(self) -> int:
        """Which columns there are, as a number for the journal."""
        form = 0 if self.t is None else TIMES
        if self.w is not None:
            form |= FLOAT32 if self.w.dtype == np.float32 else FLOAT64
        return form

    def take(self, rows: slice | NDArray[Any]) -> EdgeColumns:
        """Return some rows: a slice, a mask or their numbers."""
        columns: list[Any] = [None if column is None else column[rows] for column in self]
        return EdgeColumns(*columns)


def concatenate(parts: list[EdgeColumns]) -> EdgeColumns:
    """Return the rows of several columns of the same form, one after the other."""
    if len(parts) == 1:
        return parts[0]
    grouped: Any = zip(*parts, strict=True)
    columns: list[Any] = [None if x[0] is None else np.concatenate(x) for x in grouped]
    return EdgeColumns(*columns)


@cache
def make_schema(form: int) -> pyarrow.Schema:
    """Return the Arrow schema of a segment."""
    pa = require_extra("pyarrow", "files")
    fields = [("u", pa.int32()), ("v", pa.int32())]
    if form & (FLOAT32 | FLOAT64):
        fields.append(("w", pa.float32() if form & FLOAT32 else pa.float64()))
    if form & TIMES:
        fields.append(("t", pa.float64()))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def encode_edges(columns: EdgeColumns) -> pyarrow.Buffer:
    """Return a record batch as a message of an IPC stream."""
    pa = require_extra("pyarrow", "files")
    schema = make_schema(columns.form)
    present = [np.ascontiguousarray(column) for column in columns if column is not None]
    arrays = [  # not pa.array, which imports pandas
        pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])
        for kind, column in zip(schema.types, present, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema).serialize()


def decode_edges(message: pyarrow.Buffer, form: int) -> EdgeColumns:
    """Return the columns of a message, which are not copied."""
    pa = require_extra("pyarrow", "files")
    batch = pa.ipc.read_record_batch(message, make_schema(form))
    columns: list[NDArray[Any]] = [column.to_numpy() for column in batch.columns]
    return EdgeColumns(**dict(zip(batch.schema.names, columns, strict=True)))


def encode_ids(ids: Ids, *, have_kinds: bool = False) -> tuple[int, bytes]:
    """Return the form and the bytes of ids."""
    if not isinstance(ids, Strings):
        return INTEGERS, ids.astype("<i8").tobytes()
    lengths = np.diff(ids.offsets).astype("<u4")
    text = ids.data[ids.offsets[0] : ids.offsets[-1]]
    form = TEXT_OF_KINDS if have_kinds else TEXT
    return form, len(lengths).to_bytes(8, "little") + lengths.tobytes() + text.tobytes()


def decode_ids(contents: list[bytes], form: int) -> Ids:
    """Return the ids of several payloads of one form."""
    if form == INTEGERS:
        return np.frombuffer(b"".join(contents), "<i8").astype(np.int64)
    counts = [int.from_bytes(content[:8], "little") for content in contents]
    parts = list(zip(contents, counts, strict=True))
    lengths = [np.frombuffer(content, "<u4", count, 8) for content, count in parts]
    text = b"".join(content[8 + 4 * count :] for content, count in parts)
    return strings_of(np.concatenate(lengths), np.frombuffer(text, np.uint8))


@lru_cache(64)  # making and comparing paths took a sixth of the time of small appends
def payload_path(folder: Path, kind: Kind, number: int) -> Path:
    """Return the path of a file of payloads: ids, edges of a segment, or rows removed from some."""
    names = {Kind.EDGES: f"edges-{number:06}.arrows", Kind.REMOVE: f"removed-{number:06}.rows"}
    return folder / names.get(kind, "nodes.ids")


class SegmentFile:
    """A file of edges, mapped into memory; `end` is the number of bytes that it must have."""

    def __init__(self, path: Path, end: int) -> None:
        with open(path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size < end:
                refuse_damaged(path, self.size, f"{end - self.size} bytes are missing")
            self._map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ)
        self._buffer = require_extra("pyarrow", "files").py_buffer(self._map)

    def read(self, offset: int, length: int) -> pyarrow.Buffer:
        """Return some bytes, which are not copied."""
        return self._buffer.slice(offset, length)

    def release(self, offset: int, length: int) -> None:
        """Let the system take pages back; they are mapped again if they are used again.

        Else the memory of this process would seem to grow to the size of the file.
        """
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        n_bytes = (offset + length) // mmap.PAGESIZE * mmap.PAGESIZE - first
        if n_bytes > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, n_bytes)


def open_segments(
    folder: Path, contents: Contents, known: dict[int, SegmentFile]
) -> dict[int, SegmentFile]:
    """Return all files that hold records; new ones are added to the known ones.

    A mapped file can be read after compaction has deleted it.
    """
    for segment, end in contents.segment_ends.items():
        if segment not in known or known[segment].size < end:
            known[segment] = SegmentFile(payload_path(folder, Kind.EDGES, segment), end)
    return {segment: known[segment] for segment in contents.segment_ends}


def load_log(
    folder: Path, nodes: NodeTable, files: dict[int, SegmentFile] | None = None
) -> tuple[Manifest, Entries, Contents]:
    """Read manifest and journal, and add ids to `nodes` that it does not have yet.

    If `files` are given, they become those that hold records, so that compaction may delete them.
    If a file is missing or damaged, LogError is raised.
    """
    for _ in range(TRIES):
        manifest = Manifest.read(folder)
        try:
            entries = read_journal(journal_path(folder, manifest.journal))
            _add_nodes(folder, entries, nodes)
            contents = read_contents(folder, manifest, entries)
            if files is not None:
                files.clear()
                open_segments(folder, contents, files)
            return manifest, entries, contents
        except FileNotFoundError as error:
            if Manifest.read(folder) == manifest:
                what = f"{error.filename} is missing; restore it from a copy of the folder"
                raise LogError(what) from error
    raise LogError(f"{folder}: the log was compacted again and again while it was opened")


def read_contents(folder: Path, manifest: Manifest, entries: Entries) -> Contents:
    """Return what a log holds after some operations."""
    contents = Contents.from_entries(entries)
    files: Files = {}
    removed: dict[int, list[Rows]] = {}
    for entry in entries[entries["kind"] == Kind.REMOVE]:
        removed.setdefault(int(entry["segment"]), []).append(read_rows(folder, entry, files))
    for segment, parts in removed.items():
        contents.remove(segment, np.concatenate(parts))
    if manifest.n_head:  # these entries stand for many operations
        head = int(np.count_nonzero(entries["is_last"][: manifest.n_head]))
        contents.n_operations += manifest.n_operations - head
    return contents


def read_rows(folder: Path, entry: np.void, files: Files | None = None) -> Rows:
    """Return the rows that an entry of kind REMOVE removes."""
    return np.frombuffer(_read_payload(folder, entry, {} if files is None else files), np.uint32)


def file_lengths(folder: Path, entries: Entries) -> dict[Path, int]:
    """Return how many bytes of each file belong to the log."""
    lengths: dict[Path, int] = {}
    named = entries[entries["kind"] != Kind.EXPIRE]
    for kind, number in np.unique(named[["kind", "file"]]).tolist():
        own = named[(named["kind"] == kind) & (named["file"] == number)]
        path = payload_path(folder, Kind(kind), number)
        lengths[path] = int((own["offset"] + own["length"]).max())
    return lengths


def _add_nodes(folder: Path, entries: Entries, nodes: NodeTable) -> None:
    n_seen, form, contents = 0, 0, []
    files: Files = {}
    for entry in entries[entries["kind"] == Kind.NODES]:
        if n_seen >= len(nodes):
            contents.append(bytes(_read_payload(folder, entry, files)))
            form = int(entry["form"])
        n_seen += int(entry["rows"])
    if contents:
        before, ids = len(nodes), decode_ids(contents, form)
        if form == TEXT_OF_KINDS and isinstance(ids, Strings):
            nodes.add_kinds(kinds_of(ids))
        nodes.add(ids)
        if len(nodes) != before + ids.size:
            path = payload_path(folder, Kind.NODES, 0)
            raise LogError(f"{path} has an id twice; restore it from a copy")


def _read_payload(folder: Path, entry: np.void, files: Files) -> memoryview:
    """Return the payload of an entry; each file is read once, as a whole."""
    path = payload_path(folder, Kind(int(entry["kind"])), int(entry["file"]))
    if path not in files:
        files[path] = memoryview(path.read_bytes())
    offset, length = int(entry["offset"]), int(entry["length"])
    payload = files[path][offset : offset + length]
    if len(payload) < length:
        missing = length - len(payload)
        refuse_damaged(path, offset + len(payload), f"{missing} bytes are missing")
    if zlib.crc32(payload) != entry["payload_crc"]:
        refuse_damaged(path, offset, "the content does not match its checksum")
    return payload
