"""Edges from numpy's files: .npy arrays of columns, .npz sparse matrices or named columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn._ids import Ids, Strings, as_ids
from ohmlearn._validation_sources import check_equal_sizes, reading, refuse_source
from ohmlearn.streams.bytes import starts_with
from ohmlearn.streams.source import RawBatch, Request, Source, choose_columns, drop_bad

__all__ = ["ArraySource", "BatchSource", "columns_of"]

ROWS = 1 << 17  # in a batch
ArrayColumns = tuple[Any, Any, Any]  # u, v, w or None


def columns_of(name: str, request: Request, array: NDArray[Any]) -> tuple[ArrayColumns, Any]:
    """Take columns of an array of shape (n, 2) or (n, 3), or of one with named fields."""
    if array.dtype.names is not None:
        names: list[str] | None = list(array.dtype.names)
        columns = choose_columns(name, request, names, len(array.dtype.names))
        u, v, w = (None if at is None else array[array.dtype.names[at]] for at in columns[:3])
        if array.ndim != 1:
            refuse_source(name, f"must be one-dimensional, got shape {array.shape}")
        return (u, v, w), columns
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        remedy = "; transpose it" if array.ndim == 2 and array.shape[0] in (2, 3) else ""
        refuse_source(
            name, f"an edge a row is needed, shape (n, 2) or (n, 3), got {array.shape}{remedy}"
        )
    weighted = array.shape[1] == 3 and request.w is None
    asked = Request(request.u, request.v, 2 if weighted else request.w)
    columns = choose_columns(name, asked, None, array.shape[1])
    u, v, w = (None if at is None else array[:, at] for at in columns[:3])
    return (u, v, w), columns


def take_ids(source: Source, ids: Any, side: str, row: int, kind: str | None) -> Ids:
    """Return ids; whole numbers may come as floats, in an array together with weights."""
    if hasattr(ids, "dtype"):
        ids = np.asarray(ids)
        if ids.dtype.kind == "f":
            bad = ~((np.abs(ids) < 2**53) & (ids == np.floor(ids)))
            if bad.any():
                at = int(np.argmax(bad))
                why = f"node ids must be whole numbers, got {ids[at]}"
                refuse_source(source.name, why, f"row {row + at}")
            ids = ids.astype(np.int64)
    found = as_ids(ids, side)
    if (source.request.id_type or kind) == "string" and not isinstance(found, Strings):
        return as_ids(found.astype(str), side)
    return found


def matrix_columns(name: str, matrix: Any) -> ArrayColumns:
    """Take each edge once out of an adjacency matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        refuse_source(name, f"must be a square matrix, got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        refuse_source(name, f"weights must be real numbers, got {matrix.dtype}")
    coo = matrix.tocoo()
    u, v, w = coo.coords[0], coo.coords[1], coo.data
    inside = (u >= 0) & (v >= 0) & (u < matrix.shape[0]) & (v < matrix.shape[0])
    if not inside.all():
        refuse_source(name, f"has an index outside of its shape {matrix.shape}")
    if w.dtype.kind == "b":
        w = w.astype(np.float64)
    upper, lower = u < v, u > v
    if upper.any() and lower.any():
        difference = matrix - matrix.T
        if difference.nnz and np.any(difference.data != 0):
            refuse_source(
                name,
                "the matrix is neither symmetric nor triangular, but edges have no direction; "
                "save A + A.T, or its upper triangle",
            )
        u, v, w = u[~lower], v[~lower], w[~lower]
    return u, v, w


class ArraySource(Source):
    """A .npy file, read through a memory map, or a .npz file."""

    def inspect(self) -> None:
        """Look at names and shape."""
        columns, _ = self._load()
        self.n_edges = len(columns[0])

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Cut the columns into batches."""
        columns, weighted = self._load()
        self.n_edges = len(columns[0])
        yield from cut(self, columns, weighted, kind)

    def _load(self) -> tuple[ArrayColumns, bool]:
        with reading(self.name, "a numpy file"):
            first = starts_with(self.name, 2)
            if not first:
                refuse_source(self.name, "is empty")
            if first == b"PK":
                with open(self.name, "rb") as file, np.load(file, allow_pickle=False) as loaded:
                    columns = self._load_npz(loaded)
            else:
                array = np.load(self.name, mmap_mode="r", allow_pickle=False)
                columns, self.columns = columns_of(self.name, self.request, array)
        return columns, columns[2] is not None

    def _load_npz(self, loaded: Any) -> ArrayColumns:
        names = list(loaded.files)
        if "format" in names:
            import scipy.sparse

            matrix = scipy.sparse.load_npz(self.name)
            self.columns = choose_columns(self.name, Request(), ["row", "column", "w"], 3)
            self.columns = self.columns._replace(guessed=False)
            return matrix_columns(self.name, matrix)
        chosen = choose_columns(self.name, self.request, names, len(names))
        self.columns = chosen
        arrays: list[Any] = [None if at is None else loaded[names[at]] for at in chosen[:3]]
        u, v, w = arrays
        for at, array in zip(chosen[:3], (u, v, w), strict=True):
            if array is not None and (array.ndim != 1 or len(array) != len(u)):
                refuse_source(
                    self.name,
                    f"columns must be one-dimensional and equally long, but {chosen.name(at)} has "
                    f"shape {array.shape}",
                )
        return u, v, w


def cut(
    source: Source, columns: ArrayColumns, weighted: bool, kind: str | None
) -> Iterator[RawBatch]:
    """Yield the edges of whole columns in batches."""
    u, v, w = columns
    for row in range(0, len(u), ROWS):
        part = slice(row, row + ROWS)
        with reading(source.name, "columns of edges"):
            a = take_ids(source, u[part], "u", row, kind)
            b = take_ids(source, v[part], "v", row, kind)
            weights = np.asarray(w[part]) if weighted else None
            if weights is not None and weights.dtype.kind not in "biuf":
                refuse_source(source.name, f"weights must be real numbers, got {weights.dtype}")
            batch = drop_bad(source.name, source.request, row, a, b, weights)
        source.fraction = min(1.0, (row + ROWS) / len(u))
        yield batch


class BatchSource(Source):
    """Arrays (u, v) or (u, v, w) that are in memory."""

    def __init__(self, name: str, request: Request, columns: ArrayColumns) -> None:
        super().__init__(name, request)
        check_equal_sizes(
            **{x: len(c) for x, c in zip("uvw", columns, strict=True) if c is not None}
        )
        self._arrays = columns
        self.n_edges = len(columns[0])
        names = ["u", "v", "w"][: 2 if columns[2] is None else 3]
        self.columns = choose_columns(name, Request(), names, len(names))._replace(guessed=False)

    def inspect(self) -> None:
        """Do nothing: all is known."""

    def batches(self, kind: str | None) -> Iterator[RawBatch]:
        """Cut the columns into batches."""
        yield from cut(self, self._arrays, self._arrays[2] is not None, kind)
