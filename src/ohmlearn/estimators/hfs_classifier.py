"""Classifiers: one harmonic function for each class, and probabilities from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ohmlearn.checks.parameters import check_count, check_fraction
from ohmlearn.estimators.answer import ClassAnswer, Floats
from ohmlearn.estimators.calibration import AccuracyEstimate, Calibration
from ohmlearn.estimators.combination import Combination
from ohmlearn.estimators.hfs_estimator import HFSEstimator, with_hints
from ohmlearn.estimators.label_input import find_single_classes
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.problem import ClassProblem
from ohmlearn.estimators.review import LISTED, THRESHOLDS, Review, review_answer
from ohmlearn.harmonic.hfs_system import Normalization
from ohmlearn.harmonic.solve_hfs import Method

ClassPrior: TypeAlias = Sequence[float] | Floats | Mapping[Any, float] | Literal["labels"] | None


@with_hints
@dataclass(kw_only=True, eq=False, repr=False)
class HFSClassifier(ClassifierMixin, HFSEstimator):
    """Labels all nodes of a graph from a few labelled ones.

    The edges are computed from points or read from a stream. One pass over them leaves a sparsifier
    H, and a harmonic function on H gives the labels. More passes bring the answer close to that of
    the full graph, which is never stored. With ``epsilon=None`` all edges are kept in memory.

    ``epsilon=None, normalization=None`` is HFS (Zhu et al., 2003), ``epsilon=None,
    method="harmonic"`` stable-HFS (Belkin et al., 2004), and ``passes=1, method="harmonic",
    gamma=1.0`` Sparse-HFS (Calandriello et al., 2015).

    Labels may be weighted by `sample_weight`, and need not be certain. A node of a dict of labels
    may have a list, such as ``["ham", "spam", "spam"]``, or a distribution, such as ``{"ham": 0.3,
    "spam": 0.7}``; y may also be a matrix of distributions of shape (n_nodes, n_classes), in which
    rows with only 0 or NaN are unlabelled. Several labels of a node count by their proportions,
    with their number as weight; a warning reports nodes whose labels contradict each other.

    Parameters
    ----------
    affinity : {"knn", "rbf", "precomputed"} or callable
        How `fit` connects points: each to its nearest neighbours, all pairs with a Gaussian weight,
        or by a matrix of weights or graph passed as X. A function ``affinity(A, B)`` returns the
        weights between all points A of `fit` and a block B of them, or new points; it is symmetric.
    n_neighbors : int
        Number of neighbours for "knn", without the point itself, which LabelSpreading of
        scikit-learn counts: its 7 are 6 here. `suggest_neighbors` compares numbers.
    weights : {"uniform", "gaussian"}
        Weights for "knn": all 1, or Gaussian with a scale for each point, the distance to its last
        neighbour.
    metric : {"euclidean", "cosine"}
        Distance for "knn"; see `knn_edges`.
    neighbors : {"exact", "faiss"}
        How neighbours are found for "knn": "exact" compares all pairs of points, and "faiss" (extra
        ``knn``) may miss some, but is faster for more than about 100,000 points.
    kernel_gamma : float, optional
        How fast weights fall with the distance: the gamma of scikit-learn for "rbf", by default 1 /
        (n_features * variance), and that of `knn_edges` for "knn", by default 8.
    gamma : float or "auto"
        Weight of smoothness against the fit to the labels. The value in use is `gamma_`. With
        "auto", gamma * n_labels * mean degree is 100 for one label per class, 12.5 for two, and 1
        for five or more. Nodes without an edge, and their labels, do not count.
    epsilon : float or None
        Accuracy of the sparsifier; ignored if `max_edges` is given. None keeps all edges.
    max_edges : int, optional
        Number of edges to keep in the sparsifier.
    passes : int
        Largest number of passes over the edges, each closer to the answer of the full graph. Fewer
        are made if `tol` is reached, or if no edge had to be dropped.
    normalization : {"stable", "cmn", None}
        How scores of classes are made comparable. "stable" makes those of each class sum to zero,
        "cmn" gives each class the total mass of `class_prior`, and None leaves them as they are.
    method : {"auto", "harmonic", "restart"}
        "harmonic" is the method of `normalization`. "restart" uses random walks that start at the
        labels and stop with probability 1 / (1 + gamma) before each step (`gamma` is 30 by default
        then). "auto" adds a little of these walks to "harmonic", and a number for each class, as
        predicts left-out labels best: `restart_` and `bias_`. It is "harmonic" if no class has two
        labels, `normalization` is not "stable" or `calibration` is None.
    class_prior : array-like of shape (n_classes,), dict {class: proportion}, "labels", or None
        Known proportions of the classes among all nodes, which the answers then have. "labels"
        takes those of the labels, roughly, which helps only if these are drawn at random. By
        default none are enforced; nodes without evidence get the proportions of the labels.
    prior_strength : {"exact", "rough"}
        How well `class_prior` is known. "rough" moves the answers half of the way, which is safe
        if the proportions are wrong by up to 0.1 (half the sum of the differences).
    calibration : {"loo", None}
        "loo" fits probabilities to at most 512 labels (fewer in graphs of more than 65,000 nodes,
        at least 32) that are left out, one at a time. None uses the soft maximum of standardised
        scores of ``method="harmonic"``, which is not calibrated.
    tol : float
        Relative residual, and estimated relative error, at which later passes stop. If they do not
        reach a `tol` other than the default within `passes`, a ConvergenceWarning says so.
    random_state : int, Generator, RandomState or None
        Seed for the choice of edges, the solver, and ties without evidence.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. It does not change the answers.
    verbose : int
        If positive, print progress to stderr.
    half_life, horizon : float, str or timedelta, optional
        Edges count half as much after the time `half_life`, such as "7d", and not at all if they
        are older than the latest one by `horizon`; see `StreamingSparsifier`. They need times, so
        that only `fit_edges` and `update` can be used. Nodes whose edges faded are not reached.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted; if y is a matrix, the numbers or names of its columns. Columns of the
        arrays below are in this order.
    class_prior_ : ndarray of shape (n_classes,)
        Proportions of the classes, as given or among the labels that count, by weight.
    gamma_ : float
        The gamma in use.
    method_ : {"harmonic", "restart"}
        The equations of `scores_`.
    restart_ : float
        How much the random walks count; 0 if `method` is not "auto".
    bias_ : ndarray of shape (n_classes,)
        What is added for each class; zeros if `method` is not "auto".
    transduction_ : ndarray of shape (n_nodes,)
        Class of every node.
    label_distributions_ : ndarray of shape (n_nodes, n_classes)
        Calibrated probabilities; each row sums to 1.
    scores_ : ndarray of shape (n_nodes, n_classes)
        Harmonic functions.
    labelled_ : ndarray of shape (n_labelled,)
        Numbers of the labelled nodes. Those without an edge that counts now keep their labels,
        which count for nothing else.
    contradicting_ : ndarray of int
        Numbers of the nodes that have labels of different classes.
    reached_ : ndarray of shape (n_nodes,)
        Whether a node is connected to any label, or has one. Else the answer is the class prior.
    residual_, converged_ : ndarray of shape (n_columns,)
        Relative residual of `scores_`, on the full graph if there was more than one pass, and
        whether it and the estimated error have reached `tol`; see `HFSResult`.
    graph_ : Graph
        The graph in memory: the sparsifier, or all edges if ``epsilon=None``.
    sparsifier_ : StreamingSparsifier or None
        Where `graph_` comes from; None if ``epsilon=None``.
    nodes_ : NodeTable
        The ids of the nodes, or their numbers if the edges have no ids.
    n_iter_ : int
        Number of passes over the edges.
    n_features_in_ : int
        Number of features, after `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from ohmlearn import HFSClassifier
    >>> X, truth = make_moons(400, noise=0.05, random_state=0)
    >>> y = np.full(400, -1)
    >>> y[:6] = truth[:6]
    >>> model = HFSClassifier(random_state=0).fit(X, y)
    >>> float(np.mean(model.transduction_ == truth))
    1.0

    Labels from a stream of edges, after more edges, and with other labels:

    >>> model = HFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
    >>> model.transduction_.tolist()
    ['a', 'a', 'b']
    >>> model.update(([2, 3, 4], [3, 4, 5], [0.1, 1.0, 1.0])).transduction_.tolist()
    ['a', 'a', 'b', 'b', 'b', 'b']
    >>> model.relabel({0: "b", 5: "c"}).transduction_.tolist()
    ['b', 'b', 'b', 'c', 'c', 'c']
    """

    _kind = ClassProblem
    normalization: Normalization = "stable"
    method: Method | Literal["auto"] = "auto"
    class_prior: ClassPrior = None
    prior_strength: Literal["exact", "rough"] = "exact"
    calibration: Literal["loo"] | None = "loo"
    problem_: ClassProblem = field(init=False)
    answer_: ClassAnswer = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    contradicting_: NDArray[np.int64] = field(init=False)
    class_prior_: Floats = field(init=False)
    restart_: float = field(init=False)
    bias_: Floats = field(init=False)

    def _set(self, found: Labelling, *, warns: bool = True) -> None:
        super()._set(found, warns=warns)
        if warns and found.answer is not None:
            found.class_answer.warn_imbalance()

    def _labels_of(self) -> dict[str, Any]:
        problem = self.problem_
        return {"classes_": problem.classes, "contradicting_": problem.contradicting}

    def _answers_of(self) -> dict[str, Any]:
        answer = self.answer_
        added = answer.combination or Combination(0.0, np.zeros(len(answer.counts)))
        found = {"class_prior_": answer.class_prior, "restart_": added.restart, "bias_": added.bias}
        return super()._answers_of() | found

    @property
    def label_distributions_(self) -> Floats:
        """Probability of each class for every node; each row sums to 1.

        They are calibrated: of the nodes whose label has the probability 0.8, about 80% are right.
        If no class has a label in the component of a node, `reached_` is False and the answer is
        the class prior.
        """
        if self.answer_.calibrate:
            self.answer_.warn_few()
        return self.answer_.probabilities

    @property
    def calibration_(self) -> Calibration:
        """Temperature, smoothing and power of degrees of probabilities, and number of labels."""
        return self.answer_.calibration

    @property
    def accuracy_estimate_(self) -> AccuracyEstimate:
        """Estimated fraction of right classes among nodes that get one from a label.

        A tuple of value, low, high (95%) and n_labels. Each labelled node is labelled without its
        own label, unless no other label reaches it: nodes where `reached_` is False are not part of
        the estimate. Times the mean of `reached_` it is the fraction of all nodes that get a right
        label. NaN if no label reaches another.

        The estimate holds for nodes like the labelled ones: if labels were chosen, not drawn, say
        easy cases, or the same number for each class although the classes differ in size, it is one
        for such nodes. Known proportions of the classes (`class_prior`) correct the latter. With
        few labels it is too low, because leaving one out then makes a difference.
        """
        self.answer_.warn_few()
        return self.answer_.accuracy()

    @property
    def stability_(self) -> Floats:
        """Estimated probability that another sample of edges would give a node another label.

        For answers of one pass, and after `update`; its mean estimates the fraction of labels that
        would change with another seed. An estimate, too low where most labels would change. 0 where
        no edge was dropped, and for answers of more passes: there the sample hardly matters, and
        `residual_` tells how far the answer is from that of the full graph. Takes four solves and
        reads no edge.
        """
        return self.answer_.stability

    def prediction_sets(self, alpha: float = 0.1) -> NDArray[np.bool_]:
        """Return a set of classes per node that has the right one with probability 1 - alpha.

        Sets of conformal prediction, from leave-one-out probabilities: on average over nodes drawn
        like the labels, at most the fraction `alpha` of sets misses the right class, up to the
        change that leaving out one label makes, which matters if the graph says little. Nodes
        without evidence, and all with fewer than 1 / alpha - 1 labels, get all classes.

        Parameters
        ----------
        alpha : float
            Largest fraction of sets that may miss the right class.

        Returns
        -------
        ndarray of bool, shape (n_nodes, n_classes)
            Whether a class belongs to the set of a node. A set may be empty: no class is likely
            enough there.

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 2)}
        >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), labels)
        >>> model.prediction_sets(alpha=0.1)[[1, 39]]
        array([[ True, False],
               [False,  True]])
        """
        check_is_fitted(self, "answer_")
        return self.answer_.prediction_sets(alpha)

    def review(self, *, n: int = LISTED, thresholds: Sequence[float] = THRESHOLDS) -> Review:
        """Return what to look at if time is limited.

        Precision and recall are estimated from labels that are left out, one at a time, with the
        limits of `accuracy_estimate_`: they hold for nodes like the labelled ones.

        Parameters
        ----------
        n : int
            Number of nodes to list: for each class the surest and the least sure.
        thresholds : sequence of float
            Probabilities of a class from which on nodes are counted.

        Returns
        -------
        Review

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 2)}
        >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), labels)
        >>> review = model.review(n=2, thresholds=[0.6])
        >>> print(review.thresholds[0])
        p >= 0.6: 10 nodes are "left", about 100% of them right (63-100%);
        this is about 100% of all "left" (63-100%)
        >>> [(one.node, round(one.probability, 2)) for one in review.borderline["left"]]
        [(19, 0.89), (17, 0.95)]
        >>> print(model.relabel({0: "left", 39: "right"}).review().changed_since(review))
        0 of 40 nodes have another label
        """
        check_is_fitted(self, "answer_")
        wanted = [check_fraction("thresholds", t) for t in thresholds]
        return review_answer(self.answer_, check_count("n", n), wanted)

    def _extend_probabilities(self, X: object) -> tuple[Floats, NDArray[np.bool_]]:
        check_is_fitted(self, "answer_")
        self._check_extendable()
        probabilities, reached = self._extend(X, self.label_distributions_)
        probabilities[~reached] = self.class_prior_
        return probabilities / probabilities.sum(axis=1, keepdims=True), reached

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class for new points.

        It is the weighted mean over the points to which a new point would be connected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``affinity="precomputed"``, the weights between new points and the nodes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._extend_probabilities(X)[0]

    def decision_function(self, X: object) -> Floats:
        """Return log(p / (1 - p)) of each class for new points X; see `predict_proba`.

        The shape is (n_samples, n_classes), or (n_samples,) for the second of two classes.
        """
        p = np.clip(self.predict_proba(X), 1e-300, 1.0)
        odds: Floats = np.log(p) - np.log(np.clip(1.0 - p, 1e-16, 1.0))
        return odds[:, 1] if odds.shape[1] == 2 else odds

    def predict(self, X: object = None, *, abstain: float | None = None) -> NDArray[Any]:
        """Return the class of new points, or of the nodes of the graph.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            New points; see `predict_proba`. Without it, the answers are for the nodes, as
            `transduction_`. With ``affinity="precomputed"``, the weights between new points and
            the nodes.
        abstain : float, optional
            Smallest probability of an answer. Less likely ones are replaced by -1 if classes are
            integers, and by None otherwise.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 4)}
        >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), labels)
        >>> model.predict(abstain=0.8)[[2, 18, 37]].tolist()
        ['left', None, 'right']
        """
        if X is None:
            labels, probabilities = self.transduction_, self.label_distributions_
            reached = self.reached_
        else:
            probabilities, reached = self._extend_probabilities(X)
            codes = np.argmax(probabilities, axis=1)
            codes[~reached] = self.answer_.default_code
            labels = self.classes_[codes]
        if abstain is None:
            return labels
        check_fraction("abstain", abstain)
        unsure = (probabilities.max(axis=1) < abstain) | ~reached
        if labels.dtype.kind not in "iu":
            labels = labels.astype(object)
            labels[unsure] = None
            return labels
        if labels.dtype.kind == "u":
            fits = int(self.classes_.max()) <= np.iinfo(np.int64).max
            labels = labels.astype(np.int64 if fits else object)
        labels[unsure] = -1
        return labels

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on the labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or NodeFeatures for GraphFeatureClassifier
        y : array-like of shape (n_samples,)
            True labels; entries -1, None and NaN are ignored.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        samples, labels, *_ = find_single_classes(y)
        right = self.predict(X)[samples] == labels
        weights = None if sample_weight is None else np.asarray(sample_weight)[samples]
        return float(np.average(right, weights=weights))
