"""Changed bytes of sparsifiers and products of partitions are refused, or can be merged."""

import os

import numpy as np
import pytest
from fuzz_saved import change_file

from ohmlearn._arrays_file import HEAD, unpack_arrays
from ohmlearn.cluster import Partial, PartialProduct, add_products
from ohmlearn.cluster.partition_product import Multiplying
from ohmlearn.cluster.partition_sparsifier import Sparsifying
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import ReadOptions

COUNT = 5000 if os.environ.get("OHMLEARN_LONG") == "1" else 200
RNG = np.random.default_rng(0)
U, V = RNG.integers(0, 40, (2, 5000))
T = 1000.0 + np.arange(5000)
WAYS = [
    ({"epsilon": 0.9}, ReadOptions(), (U, V)),
    ({"max_edges": 300}, ReadOptions(), (U.astype(str), V.astype(str))),
    ({"half_life": 50.0}, ReadOptions(time=True), (U, V, None, T)),
    ({"horizon": 500.0}, ReadOptions(time=True, bipartite=("a", "b")), (U, V, None, T)),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_changed_sparsifiers(way: int):
    parameters, options, batch = WAYS[way]
    work = Sparsifying(options, parameters, seed=0)
    good = [work.read(batch, number, f"partition {number}") for number in (0, 1)]
    arrays = unpack_arrays(good[0].to_bytes(), "it")
    used = 0
    for seed in range(COUNT):
        try:
            changed = Partial.from_bytes(change_file(seed, [arrays]))
            merged = work.merge([changed, good[1]] if seed % 2 else [good[1], changed], 1, 0)
            merged.sparsifier(parameters, 0).snapshot()
            used += 1
        except ValueError:
            pass
    assert COUNT // 50 < used < COUNT


def test_changed_products():
    nodes = NodeTable()
    nodes.add(np.arange(40))
    x = RNG.normal(size=(40, 2))
    watched = (x.astype(np.float32), np.array([1, 2]))
    shared = (nodes, (x, np.zeros(40, np.int32), watched), None)
    good = Multiplying(ReadOptions()).read((U, V), 0, "partition 0", *shared)
    arrays = unpack_arrays(good.to_bytes(), "it")
    used = 0
    for seed in range(COUNT):
        try:
            add_products([good, PartialProduct.from_bytes(change_file(seed, [arrays]))])
            used += 1
        except ValueError:
            pass
    assert COUNT // 50 < used < COUNT


def test_truncated_bytes():
    content = Sparsifying(ReadOptions(), {}, seed=0).read((U, V), 0, "").to_bytes()
    for size in (0, 5, HEAD, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match=r"not saved by ohmlearn|truncated or damaged"):
            Partial.from_bytes(content[:size])
