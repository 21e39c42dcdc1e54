"""From scores to probabilities that mean what they say, fitted to leave-one-out scores.

The probability of a class is ``(1 - s) softmax(x / t) + s / n_classes``. The exponents x are the
scores of a node, scaled by `scale_scores`; the temperature t and the share s of the uniform
distribution are fitted to the labelled nodes, each scored without its own label. With few labels
many pairs (t, s) explain these scores about as well as the best one, which alone is too sure. So we
average the probabilities over all pairs, weighted by their likelihood, and take the pair whose
probabilities are closest to that average.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._warnings import warn
from ohmlearn.errors import InputError, OhmWarning, Param, bad_value

__all__ = [
    "AccuracyEstimate",
    "Calibration",
    "check_shares",
    "conformal_threshold",
    "estimate_accuracy",
    "fit_calibration",
    "match_shares",
    "scale_scores",
    "spread_of",
]

Floats = NDArray[np.float64]
ROUNDING = 0.005  # how far the sum of rounded shares may be from 1
TEMPERATURES: Floats = np.geomspace(1 / 60, 50, 25)
SHARES: Floats = np.linspace(0.005, 0.995, 34)
# Errors of leave-one-out predictions are correlated, so an interval for independent ones is too
# short. With their variance multiplied by this, it held the accuracy in nine of ten draws of ten or
# twenty labels per class from 21 sets (docs/guides/trust.md).
VARIANCE = 1.5
NORMAL_95 = 1.96


def spread_of(scores: Floats, there: NDArray[np.bool_]) -> float:
    """Return the root mean square of scores around the means of their rows, or 1 if it is 0."""
    centred = _centre(scores, there)
    count = max(int(np.count_nonzero(there)), 1)
    spread = float(np.sqrt(np.sum(centred**2) / count))
    return spread if spread > 0.0 else 1.0


def scale_scores(scores: Floats, there: NDArray[np.bool_], spread: float) -> Floats:
    """Return exponents: scores of each node, centred, over the root of their own size and `spread`.

    Nodes far from all labels have small differences between their classes, which say less than the
    same differences elsewhere, but more than their size alone would mean. The square root was the
    best compromise on real data.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
    there : ndarray of bool, same shape
        Whether a class has a label in the component of the node. Others get -inf. A row without
        any gets zeros.
    spread : float
        Typical size of scores, from `spread_of`.
    """
    centred = _centre(scores, there)
    count = np.maximum(np.count_nonzero(there, axis=1), 1)
    size = np.sqrt(np.einsum("ij,ij->i", centred, centred) / count)
    exponents = centred / np.sqrt(np.where(size > 0.0, size, 1.0) * spread)[:, np.newaxis]
    exponents[~there & there.any(axis=1, keepdims=True)] = -np.inf
    return exponents


def _centre(scores: Floats, there: NDArray[np.bool_]) -> Floats:
    known = np.where(there, scores, 0.0)
    count = np.maximum(np.count_nonzero(there, axis=1), 1)
    centred: Floats = np.where(there, known - (known.sum(axis=1) / count)[:, np.newaxis], 0.0)
    return centred


class Calibration(NamedTuple):
    """How exponents become probabilities.

    Attributes
    ----------
    temperature : float
        What exponents are divided by.
    smoothing : float
        Share of the uniform distribution.
    n_labels : int
        Number of labels that the two were fitted to; 0 if they are defaults.

    Examples
    --------
    >>> Calibration(temperature=1.0, smoothing=0.5).apply(np.array([[0.0, -np.inf]]))
    array([[0.75, 0.25]])
    """

    temperature: float
    smoothing: float
    n_labels: int = 0

    def apply(self, exponents: Floats) -> Floats:
        """Return probabilities; each row sums to 1."""
        p = _softmax(exponents / self.temperature)
        mixed: Floats = (1.0 - self.smoothing) * p + self.smoothing / p.shape[1]
        return mixed


DEFAULT = Calibration(temperature=0.4, smoothing=0.15)  # typical of real data


def _softmax(exponents: Floats) -> Floats:
    p = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shares: Floats = p
    return shares


def fit_calibration(
    left_out: Floats, targets: Floats, sample: Floats, weights: Floats | None = None
) -> Calibration:
    """Fit temperature and smoothing to leave-one-out exponents.

    Parameters
    ----------
    left_out : ndarray of shape (n_labels, n_classes)
        Exponents of labelled nodes, each without its own label.
    targets : ndarray of the same shape
        Their labels, as distributions.
    sample : ndarray of shape (n, n_classes)
        Exponents of some nodes, on which the average over all pairs is approximated.
    weights : ndarray of shape (n_labels,), optional
        How much each label counts; their sum is what they count together.
    """
    weights = np.ones(len(left_out)) if weights is None else weights
    n_classes = left_out.shape[1]
    fit = np.empty((len(TEMPERATURES), len(SHARES)))
    for at, temperature in enumerate(TEMPERATURES):
        p = _softmax(left_out / temperature)[:, :, np.newaxis]
        logs = np.log((1.0 - SHARES) * p + SHARES / n_classes)
        fit[at] = np.einsum("i,ij,ijk->k", weights, targets, logs)
    likelihood = np.exp(fit - fit.max())
    likelihood /= likelihood.sum()
    at_sample = [_softmax(sample / temperature) for temperature in TEMPERATURES]
    average = np.full(sample.shape, float(np.sum(likelihood @ SHARES)) / n_classes)
    for row, p in zip(likelihood, at_sample, strict=True):
        average += float(row @ (1.0 - SHARES)) * p
    least, chosen = np.inf, DEFAULT
    for temperature, p in zip(TEMPERATURES, at_sample, strict=True):
        for share in SHARES:
            loss = -float(np.sum(average * np.log((1.0 - share) * p + share / n_classes)))
            if loss < least:
                least = loss
                chosen = Calibration(float(temperature), float(share), len(left_out))
    return chosen


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
    chance at most alpha, if it is drawn like the others: of n + 1 exchangeable numbers, the last
    one is among the k smallest with chance k / (n + 1).

    Examples
    --------
    >>> conformal_threshold(np.arange(1, 20) / 20, alpha=0.1)
    0.1
    >>> conformal_threshold(np.array([0.5, 0.9]), alpha=0.1)  # too few labels: all classes
    0.0
    """
    rank = int(np.floor(alpha * (len(p) + 1)))
    return float(np.sort(p)[rank - 1]) if rank >= 1 else 0.0


def match_shares(
    exponents: Floats, shares: Floats, temperature: float = 1.0, steps: int = 200
) -> Floats:
    """Return offsets b such that the largest entries of ``exponents + b`` have the given shares.

    Each step adds to b a part of log(wanted share / present share), times the temperature. The best
    of all steps is returned, because nodes are whole and shares cannot always be met.
    """
    n, n_classes = exponents.shape
    offsets = best = np.zeros(n_classes)
    least = np.inf
    for step in range(steps if n > 0 else 0):
        codes = np.argmax(exponents + offsets, axis=1)
        present = np.bincount(codes, minlength=n_classes) / n
        gap = float(np.abs(present - shares).sum())
        if gap < least:
            least, best = gap, offsets
        change = np.clip(np.log((shares + 1 / n) / (present + 1 / n)), -1.0, 1.0)
        offsets = offsets + temperature * change / (2.0 + 0.1 * step)
        offsets = offsets - offsets.mean()
    return best


def check_shares(given: Any, classes: NDArray[Any], *, warns: bool = False) -> Floats:
    """Return shares of the classes that sum to 1, from an array or a dict {class: share}.

    With `warns`, those that did not are reported.
    """
    names = classes.tolist()
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        unknown = [name for name in given if name not in names]
        if missing or unknown:
            what = f"has no share of {missing[0]!r}" if missing else f"has {unknown[0]!r}"
            if missing and unknown:
                some = " and ".join(map(repr, unknown[:2]))
                what += f", and {some} {'is no class' if len(unknown) == 1 else 'are no classes'}"
            raise InputError(f"{Param('class_prior')} {what}; the labels have the classes {names}")
        given = [given[name] for name in names]
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.shape != (len(names),) or not np.all((shares > 0) & np.isfinite(shares)):
        raise bad_value(
            "class_prior", f"have one positive entry for each of the classes {names}", given
        )
    largest = shares.max()
    parts = shares / largest  # so that the sum does not overflow
    normalised: Floats = parts / parts.sum()
    total = float(largest) * float(parts.sum())
    if warns and abs(total - 1.0) > ROUNDING:
        warn(
            f"the shares in {Param('class_prior')} sum to {total:g}, not to 1, so each is divided "
            f"by the sum: that of {names[0]!r} is {normalised[0]:.3g}; give shares that sum to 1",
            OhmWarning,
        )
    return normalised
