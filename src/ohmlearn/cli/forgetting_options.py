"""Options of commands that forget old edges."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import as_moment, check_durations

if TYPE_CHECKING:
    from ohmlearn.edges import Edges
    from ohmlearn.graph import Graph
    from ohmlearn.graph.time_view import TimeView
    from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["Forgetting", "check_window", "forgetting_options"]

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
        for name, value in (("half_life", half_life), ("horizon", last)):
            if value is not None:
                check_duration(name, value)
        since = as_moment(options.get("since"))
        horizon = last if since is None else math.inf
        self.parameters: dict[str, Any] = {"half_life": half_life, "horizon": horizon}
        self.moment: dict[str, Any] = {} if since is None else {"since": since}

    def view_of(self, stream: "Edges") -> "TimeView | None":
        """Return which edges of a stream count; reads it once to find the latest time."""
        from ohmlearn.sparsifier.sparsifier_options import SparsifierOptions
        from ohmlearn.sparsifier.sparsifier_times import choose_view

        if not self.needs_times:
            return None
        options = SparsifierOptions(**self.parameters)
        times = (batch.need_times() for batch in stream)
        latest = max((float(t.max()) for t in times if len(t)), default=None)
        options.check_unit(stream.time_unit)
        check_durations(self._given, stream.time_unit)
        return choose_view(options, latest, None, self.moment.get("since"))


def check_window(graph: "Graph", sparsifier: "StreamingSparsifier | None", stream: "Edges") -> None:
    """Refuse answers without any edge, because of a window or because all were removed."""
    from ohmlearn.checks.times import show_time

    view, kept = graph.view, sparsifier
    if graph.n_edges > 0 or kept is None:
        return
    if view is not None and kept.latest_ is not None:
        unit = stream.time_unit
        since, latest = (show_time(time, unit) for time in (view.earliest, kept.latest_))
        raise ValueError(f"no edge counts since {since}; the latest is of {latest}")
    if stream.is_log:
        raise ValueError(f"there are no live edges in {' and '.join(stream.sources)}")
