"""Changed bytes of sparsifiers and products of partitions are refused, or can be merged."""

import hashlib
import io
import json
import os

import numpy as np
import pytest
from fuzz_readers import damage
from fuzz_saved import change_array

from ohmlearn._arrays_file import HEAD, MAGIC, VERSION, unpack_arrays
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
VALUES = [None, True, -1, 2**70, 0.5, "", "s", [], [1], [1, 2], [0, "x"], {}, float("nan")]


def seal(content: bytes) -> bytes:
    return MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(content).digest() + content


def change(content: bytes, seed: int) -> bytes:
    """Return changed bytes with a correct checksum."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.15:
        return seal(damage(content[HEAD:], rng))
    arrays = unpack_arrays(content, "it")
    if "about" in arrays and rng.random() < 0.3:
        about = json.loads(str(arrays["about"]))
        about[rng.choice(list(about))] = VALUES[int(rng.integers(len(VALUES)))]
        arrays["about"] = np.array(json.dumps(about))
    else:
        for _ in range(int(rng.integers(1, 4))):
            name = str(rng.choice(list(arrays)))
            arrays[name] = change_array(np.asarray(arrays[name]), rng)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return seal(file.getvalue())


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_changed_sparsifiers(way: int):
    parameters, options, batch = WAYS[way]
    work = Sparsifying(options, parameters, seed=0)
    good = [work.read(batch, number, f"partition {number}") for number in (0, 1)]
    used = 0
    for seed in range(COUNT):
        try:
            changed = Partial.from_bytes(change(good[0].to_bytes(), seed))
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
    shared = (nodes, x, np.zeros(40, np.int32), watched, None)
    good = Multiplying(ReadOptions()).read((U, V), 0, "partition 0", *shared)
    used = 0
    for seed in range(COUNT):
        try:
            add_products([good, PartialProduct.from_bytes(change(good.to_bytes(), seed))])
            used += 1
        except ValueError:
            pass
    assert COUNT // 50 < used < COUNT


def test_truncated_bytes():
    content = Sparsifying(ReadOptions(), {}, seed=0).read((U, V), 0, "").to_bytes()
    for size in (0, 5, HEAD, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match=r"not saved by ohmlearn|truncated or damaged"):
            Partial.from_bytes(content[:size])
