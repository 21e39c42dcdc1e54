"""Exact nearest neighbours: of all points, and of new points among those.

A point has one of two forms: a row of a dense array of uint8, float32 or float64, or a row of a CSR
matrix of float32 or float64. Distances are those of the values in float64, whatever the form, and
of equally distant points those with smaller index are nearer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ohmlearn import _core
from ohmlearn.checks.parameters import check_n_jobs, check_option
from ohmlearn.errors import InputError, Param
from ohmlearn.points.point_arrays import (
    Matrix,
    Neighbors,
    check_points,
    check_shape,
    check_span,
    refuse_inexact,
)

METRICS = ("euclidean", "cosine")
MOST_FEATURES = 2**31 - 1  # of a sparse X, whose columns have indices of 32 bits
ROWS = 1024  # sparse rows, or new points, in a native call; Ctrl-C is noticed between calls
DENSE: dict[Any, tuple[Any, Any]] = {
    np.uint8: (_core.Nearest8, _core.PointIndex8),
    np.float32: (_core.Nearest32, _core.PointIndex32),
    np.float64: (_core.Nearest64, _core.PointIndex64),
}


def check_neighbor_points(values: Any, metric: str = "euclidean") -> Matrix:
    """Return points in one of the forms above whose euclidean neighbours are those of the metric.

    For "cosine" the rows are scaled to length 1, in float64. Rows of zeros get a coordinate of
    their own: they are orthogonal to all others, and equal to each other.
    """
    check_option("metric", metric, METRICS)
    if scipy.sparse.issparse(values):
        x = _check_sparse(values)
    else:
        x = check_points(values, keep=(np.uint8, np.float32), squares=np.float64)
    return x if metric == "euclidean" else _scale_to_length_1(x)


def _check_sparse(values: Any) -> csr_array:
    refuse_inexact(values)
    check_shape(values.shape)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{Param('X')} must be real numbers, got dtype {values.dtype}")
    if values.shape[1] > MOST_FEATURES:
        raise ValueError(
            f"a sparse X may have at most {MOST_FEATURES} features, got {values.shape[1]}"
        )
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    x = csr_array(values, dtype=dtype)
    x.check_format(full_check=True)  # an index outside the shape would be followed
    if not x.has_canonical_format:
        x = x.copy()  # it may share its arrays with X
        x.sum_duplicates()
    if not np.isfinite(x.data).all():
        at = int(np.flatnonzero(~np.isfinite(x.data))[0])
        i = int(np.searchsorted(x.indptr, at, side="right")) - 1
        raise InputError(
            f"{Param('X')} must be finite, but X[{i}, {x.indices[at]}] = {x.data[at]}; drop or "
            f"fill such points"
        )
    if x.nnz:
        check_span(2.0 * float(abs(x.data).max()), x.shape[1], np.dtype(np.float64))
    return x


def _scale_to_length_1(x: Matrix) -> Matrix:
    is_sparse = scipy.sparse.issparse(x)
    x = x.astype(np.float64)
    # The largest value of each row becomes 1 first, so that its square is in the range of floats.
    for find_size in (_largest, _length):
        size = find_size(x)
        zero = size == 0
        by = np.where(zero, 1.0, size)
        if is_sparse:
            x.data /= np.repeat(by, np.diff(x.indptr))
        else:
            x /= by[:, np.newaxis]
    if not zero.any():
        return x
    own = zero.astype(np.float64)[:, np.newaxis]
    return scipy.sparse.hstack([x, own], format="csr") if is_sparse else np.hstack([x, own])


def _largest(x: Matrix) -> NDArray[np.float64]:
    most = abs(x).max(axis=1)
    return np.asarray(most.toarray() if scipy.sparse.issparse(most) else most).ravel()


def _length(x: Matrix) -> NDArray[np.float64]:
    squares = x.multiply(x).sum(axis=1) if scipy.sparse.issparse(x) else np.einsum("ij,ij->i", x, x)
    return np.asarray(np.sqrt(np.asarray(squares).ravel()), np.float64)


def find_neighbors(
    x: Matrix, k: int, threads: int, report: Callable[[float], None] = lambda fraction: None
) -> Neighbors:
    """Return the k nearest others of each point, nearest first.

    `report` is called with the fraction of the work that is done, about once per second.
    """
    if scipy.sparse.issparse(x):
        index, parts = _sparse_index(x), []
        for begin in range(0, x.shape[0], ROWS):
            end = min(x.shape[0], begin + ROWS)
            parts.append(_as_rows(index.find_own(k, begin, end, threads), k))
            report(end / x.shape[0])
        return _stack(parts)
    search = DENSE[x.dtype.type][0](x, k, threads)
    while search.advance(threads):
        report(search.fraction)
    return _as_rows(search.take(), k)


def _sparse_index(x: csr_array) -> Any:
    made: Any = _core.SparseIndex32 if x.dtype == np.float32 else _core.SparseIndex64
    return made(*_csr_arrays(x), x.shape[1])


def _csr_arrays(x: csr_array) -> tuple[Any, ...]:
    return x.indptr.astype(np.int64), x.indices.astype(np.int32, copy=False), x.data


def _as_rows(found: tuple[NDArray[Any], NDArray[Any]], k: int) -> Neighbors:
    return found[0].reshape(-1, k), found[1].reshape(-1, k)


def _stack(parts: list[Neighbors]) -> Neighbors:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


class NeighborIndex:
    """Finds the points that are nearest to new ones."""

    def __init__(self, X: Matrix, metric: str = "euclidean", n_jobs: int | None = None) -> None:
        self._metric, self._threads = metric, check_n_jobs(n_jobs)
        self._x = check_neighbor_points(X, metric)
        self._index: Any = None

    def find(self, new: Matrix, k: int) -> Neighbors:
        """Return the k nearest points of each new one, nearest first, and squared distances."""
        parts = []
        for begin in range(0, new.shape[0], ROWS):
            rows = self._as_points(check_neighbor_points(new[begin : begin + ROWS], self._metric))
            arrays = _csr_arrays(rows) if scipy.sparse.issparse(rows) else (rows,)
            parts.append(_as_rows(self._index.find(*arrays, k, self._threads), k))
        return _stack(parts)

    def _as_points(self, rows: Matrix) -> Matrix:
        """Return new points in the form and with the coordinates of the others, and index these."""
        is_sparse, width = scipy.sparse.issparse(self._x), self._x.shape[1]
        if self._x.dtype != rows.dtype and self._x.dtype != np.float64:
            self._x, self._index = self._x.astype(np.float64), None
        if self._index is None:
            x, threads = self._x, self._threads
            self._index = _sparse_index(x) if is_sparse else DENSE[x.dtype.type][1](x, threads)
        # A row of zeros has a coordinate of its own, unless no other point is a row of zeros.
        rows = rows[:, :width]
        if is_sparse:
            rows = csr_array(rows, dtype=self._x.dtype)
            rows.resize((rows.shape[0], width))
            return rows
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        rows = np.pad(rows, [(0, 0), (0, width - rows.shape[1])])
        return np.ascontiguousarray(rows, dtype=self._x.dtype)
