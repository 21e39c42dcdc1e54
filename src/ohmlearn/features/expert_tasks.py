"""What differs between classes and numbers when answers of several models are compared and pooled.

Answers are matrices with a row for each node: probabilities of the classes, or one column of
numbers. An expert is whatever gives such a matrix; rows to which it does not apply are NaN.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import has_fit_parameter

from ohmlearn._warnings import warn
from ohmlearn.estimators.answer import ClassAnswer, NumberAnswer
from ohmlearn.estimators.calibration import DEFAULT, softmax
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_input import NodeLabels
from ohmlearn.estimators.problem import ClassProblem, HFSParameters, NumberProblem
from ohmlearn.points.point_arrays import Matrix

Floats = NDArray[np.float64]
Names = NDArray[Any]  # of classes
Mask = NDArray[np.bool_]
FLOOR = 0.01  # fraction of the uniform distribution in the probabilities of every expert
EXPONENTS: Floats = np.geomspace(0.25, 12.0, 24)
PRIOR: Floats = np.array([0.0, 0.5, 0.5])  # weights of features, both and graph without labels
INVERSE_PENALTIES = (100.0, 3.0)  # C of logistic regression for rows of length 1


@dataclass
class Predictor:
    """A fitted model as a function from rows to answers; a class, so that it can be pickled."""

    model: Any
    n_labels: int
    columns: NDArray[np.int64] | None = None  # of the classes of the model; None for numbers
    n_columns: int = 1

    def __call__(self, rows: Matrix) -> Floats:
        with _explained(self.model, self.n_labels):
            if self.columns is None:
                return np.asarray(self.model.predict(rows), dtype=np.float64).reshape(-1, 1)
            answers = np.zeros((rows.shape[0], self.n_columns))
            answers[:, self.columns] = _probabilities(self.model, rows)
            return answers


class _Task:
    """What both tasks have in common."""

    _has_warned = False  # of weights that an estimator does not take; folds do not repeat it

    def _fit(
        self,
        estimator: BaseEstimator,
        rows: tuple[Any, Any],
        weights: Floats,
        unweighted: tuple[Any, Any],
    ) -> Any:
        """Return a fitted clone; `unweighted` rows are for estimators that take no weights."""
        model = clone(estimator)
        with _explained(model, len(unweighted[1])):
            if np.all(weights == weights[0]):
                return model.fit(*rows)
            if has_fit_parameter(model, "sample_weight"):
                return model.fit(*rows, sample_weight=weights)
            if not self._has_warned:
                self._has_warned = True
                warn(
                    f"{type(model).__name__} takes no sample_weight, so it is fitted to labels "
                    f"that count the same, and to the likeliest class of nodes with several; the "
                    f"graph still weighs them"
                )
            return model.fit(*unweighted)


class Classes(_Task):
    """Answers are probabilities of `classes`; a number n of them means 0, ..., n - 1."""

    has_classes = True

    def __init__(self, classes: Any) -> None:
        names = np.arange(classes) if np.ndim(classes) == 0 else np.asarray(classes)
        self.n_classes = len(names)
        # Estimators take integers and strings; other classes become numbers.
        is_usual = names.dtype.kind in "biuU" or all(isinstance(name, str) for name in names)
        self._names = names if is_usual else np.arange(len(names))

    def usual_estimators(self, size: float) -> list[Any]:
        """Return estimators to choose from, for rows whose root mean square length is `size`."""
        return [
            LogisticRegression(C=inverse / size**2, tol=1e-3, max_iter=1000)
            for inverse in INVERSE_PENALTIES
        ]

    def fit(self, estimator: BaseEstimator, Z: Matrix, labels: NodeLabels) -> Predictor:
        at, codes = np.nonzero(labels.values)  # a node may have labels of several classes
        if np.ptp(codes) == 0:
            estimator = DummyClassifier()  # others refuse a single class
        weights = labels.values[at, codes] * labels.weights[at]
        # A pipeline, or an estimator without weights, gets the likeliest class of each node.
        likeliest = Z, self._names[np.argmax(labels.values, axis=1)]
        model = self._fit(estimator, (Z[at], self._names[codes]), weights, likeliest)
        order = np.argsort(self._names)  # folds may lack a class
        columns = order[np.searchsorted(self._names, model.classes_, sorter=order)]
        return Predictor(model, len(labels.nodes), columns, self.n_classes)

    def solve_graph(
        self, kept: KeptGraph, labels: NodeLabels, n_jobs: int | None, classes: Names | None = None
    ) -> ClassAnswer:
        """Return the answer of `HFSClassifier`; without `classes`, these are numbers."""
        # The scores alone: labels are left out here already. The tolerance is enough to compare.
        p = HFSParameters(method="harmonic", tol=1e-5, n_jobs=n_jobs)
        names = np.arange(self.n_classes) if classes is None else classes
        problem = ClassProblem.pose(labels, kept, p, classes=names)
        return problem.answer(problem.solve(tol=p.tol))

    def by_graph(self, kept: KeptGraph, labels: NodeLabels, n_jobs: int | None) -> Floats:
        """Return the probabilities of `HFSClassifier`, which an exponent makes as sure as it is."""
        answer = self.solve_graph(kept, labels, n_jobs)
        found = DEFAULT._replace(smoothing=0.0).apply(answer.exponents)
        found[~answer.result.reached] = np.nan
        return found

    def find_exponent(self, answers: Floats, labels: NodeLabels) -> tuple[float, float]:
        """Return the least loss of answers for left-out labels, and the exponent that gives it."""
        losses = [
            labels.weights @ self.losses(self.sharpen(answers, a), labels) + 0.5 * np.log(a) ** 2
            for a in EXPONENTS
        ]
        best = int(np.argmin(losses))
        return float(losses[best]), float(EXPONENTS[best])

    def sharpen(self, answers: Floats, exponent: float) -> Floats:
        """Return answers as sure as `find_exponent` found right."""
        logs = exponent * np.log(np.maximum(answers, 1e-6))
        powers: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
        powers *= (1.0 - FLOOR) / powers.sum(axis=1, keepdims=True)
        powers += FLOOR / self.n_classes
        return powers

    def find_weights(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Maximise the likelihood of the labels in the pool, by EM."""
        at, codes = np.nonzero(labels.values)
        counts = labels.values[at, codes] * labels.weights[at]
        likelihood = answers[:, at, codes]
        applies = ~np.isnan(likelihood)
        weights = np.full(len(PRIOR), 1.0 / len(PRIOR))
        for _ in range(100):
            joint = weights[:, np.newaxis] * likelihood
            own = np.where(applies, weights[:, np.newaxis], 0.0)
            pooled = np.nansum(joint, axis=0) / np.maximum(own.sum(axis=0), 1e-300)
            # A label says nothing about an expert that does not apply.
            joint = np.where(applies, joint, weights[:, np.newaxis] * pooled)
            weights = (joint / np.maximum(joint.sum(axis=0), 1e-300)) @ counts
            weights += PRIOR
            weights /= weights.sum()
        return weights

    def losses(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Return logarithmic losses."""
        return np.asarray(-np.sum(labels.values * np.log(np.maximum(answers, 1e-9)), axis=1))

    def without_evidence(self, labels: NodeLabels) -> Floats:
        """Return the answer for a node of which nothing is known."""
        counts = labels.weights @ labels.values
        return np.asarray(counts / counts.sum())

    def can_be_left_out(self, labels: NodeLabels) -> Mask:
        """Return which labels are not the only ones of their class; none if of one class."""
        has = labels.values > 0
        counts = np.count_nonzero(has, axis=0)
        alone: Mask = np.any(has & (counts == 1), axis=1)
        return ~alone & (np.count_nonzero(counts > 1) > 1)


class Numbers(_Task):
    """Answers are numbers, in one column."""

    has_classes = False

    def usual_estimators(self, size: float) -> list[Any]:
        """Return ridge regression."""
        return [Ridge()]

    def fit(self, estimator: BaseEstimator, Z: Matrix, labels: NodeLabels) -> Predictor:
        rows = Z, labels.values[:, 0]
        return Predictor(self._fit(estimator, rows, labels.weights, rows), len(labels.nodes))

    def solve_graph(
        self, kept: KeptGraph, labels: NodeLabels, n_jobs: int | None, classes: Names | None = None
    ) -> NumberAnswer:
        """Return the answer of `HFSRegressor`."""
        p = HFSParameters(tol=1e-5, normalization=None, n_jobs=n_jobs)
        problem = NumberProblem.pose(labels, kept, p)
        return problem.answer(problem.solve(tol=p.tol))

    def by_graph(self, kept: KeptGraph, labels: NodeLabels, n_jobs: int | None) -> Floats:
        """Return the values of `HFSRegressor`."""
        answer = self.solve_graph(kept, labels, n_jobs)
        return np.where(answer.result.reached, answer.labels, np.nan)[:, np.newaxis]

    def find_exponent(self, answers: Floats, labels: NodeLabels) -> tuple[float, float]:
        """Return the loss and 1: numbers are not more or less sure."""
        return float(labels.weights @ self.losses(answers, labels)), 1.0

    def sharpen(self, answers: Floats, exponent: float) -> Floats:
        """Return the answers."""
        return answers

    def find_weights(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Minimise the squared error of the pool; weights are not negative and sum to 1."""
        errors = answers[:, :, 0] - labels.values[:, 0]
        # An expert that does not apply has the error of the others.
        errors = np.where(np.isnan(errors), np.nanmean(errors, axis=0), errors)
        errors *= np.sqrt(labels.weights)
        squares = errors @ errors.T
        scale = float(np.diag(squares).min()) / len(labels.nodes)  # error of one label
        if scale == 0.0:
            best: Floats = (np.diag(squares) == 0.0).astype(np.float64)
            best /= best.sum()
            return best
        # Further labels at which the experts' errors are independent draw towards equal weights.
        factor = np.linalg.cholesky(squares / scale + np.eye(len(errors)))
        heavy = 1e4 * float(np.abs(factor).max())
        rows = np.vstack([factor.T, np.full(len(errors), heavy)])
        weights: Floats = np.asarray(nnls(rows, np.append(np.zeros(len(errors)), heavy))[0])
        weights /= weights.sum()
        return weights

    def losses(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Return half the squared errors."""
        return 0.5 * (answers[:, 0] - labels.values[:, 0]) ** 2

    def without_evidence(self, labels: NodeLabels) -> Floats:
        """Return the mean of the labels."""
        return np.average(labels.values, axis=0, weights=labels.weights)

    def can_be_left_out(self, labels: NodeLabels) -> Mask:
        """Return all labels if there are more than three, and not all are the same."""
        n_labels = len(labels.nodes)
        return np.full(n_labels, n_labels > 3 and len(np.unique(labels.values)) > 1)


Task = Classes | Numbers


@contextmanager
def _explained(model: Any, n_labels: int) -> Iterator[None]:
    """Say in an error of an estimator how many labels it had."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"{type(model).__name__} failed with {n_labels} labels; some labels are left out in "
            f"folds, so it must be able to do with fewer than all: change its parameters, raise "
            f"cv, or give more labels. It says: {error}"
        ) from error


def _probabilities(model: Any, rows: Matrix) -> Floats:
    """Return probabilities of a classifier; without them, the soft maximum of its scores."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        codes = np.searchsorted(model.classes_, model.predict(rows))
        return np.asarray(np.eye(len(model.classes_))[codes])
    scores = np.asarray(model.decision_function(rows), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-0.5 * scores, 0.5 * scores])
    return softmax(scores)
