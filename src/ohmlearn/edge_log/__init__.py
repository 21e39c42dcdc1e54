"""Logs of edges on disk, from which edges can be removed."""

from ohmlearn.edge_log.errors import LogError
from ohmlearn.edge_log.live import LiveEdges
from ohmlearn.edge_log.log import EdgeLog, Removal

__all__ = ["EdgeLog", "LiveEdges", "LogError", "Removal"]
