"""How much each expert counts: weights from predictions of labels that are left out.

The labels are divided into folds. The experts answer for the labels of each fold from those of the
others. An expert whose answers have the loss c, in nats, summed over all labels, gets the weight
prior * skill^2 * exp(-c / CAUTION), where the skill compares what the expert knows with what the
best one knows. This is Bayesian averaging of models, with doubts about the independence of the
losses. With few labels the weights stay near the prior, with many the best expert wins.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._phases import Phase, phase
from ohmlearn.estimators.calibration import Calibration
from ohmlearn.estimators.label_input import NodeLabels, choose_labels
from ohmlearn.features.expert_tasks import Floats, Task
from ohmlearn.features.experts import FEATURES, GRAPH, SPREAD_GAMMAS, Experts, Variant

__all__ = ["Mixture", "fit_both", "fit_mixture", "split_labels", "splits"]

GAMMAS = (9.0, 3.0, 30.0, 0.0)  # those of "auto"; another one than the first must be clearly better
CAUTION = 2.0  # how many nats count as one, because losses are not independent
FEW = 40  # labels; with fewer, nothing is chosen but weights
PRIOR = {"graph": 0.6, "both": 0.34, "features": 0.06}
NEGLIGIBLE = 1e-3  # weights that do not count
ALONE = 0.9  # weight of the features from which the graph is left out
# From MOST on, too, if joined nodes are not ALIKE and the graph gains fewer nats for each label.
MOST, ALIKE, LEAST_GAIN = 0.15, 0.3, 0.01
TEMPERATURE = 0.4  # typical of real data with few labels


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
        Answers of the mixture for left-out labels.
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
    usable: NDArray[np.bool_]
    base_temperature: float = 1.0
    errors: Floats | None = None
    estimator: Any = None
    own_estimator: Any = None
    losses_without: Floats = field(default_factory=lambda: np.full(1, np.nan))
    calibration: Calibration | None = None

    def share(self, kind: str) -> float:
        """Return the weight of all experts of a kind."""
        return sum((weight for v, weight in self.weights.items() if v.kind == kind), 0.0)


class FirstStep(NamedTuple):
    """What an estimator says about labels that are left out."""

    estimator: Any
    answers: Floats
    losses: Floats  # of usable labels, after answers have been made as sure as they should be
    weights: Floats  # of these labels

    def mean(self) -> float:
        """Return the mean loss."""
        return float(np.average(self.losses, weights=self.weights))


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
        return _weigh_nothing(experts, labels, gamma, mix)
    folds = split_labels(task.groups(labels), n_folds, experts.seed)
    left_out: dict[Variant, Floats] = {}
    chosen, steps = _choose_gamma(experts, labels, usable, folds, gamma)
    estimator, first = steps[chosen].estimator, steps[chosen].answers
    smoothed = experts.smooth_features(chosen) if chosen > 0.0 else None
    base = task.find_temperature(first[usable], choose_labels(labels, usable))
    errors = labels.values - task.apply_temperature(first, base)
    errors[~usable] = 0.0  # the estimator did not know their classes
    wanted = _variants(correct, spread, mix)
    if mix and experts.graph.n_edges == 0:
        wanted = (FEATURES,)
    if mix and chosen == 0.0:  # without smoothing these two experts are one
        wanted = tuple(variant for variant in wanted if variant != Variant("both"))
    for variant in wanted:
        left_out[variant] = np.empty_like(first)
    if FEATURES in wanted:
        left_out[FEATURES] = steps[0.0].answers
    n_splits = int(folds.max()) + 1
    for number, (train, test) in enumerate(splits(folds)):
        what = Phase("comparing features and graph", number + 1, n_splits, part="fold")
        with phase(what, experts.verbose):
            known = choose_labels(labels, train)
            answers = fit_both(experts, estimator, known, smoothed)
            answers = task.apply_temperature(answers, base)
            rows = labels.nodes[test]
            for variant, found in experts.variants_of_both(answers, known, errors[train], wanted):
                left_out[variant][test] = found[rows]
            if GRAPH in wanted:
                left_out[GRAPH][test] = experts.by_graph(known)[rows]
    mixture = _weigh(experts, labels, usable, left_out, chosen, homophily)
    mixture.estimator, mixture.own_estimator = estimator, steps[0.0].estimator
    mixture.base_temperature, mixture.errors = base, errors
    constant = _losses_of_constant(task, labels, folds)[usable]
    mixture.losses_without = min(steps[0.0].losses, constant, key=np.mean)
    return mixture, smoothed


def _losses_of_constant(task: Task, labels: NodeLabels, folds: NDArray[np.int64]) -> Floats:
    """Return the losses of left-out labels if all answers are the same; features may be useless."""
    losses = np.empty(len(folds))
    for train, test in splits(folds):
        same = task.without_evidence(choose_labels(labels, train))
        answers = task.apply_temperature(np.repeat(same[np.newaxis], len(test), axis=0), 1.0)
        losses[test] = task.losses(answers, choose_labels(labels, test))
    return losses


def _weigh_nothing(
    experts: Experts, labels: NodeLabels, gamma: float | None, mix: bool
) -> tuple[Mixture, NDArray[np.generic] | None]:
    """Return the mixture with the weights of the prior, for labels that cannot be left out."""
    chosen = GAMMAS[0] if gamma is None else gamma
    smoothed = experts.smooth_features(chosen) if chosen > 0.0 else None
    variants = [Variant("both"), FEATURES, GRAPH] if mix else [Variant("both")]
    weights = _normalise({variant: PRIOR[variant.kind] for variant in variants})
    typical = dict.fromkeys(variants, TEMPERATURE)
    losses = dict.fromkeys(variants, float("nan"))
    none = np.zeros(len(labels.nodes), dtype=bool)
    mixture = Mixture(chosen, weights, losses, typical, labels.values, none)
    mixture.estimator = mixture.own_estimator = experts.estimators[0]
    return mixture, smoothed


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
    usable: NDArray[np.bool_],
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
            every = [_try(each, experts, rows, labels, usable, folds) for each in estimators]
        steps[value] = min(every, key=lambda step: step.mean())
    chosen, usual = tried[0], steps[tried[0]]
    if gamma is None and not has_few:
        for value in tried[1:]:
            gain = usual.losses - steps[value].losses
            error = gain.std() / np.sqrt(len(gain))
            is_less = steps[value].mean() < steps[chosen].mean()
            if gain.mean() > error and is_less:
                chosen = value
    return chosen, steps


def _try(
    estimator: Any,
    experts: Experts,
    rows: Any,
    labels: NodeLabels,
    usable: NDArray[np.bool_],
    folds: NDArray[np.int64],
) -> FirstStep:
    """Return what an estimator says about left-out labels, given the rows of all labels."""
    task, judged = experts.task, choose_labels(labels, usable)
    answers = np.empty_like(labels.values)
    for train, test in splits(folds):
        predict = task.fit(estimator, rows[train], choose_labels(labels, train))
        answers[test] = predict(rows[test])
    temperature = task.find_temperature(answers[usable], judged)
    tempered = task.apply_temperature(answers[usable], temperature)
    return FirstStep(estimator, answers, task.losses(tempered, judged), judged.weights)


def _weigh(
    experts: Experts,
    labels: NodeLabels,
    usable: NDArray[np.bool_],
    left_out: Mapping[Variant, Floats],
    gamma: float,
    homophily: float,
) -> Mixture:
    task, judged = experts.task, choose_labels(labels, usable)
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
