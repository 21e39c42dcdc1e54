"""A weighted undirected graph in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, cast, runtime_checkable

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from ohmlearn import _core
from ohmlearn._display import Shown, Tabular
from ohmlearn.checks.edge_arrays import (
    EdgeNames,
    check_batch,
    check_n_nodes,
    check_node_ids,
    check_same_length,
    check_weights,
    is_from,
    is_table,
    raise_edge_fault,
    refuse_other_graph,
)
from ohmlearn.checks.parameters import naming_size
from ohmlearn.graph import convert
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import ids_or_numbers

if TYPE_CHECKING:
    import igraph
    import networkx

    from ohmlearn.graph.time_view import TimeView

Offsets = NDArray[np.int64]
Ends = NDArray[np.int32]
Weights = NDArray[np.float64]


def adopt_csr(indptr: Offsets, indices: Ends, weights: Weights) -> Graph:
    """Return the graph of arrays that a kernel has made, without a check or a copy."""
    return Graph._from_csr(indptr, indices, weights)


def split_sddm(matrix: object) -> tuple[Graph, Weights]:
    """Return the graph of a Laplacian plus a diagonal, and this diagonal."""
    built, excess = convert.read_matrix(matrix, laplacian=True)
    return Graph._take(built, lambda: convert.laplacian_entries(matrix, with_ground=True)), excess


def with_nodes(graph: Graph, n_nodes: int) -> Graph:
    """Return the graph with isolated nodes added, up to `n_nodes`."""
    missing = n_nodes - graph.n_nodes
    if missing <= 0:
        return graph
    indptr = np.concatenate([graph.indptr, np.full(missing, graph.indptr[-1])])
    indptr.flags.writeable = False
    larger = Graph._from_csr(indptr, graph.indices, graph.weights)
    larger.nodes, larger.view = graph.nodes, graph.view
    return larger


@runtime_checkable
class NumberedBatches(Protocol):
    """A stream that may know its nodes; `ohmlearn.edges.Edges` is one."""

    nodes: NodeTable | None
    n_nodes: int | None


class Graph(Shown, Tabular):
    """A weighted undirected graph on the nodes 0, ..., n_nodes - 1.

    Graphs are made by one of the ``from_*`` methods and are not changed afterwards. Parallel edges
    are merged and their weights summed. Self-loops and edges of weight zero carry no current; they
    are dropped and counted. Weights are positive and finite.

    Attributes
    ----------
    indptr, indices, weights : read-only ndarray of int64, int32, float64
        Compressed sparse rows of the symmetric adjacency matrix: the neighbours of node ``i`` are
        ``indices[indptr[i]:indptr[i + 1]]``, in increasing order.
    n_self_loops_dropped, n_zero_weights_dropped : int
        How many edges of the input were left out.
    nodes : NodeTable or None
        The ids of the nodes, if the graph was made from a stream or graph that has them.
    view : TimeView or None
        Which edges of a stream with times the graph approximates, if it is a snapshot of a
        sparsifier that forgets.

    Examples
    --------
    >>> from ohmlearn import Graph
    >>> graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 0, 1], [1.0, 2.0, 3.0, 0.5])
    >>> graph
    Graph(n_nodes=3, n_edges=3)
    >>> graph.to_scipy().toarray()
    array([[0. , 1.5, 3. ],
           [1.5, 0. , 2. ],
           [3. , 2. , 0. ]])
    """

    indptr: Offsets
    indices: Ends
    weights: Weights
    n_self_loops_dropped: int
    n_zero_weights_dropped: int
    nodes: NodeTable | None = None
    view: TimeView | None = None

    def __init__(self) -> None:
        raise TypeError(
            "make a graph with Graph.from_edges, Graph.from_scipy or another Graph.from_*"
        )

    @classmethod
    def _build(
        cls,
        u: NDArray[Any],
        v: NDArray[Any],
        w: NDArray[Any] | None,
        n_nodes: int,
        names: EdgeNames,
    ) -> Self:
        """Build from checked arrays."""
        if u.dtype != v.dtype:
            u, v = u.astype(np.int64), v.astype(np.int64)
        arrays = (u, v) if w is None else (u, v, w)
        with naming_size(f"a graph of {n_nodes} nodes and {len(u)} edges"):
            built = _core.build_csr(n_nodes, *arrays)
        if isinstance(built, _core.EdgeFault):
            raise_edge_fault(built, n_nodes, names)
        return cls._take(built)

    @classmethod
    def _take(
        cls,
        built: convert.Built | None,
        entries: Callable[[], convert.BothDirections] | None = None,
    ) -> Self:
        """Take over what a kernel has built; if it has not, `entries` tell why."""
        if entries is not None and built is None:
            found = entries()
            cls._build(*found[:5])  # raises errors about single entries
            convert.raise_asymmetric(found)
        assert built is not None
        graph = cls._from_csr(*built[:3])
        graph.n_self_loops_dropped, graph.n_zero_weights_dropped = built[3:]
        return graph

    @classmethod
    def _from_csr(cls, indptr: Offsets, indices: Ends, weights: Weights) -> Self:
        """Take over the arrays of a kernel; `adopt_csr` is for other packages."""
        graph = cls.__new__(cls)
        graph.indptr, graph.indices, graph.weights = indptr, indices, weights
        graph.n_self_loops_dropped = graph.n_zero_weights_dropped = 0
        return graph

    @classmethod
    def from_edges(
        cls, u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None, *, n_nodes: int | None = None
    ) -> Self:
        """Make a graph from its edges, each listed once in either direction.

        Parameters
        ----------
        u, v : array-like of int, shape (n,)
            End nodes of each edge. int32 and int64 arrays are read without a copy.
        w : array-like of float, shape (n,), optional
            Weights; all 1 by default. float32 and float64 arrays are read without a copy.
        n_nodes : int, optional
            Number of nodes; the largest id plus one by default.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> graph = Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 2], n_nodes=4)
        >>> graph.edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([2., 1.]))
        >>> graph.n_self_loops_dropped
        1
        """
        u_ids, v_ids = check_node_ids(u, "u"), check_node_ids(v, "v")
        weights = None if w is None else check_weights(w, "w")
        check_same_length(u=u_ids, v=v_ids, w=weights)
        n = check_n_nodes(n_nodes, u_ids, v_ids)
        return cls._build(u_ids, v_ids, weights, n, EdgeNames())

    @classmethod
    def from_batches(cls, batches: Iterable[Any], *, n_nodes: int | None = None) -> Self:
        """Make a graph from a stream of edges, such as the one that `read_edges` returns.

        Parameters
        ----------
        batches : iterable of (u, v), (u, v, w) or (u, v, w, t)
            Arrays as in `from_edges`; all are in memory at the same time. If the stream has a
            table of node ids, it becomes `nodes` of the graph.
        n_nodes : int, optional
            Number of nodes; by default that of the stream if it has one, else the largest id plus
            one.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_batches([([0], [1]), ([1], [2], [0.5])]).edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1. , 0.5]))
        """
        if not isinstance(batches, Iterable) or (
            is_table(batches) and not isinstance(batches, NumberedBatches)
        ):
            refuse_other_graph(batches, "batches of edges are")
        parts = [check_batch(batch, number) for number, batch in enumerate(batches)]
        stream = batches if isinstance(batches, NumberedBatches) else None
        if n_nodes is None and stream is not None:
            n_nodes = stream.n_nodes
        parts = parts or [(np.empty(0, np.int32), np.empty(0, np.int32), None, None)]
        u, v = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
        w = None
        if any(part[2] is not None for part in parts):
            w = np.concatenate([np.ones(len(u)) if w is None else w for u, _, w, _ in parts])
        graph = cls.from_edges(u, v, w, n_nodes=n_nodes)
        graph.nodes = None if stream is None else stream.nodes
        return graph

    @classmethod
    def from_scipy(cls, A: object) -> Self:
        """Make a graph from a symmetric adjacency matrix, sparse or dense.

        Parameters
        ----------
        A : scipy sparse matrix or array, or ndarray, of shape (n_nodes, n_nodes)
            Boolean matrices have weights 1. A matrix that is not symmetric is refused.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import Graph
        >>> Graph.from_scipy(np.array([[0, 2], [2, 0]])).weights
        array([2., 2.])
        """
        return cls._take(convert.read_matrix(A)[0], lambda: convert.adjacency_entries(A))

    @classmethod
    def from_laplacian(cls, L: object) -> Self:
        """Make a graph from its Laplacian, degrees minus adjacency, sparse or dense.

        Parameters
        ----------
        L : scipy sparse matrix or array, or ndarray, of shape (n_nodes, n_nodes)
            Rows must sum to zero up to rounding. An excess on the diagonal is a conductance to
            ground, not part of the graph: see `LaplacianSolver.from_sddm`.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import Graph
        >>> Graph.from_laplacian(np.array([[2, -2], [-2, 2]])).weights
        array([2., 2.])
        """
        built, excess = convert.read_matrix(L, laplacian=True)
        return cls._take(None if excess.any() else built, lambda: convert.laplacian_entries(L))

    @classmethod
    def from_networkx(cls, G: object, *, weight: str | None = "weight") -> Self:
        """Make a graph from an undirected networkx graph or multigraph.

        Parameters
        ----------
        G : networkx.Graph or MultiGraph
            Nodes are numbered in the order of ``list(G)``. Unless they are 0, 1, 2, ... already,
            `nodes` has their names; those that are neither integers nor strings become strings.
        weight : str, optional
            Attribute with the weights. Edges without it weigh 1, as in networkx; None makes all
            weights 1.

        Examples
        --------
        >>> import networkx
        >>> from ohmlearn import Graph
        >>> Graph.from_networkx(networkx.path_graph(4))
        Graph(n_nodes=4, n_edges=3)
        >>> Graph.from_networkx(networkx.Graph([("ann", "bob")])).nodes.ids()
        array(['ann', 'bob'], dtype=object)
        """
        u, v, w, n_nodes = convert.networkx_edges(G, weight)
        graph = cls.from_edges(u, v, w, n_nodes=n_nodes)
        graph.nodes = convert.named_nodes(cast(Iterable[Any], G))
        return graph

    @classmethod
    def from_igraph(cls, g: object, *, weights: str | None = "weight") -> Self:
        """Make a graph from an undirected igraph graph.

        Parameters
        ----------
        g : igraph.Graph
            If its vertices have the attribute "name", these are the ids of the nodes.
        weights : str, optional
            Attribute of the edges with the weights. A graph without an attribute "weight" has
            weights 1; None makes all weights 1.

        Examples
        --------
        >>> import igraph
        >>> from ohmlearn import Graph
        >>> Graph.from_igraph(igraph.Graph.Ring(4))
        Graph(n_nodes=4, n_edges=4)
        """
        u, v, w, n_nodes, names = convert.igraph_edges(g, weights)
        graph = cls.from_edges(u, v, w, n_nodes=n_nodes)
        graph.nodes = None if names is None else convert.named_nodes(names)
        return graph

    @classmethod
    def from_adjacency_dict(cls, neighbors: Mapping[Any, Any]) -> Self:
        """Make a graph from a dict with the neighbours of each node.

        ``{node: list of nodes}``, ``{node: {node: weight}}``, or ``{node: {node: {"weight":
        weight}}}`` as networkx writes it. An edge may be listed at one of its ends or at both, and
        counts once. Nodes have names as in `from_networkx`.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> graph = Graph.from_adjacency_dict({"ann": ["bob"], "bob": ["ann", "cy"]})
        >>> graph, graph.nodes.ids().tolist()
        (Graph(n_nodes=3, n_edges=2), ['ann', 'bob', 'cy'])
        """
        u, v, w, names = convert.dict_edges(neighbors)
        graph = cls.from_edges(u, v, w, n_nodes=len(names))
        graph.nodes = convert.named_nodes(names)
        return graph

    @classmethod
    def from_biadjacency(cls, B: object, *, kinds: tuple[str, str] | None = None) -> Self:
        """Make a graph from a matrix whose rows and columns are two kinds of nodes.

        Rows are the nodes 0, ..., n_rows - 1, and columns the nodes after them. With `kinds`, nodes
        have ids such as "user:0" and "item:0".

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import Graph
        >>> graph = Graph.from_biadjacency(np.array([[1, 0, 2]]), kinds=("user", "item"))
        >>> graph.edges(), graph.nodes.ids().tolist()
        ((array([0, 0], dtype=int32), array([1, 3], dtype=int32), array([1., 2.])),
         ['user:0', 'item:0', 'item:1', 'item:2'])
        """
        coo: scipy.sparse.coo_matrix = scipy.sparse.coo_matrix(B)
        n_rows, n_columns = coo.shape
        v, w = coo.col.astype(np.int64) + n_rows, 1.0 * coo.data
        graph = cls.from_edges(coo.row, v, w, n_nodes=n_rows + n_columns)
        if kinds is not None:
            graph.nodes = NodeTable()
            for kind, n in zip(kinds, (n_rows, n_columns), strict=True):
                graph.nodes.add([f"{kind}:{at}" for at in range(n)])
            graph.nodes.add_kinds(kinds)
        return graph

    @classmethod
    def from_edge_index(
        cls, edge_index: object, edge_weight: object = None, *, n_nodes: int | None = None
    ) -> Self:
        """Make a graph from PyTorch Geometric's ``edge_index``, tensors or arrays.

        There, an undirected edge is listed in both directions; here it counts once. An edge that is
        listed in one direction only is refused, because the graph may be directed. If its edges are
        listed once, use `from_edges`.

        Parameters
        ----------
        edge_index : tensor or array-like of int, shape (2, n_entries)
        edge_weight : tensor or array-like of float, shape (n_entries,), optional
            Weights; all 1 by default.
        n_nodes : int, optional
            Number of nodes; the largest id plus one by default.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 2, 1]], [5.0, 5.0, 2.0, 2.0]).edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([5., 2.]))
        """
        entries = convert.edge_index_entries(edge_index, edge_weight, n_nodes)
        cls._build(*entries[:5])  # raises errors about single entries
        return cls._take(convert.read_matrix(entries.matrix())[0], lambda: entries)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges, parallel ones counted once."""
        return len(self.indices) // 2

    @cached_property
    def degrees(self) -> NDArray[np.float64]:
        """Sum of the weights of the edges at each node, read-only.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0, 1], [1, 2], [3.0, 4.0]).degrees
        array([3., 7., 4.])
        """
        sums = np.bincount(self._rows(), weights=self.weights, minlength=self.n_nodes)
        degrees: NDArray[np.float64] = sums.astype(np.float64, copy=False)  # int64 without edges
        degrees.flags.writeable = False
        return degrees

    def _rows(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.indptr))

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return (u, v, w) with u < v, each edge once, sorted by u and then v.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([2, 1], [1, 0], [3.0, 4.0]).edges()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([4., 3.]))
        """
        rows = self._rows()
        up = rows < self.indices
        return rows[up], self.indices[up], self.weights[up]

    def components(self) -> tuple[int, NDArray[np.int32]]:
        """Return the number of connected components and the component of each node.

        Components are numbered by their first node.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0, 1], [3, 2], n_nodes=5).components()
        (3, array([0, 1, 1, 0, 2], dtype=int32))
        """
        return _core.components(self.indptr, self.indices)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the adjacency matrix, each edge in both triangles; a copy.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0], [1], [3.0]).to_scipy().toarray()
        array([[0., 3.],
               [3., 0.]])
        """
        parts = (self.weights, self.indices, self.indptr)
        return scipy.sparse.csr_array(parts, shape=(self.n_nodes, self.n_nodes), copy=True)

    def to_networkx(self) -> networkx.Graph:
        """Return a graph of networkx with the attribute "weight"; nodes are ids, or numbers.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0], [1], [3.0]).to_networkx().edges(data=True)
        EdgeDataView([(0, 1, {'weight': 3.0})])
        """
        found = import_module("networkx").Graph()
        found.add_nodes_from(ids_or_numbers(self.nodes, self.n_nodes).ids().tolist())
        found.add_weighted_edges_from(
            zip(*(each.tolist() for each in self._columns().values()), strict=True)
        )
        return found

    def to_igraph(self) -> igraph.Graph:
        """Return a graph of igraph with the attribute "weight", and ids as "name"."""
        u, v, w = self.edges()
        edges = list(zip(u.tolist(), v.tolist(), strict=True))
        names = {} if self.nodes is None else {"name": self.nodes.ids()[: self.n_nodes].tolist()}
        return import_module("igraph").Graph(
            self.n_nodes, edges, vertex_attrs=names, edge_attrs={"weight": w.tolist()}
        )

    def to_edge_index(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return ``edge_index`` and ``edge_weight``, which ``torch.from_numpy`` takes as they are.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0], [1], [3.0]).to_edge_index()
        (array([[0, 1],
                [1, 0]]), array([3., 3.]))
        """
        return np.array([self._rows(), self.indices], dtype=np.int64), self.weights.copy()

    def _columns(self) -> dict[str, Any]:
        (u, v, w), ids = self.edges(), ids_or_numbers(self.nodes, self.n_nodes).ids()
        return {"u": ids[u], "v": ids[v], "weight": w}

    def laplacian(self) -> scipy.sparse.csr_array:
        """Return the Laplacian matrix, degrees minus adjacency.

        Examples
        --------
        >>> from ohmlearn import Graph
        >>> Graph.from_edges([0], [1], [3.0]).laplacian().toarray()
        array([[ 3., -3.],
               [-3.,  3.]])
        """
        nodes = np.arange(self.n_nodes + 1)
        parts = (self.degrees, nodes[:-1], nodes)
        return scipy.sparse.csr_array(parts, shape=(self.n_nodes, self.n_nodes)) - self.to_scipy()

    def __repr__(self) -> str:
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    def _facts(self) -> dict[str, Any]:
        mean = 2.0 * self.n_edges / max(1, self.n_nodes)
        facts = {"nodes": self.n_nodes, "edges": self.n_edges, "neighbours of a node, mean": mean}
        return facts | {"ids": self.nodes, "edges count as of": self.view}

    def __eq__(self, other: object) -> bool:
        """Whether the number of nodes, the edges and the weights are equal; ids do not count."""
        if not isinstance(other, Graph):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, part), getattr(other, part))
            for part in ("indptr", "indices", "weights")
        )

    def __copy__(self) -> Self:
        return self  # a graph is not changed, so that copies, also those of scikit-learn, share it

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():  # unpickled arrays come back writable
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


def graph_of(other: Any) -> Graph | None:
    """Return a graph of another library, a matrix, or a dict as a Graph; None for other objects.

    This is the only place that knows which libraries there are.
    """
    if isinstance(other, Graph):
        return other
    if isinstance(other, Mapping):
        return Graph.from_adjacency_dict(other)
    if is_from("networkx", other):
        return Graph.from_networkx(other)
    if is_from("igraph", other):
        return Graph.from_igraph(other)
    if is_from("networkit", other):
        return Graph.from_edges(*(edges := convert.networkit_edges(other))[:3], n_nodes=edges[3])
    if hasattr(other, "edge_index") and hasattr(other, "num_nodes"):  # Data of PyTorch Geometric
        every = (getattr(other, name, None) for name in ("edge_weight", "edge_attr"))
        # Several columns are features of edges, not weights.
        one = [w.reshape(-1) for w in every if w is not None and w.shape[1:] in ((), (1,))]
        return Graph.from_edge_index(other.edge_index, *one[:1], n_nodes=other.num_nodes)
    if is_from("torch", other):  # also EdgeIndex of PyTorch Geometric
        other = convert.tensor_to_array(other)
    elif is_from("torch_geometric", other):
        refuse_other_graph(other, "nodes and edges of one kind are")
    if is_table(other) or len(getattr(other, "shape", ())) != 2:
        return None
    if other.shape[0] == 2 != other.shape[1] and other.dtype.kind in "iu":
        return Graph.from_edge_index(other)
    return Graph.from_scipy(other)
