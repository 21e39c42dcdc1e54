"""The pairs of nodes with the largest values in a stream of edges, found in one or two passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.edges.protocol import Batch, Edges, one_pass
from ohmlearn.graph.time_view import TimeView

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Measure = Callable[[Nodes, Nodes], Floats]
CANDIDATES = 4096  # pairs that are kept for each measure while edges are read
PAIRS = 1 << 20  # edges that are read at a time
CACHED = 1 << 15  # edges that are measured at a time, whose values stay in the cache


class NodePairs(NamedTuple):
    """Pairs of nodes u < v, with the sum of the weights of their edges."""

    u: Nodes
    v: Nodes
    w: Floats

    def take(self, at: NDArray[np.intp] | NDArray[np.bool_]) -> "NodePairs":
        """Return some of the pairs."""
        return NodePairs(self.u[at], self.v[at], self.w[at])


NONE = NodePairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def find_strongest(
    edges: Edges,
    measures: Sequence[Measure],
    count: int,
    around: Nodes,
    *,
    n_nodes: int,
    view: TimeView | None = None,
    n_jobs: int = 1,
) -> tuple[list[NodePairs], list[NodePairs]]:
    """Return for each measure the pairs with the largest values, and the pairs at some nodes.

    A measure returns the value of pairs of weight 1; that of a pair is multiplied by its weight,
    the sum over all its edges. The edges are read once, and a second time if they are many: each
    part of the stream keeps the best `CANDIDATES` pairs, and if pairs of several parts had to be
    dropped, the weights of the best ones are then counted exactly.
    """
    best = [NONE for _ in measures]
    near: list[NodePairs] = []
    is_around = np.zeros(n_nodes, dtype=np.bool_)
    is_around[around] = True
    dropped, n_parts = False, 0
    for part in _read(edges, n_nodes, view, n_jobs):
        n_parts += 1
        near.append(part.take(is_around[part.u] | is_around[part.v]))
        for at, measure in enumerate(measures):
            found = _join([best[at], _strongest(part, measure, CANDIDATES)], n_nodes)
            dropped |= len(part.u) > CANDIDATES
            best[at] = _strongest(found, measure, CANDIDATES)
    if dropped and n_parts > 1:
        keys = np.unique(np.concatenate([pairs.u * n_nodes + pairs.v for pairs in best]))
        weights = np.zeros(len(keys))
        for part in _read(edges, n_nodes, view, n_jobs):
            key = part.u * n_nodes + part.v
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known = keys[place] == key
            weights[place[known]] += part.w[known]
        best = [
            pairs._replace(w=weights[np.searchsorted(keys, pairs.u * n_nodes + pairs.v)])
            for pairs in best
        ]
    joined = _join(near or [NONE], n_nodes)
    incident = [joined.take((joined.u == node) | (joined.v == node)) for node in around]
    return [_strongest(*both, count) for both in zip(best, measures, strict=True)], incident


def _read(edges: Edges, n_nodes: int, view: TimeView | None, n_jobs: int) -> Iterator[NodePairs]:
    """Yield the pairs of each part of the edges, every pair once."""
    with one_pass(edges, n_jobs) as batches:
        for number, (u, v, w, t) in enumerate(batches):
            if view is not None:
                u, v, w = view.weigh(u, v, w, Batch(u, v, w, t).need_times(number))
            for first in range(0, len(u), PAIRS):
                part = slice(first, first + PAIRS)
                a, b = (end[part].astype(np.int64) for end in (u, v))
                weights = np.ones(len(a)) if w is None else w[part].astype(np.float64)
                loops = a == b
                pairs = NodePairs(np.minimum(a, b), np.maximum(a, b), weights)
                yield _join([pairs.take(~loops) if loops.any() else pairs], n_nodes)


def _join(parts: list[NodePairs], n_nodes: int) -> NodePairs:
    """Return the pairs of all parts, each once, sorted."""
    u, v, w = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    given = u * n_nodes + v
    if np.all(given[1:] > given[:-1]):  # as those of a graph in memory
        return NodePairs(u, v, w)
    keys, at = np.unique(given, return_inverse=True)
    sums: Floats = np.bincount(at, w, len(keys)).astype(np.float64)
    return NodePairs(keys // n_nodes, keys % n_nodes, sums)


def _strongest(pairs: NodePairs, measure: Measure, count: int) -> NodePairs:
    """Return the pairs with the largest absolute values, largest first."""
    parts = (slice(at, at + CACHED) for at in range(0, len(pairs.u), CACHED))
    measured = [measure(pairs.u[part], pairs.v[part]) for part in parts]
    values = np.abs(pairs.w * np.concatenate(measured or [pairs.w]))
    if len(values) > count:
        chosen = np.argpartition(-values, count)[:count]
        pairs, values = pairs.take(chosen), values[chosen]
    return pairs.take(np.lexsort((pairs.v, pairs.u, -values)))
