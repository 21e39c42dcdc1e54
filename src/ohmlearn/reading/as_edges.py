"""Edges in any form become `Edges`: the only place that asks what an object is."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ohmlearn.checks.edge_arrays import is_table, refuse_other_graph, refuse_table
from ohmlearn.edges.in_memory import ArrayEdges, GraphEdges, IterableEdges, NamedEdges
from ohmlearn.edges.protocol import Edges
from ohmlearn.edges.wrapped import CheckedEdges
from ohmlearn.graph import Graph
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.read_edges import read_edges

__all__ = ["as_edges", "as_named_edges"]


@runtime_checkable
class HasLiveEdges(Protocol):
    """A log, whose edges may change; those of one moment do not."""

    def live_edges(self) -> Edges:
        """Return the edges as they are now."""


def as_edges(given: Any, nodes: NodeTable | None = None, *, is_first: bool = True) -> Edges:
    """Return edges in any form as `Edges`.

    Parameters
    ----------
    given : Edges, EdgeLog, Graph, tuple of arrays, graph of networkx, table, iterable of batches, \
or function that returns one
    nodes : NodeTable, optional
        The ids so far, which a table continues.
    is_first : bool
        Whether no edges were taken before. If some were, and had numbers but no ids, ids cannot be
        matched with them. Then graphs and tables with ids are refused.

    Examples
    --------
    >>> import networkx
    >>> as_edges(networkx.Graph([("ann", "bob")])).nodes.ids().tolist()
    ['ann', 'bob']
    >>> [batch.u.tolist() for batch in as_edges([([0, 1], [1, 2]), ([2], [3])])]
    [[0, 1], [2]]
    """
    if isinstance(given, Edges):
        is_own = type(given).__module__.partition(".")[0] == "ohmlearn"
        return given if is_own else CheckedEdges(given)
    if isinstance(given, HasLiveEdges):
        return given.live_edges()
    if isinstance(given, Graph):
        return GraphEdges(given)
    if isinstance(given, tuple):
        return ArrayEdges(given)
    if isinstance(given, str | PathLike):
        raise TypeError(
            f"edges are needed, got the path {given!s}; read it with ohmlearn.read_edges"
        )
    can_match = is_first or nodes is not None
    if any(base.__module__.partition(".")[0] == "networkx" for base in type(given).__mro__):
        graph = Graph.from_networkx(given)
        if graph.nodes is None and nodes is not None:  # its numbers are ids
            graph.nodes = NodeTable()
            graph.nodes.add(np.arange(graph.n_nodes))
        if can_match or graph.nodes is None:
            return GraphEdges(graph)
    if can_match and is_table(given):
        return read_edges(given, nodes=nodes)
    refuse_table(given)
    refuse_other_graph(given)
    if isinstance(given, Iterable) or callable(given):
        return IterableEdges(given)
    raise TypeError(
        f"edges are needed as a Graph, a tuple (u, v) or (u, v, w) of arrays, or an iterable of "
        f"such tuples, got {type(given).__name__}"
    )


def as_named_edges(given: Any) -> Edges:
    """Return edges in any form; arrays and batches have ids of any type, not numbers.

    Examples
    --------
    >>> edges = as_named_edges((["ann"], ["bob"]))
    >>> [batch.v.tolist() for batch in edges], edges.nodes.ids().tolist()
    ([[1]], ['ann', 'bob'])
    """
    if isinstance(given, tuple):
        return NamedEdges([given])
    edges = as_edges(given)
    return NamedEdges(given) if isinstance(edges, IterableEdges) else edges
