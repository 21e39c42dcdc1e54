"""Algorithms 1 and 2 of the paper: properties that hold for all random numbers."""

import math

import numpy as np
import pytest

from ohmlearn import Graph, solve_hfs, sparsify
from ohmlearn.paper import KelnerLevin, SparseHFS


def make_small(n_nodes, epsilon, seed, constant, **options):
    """A sketch with fewer copies and smaller blocks, so that a short stream has several blocks."""
    block = math.ceil(constant * n_nodes * math.log(n_nodes) ** 2 / epsilon**2)
    how = {"constant": constant, "random_state": seed, "block_size": block}
    return KelnerLevin(n_nodes, epsilon, **how, **options)


def random_stream(n_nodes, n_edges, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, n_nodes, n_edges)
    v = (u + rng.integers(1, n_nodes, n_edges)) % n_nodes
    return u.astype(np.int32), v.astype(np.int32), 10 ** rng.uniform(-1, 1, n_edges)


def feed(sketch, edges, cuts=()):
    for part in zip(*(np.split(column, cuts) for column in edges), strict=True):
        sketch.update(*part)
    return sketch


def assert_same(a, b):
    """Check that the states and graphs of two sketches are equal bit for bit."""
    state, other = a.get_state(), b.get_state()
    assert state.keys() == other.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
    assert a.graph() == b.graph()


def test_sizes_are_the_papers():
    sketch = KelnerLevin(n_nodes=600, epsilon=0.8, random_state=0)
    assert sketch.block_size == math.ceil(600 * math.log(600) ** 2 / 0.64)
    assert sketch.n_copies == math.ceil(25 * 600 * math.log(600) ** 2 / 0.64)
    tenth = KelnerLevin(n_nodes=600, epsilon=0.8, random_state=0, constant=0.1)
    assert tenth.block_size == sketch.block_size


@pytest.mark.parametrize("n_nodes", [30, 600])  # resistances exact and sketched
def test_neither_batches_nor_threads_change_a_bit(n_nodes):
    edges = random_stream(n_nodes, 3000)
    constant = 0.2 if n_nodes == 30 else 0.03

    def make(**options):
        return make_small(n_nodes, 0.8, seed=5, constant=constant, **options)

    whole = feed(make(), edges)
    assert whole.n_resamples >= 2
    assert 0 < whole.n_rows < 3000
    size = whole.block_size
    for cuts in ([1, 2, 700], [size, 2 * size], [size - 1, size + 1], range(0, 3000, 97)):
        assert_same(whole, feed(make(), edges, cuts))
    assert_same(whole, feed(make(n_jobs=2), edges))


def test_graph_is_that_of_a_flush_and_changes_nothing():
    edges = random_stream(30, 2000)
    sketch, twin = (feed(make_small(30, 0.8, 1, constant=0.2), edges) for _ in range(2))
    h, *_, is_whole = sketch.graph(), *sketch.snapshot()
    assert_same(sketch, twin)
    twin.flush()
    assert len(twin.get_state()["buffer_u"]) == 0
    assert twin.graph() == h
    assert not is_whole
    n_resamples = twin.n_resamples
    assert twin.flush().n_resamples == n_resamples


def test_probabilities_and_copies_only_fall():
    u, v, w = random_stream(12, 600)
    w += np.arange(600)  # different weights identify the rows
    sketch = make_small(12, 0.5, 0, constant=0.1)
    before, dropped = {}, set()
    for at in range(0, 600, 30):
        sketch.update(u[at : at + 30], v[at : at + 30], w[at : at + 30])
        state = sketch.get_state()
        rows = zip(state["row_a"], state["row_p"], state["row_q"], strict=True)
        now = {a: (p, q) for a, p, q in rows}
        for a in now.keys() & before.keys():
            assert now[a][0] <= before[a][0]
            assert 0 < now[a][1] <= before[a][1]
        assert all(q <= sketch.n_copies for _, q in now.values())
        dropped |= before.keys() - now.keys()
        assert not dropped & now.keys()
        before = now
    assert sketch.n_resamples >= 19
    assert dropped


def test_first_block_by_hand():
    """A triangle with a tail: p = a R / (alpha (n - 1)), and the weights are q a / (N p)."""
    sketch = KelnerLevin(4, 0.5, random_state=0)
    sketch.update(np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3]), np.full(4, 2.0))
    h, state = sketch.graph(), sketch.flush().get_state()
    np.testing.assert_allclose(state["row_p"], np.array([2, 2, 2, 3]) / 3 / (2 * 3))
    weight = state["row_q"] * 2.0 / (sketch.n_copies * state["row_p"])
    ends = state["row_u"], state["row_v"]
    assert [column.tolist() for column in ends] == [[0, 1, 0, 2], [1, 2, 2, 3]]
    assert h == Graph.from_edges(*ends, weight)


def test_parallel_arrivals_are_rows_of_their_own():
    u, v = np.zeros(3, np.int32), np.ones(3, np.int32)
    sketch = KelnerLevin(2, 0.3, random_state=0)
    sketch.update(u, v, np.array([1.0, 2.0, 1.0]))
    sketch.flush()
    state = sketch.get_state()
    assert sketch.n_rows == 3
    assert state["row_a"].tolist() == [1.0, 2.0, 1.0]
    # The resistance of the pair is 1 / 4 for each of its rows.
    np.testing.assert_allclose(state["row_p"], np.array([1, 2, 1]) / 4 * 0.7)


def test_self_loops_and_zero_weights_are_dropped_and_counted():
    sketch = KelnerLevin(5, 0.5, random_state=0)
    sketch.update(np.array([0, 1, 2, 3]), np.array([1, 1, 3, 3]), np.array([1.0, 2.0, 0.0, 0.0]))
    assert (sketch.position, sketch.n_self_loops, sketch.n_zero_weights) == (4, 2, 1)
    assert [column.tolist() for column in sketch.graph().edges()[:2]] == [[0], [1]]


@pytest.mark.parametrize("n_nodes", [0, 1, 2, 7])
def test_nothing_in_nothing_out(n_nodes):
    sketch = KelnerLevin(n_nodes, 0.5, random_state=0)
    nothing = np.empty(0, np.int32)
    sketch.update(nothing, nothing, np.empty(0))
    if n_nodes > 0:
        sketch.update(np.zeros(3, np.int32), np.zeros(3, np.int32), np.ones(3))
    assert sketch.flush().graph().n_edges == 0


def test_state_goes_on_to_the_same_bits():
    edges = random_stream(30, 3000)
    first, second = ([column[part] for column in edges] for part in (np.s_[:1700], np.s_[1700:]))
    sketch = feed(make_small(30, 0.8, 9, constant=0.2), first)
    state = sketch.get_state()
    resumed = make_small(30, 0.8, 9, constant=0.2).set_state(state)
    assert_same(sketch, resumed)
    assert_same(feed(sketch, second), feed(resumed, second))
    # The state is a copy, so later updates did not change it.
    again = make_small(30, 0.8, 9, constant=0.2).set_state(state)
    assert_same(again, feed(make_small(30, 0.8, 9, constant=0.2), first))


def test_merge_keeps_rows_then_resamples():
    a, b = (
        feed(make_small(30, 0.8, seed, constant=0.2), random_stream(30, 1500 + 400 * seed, seed))
        for seed in (1, 2)
    )
    rows = {name: np.r_[a.get_state()[name], b.get_state()[name]] for name in ("row_p", "row_q")}
    expected = a.position + b.position
    buffered = len(a.get_state()["buffer_u"]) + len(b.get_state()["buffer_u"])
    assert buffered < a.block_size  # the merge itself does not resample
    n_blocks = max(a.n_resamples, b.n_resamples)
    a.merge([b])
    for name, column in rows.items():
        np.testing.assert_array_equal(a.get_state()[name], column)
    assert (a.position, a.n_resamples) == (expected, n_blocks)
    assert len(a.get_state()["buffer_u"]) == buffered
    merged = a.n_rows
    a.flush()
    assert a.n_resamples == n_blocks + 1
    assert a.n_rows < merged + buffered


def test_merge_of_flushed_sketches_resamples_at_the_flush():
    a, b = (feed(make_small(20, 0.8, s, constant=0.2), random_stream(20, 900, s)) for s in (1, 2))
    a.flush()
    b.flush()
    a.merge([b])
    n_blocks, n_rows = a.n_resamples, a.n_rows
    a.flush()
    assert a.n_resamples == n_blocks + 1
    assert a.n_rows < n_rows


def test_sparse_hfs_answers_after_each_block():
    u, v, w = random_stream(60, 9000)
    labelled, y = [3, 40], np.array([[1.0], [-1.0]])
    how = {"n_nodes": 60, "epsilon": 0.9, "random_state": 5}
    job = SparseHFS(labelled, y, gamma=0.5, **how)
    size = job.sparsifier.block_size
    batches = [(u[i : i + 700], v[i : i + 700], w[i : i + 700]) for i in range(0, 9000, 700)]
    answers = list(job.answers(batches))
    assert [answer.n_edges_seen for answer in answers] == [*range(size, 9000, size), 9000]
    for answer in answers:  # the same as with the other names of the method
        end = answer.n_edges_seen
        h = sparsify((u[:end], v[:end], w[:end]), scheme="paper", constants="theory", **how)
        assert answer.graph == h
        expected = solve_hfs(h, labelled, y, gamma=0.5, random_state=5)
        np.testing.assert_array_equal(answer.f, expected.f)
        laplacian = 0.5 * 2 * h.laplacian().toarray() + np.diag(np.isin(np.arange(60), labelled))
        right = np.full(60, -answer.mu[0])
        right[labelled] += y.ravel()
        np.testing.assert_allclose(laplacian @ answer.f.ravel(), right, atol=1e-7)
        assert abs(answer.f.sum()) < 1e-7


def test_sparse_hfs_without_edges_has_one_answer():
    (answer,) = SparseHFS([0], [1.0], n_nodes=3, random_state=0).answers([])
    assert answer.n_edges_seen == answer.graph.n_edges == 0


@pytest.mark.parametrize("seed", range(5))
def test_components_stay_connected(seed):
    """Two dense clusters joined by one bridge, a separate third cluster, and an isolated node.

    The bridge is lost with probability exp(-alpha ln(n)^2 / epsilon^2) < 1e-40.
    """
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(15, 1)
    u = np.r_[u, 3, u + 15, u + 30]
    v = np.r_[v, 20, v + 15, v + 30]
    order = np.concatenate([rng.permutation(len(u)) for _ in range(12)])
    bridge = (u == 3) & (v == 20)
    order = np.r_[np.flatnonzero(bridge), order[~bridge[order]]]  # once, and first
    sketch = KelnerLevin(46, 0.8, random_state=seed)
    sketch.update(u[order], v[order], np.ones(len(order)))
    assert sketch.n_resamples >= 3
    assert sketch.flush().n_rows < 0.9 * len(order)
    expected = Graph.from_edges(u, v, n_nodes=46).components()
    found = sketch.graph().components()
    assert found[0] == expected[0] == 3
    np.testing.assert_array_equal(found[1], expected[1])
