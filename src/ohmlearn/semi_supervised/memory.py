"""What an estimator keeps of the edges: a sparsifier, or all of them."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ohmlearn.graph import Graph
from ohmlearn.graph.batches import batches_of, graph_of
from ohmlearn.harmonic import HFSResult, refine
from ohmlearn.semi_supervised.base import BaseHFS, table_of
from ohmlearn.sparsifier.streaming import MAX_EDGES, StreamingSparsifier
from ohmlearn.streams import KernelEdges
from ohmlearn.validation.edges import check_rereadable
from ohmlearn.validation.parameters import check_seed

__all__ = ["ExactHFS", "SparseHFS"]

STREAM = "an estimator with passes > 1 (passes=1 does not)"


class SparseHFS(BaseHFS):
    """Keeps a sparsifier."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseHFS._parameter_constraints,
        "epsilon": [Interval(Real, 0, 1, closed="neither")],
        "max_edges": [None, Interval(Integral, 1, MAX_EDGES, closed="both")],
        "passes": [Interval(Integral, 1, None, closed="left")],
    }
    epsilon: float
    max_edges: int | None
    passes: int

    def _read(self, edges: Any, n_nodes: int | None) -> HFSResult | None:
        if self.passes > 1 and not isinstance(edges, Graph | tuple):
            check_rereadable(batches_of(edges), STREAM)
        self._start(n_nodes)
        if isinstance(edges, KernelEdges) and (n_nodes is None or n_nodes >= edges.n_nodes):
            with self.sparsifier_._lock, self.sparsifier_._changing():
                edges.feed(self.sparsifier_._sampler())  # the same, without arrays of all pairs
        else:
            for batch in batches_of(edges):
                self.sparsifier_.update(*batch)
        if self.passes == 1 or self._graph().n_edges == self.sparsifier_.n_edges_seen_:
            return None  # one pass was asked for, or all edges are still there
        return self._refined(edges, self.passes - 1)

    def _start(self, n_nodes: int | None) -> None:
        self.sparsifier_ = StreamingSparsifier(
            n_nodes,
            epsilon=self.epsilon,
            max_edges=self.max_edges,
            random_state=self._seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.n_iter_ = 1

    def _graph(self) -> Graph:
        return self.sparsifier_.snapshot()

    def _total_weight(self) -> float:
        return self.sparsifier_.weight_seen_

    def _refined(self, edges: Any, passes: int, start: HFSResult | None = None) -> HFSResult:
        h = self._whole_graph()
        result = refine(
            edges,
            h,
            self._labels[0],
            self._columns(),
            passes,
            self.tol,
            self._choose_gamma(h.n_nodes),
            "stable" if self._is_stable() else None,
            self._seed,
            self.n_jobs,
            self.verbose,
            x0=start,
        )
        self.n_iter_ = 1 + result.passes
        return result

    def update(self, edges: Any) -> Self:
        """Take in more edges; answers from now on count them, too.

        Answers are computed when asked for, from the sparsifier alone, and start from the one
        before. Works before `fit` as well; `relabel` then gives the first labels.

        Parameters
        ----------
        edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
            The new edges only; they may bring new nodes. A stream of `read_edges` after another
            needs ``nodes=first.nodes``, so that the same id is the same node.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import SparseHFSClassifier
        >>> model = SparseHFSClassifier().update(([0, 1], [1, 2])).relabel({0: "a", 2: "b"})
        >>> model.update(([2], [3])).transduction_.tolist()
        ['a', 'a', 'b', 'b']
        """
        if not hasattr(self, "sparsifier_"):
            self._validate_params()
            self._seed, self._n_nodes, self._warm = check_seed(self.random_state), None, None
            self._start(None)
            self._nodes = table_of(edges)
        self._check_same_nodes(edges)
        for batch in batches_of(edges):
            self.sparsifier_.update(*batch)
            self._answer, self.n_iter_ = None, 1
        return self

    def refine(self, edges: Any, passes: int = 3) -> Self:
        """Improve the present answer by more passes over all the edges seen so far.

        Starts from it, if it has had such passes, else from the sparsifier.

        Parameters
        ----------
        edges : Graph, tuple (u, v) or (u, v, w) of arrays, or iterable of such tuples
            All edges; an iterable must begin anew each time.
        passes : int
            Most passes.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import SparseHFSClassifier, gallery
        >>> graph = gallery.complete(300)
        >>> model = SparseHFSClassifier(passes=1, epsilon=0.9, random_state=0)
        >>> model = model.fit_edges(graph, {0: "a", 1: "b"}).refine(graph, passes=12)
        >>> bool(model.residuals_.max() < 1e-4)
        True
        """
        check_is_fitted(self, "_labels")
        self._check_same_nodes(edges)
        before = self._answer
        start = before if before is not None and before.passes > 0 else None
        done = self.n_iter_ if start is not None else 1
        self._answer = self._refined(edges, passes, start)
        self.n_iter_ = done + self._answer.passes
        self._result()
        return self


class ExactHFS(BaseHFS):
    """Keeps the graph itself."""

    graph_: Graph

    def _read(self, edges: Any, n_nodes: int | None) -> HFSResult | None:
        self.graph_ = graph_of(edges, n_nodes)
        return None

    def _graph(self) -> Graph:
        return self.graph_

    def _total_weight(self) -> float:
        return float(self.graph_.weights.sum()) / 2.0

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return self._result().iterations
