"""The graph of an estimator with features, from whatever its parameter `graph` is."""

from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ohmlearn._defaults import NEIGHBORS
from ohmlearn._phases import Phase, phase
from ohmlearn.checks.edge_arrays import check_graph, is_matrix
from ohmlearn.edges.wrapped import DegreeCounting
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import with_nodes
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import join_tables
from ohmlearn.points import KnnEdges
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = [
    "KnownGraph",
    "SharesGraph",
    "add_edges",
    "check_index",
    "join_neighbors",
    "read_graph",
]


class KnownGraph(NamedTuple):
    """A graph in memory, with the degrees of all edges that it was made from."""

    graph: Graph  # all edges, or a sparsifier
    degrees: NDArray[np.float64]
    nodes: NodeTable | None
    sparsifier: StreamingSparsifier | None


class SharesGraph(BaseEstimator):
    """Base class of estimators with a parameter `graph` that ``sklearn.clone`` does not copy.

    Graphs are large and do not change, and streams of edges cannot be copied. A stream that can be
    read only once can be used by one of the clones.
    """

    def __sklearn_clone__(self) -> Self:
        without = type(self).__new__(type(self))
        without.__dict__.update(self.__dict__, graph=None)
        clone: Self = super(SharesGraph, without).__sklearn_clone__()
        clone.graph = self.graph
        return clone


def read_graph(
    edges: object,
    n_rows: int | None,
    *,
    epsilon: float | None,
    max_edges: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    sparsifier: StreamingSparsifier | None = None,
) -> KnownGraph:
    """Return the graph of edges in any form, with as many nodes as X has rows.

    A Graph, a matrix and a graph of networkx are used whole. Other edges are read once, into a
    sparsifier, or into a Graph if `epsilon` is None; their degrees are exact. A sparsifier is used
    with its own degrees, and a KnownGraph as it is.

    Parameters
    ----------
    edges : object
        See `GraphSmoother`.
    n_rows : int or None
        Number of rows of X. Edges without ids may have fewer nodes; the others are isolated then.
        None if it is not to be checked.
    epsilon, max_edges, random_state, n_jobs, verbose
        As for `StreamingSparsifier`.
    sparsifier : StreamingSparsifier, optional
        An empty one that takes in the edges, instead of a new one.
    """
    if isinstance(edges, KnownGraph):
        return edges
    if isinstance(edges, str | PathLike):
        edges = _load(edges)
    found = as_edges(check_graph(edges, Graph) if is_matrix(edges) else edges)
    if sparsifier is not None:
        _check_sparsifier(sparsifier, edges, found.nodes_are_final or found.is_sample)
    if found.nodes_are_final:
        graph = found.to_graph()
        if n_rows is not None:
            _check_rows(graph.n_nodes, n_rows, graph.nodes, strict=True)
        return KnownGraph(graph, graph.degrees, graph.nodes, None)
    if isinstance(found, StreamingSparsifier):
        return _pad(found.snapshot(), None, found.nodes, found, n_rows)
    counted = DegreeCounting(found)
    with phase(Phase("reading edges", 1, 1), verbose):
        if sparsifier is None and epsilon is not None:
            sparsifier = StreamingSparsifier(
                epsilon=epsilon,
                max_edges=max_edges,
                random_state=random_state,
                n_jobs=n_jobs,
                verbose=verbose,
            )
        graph = counted.to_graph() if sparsifier is None else sparsifier.update(counted).snapshot()
    if not found.rereadable and graph.n_edges == 0:
        raise ValueError(
            f"graph has no edges: a {type(edges).__name__} can be read only once, and may have "
            f"been read before; give a Graph, arrays (u, v, w) or a list of batches"
        )
    return _pad(graph, counted, counted.nodes, sparsifier, n_rows)


def add_edges(known: KnownGraph, edges: object, verbose: int = 0) -> KnownGraph:
    """Return the graph with more edges; a copy of the sparsifier takes them in.

    So an error leaves the known graph as it was, and a sparsifier that others use does not change.
    """
    found = as_edges(edges, known.nodes, is_first=False)
    if found.is_sample:
        raise TypeError(
            "a sparsifier cannot be added here; merge it with sparsifier.merge(...) before fit"
        )
    counted = DegreeCounting(found)
    join_tables(known.nodes, counted.nodes)
    sparsifier = None
    with phase(Phase("reading edges", 1, 1), verbose):
        if known.sparsifier is None:
            graph = Graph.from_batches(chain([known.graph.edges()], counted))
        else:
            sparsifier = known.sparsifier.copy()
            graph = sparsifier.update(counted).snapshot()
    n_nodes = max(graph.n_nodes, known.graph.n_nodes)
    degrees = counted.degrees_of(n_nodes)
    degrees[: len(known.degrees)] += known.degrees
    graph = with_nodes(graph, n_nodes)
    graph.nodes = known.nodes
    return KnownGraph(graph, degrees, known.nodes, sparsifier)


def join_neighbors(X: Any, *, n_jobs: int | None = None, verbose: int = 0) -> KnownGraph:
    """Return the graph of the 10 nearest neighbours of each row of X."""
    n_rows = X.shape[0]
    if n_rows == 1:
        graph = Graph.from_edges([], [], n_nodes=1)
    else:
        with phase("finding neighbours", verbose):
            n_neighbors = min(NEIGHBORS, n_rows - 1)
            edges = KnnEdges(X, n_neighbors=n_neighbors, weights="uniform", n_jobs=n_jobs)
            graph = Graph.from_batches(edges)
    return KnownGraph(graph, graph.degrees, None, None)


def check_index(X: Any, nodes: NodeTable | None) -> bool:
    """Return whether X has an index of ids; refuse one that is not in the order of the nodes."""
    if nodes is None or type(X).__name__ != "DataFrame" or not hasattr(X, "index"):
        return False
    if type(X.index).__name__ == "RangeIndex":
        return False
    own, ids = X.index.tolist(), nodes.ids().tolist()
    if len(own) == len(ids):
        at = next((i for i, id_ in enumerate(ids) if str(own[i]) != str(id_)), None)
        if at is None:
            return True
        raise ValueError(
            f"rows must have the order of the nodes, but row {at} of X is {own[at]!r} in its index "
            f"and node {at} is {ids[at]!r}; give X.loc[nodes.ids()], where nodes are those of the "
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


def _pad(
    graph: Graph,
    counted: DegreeCounting | None,
    nodes: NodeTable | None,
    sparsifier: StreamingSparsifier | None,
    n_rows: int | None,
) -> KnownGraph:
    """Add nodes without edges, so that there is one for each row."""
    n_nodes = graph.n_nodes if nodes is None else max(graph.n_nodes, len(nodes))
    n_rows = n_nodes if n_rows is None else n_rows
    _check_rows(n_nodes, n_rows, nodes, strict=False)
    graph = with_nodes(graph, n_rows)
    degrees = graph.degrees if counted is None else counted.degrees_of(n_rows)
    return KnownGraph(graph, degrees, nodes, sparsifier)


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
