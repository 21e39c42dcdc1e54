"""The sparsifier of a log follows appends, knows how stale it is, and is built again in time."""

from contextlib import suppress

import numpy as np
import pytest
from certificate_cases import energy_ratios

from ohmlearn import EdgeLog, Graph, StreamingSparsifier, certify, gallery
from ohmlearn.edge_log.log_sparsifier import MAX_STALENESS

pytest.importorskip("pyarrow")


def dense_edges(n=150, seed=0):
    u, v, w = gallery.stochastic_blocks(
        [n // 2, n // 2], 0.8, bridges=40, random_state=seed
    ).edges()
    order = np.random.default_rng(seed).permutation(len(u))
    return u[order], v[order], w[order]


def graph_of(log, u, v):
    """Return the graph of edges with the ids of a log, numbered as in the log."""
    return Graph.from_edges(log.nodes.find(u), log.nodes.find(v), n_nodes=log.n_nodes)


def pairs_of(graph):
    u, v, _ = graph.edges()
    return set(zip(u.tolist(), v.tolist(), strict=True))


def test_appends_are_followed_bit_for_bit(folder):
    """With and without a restart, in any batches, H is that of all edges in one update."""
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.9, random_state=4) as log:
        log.append(u[:900], v[:900], w[:900])
        log.snapshot()
        log.append(u[900:2000], v[900:2000], w[900:2000])
    with EdgeLog(folder) as log:
        log.append(u[2000:], v[2000:], w[2000:])  # the sparsifier is not even loaded
    log = EdgeLog(folder)
    whole = StreamingSparsifier(epsilon=0.9, random_state=4)
    for at in np.array_split(np.arange(len(u)), 3):
        whole.update(log.nodes.find(u[at]), log.nodes.find(v[at]), w[at])
    assert whole.n_resamples_ > 0
    assert log.snapshot() == whole.snapshot()


def test_staleness_is_the_largest_ratio(folder):
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.5, random_state=0) as log:
        log.append(u, v, w)
        h = log.snapshot()
        removed = np.zeros(0, int)
        for part in np.array_split(np.arange(400), 4):
            log.remove(u[part], v[part])
            removed = np.append(removed, part)
            d = graph_of(log, u[removed], v[removed])
            assert log.staleness() == pytest.approx(energy_ratios(d, h)[1], rel=0.02)
        assert 0.1 < log.staleness() < MAX_STALENESS
        stale = log.staleness()
        assert log.snapshot() == h  # not yet built again
    with EdgeLog(folder) as log:  # the removed edges are remembered
        assert log.staleness() == pytest.approx(stale, rel=1e-3)
        log.compact()
        assert log.staleness() == pytest.approx(stale, rel=1e-3)
    with EdgeLog(folder) as log:
        assert log.staleness() == pytest.approx(stale, rel=1e-3)
        assert log.snapshot() == h


def test_edges_removed_before_they_are_seen_do_not_count(folder):
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.9, random_state=0) as log:
        log.append(u[:3000], v[:3000], w[:3000])
        log.snapshot()
    with EdgeLog(folder) as log:
        log.append(u[3000:], v[3000:], w[3000:])
        log.remove(u[3000:], v[3000:])
    with EdgeLog(folder) as log:
        assert log.staleness() == 0.0
        assert log.sparsifier.n_edges_seen_ == 3000


def test_expired_edges_count_as_removed(folder):
    u, v, _ = dense_edges()
    t = np.random.default_rng(1).permutation(len(u)).astype(float)  # out of order
    with EdgeLog(folder, random_state=0) as log:
        for at in np.array_split(np.arange(len(u)), 7):
            log.append(u[at], v[at], t=t[at])
        h = log.snapshot()
        log.remove(u[t < 50], v[t < 50])
        log.expire(100)
        log.expire(200)
        old = t < 200
        d = graph_of(log, u[old], v[old])
        assert log.staleness() == pytest.approx(energy_ratios(d, h)[1], rel=0.02)
        assert log.info()["generation"] == 0
    with EdgeLog(folder) as log:
        log.expire(len(u) // 2)
        assert log.staleness() > MAX_STALENESS
        assert certify(log, log.snapshot(), random_state=0).epsilon < 0.5
        assert log.info()["generation"] == 1
        assert log.staleness() == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_hub_that_hides_bridges(folder, seed):
    """Without the hub, a few edges that H may have dropped are the only way between two groups."""
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(100, 1)
    groups = [np.stack([u, v]), np.stack([u, v]) + 100]
    bridges = np.stack([rng.integers(0, 100, 3), rng.integers(100, 200, 3)])
    hub = np.stack([np.full(200, 200), np.arange(200)])
    edges = np.concatenate([*groups, bridges, np.repeat(hub, 40, axis=1)], axis=1)
    edges = edges[:, rng.permutation(edges.shape[1])]
    with EdgeLog(folder, epsilon=0.5, random_state=seed) as log:
        log.append(*edges)
        first = log.snapshot()
        numbers = np.sort(log.nodes.find(bridges.ravel()).reshape(2, -1), axis=0)
        log.remove_nodes([200])
        assert log.staleness() > MAX_STALENESS
        h = log.snapshot()
        assert log.info()["generation"] == 1
        assert log.staleness() == 0.0
        found = certify(log, h, random_state=0)
        assert found.epsilon <= 0.5
        assert set(zip(*numbers.tolist(), strict=True)) <= pairs_of(h)  # they are certain now
        assert pairs_of(first) != pairs_of(h)


def test_new_coins_are_independent_of_the_old_ones(folder):
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.9, random_state=0) as log:
        log.append(u, v, w)
        first = log.snapshot()
        log.append([900], [u[0]])
        log.remove_nodes([900])
        second = log.snapshot()
        assert log.info()["generation"] == 1
        a, b = pairs_of(first), pairs_of(second)
        assert len(a & b) < 0.9 * len(a)


def test_a_large_removal_counts_after_many_appends(folder):
    """Not all of a large removal is looked at; appends must not make what was seen look small."""
    rng = np.random.default_rng(0)

    def inside(first, m, t):
        u = rng.integers(first, first + 50, m)
        return u, first + (u - first + rng.integers(1, 50, m)) % 50, None, np.full(m, t)

    with EdgeLog(folder, random_state=0) as log:
        for _ in range(5):
            log.append(*inside(0, 2000, 0.0))
        log.append(np.arange(50), np.arange(50) + 50, t=np.zeros(50))  # joins the two groups
        log.append(*inside(0, 2000, 1.0))
        log.append(*inside(50, 2000, 1.0))
        assert log.snapshot().components()[0] == 1
        log.expire(1.0)
        log.append(*inside(0, 30_000, 2.0))
        log.append(*inside(50, 30_000, 2.0))
        assert log.staleness() > MAX_STALENESS
    again = EdgeLog(folder)
    assert again.staleness() > MAX_STALENESS
    assert again.snapshot().components()[0] == 2


@pytest.mark.parametrize("memory", [{"half_life": 10.0}, {"horizon": 10.0}])
def test_removed_edges_that_were_forgotten_hardly_count(folder, memory):
    with EdgeLog(folder, random_state=0, **memory) as log:
        path = np.arange(20), np.arange(1, 21)
        log.append(*path, t=np.zeros(20))
        log.append(*path, t=np.full(20, 100.0))
        log.snapshot()
        log.remove([0], [1], t=[0.0])
        faded = 2.0**-10 if "half_life" in memory else 0.0
        assert log.staleness() == pytest.approx(faded / (1 + faded), rel=1e-5)


def test_operations_that_are_lost_are_not_in_the_saved_sparsifier(folder):
    log = EdgeLog(folder, random_state=0)
    log.append([0, 1], [1, 2])
    log.append([2], [3], sync=False)
    log.live_edges().kept_sparsifier()  # saves it, if it may
    log._store.close()  # as if the process had died
    with EdgeLog(folder) as log:
        log.append([7], [8])
        assert pairs_of(log.snapshot()) == {(0, 1), (1, 2), (3, 4)}


def test_an_interrupted_sparsifier_is_made_again(folder, monkeypatch):
    """It has seen edges of the operation; to follow from there would count them twice."""
    u, v, w = dense_edges()
    add = StreamingSparsifier.add

    def interrupted(sparsifier, *batch, **options):
        add(sparsifier, *batch, **options)
        raise KeyboardInterrupt

    with EdgeLog(folder, epsilon=0.9, random_state=4) as log:
        log.snapshot()
        monkeypatch.setattr(StreamingSparsifier, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append(u[:900], v[:900], w[:900])
        monkeypatch.setattr(StreamingSparsifier, "add", add)
        log.append(u[900:], v[900:], w[900:])
        assert log.sparsifier.n_edges_seen_ == log.n_edges == len(u)


def test_readers_follow_a_compaction(folder):
    """The names of files and the numbers of records may be used again."""
    with EdgeLog(folder, random_state=0) as log:
        for node in range(10):
            log.append([node], [node + 1])
    reader, other = EdgeLog(folder), EdgeLog(folder)
    reader.snapshot()
    with EdgeLog(folder) as log:
        log.compact()
    with reader.refresh():
        reader.append([100], [101])
        assert reader.snapshot().n_edges == reader.n_edges == 11
        reader.remove_nodes(np.r_[1:10:2, 9, 100])
        reader.compact()
    with EdgeLog(folder) as log:
        log.append([1], [2])
    assert [batch.u.tolist() for batch in other.refresh()] == [[1]]


def test_a_follower_sees_durable_operations_only(folder):
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.9, random_state=4) as log:
        follower = log.follower()
        assert follower.snapshot() is None
        log.append(u[:900], v[:900], w[:900])
        assert (follower.lag, follower.catch_up(), follower.lag) == (900, True, 0)
        assert not follower.catch_up()
        first = follower.snapshot()
        with suppress(ZeroDivisionError), log.transaction() as changes:
            changes.append(u[:50], v[:50])
            assert 1 / 0
        assert not follower.catch_up()
        with log.transaction() as changes:
            changes.append(u[900:], v[900:], w[900:])
        assert (follower.operation, follower.catch_up(), follower.operation) == (1, True, 2)
        assert (first.operation, first.live.n_edges, first.kept.sparsifier.n_edges_seen_) == (
            1, 900, 900,
        )  # fmt: skip
        last = follower.snapshot()
        assert last.version > first.version
        whole = StreamingSparsifier(epsilon=0.9, random_state=4)
        whole.update(log.nodes.find(u), log.nodes.find(v), w)
        assert last.kept.sparsifier.snapshot() == whole.snapshot()


def test_a_follower_builds_a_stale_sparsifier_again(folder):
    u, v, w = dense_edges()
    with EdgeLog(folder, epsilon=0.9, random_state=4) as log:
        follower = log.follower()
        log.append(u, v, w)
        follower.catch_up()
        log.remove_nodes([0])
        assert follower.catch_up()
        log.compact()  # renumbers the records
        log.append([0], [1])
        assert follower.catch_up()
        last = follower.snapshot()
        assert (last.kept.staleness, follower.lag) == (0.0, 0)
        assert last.kept.sparsifier.n_edges_seen_ == last.live.n_edges == log.n_edges
        follower.save()
    assert EdgeLog(folder).sparsifier.n_edges_seen_ == log.n_edges
