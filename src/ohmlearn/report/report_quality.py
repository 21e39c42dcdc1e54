"""How good labels are, as figures and in words, for summaries and pages."""

from typing import Any

import numpy as np

from ohmlearn.estimators.answer import FEW
from ohmlearn.estimators.calibration import AccuracyEstimate

__all__ = ["describe_accuracy", "describe_stability", "measure_quality"]

ONE_CLASS = "not estimated, because there is only one class"
TOO_FEW = "not estimated, because no class has two labels that are connected"
ROUGH = f"rough, and probably too low: fewer than {FEW} labels for each class"


def measure_quality(answer: Any) -> dict[str, Any]:
    """Return the estimated accuracy, and how close the answer is to that of the full graph.

    The latter is the residual, if the answer is that of all edges. If it is that of the edges kept,
    a residual would say nothing about the others. Then it is the estimated epsilon, and the share
    of labels that another sample of edges would change. With features, it is the estimated epsilon.

    Examples
    --------
    >>> from ohmlearn import HFSClassifier, gallery
    >>> labels = {node: "left" if node < 20 else "right" for node in range(0, 40, 5)}
    >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(40), labels)
    >>> quality = measure_quality(model.answer_)
    >>> quality["accuracy_estimate"]["value"], quality["residual"][0] < 1e-6
    (0.875, True)
    """
    quality = _estimate_accuracy(answer)
    if answer.has_features:
        return quality | {"epsilon_estimate": answer.model.sparsifier_.sample().epsilon}
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
    elif not answer.has_features and np.ptp(counts) == 0.0 and not answer.weigh_labels:
        caveats = [
            "labels seem chosen, not drawn (equally many for each class): give --class-prior if "
            "you know the shares"
        ]
    estimate = answer.accuracy()._asdict()
    return {"accuracy_estimate": estimate, "accuracy_caveats": caveats}


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
    without = quality.get("n_without_answer", quality.get("n_unreached", 0))
    if without:
        n_nodes = quality["n_nodes"]
        text += f"; for the {n_nodes - without:,} of {n_nodes:,} nodes that get a label"
    return text


def describe_stability(quality: dict[str, Any]) -> str:
    """Return the share of labels that another sample of edges would change, in words.

    Examples
    --------
    >>> describe_stability({"unstable_share": 0.26}), describe_stability({"unstable_share": 0.002})
    ('26% of labels would change with another seed', 'less than 1% of labels would ...')
    """
    share = quality["unstable_share"]
    percent = f"{100 * share:.0f}%" if share >= 0.01 or share == 0.0 else "less than 1%"
    return f"{percent} of labels would change with another seed"
