"""Features of nodes, used together with the graph."""

from ohmlearn.features.feature_classifier import GraphFeatureClassifier
from ohmlearn.features.feature_regressor import GraphFeatureRegressor
from ohmlearn.features.graph_smoother import GraphSmoother
from ohmlearn.features.graph_use import GraphUse, Homophily
from ohmlearn.features.match_nodes import Matched
from ohmlearn.features.node_features import NodeFeatures, read_features
from ohmlearn.features.smoothing import smooth

__all__ = [
    "GraphFeatureClassifier",
    "GraphFeatureRegressor",
    "GraphSmoother",
    "GraphUse",
    "Homophily",
    "Matched",
    "NodeFeatures",
    "read_features",
    "smooth",
]
