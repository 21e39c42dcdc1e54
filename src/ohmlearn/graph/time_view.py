"""The graph at a moment: which edges of a stream with times count, and how much."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ohmlearn import _core

FADED = 40.0  # half-lives after which an edge is gone: its weight is 2**-40 of what it was
# An edge so old may be gone in a sparsifier already, if heavier edges beside it were still older.
FAINT = 20.0


@dataclass(frozen=True)
class TimeView:
    """Which edges count, and how much.

    With a half-life, an edge of time t has the weight w 2^(-(at - t) / half_life). An edge that is
    later, or older than 40 half-lives, does not count.
    """

    at: float | None = None  # the time of the view
    half_life: float | None = None  # needs `at`
    since: float | None = None  # earlier edges do not count; not together with a half-life

    @property
    def earliest(self) -> float:
        """The time of the oldest edges that count."""
        if self.half_life is not None and self.at is not None:
            return self.at - FADED * self.half_life
        return -np.inf if self.since is None else self.since

    def weigh(
        self,
        u: NDArray[Any],
        v: NDArray[Any],
        w: NDArray[Any] | None,
        t: NDArray[np.float64],
        component: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Return the edges of a batch that count, with their weights.

        With `component`, that of each node in a sparsifier, faint edges between components do not
        count: those older than 20 half-lives, whose weight is below a millionth.
        """
        if self.half_life is None:
            keep = t >= self.earliest
            if keep.all():
                return u, v, w
            return u[keep], v[keep], None if w is None else w[keep]
        assert self.at is not None
        faded, n_out = _core.fade_weights(w, t, self.at, self.half_life)
        limit = self.at - FAINT * self.half_life
        if n_out == 0 and (component is None or len(t) == 0 or t.min() >= limit):
            return u, v, faded
        keep = faded != 0.0
        if component is not None:
            faint = np.flatnonzero(keep & (t < limit))
            a, b = u[faint], v[faint]
            inside = (a < len(component)) & (b < len(component))  # other nodes have no component
            inside[inside] = component[a[inside]] == component[b[inside]]
            keep[faint[~inside]] = False
        return u[keep], v[keep], faded[keep]
