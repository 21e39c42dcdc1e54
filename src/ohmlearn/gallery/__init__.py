"""Test graphs: meshes, point clouds, networks, random composites, and the paper's own experiment.

Every function returns a `Graph`, except `paper_points`. The same `random_state` gives the same
graph.
"""

from ohmlearn.gallery.graphs import *  # noqa: F403
from ohmlearn.gallery.graphs import __all__ as __all__
