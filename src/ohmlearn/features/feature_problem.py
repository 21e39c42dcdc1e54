"""What an estimator with features knows: a graph, the features of its nodes, and labels.

All of it is immutable, apart from tables of ids, which only grow: a change makes a new object. So
an error leaves an estimator as it was.
"""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ohmlearn._arrays_file import read_arrays, refuse_damaged, write_arrays
from ohmlearn._defaults import LABEL_EPSILON, NEIGHBORS
from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import (
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    Constraints,
    Interval,
)
from ohmlearn.edges.wrapped import DegreeCounting
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.label_input import Labels, NodeLabels, choose_labels, refuse_unknown
from ohmlearn.features.feature_columns import check_same_columns, own_features, take_features
from ohmlearn.features.node_features import Matched, NodeFeatures
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import are_reordered, join_tables
from ohmlearn.points import KnnEdges
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sampling_error import Sample
from ohmlearn.sparsifier.sparsifier_options import MAX_EDGES

Floats = NDArray[np.float64]


class KnownGraph(NamedTuple):
    """A graph in memory, with the degrees of all edges that it was made from."""

    graph: Graph  # all edges, or a sparsifier
    degrees: Floats
    nodes: NodeTable | None
    sparsifier: StreamingSparsifier | None

    @classmethod
    def of(
        cls, graph: Graph, nodes: NodeTable | None, sparsifier: StreamingSparsifier | None,
        degrees: Floats | None,
    ) -> "KnownGraph":  # fmt: skip
        """Return a graph with the `degrees` of all its edges, unless edges fade or are forgotten.

        Then, and if they are None, the degrees are those of the graph.
        """
        if degrees is None or (sparsifier is not None and sparsifier.options.has_times):
            degrees = graph.degrees
        return cls(graph, degrees, nodes, sparsifier)

    def with_nodes(self, n_nodes: int) -> "KnownGraph":
        """Return the graph with nodes without edges, up to `n_nodes`."""
        n_new = max(0, n_nodes - self.graph.n_nodes)
        degrees = np.concatenate([self.degrees, np.zeros(n_new)])
        return self._replace(graph=with_nodes(self.graph, n_nodes), degrees=degrees)

    def add(self, edges: object, verbose: int = 0) -> "KnownGraph":
        """Return the graph with more edges; a copy of the sparsifier takes them in.

        So an error changes nothing, and neither does a sparsifier that others use.
        """
        found = as_edges(edges, self.nodes, is_first=False)
        if found.is_sample:
            raise TypeError(
                "a sparsifier cannot be added here; merge it with sparsifier.merge(...) before fit"
            )
        counted = DegreeCounting(found)
        join_tables(self.nodes, counted.nodes)
        sparsifier = None
        with phase(Phase("reading edges", 1, 1), verbose):
            if self.sparsifier is None:
                graph = Graph.from_batches(chain([self.graph.edges()], counted))
            else:
                sparsifier = self.sparsifier.copy()
                graph = sparsifier.update(counted).snapshot()
        graph = with_nodes(graph, self.graph.n_nodes)
        degrees = counted.degrees_of(graph.n_nodes)
        degrees[: len(self.degrees)] += self.degrees
        graph.nodes = self.nodes
        return KnownGraph.of(graph, self.nodes, sparsifier, degrees)


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(BaseEstimator):
    """Base class of estimators with a parameter `graph` that ``sklearn.clone`` does not copy.

    Graphs are large and do not change, and streams of edges cannot be copied. A stream that can be
    read only once can be used by one of the clones.
    """

    _constraints: ClassVar[Constraints] = {
        "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
        "max_edges": (None, Interval(Integral, 1, MAX_EDGES)),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    epsilon: float | None = LABEL_EPSILON
    max_edges: int | None = None
    random_state: object = None
    n_jobs: int | None = None
    verbose: int = 0
    n_features_in_: int = field(init=False)
    _seed: int = field(init=False)

    def __sklearn_clone__(self) -> Self:
        without = type(self).__new__(type(self))
        without.__dict__.update(self.__dict__, graph=None)
        clone: Self = super(GraphEstimator, without).__sklearn_clone__()
        clone.__dict__["graph"] = self.__dict__["graph"]
        return clone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _take_features(self, X: Matrix, *, reset: bool, **how: Any) -> Any:
        """Return a matrix after a check; with `reset`, its columns are those of later ones."""
        if not isinstance(X, NodeFeatures):
            return take_features(self, X, reset=reset, **how)
        if not reset:
            names = getattr(self, "feature_names_in_", None)
            known = None if names is None else list(names)
            check_same_columns(known, self.n_features_in_, X.names, X.shape[1])
            return X.X
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.names is not None:
            self.feature_names_in_ = np.array(X.names, dtype=object)
        return X.X

    def _join_neighbors(self, rows: Matrix, ids: NDArray[Any] | None) -> KnownGraph:
        """Return the graph of the 10 nearest neighbours of each row, whose ids these are."""
        n_rows = rows.shape[0]
        if n_rows == 1:
            graph = Graph.from_edges([], [], n_nodes=1)
        else:
            with phase("finding neighbours", self.verbose):
                n_neighbors = min(NEIGHBORS, n_rows - 1)
                edges = KnnEdges(rows, n_neighbors=n_neighbors, n_jobs=self.n_jobs)
                graph = Graph.from_batches(edges)
        if ids is not None:
            graph.nodes = NodeTable()
            graph.nodes.add(ids)
        return KnownGraph.of(graph, graph.nodes, None, None)

    def _read_graph(
        self, edges: object, n_rows: int | None, sparsifier: StreamingSparsifier | None = None
    ) -> KnownGraph:
        """Return the graph of edges in any form, with as many nodes as X has rows.

        A Graph, a matrix and a graph of networkx are used whole. Other edges are read once, into an
        empty sparsifier, or into a Graph if `epsilon` is None; their degrees are exact. A
        sparsifier is used with its own degrees, and a KnownGraph as it is. Edges without ids may
        have fewer nodes than X has rows; the others are isolated then. If X has ids, `n_rows` is
        None, and nothing is checked.
        """
        if isinstance(edges, KnownGraph):
            return edges
        if isinstance(edges, str | PathLike):
            edges = _load(edges)
        found = as_edges(edges)
        if sparsifier is not None:
            _check_sparsifier(sparsifier, edges, found.nodes_are_final or found.is_sample)
        is_whole, counted = found.nodes_are_final, None
        if is_whole:
            graph = found.to_graph()
        elif isinstance(found, StreamingSparsifier):
            graph, sparsifier = found.snapshot(), found
        else:
            counted = DegreeCounting(found)
            with phase(Phase("reading edges", 1, 1), self.verbose):
                if sparsifier is None and self.epsilon is not None:
                    sparsifier = StreamingSparsifier(
                        epsilon=self.epsilon,
                        max_edges=self.max_edges,
                        random_state=self._seed,
                        n_jobs=self.n_jobs,
                        verbose=self.verbose,
                    )
                if sparsifier is None:
                    graph = counted.to_graph()
                else:
                    graph = sparsifier.update(counted).snapshot()
            if not found.rereadable and graph.n_edges == 0:
                raise ValueError(
                    f"graph has no edges: a {type(edges).__name__} can be read only once, and may "
                    f"have been read before; give a Graph, arrays (u, v, w) or a list of batches"
                )
        nodes = graph.nodes if is_whole else found.nodes
        n_nodes = graph.n_nodes if nodes is None or is_whole else max(graph.n_nodes, len(nodes))
        n_rows = n_nodes if n_rows is None else n_rows
        _check_rows(n_nodes, n_rows, nodes, strict=is_whole)
        degrees = None if counted is None else counted.degrees_of(n_rows)
        return KnownGraph.of(with_nodes(graph, n_rows), nodes, sparsifier, degrees)


def check_index(X: Matrix, nodes: NodeTable | None) -> bool:
    """Return whether X has an index of ids; refuse one that is not in the order of the nodes."""
    if nodes is None or type(X).__name__ != "DataFrame" or not hasattr(X, "index"):
        return False
    if type(X.index).__name__ == "RangeIndex":
        return False
    own, ids = X.index.tolist(), nodes.ids().tolist()
    pairs = zip(own, ids, strict=True) if len(own) == len(ids) else ()
    for at, (one, node) in enumerate(pairs):
        if str(one) != str(node):
            raise ValueError(
                f"rows must have the order of the nodes, but row {at} of X is {one!r} in its index "
                f"and node {at} is {node!r}; give X.loc[nodes.ids()], where nodes are those of the "
                f"graph"
            )
    return True


def _load(path: str | PathLike[str]) -> StreamingSparsifier:
    if not Path(path).exists():
        raise ValueError(f"graph is {str(path)!r}, but there is no such file")
    try:
        return StreamingSparsifier.load(path)
    except ValueError as error:
        raise ValueError(
            f"graph is a path, so it must be a saved sparsifier: {error}; if it is a file of "
            f"edges, give graph=read_edges({str(path)!r})"
        ) from error


def _check_sparsifier(sparsifier: StreamingSparsifier, edges: object, is_whole: bool) -> None:
    """Refuse a sparsifier that would not be used, or whose earlier edges have no degrees."""
    if is_whole:
        raise ValueError(
            f"a {type(edges).__name__} is used as it is and does not go through a sparsifier; "
            f"leave out sparsifier, or give the edges as arrays (u, v, w) or as a stream"
        )
    if sparsifier.n_edges_seen_ > 0:
        raise ValueError(
            f"sparsifier must be empty, but has {sparsifier.n_edges_seen_:,} edges; give it as "
            f"edges, or as graph and call fit, and then update(...) with more edges"
        )


def _check_rows(n_nodes: int, n_rows: int, nodes: NodeTable | None, *, strict: bool) -> None:
    if n_rows == n_nodes or (nodes is None and not strict and n_rows > n_nodes):
        return
    order = "" if nodes is None else ", in the order of the ids, nodes.ids()"
    folds = ""
    if n_rows < n_nodes:
        folds = (
            "; in scikit-learn's cross-validation give an estimator NodeFeatures(X), whose folds "
            "keep the features of all nodes"
        )
    raise ValueError(
        f"X must have one row for each of the {n_nodes} nodes of the graph{order}; got {n_rows} "
        f"rows{folds}"
    )


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """Features of the nodes of a graph, and labels, if there are any yet."""

    known: KnownGraph
    features: Matrix  # a row for each node
    missing: NDArray[np.bool_]  # which nodes have no features
    table: NodeFeatures | None = None  # where features come from that were joined by their ids
    matched: Matched | None = None  # what came of it
    # Each labelled node once, in the order of the nodes.
    labels: NodeLabels = field(default_factory=lambda: NodeLabels(*np.empty((3, 0))))
    classes: NDArray[Any] | None = None  # columns of labels; None if they are numbers

    @classmethod
    def join(cls, known: KnownGraph, X: Matrix, rows: Matrix, *, add: bool) -> "FeatureProblem":
        """Join features to the nodes: NodeFeatures X by id, others in the order of the nodes.

        `rows` is the matrix of X, and `add` says whether ids that the graph does not have become
        nodes without edges.
        """
        if isinstance(X, NodeFeatures):
            matched = X.match(known.nodes, n_nodes=known.graph.n_nodes, add=add)
            matched.warn()
            known = known.with_nodes(matched.X.shape[0])
            return cls(known, matched.X, matched.missing, X, matched)
        _check_rows(known.graph.n_nodes, rows.shape[0], None, strict=False)
        has_index, nodes = check_index(X, known.nodes), known.nodes
        if not has_index and nodes is not None and are_reordered(nodes):
            first, n_nodes = nodes.ids()[:3].tolist(), len(nodes)
            raise ValueError(
                f"rows of X have the order of nodes.ids(), which starts with {first}; to be sure, "
                f"give NodeFeatures(X, ids=range({n_nodes})) if row i is the node i, else "
                f"NodeFeatures(X, ids=nodes.ids())"
            )
        missing = np.zeros(rows.shape[0], dtype=bool)
        return cls(known.with_nodes(len(missing)), own_features(rows, X), missing)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.missing)

    @property
    def nodes(self) -> NodeTable | None:
        """The ids of the nodes."""
        return self.known.nodes

    @property
    def full_graph(self) -> Graph:
        """The graph, as in `Problem`."""
        return self.known.graph

    @property
    def sample(self) -> Sample:
        """How the edges kept were sampled."""
        assert self.known.sparsifier is not None
        return self.known.sparsifier.sample()

    def with_edges(self, known: KnownGraph) -> "FeatureProblem":
        """Return the same features and labels on a graph which may have more nodes."""
        n_new = known.graph.n_nodes - self.n_nodes
        if n_new <= 0:
            return replace(self, known=known)
        if scipy.sparse.issparse(self.features):
            rows: Matrix = scipy.sparse.csr_array((n_new, self.features.shape[1]))
            features: Matrix = scipy.sparse.vstack([self.features, rows], "csr")
        else:
            rows = np.tile(self.features.mean(axis=0), (n_new, 1)).astype(self.features.dtype)
            features = np.vstack([self.features, rows])
        missing = np.concatenate([self.missing, np.ones(n_new, dtype=bool)])
        return replace(self, known=known, features=features, missing=missing)

    def with_labels(self, labels: NodeLabels, classes: NDArray[Any] | None) -> "FeatureProblem":
        """Return the problem with other labels, perhaps of nodes without edges and features."""
        n_nodes = max(self.n_nodes, int(labels.nodes.max()) + 1)
        found = self.with_edges(self.known.with_nodes(n_nodes))
        return replace(found, labels=labels, classes=classes)

    def place(self, labels: Labels) -> Labels:
        """Return labels of the chosen rows of the table as labels of nodes."""
        assert self.table is not None
        assert self.matched is not None
        nodes = self.matched.numbers[self.table._positions][labels.nodes]
        there = nodes >= 0
        if not there.any():
            raise ValueError(
                "no labelled row of X belongs to a node of the graph, so there is no label; are "
                "the ids of X those of the graph?"
            )
        return labels._replace(nodes=nodes).take(there)

    def refuse_unknown(self, labels: Labels) -> None:
        """Refuse labels of nodes that the graph does not have, because they may be mistyped."""
        refuse_unknown(labels, self.known.nodes)
        if not labels.has_ids and labels.nodes.max(initial=-1) >= self.n_nodes:
            raise ValueError(
                f"y has a label of node {labels.nodes.max()}, but the nodes of the graph are 0 to "
                f"{self.n_nodes - 1}"
            )

    @cached_property
    def used(self) -> NodeLabels:
        """The labels that count: those of nodes with an edge or features, or all if none has."""
        nodes, indptr = self.labels.nodes, self.known.graph.indptr
        known = (indptr[nodes + 1] > indptr[nodes]) | ~self.missing[nodes]
        return choose_labels(self.labels, known) if known.any() else self.labels

    def warn_unused(self) -> None:
        """Warn of labelled nodes that neither edges nor features have, perhaps mistyped."""
        nodes, ids = self.labels.nodes, self.known.nodes
        unknown = nodes[~np.isin(nodes, self.used.nodes)]
        if len(unknown) > 0:
            first = unknown[0] if ids is None else ids.ids(unknown[:1]).tolist()[0]
            are, have = ("is", "has") if len(unknown) == 1 else ("are", "have")
            is_whole = self.known.graph.view is None
            why = f"{are} in no edge" if is_whole else f"{have} no edge that counts"
            warn(
                f"{len(unknown)} of the {len(nodes)} labelled nodes {why} and {have} no features, "
                f"such as {first!r}"
            )

    # Files: graph, features and labels as named arrays. Answers are not stored, because they are
    # computed again from the rest, with the same bits. Nothing is pickled, and nothing in a file is
    # trusted: whatever does not fit together raises ValueError.

    def save(self, path: Any, about: dict[str, Any]) -> None:
        """Write everything and `about`, which has the class, the estimator and parameters."""
        known, X = self.known, self.features
        if known.sparsifier is not None:
            state: dict[str, Any] = known.sparsifier.get_state()
        else:
            state = dict(zip(("edges_u", "edges_v", "edges_w"), known.graph.edges(), strict=True))
            state |= {} if known.nodes is None else known.nodes.get_state()
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X)
            parts = {"": X.data, "_columns": X.indices, "_offsets": X.indptr}
            state |= {f"features{name}": array for name, array in parts.items()}
        else:
            state["features"] = X
        state |= {"degrees": known.degrees, "missing": self.missing}
        state |= {f"labels_{name}": array for name, array in self.labels._asdict().items()}
        if self.classes is not None:
            if self.classes.dtype.kind not in "biuU":
                raise InputError(
                    f"classes of dtype {self.classes.dtype} cannot be saved",
                    remedy="use classes that are strings or integers",
                )
            state["classes"] = self.classes
        about = about | {"shape": [int(size) for size in X.shape]}
        try:
            text = json.dumps(about, default=np.generic.item)
        except TypeError as error:
            raise InputError(
                f"a parameter of {about['class']} cannot be saved: {error}",
                remedy="use numbers, texts, lists and dicts of texts",
            ) from error
        write_arrays(path, state | {"feature_model": np.array(text)})

    @classmethod
    def load(
        cls, path: Any, name: str, estimator: BaseEstimator
    ) -> tuple["FeatureProblem", dict[str, Any]]:
        """Return what `save` has written for the class `name`; any other file is refused."""
        arrays = read_arrays(path)
        if "feature_model" not in arrays:
            raise InputError(f"{path} holds no {name}", remedy="fit the model and save it again")
        with refuse_damaged(path, name, "fit the model again"):
            about = json.loads(str(arrays["feature_model"]))
            problem = cls._from_arrays(arrays, *about["shape"])
        if about["class"] != name:
            raise InputError(f"{path} holds a {about['class']}", remedy="load it with that class")
        if repr(estimator) != about["estimator"]:
            raise InputError(
                f"{path} was saved with the estimator {about['estimator']}, got "
                f"{Param('estimator', estimator)}; estimators are not in files",
                remedy="give load the same one",
            )
        return problem, about

    @classmethod
    def _from_arrays(cls, arrays: dict[str, Any], n_nodes: int, n_columns: int) -> "FeatureProblem":
        sparsifier = nodes = None
        if "parameters" in arrays:
            sparsifier = StreamingSparsifier.from_state(arrays)
            graph, nodes = sparsifier.snapshot(), sparsifier.nodes
        else:
            ends = (arrays[one] for one in ("edges_u", "edges_v", "edges_w"))
            graph = Graph.from_edges(*ends, n_nodes=n_nodes)
            if "node_ids" in arrays or "node_offsets" in arrays:
                nodes = NodeTable.from_state(arrays)
        graph = with_nodes(graph, n_nodes)
        graph.nodes = nodes
        X: Matrix = arrays["features"]
        if "features_offsets" in arrays:
            parts = (X, arrays["features_columns"], arrays["features_offsets"])
            X = scipy.sparse.csr_array(parts, shape=(n_nodes, n_columns))
            X.check_format(full_check=True)
        labels = NodeLabels(*(arrays[f"labels_{one}"] for one in ("nodes", "values", "weights")))
        degrees, missing, classes = arrays["degrees"], arrays["missing"], arrays.get("classes")
        n_labels, values = len(labels.nodes), X.data if scipy.sparse.issparse(X) else X
        fits = (
            X.shape == (n_nodes, n_columns)
            and graph.n_nodes == n_nodes == len(degrees) == len(missing)
            and missing.dtype == bool
            and labels.values.shape == (n_labels, 1 if classes is None else len(classes))
            and labels.weights.shape == (n_labels,)
            and 0 < n_labels == len(np.unique(labels.nodes))
            and 0 <= labels.nodes.min() <= labels.nodes.max() < n_nodes
            and all(np.isfinite(each).all() for each in (values, degrees, *labels[1:]))
            and labels.weights.min() > 0.0
        )
        if not fits:
            raise ValueError("its parts do not fit together")
        known = KnownGraph(graph, degrees, nodes, sparsifier)
        return cls(known, X, missing, labels=labels, classes=classes)
