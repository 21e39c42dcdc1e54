"""Labels and weights that are given by node: a dict, a Series, or a table of two columns."""

from collections.abc import Iterable, Mapping
from typing import Any

from ohmlearn.streams.labels import gather

__all__ = ["MISSING", "as_dict", "by_node", "pair_by_node"]

MISSING = ("NAType", "NaTType")  # of pandas
VALUES = ("label", "weight", "value")  # usual headings of the other column


def by_node(given: Any, *, by_index: bool) -> Any:
    """Return labels or weights as a dict if they say to which nodes they belong, else as they are.

    Tables do: of pyarrow and polars with two columns, the nodes and the labels, and of pandas with
    the columns "node" and "label". A pandas Series does by its index, if `by_index`; for points,
    scikit-learn's interface wants the order of the points, whatever the index is.

    Examples
    --------
    >>> import pyarrow
    >>> by_node(pyarrow.table({"node": ["ann", "bob"], "label": [1, 2]}), by_index=True)
    {'ann': 1, 'bob': 2}
    >>> by_node([1, 2], by_index=True)
    [1, 2]
    """
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    if library == "pandas" and name == "Series" and by_index:
        return as_dict(given)
    if library == "pandas" and name == "DataFrame":
        others = [column for column in given.columns.tolist() if column != "node"]
        if len(others) == 1 and others[0] in VALUES and "node" in given.columns:
            return _gather(zip(given["node"].tolist(), given[others[0]].tolist(), strict=True))
        return given  # shares of the classes, or a single column
    if (library, name) in (("pyarrow", "Table"), ("pyarrow", "RecordBatch")):
        names = given.schema.names
        columns = [given.column(at).to_pylist() for at in range(len(names))]
    elif (library, name) == ("polars", "DataFrame"):
        names, columns = given.columns, [column.to_list() for column in given]
    else:
        return given
    if len(names) != 2:
        raise ValueError(
            f"a table of labels or weights must have two columns, the nodes and their values, got "
            f"{', '.join(map(repr, names)) or 'none'}; select two of them"
        )
    nodes, values = columns if names[1] != "node" else columns[::-1]
    return _gather(zip(nodes, values, strict=True), names[0] if names[1] != "node" else names[1])


def pair_by_node(y: Any, sample_weight: Any, *, by_index: bool) -> tuple[Any, Any]:
    """Return labels and their weights, as dicts if the labels are given by node.

    Examples
    --------
    >>> import pandas
    >>> y, weights = (pandas.Series(values, ["ann", "bob"]) for values in (["x", "y"], [1, 2]))
    >>> pair_by_node(y, weights, by_index=True)
    ({'ann': 'x', 'bob': 'y'}, {'ann': 1, 'bob': 2})
    """
    labels = by_node(y, by_index=by_index)
    if isinstance(labels, Mapping):  # else weights are in the order of the nodes, too
        sample_weight = by_node(sample_weight, by_index=True)
    return labels, sample_weight


def as_dict(given: Any) -> dict[Any, Any]:
    """Return a mapping or a pandas Series as a dict; a Series may have a node several times.

    Examples
    --------
    >>> as_dict({"ann": 1, None: 2})
    Traceback (most recent call last):
    ...
    ValueError: labels and weights belong to nodes, but None is no id; leave it out
    """
    if not isinstance(given, Mapping):
        return _gather(given.items(), given.index.name)
    _check_nodes(given)
    return dict(given)


class NodeDict(dict[Any, Any]):
    """Values by node; the heading of the nodes may say of which kind they are."""

    id_heading: str | None = None


def _gather(rows: Iterable[tuple[Any, Any]], heading: Any = None) -> dict[Any, Any]:
    pairs = list(rows)
    _check_nodes(node for node, _ in pairs)
    found = NodeDict(gather(pairs))
    found.id_heading = heading if isinstance(heading, str) else None
    return found


def _check_nodes(nodes: Iterable[Any]) -> None:
    """Refuse what cannot be the id of a node."""
    for node in nodes:
        is_number = isinstance(node, float)
        if node is None or (is_number and node != node) or type(node).__name__ in MISSING:
            raise ValueError(
                f"labels and weights belong to nodes, but {node!r} is no id; leave it out"
            )
        try:
            hash(node)
        except TypeError:
            raise ValueError(
                f"ids of nodes must be integers or strings, got {node!r} in labels or weights"
            ) from None
