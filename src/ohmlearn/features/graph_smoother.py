"""GraphSmoother: smoothing of features as a transformer of scikit-learn."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ohmlearn._defaults import LABEL_EPSILON
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import (
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    Constraints,
    Interval,
    check_parameters,
    check_seed,
)
from ohmlearn.features.feature_checks import take_features
from ohmlearn.features.known_graph import SharesGraph, check_index, join_neighbors, read_graph
from ohmlearn.features.node_features import NodeFeatures
from ohmlearn.features.smoothing import GAMMA, Smoothing, make_room
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.sparsifier.sparsifier_options import MAX_EDGES

__all__ = ["GraphSmoother"]


class GraphSmoother(TransformerMixin, SharesGraph):
    """Smooths features along the edges of a graph.

    Each column x becomes ``D^(1/2) (D + gamma L)^-1 D^(1/2) x``, where D has the degrees and L is
    the Laplacian: a mean over the neighbourhood of each node, as in APPNP. A classifier of the
    smoothed features knows what the neighbours of a node are like. Nodes without edges keep their
    features.

    Rows of X are the nodes, in the order of the graph, in `fit` and in `transform`: the smoother
    has no answer for other nodes. `NodeFeatures` are joined to the nodes by their ids instead, and
    may be in any order.

    Parameters
    ----------
    graph : object, optional
        The graph of the rows of X:

        - a `Graph`, a symmetric scipy matrix or a graph of networkx, used whole;
        - edges as a stream such as ``read_edges(...)``, a tuple (u, v) or (u, v, w) of arrays, a
          list of such tuples, a table, or an `EdgeLog`. They are read once, into a
          `StreamingSparsifier`; the degrees are those of all edges. Nodes that no edge has may
          follow the others if the edges have no ids;
        - a `StreamingSparsifier`, or the path of a saved one. It is used with its own degrees,
          which are not those of its edges exactly: give the edges if you can;
        - None: each row of X is joined to its 10 nearest neighbours. X is used as it is: scale
          columns of different units first.

        If the nodes have ids, give `NodeFeatures` with ids, or the rows of X in the order of
        ``nodes_.ids()``.
    gamma : float or list of float
        How much is smoothed, from 0 for nothing to 1e9. A random walk that stops with chance
        1 / (1 + gamma) before each step takes gamma steps on average. With several, the smoothed
        features are put side by side.
    epsilon : float or None
        Accuracy of the sparsifier that edges are read into, see `StreamingSparsifier`; None keeps
        all edges.
    max_edges : int, optional
        Number of edges to keep, instead of `epsilon`.
    tol : float
        Largest error of a smoothed column, relative to its length. It does not include that of the
        sparsifier.
    random_state : int, Generator, RandomState or None
        Seeds the sparsifier and the solver.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the answer is the same for any number.
    verbose : int
        If positive, print progress to stderr.

    Attributes
    ----------
    graph_ : Graph
        The graph in memory: all edges, or the sparsifier.
    degrees_ : ndarray of shape (n_nodes,)
        The degrees D.
    nodes_ : NodeTable or None
        The ids of the nodes, if the graph has any.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns, if X has any.

    Notes
    -----
    ``sklearn.base.clone`` shares the graph and does not copy it. A stream that can be read only
    once can be given to one `fit`; make a `Graph` or a sparsifier of it to use it again.

    NaN, infinities and strings are refused. Beside the answer, which is dense, smoothing takes
    about 24 bytes for each edge and about 500 bytes for each node, whatever the number of columns.

    See Also
    --------
    HFSClassifier : labels from the graph alone.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import GraphSmoother, gallery
    >>> X = np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> GraphSmoother(gallery.path(4), gamma=1.0).fit_transform(X).ravel().round(3)
    array([0.578, 0.22 , 0.063, 0.022])

    Several gammas, and the names of the columns:

    >>> smoother = GraphSmoother(gallery.path(4), gamma=[1.0, 9.0]).fit(X)
    >>> smoother.get_feature_names_out().tolist()
    ['x0_gamma1', 'x0_gamma9']
    >>> smoother.transform(X).shape
    (4, 2)

    Features with ids, of which some rows are asked for:

    >>> from ohmlearn import NodeFeatures
    >>> features = NodeFeatures(X[::-1], ids=[3, 2, 1, 0])
    >>> smoother.transform(features[[3, 2]])[:, 0].round(3)
    array([0.578, 0.22 ])
    """

    _constraints: ClassVar[Constraints] = {
        "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
        "max_edges": (None, Interval(Integral, 1, MAX_EDGES)),
        "tol": (Interval(Real, 0, 1, closed="neither"),),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        graph: Any = None,
        *,
        gamma: float | Sequence[float] = 9.0,
        epsilon: float | None = LABEL_EPSILON,
        max_edges: int | None = None,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.gamma = gamma
        self.epsilon = epsilon
        self.max_edges = max_edges
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the graph.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_features), or NodeFeatures
            Features, one row per node. Unless `graph` is None, only their number matters, and the
            ids of NodeFeatures.
        y : object, optional
            Ignored.

        Returns
        -------
        self : GraphSmoother
        """
        check_parameters(type(self).__name__, self._constraints, self.get_params(deep=False))
        _check_gammas(self.gamma)
        has_ids = isinstance(X, NodeFeatures)
        features = self._take_table(X, reset=True) if has_ids else self._check_features(X, True)
        self._seed = check_seed(self.random_state)
        if self.graph is None:
            known = join_neighbors(features, n_jobs=self.n_jobs, verbose=self.verbose)
            if has_ids and X.ids is not None:
                nodes = NodeTable()
                nodes.add(X.ids)
                known = known._replace(nodes=nodes)
        else:
            known = read_graph(
                self.graph,
                None if has_ids and X.ids is not None else features.shape[0],
                epsilon=self.epsilon,
                max_edges=self.max_edges,
                random_state=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
        check_index(X, known.nodes)
        if has_ids and (said := X.match(known.nodes, n_nodes=known.graph.n_nodes).about()):
            warn(said)
        self.graph_: Graph = known.graph
        self.degrees_: NDArray[np.float64] = known.degrees
        self.nodes_: NodeTable | None = known.nodes
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Smooth features of the nodes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_features), or NodeFeatures
            Features of all nodes, in the order of the graph: those that `fit` had, or others.
            NodeFeatures are joined to the nodes by their ids; nodes without features have the means
            of the columns, and ids that are not in the graph keep their features.

        Returns
        -------
        ndarray of shape (n_rows, n_features * number of gammas)
            Row i is the node of row i of X; of NodeFeatures, these are the chosen rows. float32 if
            X is, else float64.

        Warns
        -----
        ConvergenceWarning
            If the error of a column may be larger than `tol`.
        """
        check_is_fitted(self)
        if isinstance(X, NodeFeatures):
            return self._transform_table(X)
        features = self._check_features(X, False)
        check_index(X, self.nodes_)
        return self._smooth(features)

    def _transform_table(self, X: NodeFeatures) -> NDArray[Any]:
        """Smooth features with ids; the answer has the chosen rows of X."""
        own = self._take_table(X, reset=False)
        matched = X.match(self.nodes_, n_nodes=self.graph_.n_nodes)
        smoothed = self._smooth(matched.X)
        rows = np.arange(own.shape[0]) if X.rows is None else X.rows
        numbers = matched.numbers[rows]
        answer: NDArray[Any] = smoothed[numbers]
        apart = np.flatnonzero(numbers < 0)  # not in the graph, so without edges
        if len(apart) > 0:
            kept = own[rows[apart]]
            kept = kept.toarray() if issparse(kept) else kept
            answer[apart] = np.tile(kept, answer.shape[1] // own.shape[1])
        return answer

    def _smooth(self, features: Any) -> NDArray[Any]:
        """Return the smoothed features of all nodes."""
        n_nodes, n_features = self.graph_.n_nodes, features.shape[1]
        if features.shape[0] != n_nodes:
            raise ValueError(
                f"transform needs the features of all {n_nodes} nodes of the graph, in the same "
                f"order as in fit; got {features.shape[0]} rows"
            )
        gammas = _check_gammas(self.gamma)
        smoothed = make_room(n_nodes, n_features * len(gammas), features.dtype)
        for number, gamma in enumerate(gammas):
            smoothing = Smoothing(
                self.graph_,
                gamma,
                degrees=self.degrees_,
                tol=self.tol,
                random_state=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            part = slice(number * n_features, (number + 1) * n_features)
            smoothing.apply(features, out=smoothed[:, part])
        return smoothed

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the smoothed columns, such as ``x0_gamma9``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X; by default those that `fit` has seen, or x0, x1, ...
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        gammas = _check_gammas(self.gamma)
        return np.array([f"{x}_gamma{gamma:g}" for gamma in gammas for x in names], dtype=object)

    def _take_table(self, X: NodeFeatures, *, reset: bool) -> Any:
        """Return the matrix of features with ids, after a check of its columns."""
        n_features = X.shape[1]
        if reset:
            self.n_features_in_ = n_features
            self.__dict__.pop("feature_names_in_", None)
            if X.names is not None:
                self.feature_names_in_ = np.array(X.names, dtype=object)
        elif n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but GraphSmoother is expecting "
                f"{self.n_features_in_} features as input"
            )
        return X.X

    def _check_features(self, X: Any, reset: bool) -> Any:
        return take_features(self, X, reset=reset, accept_sparse=["csr", "csc"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_gammas(gamma: Any) -> list[float]:
    """Return one or several gammas as a list."""
    several = isinstance(gamma, list | tuple | np.ndarray)
    gammas = list(gamma) if several else [gamma]
    if not gammas or not all(GAMMA[0].allows(each) for each in gammas):
        raise ValueError(
            f"gamma of GraphSmoother must be {GAMMA[0]}, or a list of such numbers, got {gamma!r}"
        )
    return [float(each) for each in gammas]
