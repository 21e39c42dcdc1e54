"""What all estimators share: from points or edges to a graph, from labels to scores."""

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ohmlearn.graph import Graph
from ohmlearn.harmonic import HFSResult, solve_hfs
from ohmlearn.harmonic.system import LARGEST
from ohmlearn.nodes import NodeTable
from ohmlearn.semi_supervised.affinity import AFFINITIES, Affinity
from ohmlearn.semi_supervised.targets import Labelled
from ohmlearn.streams.labels import warn_unknown
from ohmlearn.validation.parameters import SMALLEST, check_seed

__all__ = ["BaseHFS", "table_of", "with_nodes"]

Floats = NDArray[np.float64]
FAR = 1_000_000  # numbers of nodes that labels may be ahead of the edges


class BaseHFS(BaseEstimator, metaclass=ABCMeta):
    """Fits, answers and new points; subclasses say what is kept of the edges."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "affinity": [StrOptions(set(AFFINITIES)), callable],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "gaussian"})],
        "kernel_gamma": [None, Interval(Real, SMALLEST, LARGEST, closed="both")],
        "gamma": [StrOptions({"auto"}), Interval(Real, SMALLEST, LARGEST, closed="both")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }
    _without_evidence: ClassVar[str]
    _nodes: NodeTable | None = None  # the ids of a stream that has its own
    affinity: str | Callable[..., Any]
    n_neighbors: int
    weights: Literal["uniform", "gaussian"]
    kernel_gamma: float | None
    gamma: float | Literal["auto"]
    normalization: str | None
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int

    # What is kept of the edges.

    @abstractmethod
    def _read(self, edges: Any, n_nodes: int | None) -> HFSResult | None:
        """Take in all edges; an answer that is better than that of `_graph`, if there is one."""

    @abstractmethod
    def _graph(self) -> Graph:
        """Return the graph that is kept."""

    @abstractmethod
    def _total_weight(self) -> float:
        """Return the sum of the weights of all edges."""

    # What labels mean.

    @abstractmethod
    def _encode(self, y: Any, n_nodes: int | None) -> Labelled:
        """Set attributes from y; return labelled nodes and their values."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to points, or to a graph with ``affinity="precomputed"``.

        Parameters
        ----------
        X : array-like of shape (n_nodes, n_features)
            Points; or a symmetric matrix of weights, sparse or dense, or a Graph.
        y : array-like of shape (n_nodes,), or dict {node: label}
            Labels; None and NaN, and for classes -1, mean unlabelled.

        Returns
        -------
        self : object
        """
        self._validate_params()
        points = self._check_points(X, reset=True)
        edges = self._affinity().edges(points)
        n_nodes = edges.n_nodes
        nodes_values = self._encode(y, n_nodes)
        self._nodes = None
        if self.affinity == "precomputed":
            self.__dict__.pop("X_", None)
        else:
            self.X_ = points
        return self._fit(edges, nodes_values, n_nodes)

    def fit_edges(self, edges: Any, y: Any, n_nodes: int | None = None) -> Self:
        """Fit to a stream of edges.

        Parameters
        ----------
        edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
            Each edge once, in either direction; parallel ones add up. With more than one pass, an
            iterable must begin anew each time.
        y : array-like of shape (n_nodes,), or dict {node: label}
            Labels; None and NaN, and for classes -1, mean unlabelled. Where the stream has ids of
            its own, like that of `read_edges`, so has a dict; results are in the order of
            ``edges.nodes.ids()``.
        n_nodes : int, optional
            Number of nodes, if neither `y` nor the stream knows it; else nodes may appear at any
            time.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import SparseHFSClassifier
        >>> batches = [([0, 1], [1, 2]), ([2, 3], [3, 4], [0.1, 1.0])]
        >>> SparseHFSClassifier().fit_edges(batches, {0: "a", 4: "b"}).transduction_.tolist()
        ['a', 'a', 'a', 'b', 'b']
        """
        self._validate_params()
        self._nodes = table_of(edges)
        y = self._by_number(y)
        is_dict = isinstance(y, Mapping)
        if n_nodes is None:
            n_nodes = getattr(edges, "n_nodes", None)
        if n_nodes is None and not is_dict:
            n_nodes = len(y)
        nodes_values = self._encode(y, n_nodes)
        for name in ("X_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._fit(edges, nodes_values, n_nodes)
        if is_dict:
            self._warn_alone()
        return self

    def _fit(self, edges: Any, nodes_values: Labelled, n_nodes: int | None) -> Self:
        self._labels, self._n_nodes = nodes_values, n_nodes
        self._seed = check_seed(self.random_state)
        self._warm: HFSResult | None = None
        self._answer = self._read(edges, n_nodes)
        self._result()
        return self

    def relabel(self, y: Any) -> Self:
        """Change the labels; no edge is read again.

        Parameters
        ----------
        y : array-like of shape (n_nodes,), or dict {node: label}
            All labels, old ones that stay included; a dict as for `fit_edges`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import StableHFSClassifier, gallery
        >>> model = StableHFSClassifier().fit_edges(gallery.path(4), {0: "a", 3: "b"})
        >>> model.relabel({0: "b", 3: "a"}).transduction_.tolist()
        ['b', 'b', 'a', 'a']
        """
        self._check_edges_seen()
        self._labels = self._encode(self._by_number(y), self._n_nodes)
        self._answer = None
        self._result()
        if self._nodes is not None:
            self._warn_alone()
        return self

    def _warn_alone(self) -> None:
        """Warn of labelled nodes that no edge has."""
        component, labelled = self._result().component, self._labels[0]
        alone = labelled[np.bincount(component)[component[labelled]] == 1]
        warn_unknown(alone if self._nodes is None else self._nodes.ids(alone), len(labelled))

    def _by_number(self, y: Any) -> Any:
        """Return labels with the numbers of nodes; ids that are new get the next ones."""
        if self._nodes is not None and type(y).__name__ == "Series":  # of pandas: ids are its index
            y = y.to_dict()
        if self._nodes is None or not isinstance(y, Mapping):
            return y
        return dict(zip(self._nodes.add(list(y)).tolist(), y.values(), strict=True))

    def _check_same_nodes(self, edges: Any) -> None:
        """Refuse a stream that numbers its nodes by a table of its own."""
        nodes = table_of(edges)
        if self._nodes is not None and nodes is not None and nodes is not self._nodes:
            raise ValueError(
                "these edges have numbers of their own for the ids of their nodes; read them with "
                "read_edges(..., nodes=first.nodes), first being the stream that came before"
            )

    def _check_edges_seen(self) -> None:
        check_is_fitted(self, "_seed")

    def _result(self) -> HFSResult:
        """Return the present answer, which starts from the one before."""
        check_is_fitted(self, "_labels")
        if self._answer is None:
            nodes, _ = self._labels
            graph = self._whole_graph()
            columns = self._columns()
            warm = self._warm
            if warm is not None and warm.columns.shape[1] != columns.shape[1] + self._is_stable():
                warm = None
            self._answer = solve_hfs(
                graph,
                nodes,
                columns,
                self._choose_gamma(graph.n_nodes),
                "stable" if self._is_stable() else None,
                self.tol,
                warm,
                self._seed,
                self.n_jobs,
            )
        if self._warm is not self._answer:
            self._warm = self._answer
            self._warn_unreached(self._answer.reached)
        return self._answer

    def _warn_unreached(self, reached: NDArray[np.bool_]) -> None:
        if not reached.all():
            warnings.warn(
                f"{np.count_nonzero(~reached)} of {len(reached)} nodes are in components without "
                f"a label: they get {self._without_evidence}, and reached_ is False there; label "
                f"some of them, or join them to the rest, with more neighbours, say",
                UserWarning,
                stacklevel=4,
            )

    def _whole_graph(self) -> Graph:
        """Return the graph that is kept, with all nodes that are known of."""
        graph, last = self._graph(), int(self._labels[0].max())
        if self._n_nodes is None and self._nodes is None and last > 2 * graph.n_nodes + FAR:
            raise ValueError(
                f"node {last} has a label, but the edges have {graph.n_nodes} nodes, and memory is "
                f"taken for every number; number nodes 0, 1, 2, ..., as read_edges does, or give "
                f"n_nodes"
            )
        return with_nodes(graph, max(self._n_nodes or 0, last + 1))

    def _choose_gamma(self, n_nodes: int) -> float:
        """Set and return `gamma_`."""
        if self.gamma == "auto":
            self.gamma_ = self._automatic_gamma(2.0 * self._total_weight() / n_nodes)
        else:
            self.gamma_ = float(self.gamma)
        return self.gamma_

    @abstractmethod
    def _automatic_gamma(self, degree: float) -> float:
        """Return what ``gamma="auto"`` stands for, given the mean degree."""

    def _is_stable(self) -> bool:
        return self.normalization == "stable"

    @abstractmethod
    def _columns(self) -> Floats:
        """Return the values at the labelled nodes as columns."""

    @property
    def scores_(self) -> Floats:
        """Harmonic functions, one column for each class; 0 where `reached_` is False."""
        return self._result().f

    @property
    def reached_(self) -> NDArray[np.bool_]:
        """Whether a node is connected with any label."""
        return self._result().reached

    @property
    def residuals_(self) -> Floats:
        """Relative residuals of `scores_`, before a last step that reads no edge, if any."""
        return self._result().residuals

    def _affinity(self) -> Affinity:
        return Affinity(
            self.affinity, self.n_neighbors, self.weights, self.kernel_gamma, self.n_jobs
        )

    def _check_points(self, X: Any, *, reset: bool) -> Any:
        precomputed = self.affinity == "precomputed"
        if precomputed and isinstance(X, Graph):
            if reset:
                self.n_features_in_ = X.n_nodes
            return X
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=["csr", "csc", "coo"] if precomputed else False,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )

    def _extend(self, X: Any, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return means of values over the points that new ones are joined to.

        Points without evidence do not count; the second array says where there were others.
        """
        if not hasattr(self, "n_features_in_"):
            raise ValueError(
                "predict needs points, but this estimator was fitted to edges; transduction_ has "
                "the answers for the nodes of the graph"
            )
        new = self._check_points(X, reset=False)
        reached = self._result().reached.astype(np.float64)[:, np.newaxis]
        columns = np.hstack([values * reached, reached])
        total = self._affinity().extend(new, getattr(self, "X_", None), columns)
        known = total[:, -1] > 0
        return total[:, :-1] / np.where(known, total[:, -1], 1.0)[:, np.newaxis], known

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = self.affinity == "precomputed"
        return tags


def table_of(edges: Any) -> NodeTable | None:
    """Return the ids of a stream that has its own."""
    nodes = getattr(edges, "nodes", None)
    return nodes if isinstance(nodes, NodeTable) else None


def with_nodes(graph: Graph, n_nodes: int) -> Graph:
    """Return the graph with isolated nodes added, up to `n_nodes`."""
    missing = n_nodes - graph.n_nodes
    if missing <= 0:
        return graph
    indptr = np.concatenate([graph.indptr, np.full(missing, graph.indptr[-1])])
    indptr.flags.writeable = False
    return Graph._from_csr(indptr, graph.indices, graph.weights)
