"""Checks of edges, graphs and columns. Messages name the value, cause, remedy and place."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ohmlearn._core import LARGEST_WEIGHT, SMALLEST_WEIGHT, EdgeFault
from ohmlearn.checks.parameters import Interval, check_value
from ohmlearn.checks.times import check_times
from ohmlearn.errors import InputError, InputTypeError, Param, text_of

MAX_NODES = 2**31 - 1  # node ids are 32-bit inside
# What weights must do; those of H are float32.
ALLOWED_WEIGHTS = (
    f"not be negative nor above {LARGEST_WEIGHT:g}, nor below {SMALLEST_WEIGHT:.2g} unless 0"
)
# Not numpy.unique, which gives the ids of each batch other numbers.
RENUMBER = (
    "number the nodes 0, 1, 2, ..., with read_edges, or with one NodeTable for all edges "
    "(u, v = table.add_edges(u, v))"
)


class EdgeNames(NamedTuple):
    """Names of the ends and the weight of the edge at a position, for messages."""

    u: Callable[[int], str] = "u[{}]".format
    v: Callable[[int], str] = "v[{}]".format
    w: Callable[[int], str] = "w[{}]".format


def _as_vector(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # numpy raises this for ragged sequences
        at = next((i for i, value in enumerate(values) if np.ndim(value) > 0), 0)
        raise ValueError(
            f"{name} must be one-dimensional, but {name}[{at}] = {values[at]!r} is not a number"
        ) from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array if array.flags.aligned else array.copy()


def _first_other_than(numbers: type, values: Any) -> int:
    """Return the position of the first value that is not such a number; bool is not one."""
    bools = (bool, np.bool_)
    others = (i for i, x in enumerate(values) if isinstance(x, bools) or not isinstance(x, numbers))
    return next(others, 0)


def _bad_node(n_nodes: int, name: str, node: int, remedy: str | None = None) -> InputError:
    return InputError(
        f"node ids must lie in 0, ..., {Param('n_nodes')} - 1 with {Param('n_nodes', n_nodes)}, "
        f"but {name} = {node}",
        remedy=remedy,
    )


def check_node_ids(values: object, name: str) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return node ids as a contiguous int32 or int64 vector, copied only if they are not one."""
    array = _as_vector(values, name)
    if array.size == 0:  # an empty list comes as float64
        return np.empty(0, dtype=np.int32)
    if array.dtype.kind not in "iu":
        if array.dtype.kind == "f":  # a fraction shows the problem better than 0.0
            at = int(np.argmax(array != np.floor(array)))
        else:
            at = _first_other_than(Integral, values)
        raise ValueError(
            f"node ids must be integers, but {name}[{at}] = {array[at]} ({array.dtype}); "
            f"{RENUMBER}, or cast with {name}.astype(int)"
        )
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        at = int(np.argmax(array > np.iinfo(np.int64).max))
        raise ValueError(
            f"node ids must be below {MAX_NODES}, but {name}[{at}] = {array[at]}; {RENUMBER}"
        )
    dtype: Any = np.int32 if array.dtype == np.int32 else np.int64
    return np.ascontiguousarray(array, dtype)


def check_nodes_of(n_nodes: int, values: object, name: str) -> NDArray[np.int64]:
    """Return nodes of a graph with so many nodes."""
    nodes = check_node_ids(values, name).astype(np.int64, copy=False)
    bad = (nodes < 0) | (nodes >= n_nodes)
    if bad.any():
        at = int(np.argmax(bad))
        raise _bad_node(n_nodes, f"{name}[{at}]", nodes[at])
    return nodes


def check_weights(values: object, name: str) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return weights as a contiguous float32 or float64 vector, copied only if they are not one."""
    array = _as_vector(values, name)
    if array.size > 0 and array.dtype.kind not in "iuf":
        at = _first_other_than(Real, values)
        raise ValueError(
            f"weights must be real numbers, but {name}[{at}] = {array[at]} ({array.dtype}); "
            f"cast them with {name}.astype(float) if they are numbers"
        )
    dtype: Any = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(array, dtype)


def are_weights(w: Any) -> Any:
    """Return whether a number, or each of an array, is as `ALLOWED_WEIGHTS` says."""
    return (w == 0) | ((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT))


def check_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise ValueError unless all arrays, given by their names, are equally long."""
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"len({name}) = {length}" for name, length in lengths.items())
        raise ValueError(f"one entry per edge is needed in each array, got {found}")


def check_n_nodes(n_nodes: object, u: NDArray[Any], v: NDArray[Any]) -> int:
    """Return the number of nodes; None means the largest id in `u` and `v` plus one."""
    if n_nodes is None:
        # A negative id is reported with its position by the builder.
        largest = max((int(ids.max()) for ids in (u, v) if ids.size > 0), default=-1)
        if largest >= MAX_NODES:
            raise ValueError(
                f"the largest node id is {largest}, but ids must be below {MAX_NODES}; {RENUMBER}"
            )
        return max(largest + 1, 0)
    return int(check_value("n_nodes", n_nodes, Interval(Integral, 0, MAX_NODES)))


def raise_edge_fault(
    fault: EdgeFault, n_nodes: int, names: EdgeNames, smallest: float = 0.0
) -> NoReturn:
    """Raise ValueError for the edge that ``_core`` (build_csr, find_fault) refused."""
    at = fault.position
    if fault.kind in (EdgeFault.Kind.node_u, EdgeFault.Kind.node_v):
        name = (names.u if fault.kind == EdgeFault.Kind.node_u else names.v)(at)
        remedy = f"raise {Param('n_nodes')}, or leave it out to fit the largest id"
        if fault.node < 0 or n_nodes >= 2**30:  # no n_nodes would help
            remedy = RENUMBER
        raise _bad_node(n_nodes, name, fault.node, remedy)
    found = f"{names.w(at)} = {fault.weight}"
    if fault.kind == EdgeFault.Kind.overflow:
        raise ValueError(
            f"the weights of parallel edges add up past the largest float64, starting with "
            f"{found}; scale all weights down"
        )
    if 0 < fault.weight < smallest:
        raise ValueError(
            f"positive weights must be at least {smallest:.2g}, which a sparsifier can store, but "
            f"{found}; multiply all weights by a constant, or make those 0 that do not matter"
        )
    if 0 < fault.weight < math.inf:
        raise ValueError(
            f"weights must be at most 1e27, but {found}; divide all weights by a constant"
        )
    raise ValueError(
        f"weights must be finite and not negative, but {found}; drop or correct such edges first"
    )


def check_columns(values: object, name: str, n_rows: int, row: str = "node") -> NDArray[np.float64]:
    """Return right-hand sides as a contiguous (n_rows, n_columns) float64 array."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got dtype {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[0] != n_rows:
        raise ValueError(
            f"{name} must have shape ({n_rows},) or ({n_rows}, n_columns), one row per {row}, "
            f"got shape {array.shape}"
        )
    columns = np.ascontiguousarray(array[:, np.newaxis] if array.ndim == 1 else array, np.float64)
    finite = np.isfinite(columns)
    if not finite.all():
        at = tuple(int(i) for i in np.argwhere(~finite)[0])
        place = f"{name}[{at[0]}]" if array.ndim == 1 else f"{name}[{at[0]}, {at[1]}]"
        raise ValueError(f"{name} must be finite, but {place} = {columns[at]}")
    return columns


def is_from(library: str, given: object) -> bool:
    """Whether an object is of a class of a library, which need not be installed."""
    return any(base.__module__.partition(".")[0] == library for base in type(given).__mro__)


def refuse_other_graph(given: object, needed: str) -> NoReturn:
    """Refuse an object that is neither edges nor a graph that is known."""
    kind = f"{type(given).__module__}.{type(given).__name__}".removeprefix("builtins.")
    raise InputTypeError(
        f"{needed} needed, got {kind}",
        remedy="give its edges as arrays (u, v, w), as a list of tuples, or as a sparse matrix",
    )


def is_table(given: object) -> bool:
    """Whether an object is a table that `ArrowObject` reads."""
    others = ("dataset", "scanner", "lazy frame", "connection", "delta", "iceberg")
    return hasattr(given, "__arrow_c_stream__") or library_of(given) in others


def library_of(table: object) -> str:
    """Return how a table is read, from its type, without importing its library."""
    known = {
        "pyarrow.Dataset": "dataset",
        "pyarrow.Scanner": "scanner",
        "duckdb.DuckDBPyRelation": "relation",
        "duckdb.DuckDBPyConnection": "connection",
        "polars.LazyFrame": "lazy frame",
        "polars.DataFrame": "polars",
        "pandas.DataFrame": "pandas",
        "deltalake.DeltaTable": "delta",
        "pyiceberg.Table": "iceberg",
        "pyiceberg.DataScan": "iceberg",
    }
    bases = ((base.__module__.partition(".")[0], base.__name__) for base in type(table).__mro__)
    names = (f"{library.removeprefix('_')}.{name}" for library, name in bases)
    return next((known[name] for name in names if name in known), "")


def split_batch(batch: object, name: str) -> tuple[Any, Any, Any, Any]:
    """Return the parts (u, v, w, t) of a batch of edges; w and t may be None."""
    if not isinstance(batch, tuple | list) or not 2 <= len(batch) <= 4:
        raise ValueError(
            f"a batch of edges is a tuple (u, v), (u, v, w) or (u, v, w, t) of arrays, "
            f"but {name} is {type(batch).__name__}"
            + (f" of length {len(batch)}" if hasattr(batch, "__len__") else "")
        )
    u, v, w, t = (*batch, None, None)[:4]
    return u, v, w, t


def check_batch(batch: object, number: int) -> tuple[Any, Any, Any, Any]:
    """Return (u, v, w, t) of one batch of edges; u and v of one type, w and t may be None.

    Nothing is copied if the arrays have types that the kernels take.
    """
    a, b, c, d = split_batch(batch, f"batch {number}")
    try:
        u, v = check_node_ids(a, "u"), check_node_ids(b, "v")
        w = None if c is None else check_weights(c, "w")
        t = None if d is None else check_times(d)
        check_same_length(u=u, v=v, w=w, t=t)
    except ValueError as error:
        raise InputError(f"batch {number}: {text_of(error)}") from error
    if u.dtype != v.dtype:
        u, v = u.astype(np.int64), v.astype(np.int64)
    return u, v, w, t
