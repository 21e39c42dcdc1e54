"""Passes over edges: degrees that are counted on the way, and products with many columns."""

import os
import subprocess
import sys

import numpy as np
import pytest

from ohmlearn import (
    Graph,
    StreamingSparsifier,
    gallery,
    kernel_edges,
    read_edges,
    refine,
    sparsify,
)
from ohmlearn.edges.passes import multiply_laplacian
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


# Passes with many columns.
N_NODES, N_COLUMNS = 400, 30


def random_edges(n_edges, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, N_NODES, (2, n_edges))
    return u, v, rng.uniform(0.1, 2.0, n_edges)


def split(edges, n_batches):
    return list(zip(*(np.array_split(array, n_batches) for array in edges), strict=True))


def multiply(edges, x, n_jobs=1):
    component = np.zeros(N_NODES, dtype=np.int32)
    return as_edges(edges).open_passes(component, "this", n_jobs).multiply(x)


@pytest.mark.parametrize("n_edges", [2000, 40_000])  # too few to sort, and enough
@pytest.mark.parametrize("n_columns", [15, N_COLUMNS])
def test_neither_batches_nor_threads_change_a_bit(n_edges, n_columns):
    edges = random_edges(n_edges)
    x = np.random.default_rng(1).standard_normal((N_NODES, n_columns))
    expected = multiply([edges], x)
    for n_jobs in (1, 2, 12):  # many sort the edges
        for n_batches in (1, 7, 60):
            found = multiply(split(edges, n_batches), x, n_jobs)
            assert found.tobytes() == expected.tobytes()


def test_product_is_that_of_the_graph():
    graph = gallery.complete(N_NODES)
    x = np.random.default_rng(1).standard_normal((N_NODES, N_COLUMNS))
    found = multiply(split(graph.edges(), 5), x)
    np.testing.assert_allclose(found, multiply_laplacian(graph, x), rtol=1e-12, atol=1e-11)


def test_refine_agrees_with_single_columns():
    edges, nodes, y = [random_edges(30_000)], np.arange(N_COLUMNS), np.eye(N_COLUMNS)
    h = sparsify(edges, n_nodes=N_NODES, epsilon=0.9, random_state=0)
    wide = refine(edges, h, nodes, y, passes=25, tol=1e-9, random_state=0)
    narrow = refine(edges, h, nodes, y[:, :3], passes=25, tol=1e-9, random_state=0)
    assert wide.converged.all()
    np.testing.assert_allclose(wide.f[:, :3], narrow.f, atol=1e-8 * np.abs(narrow.f).max())


CHILD = """
import sys
import numpy as np
from ohmlearn.edges import Batch
from ohmlearn import _core
from ohmlearn.edges.passes import read_pass
from ohmlearn.report.progress import peak_memory
n, columns, m = 150_000, int(sys.argv[1]), 1_100_000
rng = np.random.default_rng(0)
x, edges = rng.standard_normal((n, columns)), rng.integers(0, n, (2, m))
batches = [Batch(edges[0], edges[1], np.ones(m))] * 2  # the second is not read where it is
read_pass(batches, x[:, :1].copy(), None, np.empty(0, np.int32))
before = peak_memory()
read_pass(batches, x, None, np.empty(0, np.int32))
print(peak_memory() - before, 8 * n * columns + _core.EdgePass.bytes(n, columns, 1))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("n_columns", [4, 40])
def test_a_pass_takes_the_memory_that_is_said(n_columns):
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(n_columns)],
        env=dict(os.environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    taken, said = map(int, child.stdout.split())
    assert taken <= said + (8 << 20)  # pages of 2 MiB, and what malloc keeps
    assert taken >= 0.25 * said
