"""Whether the graph helps, and whether nodes that are joined are alike."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.checks.parameters import check_n_jobs
from ohmlearn.edges.passes import multiply_laplacian
from ohmlearn.errors import InPython, OhmWarning
from ohmlearn.estimators.label_input import choose_labels
from ohmlearn.features.stacking import FEATURES, Experts, Stack

__all__ = ["GraphUse", "Homophily", "judge_graph"]

Floats = NDArray[np.float64]


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
        stack.weights, stack.left_out = FEATURES.copy(), stack.alone
    if stack.weights[0] == 1.0:
        warn(
            "the graph does not help: left-out labels are predicted best from the features "
            "alone, so the answers are those of the estimator"
            f"{InPython('; see graph_use_')}",
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
