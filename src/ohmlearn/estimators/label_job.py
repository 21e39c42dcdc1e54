"""The labelling job: edges -> graph in memory -> scores -> scores of the full graph.

`Labelling._label` is the only place where these steps follow each other. `fit` and `fit_edges` call
it, and the command line and `ohmlearn.dask` call `fit_edges`. Checkpoints wrap the stream of edges;
progress is shown by whoever watches the phases (see `_phases`).
"""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ohmlearn._phases import Phase, passes_before, phase
from ohmlearn._warnings import warn
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
from ohmlearn.edges import Edges
from ohmlearn.estimators.all_edges import FAR, AllEdges, with_nodes
from ohmlearn.estimators.label_input import (
    Labels,
    NodeLabels,
    merge_rows,
    number_labels,
    refuse_unknown,
    split_by_edges,
)
from ohmlearn.estimators.points_estimator import FromPoints
from ohmlearn.graph import Graph
from ohmlearn.harmonic import HFSResult, refine, solve_hfs
from ohmlearn.harmonic.hfs_system import Normalization
from ohmlearn.harmonic.leave_one_out import LeftOut
from ohmlearn.harmonic.solve_hfs import Method
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_identity import join_tables
from ohmlearn.points.affinity import refuse_lost_points
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
        edges: Edges,
        y: Any,
        sample_weight: Any,
        n_nodes: int | None,
        sparsifier: StreamingSparsifier | None = None,
        at: Any = None,
        since: Any = None,
    ) -> None:
        """Read edges, solve on what is kept of them, refine on all of them."""
        check_moments(edges.time_unit, at, since)
        first = None
        if since is not None and not self._keeps_times(edges, sparsifier):
            first, since = check_moment("since", since), None
            edges = edges.since(first)
        # Labels are checked before the edges are read, and numbered afterwards.
        labels = self._read_labels(y, n_nodes, edges.nodes, sample_weight)
        if edges.nodes_are_final:
            refuse_unknown(labels, edges.nodes)
        refines = self.passes > 1 and not edges.is_sample
        if refines and self.epsilon is not None:
            edges.again("an estimator with passes > 1 (passes=1 does not)")
        kept = None if sparsifier is not None else kept_sparsifier(edges, self)
        self._start(n_nodes, sparsifier if kept is None else kept.sparsifier)
        self._first = first
        edges.prepare(self.verbose)
        if kept is None:
            with phase(Phase("reading edges", 1, self.passes), self.verbose):
                self._take(edges, at, since)
        else:
            self._continue(kept, at, since)
        self._set_labels(labels)
        refuse_lost_points(edges, self.graph_, self.labelled_)
        self._settle_method()
        if refines and not self._holds_all_edges():
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

    def _keeps_times(self, edges: Edges, sparsifier: StreamingSparsifier | None) -> bool:
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

    def _take(self, edges: Edges, at: Any = None, since: Any = None) -> None:
        """Take in edges: into the sparsifier, or into a graph of all edges."""
        self._begin(at, since)
        if self.sparsifier_ is None:
            assert self._all_edges is not None
            self._check_same_nodes(edges.nodes)
            self._all_edges.add(edges)
            self._nodes = join_tables(self._nodes, edges.nodes)  # a stream numbers as it is read
            return
        self.sparsifier_ = edges.feed(self.sparsifier_)
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
        return kept is None or kept._sample(**self._moment).is_whole

    def _solve(self) -> HFSResult:
        """Return the present answer; it is computed when it is asked for."""
        check_is_fitted(self, "_labels")
        if self._answer is None:
            with phase("solving", self.verbose):
                self._settle_method()
                self._answer = self._solve_in_memory()
        if self._before is not self._answer:
            self._before = self._answer
            self._warn_apart()
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
        (kept, labels), columns = self._problem(), self._columns()
        graph = kept if graph is None else with_nodes(graph, kept.n_nodes)
        before = self._before if start is None else start
        x0 = None if before is None else before.columns[: graph.n_nodes]
        extra = self.normalization == "stable" and self.method_ == "harmonic"
        if x0 is not None and x0.shape[1] != columns.shape[1] + extra:
            x0 = None  # labels with another number of classes, or another method
        tol = min(self.tol, SOLVE_TOL)
        found = solve_hfs(
            graph,
            labels.nodes,
            columns,
            gamma=self._choose_gamma(),
            normalization=self.normalization,
            sample_weight=labels.weights,
            method=self.method_,
            leave_out=leave_out,
            tol=tol if leave_out is None else LEFT_OUT_TOL,
            x0=x0,
            random_state=self._seed,
            n_jobs=self.n_jobs,
        )
        return found.with_nodes(self.graph_.n_nodes)

    def _labels_to_leave_out(self) -> NDArray[np.int64]:
        """Return positions of labels, a random choice if there are many."""
        most = most_left_out(self._kept_graph.n_nodes)
        n_labels = len(self._used.nodes)
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

    def _refine(self, edges: Edges, passes: int, before: HFSResult | None) -> None:
        """Set the answer of the full graph, after some passes over its edges."""
        h, labels = self._problem()
        with passes_before(1 if before is None else self.n_iter_):
            found = refine(
                edges,
                h,
                labels.nodes,
                self._columns(),
                passes=passes,
                tol=self.tol,
                gamma=self._choose_gamma(),
                normalization=self.normalization,
                sample_weight=labels.weights,
                method=self.method_,
                leave_out=self._labels_to_leave_out() if self._wants_left_out() else None,
                random_state=self._seed,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                x0=None if before is None else before.columns[: h.n_nodes],
            )
        self._answer = found.with_nodes(self.graph_.n_nodes)
        self.n_iter_ = 1 + found.passes

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
    def _used(self) -> NodeLabels:
        """The labels that count: those of nodes with an edge."""
        return split_by_edges(self._labels, self._kept_graph)[0]

    @property
    def _unused(self) -> NodeLabels:
        """The labels of nodes without an edge, which these nodes keep."""
        return split_by_edges(self._labels, self._kept_graph)[1]

    def _problem(self) -> tuple[Graph, NodeLabels]:
        """Return the graph and the labels to solve with."""
        labels = self._used  # if no label counts, nodes that no edge has had
        return with_nodes(self._kept_graph, int(labels.nodes.max()) + 1), labels

    def _check_same_nodes(self, nodes: NodeTable | None) -> None:
        """Refuse edges whose nodes are numbered by another table than those before."""
        if self._nodes is not None and nodes is not None:
            join_tables(self._nodes, nodes)

    def _choose_gamma(self) -> float:
        """Set and return `gamma_`; nodes without an edge do not count for the mean degree."""
        if self.gamma == "auto":
            graph, kept = self._kept_graph, self.sparsifier_
            total = float(graph.weights.sum())
            if graph.view is None and kept is not None:
                total = 2.0 * (kept.weight_seen_ - self._removed_weight)
            n_nodes = int(np.count_nonzero(np.diff(graph.indptr)))
            self.gamma_ = self._automatic_gamma(total / max(1, n_nodes))
        else:
            self.gamma_ = float(self.gamma)
        return self.gamma_

    def _warn_apart(self) -> None:
        """Warn of labelled nodes that no edge has, perhaps mistyped, and of nodes not reached."""
        alone, lost = self._unused.nodes, ~self.reached_
        if len(alone) > 0:
            first = (alone if self._nodes is None else self._nodes.ids(alone[:1])).tolist()[0]
            # An edge may have faded, or be outside of the window.
            why = "are in no edge" if self.graph_.view is None else "have no edge that counts"
            warn(
                f"{len(alone)} of the {len(self.labelled_)} labelled nodes {why}, such as "
                f"{first!r}; they keep their labels, which count for nothing else"
            )
        if lost.any():
            warn(
                f"{np.count_nonzero(lost)} of {len(lost)} nodes are in components without a label: "
                f"{self._without_evidence}; label some of them, or connect them to the "
                f"rest{self._how_to_connect}"
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
        kept = self._kept_graph
        last = int(getattr(self, "labelled_", np.zeros(1)).max())
        if self._nodes is None and last > 2 * kept.n_nodes + FAR:
            raise ValueError(
                f"node {last} has a label, but the edges have {kept.n_nodes} nodes, and memory is "
                f"needed for every number in between; number the nodes 0, 1, 2, ..., as read_edges "
                f"does, or give n_nodes"
            )
        return with_nodes(kept, last + 1)

    @property
    def _kept_graph(self) -> Graph:
        """The graph in memory, without labelled nodes that no edge has had so far."""
        source = self._all_edges if self.sparsifier_ is None else self.sparsifier_
        assert source is not None
        return with_nodes(source.snapshot(**self._moment), self._n_nodes or 0)


def most_left_out(n_nodes: int) -> int:
    """Return the number of labels whose leave-one-out scores are computed at most."""
    entries = LEFT_OUT_ENTRIES // max(1, n_nodes)
    return min(MOST_LEFT_OUT, max(LEAST_LEFT_OUT, entries))


def kept_sparsifier(edges: Edges, model: Any) -> KeptSparsifier | None:
    """Return the sparsifier that a log keeps, if a model can use it for these edges."""
    kept = None if model.epsilon is None else edges.kept_sparsifier(model.n_jobs)
    options = SparsifierOptions(half_life=model.half_life, horizon=model.horizon)
    own = options if kept is None else kept.sparsifier.options
    return kept if (own.decay, own.reach) == (options.decay, options.reach) else None
