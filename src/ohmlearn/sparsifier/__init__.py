"""Spectral sparsifiers of streams of edges."""

from ohmlearn.sparsifier.streaming_sparsifier import StreamingSparsifier, sparsify

__all__ = ["StreamingSparsifier", "sparsify"]
