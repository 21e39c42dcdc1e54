"""The parameters of a saved sparsifier: files can hold anything, so names and types are checked.

The state of the sampler lies beside them in the file, as arrays by name; the samplers check it
themselves (`from_state`).
"""

import json
from types import NoneType
from typing import Any

import numpy as np

__all__ = ["PARAMETERS", "read_parameters"]

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
