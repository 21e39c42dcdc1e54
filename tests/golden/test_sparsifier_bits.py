"""The bits of H for a seed: a change of code that should not change them is noticed here.

If bits change on purpose, run this file with ``python`` to print the new digests, and say so in the
changelog.
"""

import hashlib
import platform

import numpy as np
import pytest

from ohmlearn import StreamingSparsifier

U, V = np.triu_indices(300, 1)
ORDER = np.argsort(np.arange(len(U)) * 2654435761 % 2**32, kind="stable")
U, V = U[ORDER], V[ORDER]
WEIGHTS = {
    "equal": np.ones(len(U)),
    "two decades": 1.0 + np.arange(len(U)) * 7919 % 100,
    "heavy pairs": np.where(U // 2 == V // 2, 2.0**20, 1.0),
    "falling with distance": 1.0 / (V - U) ** 3,
}
OPTIONS = {"epsilon": {"epsilon": 0.8}, "budget": {"max_edges": 3000}}
EXPECTED = {
    ("equal", "epsilon"): "1edd6ec353fdc009",
    ("equal", "budget"): "d6aacf31586bb014",
    ("two decades", "epsilon"): "3d73f6676aeb2237",
    ("two decades", "budget"): "b91be6614fca8467",
    ("heavy pairs", "epsilon"): "ea4838e9945db21a",
    ("heavy pairs", "budget"): "f92803eea8c2db5a",
    ("falling with distance", "epsilon"): "dc1348c495eaf8bd",
    ("falling with distance", "budget"): "6229841e3876e76b",
}


def digest(weights: str, options: str) -> str:
    sparsifier = StreamingSparsifier(n_nodes=300, random_state=5, **OPTIONS[options])
    h = sparsifier.update(U, V, WEIGHTS[weights]).snapshot()
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in h.edges())
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="bits are promised per processor")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_bits_of_h(weights: str, options: str) -> None:
    assert digest(weights, options) == EXPECTED[weights, options]


if __name__ == "__main__":
    for weights in WEIGHTS:
        for options in OPTIONS:
            print(f'    ("{weights}", "{options}"): "{digest(weights, options)}",')
