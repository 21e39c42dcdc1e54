"""The regressor for nodes that have features and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ohmlearn.estimators.label_input import Labels, find_values
from ohmlearn.features.expert_tasks import Floats, Numbers
from ohmlearn.features.experts import Experts
from ohmlearn.features.feature_estimator import BaseGraphFeatures
from ohmlearn.features.feature_problem import FeatureProblem
from ohmlearn.features.stacking import FeatureAnswer
from ohmlearn.nodes import NodeTable
from ohmlearn.points.point_arrays import Matrix


class GraphFeatureRegressor(RegressorMixin, BaseGraphFeatures[FeatureAnswer]):
    """Computes a number for every node from the numbers of a few, the edges, and features.

    Works like `GraphFeatureClassifier`. The expert for the graph alone is that of `HFSRegressor`.
    Weights minimise the squared error for left-out numbers (Breiman, 1996).

    Parameters
    ----------
    estimator : regressor of scikit-learn, optional
        By default ridge regression with alpha = 1.
    graph, gamma, cv, epsilon, max_edges, random_state, n_jobs, verbose
        See `GraphFeatureClassifier`.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_nodes,)
        Number for every node.
    weights_, graph_use_, labelled_, reached_, graph_, degrees_, sparsifier_, nodes_, \
n_features_in_
        See `GraphFeatureClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import GraphFeatureRegressor, gallery
    >>> X = np.linspace(0, 1, 60)[:, np.newaxis] + 0.1 * np.sin(np.arange(60.0))[:, np.newaxis]
    >>> y = np.full(60, np.nan)
    >>> y[::4] = np.linspace(0, 10, 60)[::4]
    >>> model = GraphFeatureRegressor(graph=gallery.path(60), random_state=0).fit(X, y)
    >>> bool(np.abs(model.transduction_ - np.linspace(0, 10, 60)).mean() < 0.2)
    True
    """

    def _read_labels(
        self, y: object, n_nodes: int | None, ids: NodeTable | None, sample_weight: object
    ) -> Labels:
        labels = find_values(y, n_nodes, ids, sample_weight)
        largest, most = float(np.abs(labels.values).max()), 1e70
        if largest > most:
            raise ValueError(
                f"y must be between -{most:g} and {most:g}, because variances of squared "
                f"errors overflow otherwise, got {largest:g}; scale y down"
            )
        return labels

    def _task(self, classes: NDArray[Any] | None) -> Numbers:
        return Numbers()

    def _find_answer(self, problem: FeatureProblem, experts: Experts) -> FeatureAnswer:
        return FeatureAnswer(problem, experts, self.cv)

    @property
    def transduction_(self) -> Floats:
        """Number for every node."""
        return self.answer_.values[:, 0]

    def predict(self, X: Matrix = None) -> Floats:
        """Return a number for new points, or for nodes.

        Parameters
        ----------
        X : NodeFeatures, or array-like of shape (n_samples, n_features), optional
            Rows of NodeFeatures are nodes of the graph; an array has new points, see
            ``GraphFeatureClassifier.predict_proba``. Without it, the answers are `transduction_`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.transduction_ if X is None else self._answers_for(X)[0][:, 0]

    def score(self, X: Matrix, y: object, sample_weight: object = None) -> float:
        """Return the coefficient of determination R^2 on the samples whose number is known.

        Parameters
        ----------
        X : NodeFeatures, or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True numbers; None and NaN are ignored.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        samples, values, *_ = find_values(y)
        weights = None if sample_weight is None else np.asarray(sample_weight)[samples]
        return float(r2_score(values, self.predict(X)[samples], sample_weight=weights))
