"""Features of nodes, used together with the graph."""

from ohmlearn.features.feature_classifier import GraphFeatureClassifier
from ohmlearn.features.feature_regressor import GraphFeatureRegressor
from ohmlearn.features.node_features import Matched, NodeFeatures, read_features
from ohmlearn.features.smoothing import GraphSmoother, smooth
from ohmlearn.features.stacking import GraphUse, Homophily

__all__ = [
    "GraphFeatureClassifier", "GraphFeatureRegressor", "GraphSmoother", "GraphUse", "Homophily",
    "Matched", "NodeFeatures", "read_features", "smooth",
]  # fmt: skip
