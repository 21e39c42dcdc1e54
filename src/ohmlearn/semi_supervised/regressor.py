"""Regressors: numbers at a few nodes, a harmonic function on all."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ohmlearn.semi_supervised.base import BaseHFS
from ohmlearn.semi_supervised.memory import ExactHFS, SparseHFS
from ohmlearn.semi_supervised.targets import Labelled, find_values
from ohmlearn.validation.parameters import Constraints, Options

__all__ = ["SparseHFSRegressor", "StableHFSRegressor"]

Floats = NDArray[np.float64]


class HFSRegressor(RegressorMixin, BaseHFS):
    """From numbers to a column, and back."""

    _without_evidence = "the mean of the values given"

    _constraints: ClassVar[Constraints] = {"normalization": (Options(("stable",)), None)}

    def _encode(self, y: Any, n_nodes: int | None) -> Labelled:
        nodes, values = find_values(y, n_nodes)
        self.mean_ = float(values.mean())
        return nodes, values

    def _automatic_gamma(self, degree: float) -> float:
        # Close to interpolation: see docs/labels.md.
        return 0.1 / (len(self._labels[0]) * (degree if degree > 0 else 1.0))

    def _columns(self) -> Floats:
        # Around their mean: a column that is made to sum to zero would otherwise be torn off it.
        column: Floats = (self._labels[1] - self.mean_)[:, np.newaxis]
        return column

    @property
    def transduction_(self) -> Floats:
        """Number for every node; the mean of those given where `reached_` is False."""
        result = self._result()
        values: Floats = np.where(result.reached, result.f[:, 0] + self.mean_, self.mean_)
        return values

    def predict(self, X: Any) -> Floats:
        """Return a number for new points: the mean over the points they would be joined to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``affinity="precomputed"``, their weights to the nodes of the graph.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "_labels")
        values, reached = self._extend(X, self.transduction_[:, np.newaxis])
        predicted: Floats = np.where(reached, values[:, 0], self.mean_)
        return predicted


class SparseHFSRegressor(HFSRegressor, SparseHFS):
    """Numbers for all nodes of a graph from a few, keeping only a sparsifier of it.

    As `SparseHFSClassifier`, for numbers. The answer is the given mean plus a harmonic function.

    Parameters
    ----------
    affinity, n_neighbors, weights, kernel_gamma, epsilon, max_edges, passes, tol, random_state, \
n_jobs, verbose
        See `SparseHFSClassifier`.
    gamma : float or "auto"
        Weight of the energy against the fit to the numbers: the smaller, the closer the fit.
        `gamma_` has the one used. "auto" makes gamma * numbers * mean degree 0.1.
    normalization : {"stable", None}
        "stable" keeps the mean of the answers at the mean of the numbers given.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_nodes,)
        Number for every node.
    mean_ : float
        Mean of the numbers given; the answer where `reached_` is False.
    gamma_, scores_, reached_, residuals_, sparsifier_, n_iter_, n_features_in_
        See `SparseHFSClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import SparseHFSRegressor
    >>> X = np.linspace(0, 1, 101)[:, np.newaxis]
    >>> y = np.full(101, np.nan)
    >>> y[[0, 50, 100]] = [0.0, 5.0, 10.0]
    >>> model = SparseHFSRegressor(n_neighbors=2, random_state=0).fit(X, y)
    >>> bool(np.abs(model.transduction_ - 10 * X[:, 0]).max() < 0.2)
    True
    """

    _constraints: ClassVar[Constraints] = {
        **SparseHFS._constraints,
        **HFSRegressor._constraints,
    }

    def __init__(
        self,
        affinity: str | Callable[..., Any] = "knn",
        n_neighbors: int = 10,
        weights: Literal["uniform", "gaussian"] = "gaussian",
        kernel_gamma: float | None = None,
        gamma: float | Literal["auto"] = "auto",
        epsilon: float = 0.8,
        max_edges: int | None = None,
        passes: int = 3,
        normalization: Literal["stable"] | None = None,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.kernel_gamma = kernel_gamma
        self.gamma = gamma
        self.epsilon = epsilon
        self.max_edges = max_edges
        self.passes = passes
        self.normalization = normalization
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class StableHFSRegressor(HFSRegressor, ExactHFS):
    """Numbers for all nodes of a graph that is kept whole.

    What `SparseHFSRegressor` approximates; its parameters mean the same here.

    Parameters
    ----------
    affinity, n_neighbors, weights, kernel_gamma, gamma, normalization, tol, random_state, n_jobs, \
verbose
        See `SparseHFSRegressor`.

    Attributes
    ----------
    transduction_, mean_, gamma_, scores_, reached_, residuals_
        See `SparseHFSRegressor`.
    graph_ : Graph
    n_iter_ : int
        Iterations of the solver.

    Examples
    --------
    >>> from ohmlearn import StableHFSRegressor, gallery
    >>> model = StableHFSRegressor(gamma=1e-9).fit_edges(gallery.path(5), {0: 1.0, 4: 5.0})
    >>> model.transduction_.round(5)
    array([1., 2., 3., 4., 5.])
    """

    _constraints: ClassVar[Constraints] = {
        **ExactHFS._constraints,
        **HFSRegressor._constraints,
    }

    def __init__(
        self,
        affinity: str | Callable[..., Any] = "knn",
        n_neighbors: int = 10,
        weights: Literal["uniform", "gaussian"] = "gaussian",
        kernel_gamma: float | None = None,
        gamma: float | Literal["auto"] = "auto",
        normalization: Literal["stable"] | None = None,
        tol: float = 1e-8,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.kernel_gamma = kernel_gamma
        self.gamma = gamma
        self.normalization = normalization
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
