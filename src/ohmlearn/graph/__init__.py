"""Graphs in memory, edges in any form, and passes over edges that are not in memory."""

from ohmlearn.graph.graph import Graph

__all__ = ["Graph"]
