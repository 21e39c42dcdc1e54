"""Sparsifiers and labels of edges on a Dask cluster.

Each partition streams through a sparsifier of its own on its worker; sparsifiers, with the tables
of their nodes, merge in a tree. See docs/cluster.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ohmlearn.validation.parameters import require_extra

if TYPE_CHECKING:
    from ohmlearn.dask.api import Labelled, Sparsified, label, sparsify
    from ohmlearn.dask.edges import ClusterEdges
    from ohmlearn.dask.partitions import PartitionError
    from ohmlearn.dask.tree import WorkerError

__all__ = [
    "ClusterEdges",
    "Labelled",
    "PartitionError",
    "Sparsified",
    "WorkerError",
    "label",
    "sparsify",
]

require_extra("distributed", "dask")

# Imported when first used: workers need neither estimators nor scikit-learn.
_HOMES = {
    "ClusterEdges": "ohmlearn.dask.edges",
    "Labelled": "ohmlearn.dask.api",
    "PartitionError": "ohmlearn.dask.partitions",
    "Sparsified": "ohmlearn.dask.api",
    "WorkerError": "ohmlearn.dask.tree",
    "label": "ohmlearn.dask.api",
    "sparsify": "ohmlearn.dask.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ohmlearn.dask' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next access no longer comes here
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOMES.keys())
