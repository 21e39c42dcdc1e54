"""Columns of nodes for live answers: those of the table of --features, and rows that are posted.

A posted value means what it means in a file of CSV, and a posted row replaces that of its node in
the table. The columns and their types are those of the table, or of the rows that were posted
first. Rows that do not fit are refused: a single text would turn a column of numbers into
categories.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ohmlearn.checks.parameters import LARGEST, require_extra
from ohmlearn.errors import InputError
from ohmlearn.reading.feature_table import MISSING, as_values, read_feature_table
from ohmlearn.serve.database import Database, Node, Values, convert_id
from ohmlearn.serve.serve_errors import Refused

if TYPE_CHECKING:
    import pyarrow

    from ohmlearn.features import NodeFeatures

    Types = dict[str, pyarrow.DataType]  # of columns
MOST_COLUMNS = 1000
TEXTS = ("string", "large_string", "string_view")  # types
WORDS = {"double": "a finite number", "bool": "true or false", "date32[day]": "a date"}


class LiveFeatures:
    """The features of a service; threads may share it.

    `path`, `node_col` and `columns` are those of `read_features`, and `model` the parameters of
    `fit_features`. If `refused` says why, features do not go with other options.
    """

    def __init__(
        self,
        path: str | None = None,
        node_col: str | int | None = None,
        columns: list[str] | None = None,
        refused: str = "",
        model: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._columns, self._refused, self.model = columns, refused, model
        self.database: Database  # with the rows that are posted; set when the folder is open
        self._guard = threading.Lock()
        self._types: Types | None = None  # None until they are needed
        self._version: tuple[int, str | None] | None = None
        self._features: NodeFeatures | None = None
        self._given: pyarrow.Table | None = None
        if path is not None:
            pa = require_extra("pyarrow", "serve")
            table, _ = read_feature_table(path, node_col, columns)
            # Ids are compared as texts, and categories joined with those of posted rows.
            kinds = [getattr(kind, "value_type", kind) for kind in table.schema.types]
            fields = zip(table.column_names, [pa.large_string(), *kinds[1:]], strict=True)
            self._given = table.cast(pa.schema(list(fields)))
            self._encode(self._given)  # refuses what cannot be used before there is an answer

    def current(self, id_kind: str | None) -> NodeFeatures | None:
        """Return the features of now, None if there are none; for the thread that answers."""
        version = self.database.get("features_version"), id_kind
        if version != self._version:
            rows = self.database.features()
            table = self._join([one for one in rows if convert_id(one[0], id_kind) is not None])
            if table is not None and self._refused:
                raise InputError(self._refused)
            self._features = None if table is None else self._encode(table)
            self._version = version
        return self._features

    def put(self, rows: Mapping[Node, Values]) -> int:
        """Store rows of features, instead of those that the nodes have; return how many."""
        if self._refused:
            raise Refused(400, self._refused)
        with self._guard:
            if self._types is None:
                self._types = _types_of(self._join(self.database.features()))
            types = _check(rows, self._types)
            count = self.database.put_features(rows)
            self._types = types if all(rows.values()) else None  # perhaps all are deleted
        return count

    def _join(self, rows: list[tuple[Node, Values]]) -> pyarrow.Table | None:
        """Return the table of --features with posted rows."""
        given = self._given
        if not rows:
            return given
        pa, pc = require_extra("pyarrow", "serve"), require_extra("pyarrow.compute", "serve")
        types = _types_of(given)
        columns = {"": pa.array([str(node) for node, _ in rows], pa.large_string())}
        for name in list(types) or dict.fromkeys(name for _, row in rows for name in row):
            texts = _as_texts([row.get(name) for _, row in rows])
            columns[name] = texts if str(types.get(name)) in TEXTS else as_values(texts)
        posted = pa.table(columns)
        if given is None:
            return posted
        rest = given.filter(pc.invert(pc.is_in(given.column(0), posted.column(0))))
        both = [rest, posted.rename_columns(given.column_names)]
        return pa.concat_tables(both, promote_options="permissive")

    def _encode(self, table: pyarrow.Table) -> NodeFeatures:
        from ohmlearn.features import NodeFeatures  # imports scikit-learn

        found = NodeFeatures.from_table(table, node_col=0, columns=self._columns)
        found.source = "the features"  # for messages
        return found


def _types_of(table: pyarrow.Table | None) -> Types:
    return {} if table is None else {field.name: field.type for field in list(table.schema)[1:]}


def _as_texts(values: list[str | float | None]) -> pyarrow.ChunkedArray:
    """Return values as they would be written in CSV; missing ones as nulls."""
    pa = require_extra("pyarrow", "serve")
    texts = ["" if x is None else str(x) for x in values]
    known = [None if x.strip().lower() in MISSING else x for x in texts]
    return pa.chunked_array([pa.array(known, pa.large_string())])


def _check(rows: Mapping[Node, Values], known: Types) -> Types:
    """Refuse rows that do not fit the others; return the types of all columns."""
    types = dict(known) or {name: None for row in rows.values() for name in row}
    if len(types) > MOST_COLUMNS:
        raise Refused(400, f"at most {MOST_COLUMNS} columns are accepted, got {len(types)}")
    for at, values in enumerate(rows.values(), 1):
        if other := values.keys() - types.keys():
            shown = ", ".join(map(repr, list(types)[:20]))
            what = f"there is no column {min(other)!r}; the columns are {shown}"
            raise Refused(400, what, row=at)
    for name, kind in types.items():
        texts = _as_texts([row.get(name) for row in rows.values()])
        kind = as_values(texts).type if str(kind) in ("None", "null") else kind
        _check_column(name, texts, kind)
        types[name] = kind
    return types


def _check_column(name: str, texts: pyarrow.ChunkedArray, kind: pyarrow.DataType) -> None:
    """Refuse texts that cannot be values of a type."""
    pa = require_extra("pyarrow", "serve")
    wanted = pa.float64() if pa.types.is_integer(kind) else kind

    def fits(some: pyarrow.ChunkedArray) -> bool:
        try:
            found = some.cast(wanted).drop_null()
        except pa.ArrowInvalid:
            return False
        return not pa.types.is_floating(wanted) or bool((np.abs(found) <= LARGEST).all())

    if not fits(texts):
        row = next(row for row in range(len(texts)) if not fits(texts.slice(row, 1)))
        must = WORDS.get(str(wanted), f"of the type {wanted}")
        raise Refused(400, f"{name!r} must be {must}, got {texts[row].as_py()[:60]!r}", row=row + 1)
