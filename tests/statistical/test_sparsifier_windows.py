"""Sparsifiers of windows against dense graphs: epsilon, connectedness, rows."""

import math

import numpy as np
import pytest

from benchmarks.families import Ruler
from benchmarks.windows import make_stream
from ohmlearn import Graph, StreamingSparsifier

EPSILON = 0.8
STREAMS = (
    "barbell", "6 decades", "drift", "oldest bridge", "newest bridge", "bursts",
    "then a ring", "then a ladder",
)  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_every_window_is_close_to_its_edges(name: str) -> None:
    n, u, v, w = make_stream(name, seed=0)
    t = np.arange(len(u), dtype=float)
    kept = StreamingSparsifier(n_nodes=n, epsilon=EPSILON, horizon=math.inf, random_state=0)
    kept.update(u, v, w, t)
    assert kept.n_resamples_ > 2
    # The second starts anywhere in a group of rows, two others at or before a change of structure.
    for share in (0.05, 0.13, 0.2, 0.205, 0.4, 1.0):
        since = round((1 - share) * len(u))
        graph = Graph.from_edges(u[since:], v[since:], w[since:], n_nodes=n)
        h = kept.snapshot(since=since)
        assert h.components()[0] == graph.components()[0]
        assert Ruler(graph).epsilon(h) < EPSILON
    single = StreamingSparsifier(n_nodes=n, epsilon=EPSILON, random_state=0).update(u, v, w)
    assert kept.snapshot().n_edges <= 2.5 * single.snapshot().n_edges


def test_edges_in_any_order_of_time_are_as_close() -> None:
    n, u, v, w = make_stream("complete", seed=0)
    t = np.random.default_rng(1).permutation(len(u)).astype(float)
    kept = StreamingSparsifier(n_nodes=n, epsilon=EPSILON, horizon=math.inf, random_state=0)
    kept.update(u, v, w, t)
    for since in (0, len(u) // 2, 9 * len(u) // 10):
        inside = t >= since
        graph = Graph.from_edges(u[inside], v[inside], w[inside], n_nodes=n)
        assert Ruler(graph).epsilon(kept.snapshot(since=since)) < EPSILON


def test_weights_of_windows_are_right_on_average() -> None:
    n, u, v, w = make_stream("bursts", seed=0)
    t = np.arange(len(u), dtype=float)
    since = len(u) // 3
    ratios = []
    for seed in range(20):
        kept = StreamingSparsifier(n_nodes=n, epsilon=0.95, horizon=math.inf, random_state=seed)
        a, b, weights = kept.update(u, v, w, t).snapshot(since=since).edges()
        inside = (a < 200) != (b < 200)  # light: few edges lie between the first groups and others
        ratios.append(weights[inside].sum() / np.sum((u[since:] < 200) != (v[since:] < 200)))
    assert abs(np.mean(ratios) - 1.0) < 4 * np.std(ratios) / math.sqrt(20) + 1e-6
