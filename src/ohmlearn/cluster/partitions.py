"""Partitions: what one task reads. Files are divided into pieces of about equal size."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ohmlearn.edge_log import EdgeLog
from ohmlearn.edge_log.live_edges import LogSource
from ohmlearn.errors import InputError, Param
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.column_choice import ColumnSample, choose_columns
from ohmlearn.reading.file_edges import EdgeStream
from ohmlearn.reading.file_names import find_files, find_format, find_size, is_log, is_pipe
from ohmlearn.reading.parquet_reader import ParquetFile
from ohmlearn.reading.read_edges import READERS, open_stream
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import is_remote
from ohmlearn.reading.source_errors import refuse_source
from ohmlearn.reading.table_reader import Source
from ohmlearn.reading.where import columns_of, parse_where

BYTES_PER_EDGE = 16  # about, in files that do not say how many they have


class FilePiece(NamedTuple):
    """A file, some row groups of a Parquet file, or some records of a log."""

    path: str
    format: str
    row_groups: tuple[int, int] | None = None  # first, and the one after the last


@dataclass(frozen=True)
class Partition:
    """Edges that one task reads, in order.

    `content` is what the task gets: pieces of files, or something that `read_edges` accepts. An
    engine may hold a promise of it here.
    """

    number: int
    name: str
    content: Any


def divide_files(
    edges: object, partition_edges: int, options: ReadOptions, wanted: str = "paths of files"
) -> tuple[list[Partition], str | None]:
    """Return the partitions of files, and the columns that are read.

    Files are put together, Parquet files divided between row groups, and logs between their files,
    so that a partition has about `partition_edges` edges. `wanted` says what edges may be.
    """
    if isinstance(edges, EdgeLog):
        edges = edges.folder
    paths = [edges] if isinstance(edges, str | os.PathLike) else edges
    if not isinstance(paths, list | tuple) or not all(
        isinstance(path, str | os.PathLike) for path in paths
    ):
        raise TypeError(
            f"edges in partitions are {wanted}, got {type(edges).__name__}"
            + (f" with {type(paths[0]).__name__}" if isinstance(paths, list) and paths else "")
        )
    if any(path == "-" or is_pipe(os.fspath(path)) for path in paths):
        raise ValueError("workers cannot read standard input or pipes; write the edges to files")
    where, files = options.filesystem, []
    for path in map(os.fspath, paths):
        place = path if where is not None or is_remote(path) else os.path.abspath(path)
        files += [place] if is_log(place) else find_files(place, where)
    if not files:
        raise ValueError("an empty list of files has no edges")
    columns = open_stream(files[0], options).columns
    units = [unit for file in files for unit in _units(file, options)]
    return _cut(units, partition_edges), columns


def choose_frame_columns(
    names: list[str], values: ColumnSample, options: ReadOptions
) -> tuple[list[int], str]:
    """Return which columns of a data frame are needed, and what they are, in words."""
    chosen = choose_columns("the DataFrame", options, names, len(names), values)
    weight = options.weight and options.weight.column
    columns = (options.source_col, options.target_col, weight, options.time)
    if any(isinstance(column, int) and column is not True for column in columns):
        return list(range(len(names))), str(chosen)  # positions count from the first column
    more = [] if options.where is None else columns_of(parse_where(options.where))
    for name in more:
        if name not in names:
            refuse_source("the DataFrame", f"has no column {name!r} for where")
    return list(dict.fromkeys([*chosen.used, *map(names.index, more)])), str(chosen)


def number_partitions(contents: Iterable[Any]) -> list[Partition]:
    """Return partitions with these contents."""
    return [Partition(at, f"partition {at}", content) for at, content in enumerate(contents)]


def open_partition(
    content: Any, options: ReadOptions, nodes: NodeTable | None = None
) -> EdgeStream:
    """Return the edges of a partition, on the worker that reads them."""
    if pieces := pieces_of(content):
        sources: list[Source] = []
        for path, kind, groups in pieces:
            if groups is None:
                sources.append(READERS[kind](path, options))
            else:
                reader = LogSource if kind == "log" else ParquetFile
                sources.append(reader(path, options, range(*groups)))
        return EdgeStream(sources, nodes=nodes)
    batches = [content] if isinstance(content, tuple) else content
    if isinstance(batches, list) and not batches:  # not a list of files
        batches = iter(())
    return open_stream(batches, options, nodes=nodes)


def pieces_of(content: Any) -> tuple[FilePiece, ...]:
    """Return the pieces of files of a partition; none if it has another source."""
    is_files = isinstance(content, tuple) and content and isinstance(content[0], FilePiece)
    return content if is_files else ()


def make_options(options: dict[str, Any]) -> ReadOptions:
    """Return how to read, checked before any work."""
    known = [field.name for field in fields(ReadOptions)]
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {name!r}; options of reading: {', '.join(known)}")
    if options.get("event_id_col") is not None:
        raise InputError(
            f"{Param('event_id_col', options['event_id_col'])} needs edges that are read one after "
            f"the other, but partitions are read at the same time",
            remedy="drop repeated events first, for example with drop_duplicates",
        )
    found = ReadOptions(**options)
    if found.weight is not None and found.weight.function == "cap":
        raise InputError(
            f"{Param('weight_col', found.weight_col)} needs the first edges, which partitions that "
            f"are read at the same time do not know",
            remedy="use log or sqrt, or write the weights to the files",
        )
    return found


def _units(path: str, options: ReadOptions) -> Iterator[tuple[FilePiece, int]]:
    """Yield what cannot be divided, and about how many edges it has."""
    if is_log(path):
        for records, n_rows in EdgeLog(path).live_edges().segments():
            yield FilePiece(path, "log", (records.start, records.stop)), n_rows
        return
    kind = options.format or find_format(path, options.filesystem)
    if kind == "parquet":
        sizes = ParquetFile(path, options).sizes()
        for at, size in enumerate(sizes):
            yield FilePiece(path, kind, (at, at + 1)), size
        if sizes:
            return
    yield FilePiece(path, kind), find_size(path, options.filesystem) // BYTES_PER_EDGE


def _cut(units: list[tuple[FilePiece, int]], partition_edges: int) -> list[Partition]:
    """Put units together in order, in partitions of about equal size."""
    total = sum(size for _, size in units)
    count = max(1, math.ceil(total / partition_edges))
    groups: dict[int, list[FilePiece]] = {}
    before = 0
    for piece, size in units:
        middle = before + size / 2
        group = groups.setdefault(min(count - 1, int(middle * count / max(1, total))), [])
        if group and group[-1].path == piece.path and piece.row_groups and group[-1].row_groups:
            start, _ = group.pop().row_groups or piece.row_groups
            piece = piece._replace(row_groups=(start, piece.row_groups[1]))
        group.append(piece)
        before += size
    partitions = []
    for number, pieces in enumerate(groups.values()):
        names = " to ".join(_name(piece) for piece in dict.fromkeys((pieces[0], pieces[-1])))
        partitions.append(Partition(number, f"partition {number} ({names})", tuple(pieces)))
    return partitions


def _name(piece: FilePiece) -> str:
    if piece.row_groups is None:
        return piece.path
    first, end = piece.row_groups
    kind = "record" if piece.format == "log" else "row group"
    groups = f"{kind} {first}" if end == first + 1 else f"{kind}s {first} to {end - 1}"
    return f"{piece.path}, {groups}"
