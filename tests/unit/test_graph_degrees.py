import numpy as np
import pytest

from ohmlearn import Graph, NodeTable, StreamingSparsifier, gallery, kernel_edges, read_edges
from ohmlearn.edges.wrapped import DegreeCounting
from ohmlearn.reading.as_edges import as_edges


def count(edges):
    return DegreeCounting(as_edges(edges))


def read_through(edges):
    for _ in edges:
        pass
    return edges


def test_degrees_of_all_forms():
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (2, 400))  # with self-loops and parallel edges
    w = rng.random(400)
    w[:20] = 0.0
    graph = Graph.from_edges(u, v, w, n_nodes=60)
    forms = [
        (u, v, w),
        [(u[:7], v[:7], w[:7]), (u[7:], v[7:], w[7:])],
        graph,
        [(u, v, w, np.arange(400.0))],
        [(u.tolist(), v.tolist(), w.tolist())],
    ]
    for form in forms:
        counted = read_through(count(form))
        np.testing.assert_allclose(counted.degrees_of(60), graph.degrees, rtol=1e-12)
    unweighted = read_through(count((u, v)))
    assert np.array_equal(unweighted.degrees_of(50), Graph.from_edges(u, v).degrees)


def test_bits_do_not_depend_on_batches():
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 9, (2, 1000), dtype=np.int32)
    w = 10.0 ** rng.uniform(-8, 8, 1000)
    expected = np.zeros(9)
    for a, b, weight in zip(u, v, w, strict=True):
        if a != b:
            expected[a] += weight
            expected[b] += weight
    for size in (1, 7, 100, 1000):
        parts = [slice(at, at + size) for at in range(0, 1000, size)]
        counted = read_through(count([(u[part], v[part], w[part]) for part in parts]))
        np.testing.assert_array_equal(counted.degrees_of(9), expected)
    narrow = read_through(count((u, v, w.astype(np.float32))))
    np.testing.assert_allclose(narrow.degrees_of(9), expected, rtol=1e-6)


def test_a_sparsifier_reads_it_as_before():
    graph = gallery.complete(200)
    batches = [graph.edges(), graph.edges()]
    counted = count(batches)
    found, expected = (
        StreamingSparsifier(epsilon=0.9, random_state=0).update(edges).snapshot()
        for edges in (counted, batches)
    )
    assert found == expected
    assert (counted.degrees_of(200) == 398.0).all()
    read_through(counted)  # counts from zero
    assert (counted.degrees_of(200) == 398.0).all()
    points = kernel_edges(np.random.default_rng(0).normal(size=(40, 2)))  # feeds samplers itself
    counted = count(points)
    assert counted.n_nodes == 40
    StreamingSparsifier(random_state=0).update(counted)
    np.testing.assert_allclose(counted.degrees_of(40), Graph.from_batches(points).degrees)


def test_ids_and_attributes_pass_through(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("a,b,day\nann,bob,2026-01-01\nbob,cy,2026-01-02\n")
    stream = read_edges(path, time="day")
    counted = count(stream)
    assert counted.nodes is stream.nodes
    assert (counted.rereadable, counted.sources) == (True, stream.sources)
    assert (counted.time_unit, counted.has_times, counted.n_nodes) == ("date", True, None)
    sparsifier = StreamingSparsifier(half_life="7d", random_state=0).update(counted)
    assert isinstance(sparsifier.nodes, NodeTable)
    assert sparsifier.nodes is stream.nodes
    assert counted.degrees_of(3).tolist() == [1.0, 2.0, 1.0]
    assert count([]).n_nodes is None
    networkx = pytest.importorskip("networkx")
    assert count(networkx.Graph([("x", "y")])).nodes.ids().tolist() == ["x", "y"]


def test_batches_that_are_refused():
    counted = count([([0], [1]), ([0], [2], [-1.0])])
    with pytest.raises(ValueError, match=r"but w\[0\] = -1\.0"):
        StreamingSparsifier(random_state=0).update(counted)
    assert counted.degrees_of(3).tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"but w\[0\] = -1\.0"):
        read_through(counted)
    with pytest.raises(FileNotFoundError, match="there is no file none"):
        read_through(count("none.csv"))
