"""The epsilon of sparsifiers whose edges fade, compared with the faded graph.

Seeds are fixed. ``benchmarks/half_life.py`` measures a mean epsilon of 0.2 to 0.41 over all
families and half-lives at 18 rows per node, with a standard deviation of a tenth of that, where
the limit of this test is 0.8.
"""

import math

import numpy as np
import pytest

from benchmarks.families import FAMILIES, Ruler
from benchmarks.half_life import repeat
from ohmlearn import Graph, StreamingSparsifier

EPSILON = 0.8


@pytest.mark.parametrize("share", [1 / 3, 1 / 33])
@pytest.mark.parametrize("name", ["blocks", "attachment"])
def test_quality(name: str, share: float) -> None:
    family = FAMILIES[name]()
    n = family.graph.n_nodes
    for seed in range(2):
        u, v, w = repeat(family, seed)
        t = np.arange(len(u), dtype=np.float64)
        half_life = share * len(u)
        kept = StreamingSparsifier(
            n_nodes=n, epsilon=EPSILON, half_life=half_life, random_state=seed
        ).update(u, v, w, t)
        h = kept.snapshot()
        faded = Graph.from_edges(u, v, w * np.exp2((t - t[-1]) / half_life), n_nodes=n)
        assert h.n_edges < 0.65 * faded.n_edges  # coins were tossed
        np.testing.assert_array_equal(h.components()[1], faded.components()[1])
        assert Ruler(faded).epsilon(h) <= EPSILON


def test_the_expectation_is_right() -> None:
    """The mean weight of a cut over 64 seeds; the limit is five standard errors."""
    n, m, half_life = 40, 20_000, 2_500.0
    rng = np.random.default_rng(1)
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    t = np.arange(m) + rng.uniform(0.0, half_life, m)
    weights = np.exp2((t - t.max()) / half_life)
    cut = (u < n // 2) != (v < n // 2)
    truth, found = weights[cut].sum(), []
    for seed in range(64):
        kept = StreamingSparsifier(
            n_nodes=n, max_edges=200, half_life=half_life, random_state=seed
        ).update(u, v, None, t)
        a, b, w = kept.snapshot().edges()
        found.append(w[(a < n // 2) != (b < n // 2)].sum())
    error = np.std(found) / math.sqrt(len(found))
    assert 0.0 < error < 0.05 * truth
    assert abs(np.mean(found) - truth) < 5.0 * error
