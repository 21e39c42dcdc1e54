"""From scores to probabilities that mean what they say, and how likely other edges change a label.

The probability of a class is ``(1 - s) softmax(x / t) + s / n_classes``. The exponents x are the
scores of a node, scaled by `scale_scores`; the temperature t and the fraction s of the uniform
distribution are fitted to the labelled nodes, each scored without its own label. With few labels
many pairs (t, s) explain these scores about as well as the best one, which alone is too sure. So we
average the probabilities over all pairs, weighted by their likelihood, and take the pair whose
probabilities are closest to that average.

Exponents say more at nodes with many neighbours: with one temperature for all, hubs are right more
often than their probabilities say, and leaves less often. So exponents may first be multiplied by a
power of the relative degree, the mean of `POWERS` weighted by likelihood. No class changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.errors import InputError, OhmWarning, Param, bad_value
from ohmlearn.graph import Graph

Floats = NDArray[np.float64]
MOST_NAMES = 5  # of classes in a message
ROUNDING = 0.005  # how far the sum of rounded proportions may be from 1
TEMPERATURES: Floats = np.geomspace(1 / 60, 50, 25)
FRACTIONS: Floats = np.linspace(0.005, 0.995, 34)
POWERS = (0.0, 0.15, 0.3)  # of degrees; larger ones made the Brier score of points worse
# Errors of leave-one-out predictions are correlated, so an interval for independent ones is too
# short. With their variance multiplied by this, it held the accuracy in nine of ten draws of ten or
# twenty labels per class from 21 sets (docs/guides/trust.md).
VARIANCE = 1.5
NORMAL_95 = 1.96
POINTS = 24  # of the quadrature for `flip_probabilities`
ROWS = 1 << 14
LEAST = 1e-150  # replaces a standard deviation of 0


def spread_of(scores: Floats, there: NDArray[np.bool_]) -> float:
    """Return the root mean square of scores around the means of their rows, or 1 if it is 0."""
    centred = centre(scores, there)
    count = max(int(np.count_nonzero(there)), 1)
    spread = float(np.sqrt(np.sum(centred**2) / count))
    return spread if spread > 0.0 else 1.0


def scale_scores(scores: Floats, there: NDArray[np.bool_], spread: float) -> Floats:
    """Return exponents: scores of each node, centred, over the root of their own size and `spread`.

    Nodes far from all labels have small differences between their classes, which say less than the
    same differences elsewhere, but more than their size alone would mean. The square root was the
    best compromise on real data.

    `there` says whether a class has a label in the component of the node. Others get -inf; a row
    without any gets zeros. `spread` is the typical size of scores, from `spread_of`.
    """
    centred = centre(scores, there)
    size = row_sizes(centred, there)
    exponents = centred / np.sqrt(np.where(size > 0.0, size, 1.0) * spread)
    exponents[~there & there.any(axis=1, keepdims=True)] = -np.inf
    return exponents


def row_sizes(centred: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return the root mean square of each row, over the classes that are there, as a column."""
    count = np.maximum(np.count_nonzero(there, axis=1), 1)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", centred, centred) / count)[:, np.newaxis])


def centre(scores: Floats, there: NDArray[np.bool_]) -> Floats:
    """Subtract from each row its mean over the classes that are there; others get 0."""
    known = np.where(there, scores, 0.0)
    count = np.maximum(np.count_nonzero(there, axis=1), 1)
    return np.where(there, known - (known.sum(axis=1) / count)[:, np.newaxis], 0.0)


class Calibration(NamedTuple):
    """How exponents become probabilities.

    Attributes
    ----------
    temperature : float
        What exponents are divided by.
    smoothing : float
        Fraction of the uniform distribution.
    n_labels : int
        Number of labels that they were fitted to; 0 if they are defaults.
    power : float
        Exponents are multiplied by this power of the degree over the median degree.

    Examples
    --------
    >>> Calibration(temperature=1.0, smoothing=0.5).apply(np.array([[0.0, -np.inf]]))
    array([[0.75, 0.25]])
    """

    temperature: float
    smoothing: float
    n_labels: int = 0
    power: float = 0.0

    def apply(self, exponents: Floats, degrees: Floats | float = 1.0) -> Floats:
        """Return probabilities; each row sums to 1. `degrees` are a column of relative ones."""
        p = softmax(exponents * degrees**self.power / self.temperature)
        return np.asarray((1.0 - self.smoothing) * p + self.smoothing / p.shape[1])


DEFAULT = Calibration(temperature=0.4, smoothing=0.15)  # typical of real data


def softmax(exponents: Floats) -> Floats:
    p = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p)


def relative_degrees(degrees: Floats) -> Floats:
    """Return degrees over their median; those of nodes without edges do not count, and are 1."""
    has = degrees > 0.0
    median = np.median(degrees[has]) if has.any() else 1.0
    return np.where(has, np.clip(degrees / median, 1e-3, 1e3), 1.0)


def fit_calibration(
    left_out: Floats, targets: Floats, sample: Floats, weights: Floats | None = None,
    degrees: tuple[Floats, Floats] | None = None,
) -> Calibration:  # fmt: skip
    """Fit temperature and smoothing to leave-one-out exponents, and a power of degrees.

    `left_out` are those of labelled nodes, each without its own label, `targets` their labels as
    distributions, and `sample` exponents of some nodes, on which the average over all pairs is
    approximated. Labels count by `weights`, whose sum is what they count together. `degrees` are
    columns of relative ones of both, without which the power is 0.
    """
    weights = np.ones(len(left_out)) if weights is None else weights
    n_classes, power = left_out.shape[1], 0.0
    if degrees is not None:
        tried = [_log_likelihood(left_out * degrees[0] ** k, targets, weights) for k in POWERS]
        likelihoods = np.exp(np.array(tried) - np.max(tried)).sum(axis=(1, 2))
        power = float(np.average(POWERS, weights=likelihoods))
        left_out, sample = left_out * degrees[0] ** power, sample * degrees[1] ** power
    fit = _log_likelihood(left_out, targets, weights)
    likelihood = np.exp(fit - fit.max())
    likelihood /= likelihood.sum()
    at_sample = [softmax(sample / temperature) for temperature in TEMPERATURES]
    average = np.full(sample.shape, float(np.sum(likelihood @ FRACTIONS)) / n_classes)
    for row, p in zip(likelihood, at_sample, strict=True):
        average += float(row @ (1.0 - FRACTIONS)) * p
    least, chosen = np.inf, DEFAULT
    for temperature, p in zip(TEMPERATURES, at_sample, strict=True):
        for fraction in FRACTIONS:
            loss = -float(np.sum(average * np.log((1.0 - fraction) * p + fraction / n_classes)))
            if loss < least:
                least = loss
                chosen = Calibration(float(temperature), float(fraction), len(left_out), power)
    return chosen


def _log_likelihood(left_out: Floats, targets: Floats, weights: Floats) -> Floats:
    """Return the logarithm of the likelihood of the labels for each temperature and fraction."""
    rows, classes = np.nonzero(targets)
    counts, n_classes = weights[rows] * targets[rows, classes], left_out.shape[1]
    fit = np.empty((len(TEMPERATURES), len(FRACTIONS)))
    for at, temperature in enumerate(TEMPERATURES):
        p = softmax(left_out / temperature)[rows, classes, np.newaxis]
        fit[at] = counts @ np.log((1.0 - FRACTIONS) * p + FRACTIONS / n_classes)
    return fit


class AccuracyEstimate(NamedTuple):
    """Fraction of the nodes that get a label that are labelled correctly, estimated from labels.

    Attributes
    ----------
    value : float
        The estimate; NaN if no label can be left out.
    low, high : float
        Ends of a 95% interval.
    n_labels : int
        Number of labels that were left out, one at a time.

    Examples
    --------
    >>> print(AccuracyEstimate(0.84, 0.79, 0.88, 120))
    about 84% right (79-88%), estimated from 120 labels
    """

    value: float
    low: float
    high: float
    n_labels: int

    def __str__(self) -> str:
        return (
            f"about {100 * self.value:.0f}% right ({100 * self.low:.0f}-{100 * self.high:.0f}%), "
            f"estimated from {self.n_labels} labels"
        )


def estimate_accuracy(right: Floats, weights: Floats | None = None) -> AccuracyEstimate:
    """Return the mean of `right` and a 95% interval (Wilson's, with the variance of `VARIANCE`)."""
    weights = np.ones(len(right)) if weights is None else weights
    value = float(np.average(right, weights=weights))
    n = float(weights.sum() ** 2 / np.sum(weights**2)) / VARIANCE
    z = NORMAL_95**2 / n
    middle = (value + z / 2) / (1 + z)
    half = np.sqrt(z * value * (1 - value) + z * z / 4) / (1 + z)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    # Rounding must not move an end past the value, which may be 0 or 1.
    return AccuracyEstimate(value, float(min(low, value)), float(max(high, value)), len(right))


def conformal_threshold(p: Floats, alpha: float) -> float:
    """Return the probability that a class needs to be in a prediction set.

    `p` are the leave-one-out probabilities of the given labels. A new label has a smaller one with
    probability at most alpha, if it is drawn like the others: of n + 1 exchangeable numbers, the
    last one is among the k smallest with probability k / (n + 1).

    Examples
    --------
    >>> conformal_threshold(np.arange(1, 20) / 20, alpha=0.1)
    0.1
    >>> conformal_threshold(np.array([0.5, 0.9]), alpha=0.1)  # too few labels: all classes
    0.0
    """
    rank = int(np.floor(alpha * (len(p) + 1)))
    return float(np.sort(p)[rank - 1]) if rank >= 1 else 0.0


def match_proportions(
    exponents: Floats, proportions: Floats, temperature: float = 1.0, steps: int = 200
) -> Floats:
    """Return offsets b such that the largest entries of ``exponents + b`` have these proportions.

    Each step adds to b a part of log(wanted / present proportion), times the temperature. The best
    of all steps is returned, because nodes are whole and proportions cannot always be met.
    """
    n, n_classes = exponents.shape
    offsets = best = np.zeros(n_classes)
    least = np.inf
    for step in range(steps if n > 0 else 0):
        codes = np.argmax(exponents + offsets, axis=1)
        present = np.bincount(codes, minlength=n_classes) / n
        gap = float(np.abs(present - proportions).sum())
        if gap < least:
            least, best = gap, offsets
        change = np.clip(np.log((proportions + 1 / n) / (present + 1 / n)), -1.0, 1.0)
        offsets = offsets + temperature * change / (2.0 + 0.1 * step)
        offsets = offsets - offsets.mean()
    return best


def check_proportions(given: object, classes: NDArray[Any], *, warns: bool = False) -> Floats:
    """Return proportions of the classes that sum to 1, from an array or a dict {class: proportion}.

    With `warns`, those that did not are reported.
    """
    names = classes.tolist()
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        unknown = [name for name in given if name not in names]
        if missing or unknown:
            what = [f"no proportion is given for the class {missing[0]!r}"] if missing else []
            if unknown:
                are = "is" if len(unknown) == 1 else "are"
                what.append(f"{' and '.join(map(repr, unknown[:2]))} {are} not among the classes")
            shown = ", ".join(map(repr, names[:MOST_NAMES]))
            if len(names) > MOST_NAMES:
                shown += f" and {len(names) - MOST_NAMES:,} more"
            why = f"{', and '.join(what)}; the labels have the classes {shown}"
            raise InputError(f"{Param('class_prior')}: {why}")
        given = [given[name] for name in names]
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(names),) or not np.all((values > 0) & np.isfinite(values)):
        raise bad_value(
            "class_prior", f"have one positive entry for each of the classes {names}", given
        )
    largest = values.max()
    parts = values / largest  # so that the sum does not overflow
    normalised: Floats = parts / parts.sum()
    total = float(largest) * float(parts.sum())
    if warns and abs(total - 1.0) > ROUNDING:
        warn(
            f"the proportions in {Param('class_prior')} sum to {total:g}, not to 1, so each is "
            f"divided by the sum: that of {names[0]!r} is {normalised[0]:.3g}; give proportions "
            f"that sum to 1",
            OhmWarning,
        )
    return normalised


def flip_probabilities(
    graph: Graph,
    scores: Floats,
    replicates: Iterable[Floats],
    amplitude: float,
    unlabelled: NDArray[np.bool_],
) -> Floats:
    """Return for each node how likely another sample would give another label.

    `scores` are those on the sparsifier `graph`, one column for each class; the largest one is the
    label. `replicates` are scores on replicates of the sparsifier, drawn with this amplitude; four
    are enough, and one at a time is in memory. Nodes that are not `unlabelled` never flip.

    The scores f of a sparsifier are those of all edges plus noise: f = g + e. Another sample would
    give f' = g + e'. Replicates of the sparsifier (`StreamingSparsifier.replicate`) give draws of
    e, so the variance s^2 of the noise at each node is known. What is known of g?

    - f itself. But a node with a label of another class next to it in the sample has that label for
      this reason alone; another sample would hardly have this edge. f alone makes such nodes look
      stable.
    - The mean m of the scores of its neighbours that have no label of their own. In the full graph
      a node is close to them.

    So g is taken as normal around m with a variance v, the same for all nodes, which the scores
    tell: the mean of (f - m)^2 is v + s^2. Given f, g is then normal with mean a f + (1 - a) m and
    variance a s^2, where a = v / (v + s^2). So f' is normal with this mean and variance (1 + a)
    s^2, and the label changes if the largest entry of f' is another than that of f.

    Few replicates tell s^2 at a single node badly, and an edge that is not in the sample has no
    noise at all. So s^2 is the mean of the node's own estimate and one pooled over all nodes, which
    is the square of the mean of s: a mean of squares would be that of a few loosely attached nodes.

    On 13 graphs that were not used to choose these rules (kernels of points, blocks, event streams,
    social networks), the correlation with the fraction of ten other samples that disagree was 0.65
    on average, 0.7 or more on 7 of them. The mean over all nodes was wrong by 0.04 on average, by
    0.15 at most, on a graph with 26 classes where three quarters of the labels change.
    """
    n, n_classes = scores.shape
    flips = np.zeros(n)
    if n_classes < 2 or not unlabelled.any():
        return flips
    label = scores.argmax(axis=1)
    f = _centre_rows(scores)
    own, count = np.zeros(n), 0
    for x in replicates:
        for rows in _parts(n):
            own[rows] += np.square(_centre_rows(x[rows]) - f[rows]).mean(axis=1)
        count += 1
    own /= count * amplitude**2
    pooled = float(np.sqrt(own[unlabelled]).mean()) ** 2
    noise = (own + pooled) / 2.0

    m = _mean_of_neighbours(graph, f, unlabelled)
    squares = np.concatenate([np.square(f[rows] - m[rows]).mean(axis=1) for rows in _parts(n)])
    signal = float((squares - noise)[unlabelled].mean())
    trust = max(signal, 0.0) / np.maximum(max(signal, 0.0) + noise, LEAST)
    # Centring takes the fraction 1 / n_classes of independent noise away.
    deviation = np.sqrt((1.0 + trust) * noise * n_classes / (n_classes - 1))
    for rows in _parts(n):
        own_weight = trust[rows, np.newaxis]
        mean = own_weight * f[rows] + (1.0 - own_weight) * m[rows]
        flips[rows] = _probability_of_another(mean, deviation[rows], label[rows])
    flips[~unlabelled] = 0.0
    return flips


def _parts(n: int) -> Iterator[slice]:
    """Yield slices of rows; arrays of all rows and classes would take much memory."""
    return (slice(first, first + ROWS) for first in range(0, n, ROWS))


def _centre_rows(scores: Floats) -> Floats:
    """Subtract from each row its mean, which does not matter for the label."""
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))


def _mean_of_neighbours(graph: Graph, f: Floats, counts: NDArray[np.bool_]) -> Floats:
    """Return the weighted mean over the neighbours that count; f at a node that has none."""
    weights = graph.to_scipy()
    total = weights @ counts.astype(np.float64)
    mean: Floats = weights @ np.where(counts[:, np.newaxis], f, 0.0)
    mean /= np.where(total > 0.0, total, 1.0)[:, np.newaxis]
    mean[total <= 0.0] = f[total <= 0.0]
    return mean


def _probability_of_another(mean: Floats, deviation: Floats, label: NDArray[np.int64]) -> Floats:
    """Return how likely `label` is not the largest of independent normal variables in each row.

    With z that of the label, in units of the deviation, it is the largest if all others are below
    it: the integral of the product of ndtr(z + gap) over the normal density of z.
    """
    from scipy.special import ndtr  # late, as few commands need it

    rows = np.arange(len(mean))
    gaps = (mean[rows, label][:, np.newaxis] - mean) / np.maximum(deviation, LEAST)[:, np.newaxis]
    gaps[rows, label] = np.inf
    stays = np.zeros(len(mean))
    points, weights = np.polynomial.hermite.hermgauss(POINTS)
    for z, weight in zip(math.sqrt(2.0) * points, weights / math.sqrt(math.pi), strict=True):
        stays += weight * ndtr(z + gaps).prod(axis=1)
    return np.clip(1.0 - stays, 0.0, 1.0)
