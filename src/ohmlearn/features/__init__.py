"""Features of nodes together with their graph: smoothing along the edges."""

from ohmlearn.features.smoothing import smooth

__all__ = ["smooth"]
