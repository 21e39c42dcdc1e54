"""Shared code of the tests of streams of edges."""

import numpy as np


def edges(stream):
    """Edges with the user's ids, and weights or None."""
    batches = list(stream)
    ids = stream.nodes.ids()
    u, v = ([node for batch in batches for node in ids[batch[side]].tolist()] for side in (0, 1))
    weighted = bool(batches) and batches[0].w is not None
    return u, v, np.concatenate([b.w for b in batches]).tolist() if weighted else None


class Batches:
    """Start from the beginning in each pass."""

    def __init__(self, graph, size):
        self.edges, self.size = graph.edges(), size

    def __iter__(self):
        for start in range(0, len(self.edges[0]), self.size):
            yield tuple(part[start : start + self.size] for part in self.edges)
