"""Edges from numpy's files: .npy arrays of columns, .npz sparse matrices or named columns."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from ohmlearn.errors import Param, Setting
from ohmlearn.nodes.node_ids import (
    EXACT,
    FractionError,
    IdColumn,
    Strings,
    as_ids,
    check_equal_sizes,
    read_ids,
)
from ohmlearn.reading.column_choice import ColumnChoice, ColumnSample, choose_columns, doubt_weights
from ohmlearn.reading.file_names import read_start
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.remote import is_remote
from ohmlearn.reading.source_errors import BadRows, reading, refuse_source
from ohmlearn.reading.table_reader import RawBatch, Source, drop_bad

ROWS = 1 << 17  # in a batch
LOOK = 1000  # rows that decide which columns of a matrix are not ends
BATCH_BYTES = 1 << 24  # at most so many of a column in a batch
# A matrix is decompressed as a whole. One with more bytes than this must not be more than
# MOST_PACKED times as large as its file.
SMALL_MATRIX = 1 << 28
MOST_PACKED = 100
NO_ID = "a node id is missing, or not a whole number"
TWO_KINDS = f"use {Setting('bipartite', True)}"
ArrayColumns = tuple[Any, Any, Any, Any]  # u, v, w or None, t or None


def columns_of(name: str, options: ReadOptions, array: NDArray[Any]) -> tuple[ArrayColumns, Any]:
    """Return the columns of an array of shape (n, 2), (n, 3) or (n, 4), or with named fields."""
    if array.dtype.names is not None:
        names: list[str] | None = list(array.dtype.names)
        values = look_at_types([array.dtype[at] for at in array.dtype.names])
        columns = choose_columns(name, options, names, len(array.dtype.names), values)
        u, v, w, t = (None if at is None else array[array.dtype.names[at]] for at in _four(columns))
        if array.ndim != 1:
            refuse_source(name, f"must be one-dimensional, got shape {array.shape}")
        return (u, v, w, t), columns
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
    u, v, w, t = (None if at is None else array[:, at] for at in _four(columns))
    return (u, v, w, t), columns


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


def _four(columns: ColumnChoice) -> tuple[int, int, int | None, int | None]:
    return columns.u, columns.v, columns.w, columns.t


def take_ids(source: Source, ids: Any, side: str, row: int, kind: str | None) -> IdColumn:
    """Return ids; whole numbers may be floats, if they share an array with weights."""
    if source.options.skip_bad and isinstance(ids, np.ndarray) and ids.dtype.kind == "f":
        ids = np.where((np.abs(ids) <= EXACT) & (ids == np.floor(ids)), ids, np.nan)
    try:
        found = read_ids(ids, side)
    except FractionError as error:
        refuse_source(source.name, f"node ids must be {error.wanted}", row + error.at)
    if (source.options.id_type or kind) == "string" and not isinstance(found.ids, Strings):
        return IdColumn(as_ids(found.ids.astype(str), side), found.missing)
    return found


def matrix_kinds(options: ReadOptions) -> tuple[str, str] | None:
    """Return the kinds of nodes that the rows and columns of a matrix are."""
    if options.bipartite is True:
        return "row", "column"
    return options.bipartite or None


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

    def __init__(self, name: str, column: str | None, archive: ZipFile, member: str) -> None:
        self._name, self._column = name, column
        self._file = archive.open(member)
        self._row = 0
        shape, self.dtype = read_array_header(name, column, self._file, archive.getinfo(member))
        self.shape = shape

    def close(self) -> None:
        """Close the file, also if a traceback keeps the array."""
        self._file.close()

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
        if self.options.filesystem is not None or is_remote(self.name):
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
            kinds = matrix_kinds(self.options)
            self.columns = ColumnChoice(0, 1, 2, ["row", "column", "w"], "", kinds=kinds)
            return self._load_matrix(archive, members)
        packed = [PackedColumn(self.name, repr(x), archive, members[x]) for x in members]
        for column in packed:
            stack.callback(column.close)
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
        u, v, w, t = (None if at is None else packed[at] for at in _four(chosen))
        return u, v, w, t

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
        return matrix_columns(self.name, matrix, two_kinds=matrix_kinds(self.options) is not None)


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
            a, u_missing = take_ids(source, u[part], "u", number, kind)
            b, v_missing = take_ids(source, v[part], "v", number, kind)
            weights = None if w is None else np.asarray(w[part])
            if weights is not None and weights.dtype.kind not in "biuf":
                refuse_source(source.name, f"weights must be real numbers, got {weights.dtype}")
            bad = [
                None if mask is None else BadRows(mask, lambda _: NO_ID)
                for mask in (u_missing, v_missing)
            ]
            raw = RawBatch(a, b, weights)
            if source.times is not None:
                found, bad_times = source.times.take(source.name, t[part])
                raw = raw._replace(t=found)
                bad.append(bad_times)
            batch = drop_bad(source.name, source.options, number, raw, bad)
        yield batch._replace(fraction=min(1.0, (row + rows) / len(u)))


class BatchSource(Source):
    """Arrays (u, v), (u, v, w) or (u, v, w, t) in memory; w may be None."""

    first_row = 0

    def __init__(self, name: str, options: ReadOptions, columns: ArrayColumns) -> None:
        super().__init__(name, options)
        if options.weight_col is False:
            columns = (*columns[:2], None, columns[3])
        check_equal_sizes(
            **{x: len(c) for x, c in zip("uvwt", columns, strict=True) if c is not None}
        )
        self._arrays = columns
        self.n_edges = len(columns[0])
        weight = None if columns[2] is None else 2
        time = None
        if options.time is not None:
            if columns[3] is None or not (options.time is True or options.time in ("t", 3)):
                given = Param("time", options.time)
                why = f"times are the fourth of the arrays (u, v, w, t), got {given}"
                use = f"; use {Setting('time', True)}"
                refuse_source(name, why + (" and no fourth array" if columns[3] is None else use))
            time = 3
        kinds = ("left", "right") if options.bipartite is True else options.bipartite or None
        names = list("uvwt")
        self.columns = ColumnChoice(
            0, 1, weight, names, "", t=time, kinds=kinds, scale=options.weight
        )

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Cut the columns into batches."""
        yield from cut(self, self._arrays, kind)
