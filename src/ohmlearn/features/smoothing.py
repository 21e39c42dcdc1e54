"""Smoothing of features along the edges of a graph: `smooth`, and `GraphSmoother` of scikit-learn.

S X = D^(1/2) (D + gamma L)^-1 D^(1/2) X, where D has the degrees and L is the Laplacian: every
value is replaced by a mean over the neighbourhood, whose size grows with gamma. For one column x it
is the y that minimises |y - x|^2 + gamma z'L z with z = D^(-1/2) y. It is also the limit of the
iteration y = (x + gamma D^(-1/2) A D^(-1/2) y) / (1 + gamma) of APPNP (Gasteiger et al. 2019),
where A is the adjacency matrix and 1 / (1 + gamma) the teleport probability.

With z = D^(-1/2) y the system is (L + D / gamma) z = D^(1/2) x / gamma, which `LaplacianSolver`
solves. Its residual r tells how accurate the answer is. The matrix D^(-1/2) (L + D / gamma)
D^(-1/2) is at least 1 / gamma, so |error of y| <= gamma |D^(-1/2) r|. This is checked for every
column.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import check_nodes_of
from ohmlearn.checks.parameters import (
    N_JOBS,
    RANDOM_STATE,
    SMALLEST,
    VERBOSE,
    Constraints,
    Interval,
    check_n_jobs,
    check_parameters,
    check_seed,
    naming_size,
)
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.errors import Param
from ohmlearn.features.feature_columns import check_features
from ohmlearn.features.feature_problem import GraphEstimator, check_index
from ohmlearn.features.node_features import NodeFeatures
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.reading.as_edges import as_graph
from ohmlearn.solver import LaplacianSolver

Floats = NDArray[np.float64]

# With more, rounding errors times gamma would be above the usual tolerance.
GAMMA = (Interval(Real, 0, 1e9),)
BLOCK_BYTES = 64 << 20  # of a block of columns in float64


def smooth(
    graph: Graph | Any,
    X: Matrix,
    gamma: float = 9.0,
    *,
    degrees: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    tol: float = 1e-6,
    random_state: object = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> NDArray[Any]:
    """Smooth features along the edges of a graph.

    Computes ``D^(1/2) (D + gamma L)^-1 D^(1/2) X``, where D has the degrees and L is the Laplacian.
    Nodes without edges keep their features. A constant column changes, unless all degrees of a
    component are equal: columns that stay as they are are multiples of the square roots of the
    degrees.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
        It may be a sparsifier of the graph that is meant.
    X : array-like or sparse matrix of shape (n_nodes, n_features)
        Finite numbers, one row per node. A sparse X is not made dense as a whole.
    gamma : float
        How much is smoothed; 0 changes nothing. A random walk that stops with probability
        1 / (1 + gamma) before each step takes gamma steps on average.
    degrees : array-like of shape (n_nodes,), optional
        The degrees D, by default those of `graph`. For a sparsifier, give the exact degrees of all
        the edges that it was made from. A node that has edges needs a degree above 0.
    rows : array-like of int, optional
        The nodes whose smoothed features are returned; all by default.
    tol : float
        Largest error of a smoothed column, relative to the length (Euclidean norm) of the column.
    random_state : int, Generator, RandomState or None
        Seeds the solver's factor.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the answer is the same for any number.
    verbose : int
        If positive, print a line for each block of columns to stderr.

    Returns
    -------
    ndarray of shape (n_nodes, n_features), or (len(rows), n_features)
        float32 if X is, else float64. Always dense.

    Warns
    -----
    ConvergenceWarning
        If the error of a column may be larger than `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import gallery
    >>> from ohmlearn.features import smooth
    >>> smooth(gallery.path(4), np.array([[1.0], [0.0], [0.0], [0.0]]), 1.0).ravel().round(3)
    array([0.578, 0.22 , 0.063, 0.022])
    """
    smoothing = Smoothing(
        graph,
        gamma,
        degrees=degrees,
        tol=tol,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return smoothing.apply(X, rows=rows)


@dataclass(eq=False)
class Smoothing:
    """The map of `smooth`, with its parameters, for several tables of features."""

    _constraints: ClassVar[Constraints] = {
        "gamma": GAMMA,
        "tol": (Interval(Real, 0, 1, closed="neither"),),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    graph: Graph | Any
    gamma: float
    _: KW_ONLY
    degrees: ArrayLike | None = None
    tol: float = 1e-6
    random_state: object = None
    n_jobs: int | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self._constraints}
        check_parameters("smooth", self._constraints, given)
        self.graph = as_graph(self.graph)
        self.gamma, self.tol = float(self.gamma), float(self.tol)
        self._threads, self._seed = check_n_jobs(self.n_jobs), check_seed(self.random_state)
        has_edges = np.diff(self.graph.indptr) > 0
        self._isolated = np.flatnonzero(~has_edges)
        known = self.graph.degrees
        if self.degrees is not None:
            known = _check_degrees(self.degrees, has_edges)
        # Nodes without edges are solved for as zeros; their rows are put back afterwards.
        self._roots = np.sqrt(np.where(has_edges, known, 0.0))
        self._ground = self._roots**2 / max(self.gamma, SMALLEST)

    @cached_property
    def _solver(self) -> LaplacianSolver:
        # Up to gamma = 100, conjugate gradients with the diagonal take at most about 100
        # iterations, because the condition number is at most 1 + 2 gamma; no factor is needed.
        return LaplacianSolver(
            self.graph,
            ground=self._ground,
            random_state=self._seed,
            n_jobs=self.n_jobs,
            method="diagonal" if self.gamma <= 100.0 else "auto",
        )

    def apply(
        self, X: Matrix, *, rows: ArrayLike | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the smoothed features, in `out` if it is given; see `smooth`."""
        n_nodes = self.graph.n_nodes
        features = check_features(X, n_nodes)
        features = scipy.sparse.csc_array(features) if scipy.sparse.issparse(features) else features
        n_columns = features.shape[1]
        if out is None:
            n_rows = n_nodes if rows is None else np.size(rows)
            out = make_room(n_rows, n_columns, features.dtype)
        self.apply_to(lambda part: _take_columns(features, part), out, rows=rows)
        return out

    def apply_to(
        self, take: Callable[[slice], Floats], out: NDArray[Any], *, rows: ArrayLike | None = None
    ) -> None:
        """Smooth the columns that `take` returns, some at a time, and put them in `out`.

        `take` returns new arrays of shape (n_nodes, n_columns of the slice), which may be changed.
        """
        n_nodes, n_columns = self.graph.n_nodes, out.shape[1]
        chosen = None if rows is None else check_nodes_of(n_nodes, rows, "rows")
        width = _block_width(n_nodes)
        n_blocks = -(-n_columns // width)
        bounds = []
        for number in range(n_blocks):
            part = slice(number * width, min(n_columns, (number + 1) * width))
            name = f"smoothing with gamma {self.gamma:g}"
            with phase(Phase(name, number + 1, n_blocks, part="block"), self.verbose):
                block, bound = self._smooth_block(take(part))
                _check_size(block, out.dtype)
                out[:, part] = block if chosen is None else block[chosen]
                bounds.append(bound)
        self._warn(np.concatenate(bounds) if bounds else np.empty(0))

    def _smooth_block(self, block: Floats) -> tuple[Floats, Floats]:
        """Return smoothed columns, and bounds on their relative errors; may change `block`."""
        n_columns = block.shape[1]
        if self.gamma == 0.0 or len(self._isolated) == len(block):
            return block, np.zeros(n_columns)
        kept = block[self._isolated]
        block[self._isolated] = 0.0
        # Divided by powers of two, so that no square overflows or vanishes.
        powers = np.frexp(np.maximum(block.max(axis=0), -block.min(axis=0)))[1]
        np.ldexp(block, -powers, out=block)
        lengths = np.sqrt(np.einsum("ij,ij->j", block, block))
        block *= (self._roots / self.gamma)[:, np.newaxis]
        z, bounds = self._solve(block, lengths)
        z *= self._roots[:, np.newaxis]
        with np.errstate(over="ignore"):  # `_check_size` sees infinities
            z = np.ldexp(z, powers)
        z[self._isolated] = kept
        return z, bounds

    def _solve(self, b: Floats, lengths: Floats) -> tuple[Floats, Floats]:
        """Return the solutions z for right-hand sides, and bounds on the relative errors of y."""
        solver, tighter = self._solver, self.tol
        z = solver.solve_block(b, tighter)
        bounds = self._bound(b, z, lengths)
        for _ in range(3):  # nearly always, one solve is enough
            # A column may miss the bound although its residual is small, because the residual is
            # large at nodes of small degree.
            unfinished = np.flatnonzero(bounds > self.tol)
            if len(unfinished) == 0:
                break
            tighter = max(tighter / 16.0, sys.float_info.epsilon)
            right, start = np.array(b[:, unfinished]), np.array(z[:, unfinished])
            again = solver.solve_block(right, tighter, x0=start, overwrite=True)
            found = self._bound(right, again, lengths[unfinished])
            better = found < bounds[unfinished]
            z[:, unfinished[better]] = again[:, better]
            bounds[unfinished[better]] = found[better]
            if not better.any():
                break
        return z, bounds

    def _bound(self, b: Floats, z: Floats, lengths: Floats) -> Floats:
        """Return gamma |D^(-1/2) r| relative to the lengths of the columns."""
        residual = multiply_laplacian(self.graph, z, self._threads)
        residual += self._ground[:, np.newaxis] * z
        np.subtract(b, residual, out=residual)
        roots = self._roots
        inverse = np.divide(self.gamma, roots, out=np.zeros_like(roots), where=roots > 0)
        residual *= inverse[:, np.newaxis]
        sizes = np.sqrt(np.einsum("ij,ij->j", residual, residual))
        return np.asarray(sizes / np.where(lengths > 0, lengths, 1.0))

    def _warn(self, bounds: Floats) -> None:
        unfinished = np.flatnonzero(~(bounds <= self.tol))
        if len(unfinished) == 0:
            return
        from ohmlearn._convergence import UnconvergedWarning  # late: it imports scikit-learn

        worst = unfinished[np.argmax(bounds[unfinished])]
        warn(
            f"smoothing with {Param('gamma', self.gamma)}: {len(unfinished)} of {len(bounds)} "
            f"columns may have a relative error above {Param('tol', self.tol)}; the worst is "
            f"column {worst} with at most {bounds[worst]:.2g}; raise {Param('tol')} or reduce "
            f"{Param('gamma')}",
            UnconvergedWarning,
        )


def _check_degrees(degrees: ArrayLike, has_edges: NDArray[np.bool_]) -> Floats:
    array = np.asarray(degrees)
    if array.dtype.kind not in "iuf" or array.shape != has_edges.shape:
        raise ValueError(
            f"degrees must be one number per node, shape {has_edges.shape}, got dtype "
            f"{array.dtype} and shape {array.shape}"
        )
    known: Floats = array.astype(np.float64)
    bad = ~(np.isfinite(known) & (known >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"degrees must be finite and not negative, but degrees[{at}] = {known[at]}"
        )
    lost = has_edges & (known == 0)
    if lost.any():
        raise ValueError(
            f"node {int(np.argmax(lost))} has edges in the graph, but its degree is 0; give the "
            f"degrees of the edges that the graph was made from"
        )
    return known


def _block_width(n_nodes: int) -> int:
    """Return the number of columns of a block. Only the number of nodes decides it.

    Columns that the solver solves together may differ in the last bits from columns that it solves
    one by one, so neither threads nor memory may change the blocks.
    """
    # The solver solves 8 columns together, so blocks are multiples of that.
    return max(8, BLOCK_BYTES // (8 * max(1, n_nodes)) // 8 * 8)


def make_room(n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array for smoothed features: float32 if the features are, else float64."""
    dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
    size = n_rows * n_columns * dtype.itemsize
    with naming_size(
        f"the {n_columns} smoothed columns of {n_rows} nodes, which take {size / 2**30:.3g} GiB: "
        f"they are dense, also if X is sparse; reduce the number of columns first, for example "
        f"with sklearn.decomposition.TruncatedSVD, or smooth some columns at a time"
    ):
        if size > sys.maxsize:
            raise MemoryError
        return np.empty((n_rows, n_columns), dtype)


def _take_columns(features: Matrix, part: slice) -> Floats:
    """Return some columns as a new array."""
    columns = features[:, part]
    if scipy.sparse.issparse(columns):
        return np.ascontiguousarray(columns.astype(np.float64).toarray())
    return np.array(columns, dtype=np.float64, order="C")


def _check_size(block: Floats, dtype: np.dtype[Any]) -> None:
    """Refuse values that are too large for a dtype: hubs may be larger than all features."""
    limit = float(np.finfo(dtype).max)
    if block.size > 0 and not max(block.max(), -block.min()) <= limit:
        raise ValueError(f"smoothed features pass the largest {dtype}; scale X down")


@dataclass(eq=False, repr=False)
class GraphSmoother(TransformerMixin, GraphEstimator):
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
        How much is smoothed, from 0 for nothing to 1e9. A random walk that stops with probability
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
        **GraphEstimator._constraints,
        "tol": Smoothing._constraints["tol"],
    }
    graph: Any = None
    _: KW_ONLY
    gamma: float | Sequence[float] = 9.0
    tol: float = 1e-6
    graph_: Graph = field(init=False)
    degrees_: Floats = field(init=False)
    nodes_: NodeTable | None = field(init=False)

    def fit(self, X: Matrix, y: Any = None) -> Self:
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
        ids = X.ids if isinstance(X, NodeFeatures) else None
        features = self._take_features(X, reset=True, accept_sparse=["csr", "csc"])
        self._seed = check_seed(self.random_state)
        if self.graph is None:
            known = self._join_neighbors(features, ids)
        else:
            known = self._read_graph(self.graph, features.shape[0] if ids is None else None)
        check_index(X, known.nodes)
        if isinstance(X, NodeFeatures):
            X.match(known.nodes, n_nodes=known.graph.n_nodes).warn()
        self.graph_, self.degrees_, self.nodes_ = known.graph, known.degrees, known.nodes
        return self

    def transform(self, X: Matrix) -> NDArray[Any]:
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
        features = self._take_features(X, reset=False, accept_sparse=["csr", "csc"])
        if not isinstance(X, NodeFeatures):
            check_index(X, self.nodes_)
            return self._smooth(features)
        matched = X.match(self.nodes_, n_nodes=self.graph_.n_nodes)
        numbers = matched.numbers[X._positions]
        answer: NDArray[Any] = self._smooth(matched.X)[numbers]
        apart = np.flatnonzero(numbers < 0)  # not in the graph, so without edges
        if len(apart) > 0:
            kept = X.chosen[apart]
            kept = kept.toarray() if scipy.sparse.issparse(kept) else kept
            answer[apart] = np.tile(kept, answer.shape[1] // kept.shape[1])
        return answer

    def _smooth(self, features: Matrix) -> NDArray[Any]:
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
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
