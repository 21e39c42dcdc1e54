"""Labels of some nodes, and the equations that spread them over the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn._defaults import LABEL_EPSILON, NEIGHBORS, WEIGHTS
from ohmlearn._phases import passes_before
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import (
    ARRAY,
    CALLABLE,
    LARGEST,
    N_JOBS,
    RANDOM_STATE,
    SMALLEST,
    VERBOSE,
    Constraints,
    Interval,
    Options,
    check_parameters,
)
from ohmlearn.checks.times import DURATIONS
from ohmlearn.edges import Edges
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.answer import ClassAnswer, NodeAnswer, NumberAnswer
from ohmlearn.estimators.calibration import check_proportions
from ohmlearn.estimators.kept_graph import FAR, KeptGraph
from ohmlearn.estimators.label_input import (
    Labels,
    NodeLabels,
    choose_labels,
    find_contradictions,
    find_values,
    merge_rows,
    number_labels,
    read_classes,
    split_by_edges,
)
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.harmonic import HFSResult, refine, solve_hfs
from ohmlearn.harmonic.hfs_system import HFSSolver, Normalization
from ohmlearn.harmonic.solve_hfs import Method, make_system, warn_unconverged
from ohmlearn.nodes import NodeTable
from ohmlearn.points.affinity import AFFINITIES
from ohmlearn.points.exact_neighbors import METRICS
from ohmlearn.points.neighbor_edges import METHODS as SEARCHES
from ohmlearn.sparsifier.sampling_error import Sample
from ohmlearn.sparsifier.sparsifier_options import MAX_EDGES, SparsifierOptions

Floats = NDArray[np.float64]
SOLVE_TOL = 1e-8  # a solve in memory is cheap, so it is at least this accurate
MOST_LEFT_OUT = 512  # labels whose leave-one-out scores are computed
LEAST_LEFT_OUT = 32
LEFT_OUT_ENTRIES = 1 << 25  # nodes times labels left out: solves take time, and passes 128 MiB
RESTART_GAMMA = 30.0
MANY, DISTINCT = 20, 0.9  # if more labels than this are nearly all different, they are no classes


@dataclass(frozen=True, kw_only=True)
class HFSParameters:
    """The parameters of `HFSClassifier`, which describes them; the regressor uses most of them."""

    affinity: str | Callable[..., Any] = "knn"
    n_neighbors: int = NEIGHBORS
    weights: Literal["uniform", "gaussian"] = WEIGHTS
    metric: Literal["euclidean", "cosine"] = "euclidean"
    neighbors: Literal["exact", "faiss"] = "exact"
    kernel_gamma: float | None = None
    gamma: float | Literal["auto"] = "auto"
    epsilon: float | None = LABEL_EPSILON
    max_edges: int | None = None
    passes: int = 3
    tol: float = 1e-6
    random_state: object = None
    n_jobs: int | None = None
    verbose: int = 0
    half_life: Any = None
    horizon: Any = None
    normalization: Normalization = "stable"
    method: Method | Literal["auto"] = "auto"
    class_prior: ArrayLike | Mapping[Any, float] | Literal["labels"] | None = None
    prior_strength: Literal["exact", "rough"] = "exact"
    calibration: Literal["loo"] | None = "loo"

    CONSTRAINTS: ClassVar[Constraints] = {
        "affinity": (Options(tuple(AFFINITIES)), CALLABLE),
        "n_neighbors": (Interval(Integral, 1),),
        "weights": (Options(("uniform", "gaussian")),),
        "metric": (Options(METRICS),),
        "neighbors": (Options(SEARCHES),),
        "kernel_gamma": (None, Interval(Real, SMALLEST, LARGEST)),
        "gamma": (Options(("auto",)), Interval(Real, SMALLEST, LARGEST)),
        "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
        "max_edges": (None, Interval(Integral, 1, MAX_EDGES)),
        "passes": (Interval(Integral, 1),),
        "normalization": (Options(("stable", "cmn")), None),
        "method": (Options(("auto", "harmonic", "restart")),),
        "class_prior": (None, Options(("labels",)), ARRAY),
        "prior_strength": (Options(("exact", "rough")),),
        "calibration": (Options(("loo",)), None),
        "tol": (Interval(Real, 0, 1, closed="neither"),),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "half_life": (None, DURATIONS),
        "horizon": (None, DURATIONS),
    }

    @classmethod
    def check(cls, owner: str, values: dict[str, Any], **narrower: tuple[Any, ...]) -> Self:
        """Return parameters after a check; `owner` is named in messages."""
        check_parameters(owner, {**cls.CONSTRAINTS, **narrower}, values)
        return cls(**values)

    @property
    def forgetting(self) -> SparsifierOptions:
        """How edges are forgotten."""
        return SparsifierOptions(half_life=self.half_life, horizon=self.horizon)

    @property
    def knows_proportions(self) -> bool:
        """Whether the proportions of the classes are given as numbers."""
        return self.class_prior is not None and not isinstance(self.class_prior, str)

    @property
    def matches_exactly(self) -> bool:
        """Whether answers get the wanted proportions, and are not only moved towards them."""
        return self.knows_proportions and self.prior_strength == "exact"


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem(ABC):
    """Labels on a graph; nothing of it changes."""

    parameters: HFSParameters
    labels: NodeLabels  # each labelled node once
    used: NodeLabels  # the labels that count
    unused: NodeLabels  # those of nodes without an edge, which these nodes keep
    sample: Sample  # the edges kept
    graph: Graph  # the same with nodes that have no edge, up to the last label that counts
    n_nodes: int  # that get an answer: those of the graph, and all that are labelled
    nodes: NodeTable | None  # ids, for messages
    holds_all_edges: bool
    mean_degree: float  # of all edges
    n_edges_seen: int
    seed: int
    # Sorted, and empty if labels are numbers; columns of scores are in this order.
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    # Nodes that have labels of different classes.
    contradicting: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    # What labels mean: classes and numbers differ in these.

    @staticmethod
    @abstractmethod
    def read(p: HFSParameters, y: object, *how: Any) -> Labels:
        """Check labels; `how` are n_nodes, ids and sample_weight. Nodes are numbered later."""

    @property
    @abstractmethod
    def columns(self) -> Floats:
        """The values at the labelled nodes that count, one column for each score."""

    @abstractmethod
    def automatic_gamma(self) -> float:
        """Return the value of ``gamma="auto"``."""

    @abstractmethod
    def answer(self, result: HFSResult, n_iter: int | None = None) -> NodeAnswer:
        """Return what scores say; `n_iter` is the number of passes, if earlier ones count."""

    @property
    def method(self) -> Method:
        """The equations of the scores."""
        return "restart" if self.parameters.method == "restart" else "harmonic"

    # Making one.

    @classmethod
    def make(cls, rows: Labels, kept: KeptGraph, p: HFSParameters) -> Self:
        """Return the problem of checked labels."""
        rows = number_labels(rows, kept.nodes)
        known: dict[str, Any] = {}
        if rows.classes is not None:
            known = {"classes": rows.classes, "contradicting": find_contradictions(rows)}
            if len(known["contradicting"]) > 0:
                _warn_contradicting(rows, known["contradicting"], kept.nodes)
        return cls.pose(merge_rows(rows), kept, p, **known)

    @classmethod
    def pose(cls, labels: NodeLabels, kept: KeptGraph, p: HFSParameters, **more: Any) -> Self:
        """Return the problem of labels with one row for each node."""
        sample, last = kept.sample(), int(labels.nodes.max())
        graph = with_nodes(sample.graph, kept.n_nodes or 0)
        if kept.nodes is None and last > 2 * graph.n_nodes + FAR:
            raise InputError(
                f"node {last} has a label, but the edges have {graph.n_nodes} nodes, and memory "
                f"is needed for every number in between; number the nodes 0, 1, 2, ..., as "
                f"read_edges does, or give {Param('n_nodes')}"
            )
        used, unused = split_by_edges(labels, graph)
        return cls(
            parameters=p,
            labels=labels,
            used=used,
            unused=unused,
            sample=sample,
            # If no label counts, labels are at nodes that no edge has had.
            graph=with_nodes(graph, int(used.nodes.max()) + 1),
            n_nodes=max(graph.n_nodes, last + 1),
            nodes=kept.nodes,
            holds_all_edges=kept.holds_all(sample),
            mean_degree=kept.mean_degree(graph),
            n_edges_seen=kept.n_edges_seen,
            seed=kept.seed,
            **more,
        )

    def on(self, kept: KeptGraph, p: HFSParameters) -> Self:
        """Return the problem of the same labels on the graph as it is now."""
        known = {"classes": self.classes, "contradicting": self.contradicting}
        return self.pose(self.labels, kept, p, **known)

    @property
    def full_graph(self) -> Graph:
        """The edges kept, with all nodes that get an answer."""
        return with_nodes(self.graph, self.n_nodes)

    # Equations.

    @cached_property
    def gamma(self) -> float:
        """Weight of smoothness against the fit to the labels."""
        given = self.parameters.gamma
        return self.automatic_gamma() if given == "auto" else float(given)

    @cached_property
    def solver(self) -> HFSSolver:
        """The solver of these equations on the edges kept, which keeps its factor."""
        p = self.parameters
        system = make_system(
            self.method, self.graph, self.used.nodes, self.columns, gamma=self.gamma,
            normalization=p.normalization, sample_weight=self.used.weights, caller="explain",
        )  # fmt: skip
        return HFSSolver(self.graph, system, random_state=self.seed, n_jobs=p.n_jobs)

    def _how(self) -> dict[str, Any]:
        """Return what `solve_hfs` and `refine` are both told about these equations."""
        p = self.parameters
        return {
            "gamma": self.gamma, "normalization": p.normalization, "method": self.method,
            "sample_weight": self.used.weights, "random_state": self.seed, "n_jobs": p.n_jobs,
        }  # fmt: skip

    def with_labels(self, used: NodeLabels) -> Self:
        """Return the problem with other labels of nodes that have an edge."""
        return replace(self, labels=used, used=used, unused=choose_labels(used, np.arange(0)))

    def solve(
        self,
        before: HFSResult | None = None,
        leave_out: NDArray[np.int64] | None = None,
        graph: Graph | None = None,
        tol: float | None = None,
    ) -> HFSResult:
        """Return the scores on the edges kept, or on another graph like it.

        Starts from the columns of the result `before`, if they fit. The residual is below `tol`;
        by default it is small, but not if labels are left out, whose scores need no more.
        """
        p, columns = self.parameters, self.columns
        graph = self.graph if graph is None else with_nodes(graph, self.graph.n_nodes)
        x0 = None if before is None else before.columns[: graph.n_nodes]
        extra = p.normalization == "stable" and self.method == "harmonic"
        if x0 is not None and x0.shape[1] != columns.shape[1] + extra:
            x0 = None  # labels with another number of classes, or another method
        tol = tol or min(p.tol, SOLVE_TOL)
        found = solve_hfs(
            graph, self.used.nodes, columns, leave_out=leave_out, tol=tol, x0=x0, **self._how()
        )
        return found.with_nodes(self.n_nodes)

    def refine(
        self, edges: Edges, passes: int, before: HFSResult | None = None, n_before: int = 1
    ) -> HFSResult:
        """Return the scores on all edges after some passes, which follow on `n_before` others."""
        p, leave_out = self.parameters, self.labels_to_leave_out() if self.wants_left_out else None
        x0 = None if before is None else before.columns[: self.graph.n_nodes]
        with passes_before(n_before):
            found = refine(
                edges, self.graph, self.used.nodes, self.columns, passes=passes, tol=p.tol,
                leave_out=leave_out, verbose=p.verbose, x0=x0, **self._how(),
            )  # fmt: skip
        if p.tol != type(p).tol and not found.converged.all():
            assert found.error is not None
            worst = float(np.fmax(found.residual, found.error).max())
            remedy = f"raise {Param('passes')} or {Param('tol')}"
            warn_unconverged(worst, p.tol, remedy, f"error after {n_before + found.passes} passes")
        return found.with_nodes(self.n_nodes)

    @property
    def wants_left_out(self) -> bool:
        """Whether passes over the edges compute leave-one-out scores, too."""
        return False

    def labels_to_leave_out(self) -> NDArray[np.int64]:
        """Return positions of labels that count, a random choice if there are many."""
        most, n_labels = most_left_out(self.graph.n_nodes), len(self.used.nodes)
        if n_labels <= most:
            return np.arange(n_labels)
        chosen = np.random.default_rng(self.seed).choice(n_labels, most, replace=False)
        return np.sort(chosen)

    def id_of(self, node: int) -> Any:
        """Return the id of a node, for messages."""
        return int(node) if self.nodes is None else self.nodes.ids([node]).tolist()[0]


def _warn_contradicting(rows: Labels, nodes: NDArray[np.int64], ids: NodeTable | None) -> None:
    assert rows.classes is not None
    first = (nodes if ids is None else ids.ids(nodes[:1])).tolist()[0]
    counts = np.bincount(rows.values[(rows.nodes == nodes[0]) & ~rows.soft])
    found = ", ".join(f"{rows.classes[code]} {counts[code]}" for code in counts.nonzero()[0])
    what = "1 node has" if len(nodes) == 1 else f"{len(nodes)} nodes have"
    warn(f"{what} contradicting labels, such as {first!r}: {found}; each counts by its proportion")


def most_left_out(n_nodes: int) -> int:
    """Return the number of labels whose leave-one-out scores are computed at most."""
    entries = LEFT_OUT_ENTRIES // max(1, n_nodes)
    return min(MOST_LEFT_OUT, max(LEAST_LEFT_OUT, entries))


def automatic_gamma(n_labels: float, n_classes: int, mean_degree: float) -> float:
    """Return the gamma that gave the best accuracies on real data (docs/labels.md).

    With one label per class smoothness must dominate; with five or more the labels should be met.
    Labels are counted by weight.
    """
    stiffness = max(1.0, 100.0 * min(1.0, n_classes / n_labels) ** 3)
    return stiffness / (n_labels * (mean_degree if mean_degree > 0 else 1.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassProblem(Problem):
    """Labels that are classes."""

    @staticmethod
    def read(p: HFSParameters, y: object, *how: Any) -> Labels:
        labels = read_classes(y, *how)
        classes, n_labels = labels.classes, len(labels.values)
        assert classes is not None
        n_classes = len(np.unique(labels.values))
        if n_labels > MANY and n_classes > DISTINCT * n_labels:
            warn(
                f"{labels.path}: {n_labels:,} labels have {n_classes:,} different classes, such as "
                f"{classes[0]}; if these are ids or measurements, not classes, this is the "
                f"wrong column"
            )
        if p.knows_proportions:
            check_proportions(p.class_prior, classes, warns=True)
        return labels

    @property
    def columns(self) -> Floats:
        """The distribution of each labelled node over the classes."""
        return self.used.values

    @cached_property
    def counts(self) -> Floats:
        """Number of labels of each class that count, by weight."""
        return self.used.weights @ self.used.values

    def automatic_gamma(self) -> float:
        if self.method == "restart":
            return RESTART_GAMMA
        n_labels, n_classes = float(self.counts.sum()), int(np.count_nonzero(self.counts))
        return automatic_gamma(n_labels, n_classes, self.mean_degree)

    @property
    def wants_left_out(self) -> bool:
        return self.parameters.calibration == "loo"

    @property
    def combines(self) -> bool:
        """Whether answers combine harmonic functions with random walks and biases of classes.

        Other settings are methods of the literature, which are computed as they are there.
        """
        p = self.parameters
        return (p.method, p.normalization, p.calibration) == ("auto", "stable", "loo")

    @cached_property
    def walks(self) -> Self:
        """The problem of random walks with restart from the same labels."""
        return replace(self, parameters=replace(self.parameters, method="restart", gamma="auto"))

    def answer(self, result: HFSResult, n_iter: int | None = None) -> ClassAnswer:
        return ClassAnswer(self, result, n_iter)

    @cached_property
    def class_prior(self) -> Floats:
        """Proportions of the classes, as given or among the labels, by weight."""
        if self.parameters.knows_proportions:
            return check_proportions(self.parameters.class_prior, self.classes)
        return np.asarray(self.counts / self.counts.sum())

    @property
    def wanted_proportions(self) -> Floats | None:
        """Class proportions among all nodes, if wanted; a class with a label is possible."""
        if self.parameters.class_prior is None:
            return None
        if self.parameters.knows_proportions:
            return self.class_prior
        counts = np.where(self.counts > 0.0, self.counts + 1.0, 0.0)
        return np.asarray(counts / counts.sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberProblem(Problem):
    """Labels that are numbers."""

    @staticmethod
    def read(p: HFSParameters, y: object, *how: Any) -> Labels:
        return find_values(y, *how)

    @cached_property
    def mean(self) -> float:
        """Mean of the given numbers, by weight; those of nodes without an edge do not count."""
        return float(np.average(self.used.values[:, 0], weights=self.used.weights))

    @property
    def columns(self) -> Floats:
        """The numbers around their mean, because the constraint makes each column sum to zero."""
        return self.used.values - self.mean

    def automatic_gamma(self) -> float:
        # Close to interpolation: see docs/labels.md.
        degree = self.mean_degree if self.mean_degree > 0 else 1.0
        return 0.1 / (float(self.used.weights.sum()) * degree)

    def answer(self, result: HFSResult, n_iter: int | None = None) -> NumberAnswer:
        return NumberAnswer(self, result, n_iter)
