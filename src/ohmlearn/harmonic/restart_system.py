"""Random walks with restart: a model for graphs with hubs.

The scores are f = (D + gamma L)^-1 (s y)_S, with D the degrees. D (D + gamma L)^-1 e_j is the
distribution of a random walk that starts at j and, before each step, stops with chance
1 / (1 + gamma). So f is, for each label, how likely its walk stops at a node, divided by the degree
of that node: a hub is not chosen only because many walks pass through it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ohmlearn.harmonic.hfs_system import Floats, HFSSystem

__all__ = ["RestartSystem"]


class RestartSystem(HFSSystem):
    """The equations A f = (s y)_S with A = gamma L + D.

    Parameters
    ----------
    degrees : ndarray of shape (n_nodes,)
        Degrees of the graph.
    component, labelled, Y, gamma, sample_weight, caller
        As for `HFSSystem`.

    Examples
    --------
    >>> import numpy as np
    >>> component = np.zeros(3, dtype=np.int32)
    >>> system = RestartSystem(np.array([1.0, 2.0, 1.0]), component, [0], [1.0], gamma=9.0)
    >>> system.right_hand_sides.ravel()
    array([1., 0., 0.])
    """

    def __init__(
        self,
        degrees: Floats,
        component: NDArray[np.int32],
        labelled: ArrayLike,
        Y: ArrayLike,
        *,
        gamma: float = 1.0,
        sample_weight: ArrayLike | None = None,
        caller: str = "solve_hfs",
    ) -> None:
        super().__init__(
            component, labelled, Y, gamma=gamma, normalization=None, sample_weight=sample_weight,
            caller=caller,
        )  # fmt: skip
        self.total_weight, self.scale = 1.0, self.gamma
        self.degrees = np.where(degrees > 0.0, degrees, 1.0)  # isolated nodes keep their label

    def with_values(self, Y: ArrayLike) -> "RestartSystem":
        """Return the same system with other values."""
        return RestartSystem(
            self.degrees, self.component, self.labelled, Y, gamma=self.gamma,
            sample_weight=self.weights,
        )  # fmt: skip

    def with_degrees(self, degrees: Floats) -> "RestartSystem":
        """Return the same system with the degrees of another graph."""
        return RestartSystem(
            degrees, self.component, self.labelled, self.values, gamma=self.gamma,
            sample_weight=self.weights,
        )  # fmt: skip

    @property
    def ground(self) -> Floats:
        """D / gamma: A / gamma = L + D / gamma."""
        ground: Floats = self.degrees / self.gamma
        return ground

    @property
    def right_hand_sides(self) -> Floats:
        """One column for each of the values."""
        return self._right_hand_side(np.zeros(self.values.shape[1]))

    def _add_ground(self, product: Floats, x: Floats, factor: float = 1.0) -> None:
        product += factor * self.degrees[:, np.newaxis] * x

    def start(self, b: Floats, degrees: Floats) -> Floats:
        """Return a first guess: one Jacobi step."""
        return self.centre(b / self.diagonal(degrees)[:, np.newaxis])

    def diagonal(self, degrees: Floats) -> Floats:
        """Return the diagonal of A."""
        diagonal: Floats = (1.0 + self.gamma) * self.degrees
        return diagonal

    def centre(self, x: Floats) -> Floats:
        """Set nodes that no label reaches to zero, as they are in exact solutions."""
        x[~self.reached] = 0.0
        return x

    def combine(self, x: Floats) -> tuple[Floats, Floats]:
        """Return f, which is x, and mu, which is 0."""
        return x, np.zeros(x.shape[1])

    def score_without_label(
        self,
        average: Floats,
        degrees: Floats,
        mu: Floats,
        values: Floats,
        kappa: Floats,
        own_mu: Floats,
    ) -> Floats:
        """Return scores of labelled nodes without their labels; see `leave_one_out`."""
        score: Floats = self.gamma / (1.0 + self.gamma) * (average - kappa * values)
        return score
