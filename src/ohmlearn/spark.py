"""Sparsifiers and labels of edges in Spark DataFrames.

Executors sparsify the partitions of a DataFrame; the sparsifiers and the tables of their nodes are
merged in a tree. See docs/spark.md.
"""

from ohmlearn import _attach_names
from ohmlearn.checks.parameters import require_extra

require_extra("pyspark", "spark")
require_extra("pyarrow", "spark")

# Imported when first used, because executors need neither estimators nor scikit-learn.
__getattr__, __dir__, __all__ = _attach_names(__name__)
