"""Estimators with the interface of scikit-learn, and advice on the number of neighbours."""

from ohmlearn.semi_supervised.calibration import AccuracyEstimate, Calibration
from ohmlearn.semi_supervised.classifier import HFSClassifier
from ohmlearn.semi_supervised.neighbors import NeighborAdvice, suggest_neighbors
from ohmlearn.semi_supervised.regressor import HFSRegressor
from ohmlearn.semi_supervised.suggest import Suggestion

__all__ = [
    "AccuracyEstimate",
    "Calibration",
    "HFSClassifier",
    "HFSRegressor",
    "NeighborAdvice",
    "Suggestion",
    "suggest_neighbors",
]
