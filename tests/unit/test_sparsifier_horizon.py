"""Windows of a sparsifier with a horizon: which edges count, in H, in passes, in estimators."""

import math

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import HFSClassifier, StreamingSparsifier, certify, refine, solve_hfs
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import TimeView

N = 60
RNG = np.random.default_rng(0)
U, V = RNG.integers(0, N, 6000), RNG.integers(0, N, 6000)
W, T = RNG.uniform(0.5, 2.0, 6000), RNG.permutation(6000).astype(float)
EDGES = [(U[i::3], V[i::3], W[i::3], T[i::3]) for i in range(3)]


def window(since: float) -> Graph:
    inside = since <= T
    return Graph.from_edges(U[inside], V[inside], W[inside], n_nodes=N)


@pytest.fixture(scope="module")
def kept() -> StreamingSparsifier:
    return StreamingSparsifier(n_nodes=N, epsilon=0.9, horizon=4000, random_state=0).update(EDGES)


@pytest.mark.parametrize("since", [None, 3000.0, 5000.0, 5990.0])
def test_certify_and_refine_read_the_window(kept, since):
    start = 1999.0 if since is None else since
    exact = window(start)
    assert kept.view(since=since) == kept.snapshot(since=since).view == TimeView(since=start)
    found = certify(EDGES, kept, since=since, random_state=0)
    assert found.edges_read == found.passes * np.count_nonzero(start <= T)
    assert found.lost_edge is None
    assert found.extra_edge is None
    assert found.epsilon < 0.9
    labelled, values = [0, 1, 2], [1.0, -1.0, 0.5]
    answer = refine(EDGES, kept, labelled, values, since=since, passes=60, gamma=0.1)
    truth = solve_hfs(exact, labelled, values, gamma=0.1)
    np.testing.assert_allclose(answer.f, truth.f, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.8, None])
def test_an_estimator_answers_for_the_window(epsilon):
    labels = {0: "a", 1: "b", 2: "a"}
    how = {"epsilon": epsilon, "gamma": 0.3, "passes": 60, "random_state": 0}
    model = HFSClassifier(horizon=math.inf, **how).fit_edges(EDGES, labels, since=5000.0)
    truth = HFSClassifier(**how | {"epsilon": None}).fit_edges(window(5000.0), labels)
    np.testing.assert_allclose(model.scores_, truth.scores_, atol=1e-5)
    model.update(([0], [1], None, [6000.0]), since=5990.0, solve=False)
    assert model.graph_.view == TimeView(since=5990.0)


def test_the_horizon_bounds_what_can_be_asked(kept, tmp_path):
    with refuses(parameter="since", value=5):
        kept.snapshot(since=5)
    with pytest.raises(ValueError, match="it needs a half_life"):
        kept.snapshot(at=7000)
    with pytest.raises(ValueError, match="same horizon"):
        kept.merge(StreamingSparsifier(horizon=4001))
    kept.save(tmp_path / "h.ohm")
    loaded = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert loaded.snapshot(since=3000) == kept.snapshot(since=3000)
    assert loaded.latest_ == 5999.0


def test_neither_batches_nor_threads_change_a_bit():
    make = {"epsilon": 0.9, "horizon": 3000.0, "random_state": 1}
    u, v = np.tile(U, 4), np.tile(V, 4)
    t = np.concatenate([T + 6000 * copy for copy in range(4)])
    whole = StreamingSparsifier(**make).update(u, v, None, t)
    parts = StreamingSparsifier(**make, n_jobs=3)
    for first in range(0, len(u), 701):
        part = slice(first, first + 701)
        parts.update(u[part], v[part], None, t[part])
    assert whole.n_resamples_ > 1
    assert parts.snapshot(since=22_000) == whole.snapshot(since=22_000)
    assert parts.n_rows_ == whole.n_rows_


def test_an_edge_far_ahead_is_refused():
    kept = StreamingSparsifier(horizon=1.0).update([0], [1], None, [0.0])
    with refuses(parameter="horizon", value=1):
        kept.update([0], [1], None, [2e6])
    assert StreamingSparsifier(horizon=math.inf).update([0, 0], [1, 2], None, [0, 1e9]).n_rows_ == 2


def test_smallest_budget_is_met_and_leaves_windows_connected():
    n = 100
    rng = np.random.default_rng(0)
    u = rng.integers(0, n, 20_000)
    v = (u + rng.integers(1, n, 20_000)) % n
    # The newest edges, which are kept for certain, are all between two nodes.
    u, v = np.append(u, np.zeros(9_000, int)), np.append(v, np.ones(9_000, int))
    sparsifier = StreamingSparsifier(
        n_nodes=n, max_edges=2 * n, horizon=math.inf, random_state=0
    ).update(u, v, t=np.arange(len(u)))
    graph = sparsifier.snapshot()
    assert graph.n_edges <= 2 * n
    assert graph.components()[0] == 1


def test_budget_in_which_all_edges_fit_keeps_all():
    rng = np.random.default_rng(0)
    u = rng.integers(0, 50, 5_000)
    v = (u + rng.integers(1, 50, 5_000)) % 50
    edges = (u, v, None, np.arange(5_000))
    sparsifier = StreamingSparsifier(max_edges=5_000, epsilon=0.9, horizon=math.inf).update(edges)
    assert sparsifier.snapshot().edges()[2].sum() == 5_000
    assert sparsifier.snapshot().n_edges == Graph.from_edges(u, v).n_edges
    assert sparsifier.epsilon_estimate_ == sparsifier.epsilon_nominal_ == 0.0


def test_no_pair_of_a_window_is_lost_while_the_pairs_are_few() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 200, (2, 40_000))
    v[30_000:] = (u[30_000:] + rng.integers(1, 4, 10_000)) % 200  # a ring, with a few long edges
    v[30_000:30_010] = (u[30_000:30_010] + 100) % 200
    kept = StreamingSparsifier(n_nodes=200, epsilon=0.8, horizon=math.inf, random_state=0)
    kept.update(u, v, None, np.arange(40_000))
    for since in (30_000, 30_500, 35_000):
        graph = Graph.from_edges(u[since:], v[since:], n_nodes=200)
        found = kept.snapshot(since=since)
        assert [x.tolist() for x in found.edges()[:2]] == [x.tolist() for x in graph.edges()[:2]]
    assert kept.n_rows_ < 15_000


def test_since_without_horizon_leaves_out_earlier_edges() -> None:
    u, v = np.triu_indices(60, 1)
    t = np.random.default_rng(0).random(len(u))
    edges, labels = [(u, v, None, t)], {0: "a", 1: "b"}
    late = t >= 0.5
    how = {"epsilon": 0.9, "calibration": None, "random_state": 0}
    model = HFSClassifier(**how).fit_edges(edges, labels, since=0.5)
    same = HFSClassifier(**how).fit_edges((u[late], v[late]), labels, n_nodes=60)
    assert np.array_equal(model.scores_, same.scores_)
    model.refine(edges, passes=9)
    same.refine((u[late], v[late]), passes=9)
    assert np.array_equal(model.scores_, same.scores_)
    n_before = model.kept_.n_edges_seen
    model.update(([0, 2], [1, 3], None, [0.1, 0.9]), solve=False)
    assert model.kept_.n_edges_seen == n_before + 1
    with pytest.raises(ValueError, match="have no times"):
        HFSClassifier(**how).fit_edges((u, v), labels, since=0.5)


def test_a_state_with_too_many_nodes_is_refused_without_memory_for_them():
    state = StreamingSparsifier(horizon=1.0).update([0], [1], t=[0.0]).get_state()
    state["n_nodes"] = np.array(2**31 - 1, np.int32)
    with pytest.raises(ValueError, match="2147483647 nodes"):
        StreamingSparsifier.from_state(state)


def test_equal_durations_can_be_merged():
    week = StreamingSparsifier(horizon="7d", random_state=0).update([0], [1], t=[0.0])
    days = StreamingSparsifier(horizon=7 * 86400.0, random_state=1).update([1], [2], t=[1.0])
    assert week.merge(days).snapshot().n_edges == 2
