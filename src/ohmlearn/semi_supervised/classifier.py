"""Classifiers: one harmonic function for each class, and probabilities from them."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.system import Normalization
from ohmlearn.semi_supervised.base import BaseHFS
from ohmlearn.semi_supervised.memory import ExactHFS, SparseHFS
from ohmlearn.semi_supervised.targets import Labelled, find_classes
from ohmlearn.validation.parameters import ARRAY, Constraints, Options

__all__ = [
    "SparseHFSClassifier",
    "StableHFSClassifier",
    "automatic_gamma",
    "classes_there",
    "comparable_scores",
]

Floats = NDArray[np.float64]


def automatic_gamma(n_labels: int, n_classes: int, mean_degree: float) -> float:
    """Return the gamma that accuracies on real data speak for (docs/labels.md).

    With one label a class the energy must rule, with five or more the labels should be met.

    Examples
    --------
    >>> automatic_gamma(2, 2, 10.0), automatic_gamma(50, 5, 10.0)
    (5.0, 0.002)
    """
    stiffness = max(1.0, 100.0 * (n_classes / n_labels) ** 3)
    return stiffness / (n_labels * (mean_degree if mean_degree > 0 else 1.0))


def comparable_scores(result: HFSResult, codes: NDArray[Any]) -> Floats:
    """Return scores of classes that can be compared at a node, given the classes of the labels.

    The scores of a class sum to zero over all nodes. Over those of one component they need not, and
    labels elsewhere would decide here: they are made to. A class with more labels than others has
    larger scores, right or wrong; see docs/labels.md for the root.
    """
    sizes = np.bincount(result.component)
    sums = np.zeros((len(sizes), result.f.shape[1]))
    np.add.at(sums, result.component, result.f)
    f: Floats = result.f - (sums / sizes[:, np.newaxis])[result.component]
    f /= np.sqrt(np.bincount(codes, minlength=f.shape[1]))
    return f


def classes_there(
    result: HFSResult, nodes: NDArray[np.int64], codes: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return for each node and class whether the node's component has a label of the class.

    Where it has none there is no evidence for it, though centring moves the scores of all classes.
    """
    there = np.zeros((int(result.component.max()) + 1, result.f.shape[1]), dtype=bool)
    there[result.component[nodes], codes] = True
    found: NDArray[np.bool_] = there[result.component]
    return found


class HFSClassifier(ClassifierMixin, BaseHFS):
    """From labels to columns, and from scores to probabilities and labels."""

    _without_evidence = "the class prior"

    _constraints: ClassVar[Constraints] = {
        "normalization": (Options(("stable", "cmn")), None),
        "class_prior": (None, ARRAY),
    }
    class_prior: ArrayLike | None

    def _encode(self, y: Any, n_nodes: int | None) -> Labelled:
        nodes, labels = find_classes(y, n_nodes)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        counts = np.bincount(codes)
        if len(counts) == 1:
            warnings.warn(
                f"all labels are {self.classes_.tolist()[0]!r}, and so will all answers be; give "
                f"labels of another class, too",
                UserWarning,
                stacklevel=3,
            )
        self.class_prior_: Floats = counts / counts.sum()
        if self.class_prior is not None:
            prior = np.asarray(self.class_prior, dtype=np.float64)
            if prior.shape != (len(self.classes_),) or not np.all(prior > 0):
                raise ValueError(
                    f"class_prior must have one positive entry for each of the classes "
                    f"{self.classes_.tolist()}, got {self.class_prior!r}"
                )
            self.class_prior_ = prior / prior.sum()
        return nodes, codes

    def _automatic_gamma(self, degree: float) -> float:
        return automatic_gamma(len(self._labels[0]), len(self.classes_), degree)

    def _columns(self) -> Floats:
        columns: Floats = np.eye(len(self.classes_))[self._labels[1]]
        return columns

    @property
    def label_distributions_(self) -> Floats:
        """Probability of each class for every node: rows sum to 1.

        A class without a label in a node's component has no evidence there and probability 0;
        where no class has any, `reached_` is False and the class prior is the answer.
        """
        result = self._result()
        shares = self._soft_maximum(result) if self._is_stable() else np.maximum(result.f, 0.0)
        if self.normalization == "cmn":
            mass = shares.sum(axis=0)
            shares *= self.class_prior_ / np.where(mass > 0, mass, 1.0)
        shares[~result.reached] = self.class_prior_
        total = shares.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, shares, 1.0)  # scores that underflow: even
        distributions: Floats = shares / shares.sum(axis=1, keepdims=True)
        return distributions

    def _soft_maximum(self, result: HFSResult) -> Floats:
        """Scores without a scale, since gamma decides theirs, to shares with the same order."""
        nodes, codes = self._labels
        f = comparable_scores(result, codes)
        known = f[result.reached]
        spread = float(np.sqrt(np.mean((known - known.mean(axis=1, keepdims=True)) ** 2)))
        exponents = f / (spread if spread > 0 else 1.0)
        if self.class_prior is not None:
            exponents += np.log(self.class_prior_)
        exponents[~classes_there(result, nodes, codes)] = -np.inf
        exponents[~result.reached] = 0.0
        shares: Floats = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return shares

    def _decide(self, shares: Floats, reached: NDArray[np.bool_]) -> NDArray[Any]:
        codes = np.argmax(shares, axis=1)
        # Without evidence the likeliest class, and one of the likeliest at random, not the first.
        likeliest = np.flatnonzero(self.class_prior_ == self.class_prior_.max())
        codes[~reached] = np.random.default_rng(self._seed).choice(likeliest)
        decided: NDArray[Any] = self.classes_[codes]
        return decided

    @property
    def transduction_(self) -> NDArray[Any]:
        """Class of every node."""
        return self._decide(self.label_distributions_, self.reached_)

    def _extend_shares(self, X: Any) -> tuple[Floats, NDArray[np.bool_]]:
        check_is_fitted(self, "_labels")
        shares, reached = self._extend(X, self.label_distributions_)
        shares[~reached] = self.class_prior_
        return shares / shares.sum(axis=1, keepdims=True), reached

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for new points.

        That is the mean over the points they would be joined to, weighted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``affinity="precomputed"``, their weights to the nodes of the graph.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._extend_shares(X)[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of new points; see `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``affinity="precomputed"``, their weights to the nodes of the graph.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decide(*self._extend_shares(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right answers among the labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels; entries -1, None and NaN do not count.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        samples, labels = find_classes(y)
        right = self.predict(X)[samples] == labels
        weights = None if sample_weight is None else np.asarray(sample_weight)[samples]
        return float(np.average(right, weights=weights))


class SparseHFSClassifier(HFSClassifier, SparseHFS):
    """Labels all nodes of a graph from a few, keeping only a sparsifier of it.

    The edges, made from points or given as a stream, pass by once and leave a sparsifier H;
    stable-HFS on H gives the labels. More passes bring the answer of the full graph, which is never
    stored.

    Parameters
    ----------
    affinity : {"knn", "rbf", "precomputed"} or callable
        How `fit` joins points: each to its nearest, all with a Gaussian weight, or by a matrix of
        weights given for X. A function ``affinity(A, B)`` returns the weights between points A and
        B and is called for blocks of points.
    n_neighbors : int
        For "knn". Denser graphs are not better ones: see `suggest_neighbors`.
    weights : {"uniform", "gaussian"}
        For "knn": all 1, or Gaussian with the scale of each point's last neighbour.
    kernel_gamma : float, optional
        For "rbf": 1 / (n_features * variance) by default.
    gamma : float or "auto"
        Weight of the energy against the fit to the labels; `gamma_` has the one used. "auto" makes
        gamma * labels * mean degree 100 with one label a class, 12.5 with two, 1 with five or more.
    epsilon : float
        Accuracy of the sparsifier; not used with a budget.
    max_edges : int, optional
        Budget: about so many edges in the sparsifier.
    passes : int
        Passes over the edges, at most. 1 is Sparse-HFS; each more brings the answer closer to the
        full graph's, and `tol` ends them. Where nothing had to be dropped, one is enough.
    normalization : {"stable", "cmn", None}
        "stable" makes the scores of a class sum to zero, "cmn" gives the classes the masses of
        `class_prior`, None takes scores as they are.
    class_prior : array-like of shape (n_classes,), optional
        Shares of the classes, those among the labels by default. For "cmn", for nodes without
        evidence and, if given, as a factor on the probabilities of "stable".
    tol : float
        Relative residual for the solver, and of the full graph's equation in later passes.
    random_state : int, Generator, RandomState or None
        Seeds the sampling of edges, the solver, and ties without evidence.
    n_jobs : int, optional
        Threads, read as scikit-learn does. Answers are the same for any number.
    verbose : int
        1 prints progress to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; columns of the arrays below are in this order.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes, as given or as among the labels.
    gamma_ : float
        The gamma used.
    transduction_ : ndarray of shape (n_nodes,)
        Class of every node.
    label_distributions_ : ndarray of shape (n_nodes, n_classes)
        Probabilities; rows sum to 1.
    scores_ : ndarray of shape (n_nodes, n_classes)
        Harmonic functions.
    reached_ : ndarray of shape (n_nodes,)
        Whether a node is connected with any label. Where not, there is no evidence, and the class
        prior is the answer.
    residuals_ : ndarray of shape (n_classes,)
        Relative residuals of `scores_`; on the full graph if there was more than one pass, and
        then before a last step that reads no edge, if the passes ended before `tol` was reached.
    sparsifier_ : StreamingSparsifier
        What is kept of the edges.
    n_iter_ : int
        Passes over the edges.
    n_features_in_ : int
        After `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from ohmlearn import SparseHFSClassifier
    >>> X, truth = make_moons(400, noise=0.05, random_state=0)
    >>> y = np.full(400, -1)
    >>> y[:6] = truth[:6]
    >>> model = SparseHFSClassifier(random_state=0).fit(X, y)
    >>> float(np.mean(model.transduction_ == truth))
    1.0

    A stream of edges, labels while it lasts, and other labels without reading it again:

    >>> model = SparseHFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
    >>> model.transduction_.tolist()
    ['a', 'a', 'b']
    >>> model.update(([2, 3, 4], [3, 4, 5], [0.1, 1.0, 1.0])).transduction_.tolist()
    ['a', 'a', 'b', 'b', 'b', 'b']
    >>> model.relabel({0: "b", 5: "c"}).transduction_.tolist()
    ['b', 'b', 'b', 'c', 'c', 'c']
    """

    _constraints: ClassVar[Constraints] = {
        **SparseHFS._constraints,
        **HFSClassifier._constraints,
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
        normalization: Normalization = "stable",
        class_prior: ArrayLike | None = None,
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
        self.class_prior = class_prior
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class StableHFSClassifier(HFSClassifier, ExactHFS):
    """Labels all nodes of a graph that is kept whole, by stable-HFS.

    What `SparseHFSClassifier` approximates; its parameters mean the same here.

    Parameters
    ----------
    affinity, n_neighbors, weights, kernel_gamma, gamma, normalization, class_prior, tol, \
random_state, n_jobs, verbose
        See `SparseHFSClassifier`.

    Attributes
    ----------
    classes_, class_prior_, gamma_, transduction_, label_distributions_, scores_, reached_, \
residuals_
        See `SparseHFSClassifier`.
    graph_ : Graph
    n_iter_ : int
        Iterations of the solver.

    Examples
    --------
    >>> from ohmlearn import StableHFSClassifier, gallery
    >>> model = StableHFSClassifier().fit_edges(gallery.barbell(4), {0: "left", 7: "right"})
    >>> model.transduction_.tolist()
    ['left', 'left', 'left', 'left', 'right', 'right', 'right', 'right']
    """

    _constraints: ClassVar[Constraints] = {
        **ExactHFS._constraints,
        **HFSClassifier._constraints,
    }

    def __init__(
        self,
        affinity: str | Callable[..., Any] = "knn",
        n_neighbors: int = 10,
        weights: Literal["uniform", "gaussian"] = "gaussian",
        kernel_gamma: float | None = None,
        gamma: float | Literal["auto"] = "auto",
        normalization: Normalization = "stable",
        class_prior: ArrayLike | None = None,
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
        self.class_prior = class_prior
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
