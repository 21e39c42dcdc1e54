"""Test graphs: meshes, point clouds, networks, random composites, and the paper's own experiment.

Every function is deterministic in its arguments and returns a `Graph`, except `paper_points`.
"""

from ohmlearn.gallery.graphs import *  # noqa: F403
from ohmlearn.gallery.graphs import __all__ as __all__
