"""What differs between classes and numbers when answers of several models are compared and mixed.

Answers are matrices with a row for each node: probabilities of the classes, or one column of
numbers. An expert is whatever gives such a matrix.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ohmlearn._warnings import warn
from ohmlearn.estimators.answer import Evidence
from ohmlearn.estimators.label_input import NodeLabels, split_by_edges
from ohmlearn.estimators.problem import automatic_gamma
from ohmlearn.graph import Graph
from ohmlearn.harmonic import solve_hfs

__all__ = ["Classes", "Task", "Values"]

Floats = NDArray[np.float64]
Predictor = Callable[[Any], Floats]
FLOOR = 0.01  # share of the uniform distribution in the probabilities of every expert
SHARPEST = 12.0  # largest exponent of probabilities, and one over the smallest
DOUBT = 1.0  # how strongly exponents are held near 1
MOST_RATIO = 1000.0  # corrections are not enlarged by more than this
SHRINKAGE = 0.1  # of corrections of numbers, far from labels


class Task(ABC):
    """Classes or numbers: how experts are fitted, judged and made comparable."""

    has_classes: bool
    _has_warned = False  # of weights that an estimator does not take; folds do not repeat it

    @abstractmethod
    def fit(self, estimator: Any, Z: Any, labels: NodeLabels) -> Predictor:
        """Fit a clone of the estimator to rows Z; return a function from rows to answers."""

    def _warn_of_weights(self, estimator: Any) -> None:
        if not self._has_warned:
            self._has_warned = True
            warn(
                f"{type(estimator).__name__} takes no sample_weight, so it is fitted to labels "
                f"that count the same, and to the likeliest class of nodes with several; the "
                f"graph still weighs them"
            )

    @abstractmethod
    def find_temperature(self, answers: Floats, labels: NodeLabels) -> float:
        """Return what makes answers for left-out labels neither too sure nor too unsure."""

    @abstractmethod
    def apply_temperature(self, answers: Floats, temperature: float) -> Floats:
        """Return answers as sure as `find_temperature` found right."""

    @abstractmethod
    def tidy(self, answers: Floats) -> Floats:
        """Return answers of a solve as answers; it may change its argument."""

    @abstractmethod
    def scale_errors(
        self, spread: Floats, near: Floats, errors: Floats, labels: NodeLabels
    ) -> Floats:
        """Return corrections of all nodes from errors that were spread along the edges.

        `near` has the weights of labels, spread in the same way, in one column.
        """

    @abstractmethod
    def unit_of_losses(self, least: float) -> float:
        """Return what losses are divided by to be nats, given the mean loss of the best expert."""

    @abstractmethod
    def losses(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Return the loss of each left-out label, in nats up to a constant."""

    @abstractmethod
    def by_graph(self, graph: Graph, labels: NodeLabels, seed: int, n_jobs: int | None) -> Floats:
        """Return the answers of the graph alone: harmonic functions."""

    @abstractmethod
    def without_evidence(self, labels: NodeLabels) -> Floats:
        """Return the answer for a node of which nothing is known."""

    @abstractmethod
    def can_be_left_out(self, labels: NodeLabels) -> NDArray[np.bool_]:
        """Return which labels the others can predict at all."""

    @abstractmethod
    def groups(self, labels: NodeLabels) -> NDArray[np.int64]:
        """Return a number for each label; folds have about the same mixture of these."""


class Classes(Task):
    """Answers are probabilities of classes.

    Parameters
    ----------
    classes : array-like, or int
        The classes, as the estimator gets them; a number n means 0, ..., n - 1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> labels = NodeLabels(np.arange(4), np.eye(2)[[0, 0, 1, 1]], np.ones(4))
    >>> task, Z = Classes(2), np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> predict = task.fit(LogisticRegression(), Z, labels)
    >>> predict(Z).argmax(axis=1)
    array([0, 0, 1, 1])
    >>> task.apply_temperature(np.array([[0.6, 0.4]]), 0.5).round(2)  # twice as sure
    array([[0.69, 0.31]])
    """

    has_classes = True

    def __init__(self, classes: Any) -> None:
        names = np.arange(classes) if np.ndim(classes) == 0 else np.asarray(classes)
        self.n_classes = len(names)
        # Estimators take integers and strings; other classes become numbers.
        is_usual = names.dtype.kind in "biuU" or all(isinstance(name, str) for name in names)
        self._names = names if is_usual else np.arange(len(names))

    def fit(self, estimator: Any, Z: Any, labels: NodeLabels) -> Predictor:
        at, codes = np.nonzero(labels.values)  # a node may have labels of several classes
        found = np.unique(codes)
        if len(found) == 1:
            return _Constant(np.eye(self.n_classes)[found])
        weights = labels.values[at, codes] * labels.weights[at]
        model = clone(estimator)
        n_labels = len(labels.nodes)
        with _explained(model, n_labels):
            if np.all(weights == weights[0]):
                model.fit(Z[at], self._names[codes])
            elif has_fit_parameter(model, "sample_weight"):
                model.fit(Z[at], self._names[codes], sample_weight=weights)
            else:  # a pipeline, or an estimator without weights: the likeliest class of each node
                self._warn_of_weights(model)
                model.fit(Z, self._names[np.argmax(labels.values, axis=1)])
        return _Shares(model, self._columns_of(model.classes_), self.n_classes, n_labels)

    def _columns_of(self, found: Any) -> NDArray[np.int64]:
        """Return the numbers of classes that a fitted estimator has."""
        order = np.argsort(self._names)
        columns: NDArray[np.int64] = order[np.searchsorted(self._names, found, sorter=order)]
        return columns

    def find_temperature(self, answers: Floats, labels: NodeLabels) -> float:
        logs = _logarithms(answers)

        def loss(logarithm: float) -> float:
            shares = self._soften(logs * np.exp(-logarithm))
            total = -np.sum(labels.weights * np.sum(labels.values * np.log(shares), axis=1))
            return float(total + DOUBT * logarithm**2)

        bound = np.log(SHARPEST)
        found = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
        return float(np.exp(found.x))

    def apply_temperature(self, answers: Floats, temperature: float) -> Floats:
        return self._soften(_logarithms(answers) / temperature)

    def _soften(self, exponents: Floats) -> Floats:
        shares: Floats = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares *= 1.0 - FLOOR
        shares += FLOOR / self.n_classes
        return shares

    def tidy(self, answers: Floats) -> Floats:
        np.maximum(answers, 1e-9, out=answers)
        answers /= answers.sum(axis=1, keepdims=True)
        return answers

    def scale_errors(
        self, spread: Floats, near: Floats, errors: Floats, labels: NodeLabels
    ) -> Floats:
        """Return errors with the mean size of the given ones; they keep their direction.

        Far from all labels, where they are much smaller, they are left as they are.
        """
        size = float(np.average(np.abs(errors).sum(axis=1), weights=labels.weights))
        ratio = size / np.maximum(np.abs(spread).sum(axis=1, keepdims=True), 1e-300)
        scaled: Floats = spread * np.where(ratio > MOST_RATIO, 1.0, ratio)
        return scaled

    def unit_of_losses(self, least: float) -> float:
        return 1.0

    def losses(self, answers: Floats, labels: NodeLabels) -> Floats:
        losses: Floats = -np.sum(labels.values * np.log(np.maximum(answers, 1e-9)), axis=1)
        return losses

    def by_graph(self, graph: Graph, labels: NodeLabels, seed: int, n_jobs: int | None) -> Floats:
        labels, kept = split_by_edges(labels, graph)
        counts = labels.weights @ labels.values
        result = solve_hfs(
            graph,
            labels.nodes,
            labels.values,
            gamma=automatic_gamma(
                float(counts.sum()), int(np.count_nonzero(counts)), _mean_degree(graph)
            ),
            normalization="stable",
            sample_weight=labels.weights,
            random_state=seed,
            n_jobs=n_jobs,
        )
        evidence = Evidence(
            result,
            labels,
            kept=kept,
            kind="stable",
            class_prior=counts / counts.sum(),
            wanted_shares=None,
            weigh_labels=False,
            calibrate=False,
            left_out=_no_left_out,
        )
        return evidence.probabilities

    def without_evidence(self, labels: NodeLabels) -> Floats:
        counts = labels.weights @ labels.values
        shares: Floats = counts / counts.sum()
        return shares

    def can_be_left_out(self, labels: NodeLabels) -> NDArray[np.bool_]:
        """Return which labels are not the only ones of their class; none if there is one class."""
        has = labels.values > 0
        counts = np.count_nonzero(has, axis=0)
        alone: NDArray[np.bool_] = np.any(has & (counts == 1), axis=1)
        return ~alone & (np.count_nonzero(counts) > 1)

    def groups(self, labels: NodeLabels) -> NDArray[np.int64]:
        codes: NDArray[np.int64] = np.argmax(labels.values, axis=1)
        return codes


class Values(Task):
    """Answers are numbers, in one column.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> labels = NodeLabels(np.arange(3), np.array([[1.0], [3.0], [5.0]]), np.ones(3))
    >>> predict = Values().fit(LinearRegression(), np.array([[0.0], [1.0], [2.0]]), labels)
    >>> predict(np.array([[4.0]])).round(6)
    array([[9.]])
    """

    has_classes = False

    def fit(self, estimator: Any, Z: Any, labels: NodeLabels) -> Predictor:
        model = clone(estimator)
        values, n_labels = labels.values[:, 0], len(labels.nodes)
        with _explained(model, n_labels):
            if np.all(labels.weights == labels.weights[0]):
                model.fit(Z, values)
            elif has_fit_parameter(model, "sample_weight"):
                model.fit(Z, values, sample_weight=labels.weights)
            else:
                self._warn_of_weights(model)
                model.fit(Z, values)
        return _Numbers(model, n_labels)

    def find_temperature(self, answers: Floats, labels: NodeLabels) -> float:
        return 1.0

    def apply_temperature(self, answers: Floats, temperature: float) -> Floats:
        return answers

    def tidy(self, answers: Floats) -> Floats:
        return answers

    def scale_errors(
        self, spread: Floats, near: Floats, errors: Floats, labels: NodeLabels
    ) -> Floats:
        """Return the mean error of the labels around each node, less where they are far away."""
        shrinkage = SHRINKAGE * float(np.mean(near[labels.nodes]))
        means: Floats = spread / np.maximum(near + shrinkage, 1e-300)
        return means

    def unit_of_losses(self, least: float) -> float:
        """Errors are normal, with the variance of the best expert."""
        return max(2.0 * least, 1e-300)

    def losses(self, answers: Floats, labels: NodeLabels) -> Floats:
        """Return half the squared errors."""
        losses: Floats = 0.5 * (answers[:, 0] - labels.values[:, 0]) ** 2
        return losses

    def by_graph(self, graph: Graph, labels: NodeLabels, seed: int, n_jobs: int | None) -> Floats:
        labels = split_by_edges(labels, graph)[0]
        mean, degree = self.without_evidence(labels), _mean_degree(graph)
        result = solve_hfs(
            graph,
            labels.nodes,
            labels.values - mean,
            gamma=0.1 / (float(labels.weights.sum()) * (degree if degree > 0 else 1.0)),
            normalization=None,
            sample_weight=labels.weights,
            random_state=seed,
            n_jobs=n_jobs,
        )
        answers: Floats = np.where(result.reached[:, np.newaxis], result.f, 0.0) + mean
        return answers

    def without_evidence(self, labels: NodeLabels) -> Floats:
        mean: Floats = np.average(labels.values, axis=0, weights=labels.weights)
        return mean

    def can_be_left_out(self, labels: NodeLabels) -> NDArray[np.bool_]:
        return np.full(len(labels.nodes), len(np.unique(labels.values)) > 1)

    def groups(self, labels: NodeLabels) -> NDArray[np.int64]:
        return np.zeros(len(labels.nodes), dtype=np.int64)


# Fitted models as functions from rows to answers. They are classes, so that they can be pickled.


@dataclass
class _Constant:
    answer: Floats

    def __call__(self, rows: Any) -> Floats:
        return np.repeat(self.answer, rows.shape[0], axis=0)


@dataclass
class _Shares:
    model: Any
    columns: NDArray[np.int64]  # of the classes of the model
    n_classes: int
    n_labels: int

    def __call__(self, rows: Any) -> Floats:
        answers = np.zeros((rows.shape[0], self.n_classes))
        with _explained(self.model, self.n_labels):
            answers[:, self.columns] = _probabilities(self.model, rows)
        return answers


@dataclass
class _Numbers:
    model: Any
    n_labels: int

    def __call__(self, rows: Any) -> Floats:
        with _explained(self.model, self.n_labels):
            return np.asarray(self.model.predict(rows), dtype=np.float64).reshape(-1, 1)


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


def _probabilities(model: Any, rows: Any) -> Floats:
    """Return probabilities of a classifier; without them, the soft maximum of its scores."""
    if hasattr(model, "predict_proba"):
        shares: Floats = np.asarray(model.predict_proba(rows), dtype=np.float64)
        return shares
    if not hasattr(model, "decision_function"):
        codes = np.searchsorted(model.classes_, model.predict(rows))
        shares = np.eye(len(model.classes_))[codes]
        return shares
    scores = np.asarray(model.decision_function(rows), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-0.5 * scores, 0.5 * scores])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _mean_degree(graph: Graph) -> float:
    """Return the mean degree of the nodes that have an edge."""
    return float(graph.degrees.sum()) / max(1, int(np.count_nonzero(np.diff(graph.indptr))))


def _logarithms(answers: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(answers, 1e-6))
    return logs


def _no_left_out() -> Any:
    raise AssertionError("uncalibrated probabilities need no labels left out")
