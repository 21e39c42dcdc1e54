"""A picture of the reasons for a label: the node, the labels that pull, and the paths between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ohmlearn._display import COLOURS, INK
from ohmlearn.checks.parameters import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ohmlearn.estimators.reasons import Explanation

FOR, AGAINST = COLOURS[:2]  # blue and orange, which most colour-blind readers can tell apart
WIDEST = 7.0  # points
LONGEST = 18  # characters of a name


def draw_reasons(why: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the node on the left and labels on the right, the strongest ones at the top.

    A solid line is a path of edges, as wide as the current that it carries; where no path carries
    much, a dashed line shows the contribution of the label alone. Blue speaks for the label of the
    node, orange against it.
    """
    require_extra("matplotlib", "plot")
    if ax is None:
        from matplotlib.figure import Figure

        height = 1.2 + 0.55 * max(3, len(why.labels))
        ax = Figure(figsize=(7.5, height), layout="constrained").subplots()
    places: dict[object, tuple[float, float]] = {why.node: (0.0, 0.0)}
    n = len(why.labels)
    for at, one in enumerate(why.labels):
        places.setdefault(one.node, (3.0, (n - 1) / 2 - at))
    ends = {path.nodes[-1] for path in why.paths}
    for number, path in enumerate(why.paths):
        last = places.setdefault(path.nodes[-1], (3.0, -(n + 1) / 2 - number))
        steps = max(1, len(path.nodes) - 1)
        for at, node in enumerate(path.nodes[1:-1], 1):
            bend = 0.35 * (number - 1) * (1 - abs(2 * at / steps - 1))
            places.setdefault(node, (3.0 * at / steps, last[1] * at / steps + bend))
        widest = max(each.fraction for each in why.paths)
        for a, b in zip(path.nodes[:-1], path.nodes[1:], strict=True):
            (x0, y0), (x1, y1) = places[a], places[b]
            width = 1.0 + (WIDEST - 1.0) * path.fraction / widest
            ax.plot([x0, x1], [y0, y1], color=INK, alpha=0.45, lw=width, zorder=1)
    most = max((abs(one.contribution) for one in why.labels), default=1.0) or 1.0
    for one in why.labels:
        colour = FOR if one.contribution > 0 else AGAINST
        x, y = places[one.node]
        if one.node not in ends and one.node != why.node:
            width = 0.8 + (WIDEST - 0.8) * abs(one.contribution) / most
            ax.plot([0, x], [0, y], color=colour, lw=width, ls=(0, (2, 1.5)), alpha=0.5, zorder=0)
        ax.plot(x, y, "o", color=colour, ms=5 + 9 * abs(one.contribution) / most, zorder=3)
        part = f"{one.contribution:+.2g}" if why.is_close else f"{100 * one.fraction:+.0f}%"
        says = f"{_short(one.node)}: {_short(one.label)}, {part}"
        if one.node != why.node:
            ax.text(x + 0.15, y, says, color=INK, va="center", fontsize=9)
    for node, (x, y) in places.items():
        if node != why.node and node not in {one.node for one in why.labels}:
            ax.plot(x, y, "o", color=COLOURS[4], ms=5, zorder=2)
            ax.text(x, y - 0.22, _short(node), color=INK, ha="center", va="top", fontsize=8)
    ax.plot(0, 0, "s", color=INK, ms=11, zorder=4)
    ax.text(-0.15, 0, f"{_short(why.node)}\n{_short(why.label)}", color=INK, ha="right",
            va="center", fontsize=10)  # fmt: skip
    ax.set_xlim(-1.2, 4.9)
    ax.margins(y=0.12)
    ax.set_axis_off()
    return ax


def _short(name: object) -> str:
    text = str(name).replace("$", r"\$")
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
