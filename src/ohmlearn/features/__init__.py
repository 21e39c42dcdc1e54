"""Features of nodes, used together with the graph."""

from ohmlearn.features.matching import Matched
from ohmlearn.features.read import read_features
from ohmlearn.features.smoother import GraphSmoother
from ohmlearn.features.smoothing import smooth
from ohmlearn.features.table import NodeFeatures

__all__ = ["GraphSmoother", "Matched", "NodeFeatures", "read_features", "smooth"]
