"""Whether a class is as common among the answers as among the labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FEW = 10  # labels of a class that may dominate by mistake; with more, chance is judged
DOMINANT, ODDS = 0.6, 4.0  # fraction of the answers, and its odds relative to those of the labels
ALL, MANY = 0.999, 100  # fraction of the answers that hides the other classes, of so many nodes
DEVIATIONS = 3.5  # that labels drawn at random have by accident once in 2,000 classes
# Labels of the rarest class for each one of the commonest. If there are more, they were chosen, and
# do not say how common classes are.
EQUAL = 0.9


class Imbalance(NamedTuple):
    """A class that is more or less common among the answers than among the labels."""

    name: str
    n_labels: int
    n_all_labels: int
    fraction: float  # of the answers

    def describe(self, option: str) -> str:
        """Return it in words, with the remedy: `option` gives proportions of the classes.

        Examples
        --------
        >>> Imbalance("fraud", 52, 200, 0.43).describe("class_prior")
        'fraud has 52 of 200 labels (26%), but is 43% of the answers; if that is wrong, give more
        labels, or the proportions of the classes (class_prior), which may be those of labels drawn
        at random'
        """
        name, percent = self.name[:30], 100.0 * self.fraction
        answers = f"{percent:.1f}" if percent > 99.0 else f"{percent:.0f}"
        given = 100.0 * self.n_labels / self.n_all_labels
        return (
            f"{name} has {self.n_labels:,} of {self.n_all_labels:,} labels ({given:.0f}%), but is "
            f"{answers}% of the answers; if that is wrong, give more labels, or the proportions of "
            f"the classes ({option}), which may be those of labels drawn at random"
        )


def find_imbalance(
    names: list[str], given: Floats, answers: NDArray[np.int_], *, by_few: bool = True
) -> Imbalance | None:
    """Return the class whose answers are farthest from its labels, if that is no chance.

    `given` are the labels of each class, and `answers` the nodes that got it. Three things are
    looked for: a class of nearly all nodes; a class of most nodes that few labels spread, if
    `by_few`; and proportions that differ by more than the number of labels explains. The last is
    not looked for among equally many labels of each class.

    Examples
    --------
    >>> find_imbalance(["ham", "spam"], np.array([148.0, 52.0]), np.array([570, 430])).name
    'spam'
    >>> find_imbalance(["ham", "spam"], np.array([100.0, 100.0]), np.array([570, 430]))
    """
    n_labels, n_answers = given.sum(), int(answers.sum())
    if n_answers == 0 or np.count_nonzero(given) < 2:
        return None
    p, q = given / n_labels, answers / n_answers
    first = int(np.argmax(q))
    few = (
        by_few
        and given[first] <= FEW
        and q[first] * (1 - p[first]) >= ODDS * (1 - q[first]) * p[first]
    )
    if (few and q[first] >= DOMINANT) or (q[first] >= ALL > p[first] and n_answers >= MANY):
        return _make(names, given, q, first)
    variance = np.maximum(p * (1 - p), q * (1 - q)) / n_labels
    gap = np.abs(p - q) / np.sqrt(np.maximum(variance, 1e-300))
    chosen = given[given > 0].min() >= EQUAL * given.max()
    # With few labels the normal distribution is no good approximation.
    enough = np.maximum(p, q) * n_labels > FEW
    worst = int(np.argmax(np.where(enough, gap, 0.0)))
    if chosen or not enough[worst] or gap[worst] <= DEVIATIONS:
        return None
    if len(names) == 2:
        worst = int(np.argmin(given))  # of two equal gaps, that of the rarer class
    return _make(names, given, q, worst)


def _make(names: list[str], given: Floats, fractions: Floats, at: int) -> Imbalance:
    counts = max(1, round(float(given[at]))), round(float(given.sum()))
    return Imbalance(names[at], *counts, float(fractions[at]))
