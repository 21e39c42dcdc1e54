"""A small logistic model on left-out labels: harmonic scores, random walks, a bias for each class.

To switch between methods by the loss of left-out labels loses many points somewhere: with few
labels, differences of losses are mostly noise. So the model adds to the harmonic exponents x of a
node what can only help a little, with priors that keep it small:

    z = x + r w + b,        p = (1 - s) softmax(z / t) + s / n_classes,

where w are the scores of random walks with restart, scaled to mean square 1 at the node, r >= 0 is
their weight, and b the biases of the classes. It maximises over t, s, r and beta = b / t

    sum(log p[given class]) - |beta|^2 / (2 * 0.5^2) - r^2 / (2 * 0.2^2)
        - log(t / t0)^2 / 2 - (logit(s) - logit(s0))^2 / 2,

summed over labelled nodes, each scored without its own label. (t0, s0) is typical of real data. The
calibration of x alone is no good centre: where a missing bias makes x useless, it says that nothing
can be known, and a bias large enough then hides a class. The deviations 0.5 and 0.2 were fixed
before any of the sets of docs/defaults.md was looked at; wider ones gain a little more on average
and lose more in the worst case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn._blas import one_blas_thread
from ohmlearn.estimators.calibration import DEFAULT, Floats, centre, row_sizes, softmax

BIAS_DEVIATION, RESTART_DEVIATION = 0.5, 0.2  # of their priors
START = 0.05  # r where the search starts; at 0 it would stay if the gradient is 0
DIGITS = 3  # of the solution
FOLDS = 5  # in which the model is fitted again to estimate how good it is
ERRORS = 1e-7  # of solves, relative to typical scores
LOGIT = float(np.log(DEFAULT.smoothing / (1.0 - DEFAULT.smoothing)))  # of s0


class Combination(NamedTuple):
    """What is added to harmonic exponents."""

    restart: float  # weight of the random walks
    bias: Floats  # number added for each class; the numbers sum to zero

    def apply(self, harmonic: Floats, walks: Floats | None = None) -> Floats:
        """Return the exponents z of nodes."""
        z: Floats = harmonic + self.bias
        return z if walks is None or self.restart == 0.0 else z + self.restart * walks


def scale_walks(scores: Floats, there: NDArray[np.bool_], typical: float) -> Floats:
    """Return the scores of random walks at each node, centred and with mean square 1.

    The scores of walks differ by orders of magnitude between nodes near to and far from labels, so
    only their ratios say something. Where they are nothing beside `typical`, the root mean square
    of all, they are errors of the solver, and stay small. `there` are the classes that have a label
    in the component.
    """
    centred = centre(scores, there)
    return centred / sizes_of_walks(centred, there, typical)


def sizes_of_walks(centred: Floats, there: NDArray[np.bool_], typical: float) -> Floats:
    """Return the root mean squares of rows, but not what errors of the solver would give."""
    return np.maximum(row_sizes(centred, there), ERRORS * typical or 1.0)


@one_blas_thread()
def fit_combination(
    harmonic: Floats, walks: Floats | None, targets: Floats, weights: Floats, *, biased: bool = True
) -> Combination:
    """Return the most probable model.

    `harmonic` are exponents of labelled nodes, each without its own label, and `walks` scaled
    scores of random walks, if they are used. `targets` are the labels as distributions, which
    count by `weights`. Only classes that have two labels or more get a bias; none if not `biased`.
    """
    from scipy.optimize import minimize  # late: to import it takes longer than to label few nodes

    n_classes = harmonic.shape[1]
    free = np.flatnonzero(biased & (np.count_nonzero(targets > 0.0, axis=0) > 1))
    there = np.isfinite(harmonic)
    x = np.where(there, harmonic, 0.0)
    w = np.zeros_like(x) if walks is None else np.where(there, walks, 0.0)
    bounds = [(-4.0, 4.0), (-8.0, 8.0), (0.0, None), *[(None, None)] * len(free)]

    def negative(at: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient at (log t / t0, logit s, r, beta of free classes)."""
        t, s, r = DEFAULT.temperature * np.exp(at[0]), 1.0 / (1.0 + np.exp(-at[1])), at[2]
        beta = np.zeros(n_classes)
        beta[free] = at[3:]
        z = (x + r * w) / t
        p = softmax(np.where(there, z + beta, -np.inf))
        mixed = (1.0 - s) * p + s / n_classes
        loss = -float(weights @ np.einsum("ij,ij->i", targets, np.log(mixed)))
        # Of the sum of logarithms: by p, then by the exponents.
        by_p = weights[:, np.newaxis] * targets / mixed
        inner = (1.0 - s) * p * by_p
        by_z = inner - p * inner.sum(axis=1, keepdims=True)
        gradient = np.concatenate([
            [float(np.sum(by_z * z)), s * (1.0 - s) * float(np.sum(by_p * (p - 1.0 / n_classes)))],
            [-float(np.sum(by_z * w)) / t], -by_z.sum(axis=0)[free],
        ])  # fmt: skip
        centre = np.array([0.0, LOGIT, 0.0, *[0.0] * len(free)])
        inverse = np.array([1.0, 1.0, RESTART_DEVIATION**-2, *[BIAS_DEVIATION**-2] * len(free)])
        apart = at - centre
        return loss + 0.5 * float(inverse @ apart**2), gradient + inverse * apart

    first = np.array([0.0, LOGIT, START, *[0.0] * len(free)])
    # Rounded, because the last digits depend on the processor, and say nothing about labels.
    found = minimize(negative, first, jac=True, method="L-BFGS-B", bounds=bounds).x.round(DIGITS)
    bias = np.zeros(n_classes)
    bias[free] = found[3:] * DEFAULT.temperature * np.exp(found[0])
    return Combination(float(found[2]) if walks is not None else 0.0, bias - bias.mean())


def folds_of(
    codes: NDArray[np.int64], n_folds: int = FOLDS, seed: int = FOLDS
) -> NDArray[np.int64]:
    """Return the fold of each label, drawn at random, with equal parts of each class.

    With unequal parts, the biases of the other folds would speak against the class of a label: the
    estimate of useless scores would be worse than guessing.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.int64)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds
