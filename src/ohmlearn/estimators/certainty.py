"""What a classifier says about its answers: probabilities, and how good they are."""

import sys
import warnings
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ohmlearn._phases import phase
from ohmlearn.checks.parameters import Constraints, Options, check_fraction
from ohmlearn.estimators.calibration import AccuracyEstimate, Calibration, check_shares
from ohmlearn.estimators.evidence import Evidence
from ohmlearn.estimators.flip_probability import flip_probabilities
from ohmlearn.estimators.hfs_estimator import BaseHFS
from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.solve_hfs import Method

__all__ = ["METHODS", "Certainty"]

Floats = NDArray[np.float64]
METHODS: tuple[Method, Method] = ("harmonic", "restart")
FEW = 3  # labels for each class; with fewer, probabilities are rough
REPLICATES, AMPLITUDE = 4, 0.5  # of the sparsifier, for `stability_`


class Certainty(BaseHFS):
    """The part of the classifier that turns scores into probabilities and judges them."""

    _constraints: ClassVar[Constraints] = {
        **BaseHFS._constraints,
        "method": (Options((*METHODS, "auto")),),
        "calibration": (Options(("loo",)), None),
    }
    _evidence: Evidence | None = None
    classes_: NDArray[Any]
    class_prior: Any
    method: Method | Literal["auto"]
    calibration: Literal["loo"] | None

    def _solve(self) -> HFSResult:
        result = super()._solve()
        if self._evidence is None or self._evidence.result is not result:
            self._evidence = self._weigh(result)
        return result

    @property
    def _known(self) -> Evidence:
        """What the present answer says about the classes."""
        self._solve()
        assert self._evidence is not None
        return self._evidence

    def _weigh(self, result: HFSResult) -> Evidence:
        normalization: Any = self.normalization or "plain"
        return Evidence(
            result,
            self._used,
            kept=self._unused,
            kind="restart" if self.method_ == "restart" else normalization,
            class_prior=self.class_prior_,
            wanted_shares=self._wanted_shares,
            weigh_labels=self.class_prior is not None and not isinstance(self.class_prior, str),
            calibrate=self.calibration == "loo",
            left_out=partial(self._leave_one_out, result),
        )

    @property
    def _counts(self) -> Floats:
        """Number of labels of each class that count, by weight."""
        counts: Floats = self._used.weights @ self._used.values
        return counts

    @property
    def class_prior_(self) -> Floats:
        """Shares of the classes, as given or among the labels, by weight."""
        if self.class_prior is not None and not isinstance(self.class_prior, str):
            return check_shares(self.class_prior, self.classes_)
        counts = self._counts
        shares: Floats = counts / counts.sum()
        return shares

    @property
    def _wanted_shares(self) -> Floats | None:
        """Shares that the labels of all nodes are to have; a class with a label is possible."""
        if self.class_prior is None:
            return None
        if not isinstance(self.class_prior, str):
            return self.class_prior_
        counts: Floats = np.where(self._counts > 0.0, self._counts + 1.0, 0.0)
        shares: Floats = counts / counts.sum()
        return shares

    def _wants_left_out(self) -> bool:
        return self.calibration == "loo"

    def _choose_method(self) -> None:
        """Set `method_`; "auto" takes the one whose leave-one-out probabilities are better."""
        if self.method != "auto":
            self.method_ = self.method
            return
        loss = {}
        with phase("choosing the method", self.verbose):
            for self.method_ in METHODS:
                result = self._solve_in_memory(self._labels_to_leave_out())
                loss[self.method_] = self._weigh(result).loss()
        self.method_ = min(METHODS, key=lambda method: loss[method])
        self.method_losses_ = loss
        if self.verbose > 0:
            both = ", ".join(f"{method} {value:.3f}" for method, value in loss.items())
            print(f"method {self.method_}: log-loss {both}", file=sys.stderr)

    @property
    def label_distributions_(self) -> Floats:
        """Probability of each class for every node; each row sums to 1.

        They are calibrated: of the nodes whose label has the probability 0.8, about 80% are right.
        If no class has a label in the component of a node, `reached_` is False and the answer is
        the class prior.
        """
        evidence = self._known
        if self.calibration == "loo":
            self._warn_few(evidence)
        return evidence.probabilities

    def _warn_few(self, evidence: Evidence) -> None:
        n_labels, n_classes = float(evidence.counts.sum()), len(self.classes_)
        if n_classes > 1 and n_labels < FEW * n_classes and not evidence.told:
            evidence.told = True
            warnings.warn(
                f"{n_labels:g} labels are few for {n_classes} classes, so probabilities and the "
                f"estimated accuracy are rough; give at least {FEW} labels for each class",
                UserWarning,
                stacklevel=4,
            )

    def _default_code(self) -> int:
        """Return the class of nodes without evidence: the most likely one.

        If several classes are equally likely, one draw decides for all such nodes together.
        """
        likeliest = np.flatnonzero(self.class_prior_ == self.class_prior_.max())
        return int(np.random.default_rng(self._seed).choice(likeliest))

    @property
    def transduction_(self) -> NDArray[Any]:
        """Class of every node."""
        known = self._known
        labels: NDArray[Any] = self.classes_[known.codes(self._default_code())]
        return labels

    @property
    def calibration_(self) -> Calibration:
        """Temperature and smoothing of the probabilities, and the number of labels they fit."""
        return self._known.calibration

    @property
    def accuracy_estimate_(self) -> AccuracyEstimate:
        """Estimated fraction of right classes among nodes that get one from a label.

        A tuple of value, low, high (95%) and n_labels. Each labelled node is labelled without its
        own label, unless no other label reaches it: nodes where `reached_` is False are not part of
        the estimate. Times the mean of `reached_` it is the fraction of all nodes that get a right
        label. NaN if no label reaches another.

        The estimate holds for nodes like the labelled ones: if labels were chosen, not drawn, say
        easy cases, or the same number for each class although the classes differ in size, it is
        one for such nodes. Known shares of the classes (`class_prior`) correct the latter. With few
        labels it is too low, because leaving one out then makes a difference.
        """
        known = self._known
        self._warn_few(known)
        return known.accuracy()

    def prediction_sets(self, alpha: float = 0.1) -> NDArray[np.bool_]:
        """Return for each node a set of classes that holds the right one with chance 1 - alpha.

        Sets of conformal prediction, from leave-one-out probabilities: on average over nodes drawn
        like the labels, at most the share `alpha` of sets misses the right class, up to the change
        that leaving out one label makes. Nodes without evidence get all classes. With fewer than
        1 / alpha - 1 labels, all nodes get all classes, and a warning says so.

        Parameters
        ----------
        alpha : float
            Largest share of sets that may miss the right class.

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
        check_fraction("alpha", alpha)
        evidence = self._known
        n_labels = int(np.count_nonzero(evidence.left_out.connected))
        if alpha * (n_labels + 1) < 1.0:
            warnings.warn(
                f"sets with alpha = {alpha:g} need at least {np.ceil(1.0 / alpha) - 1.0:g} labels "
                f"that are connected to others; with {n_labels} all sets hold all classes",
                UserWarning,
                stacklevel=2,
            )
        return evidence.prediction_sets(alpha)

    def _what_is_known(self) -> dict[str, Any]:
        if not hasattr(self, "_labels"):
            return {}
        known = self._known
        shares = known.uncalibrated().probabilities.copy()
        shares[~known.answered] = np.nan
        return {"shares": shares, "classes": self.classes_}

    @property
    def stability_(self) -> Floats:
        """Estimated chance that another sample of edges would give a node another label.

        For answers of one pass, and after `update`; its mean estimates the share of labels that
        would change with another seed. An estimate, too low where most labels would change. 0 where
        no edge was dropped, and for answers of more passes: there the sample hardly matters, and
        `residual_` tells how far the answer is from that of the full graph. Takes four solves and
        reads no edge.
        """
        result, known = self._solve(), self._known
        flips = np.zeros(len(result.reached))
        if self.sparsifier_ is None or result.passes > 0 or self._holds_all_edges():
            return flips
        unlabelled = result.reached.copy()
        unlabelled[self.labelled_] = False
        others = (self._scores_on_replicate(number) for number in range(REPLICATES))
        with phase("measuring stability", self.verbose):
            return flip_probabilities(
                self.graph_, known.decision_scores, others, AMPLITUDE, unlabelled
            )

    def _scores_on_replicate(self, number: int) -> Floats:
        assert self.sparsifier_ is not None
        result = self._solve()
        graph = self.sparsifier_.replicate(number, amplitude=AMPLITUDE, **self._moment)
        other = self._solve_in_memory(start=result, graph=graph)
        return self._known.with_result(other).decision_scores
