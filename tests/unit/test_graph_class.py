"""Graphs: what edges and matrices are taken, which are refused, from which libraries they come.

Rows, Laplacians, degrees, components and round trips: property/test_graph_properties.py.
"""

import copy
import pickle
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from ohmlearn import (
    Graph,
    HFSClassifier,
    StreamingSparsifier,
    certify,
    refine,
    solve_hfs,
)

# 0 -2- 1 -3- 2, and 3 alone
ADJACENCY = np.array([[0, 2, 0, 0], [2, 0, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0]], dtype=float)
LAPLACIAN = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY


def path() -> Graph:
    return Graph.from_edges([0, 2], [1, 1], [2.0, 3.0], n_nodes=4)


def message(text: str) -> str:
    return "^" + re.escape(text)


@pytest.mark.parametrize("index", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("weight", ["f2", "f4", "f8", "g", "i4", "u8"])
def test_number_types_do_not_matter(index, weight):
    u, v = np.array([0, 2], dtype=index), np.array([1, 1], dtype=index)
    assert Graph.from_edges(u, v, np.array([2, 3], dtype=weight), n_nodes=4) == path()
    assert Graph.from_edges(u, v.astype("i8"), np.array([2, 3], dtype=weight), n_nodes=4) == path()


def test_strided_and_read_only_arrays():
    ends = np.array([[0, 1], [2, 1]])
    w = np.array([2.0, 9.0, 3.0])[::2]
    w.flags.writeable = ends.flags.writeable = False
    assert Graph.from_edges(ends[:, 0], ends[:, 1], w, n_nodes=4) == path()
    assert Graph.from_edges([0, 5], [1, 5]).n_nodes == 6


NODE = "node ids must lie in 0, ..., n_nodes - 1 with n_nodes = "
WEIGHT = "weights must be finite and not negative, but "
INTEGER = "node ids must be integers, but "
REAL = "weights must be real numbers, but "


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([0, -1], [1, 1]), NODE + "2, but u[1] = -1"),
        (([0, 1], [1, 7], None, 5), NODE + "5, but v[1] = 7; raise n_nodes, or leave it out"),
        (([0, 1], [1, 0], [1, -2.0]), WEIGHT + "w[1] = -2.0; drop or correct"),
        (([0, 1], [1, 0], [np.nan, 1]), WEIGHT + "w[0] = nan"),
        (([0, 1], [1, 0], [1e308, 1e308]), "the weights of parallel edges add up past the largest "
         "float64, starting with w[0] = 1e+308; scale all weights down"),
        (([0.0, 1.5], [1, 2]), INTEGER + "u[1] = 1.5 (float64); number the nodes"),
        (([0.0, np.nan], [1, 2]), INTEGER + "u[1] = nan (float64)"),
        (([True, False], [1, 2]), INTEGER + "u[0] = True (bool)"),
        ((["a"], [1]), INTEGER + "u[0] = a (<U1)"),
        (([0, 1], [1, 2], [1j, 2]), REAL + "w[0] = 1j (complex128); cast them with"),
        (([0, 1], [1, 2], [1.0, "a"]), REAL + "w[1] = a (<U32)"),
        (([0, "b"], [1, 2]), INTEGER + "u[1] = b (<U21)"),
        (([0, [1, 2]], [1, 2]), "u must be one-dimensional, but u[1] = [1, 2] is not a number"),
        (([[0, 1]], [1, 2]), "u must be one-dimensional, got shape (1, 2)"),
        (([0], [1], 2.0), "w must be one-dimensional, got shape ()"),
        (([0, 1], [1]), "one entry per edge is needed in each array, got len(u) = 2, len(v) = 1"),
        (([0], [1], [1, 2]), "one entry per edge is needed in each array, got len(u) = 1, "
         "len(v) = 1, len(w) = 2"),
        ((np.array([0, 2**63], dtype="u8"), [1, 1]), "node ids must be below "
         "2147483647, but u[1] = 9223372036854775808; number the nodes"),
        (([0], [2**31 - 1]), "the largest node id is 2147483647, but ids must be below 2147483647"),
        (([0], [1], None, 2**31), "n_nodes must be an integer in [0, 2147483647], got 2147483648"),
        (([0], [1], None, True), "n_nodes must be an integer in [0, 2147483647], got True"),
    ],
)  # fmt: skip
def test_bad_edges_are_named(arguments, text):
    with pytest.raises(ValueError, match=message(text)):
        Graph.from_edges(*arguments[:3], n_nodes=arguments[3] if len(arguments) > 3 else None)


def test_equality():
    assert path() != Graph.from_edges([0, 2], [1, 1], [2.0, 3.5], n_nodes=4)
    assert path() != Graph.from_edges([0, 2], [1, 1], [2.0, 3.0], n_nodes=5)
    assert path() != "path"


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_are_equal_and_read_only(clone):
    original = Graph.from_edges([0, 0], [0, 1])
    original.to_scipy().data[:] = 7  # a copy
    original.laplacian().data[:] = 7
    for graph in (original, clone(original)):
        assert graph == Graph.from_edges([0], [1])
        assert graph.n_self_loops_dropped == 1
        for array in (graph.indptr, graph.indices, graph.weights, graph.degrees):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


@pytest.mark.parametrize("n_nodes", [0, np.int64(3)])
def test_no_edges(n_nodes):
    graph = Graph.from_edges([], [], n_nodes=n_nodes)
    assert (graph.n_nodes, graph.n_edges) == (n_nodes, 0)
    assert graph.to_scipy().shape == graph.laplacian().shape == (n_nodes, n_nodes)
    np.testing.assert_array_equal(graph.degrees, np.zeros(n_nodes))
    assert graph.components()[0] == n_nodes
    assert Graph.from_scipy(graph.to_scipy()) == graph


@pytest.mark.parametrize(
    "kind", [np.array, sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_array]
)
@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_matrices(kind, dtype):
    assert Graph.from_scipy(kind(ADJACENCY.astype(dtype))) == path()
    assert Graph.from_laplacian(kind(LAPLACIAN.astype(dtype))) == path()


def test_matrix_entries_are_counted_once():
    assert Graph.from_scipy(ADJACENCY > 0) == Graph.from_edges([0, 1], [1, 2], n_nodes=4)
    entries = ([1.0, 1.0, 5.0, 0.0, 0.0], ([0, 1, 2, 1, 2], [1, 0, 2, 2, 1]))
    graph = Graph.from_scipy(sp.coo_array(entries, shape=(3, 3)))
    assert graph == Graph.from_edges([0], [1], [1.0], n_nodes=3)
    assert (graph.n_self_loops_dropped, graph.n_zero_weights_dropped) == (1, 1)
    # Rounding is not asymmetry.
    graph = Graph.from_scipy(np.array([[0, 1.0], [1.0 + 2**-50, 0]]))
    np.testing.assert_array_equal(graph.weights, 1.0 + 2**-51)  # the mean


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_csr_of_a_matrix(index, dtype):
    """Sorted or not, summed or not, with entries on the diagonal, and zeros on one side."""
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 60, (2, 400))
    w = rng.integers(0, 9, 400).astype(dtype)  # sums are exact
    expected = Graph.from_edges(u, v, w, n_nodes=60)
    both = (np.concatenate([u, v]), np.concatenate([v, u]))
    summed = sp.coo_array((np.concatenate([w, w]), both), shape=(60, 60)).tocsr()
    zeros = sp.coo_array((np.zeros(2, dtype), ([3, 4], [59, 58])), shape=(60, 60)).tocsr()
    zeros = sp.csr_array((zeros.data, zeros.indices, zeros.indptr), shape=(60, 60))
    split = sp.csr_array((*(np.repeat(a, 2) for a in (summed.data / 2, summed.indices)),
                          2 * summed.indptr), shape=(60, 60))  # fmt: skip
    unsorted = summed[:, ::-1][:, ::-1]
    unsorted = sp.csr_array(
        (
            unsorted.data[::-1],
            59 - unsorted.indices[::-1],
            unsorted.indptr[-1] - unsorted.indptr[::-1],
        ),
        shape=(60, 60),
    )
    unsorted = unsorted[::-1][:, ::-1]
    for matrix in (summed, summed + zeros, split, unsorted, summed.tocsc(), summed.tocoo()):
        if matrix.format != "coo":
            matrix.indptr, matrix.indices = (
                matrix.indptr.astype(index),
                matrix.indices.astype(index),
            )
        before = matrix.copy()
        assert Graph.from_scipy(matrix) == expected
        assert (before != matrix).nnz == 0  # it was not changed
        laplacian = sp.csr_array(sp.diags_array(expected.degrees.astype(dtype)) - matrix)
        laplacian.setdiag(expected.degrees.astype(dtype))
        assert Graph.from_laplacian(laplacian) == expected


def test_damaged_csr_is_refused():
    matrix = sp.csr_array(ADJACENCY)
    for part, at, value in [("indptr", 1, 9), ("indptr", 0, 1), ("indices", 0, 77)]:
        damaged = matrix.copy()
        getattr(damaged, part)[at] = value
        with pytest.raises(ValueError, match="ind"):
            Graph.from_scipy(damaged)


BOTH = "both directions of an edge must have the same weight, but "


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ([[0, 1, 0], [1, 0, 2], [0, 0, 0]], BOTH + "A[1, 2] is 2 and A[2, 1] is 0; pass A + A.T"),
        ([[0, 1, 0], [1, 0, 0], [0, 2, 0]], BOTH + "A[1, 2] is 0 and A[2, 1] is 2"),
        ([[0, 3], [1, 0]], BOTH + "A[0, 1] is 3 and A[1, 0] is 1"),
        (LAPLACIAN, "A looks like a Laplacian (A[0, 1] = -2.0, no positive entry off the diagonal)"
         "; use Graph.from_laplacian(A)"),
        ([[0, 1, 1], [1, 0, -1], [1, -1, 0]], WEIGHT + "A[1, 2] = -1.0"),
        ([[0, np.nan], [np.nan, 0]], WEIGHT + "A[0, 1] = nan"),
        ([[0, 1], [1, np.inf]], WEIGHT + "A[1, 1] = inf"),
        ([[0, 1j], [1j, 0]], "A must hold real numbers, got complex128, starting with A[0, 1] = 1"),
        ([[0, 1]], "A must be a square matrix, got shape (1, 2)"),
        ([0, 1], "A must be a square matrix, got shape (2,)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_bad_adjacency_is_named(matrix, text, kind):
    if kind is sp.csr_array and np.ndim(matrix) != 2:
        kind = sp.coo_array
    with pytest.raises(ValueError, match=message(text)):
        Graph.from_scipy(kind(matrix))


ROWS = "the rows of a Laplacian sum to zero, but row "
OFF = "the off-diagonal entries of a Laplacian are minus the weights, finite and not positive, but "


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ([[1, -1], [-1, 1.5]], ROWS + "1 of L sums to 0.5; to solve with it, use "
         "LaplacianSolver.from_sddm(L), which makes it the ground"),
        ([[0, -1], [-1, 1]], ROWS + "0 of L sums to -1; its diagonal is smaller"),
        (ADJACENCY, OFF + "L[0, 1] = 2.0; for an adjacency matrix use Graph.from_scipy"),
        ([[1, -np.inf], [-1, 1]], OFF + "L[0, 1] = -inf"),
        ([[np.nan, -1], [-1, 1]], OFF + "L[0, 0] = nan"),
        ([[1, -1], [0, 0]], BOTH + "-L[0, 1] is 1 and -L[1, 0] is 0; pass (L + L.T) / 2"),
    ],
)  # fmt: skip
def test_bad_laplacian_is_named(matrix, text):
    with pytest.raises(ValueError, match=message(text)):
        Graph.from_laplacian(np.array(matrix))


def test_networkx():
    G = nx.MultiGraph()
    G.add_nodes_from("badc")  # numbered in this order
    G.add_edge("a", "b", weight=0.5)
    G.add_edge("b", "a", weight=1.5)
    G.add_edge("a", "d", weight=3.0)
    assert Graph.from_networkx(G) == path()
    G.add_edge("c", "b")  # has weight 1, because it has no attribute
    assert Graph.from_networkx(G).weights[-1] == 1.0
    np.testing.assert_array_equal(Graph.from_networkx(G, weight=None).edges()[2], [2, 1, 1])


def test_igraph():
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph(4, [(0, 1), (2, 1)])
    assert Graph.from_igraph(g) == Graph.from_edges([0, 2], [1, 1], n_nodes=4)
    g.es["weight"] = [2, 3]
    assert Graph.from_igraph(g) == path()
    assert Graph.from_igraph(igraph.Graph(4), weights=None) == Graph.from_edges([], [], n_nodes=4)
    with pytest.raises(ValueError, match=r"g is directed, .*; use g\.as_undir"):
        Graph.from_igraph(igraph.Graph(2, [(0, 1)], directed=True))
    with pytest.raises(ValueError, match=re.escape("g have no attribute 'w', only []")):
        Graph.from_igraph(igraph.Graph(2, [(0, 1)]), weights="w")


@pytest.mark.parametrize(
    ("error", "text", "make"),
    [
        (TypeError, "a networkx graph is needed, got int", lambda: Graph.from_networkx(3)),
        (TypeError, "an igraph graph is needed, got Graph", lambda: Graph.from_igraph(nx.Graph())),
        (TypeError, "make a graph with Graph.from_edges", Graph),
        (ValueError, "G is directed, ohmlearn graphs are not; use G.to_undirected() first",
         lambda: Graph.from_networkx(nx.DiGraph([(0, 1)]))),
        (ValueError, "no edge of G has the attribute 'wieght'",
         lambda: Graph.from_networkx(nx.path_graph(3), weight="wieght")),
        (ValueError, WEIGHT + "w[0] = -1.0",
         lambda: Graph.from_networkx(nx.Graph([(0, 1, {"weight": -1})]))),
        (ValueError, "the nodes 1 and '1' have the same name as text",
         lambda: Graph.from_networkx(nx.Graph([(1, "1")]))),
    ],
)  # fmt: skip
def test_bad_graphs_of_other_libraries_are_named(error, text, make):
    with pytest.raises(error, match=message(text)):
        make()


class Tensor:
    """The part of the interface of a torch tensor that is used."""

    def __init__(self, values):
        self.values = np.array(values)

    def numpy(self):
        return self.values


@pytest.mark.parametrize("kind", [list, np.array, Tensor])
def test_edge_index(kind):
    edge_index, edge_weight = kind([[0, 1, 1, 2], [1, 0, 2, 1]]), kind([2.0, 2.0, 3.0, 3.0])
    assert Graph.from_edge_index(edge_index, edge_weight, n_nodes=4) == path()
    assert Graph.from_edge_index(edge_index) == Graph.from_edges([0, 1], [1, 2])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[0, 1], [1, 2]],), BOTH + "the weight of 0 -> 1 is 1 and the weight of 1 -> 0 is 0; if "
         "each edge is listed once, use Graph.from_edges(*edge_index, edge_weight); if the graph"),
        (([[0, 1], [1, 0]], [1.0, 2.0]), BOTH + "the weight of 0 -> 1 is 1 and the weight of 1 -"),
        (([[0, 1], [1, 0], [1, 1]],), "edge_index must have shape (2, number of entries), got "
         "(3, 2); transpose it"),
        (([0, 1],), "edge_index must have shape (2, number of entries), got (2,)"),
        (([[0, 9], [9, 0]], None, 5), NODE + "5, but edge_index[1, 0] = 9"),
        (([[0, 1], [1, 0]], [1, -1]), WEIGHT + "edge_weight[1] = -1.0"),
        (([[0, 1], [1, 0]], [1]), "one entry per edge is needed in each array, got "
         "len(edge_index[0]) = 2, len(edge_weight) = 1"),
        (([[0, 1], [1]],), "the rows of edge_index must be equally long, got "
         "len(edge_index[0]) = 2, len(edge_index[1]) = 1"),
        (([[0.5, 1], [1, 0.5]],), INTEGER + "edge_index[0][0] = 0.5 (float64)"),
    ],
)  # fmt: skip
def test_bad_edge_index_is_named(arguments, text):
    with pytest.raises(ValueError, match=message(text)):
        Graph.from_edge_index(*arguments[:2], n_nodes=arguments[2] if arguments[2:] else None)


def test_names_of_networkx_nodes_are_kept():
    graph = Graph.from_networkx(nx.Graph([("bob", "ann"), ("ann", "cy")]))
    assert graph.nodes.ids().tolist() == ["bob", "ann", "cy"]
    graph = Graph.from_networkx(nx.Graph([(34, 1), (1, 7)]))
    assert graph.nodes.ids().tolist() == [34, 1, 7]
    assert Graph.from_networkx(nx.path_graph(3)).nodes is None
    graph = Graph.from_networkx(nx.Graph([((0, 1), "a"), ("a", 5), (5, 2**70)]))
    assert graph.nodes.ids().tolist() == ["(0, 1)", "a", "5", str(2**70)]
    assert graph.nodes.find(["5"]).tolist() == [2]
    assert Graph.from_networkx(nx.Graph()).n_nodes == 0


# The snapshot of a sparsifier that forgets is a graph like any other.
U, V = np.triu_indices(30, 1)
T = np.random.default_rng(0).uniform(0.0, 10.0, len(U))


@pytest.fixture(params=[{"half_life": 3.0}, {"horizon": 5.0}], ids=["half-life", "window"])
def snapshot(request: pytest.FixtureRequest) -> Graph:
    sparsifier = StreamingSparsifier(n_nodes=30, random_state=0, **request.param)
    return sparsifier.update(U, V, t=T).snapshot()


def without_view(graph: Graph) -> Graph:
    return Graph.from_edges(*graph.edges(), n_nodes=graph.n_nodes)


@pytest.mark.parametrize("epsilon", [None, 0.9])
def test_estimators_use_all_its_edges(snapshot: Graph, epsilon: float | None):
    labels = {0: "a", 29: "b"}
    models = [
        HFSClassifier(epsilon=epsilon, random_state=0).fit_edges(graph, labels)
        for graph in (snapshot, without_view(snapshot))
    ]
    assert models[0].graph_ == models[1].graph_
    assert models[0].graph_.n_edges > 0
    assert models[0].reached_.all()


def test_it_can_be_the_graph_that_is_approximated(snapshot: Graph):
    certificate = certify(snapshot, snapshot, random_state=0)
    assert certificate.epsilon < 1e-9
    refined = refine(snapshot, snapshot, [0, 29], [1.0, -1.0], random_state=0)
    direct = solve_hfs(without_view(snapshot), [0, 29], [1.0, -1.0], random_state=0)
    np.testing.assert_allclose(refined.f, direct.f, atol=1e-6)
