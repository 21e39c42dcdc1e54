"""Labels and weights that are given by node: a dict, a Series, or a table of two columns."""

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from ohmlearn._warnings import warn
from ohmlearn.reading.column_headings import is_known_id
from ohmlearn.reading.label_table import gather

__all__ = ["MISSING", "as_dict", "by_node", "label_heading", "pair_by_node", "warn_default_index"]

MISSING = ("NAType", "NaTType")  # of pandas
NODES = ("node", "node_id", "id")  # usual headings of the column of nodes
VALUES = ("label", "class", "target", "weight")  # and of the other one


def by_node(given: Any, *, by_index: bool) -> Any:
    """Return labels or weights as a dict if they say to which nodes they belong, else as they are.

    Tables with two columns do, the nodes and the labels; one of pandas may be a matrix of shares of
    the classes instead, see `_is_table`. A pandas Series does by its index, if `by_index`; for
    points, scikit-learn's interface wants the order of the points, whatever the index is.

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
    if (library, name) == ("pandas", "DataFrame"):
        names = given.columns.tolist()
        columns = [given.iloc[:, at].tolist() for at in range(len(names))]
        if not _is_table(names, columns):
            return given  # shares of the classes, or a single column
    elif (library, name) in (("pyarrow", "Table"), ("pyarrow", "RecordBatch")):
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
    at = _find_nodes(names)
    if library == "pandas" and str(names[at]).lower() in VALUES:
        raise ValueError(
            f"a table of labels or weights must have a column of nodes, got {names[0]!r} and "
            f"{names[1]!r}; if its index has the nodes, give table[{names[1 - at]!r}]"
        )
    return _gather(zip(columns[at], columns[1 - at], strict=True), names[at])


def _is_table(names: list[Any], columns: list[list[Any]]) -> bool:
    """Whether a pandas table has a column of nodes, and not shares of the classes.

    Examples
    --------
    >>> _is_table(["node", "label", "age"], [[1], [2], [3]]), _is_table(["ham", "spam"], [[1], [0]])
    (True, False)
    >>> _is_table(["who", "what"], [["ann"], ["ham"]]), _is_table(["item", "label"], [[1], [2]])
    (True, True)
    """
    if len(names) < 2:
        return False
    headings = [str(name).lower() for name in names]
    if any(heading in NODES or is_known_id(heading) for heading in headings):
        return True
    if len(names) == 2 and not {*VALUES}.isdisjoint(headings):
        return True
    return any(isinstance(value, str) for column in columns for value in column)


def _find_nodes(names: list[Any]) -> int:
    """Return which of two columns has the nodes: the first, unless the headings say otherwise."""
    simple = [str(name).lower() for name in names]
    found = [at for at in range(2) if simple[at] in NODES]
    return found[0] if found else int(simple[0] in VALUES)


def label_heading(y: Any) -> str | None:
    """Return the name of the column that labels come from, if it has one.

    Examples
    --------
    >>> import pandas
    >>> label_heading(pandas.Series([1, 0], name="fraud")), label_heading([1, 0])
    ('fraud', None)
    >>> label_heading(pandas.DataFrame({"node": [7, 8], "fraud": [1, 0]}))
    'fraud'
    """
    library, kind = type(y).__module__.partition(".")[0], type(y).__name__
    names: list[Any] = []
    if library == "pyarrow":
        names = y.schema.names if kind in ("Table", "RecordBatch") else []
    elif library in ("pandas", "polars"):
        names = [y.name] if kind == "Series" else list(getattr(y, "columns", ()))
    elif isinstance(y, Mapping):
        names = [getattr(y, "label_heading", None)]
    is_pair = len(names) == 2 and (library != "pandas" or _is_table(names, []))
    name = names[0] if len(names) == 1 else names[1 - _find_nodes(names)] if is_pair else None
    return name if isinstance(name, str) else None


def pair_by_node(y: Any, sample_weight: Any, *, by_index: bool) -> tuple[Any, Any]:
    """Return labels and their weights, as dicts if the labels are given by node.

    Examples
    --------
    >>> import pandas
    >>> y, weights = (pandas.Series(values, ["ann", "bob"]) for values in (["x", "y"], [1, 2]))
    >>> pair_by_node(y, weights, by_index=True)
    ({'ann': 'x', 'bob': 'y'}, {'ann': 1, 'bob': 2})
    """
    _refuse_path_or_pairs(y, by_index)
    labels = by_node(y, by_index=by_index)
    if isinstance(labels, Mapping):  # else weights are in the order of the nodes, too
        sample_weight = by_node(sample_weight, by_index=True)
    return labels, sample_weight


def _refuse_path_or_pairs(y: Any, by_index: bool) -> None:
    """Refuse what looks like labels by node, but is none of the forms that are taken.

    Pairs of numbers may be shares of two classes instead: for points, if they are lists, and if
    the first numbers are not all different.
    """
    if isinstance(y, str | os.PathLike):
        raise ValueError(
            f"y must be labels, got the path {os.fspath(y)!r}; read the file first, for example "
            f'with pandas.read_csv(path).set_index("node")["label"]'
        )
    if not isinstance(y, list | tuple) or not y:
        return
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in y):
        return
    named = any(isinstance(value, str) for pair in y for value in pair)
    numbered = by_index and all(
        isinstance(pair, tuple) and isinstance(pair[0], Integral) for pair in y
    )
    nodes = {pair[0] for pair in y} if numbered else set()
    if named or (len(nodes) == len(y) and max(nodes) > 1):
        raise ValueError(
            f"y has pairs, such as {y[0]!r}; if these are nodes and their labels, give dict(y)"
        )


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
        found = _gather(given.items(), given.index.name)
        found.has_default_index = _is_default(given.index)
        return found
    _check_nodes(given)
    return dict(given)


class NodeDict(dict[Any, Any]):
    """Values by node; the heading of the nodes may say of which kind they are."""

    id_heading: str | None = None
    has_default_index = False  # that of a pandas Series which was given no index


def _is_default(index: Any) -> bool:
    """Whether an index of pandas is 0, 1, 2, ... because none was given."""
    is_range = type(index).__name__ == "RangeIndex" and index.name is None
    return is_range and (index.start, index.step) == (0, 1)


def warn_default_index(y: Any, n_nodes: int) -> None:
    """Warn of a Series without an index of its own that has not one label for each node."""
    if isinstance(y, NodeDict) and y.has_default_index and len(y) != n_nodes:
        warn(
            "the index of this Series is 0, 1, 2, ..., so its labels are those of the nodes 0, 1, "
            "...; set the column of nodes as its index",
        )


def _gather(rows: Iterable[tuple[Any, Any]], heading: Any = None) -> NodeDict:
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
