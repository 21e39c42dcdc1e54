"""Where bad sources of edges are refused: points, ids, files. Goes on with ``_validation``."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn._validation import MAX_NODES

__all__ = [
    "SourceError",
    "check_equal_sizes",
    "check_id_kind",
    "check_ids",
    "check_n_neighbors",
    "check_node_numbers",
    "check_points",
    "check_source_options",
    "check_strings",
    "reading",
    "refuse_source",
]


def check_points(values: Any) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return points as a contiguous (n_points, n_features) float array whose distances are finite.

    Examples
    --------
    >>> check_points([[0, 1], [2, 3]])
    array([[0., 1.],
           [2., 3.]])
    """
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"X must have shape (n_points, n_features), both at least 1, got {array.shape}"
            + ("; use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else "")
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X must be real numbers, got dtype {array.dtype}")
    if len(array) > MAX_NODES:
        raise ValueError(f"X has {len(array)} points, but at most {MAX_NODES} nodes are possible")
    x: NDArray[np.float32] | NDArray[np.float64]
    if array.dtype == np.float32:
        x = np.ascontiguousarray(array, dtype=np.float32)
    else:
        x = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(x)
    if not finite.all():
        i, j = (int(at) for at in np.argwhere(~finite)[0])
        raise ValueError(f"X must be finite, but X[{i}, {j}] = {x[i, j]}; drop or fill such points")
    widest = float(x.max()) - float(x.min())
    if not widest <= math.sqrt(float(np.finfo(x.dtype).max) / 2 / x.shape[1]):
        raise ValueError(
            f"X spans {widest:g}: squared distances pass the largest {x.dtype}; scale X down"
        )
    return x


def check_n_neighbors(n_neighbors: Any, n_points: int) -> int:
    """Return a number of neighbours that each of the points has."""
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool):
        raise ValueError(f"n_neighbors must be an integer, got {n_neighbors!r}")
    if not 1 <= int(n_neighbors) < n_points:
        raise ValueError(
            f"n_neighbors must lie between 1 and n_points - 1 = {n_points - 1}, got {n_neighbors}"
        )
    return int(n_neighbors)


def check_ids(values: Any, name: str) -> NDArray[Any]:
    """Return ids as a contiguous vector of signed integers, or one of strings.

    Examples
    --------
    >>> check_ids([7, 2**40], "u")
    array([            7, 1099511627776])
    >>> check_ids(["a", 2.5], "u")
    Traceback (most recent call last):
    ...
    TypeError: node ids must be all integers or all strings, but u[1] = 2.5 is a float
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # numpy makes strings or floats of mixed lists
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:  # an empty list comes as float64
        return np.empty(0, dtype=np.int64)
    if not array.flags.aligned:
        array = array.copy()
    if array.dtype.kind == "O":
        kinds = (int, np.integer) if not isinstance(array[0], str) else (str,)
        for at, value in enumerate(array):
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise TypeError(
                    f"node ids must be all integers or all strings, but {name}[{at}] = {value!r} "
                    f"is a {type(value).__name__}"
                )
        if kinds == (str,):
            return array
        if not all(-(2**63) <= value < 2**63 for value in array):
            at = next(i for i, value in enumerate(array) if not -(2**63) <= value < 2**63)
            raise ValueError(f"node ids must fit int64, but {name}[{at}] = {array[at]}")
        return array.astype(np.int64)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() >= 2**63:
        at = int(np.argmax(array >= 2**63))
        raise ValueError(f"node ids must fit int64, but {name}[{at}] = {array[at]}")
    if array.dtype.kind not in "iuUT":
        raise TypeError(
            f"node ids must be integers or strings, but {name} has dtype {array.dtype}; cast it "
            f"with astype(int) or astype(str) if that is what they mean"
        )
    if array.dtype.kind == "u":
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)


def check_strings(values: list[Any], name: str) -> list[str]:
    """Return strings that UTF-8 can hold."""
    for at, value in enumerate(values):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(
                f"node ids must be valid Unicode, but {name}[{at}] = {value!r} has a lone surrogate"
            )
    return values


def check_equal_sizes(**sizes: int) -> None:
    """Raise ValueError unless all columns, given by their names, are equally long."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"len({name}) = {size}" for name, size in sizes.items())
        raise ValueError(f"the columns of edges must be equally long, got {found}")


def check_id_kind(kind: str, expected: str | None) -> None:
    """Refuse ids of another kind than the table has."""
    words = {"int64": "integers", "string": "strings"}
    if expected is not None and kind != expected:
        raise TypeError(
            f"node ids were {words[expected]} so far, but now {words[kind]} came; "
            f"make them all strings, say, with astype(str)"
        )


def check_node_numbers(values: Any, n_nodes: int) -> NDArray[Any]:
    """Return numbers of nodes that a table has."""
    array = np.asarray(values)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise ValueError(f"numbers of nodes must be integers, got dtype {array.dtype}")
    bad = (array < 0) | (array >= n_nodes)
    if bad.any():
        raise ValueError(
            f"there are nodes 0, ..., {n_nodes - 1}, but number {array[bad].flat[0]} was asked for"
        )
    return array.astype(np.int64)


class SourceError(ValueError):
    """A file or another source of edges that cannot be read, with its name and row.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import read_edges
    >>> from ohmlearn.streams import SourceError
    >>> try:
    ...     for batch in read_edges((np.array([0]), np.array([1]), np.array([-2.0]))):
    ...         pass
    ... except SourceError as error:
    ...     print(error)
    the arrays, row 0: weights must not be negative nor above 1e+27, got -2.0; ...
    """

    __module__ = "ohmlearn.streams"  # where users import it from, and what tracebacks show


def refuse_source(name: str, problem: str, row: str | None = None) -> NoReturn:
    """Raise SourceError for a source.

    Examples
    --------
    >>> refuse_source("edges.csv", "weight -1 is negative", "row 7")
    Traceback (most recent call last):
    ...
    ohmlearn.streams.SourceError: edges.csv, row 7: weight -1 is negative
    """
    raise SourceError(f"{name}, {row}: {problem}" if row else f"{name}: {problem}")


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turn whatever a library raises over a corrupt file into a SourceError that names the file."""
    try:
        yield
    except (SourceError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise SourceError(f"{name}: cannot be read as {kind}: {said}") from error


def check_source_options(
    source_col: Any, target_col: Any, weight_col: Any, delimiter: Any, comment: Any
) -> None:
    """Refuse options of ``read_edges`` that nothing can be read with."""
    columns = {"source_col": source_col, "target_col": target_col, "weight_col": weight_col}
    for name, column in columns.items():
        if isinstance(column, bool) or not isinstance(column, str | int | None):
            raise TypeError(f"{name} must be a name or a position of a column, got {column!r}")
    if delimiter is not None and not (
        isinstance(delimiter, str)
        and len(delimiter) == 1
        and delimiter.isascii()
        and delimiter not in '"\r\n'
        and not delimiter.isalnum()
    ):
        raise ValueError(f"delimiter must be one ASCII character, such as ',', got {delimiter!r}")
    if comment is not None and not (
        isinstance(comment, str)
        and comment.isascii()
        and not any(mark.isalnum() or mark in '"-\r\n' for mark in comment)
    ):
        raise ValueError(f"comment must be ASCII marks, such as '#', got {comment!r}")
