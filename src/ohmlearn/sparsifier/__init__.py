"""Spectral sparsifiers of streams of edges."""

from ohmlearn.sparsifier.sparsify import sparsify
from ohmlearn.sparsifier.streaming_sparsifier import StreamingSparsifier

__all__ = ["StreamingSparsifier", "sparsify"]
