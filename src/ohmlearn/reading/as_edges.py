"""Edges in any form, as batches or as a graph."""

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

import numpy as np

from ohmlearn.checks.edge_arrays import refuse_other_graph
from ohmlearn.graph.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.arrow_objects import is_table, refuse_table
from ohmlearn.reading.read_edges import read_edges

__all__ = ["as_edges", "batches_of", "graph_of", "without_tiny"]


def as_edges(edges: Any, nodes: NodeTable | None = None, *, is_first: bool = True) -> Any:
    """Return a graph of networkx as a Graph, and a table as a stream; other edges as they are.

    Parameters
    ----------
    edges : object
    nodes : NodeTable, optional
        The ids so far, which a table continues.
    is_first : bool
        Whether no edges were taken before. If some were, and had numbers but no ids, ids cannot be
        matched with them. Then graphs and tables with ids stay as they are.

    Examples
    --------
    >>> import networkx
    >>> as_edges(networkx.Graph([("ann", "bob")])).nodes.ids().tolist()
    ['ann', 'bob']
    """
    can_match = is_first or nodes is not None
    if any(base.__module__.partition(".")[0] == "networkx" for base in type(edges).__mro__):
        graph = Graph.from_networkx(edges)
        if graph.nodes is None and nodes is not None:  # its numbers are ids
            graph.nodes = NodeTable()
            graph.nodes.add(np.arange(graph.n_nodes))
        return graph if can_match or graph.nodes is None else edges
    return read_edges(edges, nodes=nodes) if can_match and is_table(edges) else edges


class BatchesAhead:
    """Batches of a stream of files, of which threads read the next ones while one is in use.

    Parameters
    ----------
    edges : stream
        It has a method `read_ahead`.
    n_jobs : int
    """

    def __init__(self, edges: Any, n_jobs: int) -> None:
        self._edges, self._n_jobs = edges, n_jobs
        self.rereadable: bool = getattr(edges, "rereadable", True)
        self.sources: list[str] = getattr(edges, "sources", [type(edges).__name__])

    def __iter__(self) -> Iterator[Any]:
        batches: Iterator[Any] = self._edges.read_ahead(self._n_jobs)
        return batches


def batches_of(edges: Any, n_jobs: int = 1) -> Iterable[Any]:
    """Return edges as an iterable of batches, which up to `n_jobs` threads may read ahead.

    Examples
    --------
    >>> batches_of(([0, 1], [1, 2]))
    [([0, 1], [1, 2])]
    """
    if isinstance(edges, Graph):
        return [edges.edges()]
    if isinstance(edges, tuple):
        return [edges]
    if isinstance(edges, str | PathLike):
        raise TypeError(
            f"edges are needed, got the path {edges!s}; read it with ohmlearn.read_edges"
        )
    refuse_table(edges)
    refuse_other_graph(edges)
    if not isinstance(edges, Iterable):
        raise TypeError(
            f"edges are needed as a Graph, a tuple (u, v) or (u, v, w) of arrays, or an iterable "
            f"of such tuples, got {type(edges).__name__}"
        )
    return BatchesAhead(edges, n_jobs) if n_jobs > 1 and hasattr(edges, "read_ahead") else edges


def without_tiny(edges: Any, smallest: float) -> Any:
    """Return a Graph without weights below `smallest`, if its components stay the same.

    Other edges are returned as they are.

    Examples
    --------
    >>> without_tiny(Graph.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 1e-40]), 1e-38)
    Graph(n_nodes=3, n_edges=2)
    """
    if not isinstance(edges, Graph) or edges.weights.min(initial=1.0) >= smallest:
        return edges
    u, v, w = edges.edges()
    large = w >= smallest
    smaller = Graph.from_edges(u[large], v[large], w[large], n_nodes=edges.n_nodes)
    return smaller if smaller.components()[0] == edges.components()[0] else edges


def graph_of(edges: Any, n_nodes: int | None) -> Graph:
    """Return the graph of edges in any form.

    Examples
    --------
    >>> graph_of(([0], [1], [0.5]), 4)
    Graph(n_nodes=4, n_edges=1)
    """
    return (
        edges
        if isinstance(edges, Graph)
        else Graph.from_batches(batches_of(edges), n_nodes=n_nodes)
    )
