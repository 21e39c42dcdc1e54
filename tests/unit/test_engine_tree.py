"""The shape of the tree of merges, and work on partitions in one process."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ohmlearn import Graph, HFSClassifier, certify
from ohmlearn.cluster import LocalEdges, Partial, PartialProduct, PartitionError
from ohmlearn.cluster.merge_tree import level_sizes, merge_tree
from ohmlearn.cluster.partition_product import Multiplying
from ohmlearn.cluster.partition_sparsifier import Sparsifying
from ohmlearn.reading import ReadOptions

RNG = np.random.default_rng(0)
PARTS: list[Any] = [tuple(RNG.integers(0, 120, (2, 4000))) for _ in range(7)]


@pytest.mark.parametrize("n", [*range(1, 11), 16, 17, 27, 28, 64, 65])
@pytest.mark.parametrize("split_every", [2, 3, 8])
def test_the_shape_of_the_tree(split_every: int, n: int):
    """Level after level, groups of neighbours are merged; of results that come, few wait."""
    expected: list[Any] = list(range(n))
    merges, sizes = set(), [n]
    while len(expected) > 1:
        groups = [expected[at : at + split_every] for at in range(0, sizes[-1], split_every)]
        merges |= {(len(sizes), at, tuple(x)) for at, x in enumerate(groups) if len(x) > 1}
        expected = [tuple(group) if len(group) > 1 else group[0] for group in groups]
        sizes.append(len(expected))
    seen, n_waiting = set(), 0

    def merge(parts: list[Any], level: int, index: int) -> Any:
        nonlocal n_waiting
        n_waiting -= len(parts) - 1
        seen.add((level, index, tuple(parts)))
        return tuple(parts)

    def results() -> Iterator[int]:
        nonlocal n_waiting
        for number in range(n):
            n_waiting += 1
            assert n_waiting <= (split_every - 1) * len(sizes) + 1
            yield number

    assert merge_tree(results(), n, split_every, merge) == expected[0]
    assert seen == merges
    assert level_sizes(n, split_every) == sizes


def content(edges: LocalEdges, **how: Any) -> bytes:
    found = edges.sparsify(epsilon=0.9, random_state=3, **how)
    return b"".join(array.tobytes() for array in found.get_state().values())


def test_threads_do_not_change_a_byte():
    assert content(LocalEdges(PARTS, split_every=3)) == content(
        LocalEdges(PARTS, split_every=3, n_jobs=4)
    )
    assert content(LocalEdges(PARTS, split_every=3)) != content(LocalEdges(PARTS, split_every=2))


def test_bytes_between_all_steps_change_nothing():
    work = Sparsifying(ReadOptions(), {"epsilon": 0.9}, seed=3)
    leaves = [work.read(part, at, f"partition {at}") for at, part in enumerate(PARTS)]
    direct = merge_tree(leaves, len(leaves), 3, work.merge)

    def merge(parts: list[bytes], level: int, index: int) -> bytes:
        return work.merge([Partial.from_bytes(part) for part in parts], level, index).to_bytes()

    through = merge_tree([leaf.to_bytes() for leaf in leaves], len(leaves), 3, merge)
    assert through == direct.to_bytes()


def test_products_are_those_of_the_graph():
    edges = LocalEdges(PARTS, split_every=3, n_jobs=2)
    kept = edges.sparsify(epsilon=0.9, random_state=0)
    u, v = (edges.nodes.find(np.concatenate(ends)) for ends in zip(*PARTS, strict=True))
    here = certify((u, v), kept, random_state=0)
    there = certify(edges, kept, random_state=0)
    assert there.epsilon == pytest.approx(here.epsilon, rel=1e-9)
    x = RNG.normal(size=(len(edges.nodes), 3))
    passes = edges.open_passes(np.zeros(len(x), np.int32), "this")
    laplacian = Graph.from_edges(u, v, n_nodes=len(x)).laplacian()
    np.testing.assert_allclose(passes.multiply(x), laplacian @ x, atol=1e-9)


def test_bytes_of_products():
    work = Multiplying(ReadOptions())
    edges = LocalEdges(PARTS)
    edges.sparsify(random_state=0)
    x, n = RNG.normal(size=(len(edges.nodes), 2)), len(edges.nodes)
    watched = (x.astype(np.float32), np.array([3, 5]))
    block = x, (np.arange(n) > 5).astype(np.int32), watched
    part = work.read(PARTS[0], 0, "partition 0", edges.nodes, block, None)
    back = PartialProduct.from_bytes(part.to_bytes())
    assert back.totals.lost_edge == part.totals.lost_edge is not None
    assert (back.totals.n_edges, back.totals.weight) == (4000, 4000.0)
    for name in ("product", "degrees", "sums"):
        np.testing.assert_array_equal(getattr(back.totals, name), getattr(part.totals, name))
    np.testing.assert_array_equal(back.roots, part.roots)
    assert back.to_bytes() == part.to_bytes()


def test_estimators_accept_them():
    parts = [(u, v - v % 2 + u % 2) for u, v in PARTS]
    edges = LocalEdges(parts)
    model = HFSClassifier(random_state=0, calibration=None).fit_edges(edges, {0: "e", 1: "o"})
    ids = edges.nodes.ids()
    assert [("e", "o")[i % 2] for i in ids] == model.transduction_.tolist()


def test_a_bad_partition_is_named():
    done: list[int] = []
    parts = [PARTS[0], ([0], [1], [-1.0])]
    edges = LocalEdges(parts, progress=lambda stage, at, of: done.append(at))
    with pytest.raises(PartitionError, match=r"partition 1: .*row 0: weights must not be negative"):
        edges.sparsify()
    assert done == [1]
    with pytest.raises(PartitionError, match=r"partition 0: .*row 0: .* below 1\.2e-38 unless 0"):
        LocalEdges([([0], [1], [1e-45])]).sparsify()
