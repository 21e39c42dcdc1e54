"""Estimators with scikit-learn's interface.

`SparseHFSClassifier` and `SparseHFSRegressor` hold a sparsifier of a graph whose edges pass by once
or a few times; `StableHFSClassifier` and `StableHFSRegressor` hold the graph itself.
"""

from ohmlearn.semi_supervised.classifier import SparseHFSClassifier, StableHFSClassifier
from ohmlearn.semi_supervised.regressor import SparseHFSRegressor, StableHFSRegressor

__all__ = [
    "SparseHFSClassifier",
    "SparseHFSRegressor",
    "StableHFSClassifier",
    "StableHFSRegressor",
]
