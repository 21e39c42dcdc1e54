"""The bits of H for a seed: a change of code that should not change them is noticed here.

If bits change on purpose, run this file with ``python`` to print the new digests, and say so in the
changelog.
"""

import hashlib
import platform
from typing import Any, Literal

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


TIMED = {
    "half-life": {"epsilon": 0.9, "half_life": 5000.0},
    "windows": {"epsilon": 0.9, "horizon": 30_000.0},
}
COPIED = OPTIONS | TIMED | {"paper": {"epsilon": 0.9, "scheme": "paper"}}
FURTHER = np.random.default_rng(0).integers(0, 300, (2, 100_000))
CASES = [(w, o) for w in WEIGHTS for o in COPIED if o != "paper"]
CASES += [pytest.param("equal", "paper", marks=pytest.mark.slow)]


@pytest.mark.parametrize("n_jobs", ["same", 2])
@pytest.mark.parametrize(("weights", "options"), CASES)
def test_a_copy_has_the_same_bits_and_continues_alike(
    weights: str, options: str, n_jobs: int | Literal["same"]
) -> None:
    first = StreamingSparsifier(n_nodes=300, random_state=5, **COPIED[options])
    times = np.arange(len(U) + FURTHER.shape[1]) * 1.0 if options in TIMED else None
    t, later = (None, None) if times is None else np.split(times, [len(U)])
    first.update(U, V, WEIGHTS[weights], t)
    before, snapshot = first.get_state(), first.snapshot()
    second = first.copy(n_jobs=n_jobs)
    assert_equal_states(second.get_state(), before)
    assert second.snapshot() == snapshot
    second.update(*FURTHER, None, later)
    assert_equal_states(first.get_state(), before)
    first.update(*FURTHER, None, later)
    assert_equal_states(second.get_state(), first.get_state())
    assert second.snapshot() == first.snapshot()


def assert_equal_states(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name in one.keys() - {"parameters"}:  # which have the number of threads
        assert one[name].dtype == other[name].dtype
        assert one[name].tobytes() == other[name].tobytes(), name


if __name__ == "__main__":
    for weights in WEIGHTS:
        for options in OPTIONS:
            print(f'    ("{weights}", "{options}"): "{digest(weights, options)}",')
