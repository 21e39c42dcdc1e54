"""Features of nodes, used together with the graph."""

from ohmlearn.features.answers import GraphUse
from ohmlearn.features.classifier import GraphFeatureClassifier
from ohmlearn.features.homophily import Homophily
from ohmlearn.features.matching import Matched
from ohmlearn.features.read import read_features
from ohmlearn.features.regressor import GraphFeatureRegressor
from ohmlearn.features.smoother import GraphSmoother
from ohmlearn.features.smoothing import smooth
from ohmlearn.features.table import NodeFeatures

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
