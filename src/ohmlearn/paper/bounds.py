"""Theorem 1 as printed and as repaired; `ohmlearn.paper` explains the symbols."""

import math
from dataclasses import dataclass

from ohmlearn.checks.parameters import check_at_least, check_count, check_fraction, check_positive
from ohmlearn.errors import InputError, Param


@dataclass(frozen=True)
class Stability:
    """How much the loss at a node may change when one labelled node is replaced by another.

    Attributes
    ----------
    printed : float
        The paper's beta; infinite if its condition l gamma (1 - epsilon) lambda_1 > 1 fails. It is
        not a bound, because a factor 2c is missing.
    repaired : float
        A bound that holds.
    margin : float
        The number a: l gamma times the lower bound of the sparsifier's second eigenvalue.
    deviation_bound : float
        The number c that the repaired form uses.

    Examples
    --------
    >>> from ohmlearn.paper import stability_beta
    >>> beta = stability_beta(n_labelled=10, gamma=1.0, lambda_1=0.05)
    >>> beta.printed, round(beta.margin, 6)  # the printed form needs a margin above 1
    (inf, 0.5)
    """

    printed: float
    repaired: float
    margin: float
    deviation_bound: float


def stability_beta(
    n_labelled: int,
    *,
    gamma: float,
    lambda_1: float,
    epsilon: float = 0.0,
    label_bound: float = 1.0,
    deviation_bound: float | None = None,
    lower: float | None = None,
) -> Stability:
    """Bound the stability beta of stable-HFS on a sparsifier, as printed and repaired.

    With a = l gamma (1 - epsilon) lambda_1 the repaired form is beta = 2 sqrt(2) c^2 / a, at most
    c^2. Unlike the printed form it does not need a > 1.

    Parameters
    ----------
    n_labelled : int
        The number l of labelled nodes.
    gamma : float
        Regularisation of stable-HFS.
    lambda_1 : float
        Second smallest eigenvalue of the graph's Laplacian, or a lower bound of it.
    epsilon : float
        Accuracy of the sparsifier; 0 is the exact algorithm.
    label_bound : float
        The number k, the largest absolute label.
    deviation_bound : float, optional
        A number c that \\|f - y\\| never exceeds, whichever nodes are labelled. By default, the
        bound that follows from the other arguments; a larger number is replaced by that bound.
    lower : float, optional
        The smallest ratio x'L_H x / x'L_G x, if it is known; 1 - epsilon by default.

    Examples
    --------
    >>> from ohmlearn.paper import stability_beta
    >>> beta = stability_beta(n_labelled=10, gamma=1.0, lambda_1=50.0, epsilon=0.2)
    >>> round(beta.printed, 6), round(beta.repaired, 6)
    (0.003574, 0.007183)
    """
    l_ = check_count("n_labelled", n_labelled)
    gamma = check_positive("gamma", gamma)
    k = check_positive("label_bound", label_bound)
    lambda_1 = check_at_least("lambda_1", lambda_1, 0.0)
    epsilon, lower = _check_ratios(epsilon, lower)
    a = l_ * gamma * lower * lambda_1
    # |f| <= |f|_2, which is at most k sqrt(l) / a and at most k sqrt(l / a) / 2.
    c = k + k * min(math.sqrt(l_) / a, 0.5 * math.sqrt(l_ / a)) if a > 0 else math.inf
    if deviation_bound is not None:
        c = min(c, check_positive("deviation_bound", deviation_bound))
    repaired = min(c * c, 2.0 * math.sqrt(2.0) * c * c / a) if a > 0 and c < math.inf else math.inf
    a_printed = l_ * gamma * (1.0 - epsilon) * lambda_1 - 1.0
    printed = math.inf
    if epsilon < 1.0 and a_printed > 0:
        printed = 1.5 * k * math.sqrt(l_) / a_printed**2 + math.sqrt(2.0) * k / a_printed
    return Stability(printed, repaired, a, c)


def _check_ratios(epsilon: float, lower: float | None) -> tuple[float, float]:
    epsilon = check_at_least("epsilon", epsilon, 0.0)
    if lower is not None:
        return epsilon, check_positive("lower", lower)
    if epsilon >= 1.0:
        raise InputError(
            f"{Param('epsilon')} must be below 1, got {epsilon:g}; if the smallest ratio of "
            f"energies is known and above 0, pass it as {Param('lower')}"
        )
    return epsilon, 1.0 - epsilon


@dataclass(frozen=True)
class BoundTerms:
    """The terms of a bound on R; `value` is their sum.

    Attributes
    ----------
    empirical : float
        Mean squared error on the labelled nodes.
    sparsification : float
        How much the sparsifier may add to that error.
    stability : float
        beta.
    deviation : float
        (2 beta + c^2 (l + u) / (l u)) sqrt(pi(l, u) ln(1 / delta) / 2).
    trivial : float
        c^2, which R never exceeds.

    Examples
    --------
    >>> from ohmlearn.paper import BoundTerms
    >>> terms = BoundTerms(0.25, 0.0, 0.125, 0.5, trivial=1.0)
    >>> terms.value, terms.vacuous
    (0.875, False)
    """

    empirical: float
    sparsification: float
    stability: float
    deviation: float
    trivial: float

    @property
    def value(self) -> float:
        """The bound."""
        return self.empirical + self.sparsification + self.stability + self.deviation

    @property
    def vacuous(self) -> bool:
        """Whether the bound is infinite or not below the trivial one."""
        return not self.value < self.trivial


@dataclass(frozen=True)
class GeneralizationBound:
    """Theorem 1 as printed and as repaired; ``print`` shows both, term by term.

    Attributes
    ----------
    printed, repaired : BoundTerms
        The printed form is infinite if its condition fails. Even if it is finite it is not a bound,
        because two steps of its proof are wrong (errors 2 and 4 of docs/theory.md).
    confidence : float
        Probability, over the draw of the labelled nodes, with which the repaired form holds.
    margin : float
        l gamma (1 - epsilon) lambda_1, which must be above 1 for the printed form.
    label_bound, deviation_bound : float
        The numbers k and c.

    Examples
    --------
    >>> from ohmlearn.paper import generalization_bound
    >>> bound = generalization_bound(
    ...     0.3, 4, 996, gamma=1.0, lambda_1=5.0, lambda_n=20.0, epsilon=0.5
    ... )
    >>> bound.vacuous  # four labels
    True
    """

    printed: BoundTerms
    repaired: BoundTerms
    confidence: float
    margin: float
    label_bound: float
    deviation_bound: float

    @property
    def vacuous(self) -> bool:
        """Whether the repaired bound is vacuous."""
        return self.repaired.vacuous

    def __str__(self) -> str:
        both = (self.printed, self.repaired)
        names = {
            "empirical": "error on labelled nodes", "sparsification": "added by sparsification",
            "stability": "stability beta", "deviation": "deviation", "value": "bound of R",
        }  # fmt: skip
        lines = [f"{'':24}{'printed':>12}{'repaired':>12}"]
        for term, name in names.items():
            lines.append(f"{name:24}" + "".join(f"{getattr(x, term):12.4g}" for x in both))
        if any(terms.vacuous for terms in both):
            verdicts = ("vacuous" if terms.vacuous else "" for terms in both)
            lines.append(f"{'':24}" + "".join(f"{verdict:>12}" for verdict in verdicts))
        lines.append(
            f"repaired: with probability {self.confidence:g}; "
            f"c = {self.deviation_bound:.4g}, k = {self.label_bound:.4g}"
        )
        if not self.vacuous and self.repaired.value >= self.label_bound**2:
            lines.append("but the answer 0 everywhere has a bound at least as good, k^2")
        if math.isinf(self.printed.value):
            lines.append(
                f"printed: needs l gamma (1 - epsilon) lambda_1 > 1, but it is {self.margin:.4g}"
            )
        else:
            lines.append("printed: lacks a factor 2c in beta and a cross term, not a bound")
        return "\n".join(lines)


def generalization_bound(
    empirical_error: float,
    n_labelled: int,
    n_unlabelled: int,
    *,
    gamma: float,
    lambda_1: float,
    lambda_n: float,
    epsilon: float = 0.0,
    label_bound: float = 1.0,
    deviation_bound: float | None = None,
    delta: float = 0.05,
    lower: float | None = None,
) -> GeneralizationBound:
    """Bound the error R of Sparse-HFS on unlabelled nodes by that of stable-HFS on labelled ones.

    Parameters
    ----------
    empirical_error : float
        Mean squared error of the exact answer f^ on the labelled nodes. If you know the error of
        the Sparse-HFS answer f~ instead, pass that with ``epsilon=0`` and the `lambda_1` of the
        sparsifier; then sparsification adds nothing to the bound.
    n_labelled, n_unlabelled : int
        The numbers l and u.
    gamma, lambda_1, epsilon, label_bound, deviation_bound, lower
        As in `stability_beta`.
    lambda_n : float
        Largest eigenvalue of the graph's Laplacian; only the printed form needs it.
    delta : float
        One minus the confidence.

    Returns
    -------
    GeneralizationBound

    Examples
    --------
    >>> from ohmlearn.paper import generalization_bound
    >>> print(
    ...     generalization_bound(
    ...         0.3, 200, 800, gamma=1.0, lambda_1=5.0, lambda_n=20.0, epsilon=0.5
    ...     )
    ... )
                                 printed    repaired
    error on labelled nodes          0.3         0.3
    added by sparsification    6.451e-05    0.001096
    stability beta              0.002919    0.005981
    deviation                     0.1928      0.2877
    bound of R                    0.4958      0.5947
    <BLANKLINE>
    repaired: with probability 0.95; c = 1.028, k = 1
    printed: lacks a factor 2c in beta and a cross term, not a bound
    """
    error = check_at_least("empirical_error", empirical_error, 0.0)
    u = check_count("n_unlabelled", n_unlabelled)
    lambda_n = check_at_least("lambda_n", lambda_n, lambda_1)
    delta = check_fraction("delta", delta)
    stability = stability_beta(
        n_labelled, gamma=gamma, lambda_1=lambda_1, epsilon=epsilon, label_bound=label_bound,
        deviation_bound=deviation_bound, lower=lower,
    )  # fmt: skip
    epsilon, lower = _check_ratios(epsilon, lower)
    l_, k, c = int(n_labelled), float(label_bound), stability.deviation_bound
    pi = l_ * u / (l_ + u - 0.5) / (1.0 - 1.0 / (2.0 * max(l_, u)))
    spread = math.sqrt(pi * math.log(1.0 / delta) / 2.0)

    def assemble(sparsification: float, beta: float) -> BoundTerms:
        deviation = (2.0 * beta + c * c * (l_ + u) / (l_ * u)) * spread
        return BoundTerms(error, sparsification, beta, deviation, c * c)

    margin = l_ * gamma * (1.0 - epsilon) * lambda_1
    added = math.inf
    if stability.printed < math.inf:
        added = (l_ * gamma * lambda_n * k * epsilon) ** 2 / (margin - 1.0) ** 4
    change = _change_on_labelled(l_ * gamma * lambda_1, epsilon, lower, k)
    repaired_added = 2.0 * math.sqrt(error * change) + change
    return GeneralizationBound(
        printed=assemble(added, stability.printed),
        repaired=assemble(repaired_added, stability.repaired),
        confidence=1.0 - delta, margin=margin, label_bound=k, deviation_bound=c,
    )  # fmt: skip


def _change_on_labelled(g: float, epsilon: float, lower: float, k: float) -> float:
    """Bound Delta = |f~ - f^|^2 / l over the labelled nodes; g is l gamma lambda_1 of the graph."""
    if epsilon == 0.0:
        return 0.0
    energy, solve = 0.25, 0.25 / lower  # these hold for any lambda_1
    if g > 0.0:
        energy, solve = min(energy, 1.0 / g), min(solve, 1.0 / (lower * lower * g))
    return (k * epsilon) ** 2 * energy * solve
