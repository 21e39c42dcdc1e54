"""A batch of edges, with or without times."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EdgeBatch", "TimedBatch"]


class EdgeBatch(NamedTuple):
    """A part of a stream of edges: arrays of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> u, v, w = EdgeBatch(np.array([0, 1]), np.array([1, 2]))
    >>> w is None
    True
    """

    u: NDArray[np.int32] | NDArray[np.int64]
    v: NDArray[np.int32] | NDArray[np.int64]
    w: NDArray[np.float32] | NDArray[np.float64] | None = None  # None means that all are 1


class TimedBatch(NamedTuple):
    """A part of a stream of edges that have times: arrays of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> u, v, w, t = TimedBatch(np.array([0]), np.array([1]), None, np.array([1.5]))
    >>> t
    array([1.5])
    """

    u: NDArray[np.int32] | NDArray[np.int64]
    v: NDArray[np.int32] | NDArray[np.int64]
    w: NDArray[np.float32] | NDArray[np.float64] | None
    t: NDArray[np.float64]  # dates are seconds since 1970
