"""The sparsifier is right in expectation."""

import numpy as np
import pytest

from ohmlearn import gallery
from ohmlearn.sparsifier import StreamingSparsifier


@pytest.mark.parametrize("scheme", ["resample", "online"])
def test_expected_laplacian_is_that_of_the_graph(scheme):
    # 100 seeds, 20 energies, each compared in units of its standard error. A correct program
    # exceeds 4.5 in one of 40 comparisons with probability below 1e-3.
    graph = gallery.stochastic_blocks([100, 100], 0.9, bridges=2, random_state=0)
    u, v, w = graph.edges()
    probes = np.random.default_rng(0).standard_normal((200, 20))
    truth = np.sum(probes * (graph.laplacian() @ probes), axis=0)
    found = []
    for seed in range(100):
        sparsifier = StreamingSparsifier(epsilon=0.95, scheme=scheme, random_state=seed)
        for _ in range(3):  # parallel edges, several resamples
            sparsifier.update(u, v, w / 3)
        kept = sparsifier.snapshot()
        assert kept.n_edges < graph.n_edges
        found.append(np.sum(probes * (kept.laplacian() @ probes), axis=0))
    error = (np.mean(found, axis=0) - truth) / (np.std(found, axis=0) / np.sqrt(len(found)))
    assert np.max(np.abs(error)) < 4.5
