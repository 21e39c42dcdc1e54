"""Estimators with scikit-learn's interface, and a helper to choose the number of neighbours.

`SparseHFSClassifier` and `SparseHFSRegressor` hold a sparsifier of a graph whose edges pass by once
or a few times; `StableHFSClassifier` and `StableHFSRegressor` hold the graph itself.
"""

from ohmlearn.semi_supervised.classifier import SparseHFSClassifier, StableHFSClassifier
from ohmlearn.semi_supervised.neighbors import NeighborAdvice, suggest_neighbors
from ohmlearn.semi_supervised.regressor import SparseHFSRegressor, StableHFSRegressor

__all__ = [
    "NeighborAdvice",
    "SparseHFSClassifier",
    "SparseHFSRegressor",
    "StableHFSClassifier",
    "StableHFSRegressor",
    "suggest_neighbors",
]
