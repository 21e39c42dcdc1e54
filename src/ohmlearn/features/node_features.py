"""`NodeFeatures`: the features of nodes, with the ids of the nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ohmlearn._display import Shown
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import is_table
from ohmlearn.checks.parameters import LARGEST
from ohmlearn.features.feature_columns import (
    as_array,
    as_arrow,
    check_different,
    check_features,
    encode_columns,
    take_ids,
)
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import as_ids
from ohmlearn.nodes.node_table import are_reordered
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.reading.feature_table import Column, find_columns, read_feature_table
from ohmlearn.reading.label_table import as_node_ids
from ohmlearn.reading.source_errors import SourceError, refuse_source, show_name


@dataclass(frozen=True, repr=False)
class Matched(Shown):
    """Features in the order of the nodes of a graph.

    Attributes
    ----------
    X : array or CSR matrix, shape (n_nodes, n_columns)
        A row for each node. Nodes without features have the means of the columns; if X is sparse,
        these are 0 in columns most of whose entries are 0, so that X stays sparse.
    missing : bool array, shape (n_nodes,)
        Which nodes have no features.
    numbers : int array
        For each row of the features, the number of its node; -1 if the graph does not have it.
    only_features : array
        Ids that the graph does not have. They are further nodes if they were added.
    added : bool
        Whether those ids were added as nodes without edges.
    source : str
        Where the features come from, for messages.
    example : int or str or None
        The id of a node without features.

    Examples
    --------
    >>> from ohmlearn import NodeFeatures
    >>> matched = NodeFeatures([[1.0], [3.0]], ids=[0, 2]).match(None, n_nodes=3)
    >>> matched
    <Matched: 3 nodes, 1 column, 1 node without features>
    >>> matched.X.ravel(), matched.missing
    (array([1., 2., 3.]), array([False,  True, False]))
    """

    X: Matrix
    missing: NDArray[np.bool_]
    numbers: NDArray[np.int64]
    only_features: NDArray[Any]
    added: bool
    source: str
    example: Any = None

    @property
    def n_missing(self) -> int:
        """Number of nodes without features."""
        return int(np.count_nonzero(self.missing))

    @property
    def n_only_features(self) -> int:
        """Number of ids that the graph does not have."""
        return len(self.only_features)

    def about(self) -> str:
        """Return a sentence about ids that are only in the graph or only in the features.

        It is empty if there is none.
        """
        said = []
        if self.n_missing > 0:
            have = "has" if self.n_missing == 1 else "have"
            some = f", such as {self.example!r}" if self.example is not None else ""
            said.append(
                f"{self.n_missing:,} of {len(self.missing):,} nodes {have} no features{some}"
            )
        if self.n_only_features > 0:
            one = self.n_only_features == 1
            some = f", such as {self.only_features.tolist()[0]!r}"
            left_out = "" if self.added else f"; {'it is' if one else 'they are'} left out"
            said.append(
                f"{self.n_only_features:,} {'id is' if one else 'ids are'} only in "
                f"{show_name(self.source)}{some}{left_out}"
            )
        return "; ".join(said)

    def warn(self) -> None:
        """Warn of ids that are only in the graph or only in the features."""
        if said := self.about():
            warn(said)

    def _facts(self) -> dict[str, Any]:
        n_nodes, n_columns = self.X.shape
        return {
            "nodes": n_nodes,
            "columns": n_columns,
            "nodes without features": self.n_missing or None,
            "ids only in the features": self.n_only_features or None,
        }


class NodeFeatures(Shown):
    """Features of nodes: a matrix of numbers, and the node of each of its rows.

    ``features[rows]`` keeps the whole matrix and remembers which rows were chosen. So in a fold of
    scikit-learn's cross-validation an estimator still knows the features of all nodes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_columns)
        Numbers, one row for each node. Tables with missing values, texts or dates are read by
        `from_table`.
    ids : array-like of int or str, optional
        The node of each row. By default row i is node i.
    names : list of str, optional
        Names of the columns.

    Attributes
    ----------
    X : array or CSR matrix
        All rows, float32 or float64.
    ids : array or None
        The nodes of all rows, int64 or strings.
    names : list of str or None
        Names of the columns of X.
    rows : int array or None
        The chosen rows; None means all.
    treatment : dict
        What `from_table` did to each column of the table, in words.
    source : str
        Where the features come from, for messages.
    id_heading : str or None
        Heading of the column of ids, which may say of which kind the nodes are.

    See Also
    --------
    read_features : Features from a file.

    Examples
    --------
    >>> from ohmlearn import NodeFeatures
    >>> features = NodeFeatures([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0]], ids=["ann", "bob", "cy"])
    >>> features
    <NodeFeatures: 3 rows, 2 columns, ids such as ann>
    >>> some = features[[2, 0]]
    >>> some.shape, some.chosen_ids, some.X.shape
    ((2, 2), array(['cy', 'ann'], dtype=object), (3, 2))
    """

    def __init__(self, X: Matrix, ids: Any = None, names: Sequence[str] | None = None) -> None:
        self.X = _check_matrix(X)
        self.rows: NDArray[np.int64] | None = None
        self.source = "the features"
        self.id_heading: str | None = None
        self.treatment: dict[str, str] = {}
        self._first_row = 0
        n_rows, n_columns = self.X.shape
        self.names = None if names is None else [str(name) for name in names]
        self._sources = self.names  # columns that they come from; None if these were asked for
        if self.names is not None and len(self.names) != n_columns:
            raise ValueError(f"X has {n_columns} columns, but there are {len(self.names)} names")
        self.ids: NDArray[Any] | None = None
        if ids is not None:
            found = as_ids(ids, "ids")
            if found.size != n_rows:
                raise ValueError(f"X has {n_rows:,} rows, but there are {found.size:,} ids")
            check_different(found, self.source)
            self.ids = as_array(found)

    @classmethod
    def from_table(
        cls, table: Any, *, node_col: Column | None = None, columns: Sequence[str] | None = None
    ) -> Self:
        """Return the features in a table, whose columns become numbers.

        Numbers stay as they are, true and false become 1 and 0, and dates become days since 1970.
        Missing numbers become the mean of their column, and a further column NAME_missing marks
        them. A column of texts or categories becomes a column NAME=VALUE for each value; if there
        are more than 50 values, the rarest share one column. Missing texts are a category, too.
        Columns with one value only, and texts nearly all of which are different, are left out. So
        are columns called label, labels or target, unless `columns` names them. When a model is
        fitted, a column with the name of the labels is left out likewise. The numbers are not
        scaled.

        Parameters
        ----------
        table : table of pandas, polars, pyarrow or DuckDB
            Anything that `read_edges` accepts as a table. Requires the extra ``files``.
        node_col : str or int, optional
            Name or position of the column of ids. By default the index of a pandas frame if it has
            a name, else a column called node, node_id or id, else an index that is not 0, 1, ...,
            else the only column with a name such as user_id.
        columns : list of str, optional
            Columns to use; by default all but that of the ids.

        Returns
        -------
        NodeFeatures
            Its attribute `treatment` says what was done to each column.

        Raises
        ------
        SourceError
            A ValueError that names column and row, for infinite numbers, lists, values of different
            types, and ids that are missing or occur twice.

        Examples
        --------
        >>> import pyarrow
        >>> from ohmlearn import NodeFeatures
        >>> people = {"id": [7, 8, 9], "age": [30, None, 50], "city": ["Rome", "Bern", "Rome"]}
        >>> features = NodeFeatures.from_table(pyarrow.table(people))
        >>> features.names
        ['age', 'age_missing', 'city=Bern', 'city=Rome']
        >>> features.X
        array([[30.,  0.,  0.,  1.],
               [40.,  1.,  1.,  0.],
               [50.,  0.,  0.,  1.]])
        >>> features.treatment["age"]
        'numbers; 1 missing, replaced by the mean 40'
        """
        if not is_table(table):
            raise TypeError(
                f"a table of pandas, polars, pyarrow or DuckDB is needed, got a "
                f"{type(table).__name__}; read files with ohmlearn.read_features(...)"
            )
        source = f"the {type(table).__name__}"
        arrow = as_arrow(table, source, columns)
        if arrow.num_rows == 0:
            refuse_source(source, "is empty: there is no row with features")
        names = find_columns(arrow.schema, source, node_col, columns)
        return cls._from_arrow(arrow.select(names), source, 0, columns)

    @classmethod
    def _from_arrow(
        cls, table: Any, source: str, first_row: int, columns: Sequence[str] | None
    ) -> Self:
        """Return the features in a table of pyarrow, whose first column has the ids.

        Its first row has the number `first_row`.
        """
        if table.num_rows == 0:
            refuse_source(source, "is empty: there is no row with features")
        node, *names = table.column_names
        ids = take_ids(table.column(node), node, source, first_row)
        asked = () if columns is None else columns
        encoded = encode_columns(table.select(names), source, first_row, asked=asked)
        features = cls(encoded.X, names=encoded.names)
        features.ids, features.treatment = ids, encoded.treatment
        features.source, features.id_heading = source, node
        features._first_row = first_row
        features._sources = encoded.sources if columns is None else None
        return features

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chosen rows, and of columns."""
        return len(self), self.X.shape[1]

    @property
    def _positions(self) -> NDArray[np.int64]:
        """The chosen rows, as positions."""
        return np.arange(self.X.shape[0]) if self.rows is None else self.rows

    @property
    def chosen(self) -> Any:
        """The matrix of the chosen rows."""
        return self.X if self.rows is None else self.X[self.rows]

    @property
    def chosen_ids(self) -> NDArray[Any]:
        """The nodes of the chosen rows."""
        return self._positions if self.ids is None else self.ids[self._positions]

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, key: Any) -> Self:
        """Choose some of the chosen rows: by an array of positions, a mask or a slice."""
        if isinstance(key, tuple):
            rest = [part for part in key[1:] if part is not Ellipsis and part != slice(None)]
            if len(key) == 0 or rest:
                raise TypeError(
                    "only rows can be chosen, as in features[rows]; for some columns, make "
                    "NodeFeatures of them"
                )
            key = key[0]
        if key is not Ellipsis and not isinstance(key, slice):
            key = np.asarray(key)
            if key.ndim != 1 or (key.dtype.kind not in "iub" and key.size > 0):
                raise TypeError(f"rows are chosen by an array of positions or a mask, got {key!r}")
            key = key if key.size > 0 or key.dtype == bool else key.astype(np.int64)
        some = type(self).__new__(type(self))
        some.__dict__.update(self.__dict__)
        some.rows = self._positions[key]
        return some

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the chosen rows as an array, for estimators that do not know of graphs."""
        if sparse.issparse(self.X):
            raise TypeError("these features are sparse; use features.chosen, a CSR matrix")
        return np.array(self.chosen, dtype=dtype, copy=copy if copy else None)

    def match(
        self, nodes: NodeTable | None, *, n_nodes: int | None = None, add: bool = False
    ) -> Matched:
        """Join the features to the nodes of a graph, by their ids.

        Ids follow the rules of labels: integers and strings are matched if the strings are
        integers, and if nodes are of several kinds, ids have the kind in front, as in "user:17", or
        the heading of the column of ids says it.

        Parameters
        ----------
        nodes : NodeTable or None
            The nodes of the graph; None if they are 0, 1, 2, ...
        n_nodes : int, optional
            Number of nodes, if `nodes` is None.
        add : bool
            Whether ids that the graph does not have are added to `nodes`, as nodes without edges.

        Returns
        -------
        Matched
            A row for each node, and which nodes and ids have no counterpart.

        Raises
        ------
        SourceError
            A ValueError, for example if no node has features.

        Examples
        --------
        >>> from ohmlearn import NodeFeatures, NodeTable
        >>> nodes = NodeTable()
        >>> _ = nodes.add([7, 8, 9])
        >>> features = NodeFeatures([[1.0], [3.0]], ids=["9", "7"])
        >>> matched = features.match(nodes)
        >>> matched.X.ravel()
        array([3., 2., 1.])
        >>> matched.about()
        '1 of 3 nodes has no features, such as 8'
        """
        own = np.arange(self.X.shape[0]) if self.ids is None else self._as_ids_of(nodes, self.ids)
        if self.ids is None:
            numbers, size = own, self._check_order(nodes, n_nodes)
        elif nodes is None:
            size = int(own.max()) + 1 if n_nodes is None else n_nodes
            numbers = np.where(own < size, own, -1)
        else:
            found, size = nodes.find(own, missing="mask"), len(nodes)
            numbers = np.where(np.ma.getmaskarray(found), -1, found.data).astype(np.int64)
        unknown = numbers < 0
        if unknown.all():
            self._refuse_all(own, nodes, size)
        if add and unknown.any():
            numbers = own if nodes is None else nodes.add(own).astype(np.int64)
            size = max(size, int(numbers.max()) + 1)
        rows, missing = _order(self.X, numbers, size)
        example: Any = None
        if missing.any():
            first = int(np.argmax(missing))
            example = first if nodes is None else nodes.ids([first]).tolist()[0]
        return Matched(rows, missing, numbers, own[unknown], add, self.source, example)

    def _refuse_all(self, ids: NDArray[Any], nodes: NodeTable | None, size: int) -> NoReturn:
        """Refuse features of which none belongs to a node; show an id of each side."""
        there, remedy = "", "is it the right column of ids?"
        if nodes is not None and size > 0:
            first = nodes.ids([0]).tolist()[0]
            there = f", such as {first!r}"
            most = 10_000  # ids that are compared without their zeros in front
            short = {str(each).lstrip("0") for each in ids[:most].tolist()}
            some = nodes.ids(range(min(len(nodes), most)))
            other = {str(each).lstrip("0") for each in some.tolist()}
            if short & other:
                remedy = "zeros in front are missing on one side; read both columns as texts"
        refuse_source(
            self.source,
            f"no node of the graph has features: none of the {len(ids):,} ids, such as "
            f"{ids.tolist()[0]!r}, is among the {size:,} of the graph{there}; {remedy}",
        )

    def _check_order(self, nodes: NodeTable | None, n_nodes: int | None) -> int:
        """Return the number of rows without ids, which must be in the order of the nodes."""
        n_rows: int = self.X.shape[0]
        size = n_nodes if nodes is None else len(nodes)
        if size is not None and n_rows != size:
            refuse_source(
                self.source,
                f"has {n_rows:,} rows and no ids, but the graph has {size:,} nodes; give ids, the "
                f"node of each row",
            )
        if nodes is not None and are_reordered(nodes):
            refuse_source(
                self.source,
                f"has no ids, so its rows have the order of nodes.ids(), which starts with "
                f"{nodes.ids()[:3].tolist()} here; give ids to be sure, such as "
                f"range({len(nodes)})",
            )
        return n_rows

    def _as_ids_of(self, nodes: NodeTable | None, ids: NDArray[Any]) -> NDArray[Any]:
        """Return ids of the same type as those of the graph; the rules are those of labels."""
        kind, first = "int64" if ids.dtype.kind == "i" else "string", self._first_row
        if nodes is None:
            if kind == "string":
                ids = self._as_numbers(ids)
            if ids.min(initial=0) < 0:
                refuse_source(
                    self.source, f"the nodes of this graph are 0, 1, ..., got the id {ids.min()}"
                )
        elif nodes.kinds or kind != (nodes.kind or kind):
            rows = list(range(first, first + len(ids)))
            ids = as_node_ids(
                self.source, ids.tolist(), nodes.kind, nodes.kinds,
                heading=self.id_heading, rows=rows,
            )  # fmt: skip
        else:
            return ids
        check_different(ids, self.source, first)  # one may be written in two ways, 7 and 7.0
        return ids

    def _as_numbers(self, ids: NDArray[Any]) -> NDArray[Any]:
        try:
            return as_node_ids(self.source, ids.tolist(), "int64")
        except SourceError:
            refuse_source(
                self.source,
                f"the ids are texts, such as {ids.tolist()[0]!r}, but the graph has no ids: its "
                f"nodes are 0, 1, ...; read the edges with their ids, for example with "
                f"read_edges(...), or leave out the ids if row i is node i",
            )

    def _facts(self) -> dict[str, Any]:
        n_left_out = sum(what.startswith("left out") for what in self.treatment.values())
        return {
            "rows": self.X.shape[0],
            "chosen rows": None if self.rows is None else len(self.rows),
            "columns": self.X.shape[1],
            "columns left out": n_left_out or None,
            "sparse": sparse.issparse(self.X),
            "ids such as": None if self.ids is None else str(self.ids.tolist()[0]),
        }


def read_features(
    path: str | os.PathLike[str],
    *,
    node_col: Column | None = None,
    columns: Sequence[str] | None = None,
) -> NodeFeatures:
    """Read features of nodes from files with a column of ids and columns of numbers or texts.

    See `NodeFeatures.from_table` for what becomes of the columns. Requires the extra ``files``.

    Parameters
    ----------
    path : path or pattern
        A file, or several that have the same columns: CSV and TSV with a header (also compressed
        with gzip, zstd, bz2 or xz), JSON lines, Parquet, Arrow IPC or Feather. A folder means all
        files in it. Addresses such as ``s3://bucket/nodes.parquet`` are read from there. In text,
        empty fields, NA, NaN and null are missing, and ids stay as they are written.
    node_col : str or int, optional
        Name or position of the column of ids. By default a column called node, node_id or id, the
        index that pandas stored in the file, or the only column with a name such as user_id.
    columns : list of str, optional
        Columns to use; by default all but that of the ids.

    Returns
    -------
    NodeFeatures

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    SourceError
        A ValueError that names the file, and column and row where it can.

    Examples
    --------
    >>> import tempfile
    >>> from ohmlearn import read_features
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("node,age,city\\nann,30,Rome\\nbob,,Bern\\ncy,50,Rome\\n")
    ...     file.flush()
    ...     features = read_features(file.name)
    >>> features.ids, features.names
    (array(['ann', 'bob', 'cy'], dtype=object), ['age', 'age_missing', 'city=Bern', 'city=Rome'])
    """
    return read_features_as(path, node_col, columns)


def read_features_as(
    path: str | os.PathLike[str],
    node_col: Column | None,
    columns: Sequence[str] | None,
    hint: str | None = None,
) -> NodeFeatures:
    """Read features; the column of ids may be called as `hint`, the heading of those of labels."""
    table, first_row = read_feature_table(path, node_col, columns, hint)
    return NodeFeatures._from_arrow(table, os.fspath(path), first_row, columns)


def drop_label_column(X: Matrix, name: str | None, *, is_quiet: bool = False) -> Any:
    """Return NodeFeatures or a data frame without what comes from the column of the labels.

    `name` is that of the labels. If there is no such column, or it was asked for, X is returned.
    """
    is_own = isinstance(X, NodeFeatures)
    names = getattr(X, "_sources" if is_own else "columns", None)
    names = [] if names is None else list(names)
    found = [str(each).strip().lower() == str(name).strip().lower() for each in names]
    if name is None or not any(found):
        return X
    if all(found):
        raise ValueError(
            f"the only column of the features, {names[0]!r}, has the name of the labels; give "
            f"other columns, or rename it if it is a feature"
        )
    if not is_quiet:
        warn(
            f"the column {names[found.index(True)]!r} of the features is left out, because the "
            f"labels have this name; rename it if it is a feature"
        )
    kept = np.flatnonzero(~np.array(found))
    if not is_own:
        return X[[names[at] for at in kept]]
    some = copy(X)
    some.X = X.X[:, kept]
    some.names, some._sources = ([each[at] for at in kept] for each in (X.names, names))
    some.treatment = X.treatment | {names[found.index(True)]: "left out: the labels have this name"}
    return some


def _check_matrix(X: Matrix) -> Any:
    """Return a matrix of finite floats."""
    if is_table(X):
        raise TypeError(
            f"X must be a matrix of numbers, got a {type(X).__name__}; use "
            f"NodeFeatures.from_table(...)"
        )
    if isinstance(X, NodeFeatures):
        raise TypeError("X has ids already; use it as it is")
    matrix = check_features(X, most=LARGEST)
    if 0 in matrix.shape:
        raise ValueError(f"X must have at least one row and one column, got {matrix.shape}")
    dtype = np.float32 if matrix.dtype in (np.float16, np.float32) else np.float64
    return (sparse.csr_matrix if sparse.issparse(matrix) else np.asarray)(matrix, dtype=dtype)


def _order(X: Matrix, numbers: NDArray[np.int64], n_nodes: int) -> tuple[Any, NDArray[np.bool_]]:
    """Return a row for each node, and which of them are means."""
    missing = np.ones(n_nodes, dtype=bool)
    rows = np.flatnonzero(numbers >= 0)
    missing[numbers[rows]] = False
    if len(rows) == n_nodes == len(numbers) and np.array_equal(numbers, np.arange(n_nodes)):
        return X, missing
    place = np.empty(n_nodes, dtype=np.int64)
    place[numbers[rows]] = rows
    if not missing.any():
        return X[place], missing
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(X.dtype)
    if not sparse.issparse(X):
        place[missing] = 0
        chosen = X[place]
        chosen[missing] = means
        return chosen, missing
    means[X.getnnz(axis=0) <= X.shape[0] / 2] = 0
    extended = sparse.vstack([X, sparse.csr_matrix(means[np.newaxis])], format="csr")
    place[missing] = X.shape[0]
    return extended[place], missing
