"""What a saved sparsifier consists of: parameters, and the state of its sampler as arrays.

Files and pickles can hold anything. Here names, types and shapes are checked; the sampler itself
checks the numbers.
"""

import json
from types import NoneType
from typing import Any

import numpy as np

from ohmlearn import _core
from ohmlearn._storage import check_arrays

__all__ = ["PARAMETERS", "STATE", "check_state", "read_parameters"]

# Parameters in a file, beside the seed, and the types they may have there.
PARAMETERS: dict[str, tuple[type, ...]] = {
    "n_nodes": (int, NoneType),
    "epsilon": (float,),
    "max_edges": (int, NoneType),
    "memory": (int, str, NoneType),
    "scheme": (str,),
    "constants": (str,),
    "n_jobs": (int, NoneType),
    "verbose": (int,),
}
# The state of a C++ sampler.
STATE: dict[str, type] = {
    "nodes": np.uint8,
    "clusters": np.uint8,
    "pairs": np.uint8,
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


def read_parameters(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a saved sparsifier, with its seed; their types are right."""
    text = np.asarray(arrays.get("parameters"))
    if text.dtype.kind != "U" or text.ndim != 0:
        raise ValueError("its parameters are missing")
    try:
        parameters = json.loads(str(text))
    except (ValueError, RecursionError):
        parameters = None
    expected = {**PARAMETERS, "seed": (int,)}
    if not isinstance(parameters, dict) or set(parameters) != set(expected):
        raise ValueError(f"its parameters must be {', '.join(expected)}")
    for name, types in expected.items():
        if not isinstance(parameters[name], types):
            raise ValueError(f"its parameter {name} = {parameters[name]!r:.80} has the wrong type")
    if abs(parameters["n_jobs"] or 1) >= 2**31:
        raise ValueError(f"its parameter n_jobs = {parameters['n_jobs']} is out of range")
    return parameters
