"""Checks of features: real, finite numbers, with messages that say where others are."""

from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_features", "explain"]


def check_features(X: Any, n_nodes: int, names: ArrayLike | None = None) -> Any:
    """Return features as an array or a sparse matrix of real, finite numbers, one row per node.

    `names` are those of the columns, for messages.

    Examples
    --------
    >>> check_features([[1, 2], [3, float("nan")]], 2)
    Traceback (most recent call last):
    ...
    ValueError: X must be finite, but row 1, column 1 is NaN; fill in missing values first, for
    example with sklearn.impute.SimpleImputer, or drop the column
    >>> check_features([["ann"], ["bob"]], 2)
    Traceback (most recent call last):
    ...
    ValueError: X must be real numbers, but row 0, column 0 is 'ann'; encode such columns first, for
    example a table with NodeFeatures.from_table
    """
    is_sparse = scipy.sparse.issparse(X)
    features: Any = X if is_sparse else np.asarray(X)
    if features.ndim != 2:
        remedy = "; use X.reshape(-1, 1) for a single feature" if features.ndim == 1 else ""
        raise ValueError(
            f"X must have shape (n_nodes, n_features), got shape {features.shape}{remedy}"
        )
    if features.dtype.kind == "O" and not is_sparse:
        features = _convert_objects(features, names)
    if features.dtype.kind not in "biuf":
        if features.dtype.kind in "US" and features.size > 0:
            _refuse_string(features, names)
        raise ValueError(f"X must be real numbers, got dtype {features.dtype}")
    if features.shape[0] != n_nodes:
        raise ValueError(
            f"X must have one row for each of the {n_nodes} nodes of the graph, got "
            f"{features.shape[0]} rows"
        )
    if not is_sparse:
        _check_finite(features, names)
        return features
    if features.format != "csr" or not _is_finite(features.data):
        features = scipy.sparse.csc_array(features)
        _check_finite(features.data, names, features)
    return features


def explain(error: Exception, X: Any) -> None:
    """Say where a value is that scikit-learn could not make a number of, if that is the error.

    Examples
    --------
    >>> explain(ValueError("could not convert string to float: 'ann'"), [[1.0, "ann"]])
    Traceback (most recent call last):
    ...
    ValueError: X must be real numbers, but row 0, column 1 is 'ann'; encode such columns first, for
    example a table with NodeFeatures.from_table
    """
    said = str(error)
    if not any(words in said for words in ("could not convert", "float() argument", "be promoted")):
        return
    try:
        check_features(np.asarray(X, dtype=object), len(X), getattr(X, "columns", None))
    except ValueError as found:
        if "float() argument" in said:  # scikit-learn wants a TypeError with these words
            raise TypeError(f"{found}; {said}") from None
        raise


def _convert_objects(features: NDArray[Any], names: ArrayLike | None) -> NDArray[Any]:
    """Return numbers that are stored as objects as float64; None is missing."""
    try:
        return features.astype(np.float64)
    except (TypeError, ValueError):
        for (i, j), value in np.ndenumerate(features):
            if isinstance(value, str) or not isinstance(value, Real):
                _refuse_value(i, j, value, names)
        raise


def _refuse_string(features: NDArray[Any], names: ArrayLike | None) -> NoReturn:
    """Refuse an array of strings; numpy also makes strings of the numbers beside them."""
    texts = features.ravel().tolist()
    at = next((at for at, text in enumerate(texts) if not _is_number(text)), 0)
    i, j = divmod(at, features.shape[1])
    _refuse_value(i, j, texts[at], names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_value(i: int, j: int, value: Any, names: ArrayLike | None) -> NoReturn:
    raise ValueError(
        f"X must be real numbers, but {_place(i, j, names)} is {value!r}; encode such columns "
        f"first, for example a table with NodeFeatures.from_table"
    )


def _place(i: int, j: int, names: ArrayLike | None) -> str:
    name = "" if names is None else f" ({np.asarray(names)[j]})"
    return f"row {i}, column {j}{name}"


def _is_finite(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f" or values.size == 0:
        return True
    return bool(np.isfinite(values.min()) and np.isfinite(values.max()))  # NaN if any value is


def _check_finite(
    values: NDArray[Any],
    names: ArrayLike | None = None,
    columns: scipy.sparse.csc_array | None = None,
) -> None:
    """Refuse NaN and infinities; `columns` is the sparse matrix that the values are from."""
    if _is_finite(values):
        return
    at = int(np.argmin(np.isfinite(values)))  # in the order of rows, or of a sparse matrix
    value = values.flat[at]
    if columns is None:
        i, j = divmod(at, values.shape[1])
    else:
        i, j = int(columns.indices[at]), int(np.searchsorted(columns.indptr, at, side="right")) - 1
    what, remedy = f"{value}", "correct such values first, or drop the column"
    if np.isnan(value):
        what = "NaN"
        remedy = (
            "fill in missing values first, for example with sklearn.impute.SimpleImputer, or drop "
            "the column"
        )
    raise ValueError(f"X must be finite, but {_place(i, j, names)} is {what}; {remedy}")
