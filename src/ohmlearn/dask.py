"""Sparsifiers and labels of edges on a Dask cluster.

Each worker sparsifies its partitions; the sparsifiers and the tables of their nodes are merged in a
tree. See docs/cluster.md.
"""

from ohmlearn import _attach_names
from ohmlearn.checks.parameters import require_extra

require_extra("distributed", "dask")

# Imported when first used, because workers need neither estimators nor scikit-learn.
__getattr__, __dir__, __all__ = _attach_names(__name__)
