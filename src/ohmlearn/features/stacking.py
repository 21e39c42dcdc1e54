"""Stacking of three experts by a linear opinion pool (Wolpert 1992; Stone 1961).

1. Three experts answer: the estimator on the features of a node ("features"); the estimator on
   (D + gamma L)^-1 X, features smoothed along the edges ("both"); and labels that spread along the
   edges as in `HFSClassifier` ("graph").
2. The labels are divided into folds. Each expert answers for the labels of a fold from the others.
3. Each expert gets an exponent a that makes these answers o as sure as they should be: it minimises
   -sum log sharpen(o, a) + log(a)^2 / 2, where sharpen(p, a) = .99 p^a / sum p^a + .01 / n_classes.
   The penalty of logistic regression is the one of two, for each expert, with the lesser minimum.
4. The weights w of the experts maximise the likelihood of the labels in the pool sum_e w_e o_e. One
   further label's worth is divided between "both" and "graph". EM finds the maximum, because the
   problem is convex. For numbers the weights minimise the squared error (Breiman 1996), and there
   are no exponents.
5. The answer is the pool of the experts fitted to all labels. An expert that does not apply to a
   node, because the node has no features or no edges, has no weight there.
6. For estimates, steps 2 to 4 are repeated without the labels of each fold in turn, so no label has
   a part in the exponents, penalties and weights of its own answer. The folds are the same ones:
   experts are fitted without one fold (5 times) and without two (10 times).

If fewer than two classes have two labels, nothing can be learned about the experts. Then the answer
is the mean of "both" and "graph".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv

from ohmlearn._blas import one_blas_thread
from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import check_n_jobs
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.errors import InputError, InPython, OhmWarning, Param
from ohmlearn.estimators.combination import folds_of
from ohmlearn.estimators.label_input import choose_labels, split_by_edges
from ohmlearn.features.expert_tasks import PRIOR, Floats, Mask, Task
from ohmlearn.features.experts import Experts, blocks
from ohmlearn.features.feature_problem import FeatureProblem
from ohmlearn.points.point_arrays import Matrix

Folds: TypeAlias = int | BaseCrossValidator | list[Any]  # pairs of positions: train, test

EXPERTS = ("features", "both", "graph")
ALONE = 0.9  # weight of the features from which the graph is left out


@dataclass
class Stack:
    """How experts are pooled, and how well labels that were left out are predicted."""

    exponents: Floats  # of "features", "both" and "graph"
    weights: Floats
    chosen: NDArray[np.int64]  # the answers of `Experts.at_labels` that are those of the three
    usable: Mask  # labels that can be left out, as they are not the only ones of their class
    left_out: Floats  # answers for labels, from a pool that has not seen the labels of their fold
    alone: Floats  # the same from the features alone
    around: Floats  # from the graph alone; NaN where no label reaches

    def leave_graph_out(self) -> None:
        """Let the features alone answer."""
        self.weights = np.array([1.0, 0.0, 0.0])

    def pool(self, task: Task, found: Floats) -> Floats:
        """Return the weighted mean of the experts that apply; zeros where none does."""
        return np.asarray(self.parts(task, found).sum(axis=0))

    def parts(self, task: Task, found: Floats) -> Floats:
        """Return what each expert adds to the pool."""
        total = np.zeros(found.shape[1])
        parts = np.zeros(found.shape)
        weights = np.maximum(self.weights, 1e-9)
        each = zip(parts, found, self.exponents, weights, strict=True)
        for part, answers, exponent, weight in each:
            applies = ~np.isnan(answers[:, 0])
            part[applies] = weight * task.sharpen(answers[applies], exponent)
            total[applies] += weight
        parts /= np.where(total > 0.0, total, 1.0)[:, np.newaxis]
        return parts


def fit_stack(experts: Experts, cv: Folds) -> Stack:
    """Learn exponents and weights of the experts, and what they say about labels left out."""
    task, labels = experts.task, experts.labels
    everything = np.ones(len(labels.nodes), dtype=bool)
    folds = split_labels(np.argmax(labels.values, axis=1), cv, experts.seed)
    with phase("comparing features and graph", experts.verbose):
        stack = _learn(experts, folds, everything)
    if not stack.usable.any():
        return stack
    masks = list(_fold_masks(folds, everything))
    without = []  # the stacks without the labels of each fold
    try:
        for number, at in enumerate(masks):
            what = Phase("estimating the accuracy", number + 1, len(masks), part="fold")
            with phase(what, experts.verbose):
                without.append(_learn(experts, folds, ~at))
    except ValueError as error:  # of the estimator, which could do with four of five labels
        warn(f"estimates of accuracy and probabilities are too high: {error}")
        without = [stack] * len(masks)
    for at, inner in zip(masks, without, strict=True):
        found = experts.at_labels(~at)[inner.chosen][:, at]
        same = task.without_evidence(choose_labels(labels, ~at))
        own, nowhere = task.sharpen(found[0], inner.exponents[0]), np.isnan(found[:, :, :1])
        stack.left_out[at] = np.where(nowhere.all(axis=0), same, inner.pool(task, found))
        stack.alone[at] = np.where(nowhere[0], same, own)
        stack.around[at] = found[2]
    return stack


def _learn(experts: Experts, folds: NDArray[np.int64], known: Mask) -> Stack:
    """Learn exponents, candidates, weights from the known labels, each left out with its fold."""
    task, labels = experts.task, experts.labels
    usable = np.zeros_like(known)
    usable[known] = task.can_be_left_out(choose_labels(labels, known))
    unknown = [np.full_like(labels.values, np.nan) for _ in range(3)]
    first = np.array([candidates[0] for candidates in experts.candidates])
    stack = Stack(np.ones(3), PRIOR.copy(), first, usable, *unknown)
    if not usable.any():
        return stack
    found = experts.no_answers()
    for at in _fold_masks(folds, known):
        found[:, at] = experts.at_labels(known & ~at)[:, at]
    judged, found = choose_labels(labels, usable), found[:, usable]
    # Labels of unequal weight count together as fewer labels of equal weight.
    judged = judged._replace(
        weights=judged.weights * judged.weights.sum() / np.sum(judged.weights**2)
    )
    for expert, candidates in enumerate(experts.candidates):
        applies = ~np.isnan(found[candidates[0], :, 0])
        some = choose_labels(judged, applies)
        _, stack.exponents[expert], stack.chosen[expert] = min(
            (*task.find_exponent(found[at][applies], some), at) for at in candidates
        )
    pairs = zip(found[stack.chosen], stack.exponents, strict=True)
    sharpened = np.array([task.sharpen(answers, exponent) for answers, exponent in pairs])
    stack.weights = task.find_weights(sharpened, judged)
    if stack.weights[0] >= ALONE:  # here, so that estimates are those of this choice
        stack.leave_graph_out()
    return stack


def split_labels(groups: NDArray[np.int64], cv: Folds, seed: int) -> NDArray[np.int64]:
    """Return a fold for each label; folds have about the same size and mixture of groups."""
    if not isinstance(cv, Integral):
        folds = np.full(len(groups), -1)
        for number, (_, test) in enumerate(check_cv(cv).split(groups, groups)):
            folds[test] = number
        if np.any(folds < 0):
            raise InputError(f"{Param('cv')} must put each label into a fold", remedy="use KFold")
        return folds
    return folds_of(groups, min(int(cv), len(groups)), seed)


def _fold_masks(folds: NDArray[np.int64], known: Mask) -> Iterator[Mask]:
    """Yield which of the known labels each fold has."""
    for fold in np.unique(folds[known]):
        yield known & (folds == fold)


# Whether the graph helps.


class Homophily(NamedTuple):
    """How similar joined nodes are: 1 if equal, 0 as by chance, negative if they are opposites.

    Attributes
    ----------
    labels : float
        For classes, how much more often than by chance a label that is left out is the one that
        the labels around it suggest; for numbers, the correlation with that. NaN if no label can be
        left out, or all are the same.
    features : float
        Correlation of the features at both ends of edges. NaN if there is no edge, or no column
        that varies.

    Examples
    --------
    >>> print(Homophily(labels=0.71, features=0.3))
    neighbours have similar labels (0.71) and somewhat similar features (0.30)
    """

    labels: float
    features: float

    def __str__(self) -> str:
        labels, features = _in_words(self.labels), _in_words(self.features)
        return (
            f"neighbours have {labels} labels ({self.labels:.2f}) and {features} features "
            f"({self.features:.2f})"
        )


def _in_words(value: float) -> str:
    if np.isnan(value):
        return "perhaps similar"
    steps = ((0.5, "similar"), (0.2, "somewhat similar"), (0.05, "hardly similar"))
    other = "unrelated" if value > -0.3 else "opposite"
    return next((words for least, words in steps if value >= least), other)


class GraphUse(NamedTuple):
    """Whether the graph helps, from labels that were left out.

    Attributes
    ----------
    helps : bool
        Whether left-out labels are predicted better with the graph, by more than two standard
        errors of the difference.
    loss_with, loss_without : float
        Mean loss for left-out labels with the graph, and from the features alone: log-loss for
        classes, half the squared error for numbers.
    error : float
        Standard error of the difference of the two.
    homophily : Homophily
        Whether joined nodes are alike.

    Examples
    --------
    >>> print(GraphUse(True, 0.61, 1.4, 0.1, Homophily(0.71, 0.3)))
    The graph helps: the loss for left-out labels is 0.61 with it, and 1.4 from the features alone;
    neighbours have similar labels (0.71) and somewhat similar features (0.30).
    """

    helps: bool
    loss_with: float
    loss_without: float
    error: float
    homophily: Homophily

    def __str__(self) -> str:
        if np.isnan(self.loss_without):
            return "It is not known whether the graph helps: no label can be left out."
        if self.helps:
            verdict = "The graph helps"
        elif self.loss_with < self.loss_without:
            verdict = "It is not clear whether the graph helps"
        else:
            verdict = "The graph does not help"
        return (
            f"{verdict}: the loss for left-out labels is {self.loss_with:.3g} with it, and "
            f"{self.loss_without:.3g} from the features alone; {self.homophily}."
        )


def judge_graph(experts: Experts, stack: Stack) -> GraphUse:
    """Return whether the graph helps; if it does not, leave it out of the stack, with a warning."""
    task, homophily = experts.task, measure_homophily(experts, stack)
    if not stack.usable.any():
        nan = float("nan")
        return GraphUse(False, nan, nan, nan, homophily)
    judged = choose_labels(experts.labels, stack.usable)
    losses, alone = (
        task.losses(answers[stack.usable], judged) for answers in (stack.left_out, stack.alone)
    )
    gains = alone - losses
    gain, loss = (float(np.average(each, weights=judged.weights)) for each in (gains, losses))
    error = float(np.std(gains) / np.sqrt(len(gains)))
    if gain < -2.0 * error:
        stack.leave_graph_out()
        stack.left_out = stack.alone
    if stack.weights[0] == 1.0:
        warn(
            f"the graph does not help: left-out labels are predicted best from the features "
            f"alone, so the answers are those of the estimator{InPython('; see graph_use_')}",
            OhmWarning,
        )
    return GraphUse(gain > 2.0 * error, loss, loss + gain, error, homophily)


def measure_homophily(experts: Experts, stack: Stack) -> Homophily:
    """Measure homophily of labels, from those that were left out, and of features."""
    values, around = experts.labels.values, stack.around
    found = float("nan")
    seen = np.flatnonzero(stack.usable & np.isfinite(around[:, 0]))
    if len(seen) > 0:
        weights = experts.labels.weights[seen]
        if experts.task.has_classes:
            same = values[seen, np.argmax(around[seen], axis=1)]
            expected = float(np.sum(np.average(values[seen], axis=0, weights=weights) ** 2))
            agree = float(np.average(same, weights=weights))
            found = max(-1.0, (agree - expected) / (1.0 - expected)) if expected < 1.0 else found
        elif np.ptp(around[seen]) > 0.0 and np.ptp(values[seen]) > 0.0:
            cov = np.cov(around[seen, 0], values[seen, 0], aweights=weights)
            found = float(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]))
    return Homophily(found, _of_features(experts))


def _of_features(experts: Experts) -> float:
    """Return 1 - (mean squared difference along edges) / (the same for random ends of edges)."""
    degrees, n_columns = experts.graph.degrees, experts.features.shape[1]
    total, along, spread = float(degrees.sum()), 0.0, 0.0
    step = -(-n_columns // 64)  # at most 64 columns are looked at
    for at in range(0, n_columns if total > 0.0 else 0, step):
        column = experts.features.columns(slice(at, at + 1))
        column -= (degrees @ column) / total
        product = multiply_laplacian(experts.graph, column, check_n_jobs(experts.n_jobs))
        along += float(np.sum(column * product))
        spread += float(degrees @ column[:, 0] ** 2)
    return 1.0 - along / spread if spread > 0.0 else float("nan")


# Answers.


class FeatureAnswer:
    """What a stack of experts says of all nodes; nothing of it changes.

    `values` are the pooled answers, in which labelled nodes keep their labels, and `parts` what
    each expert adds to them. `alone` are the nodes that the estimator on own features answers, not
    the pool. `reached` and `answered` are those of `GraphFeatureClassifier`.
    """

    def __init__(self, problem: FeatureProblem, experts: Experts, cv: Folds) -> None:
        self.problem, self.experts = problem, experts
        self.stack = fit_stack(experts, cv)
        self.use = judge_graph(experts, self.stack)
        with phase("labelling all nodes", experts.verbose):
            self._answer_all()
        experts.forget()

    def _answer_all(self) -> None:
        experts, stack, given = self.experts, self.stack, self.problem.labels
        graph, task = experts.graph, experts.task
        own, both, _ = stack.chosen
        self._own = experts.fit(own, np.ones(len(experts.labels.nodes), dtype=bool))
        found = experts.everywhere(self._own, both, stack.weights > 0)
        parts = stack.parts(task, found)
        self.values: Floats = parts.sum(axis=0)
        self.parts = parts.astype(np.float32 if task.has_classes else np.float64)
        lost = np.isnan(found[:, :, 0])
        nowhere: Mask = np.all(lost, axis=0)
        self.values[nowhere] = task.without_evidence(experts.labels)
        self.alone: Mask = np.all(lost[1:][stack.weights[1:] > 0], axis=0)
        _, component = graph.components()
        joined = split_by_edges(experts.labels, graph)[0]
        self.reached: Mask = np.isin(component, component[joined.nodes])
        self.reached[given.nodes] = True
        self.answered = ~nowhere
        self.answered[given.nodes] = True
        if task.has_classes:
            self.values[given.nodes] = 0.9 * given.values + 0.1 * self.values[given.nodes]
        else:  # where nothing else is known
            kept = nowhere[given.nodes]
            self.values[given.nodes[kept]] = given.values[kept]

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the experts."""
        return dict(zip(EXPERTS, self.stack.weights.tolist(), strict=True))

    @one_blas_thread()
    def of_new(self, rows: Matrix) -> Floats:
        """Return the answers of the estimator for the features of new nodes."""
        task = self.experts.task
        if self._own is None:
            same = task.without_evidence(self.experts.labels)
            return np.repeat(same[np.newaxis], rows.shape[0], axis=0)
        exponent = self.stack.exponents[0]
        return np.concatenate(
            [
                task.sharpen(self._own(self.experts.own_rows(rows[part])), exponent)
                for part in blocks(*rows.shape)
            ]
        )
