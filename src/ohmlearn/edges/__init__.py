"""Streams of edges: what they offer, and passes that multiply by their Laplacian.

A stream is an iterable of `EdgeBatch`. Its attribute `nodes` is the NodeTable that numbers its
nodes, or None if its ids already are numbers. If `rereadable` is true, every ``iter()`` starts from
the beginning.
"""

from ohmlearn.edges.protocol import EdgeBatch, TimedBatch

__all__ = ["EdgeBatch", "TimedBatch"]
