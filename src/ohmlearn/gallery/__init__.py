"""Test graphs: meshes, point clouds, networks, random composites, and the paper's own experiment.

Every function returns a `Graph`, except `paper_points`. The same `random_state` gives the same
graph.
"""

from ohmlearn.gallery.graph_gallery import *  # noqa: F403
from ohmlearn.gallery.graph_gallery import __all__ as __all__
