"""What the state of a sampler consists of, as arrays.

Files and pickles can hold anything. Here names, types and shapes are checked; the sampler itself
checks the numbers.
"""

from typing import Any

import numpy as np

from ohmlearn import _core
from ohmlearn._storage import check_arrays

__all__ = ["STATE", "check_state"]

# The state of a C++ sampler.
STATE: dict[str, type] = {
    "nodes": np.uint8,
    "clusters": np.uint8,
    "u": np.int32,
    "v": np.int32,
    "w": np.float32,
    "counters": np.int64,
    "numbers": np.float64,
}


def check_state(arrays: dict[str, Any], n_nodes: int) -> int:
    """Return the number of nodes of a C++ sampler's state, at least `n_nodes`."""
    check_arrays(arrays, STATE)
    found = len(arrays["nodes"]) // _core.RECORD_BYTES
    if found < n_nodes:
        raise ValueError(f"there are records for {found} of {n_nodes} nodes")
    return found
