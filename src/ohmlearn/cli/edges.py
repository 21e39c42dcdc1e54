"""What commands that read edges share: their options, and a reading with progress."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ohmlearn.nodes import NodeTable
    from ohmlearn.sparsifier import StreamingSparsifier
    from ohmlearn.streams import EdgeBatch, EdgeStream

__all__ = [
    "check_output",
    "edge_options",
    "fraction",
    "open_edges",
    "output_option",
    "seed_option",
    "threads_option",
    "watch",
]

OPTIONS = (
    click.argument("edges", nargs=-1, required=True),
    click.option("--source-col", help="Column of one end: a name, or a position from 0 on."),
    click.option("--target-col", help="Column of the other end."),
    click.option("--weight-col", help="Column of the weights."),
    click.option(
        "--format",
        "format_",
        type=click.Choice(["csv", "tsv", "text", "parquet", "arrow", "matrix_market", "numpy"]),
        help="Of the edges; told from names and first bytes by default.",
    ),
    click.option(
        "--id-type",
        type=click.Choice(["int64", "string"]),
        help="Of node ids in text; integers where the beginning has only such.",
    ),
    click.option(
        "--on-bad",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        help="Stop at a bad row, or leave such rows out and count them.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Progress and summary as JSON lines."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
)
fraction = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Of all chance.")
threads_option = click.option(
    "--threads", type=int, default=1, help="-1 for all cores; results do not depend on it."
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Ends in .parquet, .csv, .tsv or .jsonl; CSV on stdout by default.",
)
NAMES = ("source_col", "target_col", "weight_col", "format_", "id_type", "on_bad")


def edge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument EDGES and how to read it."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def open_edges(
    edges: tuple[str, ...], options: dict[str, Any], nodes: "NodeTable | None" = None
) -> "EdgeStream":
    """Return the stream that the options of `edge_options` ask for."""
    from ohmlearn.streams import read_edges

    chosen = {name.rstrip("_"): options[name] for name in NAMES}
    for name in ("source_col", "target_col", "weight_col"):
        if chosen[name] is not None and chosen[name].isdigit():
            chosen[name] = int(chosen[name])
    talkative = not (options["quiet"] or options["as_json"])
    source = edges[0] if len(edges) == 1 else list(edges)
    return read_edges(source, **chosen, nodes=nodes, verbose=int(talkative))


def watch(
    stream: "EdgeStream", options: dict[str, Any], sparsifier: "StreamingSparsifier | None" = None
) -> Iterator["EdgeBatch"]:
    """Yield the batches of a stream and show how far the reading is, on stderr."""
    from ohmlearn._progress import EdgeProgress

    with EdgeProgress(options["as_json"], options["quiet"]) as progress:
        for batch in stream:
            yield batch
            progress.show(stream.n_read, stream.fraction, sparsifier)


def check_output(output: str | None) -> None:
    """Refuse a file of results whose ending says nothing, before the work."""
    from ohmlearn._tables import TABLE_ENDINGS

    if output is not None and Path(output).suffix.lower() not in TABLE_ENDINGS:
        raise click.UsageError(f"-o must end in {', '.join(TABLE_ENDINGS)}, got {output}")
