"""Graphs of other libraries as edge arrays.

Matrices and ``edge_index`` list each edge in both directions. They are read as `BothDirections`,
which `Graph` turns into edges that count once. The other formats list each edge once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ohmlearn import _core
from ohmlearn.checks.edge_arrays import (
    MAX_NODES,
    EdgeNames,
    check_n_nodes,
    check_node_ids,
    check_same_length,
    check_weights,
)
from ohmlearn.errors import InputError, InputTypeError, Param, Setting
from ohmlearn.nodes import NodeTable

Built = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], int, int]
Excess = NDArray[np.float64]
Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]  # rows, columns, values, n_nodes


class BothDirections(NamedTuple):
    """Checked entries (u, v, w) and (v, u, w) for each edge, and their names for messages."""

    u: NDArray[Any]
    v: NDArray[Any]
    w: NDArray[Any] | None
    n_nodes: int
    names: EdgeNames
    entry: str  # the name of an entry, to be formatted with its row and column
    remedy: str  # what to do if the directions do not agree

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the sums of parallel entries."""
        w = np.ones(len(self.u)) if self.w is None else self.w
        return scipy.sparse.csr_array((w, (self.u, self.v)), shape=(self.n_nodes, self.n_nodes))


def _tolerance(dtype: np.dtype[Any]) -> float:
    # Leaves room for rounding in sums over a row (4e-11 in double, 2e-5 in single precision).
    eps = np.finfo(dtype if dtype.kind == "f" else np.float64).eps
    return float(eps ** (2 / 3))


def raise_asymmetric(entries: BothDirections) -> NoReturn:
    """Raise ValueError for the first edge whose directions differ by more than rounding."""
    one_way = entries.matrix().astype(np.float64)
    slack = 0.0 if entries.w is None else _tolerance(entries.w.dtype)
    gap = scipy.sparse.triu(abs(one_way - one_way.T) - slack * one_way.maximum(one_way.T)).tocoo()
    at = int(np.argmax(gap.data > 0))
    i, j = gap.row[at], gap.col[at]
    there, back = (f"{entries.entry.format(*at)} is {one_way[at]:.12g}" for at in ((i, j), (j, i)))
    raise ValueError(
        f"both directions of an edge must have the same weight, but {there} and {back}; "
        f"{entries.remedy}"
    )


def _entries(matrix: Any, name: str) -> Entries:
    is_sparse = scipy.sparse.issparse(matrix)
    matrix = matrix.tocoo() if is_sparse else np.asarray(matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{name} must be a square matrix, got shape {matrix.shape}",
            remedy="if rows and columns are two kinds of nodes, use Graph.from_biadjacency",
        )
    n_nodes = int(matrix.shape[0])
    if n_nodes > MAX_NODES:
        raise ValueError(f"{name} has {n_nodes} rows, but at most {MAX_NODES} nodes are possible")
    if is_sparse:
        rows, columns, values = matrix.row, matrix.col, matrix.data
    else:
        rows, columns = np.nonzero(matrix)  # NaN is not zero
        values = matrix[rows, columns]
    if values.dtype.kind == "b":  # an unweighted adjacency
        values = values.astype(np.float64)
    if values.dtype.kind not in "iuf":
        first = f", starting with {name}[{rows[0]}, {columns[0]}] = {values[0]}" * (rows.size > 0)
        raise ValueError(f"{name} must hold real numbers, got {values.dtype}{first}")
    return rows, columns, values, n_nodes


def _matrix_entries(found: Entries, entry: str, remedy: str) -> BothDirections:
    rows, columns, values, n_nodes = found
    u, v = check_node_ids(rows, "row"), check_node_ids(columns, "column")
    names = EdgeNames(w=lambda i: entry.format(rows[i], columns[i]))
    return BothDirections(u, v, check_weights(values, "data"), n_nodes, names, entry, remedy)


def read_matrix(matrix: object, *, laplacian: bool = False) -> tuple[Built | None, Excess]:
    """Return the CSR of the graph of a symmetric matrix, checked and copied in one pass.

    It is None if anything is wrong. The second result is what the diagonal of a Laplacian has
    beyond the weights of each row.
    """
    square: Any = matrix if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    n, dtype = max(square.shape, default=0), square.dtype
    excess = np.zeros(n if laplacian else 0)
    if square.shape != (n, n) or n > MAX_NODES or dtype.kind not in "biuf":
        return None, excess
    if getattr(square, "format", None) == "csc":
        square = square.T  # the same matrix, if it is symmetric
    csr = scipy.sparse.csr_array(square)  # copies no array of a CSR
    index = np.int32 if csr.indptr.dtype == csr.indices.dtype == np.int32 else np.int64
    for _ in range(2):
        arrays: Any = [np.ascontiguousarray(a, index) for a in (csr.indptr, csr.indices)]
        data = np.ascontiguousarray(csr.data, np.float64)
        built = _core.read_matrix(
            arrays[0], arrays[1], data, _tolerance(dtype), excess if laplacian else None
        )
        if built is not None:
            break
        csr.check_format()  # scipy would crash
        csr = csr.copy()
        csr.sum_duplicates()  # sorts, too
    return built, excess


def adjacency_entries(matrix: Any) -> BothDirections:
    """Read a symmetric adjacency matrix."""
    found = rows, columns, values, _ = _entries(matrix, "A")
    off = rows != columns
    # Signs as in a Laplacian. Without this check the error would only be about negative weights, so
    # name the likely cause.
    if np.any(values[off] < 0) and np.all(values[off] <= 0) and np.all(values[~off] >= 0):
        at = int(np.argmax(off & (values < 0)))
        raise ValueError(
            f"A looks like a Laplacian (A[{rows[at]}, {columns[at]}] = {values[at]}, no positive "
            "entry off the diagonal); use Graph.from_laplacian(A)"
        )
    remedy = "pass A + A.T if the directions should add up, (A + A.T) / 2 for their mean"
    return _matrix_entries(found, "A[{}, {}]", remedy)


def laplacian_entries(matrix: Any, *, with_ground: bool = False) -> BothDirections:
    """Read a Laplacian; its rows must sum to zero, or with ground to no less."""
    rows, columns, values, n_nodes = _entries(matrix, "L")
    diagonal = rows == columns
    wrong = ~np.isfinite(values) | (~diagonal & (values > 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            "the off-diagonal entries of a Laplacian are minus the weights, finite and not "
            f"positive, but L[{rows[at]}, {columns[at]}] = {values[at]}; "
            "for an adjacency matrix use Graph.from_scipy"
        )
    sums = np.bincount(rows, weights=values, minlength=n_nodes)
    sizes = np.bincount(rows, weights=np.abs(values), minlength=n_nodes)
    off = (-sums if with_ground else np.abs(sums)) > _tolerance(values.dtype) * sizes
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"the rows of a Laplacian sum to zero, but row {row} of L sums to {sums[row]:.6g}; "
            + (
                "to solve with it, use LaplacianSolver.from_sddm(L), which makes it the ground"
                if sums[row] > 0
                else "its diagonal is smaller than the weights of its edges"
            )
        )
    found = rows[~diagonal], columns[~diagonal], -values[~diagonal], n_nodes
    return _matrix_entries(found, "-L[{}, {}]", "pass (L + L.T) / 2")


def networkx_edges(graph: Any, weight: str | None) -> tuple[Any, Any, Any, int]:
    """Read an undirected networkx graph; nodes are numbered in the order of ``list(graph)``."""
    _check_undirected(graph, "a networkx graph", "edges", "G.to_undirected()")
    number = {node: i for i, node in enumerate(graph)}
    ends = np.fromiter(
        (number[node] for u, v in graph.edges() for node in (u, v)), dtype=np.int64
    ).reshape(-1, 2)
    u, v = np.ascontiguousarray(ends.T)
    if weight is None:
        return u, v, None, len(number)
    found = [value for _, _, value in graph.edges(data=weight)]
    # Edges without the attribute have weight 1, as everywhere in networkx. A name that no edge has
    # is probably a typing error, unless it is the default.
    if found and weight != "weight" and all(value is None for value in found):
        raise InputError(
            f"no edge of G has the attribute {weight!r}; pass {Setting('weight', None)} for ones"
        )
    w = [1.0 if value is None else value for value in found]
    return u, v, w, len(number)


def named_nodes(given: Iterable[Any]) -> NodeTable | None:
    """Return a table of different names of nodes; None if they are 0, 1, 2, ... already.

    Names that are neither all integers nor all strings, such as tuples, become strings.
    """
    names = list(given)
    types = set(map(type, names))
    if types == {int} and names == list(range(len(names))):
        return None
    fit = types == {str} or (types == {int} and all(-(2**63) <= name < 2**63 for name in names))
    nodes = NodeTable()
    nodes.add(names if fit else list(map(str, names)))
    if len(nodes) < len(names):
        first: dict[str, int] = {}
        for at, name in enumerate(names):
            if (before := first.setdefault(str(name), at)) != at:
                raise InputError(
                    f"the nodes {names[before]!r} and {name!r} have the same name as text",
                    remedy="rename one of them, for example with networkx.relabel_nodes",
                )
    return nodes


def igraph_edges(graph: Any, weights: str | None) -> tuple[Any, Any, Any, int, Any]:
    """Read an undirected igraph graph; the last item is the names of its vertices, or None."""
    _check_undirected(graph, "an igraph graph", "get_edgelist", "g.as_undirected()")
    u, v = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T
    attributes = graph.edge_attributes()
    names = graph.vs["name"] if "name" in graph.vertex_attributes() else None
    if weights is None or (weights == "weight" and weights not in attributes):
        return u, v, None, graph.vcount(), names
    if weights not in attributes:
        raise ValueError(f"the edges of g have no attribute {weights!r}, only {attributes}")
    return u, v, graph.es[weights], graph.vcount(), names


def networkit_edges(graph: Any) -> tuple[Any, Any, Any, int]:
    """Read an undirected NetworKit graph; nodes that were removed from it are isolated."""
    _check_undirected(
        graph, "a NetworKit graph", "iterEdgesWeights", "G = networkit.graphtools.toUndirected(G)"
    )
    edges = np.fromiter(graph.iterEdgesWeights(), dtype="i8,i8,f8")
    return edges["f0"], edges["f1"], edges["f2"], graph.upperNodeIdBound()


def dict_edges(given: Mapping[Any, Any]) -> tuple[Any, Any, Any, list[Any]]:
    """Read a dict of neighbours; return the ends, the weights, and the names of the nodes."""
    number = {name: at for at, name in enumerate(given)}
    weights: dict[tuple[int, int], Any] = {}
    for name, row in given.items():
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise InputTypeError(
                f"the neighbours of {name!r} must be a list or a dict, got {type(row).__name__}"
            )
        for other in row:
            w = row[other] if isinstance(row, Mapping) else 1.0
            ends = number[name], number.setdefault(other, len(number))
            w = w.get("weight", 1.0) if isinstance(w, Mapping) else w
            if (seen := weights.setdefault((min(ends), max(ends)), w)) != w:
                raise InputError(
                    f"the edge between {name!r} and {other!r} has two weights, {seen} and {w}; an "
                    f"edge may be listed at both of its ends, but with one weight"
                )
    u, v = np.array([*weights], dtype=np.int64).reshape(-1, 2).T
    return u, v, [*weights.values()], [*number]


def tensor_to_array(tensor: Any) -> Any:
    """Return a torch tensor as an array, or as a sparse array if it is sparse."""
    if str(tensor.layout) == "torch.strided":
        return _to_numpy(tensor)
    coo = tensor.to_sparse_coo().coalesce()
    parts = _to_numpy(coo.values()), tuple(_to_numpy(coo.indices()))
    return scipy.sparse.coo_array(parts, shape=tuple(coo.shape))


def _check_undirected(graph: Any, what: str, method: str, remedy: str) -> None:
    is_directed = getattr(graph, "is_directed", getattr(graph, "isDirected", None))
    if is_directed is None or not hasattr(graph, method):
        raise TypeError(f"{what} is needed, got {type(graph).__name__}")
    if is_directed():
        raise ValueError(f"{remedy[0]} is directed, ohmlearn graphs are not; use {remedy} first")


def _to_numpy(array: Any) -> Any:
    # A torch tensor on a GPU or with a gradient refuses __array__; numpy() raises torch's message.
    return array.numpy() if hasattr(array, "numpy") else np.asarray(array)


def edge_index_entries(edge_index: Any, edge_weight: Any, n_nodes: int | None) -> BothDirections:
    """Read PyTorch Geometric's ``edge_index`` of shape (2, number of entries)."""
    try:
        ends = _to_numpy(edge_index)
    except ValueError as error:  # numpy raises this for ragged sequences
        lengths = ", ".join(
            f"len(edge_index[{i}]) = {np.size(x)}" for i, x in enumerate(edge_index)
        )
        raise InputError(
            f"the rows of {Param('edge_index')} must be equally long, got {lengths}"
        ) from error
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise InputError(
            f"{Param('edge_index')} must have shape (2, number of entries), got {ends.shape}",
            remedy="transpose it" if ends.ndim == 2 and ends.shape[1] == 2 else None,
        )
    u, v = (check_node_ids(ends[side], f"edge_index[{side}]") for side in (0, 1))
    w = None if edge_weight is None else check_weights(_to_numpy(edge_weight), "edge_weight")
    check_same_length(**{"edge_index[0]": u, "edge_weight": w})
    names = EdgeNames(
        "edge_index[0, {}]".format, "edge_index[1, {}]".format, "edge_weight[{}]".format
    )
    remedy = (
        "if each edge is listed once, use Graph.from_edges(*edge_index, edge_weight); "
        "if the graph is directed, make it undirected first (torch_geometric.utils.to_undirected)"
    )
    n_nodes = check_n_nodes(n_nodes, u, v)
    return BothDirections(u, v, w, n_nodes, names, "the weight of {} -> {}", remedy)
