"""Estimators with the interface of scikit-learn, and advice on the number of neighbours."""

from ohmlearn.estimators.calibration import AccuracyEstimate, Calibration
from ohmlearn.estimators.hfs_classifier import HFSClassifier
from ohmlearn.estimators.hfs_regressor import HFSRegressor
from ohmlearn.estimators.suggest_labels import Suggestion
from ohmlearn.estimators.suggest_neighbors import NeighborAdvice, suggest_neighbors

__all__ = [
    "AccuracyEstimate",
    "Calibration",
    "HFSClassifier",
    "HFSRegressor",
    "NeighborAdvice",
    "Suggestion",
    "suggest_neighbors",
]
