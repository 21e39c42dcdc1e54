import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

import ohmlearn
from ohmlearn import Graph

# 0 -2- 1 -3- 2, and 3 alone
ADJACENCY = np.array([[0, 2, 0, 0], [2, 0, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0]], dtype=float)
LAPLACIAN = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY


def path() -> Graph:
    return Graph.from_edges([0, 2], [1, 1], [2.0, 3.0], n_nodes=4)


def message(text: str) -> str:
    return "^" + re.escape(text)


def test_from_edges_gives_sorted_symmetric_rows():
    graph = path()
    np.testing.assert_array_equal(graph.indptr, [0, 1, 3, 4, 4])
    np.testing.assert_array_equal(graph.indices, [1, 0, 2, 1])
    np.testing.assert_array_equal(graph.weights, [2, 2, 3, 3])
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    assert (graph.n_nodes, graph.n_edges) == (4, 2)


def test_self_loops_and_zero_weights_are_dropped_and_counted():
    graph = Graph.from_edges([0, 1, 2, 2, 0], [0, 0, 2, 1, 2], [1, 2, 0, 0, -0.0])
    np.testing.assert_array_equal(graph.to_scipy().toarray(), [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    assert graph.n_self_loops_dropped == 2
    assert graph.n_zero_weights_dropped == 2


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


@pytest.mark.parametrize("n_nodes", [0, 3, np.int64(3)])
def test_no_edges(n_nodes):
    graph = Graph.from_edges([], [], n_nodes=n_nodes)
    assert (graph.n_nodes, graph.n_edges) == (n_nodes, 0)
    assert graph.to_scipy().shape == graph.laplacian().shape == (n_nodes, n_nodes)
    assert graph.degrees.dtype == np.float64
    np.testing.assert_array_equal(graph.degrees, np.zeros(n_nodes))
    assert graph.components()[0] == n_nodes
    np.testing.assert_array_equal(graph.components()[1], np.arange(n_nodes))
    assert Graph.from_scipy(graph.to_scipy()) == graph
    assert Graph.from_laplacian(graph.laplacian()) == graph


def test_n_nodes_is_the_largest_id_plus_one():
    assert Graph.from_edges([0, 5], [1, 5]).n_nodes == 6
    assert Graph.from_edges([], []).n_nodes == 0


NODE = "node ids must lie in 0, ..., n_nodes - 1 with n_nodes = "
WEIGHT = "weights must be finite and not negative, but "
INTEGER = "node ids must be integers, but "
REAL = "weights must be real numbers, but "


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([0, -1], [1, 1]), NODE + "2, but u[1] = -1"),
        (([0, 1], [1, 7], None, 5), NODE + "5, but v[1] = 7; raise n_nodes, or leave it out"),
        (([0], [0], None, 0), NODE + "0, but u[0] = 0"),
        (([0, 1], [1, 0], [1, -2.0]), WEIGHT + "w[1] = -2.0; drop or correct"),
        (([0, 1], [1, 0], [np.nan, 1]), WEIGHT + "w[0] = nan"),
        (([0, 1], [1, 1], [1, np.inf]), WEIGHT + "w[1] = inf"),
        (([0, 1], [1, 0], [1e308, 1e308]), "the weights of parallel edges add up past the largest "
         "float64, starting with w[0] = 1e+308; scale all weights down"),
        (([0.0, 1.5], [1, 2]), INTEGER + "u[1] = 1.5 (float64); number the nodes"),
        (([0, 1], [1.0, 2.0]), INTEGER + "v[0] = 1.0 (float64)"),
        (([0.0, np.nan], [1, 2]), INTEGER + "u[1] = nan (float64)"),
        (([True, False], [1, 2]), INTEGER + "u[0] = True (bool)"),
        (([1j], [1]), INTEGER + "u[0] = 1j (complex128)"),
        ((["a"], [1]), INTEGER + "u[0] = a (<U1)"),
        (([0, 1], [1, 2], [1j, 2]), REAL + "w[0] = 1j (complex128); cast them with"),
        (([0, 1], [1, 2], [True, True]), REAL + "w[0] = True (bool)"),
        (([0, 1], [1, 2], [1.0, None]), REAL + "w[1] = None (object)"),
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
        (([0], [1], None, 2**31), "n_nodes must lie between 0 and 2**31 - 1 = 2147483647, got 2"),
        (([0], [1], None, -1), "n_nodes must lie between 0 and 2**31 - 1 = 2147483647, got -1"),
        (([0], [1], None, 2.0), "n_nodes must be an integer, got 2.0"),
        (([0], [1], None, True), "n_nodes must be an integer, got True"),
    ],
)  # fmt: skip
def test_bad_edges_are_named(arguments, text):
    with pytest.raises(ValueError, match=message(text)):
        Graph.from_edges(*arguments[:3], n_nodes=arguments[3] if len(arguments) > 3 else None)


def test_matrices_out():
    graph = path()
    np.testing.assert_array_equal(graph.to_scipy().toarray(), ADJACENCY)
    np.testing.assert_array_equal(graph.laplacian().toarray(), LAPLACIAN)
    assert isinstance(graph.to_scipy(), sp.csr_array)
    assert isinstance(graph.laplacian(), sp.csr_array)
    graph.to_scipy().data[:] = 7  # a copy
    assert graph == path()


def test_degrees_and_components():
    graph = path()
    np.testing.assert_array_equal(graph.degrees, [2, 5, 3, 0])
    assert graph.degrees is graph.degrees
    n_components, labels = graph.components()
    assert n_components == 2
    np.testing.assert_array_equal(labels, [0, 0, 0, 1])


def test_equality():
    assert path() == path()
    assert path() != Graph.from_edges([0, 2], [1, 1], [2.0, 3.5], n_nodes=4)
    assert path() != Graph.from_edges([0, 2], [1, 1], [2.0, 3.0], n_nodes=5)
    assert path() != "path"


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_are_equal_and_read_only(clone):
    original = Graph.from_edges([0, 0], [0, 1])
    for graph in (original, clone(original)):
        assert graph == original
        assert graph.n_self_loops_dropped == 1
        for array in (graph.indptr, graph.indices, graph.weights, graph.degrees):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_a_graph_is_made_by_name():
    with pytest.raises(TypeError, match=r"^make a graph with Graph\.from_edges"):
        Graph()


def test_lazy_names():
    assert "Graph" in dir(ohmlearn)
    assert ohmlearn.Graph is Graph
    with pytest.raises(AttributeError, match=r"^module 'ohmlearn' has no attribute 'Grahp'"):
        _ = ohmlearn.Grahp
