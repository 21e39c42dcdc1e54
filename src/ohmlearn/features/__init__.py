"""Features of nodes, used together with the graph."""

from ohmlearn.features.matching import Matched
from ohmlearn.features.read import read_features
from ohmlearn.features.table import NodeFeatures

__all__ = ["Matched", "NodeFeatures", "read_features"]
