"""Edges that fade or leave the window, on a cluster."""

from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from ohmlearn import Graph, certify
from ohmlearn.dask import ClusterEdges, sparsify

N, M, HALF_LIFE = 60, 6000, 400.0
RNG = np.random.default_rng(0)
U, V = RNG.integers(0, N, M), RNG.integers(0, N, M)
W, T = RNG.uniform(0.5, 2.0, M), 1000.0 + np.arange(M)


def parts(client: Client) -> ClusterEdges:
    """Partitions that overlap in time, and one that has faded."""
    cuts = [np.arange(0, 1000), *(np.arange(1000 + i, M, 3) for i in range(3))]
    delayed = [dask.delayed((U[at], V[at], W[at], T[at])) for at in cuts]
    return ClusterEdges(delayed, client=client, time=True)


def faded(edges: ClusterEdges) -> Graph:
    """The faded graph, with nodes numbered as on the cluster."""
    u, v = edges.nodes.find(U), edges.nodes.find(V)
    return Graph.from_edges(u, v, W * np.exp2((T - T[-1]) / HALF_LIFE), n_nodes=N)


def test_a_sparsifier_of_all_rows_has_the_faded_weights(two: Client):
    edges = parts(two)
    h = sparsify(edges, max_edges=10**5, half_life=HALF_LIFE, random_state=0)
    expected = faded(edges).to_scipy().toarray()
    np.testing.assert_allclose(h.to_scipy().toarray(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("forget", "since", "start"),
    [
        ({"half_life": HALF_LIFE}, None, None),
        ({"horizon": 2000.0}, None, T[-1] - 2000.0),
        ({"horizon": 2000.0}, 5500.0, 5500.0),
    ],
)
def test_passes_on_workers_read_what_counts(two: Client, forget: Any, since: Any, start: Any):
    edges = parts(two)
    kept = edges.sparsify(epsilon=0.9, random_state=0, **forget)
    assert kept.latest_ == T[-1]
    arrays = edges.nodes.find(U), edges.nodes.find(V), W, T
    here = certify([arrays], kept, since=since, random_state=0)
    there = certify(edges, kept, since=since, random_state=0)
    assert there.epsilon == pytest.approx(here.epsilon, rel=1e-6)
    assert 0.0 < here.epsilon < 0.9
    assert there.edges_read == here.edges_read
    if start is not None:  # of old edges that fade, some are left out
        assert here.edges_read == here.passes * np.count_nonzero(start <= T)
