"""A page about the reasons for the labels of some nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ohmlearn.report.html_page import Report

if TYPE_CHECKING:
    from ohmlearn.estimators.reasons import Explanation
    from ohmlearn.features.feature_reasons import PooledExplanation

MOST_EDGES = 8
READ = (
    "A solid line is a path of edges, as wide as the current that it carries. Where none carries "
    "much, a dashed line is as wide as the contribution of the label. Blue speaks for the label of "
    "the node, orange against it."
)


def make_reasons_page(
    found: Sequence[Explanation], command: str, *, changes: bool = True
) -> Report:
    """Return a page with the reasons for some labels, and a picture for each."""
    bases = "; ".join(dict.fromkeys(one.basis for one in found))
    report = Report("Why these labels", f"Reasons for {len(found)} labels, from {bases}.")
    add_reasons(report, found, changes=changes)
    return report.add_command(command)


def add_reasons(
    report: Report, found: Sequence[Explanation | PooledExplanation], *, changes: bool = True
) -> None:
    """Add a section for each explanation to a page."""
    for number, one in enumerate(found):
        report.add_heading(f"{one.node}: {one.label}")
        report.add_text(one.text(changes=changes))
        why = one.graph
        if not why.labels:
            continue
        caption = f"What pulls {one.node} to its label. {READ if number == 0 else ''}".strip()
        report.add_figure(why.plot().figure, caption)
        report.add_table(
            ["label of", "says", "contributes", "of the margin", "margin without it", "edges away"],
            [
                [
                    str(label.node), str(label.label), f"{label.contribution:+.3g}",
                    f"{100 * label.fraction:+.0f}%", f"{label.if_removed:.3g}",
                    "" if label.distance is None else label.distance,
                ]
                for label in why.labels
            ],
        )  # fmt: skip
        if why.edges:
            report.add_table(
                ["strongest edges", "", "weight", "support"],
                [
                    [str(e.source), str(e.target), f"{e.weight:g}", f"{e.support:+.3g}"]
                    for e in why.edges[:MOST_EDGES]
                ],
            )
