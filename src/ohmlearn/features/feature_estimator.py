"""What the estimators for features and graph have in common: forms of input, and answers."""

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ohmlearn._blas import one_blas_thread
from ohmlearn._display import Tabular
from ohmlearn.checks.edge_arrays import is_table
from ohmlearn.checks.parameters import (
    Allowed,
    Constraints,
    Interval,
    check_parameters,
    check_seed,
)
from ohmlearn.estimators.explanation import explain_asked
from ohmlearn.estimators.label_columns import answer_columns
from ohmlearn.estimators.label_input import (
    Labels,
    NodeLabels,
    label_heading,
    merge_rows,
    number_labels,
    pair_by_node,
)
from ohmlearn.features.expert_tasks import Floats, Mask, Task
from ohmlearn.features.experts import Experts, ScaledFeatures
from ohmlearn.features.feature_columns import warn_of_leaks
from ohmlearn.features.feature_problem import FeatureProblem, GraphEstimator
from ohmlearn.features.feature_reasons import PooledExplanation, explain_pool
from ohmlearn.features.node_features import NodeFeatures, drop_label_column
from ohmlearn.features.smoothing import GAMMA
from ohmlearn.features.stacking import FeatureAnswer, Folds, GraphUse
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import ids_or_numbers
from ohmlearn.points.affinity import Affinity
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.sparsifier import StreamingSparsifier

Answer = TypeVar("Answer", bound=FeatureAnswer)
SPLITTER = Allowed(
    lambda cv: hasattr(cv, "split") or isinstance(cv, list), "a splitter or a list of folds"
)


@dataclass(eq=False, repr=False)
class BaseGraphFeatures(GraphEstimator, Generic[Answer]):
    """Common part of the classifier and the regressor.

    `_problem` is what is known, and `_found` the answer, which is None after `update` and `load`
    until it is asked for.
    """

    _constraints: ClassVar[Constraints] = {
        **GraphEstimator._constraints,
        "gamma": GAMMA,
        "cv": (Interval(Integral, 2), SPLITTER),
    }
    estimator: BaseEstimator | None = None
    graph: Any = None
    _: KW_ONLY
    gamma: float = 9.0
    cv: Folds = 5
    _problem: FeatureProblem = field(init=False)
    _found: Answer | None = field(init=False)
    _has_neighbors: bool = field(init=False)  # whether the graph joins nearest neighbours
    _by_index: bool = field(init=False)  # whether the index of a Series of labels has the nodes
    _label_column: str | None = field(init=False)  # name of the labels, which no feature has

    # The classifier and the regressor differ in these.

    @abstractmethod
    def _read_labels(
        self, y: object, n_nodes: int | None, ids: NodeTable | None, sample_weight: object
    ) -> Labels:
        """Check y; nodes are numbered later."""

    @abstractmethod
    def _task(self, classes: NDArray[Any] | None) -> Task:
        """Return what answers are."""

    @abstractmethod
    def _find_answer(self, problem: FeatureProblem, experts: Experts) -> Answer:
        """Return the answer of the experts."""

    def _weigh_labels(self, labels: NodeLabels, classes: NDArray[Any] | None) -> NodeLabels:
        """Return labels with the weights that they have together with each other."""
        return labels

    # Fitting.

    def fit(self, X: Matrix, y: object, sample_weight: object = None) -> Self:
        """Fit to features of all nodes, and labels of some.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_features), or NodeFeatures
            One row for each node of the graph, in its order; NodeFeatures have ids instead. In
            scikit-learn's cross-validation give NodeFeatures, of which folds can be taken. An array
            is copied; do not change the matrix of NodeFeatures afterwards.
        y : array-like of shape (n_nodes,), or dict {node: label}
            Labels. None and NaN, and for classes -1, mean unlabelled. With NodeFeatures, an array
            has one entry for each of their rows.
        sample_weight : array-like of shape (n_nodes,), or dict {node: weight}, optional
            How much each label counts.

        Returns
        -------
        self : object
        """
        return self._fit(self.graph, X, y, sample_weight, None, is_stream=False)

    def fit_edges(
        self,
        edges: object,
        X: Matrix,
        y: object,
        *,
        sample_weight: object = None,
        sparsifier: StreamingSparsifier | None = None,
    ) -> Self:
        """Fit to a stream of edges, which is read once, and features of the nodes.

        The parameter `graph` is not used.

        Parameters
        ----------
        edges : stream, Graph, matrix, table, or tuple (u, v) or (u, v, w) of arrays
            See ``HFSClassifier.fit_edges``. A Graph or a matrix is used whole; other edges go
            through a sparsifier. Their degrees are exact.
        X : NodeFeatures, table, or array-like of shape (n_nodes, n_features)
            Features by id, or rows in the order of the nodes. Ids that no edge has become further
            nodes. Nodes without features are answered from the graph and the features around them.
        y : array-like of shape (n_nodes,), dict {node: label}, Series or table
            Labels, as for ``HFSClassifier.fit_edges``.
        sample_weight : array-like, dict {node: weight}, Series or table, optional
            How much each label counts.
        sparsifier : StreamingSparsifier, optional
            An empty one that takes in the edges, for example one with a half-life. With a half-life
            or a horizon, degrees are those of the sparsifier.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import GraphFeatureClassifier, NodeFeatures
        >>> edges = [([0, 1, 3, 4], [1, 2, 4, 5])]
        >>> X = [[1.0], [0.9], [1.1], [-1.0], [-0.9], [-1.2]]
        >>> model = GraphFeatureClassifier(random_state=0)
        >>> model.fit_edges(edges, X, {0: "a", 2: "a", 3: "b", 5: "b"}).transduction_.tolist()
        ['a', 'a', 'a', 'b', 'b', 'b']
        """
        return self._fit(edges, X, y, sample_weight, sparsifier, is_stream=True)

    def _fit(
        self,
        edges: object,
        X: Matrix,
        y: object,
        sample_weight: object,
        sparsifier: StreamingSparsifier | None,
        *,
        is_stream: bool,
    ) -> Self:
        self._check_parameters()
        self._seed = check_seed(self.random_state)
        self._has_neighbors = edges is None and not is_stream
        if is_stream and is_table(X):
            X = NodeFeatures.from_table(X)
        self._label_column = label_heading(y)
        X = drop_label_column(X, self._label_column)
        has_ids = isinstance(X, NodeFeatures)
        rows = self._take(X, reset=True)
        if self._has_neighbors:
            near = ScaledFeatures(rows).for_distances()
            known = self._join_neighbors(near, X.ids if has_ids else None)
        else:
            known = self._read_graph(edges, None if has_ids else rows.shape[0], sparsifier)
        self._by_index = is_stream or has_ids or known.nodes is not None
        problem = FeatureProblem.join(known, X, rows, add=is_stream)
        self._label(problem, y, sample_weight, refuses=not is_stream)
        return self

    def _label(
        self, problem: FeatureProblem, y: object, sample_weight: object, *, refuses: bool = False
    ) -> None:
        """Solve for labels y; `refuses` those of nodes that the graph does not have."""
        by_node = isinstance(y, Mapping) or is_table(y) or type(y).__name__ == "Series"
        if problem.table is not None and not by_node:
            found = self._read_labels(y, len(problem.table), None, sample_weight)
            found = problem.place(found)
        else:
            y, sample_weight = pair_by_node(y, sample_weight, by_index=self._by_index)
            nodes = problem.known.nodes
            found = self._read_labels(y, problem.n_nodes, nodes, sample_weight)
            if refuses:
                problem.refuse_unknown(found)
            found = number_labels(found, nodes)
        labels = self._weigh_labels(_tidy(merge_rows(found)), found.classes)
        problem = problem.with_labels(labels, found.classes)
        names = getattr(self, "feature_names_in_", None)
        warn_of_leaks(problem.features, labels, problem.missing, names)
        self._found = self._solve(problem)  # an error before this line changes nothing
        self._problem = problem

    def update(self, edges: object, X: Matrix = None) -> Self:
        """Take in more edges; answers are computed again when they are asked for.

        Parameters
        ----------
        edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
            Only the new edges, which may have new nodes. Streams with ids need
            ``read_edges(..., nodes=model.nodes_)``.
        X : NodeFeatures, table, or array-like of shape (n_nodes, n_features), optional
            Features of all nodes. By default those given before are kept. New nodes without
            features are answered from the graph and the features around them.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import GraphFeatureClassifier
        >>> X = [[1.0], [0.9], [-1.0], [-0.9]]
        >>> y = {0: "a", 1: "a", 2: "b", 3: "b"}
        >>> model = GraphFeatureClassifier(random_state=0).fit_edges(([0, 2], [1, 3]), X, y)
        >>> model.update(([3], [4]), X + [[-1.1]]).transduction_.tolist()
        ['a', 'a', 'b', 'b', 'b']

        A stream in two parts, with ids. The features are given once:

        >>> from ohmlearn import NodeFeatures, read_edges
        >>> features = NodeFeatures(X, ids=["ann", "bob", "cy", "dan"])
        >>> first = read_edges([("ann", "cy"), ("bob", "dan")])
        >>> model = GraphFeatureClassifier(random_state=0)
        >>> model = model.fit_edges(first, features, {"ann": "a", "dan": "b"})
        >>> second = read_edges([("ann", "bob", 9.0), ("cy", "dan", 9.0)], nodes=model.nodes_)
        >>> model = model.update(second)
        >>> dict(zip(model.nodes_.ids().tolist(), model.transduction_.tolist(), strict=True))
        {'ann': 'a', 'cy': 'b', 'bob': 'a', 'dan': 'b'}
        """
        problem = self._fitted
        if is_table(X):
            X = NodeFeatures.from_table(X)
        X = drop_label_column(X, self._label_column, is_quiet=True)
        rows = None if X is None else self._take(X, reset=False)
        known = problem.known.add(edges, self.verbose)
        X = problem.table if X is None else X
        if X is None:
            problem = problem.with_edges(known)
        else:
            joined = FeatureProblem.join(known, X, rows, add=True)
            problem = joined.with_labels(problem.labels, problem.classes)
        self._problem, self._found = problem, None
        return self

    def relabel(self, y: object, *, sample_weight: object = None) -> Self:
        """Change the labels without reading the edges again.

        Parameters
        ----------
        y : array-like of shape (n_nodes,), dict {node: label}, Series or table
            All labels, including earlier ones that are still valid. With NodeFeatures, an array
            has one entry for each of their rows.
        sample_weight : array-like, dict {node: weight}, Series or table, optional
            How much each label counts.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import GraphFeatureClassifier
        >>> X = [[1.0], [0.9], [-1.0], [-0.9]]
        >>> model = GraphFeatureClassifier(random_state=0)
        >>> model = model.fit_edges(([0, 2], [1, 3]), X, {0: "a", 1: "a", 2: "b", 3: "b"})
        >>> model.relabel({0: "b", 1: "b", 2: "a", 3: "a"}).transduction_.tolist()
        ['b', 'b', 'a', 'a']
        """
        self._label(self._fitted, y, sample_weight)
        return self

    # Files.

    def explain(
        self, node: object, *, against: object = None, n_labels: int | None = 5, n_edges: int = 20
    ) -> PooledExplanation | list[PooledExplanation]:
        """Return why a node has its label: what features and edges add, then labels and edges.

        Parameters
        ----------
        node : id or number of a node, or a list of them
        against : class, optional
            The class that the label is compared with; by default the second most likely one.
        n_labels, n_edges : int
            As for `HFSClassifier.explain`.

        Returns
        -------
        PooledExplanation, or a list of them if `node` is a list

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import GraphFeatureClassifier, gallery
        >>> graph = gallery.stochastic_blocks([30, 30], 0.3, bridges=5, random_state=0)
        >>> X = np.repeat([[0.0], [1.0]], 30, axis=0) + np.linspace(0, 0.5, 60)[:, np.newaxis]
        >>> y = {node: node // 30 for node in (0, 5, 9, 30, 38, 50)}
        >>> model = GraphFeatureClassifier(random_state=0).fit_edges(graph, X, y)
        >>> why = model.explain(20)
        >>> why.label, why.against, sorted(why.experts)
        (0, 1, ['both', 'features', 'graph'])
        """
        answer, nodes = self.answer_, self._fitted.known.nodes
        how = {"against": against, "n_labels": n_labels, "n_edges": n_edges}
        explain = partial(explain_pool, answer)
        return explain_asked(explain, nodes, answer.problem.n_nodes, node, **how)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file with a checksum, completely or not at all.

        The file holds the graph (a sparsifier, or all edges), degrees, ids, features, labels and
        parameters. Answers are computed again after loading, with the same bits. Nothing is
        pickled: `estimator` is not in the file, and `load` must be given the same one.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import GraphFeatureClassifier
        >>> X, y = [[1.0], [0.9], [-1.0], [-0.9]], {0: "a", 1: "a", 2: "b", 3: "b"}
        >>> model = GraphFeatureClassifier(random_state=0).fit_edges(([0, 2], [1, 3]), X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.ohm")
        ...     loaded = GraphFeatureClassifier.load(f"{folder}/model.ohm")
        >>> loaded.update(([3], [4])).transduction_.tolist()
        ['a', 'a', 'b', 'b', 'b']
        """
        problem = self._fitted
        parameters = self.get_params(deep=False)
        for name in ("estimator", "graph", "random_state"):
            del parameters[name]
        names = getattr(self, "feature_names_in_", None)
        about = {
            "class": type(self).__name__,
            "estimator": repr(self.estimator),
            "parameters": parameters,
            "seed": self._seed,
            "has_neighbors": self._has_neighbors,
            "by_index": self._by_index,
            "names": None if names is None else list(names),
            "label_column": self._label_column,
        }
        problem.save(path, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str], estimator: BaseEstimator | None = None) -> Self:
        """Read a saved estimator, which continues as if it had never stopped.

        To take in more edges with ids, read them with the ids of the estimator:
        ``model.update(read_edges(path, nodes=model.nodes_))``.

        Parameters
        ----------
        path : str or path
            A file written by `save`; see there for an example.
        estimator : classifier or regressor of scikit-learn, optional
            The one that the saved model had.

        Raises
        ------
        ValueError
            Names the file and what is wrong with it. It is safe to load any file.
        """
        problem, about = FeatureProblem.load(path, cls.__name__, estimator)
        model = cls(estimator, random_state=about["seed"], **about["parameters"])
        model._check_parameters()
        model._seed = check_seed(about["seed"])
        model._has_neighbors, model._label_column = about["has_neighbors"], about["label_column"]
        model._by_index = about.get("by_index", problem.known.nodes is not None)
        model.n_features_in_ = problem.features.shape[1]
        if about["names"] is not None:
            model.feature_names_in_ = np.array(about["names"], dtype=object)
        model._problem, model._found = problem, None
        return model

    # Answers.

    @property
    def answer_(self) -> Answer:
        """The answer for all nodes, computed when it is asked for."""
        problem = self._fitted
        if self._found is None:
            self._found = self._solve(problem)
        return self._found

    @property
    def _fitted(self) -> FeatureProblem:
        """What is known, if `fit` has been called."""
        check_is_fitted(self, "_problem")
        return self._problem

    @one_blas_thread()
    def _solve(self, problem: FeatureProblem) -> Answer:
        problem.warn_unused()
        experts = Experts(
            self._task(problem.classes),
            problem,
            estimator=self.estimator,
            gamma=float(self.gamma),
            seed=self._seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        return self._find_answer(problem, experts)

    @property
    def weights_(self) -> dict[str, float]:
        """How much the three experts count; the weights sum to 1.

        "features" is the estimator on the features alone, "both" the estimator on smoothed
        features, and "graph" the labels that spread along the edges.
        """
        return self.answer_.weights

    @property
    def graph_use_(self) -> GraphUse:
        """Whether the graph helps, and how alike joined nodes are."""
        return self.answer_.use

    @property
    def reached_(self) -> Mask:
        """Whether a node is connected to any label."""
        return self.answer_.reached

    @property
    def answered_(self) -> Mask:
        """Whether anything is known of a node: labels around it, or features."""
        return self.answer_.answered

    @property
    def labelled_(self) -> NDArray[np.int64]:
        """Numbers of the labelled nodes."""
        return self._fitted.labels.nodes

    @property
    def graph_(self) -> Graph:
        """The graph in memory: all edges, or a sparsifier."""
        return self._fitted.known.graph

    @property
    def degrees_(self) -> Floats:
        """Degrees of all edges that were read."""
        return self._fitted.known.degrees

    @property
    def sparsifier_(self) -> StreamingSparsifier | None:
        """Where `graph_` comes from, if it is a sparsifier."""
        return self._fitted.known.sparsifier

    @property
    def nodes_(self) -> NodeTable:
        """The ids of the nodes, or their numbers, for ``read_edges(..., nodes=model.nodes_)``."""
        return ids_or_numbers(self._fitted.known.nodes, self.graph_.n_nodes)

    def _columns(self) -> dict[str, Any]:
        return answer_columns(self.answer_, self.nodes_)

    to_frame, to_arrow = Tabular.to_frame, Tabular.to_arrow
    __arrow_c_stream__ = Tabular.__arrow_c_stream__

    def _answers_for(self, X: Matrix) -> tuple[Floats, Mask]:
        """Return answers for rows, and which of them are those of the estimator alone.

        Rows are known nodes if X is NodeFeatures, else new points.
        """
        answer = self.answer_
        X = drop_label_column(X, self._label_column, is_quiet=True)
        rows = self._take(X, reset=False)
        if isinstance(X, NodeFeatures):
            n_nodes = len(answer.values)
            matched, positions = X.match(self._fitted.known.nodes, n_nodes=n_nodes), X._positions
            numbers = matched.numbers[positions]
            numbers = np.where(numbers < n_nodes, numbers, -1)  # ids read, but not in edges
            found, new = answer.values[numbers], numbers < 0
            if new.any():
                found[new] = answer.of_new(rows[positions[new]])
            return found, new | answer.alone[numbers]
        found, alone = answer.of_new(rows), np.ones(rows.shape[0], dtype=bool)
        weight = answer.weights["features"]
        if not self._has_neighbors or weight == 1.0 or len(found) == 0:
            return found, alone
        columns = np.hstack([answer.values, np.ones((len(answer.values), 1))])
        scaled = answer.experts.features
        points = scaled.for_distances(rows), scaled.for_distances()
        near = Affinity("knn", n_jobs=self.n_jobs).extend(*points, columns)
        near = near[:, :-1] / near[:, -1:]
        return weight * found + (1.0 - weight) * near, ~alone

    # Checks.

    def _check_parameters(self) -> None:
        values = self.get_params(deep=False)
        known = {name: values[name] for name in self._constraints if name in values}
        check_parameters(type(self).__name__, self._constraints, known)
        estimator, kind = self.estimator, "classifier" if is_classifier(self) else "regressor"
        if estimator is None:
            return
        is_other = is_regressor if kind == "classifier" else is_classifier
        is_estimator = hasattr(estimator, "get_params") and not isinstance(estimator, type)
        if not is_estimator or is_other(estimator):
            raise ValueError(
                f"estimator of {type(self).__name__} must be a {kind} of scikit-learn, got "
                f"{estimator!r}"
            )

    def _take(self, X: Matrix, *, reset: bool) -> Any:
        least = 2 if reset else 1
        return self._take_features(X, reset=reset, accept_sparse="csr", ensure_min_samples=least)


def _tidy(labels: NodeLabels) -> NodeLabels:
    """Return labels in the order of nodes, and weights with the mean 1; only ratios matter.

    So the folds, and with them the answers, do not depend on the order of a dict or of rows.
    """
    order = np.argsort(labels.nodes, kind="stable")
    weights = labels.weights[order] / labels.weights.max()
    return NodeLabels(labels.nodes[order], labels.values[order], weights / weights.mean())
