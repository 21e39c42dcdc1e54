"""Edges between points: nearest neighbours, and all pairs weighted by a kernel."""

from ohmlearn.points.kernel_pairs import KernelEdges, kernel_edges
from ohmlearn.points.neighbor_edges import FaissKnnEdges, KnnEdges, knn_edges

__all__ = ["FaissKnnEdges", "KernelEdges", "KnnEdges", "kernel_edges", "knn_edges"]
