"""Node ids of the user, and the numbers that the rest of the library uses instead."""

from ohmlearn.nodes.node_table import NodeTable

__all__ = ["NodeTable"]
