"""A half-life: weights of the snapshot against the formula, the same bits, odd times, files."""

import datetime
import math
import time

import numpy as np
import pytest
from refuses import refuses

from ohmlearn import (
    EdgeLog,
    HFSClassifier,
    StreamingSparsifier,
    certify,
    gallery,
    refine,
    solve_hfs,
)
from ohmlearn.edges import Batch, Edges
from ohmlearn.estimators.problem import automatic_gamma
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import FADED, TimeView


def stream(n, m, span, seed=0, order="sorted"):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    t = rng.uniform(-span / 2, span / 2, m)
    if order != "shuffled":
        t = np.sort(t) + (rng.normal(0.0, span / 50, m) if order == "late" else 0.0)
    return u, v, rng.uniform(0.5, 2.0, m), t


def adjacency(graph):
    return graph.to_scipy().toarray()


def faded(n, u, v, w, t, at, half_life):
    """The weights of the graph at a time, from the formula; and the newest time of each pair."""
    weights, newest = np.zeros((n, n)), np.full((n, n), -np.inf)
    for a, b in ((u, v), (v, u)):
        np.add.at(weights, (a, b), w * np.exp2((t - at) / half_life))
        np.maximum.at(newest, (a, b), t)
    np.fill_diagonal(weights, 0.0)
    return np.where(newest >= at - FADED * half_life, weights, 0.0)


def keeps_all(half_life, n=30, **options):
    return StreamingSparsifier(
        n_nodes=n, max_edges=10**6, half_life=half_life, random_state=0, **options
    )


@pytest.mark.parametrize("order", ["sorted", "late", "shuffled"])
@pytest.mark.parametrize("span", [1.0, 300.0, 5_000.0, 30_000.0])
def test_weights_are_those_of_the_formula(span, order):
    u, v, w, t = stream(30, 3000, span, order=order)
    kept = keeps_all(3.0).update(u, v, w, t)
    for at in (t.max(), t.max() + 7.5, t.max() + 100.0):
        h = kept.snapshot(at=at)
        np.testing.assert_allclose(
            adjacency(h), faded(30, u, v, w, t, at, 3.0), rtol=1e-6, atol=1e-15
        )
        assert h.view == TimeView(at=at, half_life=3.0)
    seen = (w * np.exp2((t - t.max()) / 3.0))[u != v].sum()
    assert kept.weight_seen_ == pytest.approx(seen, rel=1e-6)
    assert kept.latest_ == t.max()


def state_of(sparsifier):
    state = sparsifier.get_state()
    return {name: array.tobytes() for name, array in state.items() if name != "parameters"}


@pytest.mark.parametrize("half_life", [20_000.0, 700.0, 30.0])
@pytest.mark.parametrize("order", ["sorted", "late"])
def test_neither_batches_nor_threads_nor_files_change_a_bit(half_life, order, tmp_path):
    u, v, w, t = stream(100, 60_000, 60_000.0, order=order)
    make = {"n_nodes": None, "max_edges": 300, "half_life": half_life, "random_state": 3}
    whole = StreamingSparsifier(**make).update(u, v, w, t)
    assert whole.n_resamples_ > 2 or half_life < 100
    parts = StreamingSparsifier(**make, n_jobs=3)
    for first in range(0, len(u), 7001):
        part = slice(first, first + 7001)
        parts.update([(u[part], v[part], w[part], t[part])])
        if first == 4 * 7001:
            parts.save(tmp_path / "h.ohm")
            parts = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert state_of(parts) == state_of(whole)
    assert parts.snapshot() == whole.snapshot()


def test_a_stream_of_ten_thousand_half_lives_stays_small():
    n, half_life = 60, 100.0
    rng = np.random.default_rng(0)
    kept = StreamingSparsifier(n_nodes=n, epsilon=0.9, half_life=half_life, random_state=0)
    rows = []
    for batch in range(100):
        u, v = rng.integers(0, n, 10_000), rng.integers(0, n, 10_000)
        kept.update(u, v, None, np.arange(10_000) + 10_000.0 * batch)
        rows.append(kept.n_rows_)
    assert max(rows) <= 1.1 * max(rows[:10])
    h = kept.snapshot()
    assert h.components()[0] == 1
    assert h.weights.sum() / 2 == pytest.approx(kept.weight_seen_, rel=0.1)


@pytest.mark.parametrize("weight", [1e27, 1.0, 1e-19])
@pytest.mark.parametrize(
    "times",
    [
        [5.0, 5.0, 5.0],
        [-1e6, -1e6 + 1, -1e6 + 2],
        [0.0, 39.9, 40.0],
        [0.0, -1e9, 1.0],
        [0.0, 1e5, 1e5 + 1],
        [-0.0, 0.0, -0.0],
    ],
)
def test_odd_times_and_weights(times, weight):
    u, v, t = np.array([0, 1, 2]), np.array([1, 2, 3]), np.array(times)
    kept = keeps_all(1.0, n=4).update(u, v, np.full(3, weight), t)
    expected = faded(4, u, v, np.full(3, weight), t, t.max(), 1.0)
    if weight < 1.0:  # such small weights may be gone before 40 half-lives, but not before 20
        old = t < t.max() - 20.0
        expected[u[old], v[old]] = expected[v[old], u[old]] = 0.0
    np.testing.assert_allclose(adjacency(kept.snapshot()), expected, rtol=1e-6)


def test_edges_that_come_too_late_are_counted():
    kept = keeps_all(1.0).update([0, 1, 2], [1, 2, 3], None, [1000.0, 2.0, 999.0])
    assert kept.stats_["n_faded_on_arrival"] == 1
    assert kept.n_edges_seen_ == 2
    assert kept.snapshot().n_edges == 2


def test_merged_sparsifiers_agree_with_the_formula():
    u, v, w, t = stream(30, 900, 900.0, order="shuffled")
    merged = [keeps_all(5.0).update(u[i::3], v[i::3], w[i::3], t[i::3]) for i in range(3)]
    expected = faded(30, u, v, w, t, t.max(), 5.0)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        first = keeps_all(5.0)
        for i in order:
            first.merge(merged[i])
        # A part of an edge may be gone after 40 half-lives, while its newest part is not.
        np.testing.assert_allclose(adjacency(first.snapshot()), expected, rtol=1e-6, atol=2e-12)
        assert first.latest_ == t.max()
        assert first.n_edges_seen_ == sum(part.n_edges_seen_ for part in merged)


def test_nodes_whose_edges_have_faded_are_not_reached():
    edges = [([0, 1], [1, 2], None, [0.0, 0.0]), ([3, 4], [4, 5], None, [50.0, 50.0])]
    for epsilon in (0.8, None):
        model = HFSClassifier(half_life=1.0, epsilon=epsilon, random_state=0)
        with pytest.warns(UserWarning, match="no edge that counts|components without a label"):
            model.fit_edges(edges, {0: "a", 3: "a", 5: "b"})
        assert model.reached_.tolist() == [True, False, False, True, True, True]
        assert model.transduction_[[3, 5]].tolist() == ["a", "b"]


@pytest.mark.parametrize("at", [None, 75.0])
def test_passes_read_the_faded_graph(at):
    u, v, w, t = stream(60, 4000, 60.0)
    kept = StreamingSparsifier(n_nodes=60, epsilon=0.9, half_life=8.0, random_state=0)
    kept.update(u, v, w, t)
    moment = t.max() if at is None else at
    exact = Graph.from_edges(u, v, w * np.exp2((t - moment) / 8.0), n_nodes=60)
    edges = [(u[i::2], v[i::2], w[i::2], t[i::2]) for i in range(2)]
    found = refine(edges, kept, [0, 1, 2], [1.0, -1.0, 0.5], at=at, passes=40, gamma=10.0)
    truth = solve_hfs(exact, [0, 1, 2], [1.0, -1.0, 0.5], gamma=10.0)
    np.testing.assert_allclose(found.f, truth.f, atol=1e-5)
    mine = certify(edges, kept, at=at, random_state=0)
    theirs = certify(exact, kept.snapshot(at=at).__class__.from_edges(
        *kept.snapshot(at=at).edges(), n_nodes=60), random_state=0)  # fmt: skip
    assert mine.epsilon == pytest.approx(theirs.epsilon, rel=1e-4)
    assert 0.0 < mine.epsilon < 0.9


@pytest.mark.parametrize("epsilon", [0.8, None])
def test_an_estimator_answers_for_the_faded_graph(epsilon):
    u, v, w, t = stream(40, 3000, 60.0)
    labels = {0: "a", 1: "b", 2: "a"}
    first = [(u[:2000], v[:2000], w[:2000], t[:2000])]
    more = [(u[2000:], v[2000:], w[2000:], t[2000:])]
    how = {"epsilon": epsilon, "gamma": 0.3, "passes": 40, "random_state": 0}
    model = HFSClassifier(half_life=8.0, **how).fit_edges(first, labels)
    model.update(more, at=70.0).refine([*first, *more], passes=40)
    exact = Graph.from_edges(u, v, w * np.exp2((t - 70.0) / 8.0))
    truth = HFSClassifier(**how | {"epsilon": None}).fit_edges(exact, labels)
    np.testing.assert_allclose(model.scores_, truth.scores_, atol=1e-5)
    automatic = HFSClassifier(half_life=8.0, epsilon=None).fit_edges([*first, *more], labels)
    scale = 2.0 ** ((70.0 - t.max()) / 8.0)
    mean = scale * exact.weights.sum() / 40
    assert automatic.gamma_ == pytest.approx(automatic_gamma(len(labels), 2, mean), rel=1e-5)


def test_old_edges_between_components_do_not_count():
    """H may have lost a path of such edges a little earlier."""
    component = np.array([0, 0, 1], dtype=np.int32)
    view = TimeView(at=100.0, half_life=1.0)
    u, v, t = np.array([0, 1, 1]), np.array([1, 2, 2]), np.array([75.0, 75.0, 85.0])
    kept = view.weigh(u, v, None, t, component)
    assert kept[0].tolist() == [0, 1]
    np.testing.assert_allclose(kept[2], [2.0**-25, 2.0**-15], rtol=1e-6)


@pytest.mark.parametrize("memory", [{"half_life": "5min"}, {"horizon": "1h"}])
def test_an_edge_ahead_of_the_clock_by_more_than_the_memory(tmp_path, memory):
    """It would silence all others, although it is not later than tomorrow."""
    now = time.time()
    t = np.array([now - 100.0, now + 23 * 3600.0, now])
    sparsifier = StreamingSparsifier(**memory, random_state=0)
    log = EdgeLog(tmp_path / "log", **memory)
    for door in (sparsifier.update, log.append):
        with pytest.raises(ValueError, match=r"t\[1\] = 20.* is 828\d\d s ahead of the clock, so"):
            door([0, 1, 2], [1, 2, 3], None, t)
        door([0, 1], [1, 2], None, t[[0, 2]])
    log.close()
    StreamingSparsifier(half_life=300.0).update([0, 1, 2], [1, 2, 3], None, t)  # of any unit


def test_refused_times():
    kept = StreamingSparsifier(half_life=1.0, random_state=0)
    with pytest.raises(ValueError, match="these edges have no times"):
        kept.update(gallery.path(3))
    with pytest.raises(ValueError, match=r"times must be finite, but t\[1\] = nan"):
        kept.update([0, 1], [1, 2], None, [1.0, math.nan])
    with refuses(parameter="half_life", value=1):
        kept.update([0], [1], None, [2.0**45])
    kept.update([0], [1], None, [10.0])
    with pytest.raises(ValueError, match=r"t\[1\] = 2000000\.0 is more than a million times"):
        kept.update([0, 1], [1, 2], None, [11.0, 2e6])
    assert kept.n_edges_seen_ == 1
    with refuses(parameter="at", value=9):
        kept.snapshot(at=9.0)
    with pytest.raises(ValueError, match="since needs a sparsifier that keeps times"):
        kept.snapshot(since=9.0)
    with pytest.raises(ValueError, match="only sparsifiers with the same half_life can be merged"):
        kept.merge(StreamingSparsifier(half_life=2.0))
    with pytest.raises(TypeError, match="at can be given with a StreamingSparsifier only"):
        certify(gallery.path(3), gallery.path(3), at=3.0)


def test_a_text_is_in_seconds_so_other_units_are_refused():
    class Milliseconds(Edges):
        time_unit = "ms"
        knows_unit = True

        def batches(self, n_jobs=1):
            yield Batch([0], [1], None, [1000.0])

    edges = Milliseconds()
    with pytest.raises(ValueError, match="needs times in seconds"):
        StreamingSparsifier(half_life="7d").update(edges)
    with pytest.raises(ValueError, match="needs times in seconds"):
        HFSClassifier(half_life=datetime.timedelta(days=7), epsilon=None).update(edges)
    assert StreamingSparsifier(half_life=7.0).update(edges).n_edges_seen_ == 1


def test_times_are_ignored_without_a_half_life():
    u, v, w, t = stream(30, 300, 10.0)
    plain = StreamingSparsifier(random_state=0).update(u, v, w)
    timed = StreamingSparsifier(random_state=0).update([(u, v, w, t)])
    forever = StreamingSparsifier(random_state=0, half_life=math.inf).update(u, v, w)
    ages = StreamingSparsifier(random_state=0, half_life=1e300).update(u, v, w)
    assert state_of(plain) == state_of(timed) == state_of(forever) == state_of(ages)
    assert timed.latest_ is None


def test_durations_are_numbers_texts_or_timedeltas(tmp_path):
    day = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    for half_life in (86400, "1d", datetime.timedelta(days=1), np.timedelta64(1, "D")):
        kept = StreamingSparsifier(half_life=half_life, random_state=0)
        h = kept.update([0, 1], [1, 2], None, day).snapshot(at="2026-01-03")
        np.testing.assert_allclose(h.edges()[2], [0.25, 0.5])
        kept.save(tmp_path / "h.ohm")
        assert StreamingSparsifier.load(tmp_path / "h.ohm").snapshot() == kept.snapshot()


CRAFTED = [
    ("time", np.array([0.0, math.nan]), "row 1 has time nan"),
    ("time", np.array([0.0, 50.0]), "row 1 has time 50"),
    ("time", np.array([0.0]), "1 times of 2 rows"),
    ("latest", np.float64(math.inf), "the latest time inf is not in epoch 0"),
    ("latest", np.float64(-math.inf), "the latest time is missing"),
    ("latest", np.float64(1e300), "is not in epoch"),
    ("epoch", np.int64(7), "is not in epoch 7"),
    ("n_faded", np.int64(3), "3 of 2 edges came too late"),
]


@pytest.mark.parametrize(("name", "value", "message"), CRAFTED)
def test_states_that_no_sparsifier_can_have(name, value, message):
    state = StreamingSparsifier(half_life=1.0).update([0, 1], [1, 2], None, [0.0, 3.0]).get_state()
    with pytest.raises(ValueError, match=message):
        StreamingSparsifier.from_state(state | {name: np.asarray(value)})
    missing = {key: array for key, array in state.items() if key != name}
    with pytest.raises(ValueError, match=f"{name} is missing"):
        StreamingSparsifier.from_state(missing)


def test_nothing_has_been_seen_yet():
    kept = StreamingSparsifier(half_life=1.0, n_nodes=3)
    assert kept.latest_ is None
    assert kept.snapshot(at=5.0).n_edges == 0
    copy = StreamingSparsifier.from_state(kept.get_state())
    copy.merge(StreamingSparsifier(half_life=1.0, n_nodes=3).update([0], [1], None, [-1e5]))
    assert copy.snapshot().edges()[2].tolist() == [1.0]
