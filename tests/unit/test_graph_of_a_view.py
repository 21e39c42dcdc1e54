"""The snapshot of a sparsifier that forgets is a graph like any other."""

import numpy as np
import pytest

from ohmlearn import Graph, HFSClassifier, StreamingSparsifier, certify, refine, solve_hfs

U, V = np.triu_indices(30, 1)
T = np.random.default_rng(0).uniform(0.0, 10.0, len(U))


@pytest.fixture(params=[{"half_life": 3.0}, {"horizon": 5.0}], ids=["half-life", "window"])
def snapshot(request: pytest.FixtureRequest) -> Graph:
    sparsifier = StreamingSparsifier(n_nodes=30, random_state=0, **request.param)
    return sparsifier.update(U, V, t=T).snapshot()


def without_view(graph: Graph) -> Graph:
    return Graph.from_edges(*graph.edges(), n_nodes=graph.n_nodes)


@pytest.mark.parametrize("epsilon", [None, 0.9])
def test_estimators_use_all_its_edges(snapshot: Graph, epsilon: float | None):
    labels = {0: "a", 29: "b"}
    models = [
        HFSClassifier(epsilon=epsilon, random_state=0).fit_edges(graph, labels)
        for graph in (snapshot, without_view(snapshot))
    ]
    assert models[0].graph_ == models[1].graph_
    assert models[0].graph_.n_edges > 0
    assert models[0].reached_.all()


def test_it_can_be_the_graph_that_is_approximated(snapshot: Graph):
    certificate = certify(snapshot, snapshot, random_state=0)
    assert certificate.epsilon < 1e-9
    refined = refine(snapshot, snapshot, [0, 29], [1.0, -1.0], random_state=0)
    direct = solve_hfs(without_view(snapshot), [0, 29], [1.0, -1.0], random_state=0)
    np.testing.assert_allclose(refined.f, direct.f, atol=1e-6)
