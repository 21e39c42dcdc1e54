"""How much each expert counts: weights from predictions of labels that are left out.

The labels are divided into folds. The experts answer for the labels of each fold from those of the
others. An expert whose answers have the loss c, in nats, summed over all labels, gets the weight
prior * skill^2 * exp(-c / CAUTION), where the skill compares what the expert knows with what the
best one knows. This is Bayesian averaging of models, with doubts about the independence of the
losses. With few labels the weights stay near the prior, with many the best expert wins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.estimators.calibration import Calibration
from ohmlearn.estimators.label_input import NodeLabels, choose_labels
from ohmlearn.features.expert_tasks import Floats, Predictor, Task
from ohmlearn.features.experts import FEATURES, GRAPH, SPREAD_GAMMAS, Experts, Variant

__all__ = ["Mixture", "fit_both", "fit_mixture", "split_labels", "splits"]

GAMMAS = (9.0, 3.0, 30.0, 0.0)  # those of "auto"; another one than the first must be clearly better
CAUTION = 2.0  # how many nats count as one, because losses are not independent
FEW = 40  # labels; with fewer, nothing is chosen but weights
PRIOR = {"graph": 0.6, "both": 0.34, "features": 0.06}
PLAIN = (Variant("both"), FEATURES, GRAPH)
N_NESTED = 5  # folds of labels from which the accuracy is estimated
NEGLIGIBLE = 1e-3  # weights that do not count
ALONE = 0.9  # weight of the features from which the graph is left out
# From MOST on, too, if joined nodes are not ALIKE and the graph gains fewer nats for each label.
MOST, ALIKE, LEAST_GAIN = 0.15, 0.3, 0.01
TEMPERATURE = 0.4  # typical of real data with few labels

Mask = NDArray[np.bool_]


@dataclass
class Mixture:
    """The weights of experts, and what they were computed from.

    Attributes
    ----------
    gamma : float
        How far features are smoothed.
    weights : dict {Variant: float}
        They sum to 1.
    losses : dict {Variant: float}
        Mean loss for left-out labels, in nats.
    temperatures : dict {Variant: float}
        How answers of experts are made comparable.
    left_out : ndarray of shape (n_labels, n_columns)
        Answers for left-out labels of mixtures that were weighed without them.
    usable : ndarray of bool, shape (n_labels,)
        Which labels can be left out: those that are not the only ones of their class.
    base_temperature : float
        That of step 1 of the expert for both.
    errors : ndarray or None
        Errors of step 1 at left-out labels.
    estimator, own_estimator : object
        The estimators for smoothed features and for the features themselves.
    losses_without : ndarray
        Loss for each usable label from the features alone, or if that is less, from the same
        answer for all; NaN if no label can be left out.
    calibration : Calibration or None
        That of the probabilities; the classifier puts it here when it is asked for.
    """

    gamma: float
    weights: dict[Variant, float]
    losses: dict[Variant, float]
    temperatures: dict[Variant, float]
    left_out: Floats
    usable: Mask
    base_temperature: float = 1.0
    errors: Floats | None = None
    estimator: Any = None
    own_estimator: Any = None
    losses_without: Floats = field(default_factory=lambda: np.full(1, np.nan))
    calibration: Calibration | None = None

    def share(self, kind: str) -> float:
        """Return the weight of all experts of a kind."""
        return sum((weight for v, weight in self.weights.items() if v.kind == kind), 0.0)


class FirstStep:
    """An estimator on the rows of labelled nodes, fitted to some labels; fits are used again."""

    def __init__(self, task: Task, estimator: Any, rows: Any, labels: NodeLabels) -> None:
        self.task, self.estimator, self.rows, self.labels = task, estimator, rows, labels
        self._fits: dict[bytes, Predictor] = {}
        self.losses: Floats = np.empty(0)  # see `judge`
        self.mean = 0.0

    def fit(self, known: Mask) -> Predictor:
        """Return the estimator fitted to the labels that are known."""
        key = known.tobytes()
        if key not in self._fits:
            labels = choose_labels(self.labels, known)
            self._fits[key] = self.task.fit(self.estimator, self.rows[known], labels)
        return self._fits[key]

    def leave_out(self, known: Mask, folds: NDArray[np.int64]) -> Floats:
        """Return answers for the known labels, each from those of the other folds."""
        answers = np.zeros_like(self.labels.values)
        for at in fold_masks(folds, known):
            answers[at] = self.fit(known & ~at)(self.rows[at])
        return answers

    def judge(self, usable: Mask, folds: NDArray[np.int64]) -> Self:
        """Set the losses of left-out labels, from answers as sure as they should be."""
        judged = choose_labels(self.labels, usable)
        answers = self.leave_out(np.ones_like(usable), folds)[usable]
        temperature = self.task.find_temperature(answers, judged)
        self.losses = self.task.losses(self.task.apply_temperature(answers, temperature), judged)
        self.mean = float(np.average(self.losses, weights=judged.weights))
        return self


@dataclass
class Comparison:
    """Weighs the experts by their answers for labels that are left out.

    `first` is step 1 of the expert for both, and `own` the expert for features.
    """

    experts: Experts
    labels: NodeLabels
    first: FirstStep
    own: FirstStep
    gamma: float
    smoothed: NDArray[np.generic] | None
    wanted: tuple[Variant, ...]
    homophily: float

    def __post_init__(self) -> None:
        self._by_graph: dict[bytes, Floats] = {}

    def fit(self, known: Mask, folds: NDArray[np.int64]) -> Mixture:
        """Weigh the experts by the known labels, each left out with its fold."""
        task, labels = self.experts.task, self.labels
        usable = np.zeros_like(known)
        usable[known] = task.can_be_left_out(choose_labels(labels, known))
        if np.count_nonzero(usable) < 2:
            kinds = {variant.kind for variant in self.wanted}
            return _weigh_nothing(labels, self.gamma, [v for v in PLAIN if v.kind in kinds])
        first = self.first.leave_out(known, folds)
        base = task.find_temperature(first[usable], choose_labels(labels, usable))
        errors = labels.values - task.apply_temperature(first, base)
        errors[~usable] = 0.0  # the estimator did not know their classes
        left_out = {variant: np.zeros_like(first) for variant in self.wanted}
        for at in fold_masks(folds, known):
            for variant, found in self._answer(known & ~at, base, errors, self.wanted):
                left_out[variant][at] = found[at]
        mixture = _weigh(task, labels, usable, left_out, self.gamma, self.homophily)
        mixture.base_temperature, mixture.errors = base, errors
        return mixture

    def nest(self, folds: NDArray[np.int64]) -> Floats:
        """Return answers for all labels, each from a mixture that has seen no label of its fold.

        Answers of a mixture that was weighed by the same labels would be too good: with features
        and edges of no use, some expert is right about most of ten labels by accident. Gamma, the
        estimator and the homophily are still those of all labels. With 20 labels of each of two
        classes and nothing to find, the estimate was .501 on average of 150 draws.
        """
        answers = np.zeros_like(self.labels.values)
        everything = np.ones(len(folds), dtype=bool)
        n_folds = int(folds.max()) + 1
        for number, at in enumerate(fold_masks(folds, everything)):
            what = Phase("estimating the accuracy", number + 1, n_folds, part="fold")
            with phase(what, self.experts.verbose):
                mixture = self.fit(~at, folds)
                base, errors = mixture.base_temperature, mixture.errors
                for variant, found in self._answer(~at, base, errors, tuple(mixture.weights)):
                    temperature = mixture.temperatures[variant]
                    found = self.experts.task.apply_temperature(found[at], temperature)
                    answers[at] += mixture.weights[variant] * found
        return answers

    def _answer(
        self, known: Mask, base: float, errors: Floats | None, wanted: tuple[Variant, ...]
    ) -> Iterator[tuple[Variant, Floats]]:
        """Yield the answers of the experts for all labels, from those that are known."""
        experts, labels = self.experts, choose_labels(self.labels, known)
        if any(variant.kind == "both" for variant in wanted):
            both = experts.predict_all(self.first.fit(known), self.smoothed)
            both = experts.task.apply_temperature(both, base)
            errors = None if errors is None else errors[known]
            for variant, found in experts.variants_of_both(both, labels, errors, wanted):
                yield variant, found[self.labels.nodes]
        if FEATURES in wanted:
            yield FEATURES, self.own.fit(known)(self.own.rows)
        if GRAPH in wanted:
            key = known.tobytes()
            if key not in self._by_graph:
                self._by_graph[key] = experts.by_graph(labels)[self.labels.nodes]
            yield GRAPH, self._by_graph[key]


def fit_mixture(
    experts: Experts,
    labels: NodeLabels,
    *,
    gamma: float | None,
    correct: bool | None,
    spread: bool | None,
    mix: bool,
    n_folds: int,
    homophily: float,
) -> tuple[Mixture, NDArray[np.generic] | None]:
    """Weigh the experts; return the mixture, and the smoothed features of all nodes.

    `gamma` may be None, which chooses it, as None for `correct` and `spread` leaves the step to the
    weights. Without `mix`, only variants of the expert for both are used. `homophily` is that of
    the labels.
    """
    task = experts.task
    usable = task.can_be_left_out(labels)
    if np.count_nonzero(usable) < 2:
        gamma = GAMMAS[0] if gamma is None else gamma
        mixture = _weigh_nothing(labels, gamma, PLAIN if mix else PLAIN[:1])
        mixture.estimator = mixture.own_estimator = experts.estimators[0]
        return mixture, experts.smooth_features(gamma) if gamma > 0.0 else None
    groups = task.groups(labels)
    folds = split_labels(groups, n_folds, experts.seed)
    chosen, steps = _choose_gamma(experts, labels, usable, folds, gamma)
    smoothed = experts.smooth_features(chosen) if chosen > 0.0 else None
    wanted = _variants(correct, spread, mix)
    if mix and experts.graph.n_edges == 0:
        wanted = (FEATURES,)
    if mix and chosen == 0.0:  # without smoothing these two experts are one
        wanted = tuple(variant for variant in wanted if variant != Variant("both"))
    first, own = steps[chosen], steps[0.0]
    compared = Comparison(experts, labels, first, own, chosen, smoothed, wanted, homophily)
    with phase("comparing features and graph", experts.verbose):
        mixture = compared.fit(np.ones_like(usable), folds)
    try:
        mixture.left_out = compared.nest(split_labels(groups, N_NESTED, experts.seed))
    except ValueError as error:  # of the estimator, which could do with four of five labels
        warn(f"estimates of accuracy and probabilities are too high: {error}")
    mixture.estimator, mixture.own_estimator = first.estimator, own.estimator
    constant = _losses_of_constant(task, labels, folds)[usable]
    mixture.losses_without = min(own.losses, constant, key=np.mean)
    return mixture, smoothed


def _losses_of_constant(task: Task, labels: NodeLabels, folds: NDArray[np.int64]) -> Floats:
    """Return the losses of left-out labels if all answers are the same; features may be useless."""
    losses = np.empty(len(folds))
    for train, test in splits(folds):
        same = task.without_evidence(choose_labels(labels, train))
        answers = task.apply_temperature(np.repeat(same[np.newaxis], len(test), axis=0), 1.0)
        losses[test] = task.losses(answers, choose_labels(labels, test))
    return losses


def _weigh_nothing(labels: NodeLabels, gamma: float, variants: Sequence[Variant]) -> Mixture:
    """Return the mixture with the weights of the prior, for labels that cannot be left out."""
    weights = _normalise({variant: PRIOR[variant.kind] for variant in variants})
    typical = dict.fromkeys(variants, TEMPERATURE)
    losses = dict.fromkeys(variants, float("nan"))
    none = np.zeros(len(labels.nodes), dtype=bool)
    return Mixture(gamma, weights, losses, typical, labels.values, none)


def split_labels(groups: NDArray[np.int64], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return a fold for each label; folds have about the same size and mixture of groups.

    Examples
    --------
    >>> split_labels(np.array([0, 0, 0, 0, 1, 1]), 2, seed=0)
    array([0, 1, 1, 0, 1, 0])
    """
    order = np.random.default_rng(seed).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    folds = np.empty(len(groups), dtype=np.int64)
    folds[order] = np.arange(len(groups)) % min(n_folds, len(groups))
    return folds


def splits(folds: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the labels that are known and those that are left out, for each fold."""
    for fold in range(int(folds.max()) + 1):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def fold_masks(folds: NDArray[np.int64], known: Mask) -> Iterator[Mask]:
    """Yield which of the known labels each fold has."""
    for fold in np.unique(folds[known]):
        yield known & (folds == fold)


def _variants(correct: bool | None, spread: bool | None, mix: bool) -> tuple[Variant, ...]:
    """Return the experts that take part, always in the same order, for the same bits."""
    corrected = (False, True) if correct is None else (correct,)
    spreads = {None: (0.0, *SPREAD_GAMMAS), True: SPREAD_GAMMAS, False: (0.0,)}[spread]
    both = tuple(Variant("both", c, s) for c in corrected for s in spreads)
    return (FEATURES, *both, GRAPH) if mix else both


def fit_both(
    experts: Experts,
    estimator: Any,
    labels: NodeLabels,
    smoothed: NDArray[np.generic] | None,
) -> Floats:
    """Return the answers of step 1 for all nodes."""
    rows = experts.features.rows(labels.nodes) if smoothed is None else smoothed[labels.nodes]
    predict = experts.task.fit(estimator, rows, labels)
    return experts.predict_all(predict, smoothed)


def _choose_gamma(
    experts: Experts,
    labels: NodeLabels,
    usable: Mask,
    folds: NDArray[np.int64],
    gamma: float | None,
) -> tuple[float, dict[float, FirstStep]]:
    """Return gamma, and what step 1 gives with each gamma that was tried.

    Another gamma than the usual one is taken only if its loss is less by more than one standard
    error of the difference.
    """
    has_few = len(labels.nodes) < FEW
    usual_gamma = GAMMAS[0] if gamma is None else gamma
    tried = tuple({usual_gamma: None, 0.0: None})
    if gamma is None and not has_few:
        tried = GAMMAS
    estimators = experts.estimators[:1] if has_few else experts.estimators
    steps: dict[float, FirstStep] = {}
    for value in tried:
        if value == 0.0:
            rows = experts.features.rows(labels.nodes)
        else:
            rows = experts.smooth_features(value, labels.nodes)
        with phase("fitting the estimator", experts.verbose):
            every = [FirstStep(experts.task, each, rows, labels) for each in estimators]
            steps[value] = min(
                (step.judge(usable, folds) for step in every), key=attrgetter("mean")
            )
    chosen, usual = tried[0], steps[tried[0]]
    if gamma is None and not has_few:
        for value in tried[1:]:
            gain = usual.losses - steps[value].losses
            error = gain.std() / np.sqrt(len(gain))
            is_less = steps[value].mean < steps[chosen].mean
            if gain.mean() > error and is_less:
                chosen = value
    return chosen, steps


def _weigh(
    task: Task,
    labels: NodeLabels,
    usable: Mask,
    left_out: Mapping[Variant, Floats],
    gamma: float,
    homophily: float,
) -> Mixture:
    judged = choose_labels(labels, usable)
    # Labels of unequal weight count together as fewer labels of equal weight.
    relative = judged.weights * judged.weights.sum() / np.sum(judged.weights**2)
    temperatures, losses, errors, answers = {}, {}, {}, {}
    for variant, found in left_out.items():
        temperatures[variant] = task.find_temperature(found[usable], judged)
        answers[variant] = task.apply_temperature(found, temperatures[variant])
        each = task.losses(answers[variant][usable], judged)
        losses[variant] = float(np.average(each, weights=relative))
        errors[variant] = float(each.std() / np.sqrt(len(each)))
    n_labels = float(relative.sum()) / task.unit_of_losses(min(losses.values()))
    skill = _skills(task, judged, losses, errors)
    counts = {kind: sum(v.kind == kind for v in left_out) for kind in PRIOR}
    least = min(losses.values())
    weights = {
        variant: PRIOR[variant.kind]
        / counts[variant.kind]
        * skill[variant] ** 2
        * float(np.exp(-(loss - least) * n_labels / CAUTION))
        for variant, loss in losses.items()
    }
    weights = _normalise(weights)
    weights = _normalise({v: weight for v, weight in weights.items() if weight >= NEGLIGIBLE})
    mixed = _mean(answers, weights)
    if weights.get(FEATURES, 0.0) > MOST:  # the rest must be worth it
        loss = float(np.average(task.losses(mixed[usable], judged), weights=relative))
        gain = (losses[FEATURES] - loss) / task.unit_of_losses(least)
        if weights[FEATURES] >= ALONE or (gain < LEAST_GAIN and not homophily > ALIKE):
            weights, mixed = {FEATURES: 1.0}, answers[FEATURES]
    return Mixture(gamma, weights, losses, temperatures, mixed, usable)


def _mean(answers: Mapping[Variant, Floats], weights: Mapping[Variant, float]) -> Floats:
    mixed: Floats = np.sum([weight * answers[v] for v, weight in weights.items()], axis=0)
    return mixed


def _skills(
    task: Task,
    labels: NodeLabels,
    losses: Mapping[Variant, float],
    errors: Mapping[Variant, float],
) -> dict[Variant, float]:
    """Return how much each expert knows, compared with the best one.

    That is by how much its loss is less than that of the same answer for all labels. With few
    labels, differences of losses alone would leave too much weight to experts that know hardly
    anything. A standard error is added, so that experts that are worse by chance keep their weight.
    """
    same = np.repeat(task.without_evidence(labels)[np.newaxis], len(labels.nodes), axis=0)
    chance = float(np.average(task.losses(same, labels), weights=labels.weights))
    best = min(losses, key=lambda variant: losses[variant])
    most, error = max(chance - losses[best], 0.0), max(errors[best], 1e-300)
    return {
        variant: (max(chance - loss, 0.0) + error) / (most + error)
        for variant, loss in losses.items()
    }


def _normalise(weights: dict[Variant, float]) -> dict[Variant, float]:
    total = sum(weights.values())
    return {variant: weight / total for variant, weight in weights.items()}
