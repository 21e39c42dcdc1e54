"""Sources of edges: what each of them offers, and passes that multiply by their Laplacian."""

from ohmlearn.edges.protocol import Batch, Edges

__all__ = ["Batch", "Edges"]
