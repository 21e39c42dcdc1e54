"""Which nodes are suggested, against dense covariances and by what must hold."""

from itertools import pairwise

import numpy as np
import pytest

from ohmlearn import Graph, gallery
from ohmlearn.estimators import suggest_labels
from ohmlearn.estimators.suggest_labels import Suggestion, suggest_nodes


def components(*sizes):
    """A path of each size."""
    starts = np.cumsum([0, *sizes])
    u = np.concatenate([np.arange(a, b - 1) for a, b in pairwise(starts)])
    return Graph.from_edges(u, u + 1, n_nodes=int(starts[-1]))


def nodes_of(picks):
    return [pick.node for pick in picks]


def exact_steps(graph, labelled, picks, uncertainty, *, few):
    """Yield, for each pick, its value relative to the best, and how many nodes it settles."""
    scale = suggest_labels.STIFFNESS[0 if few else 1] / graph.degrees.mean()
    precision = scale * graph.laplacian().toarray()
    precision[labelled, labelled] += 1.0
    covariance, adjacent = np.linalg.inv(precision), graph.to_scipy().toarray() > 0
    free = np.ones(graph.n_nodes, dtype=bool)
    free[labelled] = False
    for i in picks:
        variance = np.diag(covariance).copy()
        gain = covariance.sum(axis=0) ** 2 if few else np.linalg.norm(covariance, axis=0)
        value = np.where(free, uncertainty * gain / (1 + variance), 0.0)
        removed = np.outer(covariance[i], covariance[i]) / (1 + variance[i])
        yield value[i] / value.max(), np.count_nonzero(np.diag(removed) >= 0.5 * variance)
        covariance -= removed
        free[i] = False
        free[adjacent[i]] = False


@pytest.mark.parametrize("few", [True, False])
def test_picks_are_best_by_exact_covariances(few, monkeypatch):
    """With 6400 samples or more, every value is known to about 2%."""
    monkeypatch.setattr(suggest_labels, "ROUNDS", 400)
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 60, (2, 150))
    graph = Graph.from_edges(u[u != v], v[u != v], n_nodes=60)
    assert graph.components()[0] == 1
    labelled = [3, 4] if few else [3, 4, 5, 6, 7, 8]
    first = rng.random(60)
    probabilities = np.column_stack([first, 1 - first])
    found = suggest_nodes(graph, labelled, 8, probabilities=probabilities, random_state=0)
    uncertainty = 1 - np.abs(2 * first - 1)
    steps = exact_steps(graph, labelled, nodes_of(found), uncertainty, few=few)
    relative, settled = zip(*steps, strict=True)
    assert min(relative) > 0.95
    assert [pick.n_settled for pick in found] == pytest.approx(settled, abs=1)


def test_components_without_labels_come_first_by_size():
    graph = components(30, 5, 20, 1, 2)
    found = suggest_nodes(graph, [0], 10, random_state=0)
    assert [pick.n_settled for pick in found[:3]] == [20, 5, 2]
    assert [pick.kind for pick in found[:3]] == ["component"] * 3
    assert {pick.kind for pick in found[3:]} == {"influence"}
    assert found[0].reason == "covers a component of 20 nodes without a label"
    everything = suggest_nodes(graph, [0], 100, random_state=0)
    assert len(everything) == 57
    assert everything[-1].reason == "has neither a label nor an edge"
    assert sorted(nodes_of(everything)) == list(range(1, 58))


def test_small_components_come_last():
    graph = components(5000, 3, 6)  # 6 is more than a thousandth of the nodes, 3 is less
    found = suggest_nodes(graph, [0], 4, random_state=0)
    assert [pick.n_settled for pick in found if pick.kind == "component"] == [6]


def test_without_any_label():
    found = suggest_nodes(gallery.grid2d(12, 12), [], 5, random_state=0)
    assert found[0].kind == "component"
    assert found[0].n_settled == 144
    assert [pick.kind for pick in found[1:]] == ["influence"] * 4
    assert len(set(nodes_of(found))) == 5
    assert suggest_nodes(components(1, 1), [], 5, random_state=0) == [
        Suggestion(0, "component", 1),
        Suggestion(1, "component", 1),
    ]


def test_no_labelled_no_excluded_and_no_adjacent_nodes():
    graph = gallery.grid2d(15, 15)
    labelled, exclude = np.arange(0, 60), np.arange(60, 150)
    picks = nodes_of(suggest_nodes(graph, labelled, 20, exclude=exclude, random_state=0))
    assert len(picks) == 20
    assert min(picks) >= 150
    assert not graph.to_scipy().toarray()[np.ix_(picks, picks)].any()


def test_adjacent_nodes_only_if_there_are_no_others():
    assert len(suggest_nodes(gallery.complete(6), [0], 10, random_state=0)) == 5
    star = Graph.from_edges(np.zeros(5, dtype=int), np.arange(1, 6))
    assert nodes_of(suggest_nodes(star, [1], 5, random_state=0))[0] == 0


def test_excluded_components_are_left_out():
    assert nodes_of(suggest_nodes(components(4, 3), [0], 1, exclude=[4, 5, 6])) < [4]
    assert suggest_nodes(components(2, 2), [0, 1], 3, exclude=[2, 3]) == []


def test_borderline_nodes_name_their_classes():
    """Many labels on a grid; two classes are close at one node only."""
    graph = gallery.grid2d(10, 10)
    probabilities = np.tile([0.98, 0.01, 0.01], (100, 1))
    probabilities[55] = [0.1, 0.45, 0.45]
    pick = suggest_nodes(
        graph,
        np.arange(0, 100, 4),
        1,
        probabilities=probabilities,
        classes=["a", "b", "c"],
        random_state=0,
    )[0]
    assert pick.node == 55
    assert pick.kind == "borderline"
    assert pick.between == ("b", "c")
    assert pick.reason.startswith("borderline between b and c")


def test_same_seed_same_picks_for_any_number_of_threads():
    graph = gallery.grid2d(40, 40)
    first = suggest_nodes(graph, [3], 8, random_state=7, n_jobs=1)
    assert first == suggest_nodes(graph, [3], 8, random_state=7, n_jobs=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labelled": [9]}, r"n_nodes = 3, but labelled\[0\] = 9"),
        ({"exclude": [0, -1]}, r"n_nodes = 3, but exclude\[1\] = -1"),
        (
            {"probabilities": np.ones((2, 2))},
            r"one row for each of the 3 nodes, got shape \(2, 2\)",
        ),
        ({"k": 0}, "k must be"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"labelled": [0], "k": 1, **arguments}
    with pytest.raises(ValueError, match=message):
        suggest_nodes(gallery.path(3), **given)
