"""Edges in partitions, for any engine that distributes work: what Dask and Spark share.

Three pure functions are all that an engine needs, with results that have `to_bytes` and
`from_bytes`: `sparsify_partition`, `merge_partials`, and `multiply_partition`, whose products
`add_products` adds up. `LocalEdges` runs them in this process. See docs/cluster.md.
"""

from ohmlearn import _attach_names

# Imported when first used, because workers need neither estimators nor scikit-learn.
__getattr__, __dir__, __all__ = _attach_names(__name__)
