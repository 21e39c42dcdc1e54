"""Columns of a table as numbers: missing values, categories, dates, and columns to leave out.

Each column becomes a part of the matrix. All parts are planned before the matrix is made, so that
its size, its type and whether it is sparse are known.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import LARGEST
from ohmlearn.features.feature_doubts import find_odd_value, is_number
from ohmlearn.reading.arrow_reader import decode
from ohmlearn.reading.source_errors import refuse_source, shorten, show_name

__all__ = ["LABEL_NAMES", "Encoded", "encode_columns"]

LABEL_NAMES = ("label", "labels", "target")  # columns that features hardly are, in lower case
MOST_CATEGORIES = 50  # columns for one column of text
MOST_DOUBTS = 5  # columns that are warned of
MANY, DISTINCT = 20, 0.5  # more different texts than this, and this share of all, are no categories
# A matrix is sparse if it has many columns and few of its entries are not zero.
MANY_COLUMNS, MOST_FILLED = 50, 0.2
DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class Encoded(NamedTuple):
    """The columns of a table as numbers."""

    X: Any  # array or CSR matrix
    names: list[str]
    treatment: dict[str, str]  # what was done to each column, in words
    sources: list[str]  # the column of the table that each of `names` comes from


class Numbers:
    """A column of numbers, and a second one that marks missing values, if there are any."""

    def __init__(self, name: str, values: NDArray[Any], what: str) -> None:
        known = values[~np.isnan(values)]
        n_missing = len(values) - len(known)
        self._values = values
        self._is_constant = len(known) > 0 and known.min() == known.max()
        self.dtype = values.dtype
        self.doubt = ""
        self.names: list[str] = []
        if len(known) == 0:
            self.treatment = "left out: all values are missing"
            return
        if not self._is_constant:
            self.names.append(name)
            self.treatment = what
        else:
            same = f"all {'known ' if n_missing else ''}values are {known[0]:g}"
            self.treatment = f"left out: {same}"
        if n_missing > 0:
            self.names.append(f"{name}_missing")
            if self._is_constant:
                self.treatment = f"{same}; only marks {n_missing:,} missing"
            else:
                mean = known.mean(dtype=np.float64)
                self.treatment += f"; {n_missing:,} missing, replaced by the mean {mean:.4g}"

    def n_filled(self) -> int:
        """Return how many entries are not zero."""
        return len(self._values) * len(self.names)

    def make(self) -> Any:
        """Return the columns."""
        from sklearn.impute import SimpleImputer

        column = self._values[:, np.newaxis]
        missing = np.isnan(column)
        if not missing.any():
            return column
        if self._is_constant:
            return missing.astype(self.dtype)
        return np.hstack([SimpleImputer().fit_transform(column), missing])


class Categories:
    """A column for each category; the rarest share one, and missing values have their own."""

    dtype = np.dtype(np.float32)

    def __init__(self, name: str, array: Any, first_row: int) -> None:
        from sklearn.preprocessing import OneHotEncoder

        self.names: list[str] = []
        self._codes, values = _sort_categories(array)
        self._encoder = None
        n_missing = int(np.count_nonzero(self._codes < 0))
        n_known = len(self._codes) - n_missing
        if n_known == 0:
            self.treatment = "left out: all values are missing"
        elif len(values) == 1 and n_missing == 0:
            self.treatment = f"left out: all values are {shorten(values[0])}"
        elif len(values) > max(MANY, DISTINCT * n_known):
            self.treatment = (
                f"left out: text with {len(values):,} different values in {n_known:,} rows"
            )
            if all(is_number(value) for value in values):
                self.treatment += "; they are numbers, so cast the column to use it"
        else:
            self._encoder = OneHotEncoder(
                max_categories=MOST_CATEGORIES, handle_unknown="ignore", dtype=self.dtype
            )
            self._encoder.fit(self._codes[self._codes >= 0, np.newaxis])
            self._describe(name, values, n_missing)
        self._marks_missing = n_missing > 0
        self.doubt = find_odd_value(self._codes, values, first_row)
        if self.doubt:
            self.treatment += f"; {self.doubt}"

    def _describe(self, name: str, values: list[str], n_missing: int) -> None:
        assert self._encoder is not None
        rare = self._encoder.infrequent_categories_[0]
        hidden = set() if rare is None else {int(code) for code in rare}
        self.names = [f"{name}={value}" for at, value in enumerate(values) if at not in hidden]
        n_categories = len(values)
        self.treatment = f"{n_categories:,} {'category' if n_categories == 1 else 'categories'}"
        if hidden:
            self.names.append(f"{name}=(rare)")
            self.treatment += f", of which the {len(hidden):,} rarest share a column"
        if n_missing > 0:
            self.names.append(f"{name}_missing")
            self.treatment += f"; {n_missing:,} missing, as a category"

    def n_filled(self) -> int:
        """Return how many entries are not zero."""
        return len(self._codes) if self._encoder is not None else 0

    def make(self) -> Any:
        """Return the columns as a sparse matrix."""
        assert self._encoder is not None
        columns = sparse.csr_matrix(self._encoder.transform(self._codes[:, np.newaxis]))
        if self._marks_missing:
            missing = sparse.csr_matrix(self._codes[:, np.newaxis] < 0, dtype=self.dtype)
            columns = sparse.hstack([columns, missing], format="csr")
        return columns


def encode_columns(
    table: Any, source: str, first_row: int = 0, *, asked: Collection[str] = ()
) -> Encoded:
    """Return the columns of a table of pyarrow as numbers.

    Parameters
    ----------
    table : pyarrow.Table
        Without the column of ids.
    source : str
        Where it comes from, for messages.
    first_row : int
        The number of its first row, for messages.
    asked : collection of str
        Columns that are used although they have the name of labels.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"age": [30, None, 50], "city": ["a", "b", "b"], "one": [1, 1, 1]})
    >>> X, names, treatment, _ = encode_columns(table, "people.csv")
    >>> X
    array([[30.,  0.,  1.,  0.],
           [40.,  1.,  0.,  1.],
           [50.,  0.,  0.,  1.]])
    >>> names
    ['age', 'age_missing', 'city=a', 'city=b']
    >>> treatment["one"]
    'left out: all values are 1'
    """
    parts: list[Numbers | Categories] = []
    treatment: dict[str, str] = {}
    doubts: list[str] = []
    sources: list[str] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name.strip().lower() in LABEL_NAMES and name not in asked:
            treatment[name] = "left out: labels are no features; name the column to use it"
            continue
        part = _plan_column(name, column, source, first_row)
        treatment[name] = part.treatment
        if part.doubt:
            doubts.append(f"the column {name!r} is read as text: {part.doubt}")
        if part.names:
            parts.append(part)
            sources += [name] * len(part.names)
    for doubt in doubts[:MOST_DOUBTS]:
        warn(f"{show_name(source)}: {doubt}")
    names = [name for part in parts for name in part.names]
    if not names:
        why = "; ".join(f"{name!r} is {what}" for name, what in list(treatment.items())[:5])
        refuse_source(
            source, f"has no columns of features{': ' if why else ''}{why}; is it the right file?"
        )
    return Encoded(_join(parts, table.num_rows, len(names)), names, treatment, sources)


def _join(parts: list[Numbers | Categories], n_rows: int, n_columns: int) -> Any:
    """Return the matrix of all parts, sparse if most of its entries are zero."""
    dtype = np.result_type(*(part.dtype for part in parts))
    n_filled = sum(part.n_filled() for part in parts)
    if n_columns > MANY_COLUMNS and n_filled <= MOST_FILLED * n_rows * n_columns:
        return sparse.hstack([sparse.csr_matrix(part.make()) for part in parts], "csr", dtype)
    X = np.empty((n_rows, n_columns), dtype)
    start = 0
    for part in parts:
        columns = part.make()
        end = start + columns.shape[1]
        X[:, start:end] = columns.toarray() if sparse.issparse(columns) else columns
        start = end
    return X


def _plan_column(name: str, column: Any, source: str, first_row: int) -> Numbers | Categories:
    """Return how a column becomes numbers."""
    import pyarrow as pa

    types = pa.types
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        kind = column.type
    is_text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    if is_text or types.is_dictionary(kind):
        return Categories(name, column, first_row)
    if types.is_null(kind):
        return Numbers(name, np.full(len(column), np.nan), "numbers")
    if types.is_temporal(kind) and not types.is_interval(kind):
        of = "times" if types.is_time(kind) else "durations" if types.is_duration(kind) else "dates"
        since = " since 1970" if of == "dates" else ""
        return Numbers(name, _as_days(column), f"{of}, as days{since}")
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if not is_number and not types.is_boolean(kind):
        _refuse_values(name, column, source, first_row)
    values = _as_floats(column)
    bad = np.abs(values) > min(LARGEST, float(np.finfo(values.dtype).max))  # False for NaN
    if bad.any():
        at = int(np.argmax(bad))
        what = "infinite" if np.isinf(values[at]) else f"too large: {values[at]:g}"
        refuse_source(
            source,
            f"the column {name!r} is {what}; correct it, or make it empty, which means missing",
            first_row + at,
        )
    what = "true or false" if types.is_boolean(kind) else "numbers"
    if types.is_integer(kind) and len(values) > MANY and len(np.unique(values)) == len(values):
        what += ", all different: if it is an id, leave the column out"
    return Numbers(name, values, what)


def _refuse_values(name: str, column: Any, source: str, first_row: int) -> NoReturn:
    """Refuse a column of lists or other things that are neither numbers nor text."""
    known = np.flatnonzero(column.is_valid().to_numpy())
    at = int(known[0]) if len(known) > 0 else 0
    value = str(column[at].as_py()) if len(known) > 0 else "empty"
    import pyarrow.types as types

    remedy = "leave it out by naming the other columns"
    if types.is_list(column.type) or types.is_fixed_size_list(column.type):
        remedy = f"make one column of each number, or {remedy}"
    refuse_source(
        source,
        f"the column {name!r} has the type {column.type}, which is neither a number nor a text: "
        f"{shorten(value)}; {remedy}",
        first_row + at,
    )


def _as_floats(column: Any) -> NDArray[Any]:
    """Return numbers or booleans as floats, with NaN for missing ones."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    is_small = pa.types.is_float32(column.type) or pa.types.is_float16(column.type)
    column = column.cast(
        pa.float32() if is_small or column.type == pa.uint8() else pa.float64(), safe=False
    )
    if column.null_count > 0:
        column = column.fill_null(np.nan)
    values: NDArray[Any] = column.to_numpy()
    return values


def _as_days(column: Any) -> NDArray[np.float64]:
    """Return dates, times or durations as numbers of days, with NaN for missing ones."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms"))
        kind = column.type
    ticks = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    days = ticks.cast(pa.float64(), safe=False)
    if days.null_count > 0:
        days = days.fill_null(np.nan)
    numbers: NDArray[np.float64] = days.to_numpy() / DAY[kind.unit]
    return numbers


def _sort_categories(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of the category of each row, -1 if it is missing, and the sorted names."""
    import pyarrow as pa

    texts = [decode(chunk).cast(pa.large_string()) for chunk in column.chunks]
    coded = pa.concat_arrays(texts).dictionary_encode()
    values: list[str] = coded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = np.empty(len(values) + 1, dtype=np.int64)
    ranks[order] = np.arange(len(values))
    ranks[-1] = -1  # of missing ones
    codes = coded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return ranks[codes], [values[at] for at in order]
