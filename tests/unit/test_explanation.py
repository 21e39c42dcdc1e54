"""Reasons of labels: compared with dense inverses, finite differences and refits."""

import copy
import json
import pickle
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ohmlearn import Graph, HFSClassifier, HFSRegressor, gallery
from ohmlearn.cluster import LocalEdges
from ohmlearn.edges.strongest_pairs import PairSearch, PairsFound, find_strongest
from ohmlearn.estimators.explanation import difference, widest_path
from ohmlearn.estimators.reasons import Explanation
from ohmlearn.reading.as_edges import as_edges

MODELS: list[dict[str, object]] = [
    {"method": "harmonic"},
    {"normalization": None},
    {"normalization": "cmn"},
    {"method": "restart"},
    {"method": "harmonic", "class_prior": {0: 0.5, 1: 0.3, 2: 0.2}},
]


def random_graph(rng: np.random.Generator, n: int = 60, spread: float = 1.0) -> Graph:
    u, v = rng.integers(n, size=(2, 3 * n))
    return Graph.from_edges(u, v, np.exp(rng.normal(0, spread, 3 * n)), n_nodes=n)


def fit(graph: Graph, rng: np.random.Generator, n_labels: int = 12, **parameters: object):
    labelled = rng.choice(graph.n_nodes, n_labels, replace=False)
    y = {int(node): int(at % 3) for at, node in enumerate(labelled)}
    weights = {node: float(rng.choice([0.5, 1.0, 2.0])) for node in y}
    given = {"epsilon": None, "random_state": 0, "tol": 1e-10} | parameters
    model = HFSClassifier(**given)  # type: ignore[arg-type]
    return model.fit_edges(graph, y, sample_weight=weights), y


def reached(model: HFSClassifier) -> NDArray[np.intp]:
    there = np.flatnonzero(model.reached_ & (np.diff(model.graph_.indptr) > 0))
    return there[~np.isin(there, model.labelled_)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("parameters", [*MODELS, {}], ids=str)
@pytest.mark.parametrize("gamma", [1e-4, 1.0, 1e5])
def test_contributions_sum_to_the_margin(parameters: dict[str, object], gamma: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, spread=[0.0, 1.0, 3.0, 1.0][seed])
        model, _ = fit(graph, rng, gamma=gamma, **parameters)
        nodes = rng.choice(reached(model), 4, replace=False).tolist()
        exponents = model.answer_.exponents + model.answer_.offsets
        for why in model.explain(nodes, n_labels=None):
            if not why.labels:
                assert why.note
                continue
            codes = [model.classes_.tolist().index(name) for name in (why.label, why.against)]
            margin = exponents[why.node, codes[0]] - exponents[why.node, codes[1]]
            size = sum(abs(one.contribution) for one in why.labels)
            total = sum(one.contribution for one in why.labels) + sum(why.offsets.values())
            assert why.margin == pytest.approx(margin, rel=1e-12)
            assert total == pytest.approx(margin, abs=1e-6 * size)


def margin_of(f: NDArray[np.float64], node: int, kind: str, inside: NDArray[np.bool_]) -> float:
    if kind == "stable":
        f = f - f[inside].mean(axis=0)
    return float(f[node, 0] - f[node, 1])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_margins_without_a_label_are_those_of_a_refit(parameters: dict[str, object]) -> None:
    """A refit keeps c = gamma l, the counts of the classes, and the scale of exponents."""
    rng = np.random.default_rng(5)
    model, _ = fit(random_graph(rng), rng, gamma=0.01, **parameters)
    nodes = rng.choice(reached(model), 3, replace=False).tolist()
    answer, problem = model.answer_, model.problem_
    for why in model.explain(nodes, n_labels=None):
        for one in why.labels[:4]:
            rest = np.flatnonzero(problem.used.nodes != one.node)
            used = problem.used._replace(
                nodes=problem.used.nodes[rest],
                values=problem.used.values[rest],
                weights=problem.used.weights[rest],
            )
            other = problem.with_labels(used)
            if answer.kind != "restart":  # there c is gamma
                lighter = problem.used.weights.sum() / used.weights.sum()
                other.__dict__["gamma"] = problem.gamma * lighter
            refit = other.solve()
            factors = answer.class_factors(answer.counts)
            a, b = (model.classes_.tolist().index(name) for name in (why.label, why.against))
            inside = refit.component == refit.component[why.node]
            phi, now = (
                margin_of((found.f * factors)[:, [a, b]], why.node, answer.kind, inside)
                for found in (refit, answer.result)
            )
            rest = sum(why.offsets.values())
            expected = phi * (why.margin - rest) / now + rest
            size = sum(abs(one.contribution) for one in why.labels)
            assert one.if_removed == pytest.approx(expected, abs=1e-5 * size)


@pytest.mark.parametrize("parameters", MODELS[:4], ids=str)
def test_supports_are_derivatives(parameters: dict[str, object]) -> None:
    """w dm / dw by finite differences, with everything that exponents are scaled by held."""
    rng = np.random.default_rng(3)
    graph = random_graph(rng, n=30)
    u, v, w = graph.edges()
    model, _ = fit(graph, rng, gamma=0.01, **parameters)
    node = int(reached(model)[0])
    why = model.explain(node, n_edges=len(u))
    assert why.edges is not None
    assert len(why.edges) == len(u)
    answer, problem = model.answer_, model.problem_
    a, b = (model.classes_.tolist().index(name) for name in (why.label, why.against))
    factors = answer.class_factors(answer.counts)

    def phi(weights: NDArray[np.float64]) -> float:
        f = problem.solve(graph=Graph.from_edges(u, v, weights, n_nodes=30), tol=1e-12).f * factors
        f = f - f.mean(axis=0) if answer.kind == "stable" else np.log(f)
        return float(f[node, a] - f[node, b])

    scale = why.margin / phi(w)
    for one in (why.edges[0], why.edges[3], why.edges[20]):
        at = np.flatnonzero((u == one.source) & (v == one.target))
        step = np.where(np.arange(len(u)) == at, 1e-4 * w, 0.0)
        slope = (phi(w + step) - phi(w - step)) / 2e-4
        assert one.support == pytest.approx(slope * scale, rel=1e-3, abs=1e-5 * abs(why.margin))


def test_votes_of_neighbours_sum_to_the_margin() -> None:
    """Up to the multiplier of the constraint, which is small for a small gamma."""
    rng = np.random.default_rng(0)
    model, _ = fit(random_graph(rng), rng, gamma=1e-3, method="harmonic")
    node = int(reached(model)[3])
    why = model.explain(node)
    assert why.neighbors is not None
    problem = model.problem_
    a, b = (model.classes_.tolist().index(name) for name in (why.label, why.against))
    factors = model.answer_.class_factors(model.answer_.counts)
    mu = model.answer_.result.mu * factors
    f = model.answer_.result.f * factors
    f = f - f[model.reached_].mean(axis=0)
    scale = why.margin / (f[node, a] - f[node, b])
    rest = (
        scale
        * (mu[a] - mu[b])
        / (problem.gamma * problem.used.weights.sum() * problem.graph.degrees[node])
    )
    total = sum(one.contribution for one in why.neighbors)
    assert total - rest == pytest.approx(why.margin, rel=1e-6)
    assert sum(one.weight for one in why.neighbors) == pytest.approx(problem.graph.degrees[node])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_changes_are_confirmed_by_fits() -> None:
    n_found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng)
        model, y = fit(graph, rng)
        weights = dict(zip(model.labelled_.tolist(), model.problem_.used.weights, strict=False))
        for why in model.explain(rng.choice(reached(model), 4, replace=False).tolist()):
            for change in why.changes_if:
                other = {k: c for k, c in y.items() if k not in change.nodes}
                if change.kind == "wrong":
                    other = y | dict.fromkeys(change.nodes, why.against)
                again = HFSClassifier(epsilon=None, random_state=0, tol=1e-10)
                again.fit_edges(graph, other, sample_weight={k: weights[k] for k in other})
                assert again.transduction_[why.node] == change.becomes != why.label
                n_found += 1
    assert n_found > 12


def test_numbers() -> None:
    graph = gallery.path(7)
    model = HFSRegressor(epsilon=None, random_state=0).fit_edges(graph, {0: 1.0, 6: 4.0})
    why = model.explain(2, n_labels=None)
    value = sum(one.contribution for one in why.labels) + model.problem_.mean
    assert value == pytest.approx(model.transduction_[2])
    assert "has the value" in str(why)


def test_all_edges_are_read_where_some_were_dropped() -> None:
    """Contributions and edges from passes over a stream are those of all edges."""
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(400, 1)
    kept = rng.random(len(a)) < np.where((a < 200) == (b < 200), 0.5, 0.2)
    graph = Graph.from_edges(a[kept], b[kept], n_nodes=400)
    u, v, w = graph.edges()
    order = rng.permutation(2 * len(u)) % len(u)  # each edge in two events
    events = [(u[part], v[part], w[part] / 2) for part in np.array_split(order, 9)]
    y = {0: "a", 1: "a", 2: "a", 200: "b", 201: "b", 202: "b"}
    # Walks that are added by default are those of the edges kept, so harmonic scores alone.
    how = {"method": "harmonic", "random_state": 0}
    whole = HFSClassifier(epsilon=None, **how).fit_edges(graph, y)
    few = HFSClassifier(max_edges=6000, passes=8, **how).fit_edges(events, y)
    for node in (17, 333):
        truth = whole.explain(node, n_labels=None, n_edges=10)
        assert few.explain(node).note.startswith("reasons from the sparsifier with")
        why = few.explain(node, edges=events, n_labels=None, n_edges=10)
        assert (why.label, why.against) == (truth.label, truth.against)
        found = {one.node: one.fraction for one in why.labels}
        for one in truth.labels:
            assert found[one.node] == pytest.approx(one.fraction, abs=0.1)
        assert why.edges is not None
        assert truth.edges is not None
        ends = [{(one.source, one.target) for one in each.edges} for each in (why, truth)]
        assert len(ends[0] & ends[1]) >= 8
        assert {one.weight for one in why.edges} == {1.0}
        assert why.basis.startswith("all edges, read in")


def test_edges_in_partitions_are_looked_at_where_they_are() -> None:
    """Edges in several partitions have their whole weight, and so does what is written as bytes."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(300, size=(2, 30_000))
    parts = [(u[part], v[part]) for part in np.array_split(np.arange(len(u)), 6)]
    y = {0: "a", 1: "a", 298: "b", 299: "b"}
    measures = [partial(difference, rng.normal(size=300)) for _ in range(2)]
    found, near = find_strongest(as_edges([(u, v)]), measures, 50, np.array([3]), n_nodes=300)
    edges = LocalEdges(parts, split_every=2)
    nodes = edges.sparsify(random_state=0).nodes
    assert nodes is not None
    number = nodes.find(np.arange(300))
    measured = [partial(difference, one.args[0][np.argsort(number)]) for one in measures]
    again, around = find_strongest(edges, measured, 50, number[[3]], n_nodes=300)
    for one, other in zip([*found, *near], [*again, *around], strict=True):
        ends = nodes.ids(np.concatenate(other[:2])).reshape(2, -1)
        known = {frozenset(pair): w for *pair, w in zip(*ends.tolist(), other.w, strict=True)}
        assert known == {frozenset(p): w for *p, w in zip(*map(list, one[:3]), strict=True)}
    model = HFSClassifier(max_edges=2000, random_state=0).fit_edges(edges, y)
    (why,) = model.explain([17], edges=edges)
    assert why.edges
    assert why.neighbors
    search = PairSearch(measures, np.array([3]), 300).read(as_edges(parts))
    read = PairsFound.from_bytes(search.to_bytes())
    for one, other in zip([*search.best, search.chosen], [*read.best, read.chosen], strict=True):
        assert all(np.array_equal(*columns) for columns in zip(one, other, strict=True))
    assert (search.is_whole, search.n_parts) == (read.is_whole, read.n_parts)


def test_answers_of_one_pass_say_what_they_rest_on() -> None:
    """On a graph of which enough edges are kept; otherwise reasons are withheld."""
    a, b = np.triu_indices(120, 1)
    weights = np.where((a < 60) == (b < 60), 1.0, 0.05)
    y = {0: "a", 1: "a", 60: "b", 61: "b"}
    for most, said in ((4000, ""), (300, "no reasons from the sparsifier")):
        model = HFSClassifier(max_edges=most, passes=1, random_state=0)
        why = model.fit_edges((a, b, weights), y).explain(10)
        assert why.note.startswith(said)
        assert bool(why.labels) == (said == "")
        assert why.edges is None


def test_explained_models_can_be_copied() -> None:
    model = HFSClassifier(random_state=0).fit_edges(gallery.path(600), {0: "a", 599: "b"})
    before = model.explain(17)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.explain(17) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_special_nodes() -> None:
    graph = Graph.from_edges([0, 1, 3, 5], [1, 2, 4, 6], n_nodes=8)
    model = HFSClassifier(random_state=0).fit_edges(graph, {0: "a", 2: "b", 3: "a", 7: "b"})
    notes = [model.explain(node).note for node in (5, 7, 4, 0)]
    assert notes[0].startswith("no label reaches it")
    assert notes[1].startswith("it has this label itself and no edge")
    assert notes[2] == "all labels that reach it are 'a'"
    assert notes[3].startswith("it has a label itself")
    assert model.explain(1, against="b" if model.transduction_[1] == "a" else "a").labels
    with pytest.raises(ValueError, match="against = 'c' must be a class other than the answer"):
        model.explain(1, against="c")
    with pytest.raises(ValueError, match="node"):
        model.explain(99)


def test_ids_and_json() -> None:
    edges = [("ann", "bob"), ("bob", "cy"), ("cy", "dee")]
    model = HFSClassifier(random_state=0).fit_edges(edges, {"ann": "x", "dee": "y"})
    why = model.explain("bob")
    assert isinstance(why, Explanation)
    data = json.loads(why.to_json(changes=True))
    assert data["node"] == "bob"
    assert data["labels"][0]["node"] in ("ann", "dee")
    assert data["text"].startswith('bob is "x"')
    frame = why.to_frame()
    assert frame["contribution"].sum() == pytest.approx(why.margin)
    assert [one.node for one in model.explain(["bob", "cy"])] == ["bob", "cy"]


def test_widest_path() -> None:
    currents = {0: {1: 0.6, 2: 0.4}, 1: {3: 0.5, 2: 0.1}, 2: {3: 0.5}}
    assert widest_path(currents, {3: 1.0}, 0) == ([0, 1, 3], 0.5)
    assert widest_path(currents, {3: 0.3, 2: 0.45}, 0) == ([0, 2], 0.4)
    assert widest_path(currents, {9: 1.0}, 0)[1] == 0.0
