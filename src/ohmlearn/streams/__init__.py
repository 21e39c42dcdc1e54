"""Sources of edges: batch after batch, never all of them in memory.

A stream of edges is an iterable of `EdgeBatch`. Those made here begin anew with every
``iter()``, unless they say otherwise, and know the number of nodes where that can be known.
"""

from ohmlearn.streams.approximate_knn import FaissKnnEdges
from ohmlearn.streams.batch import EdgeBatch
from ohmlearn.streams.errors import SourceError
from ohmlearn.streams.kernel import KernelEdges, kernel_edges
from ohmlearn.streams.knn import KnnEdges, knn_edges
from ohmlearn.streams.read import EdgeStream, read_edges

__all__ = [
    "EdgeBatch",
    "EdgeStream",
    "FaissKnnEdges",
    "KernelEdges",
    "KnnEdges",
    "SourceError",
    "kernel_edges",
    "knn_edges",
    "read_edges",
]
