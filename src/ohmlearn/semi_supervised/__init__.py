"""Estimators with the interface of scikit-learn, and advice on the number of neighbours."""

from ohmlearn.semi_supervised.classifier import HFSClassifier
from ohmlearn.semi_supervised.neighbors import NeighborAdvice, suggest_neighbors
from ohmlearn.semi_supervised.regressor import HFSRegressor

__all__ = ["HFSClassifier", "HFSRegressor", "NeighborAdvice", "suggest_neighbors"]
