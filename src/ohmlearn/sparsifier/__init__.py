"""Spectral sparsifiers of streams of edges."""

from ohmlearn.sparsifier.one_call import sparsify
from ohmlearn.sparsifier.streaming import StreamingSparsifier

__all__ = ["StreamingSparsifier", "sparsify"]
