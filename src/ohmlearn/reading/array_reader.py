"""Edges from arrays: numpy's .npy and .npz files, arrays in memory, lists and iterables of batches.

A .npy file has columns; a .npz file has named columns or a sparse matrix.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from numbers import Integral
from typing import IO, Any
from uuid import UUID
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from ohmlearn.checks.edge_arrays import split_batch
from ohmlearn.checks.parameters import require_extra
from ohmlearn.errors import Param, Setting
from ohmlearn.nodes.node_ids import FractionError, Ids, Strings, as_ids, check_equal_sizes, read_ids
from ohmlearn.reading.arrow_reader import ArrowObject, whole_numbers
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample, choose_columns, doubt_weights
from ohmlearn.reading.file_names import read_start
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import BadRows, reading, refuse_source, shorten
from ohmlearn.reading.table_reader import RawBatch, Source

ROWS = 1 << 17  # in a batch
LOOK = 1000  # rows that decide which columns of a matrix are not ends
BATCH_BYTES = 1 << 24  # at most so many of a column in a batch
# A matrix is decompressed as a whole. One with more bytes than this must not be more than
# MOST_PACKED times as large as its file.
SMALL_MATRIX = 1 << 28
MOST_PACKED = 100
TWO_KINDS = f"use {Setting('bipartite', True)}"
ArrayColumns = tuple[Any, Any, Any, Any]  # u, v, w or None, t or None


def columns_of(name: str, options: ReadOptions, array: NDArray[Any]) -> tuple[ArrayColumns, Any]:
    """Return the columns of an array of shape (n, 2), (n, 3) or (n, 4), or with named fields."""
    if array.dtype.names is not None:
        names = list(array.dtype.names)
        values = look_at_types(array.dtype[each] for each in names)
        columns = choose_columns(name, options, names, len(names), values)
        if array.ndim != 1:
            refuse_source(name, f"must be one-dimensional, got shape {array.shape}")
        return _pick([array[each] for each in names], columns), columns
    if array.ndim != 2 or array.shape[1] not in (2, 3, 4):
        remedy = "; transpose it" if array.ndim == 2 and array.shape[0] in (2, 3, 4) else ""
        refuse_source(
            name, f"one edge per row is needed, shape (n, 2) or (n, 3), got {array.shape}{remedy}"
        )
    n_columns = array.shape[1]
    if n_columns == 4 and options.time is None:
        why = f"has four columns; if the last one has times, use {Setting('time', 3)}"
        refuse_source(name, why)
    if n_columns == 4 and options.time is True:
        options = replace(options, time=3)
    sample = _look_at_rows(array)
    others = [at for at in range(n_columns) if options.time is True or at != options.time]
    is_clear = len(others) == 3 and others[2] not in sample.doubts
    if is_clear and options.weight_col is None and options.rows.weights:
        options = replace(options, weight_col=others[2])
    columns = choose_columns(name, options, None, n_columns, sample)
    return _pick(array.T, columns), columns


def look_at_types(types: Iterable[np.dtype[Any]]) -> ColumnSample:
    """Return which columns are not ends, by their types."""
    kinds = [kind.kind for kind in types]
    return ColumnSample(
        times={at for at, kind in enumerate(kinds) if kind in "mM"},
        floats={at for at, kind in enumerate(kinds) if kind == "f"},
        numbers={at for at, kind in enumerate(kinds) if kind in "iu"},
    )


def _look_at_rows(array: NDArray[Any]) -> ColumnSample:
    """Return which columns of a matrix have fractions or may be weights, by the first rows."""
    if array.dtype.kind not in "iuf" or len(array) == 0:
        return ColumnSample()
    first = np.nan_to_num(array[:LOOK])
    is_fraction = (first % 1 > 0).mean(axis=0) > 0.5
    every = range(array.shape[1])
    return ColumnSample(
        fractions=set(np.flatnonzero(is_fraction).tolist()),
        numbers=every,
        doubts={at: doubt for at in every if (doubt := doubt_weights(first[:, at]))},
    )


def _pick(arrays: Any, columns: ColumnChoice) -> ArrayColumns:
    """Return u, v, w and t of the arrays of all columns."""
    w, t = (None if at is None else arrays[at] for at in (columns.w, columns.t))
    return arrays[columns.u], arrays[columns.v], w, t


def take_ids(
    source: Source, ids: Any, side: str, row: int, kind: str | None
) -> tuple[Ids, BadRows | None]:
    """Return ids, with any value for bad and missing ones, and which are bad.

    Whole numbers may be floats, if they share an array with weights.
    """
    bad = None
    is_masked = isinstance(ids, np.ma.MaskedArray)
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "f" and not is_masked:
        ids, bad = whole_numbers(ids)
    try:
        found, missing = read_ids(ids, side)
    except FractionError as error:
        refuse_source(source.name, f"node ids must be {error.wanted}", row + error.at)
    if missing is not None:
        bad = BadRows(missing, lambda _: "a node id is missing")
    if (source.options.id_type or kind) == "string" and not isinstance(found, Strings):
        found = as_ids(found.astype(str), side)
    return found, bad


def kinds_of_sides(options: ReadOptions, u: str, v: str) -> tuple[str, str] | None:
    """Return the two kinds of nodes, called as the two sides if the options do not name them."""
    return (u, v) if options.bipartite is True else options.bipartite or None


def matrix_columns(name: str, matrix: Any, *, two_kinds: bool = False) -> ArrayColumns:
    """Return each edge of an adjacency matrix once; if rows and columns differ, every entry."""
    if matrix.shape[0] != matrix.shape[1] and not two_kinds:
        why = f"must be a square matrix, got shape {matrix.shape}"
        refuse_source(name, f"{why}; if rows and columns are two kinds of nodes, {TWO_KINDS}")
    if matrix.dtype.kind not in "biuf":
        refuse_source(name, f"weights must be real numbers, got {matrix.dtype}")
    coo = matrix.tocoo()
    u, v, w = coo.coords[0], coo.coords[1], coo.data
    inside = (u >= 0) & (v >= 0) & (u < matrix.shape[0]) & (v < matrix.shape[1])
    if not inside.all():
        refuse_source(name, f"has an index outside its shape {matrix.shape}")
    if w.dtype.kind == "b":
        w = w.astype(np.float64)
    upper, lower = u < v, u > v
    if two_kinds:
        return u, v, w, None
    if upper.any() and lower.any():
        if matrix.shape[0] > 2 * len(u):  # use memory for nodes with edges only
            nodes, at = np.unique(np.concatenate([u, v]), return_inverse=True)
            size = len(nodes)
            matrix = type(coo)((w, (at[: len(u)], at[len(u) :])), shape=(size, size))
        difference = matrix - matrix.T
        if difference.nnz and np.any(difference.data != 0):
            refuse_source(
                name,
                "the matrix is neither symmetric nor triangular, but edges have no direction; "
                "save A + A.T, or its upper triangle",
            )
        u, v, w = u[~lower], v[~lower], w[~lower]
    return u, v, w, None


class PackedColumn:
    """A one-dimensional array in an .npz file, decompressed in pieces from front to back.

    A small compressed file may hold a very long array.
    """

    def __init__(self, name: str, column: str, file: IO[bytes], member: ZipInfo) -> None:
        self._name, self._column, self._file, self._row = name, column, file, 0
        self.shape, self.dtype = read_array_header(name, column, file, member)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(len(self))
        assert start == self._row  # pieces are read in order
        size = (stop - start) * self.dtype.itemsize
        data = self._file.read(size)
        if len(data) < size:
            refuse_source(self._name, f"{self._column} ends too early", start + 1)
        self._row = stop
        return np.frombuffer(data, dtype=self.dtype)


def read_array_header(
    name: str, column: str | None, file: IO[bytes], member: ZipInfo
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of an array in an .npz file; refuse one that does not match its size."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        refuse_source(name, f"{column} has version {version} of numpy's format; 1 or 2 is needed")
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    shape, _, dtype = read[version[0]](file)
    if dtype.hasobject:
        refuse_source(name, f"{column} holds Python objects; save integers or strings")
    size, found = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
    if size != found:
        refuse_source(
            name, f"{column} should have shape {shape}, {size} bytes, but there are {found} bytes"
        )
    return shape, dtype


class ArraySource(Source):
    """A .npy file, read through a memory map, or a .npz file."""

    reads_files = True

    def inspect(self) -> None:
        """Read names and shape."""
        with ExitStack() as stack:
            self.n_edges = len(self._load(stack)[0])

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Cut the columns into batches."""
        with ExitStack() as stack:
            columns = self._load(stack)
            self.n_edges = len(columns[0])
            yield from cut(self, columns, kind)

    def _load(self, stack: ExitStack) -> ArrayColumns:
        if self.is_remote:
            refuse_source(self.name, "numpy files must be on this machine; copy it here first")
        with reading(self.name, "a numpy file"):
            first = read_start(self.name, 2)
            if not first:
                refuse_source(self.name, "is empty")
            if first == b"PK":
                return self._load_npz(stack.enter_context(ZipFile(self.name)), stack)
            array = np.load(self.name, mmap_mode="r", allow_pickle=False)
            columns, self.columns = columns_of(self.name, self.options, array)
        return columns

    def _load_npz(self, archive: ZipFile, stack: ExitStack) -> ArrayColumns:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        if "format" in members:
            if self.options.time is not None:
                refuse_source(
                    self.name, "a matrix has no times; save columns u, v, w and t with numpy.savez"
                )
            kinds = kinds_of_sides(self.options, "row", "column")
            self.columns = ColumnChoice(0, 1, 2, ["row", "column", "w"], "", kinds=kinds)
            return self._load_matrix(archive, members)
        packed = [
            PackedColumn(
                self.name, repr(x), stack.enter_context(archive.open(at)), archive.getinfo(at)
            )
            for x, at in members.items()
        ]
        names, values = list(members), look_at_types(column.dtype for column in packed)
        self.columns = chosen = choose_columns(self.name, self.options, names, len(names), values)
        for at in chosen.used:
            shape = packed[at].shape
            if len(shape) != 1 or shape != packed[chosen.u].shape:
                refuse_source(
                    self.name,
                    f"columns must be one-dimensional and equally long, but {chosen.name(at)} has "
                    f"shape {shape}",
                )
        return _pick(packed, chosen)

    def _load_matrix(self, archive: ZipFile, members: dict[str, str]) -> ArrayColumns:
        """Load the whole matrix, which is needed to know whether it is symmetric."""
        import scipy.sparse

        for column, member in members.items():
            with archive.open(member) as file:
                read_array_header(self.name, repr(column), file, archive.getinfo(member))
        size = sum(archive.getinfo(member).file_size for member in members.values())
        packed = os.path.getsize(self.name)
        if size > max(SMALL_MATRIX, MOST_PACKED * packed):
            refuse_source(
                self.name,
                f"a matrix of {size} bytes in a file of {packed} bytes is probably damaged: even "
                f"zeros and ones rarely compress {MOST_PACKED} times; save it with "
                f"compressed=False if it is right",
            )
        matrix = scipy.sparse.load_npz(self.name)
        return matrix_columns(self.name, matrix, two_kinds=bool(self.options.bipartite))


def cut(source: Source, columns: ArrayColumns, kind: str | None) -> Iterator[RawBatch]:
    """Yield the edges of columns in batches."""
    u, v, w, t = columns
    rows = ROWS
    for column in columns:
        if hasattr(column, "dtype"):
            width = max(1, getattr(column.dtype, "itemsize", 1))  # types of pandas may have none
            if width > BATCH_BYTES:
                refuse_source(source.name, f"values of {width} bytes each are too long")
            rows = min(rows, BATCH_BYTES // width)
    for row in range(0, len(u), rows):
        part = slice(row, row + rows)
        with reading(source.name, "columns of edges"):
            number = row + source.first_row
            a, u_bad = take_ids(source, u[part], "u", number, kind)
            b, v_bad = take_ids(source, v[part], "v", number, kind)
            weights = None if w is None else np.asarray(w[part])
            if weights is not None and weights.dtype.kind not in "biuf":
                refuse_source(source.name, f"weights must be real numbers, got {weights.dtype}")
            raw, bad = RawBatch(a, b, weights), [u_bad, v_bad]
            if source.times is not None:
                found, bad_times = source.times.take(source.name, t[part])
                raw = raw._replace(t=found)
                bad.append(bad_times)
            batch = source.drop_bad(raw, bad, number)
        yield batch._replace(fraction=min(1.0, (row + rows) / len(u)))


class BatchSource(Source):
    """Arrays (u, v), (u, v, w) or (u, v, w, t) in memory; w may be None."""

    first_row = 0

    def __init__(self, name: str, options: ReadOptions, columns: ArrayColumns) -> None:
        super().__init__(name, options)
        if options.weight_col is False:
            columns = (*columns[:2], None, columns[3])
        given = {x: each for x, each in zip("uvwt", columns, strict=True) if each is not None}
        check_equal_sizes(**{x: len(each) for x, each in given.items()})
        is_fourth = options.time is True or options.time in ("t", 3)
        if options.time is not None and not ("t" in given and is_fourth):
            use = f"; use {Setting('time', True)}" if "t" in given else " and no fourth array"
            shown = Param("time", options.time)
            refuse_source(
                name, f"times are the fourth of the arrays (u, v, w, t), got {shown}{use}"
            )
        self._arrays, self.n_edges = columns, len(columns[0])
        weight, time = 2 if "w" in given else None, None if options.time is None else 3
        kinds = kinds_of_sides(options, "left", "right")
        self.columns = ColumnChoice(
            0, 1, weight, list("uvwt"), "", time, kinds, scale=options.weight
        )

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Cut the columns into batches."""
        yield from cut(self, self._arrays, kind)


def columns_of_rows(given: object) -> tuple[Any, ...] | None:
    """Return the columns of a list of edges with their ids; None for anything else."""
    if not isinstance(given, list) or not given or not _is_edge(given[0]):
        return None
    for number, row in enumerate(given):
        if not _is_edge(row):
            why = "an edge is a tuple (u, v), (u, v, w) or (u, v, w, t) of two ids and numbers"
            refuse_source("the list", f"{why}, got {shorten(repr(row))}", number)
    rows = [(*row, 1.0, None)[:4] if len(row) == 2 else (*row, None)[:4] for row in given]
    longest = max(map(len, given))
    w = [x.get("weight", 1.0) if isinstance(x, dict) else x for _, _, x, *_ in rows]
    t = [row[3] for row in rows] if longest == 4 else None
    u, v = ([row[at] if isinstance(row[at], str | Integral) else str(row[at]) for row in rows]
            for at in (0, 1))  # fmt: skip
    return u, v, w if longest > 2 else None, t


def _is_edge(row: object) -> bool:
    if not isinstance(row, tuple | list) or not 2 <= len(row) <= 4:
        return False
    return all(isinstance(end, str | Integral | UUID | date) for end in row[:2])


class IterableSource(Source):
    """Batches (u, v), (u, v, w) or (u, v, w, t) of arrays, or Arrow tables and record batches.

    An iterator can be read once; other iterables, and functions, any number of times.
    """

    has_rows = True

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]], options: ReadOptions):
        once = not callable(batches) and iter(batches) is batches
        super().__init__(f"the {type(batches).__name__}", options, rereadable=not once)
        self._batches = batches

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Read one batch after the other."""
        batches = self._batches() if callable(self._batches) else self._batches
        for number, batch in enumerate(batches):
            source = self._open(batch, f"{self.name}, batch {number}")
            source.times = self.times
            for raw in source.batches(kind):
                self.columns = source.columns
                kind = kind or ("int64" if isinstance(raw.u, np.ndarray) else "string")
                yield raw

    def _open(self, batch: Any, name: str) -> Source:
        if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
            if not hasattr(batch, "__arrow_c_stream__"):
                batch = require_extra("pyarrow", "files").record_batch(batch)
            source: Source = ArrowObject(batch, self.options)
            source.name = name
            return source
        with reading(name, "columns of edges"):
            u, v, w, t = split_batch(batch, "it")
            weights = None if w is None else np.asarray(w)
            return BatchSource(name, self.options, (u, v, weights, t))
