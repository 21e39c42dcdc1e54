"""How good labels are, as figures and in words, for summaries and pages."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.estimators.answer import FEW
from ohmlearn.estimators.calibration import AccuracyEstimate, estimate_accuracy

if TYPE_CHECKING:
    from ohmlearn.estimators.answer import ClassAnswer
    from ohmlearn.features.feature_classifier import FeatureClassAnswer

Floats = NDArray[np.float64]
N_GROUPS = 10  # of labels, by their probability
LEAST = 0.005  # weight of random walks, and change of a proportion, that is worth a line
MOST_BIASES = 3  # classes whose bias is printed
ONE_CLASS = "not estimated, because there is only one class"
TOO_FEW = "not estimated, because no class has two labels that are connected"
WORDS = {  # the experts
    "features": "the features of a node alone",
    "both": "features smoothed along the edges",
    "graph": "the edges and labels alone",
}
ROUGH = f"rough, and probably too low: fewer than {FEW} labels for each class"


def measure_quality(answer: Any) -> dict[str, Any]:
    """Return the estimated accuracy, and how close the answer is to that of the full graph.

    The latter is the residual, if the answer is that of all edges. If it is that of the edges kept,
    a residual would say nothing about the others. Then it is the estimated epsilon, and the
    fraction of labels that another sample of edges would change. With features, it is the estimated
    epsilon.
    """
    quality = _estimate_accuracy(answer)
    if answer.has_features:
        return quality | {"epsilon_estimate": answer.problem.sample.epsilon}
    if answer.n_iter > 1 or answer.problem.holds_all_edges:
        return quality | {"residual": answer.result.residual.tolist()}
    return quality | {
        "epsilon_estimate": answer.problem.sample.epsilon,
        "unstable_share": float(answer.stability[answer.reached].mean()),  # others have no label
    }


def _estimate_accuracy(answer: Any) -> dict[str, Any]:
    counts, caveats = answer.counts, []
    can_leave_out = counts.max() >= 2 if answer.has_features else answer.left_out.usable.any()
    if len(counts) < 2 or not can_leave_out:
        why = ONE_CLASS if len(counts) < 2 else TOO_FEW
        return {"accuracy_estimate": None, "accuracy_caveats": [why]}
    if counts.sum() < FEW * len(counts):
        caveats = [ROUGH]
    elif not (answer.has_features or np.ptp(counts) or answer.problem.parameters.knows_proportions):
        caveats = [
            "labels seem chosen, not drawn (equally many for each class), so they do not tell how "
            "common the classes are: give --class-prior if you know it"
        ]
    found = {"accuracy_estimate": answer.accuracy()._asdict(), "accuracy_caveats": caveats}
    if not answer.has_features:
        found["n_labels_alone"] = int(np.count_nonzero(~answer.left_out.connected))
    return found


def describe_accuracy(quality: dict[str, Any]) -> str:
    """Return the estimated accuracy in words, without caveats, and for which nodes it holds.

    Examples
    --------
    >>> estimate = {"value": 0.84, "low": 0.79, "high": 0.88, "n_labels": 120}
    >>> describe_accuracy({"accuracy_estimate": estimate})
    'about 84% right (79-88%), estimated from 120 labels'
    >>> describe_accuracy({"accuracy_estimate": estimate, "n_nodes": 500, "n_unreached": 90})
    'about 84% right (79-88%), estimated from 120 labels; for the 410 of 500 nodes that get a label'
    """
    text = str(AccuracyEstimate(**quality["accuracy_estimate"]))
    if n_alone := quality.get("n_labels_alone"):
        text += f" ({n_alone:,} more {'is' if n_alone == 1 else 'are'} connected to no other label)"
    without = quality.get("n_without_answer", quality.get("n_unreached", 0))
    if without:
        n_nodes = quality["n_nodes"]
        text += f"; for the {n_nodes - without:,} of {n_nodes:,} nodes that get a label"
    return text


def describe_stability(quality: dict[str, Any]) -> str:
    """Return the fraction of labels that another sample of edges would change, in words.

    Examples
    --------
    >>> describe_stability({"unstable_share": 0.26}), describe_stability({"unstable_share": 0.002})
    ('26% of labels would change with another seed', 'less than 1% of labels would ...')
    """
    fraction = quality["unstable_share"]
    percent = f"{100 * fraction:.0f}%" if fraction >= 0.01 or fraction == 0.0 else "less than 1%"
    return f"{percent} of labels would change with another seed"


def measure_combination(answer: "ClassAnswer") -> dict[str, Any]:
    """Return what was added to harmonic functions, and what biases did to the classes."""
    added, names = answer.combination, answer.problem.classes.astype(str).tolist()
    if added is None:
        return {}
    by_class = {
        "bias": added.bias,
        "proportions": answer.proportions(),
        "proportions_without_bias": answer.proportions(-added.bias),
    }
    by_name = {key: dict(zip(names, x.tolist(), strict=True)) for key, x in by_class.items()}
    return {"restart": added.restart, **by_name}


def describe_combination(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return lines about what was added, with the classes that biases changed most.

    Of two classes, which change equally, this is the one that becomes rarer.

    Examples
    --------
    >>> before, after = {"fair": 0.57, "fraud": 0.43}, {"fair": 0.76, "fraud": 0.24}
    >>> combination = {"restart": 0.24, "bias": {"fair": 0.6, "fraud": -0.6}, "proportions": after}
    >>> describe_combination(combination | {"proportions_without_bias": before})
    [('Method', 'harmonic + 0.24 restart'), ('Bias', 'fraud -0.6: 43% -> 24% of nodes')]
    """
    if "restart" not in summary:
        return []
    lines, after = [], summary["proportions"]
    if summary["restart"] >= LEAST:
        lines.append(("Method", f"harmonic + {summary['restart']:.2f} restart"))
    before = summary["proportions_without_bias"]
    change = {name: round(abs(after[name] - before[name]), 9) for name in before}
    by_change = sorted(before, key=lambda name: (-change[name], after[name] - before[name]))
    shown = "; ".join(
        f"{name[:30]} {summary['bias'][name]:+.1f}: {100 * before[name]:.0f}% -> "
        f"{100 * after[name]:.0f}% of nodes"
        for name in by_change[: 1 if len(before) == 2 else MOST_BIASES]
        if change[name] >= LEAST
    )
    return [*lines, ("Bias", shown)] if shown else lines


def measure_features(answer: "FeatureClassAnswer") -> dict[str, Any]:
    """Return what features and graph contribute to an answer."""
    use, problem = answer.use, answer.problem
    table, matched = problem.table, problem.matched
    assert table is not None
    assert matched is not None
    alone = np.diff(problem.full_graph.indptr) == 0
    return {
        "path": table.source,
        "n_rows": table.X.shape[0],
        "n_columns": table.X.shape[1],
        "columns": table.treatment,
        "n_nodes_without": matched.n_missing,
        "n_ids_without_edges": int(np.count_nonzero(alone & ~problem.missing)),
        "weights": answer.weights,
        "gamma": answer.experts.gamma,
        "graph_helps": use.helps,
        "loss_with_graph": _known(use.loss_with),
        "loss_without_graph": _known(use.loss_without),
        "homophily": {name: _known(value) for name, value in use.homophily._asdict().items()},
        "verdict": str(use),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def describe_weights(weights: dict[str, float]) -> str:
    """Return in words how much features and graph count.

    Examples
    --------
    >>> describe_weights({"features": 0.05, "both": 0.6, "graph": 0.35})
    '5% the features of a node alone, 60% features smoothed along the edges, 35% the edges and
    labels alone'
    """
    return ", ".join(f"{100 * weights[name]:.0f}% {what}" for name, what in WORDS.items())


class Group(NamedTuple):
    """Labels of about the same probability, or with answers of the same class."""

    key: int  # number of the tenth, or of the class
    probability: float
    right: float  # fraction
    low: float
    high: float
    n_labels: int


def group_by_probability(probability: Floats, right: Floats, weights: Floats) -> list[Group]:
    """Return groups of labels whose probabilities are between two tenths."""
    tenths = np.minimum((probability * N_GROUPS).astype(np.intp), N_GROUPS - 1)
    return group_labels(probability, right, weights, tenths)


def group_labels(
    probability: Floats, right: Floats, weights: Floats, keys: NDArray[np.intp]
) -> list[Group]:
    """Return groups of labels with the same key, in the order of the keys."""
    groups = []
    for key in np.unique(keys).tolist():
        part = keys == key
        accuracy = estimate_accuracy(right[part], weights[part])
        mean = float(np.average(probability[part], weights=weights[part]))
        groups.append(Group(key, mean, *accuracy))
    return groups
