"""Measure how faithful reasons are: whether the answer changes without what they name.

``python -m benchmarks.reasons`` prints one JSON line per set: of nodes drawn at random, the
fraction whose answer changes when the labels or the edges with the largest contributions are
removed, beside those that a person would guess. Each answer is a refit with the same parameters.
Nodes that then no label reaches are counted apart ("cut"): nothing is explained by isolating a
node. Other figures are errors of the identities that hold for reasons, the fraction of `changes_if`
that a fresh model confirms, and the time for a node.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.graphs import DATA
from benchmarks.label_sets import LabelledGraph, load_whole
from benchmarks.measure import Figure, emit, timed
from benchmarks.trust import draw_labels
from ohmlearn import Graph, HFSClassifier, gallery, solve_hfs
from ohmlearn.estimators.answer import NodeAnswer, comparable_scores
from ohmlearn.estimators.explanation import _Asked, find_parts
from ohmlearn.estimators.label_input import choose_labels
from ohmlearn.estimators.reasons import Explanation
from ohmlearn.harmonic.influence import find_influence

SETS = ("digits", "ssl_digit1", "ssl_coil", "satimage", "letter", "isolet_1560", "cora", "pubmed",
        "email_eu_core", "facebook_pages", "school_primary")  # fmt: skip
# A refit with the default method takes a solve for each label, so only these sets have it, too.
AUTO = ("digits", "ssl_digit1", "ssl_coil", "satimage", "cora", "school_primary")
PER_CLASS = 5
N_LABELS, N_EDGES = (1, 2, 3), (1, 3, 10)
LABEL_WAYS = ("named", "nearest", "shortest", "random")
EDGE_WAYS = ("named", "path", "current", "random")
BLOCK = 16


class Removals:
    """Labels and edges to remove for each explained node of a model."""

    def __init__(self, model: HFSClassifier, whys: list[Explanation], seed: int) -> None:
        self.model, self.whys = model, whys
        self.rng = np.random.default_rng(seed)
        self.problem = problem = model.problem_
        self.u, self.v, self.w = problem.graph.edges()
        nodes = np.array([why.node for why in whys])
        n = problem.graph.n_nodes
        lengths = csr_array((1.0 / self.w, (self.u, self.v)), shape=(n, n))
        self.distances, self.before = dijkstra(
            lengths, directed=False, indices=nodes, return_predecessors=True
        )
        self.steps = dijkstra(lengths, directed=False, indices=nodes, unweighted=True)
        solver = problem.solver
        self.potentials = find_influence([solver], nodes)[0].potentials

    def labels(self, at: int, way: str) -> list[int]:
        """Return positions of labels, the first to remove first.

        The nearest ones are those at the fewest edges, in random order if at equally many;
        "shortest" adds inverse weights of the edges, which a person would have to compute.
        """
        why, used = self.whys[at], self.problem.used
        if way == "named":
            place = {node: position for position, node in enumerate(used.nodes.tolist())}
            return [place[one.node] for one in why.labels if one.contribution > 0.0]
        same = np.flatnonzero(self.model.classes_[used.values.argmax(axis=1)] == why.label)
        same = self.rng.permutation(same)
        if way == "random":
            return same.tolist()
        distances = self.steps if way == "nearest" else self.distances
        return same[np.argsort(distances[at, used.nodes[same]], kind="stable")].tolist()

    def edges(self, at: int, way: str) -> list[int]:
        """Return positions of edges, the first to remove first."""
        why, most = self.whys[at], max(N_EDGES)
        if way == "named":
            assert why.edges is not None
            positive = [one for one in why.edges if one.support > 0.0]
            return [self._position(one.source, one.target) for one in positive]
        if way == "path":
            return self._path_edges(at, most)
        if way == "current":
            x = self.potentials[:, at]
            return np.argsort(-np.abs(self.w * (x[self.u] - x[self.v])))[:most].tolist()
        incident = (self.u == why.node) | (self.v == why.node)
        near = np.unique(np.append(self.u[incident], self.v[incident]))
        around = np.flatnonzero(np.isin(self.u, near) | np.isin(self.v, near))
        return self.rng.permutation(around)[:most].tolist()

    def _path_edges(self, at: int, most: int) -> list[int]:
        """Return edges on shortest paths to the nearest labels of the class, from the node on."""
        found: dict[int, None] = {}
        for label in self.labels(at, "shortest"):
            node, path = int(self.problem.used.nodes[label]), []
            while self.before[at, node] >= 0:
                other = int(self.before[at, node])
                path.append(self._position(node, other))
                node = other
            found |= dict.fromkeys(reversed(path))
            if len(found) >= most:
                break
        return list(found)[:most]

    def _position(self, a: int, b: int) -> int:
        return int(np.flatnonzero((self.u == min(a, b)) & (self.v == max(a, b)))[0])

    def without_labels(self, labels: list[int]) -> NodeAnswer:
        """Return the answer of a refit without some labels."""
        problem = self.problem
        rest = np.setdiff1d(np.arange(len(problem.used.nodes)), labels)
        other = problem.with_labels(choose_labels(problem.used, rest))
        return other.answer(other.solve(self.model.answer_.result))

    def without_edges(self, edges: list[int]) -> NodeAnswer:
        """Return the answer of a refit without some edges."""
        kept = np.setdiff1d(np.arange(len(self.u)), edges)
        ends = (part[kept] for part in (self.u, self.v, self.w))
        graph = Graph.from_edges(*ends, n_nodes=self.problem.graph.n_nodes)
        return self.problem.answer(self.problem.solve(self.model.answer_.result, graph=graph))


def faithfulness(removals: Removals) -> Figure:
    """Return the fractions of answers that change, and of nodes that are cut off."""
    found: Figure = {}

    def count(what: str, ways: tuple[str, ...], sizes: tuple[int, ...], choose: Any, refit: Any):
        for way in ways:
            chosen = [choose(at, way) for at in range(len(removals.whys))]
            for size in sizes:
                outcome = np.zeros((len(chosen), 2))
                for at, (why, some) in enumerate(zip(removals.whys, chosen, strict=True)):
                    answer = refit(some[:size])
                    is_cut = not answer.result.reached[why.node]
                    outcome[at] = is_cut, not is_cut and answer.labels[why.node] != why.label
                cut, changed = outcome.mean(axis=0).round(4).tolist()
                found[f"{what}_{way}_{size}"] = changed
                found[f"{what}_{way}_{size}_cut"] = cut

    count("labels", LABEL_WAYS, N_LABELS, removals.labels, removals.without_labels)
    count("edges", EDGE_WAYS, N_EDGES, removals.edges, removals.without_edges)
    return found


def identities(removals: Removals) -> Figure:
    """Return the largest errors of sums of contributions and of margins without a label."""
    model = removals.model
    answer, problem = model.answer_, model.problem_
    sums, removed = [], []
    for why in removals.whys:
        size = sum(abs(one.contribution) for one in why.labels)
        total = sum(one.contribution for one in why.labels) + sum(why.offsets.values())
        sums.append(abs(total - why.margin) / size)
        asked = _Asked.about(answer, why.node, why.label, why.against)
        first = why.labels[0]
        rest = np.flatnonzero(problem.used.nodes != first.node)
        used = choose_labels(problem.used, rest)
        margin = why.margin - asked.from_labels
        for part in find_parts(answer, [asked]):
            held = part.problem.solver.system.scale  # c, which a refit would change
            found = solve_hfs(
                problem.graph, used.nodes, problem.columns[rest], method=part.problem.method,
                sample_weight=used.weights, tol=1e-10,
                gamma=held if part.is_walk else held / used.weights.sum(),
            )  # fmt: skip
            ones = np.ones(found.f.shape[1])
            scores = found.f if part.is_walk else comparable_scores(found, ones)
            margin += part.factor[0] * float(scores[why.node] @ part.sigma[0])
        removed.append(abs(margin - first.if_removed) / size)
    return {"sum_error": max(sums), "removal_error": max(removed)}


def confirmed(removals: Removals, graph: Graph, y: np.ndarray) -> Figure:
    """Return how many `changes_if` there are, and the fraction that fresh models confirm."""
    model, kinds = removals.model, {"removed": 0, "wrong": 0}
    n_right, sizes = 0, []
    for why in removals.whys:
        for change in why.changes_if:
            given = y.copy()
            given[list(change.nodes)] = -1 if change.kind == "removed" else why.against
            again = HFSClassifier(**model.get_params()).fit_edges(graph, given)
            n_right += again.transduction_[why.node] == change.becomes != why.label
            kinds[change.kind] += 1
            sizes.append(len(change.nodes))
    total = sum(kinds.values())
    return {
        "changes": total, "changes_removed": kinds["removed"], "changes_wrong": kinds["wrong"],
        "labels_in_change": round(float(np.mean(sizes)), 2) if sizes else None,
        "confirmed": n_right / total if total else None,
    }  # fmt: skip


def on_set(data: LabelledGraph, n_nodes: int, seed: int, method: Any) -> Figure:
    """Return all figures of one set."""
    y = np.full(len(data.y), -1)
    chosen = draw_labels(data.y, PER_CLASS, "stratified", seed)
    y[chosen] = data.y[chosen]
    model = HFSClassifier(epsilon=None, method=method, random_state=0).fit_edges(data.graph, y)
    candidates = np.flatnonzero(model.answer_.result.reached & (y < 0) & (data.y >= 0))
    drawn = np.random.default_rng(seed).choice(candidates, 2 * n_nodes, replace=False)
    whys = model.explain(drawn.tolist(), n_labels=None, n_edges=max(N_EDGES))
    removals = Removals(model, [why for why in whys if why.labels][:n_nodes], seed)
    contributions = [np.sort(np.abs([one.contribution for one in w.labels]))[::-1]
                     for w in removals.whys]  # fmt: skip
    half = [int(np.searchsorted(np.cumsum(c), c.sum() / 2)) + 1 for c in contributions]
    return {
        "nodes": data.graph.n_nodes, "edges": data.graph.n_edges,
        "classes": len(model.classes_), "explained": len(removals.whys),
        "right": float(np.mean(model.transduction_[candidates] == data.y[candidates])),
        "labels_of_half": float(np.median(half)),
        **faithfulness(removals), **identities(removals), **confirmed(removals, data.graph, y),
    }  # fmt: skip


def costs(n: int, blocks: int) -> Iterator[Figure]:
    """Yield the times for single nodes and for blocks, on large graphs."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(10, size=n))
    starts = np.searchsorted(group, np.arange(11))
    u = rng.integers(n, size=5 * n)
    first, size = starts[group[u]], np.diff(starts)[group[u]]
    inside = first + (rng.random(5 * n) * size).astype(np.int64)
    v = np.where(rng.random(5 * n) < 0.8, inside, rng.integers(n, size=5 * n))
    made: dict[str, Callable[[], Graph]] = {
        "communities": lambda: Graph.from_edges(u[u != v], v[u != v], n_nodes=n),
        "knn": lambda: gallery.knn_points(n, 10),
    }
    for name, make in made.items():
        graph = make()
        y = {int(node): int(group[node]) for node in rng.choice(n, 50, replace=False)}
        model = HFSClassifier(epsilon=None, random_state=0)
        cpu = timed(partial(model.fit_edges, graph, y))[1]
        nodes = rng.choice(n, 1 + blocks * (1 + BLOCK), replace=False).tolist()
        groups = [nodes[:1], *([node] for node in nodes[1 : 1 + blocks])]
        groups += [nodes[at : at + BLOCK] for at in range(1 + blocks, len(nodes), BLOCK)]
        used = [timed(partial(model.explain, some))[1] / len(some) for some in groups]
        yield {
            "graph": name, "nodes": graph.n_nodes, "edges": graph.n_edges, "fit_cpu_s": cpu,
            "first_cpu_s": used[0], "alone_cpu_s": min(used[1 : 1 + blocks]),
            "block_cpu_s": min(used[1 + blocks :]),
        }  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the data sets")
    parser.add_argument("--points", type=int, default=3000, help="largest number of points")
    parser.add_argument("--explained", type=int, default=40, help="nodes of each set")
    parser.add_argument("--cost-nodes", type=float, default=1e5, help="0: without the times")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument(
        "--auto", nargs="*", default=list(AUTO), help="sets for the default method, which is slower"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # components without a label are intended
    both = [*options.sets, *options.auto]
    for data in load_whole(options.data, options.points, both) if both else ():
        if isinstance(data, str):
            emit({"bench": "reasons", "case": "sets", "set": data, "status": "no data"})
            continue
        if data.name not in both:
            continue  # load_whole compares beginnings
        print(f"{data.name}: {data.graph}", file=sys.stderr, flush=True)
        for method, sets in (("harmonic", options.sets), ("auto", options.auto)):
            if data.name in sets:
                figure = on_set(data, options.explained, 0, method)
                head = {"bench": "reasons", "case": "sets", "set": data.name, "method": method}
                emit({**head, **figure})
    n_nodes = int(options.cost_nodes)
    for figure in costs(n_nodes, 3) if n_nodes else ():
        emit({"bench": "reasons", "case": "cost", **figure})


if __name__ == "__main__":
    main()
