"""The edges that the options of a command describe: files, a cluster, and what they forget."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.messages import flag_of, note, status_line
from ohmlearn.cli.options import Options
from ohmlearn.errors import InputError, OhmWarning, Param

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ohmlearn.edges import Batch, Edges
    from ohmlearn.graph import Graph
    from ohmlearn.graph.time_view import TimeView
    from ohmlearn.nodes import NodeTable
    from ohmlearn.reading import EdgeStream, ReadOptions
    from ohmlearn.sparsifier import StreamingSparsifier

MAX_WORKERS = 1024  # each is a process
# Workers ignore SIGINT (Ctrl-C). The main process stops them.
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
# Options that mean nothing on a cluster, and why.
NOT_ON_CLUSTERS = {
    "memory": "it limits a single process; give --max-edges or --epsilon",
    "n_nodes": "workers find the nodes themselves",
}


class Forgetting:
    """Which edges count: what --half-life, --horizon and --since ask for.

    `parameters` are of a sparsifier, and `moment` is the one for which a snapshot of it is asked.
    """

    def __init__(self, options: Options) -> None:
        from ohmlearn.checks.times import check_duration

        names = ("half_life", "horizon", "since")
        given = [name for name in names if options.get(name) is not None]
        if len(given) > 1:
            both = " and ".join(map(flag_of, given))
            raise click.UsageError(f"{both} are different ways to forget; give only one of them")
        self._options, self.needs_times = options, bool(given)
        self.parameters: dict[str, Any] = {
            name: options.get(name) for name in ("half_life", "horizon")
        }
        for name, value in self.parameters.items():
            if value is not None:
                check_duration(name, value)
        self.moment: dict[str, Any] = {}
        if options.get("since") is not None:
            self.moment["since"], self.parameters["horizon"] = options["since"], math.inf

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
        _check_durations(self._options, stream.time_unit)
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
        raise ValueError(f"no edge is at or after time {since}; the latest has time {latest}")
    if stream.is_log:
        raise ValueError(f"there are no live edges in {' and '.join(stream.sources)}")


def _check_durations(options: Options, unit: str | None) -> None:
    """Refuse a duration without a unit for dates, and warn of one for Unix times."""
    from ohmlearn._warnings import warn
    from ohmlearn.checks.times import UNIT_NAMES

    for name in ("half_life", "horizon"):
        number = options.get(name)
        if unit is None or not isinstance(number, float):
            continue
        given = Param(name, number)
        if unit == "date":
            raise InputError(
                f"{given} has no unit, but the times are dates",
                remedy=f"give {number:g}d for days, or {number:g}s",
            )
        means = f"{given} means {number:g} {UNIT_NAMES[unit]}, because the times are Unix times"
        warn(means + (f"; for days give {number:g}d" if unit == "s" else ""), OhmWarning)


def _read_options(options: Options, *, needs_times: bool = False) -> "ReadOptions":
    """Return how to read the edges; with `needs_times`, the column of times is guessed."""
    from ohmlearn.reading import ReadOptions

    chosen = {x.name: options[x.name] for x in fields(ReadOptions) if x.name in options}
    if needs_times and chosen["time"] is None:
        chosen["time"] = True
    return ReadOptions(**chosen)


def open_edges(
    options: Options, nodes: "NodeTable | None" = None, *, needs_times: bool = False
) -> "EdgeStream":
    """Return the stream that the options of a command describe, and print its columns."""
    from ohmlearn.reading.read_edges import open_stream

    edges: tuple[str, ...] = options["edges"]
    source = edges[0] if len(edges) == 1 else list(edges)
    stream = open_stream(source, _read_options(options, needs_times=needs_times), nodes=nodes)
    _print_columns(stream)
    return stream


def nodes_read(stream: "Edges") -> "NodeTable":
    """Return the ids of the nodes, which all edges of the command line have."""
    assert stream.nodes is not None
    return stream.nodes


def check_ids(
    stream: "Edges",
    path: str,
    ids: list[Any],
    rows: list[Any] | None = None,
    heading: str | None = None,
) -> None:
    """Refuse ids of a file that cannot be those of the edges, before these are read."""
    from ohmlearn.reading.label_table import as_node_ids

    as_node_ids(path, ids, stream.id_type, stream.kinds, heading=heading, rows=rows)


def find_ids(
    nodes: "NodeTable",
    path: str,
    ids: list[Any],
    rows: list[Any] | None = None,
    heading: str | None = None,
) -> tuple["NDArray[Any]", Any]:
    """Return the ids in a file as the edges have them, and their numbers, masked if unknown."""
    from ohmlearn.reading.label_table import as_node_ids

    asked = as_node_ids(path, ids, nodes.kind, nodes.kinds, heading=heading, rows=rows)
    return asked, nodes.find(asked, missing="mask")


def _print_columns(stream: "Edges") -> None:
    if stream.columns is not None:
        note(f"{stream.sources[0]}: {stream.columns}")


def watch_edges(
    stream: "Edges",
    options: Options,
    sparsifier: "StreamingSparsifier | None" = None,
    *,
    needs_edges: bool = False,
) -> "Edges":
    """Return edges that show in the status line how far they have been read.

    The size of a sparsifier that receives the edges of the first pass is shown, too. With
    `needs_edges`, a stream without any edge is refused.
    """
    from ohmlearn.edges.wrapped import Watched
    from ohmlearn.reading.source_errors import refuse_source

    def read(batches: "Iterator[Batch]", number: int) -> "Iterator[Batch]":
        yield from _show(stream, options, batches, sparsifier if number == 1 else None, number)
        if number > 1:
            return
        if stream.n_bad:
            rows = "row" if stream.n_bad == 1 else "rows"
            note(f"{stream.n_bad:,} bad {rows} left out; {stream.first_bad}")
        if stream.n_repeated:
            note(f"{stream.n_repeated:,} rows left out, because their events were read before")
        if needs_edges and stream.n_read == 0:
            bad = f"all {stream.n_bad:,} rows are bad; the first is {stream.first_bad}"
            # What needs edges would blame another file.
            refuse_source(stream.name, bad if stream.n_bad else "there is no edge")

    return Watched(stream, read)


def _show(
    stream: "Edges",
    options: Options,
    batches: "Iterator[Batch]",
    sparsifier: "StreamingSparsifier | None",
    number: int,
) -> "Iterator[Batch]":
    """Yield batches; print columns and progress, and check what the options say about edges."""
    line, limit = status_line(), options.get("n_nodes")
    printed = stream.columns is not None
    for batch in batches:
        if not printed:  # the columns of a pipe are not known before
            _print_columns(stream)
            printed = True
        # Later, labelled nodes that no edge has are there, too.
        if number == 1 and limit is not None and len(stream.nodes or ()) > limit:
            raise ValueError(f"the edges have more than {limit:,} nodes; raise --n-nodes")
        if len(batch.u) > 0:  # so the unit of the times is known
            _check_durations(options, stream.time_unit)
        yield batch
        if line is not None:
            line.read(stream.n_read, stream.fraction, sparsifier)


@contextmanager
def open_here_or_on_cluster(options: Options, *, needs_times: bool) -> "Iterator[Edges]":
    """Open the edges that the options describe, on the cluster that --cluster names, if any."""
    if not options["cluster"]:
        yield open_edges(options, needs_times=needs_times)
        return
    for name, reason in NOT_ON_CLUSTERS.items():
        if options.get(name) is not None:
            raise click.UsageError(f"{flag_of(name)} has no use with --cluster: {reason}")
    where, _, count = options["cluster"].partition(":")
    if where == "local" and count and not (count.isdecimal() and 1 <= int(count) <= MAX_WORKERS):
        raise click.UsageError(
            f"--cluster local:N needs a number of workers from 1 to {MAX_WORKERS}, got "
            f"{options['cluster']!r}"
        )
    from ohmlearn.checks.parameters import require_extra

    require_extra("distributed", "dask")

    from ohmlearn.dask import ClusterEdges

    with _start_cluster(int(count or 0)) if where == "local" else _connect(options) as client:
        note(f"Dashboard {client.dashboard_link}")
        line = status_line()
        edges = ClusterEdges(
            list(options["edges"]),
            client=client,
            progress=None if line is None else line.show,
            **asdict(_read_options(options, needs_times=needs_times)),
        )
        _print_columns(edges)
        _check_durations(options, edges.time_unit)
        yield edges


def _connect(options: Options) -> Any:
    from distributed import Client

    try:
        return Client(options["cluster"], timeout=10)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        problem = f"there is no Dask scheduler at {options['cluster']}: {said}"
        raise click.UsageError(problem) from error


@contextmanager
def _start_cluster(n_workers: int) -> Iterator[Any]:
    """Start workers on this machine; 0 means one for each core."""
    import logging

    import dask
    import joblib
    from distributed import Client, LocalCluster

    from ohmlearn.cluster.dask_tree import SETTINGS

    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=n_workers or joblib.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # our own errors report dead workers
            preload=[DEAF],
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
