"""Reasons for the label of a node, as data, as text, as a table and as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 0.1  # labels that contribute less than this fraction of the largest are not named
MOST_NAMED = 3  # labels for and against
TIE = 3.0  # if contributions are this many times the margin, nearly as much speaks against it


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
        The margin without this label; NaN if its leave-one-out score is not known.
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
class Explanation:
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
    >>> print(model.explain(1))
    1 is "a" (91%), not "b": 1 of its 2 neighbours lean to a; most of it comes from the label 0 \
(+40%) and being far from 4 (b, +60%).
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
        """Return the reasons in one line."""
        return self.text(changes="changes_if" in vars(self))

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def text(self, *, changes: bool = True) -> str:
        """Return the reasons as a person would say them.

        Parameters
        ----------
        changes : bool
            Whether to say what would change the label, which takes some refits.
        """
        said = [part for part in (self._neighbors(), self._labels()) if part]
        found = self._head() + (": " + "; ".join(said) if said else "") + "."
        if self.note:
            found += f" {self.note[0].upper()}{self.note[1:]}."
        if changes and self.changes_if:
            found += f" It would change {_either(map(self._change, self.changes_if))}."
        return found

    def _head(self) -> str:
        if self.against is None and math.isnan(self.probability):
            return f"{self.node} has the value {_show(self.label)}"
        found = f"{self.node} is {quote(self.label)}"
        if not math.isnan(self.probability):
            found += f" ({100 * self.probability:.0f}%)"
        return found + (f", not {quote(self.against)}" if self.against is not None else "")

    def _neighbors(self) -> str:
        votes = self.neighbors
        if not votes or self.against is None:
            return ""
        n_for = sum(vote.contribution > 0 for vote in votes)
        only = "only " if 2 * n_for < len(votes) else ""
        return f"{only}{n_for} of its {_count(len(votes), 'neighbour')} lean to {self.label}"

    def _labels(self) -> str:
        pulls = [one for one in self.labels if one.contribution != 0.0]
        if not pulls:
            return ""
        # If much speaks against it, too, percentages of the margin are in the hundreds.
        total = sum(abs(one.contribution) for one in self.labels) + abs(self.rest)
        is_tie = total > TIE * abs(self.margin)
        unit = total if is_tie else abs(self.margin)
        least = NAMED * abs(pulls[0].contribution)
        pulls = [one for one in pulls if abs(one.contribution) >= least]

        def name(one: LabelReason) -> str:
            return f"{one.node} ({100 * one.contribution / unit:+.0f}%)"

        # A node is compared with the average node, so a far label of another class speaks for it.
        near = [name(one) for one in pulls if one.contribution > 0 and one.label == self.label]
        far = [
            f"{one.node} ({one.label}, {100 * one.contribution / unit:+.0f}%)"
            for one in pulls
            if one.contribution > 0 and one.label != self.label
        ]
        others = [
            f"{one.node} ({one.label}, {100 * one.contribution / unit:+.0f}%)"
            for one in pulls
            if one.contribution < 0
        ]
        said = "nearly as much speaks against it as for it" if is_tie else ""
        sides = []
        if near:
            sides.append(f"the {'label' if len(near) == 1 else 'labels'} {_and(near)}")
        if far:
            sides.append(f"being far from {_and(far)}")
        if sides:
            fraction = sum(one.contribution for one in pulls if one.contribution > 0)
            most = (
                "most of it comes from" if fraction >= 0.5 * unit else "the largest parts come from"
            )
            said += f"{'; ' if said else ''}{most} {' and '.join(sides)}"
        if others:
            said += (
                f"{', ' if said else ''}{_and(others)} speak{'s' * (len(others) == 1)} against it"
            )
        return said

    def _change(self, change: Change) -> str:
        names = _and([str(node) for node in change.nodes])
        if change.kind == "removed":
            return f"without {names}"
        return f"if {names} {'was' if len(change.nodes) == 1 else 'were'} wrong"

    # Data.

    def to_dict(self, *, changes: bool = False) -> dict[str, Any]:
        """Return the reasons as values that JSON has; with `changes`, also `changes_if`."""
        found: dict[str, Any] = {
            "node": self.node, "label": self.label, "against": self.against,
            "probability": self.probability, "margin": self.margin,
            "labels": [one._asdict() for one in self.labels],
            "offsets": self.offsets, "rest": self.rest,
        }  # fmt: skip
        for name in ("neighbors", "edges"):
            rows = getattr(self, name)
            found[name] = None if rows is None else [one._asdict() for one in rows]
        found["paths"] = [one._asdict() for one in self.paths]
        found |= {"basis": self.basis, "note": self.note, "text": self.text(changes=changes)}
        if changes:
            found["changes_if"] = [one._asdict() for one in self.changes_if]
        plain: dict[str, Any] = as_json_values(found)
        return plain

    def to_json(self, *, changes: bool = False) -> str:
        """Return `to_dict` as a line of JSON."""
        return json.dumps(self.to_dict(changes=changes), ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> Any:
        """Return a data frame of pandas with all contributions, which sum to `margin`."""
        pd: Any = import_module("pandas")

        rows = [("label", *one) for one in self.labels]
        unit = self.margin or math.nan
        more = {**self.offsets, "other labels": self.rest}
        rows += [
            (name, None, None, value, value / unit, math.nan, None) for name, value in more.items()
        ]
        return pd.DataFrame(rows, columns=["what", *LabelReason._fields])

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
        from ohmlearn.estimators.reasons_plot import draw_reasons

        return draw_reasons(self, ax)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(str(one.node))}</td><td>{escape(str(one.label))}</td>"
            f"<td>{one.contribution:+.3g}</td><td>{100 * one.fraction:+.0f}%</td></tr>"
            for one in self.labels
        )
        heads = "".join(f"<th>{name}</th>" for name in ("label of", "says", "contributes", ""))
        return f"<p>{escape(str(self))}</p><table><tr>{heads}</tr>{rows}</table>"


def as_json_values(value: Any) -> Any:
    """Return a value with types that JSON has; NaN and infinite numbers become None."""
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


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _either(ways: Iterator[str]) -> str:
    return ", or ".join(ways)
