"""Edges in whatever form they come, as batches or as a graph."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ohmlearn._validation import check_batch, refuse_other_graph
from ohmlearn.graph import Graph

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
    refuse_other_graph(edges)
    if not isinstance(edges, Iterable):
        raise TypeError(
            f"edges are needed as a Graph, a tuple (u, v) or (u, v, w) of arrays, or an iterable "
            f"of such tuples, got {type(edges).__name__}"
        )
    return edges


def graph_of(edges: Any, n_nodes: int | None) -> Graph:
    """Return the graph of a stream.

    Examples
    --------
    >>> graph_of([([0], [1]), ([1], [2], [0.5])], 4).edges()
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1. , 0.5]))
    """
    if isinstance(edges, Graph):
        return edges
    batches = [check_batch(batch, number) for number, batch in enumerate(batches_of(edges))]
    if not batches:
        return Graph.from_edges([], [], n_nodes=n_nodes)
    u, v = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    w = None
    if any(len(batch) == 3 for batch in batches):
        w = np.concatenate([b[2] if len(b) == 3 else np.ones(len(b[0])) for b in batches])
    return Graph.from_edges(u, v, w, n_nodes)
