"""StreamingSparsifier: what it keeps, counts, refuses and saves."""

import copy
import pickle
import threading

import numpy as np
import pytest
from refuses import refuses

from benchmarks.families import Ruler
from ohmlearn import Graph, gallery, read_edges
from ohmlearn.sparsifier import StreamingSparsifier, sparsify

SCHEMES = ["resample", "online", "paper"]


def blocks_with_bridges(seed=0):
    return gallery.stochastic_blocks([150, 150, 150], 0.7, bridges=3, random_state=seed)


def made(scheme="resample", random_state=0, edges=()):
    """A sparsifier for those blocks, which has taken in some edges."""
    empty = StreamingSparsifier(n_nodes=450, epsilon=0.8, scheme=scheme, random_state=random_state)
    return empty.update(*edges) if edges else empty


def test_a_budget_is_kept_and_epsilon_is_an_output():
    graph = gallery.complete(400)
    sparsifier = StreamingSparsifier(n_nodes=400, max_edges=6000, random_state=0).update(graph)
    assert sparsifier.n_rows_ <= 15100  # two and a half times the budget, up to rounding
    assert 4500 < sparsifier.snapshot().n_edges < 6300
    assert 0.5 < sparsifier.epsilon_nominal_ < 2.0


def test_memory_is_a_budget_of_edges():
    few, more = (
        sparsify(gallery.complete(400), memory=memory, random_state=0)
        for memory in ("1.2MB", "2.4MB")
    )
    assert few.n_edges < 0.6 * more.n_edges


@pytest.mark.parametrize("scheme", SCHEMES)
def test_snapshots_change_nothing(scheme):
    u, v, w = blocks_with_bridges().edges()
    plain, watched = made(scheme, 1, (u, v, w)), made(scheme, 1)
    for part in np.array_split(np.arange(len(u)), 5):
        watched.update(u[part], v[part], w[part]).snapshot()
    assert watched.snapshot() == plain.snapshot()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("way", ["pickle", "copy", "file"])
def test_going_on_from_a_copy_gives_the_same_bits(scheme, way, tmp_path):
    u, v, w = blocks_with_bridges().edges()
    half = len(u) // 2
    whole, first = made(scheme, 2, (u, v, w)), made(scheme, 2, (u[:half], v[:half], w[:half]))
    if way == "file":
        first.save(tmp_path / "half.ohm")
        second = StreamingSparsifier.load(tmp_path / "half.ohm")
    else:
        second = pickle.loads(pickle.dumps(first)) if way == "pickle" else copy.deepcopy(first)
    second.update(u[half:], v[half:], w[half:])
    assert second.snapshot() == whole.snapshot()
    assert second.stats_ == whole.stats_


@pytest.mark.parametrize("at_once", [False, True])
def test_merging_is_as_good_as_one_stream(at_once):
    graph = blocks_with_bridges()
    u, v, w = graph.edges()
    order = np.random.default_rng(0).permutation(len(u))
    parts = enumerate(np.array_split(order, 4))
    leaves = [made(random_state=leaf, edges=(u[p], v[p], w[p])) for leaf, p in parts]
    if at_once:
        before = leaves[0].n_resamples_
        root = leaves[0].merge(*leaves[1:])
        assert root.n_resamples_ == before + 1
    else:
        root = leaves[0].merge(leaves[1]).merge(leaves[2].merge(leaves[3]))
    assert root.n_edges_seen_ == graph.n_edges
    assert root.weight_seen_ == pytest.approx(w.sum())
    assert Ruler(graph).epsilon(root.snapshot()) < 0.9


def test_counts():
    sparsifier = StreamingSparsifier(random_state=0)
    sparsifier.update([0, 1, 2, 2], [1, 1, 0, 1], [2.0, 5.0, 0.0, 0.5])
    assert (sparsifier.n_edges_seen_, sparsifier.weight_seen_, sparsifier.n_rows_) == (2, 2.5, 2)
    assert sparsifier.stats_["n_self_loops_dropped"] == 1
    assert sparsifier.stats_["n_zero_weights_dropped"] == 1
    assert (sparsifier.n_resamples_, sparsifier.epsilon_nominal_) == (0, 0.0)


@pytest.mark.parametrize("scheme", ["resample", "paper"])
def test_a_bad_batch_leaves_all_as_it_was(scheme):
    u, v, w = blocks_with_bridges().edges()
    sparsifier = made(scheme, 3, (u, v, w))
    before = pickle.dumps(sparsifier)
    bad = w.copy()
    bad[777] = -1.0
    with pytest.raises(ValueError, match=r"w\[777\] = -1"):
        sparsifier.update(u, v, bad)
    with pytest.raises(ValueError, match=r"n_nodes = 450, but v\[1\] = 450"):
        sparsifier.update([0, 0], [1, 450])
    with pytest.raises(ValueError, match=r"at most 1e27, but w\[0\] = 1e\+28; divide all"):
        sparsifier.update([0], [1], [1e28])
    with pytest.raises(ValueError, match="batch 0 is tuple of length 1"):
        sparsifier.update(([0],))
    assert pickle.dumps(sparsifier) == before


def test_weights_at_the_ends_of_the_range():
    sparsifier = StreamingSparsifier(n_nodes=3, random_state=0)
    sparsifier.update([0, 1, 0], [1, 2, 2], [1e27, 1e-37, 0.0])
    assert sparsifier.n_edges_seen_ == 2
    assert sparsifier.stats_["n_zero_weights_dropped"] == 1
    u, v, w = sparsifier.snapshot().edges()
    np.testing.assert_array_equal([u, v], [[0, 1], [1, 2]])
    np.testing.assert_allclose(w, [1e27, 1e-37], rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scheme": "best"}, "scheme must be one of 'resample', 'online', 'paper', got 'best'"),
        ({"constants": 3}, "constants must be one of"),
        ({"max_edges": 0}, "max_edges must be an integer >= 1, got 0"),
        ({"max_edges": 9, "n_nodes": 5}, "max_edges = 9 is fewer than two edges for each of 5"),
        ({"max_edges": 9, "scheme": "online"}, "a budget needs scheme"),
        ({"n_nodes": 2.5}, "n_nodes must be an integer in .*, got 2.5"),
        ({"half_life": -1}, "half_life must be a positive number"),
        ({"half_life": 1e-300}, "half_life must be at least 1e-100"),
    ],
)
def test_bad_parameters_are_refused_when_it_is_made(parameters, message):
    with pytest.raises(ValueError, match=message):
        StreamingSparsifier(**parameters)


def test_a_budget_is_compared_with_the_nodes_that_come():
    sparsifier = StreamingSparsifier(max_edges=3)
    with refuses(parameter="max_edges", value=3):
        sparsifier.update([0], [1])


def test_update_takes_any_stream():
    u, v, w = gallery.complete(60).edges()
    whole = StreamingSparsifier(random_state=0).update(u, v, w)
    halves = [(u[:900], v[:900], w[:900]), (u[900:], v[900:], w[900:])]
    for stream in (gallery.complete(60), halves, iter(halves), (u, v, w), (u, v), (u, v, None)):
        assert StreamingSparsifier(random_state=0).update(stream).snapshot() == whole.snapshot()


def test_a_snapshot_is_kept_until_the_next_update():
    sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
    first = sparsifier.snapshot()
    assert sparsifier.snapshot() is first
    sparsifier.update([0], [3])
    assert sparsifier.snapshot().n_edges == 3
    second = sparsifier.snapshot()
    sparsifier.merge(StreamingSparsifier(random_state=1).update([3], [4]))
    assert sparsifier.snapshot() is not second
    assert sparsifier.snapshot().n_edges == 4


def test_streams_with_different_numberings_are_not_mixed():
    monday, tuesday = (read_edges(pairs) for pairs in ([(["a"], ["b"])], [(["b"], ["c"])]))
    sparsifier = StreamingSparsifier(random_state=0).update(monday)
    assert sparsifier.snapshot().nodes is monday.nodes
    with pytest.raises(ValueError, match=r"by another NodeTable .* nodes=first.nodes"):
        sparsifier.update(tuesday)
    other = StreamingSparsifier(random_state=1).update(tuesday)
    with pytest.raises(ValueError, match="node 0 is 'a' in one numbering and 'b' in the other"):
        sparsifier.merge(other)
    assert sparsifier.n_edges_seen_ == 1
    again = read_edges([(["b"], ["c"])], nodes=monday.nodes)
    assert sparsifier.update(again).snapshot().n_edges == 2


def test_copies_share_the_table_of_nodes():
    first = StreamingSparsifier(random_state=0).update(read_edges([(["a"], ["b"])]))
    second = first.copy().update(read_edges([(["b"], ["c"])], nodes=first.nodes))
    assert second.nodes is first.nodes
    assert first.snapshot().n_nodes == 2
    assert second.snapshot().nodes.find(["c"]) == [2]


def test_ids_are_saved_and_compared(tmp_path):
    sparsifier = StreamingSparsifier(random_state=0).update(read_edges([(["a"], ["b"])]))
    sparsifier.save(tmp_path / "h.ohm")
    loaded = StreamingSparsifier.load(tmp_path / "h.ohm")
    assert loaded.snapshot().nodes.ids().tolist() == ["a", "b"]
    other = StreamingSparsifier(random_state=1).update(read_edges([(["b"], ["c"])]))
    with pytest.raises(ValueError, match="numbered in two ways"):
        loaded.merge(other)


def test_merges_that_cannot_be_are_refused():
    sparsifier = StreamingSparsifier(n_nodes=2, random_state=0).update([0], [1])
    with pytest.raises(TypeError, match="merge needs a StreamingSparsifier, got tuple"):
        sparsifier.merge(([0], [1]))
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        sparsifier.merge(sparsifier)
    with pytest.raises(
        ValueError, match="with the same scheme can be merged, got 'resample' and 'paper'"
    ):
        sparsifier.merge(StreamingSparsifier(n_nodes=2, scheme="paper"))
    assert sparsifier.n_edges_seen_ == 1


def test_ids_past_the_last_possible_one_are_to_be_renumbered():
    with pytest.raises(ValueError, match=r"but u\[1\] = 3000000000; number the nodes 0, 1, 2"):
        StreamingSparsifier().update([0, 3_000_000_000], [1, 2])
    with pytest.raises(ValueError, match=r"but v\[0\] = 5; raise n_nodes, or leave it out"):
        StreamingSparsifier(n_nodes=3).update([0], [5])


def test_files_that_are_not_whole_are_refused(tmp_path):
    file = tmp_path / "h.ohm"
    StreamingSparsifier(random_state=0).update([0, 1], [1, 2]).save(file)
    whole = file.read_bytes()
    for content, message in [
        (whole[:-1], "truncated or damaged"),
        (whole[:60] + b"x" + whole[61:], "truncated or damaged"),
        (b"PAR1" + whole, "was not saved by ohmlearn"),
        (b"", "was not saved by ohmlearn"),
        (whole[:8] + b"\x09" + whole[9:], "format version 9"),
    ]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            StreamingSparsifier.load(file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["h.ohm"]


def test_threads_that_share_a_sparsifier_take_turns():
    generator = np.random.default_rng(0)
    batches = [tuple(generator.integers(0, 500, (2, 20_000))) for _ in range(40)]
    shared = StreamingSparsifier(n_nodes=500, epsilon=0.9, random_state=0)
    done = threading.Event()
    seen: list[int] = []

    def look() -> None:
        while not done.is_set():
            seen.append(shared.snapshot().n_nodes)
            assert shared.stats_["n_nodes"] == 500
            pickle.dumps(shared)

    reader = threading.Thread(target=look)
    reader.start()
    for batch in batches:
        shared.update(batch)
    done.set()
    reader.join()
    alone = StreamingSparsifier(n_nodes=500, epsilon=0.9, random_state=0)
    for batch in batches:
        alone.update(batch)
    assert set(seen) == {500}
    assert shared.snapshot() == alone.snapshot()


def test_two_merges_at_once_do_not_wait_for_each_other():
    a, b = (
        StreamingSparsifier(n_nodes=300, random_state=seed).update(gallery.complete(300))
        for seed in (1, 2)
    )
    threads = [threading.Thread(target=x.merge, args=(y,)) for x, y in [(a, b), (b, a)] * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_a_merge_leaves_room_for_a_connected_graph():
    small = StreamingSparsifier(max_edges=10, random_state=0).update([0], [1])
    path = StreamingSparsifier(random_state=1).update(gallery.path(1000))
    with refuses(parameter="max_edges", value=10):
        small.merge(path)
    assert small.n_edges_seen_ == 1
    large = StreamingSparsifier(max_edges=10**13, random_state=0).update([0], [1])
    assert large.merge(path).snapshot().n_edges == 999  # and allocates nothing for 10^13 nodes


def test_arrays_that_are_not_aligned():
    raw = np.zeros(8 * 4 + 1, dtype=np.uint8)
    ends = raw[1:].view(np.int64)
    ends[:] = [0, 1, 2, 3]
    assert not ends.flags.aligned
    assert Graph.from_edges(ends[:3], ends[1:]).n_edges == 3
    assert StreamingSparsifier(random_state=0).update(ends[:3], ends[1:]).n_rows_ == 3


def test_weights_that_cannot_be_stored_are_refused():
    smallest = 2.0**-126  # the smallest normal float32
    found = StreamingSparsifier(random_state=0).update([0], [1], [smallest])
    assert found.n_edges_seen_ == found.n_rows_ == 1
    message = r"positive weights must be at least 1.2e-38, .* but w\[0\] = .*; multiply all weights"
    for weight in (np.nextafter(smallest, 0.0), np.float32(1e-45), 1e-300):
        edges = [0, 1], [1, 2], np.array([weight, 1], np.asarray(weight).dtype)
        for scheme in ("resample", "online", "paper"):
            with pytest.raises(ValueError, match=message):
                sparsify(edges, n_nodes=3, scheme=scheme)
        with pytest.raises(ValueError, match=message):  # without the edge, node 0 would be alone
            sparsify(Graph.from_edges(*edges))
        with pytest.raises(ValueError, match=message):
            sparsify((*edges, [1.0, 2.0]), horizon=10.0)
    with pytest.raises(ValueError, match=r"at least 1.4e-20, .* but w\[0\] = 1e-30"):
        sparsify(([0, 1], [1, 2], [1e-30, 1.0], [1.0, 2.0]), half_life=10.0)


def test_tiny_weights_of_a_graph_are_left_out_if_no_component_needs_them():
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2], [1.0, 2.0, 1e-87])
    np.testing.assert_array_equal(sparsify(graph, random_state=0).edges()[2], [1.0, 2.0])


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**80])
def test_extreme_scales_keep_what_is_kept(scale):
    u, v, w = blocks_with_bridges().edges()
    one = sparsify((u, v, w), epsilon=0.8, random_state=3)
    other = sparsify((u, v, scale * w), epsilon=0.8, random_state=3)
    assert one.n_edges < len(u)
    np.testing.assert_array_equal(other.indices, one.indices)
    np.testing.assert_array_equal(other.weights, scale * one.weights)
