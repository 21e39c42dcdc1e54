"""Streams of edges: batches that are read or computed one after the other.

A stream is an iterable of `EdgeBatch`. Its attribute `nodes` is the NodeTable that numbers its
nodes, or None if its ids already are numbers. If `rereadable` is true, every ``iter()`` starts from
the beginning.
"""

from ohmlearn.streams.batch import EdgeBatch, TimedBatch
from ohmlearn.streams.edge_stream import EdgeStream
from ohmlearn.streams.errors import SourceError
from ohmlearn.streams.kernel import KernelEdges, kernel_edges
from ohmlearn.streams.knn import FaissKnnEdges, KnnEdges, knn_edges
from ohmlearn.streams.options import ReadOptions
from ohmlearn.streams.read import read_edges

__all__ = [
    "EdgeBatch",
    "EdgeStream",
    "FaissKnnEdges",
    "KernelEdges",
    "KnnEdges",
    "ReadOptions",
    "SourceError",
    "TimedBatch",
    "kernel_edges",
    "knn_edges",
    "read_edges",
]
