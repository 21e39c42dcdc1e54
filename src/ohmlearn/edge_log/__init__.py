"""Logs of edges on disk, from which edges can be removed."""

from ohmlearn.edge_log.edge_log import EdgeLog, Removal, Transaction
from ohmlearn.edge_log.live_edges import LiveEdges
from ohmlearn.edge_log.log_sparsifier import LogFollower, LogSnapshot
from ohmlearn.edge_log.manifest import LogError

__all__ = [
    "EdgeLog", "LiveEdges", "LogError", "LogFollower", "LogSnapshot", "Removal", "Transaction",
]  # fmt: skip
