"""Graphs of other libraries, matrices, tables and lists where edges are taken."""

import types
import uuid

import numpy as np
import pytest
import scipy.sparse

from ohmlearn import (
    EdgeLog,
    Graph,
    GraphFeatureClassifier,
    GraphSmoother,
    HFSClassifier,
    HFSRegressor,
    LaplacianSolver,
    StreamingSparsifier,
    certify,
    effective_resistance,
    read_edges,
    refine,
    solve_hfs,
    sparsify,
)
from ohmlearn.features import smooth
from ohmlearn.graph.graph import graph_of
from ohmlearn.paper import SparseHFS, spectral_extremes

networkx = pytest.importorskip("networkx")
NAMES = ["p1", "p2", "p3", "p4"]
LABELS = {"p1": "a", "p4": "b"}
COLUMNS = {"u": NAMES[:-1], "v": NAMES[1:]}


def path():
    return networkx.Graph(list(zip(*COLUMNS.values(), strict=True)))


def make_table(library):
    if library == "lazy":
        return pytest.importorskip("polars").LazyFrame(COLUMNS)
    if library == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(make_table("pyarrow"))
    found = pytest.importorskip(library)
    return found.table(COLUMNS) if library == "pyarrow" else found.DataFrame(COLUMNS)


def answers(model):
    return dict(zip(model.nodes_.ids().tolist(), model.transduction_.tolist(), strict=True))


EXPECTED = {"p1": "a", "p2": "a", "p3": "b", "p4": "b"}


@pytest.mark.parametrize("epsilon", [0.5, None])
def test_networkx_in_estimators(epsilon):
    model = HFSClassifier(epsilon=epsilon, random_state=0)
    assert answers(model.fit_edges(path(), LABELS)) == EXPECTED
    assert answers(model.refine(path())) == EXPECTED
    model = HFSClassifier(epsilon=epsilon, random_state=0)
    assert answers(model.update(path()).relabel(LABELS)) == EXPECTED


@pytest.mark.parametrize("epsilon", [0.5, None])
@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "pyarrow", "duckdb"])
def test_tables_in_estimators(library, epsilon):
    pytest.importorskip("pyarrow")
    table = make_table(library)
    model = HFSClassifier(epsilon=epsilon, random_state=0).fit_edges(table, LABELS)
    assert answers(model) == EXPECTED
    assert answers(model.refine(table)) == EXPECTED
    assert answers(model.update(table)) == EXPECTED
    assert model.nodes_.ids().tolist() == NAMES


def test_paths_in_estimators(tmp_path):
    """One path, or a list of them, is read; a list of strings is no list of edges."""
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    files[0].write_text("u,v\np1,p2\np2,p3\n")
    files[1].write_text("u,v\np3,p4\n")
    for given in (files, [str(path) for path in files]):
        model = HFSClassifier(random_state=0).fit_edges(given, LABELS)
        assert answers(model) == EXPECTED
        assert answers(model.update(given)) == EXPECTED
    with pytest.raises(FileNotFoundError, match="there is no file p1 p2"):
        HFSClassifier().fit_edges(["p1 p2", "p2 p3"], LABELS)


def test_numbers_of_a_table_are_ids():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"u": [30, 20, 10], "v": [20, 10, 0]})
    model = HFSClassifier(random_state=0).fit_edges(frame, {30: "a", 0: "b"})
    assert answers(model) == {30: "a", 20: "a", 10: "b", 0: "b"}
    with pytest.raises(TypeError, match=r"edges have ids, so labels need them, too; give y as a"):
        HFSClassifier().fit_edges(frame, ["a", None, None, "b"])


@pytest.mark.parametrize("kind", ["networkx", "pandas"])
def test_sparsifiers_and_logs(tmp_path, kind):
    if kind == "pandas":
        pytest.importorskip("pyarrow")
    edges = path() if kind == "networkx" else make_table(kind)
    sparsifier = StreamingSparsifier(random_state=0).update(edges)
    assert sparsifier.nodes.ids().tolist() == NAMES
    kept = sparsify(edges, random_state=0)
    assert (kept.n_edges, kept.nodes.ids().tolist()) == (3, NAMES)
    for h in (sparsifier, kept):
        assert certify(edges, h).epsilon == pytest.approx(0.0, abs=1e-6)
        assert refine(edges, h, [0, 3], [1.0, -1.0]).f.shape == (4,)
    with EdgeLog(tmp_path / "log") as log:
        assert log.append(edges) == 3
        assert log.nodes.ids().tolist() == NAMES


def test_a_table_after_numbers_is_refused():
    table = make_table("pandas")
    ask = r"numbers, but no ids, .* a DataFrame .* read all edges with ohmlearn\.read_edges"
    with pytest.raises(TypeError, match=ask):
        StreamingSparsifier(random_state=0).update([0], [1]).update(table)
    with pytest.raises(TypeError, match=ask):
        certify(table, Graph.from_edges([0, 1, 2], [1, 2, 3]))
    with pytest.raises(TypeError, match=ask):
        HFSClassifier(random_state=0).update(([0], [1])).update(table)
    with pytest.raises(TypeError, match=r"are needed, got pandas\.(core\.frame\.)?DataFrame"):
        Graph.from_batches(table)


@pytest.mark.parametrize("epsilon", [0.5, None])
def test_numbers_and_names_of_networkx_are_not_mixed(epsilon):
    numbers, names = networkx.path_graph(3), networkx.Graph([(10, 20)])
    with pytest.raises(TypeError, match=r"numbers, but no ids, with which"):
        HFSClassifier(epsilon=epsilon, random_state=0).update(numbers).update(names)
    model = HFSClassifier(epsilon=epsilon, random_state=0).update(names).update(numbers)
    assert model.nodes_.ids().tolist() == [10, 20, 0, 1, 2]  # numbers are names, too
    model = HFSClassifier(epsilon=epsilon, random_state=0).update(numbers)
    model.update(networkx.path_graph(4)).relabel({0: "a", 3: "b"})
    assert model.transduction_.tolist() == ["a", "a", "b", "b"]


def test_what_is_no_graph_is_named():
    for take in (LaplacianSolver, sparsify, read_edges, HFSClassifier().update):
        with pytest.raises(
            TypeError, match=r"needed, got types\.SimpleNamespace; give its edges as"
        ):
            take(types.SimpleNamespace())
    with pytest.raises(TypeError, match=r"call fit_edges\(G, y\)"):
        HFSClassifier().fit(Graph.from_edges([0], [1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="G is directed"):
        HFSClassifier().fit_edges(networkx.DiGraph(path()), LABELS)


# Every source, given to every function, is what the Graph of the same edges is. Nodes are numbered
# in the same order everywhere.
U, V = np.triu_indices(8, 1)
U, V = U[(U + V) % 3 > 0], V[(U + V) % 3 > 0]
W = 1.0 + np.arange(len(U)) % 4
GRAPH = Graph.from_edges(U, V, W)
ADJACENCY = GRAPH.to_scipy()
EDGE_INDEX, EDGE_WEIGHT = np.array(ADJACENCY.nonzero()), ADJACENCY.data
Y = {0: "a", 7: "b"}


class Tensor:
    """The part of the interface of a torch tensor that is used."""

    __module__ = "torch"
    layout = "torch.strided"

    def __init__(self, values):
        self.array = values
        self.shape = values.shape

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def numpy(self):
        return self.array


class SparseTensor(Tensor):
    layout = "torch.sparse_csr"

    def to_sparse_coo(self):
        return self

    coalesce = to_sparse_coo

    def indices(self):
        return Tensor(np.array(self.array.tocoo().coords))

    def values(self):
        return Tensor(self.array.tocoo().data)


class Data(types.SimpleNamespace):
    """As Data of PyTorch Geometric: its snapshot and update are not those of a sparsifier."""

    def snapshot(self, start_time, end_time):
        raise AssertionError

    update = snapshot


def as_networkx(kind):
    graph = kind()
    graph.add_nodes_from(range(8))
    graph.add_weighted_edges_from(zip(U.tolist(), V.tolist(), W.tolist(), strict=True))
    return graph


def as_igraph():
    found = pytest.importorskip("igraph").Graph(8, list(zip(U, V, strict=True)))
    found.es["weight"] = W
    return found


def as_networkit():
    found = pytest.importorskip("networkit").Graph(8, weighted=True)
    for u, v, w in zip(U, V, W, strict=True):
        found.addEdge(u, v, w)
    return found


def as_wide(matrix):
    matrix = scipy.sparse.csr_matrix(matrix)
    matrix.indices, matrix.indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    return matrix


def columns(library):
    found = pytest.importorskip("duckdb" if library == "duckdb" else library)
    pytest.importorskip("pyarrow")
    order = np.lexsort((U, V))  # ids appear in the order 0, 1, ...
    data = {"u": U[order], "v": V[order], "weight": W[order]}
    if library == "duckdb":
        return found.from_df(pytest.importorskip("pandas").DataFrame(data))
    return found.table(data) if library == "pyarrow" else found.DataFrame(data)


SOURCES = {
    "Graph": lambda: GRAPH,
    "arrays": lambda: (U, V, W),
    "list of batches": lambda: [(U[:5], V[:5], W[:5]), (U[5:], V[5:], W[5:])],
    "list of edges": lambda: list(zip(U.tolist(), V.tolist(), W.tolist(), strict=True)),
    "networkx": lambda: as_networkx(networkx.Graph),
    "networkx multigraph": lambda: as_networkx(networkx.MultiGraph),
    "adjacency dict": lambda: networkx.to_dict_of_dicts(as_networkx(networkx.Graph)),
    "igraph": as_igraph,
    "NetworKit": as_networkit,
    "dense": lambda: ADJACENCY.toarray(),
    "csr_array": lambda: ADJACENCY,
    "csr_matrix, int64": lambda: as_wide(ADJACENCY),
    "coo_array": ADJACENCY.tocoo,
    "PyG Data": lambda: Data(
        edge_index=Tensor(EDGE_INDEX), edge_attr=EDGE_WEIGHT[:, np.newaxis], num_nodes=8
    ),
    "torch sparse": lambda: SparseTensor(ADJACENCY),
    "pandas": lambda: columns("pandas"),
    "polars": lambda: columns("polars"),
    "pyarrow": lambda: columns("pyarrow"),
    "duckdb": lambda: columns("duckdb"),
}
FUNCTIONS = {
    "sparsify": lambda g: sparsify(g, random_state=0).edges()[2],
    "StreamingSparsifier": lambda g: StreamingSparsifier(random_state=0).update(g).weight_seen_,
    "certify": lambda g: certify(g, sparsify(g, random_state=0), random_state=0).epsilon,
    "refine": lambda g: refine(g, sparsify(g), [0, 7], [1.0, -1.0]).f,
    "solve_hfs": lambda g: solve_hfs(g, [0, 7], [1.0, -1.0]).f,
    "LaplacianSolver": lambda g: LaplacianSolver(g).solve(np.arange(8.0) - 3.5),
    "effective_resistance": lambda g: effective_resistance(g, [(0, 7)]),
    "fit_edges": lambda g: HFSClassifier(random_state=0).fit_edges(g, Y).scores_,
    "all edges": lambda g: HFSClassifier(epsilon=None).fit_edges(g, Y).refine(g).scores_,
    "update": lambda g: HFSClassifier(random_state=0).update(g).relabel(Y).scores_,
    "explain": lambda g: HFSClassifier(random_state=0).fit_edges(g, Y).explain(3, edges=g).margin,
    "HFSRegressor": lambda g: HFSRegressor().fit_edges(g, {0: 1.0, 7: 0.0}).transduction_,
    "GraphFeatureClassifier": lambda g: (
        GraphFeatureClassifier(random_state=0)
        .fit_edges(g, np.arange(16.0).reshape(8, 2) % 5, dict(enumerate("ababab")))
        .label_distributions_
    ),
    "GraphSmoother": lambda g: GraphSmoother(g).fit_transform(np.arange(8.0).reshape(8, 1)),
    "smooth": lambda g: smooth(g, np.arange(8.0).reshape(8, 1)),
    "read_edges": lambda g: np.sort(Graph.from_batches(read_edges(g)).degrees),
    "spectral_extremes": lambda g: spectral_extremes(g).lambda_n,
    "SparseHFS": lambda g: [
        answer.n_edges_seen
        for answer in SparseHFS([0, 7], [1.0, -1.0], n_nodes=8, random_state=0).answers(g)
    ],
}


def snapshot_of(given):
    """Return what can be compared of an object, to see that it was not changed."""
    if isinstance(given, types.SimpleNamespace):
        return {name: str(one) for name, one in vars(given).items()}
    if hasattr(given, "tocoo"):
        return [part.tolist() for part in (*given.tocoo().coords, given.data)]
    graph = graph_of(given)
    return str(given) if graph is None else [part.tolist() for part in graph.edges()]


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "Graph"])
def test_every_function_takes_every_source(source):
    given = SOURCES[source]()
    before = snapshot_of(given)
    for name, take in FUNCTIONS.items():
        expected, found = take(GRAPH), take(given)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=name)
    assert snapshot_of(given) == before


def test_ids_of_other_graphs():
    g = pytest.importorskip("igraph").Graph.TupleList([("p1", "p2"), ("p2", "p3"), ("p3", "p4")])
    assert answers(HFSClassifier(random_state=0).fit_edges(g, LABELS)) == EXPECTED
    given = {"p1": ["p2"], "p2": {"p1", "p3"}, "p3": {"p4": 1.0}}
    assert answers(HFSClassifier(random_state=0).fit_edges(given, LABELS)) == EXPECTED
    model = HFSClassifier(random_state=0).fit_edges([("p4", "p1")], LABELS)
    assert answers(model.update(path())) == EXPECTED  # matched by id, in another order
    ids = [uuid.UUID(int=at) for at in range(3)]
    model = HFSClassifier(random_state=0).update([(ids[0], ids[1]), (ids[1], ids[2])])
    assert model.nodes_.ids().tolist() == list(map(str, ids))
    with pytest.raises(ValueError, match="the edge between 'b' and 'a' has two weights, 1"):
        Graph.from_adjacency_dict({"a": {"b": 1}, "b": {"a": 2}})
    with pytest.raises(TypeError, match="the neighbours of 'a' must be a list or a dict, got str"):
        Graph.from_adjacency_dict({"a": "b"})
    g.vs["name"] = ["a", "b", "c", "a"]
    with pytest.raises(ValueError, match="the nodes 'a' and 'a' have the same name as text"):
        Graph.from_igraph(g)


def test_two_kinds_of_nodes():
    B = scipy.sparse.random_array((3, 5), density=0.6, rng=0, format="csr")
    graph = Graph.from_biadjacency(B, kinds=("user", "item"))
    whole = scipy.sparse.block_array([[None, B], [B.T, None]])
    assert graph == Graph.from_scipy(whole) == Graph.from_biadjacency(B.toarray())
    assert graph.nodes.kinds == ("user", "item")
    with pytest.raises(ValueError, match=r"square matrix.*; .* use Graph\.from_biadjacency"):
        sparsify(B)


# Out: round trips, and tables.


def test_round_trips():
    for graph in (GRAPH, Graph.from_networkx(path())):
        back = [
            Graph.from_networkx(graph.to_networkx()),
            Graph.from_igraph(pytest.importorskip("igraph") and graph.to_igraph()),
        ]
        for found in back:
            assert found == graph
            if graph.nodes is None:
                assert found.nodes is None
            else:
                assert found.nodes.ids().tolist() == graph.nodes.ids().tolist()
        assert Graph.from_scipy(graph.to_scipy()) == graph
        assert Graph.from_edge_index(*graph.to_edge_index()) == graph


def test_answers_graphs_and_reasons_are_tables():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    club = networkx.karate_club_graph()
    model = HFSClassifier(random_state=0).fit_edges(club, {0: "Mr. Hi", 33: "Officer"})
    frame = model.to_frame()
    assert frame["node"].tolist() == model.nodes_.ids().tolist() == list(range(34))
    assert frame["label"].tolist() == model.transduction_.tolist()
    np.testing.assert_array_equal(frame.iloc[:, 2:4], model.answer_.probabilities)
    pandas.testing.assert_frame_equal(
        polars.DataFrame(model).to_pandas()[["node"]], frame[["node"]]
    )
    n_hi = np.count_nonzero(model.transduction_ == "Mr. Hi")
    sql = "SELECT count(*) FROM model WHERE label = 'Mr. Hi'"
    assert duckdb.sql(sql).fetchall() == [(n_hi,)]  # finds the variable of this name
    number = HFSRegressor().fit_edges(path(), {"p1": 1.0, "p4": 0.0}).to_frame()
    assert number.columns.tolist() == ["node", "value", "reached"]
    assert number["node"].tolist() == NAMES
    features = GraphFeatureClassifier(random_state=0).fit_edges(
        club, np.eye(34)[:, :3], {0: 1, 9: 2}
    )
    assert features.to_frame()["label"].tolist() == features.transduction_.tolist()
    apart = Graph.from_edges([0, 2], [1, 3])
    with pytest.warns(UserWarning, match="components without a label"):
        unknown = HFSClassifier().fit_edges(apart, {0: "a", 1: "b"}).to_arrow()
    assert unknown["label"].null_count == unknown["probability_a"].null_count == 2
    sparsifier = StreamingSparsifier(random_state=0).update(path())
    for given in (sparsifier, Graph.from_networkx(path())):
        table = given.to_arrow()
        assert table.column_names == ["u", "v", "weight"]
        again = HFSClassifier(random_state=0).fit_edges(table, LABELS)
        assert answers(again) == EXPECTED
    found = model.suggest_labels(2)
    assert found.to_frame()["reason"].tolist() == [one.reason for one in found]
    why = model.explain(3)
    assert sum(why.to_arrow()["contribution"].to_pylist()) == pytest.approx(why.margin)


@pytest.mark.parametrize("epsilon", [0.5, None])
def test_skops(epsilon):
    skops = pytest.importorskip("skops.io")
    model = HFSClassifier(epsilon=epsilon, random_state=0).fit_edges(path(), LABELS)
    data = skops.dumps(model)
    loaded = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    assert answers(loaded) == EXPECTED
    assert answers(loaded.update([("p4", "p1")])) == answers(model.update([("p4", "p1")]))


def test_numbers_as_nodes_of_a_model_continue():
    model = HFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
    model.update(read_edges([(2, 3)], nodes=model.nodes_))
    assert answers(model) == {0: "a", 1: "a", 2: "b", 3: "b"}
