"""Labels for graphs too dense or too fast to store.

Public names are imported when first used, so that ``import ohmlearn`` (and with it the start of
the command line) costs milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ohmlearn.certificate import Certificate, certify
    from ohmlearn.graph import Graph
    from ohmlearn.harmonic import HFSResult, refine, solve_hfs
    from ohmlearn.nodes import NodeTable
    from ohmlearn.resistance import effective_resistance
    from ohmlearn.semi_supervised import (
        SparseHFSClassifier,
        SparseHFSRegressor,
        StableHFSClassifier,
        StableHFSRegressor,
        suggest_neighbors,
    )
    from ohmlearn.solver import LaplacianSolver
    from ohmlearn.sparsifier import StreamingSparsifier, sparsify
    from ohmlearn.streams import kernel_edges, knn_edges, read_edges

__all__ = [
    "Certificate",
    "Graph",
    "HFSResult",
    "LaplacianSolver",
    "NodeTable",
    "SparseHFSClassifier",
    "SparseHFSRegressor",
    "StableHFSClassifier",
    "StableHFSRegressor",
    "StreamingSparsifier",
    "certify",
    "effective_resistance",
    "kernel_edges",
    "knn_edges",
    "read_edges",
    "refine",
    "solve_hfs",
    "sparsify",
    "suggest_neighbors",
]

# Where each public name lives. A new one is added here, in __all__ and under TYPE_CHECKING.
_HOMES = {
    "Certificate": "ohmlearn.certificate",
    "Graph": "ohmlearn.graph",
    "HFSResult": "ohmlearn.harmonic",
    "refine": "ohmlearn.harmonic",
    "solve_hfs": "ohmlearn.harmonic",
    "LaplacianSolver": "ohmlearn.solver",
    "NodeTable": "ohmlearn.nodes",
    "StreamingSparsifier": "ohmlearn.sparsifier",
    "SparseHFSClassifier": "ohmlearn.semi_supervised",
    "SparseHFSRegressor": "ohmlearn.semi_supervised",
    "StableHFSClassifier": "ohmlearn.semi_supervised",
    "StableHFSRegressor": "ohmlearn.semi_supervised",
    "suggest_neighbors": "ohmlearn.semi_supervised",
    "sparsify": "ohmlearn.sparsifier",
    "certify": "ohmlearn.certificate",
    "effective_resistance": "ohmlearn.resistance",
    "kernel_edges": "ohmlearn.streams",
    "knn_edges": "ohmlearn.streams",
    "read_edges": "ohmlearn.streams",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ohmlearn' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next access no longer comes here
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOMES.keys())
