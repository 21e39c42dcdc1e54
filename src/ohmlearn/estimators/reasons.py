"""Reasons for the label of a node, as data, as text, as a table and as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ohmlearn._display import COLOURS, INK, Tabular
from ohmlearn.checks.parameters import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OWN = " itself"  # after the name of the node
SIDES = ("Raised by", "Lowered by")
STAYS = "No set of up to five labels was found that changes it."
NAMED = 0.1  # labels that contribute less than this fraction of the largest are not named
MOST_NAMED = 3  # labels for it, and against it
FOR, AGAINST = COLOURS[:2]  # blue and orange, which most colour-blind readers can tell apart
WIDEST = 7.0  # points
LONGEST = 18  # characters of a name in a picture
TIE = 3.0  # contributions that are this many times the margin: as 2 for it and 1 against it


class LabelReason(NamedTuple):
    """What one label contributes to the margin of a node.

    Attributes
    ----------
    node, label : the labelled node, and its label
    contribution : float
        In the unit of the margin; positive if it speaks for the label of the node.
    fraction : float
        The contribution divided by the margin.
    if_removed : float
        The margin without this label; the counts of classes, gamma times the number of labels and
        the calibration stay as they are. NaN if its leave-one-out score is not known.
    distance : int or None
        Number of edges to the label; None if it is not known, as the edges were not all kept.
    """

    node: object
    label: object
    contribution: float
    fraction: float
    if_removed: float
    distance: int | None


class NeighborReason(NamedTuple):
    """The vote of a neighbour: its score, weighted by the edge. `label` is its own answer."""

    node: object
    label: object
    weight: float
    contribution: float


class EdgeReason(NamedTuple):
    """An edge, with all weight between its ends, and its support: weight times dm / dweight."""

    source: object
    target: object
    weight: float
    support: float


class PathReason(NamedTuple):
    """A path from the node to a label, and the fraction of the current from the node it carries."""

    nodes: tuple[object, ...]
    fraction: float


class Change(NamedTuple):
    """Labels that, if removed or if wrong, give the node another label. Confirmed by a refit."""

    kind: str  # "removed" or "wrong"
    nodes: tuple[object, ...]
    becomes: object


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """Why a node has its label; see `HFSClassifier.explain`.

    Attributes
    ----------
    node : the id of the node
    label, against : its label, and the class that it is compared with; None for numbers
    probability : float
        Of the label; NaN for numbers.
    margin : float
        Difference of the exponents of the two classes, whose soft maximum the probabilities are;
        for numbers, the value minus the mean of all labels.
    labels : list of LabelReason
        The largest contributions first. Those of all labels, `offsets` and `rest` sum to `margin`.
    offsets : dict
        What does not come from single labels: the bias of the classes and their known proportions.
    rest : float
        Contributions of the labels that are not listed, and what the passes left open.
    neighbors : list of NeighborReason or None
        Votes of all neighbours, the largest first. Those of an unlabelled node sum to `margin`
        minus `offsets`, up to the difference of the node from the average.
    edges : list of EdgeReason or None
        The largest supports among all edges. None if not all edges are known.
    paths : list of PathReason
        Paths for a picture. Empty if three of them carry less than a fifth of the current.
    basis : str
        Which edges this is computed from.
    note : str
        What else is to be said, for example that a node has no evidence; "" if there is nothing.

    Examples
    --------
    >>> from ohmlearn import HFSClassifier, gallery
    >>> model = HFSClassifier(random_state=0).fit_edges(gallery.path(5), {0: "a", 4: "b"})
    >>> print(model.explain(0).text())
    0 is "a" (92%), not "b": its only neighbour leans to "a". For it: the label 0 itself (+60% of
    the margin); the distance from the "b" label 4 (+40%). It would be "b" without the label of 0.
    """

    node: object
    label: object
    against: object
    probability: float
    margin: float
    labels: list[LabelReason]
    offsets: dict[str, float] = field(default_factory=dict)
    rest: float = 0.0
    neighbors: list[NeighborReason] | None = None
    edges: list[EdgeReason] | None = None
    paths: list[PathReason] = field(default_factory=list)
    basis: str = "all edges"
    note: str = ""
    find_changes: Callable[[], list[Change]] = field(default=list, compare=False)

    @cached_property
    def changes_if(self) -> list[Change]:
        """Smallest sets of labels found that change the answer, each confirmed by a refit.

        Labels are removed, or replaced by the other class, the one with the largest effect first.
        Computed when asked for; takes up to six refits.
        """
        return self.find_changes()

    # Text.

    def __str__(self) -> str:
        """Return the reasons in a few short sentences."""
        return self.text(changes="changes_if" in vars(self))

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def text(self, *, changes: bool = True) -> str:
        """Return the reasons as a person would say them.

        Labels, and what is the same at all nodes, are for or against the answer. A label of the
        other class can be for it if it is far, because a node is compared with the average node.
        Percentages are of the margin; if nearly as much is against as for it, they would be in the
        hundreds, and are left out.

        Parameters
        ----------
        changes : bool
            Whether to say what would change the label, which takes some refits.
        """
        near = self._say_neighbors()
        found = f"{self._head()}: {near}." if near else f"{self._head()}."
        ways = ["For it", "Much is also against it" if self.is_close else "Against it"]
        sides = ""
        for way, sign in zip(ways if self._is_class else SIDES, (1.0, -1.0), strict=True):
            parts = self._list_parts(sign)
            sides += f" {way}: {'; '.join(parts)}." if parts else ""
        found += sides.replace("%)", "% of the margin)", 1)
        if self.note and OWN not in sides:
            found += f" {self.note[0].upper()}{self.note[1:]}."
        return found + (self._say_changes() if changes else "")

    @property
    def graph(self) -> Explanation:
        """The reasons of edges and labels: these, if no features take part."""
        return self

    @property
    def _is_class(self) -> bool:
        return self.against is not None or not math.isnan(self.probability)

    @property
    def _sizes(self) -> list[float]:
        found = [one.contribution for one in self.labels]
        return [abs(value) for value in (*found, *self.offsets.values(), self.rest)]

    @property
    def is_close(self) -> bool:
        """Whether much speaks against the label, so that percentages of the margin are large."""
        return sum(self._sizes) > TIE * abs(self.margin)

    def _head(self) -> str:
        if not self._is_class:
            return f"{self.node} has the value {_show(self.label)}"
        found = f"{self.node} is {quote(self.label)}"
        if not math.isnan(self.probability):
            found += f" ({100 * self.probability:.0f}%)"
        return found + (f", not {quote(self.against)}" if self.against is not None else "")

    def _say_neighbors(self) -> str:
        votes = self.neighbors
        if not votes or self.against is None:
            return ""
        n, n_for, to = len(votes), sum(vote.contribution > 0 for vote in votes), quote(self.label)
        if n == 1:
            return f"its only neighbour {'leans' if n_for else 'does not lean'} to {to}"
        if n_for == n:
            return f"{'both' if n == 2 else f'all {n}'} neighbours lean to {to}"
        some = f"{'only ' if 2 * n_for < n else ''}{n_for}" if n_for else "none"
        return f"{some} of its {n} neighbours {'lean' if n_for > 1 else 'leans'} to {to}"

    def _list_parts(self, sign: float) -> list[str]:
        """Return what has the largest part in one side: labels that are near, far, and the rest."""
        least = max(NAMED * max(self._sizes), 1e-300)
        named = [one for one in self.labels if sign * one.contribution >= least][:MOST_NAMED]
        groups: dict[tuple[bool, Any], list[str]] = {}
        for one in named:
            # Those of the class are near if they are for it, and those of another if against it.
            is_far = self._is_class and (one.label == self.label) != (sign > 0)
            other = one.label if is_far or (self._is_class and one.label != self.label) else None
            name = f"{one.node}{OWN}" if one.node == self.node else str(one.node)
            part = f" ({_show(one.label)}, {one.contribution:+.2g})"
            part = self._percent(one.contribution) if self._is_class else part
            groups.setdefault((is_far, other), []).append(name + part)
        found = []
        for (is_far, other), names in sorted(groups.items(), key=lambda item: item[0][0]):
            what = "the " + ("" if other is None else f"{quote(other)} ") + "label"
            away = "the distance from " if is_far else ""
            found.append(f"{away}{what}{'s' * (len(names) > 1)} {_and(names)}")
        for what, value in self.offsets.items():
            if sign * value >= least:
                found.append(f"the {what}{self._percent(value)}")
        if sign * self.rest > max(sum(abs(one.contribution) for one in named), least):
            found.append("many labels with a small part each")
        return found

    def _percent(self, value: float) -> str:
        return "" if self.is_close else f" ({100 * value / abs(self.margin):+.0f}%)"

    def _say_changes(self) -> str:
        """Return what would change the answer; a label that is enough to remove is named once."""
        ways: dict[Any, list[str]] = {}
        said: list[set[Any]] = []
        for change in self.changes_if:
            if set(change.nodes) in said:
                continue
            said.append(set(change.nodes))
            names, many = _and([str(node) for node in change.nodes]), len(change.nodes) > 1
            if change.kind == "removed":
                way = f"without the {'labels' if many else 'label'} of {names}"
            else:
                way = f"if {names} were {quote(self.against)}"
            ways.setdefault(change.becomes, []).append(way)
        found = [f"{quote(label)} {', or '.join(each)}" for label, each in ways.items()]
        if found:
            return f" It would be {', and '.join(found)}."
        return "" if self.against is None or not self.labels else f" {STAYS}"

    # Data.

    def to_dict(self, *, changes: bool = False) -> dict[str, Any]:
        """Return the reasons as values that JSON has; with `changes`, also `changes_if`."""
        names = (name for name in self.__dataclass_fields__ if name != "find_changes")
        found = {name: getattr(self, name) for name in names}
        found["text"] = self.text(changes=changes)
        if changes:
            found["changes_if"] = self.changes_if
        return as_json_object(found)

    def to_json(self, *, changes: bool = False) -> str:
        """Return `to_dict` as a line of JSON."""
        return json.dumps(self.to_dict(changes=changes), ensure_ascii=False, allow_nan=False)

    def _columns(self) -> dict[str, Any]:
        """Return all contributions, which sum to `margin`."""
        rows = [("label", *one) for one in self.labels]
        unit = self.margin or math.nan
        more = {**self.offsets, "other labels": self.rest}
        rows += [
            (name, None, None, value, value / unit, math.nan, None) for name, value in more.items()
        ]
        names = ("what", *LabelReason._fields)
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the node, the labels that pull it, and the paths between them, with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        return _draw(self, ax)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(str(one.node))}</td><td>{escape(str(one.label))}</td>"
            f"<td>{one.contribution:+.3g}</td><td>{100 * one.fraction:+.0f}%</td></tr>"
            for one in self.labels
        )
        heads = "".join(f"<th>{name}</th>" for name in ("label of", "says", "contributes", ""))
        return f"<p>{escape(str(self))}</p><table><tr>{heads}</tr>{rows}</table>"


def as_json_object(found: dict[str, object]) -> dict[str, Any]:
    """Return a dict with values that JSON has."""
    return {name: as_json_values(value) for name, value in found.items()}


def as_json_values(value: Any) -> Any:
    """Return a value with types that JSON has; NaN and infinite numbers become None."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): as_json_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_values(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _show(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def quote(value: object) -> str:
    return f'"{value}"'


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _draw(why: Explanation, ax: Axes | None) -> Axes:
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
