"""Edges in any form, as batches or as a graph."""

from collections.abc import Iterable
from os import PathLike
from typing import Any

from ohmlearn.graph.graph import Graph
from ohmlearn.validation.edges import refuse_other_graph

__all__ = ["batches_of", "graph_of"]


def batches_of(edges: Any) -> Iterable[Any]:
    """Return edges as an iterable of batches.

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
    refuse_other_graph(edges)
    if not isinstance(edges, Iterable):
        raise TypeError(
            f"edges are needed as a Graph, a tuple (u, v) or (u, v, w) of arrays, or an iterable "
            f"of such tuples, got {type(edges).__name__}"
        )
    return edges


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
