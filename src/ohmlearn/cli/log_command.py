"""The commands ``log append``, ``log remove`` and so on: a log of edges in a folder."""

from typing import TYPE_CHECKING, Any

import click

from ohmlearn._defaults import EPSILON
from ohmlearn._phases import Phase, phase
from ohmlearn._warnings import warn
from ohmlearn.cli import options as cli
from ohmlearn.cli.main import main
from ohmlearn.cli.messages import print_json, shows_progress, summarise
from ohmlearn.cli.open_edges import open_edges, watch_edges

if TYPE_CHECKING:
    from ohmlearn.edge_log import EdgeLog

folder_argument = click.argument("folder", type=click.Path(file_okay=False))
MISSING = cli.method_option(
    "--missing", type=click.Choice(["warn", "raise", "ignore"]), default="warn",
    help="What to do if no edge matches a request. With raise, nothing is removed then.",
)  # fmt: skip


@main.group()
def log() -> None:
    """Keep edges in a folder, from which they can be removed.

    What a command has written is on disk when it ends. A folder of a log is accepted wherever
    EDGES are.
    """


@log.command()
@folder_argument
@cli.takes_edges(
    cli.option(
        "--epsilon", type=cli.fraction, group="Method",
        help=f"Accuracy of the sparsifier of a new log. Default: {EPSILON}.",
    ),
    cli.SEED,
)  # fmt: skip
def append(folder: str, **options: Any) -> None:
    """Append EDGES to the log in FOLDER.

    The log is made if it does not exist. All of EDGES are appended, or, if there is an error, none.
    """
    if options["event_id_col"] is not None:
        warn(
            "a log does not keep the ids of events: those of earlier commands count again; "
            "ohmlearn serve --event-id remembers them"
        )
    with _open(folder, epsilon=options["epsilon"], seed=options["seed"]) as edge_log:
        stream = open_edges(options, edge_log.nodes, needs_times=edge_log.has_times)
        with phase(Phase("reading edges", 1, 1)):
            n_appended = edge_log.append(watch_edges(stream, options))
        _report(edge_log, {"n_appended": n_appended, "n_bad_rows": stream.n_bad})


@log.command()
@folder_argument
@cli.takes_edges(
    cli.method_option(
        "--by-weight", is_flag=True, help="Remove only edges with the weight of the row."
    ),
    MISSING,
)  # fmt: skip
def remove(folder: str, by_weight: bool, missing: Any, **options: Any) -> None:
    """Remove edges from the log in FOLDER.

    Those are removed that are between the pairs of nodes in EDGES: both directions, and all
    parallel edges. If EDGES are read with times, only edges with the time of the row.
    """
    import numpy as np

    with _open(folder) as edge_log:
        if len(edge_log.nodes) > 0 and not edge_log.nodes.kinds and options["bipartite"] is None:
            options["bipartite"] = False
        stream = open_edges(options)
        if stream.has_times and not edge_log.has_times:
            raise ValueError(f"the edges in {folder} have no times; leave out --time")
        with phase(Phase("reading edges", 1, 1)):
            batches: list[Any] = list(watch_edges(stream, options))
        if not batches:
            return
        ids = stream.nodes.ids()
        u, v = (ids[np.concatenate([batch[at] for batch in batches])] for at in (0, 1))
        w = [np.ones(len(batch.u)) if batch.w is None else batch.w for batch in batches]
        t = [batch.t for batch in batches if batch.t is not None]
        weights = np.concatenate(w) if by_weight else None
        times = np.concatenate(t) if t else None
        with phase("removing edges"):
            found = edge_log.remove(u, v, weights, times, missing=missing)
        _report(edge_log, {"n_removed": found.n_removed, "n_missing": len(found.missing)})


@log.command()
@folder_argument
@click.argument("nodes", nargs=-1)
@click.option(
    "--nodes-file", "file", type=click.File("r"), help="File with one more id in each line."
)
@cli.with_options(MISSING, *cli.QUIET)
@shows_progress
def remove_nodes(
    folder: str, nodes: tuple[str, ...], file: Any, missing: Any, **options: Any
) -> None:
    """Remove all edges of nodes from the log in FOLDER.

    NODES are ids.
    """
    ids: list[Any] = [*nodes, *((line.strip() for line in file) if file else ())]
    if not ids:
        raise click.UsageError("give ids of nodes, or --nodes-file FILE")
    with _open(folder) as edge_log:
        if edge_log.nodes.kind == "int64":
            try:
                ids = [int(node) for node in ids]
            except ValueError as error:
                raise ValueError(f"node ids of {folder} are integers: {error}") from None
        with phase("removing edges"):
            found = edge_log.remove_nodes(ids, missing=missing)
        _report(edge_log, {"n_removed": found.n_removed, "n_missing": len(found.missing)})


@log.command()
@folder_argument
@click.argument("before")
@cli.with_options(*cli.QUIET)
@shows_progress
def expire(folder: str, before: str, **options: Any) -> None:
    """Remove old edges from the log in FOLDER.

    Those with a time before BEFORE, a number or a date, are removed.
    """
    with _open(folder) as edge_log:
        with phase("removing edges"):
            found = edge_log.expire(cli.as_moment(before))
        _report(edge_log, {"n_removed": found.n_removed})


@log.command()
@folder_argument
@cli.with_options(*cli.QUIET)
@shows_progress
def compact(folder: str, **options: Any) -> None:
    """Rewrite the log in FOLDER without removed edges."""
    with _open(folder) as edge_log:
        before = edge_log.info()["bytes"]
        with phase("compacting the log"):
            edge_log.compact()
        _report(edge_log, {"n_bytes_freed": before - edge_log.info()["bytes"]})


@log.command()
@folder_argument
@cli.option("--staleness", is_flag=True, help="Also measure how stale the sparsifier is.")
@cli.with_options(cli.QUIET[0])
@shows_progress
def info(folder: str, staleness: bool, as_json: bool) -> None:
    """Print figures about the log in FOLDER."""
    with _open(folder) as edge_log:
        figures = edge_log.info()
        if staleness:
            with phase("measuring staleness"):
                figures["staleness"] = edge_log.staleness()
    if as_json:
        print_json(figures)
        return
    times = "with times" if figures["has_times"] else "without times"
    click.echo(f"Edges      {figures['n_edges']:,} live, {times}")
    click.echo(f"           {figures['n_dead']:,} removed, until the log is compacted")
    click.echo(f"Nodes      {figures['n_nodes']:,}")
    click.echo(f"Files      {figures['bytes']:,} bytes, {figures['n_records']:,} records")
    own = figures["sparsifier"]
    click.echo(f"Sparsifier epsilon {own['epsilon']:g}, built again {figures['generation']} times")
    if staleness:
        click.echo(f"           staleness {figures['staleness']:.2g}")


def _open(folder: str, epsilon: float | None = None, seed: int | None = None) -> "EdgeLog":
    """Return a log; only `append` gives a seed and may make a new one."""
    from ohmlearn.edge_log import EdgeLog
    from ohmlearn.reading.file_names import is_log

    exists = is_log(folder)
    if not exists and seed is None:
        raise FileNotFoundError(f"{folder} is not a log; make one with: ohmlearn log append")
    return EdgeLog(folder, epsilon=epsilon, random_state=None if exists else seed)


def _report(edge_log: "EdgeLog", figures: dict[str, int]) -> None:
    figures = {**figures, "n_edges": edge_log.n_edges, "n_nodes": edge_log.n_nodes}
    words = {"n_edges": "edges", "n_nodes": "nodes", "n_bytes_freed": "bytes freed"}
    times = "with" if edge_log.has_times else "without"
    words |= {"n_appended": f"edges appended, {times} times", "n_removed": "edges removed"}
    words |= {"n_missing": "requests that match no edge", "n_bad_rows": "bad rows left out"}
    done = [f"{count:,} {words[name]}" for name, count in figures.items()]
    summarise(figures, f"{', '.join(done[:-2])}; the log has {' and '.join(done[-2:])}")
