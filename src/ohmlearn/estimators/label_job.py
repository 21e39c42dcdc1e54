"""The labelling job: edges -> graph in memory -> scores -> scores of the full graph.

`Labelling._label` is the only place where these steps follow each other. `fit` and `fit_edges` call
it, and the command line and `ohmlearn.dask` call `fit_edges`. Checkpoints wrap the stream of edges;
progress is shown by whoever watches the phases (see `_phases`).
"""

import warnings
from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ohmlearn._phases import Phase, passes_before, phase
from ohmlearn.checks.edge_arrays import check_rereadable
from ohmlearn.checks.parameters import (
    LARGEST,
    N_JOBS,
    RANDOM_STATE,
    SMALLEST,
    VERBOSE,
    Constraints,
    Interval,
    Options,
    check_parameters,
    check_seed,
)
from ohmlearn.checks.times import DURATION_KIND, check_moment
from ohmlearn.edge_log.log_sparsifier import KeptSparsifier
from ohmlearn.estimators.all_edges import FAR, AllEdges, with_nodes
from ohmlearn.estimators.label_input import (
    Labels,
    NodeLabels,
    merge_rows,
    number_labels,
    refuse_unknown,
)
from ohmlearn.estimators.points_estimator import FromPoints
from ohmlearn.graph import Graph
from ohmlearn.graph.time_view import EdgesInView, TimeView
from ohmlearn.harmonic import HFSResult, refine, solve_hfs
from ohmlearn.harmonic.hfs_system import Normalization
from ohmlearn.harmonic.leave_one_out import LeftOut
from ohmlearn.harmonic.solve_hfs import Method
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_identity import join_tables, nodes_of
from ohmlearn.points import FaissKnnEdges, KnnEdges
from ohmlearn.reading.as_edges import batches_of
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_options import MAX_EDGES, SparsifierOptions
from ohmlearn.sparsifier.sparsifier_times import check_moments

__all__ = ["Labelling"]

Floats = NDArray[np.float64]
SOLVE_TOL = 1e-8  # a solve in memory is cheap, so it is at least this accurate
MOST_LEFT_OUT = 512  # labels whose leave-one-out scores are computed
LEAST_LEFT_OUT = 32
LEFT_OUT_ENTRIES = 1 << 25  # nodes times labels left out: solves take time, and passes 128 MiB
LEFT_OUT_TOL = 1e-4
READER = "an estimator with passes > 1 (passes=1 does not)"


class Labelling(FromPoints):
    """Reads edges and labels and computes scores; the estimators say what labels mean."""

    _constraints: ClassVar[Constraints] = {
        **FromPoints._constraints,
        "gamma": (Options(("auto",)), Interval(Real, SMALLEST, LARGEST)),
        "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
        "max_edges": (None, Interval(Integral, 1, MAX_EDGES)),
        "passes": (Interval(Integral, 1),),
        "tol": (Interval(Real, 0, 1, closed="neither"),),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "half_life": (None, DURATION_KIND),
        "horizon": (None, DURATION_KIND),
    }
    _without_evidence: str  # what happens to nodes that no label reaches, for a warning
    _how_to_connect: str = ", for example by more neighbours"
    gamma: float | Literal["auto"]
    epsilon: float | None
    max_edges: int | None
    passes: int
    normalization: Normalization
    tol: float
    random_state: Any
    verbose: int
    half_life: Any
    horizon: Any

    # What labels mean: the classifier and the regressor differ in these three.

    @abstractmethod
    def _read_labels(
        self, y: Any, n_nodes: int | None, ids: NodeTable | None, sample_weight: Any
    ) -> Labels:
        """Check y and set the attributes that depend on it."""

    @abstractmethod
    def _columns(self) -> Floats:
        """Return the values at the labelled nodes, one column for each score."""

    @abstractmethod
    def _automatic_gamma(self, degree: float) -> float:
        """Return the value of ``gamma="auto"`` for a mean degree."""

    def _wants_left_out(self) -> bool:
        """Whether passes over the edges compute leave-one-out scores, too."""
        return False

    def _choose_method(self) -> None:
        """Set `method_`, the equations to solve."""
        self.method_: Method = "harmonic"

    # The job.

    def _label(
        self,
        edges: Any,
        y: Any,
        sample_weight: Any,
        n_nodes: int | None,
        sparsifier: StreamingSparsifier | None = None,
        at: Any = None,
        since: Any = None,
    ) -> None:
        """Read edges, solve on what is kept of them, refine on all of them."""
        if hasattr(edges, "live_edges"):  # a log, which may change while it is read
            edges = edges.live_edges()
        check_moments(edges, at, since)
        first = None
        if since is not None and not self._keeps_times(edges, sparsifier):
            first, since = check_moment("since", since), None
            edges = select_since(edges, first)
        # Labels are checked before the edges are read, and numbered afterwards.
        labels = self._read_labels(y, n_nodes, nodes_of(edges), sample_weight)
        if isinstance(edges, Graph):
            refuse_unknown(labels, edges.nodes)
        in_memory = isinstance(edges, Graph | tuple) or self.epsilon is None
        is_sparse = isinstance(edges, StreamingSparsifier)  # there are no other edges to read
        if self.passes > 1 and not in_memory and not is_sparse and not _is_on_cluster(edges):
            check_rereadable(batches_of(edges), READER)
        kept = None if sparsifier is not None else kept_sparsifier(edges, self)
        self._start(n_nodes, sparsifier if kept is None else kept.sparsifier)
        self._first = first
        if isinstance(edges, KnnEdges | FaissKnnEdges):
            with phase("finding neighbours", self.verbose):
                edges.find_neighbors()
        if kept is None:
            with phase(Phase("reading edges", 1, self.passes), self.verbose):
                self._take(edges, at, since)
        else:
            self._continue(kept, at, since)
        self._set_labels(labels)
        self._settle_method()
        if self.passes > 1 and not is_sparse and not self._holds_all_edges():
            self._refine(edges, self.passes - 1, None)
        self._solve()

    def _start(
        self,
        n_nodes: int | None,
        sparsifier: StreamingSparsifier | None = None,
        seed: int | None = None,
    ) -> None:
        """Forget earlier edges, labels and answers."""
        for name in ("_labels", "labelled_", "sources_"):
            self.__dict__.pop(name, None)
        self._seed = check_seed(self.random_state if seed is None else seed)
        self._n_nodes = n_nodes
        self._nodes: NodeTable | None = None
        self._moment: dict[str, Any] = {}  # at or since, if they were given
        self._first = None
        self._all_edges: AllEdges | None = None
        self._answer: HFSResult | None = None
        self._before: HFSResult | None = None  # the last answer, where the next solve starts
        self.n_iter_ = 1
        self.staleness_, self._removed_weight = 0.0, 0.0
        self.sparsifier_ = sparsifier
        if sparsifier is not None:
            return
        if self.epsilon is None:
            options = SparsifierOptions(half_life=self.half_life, horizon=self.horizon)
            self._all_edges = AllEdges(n_nodes, options)
        else:
            self.sparsifier_ = StreamingSparsifier(
                n_nodes=n_nodes,
                epsilon=self.epsilon,
                max_edges=self.max_edges,
                random_state=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                half_life=self.half_life,
                horizon=self.horizon,
            )

    def _keeps_times(self, edges: Any, sparsifier: StreamingSparsifier | None) -> bool:
        """Whether edges fade, or are kept with their times, so that any window can be asked for."""
        kept = edges if isinstance(edges, StreamingSparsifier) else sparsifier
        if kept is not None:
            return kept.options.has_times
        return self.half_life is not None or self.horizon is not None

    def _begin(self, at: Any, since: Any) -> None:
        """Forget the answer; the next one is for this time."""
        self._answer, self.n_iter_, self._is_settled = None, 1, False
        given = {"at": at, "since": since}
        self._moment = {name: value for name, value in given.items() if value is not None}

    def _take(self, edges: Any, at: Any = None, since: Any = None) -> None:
        """Take in edges: into the sparsifier, or into a graph of all edges."""
        self._begin(at, since)
        if isinstance(edges, StreamingSparsifier):
            self._take_sparsifier(edges)
            return
        if self.sparsifier_ is None:
            assert self._all_edges is not None
            nodes = nodes_of(edges)
            if _is_on_cluster(edges):
                raise ValueError(
                    "epsilon = None keeps every edge in this process, but these edges are on a "
                    "cluster; give an epsilon between 0 and 1"
                )
            self._check_same_nodes(nodes)
            self._all_edges.add(edges)
            self._nodes = join_tables(self._nodes, nodes)  # a stream may number as it is read
            return
        if _is_on_cluster(edges):
            options = self.sparsifier_.options
            found = edges.sparsify(
                epsilon=self.epsilon,
                max_edges=self.max_edges,
                half_life=options.half_life,
                horizon=options.horizon,
                random_state=self._seed,
            )
            if self.sparsifier_.n_edges_seen_ > 0:
                found = self.sparsifier_.merge(found)
            self.sparsifier_ = found
        else:
            self.sparsifier_.update(edges)
        self._nodes = self.sparsifier_.nodes

    def _take_sparsifier(self, other: StreamingSparsifier) -> None:
        """Continue with a sparsifier, or merge it into the present one."""
        kept = self.sparsifier_
        if kept is None:
            raise ValueError(
                "epsilon = None keeps every edge, but a sparsifier may have dropped some; give an "
                "epsilon between 0 and 1, or the edges of sparsifier.snapshot()"
            )
        self.sparsifier_ = kept.merge(other) if kept.n_edges_seen_ > 0 else other
        self._nodes = self.sparsifier_.nodes

    def _continue(self, kept: KeptSparsifier, at: Any, since: Any) -> None:
        """Continue with the sparsifier that a log keeps."""
        self._begin(at, since)
        self._nodes = kept.sparsifier.nodes
        self.staleness_, self._removed_weight = kept.staleness, kept.removed_weight

    def _follow(self, kept: KeptSparsifier) -> None:
        """Continue with a later state of the sparsifier of a log, as `update` does with edges."""
        if not hasattr(self, "_seed"):
            self._check_parameters()
            self._start(None, kept.sparsifier)
        self.sparsifier_ = kept.sparsifier
        self._continue(kept, None, None)

    def _holds_all_edges(self) -> bool:
        """Whether no edge was dropped; parallel ones may have been added up."""
        if self._removed_weight > 0.0:
            return False
        kept = self.sparsifier_
        if kept is None:
            return True
        return kept._sample(**self._moment).is_whole

    def _solve(self) -> HFSResult:
        """Return the present answer; it is computed when it is asked for."""
        check_is_fitted(self, "_labels")
        if self._answer is None:
            with phase("solving", self.verbose):
                self._settle_method()
                self._answer = self._solve_in_memory()
        if self._before is not self._answer:
            self._before = self._answer
            self._warn_unreached(self._answer.reached)
        return self._answer

    def _settle_method(self) -> None:
        """Choose the method again after edges or labels have changed."""
        if not self._is_settled:
            self._choose_method()
            self._is_settled = True

    def _solve_in_memory(
        self,
        leave_out: NDArray[np.int64] | None = None,
        start: HFSResult | None = None,
        graph: Graph | None = None,
    ) -> HFSResult:
        """Return the answer of the graph in memory, or of another one like it."""
        graph, columns = self.graph_ if graph is None else graph, self._columns()
        before = self._before if start is None else start
        x0 = None if before is None else before.columns
        extra = self._is_stable() and self.method_ == "harmonic"
        if x0 is not None and x0.shape[1] != columns.shape[1] + extra:
            x0 = None  # labels with another number of classes, or another method
        tol = min(self.tol, SOLVE_TOL)
        return solve_hfs(
            graph,
            self.labelled_,
            columns,
            gamma=self._choose_gamma(graph.n_nodes),
            normalization=self.normalization,
            sample_weight=self._label_weights,
            method=self.method_,
            leave_out=leave_out,
            tol=tol if leave_out is None else LEFT_OUT_TOL,
            x0=x0,
            random_state=self._seed,
            n_jobs=self.n_jobs,
        )

    def _labels_to_leave_out(self) -> NDArray[np.int64]:
        """Return positions of labels, a random choice if there are many."""
        most = most_left_out(self.graph_.n_nodes)
        n_labels = len(self.labelled_)
        if n_labels <= most:
            return np.arange(n_labels)
        chosen = np.random.default_rng(self._seed).choice(n_labels, most, replace=False)
        return np.sort(chosen)

    def _leave_one_out(self, answer: HFSResult) -> LeftOut:
        """Return leave-one-out scores of the answer, or of the graph in memory if it has none."""
        if answer.left_out is not None:
            return answer.left_out
        with phase("calibrating", self.verbose):
            found = self._solve_in_memory(self._labels_to_leave_out(), answer).left_out
        assert found is not None
        return found

    def _refine(self, edges: Any, passes: int, before: HFSResult | None) -> None:
        """Set the answer of the full graph, after some passes over its edges."""
        h = self.graph_
        with passes_before(1 if before is None else self.n_iter_):
            self._answer = refine(
                edges,
                h,
                self.labelled_,
                self._columns(),
                passes=passes,
                tol=self.tol,
                gamma=self._choose_gamma(h.n_nodes),
                normalization=self.normalization,
                sample_weight=self._label_weights,
                method=self.method_,
                leave_out=self._labels_to_leave_out() if self._wants_left_out() else None,
                random_state=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                x0=None if before is None else before.columns,
            )
        self.n_iter_ = 1 + self._answer.passes

    # Parts of the job.

    def _use_threads(self, n_jobs: int | None) -> None:
        """Change the number of threads; the answers stay the same."""
        self.n_jobs = n_jobs
        if self.sparsifier_ is not None and self.sparsifier_.options.n_jobs != n_jobs:
            self.sparsifier_ = self.sparsifier_.copy(n_jobs=n_jobs)

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self._constraints, self.get_params(deep=False))

    def _set_labels(self, labels: Labels) -> Labels:
        """Number the labels and merge those of each node; return them before they are merged."""
        rows = number_labels(labels, self._nodes)
        self._labels: NodeLabels = merge_rows(rows)
        self.labelled_ = self._labels.nodes
        self._is_settled = False
        return rows

    @property
    def _label_weights(self) -> Floats:
        """Weight of each labelled node: the sum of the weights of its labels."""
        return self._labels.weights

    def _check_same_nodes(self, nodes: NodeTable | None) -> None:
        """Refuse edges whose nodes are numbered by another table than those before."""
        if self._nodes is not None and nodes is not None:
            join_tables(self._nodes, nodes)

    def _choose_gamma(self, n_nodes: int) -> float:
        """Set and return `gamma_`."""
        if self.gamma == "auto":
            graph, kept = self.graph_, self.sparsifier_
            total = float(graph.weights.sum())
            if graph.view is not None:  # nodes whose edges are forgotten do not count
                n_nodes = max(1, int(np.count_nonzero(np.diff(graph.indptr))))
            elif kept is not None:
                total = self._live_weight(kept)
            self.gamma_ = self._automatic_gamma(total / n_nodes)
        else:
            self.gamma_ = float(self.gamma)
        return self.gamma_

    def _live_weight(self, kept: StreamingSparsifier) -> float:
        """Return the sum of all degrees."""
        return 2.0 * (kept.weight_seen_ - self._removed_weight)

    def _is_stable(self) -> bool:
        return self.normalization == "stable"

    def _warn_isolated(self) -> None:
        """Warn of labelled nodes that no edge has, for example mistyped ones."""
        component, labelled = self._solve().component, self.labelled_
        alone = labelled[np.bincount(component)[component[labelled]] == 1]
        if len(alone) > 0:
            first = (alone if self._nodes is None else self._nodes.ids(alone[:1])).tolist()[0]
            # An edge may have faded, or be outside of the window.
            why = "are in no edge" if self.graph_.view is None else "have no edge that counts"
            warnings.warn(
                f"{len(alone)} of the {len(labelled)} labelled nodes {why}, such as {first!r}",
                UserWarning,
                stacklevel=3,
            )

    def _warn_unreached(self, reached: NDArray[np.bool_]) -> None:
        if not reached.all():
            warnings.warn(
                f"{np.count_nonzero(~reached)} of {len(reached)} nodes are in components without "
                f"a label: {self._without_evidence}; label some of them, or connect them to the "
                f"rest{self._how_to_connect}",
                UserWarning,
                stacklevel=4,
            )

    # Answers.

    @property
    def nodes_(self) -> NodeTable | None:
        """The ids of the nodes, for ``read_edges(..., nodes=model.nodes_)``; None without ids."""
        check_is_fitted(self, "_seed")
        return self._nodes

    @property
    def graph_(self) -> Graph:
        """The graph in memory, with all known nodes: the sparsifier, or all edges."""
        check_is_fitted(self, "_seed")
        source = self._all_edges if self.sparsifier_ is None else self.sparsifier_
        assert source is not None
        kept = source.snapshot(**self._moment)
        last = int(getattr(self, "labelled_", np.zeros(1)).max())
        n_nodes = max(self._n_nodes or 0, kept.n_nodes)
        if self._nodes is None and last > 2 * n_nodes + FAR:
            raise ValueError(
                f"node {last} has a label, but the edges have {n_nodes} nodes, and memory is "
                f"needed for every number in between; number the nodes 0, 1, 2, ..., as read_edges "
                f"does, or give n_nodes"
            )
        return with_nodes(kept, max(n_nodes, last + 1))


def most_left_out(n_nodes: int) -> int:
    """Return the number of labels whose leave-one-out scores are computed at most."""
    entries = LEFT_OUT_ENTRIES // max(1, n_nodes)
    return min(MOST_LEFT_OUT, max(LEAST_LEFT_OUT, entries))


def kept_sparsifier(edges: Any, model: Any) -> KeptSparsifier | None:
    """Return the sparsifier that a log keeps, if a model can use it for these edges."""
    if model.epsilon is None or not hasattr(edges, "kept_sparsifier"):
        return None
    kept: KeptSparsifier | None = edges.kept_sparsifier(model.n_jobs)
    if kept is None:
        return None
    options = SparsifierOptions(half_life=model.half_life, horizon=model.horizon)
    own = kept.sparsifier.options
    return kept if (own.decay, own.reach) == (options.decay, options.reach) else None


def select_since(edges: Any, since: float) -> EdgesInView:
    """Return the edges since a time; others are left out before they are taken in."""
    if _is_on_cluster(edges):
        raise ValueError("since needs a horizon for edges on a cluster; give horizon=math.inf")
    return TimeView(since=since).of(edges)


def _is_on_cluster(edges: Any) -> bool:
    """Whether edges are a `ClusterEdges`, whose workers sparsify them and read them in passes."""
    return hasattr(edges, "sparsify")
