"""What the estimators for features and graph have in common: forms of input, and answers."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ohmlearn._blas import one_blas_thread
from ohmlearn._phases import phase
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import is_table
from ohmlearn.checks.parameters import (
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    Constraints,
    Interval,
    check_parameters,
    check_seed,
)
from ohmlearn.estimators.label_input import (
    Labels,
    NodeLabels,
    choose_labels,
    is_mapping,
    label_heading,
    merge_rows,
    number_labels,
    pair_by_node,
    refuse_unknown,
    split_by_edges,
)
from ohmlearn.features.expert_tasks import Predictor, Task
from ohmlearn.features.feature_checks import own_features, take_features, warn_of_leaks
from ohmlearn.features.feature_columns import check_same_columns
from ohmlearn.features.feature_model_file import SavedModel, load_model, save_model
from ohmlearn.features.graph_use import GraphUse, judge_graph
from ohmlearn.features.known_graph import (
    KnownGraph,
    SharesGraph,
    add_edges,
    check_index,
    join_neighbors,
    read_graph,
)
from ohmlearn.features.node_features import NodeFeatures, drop_label_column
from ohmlearn.features.scaled_features import ScaledFeatures, blocks
from ohmlearn.features.smoothing import GAMMA
from ohmlearn.features.stacking import EXPERTS, Experts, Stack, fit_stack
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import are_reordered
from ohmlearn.points.affinity import Affinity
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_options import MAX_EDGES

__all__ = ["BaseGraphFeatures"]

Floats = NDArray[np.float64]


class BaseGraphFeatures(SharesGraph):
    """Common part of the classifier and the regressor.

    Answers are computed when they are asked for, from a graph, features and labels.
    """

    _constraints: ClassVar[Constraints] = {
        "gamma": GAMMA,
        "cv": (Interval(Integral, 2),),
        "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
        "max_edges": (None, Interval(Integral, 1, MAX_EDGES)),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    estimator: Any
    graph: Any
    gamma: float
    cv: int
    epsilon: float | None
    max_edges: int | None
    random_state: Any
    n_jobs: int | None
    verbose: int
    # What fitting sets.
    _seed: int
    _known: KnownGraph
    _has_neighbors: bool  # whether the graph joins nearest neighbours
    _features: Any  # one row for each node
    _missing: NDArray[np.bool_]  # nodes without features
    _table: NodeFeatures | None
    _labels: NodeLabels
    _label_column: str | None = None  # name of the labels, which no feature has
    # What solving sets.
    _answers: Floats | None
    _stack: Stack
    _own: Predictor | None  # the estimator on the features of a node
    _experts: Experts
    _alone: NDArray[np.bool_]  # nodes that the estimator on own features answers, not the pool
    n_features_in_: int

    # The classifier and the regressor differ in these.

    @abstractmethod
    def _task(self) -> Task:
        """Return what answers are."""

    @abstractmethod
    def _read_labels(
        self, y: Any, n_nodes: int | None, ids: NodeTable | None, sample_weight: Any
    ) -> Labels:
        """Check y and set the attributes that depend on it."""

    # Fitting.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        self._check_parameters()
        self._seed = check_seed(self.random_state)
        self._has_neighbors = self.graph is None
        X = self._without_labels(X, y)
        if isinstance(X, NodeFeatures):
            known = self._join_rows(X.X, X.ids) if self.graph is None else self._read(self.graph)
            self._set_names(X)
            return self._fit_table(known, X, y, sample_weight, add=False)
        features = own_features(self._check_features(X, reset=True), X)
        if self.graph is None:
            known = self._join_rows(features)
        else:
            known = self._read(self.graph, features.shape[0])
            _refuse_doubtful_order(X, known.nodes)
        y, sample_weight = pair_by_node(y, sample_weight, by_index=known.nodes is not None)
        self._set(known, features, None)
        labels = self._read_labels(y, known.graph.n_nodes, known.nodes, sample_weight)
        self._refuse_unknown(labels)
        self._set_labels(labels)
        return self

    def fit_edges(
        self,
        edges: object,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
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
        self._check_parameters()
        self._seed = check_seed(self.random_state)
        self._has_neighbors = False
        if is_table(X):
            X = NodeFeatures.from_table(X)
        X = self._without_labels(X, y)
        if isinstance(X, NodeFeatures):
            self._set_names(X)
            known = self._read(edges, None, sparsifier)
            return self._fit_table(known, X, y, sample_weight, add=True)
        features = own_features(self._check_features(X, reset=True), X)
        known = self._read(edges, features.shape[0], sparsifier)
        _refuse_doubtful_order(X, known.nodes)
        y, sample_weight = pair_by_node(y, sample_weight, by_index=True)
        self._set(known, features, None)
        self._set_labels(self._read_labels(y, known.graph.n_nodes, known.nodes, sample_weight))
        return self

    def _without_labels(self, X: Any, y: Any) -> Any:
        """Return features without the column that the labels y come from, and remember its name."""
        self._label_column = label_heading(y)
        return drop_label_column(X, self._label_column)

    def _read(
        self,
        edges: object,
        n_rows: int | None = None,
        sparsifier: StreamingSparsifier | None = None,
    ) -> KnownGraph:
        known = read_graph(
            edges,
            n_rows,
            epsilon=self.epsilon,
            max_edges=self.max_edges,
            random_state=self._seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            sparsifier=sparsifier,
        )
        if known.sparsifier is not None and known.sparsifier.options.has_times:
            return known._replace(degrees=known.graph.degrees)  # those of edges that count now
        return known

    def _join_rows(self, X: Any, ids: NDArray[Any] | None = None) -> KnownGraph:
        """Join nearest neighbours; row i is node i."""
        rows = ScaledFeatures(X).for_distances()
        known = join_neighbors(rows, n_jobs=self.n_jobs, verbose=self.verbose)
        if ids is None:
            return known
        nodes = NodeTable()
        nodes.add(ids)
        known.graph.nodes = nodes
        return known._replace(nodes=nodes)

    def _fit_table(
        self, known: KnownGraph, X: NodeFeatures, y: Any, sample_weight: Any, *, add: bool
    ) -> Self:
        """Fit to features with ids; `add` those that no edge has as nodes."""
        by_row = _is_by_row(y)
        if by_row:
            labels = self._read_labels(y, len(X), None, sample_weight)
        self._join(known, X, add=add)
        if by_row:
            self._set_labels(self._place(labels), has_numbers=True)
            return self
        y, sample_weight = pair_by_node(y, sample_weight, by_index=True)
        labels = self._read_labels(y, self._known.graph.n_nodes, known.nodes, sample_weight)
        if not add:
            self._refuse_unknown(labels)
        self._set_labels(labels)
        return self

    def _place(self, labels: Labels) -> Labels:
        """Return labels of rows of NodeFeatures as labels of nodes."""
        X = self._table
        assert X is not None
        rows = np.arange(X.X.shape[0]) if X.rows is None else X.rows
        nodes = self._matched.numbers[rows][labels.nodes]
        there = nodes >= 0
        if not there.any():
            raise ValueError(
                "no labelled row of X belongs to a node of the graph, so there is no label; are "
                "the ids of X those of the graph?"
            )
        return labels._replace(
            nodes=nodes[there],
            values=labels.values[there],
            weights=labels.weights[there],
            soft=labels.soft[there],
        )

    def _refuse_unknown(self, labels: Labels) -> None:
        """Refuse labels of nodes that the graph does not have, because they may be mistyped."""
        refuse_unknown(labels, self._known.nodes)
        n_nodes = len(self._missing)
        if isinstance(labels.nodes, np.ndarray) and labels.nodes.max(initial=-1) >= n_nodes:
            raise ValueError(
                f"y has a label of node {labels.nodes.max()}, but the nodes of the graph are 0 to "
                f"{n_nodes - 1}"
            )

    def _join(self, known: KnownGraph, X: NodeFeatures, *, add: bool) -> None:
        """Join the features to the nodes by their ids."""
        self._matched = X.match(known.nodes, n_nodes=known.graph.n_nodes, add=add)
        if said := self._matched.about():
            warn(said)
        self._set(known, self._matched.X, self._matched.missing)
        self._table = X

    def _set(self, known: KnownGraph, features: Any, missing: NDArray[np.bool_] | None) -> None:
        """Take over the graph and the features of its nodes; answers are computed later."""
        n_nodes = features.shape[0]
        n_new = n_nodes - known.graph.n_nodes
        if n_new > 0:  # nodes without edges
            degrees = np.concatenate([known.degrees, np.zeros(n_new)])
            known = known._replace(graph=with_nodes(known.graph, n_nodes), degrees=degrees)
        self._known, self._features = known, features
        self._missing = np.zeros(n_nodes, dtype=bool) if missing is None else missing
        self._table, self._answers = None, None

    def _set_labels(self, labels: Labels, *, has_numbers: bool = False) -> None:
        """Take over labels; `has_numbers` if they have the numbers of nodes, not their ids."""
        rows = labels if has_numbers else number_labels(labels, self._known.nodes)
        self._labels = self._weigh_labels(_tidy(merge_rows(rows)))
        self.labelled_ = self._labels.nodes
        last = int(self.labelled_.max(initial=-1)) + 1
        if last > len(self._missing):  # labels of nodes that have neither edges nor features
            self._grow(last)
        self._answers = None
        names = getattr(self, "feature_names_in_", None)
        warn_of_leaks(self._features, self._labels, self._missing, names)
        self._solve()

    def _weigh_labels(self, labels: NodeLabels) -> NodeLabels:
        """Return labels with the weights that they have together with each other."""
        return labels

    def _grow(self, n_nodes: int) -> None:
        """Add nodes without edges and features."""
        n_new = n_nodes - self._features.shape[0]
        empty = np.tile(np.asarray(self._features.mean(axis=0)).reshape(1, -1), (n_new, 1))
        if scipy.sparse.issparse(self._features):
            features: Any = scipy.sparse.vstack(
                [self._features, scipy.sparse.csr_array((n_new, self._features.shape[1]))], "csr"
            )
        else:
            features = np.vstack([self._features, empty.astype(self._features.dtype)])
        missing = np.concatenate([self._missing, np.ones(n_new, dtype=bool)])
        table = self._table
        self._set(self._known, features, missing)
        self._table = table

    def update(self, edges: object, X: Any = None) -> Self:
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
        check_is_fitted(self, "_labels")
        with self._unchanged_by_errors():
            self._update(edges, X)
        return self

    def _update(self, edges: object, X: Any) -> None:
        if is_table(X):
            X = NodeFeatures.from_table(X)
        X = drop_label_column(X, self._label_column, is_quiet=True)
        if isinstance(X, NodeFeatures):
            self._check_table(X)
        array = X is not None and not isinstance(X, NodeFeatures)
        features = own_features(self._check_features(X, reset=False), X) if array else None
        known = add_edges(self._known, edges, self.verbose)
        if known.sparsifier is not None and known.sparsifier.options.has_times:
            known = known._replace(degrees=known.graph.degrees)
        table = X if isinstance(X, NodeFeatures) else None if array else self._table
        if table is not None:
            self._join(known, table, add=True)
        elif features is not None:
            if features.shape[0] < known.graph.n_nodes:
                raise ValueError(
                    f"X must have one row for each of the {known.graph.n_nodes} nodes, got "
                    f"{features.shape[0]}"
                )
            _refuse_doubtful_order(X, known.nodes)
            self._set(known, features, None)
        else:
            self._known, self._answers = known, None
            if known.graph.n_nodes > self._features.shape[0]:
                self._grow(known.graph.n_nodes)

    def relabel(self, y: Any, *, sample_weight: Any = None) -> Self:
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
        check_is_fitted(self, "_labels")
        with self._unchanged_by_errors():
            if self._table is not None and _is_by_row(y):
                labels = self._read_labels(y, len(self._table), None, sample_weight)
                self._set_labels(self._place(labels), has_numbers=True)
                return self
            by_index = self._known.nodes is not None
            y, sample_weight = pair_by_node(y, sample_weight, by_index=by_index)
            n_nodes = None if is_mapping(y, self._known.nodes) else len(self._missing)
            self._set_labels(self._read_labels(y, n_nodes, self._known.nodes, sample_weight))
        return self

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """After an error, the earlier edges, features, labels and answers stay valid."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # Files.

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
        check_is_fitted(self, "_labels")
        parameters = self.get_params(deep=False)
        for name in ("estimator", "graph", "random_state"):
            del parameters[name]
        names = getattr(self, "feature_names_in_", None)
        about = {
            "parameters": parameters,
            "seed": self._seed,
            "has_neighbors": self._has_neighbors,
            "names": None if names is None else list(names),
            "label_column": self._label_column,
        }
        parts = self._known, self._features, self._missing, self._labels
        model = SavedModel(*parts, getattr(self, "classes_", None), about)
        save_model(path, type(self).__name__, self.estimator, model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], estimator: Any = None) -> Self:
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
        saved = load_model(path, cls.__name__, estimator)
        about = saved.about
        model = cls(estimator, random_state=about["seed"], **about["parameters"])
        model._check_parameters()
        model._seed = check_seed(about["seed"])
        model._has_neighbors, model._label_column = about["has_neighbors"], about["label_column"]
        if about["names"] is not None:
            model.feature_names_in_ = np.array(about["names"], dtype=object)
        if saved.classes is not None:
            model.__dict__["classes_"] = saved.classes
        model._set(saved.known, saved.features, saved.missing)
        model.n_features_in_ = saved.features.shape[1]
        model._labels, model.labelled_ = saved.labels, saved.labels.nodes
        return model

    # Answers.

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
            self._experts = Experts(
                self._task(),
                self._known.graph,
                self._known.degrees,
                ScaledFeatures(self._features),
                self._missing,
                self._used,
                estimator=self.estimator,
                gamma=float(self.gamma),
                seed=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            self._stack = fit_stack(self._experts, self.cv)
            self.graph_use_: GraphUse = judge_graph(self._experts, self._stack)
            with phase("labelling all nodes", self.verbose):
                self._answers = self._pool()
            self._experts.forget()
        return self._answers

    def _pool(self) -> Floats:
        """Return the pooled answers of all nodes; labelled nodes keep their labels."""
        experts, stack, given = self._experts, self._stack, self._labels
        graph, task = self._known.graph, experts.task
        own, both, _ = stack.chosen
        self._own = experts.fit(own, np.ones(len(experts.labels.nodes), dtype=bool))
        found = experts.everywhere(self._own, both, stack.weights > 0)
        pooled = stack.pool(task, found)
        applies: NDArray[np.bool_] = np.any(found.applies, axis=0)
        pooled[~applies] = task.without_evidence(experts.labels)
        by_graph = found.applies[1:][stack.weights[1:] > 0]
        self._alone = np.logical_not(by_graph.any(axis=0))
        _, component = graph.components()
        joined = split_by_edges(experts.labels, graph)[0]
        self.reached_: NDArray[np.bool_] = np.isin(component, component[joined.nodes])
        self.reached_[given.nodes] = True
        self.answered_ = applies.copy()
        self.answered_[given.nodes] = True
        if task.has_classes:
            pooled[given.nodes] = 0.9 * given.values + 0.1 * pooled[given.nodes]
        else:  # where nothing else is known
            lost = ~applies[given.nodes]
            pooled[given.nodes[lost]] = given.values[lost]
        return pooled

    @property
    def weights_(self) -> dict[str, float]:
        """How much the three experts count; the weights sum to 1.

        "features" is the estimator on the features alone, "both" the estimator on smoothed
        features, and "graph" the labels that spread along the edges.
        """
        self._solve()
        return dict(zip(EXPERTS, self._stack.weights.tolist(), strict=True))

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
            new = numbers < 0
            if new.any():
                found[new] = self._answers_of_estimator(X.X[rows[new]])
            return found, new | self._alone[numbers]
        features = self._check_features(X, reset=False)
        found = self._answers_of_estimator(features)
        share = float(self._stack.weights[0])
        alone = np.ones(len(found), dtype=bool)
        if not self._has_neighbors or share == 1.0 or features.shape[0] == 0:
            return found, alone
        if self._known.graph.n_nodes != self._features.shape[0]:
            return found, alone
        joined = Affinity("knn", n_jobs=self.n_jobs)
        columns = np.hstack([answers, np.ones((len(answers), 1))])
        scaled = self._experts.features
        near = joined.extend(scaled.for_distances(features), scaled.for_distances(), columns)
        near = near[:, :-1] / near[:, -1:]
        return share * found + (1.0 - share) * near, ~alone

    @one_blas_thread()
    def _answers_of_estimator(self, rows: Any) -> Floats:
        """Return the answers of the estimator for the features of new nodes."""
        experts, task = self._experts, self._experts.task
        if self._own is None:
            same = task.without_evidence(experts.labels)
            return np.repeat(same[np.newaxis], rows.shape[0], axis=0)
        found = []
        for part in blocks(*rows.shape):
            own = self._own(experts.own_rows(rows[part]))
            found.append(task.sharpen(own, self._stack.exponents[0]))
        return np.concatenate(found)

    def _check_table(self, X: NodeFeatures) -> None:
        """Refuse features whose columns are not those of the fit."""
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None else list(names)
        check_same_columns(known, self.n_features_in_, X.names, X.shape[1])

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

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        least = 2 if reset else 1
        return take_features(self, X, reset=reset, accept_sparse="csr", ensure_min_samples=least)

    def _set_names(self, X: NodeFeatures) -> None:
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.names is not None:
            self.feature_names_in_ = np.array(X.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_by_row(y: Any) -> bool:
    """Whether y has one entry for each row of NodeFeatures, and not nodes as keys."""
    return not (isinstance(y, Mapping) or is_table(y) or type(y).__name__ == "Series")


def _refuse_doubtful_order(X: Any, nodes: NodeTable | None) -> None:
    """Refuse rows that may not be in the order of the nodes: the ids are 0, 1, ... in another."""
    if check_index(X, nodes) or nodes is None or not are_reordered(nodes):
        return
    raise ValueError(
        f"rows of X have the order of nodes.ids(), which starts with {nodes.ids()[:3].tolist()}; "
        f"to be sure, give NodeFeatures(X, ids=range({len(nodes)})) if row i is the node i, else "
        f"NodeFeatures(X, ids=nodes.ids())"
    )


def _tidy(labels: NodeLabels) -> NodeLabels:
    """Return labels in the order of nodes, and weights with the mean 1; only ratios matter.

    So the folds, and with them the answers, do not depend on the order of a dict or of rows.
    """
    order = np.argsort(labels.nodes, kind="stable")
    weights = labels.weights[order] / labels.weights.max()
    return NodeLabels(labels.nodes[order], labels.values[order], weights / weights.mean())
