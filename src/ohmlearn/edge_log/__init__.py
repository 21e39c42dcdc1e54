"""Logs of edges on disk, from which edges can be removed."""

from ohmlearn.edge_log.edge_log import EdgeLog, Removal
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_errors import LogError

__all__ = ["EdgeLog", "LiveEdges", "LogError", "Removal"]
