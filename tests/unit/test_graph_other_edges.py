"""Graphs of networkx, tables and data frames where edges are taken."""

import numpy as np
import pytest

from ohmlearn import (
    EdgeLog,
    Graph,
    HFSClassifier,
    StreamingSparsifier,
    certify,
    read_edges,
    refine,
    sparsify,
)

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
    with pytest.raises(TypeError, match="got a DataFrame; read it with"):
        Graph.from_batches(table)


@pytest.mark.parametrize("epsilon", [0.5, None])
def test_numbers_and_names_of_networkx_are_not_mixed(epsilon):
    numbers, names = networkx.path_graph(3), networkx.Graph([(10, 20)])
    with pytest.raises(TypeError, match=r"Graph\.from_networkx"):
        HFSClassifier(epsilon=epsilon, random_state=0).update(numbers).update(names)
    with pytest.raises(ValueError, match="number"):
        HFSClassifier(epsilon=epsilon, random_state=0).update(names).update(numbers)
    model = HFSClassifier(epsilon=epsilon, random_state=0).update(numbers)
    model.update(networkx.path_graph(4)).relabel({0: "a", 3: "b"})
    assert model.transduction_.tolist() == ["a", "a", "b", "b"]


def test_messages_name_the_maker():
    with pytest.raises(TypeError, match=r"Graph\.from_networkx"):
        read_edges(path())
    with pytest.raises(TypeError, match=r"call fit_edges\(G, y\)"):
        HFSClassifier().fit(Graph.from_edges([0], [1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="G is directed"):
        HFSClassifier().fit_edges(networkx.DiGraph(path()), LABELS)
