"""Sparsifiers and labels of edges on a Dask cluster.

Each partition streams through a sparsifier of its own on its worker; sparsifiers, with the tables
of their nodes, merge in a tree. See docs/cluster.md.
"""

from ohmlearn._validation import require_extra

require_extra("distributed", "dask")

from ohmlearn.dask._partitions import PartitionError  # noqa: E402
from ohmlearn.dask._tree import WorkerError  # noqa: E402
from ohmlearn.dask.api import Labelled, Sparsified, label, sparsify  # noqa: E402
from ohmlearn.dask.edges import ClusterEdges  # noqa: E402

__all__ = [
    "ClusterEdges",
    "Labelled",
    "PartitionError",
    "Sparsified",
    "WorkerError",
    "label",
    "sparsify",
]
