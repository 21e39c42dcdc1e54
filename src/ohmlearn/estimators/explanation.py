"""Why a node has its label: what each label, neighbour and edge contributes to it.

A label is decided by the margin m of its class over another one, the difference of their exponents.
It is a sum of parts and of offsets of the classes. Each part is linear: a multiple of
phi = sigma_a f_a - sigma_b f_b at the node, where f = R (s y)_S are the scores (see
`harmonic.influence`). With g the row of R at the node, and t_j = sigma_a y_ja - sigma_b y_jb,

    label j contributes      g_j s_j t_j, and all labels and offsets together m,
    neighbour u contributes  (w_vu / d_v) phi_u,
    the edge (p, q) has the support  w dm/dw = -c w (g_p - g_q) (phi_p - phi_q).

Scores that are compared by their logarithms are made linear by the logarithmic mean M of the two
at the node: log p_a - log p_b = (p_a - p_b) / M, so the sums are exact for them, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ohmlearn._phases import phase
from ohmlearn.checks.edge_arrays import check_nodes_of
from ohmlearn.checks.parameters import check_count
from ohmlearn.edges.in_memory import GraphEdges
from ohmlearn.edges.passes import check_first_pass
from ohmlearn.edges.protocol import Edges
from ohmlearn.edges.strongest_pairs import Measure, NodePairs, find_strongest
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.answer import ClassAnswer, Floats, NodeAnswer
from ohmlearn.estimators.label_input import NodeLabels, choose_labels
from ohmlearn.estimators.reasons import (
    Change,
    EdgeReason,
    Explanation,
    LabelReason,
    NeighborReason,
    PathReason,
)  # fmt: skip
from ohmlearn.harmonic.influence import Influence, find_influence, refine_influence
from ohmlearn.harmonic.leave_one_out import component_means
from ohmlearn.nodes import NodeTable

if TYPE_CHECKING:
    from ohmlearn.estimators.problem import Problem

Found = TypeVar("Found")
PASSES = 10  # over the edges at most; two to four are usual
CLOSE = 0.02  # passes end when contributions add up to the margin up to this fraction of their size
# Rows of a sparsifier give contributions in the order of those of all edges (rank correlation above
# 0.9 on six real graphs) if they add up to the answer of all edges this closely, or if at most this
# fraction of all labels would be different with another sample.
ROUGH, UNSTABLE = 0.1, 0.05
FLOWS = 512  # edges with the largest currents, among which paths are found
MOST_PATHS, LEAST_FRACTION = 3, 0.2
GONE = 1e-9  # sum of the labels of a class that has none
MOST_CHANGED = 5  # labels of a set that would change the answer
REFINED = 3  # passes for the answer, if it is that of the edges kept
REFITS = 3  # for each kind of such sets
# Nodes that are explained together, and rows of them in memory: more of them share passes.
BLOCK, ENTRIES = 16, 1 << 22
PASS_BLOCK, PASS_ENTRIES = 256, 1 << 25
REMEDY = "explain(node, edges=...) computes reasons from all edges"
LABELLED = "it has a label itself, which is one of the reasons"


class MarginPart(NamedTuple):
    """A linear part of the margins, with a row or an entry for each explained node."""

    problem: Problem  # whose scores these are
    f: Floats  # scores of all nodes
    sigma: Floats  # factors of the classes in phi
    slope: Floats  # the same in derivatives of the margin, which differ for logarithms
    factor: Floats  # of phi in the margin

    @property
    def is_walk(self) -> bool:
        """Whether the scores are those of random walks with restart."""
        return self.problem.method == "restart"

    def phi(self, column: int, factors: Floats) -> Floats:
        """Return the part of the margin, linear in f, of one explained node at all nodes."""
        some = np.flatnonzero(factors[column])  # mostly two classes
        return np.asarray(self.factor[column] * (factors[column, some] @ self.f.T[some]))


def find_parts(answer: NodeAnswer, asked: list[_Asked]) -> list[MarginPart]:
    """Return the parts of the margins of nodes: harmonic scores first."""
    problem, f = answer.problem, answer.result.f
    if not isinstance(answer, ClassAnswer):
        ones = np.ones((len(asked), 1))
        return [MarginPart(problem, f, ones, ones, np.ones(len(asked)))]
    at = np.arange(len(asked))
    nodes, codes, others = (np.array([one[i] for one in asked]) for i in (0, 2, 3))

    def between(factors: Floats) -> Floats:
        """Return rows with the factor of the class, and minus that of the other one."""
        rows = np.zeros((len(asked), len(answer.counts)))
        rows[at, codes] = np.broadcast_to(factors, rows.shape)[at, codes]
        rows[at, others] = -np.broadcast_to(factors, rows.shape)[at, others]
        return rows

    # Exponents are scores times one number for each node.
    scores, exponents = answer.scores[nodes], answer.harmonic_exponents[nodes]
    differences = scores[at, codes] - scores[at, others]
    safe = np.where(differences != 0.0, differences, 1.0)
    factor = np.where(
        differences != 0.0, (exponents[at, codes] - exponents[at, others]) / safe, 1.0
    )
    weights = answer.class_factors(answer.counts)
    sigma = slope = between(weights)
    if answer.kind != "stable":  # logarithms, made linear by the logarithmic mean
        p, q = f[nodes, codes] * weights[codes], f[nodes, others] * weights[others]
        logs = np.where(p == q, 1.0, np.log(p) - np.log(q))
        sigma = sigma / np.where(p == q, p, (p - q) / logs)[:, np.newaxis]
        slope = between(1.0 / f[nodes])
    parts = [MarginPart(problem, f, sigma, slope, factor)]
    added = answer.combination
    if added is not None and added.restart > 0.0:
        sigma = between(1.0 / np.where(answer.counts > 0, answer.counts, 1.0))
        sizes = answer.walk_sizes(nodes)
        parts.append(
            MarginPart(answer.problem.walks, answer.walks.f, sigma, sigma, added.restart / sizes)
        )
    return parts


def explain_nodes(
    answer: NodeAnswer,
    nodes: Sequence[int],
    *,
    against: object = None,
    edges: Edges | None = None,
    n_labels: int | None = 5,
    n_edges: int = 20,
    remedy: str = REMEDY,
) -> list[Explanation]:
    """Return the reasons for the answers of some nodes, given by number; they share all work.

    `remedy` is said if too few edges are kept for reasons.

    1. If only some edges are kept and all can be read, bring answer and rows to all edges.
    2. Solve for the rows of all nodes together.
    3. Find the strongest edges, the neighbours and the largest currents in one look at the edges.
    4. For each node: contributions, votes, supports and paths, with the ids of the user.
    """
    problem = answer.problem
    whole = problem.holds_all_edges
    if edges is not None and not whole and answer.result.passes == 0:
        edges = edges.again("explain")
        answer = problem.answer(problem.refine(edges, REFINED, answer.result))
    labels = answer.labels
    asked = [_Asked.about(answer, node, labels[node], against) for node in nodes]
    clear = [one for one in asked if not one.note]
    found: dict[int, Explanation] = {}
    source = None if whole else edges
    least, entries = (BLOCK, ENTRIES) if source is None else (PASS_BLOCK, PASS_ENTRIES)
    size = max(1, min(least, entries // problem.n_nodes))
    for first in range(0, len(clear), size):
        with phase("finding reasons", problem.parameters.verbose):
            some = clear[first : first + size]
            work = _Work(answer, labels, some, source, max(n_edges, FLOWS), remedy)
            for column, one in enumerate(some):
                found[one.node] = work.explanation(column, n_labels, n_edges)
    return [found.get(one.node) or one.without_reasons(answer) for one in asked]


def explain_asked(
    explain: Callable[..., list[Found]],
    table: NodeTable | None,
    n_nodes: int,
    node: object,
    **how: Any,
) -> Found | list[Found]:
    """Return what `explain` finds for a node, given by number or id, or for each of a list."""
    names = list(node) if isinstance(node, list | tuple | np.ndarray) else [node]
    if table is None:
        numbers = check_nodes_of(n_nodes, np.asarray(names), "node")
    else:
        numbers = table.find(names).astype(np.int64)
    if how["n_labels"] is not None:
        how["n_labels"] = check_count("n_labels", how["n_labels"])
    how["n_edges"] = check_count("n_edges", how["n_edges"])
    found = explain(numbers.tolist(), **how)
    return found if isinstance(node, list | tuple | np.ndarray) else found[0]


class _Asked(NamedTuple):
    """A node to explain."""

    node: int
    label: object
    code: int = 0  # its class
    other: int = -1  # the class that it is compared with; -1 if there is none
    margin: float = np.nan
    probability: float = np.nan
    offsets: tuple[tuple[str, float], ...] = ()  # parts that are the same at all nodes
    note: str = ""  # why there are no reasons

    @property
    def from_labels(self) -> float:
        """The part of the margin that comes from labels."""
        return self.margin - sum(value for _, value in self.offsets)

    @classmethod
    def about(cls, answer: NodeAnswer, node: int, label: object, against: object) -> _Asked:
        """Return what is known of a node without a solve."""
        if node in answer.problem.unused.nodes:
            return cls(
                node, label, note="it has this label itself and no edge, so nothing else counts"
            )
        if not isinstance(answer, ClassAnswer):
            if not answer.result.reached[node]:
                return cls(node, label, note=f"no label reaches it, so {answer.without_evidence}")
            return cls(node, label, margin=float(answer.result.f[node, 0]))
        probability = float(answer.probabilities[node].max())
        if not answer.result.reached[node]:
            why = "no label reaches it, so its answer is the most likely class of all"
            return cls(node, label, probability=probability, note=why)
        exponents = answer.exponents[node] + answer.offsets
        code = int(np.argmax(exponents))
        other = choose_other(answer.problem.classes, exponents, code, against)
        if exponents[other] == -np.inf or other == code:
            if against is not None:
                why = f"no label of the class {against!r} reaches it"
            else:
                why = f"all labels that reach it are {_plain(label)!r}"
            return cls(node, label, code, probability=probability, note=why)
        margin = float(exponents[code] - exponents[other])
        added = {"class proportions": answer.offsets}
        if answer.combination is not None:
            added["bias of the classes"] = answer.combination.bias
        differences = ((name, float(each[code] - each[other])) for name, each in added.items())
        offsets = tuple(one for one in differences if one[1] != 0.0)
        return cls(node, label, code, other, margin, probability, offsets)

    def without_reasons(self, answer: NodeAnswer) -> Explanation:
        """Return an explanation that says why there are no reasons."""
        name = answer.problem.id_of(self.node)
        return Explanation(
            name, _plain(self.label), None, self.probability, np.nan, [], note=self.note
        )


def choose_other(classes: NDArray[Any], values: Floats, code: int, against: object) -> int:
    """Return the class that the class `code` is compared with: the best other one by default."""
    if against is None:
        return int(np.argmax(np.where(np.arange(len(values)) == code, -np.inf, values)))
    names = classes.tolist()
    if against not in names or names.index(against) == code:
        others = ", ".join(repr(one) for at, one in enumerate(names) if at != code)
        raise InputError(
            f"{Param('against', against)} must be a class other than the answer, "
            f"{names[code]!r}: {others}"
        )
    return int(names.index(against))


class _Work:
    """What the explanations of some nodes share: rows of all parts, and one look at the edges."""

    def __init__(
        self,
        answer: NodeAnswer,
        labels: NDArray[Any],
        asked: list[_Asked],
        edges: Edges | None,
        n_pairs: int,
        remedy: str,
    ) -> None:
        self.answer, self.labels, self.asked, self.edges = answer, labels, asked, edges
        self.n_pairs, self.remedy = n_pairs, remedy
        self.problem = problem = answer.problem
        self.graph, self.used, self._name = problem.graph, problem.used, problem.id_of
        self.nodes = np.array([one.node for one in asked], dtype=np.int64)
        self.parts = find_parts(answer, asked)
        self.solvers = [part.problem.solver for part in self.parts]
        if edges is None:
            self.rows = find_influence(self.solvers, self.nodes)
            self.passes = 0
        else:
            self.rows = self._refine_rows(edges)

    def _refine_rows(self, edges: Edges) -> list[Influence]:
        """Return rows on all edges, with passes until contributions add up to the margins."""
        component, p = self.graph.components()[1], self.problem.parameters
        source = edges.open_passes(component, "explain", p.n_jobs, self.graph.view)
        source.watched = np.empty((len(component), 0), np.float32), np.empty(0, np.int64)

        def is_enough(rows: Influence) -> bool:
            check_first_pass(edges, self.graph, source, "explain(node, edges=edges)")
            self.rows = [rows, *kept]
            gaps = [self._gap(column) for column in range(len(self.asked))]
            return max(gaps) <= CLOSE

        # Walks that are added to harmonic scores are those of the edges kept, also in the answer.
        kept = find_influence(self.solvers[1:], self.nodes)
        found = refine_influence(self.solvers[0], self.nodes, source, PASSES, is_enough)
        self.passes = source.passes
        return [found, *kept]

    def _contributions(self, column: int) -> Floats:
        """Return what each label contributes to the margin of a node."""
        total = np.zeros(len(self.used.nodes))
        for part, g in zip(self.parts, self._at_labels(column), strict=True):
            votes = self.problem.columns @ part.sigma[column]
            total += part.factor[column] * g * self.used.weights * votes
        return total

    def _row(self, rows: Influence) -> Floats:
        return rows.centred if self.problem.classes.size else rows.rows

    def _at_labels(self, column: int) -> list[Floats]:
        """Return the row of a node at the labels, for each part."""
        return [self._row(rows)[self.used.nodes, column] for rows in self.rows]

    def _gap(self, column: int) -> float:
        """Return how far contributions are from adding up to the margin, relative to their size."""
        found, one = self._contributions(column), self.asked[column]
        gap = abs(one.from_labels - found.sum())
        return float(gap / max(np.abs(found).sum(), abs(one.margin), 1e-300))

    # One explanation.

    def explanation(self, column: int, n_labels: int | None, n_edges: int) -> Explanation:
        """Return the reasons for one node."""
        one = self.asked[column]
        basis, doubt = self._basis(column)
        against = None if one.other < 0 else _plain(self.problem.classes[one.other])
        base = replace(one.without_reasons(self.answer), against=against, margin=one.margin)
        if doubt:
            return replace(base, note=doubt, basis=basis)
        each = self._contributions(column)
        order = np.lexsort((self.used.nodes, -np.abs(each)))
        chosen = order if n_labels is None else order[:n_labels]
        pairs, near = self._pairs if self._sees_edges else (None, None)
        return replace(
            base,
            labels=self._label_reasons(column, chosen, each),
            offsets=dict(one.offsets),
            rest=float(one.from_labels - each[chosen].sum()),
            neighbors=None if near is None else self._neighbor_reasons(column, near[column]),
            edges=None if pairs is None else self._edge_reasons(pairs[column], n_edges),
            paths=[] if pairs is None else self._paths(column, pairs[len(self.asked) + column]),
            basis=basis,
            note=LABELLED if one.node in self.used.nodes else "",
            find_changes=partial(self._find_changes, column),
        )

    # What reasons rest on.

    def _basis(self, column: int) -> tuple[str, str]:
        """Return which edges reasons come from, and why they would say nothing, or ""."""
        if self.edges is not None:
            basis = f"all edges, read in {self.passes} passes"
            doubt = f"contributions are not known closely enough after {self.passes} passes"
            return basis, doubt if self._gap(column) > ROUGH else ""
        if self.problem.holds_all_edges:
            return "all edges", ""
        fraction = self.graph.n_edges / max(1, self.problem.n_edges_seen)
        basis = f"the sparsifier with {min(fraction, 1):.0%} of the edges"
        if self.answer.result.passes > 0:
            doubt = f"reasons from {basis} do not add up to this answer, which is that of all edges"
            return basis, f"{doubt}; {self.remedy}" if self._gap(column) > ROUGH else ""
        answer = self.answer
        if not isinstance(answer, ClassAnswer):
            return basis, ""
        changed = answer.fraction_unstable
        basis += f"; another sample would change about {changed:.1%} of all labels"
        return basis, f"no reasons from {basis}; {self.remedy}" if changed > UNSTABLE else ""

    # Labels.

    def _label_reasons(
        self, column: int, chosen: NDArray[np.intp], each: Floats
    ) -> list[LabelReason]:
        one = self.asked[column]
        margins = np.full(len(chosen), one.margin)  # without each label; the others stay
        for part, steps in zip(self.parts, self._steps(column), strict=True):
            margins += part.factor[column] * (steps[chosen] @ part.sigma[column])
        distances = self._distances(column, self.used.nodes[chosen])
        return [
            LabelReason(
                self._name(node), self._label_of(label), float(each[label]),
                float(each[label] / one.margin) if one.margin else np.nan, float(margin), distance,
            )
            for label, node, margin, distance in zip(
                chosen, self.used.nodes[chosen], margins, distances, strict=True
            )
        ]  # fmt: skip

    def _distances(self, column: int, others: NDArray[np.int64]) -> list[int | None]:
        """Return distances where they are known: from all edges in memory, or to neighbours."""
        node = self.asked[column].node
        if self.problem.holds_all_edges:
            return distances_from(self._adjacency, node, others)
        near: set[int] = set()
        if self._sees_edges:
            pairs = self._pairs[1][column]
            near = {*pairs.u.tolist(), *pairs.v.tolist()} - {node}
        return [1 if other in near else None for other in others.tolist()]

    @cached_property
    def _adjacency(self) -> csr_array:
        """The graph kept, with indices as scipy would convert them for each node."""
        graph = self.graph
        index = np.int32 if len(graph.indices) < 2**31 else np.int64
        places = (part.astype(index, copy=False) for part in (graph.indices, graph.indptr))
        return csr_array((graph.weights, *places), shape=(graph.n_nodes, graph.n_nodes))

    def _label_of(self, label: int) -> object:
        """Return the class of a label, the likeliest if it is a distribution; or its number."""
        values = self.used.values[label]
        classes = self.problem.classes
        return _plain(classes[np.argmax(values)]) if classes.size else float(values[0])

    def _steps(self, column: int) -> list[Floats]:
        """Return how leaving out each label changes the scores of a node, for each part.

        With R_j the row of the node, and F the score of the label's node without it, the step is
        R_j s_j (F - y_j); NaN if F is not known. A random walk only loses what ends at the label.
        """
        steps = []
        for part, g in zip(self.parts, self._at_labels(column), strict=True):
            left = np.zeros_like(self.problem.columns)
            if not part.is_walk:
                left[:] = np.nan
                labels, scores, _ = self.answer.left_out_scores
                left[labels] = scores
            weighted = (g * self.used.weights)[:, np.newaxis]
            steps.append(weighted * (left - self.problem.columns))
        return steps

    # Edges.

    @property
    def _sees_edges(self) -> bool:
        return self.problem.holds_all_edges or self.edges is not None

    @cached_property
    def _pairs(self) -> tuple[list[NodePairs], list[NodePairs]]:
        """Return the pairs with the largest supports and currents, and those around the nodes."""
        edges = GraphEdges(self.graph) if self.edges is None else self.edges
        scale, potentials = self.solvers[0].system.scale, self.rows[0].potentials
        currents = np.multiply(scale, potentials.T, order="C")  # a row for each node
        measures = self._supports + [partial(difference, x) for x in currents]
        view = None if self.edges is None else self.graph.view
        return find_strongest(
            edges, measures, self.n_pairs, self.nodes, n_nodes=self.graph.n_nodes, view=view
        )

    @cached_property
    def _supports(self) -> list[Measure]:
        """Return for each node a function that returns dm / dw of pairs of nodes."""
        shared = [
            (part, solver.system.scale, np.ascontiguousarray(self._row(rows).T))
            for part, solver, rows in zip(self.parts, self.solvers, self.rows, strict=True)
        ]
        return [
            partial(_support, [(part.is_walk, scale, g[at], part.phi(at, part.slope))
                               for part, scale, g in shared])
            for at in range(len(self.asked))
        ]  # fmt: skip

    def _edge_reasons(self, pairs: NodePairs, count: int) -> list[EdgeReason]:
        return [
            EdgeReason(self._name(u), self._name(v), float(w), float(w * x))
            for u, v, w, x in zip(*(part[:count] for part in pairs), strict=True)
        ]

    def _neighbor_reasons(self, column: int, near: NodePairs) -> list[NeighborReason]:
        node = self.asked[column].node
        ends = np.where(near.u == node, near.v, near.u)
        votes = np.zeros(len(ends))
        for part, solver, means in zip(self.parts, self.solvers, self._means, strict=True):
            f, system = part.f[ends], solver.system
            if part.is_walk:
                f = f * system.scale / (1.0 + system.scale)
            elif self.problem.classes.size:
                f = f - means[system.component[node]]
            votes += near.w / near.w.sum() * part.factor[column] * (f @ part.sigma[column])
        order = np.lexsort((ends, -np.abs(votes)))
        return [
            NeighborReason(self._name(end), _plain(self.labels[end]), float(w), float(vote))
            for end, w, vote in zip(ends[order], near.w[order], votes[order], strict=True)
        ]

    @cached_property
    def _means(self) -> list[Floats]:
        """Return for each part the mean scores of each component."""
        components = (solver.system.component for solver in self.solvers)
        return [
            component_means(part.f[: len(component)], component, np.ones(len(component), bool))
            for part, component in zip(self.parts, components, strict=True)
        ]

    def _paths(self, column: int, flows: NodePairs) -> list[PathReason]:
        """Return up to three paths to labels, each with the largest current that is left."""
        if self.parts[0].is_walk:
            return []
        current = flows.w * flows.x
        left: dict[int, dict[int, float]] = {}
        for u, v, i in zip(*flows[:2], current, strict=True):
            a, b = (int(u), int(v)) if i > 0 else (int(v), int(u))
            left.setdefault(a, {})[b] = abs(float(i))
        x, system = self.rows[0].potentials[:, column], self.solvers[0].system
        sinks = system.weights * x[system.labelled]
        ends = dict(zip(system.labelled.tolist(), sinks.tolist(), strict=True))
        found: list[PathReason] = []
        for _ in range(MOST_PATHS):
            nodes, least = widest_path(left, ends, self.asked[column].node)
            if least <= 0.0:
                break
            ends[nodes[-1]] -= least
            for a, b in pairwise(nodes):
                left[a][b] -= least
            found.append(PathReason(tuple(self._name(node) for node in nodes), least))
        return found if sum(path.fraction for path in found) >= LEAST_FRACTION else []

    # What would change the answer.

    def _find_changes(self, column: int) -> list[Change]:
        """Return the smallest sets of labels found without which, or if wrong, the answer changes.

        Labels are taken one by one, the one that lowers the margin most first. Scores, and the
        counts of the classes that scale them, change as labels go; a refit confirms the set.
        """
        one = self.asked[column]
        if one.other < 0:
            return []
        found = []
        for kind in ("removed", "wrong"):
            for labels in self._candidates(column, kind):
                refitted = self._refit(labels, one.other if kind == "wrong" else None)
                if (
                    refitted is not None
                    and (becomes := refitted.labels[one.node]) != self.labels[one.node]
                ):
                    names = tuple(self._name(self.used.nodes[label]) for label in labels)
                    found.append(Change(kind, names, _plain(becomes)))
                    break
        return found

    def _candidates(self, column: int, kind: str) -> list[list[int]]:
        """Return growing sets of labels, from the first that should change the answer on."""
        one, weights, values = self.asked[column], self.used.weights, self.problem.columns
        rows = self._at_labels(column)
        if kind == "removed":
            steps = [np.nan_to_num(each) for each in self._steps(column)]
            fewer = -weights[:, np.newaxis] * values
        else:  # labels of the class become those of the other one
            fewer = np.zeros_like(values)
            fewer[:, one.code], fewer[:, one.other] = -values[:, one.code], values[:, one.code]
            fewer *= weights[:, np.newaxis]
            steps = [g[:, np.newaxis] * fewer for g in rows]
        scores = [(g * weights) @ values for g in rows]
        counts = weights @ values
        taken: list[int] = []
        sets: list[list[int]] = []
        usable = [label for label in range(len(values)) if np.any(fewer[label])]
        while usable and len(taken) < MOST_CHANGED and len(sets) < REFITS:
            margins = [
                self._margin(
                    column,
                    [now + step[label] for now, step in zip(scores, steps, strict=True)],
                    counts + fewer[label],
                )
                for label in usable
            ]
            best = int(np.argmin(margins))
            label = usable.pop(best)
            taken.append(label)
            scores = [now + step[label] for now, step in zip(scores, steps, strict=True)]
            counts = counts + fewer[label]
            if margins[best] < 0.0:
                sets.append(list(taken))
        return sets

    def _margin(self, column: int, scores: list[Floats], counts: Floats) -> float:
        """Return the margin over all other classes, if scores of the node and counts were these."""
        answer = self.answer
        assert isinstance(answer, ClassAnswer)  # numbers have no other class
        code, present = self.asked[column].code, counts > GONE
        exponents = answer.offsets.copy()
        if answer.combination is not None:
            exponents += answer.combination.bias
        for part, now in zip(self.parts, scores, strict=True):
            if part is not self.parts[0]:
                scaled = now / np.where(present, counts, 1.0)
            else:
                scaled = now * answer.class_factors(counts)
                if answer.kind != "stable":
                    scaled = np.log(np.maximum(scaled, 1e-300))
            exponents += part.factor[column] * scaled
        if not present[code]:
            return -np.inf
        rivals = np.delete(exponents, code)[np.delete(present, code)]
        return float(exponents[code] - rivals.max(initial=-np.inf))

    def _refit(self, labels: list[int], wrong: int | None) -> NodeAnswer | None:
        """Return the answer without some labels, or with them of another class."""
        used = self.used
        if wrong is None:
            rest = np.delete(np.arange(len(used.nodes)), labels)
            if len(rest) == 0:
                return None
            used = choose_labels(used, rest)
        else:
            values = used.values.copy()
            values[labels] = np.eye(values.shape[1])[wrong]
            used = NodeLabels(used.nodes, values, used.weights)
        problem = self.problem.with_labels(used)
        result = self.answer.result
        if self.edges is None:
            return problem.answer(problem.solve(result))
        return problem.answer(problem.refine(self.edges, REFINED))


# Functions of modules, which travel to the workers of a cluster.


def _support(
    terms: list[tuple[bool, float, Floats, Floats]], u: NDArray[np.int64], v: NDArray[np.int64]
) -> Floats:
    """Return dm / dw of pairs; a term has whether it is a walk, its scale, g and phi."""
    total = np.zeros(len(u))
    for is_walk, scale, g, phi in terms:
        a, b, c, d = g[u], g[v], phi[u], phi[v]
        total -= scale * (a - b) * (c - d)
        if is_walk:  # the degrees in D + gamma L change, too
            total -= a * c + b * d
    return total


def difference(x: Floats, u: NDArray[np.int64], v: NDArray[np.int64]) -> Floats:
    """Return the differences of x between pairs of nodes."""
    return x[u] - x[v]


def widest_path(
    left: dict[int, dict[int, float]], ends: dict[int, float], start: int
) -> tuple[list[int], float]:
    """Return the path from a node to a label whose least current is largest, and that current.

    `left` has the current from each node to others, `ends` what labels take.
    """
    width, before = {start: np.inf}, {start: -1}
    heap, done = [(-np.inf, start)], set()
    best, at = 0.0, -1
    while heap:
        negative, node = heapq.heappop(heap)
        if node in done:
            continue
        done.add(node)
        if node in ends and min(-negative, ends[node]) > best:
            best, at = min(-negative, ends[node]), node
        for other, current in left.get(node, {}).items():
            wide = min(-negative, current)
            if wide > max(width.get(other, 0.0), best):
                width[other], before[other] = wide, node
                heapq.heappush(heap, (-wide, other))
    path = []
    while at >= 0:
        path.append(at)
        at = before[at]
    return path[::-1], float(best)


def distances_from(adjacency: csr_array, node: int, others: NDArray[np.int64]) -> list[int | None]:
    """Return the numbers of edges from a node to others; None where there is no path."""
    from scipy.sparse.csgraph import breadth_first_order

    before = breadth_first_order(adjacency, node)[1]
    found: list[int | None] = []
    for other in others.tolist():
        steps, at = 0, other
        while at != node and at >= 0:
            steps, at = steps + 1, int(before[at])
        found.append(steps if at == node else None)
    return found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
