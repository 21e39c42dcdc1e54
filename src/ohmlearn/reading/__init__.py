"""Edges, labels and features from files, tables, pipes and remote addresses."""

from ohmlearn.reading.file_edges import EdgeStream
from ohmlearn.reading.read_edges import read_edges
from ohmlearn.reading.read_options import ReadOptions
from ohmlearn.reading.source_errors import SourceError

__all__ = ["EdgeStream", "ReadOptions", "SourceError", "read_edges"]
