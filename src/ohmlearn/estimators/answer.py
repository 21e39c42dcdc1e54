"""What scores say about each node: labels and probabilities, and how good they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._phases import phase
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import check_fraction
from ohmlearn.errors import OhmWarning, Param
from ohmlearn.estimators.calibration import (
    DEFAULT,
    AccuracyEstimate,
    Calibration,
    centre,
    conformal_threshold,
    estimate_accuracy,
    fit_calibration,
    flip_probabilities,
    match_proportions,
    relative_degrees,
    row_sizes,
    scale_scores,
    spread_of,
)
from ohmlearn.estimators.class_proportions import Imbalance, find_imbalance
from ohmlearn.estimators.combination import (
    Combination,
    fit_combination,
    folds_of,
    scale_walks,
    sizes_of_walks,
)
from ohmlearn.harmonic import HFSResult
from ohmlearn.harmonic.leave_one_out import LeftOut, component_means, unlabelled_nodes
from ohmlearn.harmonic.posterior import posterior_std

if TYPE_CHECKING:
    from ohmlearn.estimators.problem import ClassProblem, NumberProblem, Problem

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["stable", "cmn", "plain", "restart"]
FIT_NODES, MATCHED_NODES = 1_000, 20_000  # nodes that represent all of them
TIE = 1e-6  # exponents this close are equal, up to the errors of solves
BLOCK_CELLS = 1 << 20  # of matrices that are computed in blocks of rows: 8 MiB
SHIFT = 10.0  # a label does not count more than this many times another one
FEW = 3  # labels for each class; with fewer, probabilities are rough
# Part of the offsets to proportions that are known roughly: with proportions that are wrong by 0.1
# in total variation the whole loses 2 points of accuracy, half of it gains 0.7.
ROUGH = 0.5
REPLICATES, AMPLITUDE = 4, 0.5  # of the sparsifier, for the stability


def comparable_scores(result: HFSResult, counts: Floats) -> Floats:
    """Return scores of classes that can be compared at a node, given the number of their labels.

    The scores of a class sum to zero over all nodes. Within a single component they may not, so
    labels in other components would influence the decision; we centre them in each component. A
    class with more labels than others has larger scores; docs/labels.md explains the square root.
    """
    sizes = np.bincount(result.component)
    sums = np.zeros((len(sizes), result.f.shape[1]))
    np.add.at(sums, result.component, result.f)
    f: Floats = result.f - (sums / sizes[:, np.newaxis])[result.component]
    f /= np.sqrt(np.where(counts > 0, counts, 1.0))
    return f


def classes_there(result: HFSResult, nodes: NDArray[np.int64], values: Floats) -> Bools:
    """Return for each node and class whether the node's component has a label of that class.

    Without such a label there is no evidence for the class. Its centred scores may still be
    nonzero.
    """
    return _labels_there(result, nodes, values)[result.component] > 0


def _labels_there(result: HFSResult, nodes: NDArray[np.int64], values: Floats) -> Floats:
    """Return the sum of the labels of each component."""
    there = np.zeros((int(result.component.max()) + 1, values.shape[1]))
    np.add.at(there, result.component[nodes], values)
    return there


class LeftOutLabels(NamedTuple):
    """Labels that are left out, one at a time."""

    labels: NDArray[np.int64]  # positions among the labels
    exponents: Floats  # of their nodes, without them
    there: Bools  # whether a class has another label in the component
    usable: Bools  # whether they are connected, and their classes have other labels
    connected: Bools  # whether other labels reach their nodes


class NodeAnswer(ABC):
    """An answer for all nodes; nothing of it changes, and what takes long is kept."""

    without_evidence: str  # what happens to nodes that no label reaches, for a warning
    problem: Problem

    def __init__(self, problem: Problem, result: HFSResult, n_iter: int | None = None) -> None:
        self.problem, self.result = problem, result
        self.n_iter = n_iter or 1 + result.passes  # number of passes over the edges

    @property
    @abstractmethod
    def labels(self) -> NDArray[Any]:
        """The class or number of every node."""

    @abstractmethod
    def known_probabilities(self) -> dict[str, Any]:
        """Return what `suggest_nodes` can use besides the graph."""

    @cached_property
    def left_out_scores(self) -> LeftOut:
        """Leave-one-out scores of the answer, or of the graph in memory if it has none."""
        found, problem = self.result.left_out, self.problem
        if found is None:
            with phase("calibrating", problem.parameters.verbose):
                found = problem.solve(self.result, problem.labels_to_leave_out()).left_out
        assert found is not None
        return found

    @cached_property
    def reached(self) -> Bools:
        """Whether a node is connected to any label, or has one itself."""
        reached = self.result.reached.copy()
        reached[self.problem.labels.nodes] = True
        return reached

    @cached_property
    def uncertainty(self) -> Floats:
        """Posterior standard deviation of the score of every node; infinite if not reached."""
        problem = self.problem
        found = np.full(problem.n_nodes, np.inf)
        labels = problem.labels  # also those of nodes without an edge
        found[labels.nodes] = 1.0 / np.sqrt(labels.weights)
        known = posterior_std(
            problem.graph,
            problem.used.nodes,
            gamma=problem.gamma if problem.method == "harmonic" else 1.0,
            sample_weight=problem.used.weights,
            random_state=problem.seed,
            n_jobs=problem.parameters.n_jobs,
        )
        at = np.flatnonzero(np.isfinite(known))
        found[at] = known[at]
        return found

    def warn_apart(
        self, what: str | None = None, how: str = ", for example by more neighbours"
    ) -> None:
        """Warn of labelled nodes that no edge has, perhaps mistyped, and of nodes not reached.

        `what` says what happens to these, and `how` to connect them.
        """
        problem, lost = self.problem, ~self.reached
        alone = problem.unused.nodes
        if len(alone) > 0:
            # An edge may have faded, or be outside of the window.
            why = "are in no edge" if problem.graph.view is None else "have no edge that counts"
            first = [problem.id_of(node) for node in (alone[0], *range(min(99, problem.n_nodes)))]
            if any(str(node) != str(node).strip() for node in first):
                why += " (blanks around ids count, but are left out where text files are read)"
            warn(
                f"{len(alone)} of the {len(problem.labels.nodes)} labelled nodes {why}, such as "
                f"{first[0]!r}; they keep their labels, which count for nothing else"
            )
        if lost.any():
            warn(
                f"{np.count_nonzero(lost)} of {len(lost)} nodes are in components without a label: "
                f"{what or self.without_evidence}; label some of them, or connect them to the "
                f"rest{how}"
            )


class ClassAnswer(NodeAnswer):
    """The class of every node: scores, of which each class has one column, and what they say.

    The class of node v has the largest exponent z. If `combination` is used,

        z[v] = (s[v] - mean s[v]) / scale[v] + restart (g[v] - mean g[v]) / size[v] + bias + offsets

    with the comparable harmonic scores s (`scores`), the scores of random walks over the number of
    labels g (`walks.f / counts`), and means over the classes that have a label in the component.
    scale[v] is the root of `spread` times the root mean square of the first numerator, size[v] the
    root mean square of the second. For scales, counts, bias and offsets as they are, the difference
    of two classes is linear in the labels.
    """

    has_features = False  # see `FeatureClassAnswer`
    without_evidence = "they get the class prior, and reached_ is False there"
    problem: ClassProblem

    def __init__(self, problem: ClassProblem, result: HFSResult, n_iter: int | None = None) -> None:
        super().__init__(problem, result, n_iter)
        self.used, self.unused = problem.used, problem.unused
        self.calibrate = problem.parameters.calibration == "loo"
        self.class_prior = problem.class_prior
        self.wanted_proportions = problem.wanted_proportions
        self.counts = problem.counts
        given = self.used.weights[:, np.newaxis] * self.used.values
        self.there = classes_there(result, self.used.nodes, given)
        self._is_told = False

    @property
    def answered(self) -> Bools:
        """The same as `reached`; with features also nodes that are answered from these."""
        return self.reached

    @property
    def kind(self) -> Kind:
        """Stable-HFS, HFS with or without class mass normalisation, or random walks."""
        if self.problem.method == "restart":
            return "restart"
        return self.problem.parameters.normalization or "plain"

    # Scores and exponents of all nodes.

    @cached_property
    def scores(self) -> Floats:
        """Scores that can be compared at a node and across nodes."""
        if self.kind == "stable":
            return comparable_scores(self.result, self.counts)
        return self._logarithms(self.result.f, self.counts)

    def _logarithms(self, f: Floats, counts: Floats) -> Floats:
        """Return logarithms of scores that are probabilities, up to a factor for each class."""
        return np.log(np.maximum(f * self.class_factors(counts), 1e-300))

    def class_factors(self, counts: Floats) -> Floats:
        """Return what the scores of each class are multiplied by, before they are compared."""
        safe = np.where(counts > 0, counts, 1.0)
        if self.kind == "stable":
            return 1.0 / np.sqrt(safe)  # docs/labels.md explains the square root
        if self.kind == "cmn":
            mass = np.maximum(self.result.f, 0.0).sum(axis=0)
            return self.class_prior / np.where(mass > 0, mass, 1.0)
        return 1.0 / safe if self.kind == "restart" else np.ones_like(safe)

    @cached_property
    def spread(self) -> float:
        """Typical size of the scores of a node around their mean."""
        reached = self.result.reached
        return spread_of(self.scores[reached], self.there[reached])

    @cached_property
    def harmonic_exponents(self) -> Floats:
        """Exponents of the scores alone."""
        return by_blocks(self._scale, self.scores, self.there)

    @cached_property
    def walks(self) -> HFSResult:
        """Random walks with restart from the same labels, on the edges kept."""
        return self.problem.walks.solve()

    @cached_property
    def exponents(self) -> Floats:
        """Exponents whose soft maximum are the probabilities."""
        added = self.combination
        if added is None:
            return self.harmonic_exponents
        if added.restart == 0.0:
            return added.apply(self.harmonic_exponents)
        return by_blocks(
            lambda x, f, there: added.apply(x, self._scale_walks(f, self.counts, there)),
            self.harmonic_exponents, self.walks.f, self.there,
        )  # fmt: skip

    def walk_sizes(self, nodes: NDArray[np.int64]) -> Floats:
        """Return what the scores of walks are divided by at some nodes; see `scale_walks`."""
        scores = self.walks.f[nodes] / np.where(self.counts > 0, self.counts, 1.0)
        there = self.there[nodes]
        return sizes_of_walks(centre(scores, there), there, self._typical_walks)[:, 0]

    def _scale_walks(self, f: Floats, counts: Floats, there: Bools) -> Floats:
        return scale_walks(f / np.where(counts > 0, counts, 1.0), there, self._typical_walks)

    @cached_property
    def _typical_walks(self) -> float:
        squares = np.mean(np.square(self.walks.f), axis=0)
        return float(np.sqrt(np.mean(squares / np.where(self.counts > 0, self.counts, 1.0) ** 2)))

    def _scale(self, scores: Floats, there: Bools) -> Floats:
        if self.calibrate:
            return scale_scores(scores, there, self.spread)
        exponents = scores / self.spread if self.kind == "stable" else scores.copy()
        exponents[~there] = -np.inf
        exponents[~there.any(axis=1)] = 0.0
        return exponents

    # Leave-one-out.

    @cached_property
    def harmonic_left_out(self) -> LeftOutLabels:
        """The labels that are left out, one at a time, with the exponents of harmonic scores."""
        rows, (labels, f, means) = self.used, self.left_out_scores
        given = rows.weights[:, np.newaxis] * rows.values
        counts = self.counts - given[labels]
        has = (given > 0).astype(np.float64)  # numbers of labels, whose differences are exact
        around = _labels_there(self.result, rows.nodes, has)
        there = around[self.result.component[rows.nodes[labels]]] > has[labels]
        if self.kind == "stable":
            # A class with one label less has another level at all nodes. With equally many labels
            # for each class this alone would give away which label is left out. So we compare the
            # node with unlabelled nodes, and these have the levels that they have with all labels.
            scores = (f - means) / np.sqrt(np.where(counts > 0, counts, 1.0))
            counted = unlabelled_nodes(self.result.component, rows.nodes)
            levels = component_means(self.scores, self.result.component, counted)
            scores += levels[self.result.component[rows.nodes[labels]]]
        else:
            scores = self._logarithms(f, counts)
        connected: Bools = np.any(there, axis=1)
        usable = connected & np.all((has[labels] == 0) | (has.sum(axis=0) > has[labels]), axis=1)
        return LeftOutLabels(labels, self._scale(scores, there), there, usable, connected)

    @cached_property
    def combination(self) -> Combination | None:
        """What is added to harmonic exponents; None if nothing is."""
        return None if self._fits is None else self._fits[0]

    @cached_property
    def left_out(self) -> LeftOutLabels:
        """The labels left out, with the exponents of combinations that were fitted without them."""
        found = self.harmonic_left_out
        return found if self._fits is None else found._replace(exponents=self._fits[1])

    @cached_property
    def _fits(self) -> tuple[Combination, Floats] | None:
        """The combination, and exponents of labels left out from those fitted to other folds.

        The same labels would make it look better than it is: by 1.3 points of accuracy with two
        labels a class.
        """
        if not (self.problem.combines and self.calibrate and len(self.counts) > 1):
            return None
        labels, x, there, usable, _ = self.harmonic_left_out
        if not usable.any():
            return None
        w = None
        # Nodes of a sparsifier have few neighbours, so walks on it are mostly noise: with them only
        # 93% of the payments in the README were right, not 99%.
        if self.problem.holds_all_edges:
            with phase("random walks", self.problem.parameters.verbose):
                problem = self.problem.walks
                leave_out = problem.labels_to_leave_out()
                found = problem.solve(self.walks, leave_out).left_out
            assert found is not None
            given = self.used.weights[labels, np.newaxis] * self.used.values[labels]
            w = self._scale_walks(found.f, np.maximum(self.counts - given, 0.0), there)
        # A bias would be undone by offsets that meet proportions exactly.
        biased = not self.problem.parameters.matches_exactly

        def fit(rows: Bools) -> Combination:
            walks, given = None if w is None else w[rows], self.used.values[labels[rows]]
            weights = _effective(self.label_weights[rows])
            return fit_combination(x[rows], walks, given, weights, biased=biased)

        codes = self.used.values[labels].argmax(axis=1)
        exponents, folds = x.copy(), folds_of(codes)
        for fold in np.unique(folds):
            rest, part = usable & (folds != fold), folds == fold
            if rest.any():
                exponents[part] = fit(rest).apply(x[part], None if w is None else w[part])
        return fit(usable), exponents

    @cached_property
    def label_weights(self) -> Floats:
        """How much each of the labels left out counts."""
        labels = self.harmonic_left_out.labels
        weights = self.used.weights[labels] / self.used.weights[labels].mean()
        if self.problem.parameters.knows_proportions:
            ratios = self.class_prior / np.maximum(self.counts / self.counts.sum(), 1e-12)
            ratios = np.clip(ratios, 1 / SHIFT, SHIFT)
            weights = weights * (self.used.values[labels] * ratios).sum(axis=1)
        return np.asarray(weights / weights.mean())

    # Probabilities.

    @cached_property
    def calibration(self) -> Calibration:
        """How exponents become probabilities."""
        if not self.calibrate:
            return Calibration(1.0, 0.0)
        labels, exponents, _, usable, _ = self.left_out
        if not usable.any():
            return DEFAULT
        reached = _some(np.flatnonzero(self.result.reached), FIT_NODES)
        nodes, degrees = self.used.nodes[labels[usable]], self.degrees
        # Few labels do not tell the power, and a guess made hubs worse.
        knows_power = self.problem.combines and len(nodes) >= FEW * len(self.counts)
        return fit_calibration(
            exponents[usable] + self.offsets,
            self.used.values[labels][usable],
            self.exponents[reached] + self.offsets,
            _effective(self.label_weights[usable]),
            (degrees[nodes], degrees[reached]) if knows_power else None,
        )

    @cached_property
    def degrees(self) -> Floats:
        """Relative degrees of all nodes on the edges kept, as a column."""
        return relative_degrees(self.problem.full_graph.degrees)[:, np.newaxis]

    @cached_property
    def offsets(self) -> Floats:
        """What is added to the exponents to meet the wanted proportions."""
        if self.wanted_proportions is None:
            return np.zeros(len(self.class_prior))
        reached = _some(np.flatnonzero(self.result.reached), MATCHED_NODES)
        offsets = match_proportions(
            self.exponents[reached], self.wanted_proportions, DEFAULT.temperature
        )
        return offsets if self.problem.parameters.matches_exactly else ROUGH * offsets

    @cached_property
    def probabilities(self) -> Floats:
        """Probability of each class for every node; the class prior where there is no evidence."""
        probabilities: Floats = by_blocks(self._calibrated, self.exponents, self.degrees)
        probabilities[~self.result.reached] = self.class_prior
        probabilities[self.unused.nodes] = self.unused.values
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        probabilities.flags.writeable = False  # they are kept
        return probabilities

    def _calibrated(self, exponents: Floats, degrees: Floats) -> Floats:
        return self.calibration.apply(exponents + self.offsets, degrees)

    def codes(self, default: int) -> NDArray[np.intp]:
        """Return the most likely class of every node; `default` where there is no evidence."""
        codes: NDArray[np.intp] = by_blocks(
            lambda rows: np.argmax(rows + self.offsets, axis=1), self.exponents
        )
        codes[~self.result.reached] = default
        codes[self.unused.nodes] = np.argmax(self.unused.values, axis=1)
        return codes

    def proportions(self, added: Floats | float = 0.0) -> Floats:
        """Return the proportions of the classes among nodes that labels reach.

        `added` is what else is added to the exponents.
        """
        codes: NDArray[np.intp] = by_blocks(
            lambda rows: np.argmax(rows + self.offsets + added, axis=1), self.exponents
        )
        counts = np.bincount(codes[self.result.reached], minlength=len(self.counts))
        return np.asarray(counts / max(1, counts.sum()))

    def find_imbalance(self, *, by_few: bool = True) -> Imbalance | None:
        """Return a class out of proportion to its labels, unless a prior was given."""
        if self.wanted_proportions is not None:
            return None
        counts = np.bincount(self.codes(0)[self.reached], minlength=len(self.counts))
        names, given = self.problem.classes.astype(str).tolist(), self.used.values.sum(axis=0)
        return find_imbalance(names, given, counts, by_few=by_few)

    @cached_property
    def decision_scores(self) -> Floats:
        """Scores whose largest one decides the class; the least one of all where there is none.

        They are of the size of `scores` at each node, because few of them say what errors do.
        """
        scores = self.scores
        if self.wanted_proportions is not None or self.combination is not None:
            sizes = row_sizes(centre(scores, self.there), self.there) * self.spread
            z = np.where(self.there, self.exponents + self.offsets, 0.0)
            scores = z * np.sqrt(sizes if self.calibrate else 1.0)
        scores = np.where(self.there, scores, scores[self.there].min(initial=0.0))
        scores[~self.result.reached] = 0.0
        return scores

    # How good they are.

    @cached_property
    def left_out_probabilities(self) -> Floats:
        """Probabilities of the labelled nodes, each without its own label."""
        degrees = self.degrees[self.used.nodes[self.left_out.labels]]
        return self._calibrated(self.left_out.exponents, degrees)

    def accuracy(self) -> AccuracyEstimate:
        """Return the leave-one-out accuracy; of classes that rounding alone decides, the mean.

        Without its label, a node that no other label reaches is none of those that get one.
        """
        labels, exponents, _, _, connected = self.left_out
        if not connected.any():
            return AccuracyEstimate(float("nan"), 0.0, 1.0, 0)
        exponents = exponents[connected] + self.offsets
        best = exponents >= exponents.max(axis=1, keepdims=True) - TIE
        right = np.average(self.used.values[labels[connected]], axis=1, weights=best)
        return estimate_accuracy(right, self.label_weights[connected])

    def prediction_sets(self, alpha: float) -> Bools:
        """Return for each node the classes that hold its label with probability 1 - alpha."""
        alpha = check_fraction("alpha", alpha)
        n_labels = int(np.count_nonzero(self.left_out.connected))
        if alpha * (n_labels + 1) < 1.0:
            warn(
                f"sets with {Param('alpha', alpha)} need at least {np.ceil(1.0 / alpha) - 1.0:g} "
                f"labels that are connected to others; with {n_labels} all sets hold all classes",
                OhmWarning,
            )
        labels = self.left_out.labels
        given = np.einsum("ij,ij->i", self.used.values[labels], self.left_out_probabilities)
        threshold = conformal_threshold(given[self.left_out.connected], alpha)
        sets: Bools = self.probabilities >= threshold
        sets[~self.answered] = True
        return sets

    @cached_property
    def default_code(self) -> int:
        """The class of nodes without evidence: the most likely one.

        If several classes are equally likely, one draw decides for all such nodes together.
        """
        likeliest = np.flatnonzero(self.class_prior == self.class_prior.max())
        return int(np.random.default_rng(self.problem.seed).choice(likeliest))

    @property
    def labels(self) -> NDArray[Any]:
        """Class of every node."""
        return self.problem.classes[self.codes(self.default_code)]

    def known_probabilities(self) -> dict[str, Any]:
        plain = ClassAnswer(self.problem, self.result)
        plain.calibrate, plain.wanted_proportions = False, None
        probabilities = plain.probabilities.copy()
        probabilities[~self.answered] = np.nan
        return {"probabilities": probabilities, "classes": self.problem.classes}

    def left_out_values(self) -> tuple[Floats, Floats, Floats]:
        """Return of labels left out: probabilities of all classes, the values given, and weights.

        A label is left out only if its class has other labels: otherwise the answer must be wrong.
        """
        usable = self.left_out.usable
        given = self.used.values[self.left_out.labels[usable]]
        return self.left_out_probabilities[usable], given, self.label_weights[usable]

    def warn_imbalance(self) -> None:
        """Warn of a class out of proportion to its labels, if these are enough to tell."""
        found = self.find_imbalance(by_few=False)
        if found is not None and len(self.used.nodes) > FEW * len(self.counts):
            warn(found.describe(str(Param("class_prior"))))

    def warn_few(self) -> None:
        """Warn once if probabilities are those of few labels."""
        n_labels, n_classes = float(self.counts.sum()), len(self.counts)
        if n_classes > 1 and n_labels < FEW * n_classes and not self._is_told:
            self._is_told = True
            warn(
                f"{n_labels:g} labels are few for {n_classes} classes, so probabilities and the "
                f"estimated accuracy are rough; give at least {FEW} labels for each class"
            )

    @cached_property
    def stability(self) -> Floats:
        """How likely another sample of edges would give a node another label."""
        problem, result = self.problem, self.result
        if result.passes > 0 or problem.holds_all_edges:
            return np.zeros(problem.n_nodes)
        unlabelled = result.reached.copy()
        unlabelled[problem.labels.nodes] = False
        with phase("measuring stability", problem.parameters.verbose):
            others = map(self._scores_on_replicate, range(REPLICATES))
            return flip_probabilities(
                problem.full_graph, self.decision_scores, others, AMPLITUDE, unlabelled
            )

    @cached_property
    def fraction_unstable(self) -> float:
        """The fraction of all labels that another sample of edges would change."""
        return float(np.mean(self.stability))

    def _scores_on_replicate(self, number: int) -> Floats:
        problem = self.problem
        graph = problem.sample.replicate(number, AMPLITUDE)
        other = ClassAnswer(problem, problem.solve(self.result, graph=graph))
        other.spread, other.offsets = self.spread, self.offsets
        other.combination = self.combination  # without walks, because edges were dropped
        return other.decision_scores


class NumberAnswer(NodeAnswer):
    """A number for every node."""

    without_evidence = "they get the mean of the given values, and reached_ is False there"
    problem: NumberProblem

    @property
    def labels(self) -> Floats:
        """Number for every node; the mean of the given ones where no label reaches."""
        result, mean, unused = self.result, self.problem.mean, self.problem.unused
        values: Floats = np.where(result.reached, result.f[:, 0] + mean, mean)
        values[unused.nodes] = unused.values[:, 0]
        return values

    def known_probabilities(self) -> dict[str, Any]:
        return {}


def judge_left_out(answer: Any) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return of answers for labels left out: probability, whether right, weight, and class."""
    p, given, weights = answer.left_out_values()
    codes = np.argmax(p, axis=1)
    return p.max(axis=1), given[np.arange(len(p)), codes], weights, codes


def by_blocks(function: Callable[..., NDArray[Any]], *matrices: NDArray[Any]) -> NDArray[Any]:
    """Return ``function(*matrices)``, computed for some rows after the other to save memory.

    The function must treat each row by itself.
    """
    n_rows, n_columns = matrices[0].shape
    size = max(1, BLOCK_CELLS // max(1, n_columns))
    first = function(*(matrix[:size] for matrix in matrices))
    if n_rows <= size:
        return first
    found = np.empty((n_rows, *first.shape[1:]), first.dtype)
    found[:size] = first
    for start in range(size, n_rows, size):
        rows = slice(start, start + size)
        found[rows] = function(*(matrix[rows] for matrix in matrices))
    return found


def _effective(weights: Floats) -> Floats:
    """Return weights that sum to the number of equal labels that would be worth as much."""
    return np.asarray(weights * weights.sum() / np.sum(weights**2))


def _some(nodes: NDArray[Any], most: int) -> NDArray[Any]:
    """Return at most so many of the nodes, drawn at random: their order may have a period."""
    if len(nodes) <= most:
        return nodes
    return np.sort(np.random.default_rng(most).choice(nodes, most, replace=False))
