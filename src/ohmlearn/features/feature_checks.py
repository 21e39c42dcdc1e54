"""Checks of features: real, finite numbers, with messages that say where others are."""

from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.utils.validation import validate_data

from ohmlearn._warnings import warn
from ohmlearn.estimators.label_input import NodeLabels

__all__ = ["check_features", "own_features", "take_features", "warn_of_leaks"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Nodes = NDArray[np.int64]


def check_features(X: Any, n_nodes: int, names: ArrayLike | None = None) -> Any:
    """Return features as an array or a sparse matrix of real, finite numbers, one row per node.

    `names` are those of the columns, for messages.
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


def take_features(estimator: Any, X: Any, **how: Any) -> Any:
    """Return X as a matrix of finite numbers, after the checks of scikit-learn for an estimator."""
    try:
        features = validate_data(
            estimator, X, dtype=[np.float64, np.float32], ensure_all_finite=False, **how
        )
    except (ValueError, TypeError) as error:
        explain(error, X)
        raise
    check_features(features, features.shape[0], getattr(estimator, "feature_names_in_", None))
    return features


def explain(error: Exception, X: Any) -> None:
    """Say where a value is that scikit-learn could not make a number of, if that is the error."""
    said = str(error)
    if not any(words in said for words in ("could not convert", "float() argument", "be promoted")):
        return
    try:
        check_features(np.asarray(X, dtype=object), len(X), getattr(X, "columns", None))
    except ValueError as found:
        if "float() argument" in said:  # scikit-learn wants a TypeError with these words
            raise TypeError(f"{found}; {said}") from None
        raise


def own_features(features: Any, X: Any) -> Any:
    """Return features that do not change if the caller changes X."""
    if scipy.sparse.issparse(features):
        is_csr = getattr(X, "format", None) == "csr"  # other formats are converted
        is_shared = is_csr and np.may_share_memory(features.data, X.data)
    else:
        is_shared = features is X or features.base is not None
    return features.copy() if is_shared else features


def warn_of_leaks(X: Any, labels: NodeLabels, missing: Mask, names: ArrayLike | None) -> None:
    """Warn of columns that may have been made from the labels; nodes without features are ignored.

    Columns with few values can look so by accident. If values were assigned to nodes at random, the
    probability of a warning would be below 1e-3.
    """
    at = ~missing[labels.nodes]
    nodes, values = labels.nodes[at], labels.values[at]
    others = ~missing
    others[labels.nodes] = False
    least = float(np.log(X.shape[1] / 1e-3))
    marks = _find_marks(X, nodes, np.flatnonzero(others), least)
    if values.shape[1] == 1:
        copies, same = _find_linear(X, nodes, values), "the labels are a linear function of values"
    else:
        copies = _find_copies(X, nodes, values, least)
        same = "all labels of a class, or nearly all, have the same value"
    only = "labelled nodes have other values than all unlabelled ones, which have the same,"
    for columns, what in ((marks, only), ([at for at in copies if at not in marks], same)):
        if columns:
            shown = [repr(str(at if names is None else np.asarray(names)[at])) for at in columns]
            more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
            one = len(shown) == 1
            warn(
                f"{what} in the {'column' if one else 'columns'} "
                f"{', '.join(shown[:5])}{more}; leave {'it' if one else 'them'} out if "
                f"{'it was' if one else 'they were'} made from the labels, because the answers "
                f"would be wrong and the estimated accuracy too high"
            )


def _find_marks(X: Any, inside: Nodes, outside: Nodes, least: float) -> list[int]:
    """Return columns with one value outside, and only others inside."""
    if _log_ways([len(inside), len(outside)]) <= least:
        return []
    rows, rest = _take(X, _sample(inside)), _take(X, _sample(outside))
    seen = np.flatnonzero((rest == rest[0]).all(axis=0) & (rows != rest[0]).all(axis=0))
    return [
        int(column)
        for column in seen
        if (_take(X, outside, column) == rest[0, column]).all()
        and (_take(X, inside, column) != rest[0, column]).all()
    ]


def _find_copies(X: Any, nodes: Nodes, values: Floats, least: float) -> list[int]:
    """Return columns with one value for nearly all labels of each class, not the same for all."""
    codes = np.argmax(values, axis=1)
    place = np.unique(_sample(codes), return_inverse=True)[1]
    rows = _take(X, _sample(nodes))
    groups = [rows[place == group] for group in range(place.max(initial=-1) + 1)]
    usual = np.array([np.sort(group, axis=0)[len(group) // 2] for group in groups])
    nearly = 0.98  # fraction of the labels that a column made from labels agrees with
    same = [(rows[:, at] == usual[place, at]).mean() >= nearly for at in range(rows.shape[1])]
    found = []
    for column in np.flatnonzero(same & (usual != usual[:1]).any(axis=0)):
        _, kinds = np.unique(_take(X, nodes, column), return_inverse=True)
        n_kinds = int(kinds.max()) + 1
        table = np.zeros((values.shape[1], n_kinds))
        np.add.at(table, (codes, kinds), 1)
        n_others = len(nodes) - table.max(axis=1).sum()
        # All ways to give the labels these values, over those with one value for each class. Of one
        # label a class, all ways are such.
        ways = _log_ways(table.sum(axis=0)) - np.count_nonzero(table.any(axis=1)) * np.log(n_kinds)
        ways -= 2.0 * _log_ways([n_others, len(nodes) - n_others])
        if n_others <= (1.0 - nearly) * len(nodes) and ways > least:
            found.append(int(column))
    return found


def _find_linear(X: Any, nodes: Nodes, values: Floats) -> list[int]:
    """Return columns of which the labels are a linear function."""
    if len(nodes) < 10:  # fewer may be a linear function of a column by accident
        return []
    columns = np.hstack([_take(X, _sample(nodes)), _sample(values)])
    columns -= columns.mean(axis=0)
    lengths = np.linalg.norm(columns, axis=0)
    columns /= np.where(lengths > 0.0, lengths, 1.0)
    found: list[int] = np.flatnonzero((columns[:, -1] @ columns[:, :-1]) ** 2 > 1 - 1e-9).tolist()
    return found


def _sample(rows: NDArray[Any]) -> NDArray[Any]:
    return rows[:: max(1, len(rows) // 300)]


def _log_ways(sizes: Any) -> float:
    """Return the logarithm of the number of ways to divide nodes into groups of these sizes."""
    sizes = np.asarray(sizes)
    return float(gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum())


def _take(X: Any, nodes: Nodes, column: Any = slice(None)) -> Floats:
    """Return some rows, or a part of a column, as a dense array of float64."""
    rows = X[nodes][:, column] if isinstance(column, slice) else X[:, [column]][nodes]
    dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
    found: Floats = np.asarray(dense, dtype=np.float64)
    return found if isinstance(column, slice) else found[:, 0]


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
