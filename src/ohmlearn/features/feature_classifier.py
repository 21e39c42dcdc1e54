"""The classifier for nodes that have features and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from threadpoolctl import threadpool_limits

from ohmlearn.checks.parameters import ARRAY, Constraints, Options, check_fraction
from ohmlearn.errors import InputError, Setting
from ohmlearn.estimators.answer import SHIFT
from ohmlearn.estimators.calibration import (
    AccuracyEstimate,
    Calibration,
    check_proportions,
    conformal_threshold,
    estimate_accuracy,
    fit_calibration,
)
from ohmlearn.estimators.hfs_classifier import HFSClassifier
from ohmlearn.estimators.label_input import Labels, NodeLabels, choose_labels, read_classes
from ohmlearn.features.expert_tasks import Classes, Floats, Mask
from ohmlearn.features.experts import Experts
from ohmlearn.features.feature_estimator import BaseGraphFeatures
from ohmlearn.features.feature_problem import FeatureProblem
from ohmlearn.features.node_features import NodeFeatures
from ohmlearn.features.stacking import FeatureAnswer, Folds
from ohmlearn.nodes import NodeTable
from ohmlearn.points.point_arrays import Matrix
from ohmlearn.sparsifier import StreamingSparsifier

MOST_CELLS = 1 << 29  # of a matrix that is made dense
MANY_LABELS = 5_000
LEAST_LEAF = 5  # labels in a leaf of a tree


class FeatureClassAnswer(FeatureAnswer):
    """The class of every node, with the names of `ClassAnswer`."""

    has_features = True
    wanted_proportions = None

    def __init__(
        self, problem: FeatureProblem, experts: Experts, cv: Folds, *, calibrate: bool
    ) -> None:
        super().__init__(problem, experts, cv)
        self._calibrate = calibrate
        counts: Floats = problem.used.values.sum(axis=0)
        self.counts = self.class_prior = counts

    def find_imbalance(self) -> None:
        """Return None: left-out labels have judged features and proportions."""

    def codes(self, default: int = 0) -> NDArray[np.intp]:
        """Return the most likely class of every node."""
        codes: NDArray[np.intp] = np.argmax(self.values, axis=1)
        return codes

    @cached_property
    def _left_out(self) -> tuple[Floats, NodeLabels]:
        """Logarithms of answers for labels that can be left out, and these labels."""
        usable = self.stack.usable
        return _logarithms(self.stack.left_out[usable]), choose_labels(self.problem.used, usable)

    @cached_property
    def calibration(self) -> Calibration:
        """How answers become probabilities."""
        left_out, labels = self._left_out
        if not self._calibrate or len(left_out) == 0:
            return Calibration(1.0, 0.0)
        n_nodes = len(self.values)  # some nodes represent all of them
        generator = np.random.default_rng(self.experts.seed)
        some = np.sort(generator.choice(n_nodes, min(1_000, n_nodes), replace=False))
        weights = labels.weights * labels.weights.sum() / np.sum(labels.weights**2)
        return fit_calibration(left_out, labels.values, _logarithms(self.values[some]), weights)

    @cached_property
    def probabilities(self) -> Floats:
        """Probability of each class for every node."""
        probabilities = self.calibrated(self.values, self.alone)
        probabilities.flags.writeable = False  # they are kept
        return probabilities

    def calibrated(self, answers: Floats, by_estimator: Mask) -> Floats:
        """Return probabilities from answers, some of which are those of the estimator alone."""
        probabilities = self.calibration.apply(_logarithms(answers))
        if self._calibrate:
            # They have been made as sure as they should be; the calibration is that of the mixture.
            probabilities[by_estimator] = answers[by_estimator]
        return probabilities

    def accuracy(self) -> AccuracyEstimate:
        """Return the estimated accuracy, from labels that were left out in folds."""
        left_out, labels = self._left_out
        if len(left_out) == 0:
            return AccuracyEstimate(float("nan"), 0.0, 1.0, 0)
        codes = np.argmax(self.stack.left_out[self.stack.usable], axis=1)
        right = labels.values[np.arange(len(codes)), codes]
        return estimate_accuracy(right, labels.weights / labels.weights.mean())

    def left_out_values(self) -> tuple[Floats, Floats, Floats]:
        """Return of labels left out: probabilities of all classes, values given, and weights."""
        left_out, given = self._left_out
        p = self.calibration.apply(left_out)
        return p, given.values, given.weights / given.weights.mean()

    def prediction_sets(self, alpha: float) -> Mask:
        """Return for each node the classes that hold its label with probability 1 - alpha."""
        left_out, labels = self._left_out
        given = np.einsum("ij,ij->i", labels.values, self.calibration.apply(left_out))
        return self.probabilities >= conformal_threshold(given, alpha)


def _logarithms(answers: Floats) -> Floats:
    return np.log(np.maximum(answers, 1e-12))


@dataclass(kw_only=True, eq=False, repr=False)
class GraphFeatureClassifier(ClassifierMixin, BaseGraphFeatures[FeatureClassAnswer]):
    """Labels all nodes of a graph from a few labels, the edges, and columns about each node.

    The answer is the weighted mean of three experts: the estimator on the features of a node
    ("features"), the estimator on features that are smoothed along the edges ("both"), and labels
    that spread along the edges, as in `HFSClassifier` ("graph"). Experts count more if they predict
    labels well that are left out in folds: stacking with a linear opinion pool (Wolpert, 1992;
    Stone, 1961). If the features alone are clearly best, the graph is left out, and a warning says
    so. Nodes that no label reaches are answered from features, and nodes without features from the
    graph and the features around them. Labelled nodes keep their labels.

    Parameters
    ----------
    estimator : classifier of scikit-learn, optional
        By default logistic regression, with C = 100 or 3, as predicts left-out labels better.
        Dense columns are centred and divided by their standard deviations. From 30 columns on,
        smoothed rows get the same length; for the default, all rows do.
    graph : Graph, scipy matrix, stream, StreamingSparsifier, path or None
        The graph for `fit`, see `GraphSmoother`; `fit_edges` has its own. With None, the 10 nearest
        neighbours of each row of X are joined, scaled if scales differ by more than ten times.
    gamma : float
        How far features are smoothed; 0 does not smooth them.
    class_prior : array-like of shape (n_classes,), dict {class: proportion}, or None
        Known proportions of the classes among all nodes, if the labels have others, say as many
        frauds as others. Labels count by these proportions, at most ten times as much as others. By
        default the labels are taken for a random sample of the nodes.
    calibration : {"cv", None}
        "cv" fits probabilities to the labels that are left out; None leaves them as they are.
    cv : int, splitter of scikit-learn, or list of (train, test)
        Folds in which labels are left out to weigh the experts. Positions are those in `labelled_`.
    epsilon, max_edges
        Size of the sparsifier for edges that come as a stream, see `HFSClassifier`. With
        ``epsilon=None``, all edges are kept.
    random_state : int, Generator, RandomState or None
        Seed for the folds, the sparsifier and the solver. The estimator has its own.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. It does not change the answers.
    verbose : int
        If positive, print progress to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_nodes,)
        Class of every node.
    label_distributions_ : ndarray of shape (n_nodes, n_classes)
        Calibrated probabilities; each row sums to 1.
    weights_ : dict
        Weights of "features", "both" and "graph".
    graph_use_ : GraphUse
        Whether the graph helps, and how alike joined nodes are; ``print`` it.
    accuracy_estimate_ : AccuracyEstimate
        Estimated fraction of nodes whose class is right.
    labelled_, reached_, graph_, sparsifier_, nodes_
        As for `HFSClassifier`.
    answered_ : ndarray of shape (n_nodes,)
        Whether a node has labels around it, or features. Others get the proportions of the labels.
    degrees_ : ndarray of shape (n_nodes,)
        Degrees of all edges.

    Examples
    --------
    Two groups of ten nodes; an edge joins nodes of the same group, and features are noisy.

    >>> import numpy as np
    >>> from ohmlearn import Graph, GraphFeatureClassifier
    >>> u, v = np.triu_indices(20, 1)
    >>> graph = Graph.from_edges(*(end[(u < 10) == (v < 10)] for end in (u, v)))
    >>> truth = np.repeat([0, 1], 10)
    >>> X = truth[:, np.newaxis] + np.random.default_rng(0).standard_normal((20, 3))
    >>> y = np.where(np.arange(20) % 3 == 0, truth, -1)
    >>> model = GraphFeatureClassifier(graph=graph, random_state=0).fit(X, y)
    >>> float(np.mean(model.transduction_ == truth))
    1.0
    >>> sorted(model.weights_)
    ['both', 'features', 'graph']
    """

    _constraints: ClassVar[Constraints] = {
        **BaseGraphFeatures._constraints,
        "class_prior": (None, ARRAY),
        "calibration": (Options(("cv",)), None),
    }
    class_prior: ArrayLike | Mapping[Any, float] | None = None
    calibration: Literal["cv"] | None = "cv"

    def _read_labels(
        self, y: object, n_nodes: int | None, ids: NodeTable | None, sample_weight: object
    ) -> Labels:
        return read_classes(y, n_nodes, ids, sample_weight)

    def _weigh_labels(self, labels: NodeLabels, classes: NDArray[Any] | None) -> NodeLabels:
        """Return labels that count by the proportions of their classes, if these are known."""
        if self.class_prior is None or classes is None:
            return labels
        counts = labels.weights @ labels.values
        wanted = check_proportions(self.class_prior, classes, warns=True)
        ratios = np.clip(wanted * counts.sum() / np.maximum(counts, 1e-300), 1 / SHIFT, SHIFT)
        return labels._replace(weights=labels.weights * (labels.values @ ratios))

    def _task(self, classes: NDArray[Any] | None) -> Classes:
        return Classes(classes)

    def _find_answer(self, problem: FeatureProblem, experts: Experts) -> FeatureClassAnswer:
        return FeatureClassAnswer(problem, experts, self.cv, calibrate=self.calibration == "cv")

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        classes = self._fitted.classes
        assert classes is not None
        return classes

    @property
    def calibration_(self) -> Calibration:
        """Temperature and smoothing of the probabilities, and the number of labels they fit."""
        return self.answer_.calibration

    @property
    def label_distributions_(self) -> Floats:
        """Probability of each class for every node; each row sums to 1."""
        return self.answer_.probabilities

    @property
    def transduction_(self) -> NDArray[Any]:
        """Class of every node."""
        return self.classes_[self.answer_.codes()]

    @property
    def accuracy_estimate_(self) -> AccuracyEstimate:
        """Estimated fraction of nodes whose class is right: value, low, high (95%), n_labels.

        From labels that are left out in five folds, unless they are the only ones of their class;
        the weights of the experts are chosen without them, too. It holds for nodes like the
        labelled ones. It is rather too low, because a fifth of the labels is missing. NaN if no
        label can be left out.
        """
        return self.answer_.accuracy()

    def prediction_sets(self, alpha: float = 0.1) -> NDArray[np.bool_]:
        """Return a set of classes per node that has the right one with probability 1 - alpha.

        See ``HFSClassifier.prediction_sets``; here labels are left out in folds.

        Parameters
        ----------
        alpha : float
            Largest fraction of sets that may miss the right class.

        Returns
        -------
        ndarray of bool, shape (n_nodes, n_classes)
        """
        check_fraction("alpha", alpha)
        return self.answer_.prediction_sets(alpha)

    def predict_proba(self, X: Matrix) -> Floats:
        """Return the probability of each class.

        Parameters
        ----------
        X : NodeFeatures, or array-like of shape (n_samples, n_features)
            Rows of NodeFeatures are nodes of the graph, as in scikit-learn's cross-validation;
            their answers are those of `label_distributions_`. An array has new points, which have
            no edges: they are answered by the estimator on their own features, and if the graph was
            made of nearest neighbours, by their neighbours, too.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.answer_.calibrated(*self._answers_for(X))

    def predict(self, X: Matrix = None) -> NDArray[Any]:
        """Return the class of new points, or of nodes.

        Parameters
        ----------
        X : NodeFeatures, or array-like of shape (n_samples, n_features), optional
            See `predict_proba`. Without it, the answers are `transduction_`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if X is None:
            return self.transduction_
        codes = np.argmax(self._answers_for(X)[0], axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    score = HFSClassifier.score


def fit_features(
    edges: object,
    features: NodeFeatures,
    y: object,
    *,
    has_trees: bool = False,
    sample_weight: object = None,
    sparsifier: StreamingSparsifier | None = None,
    **parameters: Any,
) -> GraphFeatureClassifier:
    """Return a classifier with logistic regression or trees, fitted to edges or to a KnownGraph."""
    estimator = None
    if has_trees:
        from sklearn.ensemble import HistGradientBoostingClassifier  # takes a second

        features = _as_dense(features)
        estimator = HistGradientBoostingClassifier(
            min_samples_leaf=LEAST_LEAF,
            early_stopping=False,
            random_state=parameters["random_state"] % 2**32,
        )
    model = GraphFeatureClassifier(estimator, **parameters)
    # Trees of few labels take longer with several threads.
    threads = 1 if isinstance(y, Sized) and len(y) < MANY_LABELS else model.n_jobs
    with threadpool_limits(threads, "openmp"):
        return model.fit_edges(
            edges, features, y, sample_weight=sample_weight, sparsifier=sparsifier
        )


def _as_dense(features: NodeFeatures) -> NodeFeatures:
    """Return features as a dense matrix, because trees do not take sparse ones."""
    if not sparse.issparse(features.X):
        return features
    n_rows, n_columns = features.X.shape
    if n_rows * n_columns > MOST_CELLS:
        raise InputError(
            f"{n_columns:,} columns for {n_rows:,} nodes are too many for trees; use "
            f"{Setting('method', 'logistic')}, or fewer columns"
        )
    dense = copy(features)
    dense.X = features.X.toarray()
    return dense
