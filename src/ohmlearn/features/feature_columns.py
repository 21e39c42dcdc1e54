"""Columns of features: of tables, which become ids and numbers, and of matrices.

Each column of a table is planned first: what becomes of it, in words, and the transformer of
scikit-learn that does it. One `ColumnTransformer` then makes the matrix. Matrices are checked, with
messages that say where a wrong value is, and so are columns that may have been made from labels.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Sequence
from itertools import groupby
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import gammaln
from scipy.stats.contingency import crosstab
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import library_of
from ohmlearn.checks.parameters import LARGEST, require_extra
from ohmlearn.errors import Param
from ohmlearn.estimators.label_input import NodeLabels, is_default_index
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import FractionError, Ids, Strings, decode_strings, is_name, read_ids
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.reading.arrow_reader import decode, read_whole
from ohmlearn.reading.feature_table import NODES
from ohmlearn.reading.source_errors import refuse_source, shorten, show_name

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]

LABEL_NAMES = ("label", "labels", "target")  # columns that features hardly are, in lower case
MOST_CATEGORIES = 50  # columns for one column of text; matrices with more may be sparse
MANY = 20  # more different texts than this, and than half of the rows, are measured values
# How numbers and dates are written, apart from what Arrow reads.
FORMS = {
    "date": r"\d{4}-\d\d-\d\d([ T].*)?",  # as Arrow reads it
    "thousands": r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?|[+-]?\d{1,3}([' ]\d{3})+([.,]\d*)?",
    "comma": r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+",
    "other date": r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./-])\d{1,2}\3\d{1,2}"
    r"|\d{1,2}/\d{1,2}/\d\d)([ T].*)?",
}


# Tables.


def as_arrow(table: Any, source: str, columns: Sequence[str] | None = None) -> Any:
    """Return a table as one of pyarrow; the index of a pandas frame becomes a column if it has ids.

    If only some `columns` are used, others may have values that Arrow cannot hold.
    """
    require_extra("pyarrow", "files")
    if library_of(table) == "pandas":
        return _from_pandas(table, source, columns)
    return read_whole(table)


def _from_pandas(frame: Any, source: str, wanted: Sequence[str] | None) -> Any:
    """Return a data frame as a table, column by column, so that a message can name the column."""
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, at] for at in range(len(names))]
    index = frame.index
    if index.nlevels > 1:
        refuse_source(
            source, "has an index of several columns; use reset_index() and name the column of ids"
        )
    has_name = index.name is not None
    is_usual = not has_name and any(name.strip().lower() in NODES for name in names)
    if not is_usual and (has_name or not is_default_index(index)):
        name = str(index.name) if has_name else "__index_level_0__"
        if name in names:  # as after groupby(..., as_index=True) and a copy of the column
            refuse_source(source, f"the index and a column are both called {name!r}; rename one")
        names.insert(0, name)
        columns.insert(0, index.to_series())
    arrays = []
    for name, column in zip(names, columns, strict=True):
        is_optional = wanted is not None and name not in wanted
        arrays.append(_column_from_pandas(name, column, source, is_optional))
    table = pa.Table.from_arrays(arrays, names=names)
    if len(names) > len(frame.columns):
        meta = json.dumps({"index_columns": [names[0]]})
        table = table.replace_schema_metadata({"pandas": meta})
    return table


def _column_from_pandas(name: str, column: Any, source: str, is_optional: bool) -> Any:
    import pyarrow as pa

    if type(column.dtype).__name__ == "SparseDtype":
        column = column.sparse.to_dense()
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        if is_optional:
            return pa.nulls(len(column))
        values = column.tolist()
        first, at = _find_other_type(values)
        if at is None:
            said = " ".join(str(error).split())[:200]
            refuse_source(source, f"the column {name!r} cannot be read: {said}")
        refuse_source(
            source,
            f"the column {name!r} has values of different types, such as {shorten(str(first))} and "
            f"{shorten(str(values[at]))}; make all of them numbers, or all of them texts",
            at,
        )


def _find_other_type(values: list[Any]) -> tuple[Any, int | None]:
    """Return the first known value, and where the first one of another type is."""
    first: Any = None
    for at, value in enumerate(values):
        if value is None or value != value:
            continue
        if first is None:
            first = value
        both_numbers = isinstance(value, int | float) and isinstance(first, int | float)
        if type(value) is not type(first) and not both_numbers:
            return first, at
    return first, None


# Ids and names.


def take_ids(column: Any, name: str, source: str, first_row: int) -> NDArray[Any]:
    """Return ids as integers or strings; a missing one, and one that occurs twice, are refused."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    if not (is_text or is_number or str(kind) == "string_view"):
        refuse_source(
            source,
            f"ids must be integers or strings, but the column {name!r} has the type {kind}; name "
            f"another one in {Param('node_col')}",
        )
    if str(kind) == "string_view":
        column = column.cast(pa.large_string())
    try:
        ids, missing = read_ids(column, name)
    except FractionError as error:
        refuse_source(
            source, f"the ids in the column {name!r} must be {error.wanted}", first_row + error.at
        )
    if missing is not None and missing.any():
        refuse_source(
            source,
            f"the id in the column {name!r} is missing; leave the row out",
            first_row + int(np.argmax(missing)),
        )
    check_different(ids, source, first_row)
    return as_array(ids)


def as_array(ids: Ids) -> NDArray[Any]:
    """Return ids as an array of int64 or of strings."""
    return decode_strings(ids) if isinstance(ids, Strings) else ids.astype(np.int64, copy=False)


def check_different(ids: Any, source: str, first_row: int = 0) -> None:
    """Refuse an id that occurs twice."""
    table = NodeTable()
    numbers = table.add(ids)
    if len(table) == len(numbers):
        return
    later = int(np.argmax(numbers != np.arange(len(numbers))))
    first = int(np.argmax(numbers == numbers[later]))
    node = table.ids(numbers[[later]]).tolist()[0]
    refuse_source(
        source,
        f"the id {node!r} is in the rows {first_row + first} and {first_row + later}; a node has "
        f"one row",
    )


def check_same_columns(
    known: list[str] | None, n_known: int, names: list[str] | None, n_columns: int
) -> None:
    """Refuse features whose columns are not the known ones; the names of either may be unknown."""
    remedy = "encode the rows of the fit and these in one table, with NodeFeatures.from_table"
    if known is not None and names is not None and known != names:
        missing = [name for name in known if name not in set(names)]
        new = [name for name in names if name not in set(known)]
        said = [
            f"{_list_some(some)} {'is' if len(some) == 1 else 'are'} {what}"
            for some, what in ((missing, "missing"), (new, "new"))
            if some
        ]
        if not said:
            said, remedy = ["they have another order"], f"the order of the fit is {known}"
        raise ValueError(f"X must have the columns of the fit, but {' and '.join(said)}; {remedy}")
    if n_columns != n_known:
        raise ValueError(f"X has {n_columns} features, but the fit had {n_known}; {remedy}")


def _list_some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


# Numbers.


class Encoded(NamedTuple):
    """The columns of a table as numbers."""

    X: Matrix  # array or CSR matrix
    names: list[str]
    treatment: dict[str, str]  # what was done to each column, in words
    sources: list[str]  # the column of the table that each of `names` comes from


class ColumnPlan(NamedTuple):
    """What becomes of a column."""

    values: NDArray[Any]  # numbers, or codes of categories; NaN if missing
    names: list[str]  # of the columns that it becomes; none if it is left out
    treatment: str
    transformer: Any = "passthrough"
    doubt: str = ""


def encode_columns(
    table: Any, source: str, first_row: int = 0, *, asked: Collection[str] = ()
) -> Encoded:
    """Return the columns of a table of pyarrow, which is without the ids, as numbers.

    The columns `asked` are used although they have the name of labels.
    """
    plans: dict[str, ColumnPlan] = {}
    treatment: dict[str, str] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name.strip().lower() in LABEL_NAMES and name not in asked:
            treatment[name] = "left out: labels are no features; name the column to use it"
        else:
            plans[name] = _plan_column(name, column, source, first_row)
            treatment[name] = plans[name].treatment
    doubts = [
        f"the column {name!r} is read as text: {p.doubt}" for name, p in plans.items() if p.doubt
    ]
    for doubt in doubts[:5]:
        warn(f"{show_name(source)}: {doubt}")
    used = {name: plan for name, plan in plans.items() if plan.names}
    if not used:
        why = "; ".join(f"{name!r} is {what}" for name, what in list(treatment.items())[:5])
        refuse_source(
            source, f"has no columns of features{': ' if why else ''}{why}; is it the right file?"
        )
    names = [each for plan in used.values() for each in plan.names]
    sources = [name for name, plan in used.items() for _ in plan.names]
    return Encoded(_transform(list(used.values()), len(names)), names, treatment, sources)


def _transform(plans: list[ColumnPlan], n_columns: int) -> Any:
    """Return the matrix of all columns, sparse if it is wide and most of its entries are zero."""
    from sklearn.compose import ColumnTransformer

    steps = []
    numbered = enumerate(plans)
    for same, group in groupby(numbered, lambda pair: isinstance(pair[1].transformer, str)):
        members = list(group)  # columns that stay as they are take one step together
        groups = [members] if same else [[member] for member in members]
        steps += [
            (str(each[0][0]), each[0][1].transformer, [at for at, _ in each]) for each in groups
        ]
    joined = ColumnTransformer(steps, sparse_threshold=0.2)
    dtype = np.result_type(*(plan.values.dtype for plan in plans))
    X = joined.fit_transform(np.column_stack([plan.values for plan in plans]))
    if sparse.issparse(X) and n_columns <= MOST_CATEGORIES:
        X = X.toarray()
    return sparse.csr_matrix(X, dtype=dtype) if sparse.issparse(X) else X.astype(dtype, copy=False)


def _plan_column(name: str, column: Any, source: str, first_row: int) -> ColumnPlan:
    """Return how a column becomes numbers."""
    import pyarrow as pa

    types = pa.types
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        kind = column.type
    is_text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    if is_text or types.is_dictionary(kind):
        return _plan_categories(name, column, first_row)
    if types.is_null(kind):
        return _plan_numbers(name, np.full(len(column), np.nan), "numbers")
    if types.is_temporal(kind) and not types.is_interval(kind):
        of = "times" if types.is_time(kind) else "durations" if types.is_duration(kind) else "dates"
        since = " since 1970" if of == "dates" else ""
        return _plan_numbers(name, _as_days(column), f"{of}, as days{since}")
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
    return _plan_numbers(name, values, what)


def _plan_numbers(name: str, values: NDArray[Any], what: str) -> ColumnPlan:
    """Plan a column of numbers, and a second one that marks missing values, if there are any."""
    from sklearn.impute import MissingIndicator, SimpleImputer

    known = values[~np.isnan(values)]
    n_missing = len(values) - len(known)
    if len(known) == 0:
        return ColumnPlan(values, [], "left out: all values are missing")
    mark = f"{name}_missing"
    if known.min() == known.max():
        same = f"all {'known ' if n_missing else ''}values are {known[0]:g}"
        if n_missing == 0:
            return ColumnPlan(values, [], f"left out: {same}")
        return ColumnPlan(
            values, [mark], f"{same}; only marks {n_missing:,} missing", MissingIndicator()
        )
    if n_missing == 0:
        return ColumnPlan(values, [name], what)
    mean = known.mean(dtype=np.float64)
    what += f"; {n_missing:,} missing, replaced by the mean {mean:.4g}"
    return ColumnPlan(values, [name, mark], what, SimpleImputer(add_indicator=True))


def _plan_categories(name: str, column: Any, first_row: int) -> ColumnPlan:
    """Plan a column for each category; the rarest share one, and missing values have their own."""
    from sklearn.impute import MissingIndicator
    from sklearn.pipeline import make_union
    from sklearn.preprocessing import OneHotEncoder

    codes, texts = _sort_categories(column)
    missing = codes < 0
    n_missing, n_values = int(np.count_nonzero(missing)), len(texts)
    n_known = len(codes) - n_missing
    values = np.where(missing, np.nan, codes).astype(np.float32)
    doubt = _find_odd_value(codes, texts, first_row)
    more = f"; {doubt}" if doubt else ""
    if n_known == 0:
        return ColumnPlan(values, [], "left out: all values are missing")
    if n_values == 1 and n_missing == 0:
        return ColumnPlan(
            values, [], f"left out: all values are {shorten(texts[0])}{more}", doubt=doubt
        )
    if n_values > max(MANY, n_known / 2):
        what = f"left out: text with {n_values:,} different values in {n_known:,} rows"
        if all(_form_of(text) == "number" for text in texts):
            what += "; they are numbers, so cast the column to use it"
        return ColumnPlan(values, [], what + more, doubt=doubt)
    encoder = OneHotEncoder(
        categories=[np.arange(n_values, dtype=np.float32)],
        max_categories=MOST_CATEGORIES,
        handle_unknown="ignore",  # missing values
        dtype=np.float32,
    )
    rare = encoder.fit(values[~missing, np.newaxis]).infrequent_categories_[0]
    hidden = set() if rare is None else {int(code) for code in rare}
    names = [f"{name}={text}" for at, text in enumerate(texts) if at not in hidden]
    what = f"{n_values:,} {'category' if n_values == 1 else 'categories'}"
    if hidden:
        names.append(f"{name}=(rare)")
        what += f", of which the {len(hidden):,} rarest share a column"
    if n_missing == 0:
        return ColumnPlan(values, names, what + more, encoder, doubt)
    names.append(f"{name}_missing")
    what += f"; {n_missing:,} missing, as a category"
    return ColumnPlan(values, names, what + more, make_union(encoder, MissingIndicator()), doubt)


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
    values: NDArray[Any] = column.fill_null(np.nan).to_numpy()
    return values


def _as_days(column: Any) -> NDArray[np.float64]:
    """Return dates, times or durations as numbers of days, with NaN for missing ones."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms"))
        kind = column.type
    ticks = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    return _as_floats(ticks) / (86_400 * 1000.0 ** ("s", "ms", "us", "ns").index(kind.unit))


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


# Numbers and dates that are not read as such.


def _find_odd_value(codes: NDArray[np.int64], values: list[str], first_row: int) -> str:
    """Return why texts are not read as numbers or dates although nearly all are; empty if not so.

    `codes` has the position of each row's text among the different `values`, -1 if it is missing.
    """
    sample = values[:: max(1, len(values) // 100)]
    if sum(_form_of(value) != "text" for value in sample) <= len(sample) / 2:
        return ""
    rows = np.flatnonzero(codes >= 0)
    forms = np.array([_form_of(value) for value in values])
    for wanted, allowed in (("number", ("thousands", "comma")), ("date", ("other date",))):
        alike, right = np.isin(forms, (wanted, *allowed)), (forms == wanted)[codes[rows]]
        is_measured = alike.sum() > min(MANY, len(rows) / 2)
        if is_measured and alike[codes[rows]].mean() >= 0.9:
            if right.all():  # stored as texts
                return "" if wanted == "number" else "they are dates, so cast the column"
            at = rows[np.argmin(right)]
            row, value, form = first_row + int(at), values[codes[at]].strip(), forms[codes[at]]
            remedy = _how_to_write(value, form)
            if right.mean() > 0.5:
                return f"nearly all are {wanted}s, but row {row:,} has {shorten(value)}; {remedy}"
            return f"{wanted}s such as {shorten(value)} in row {row:,} are not read; {remedy}"
    return ""


def _how_to_write(value: str, form: str) -> str:
    if form == "other date":
        return "write dates as 2019-01-28"
    if form == "thousands":
        plain = re.sub("[, ']", "", value)
        return f"write numbers without separators of thousands, {plain}"
    if form == "comma":
        return f"write {value.replace('.', '').replace(',', '.')}, not a decimal comma"
    return "make it empty, which means missing"


def _form_of(text: str) -> str:
    """Return whether a text is a number, a date, or neither, and how it is written."""
    text = text.strip()
    found = (form for form, pattern in FORMS.items() if re.fullmatch(pattern, text))
    return next(found, "text") if is_name(text) else "number"


# Matrices.


def check_features(
    X: Matrix,
    n_nodes: int | None = None,
    names: ArrayLike | None = None,
    most: float = sys.float_info.max,
) -> Any:
    """Return an array or a sparse matrix of real numbers up to `most`, with one row for each node.

    `names` are those of the columns, for messages.
    """
    is_sparse = sparse.issparse(X)
    features: Matrix = X if is_sparse else np.asarray(X)
    if features.ndim != 2:
        remedy = "; use X.reshape(-1, 1) for a single feature" if features.ndim == 1 else ""
        raise ValueError(
            f"X must have shape (n_nodes, n_features), got shape {features.shape}{remedy}"
        )
    if features.dtype.kind in "OUS" and not is_sparse:
        features = _convert_objects(features, names)
    if features.dtype.kind not in "biuf":
        raise ValueError(f"X must be real numbers, got dtype {features.dtype}")
    if n_nodes is not None and features.shape[0] != n_nodes:
        raise ValueError(
            f"X must have one row for each of the {n_nodes} nodes of the graph, got "
            f"{features.shape[0]} rows"
        )
    if is_sparse and features.format != "csr":
        features = sparse.csc_array(features)
    values = features.data if is_sparse else features
    # False for NaN.
    if values.size == 0 or -most <= float(values.min()) <= float(values.max()) <= most:
        return features
    if is_sparse:
        columns = sparse.csc_array(features)
        values = columns.data
    # In the order of rows, or of a sparse matrix.
    at = int(np.argmin(np.abs(values.astype(np.float64)) <= most))
    i, j = divmod(at, features.shape[1])
    if is_sparse:
        i, j = int(columns.indices[at]), int(np.searchsorted(columns.indptr, at, side="right")) - 1
    what, remedy = f"{values.flat[at]}", "correct such values first, or drop the column"
    if what == "nan":
        what = "NaN"
        remedy = (
            "fill in missing values first, for example with sklearn.impute.SimpleImputer, or drop "
            "the column; NodeFeatures.from_table replaces those of a table"
        )
    raise ValueError(f"X must be finite, but {_place(i, j, names)} is {what}; {remedy}")


def _convert_objects(features: NDArray[Any], names: ArrayLike | None) -> NDArray[Any]:
    """Return numbers that are stored as objects as float64; None is missing. Strings are refused.

    numpy also makes strings of the numbers beside strings, so these are not named.
    """
    if features.dtype.kind == "O":
        try:
            return features.astype(np.float64)
        except (TypeError, ValueError):
            wrong = [isinstance(x, str) or not isinstance(x, Real) for x in features.ravel()]
    else:
        wrong = [is_name(text) for text in features.ravel().tolist()]
    i, j = divmod(int(np.argmax(wrong)), features.shape[1])
    raise ValueError(
        f"X must be real numbers, but {_place(i, j, names)} is {features[i].tolist()[j]!r}; encode "
        f"such columns first, for example a table with NodeFeatures.from_table"
    )


def _place(i: int, j: int, names: ArrayLike | None) -> str:
    name = "" if names is None else f" ({np.asarray(names)[j]})"
    return f"row {i}, column {j}{name}"


def take_features(estimator: BaseEstimator, X: Matrix, **how: Any) -> Any:
    """Return X as a matrix of finite numbers, after the checks of scikit-learn for an estimator."""
    try:
        features = validate_data(
            estimator, X, dtype=[np.float64, np.float32], ensure_all_finite=False, **how
        )
    except (ValueError, TypeError) as error:
        said, no_number = str(error), ("could not convert", "float() argument", "be promoted")
        if any(words in said for words in no_number):
            try:  # to say where the value is that scikit-learn could not make a number of
                check_features(np.asarray(X, dtype=object), names=getattr(X, "columns", None))
            except ValueError as found:
                if "float() argument" in said:  # scikit-learn wants a TypeError with these words
                    raise TypeError(f"{found}; {said}") from None
                raise
        raise
    check_features(features, names=getattr(estimator, "feature_names_in_", None))
    return features


def own_features(features: Matrix, X: Matrix) -> Any:
    """Return features that do not change if the caller changes X."""
    if sparse.issparse(features):
        is_csr = getattr(X, "format", None) == "csr"  # other formats are converted
        is_shared = is_csr and np.may_share_memory(features.data, X.data)
    else:
        is_shared = features is X or features.base is not None
    return features.copy() if is_shared else features


# Columns that may have been made from the labels.


def warn_of_leaks(
    X: Matrix, labels: NodeLabels, missing: NDArray[np.bool_], names: ArrayLike | None
) -> None:
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
            shown = [str(at if names is None else np.asarray(names)[at]) for at in columns]
            it, was = ("it", "it was") if len(shown) == 1 else ("them", "they were")
            warn(
                f"{what} in the {'column' if it == 'it' else 'columns'} {_list_some(shown)}; leave "
                f"{it} out if {was} made from the labels, because the answers would be wrong and "
                f"the estimated accuracy too high"
            )


def _find_marks(X: Matrix, inside: Nodes, outside: Nodes, least: float) -> list[int]:
    """Return columns with one value outside, and only others inside."""
    if _log_ways([len(inside), len(outside)]) <= least:
        return []
    rows, rest = _take(X, _sample(inside)), _take(X, _sample(outside))
    seen = np.flatnonzero((rest == rest[0]).all(axis=0) & (rows != rest[0]).all(axis=0))
    few, value = X[:, seen], rest[0, seen]
    is_mark = (_take(few, outside) == value).all(axis=0) & (_take(few, inside) != value).all(axis=0)
    found: list[int] = seen[is_mark].tolist()
    return found


def _find_copies(X: Matrix, nodes: Nodes, values: Floats, least: float) -> list[int]:
    """Return columns with one value for nearly all labels of each class, not the same for all."""
    codes = np.argmax(values, axis=1)
    place = np.unique(_sample(codes), return_inverse=True)[1]
    rows = _take(X, _sample(nodes))
    groups = [rows[place == group] for group in range(place.max(initial=-1) + 1)]
    usual = np.array([np.sort(group, axis=0)[len(group) // 2] for group in groups])
    nearly = 0.98  # fraction of the labels that a column made from labels agrees with
    same = [(rows[:, at] == usual[place, at]).mean() >= nearly for at in range(rows.shape[1])]
    found, candidates = [], np.flatnonzero(same & (usual != usual[:1]).any(axis=0))
    for at, column in zip(candidates, _take(X[:, candidates], nodes).T, strict=True):
        table = crosstab(codes, column).count
        n_others = len(nodes) - table.max(axis=1).sum()
        # All ways to give the labels these values, over those with one value for each class. Of one
        # label a class, all ways are such.
        ways = _log_ways(table.sum(axis=0)) - len(table) * np.log(table.shape[1])
        ways -= 2.0 * _log_ways([n_others, len(nodes) - n_others])
        if n_others <= (1.0 - nearly) * len(nodes) and ways > least:
            found.append(int(at))
    return found


def _find_linear(X: Matrix, nodes: Nodes, values: Floats) -> list[int]:
    """Return columns of which the labels are a linear function."""
    if len(nodes) < 10:  # fewer may be a linear function of a column by accident
        return []
    columns = np.hstack([_take(X, _sample(nodes)), _sample(values)])
    columns -= columns.mean(axis=0)
    lengths = np.linalg.norm(columns, axis=0)
    columns /= np.where(lengths > 0.0, lengths, 1.0)
    return np.flatnonzero((columns[:, -1] @ columns[:, :-1]) ** 2 > 1 - 1e-9).tolist()


def _sample(rows: NDArray[Any]) -> NDArray[Any]:
    return rows[:: max(1, len(rows) // 300)]


def _log_ways(sizes: Any) -> float:
    """Return the logarithm of the number of ways to divide nodes into groups of these sizes."""
    sizes = np.asarray(sizes)
    return float(gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum())


def _take(X: Matrix, nodes: Nodes) -> Floats:
    """Return some rows as a dense array of float64."""
    rows = X[nodes]
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
