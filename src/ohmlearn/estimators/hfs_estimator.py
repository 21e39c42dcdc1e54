"""What the estimators have in common: fitting to points or edges, more edges, other labels.

The estimators are a thin layer with the interface of scikit-learn. They check arguments, call the
labelling job, and show what it found as attributes.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from typing import Any, ClassVar, Literal, NoReturn, Self, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from ohmlearn._defaults import LABEL_EPSILON, NEIGHBORS, WEIGHTS
from ohmlearn._display import Tabular
from ohmlearn._phases import Phase, phase
from ohmlearn.checks.edge_arrays import is_from, is_table
from ohmlearn.checks.parameters import Constraints
from ohmlearn.estimators.answer import Floats, NodeAnswer
from ohmlearn.estimators.explanation import explain_asked, explain_nodes
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_columns import answer_columns
from ohmlearn.estimators.label_input import by_node, is_mapping, pair_by_node, warn_default_index
from ohmlearn.estimators.label_job import Labelling, label
from ohmlearn.estimators.model_file import load_labelling, save_labelling
from ohmlearn.estimators.problem import HFSParameters, NumberProblem, Problem
from ohmlearn.estimators.suggest_labels import Suggestion, suggest_labels
from ohmlearn.graph import Graph
from ohmlearn.graph.convert import tensor_to_array
from ohmlearn.graph.graph import graph_of, with_nodes
from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.solve_hfs import Method
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_ids import is_name
from ohmlearn.nodes.node_table import ids_or_numbers, join_tables
from ohmlearn.points.affinity import Affinity
from ohmlearn.points.point_arrays import refuse_inexact
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.reading.label_table import FileLabels, as_node_ids
from ohmlearn.sparsifier import StreamingSparsifier

Model = TypeVar("Model")
POINTS = ("X_", "n_features_in_", "feature_names_in_")  # what `fit` sets besides
ANSWERS = (
    "answer_", "scores_", "transduction_", "reached_", "residual_", "converged_", "gamma_",
    "method_", "n_iter_", "class_prior_", "restart_", "bias_", "mean_",
)  # fmt: skip


# Parameters of LabelSpreading in scikit-learn, and what to give here.
HINTS = {
    "kernel": "affinity='rbf' or 'knn' (its gamma is kernel_gamma here; one less for n_neighbors)",
    "alpha": "gamma, which is larger for a larger alpha, or leave it out",
    "max_iter": "passes, if edges are dropped, or leave it out: the solver stops at tol",
}


def with_hints(kind: type[Model]) -> type[Model]:
    """Let a class say which of its parameters is meant by one of scikit-learn's."""
    init: Callable[..., None] = kind.__init__

    @wraps(init)
    def checked(self: Model, *arguments: object, **given: object) -> None:
        for name in HINTS.keys() & given.keys():
            raise TypeError(f"{kind.__name__} has no parameter {name}; give {HINTS[name]}")
        init(self, *arguments, **given)

    kind.__init__ = checked  # type: ignore[assignment]
    return kind


@dataclass(kw_only=True, eq=False, repr=False)
class HFSEstimator(BaseEstimator):
    """Common part of the classifier and the regressor."""

    _kind: ClassVar[type[Problem]]
    _narrower: ClassVar[Constraints] = {}  # constraints that differ from those of the classifier
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
    half_life: object = None
    horizon: object = None
    # What `_set` sets: edges and labels, then the answer.
    kept_: KeptGraph = field(init=False)
    problem_: Problem = field(init=False)
    labelled_: NDArray[np.int64] = field(init=False)
    answer_: NodeAnswer = field(init=False)
    scores_: Floats = field(init=False)
    transduction_: NDArray[Any] = field(init=False)
    reached_: NDArray[np.bool_] = field(init=False)
    residual_: Floats = field(init=False)
    converged_: NDArray[np.bool_] = field(init=False)
    gamma_: float = field(init=False)
    method_: Method = field(init=False)
    n_iter_: int = field(init=False)
    _before: HFSResult | None = field(init=False)  # the last result, where the next solve starts

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to points, or to a graph if ``affinity="precomputed"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_features)
            Points; or a symmetric matrix of weights, or a Graph.
        y : array-like of shape (n_nodes,), or dict {node: label}
            Labels. None and NaN, and for classes -1, mean unlabelled. A node may have several
            labels, ``{3: ["a", "b"]}``, and for classes a distribution, ``{3: {"a": 0.7, "b":
            0.3}}`` or a row of a matrix of shape (n_nodes, n_classes); see `HFSClassifier`. If X
            is a Graph whose nodes have ids, the keys of a dict and the index of a Series are ids.
        sample_weight : array-like of shape (n_nodes,), or dict {node: weight}, optional
            How much each label counts; an array if y is one, else a dict, in which the weight of
            missing nodes is 1. A label of weight 2 equals the same label given twice. The weight 0
            means unlabelled.

        Returns
        -------
        self : object
        """
        p = self._parameters()
        _refuse_edges(X, y)
        points = self._check_points(X, reset=True)
        edges = self._affinity().edges(points)
        y, sample_weight = self._pair_labels(y, sample_weight, by_index=edges.nodes is not None)
        self._set(label(edges, self._kind, y, p, sample_weight=sample_weight))
        self.__dict__.pop("X_", None)
        if self.affinity != "precomputed":
            self.X_ = points
        return self

    def fit_predict(self, X: object, y: object, sample_weight: object = None) -> NDArray[Any]:
        """Fit, see `fit`, and return `transduction_`, the answers for X."""
        return self.fit(X, y, sample_weight).transduction_

    def fit_edges(
        self,
        edges: object,
        y: object,
        *,
        sample_weight: object = None,
        n_nodes: int | None = None,
        sparsifier: StreamingSparsifier | None = None,
        at: object = None,
        since: object = None,
    ) -> Self:
        """Fit to a stream of edges.

        Parameters
        ----------
        edges : stream, Graph, table, path, or tuple (u, v), (u, v, w) or (u, v, w, t) of arrays
            A stream is any iterable of such tuples, for example ``read_edges(...)`` or a list. A
            graph may be one of networkx, whose nodes keep their names. A path, a table, a data
            frame and a list of edges with names are read by `read_edges` with its defaults. Each
            edge is listed once, in either direction; the weights of parallel edges add up. With
            ``passes > 1`` the stream is read several times.
        y : array-like of shape (n_nodes,), dict {node: label}, Series, table or path
            Labels. None and NaN, and for classes -1, mean unlabelled. If the stream has ids, as
            that of `read_edges` does, the keys of a dict are ids, and results are in the order of
            ``edges.nodes.ids()``, as an array y must be; it is refused if ids are 0, 1, 2, ... in
            another order. The index of a pandas Series has the nodes, as the first column of a
            table of two columns, or its column "node", does. A path is read as a table of labels,
            perhaps with a column of weights. The labels have no influence on the
            sparsifier. A node may have several labels or a distribution; see `fit`.
        sample_weight : array-like of shape (n_nodes,), dict {node: weight}, Series or table, \
optional
            How much each label counts; see `fit`. If a node of a dict has several labels, its
            weight may be a list with one number for each of them.
        n_nodes : int, optional
            Number of nodes, if neither `y` nor the stream determines it, as a graph does; give more
            if `update` may bring others. If it is unknown, nodes may appear at any time.
        sparsifier : StreamingSparsifier, optional
            Takes in the edges, instead of a new one with the given `epsilon`, `max_edges`,
            `half_life` and `horizon`.
        at : number or date, optional
            With a half-life: the time for which to answer, not before the latest edge, which is
            the default.
        since : number or date, optional
            The time of the oldest edges that count. Without a horizon, earlier ones are left out as
            they are read, here and in later calls of `update` and `refine`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> batches = [([0, 1], [1, 2]), ([2, 3], [3, 4], [0.1, 1.0])]
        >>> HFSClassifier().fit_edges(batches, {0: "a", 4: "b"}).transduction_.tolist()
        ['a', 'a', 'a', 'b', 'b']

        Node 2 is probably a "b", and this counts as much as five labels:

        >>> y = {0: "a", 2: {"a": 0.1, "b": 0.9}, 4: "b"}
        >>> model = HFSClassifier().fit_edges(batches, y, sample_weight={2: 5.0})
        >>> model.transduction_.tolist()
        ['a', 'a', 'b', 'b', 'b']

        Edges with times, of which the newest counts most:

        >>> timed = [([0, 1], [1, 2], None, [10.0, 70.0])]
        >>> model = HFSClassifier(half_life=10).fit_edges(timed, {0: "a", 2: "b"})
        >>> model.transduction_.tolist()
        ['a', 'b', 'b']
        """
        p, given = self._parameters(), edges
        is_first = sparsifier is None or sparsifier.n_edges_seen_ == 0
        edges = as_edges(given, None if sparsifier is None else sparsifier.nodes, is_first=is_first)
        y, sample_weight = self._pair_labels(y, sample_weight, by_index=True)
        has_ids = isinstance(given, str | os.PathLike)
        has_ids = has_ids or (is_table(given) and not isinstance(given, Tabular))
        if has_ids and y is not None and not is_mapping(y, edges.nodes):
            raise TypeError(
                f"the nodes of a {type(given).__name__} of edges have ids, so labels need them, "
                f"too; give y as a dict {{node: label}}, a Series or a table"
            )
        if isinstance(y, FileLabels) and edges.nodes is not None:  # before edges are read
            as_node_ids(y.path, list(y), edges.id_type, edges.kinds, heading=y.id_heading)
        found = label(
            edges,
            self._kind,
            y,
            p,
            sample_weight=sample_weight,
            n_nodes=n_nodes,
            sparsifier=sparsifier,
            at=at,
            since=since,
        )
        self._set(found)
        for name in POINTS:
            self.__dict__.pop(name, None)
        warn_default_index(y, len(self.reached_))
        return self

    def update(
        self, edges: object, *, at: object = None, since: object = None, solve: bool = True
    ) -> Self:
        """Take in more edges; later answers count them, too.

        Answers are computed again from the kept graph alone, starting from the previous answer. Can
        be called before `fit`; then `relabel` gives the first labels.

        Parameters
        ----------
        edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
            Only the new edges, which may have new nodes. A stream of `read_edges` after another
            one needs ``nodes=model.nodes_``, so that the same id is the same node. Edges may also
            be those of a `StreamingSparsifier`: it is merged, or, if there are no edges yet, the
            estimator continues with it.
        at, since : number or date, optional
            As for `fit_edges`, for all answers until the next update; `since` needs a horizon.
        solve : bool
            Whether to compute answers now. If False, there are none until `solve` or `relabel` is
            called, which is faster if many small batches follow each other.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> model = HFSClassifier().update(([0, 1], [1, 2])).relabel({0: "a", 2: "b"})
        >>> model.update(([2], [3])).transduction_.tolist()
        ['a', 'a', 'b', 'b']

        A sparsifier that was made before, perhaps on another machine:

        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> model = HFSClassifier().update(sparsifier).relabel({0: "a", 2: "b"})
        >>> model.transduction_.tolist()
        ['a', 'a', 'b']
        """
        p = self._parameters()
        kept = self.__dict__.get("kept_") or KeptGraph.start(p)
        edges = as_edges(edges, kept.nodes, is_first=kept.is_empty)
        if kept.cut is not None and not edges.is_sample:
            edges = edges.since(kept.cut)
        n_before = kept.n_edges_seen
        try:
            with phase(Phase("reading edges", 1, 1), p.verbose):
                kept.take(edges, at, since)
        except BaseException:
            if kept.n_edges_seen != n_before:  # some of the edges count
                self._add(kept)
            raise
        self._add(kept)
        return self.solve() if solve and "problem_" in self.__dict__ else self

    def solve(self) -> Self:
        """Compute the answers of the kept graph, after ``update(..., solve=False)``.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> model = HFSClassifier().fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
        >>> for edge in (([2], [3]), ([3], [4])):
        ...     model = model.update(edge, solve=False)
        >>> model.solve().transduction_.tolist()
        ['a', 'a', 'b', 'b', 'b']
        """
        check_is_fitted(self, "problem_")
        self._set(self._labelling().solve())
        return self

    def relabel(self, y: object, *, sample_weight: object = None) -> Self:
        """Change the labels without reading the edges again.

        Parameters
        ----------
        y : array-like of shape (n_nodes,), dict {node: label}, Series or table
            All labels, including earlier ones that are still valid. As for `fit_edges`; after
            `fit` to points, a Series has one entry for each of them, in their order.
        sample_weight : array-like of shape (n_nodes,), dict {node: weight}, Series or table, \
optional
            As for `fit_edges`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> model = HFSClassifier().fit_edges(gallery.path(4), {0: "a", 3: "b"})
        >>> model.relabel({0: "b", 3: "a"}).transduction_.tolist()
        ['b', 'b', 'a', 'a']
        """
        check_is_fitted(self, "kept_")
        now = self._labelling()
        by_index = now.kept.nodes is not None or not hasattr(self, "n_features_in_")
        y, sample_weight = self._pair_labels(y, sample_weight, by_index=by_index)
        n_nodes = self.graph_.n_nodes if now.kept.n_nodes is None else now.kept.n_nodes
        rows = self._kind.read(now.parameters, y, n_nodes, now.kept.nodes, sample_weight)
        self._set(now.solve(self._kind.make(rows, now.kept, now.parameters)))
        warn_default_index(y, len(self.reached_))
        return self

    def refine(self, edges: object, *, passes: int = 3) -> Self:
        """Improve the present answer by more passes over all edges seen so far.

        Starts from the present answer if earlier passes have improved it, else from the
        sparsifier. Does nothing if the answer is that of all edges already.

        Parameters
        ----------
        edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
            All edges; a stream is read several times.
        passes : int
            Largest number of passes.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import HFSClassifier, gallery
        >>> graph = gallery.complete(300)
        >>> model = HFSClassifier(passes=1, epsilon=0.9, random_state=0)
        >>> model = model.fit_edges(graph, {0: "a", 1: "b"}).refine(graph, passes=12)
        >>> bool(model.residual_.max() < 1e-4)
        True
        """
        check_is_fitted(self, "problem_")
        now = self._labelling()
        kept = now.kept
        edges = as_edges(edges, kept.nodes, is_first=kept.is_empty)
        if kept.nodes is not None and edges.nodes is not None:
            join_tables(kept.nodes, edges.nodes)  # refuses another numbering
        if kept.holds_all_edges:
            return self if now.answer is not None else self.solve()
        problem, before, done = now.problem, None, 0
        assert problem is not None
        if now.answer is None:
            problem = problem.on(kept, now.parameters)
        else:
            problem = replace(problem, parameters=now.parameters)
            if now.answer.result.passes > 0:
                before, done = now.answer.result, now.answer.n_iter - 1
        if kept.cut is not None:
            edges = edges.since(kept.cut)
        result = problem.refine(edges, passes, before, 1 + done)
        self._set(now.with_answer(problem, problem.answer(result, 1 + done + result.passes)))
        return self

    def explain(
        self,
        node: object,
        *,
        against: object = None,
        edges: object = None,
        n_labels: int | None = 5,
        n_edges: int = 20,
    ) -> Any:
        """Return why a node has its label: which labels, neighbours and edges decide it.

        Scores are linear in the labels, so the margin of the label over another class is the sum
        of what each label contributes. One solve for each node computes this; several nodes share
        it. Reasons are those of the model, not causes: a far label of the same class may count
        against a node, because a node is compared with the average node.

        Parameters
        ----------
        node : id or number of a node, or a list of them
            A number, or an id if the edges have ids.
        against : class, optional
            The class that the label is compared with; by default the second most likely one.
        edges : stream, Graph, or tuple of arrays, optional
            All edges, as for `refine`. If edges were dropped, they are read in a few passes, so
            that contributions are those of all edges, and the strongest edges are found. Without
            them, reasons come from the edges kept, or are withheld if these are too few.
        n_labels, n_edges : int
            Number of labels and edges to list. With ``n_labels=None``, all labels are listed.

        Returns
        -------
        Explanation, or a list of them if `node` is a list

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> edges = [("ann", "bob"), ("bob", "cy"), ("cy", "dee"), ("dee", "eve")]
        >>> model = HFSClassifier(random_state=0).fit_edges(edges, {"ann": "x", "eve": "y"})
        >>> why = model.explain("bob")
        >>> [(one.node, one.label, round(one.fraction, 2)) for one in why.labels]
        [('eve', 'y', 0.6), ('ann', 'x', 0.4)]
        >>> print(why.text())
        bob is "x" (91%), not "y": 1 of its 2 neighbours leans to "x". For it: the label ann (+40%
        of the margin); the distance from the "y" label eve (+60%). It would be "y" without the
        label of ann.
        """
        answer, kept = self.answer_, self.kept_
        source = None if edges is None else as_edges(edges, kept.nodes, is_first=False)
        if source is not None and kept.cut is not None:
            source = source.since(kept.cut)
        how = {"against": against, "edges": source, "n_labels": n_labels, "n_edges": n_edges}
        explain = partial(explain_nodes, answer)
        return explain_asked(explain, kept.nodes, answer.problem.n_nodes, node, **how)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file with a checksum, completely or not at all.

        The file holds everything that later answers depend on: parameters, ids, labels, the
        sparsifier (or all edges, if ``epsilon=None``), the points of `fit`, and the last answer.
        Nothing is pickled. A `random_state` that is a generator is replaced by the seed in use. A
        function as `affinity` cannot be saved.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import HFSClassifier
        >>> model = HFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.ohm")
        ...     loaded = HFSClassifier.load(f"{folder}/model.ohm")
        >>> loaded.update(([2], [3])).transduction_.tolist()
        ['a', 'a', 'b', 'b']
        """
        check_is_fitted(self, "kept_")
        points = {name: self.__dict__[name] for name in POINTS if name in self.__dict__}
        names = self.get_params(deep=False), points
        save_labelling(path, type(self).__name__, self._labelling(), *names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved estimator, which continues bit for bit as if it had never stopped.

        To take in more edges with ids, read them with the ids of the estimator:
        ``model.update(read_edges(path, nodes=model.nodes_))``.

        Parameters
        ----------
        path : str or path
            A file written by `save`; see there for an example.

        Raises
        ------
        ValueError
            Names the file and what is wrong with it. It is safe to load any file.
        """
        return cls._from_file(*load_labelling(path, cls.__name__, cls._kind, cls._narrower))

    @classmethod
    def _from_file(cls, found: Labelling, given: dict[str, Any], points: dict[str, Any]) -> Self:
        model = cls(**given)
        model._set(found, warns=False)
        model.__dict__.update(points)
        return model

    def _columns(self) -> dict[str, Any]:
        return answer_columns(self.answer_, self.nodes_)

    to_frame, to_arrow = Tabular.to_frame, Tabular.to_arrow
    __arrow_c_stream__ = Tabular.__arrow_c_stream__

    # What is known.

    def _parameters(self) -> HFSParameters:
        """Return the parameters after a check."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return HFSParameters.check(type(self).__name__, given, **self._narrower)

    def _pair_labels(self, y: object, sample_weight: object, *, by_index: bool) -> tuple[Any, Any]:
        numbers = self._kind is NumberProblem
        return pair_by_node(y, sample_weight, by_index=by_index, numbers=numbers)

    def _labelling(self) -> Labelling:
        """Return the present state for the labelling job."""
        parts = (self.__dict__.get(name) for name in ("problem_", "answer_", "_before"))
        return Labelling(self._parameters(), self.kept_, *parts)

    def _set(self, found: Labelling, *, warns: bool = True) -> None:
        """Take over what was found: the only method that sets attributes of an answer."""
        if warns and found.answer is not None:
            found.answer.warn_apart()
        self._add(found.kept)
        self._before = found.before
        if found.problem is not None:
            self.problem_, self.labelled_ = found.problem, found.problem.labels.nodes
            self.__dict__.update(self._labels_of())
        if found.answer is not None:
            self.answer_ = found.answer
            self.__dict__.update(self._answers_of())

    def _add(self, kept: KeptGraph) -> None:
        """Take over edges; the answer of others is forgotten."""
        self.kept_ = kept
        for name in ANSWERS:
            self.__dict__.pop(name, None)

    def _labels_of(self) -> dict[str, Any]:
        """Return attributes that depend on the labels alone."""
        return {}

    def _answers_of(self) -> dict[str, Any]:
        """Return attributes that belong to an answer."""
        answer = self.answer_
        result, problem = answer.result, answer.problem
        return {
            "scores_": result.f,
            "transduction_": answer.labels,
            "reached_": answer.reached,
            "residual_": result.residual,
            "converged_": result.converged,
            "gamma_": problem.gamma,
            "method_": problem.method,
            "n_iter_": answer.n_iter,
        }

    def __getattr__(self, name: str) -> NoReturn:
        """Say why there is no answer."""
        is_answer = name in ANSWERS or isinstance(getattr(type(self), name, None), property)
        if is_answer and "answer_" not in self.__dict__:
            if "problem_" not in self.__dict__:
                why = "is not fitted yet. Call 'fit' with appropriate arguments before using it"
            else:
                why = "has taken in edges since the last answer; call solve() or relabel(y)"
            raise NotFittedError(f"This {type(self).__name__} instance {why}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def sparsifier_(self) -> StreamingSparsifier | None:
        """Where `graph_` comes from; None if ``epsilon=None``."""
        return self.kept_.sparsifier

    @property
    def nodes_(self) -> NodeTable:
        """The ids of the nodes, or their numbers, for ``read_edges(..., nodes=model.nodes_)``."""
        return ids_or_numbers(self.kept_.nodes, self.graph_.n_nodes)

    @property
    def graph_(self) -> Graph:
        """The graph in memory, with all known nodes: the sparsifier, or all edges."""
        labelled = self.__dict__.get("labelled_", np.zeros(1, np.int64))
        return with_nodes(self.kept_.graph, int(labelled.max()) + 1)

    @property
    def staleness_(self) -> float:
        """How far removals have taken the sparsifier of a log from its edges."""
        return self.kept_.staleness

    @property
    def uncertainty_(self) -> Floats:
        """Posterior standard deviation of the score of every node; infinite if not `reached_`.

        In units of the error of a label. It depends on where labels are, not on what they say, and
        shows regions that are far from all of them. Computed from samples, 64 solves in all.
        """
        return self.answer_.uncertainty

    def suggest_labels(self, k: int = 10, *, exclude: Iterable[Any] = ()) -> list[Suggestion]:
        """Suggest which nodes to label next, best first.

        Nodes in components without a label come first, by the size of the component; then nodes
        whose labels would change the answers most: centres of regions without labels, later nodes
        between classes. No two of them are neighbours. Reads no edge: the kept graph is enough.
        Works without any label, too, after `update`.

        Labels that are chosen are no random sample of the nodes. Keep some that are drawn at random
        if `accuracy_estimate_` and probabilities are to be trusted.

        Parameters
        ----------
        k : int
            Number of suggestions.
        exclude : iterable
            Nodes that cannot be labelled: numbers, or ids if the edges have them.

        Returns
        -------
        list of Suggestion
            With the attributes `node` (its id, if the edges have ids), `kind`, `n_settled` and
            `reason`.

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> two = gallery.disjoint_union(gallery.path(30), gallery.complete(5))
        >>> model = HFSClassifier(random_state=0).update(two)
        >>> [found.reason for found in model.suggest_labels(2)]
        ['covers a component of 30 nodes without a label',
         'covers a component of 5 nodes without a label']
        """
        check_is_fitted(self, "kept_")
        answer = self.answer_ if "problem_" in self.__dict__ else None
        return suggest_labels(self.kept_, answer, k, exclude=exclude, n_jobs=self.n_jobs)

    # Points.

    def _affinity(self) -> Affinity:
        return Affinity(
            self.affinity,
            self.n_neighbors,
            self.weights,
            self.kernel_gamma,
            self.n_jobs,
            self.metric,
            self.neighbors,
        )

    def _check_points(self, X: Any, *, reset: bool) -> Any:
        precomputed = self.affinity == "precomputed"
        X = tensor_to_array(X) if is_from("torch", X) else X
        graph = None if isinstance(X, np.ndarray) or scipy.sparse.issparse(X) else graph_of(X)
        if graph is not None and precomputed:
            if reset:
                self.n_features_in_ = graph.n_nodes
            return graph
        if graph is not None:
            raise TypeError(
                f"fit needs points or a matrix, got {type(X).__module__}.{type(X).__name__}; for a "
                f"graph call fit_edges(G, y)"
            )
        if not precomputed:
            refuse_inexact(X)
        is_knn = self.affinity == "knn"
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=["csr", "csc", "coo"] if precomputed else "csr",
            dtype=[np.float64, np.float32, *([np.uint8] if is_knn else [])],
            ensure_min_samples=2 if reset else 1,
        )

    def _check_extendable(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise ValueError(
                "predict needs points, but this estimator was fitted to edges; transduction_ has "
                "the answers for the nodes of the graph"
            )

    def _extend(self, X: object, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return weighted means of values over the neighbours of new points.

        Neighbours that are not reached are ignored. The mask is False if no neighbour is reached.
        """
        self._check_extendable()
        new = self._check_points(X, reset=False)
        reached = self.reached_.astype(np.float64)[:, np.newaxis]
        columns = np.hstack([values * reached, reached])
        total = self._affinity().extend(new, getattr(self, "X_", None), columns)
        known = total[:, -1] > 0
        return total[:, :-1] / np.where(known, total[:, -1], 1.0)[:, np.newaxis], known

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        return tags


def _refuse_edges(X: Any, y: Any) -> None:
    """Refuse a frame that cannot be points, but may be a table of edges."""
    if type(X).__name__ != "DataFrame" or X.shape[1] not in (2, 3):
        return
    labels = by_node(y, by_index=False)
    by_position = labels is not None and not isinstance(labels, Mapping) and np.ndim(labels) > 0
    if by_position and len(labels) != len(X):
        what = f"y must have one entry for each of the {len(X)} rows of X, got {len(labels)}"
    elif texts := [x for x in np.asarray(X[:1], dtype=object).ravel() if is_name(x)]:
        what = f"X must have numbers, got {texts[0]!r}"
    else:
        return
    raise ValueError(f"{what}; if the rows of X are edges, use fit_edges(read_edges(X), ...)")
