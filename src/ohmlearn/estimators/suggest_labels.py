"""Which nodes to label next.

A label at node i, with weight 1, changes the scores f of all nodes by

    C_i (y_i - f_i) / (1 + C_ii),

where C is the covariance of the Gaussian field of `harmonic.posterior` and C_i its column. How far
y_i is from f_i is not known, but it is likely to be far where the two likeliest classes are close.
So every node gets a gain, and the node with the largest product of the gain and 1 - margin is next:

- With fewer than three labels per class, or without classes, the gain is (1'C_i)^2 / (1 + C_ii):
  how much a label lowers the variance of the sum of all scores (Sigma-optimality, Ma et al. 2013).
  The nodes are centres of regions without a label.
- With more labels, it is |C_i| / (1 + C_ii): how much a label changes the model (Miller and
  Bertozzi 2021). These are also nodes between classes.

1'C_i, |C_i| and C_ii are known for all nodes after a few solves, for right-hand sides 1, random
signs, and those of samples of the field. After a pick, the field is that with one more label, and
all these columns change by a multiple of the exact column C_i (for samples this is Matheron's
rule). That takes one more solve, so a batch of picks does not ask the same question twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn._display import Tabular
from ohmlearn.checks.edge_arrays import check_nodes_of
from ohmlearn.checks.parameters import check_count, check_seed
from ohmlearn.graph import Graph
from ohmlearn.harmonic.posterior import BLOCK, Posterior
from ohmlearn.reading.as_edges import as_graph

if TYPE_CHECKING:
    from ohmlearn.estimators.answer import NodeAnswer
    from ohmlearn.estimators.kept_graph import KeptGraph

Floats = NDArray[np.float64]
FEW = 3  # labels per known class; with fewer, regions without labels matter more than borders
# Weight of the Laplacian times mean degree, with few labels and with more. Chosen on real data. The
# gamma of the estimators is no choice: with few labels it is so large that all nodes look alike.
STIFFNESS = (0.1, 1.0)
ROUNDS = 2  # blocks of samples and as many of random signs; twice the samples without signs
TOL = 1e-5  # of solves; samples are rough anyway
SMALL_COMPONENT = 1000  # a component with less than 1 / 1000 of all nodes is hardly worth a label
SETTLED = 0.5  # fraction of the variance that a label must remove for a node to count as settled


@dataclass(frozen=True)
class Suggestion:
    """A node that is worth a label; `reason` says why in words.

    Attributes
    ----------
    node : int
    kind : {"component", "influence", "borderline"}
        Why: the node is in a component without a label, its label would influence many nodes, or
        two classes are about equally likely.
    n_settled : int
        Number of nodes whose variance the label would at least halve; for a component without a
        label, the number of its nodes.
    between : tuple of two classes, or None
        The two likeliest classes of the node, if at least two are known.

    Examples
    --------
    >>> Suggestion(7, "component", 40).reason
    'covers a component of 40 nodes without a label'
    >>> Suggestion(3, "borderline", 1, ("cat", "dog")).reason
    'borderline between cat and dog'
    """

    node: int
    kind: Literal["component", "influence", "borderline"]
    n_settled: int
    between: tuple[Any, Any] | None = None

    @property
    def reason(self) -> str:
        """Why the node is worth a label, in words."""
        if self.kind == "component":
            if self.n_settled == 1:
                return "has neither a label nor an edge"
            return f"covers a component of {self.n_settled:,} nodes without a label"
        settles = f"would settle about {self.n_settled:,} nodes"
        if self.kind == "borderline" and self.between is not None:
            borderline = f"borderline between {self.between[0]} and {self.between[1]}"
            return f"{borderline}, {settles}" if self.n_settled > 1 else borderline
        return settles if self.n_settled > 1 else "would change the scores of its neighbours most"


class Suggestions(list[Suggestion], Tabular):
    """Suggestions, best first; also a table."""

    def _columns(self) -> dict[str, Any]:
        names = ("node", "kind", "n_settled", "reason")
        return {name: [getattr(one, name) for one in self] for name in names}


def suggest_nodes(
    graph: Graph,
    labelled: ArrayLike,
    k: int,
    *,
    probabilities: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    exclude: ArrayLike = (),
    random_state: object = None,
    n_jobs: int | None = None,
) -> list[Suggestion]:
    """Suggest which nodes to label next, best first.

    Nodes in components without a label come first, by the size of the component. Components with
    less than a thousandth of all nodes come last, because a label there helps few nodes. Between
    them come the nodes whose labels would change most. This takes a few dozen solves, and one more
    for each suggestion. There are fewer than k if there are not as many nodes to choose from. No
    two suggested nodes are joined by an edge, as long as there are others.

    `probabilities` are those of classes, NaN for a node where they are not known; without them
    only the position in the graph counts. `classes` are their names, for reasons. Nodes in
    `exclude` cannot be labelled.

    Examples
    --------
    >>> from ohmlearn import Graph
    >>> from ohmlearn.estimators.suggest_labels import suggest_nodes
    >>> path_and_pair = Graph.from_edges([0, 1, 2, 3, 5], [1, 2, 3, 4, 6])
    >>> [(s.node, s.reason) for s in suggest_nodes(path_and_pair, [0], 2, random_state=0)]
    [(5, 'covers a component of 2 nodes without a label'), (3, 'would settle about 3 nodes')]
    """
    graph = as_graph(graph)
    n, wanted = graph.n_nodes, check_count("k", k)
    known = np.unique(check_nodes_of(n, labelled, "labelled"))
    allowed = np.ones(n, dtype=np.bool_)
    allowed[known] = False
    allowed[check_nodes_of(n, exclude, "exclude")] = False
    borders = _Borders(probabilities, classes, n)
    large, small = _unlabelled_components(graph, known, allowed)

    picks = large[:wanted]
    covered = np.concatenate([known, [pick.node for pick in picks]]).astype(np.int64)
    if len(picks) < wanted and len(covered) > 0:
        few = borders.n_classes < 2 or len(covered) < FEW * borders.n_classes
        field = _Field(graph, covered, few=few, seed=check_seed(random_state), n_jobs=n_jobs)
        allowed[covered] = False
        allowed &= field.reached
        beside = np.zeros(n, dtype=np.bool_)  # next to a pick
        for pick in picks:
            beside[_neighbours(graph, pick.node)] = True
        while len(picks) < wanted and allowed.any():
            gain = field.gains()
            free = allowed & ~beside
            value = np.where(free if free.any() else allowed, borders.uncertainty * gain, -np.inf)
            node = int(np.argmax(value))
            # What distinguishes it from other nodes: that classes are close, or its influence?
            closer = np.count_nonzero(borders.uncertainty[allowed] < borders.uncertainty[node])
            weaker = np.count_nonzero(gain[allowed] < gain[node])
            kind: Literal["borderline", "influence"] = (
                "borderline" if borders.is_known(node) and closer > weaker else "influence"
            )
            picks.append(Suggestion(node, kind, field.add_label(node), borders.between(node)))
            allowed[node] = False
            beside[_neighbours(graph, node)] = True
    return picks + small[: wanted - len(picks)]


def suggest_labels(
    kept: KeptGraph,
    answer: NodeAnswer | None,
    k: int,
    *,
    exclude: Iterable[Any] = (),
    n_jobs: int | None = None,
) -> Suggestions:
    """Suggest which nodes of a kept graph to label next, by their ids; there may be no labels."""
    nodes, excluded = kept.nodes, list(exclude)
    if nodes is not None:
        excluded = nodes.find(excluded, missing="mask").compressed().tolist()
    found = suggest_nodes(
        kept.graph if answer is None else answer.problem.full_graph,
        () if answer is None else answer.problem.labels.nodes,
        k,
        exclude=excluded,
        random_state=kept.seed,
        n_jobs=n_jobs,
        **({} if answer is None else answer.known_probabilities()),
    )
    if nodes is None:
        return Suggestions(found)
    ids = nodes.ids(np.array([one.node for one in found], dtype=np.int64)).tolist()
    return Suggestions(replace(one, node=x) for one, x in zip(found, ids, strict=True))


class _Field:
    """Gains of all nodes, updated for each further label."""

    def __init__(
        self, graph: Graph, labelled: NDArray[np.int64], *, few: bool, seed: int, n_jobs: int | None
    ) -> None:
        degree = float(graph.degrees.mean())
        scale = STIFFNESS[0 if few else 1] / (degree if degree > 0 else 1.0)
        self._posterior = Posterior(
            graph, labelled, scale=scale, tol=TOL, random_state=seed, n_jobs=n_jobs
        )
        self.reached = self._posterior.reached
        self._few = few
        self._rng = np.random.default_rng(seed)
        # Columns: C z with z = 1 or random signs, then samples. Single precision is enough here.
        n_samples = (2 if few else 1) * ROUNDS * BLOCK
        self._n_probes = 1 if few else ROUNDS * BLOCK
        self._columns = np.empty((graph.n_nodes, self._n_probes + n_samples), dtype=np.float32)
        if few:
            self._columns[:, :1] = self._posterior.solve(np.ones((graph.n_nodes, 1)))
        else:
            for number, at in enumerate(range(0, self._n_probes, BLOCK)):
                self._columns[:, at : at + BLOCK] = self._posterior.probe(number)
        for number, at in enumerate(range(self._n_probes, self._columns.shape[1], BLOCK)):
            self._columns[:, at : at + BLOCK] = self._posterior.sample(number)[0]
        self._picked: list[tuple[NDArray[np.float32], float]] = []

    def gains(self) -> Floats:
        """Return how much a label at each node would change."""
        squares = _mean_squares(self._columns[:, : self._n_probes])
        noisy = 1.0 + self._variances()
        return squares / noisy if self._few else np.sqrt(squares) / noisy

    def _variances(self) -> Floats:
        return _mean_squares(self._columns[:, self._n_probes :])

    def add_label(self, node: int) -> int:
        """Condition on a label at a node; return the number of nodes that it settles."""
        column = self._posterior.columns([node])[:, 0]
        for earlier, noisy in self._picked:  # C loses C_j C_j' / (1 + C_jj) for each pick j
            column -= earlier * (float(earlier[node]) / noisy)
        noisy = 1.0 + float(column[node])
        settled = column**2 / noisy >= SETTLED * self._variances()
        settled[node] = True

        change = self._columns[node].astype(np.float64)
        noise = self._rng.standard_normal(len(change) - self._n_probes)  # of the label
        change[self._n_probes :] -= noise
        change /= noisy
        rounded = column.astype(np.float32)
        self._columns -= np.multiply.outer(rounded, change.astype(np.float32))
        self._picked.append((rounded, noisy))
        return int(np.count_nonzero(settled & self.reached))


class _Borders:
    """How close the two likeliest classes of each node are."""

    def __init__(self, given: ArrayLike | None, classes: ArrayLike | None, n_nodes: int) -> None:
        self.n_classes = 1
        self.uncertainty = np.ones(n_nodes)  # 1 - margin
        if given is None:
            return
        values = np.asarray(given, dtype=np.float64)
        if values.ndim != 2 or len(values) != n_nodes:
            raise ValueError(
                f"probabilities must have one row for each of the {n_nodes} nodes, got shape "
                f"{values.shape}"
            )
        self.n_classes = values.shape[1]
        self._classes = np.arange(self.n_classes) if classes is None else np.asarray(classes)
        if self.n_classes > 1:
            rows = np.arange(n_nodes)
            first = np.argmax(np.nan_to_num(values), axis=1)
            others = np.nan_to_num(values)
            others[rows, first] = -np.inf
            second = np.argmax(others, axis=1)
            self._two = first, second
            margin = values[rows, first] - values[rows, second]
            self.uncertainty = np.clip(1.0 - margin, 1e-9, 1.0)
            self._known: NDArray[np.bool_] = ~np.any(np.isnan(values), axis=1)
            if self._known.any():  # nodes of which nothing is known are like the others
                usual = np.median(self.uncertainty[self._known])
                self.uncertainty[~self._known] = usual

    def is_known(self, node: int) -> bool:
        """Whether something is known about the classes of a node."""
        return self.n_classes > 1 and bool(self._known[node])

    def between(self, node: int) -> tuple[Any, Any] | None:
        """Return the two likeliest classes, if two are known."""
        if not self.is_known(node):
            return None
        first, second = self._classes[[self._two[0][node], self._two[1][node]]].tolist()
        return first, second


def _mean_squares(rows: NDArray[np.float32]) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / np.float64(rows.shape[1]))


def _unlabelled_components(
    graph: Graph, labelled: NDArray[np.int64], allowed: NDArray[np.bool_]
) -> tuple[list[Suggestion], list[Suggestion]]:
    """Return the node of largest degree of each component without a label: large ones, small ones.

    Components are sorted by size. Where no node is allowed, there is none.
    """
    component = graph.components()[1]
    sizes = np.bincount(component)
    open_ = np.ones(len(sizes), dtype=np.bool_)
    open_[component[labelled]] = False
    nodes = np.flatnonzero(allowed & open_[component])
    order = np.lexsort((nodes, -graph.degrees[nodes], component[nodes], -sizes[component[nodes]]))
    nodes = nodes[order]
    first = np.ones(len(nodes), dtype=np.bool_)
    first[1:] = component[nodes[1:]] != component[nodes[:-1]]
    found = [Suggestion(int(i), "component", int(sizes[component[i]])) for i in nodes[first]]
    least = max(2, graph.n_nodes / SMALL_COMPONENT)
    n_large = sum(pick.n_settled >= least for pick in found)
    return found[:n_large], found[n_large:]


def _neighbours(graph: Graph, node: int) -> NDArray[np.int32]:
    return graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
