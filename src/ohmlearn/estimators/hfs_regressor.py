"""The regressor: numbers for all nodes from those of a few."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ohmlearn.checks.parameters import Constraints, Options
from ohmlearn.estimators.hfs_estimator import HFSEstimator, with_hints
from ohmlearn.estimators.problem import NumberProblem

Floats = NDArray[np.float64]


@with_hints
@dataclass(kw_only=True, eq=False, repr=False)
class HFSRegressor(RegressorMixin, HFSEstimator):
    """Computes a number for every node of a graph from the numbers of a few.

    Works like `HFSClassifier`. The answer is the mean of the given numbers plus a harmonic
    function. If a node has several numbers, as in ``{3: [1.0, 2.0]}``, their mean counts, with the
    sum of their weights.

    Parameters
    ----------
    affinity, n_neighbors, weights, metric, neighbors, kernel_gamma, epsilon, max_edges, passes, \
tol, random_state, n_jobs, verbose, half_life, horizon
        See `HFSClassifier`.
    gamma : float or "auto"
        Weight of smoothness against the fit to the numbers. The value in use is `gamma_`. With
        "auto", gamma * number of values * mean degree is 0.1, which is close to interpolation.
    normalization : {"stable", None}
        "stable" keeps the mean of the answers at the mean of the given numbers.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_nodes,)
        Number for every node.
    mean_ : float
        Mean of the given numbers, by weight, without those of nodes that have no edge; it is the
        answer where `reached_` is False.
    gamma_, scores_, reached_, labelled_, residual_, converged_, graph_, sparsifier_, nodes_, \
n_iter_, n_features_in_
        See `HFSClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import HFSRegressor
    >>> X = np.linspace(0, 1, 101)[:, np.newaxis]
    >>> y = np.full(101, np.nan)
    >>> y[[0, 50, 100]] = [0.0, 5.0, 10.0]
    >>> model = HFSRegressor(n_neighbors=2, random_state=0).fit(X, y)
    >>> bool(np.abs(model.transduction_ - 10 * X[:, 0]).max() < 0.2)
    True
    """

    _kind = NumberProblem
    _narrower: ClassVar[Constraints] = {"normalization": (Options(("stable",)), None)}
    normalization: Literal["stable"] | None = None
    problem_: NumberProblem = field(init=False)
    mean_: float = field(init=False)

    def _answers_of(self) -> dict[str, Any]:
        return {**super()._answers_of(), "mean_": self.problem_.mean}

    def predict(self, X: object) -> Floats:
        """Return a number for new points: the mean over the points they would be connected to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``affinity="precomputed"``, the weights between new points and the nodes.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "answer_")
        values, reached = self._extend(X, self.transduction_[:, np.newaxis])
        return np.where(reached, values[:, 0], self.mean_)
