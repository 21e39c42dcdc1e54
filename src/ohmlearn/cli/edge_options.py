"""The options of commands that read edges, and a stream of edges with progress."""

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ohmlearn.cli.messages import shows_progress, status_line, tell

if TYPE_CHECKING:
    from ohmlearn.edges import Batch, Edges
    from ohmlearn.nodes import NodeTable
    from ohmlearn.reading import EdgeStream, ReadOptions
    from ohmlearn.sparsifier import StreamingSparsifier

__all__ = [
    "as_column",
    "as_moment",
    "check_durations",
    "check_ids",
    "edge_options",
    "edge_options_with_state",
    "fraction",
    "nodes_read",
    "open_edges",
    "print_bad",
    "reading_options",
    "seed_option",
    "watch_edges",
]


class WithAlias(click.Option):
    """An option whose second name, which it had before, still works but is not in the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Leave out the second name."""
        record = super().get_help_record(ctx)
        return record and (record[0].replace(f", {self.opts[1]}", ""), record[1])


# One for each field of ReadOptions, with the same name, and --kinds for names in `bipartite`.
READING = (
    click.option("--source-col", help="Column of one end: a name, or a position from 0 on."),
    click.option("--target-col", help="Column of the other end."),
    click.option(
        "--weight",
        "--weight-col",
        "weight_col",
        cls=WithAlias,
        help="Column of the weights, or a function of it: amount:log is log(1 + amount), "
        "amount:sqrt its root, amount:cap=0.99 at most its 0.99 quantile among the first 100,000 "
        "edges. none: no weights.",
    ),
    click.option(
        "--time-col", "time", help="Column of the times: numbers, or dates such as 2026-03-31."
    ),
    click.option(
        "--latest",
        help="Later times are bad: a number or a date; tomorrow for dates and Unix times.",
    ),
    click.option(
        "--event-id",
        "event_id_col",
        help="Column of event ids: rows whose event was read before are left out, and counted. "
        "The last 8,388,608 ids are remembered, also by --state.",
    ),
    click.option(
        "--format",
        "format",
        type=click.Choice(
            [
                "csv",
                "tsv",
                "text",
                "jsonl",
                "parquet",
                "arrow",
                "matrix_market",
                "metis",
                "graph",
                "numpy",
            ]
        ),
        help="Format of the edges; by default found from names and first bytes.",
    ),
    click.option(
        "--id-type",
        type=click.Choice(["int64", "string"]),
        help="Type of node ids in text; integers if all ids in the first rows are.",
    ),
    click.option(
        "--bipartite/--one-kind",
        default=None,
        help="Whether the two ends are two kinds of nodes, such as users and items, whose ids may "
        "overlap. Then ids start with the kind, as in user:17.",
    ),
    click.option(
        "--kinds",
        metavar="NAME,NAME",
        help="Names of the two kinds, such as user,item; by default those of the columns.",
    ),
    click.option("--header/--no-header", default=None, help="Whether text has one; guessed."),
    click.option("--delimiter", help="Of text; a blank means any blanks and tabs. Guessed."),
    click.option("--comment", help="Mark that starts a comment line in text."),
    click.option(
        "--where",
        help="Read only rows that fulfil a condition, such as \"amount > 10 and kind = 'buy'\".",
    ),
    click.option(
        "--on-bad",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        help="Stop at a bad row, or leave such rows out and count them.",
    ),
)
OPTIONS = (
    *READING,
    click.option("--json", "as_json", is_flag=True, help="Progress and summary as JSON lines."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, summary or warnings."),
)


class Fraction(click.FloatRange):
    """A number between 0 and 1, both excluded."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0, min_open=True, max_open=True)

    def convert(self, value: Any, *place: Any) -> Any:
        """Refuse NaN as well, which is in no order with other numbers."""
        number = super().convert(value, *place)
        if number != number:
            self.fail(f"{value} is not a number.", *place)
        return number


fraction = Fraction()
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=0, help="Random seed."
)


def edge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument EDGES and how to read it."""
    return _add_options(command, required=True)


def edge_options_with_state(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument EDGES, which a command with a state may leave out, and how to read it."""
    return _add_options(command, required=False)


def _add_options(command: Callable[..., Any], *, required: bool) -> Callable[..., Any]:
    command = shows_progress(command)
    for option in reversed((click.argument("edges", nargs=-1, required=required), *OPTIONS)):
        command = option(command)
    return command


def as_column(text: str | None) -> str | int | None:
    """Return the name of a column, or its position if the text is a number."""
    return int(text) if text is not None and text.isdecimal() else text


def as_moment(text: str | None) -> str | float | None:
    """Return a time on the command line as a number, or as a date, which stays text.

    Examples
    --------
    >>> as_moment("12.5"), as_moment("2026-03-31")
    (12.5, '2026-03-31')
    """
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def check_durations(options: dict[str, Any], unit: str | None) -> None:
    """Refuse a duration without a unit for dates, and warn of one for Unix times.

    Examples
    --------
    >>> check_durations({"half_life": "30", "last": None}, "date")
    Traceback (most recent call last):
    ...
    ValueError: --half-life 30 has no unit, but the times are dates; give 30d for days, or 30s
    >>> check_durations({"half_life": "30", "last": None}, None)  # numbers of any unit
    """
    from ohmlearn.checks.times import UNIT_NAMES

    for name in ("half_life", "last"):
        text = options.get(name)
        if unit is None or not isinstance(as_moment(text), float):
            continue
        option = f"--{name.replace('_', '-')} {text}"
        if unit == "date":
            raise ValueError(
                f"{option} has no unit, but the times are dates; give {text}d for days, or {text}s"
            )
        means = f"{option} means {text} {UNIT_NAMES[unit]}, because the times are Unix times"
        if unit == "s":
            means += f"; for days give {text}d"
        warnings.warn(means, UserWarning, stacklevel=2)


def reading_options(options: dict[str, Any], *, needs_times: bool = False) -> "ReadOptions":
    """Return how to read the edges, from the options of `edge_options`.

    With `needs_times`, the column of times is guessed if it is not named.
    """
    from dataclasses import fields

    from ohmlearn.reading import ReadOptions

    chosen = {x.name: options[x.name] for x in fields(ReadOptions) if x.name in options}
    for name in ("source_col", "target_col", "weight_col", "time", "event_id_col"):
        chosen[name] = as_column(chosen[name])
    if chosen["weight_col"] in ("none", "False"):
        chosen["weight_col"] = False
    chosen["latest"] = as_moment(chosen["latest"])
    if options["kinds"] is not None:
        if chosen["bipartite"] is False:
            raise click.UsageError("--one-kind and --kinds cannot be used together")
        chosen["bipartite"] = tuple(kind.strip() for kind in options["kinds"].split(","))
        if len(chosen["bipartite"]) != 2:
            raise click.UsageError("--kinds needs two names, such as user,item")
    if needs_times and chosen["time"] is None:
        chosen["time"] = True
    return ReadOptions(**chosen)


def open_edges(
    options: dict[str, Any], nodes: "NodeTable | None" = None, *, needs_times: bool = False
) -> "EdgeStream":
    """Return the stream that the options of `edge_options` describe, and print its columns."""
    from ohmlearn.reading.read_edges import open_stream

    edges: tuple[str, ...] = options["edges"]
    source = edges[0] if len(edges) == 1 else list(edges)
    chosen = reading_options(options, needs_times=needs_times)
    stream = open_stream(source, chosen, nodes=nodes)
    _print_columns(stream, options)
    return stream


def nodes_read(stream: "Edges") -> "NodeTable":
    """Return the ids of the nodes, which all edges of the command line have."""
    assert stream.nodes is not None
    return stream.nodes


def check_ids(
    stream: "Edges",
    path: str,
    ids: list[Any],
    rows: list[int] | None = None,
    heading: str | None = None,
) -> None:
    """Refuse ids of a file that cannot be those of the edges, before these are read."""
    from ohmlearn.reading.label_table import as_node_ids

    as_node_ids(path, ids, stream.id_type, stream.kinds, heading=heading, rows=rows)


def _print_columns(stream: "Edges", options: dict[str, Any]) -> None:
    if stream.columns is not None and not (options["quiet"] or options["as_json"]):
        tell(f"{stream.sources[0]}: {stream.columns}")


def watch_edges(
    stream: "Edges",
    options: dict[str, Any],
    sparsifier: "StreamingSparsifier | None" = None,
    needs_edges: bool = False,
) -> "Edges":
    """Return edges that tell the status line how far they have been read.

    Parameters
    ----------
    stream : Edges
    options : dict
        Those of `edge_options`.
    sparsifier : StreamingSparsifier, optional
        Receives the edges of the first reading; its size is shown as well.
    needs_edges : bool
        Whether a stream without any edge is refused.
    """
    from ohmlearn.edges.wrapped import Watched

    def read(batches: "Iterator[Batch]", number: int) -> "Iterator[Batch]":
        yield from _show(stream, options, batches, sparsifier if number == 1 else None, number)
        if number > 1:
            return
        print_bad(stream, options)
        if needs_edges and stream.n_read == 0:
            _refuse_empty(stream)

    return Watched(stream, read)


def _show(
    stream: "Edges",
    options: dict[str, Any],
    batches: "Iterator[Batch]",
    sparsifier: "StreamingSparsifier | None",
    number: int,
) -> "Iterator[Batch]":
    """Yield batches; print columns and progress, and check what the options say about edges."""
    line, limit = status_line(), options.get("n_nodes")
    printed = stream.columns is not None
    for batch in batches:
        if not printed:  # the columns of a pipe are not known before
            _print_columns(stream, options)
            printed = True
        # Later, labelled nodes that no edge has are there, too.
        if number == 1 and limit is not None and len(stream.nodes or ()) > limit:
            raise ValueError(f"the edges have more than {limit:,} nodes; raise --n-nodes")
        if len(batch.u) > 0:  # so the unit of the times is known
            check_durations(options, stream.time_unit)
        yield batch
        if line is not None:
            line.read(stream.n_read, stream.fraction, sparsifier)


def _refuse_empty(stream: "Edges") -> NoReturn:
    """Refuse a stream without edges: what needs them would blame another file."""
    from ohmlearn.reading.source_errors import refuse_source

    where = stream.name
    if stream.n_bad:
        refuse_source(where, f"all {stream.n_bad:,} rows are bad; the first is {stream.first_bad}")
    refuse_source(where, "there is no edge")


def print_bad(stream: "Edges", options: dict[str, Any]) -> None:
    """Report rows that were left out."""
    if stream.n_bad and not (options["quiet"] or options["as_json"]):
        rows = "row" if stream.n_bad == 1 else "rows"
        tell(f"{stream.n_bad:,} bad {rows} left out; {stream.first_bad}")
    if stream.n_repeated and not (options["quiet"] or options["as_json"]):
        tell(f"{stream.n_repeated:,} rows left out, because their events were read before")
