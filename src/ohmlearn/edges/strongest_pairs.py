"""The pairs of nodes with the largest values in a stream of edges, found in one or two passes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._arrays_file import pack_arrays, unpack_arrays
from ohmlearn.edges.protocol import Batch, Edges, one_pass
from ohmlearn.graph.time_view import TimeView

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Measure = Callable[[Nodes, Nodes], Floats]
CANDIDATES = 4096  # pairs that are kept for each measure while edges are read
PAIRS = 1 << 20  # edges that are read at a time
CACHED = 1 << 15  # edges that are measured at a time, whose values stay in the cache


class NodePairs(NamedTuple):
    """Pairs of nodes u < v, with the sum of the weights of their edges.

    `x` is what a measure says of them for weight 1; the value of a pair is w x.
    """

    u: Nodes
    v: Nodes
    w: Floats
    x: Floats

    def take(self, at: NDArray[np.intp] | NDArray[np.bool_]) -> "NodePairs":
        """Return some of the pairs."""
        return NodePairs(self.u[at], self.v[at], self.w[at], self.x[at])


NONE = NodePairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class PairsFound(NamedTuple):
    """What is found in some edges: the best pairs for each measure, and those that are chosen."""

    best: list[NodePairs]
    chosen: NodePairs
    is_whole: bool  # whether no pair had to be dropped, so that all weights are complete
    n_parts: int

    def to_bytes(self) -> bytes:
        """Return it as bytes with a checksum."""
        every = [self.chosen, *self.best]
        ends = np.cumsum([len(pairs.u) for pairs in every])
        columns = NodePairs(*(np.concatenate(each) for each in zip(*every, strict=True)))
        facts = np.array([self.is_whole, self.n_parts])
        return pack_arrays({**columns._asdict(), "ends": ends, "facts": facts})

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the pairs of a partition") -> "PairsFound":
        """Return what `to_bytes` was called on."""
        arrays = unpack_arrays(content, name)
        ends, (is_whole, n_parts) = arrays["ends"][:-1], arrays["facts"].tolist()
        columns = (np.split(arrays[one], ends) for one in NodePairs._fields)
        chosen, *best = (NodePairs(*parts) for parts in zip(*columns, strict=True))
        return cls(best, chosen, bool(is_whole), n_parts)


@dataclass(frozen=True)
class PairSearch:
    """One look at a stream of edges, or at each part of it, wherever that is.

    Chosen are the pairs at some nodes; or, if there are `keys`, the pairs u * n_nodes + v in them.
    """

    measures: Sequence[Measure]
    around: Nodes
    n_nodes: int
    view: TimeView | None = None
    keys: Nodes | None = None

    def read(self, edges: Edges) -> PairsFound:
        """Return what is found in a stream."""
        found: PairsFound | None = None
        for part in _read(edges, self.n_nodes, self.view):
            best = [_strongest(_measure(part, one), CANDIDATES) for one in self.measures]
            is_whole = len(part.u) <= CANDIDATES
            new = PairsFound(best, part.take(self._is_chosen(part)), is_whole, 1)
            found = new if found is None else merge_pairs([found, new], self.n_nodes)
        return found or PairsFound([NONE] * len(self.measures), NONE, True, 0)

    def _is_chosen(self, pairs: NodePairs) -> NDArray[np.bool_]:
        if self.keys is not None:
            return np.isin(pairs.u * self.n_nodes + pairs.v, self.keys)
        is_around = np.zeros(self.n_nodes, dtype=np.bool_)
        is_around[self.around] = True
        return is_around[pairs.u] | is_around[pairs.v]


def merge_pairs(parts: list[PairsFound], n_nodes: int) -> PairsFound:
    """Return what is found in all parts."""
    joined = [_join(list(each), n_nodes)
              for each in zip(*(part.best for part in parts), strict=True)]  # fmt: skip
    return PairsFound(
        [_strongest(pairs, CANDIDATES) for pairs in joined],
        _join([part.chosen for part in parts], n_nodes),
        all(part.is_whole for part in parts) and all(len(x.u) <= CANDIDATES for x in joined),
        sum(part.n_parts for part in parts),
    )


def find_strongest(
    edges: Edges,
    measures: Sequence[Measure],
    count: int,
    around: Nodes,
    *,
    n_nodes: int,
    view: TimeView | None = None,
) -> tuple[list[NodePairs], list[NodePairs]]:
    """Return for each measure the pairs with the largest values, and the pairs at some nodes.

    A measure returns the value of pairs of weight 1; that of a pair is multiplied by its weight,
    the sum over all its edges. The edges are read once, and a second time if they are many: each
    part of the stream keeps the best `CANDIDATES` pairs, and if pairs of several parts had to be
    dropped, the weights of the best ones are then counted exactly.
    """
    found = edges.find_pairs(PairSearch(measures, around, n_nodes, view))
    best, chosen = found.best, found.chosen
    if not found.is_whole and found.n_parts > 1:
        keys = np.unique(np.concatenate([pairs.u * n_nodes + pairs.v for pairs in best]))
        _, exact, *_ = edges.find_pairs(PairSearch([], around, n_nodes, view, keys))
        places = [np.searchsorted(keys, pairs.u * n_nodes + pairs.v) for pairs in best]
        best = [pairs._replace(w=exact.w[at]) for pairs, at in zip(best, places, strict=True)]
    incident = [chosen.take((chosen.u == node) | (chosen.v == node)) for node in around]
    return [_strongest(pairs, count) for pairs in best], incident


def _read(edges: Edges, n_nodes: int, view: TimeView | None) -> Iterator[NodePairs]:
    """Yield the pairs of each part of the edges, every pair once."""
    with one_pass(edges) as batches:
        for number, (u, v, w, t) in enumerate(batches):
            if view is not None:
                u, v, w = view.weigh(u, v, w, Batch(u, v, w, t).need_times(number))
            for first in range(0, len(u), PAIRS):
                part = slice(first, first + PAIRS)
                a, b = (end[part].astype(np.int64) for end in (u, v))
                weights = np.ones(len(a)) if w is None else w[part].astype(np.float64)
                loops = a == b
                pairs = NodePairs(np.minimum(a, b), np.maximum(a, b), weights, np.zeros(len(a)))
                yield _join([pairs.take(~loops) if loops.any() else pairs], n_nodes)


def _join(parts: list[NodePairs], n_nodes: int) -> NodePairs:
    """Return the pairs of all parts, each once, sorted."""
    joined = NodePairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    given = joined.u * n_nodes + joined.v
    if np.all(given[1:] > given[:-1]):  # as those of a graph in memory
        return joined
    keys, first, at = np.unique(given, return_index=True, return_inverse=True)
    sums: Floats = np.bincount(at, joined.w, len(keys)).astype(np.float64)
    return joined.take(first)._replace(w=sums)


def _measure(pairs: NodePairs, measure: Measure) -> NodePairs:
    """Return the pairs with what a measure says of them."""
    parts = (slice(at, at + CACHED) for at in range(0, len(pairs.u), CACHED))
    return pairs._replace(x=np.concatenate([measure(pairs.u[at], pairs.v[at]) for at in parts]))


def _strongest(pairs: NodePairs, count: int) -> NodePairs:
    """Return the pairs with the largest absolute values, largest first."""
    values = np.abs(pairs.w * pairs.x)
    if len(values) > count:
        chosen = np.argpartition(-values, count)[:count]
        pairs, values = pairs.take(chosen), values[chosen]
    return pairs.take(np.lexsort((pairs.v, pairs.u, -values)))
