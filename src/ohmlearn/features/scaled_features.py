"""Features on a common scale, as estimators and the smoothing need them."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["ScaledFeatures", "blocks"]

Floats = NDArray[np.float64]


class ScaledFeatures:
    """Features of nodes, scaled when they are asked for.

    A column is divided by its standard deviation. Columns most of whose entries are zero, as those
    of words, categories and pixels at the margin, keep their scales relative to each other, so that
    rare words do not count more than frequent ones; they are divided by a typical entry that is not
    zero. Only columns whose entries are ten times larger or smaller than usual are divided by their
    own. Dense columns are centred, and sparse ones only where they become dense.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_nodes, n_features)

    Attributes
    ----------
    size : float
        Root mean square of the lengths of centred rows.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [1.0, 9.0], [1.0, 1.0], [1.0, 5.0]])
    >>> scaled = ScaledFeatures(X)  # a constant column has no influence
    >>> scaled.rows(slice(None)).round(3).tolist()
    [[0.0, 0.0], [0.0, 1.414], [0.0, -1.414], [0.0, 0.0]]
    >>> round(scaled.size, 6)
    1.0
    """

    def __init__(self, X: Any) -> None:
        self.is_sparse = scipy.sparse.issparse(X)
        self._X = scipy.sparse.csr_array(X) if self.is_sparse else X
        self._columns = self._X.tocsc() if self.is_sparse else X
        self.shape: tuple[int, int] = self._X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype == np.float32 else np.float64)
        self.mean, self.scale, self.size = self._measure()

    def _measure(self) -> tuple[Floats, Floats, float]:
        """Return the means of the columns, what to divide them by, and the typical size of a row.

        The size is the root mean square of the lengths of centred rows.
        """
        n, n_columns = self.shape
        mean, variance = np.zeros(n_columns), np.zeros(n_columns)
        square, count, unit = np.zeros(n_columns), np.zeros(n_columns), np.ones(n_columns)
        for part in blocks(n_columns, n):
            block = self._dense(part)
            # In units of the largest entries, so that squares of extreme numbers do not overflow.
            largest = np.maximum(block.max(axis=0), -block.min(axis=0))
            unit[part] = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
            block /= unit[part]
            mean[part] = block.mean(axis=0)
            square[part] = np.mean(block**2, axis=0)
            count[part] = np.count_nonzero(block, axis=0)
            variance[part] = np.mean((block - mean[part]) ** 2, axis=0)
        mean *= unit
        deviation = np.sqrt(variance) * unit
        typical = np.sqrt(square * n / np.maximum(count, 1.0)) * unit
        mostly_zero = (count <= n / 2) & (count > 0)
        scale = deviation
        if mostly_zero.any():
            usual = float(np.median(typical[mostly_zero]))
            unusual = (typical > 10.0 * usual) | (typical * 10.0 < usual)
            scale = np.where(mostly_zero, np.where(unusual, typical, usual), scale)
        # What rounding leaves of a constant column is no deviation.
        is_constant = deviation <= 1e-12 * typical
        scale = np.where(is_constant, np.inf, scale)
        total = float(np.sum((deviation / scale) ** 2))
        return mean, scale, float(np.sqrt(total)) if total > 0 else 1.0

    def _dense(self, part: slice) -> Floats:
        block = self._columns[:, part]
        block = block.toarray() if self.is_sparse else block
        return np.array(block, dtype=np.float64)

    def columns(self, part: slice) -> Floats:
        """Return some columns of all nodes, centred and scaled."""
        block = self._dense(part)
        block -= self.mean[part]
        block /= self.scale[part]
        return block

    def rows(self, chosen: Any) -> Any:
        """Return all columns of some nodes, for an estimator; sparse if X is."""
        return self.scale_rows(self._X[chosen])

    def scale_rows(self, rows: Any) -> Any:
        """Return further rows on the same scale."""
        rows = self._like(rows)
        if self.is_sparse:
            return scipy.sparse.csr_array(rows.multiply(1.0 / self.scale), dtype=self.dtype)
        n_rows, n_columns = rows.shape
        scaled = np.empty((n_rows, n_columns), dtype=self.dtype)
        for part in blocks(n_rows, n_columns):
            block = rows[part] - self.mean
            block /= self.scale
            scaled[part] = block
        return scaled

    def _like(self, rows: Any) -> Any:
        """Return rows as a sparse matrix if X is one, else as an array."""
        if self.is_sparse:
            return scipy.sparse.csr_array(rows)
        return rows.toarray() if scipy.sparse.issparse(rows) else rows

    def for_distances(self, rows: Any = None) -> Any:
        """Return the rows, or further ones, between which distances are computed.

        They are scaled if the scales of two columns differ by more than ten times. Otherwise the
        columns probably have the same unit, as lengths or pixels have, and stay as they are.
        """
        rows = self._X if rows is None else self._like(rows)
        scales = self.scale[np.isfinite(self.scale)]
        if len(scales) > 0 and scales.max() > 10.0 * scales.min():
            return self.scale_rows(rows)
        return rows


def blocks(size: int, n_cells: int) -> list[slice]:
    """Return slices of columns or rows, each with `n_cells` entries, that are treated together."""
    width = max(1, (1 << 22) // max(1, n_cells))  # 32 MiB
    return [slice(start, min(start + width, size)) for start in range(0, size, width)]
