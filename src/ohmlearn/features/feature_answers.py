"""The answers of the estimators for features and graph: a weighted mean of experts."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ohmlearn._blas import one_blas_thread
from ohmlearn._phases import phase
from ohmlearn._warnings import warn
from ohmlearn.errors import InPython, OhmWarning
from ohmlearn.estimators.label_input import NodeLabels, choose_labels, split_by_edges
from ohmlearn.features.expert_tasks import Predictor, Task
from ohmlearn.features.experts import FEATURES, GRAPH, Experts, Variant
from ohmlearn.features.feature_columns import check_same_columns
from ohmlearn.features.homophily import Homophily, measure_homophily
from ohmlearn.features.known_graph import N_NEIGHBORS, KnownGraph, SharesGraph
from ohmlearn.features.mixture import Mixture, fit_both, fit_mixture
from ohmlearn.features.node_features import NodeFeatures, drop_label_column
from ohmlearn.features.scaled_features import ScaledFeatures, blocks
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.points.affinity import Affinity
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["GraphUse", "MixesExperts"]

Floats = NDArray[np.float64]
KEPT = 0.9  # share of the given labels in the answers of labelled nodes
SURE = 2.0  # standard errors by which a difference of losses is more than chance


class GraphUse(NamedTuple):
    """Whether the graph helps, from labels that were left out.

    Attributes
    ----------
    helps : bool
        Whether left-out labels are predicted better with the graph, by more than two standard
        errors of the difference.
    loss_with, loss_without : float
        Mean loss for left-out labels with the graph, and from the features alone: log-loss for
        classes, half the squared error for numbers. If the answers do not use the graph, the
        former is that of the best expert that does.
    error : float
        Standard error of the difference of the two.
    homophily : Homophily
        Whether joined nodes are alike.

    Examples
    --------
    >>> print(GraphUse(True, 0.61, 1.4, 0.1, Homophily(0.71, 0.3)))
    The graph helps: the loss for left-out labels is 0.61 with it, and 1.4 from the features alone;
    labels of joined nodes are much alike (0.71), features somewhat (0.30).
    """

    helps: bool
    loss_with: float
    loss_without: float
    error: float
    homophily: Homophily

    def __str__(self) -> str:
        if np.isnan(self.loss_without):
            return "It is not known whether the graph helps: no label can be left out."
        if self.helps:
            verdict = "The graph helps"
        elif self.loss_with < self.loss_without:
            verdict = "It is not clear whether the graph helps"
        else:
            verdict = "The graph does not help"
        return (
            f"{verdict}: the loss for left-out labels is {self.loss_with:.3g} with it, and "
            f"{self.loss_without:.3g} from the features alone; {self.homophily}."
        )


class MixesExperts(SharesGraph):
    """Computes answers when they are asked for, from a graph, features and labels."""

    estimator: Any
    gamma: float | Literal["auto"]
    correct: bool | Literal["auto"]
    spread: bool | Literal["auto"]
    mix: bool
    cv: int
    n_jobs: int | None
    verbose: int
    # What fitting sets.
    _seed: int
    _known: KnownGraph
    _has_neighbors: bool  # whether the graph joins nearest neighbours
    _features: Any  # one row for each node
    _missing: NDArray[np.bool_]  # nodes without features
    _labels: NodeLabels
    _answers: Floats | None
    _mixture: Mixture
    _predict_own: Predictor
    _scaled: ScaledFeatures
    _by_estimator: NDArray[np.int64]  # nodes that the estimator alone answers, not the mixture
    _label_column: str | None = None  # name of the labels, which no feature has
    n_features_in_: int

    # The classifier and the regressor differ in these.

    @abstractmethod
    def _task(self) -> Task:
        """Return what kind of answers there are."""

    @abstractmethod
    def _default_estimators(self) -> tuple[Any, ...]:
        """Return the estimators that are tried if none is given."""

    @abstractmethod
    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """Return features as a matrix of finite numbers."""

    @property
    def _used(self) -> NodeLabels:
        """The labels that count: those of nodes with an edge or features, or all if none has."""
        nodes, indptr = self._labels.nodes, self._known.graph.indptr
        known = (indptr[nodes + 1] > indptr[nodes]) | ~self._missing[nodes]
        return choose_labels(self._labels, known) if known.any() else self._labels

    def _warn_unused(self) -> None:
        """Warn of labelled nodes that neither edges nor features have, perhaps mistyped."""
        nodes, graph = self.labelled_, self._known.graph
        unknown = nodes[~np.isin(nodes, self._used.nodes)]
        if len(unknown) > 0:
            first = unknown[0] if self.nodes_ is None else self.nodes_.ids(unknown[:1]).tolist()[0]
            are, have = ("is", "has") if len(unknown) == 1 else ("are", "have")
            why = f"{are} in no edge" if graph.view is None else f"{have} no edge that counts"
            warn(
                f"{len(unknown)} of the {len(nodes)} labelled nodes {why} and {have} no features, "
                f"such as {first!r}"
            )

    @one_blas_thread()
    def _solve(self) -> Floats:
        """Return the present answers; they are computed when they are asked for."""
        check_is_fitted(self, "_labels")
        if self._answers is None:
            self._warn_unused()
            experts = Experts(
                self._known.graph,
                self._known.degrees,
                ScaledFeatures(self._features),
                self._task(),
                self._default_estimators() if self.estimator is None else (self.estimator,),
                self._seed,
                self.n_jobs,
                self.verbose,
            )
            with phase("measuring homophily", self.verbose):
                homophily = measure_homophily(experts, self._used, self.cv)
            self._mixture, smoothed = fit_mixture(
                experts,
                self._used,
                gamma=None if self.gamma == "auto" else float(self.gamma),
                correct=None if self.correct == "auto" else bool(self.correct),
                spread=None if self.spread == "auto" else bool(self.spread),
                mix=self.mix,
                n_folds=self.cv,
                homophily=homophily.labels,
            )
            with phase("labelling all nodes", self.verbose):
                self._answers = self._mix(experts, smoothed)
            self._judge(experts, homophily)
        return self._answers

    def _mix(self, experts: Experts, smoothed: NDArray[Any] | None) -> Floats:
        """Return the weighted mean of the experts, of those that know something of a node."""
        labels, given, task, mixture = self._used, self._labels, experts.task, self._mixture
        _, component = self._known.graph.components()
        joined = split_by_edges(labels, self._known.graph)[0]
        by_graph = np.isin(component, component[joined.nodes])
        self.reached_ = by_graph.copy()
        self.reached_[given.nodes] = True
        own = ~self._missing[labels.nodes]
        if not own.any():
            own[:] = True
        known = choose_labels(labels, own)
        rows = experts.features.rows(known.nodes)
        self._predict_own = task.fit(mixture.own_estimator, rows, known)
        self._scaled = experts.features
        knows = {
            "features": ~self._missing,
            "both": np.isin(component, component[~self._missing])
            & (np.diff(self._known.graph.indptr) > 0),
            "graph": by_graph,
        }
        total, mixed = np.zeros(len(self.reached_)), None
        for variant, found in self._answers_of_experts(experts, smoothed):
            there = knows[variant.kind]
            weight = mixture.weights[variant]
            found = task.apply_temperature(found, mixture.temperatures[variant])
            mixed = np.zeros_like(found) if mixed is None else mixed
            mixed[there] += weight * found[there]
            total[there] += weight
        assert mixed is not None
        mixed /= np.where(total > 0, total, 1.0)[:, np.newaxis]
        self.answered_ = (total > 0) | ~self._missing
        self.answered_[given.nodes] = True
        lost = np.flatnonzero(total == 0)
        if len(lost) > 0:
            temperature = mixture.temperatures.get(FEATURES, 1.0)
            for part in blocks(len(lost), experts.features.shape[1]):
                found = self._predict_own(experts.features.rows(lost[part]))
                mixed[lost[part]] = task.apply_temperature(found, temperature)
            mixed[lost[self._missing[lost]]] = task.without_evidence(labels)
        used = {variant.kind for variant in mixture.weights} - {"features"}
        shared = np.any([knows[kind] for kind in used], axis=0) if used else total > 0
        self._by_estimator = np.flatnonzero(~shared)
        if task.has_classes:  # given labels are kept
            mixed[given.nodes] *= 1.0 - KEPT
            mixed[given.nodes] += KEPT * given.values
        else:  # where nothing else is known
            alone = np.isin(given.nodes, lost[self._missing[lost]])
            mixed[given.nodes[alone]] = given.values[alone]
        return mixed

    def _answers_of_experts(
        self, experts: Experts, smoothed: NDArray[Any] | None
    ) -> Iterator[tuple[Variant, Floats]]:
        """Yield the answers of all experts that have a weight."""
        mixture, labels = self._mixture, self._used
        wanted = set(mixture.weights)
        if any(variant.kind == "both" for variant in wanted):
            answers = fit_both(experts, mixture.estimator, labels, smoothed)
            answers = experts.task.apply_temperature(answers, mixture.base_temperature)
            yield from experts.variants_of_both(answers, labels, mixture.errors, wanted)
        if FEATURES in wanted:
            yield FEATURES, experts.predict_all(self._predict_own)
        if GRAPH in wanted:
            yield GRAPH, experts.by_graph(labels)

    def _judge(self, experts: Experts, homophily: Homophily) -> None:
        """Set `graph_use_`, and warn if the graph does not help."""
        mixture, labels = self._mixture, self._used
        judged = choose_labels(labels, mixture.usable)
        losses = experts.task.losses(mixture.left_out[mixture.usable], judged)
        if len(losses) == 0:
            nan = float("nan")
            self.graph_use_ = GraphUse(False, nan, nan, nan, homophily)
            return
        gains = mixture.losses_without - losses
        error = float(np.std(gains) / np.sqrt(len(gains)))
        loss, alone = _mean(losses, judged), _mean(mixture.losses_without, judged)
        is_used = any(variant.kind != "features" for variant in mixture.weights)
        if not is_used:
            others = [each for v, each in mixture.losses.items() if v.kind != "features"]
            loss = min(others, default=loss)
        helps = is_used and alone - loss > SURE * error
        self.graph_use_ = GraphUse(helps, loss, alone, error, homophily)
        if not is_used:
            warn(
                f"the graph does not help: left-out labels are predicted best from the features "
                f"alone, so the answers are those of the estimator{InPython('; see graph_use_')}",
                OhmWarning,
            )

    @property
    def weights_(self) -> dict[str, float]:
        """How much the three kinds of experts count; they sum to 1.

        "features" is the estimator on the features alone, "graph" the labels that spread along the
        edges, and "both" the estimator on smoothed features.
        """
        self._solve()
        return {kind: self._mixture.share(kind) for kind in ("features", "both", "graph")}

    @property
    def gamma_(self) -> float:
        """How far features are smoothed."""
        self._solve()
        return self._mixture.gamma

    @property
    def graph_(self) -> Graph:
        """The graph in memory: all edges, or a sparsifier."""
        check_is_fitted(self, "_labels")
        return self._known.graph

    @property
    def degrees_(self) -> Floats:
        """Degrees of all edges that were read."""
        check_is_fitted(self, "_labels")
        return self._known.degrees

    @property
    def sparsifier_(self) -> StreamingSparsifier | None:
        """Where `graph_` comes from, if it is a sparsifier."""
        check_is_fitted(self, "_labels")
        return self._known.sparsifier

    @property
    def nodes_(self) -> NodeTable | None:
        """The ids of the nodes, for ``read_edges(..., nodes=model.nodes_)``; None without ids."""
        check_is_fitted(self, "_labels")
        return self._known.nodes

    def _answers_for(self, X: Any) -> tuple[Floats, NDArray[np.bool_]]:
        """Return answers for rows, and which of them are those of the estimator alone.

        Rows are known nodes if X is NodeFeatures, else new points.
        """
        answers = self._solve()
        X = drop_label_column(X, self._label_column, is_quiet=True)
        if isinstance(X, NodeFeatures):
            self._check_table(X)
            matched = X.match(self._known.nodes, n_nodes=len(answers))
            rows = np.arange(X.X.shape[0]) if X.rows is None else X.rows
            numbers = matched.numbers[rows]
            numbers = np.where(numbers < len(answers), numbers, -1)  # ids read, but not in edges
            found = answers[numbers]
            new = np.flatnonzero(numbers < 0)
            if len(new) > 0:
                found[new] = self._answers_of_estimator(X.X[rows[new]])
            return found, (numbers < 0) | np.isin(numbers, self._by_estimator)
        features = self._check_features(X, reset=False)
        found = self._answers_of_estimator(features)
        share = self._mixture.share("features")
        everywhere = np.full(len(found), share < 1.0)
        if not self._has_neighbors or share == 1.0:
            return found, everywhere
        if features.shape[0] == 0 or self._known.graph.n_nodes != self._features.shape[0]:
            return found, everywhere
        joined = Affinity("knn", N_NEIGHBORS, "gaussian", None, self.n_jobs, "euclidean", "auto")
        columns = np.hstack([answers, np.ones((len(answers), 1))])
        new, known = self._scaled.for_distances(features), self._scaled.for_distances()
        near = joined.extend(new, known, columns)
        near = near[:, :-1] / near[:, -1:]
        return share * found + (1.0 - share) * near, ~everywhere

    @one_blas_thread()
    def _answers_of_estimator(self, rows: Any) -> Floats:
        temperature, task = self._mixture.temperatures.get(FEATURES, 1.0), self._task()
        found = [
            task.apply_temperature(
                self._predict_own(self._scaled.scale_rows(rows[part])), temperature
            )
            for part in blocks(*rows.shape)
        ]
        return np.concatenate(found)

    def _check_table(self, X: NodeFeatures) -> None:
        """Refuse features whose columns are not those of the fit."""
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None else list(names)
        check_same_columns(known, self.n_features_in_, X.names, X.shape[1])


def _mean(losses: Floats, labels: NodeLabels) -> float:
    return float(np.average(losses, weights=labels.weights))
