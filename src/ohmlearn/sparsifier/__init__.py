"""Spectral sparsifiers of streams of edges."""

from ohmlearn.sparsifier.streaming import StreamingSparsifier, sparsify

__all__ = ["StreamingSparsifier", "sparsify"]
