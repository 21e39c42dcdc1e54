"""Joins the features of nodes to the nodes of a graph, by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ohmlearn._display import Shown
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import are_reordered
from ohmlearn.reading.label_table import as_node_ids
from ohmlearn.reading.source_errors import SourceError, refuse_source, show_name

__all__ = ["Matched", "match_rows"]


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

    X: Any
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

    def _facts(self) -> dict[str, Any]:
        n_nodes, n_columns = self.X.shape
        return {
            "nodes": n_nodes,
            "columns": n_columns,
            "nodes without features": self.n_missing or None,
            "ids only in the features": self.n_only_features or None,
        }


def match_rows(
    X: Any,
    ids: NDArray[Any] | None,
    nodes: NodeTable | None,
    *,
    n_nodes: int | None = None,
    add: bool = False,
    source: str = "the features",
    heading: str | None = None,
    first_row: int = 0,
) -> Matched:
    """Return rows in the order of the nodes of a graph; see `NodeFeatures.match`."""
    if ids is None:
        _check_order(X.shape[0], nodes, n_nodes, source)
        own = numbers = np.arange(X.shape[0])
        size = len(numbers)
    elif nodes is None:
        own, numbers, size = _number_plain(ids, n_nodes, source)
    else:
        own = _as_ids_of(nodes, ids, source, heading, first_row)
        found = nodes.find(own, missing="mask")
        numbers = np.where(np.ma.getmaskarray(found), -1, found.data).astype(np.int64)
        size = len(nodes)
    unknown = numbers < 0
    if unknown.all():
        _refuse_all(own, nodes, size, source)
    if add and unknown.any():
        numbers = (own if nodes is None else nodes.add(own)).astype(np.int64)
        size = max(size, int(numbers.max()) + 1)
    _check_once(numbers, own, source, first_row)
    rows, missing = _order(X, numbers, size)
    example: Any = None
    if missing.any():
        first = int(np.argmax(missing))
        example = first if nodes is None else nodes.ids([first]).tolist()[0]
    return Matched(rows, missing, numbers, own[unknown], add, source, example)


def _refuse_all(ids: NDArray[Any], nodes: NodeTable | None, size: int, source: str) -> NoReturn:
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
        source,
        f"no node of the graph has features: none of the {len(ids):,} ids, such as "
        f"{ids.tolist()[0]!r}, is among the {size:,} of the graph{there}; {remedy}",
    )


def _check_order(n_rows: int, nodes: NodeTable | None, n_nodes: int | None, source: str) -> None:
    """Refuse rows without ids that are not in the order of the nodes."""
    size = n_nodes if nodes is None else len(nodes)
    if size is not None and n_rows != size:
        refuse_source(
            source,
            f"has {n_rows:,} rows and no ids, but the graph has {size:,} nodes; give ids, the node "
            f"of each row",
        )
    if nodes is not None and are_reordered(nodes):
        refuse_source(
            source,
            f"has no ids, so its rows have the order of nodes.ids(), which starts with "
            f"{nodes.ids()[:3].tolist()} here; give ids to be sure, such as range({len(nodes)})",
        )


def _number_plain(
    ids: NDArray[Any], n_nodes: int | None, source: str
) -> tuple[NDArray[Any], NDArray[np.int64], int]:
    """Return ids, numbers, and how many nodes there are, of a graph whose nodes are 0, 1, ..."""
    if ids.dtype.kind == "i":
        own = ids
    else:
        try:
            own = as_node_ids(source, ids.tolist(), "int64")
        except SourceError:
            refuse_source(
                source,
                f"the ids are texts, such as {ids.tolist()[0]!r}, but the graph has no ids: its "
                f"nodes are 0, 1, ...; read the edges with their ids, for example with "
                f"read_edges(...), or leave out the ids if row i is node i",
            )
    if len(own) > 0 and own.min() < 0:
        refuse_source(source, f"the nodes of this graph are 0, 1, ..., got the id {own.min()}")
    size = int(own.max()) + 1 if n_nodes is None else n_nodes
    return own, np.where(own < size, own, -1), size


def _as_ids_of(
    nodes: NodeTable, ids: NDArray[Any], source: str, heading: str | None, first_row: int
) -> NDArray[Any]:
    """Return ids of the same type as those of the graph; the rules are those of labels."""
    kind = "int64" if ids.dtype.kind == "i" else "string"
    if not nodes.kinds and kind == (nodes.kind or kind):
        return ids
    rows = list(range(first_row, first_row + len(ids)))
    return as_node_ids(source, ids.tolist(), nodes.kind, nodes.kinds, heading=heading, rows=rows)


def _check_once(numbers: NDArray[np.int64], ids: NDArray[Any], source: str, first_row: int) -> None:
    """Refuse a node that has two rows because its id is written in two ways, such as 7 and 7.0."""
    rows = np.flatnonzero(numbers >= 0)
    order = rows[np.argsort(numbers[rows], kind="stable")]
    same = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(same) > 0:
        a, b = order[same[0]], order[same[0] + 1]
        refuse_source(
            source,
            f"the rows {first_row + a} and {first_row + b} are of the same node, "
            f"{ids.tolist()[a]!r}; a node has one row",
        )


def _order(X: Any, numbers: NDArray[np.int64], n_nodes: int) -> tuple[Any, NDArray[np.bool_]]:
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
