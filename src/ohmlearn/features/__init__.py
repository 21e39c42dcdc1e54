"""Features of nodes together with their graph: smoothing along the edges."""

from ohmlearn.features.smoother import GraphSmoother
from ohmlearn.features.smoothing import smooth

__all__ = ["GraphSmoother", "smooth"]
