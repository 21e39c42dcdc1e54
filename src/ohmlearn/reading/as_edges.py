"""Edges in any form become `Edges`: the only place that asks what an object is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Protocol, runtime_checkable

from ohmlearn.checks.edge_arrays import is_from, is_table, refuse_other_graph
from ohmlearn.edges.in_memory import ArrayEdges, GraphEdges, IterableEdges, NamedEdges
from ohmlearn.edges.protocol import Edges
from ohmlearn.edges.wrapped import CheckedEdges
from ohmlearn.errors import InputTypeError
from ohmlearn.graph import Graph
from ohmlearn.graph.graph import graph_of
from ohmlearn.nodes import NodeTable
from ohmlearn.nodes.node_table import ids_or_numbers, join_tables
from ohmlearn.reading.array_reader import columns_of_rows
from ohmlearn.reading.read_edges import read_edges


@runtime_checkable
class KeepsGraph(Protocol):
    """A sparsifier: something that has a graph at a time."""

    def snapshot(self, *, at: object = None, since: object = None) -> Graph:
        """Return the graph."""


@runtime_checkable
class HasLiveEdges(Protocol):
    """A log, whose edges may change; those of one moment do not."""

    def live_edges(self) -> Edges:
        """Return the edges as they are now."""


def as_edges(given: object, nodes: NodeTable | None = None, *, is_first: bool = True) -> Edges:
    """Return edges in any form as `Edges`; `nodes` has the ids so far, which a table continues.

    If edges were taken before (`is_first` is False) and had numbers but no ids, ids cannot be
    matched with them. Then graphs and tables with ids are refused.
    """
    if isinstance(given, Edges):
        return CheckedEdges(given) if _is_foreign(type(given)) else given
    if isinstance(given, HasLiveEdges):
        return given.live_edges()
    if isinstance(given, Graph):
        return GraphEdges(given)
    if isinstance(given, tuple):
        return ArrayEdges(given)
    can_match = is_first or nodes is not None
    if (graph := graph_of(given)) is not None:
        if nodes is not None and (isinstance(given, Mapping) or is_from("networkx", given)):
            graph.nodes = ids_or_numbers(graph.nodes, graph.n_nodes)  # its numbers are ids
        if nodes is not None and graph.nodes is not None and not graph.nodes.agrees_with(nodes):
            return read_edges(graph, nodes=nodes)
        if can_match or graph.nodes is None:
            return GraphEdges(graph)
    columns = columns_of_rows(given)
    if columns is not None and nodes is None and not isinstance(columns[0][0], str):
        return ArrayEdges(columns)  # numbers, as in arrays
    several = given if isinstance(given, list) and given else [given]
    is_path = all(isinstance(one, str | PathLike) for one in several)
    if is_path or columns is not None or is_table(given) or graph is not None:
        if can_match:
            return read_edges(given, nodes=nodes)
        shown = f"the path {given!s}" if is_path else f"a {type(given).__name__}"
        raise InputTypeError(
            f"the edges so far have numbers, but no ids, with which those of {shown} could be "
            f"matched",
            remedy="read all edges with ohmlearn.read_edges, which numbers the nodes",
        )
    if isinstance(given, Iterable) or callable(given):
        return IterableEdges(given)
    refuse_other_graph(given, "edges are")


def as_graph(given: object) -> Graph:
    """Return edges in any form, or a sparsifier, as a Graph, with the ids of its nodes."""
    if isinstance(given, KeepsGraph) and graph_of(given) is None:  # PyG's Data has another one
        return given.snapshot()
    if isinstance(given, list) and given and isinstance(given[0], list):
        raise InputTypeError(
            "a list of lists may be a matrix or edges",
            remedy="give a matrix as an array, and edges as tuples (u, v) or (u, v, w)",
        )
    return as_edges(given).to_graph()


def _is_foreign(kind: type[Edges]) -> bool:
    """Whether a class of the user defines nothing but batches, so that these are to be checked."""
    bases = kind.__mro__[: kind.__mro__.index(Edges)]
    own = any(base.__module__.partition(".")[0] == "ohmlearn" for base in bases)
    return not own and (kind.feed, kind.open_passes, kind.to_graph) == (
        Edges.feed,
        Edges.open_passes,
        Edges.to_graph,
    )


def as_edges_and_sparsifier(
    edges: object, h: object, call: str, at: object = None, since: object = None
) -> tuple[Edges, Graph]:
    """Return the edges of a graph, and its sparsifier `h` as a Graph.

    Arguments in the wrong order and different ids are refused; `call` is what the user writes, for
    messages. `at` and `since` choose a graph of `h`, see `StreamingSparsifier.snapshot`. The `view`
    of the sparsifier says which of the edges it approximates, if times matter.
    """
    if isinstance(edges, Edges) and edges.is_sample:
        raise TypeError(
            f"edges come first and the sparsifier second, {call}, but the first argument is a "
            f"{type(edges).__name__}; swap the two"
        )
    moment = {name: value for name, value in (("at", at), ("since", since)) if value is not None}
    graph = h
    if isinstance(h, KeepsGraph) and graph_of(h) is None:
        graph = h.snapshot(**moment)
    elif moment:
        raise TypeError(
            f"{' and '.join(moment)} can be given with a StreamingSparsifier only, got "
            f"{type(h).__name__}"
        )
    sparsifier = graph_of(graph)
    if sparsifier is None:
        swapped = isinstance(edges, Graph) and isinstance(graph, Iterable)
        remedy = "; swap the two" if swapped and not isinstance(graph, str) else ""
        raise TypeError(
            f"the sparsifier must be a Graph or have a method snapshot(), and it comes after the "
            f"edges, {call}; got {type(graph).__name__}{remedy}"
        )
    found = as_edges(edges, sparsifier.nodes, is_first=False)
    join_tables(found.nodes, sparsifier.nodes)
    return found, sparsifier


def as_named_edges(given: object) -> Edges:
    """Return edges in any form; arrays and batches have ids of any type, not numbers."""
    if isinstance(given, tuple):
        return NamedEdges([given])
    columns = columns_of_rows(given)
    if columns is not None:
        return NamedEdges([columns])
    edges = as_edges(given)
    return NamedEdges(edges.given) if isinstance(edges, IterableEdges) else edges
