"""Options of commands that forget old edges."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import as_moment, check_durations

if TYPE_CHECKING:
    from ohmlearn.estimators import HFSClassifier
    from ohmlearn.graph.time_view import TimeView

__all__ = ["EdgesSince", "Forgetting", "check_window", "forgetting_options"]

OPTIONS = (
    click.option(
        "--half-life",
        help="Edges count half as much after this time, such as 7d, 12h or 30min; or a number in "
        "the unit of the times.",
    ),
    click.option("--last", help="Count only edges of this time before the latest, such as 30d."),
    click.option("--since", help="Count only edges since this date, or number."),
)
NAMES = ("half_life", "last", "since")


def forgetting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --half-life, --last and --since."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


class Forgetting:
    """What the options of `forgetting_options` ask for.

    Examples
    --------
    >>> last = Forgetting({"half_life": None, "last": "30d", "since": None})
    >>> last.parameters, last.moment
    ({'half_life': None, 'horizon': '30d'}, {})
    >>> Forgetting({"half_life": None, "last": None, "since": "2026-03-31"}).moment
    {'since': '2026-03-31'}
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._given = {name: options.get(name) for name in NAMES}
        from ohmlearn.checks.times import check_duration

        given = [name for name in NAMES if options.get(name) is not None]
        if len(given) > 1:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"{names} are different ways to forget; give only one of them")
        self.needs_times = bool(given)
        half_life, last = (as_moment(options.get(name)) for name in ("half_life", "last"))
        for name, value in (("--half-life", half_life), ("--last", last)):
            if value is not None:
                check_duration(name, value)
        since = as_moment(options.get("since"))
        horizon = last if since is None else math.inf
        self.parameters: dict[str, Any] = {"half_life": half_life, "horizon": horizon}
        self.moment: dict[str, Any] = {} if since is None else {"since": since}

    def view_of(self, stream: Any) -> "TimeView | None":
        """Return which edges of a stream count; reads it once to find the latest time."""
        from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions
        from ohmlearn.sparsifier.sparsifier_times import check_unit, choose_view

        if not self.needs_times:
            return None
        options = SparsifierOptions(**self.parameters)
        latest = max((float(batch.t.max()) for batch in stream if len(batch.t)), default=None)
        check_unit(stream, options)
        check_durations(self._given, stream.time_unit)
        return choose_view(options, latest, None, self.moment.get("since"))


class EdgesSince:
    """A stream of the edges since a time, without their times.

    The end of a reading in which no edge counts is an error, so that nothing is computed then.

    Parameters
    ----------
    edges : stream of edges with times
    since : float

    Examples
    --------
    >>> edges = EdgesSince([([0, 1], [1, 2], None, [3.0, 7.0])], 5.0)
    >>> [u.tolist() for u, v, w in edges], edges.about()["latest"]
    ([[1]], 7.0)
    >>> list(EdgesSince([([0, 1], [1, 2], None, [3.0, 7.0])], 8.0))
    Traceback (most recent call last):
    ...
    ValueError: no edge counts since 8; the latest is of 7
    """

    def __init__(self, edges: Any, since: float) -> None:
        self._edges, self._since = edges, since
        self._latest = -math.inf
        self.rereadable: bool = getattr(edges, "rereadable", True)
        self.sources: list[str] = getattr(edges, "sources", [])
        self.nodes = getattr(edges, "nodes", None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        from ohmlearn.cli.label_summary import show_time
        from ohmlearn.graph.time_view import TimeView

        n_edges = 0
        for batch in TimeView(since=self._since).of(self._watched()):
            n_edges += len(batch[0])
            yield batch
        if n_edges == 0:
            unit = getattr(self._edges, "time_unit", None)
            since, latest = (show_time(time, unit) for time in (self._since, self._latest))
            raise ValueError(f"no edge counts since {since}; the latest is of {latest}")

    def _watched(self) -> Iterator[Any]:
        import numpy as np

        for batch in self._edges:
            if len(batch[0]) > 0:
                self._latest = max(self._latest, float(np.max(batch[3])))
            yield batch

    def about(self) -> dict[str, Any]:
        """Return what the summary says about times."""
        return {
            "at": None,
            "half_life": None,
            "since": self._since,
            "latest": self._latest,
            "unit": getattr(self._edges, "time_unit", None),
            "asked": None,
        }


def check_window(model: "HFSClassifier", stream: Any) -> None:
    """Refuse answers without any edge, because of a window or because all were removed."""
    from ohmlearn.cli.label_summary import show_time

    view, kept = model.graph_.view, model.sparsifier_
    if model.graph_.n_edges > 0 or kept is None:
        return
    if view is not None and kept.latest_ is not None:
        unit = getattr(stream, "time_unit", None)
        since, latest = (show_time(time, unit) for time in (view.earliest, kept.latest_))
        raise ValueError(f"no edge counts since {since}; the latest is of {latest}")
    if hasattr(stream, "kept_sparsifier"):
        raise ValueError(f"there are no live edges in {' and '.join(stream.sources)}")
